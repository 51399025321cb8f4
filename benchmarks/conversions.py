"""Conversions, transposes and concatenation beside SciPy: one process, in turn, ratios as a table.

    python benchmarks/conversions.py                all pairs, some minutes
    python benchmarks/conversions.py --quick        smaller inputs
    python benchmarks/conversions.py "csr to"       names with these words only

A round runs each contender once; the table has the median of the rounds and SciPy's median over
ours (larger than 1: ours is faster). Results are checked. SciPy leaves some results unsorted, and
ours never are: where that is so, a second ratio counts SciPy's time to sort as well.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.convert import converted_by_kernel

Run = Callable[[], Any]

FORMATS = {
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "bsr": sj.BSR(2, 2),
    "dia": sj.DIA,
    "dense": sj.Dense(2),
}


@dataclass(frozen=True)
class Case:
    """One operation on one input: ours, SciPy's, and SciPy's with sorted results."""

    name: str
    data: str
    ours: Run
    scipy: Run
    sorts: Run | None = None


def uniform(size: int, stored: int, seed: int) -> Any:
    """Return a square CSR array with about ``stored`` entries at random places."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, size, stored), rng.integers(0, size, stored)
    return sp.coo_array((rng.random(stored) + 0.1, places), (size, size)).tocsr()


def banded(size: int) -> Any:
    """Return a matrix of seven diagonals."""
    offsets = (-40, -2, -1, 0, 1, 2, 40)
    return sp.diags_array([np.full(size, n + 1.0) for n in range(7)], offsets=offsets,
                          shape=(size, size)).tocsr()  # fmt: skip


def in_scipy(matrix: Any, name: str) -> Any:
    """Return a CSR array in a SciPy format, sorted."""
    match name:
        case "dense":
            return matrix.toarray()
        case "bsr":
            made = matrix.tobsr((2, 2))
            made.sort_indices()
            return made
        case "coo":
            made = matrix.tocoo()
            made.has_canonical_format = True
            return made
        case _:
            return matrix.asformat(name)


def by_scipy(source: Any, name: str) -> Any:
    """Convert as a user of SciPy does; COO and DIA results with buffers of their own."""
    match name:
        case "dense":
            return source.toarray()
        case "bsr":
            return sp.csr_array(source).tobsr((2, 2))
        case _ if isinstance(source, np.ndarray):
            return getattr(sp, f"{name}_array")(source)
        case _:
            return source.asformat(name, copy=True)


def sorted_by_scipy(source: Any, name: str) -> Any:
    """Convert, and sort."""
    made = by_scipy(source, name)
    if name == "coo":
        made.has_canonical_format = False
        made.sum_duplicates()
    elif name == "bsr":
        made.has_sorted_indices = False
        made.sort_indices()
    return made


def pairs(matrix: Any, data: str, names: tuple[str, ...]) -> Iterator[Case]:
    """Yield all pairs of formats."""
    for source in names:
        theirs = in_scipy(matrix, source)
        ours = sj.asarray(matrix, format=FORMATS[source])
        for target in names:
            if target == source:
                continue
            sorts = target in ("coo", "bsr") and source not in ("csr", "dense")
            yield Case(
                f"{source} to {target}",
                data,
                lambda ours=ours, target=target: converted_by_kernel(ours, FORMATS[target]),
                lambda theirs=theirs, target=target: by_scipy(theirs, target),
                (lambda theirs=theirs, target=target: sorted_by_scipy(theirs, target))
                if sorts or target == "bsr" else None,
            )  # fmt: skip


def others(matrix: Any, data: str) -> Iterator[Case]:
    """Yield concatenations and products that need a transpose."""
    beside = sj.sparse_jit(lambda A, B: np.concatenate([A, B], axis=1))
    below = sj.sparse_jit(lambda A, B: np.concatenate([A, B], axis=0))
    other = sp.csr_array(matrix[::-1])
    other.sort_indices()
    turned = sj.sparse_jit(lambda A: A.T * 1.0, output=sj.CSR)
    yield Case("vstack", data, lambda: below(matrix, other),
               lambda: sp.vstack([matrix, other], format="csr"))  # fmt: skip
    yield Case("hstack", data, lambda: beside(matrix, other),
               lambda: sp.hstack([matrix, other], format="csr"))  # fmt: skip
    yield Case("A.T * 1.0", data, lambda: turned(matrix), lambda: (matrix.T * 1.0).tocsr())


def triple(side: int) -> Iterator[Case]:
    """Yield the Galerkin product of a grid coarsened by two."""
    one = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    A = sp.csr_array(sp.kron(eye, one) + sp.kron(one, eye))
    fine = np.arange(side * side)
    coarse = (fine // side // 2) * (side // 2) + fine % side // 2
    P = sp.csr_array((np.full(fine.size, 0.5), (fine, coarse)))
    product = sj.sparse_jit(lambda P, A: P.T @ A @ P)
    yield Case("P.T @ A @ P", "grid", lambda: product(P, A), lambda: (P.T @ A @ P).tocsr())


def cases(quick: bool) -> Iterator[Case]:
    """Yield all cases."""
    scale = 10 if quick else 1
    matrix = uniform(100_000 // scale, 2_000_000 // scale, 1)
    yield from pairs(matrix, "uniform", ("csr", "csc", "coo", "bsr"))
    yield from pairs(banded(250_000 // scale), "banded", ("csr", "csc", "coo", "bsr", "dia"))
    small = uniform(3000 // (3 if quick else 1), 400_000 // scale, 2)
    yield from pairs(small, "5 percent", ("dense", "csr", "csc", "coo", "bsr"))
    yield from others(matrix, "uniform")
    yield from triple(700 // (3 if quick else 1))


def as_array(result: Any) -> Any:
    """Return a result as a sorted CSR array."""
    found = result
    if isinstance(result, sj.SparseTensor):
        found = result.to_numpy() if result.format.is_dense else result.to_scipy()
    made = sp.csr_array(found)
    made.sum_duplicates()
    made.eliminate_zeros()
    return made


def check(case: Case) -> None:
    """Raise ``AssertionError`` where the two results differ."""
    ours, theirs = as_array(case.ours()), as_array(case.scipy())
    assert ours.shape == theirs.shape
    assert (ours.indptr == theirs.indptr).all()
    assert (ours.indices == theirs.indices).all()
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-9)


def measure(case: Case, rounds: int, clock: Callable[[], float]) -> list[float]:
    """Return the median time of each contender, in turn."""
    runs = [case.ours, case.scipy, *([case.sorts] if case.sorts else [])]
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, found in zip(runs, times, strict=True):
            start = clock()
            run()
            found.append(clock() - start)
    return [statistics.median(found) for found in times]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words in the names of operations or inputs")
    parser.add_argument("--quick", action="store_true", help="smaller inputs")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (%(default)s)")
    parser.add_argument("--cpu-time", action="store_true", help="time of the thread")
    parser.add_argument("--threads", default="1", help="of ours (%(default)s)")
    asked = parser.parse_args()
    os.environ["SPARSEJIT_NUM_THREADS"] = asked.threads
    print(f"load {os.getloadavg()[0]:.1f} at the start, {asked.threads} thread, "
          f"{asked.rounds} rounds\n")  # fmt: skip
    print("| operation | input | ours, ms | SciPy, ms | ratio | ratio, SciPy sorting |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in cases(asked.quick):
        name = f"{case.name} {case.data}"
        if not all(word in name for word in asked.words):
            continue
        check(case)
        clock = time.thread_time if asked.cpu_time else time.perf_counter
        ours, theirs, *sorts = measure(case, asked.rounds, clock)
        last = f"{sorts[0] / ours:.2f}" if sorts else ""
        print(f"| {case.name} | {case.data} | {1e3 * ours:.3g} | {1e3 * theirs:.3g} | "
              f"{theirs / ours:.2f} | {last} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
