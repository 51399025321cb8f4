"""Parallel loops of the LLVM tier: the same results, whoever calls, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.backends.llvm import _pool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool is for Linux")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=[2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many threads for every parallel loop, however little it does."""
    from sparsejit.backends.llvm._engine import thread_pool

    pool = thread_pool()
    before = pool.limits
    pool.set_limits(request.param, 0)
    yield request.param
    pool.set_limits(*before)


def matrix(rows: int, columns: int, density: float = 0.2, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    made: Any = sp.random_array((rows, columns), density=density, format="csr", rng=rng)
    made.data[:] = rng.integers(1, 9, made.nnz)
    return made


def as_dense(made: Any) -> Any:
    return made.toarray() if hasattr(made, "toarray") else made


KERNELS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "rows": (lambda A, B, x: A @ x, lambda A, B, x: A @ x),
    "columns": (lambda A, B, x: x[: A.shape[0]] @ A, lambda A, B, x: x[: A.shape[0]] @ A),
    "sums of columns": (lambda A, B, x: A.sum(axis=0), lambda A, B, x: A.sum(axis=0)),
    "sum": (lambda A, B, x: A.sum(), lambda A, B, x: A.sum()),
    "largest": (lambda A, B, x: (A * A).max(), lambda A, B, x: (A * A).max()),
    "product of rows": (lambda A, B, x: A.prod(axis=1), lambda A, B, x: A.prod(axis=1)),
    "both": (lambda A, B, x: A + B, lambda A, B, x: A + B),
    "scaled": (lambda A, B, x: A * x[None, :], lambda A, B, x: A * x[None, :]),
    "products": (lambda A, B, x: A @ B.T, lambda A, B, x: A @ B.T),
}
SHAPES = [(0, 3), (1, 1), (3, 0), (7, 5), (40, 17), (200, 3)]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_agree_with_numpy(name: str, threads: int) -> None:
    ours, theirs = KERNELS[name]
    kernel = sj.sparse_jit(ours)
    for rows, columns in SHAPES:
        if name == "largest" and 0 in (rows, columns):
            continue
        A, B = matrix(rows, columns), matrix(rows, columns, seed=2)
        x = np.arange(1.0, max(rows, columns) + 1)
        if name != "columns":
            x = x[:columns]
        expected = theirs(A.toarray(), B.toarray(), x)
        np.testing.assert_allclose(as_dense(kernel(A, B, x)), expected)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float32, np.complex128])
def test_sums_in_parts_of_every_kind(dtype: Any, threads: int) -> None:
    A = matrix(60, 30).astype(dtype)
    total = sj.sparse_jit(lambda A: (A.sum(), A.sum(axis=0), A.any(axis=0)))
    dense = A.toarray()
    for made, expected in zip(
        total(A), (dense.sum(), dense.sum(axis=0), dense.any(axis=0)), strict=True
    ):
        np.testing.assert_array_equal(made, expected)
        assert made.dtype == expected.dtype


def test_sums_are_the_same_for_any_number_of_threads() -> None:
    from sparsejit.backends.llvm._engine import thread_pool

    pool = thread_pool()
    before = pool.limits
    x = np.random.default_rng(5).standard_normal(10_001)
    total = sj.sparse_jit(lambda x: (x * x).sum())
    found = set()
    try:
        for number in (2, 3, 4):
            pool.set_limits(number, 0)
            found.add(float(total(x)))
    finally:
        pool.set_limits(*before)
    assert len(found) == 1


@pytest.mark.parametrize("name", KERNELS)
def test_deterministic_results_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    from sparsejit.backends.llvm._engine import thread_pool

    pool = thread_pool()
    before = pool.limits
    rng = np.random.default_rng(9)
    A, B = matrix(300, 40), matrix(300, 40, seed=2)
    A.data[:], B.data[:] = rng.standard_normal(A.nnz), rng.standard_normal(B.nnz)
    x = rng.standard_normal(300 if name == "columns" else 40)
    kernel = sj.sparse_jit(KERNELS[name][0], deterministic=True)
    try:
        found = set()
        for number in (1, 2, 3, 7):
            pool.set_limits(number, 0)
            found |= {np.asarray(as_dense(kernel(A, B, x))).tobytes() for _ in range(2)}
    finally:
        pool.set_limits(*before)
    assert len(found) == 1


def test_deterministic_and_ordered_sums_are_on_one_thread(threads: int) -> None:
    x = np.random.default_rng(5).standard_normal(10_001)
    for options in ({"deterministic": True}, {"reassociate": False}):
        total = sj.sparse_jit(lambda x: (x * x).sum(), **options)
        made = {float(total(x)) for _ in range(5)}
        assert len(made) == 1
        assert "added up in parts" not in total.explain()
    np.testing.assert_allclose(made.pop(), np.square(x).sum())


@pytest.mark.parametrize("columns", [2**44, 2**61])
def test_a_product_with_more_columns_than_there_is_memory(columns: int, threads: int) -> None:
    """No thread makes a workspace of the extent."""
    A = matrix(20, 30)
    places = np.arange(30, dtype=np.int64) * (columns // 40), np.arange(31, dtype=np.int64)
    B = sp.csr_array((np.ones(30), *places), shape=(30, columns))
    made = sj.sparse_jit(lambda A, B: A @ B)(A, B)
    assert made.shape == (20, columns)
    np.testing.assert_array_equal(made.indptr, A.indptr)
    np.testing.assert_array_equal(made.indices, A.indices * np.int64(columns // 40))
    np.testing.assert_array_equal(made.data, A.data)


@pytest.mark.parametrize("rows", [1, 7, 100, 1001])
def test_rows_of_very_different_length_are_all_done_once(rows: int, threads: int) -> None:
    """Chunks are cut where stored entries say: long rows, empty ones, all in one row."""
    for lengths in (
        np.arange(rows) % 50,
        (np.arange(rows) == rows // 2) * 900,
        np.zeros(rows, int),
    ):
        pos = np.concatenate(([0], np.cumsum(lengths)))
        crd = np.concatenate([np.arange(n) for n in lengths]).astype(int)
        A = sp.csr_array((np.ones(crd.size), crd, pos), (rows, 1000))
        total = sj.sparse_jit(lambda A: (A.sum(axis=1), A.sum(axis=0), A + A))
        by_row, by_column, twice = total(A)
        np.testing.assert_array_equal(by_row, lengths)
        np.testing.assert_array_equal(by_column, np.bincount(crd, minlength=1000))
        np.testing.assert_array_equal(twice.toarray(), 2 * A.toarray())


def test_python_threads_share_the_pool(threads: int) -> None:
    A, x = matrix(300, 300), np.arange(300.0)
    product = sj.sparse_jit(lambda A, x: A @ x)
    total = sj.sparse_jit(lambda A: A.sum(axis=0))
    square = sj.sparse_jit(lambda A: A @ A)
    wanted = A @ x, A.sum(axis=0), (A @ A).toarray()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                np.testing.assert_allclose(product(A, x), wanted[0])
                np.testing.assert_allclose(total(A), wanted[1])
                np.testing.assert_allclose(square(A).toarray(), wanted[2])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_threads_that_race_for_the_first_call_share_one_kernel(threads: int) -> None:
    A, x = matrix(40, 30), np.arange(30.0)
    product = sj.sparse_jit(lambda A, x: A @ x * 3.0)
    together = threading.Barrier(8)
    made: list[Any] = []

    def work() -> None:
        together.wait()
        made.append(product(A, x))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(made) == 8
    for one in made:
        np.testing.assert_allclose(one, 3 * (A @ x))
    assert (product.cache_info().traces, product.cache_info().compiles) == (1, 1)


def run(program: str, **environment: str) -> str:
    """Run a program that has ``product``, ``A``, ``x`` and ``pool``; return what it prints."""
    head = (
        "import os, sys, threading, numpy as np, scipy.sparse as sp, sparsejit as sj\n"
        "from sparsejit.backends.llvm._engine import thread_pool\n"
        "A, x = sp.eye_array(5000, format='csr') * 2.0, np.arange(5000.0)\n"
        "product = sj.sparse_jit(lambda A, x: A @ x)\n"
        "pool = thread_pool()\n"
        "def check():\n"
        "    assert (product(A, x) == 2 * x).all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


MANY = "pool.set_limits(3, 0)\n"
needs_cores = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)


@needs_cores
def test_a_forked_process_makes_its_own_workers() -> None:
    program = MANY + (
        "check(); first = pool.started\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    before = pool.started\n"
        "    check()\n"
        "    os._exit(0 if (before, pool.started) == (0, first) else 1)\n"
        "print(first, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "check()\n"
    )
    started, code = run(program).split()
    assert int(started) >= 1
    assert code == "0"


def test_a_process_is_forked_while_others_compile() -> None:
    """Locks of threads that are no more, ours and LLVM's, keep no child waiting."""
    program = MANY + (
        "import faulthandler, time\n"
        "def fresh(number):\n"
        "    return sj.sparse_jit(lambda A, x: A @ x * number, cache=False)\n"
        "latest = [fresh(0.5)]\n"
        "def forever(first):\n"
        "    number = first\n"
        "    while True:\n"
        "        number += 2.0\n"
        "        latest[0] = fresh(number)\n"
        "        latest[0](A, x)\n"
        "for first in (1.0, 2.0):\n"
        "    threading.Thread(target=forever, args=(first,), daemon=True).start()\n"
        "codes = []\n"
        "for _ in range(4):\n"
        "    time.sleep(0.1)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        faulthandler.dump_traceback_later(40, exit=True)\n"
        "        check(); latest[0](A, x)\n"
        "        assert (fresh(3.5)(A, x) == 7 * x).all()\n"
        "        os._exit(0)\n"
        "    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print(codes)\n"
        "sys.stdout.flush(); os._exit(0)\n"
    )
    assert run(program) == "[0, 0, 0, 0]"


def test_a_process_ends_while_threads_sleep_and_while_they_work() -> None:
    endless = (
        "def forever():\n"
        "    while True: check()\n"
        "for _ in range(3): threading.Thread(target=forever, daemon=True).start()\n"
        "check(); print('end')\n"
    )
    assert run(MANY + "check(); sys.exit(0)") == ""
    assert run(MANY + endless) == "end"


def test_functions_registered_for_the_end_run_and_compile() -> None:
    program = MANY + (
        "import atexit\n"
        "atexit.register(lambda: print((sj.sparse_jit(lambda A: A.sum())(A))))\n"
        "atexit.register(check)\n"
        "check(); print('end')\n"
    )
    assert run(program).split() == ["end", "10000.0"]


def test_an_interrupt_is_heard_when_the_kernel_is_over() -> None:
    program = MANY + (
        "import signal\n"
        "def forever():\n"
        "    while True: check()\n"
        "check()\n"
        # Whoever runs the tests in the background may have it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "try: forever()\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "check()\n"
    )
    assert run(program) == "interrupted"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes_of_every_kind(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, numpy as np, scipy.sparse as sp, sparsejit as sj\n"
        "from sparsejit.backends.llvm._engine import thread_pool\n"
        "A = sp.eye_array(5000, format='csr') * 2.0\n"
        "twice = sj.sparse_jit(lambda A, x: A @ x)\n"
        "def work(number):\n"
        "    thread_pool().set_limits(3, 0)\n"
        "    return float(twice(A, np.full(5000, number)).sum())\n"
        "if __name__ == '__main__':\n"
        "    work(1.0)\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        print(pool.map(work, [1.0, 2.0, 3.0]))\n"
        "    work(1.0)\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                          timeout=100, cwd=ROOT, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.stdout.strip() == "[10000.0, 20000.0, 30000.0]", done.stderr


@needs_cores
def test_the_number_of_threads_follows_the_cpu_set_of_the_moment() -> None:
    program = MANY + (
        "every = os.sched_getaffinity(0)\n"
        "os.sched_setaffinity(0, {min(every)}); check(); alone = pool.started\n"
        "os.sched_setaffinity(0, every); check(); several = pool.started\n"
        "os.sched_setaffinity(0, {max(every)}); check()\n"
        "os.sched_setaffinity(0, every); check(); print(alone, several > 0)\n"
    )
    assert run(program) == "0 True"


def test_the_number_of_threads_follows_the_process() -> None:
    limit = "print(pool.limits[0]); "
    one = "pool.set_limits(pool.limits[0], 0); check(); print(pool.started)"
    assert run(limit + one, SPARSEJIT_NUM_THREADS="1").split() == ["1", "0"]
    pinned = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); " + one
    assert run(pinned) == "0"


@needs_cores
def test_much_work_is_done_on_several_threads_and_little_on_one() -> None:
    few = "B, y = A[:50, :50], x[:50]; product(B, y); print(pool.started)\n"
    much = "A = sp.eye_array(200000, format='csr') * 2.0; x = np.ones(200000); check()\n"
    before, after = run(few + much + "print(pool.started)").split()
    assert int(before) == 0 < int(after)


def test_signals_reach_python_while_workers_sleep() -> None:
    program = MANY + (
        "import signal, time\n"
        "signal.signal(signal.SIGALRM, lambda *_: print('heard'))\n"
        "check(); signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2); check()\n"
    )
    assert run(program) == "heard"


PARALLEL_LOOPS = {
    "none": 0,
    "dense-outer-loop": 2,
    "any-storage-outer-loop": 3,
    "dense-any-loop": 2,
    "any-storage-any-loop": 3,
}
"""Outermost ones: rows are zeroed and added up, and entries of the vector are scaled."""


@pytest.mark.parametrize("strategy", PARALLEL_LOOPS)
def test_strategies_choose_among_the_loops(strategy: str, threads: int) -> None:
    """Rows of a matrix are a dense loop, entries of a COO vector a loop over storage."""

    @sj.sparse_jit(parallelization=strategy)
    def function(A: Any, x: Any, v: Any) -> Any:
        return A @ x, v * 2.0

    A, x = matrix(30, 20), np.arange(20.0)
    v = sj.asarray(np.array([0.0, 1.0, 2.0]), format=sj.COO(1))
    first, second = function(A, x, v)
    np.testing.assert_allclose(first, A @ x)
    np.testing.assert_allclose(second.toarray(), [0.0, 2.0, 4.0])
    lines = function.lower(A, x, v).text("loops").splitlines()
    assert sum(line.startswith("  parallel for") for line in lines) == PARALLEL_LOOPS[strategy]
    assert (": in parallel" in function.explain()) is (strategy != "none")


def test_explain_tells_what_is_parallel_and_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    A, x = matrix(30, 20), np.arange(20.0)
    product = sj.sparse_jit(lambda A, x: A @ x)
    assert "in parallel, cut by stored entries (A_pos1)" in product.explain(A, x)
    assert "a copy of b0 for each thread" in product.explain(A.tocsc(), x)
    total = sj.sparse_jit(lambda A: A + A * 2.0)
    nested = sj.asarray(np.eye(3)[:, None] * np.ones((3, 4, 1)), format=sj.CSF(3))
    assert "in parallel, cut by stored entries (A_pos2)" in total.explain(nested)
    monkeypatch.setenv("SPARSEJIT_NUM_THREADS", "1")
    assert "one: SPARSEJIT_NUM_THREADS is 1" in product.explain(A, x)
    monkeypatch.delenv("SPARSEJIT_NUM_THREADS")
    monkeypatch.setattr(_pool, "cpu_quota", lambda: 1)
    assert "one: a control group allows one core's time" in product.explain(A, x)
    monkeypatch.setattr(sys, "platform", "plan9")
    assert "one: the pool of threads is for Linux" in product.explain(A, x)


def test_an_interrupt_while_llvm_works() -> None:
    # The module was freed behind the context that it lives in, which ended the process.
    program = (
        "import gc\n"
        "from llvmlite import binding\n"
        "verify, added = binding.ModuleRef.verify, sj.sparse_jit(lambda x: x + 1, cache=False)\n"
        "def interrupted(module):\n"
        "    verify(module)\n"
        "    raise KeyboardInterrupt\n"
        "binding.ModuleRef.verify = interrupted\n"
        "for _ in range(5):\n"
        "    try: added(x)\n"
        "    except KeyboardInterrupt: print('interrupted')\n"
        "    gc.collect()\n"
        "binding.ModuleRef.verify = verify\n"
        "assert (added(x) == x + 1).all()\n"
    )
    assert run(program).split() == ["interrupted"] * 5
