"""The LLVM backend where things go wrong or happen at once: memory, errors, threads, processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsejit.backends.llvm import LlvmBackend
from sparsejit.backends.llvm._compiler import compiled
from sparsejit.backends.llvm._engine import Emitted
from sparsejit.backends.llvm.backend import LlvmKernel
from sparsejit.errors import TensorTypeError
from sparsejit.formats import ELL
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Dealloc,
    DimOf,
    For,
    Let,
    LoopFunc,
    Push,
    Resize,
    SortPrefix,
    Store,
    View,
)
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from tests.backends.loop_programs import PROGRAMS
from tests.backends.loop_writing import F64, add, function, index, load, memref, mul, number, var
from tests.backends.test_python_source import assemble, targets_of

ROOT = Path(__file__).resolve().parents[2]
i, n = var("i"), var("n")


def kernel_of(func: LoopFunc, *, cache: bool = True) -> LlvmKernel:
    backend = LlvmBackend()
    return backend.load_kernel(backend.emit(func), cache=cache)


def peak_memory() -> int:
    """The largest resident size so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def grown() -> LoopFunc:
    """The numbers below ``n``, pushed one by one, and a constant array beside them."""
    y, z = memref("y"), memref("z")
    body = (
        Alloc(y, (index(0),)),
        Alloc(z, (add(n, index(1)),), Const(2.0, F64)),
        For(i, index(0), n, (Push(y, i, number(1.0)),)),
        Resize(y, n),
    )
    return function("grown", [n], body, y, z)


# ---------------------------------------------------------------- results


def test_results_are_ordinary_arrays_that_own_their_memory() -> None:
    kernel = kernel_of(grown())
    first: Any
    first, second = kernel([1000])
    kernel([1000])  # would reuse memory that nobody owns
    assert first.flags.writeable
    assert first.flags.aligned
    assert first.flags.c_contiguous
    first += 1
    part = first[10:20]
    del first
    gc.collect()
    kernel([1000])
    assert (part == 2.0).all()
    assert np.asarray(second).sum() == 2.0 * 1001


def test_nothing_is_leaked() -> None:
    kernel = kernel_of(grown())
    size = 1 << 20
    for _ in range(3):
        kernel([size])
    before = peak_memory()
    for _ in range(40):  # 16 MB each
        kernel([size])
    assert peak_memory() - before < 100 << 20


def resident() -> int:
    """The resident size now, in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_compiling_keeps_no_memory() -> None:
    # Left alone, llvmlite keeps the passes of each module: 75 KB here, 180 KB for real kernels.
    source = "define i64 @f(i64 %n) {{\n %r = mul i64 %n, {}\n ret i64 %r\n}}"
    for k in range(10):
        compiled(Emitted(source.format(k), ()))
    before = resident()
    for k in range(60):
        compiled(Emitted(source.format(k), ()))
    assert resident() - before < 60 * 8 * 1024


@pytest.mark.parametrize("count", [0, 1, 2])
def test_results_without_elements(count: int) -> None:
    first, second = kernel_of(grown())([count])
    assert np.asarray(first).tolist() == [1.0] * count
    assert np.asarray(second).tolist() == [2.0] * (count + 1)


def test_views_of_arguments_and_of_new_arrays_keep_their_memory() -> None:
    x, tail, made, half = memref("x"), memref("tail"), memref("made"), memref("half")
    size = DimOf(x, 0)
    body = (
        View(tail, x, (index(1),), (add(size, index(-1)),), (1,)),
        Alloc(made, (size,), Const(3.0, F64)),
        View(half, made, (add(size, index(-1)),), (index(2),), (-2,)),
    )
    kernel = kernel_of(function("f", [x], body, tail, half))
    array = np.arange(5.0)
    results: Any = kernel([array])
    assert np.shares_memory(results[0], array)
    array[4] = 70.0
    assert results[0].tolist() == [1.0, 2.0, 3.0, 70.0]
    del array
    gc.collect()
    assert results[1].tolist() == [3.0, 3.0]
    assert results[1].strides == (-16,)


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("extents", [(2**60,), (2**40, 2**40), (2**33, 2**31)])
def test_too_much_memory_is_a_memory_error_that_frees_the_rest(extents: tuple[int, ...]) -> None:
    size, first = var("size"), memref("first")
    huge = memref("huge", rank=len(extents))
    sizes = [var(f"d{axis}") for axis in range(len(extents))]
    body = (
        Alloc(first, (add(size, index(0)),), Const(1.0, F64)),
        Push(first, size, number(2.0)),
        Alloc(huge, tuple(sizes)),
        Store(huge, (index(0),) * len(extents), load(first, index(0))),
        Dealloc(huge),
    )
    kernel = kernel_of(function("f", [size, *sizes], body, first))
    (kept,) = kernel([1000, *[1] * len(extents)])
    assert np.asarray(kept).size > 1000
    before = peak_memory()
    for _ in range(30):
        with pytest.raises(MemoryError, match="could not allocate memory"):
            kernel([1 << 20, *extents])
    assert peak_memory() - before < 100 << 20


def test_growing_without_memory_frees_what_there_was(tmp_path: Path) -> None:
    """In a process of its own, whose address space is limited."""
    program = """
import resource
from tests.backends.test_llvm_robustness import grown, kernel_of
kernel = kernel_of(grown())
kernel([10])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)
for _ in range(5):
    try:
        kernel([1 << 30])
    except MemoryError:
        print("no memory")
print(kernel([1 << 20])[0].sum())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:6] == ["no memory"] * 5 + ["1048576.0"], done.stderr


def test_a_full_row_is_a_value_error_each_time_and_not_the_next_time() -> None:
    fmt = ELL(2)
    kernel = kernel_of(assemble(fmt, targets_of(fmt)))

    def run(columns: list[int]) -> tuple[object, ...]:
        crd = np.array(columns)
        return kernel([3, 5, crd.size, np.zeros(crd.size, np.int64), crd, np.ones(crd.size)])

    for _ in range(3):
        with pytest.raises(ValueError, match="a row of a padded level has more entries than slots"):
            run([0, 2, 4])
    crd: Any
    crd, _ = run([0, 4])
    assert crd.tolist() == [0, 4, -1, -1, -1, -1]


def test_an_unknown_symbol_is_refused_before_it_ends_the_process() -> None:
    program = """
from sparsejit.backends.llvm import _functions, _reals
from sparsejit.ir.ops import UnaryOp
_reals._LIBM[UnaryOp.EXP] = "no_such_function"
_functions.EXTERNAL |= {"no_such_function"} if {seeded} else set()
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.ir.loops import Store, Unary
from tests.backends.loop_writing import F64, function, index, load, memref
import numpy as np
x = memref("x")
body = [Store(x, (index(0),), Unary(UnaryOp.EXP, load(x, index(0)), F64))]
backend = LlvmBackend()
backend.load(backend.emit(function("f", [x], body)), cache=False)([np.zeros(1)])
print("ran")
"""

    def run(seeded: bool) -> subprocess.CompletedProcess[str]:
        text = program.replace("{seeded}", str(seeded))
        # without the assertion of `Functions.math`, so that the last check is the one that is seen
        command = [sys.executable, "-O", "-c", text]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    refused = run(False)
    assert refused.returncode == 1
    assert "BackendError: generated code calls no_such_function" in refused.stderr
    crashed = run(True)  # what the check is for
    assert crashed.returncode < 0 or "no_such_function" in crashed.stderr
    assert "ran" not in crashed.stdout


def test_scalars_out_of_range_are_refused() -> None:
    s, y = var("s", DType.INT8), memref("y", DType.INT8)
    kernel = kernel_of(function("f", [s], (Alloc(y, (index(1),)), Store(y, (index(0),), s)), y))
    (result,) = kernel([-128])
    assert np.asarray(result).tolist() == [-128]
    with pytest.raises(OverflowError):
        kernel([128])
    extents = kernel_of(function("g", [n], ()))
    with pytest.raises((OverflowError, TensorTypeError)):
        extents([2**63])


# ---------------------------------------------------------------- sorting


@pytest.mark.parametrize("size", [0, 1, 2, 19, 20, 21, 22, 100, 1000])
def test_a_prefix_is_sorted(size: int) -> None:
    x = memref("x", INDEX)
    kernel = kernel_of(function("f", [n, x], [SortPrefix(x, n)]))
    rng = np.random.default_rng(size)
    for low, high in ((0, 5), (0, 300), (0, 2**40), (-(2**62), 2**62), (-3, 3)):
        array = rng.integers(low, high, size + 5)
        wanted = np.concatenate([np.sort(array[:size]), array[size:]])
        kernel([size, array])
        assert array.tolist() == wanted.tolist()
        kernel([size, array])
        assert array.tolist() == wanted.tolist()


# ---------------------------------------------------------------- threads and processes


def _work(kernel: LlvmKernel, wrong: list[object], barrier: threading.Barrier) -> None:
    program = PROGRAMS["union_of_vectors"]()
    barrier.wait()
    for _ in range(30):
        given = program.arguments()
        for actual, expected in zip(kernel(given), program.expected(*given), strict=True):
            if not np.allclose(np.asarray(actual), expected):
                wrong.append(given)


def test_several_threads_make_the_first_call_at_once() -> None:
    for _ in range(4):
        kernel = kernel_of(PROGRAMS["union_of_vectors"]().func, cache=False)
        wrong: list[object] = []
        barrier = threading.Barrier(4)
        threads = [threading.Thread(target=_work, args=(kernel, wrong, barrier)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert kernel.cache_counts.misses == 1


def test_the_interpreter_lock_is_free_while_a_kernel_runs() -> None:
    y, s = memref("y"), var("s", F64)
    # a chain of additions that LLVM cannot shorten
    step = (Assign(s, add(mul(s, number(0.999)), number(1.0))),)
    body = (
        Let(s, number(0.0), mutable=True),
        For(i, index(0), n, step),
        Store(y, (index(0),), s),
    )
    kernel = kernel_of(function("slow", [n, y], body))
    done = threading.Event()
    array = np.zeros(1)

    def run() -> None:
        kernel([100_000_000, array])
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    ticks = 0
    while not done.wait(0.001):
        ticks += 1
    thread.join()
    assert ticks > 5


def _in_child(kernel: LlvmKernel, queue: Any) -> None:
    program = PROGRAMS["spmv"]()
    other = kernel_of(PROGRAMS["matmul"]().func, cache=False)
    given = program.arguments()
    results: Any = kernel(given)
    more = PROGRAMS["matmul"]().arguments()
    other(more)
    queue.put(bool(np.allclose(results[0], program.expected(*given)[0])))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking beside threads
def test_a_forked_process_runs_and_compiles_kernels() -> None:
    kernel = kernel_of(PROGRAMS["spmv"]().func)
    kernel(PROGRAMS["spmv"]().arguments())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(kernel, queue))
    child.start()
    assert queue.get(timeout=60)
    child.join()
    assert child.exitcode == 0


def test_results_and_kernels_may_live_until_the_process_ends() -> None:
    program = """
import threading, time
from tests.backends.test_llvm_robustness import grown, kernel_of
kernel = kernel_of(grown())
kept = kernel([1000])
cycle = [kept]
cycle.append(cycle)
import builtins
builtins.kept_to_the_end = (kernel, kept, cycle)
threading.Thread(target=lambda: [kernel([100000]) for _ in range(200)], daemon=True).start()
time.sleep(0.05)
print("end")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
