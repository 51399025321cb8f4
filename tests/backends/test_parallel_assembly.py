"""Sparse results of every format, counted and filled by several threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit import pipeline
from tests.matrix.combinations import stored_mask

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool is for Linux")

ROOT = Path(__file__).resolve().parents[2]
MATRICES = {
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "aos coo": sj.Format("(i, j) -> (i : compressed(nonunique), j : singleton)"),
    "dcsr": sj.DCSR,
    "dcsc": sj.DCSC,
    "bsr": sj.BSR(2, 3),
    "blocked dcsr": sj.Format("(i, j) -> (i floordiv 2 : compressed, j floordiv 3 : compressed, "
                              "i mod 2 : dense, j mod 3 : dense)"),
    "compressed dense": sj.Format("(i, j) -> (i : compressed, j : dense)"),
    "loose": sj.Format("(i, j) -> (i : dense, j : loose_compressed)"),
}  # fmt: skip
CUBES = {
    "csf": sj.CSF(3),
    "coo": sj.COO(3),
    "dense csf": sj.Format("(i, j, k) -> (i : dense, j : compressed, k : compressed)"),
    "two dense": sj.Format("(i, j, k) -> (i : dense, j : dense, k : compressed)"),
    "dense inside": sj.Format("(i, j, k) -> (i : compressed, j : dense, k : compressed)"),
    "blocks": sj.Format("(i, j, k) -> (i : compressed, j : compressed, k : dense)"),
}


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut what is merged into parts of few entries."""
    monkeypatch.setattr(pipeline, "_PART", 3)


@pytest.fixture
def pool() -> Iterator[Any]:
    """The pool of threads, whose limits are as they were after the test."""
    from sparsejit.backends.llvm._engine import thread_pool

    pool = thread_pool()
    before = pool.limits
    yield pool
    pool.set_limits(*before)


THREADS = (1, 2, 3, 4)
"""So many for every parallel loop, however little it does."""


def drawn(shape: tuple[int, ...], seed: int, density: float = 0.3) -> Any:
    """Return an array with many zeros, and with coordinates at which nothing is stored."""
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 9, shape) * (rng.random(shape) < density) * 1.0
    for axis, extent in enumerate(shape):
        empty = rng.permutation(extent)[: extent // 3]
        array[(slice(None),) * axis + (empty,)] = 0.0
    return array


def check(pool: Any, kernel: Any, *operands: Any) -> None:
    """Compare values and what is stored with the reference; the storage is checked on the way."""
    values, stored = kernel.lower(*operands).reference(*operands)
    for number in THREADS:
        pool.set_limits(number, 0)
        made = kernel(*operands)
        tensor = made if isinstance(made, sj.SparseTensor) else sj.asarray(made)
        again = sj.SparseTensor(tensor.format, tensor.shape, tensor.positions, tensor.coordinates,
                                tensor.values, tensor.fill_value)  # fmt: skip
        np.testing.assert_array_equal(again.to_numpy(), values)
        np.testing.assert_array_equal(stored_mask(again), stored)


SHAPES = [(0, 3), (3, 0), (7, 5), (23, 17)]
OPERATIONS = {
    "add": lambda A, B: A + B,
    "three": lambda A, B: A + B + A * 2.0,
    "multiply": lambda A, B: A * B,
    "left": lambda A, B: sj.binary(A, B, overlap=None, left="identity", right=None),
    "large": lambda A, B: sj.select(A + B, lambda x: x > 6.0),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str, operation: str, pool: Any) -> None:
    fmt = MATRICES[name]
    kernel = sj.sparse_jit(OPERATIONS[operation], output=fmt)
    for shape in SHAPES:
        for density in (0.0, 0.3, 1.0):
            arrays = drawn(shape, 1, density), drawn(shape, 2, density)
            check(pool, kernel, *(sj.asarray(array, format=fmt) for array in arrays))


@pytest.mark.parametrize("source", ["csr", "coo", "dcsr", "bsr"])
@pytest.mark.parametrize("target", MATRICES)
def test_one_format_into_another(source: str, target: str, pool: Any) -> None:
    kernel = sj.sparse_jit(lambda A, B: A + B, output=MATRICES[target])
    for shape in SHAPES[2:]:
        pair = drawn(shape, 3), drawn(shape, 4)
        check(pool, kernel, *(sj.asarray(array, format=MATRICES[source]) for array in pair))


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", CUBES)
def test_tensors(name: str, operation: str, pool: Any) -> None:
    fmt = CUBES[name]
    kernel = sj.sparse_jit(OPERATIONS[operation], output=fmt)
    for shape in [(0, 2, 3), (9, 4, 6), (3, 12, 2)]:
        arrays = drawn(shape, 5), drawn(shape, 6)
        check(pool, kernel, *(sj.asarray(array, format=fmt) for array in arrays))


IN_PARALLEL = {**MATRICES, **CUBES}


@pytest.mark.parametrize("name", IN_PARALLEL)
def test_merges_are_assembled_in_parallel(name: str) -> None:
    fmt = IN_PARALLEL[name]
    pair = (sj.asarray(drawn((6,) * fmt.ndim, seed), format=fmt) for seed in (7, 8))
    loops = sj.sparse_jit(lambda A, B: A + B, output=fmt).lower(*pair).text("loops")
    assert "push" not in loops
    assert loops.count("scan sum") >= 1


def test_the_bits_do_not_depend_on_the_number_of_threads(pool: Any) -> None:
    noise = np.random.default_rng(8).random((60, 50))
    pair = [sj.asarray(drawn((60, 50), seed) * noise, format=sj.DCSR) for seed in (1, 2)]
    kernel = sj.sparse_jit(lambda A, B: np.sin(A) * 3.0 + B / 7.0)
    found = set()
    for number in THREADS:
        pool.set_limits(number, 0)
        made = kernel(*pair)
        found.add(b"".join(np.ascontiguousarray(array).tobytes() for array in buffers(made)))
    assert len(found) == 1


def buffers(tensor: Any) -> list[Any]:
    """Return the arrays of a tensor."""
    arrays = [*tensor.positions, *tensor.coordinates, tensor.values]
    return [array for array in arrays if array is not None]


def test_an_error_of_a_user_function_comes_out(pool: Any) -> None:
    def risky(x: float) -> float:
        if x > 15.0:
            raise ValueError(f"{x} is too large")
        return x * 2.0

    kernel = sj.sparse_jit(lambda A, B: sj.unary(A + B, risky), output=sj.DCSR)
    small = sj.asarray(drawn((40, 30), 1) * 0.5, format=sj.DCSR)
    large = sj.asarray(drawn((40, 30), 1), format=sj.DCSR)
    for number in THREADS:
        pool.set_limits(number, 0)
        np.testing.assert_array_equal(kernel(small, small).to_numpy(), 4 * small.to_numpy())
        with pytest.raises(sj.errors.BackendError, match="risky"):
            kernel(large, large)


def test_python_threads_share_the_pool(pool: Any) -> None:
    pool.set_limits(3, 0)
    pair = [drawn((80, 70), seed) for seed in (1, 2)]
    kernels = [
        (sj.sparse_jit(lambda A, B: A + B, output=fmt), fmt)
        for fmt in (sj.DCSR, sj.COO(2), sj.BSR(2, 3))
    ]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                for kernel, fmt in kernels:
                    made = kernel(*(sj.asarray(array, format=fmt) for array in pair))
                    np.testing.assert_array_equal(sj.asarray(made).to_numpy(), pair[0] + pair[1])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_a_forked_process_assembles_too() -> None:
    program = (
        "import os, numpy as np, sparsejit as sj\n"
        "from sparsejit.backends.llvm._engine import thread_pool\n"
        "thread_pool().set_limits(3, 0)\n"
        "A = sj.asarray(np.eye(30000 // 100), format=sj.DCSR)\n"
        "twice = sj.sparse_jit(lambda A, B: A + B)\n"
        "def check(): assert (twice(A, A).to_numpy() == 2 * A.to_numpy()).all()\n"
        "check()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    check()\n"
        "    os._exit(0)\n"
        "check()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, cwd=ROOT, env=dict(os.environ), check=False)  # fmt: skip
    assert done.stdout.strip() == "0", done.stderr
