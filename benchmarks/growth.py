"""Time per stored entry over three decades of size: is the cost linear?

    python -m benchmarks.growth                 from ten thousand to ten million entries, minutes
    python -m benchmarks.growth --quick         up to a million
    python -m benchmarks.growth spmv add        names with one of these words only

Matrices and tensors have ten entries a row at random places, so a table row is one kernel, and its
columns differ in size alone. What may grow are the misses of caches; a row of SciPy's beside shows
how much. Processor time of one thread, least of the rounds, which takes others on the machine out.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["SPARSEJIT_NUM_THREADS"] = "1"

import numpy as np

import sparsejit as sj
from benchmarks.inputs import uniform
from sparsejit.convert import converted_by_kernel

Run = Callable[[], object]
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = 16
"""Of the dense factors of SpMM and MTTKRP."""


def _dense(size: int) -> Any:
    return np.random.default_rng(3).random((size // 10, COLUMNS))


def _spmv(size: int) -> Run:
    A, x = uniform(size // 10, size, 1), np.ones(size // 10)
    kernel = sj.sparse_jit(lambda A, x: A @ x)
    return lambda: kernel(A, x)


def _spmm(size: int) -> Run:
    A, X = uniform(size // 10, size, 1), _dense(size)
    kernel = sj.sparse_jit(lambda A, X: A @ X)
    return lambda: kernel(A, X)


def _add(size: int) -> Run:
    A, B = uniform(size // 10, size, 1), uniform(size // 10, size, 2)
    kernel = sj.sparse_jit(lambda A, B: A + B)
    return lambda: kernel(A, B)


def _sum(fmt: sj.Format) -> Callable[[int], Run]:
    def made(size: int) -> Run:
        A, B = _tensor(size, fmt), _tensor(size, fmt, seed=1)
        kernel = sj.sparse_jit(lambda A, B: A + B)
        return lambda: kernel(A, B)

    return made


def _mttkrp(size: int) -> Run:
    X = _tensor(size, sj.CSF(3))
    B, C = _dense(size), _dense(size)
    kernel = sj.sparse_jit(lambda X, B, C: sj.einsum("ijk,jr,kr->ir", X, B, C))
    return lambda: kernel(X, B, C)


def _tensor(size: int, fmt: sj.Format, seed: int = 0) -> Any:
    rng = np.random.default_rng((size, seed))
    shape = (size // 10,) * fmt.ndim
    places = tuple(rng.integers(0, extent, size) for extent in shape)
    return sj.from_coo(places, rng.random(size), shape, format=fmt)


def _conversion(source: sj.Format, target: sj.Format) -> Callable[[int], Run]:
    def made(size: int) -> Run:
        tensor = _tensor(size, source)
        return lambda: converted_by_kernel(tensor, target)

    return made


def _of_scipy(operation: Callable[[Any, Any, Any], object]) -> Callable[[int], Run]:
    def made(size: int) -> Run:
        A, B, X = uniform(size // 10, size, 1), uniform(size // 10, size, 2), _dense(size)
        return lambda: operation(A, B, X)

    return made


_REVERSED = sj.Format("(i, j, k) -> (k : compressed, j : compressed, i : compressed)")
KERNELS: dict[str, Callable[[int], Run]] = {
    "spmv": _spmv,
    "spmv of SciPy": _of_scipy(lambda A, B, X: A @ X[:, 0]),
    "spmm": _spmm,
    "spmm of SciPy": _of_scipy(lambda A, B, X: A @ X),
    "add": _add,
    "add of SciPy": _of_scipy(lambda A, B, X: A + B),
    "sum of coo": _sum(sj.COO(2)),
    "sum of csc": _sum(sj.CSC),
    "sum of dcsr": _sum(sj.DCSR),
    "sum of dcsc": _sum(sj.DCSC),
    "sum of csf": _sum(sj.CSF(3)),
    "sum of bsr": _sum(sj.BSR(2, 2)),
    "sum of coo3": _sum(sj.COO(3)),
    "mttkrp": _mttkrp,
    "csr to csc": _conversion(sj.CSR, sj.CSC),
    "csr to csc of SciPy": _of_scipy(lambda A, B, X: A.tocsc()),
    "coo to csr": _conversion(sj.COO(2), sj.CSR),
    "csc to coo": _conversion(sj.CSC, sj.COO(2)),
    "csc to dcsr": _conversion(sj.CSC, sj.DCSR),
    "csr to bsr": _conversion(sj.CSR, sj.BSR(2, 2)),
    "coo3 to csf reversed": _conversion(sj.COO(3), _REVERSED),
}


def least(run: Run, rounds: int) -> float:
    """Return the least time of a call, after a first one."""
    run()
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return min(times)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words in the names of kernels")
    parser.add_argument("--quick", action="store_true", help="leave out the largest size")
    parser.add_argument("--rounds", type=int, default=7, help="calls, of which the least counts")
    asked = parser.parse_args()
    for word in asked.words:
        if not any(word in name for name in KERNELS):
            parser.error(f"'{word}' is in the name of no kernel: {', '.join(KERNELS)}")
    sizes = SIZES[:-1] if asked.quick else SIZES
    print("| kernel | " + " | ".join(f"{size:,} entries" for size in sizes) + " |")
    print("| --- |" + " --- |" * len(sizes))
    for name, make in KERNELS.items():
        if asked.words and not any(word in name for word in asked.words):
            continue
        each = [f"{1e9 * least(make(size), asked.rounds) / size:.2f}" for size in sizes]
        print(f"| {name} | " + " | ".join(each) + " |", flush=True)
    print(
        f"\nNanoseconds of one thread for each entry asked for, least of {asked.rounds}; ten a "
        f"row, {COLUMNS} columns in dense factors; load {os.getloadavg()[0]:.1f} at the end."
    )


if __name__ == "__main__":
    main()
