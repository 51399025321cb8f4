"""Compiled kernels beside SciPy on the CPU: one process, in turn, as a table of ratios in Markdown.

    python benchmarks/cpu.py             all kernels, some minutes
    python benchmarks/cpu.py --quick     smaller inputs, under a minute
    python benchmarks/cpu.py spmv add    these kernels only

Every result is checked. A round runs each contender once; the table has the median of the rounds,
the least time, and SciPy's median over ours (larger than 1: ours is faster). With ``--cpu-time``
the time is that of the calling thread, which other processes disturb less: for kernels on one
thread, which is what ``--threads 1`` (the default here) asks for.
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsejit as sj

Run = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One kernel on one input: ours and SciPy's way to say it, and how results become arrays."""

    kernel: str
    data: str
    ours: Run
    scipy: Run


def uniform(rows: int, columns: int, stored: int, seed: int) -> Any:
    """Return a CSR array with ``stored`` entries at random places (fewer where they coincide)."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, rows, stored), rng.integers(0, columns, stored)
    return sp.coo_array((rng.random(stored) + 0.1, places), (rows, columns)).tocsr()


def laplacian(side: int) -> Any:
    """Return the five-point Laplacian of a square grid."""
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    return sp.csr_array(sp.kron(eye, one) + sp.kron(one, eye))


def tensor(extent: int, stored: int, seed: int) -> Any:
    """Return a random tensor of rank 3 as a ``CSF(3)``."""
    rng = np.random.default_rng(seed)
    places = np.unique(rng.integers(0, extent**3, stored))
    coordinates = np.unravel_index(places, (extent,) * 3)
    values = rng.random(places.size) + 0.1
    return sj.from_coo(coordinates, values, (extent,) * 3, format=sj.CSF(3))


def matrix_cases(name: str, matrix: Any) -> Iterator[Case]:
    """Yield the kernels of one square matrix."""
    rng = np.random.default_rng(5)
    size = matrix.shape[0]
    x = rng.random(size)
    wide, left, right = (rng.random((size, 64)) for _ in range(3))
    other = matrix.copy()
    other.data = rng.random(matrix.nnz)
    other = sp.csr_array(other[rng.permutation(size)]) if name != "Laplacian" else other
    other.sort_indices()
    rows = np.repeat(np.arange(size), np.diff(matrix.indptr))

    def sampled() -> Any:
        dots = np.einsum("ij,ij->i", left[rows], right[matrix.indices])
        return sp.csr_array((matrix.data * dots, matrix.indices, matrix.indptr), matrix.shape)

    product = sj.sparse_jit(lambda A, B: A @ B)
    total = sj.sparse_jit(lambda A, B: A + B)
    shared = sj.sparse_jit(lambda A, B: A * B)
    sampling = sj.sparse_jit(lambda A, U, V: A * (U @ V.T))
    turned = sj.sparse_jit(lambda A: A * 1.0, output=sj.CSC)
    yield Case("SpMV", name, lambda: product(matrix, x), lambda: matrix @ x)
    yield Case("SpMM 64", name, lambda: product(matrix, wide), lambda: matrix @ wide)
    yield Case("SDDMM 64", name, lambda: sampling(matrix, left, right), sampled)
    yield Case("add", name, lambda: total(matrix, other), lambda: matrix + other)
    yield Case("multiply", name, lambda: shared(matrix, other), lambda: matrix * other)
    yield Case("SpGEMM", name, lambda: product(matrix, other), lambda: matrix @ other)
    yield Case("CSR to CSC", name, lambda: turned(matrix), lambda: (matrix * 1.0).tocsc())


def tensor_cases(name: str, operand: Any) -> Iterator[Case]:
    """Yield the kernels of one tensor of rank 3; SciPy's way goes by matrices."""
    rng = np.random.default_rng(6)
    extent = operand.shape[0]
    second, third = rng.random((extent, 32)), rng.random((extent, 32))
    coordinates = sj.asarray(operand, format=sj.COO(3)).coordinates
    i, j, k = (np.asarray(crd) for crd in coordinates)
    fibers = sp.csr_array((operand.values, (i * extent + j, k)), (extent * extent, extent))

    def two_steps() -> Any:
        inner = (fibers @ third).reshape(extent, extent, 32)
        return np.einsum("ijr,jr->ir", inner, second)

    mttkrp = sj.sparse_jit(lambda X, B, C: sj.einsum("ijk,jr,kr->ir", X, B, C))
    yield Case("MTTKRP 32", name, lambda: mttkrp(operand, second, third), two_steps)


def cases(quick: bool) -> Iterator[Case]:
    """Yield all cases."""
    scale = 10 if quick else 1
    yield from matrix_cases(
        "uniform", uniform(100_000 // scale, 100_000 // scale, 2_000_000 // scale, 1)
    )
    yield from matrix_cases("Laplacian", laplacian(1000 // (4 if quick else 1)))
    yield from matrix_cases("tiny", uniform(1000, 1000, 10_000, 3))
    yield from tensor_cases("uniform", tensor(500 // (2 if quick else 1), 1_000_000 // scale, 11))


def as_array(result: Any) -> Any:
    """Return a result as a dense array or canonical CSR array."""
    if isinstance(result, np.ndarray):
        return result
    made = sp.csr_array(result.to_scipy() if isinstance(result, sj.SparseTensor) else result)
    made.sum_duplicates()
    return made


def check(case: Case) -> None:
    """Raise ``AssertionError`` where the two results differ."""
    ours, theirs = as_array(case.ours()), as_array(case.scipy())
    if isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        return
    assert ours.nnz == theirs.nnz
    assert (ours.indices == theirs.indices).all()
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-9, atol=1e-9)


def measure(case: Case, rounds: int, clock: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Return the times of both contenders, in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    repeat = 1
    while True:  # at least 2 ms a sample
        start = time.perf_counter()
        for _ in range(repeat):
            case.scipy()
        if time.perf_counter() - start > 0.002:
            break
        repeat *= 4
    for _ in range(rounds):
        for run, found in zip((case.ours, case.scipy), times, strict=True):
            run()
            start = clock()
            for _ in range(repeat):
                run()
            found.append((clock() - start) / repeat)
    return times


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", nargs="*", help="words in the names of kernels or inputs")
    parser.add_argument("--quick", action="store_true", help="smaller inputs")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (%(default)s)")
    parser.add_argument("--cpu-time", action="store_true", help="time of the thread")
    parser.add_argument("--threads", default="1", help="of ours (%(default)s)")
    asked = parser.parse_args()
    os.environ["SPARSEJIT_NUM_THREADS"] = asked.threads
    clock = time.thread_time if asked.cpu_time else time.perf_counter
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the start, "
          f"{asked.threads} thread, {asked.rounds} rounds, "
          f"{'time of the thread' if asked.cpu_time else 'wall time'}\n")  # fmt: skip
    print("| kernel | input | ours, ms | least | SciPy, ms | least | ratio | ratio of least |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in cases(asked.quick):
        name = f"{case.kernel} {case.data}".lower()
        if asked.kernels and not all(word.lower() in name for word in asked.kernels):
            continue
        check(case)
        ours, theirs = measure(case, asked.rounds, clock)
        middle = statistics.median(ours), statistics.median(theirs)
        least = min(ours), min(theirs)
        cells = (middle[0], least[0], middle[1], least[1])
        listed = " | ".join(f"{1e3 * cell:.3g}" for cell in cells)
        ratios = f"{middle[1] / middle[0]:.2f} | {least[1] / least[0]:.2f}"
        print(f"| {case.kernel} | {case.data} | {listed} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
