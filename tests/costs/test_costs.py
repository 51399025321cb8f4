"""Work grows as the stored entries do, whatever formats operands and result have.

Statements that the interpreter executes are counted, not seconds. Extents and entries grow four
times, and so may the work; or the extents alone, and nothing may. Results that are dense are left
out: they have a slot for each pair of coordinates. ``SPARSEJIT_COSTS=whole`` runs every case.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

import sparsejit as sj
from tests.costs.cases import (
    MATRICES,
    OPERATIONS,
    Case,
    matrix_cases,
    operands_of,
    tensor_cases,
)
from tests.costs.executed import executed

WHOLE = os.environ.get("SPARSEJIT_COSTS") == "whole"
SMALL, LARGE = 32, 128
MOST = 5.7
"""What four times the entries may cost: binary searches among them take 7 steps, not 5."""
CHUNKS = 4
STRIDE = 211
"""Of the cases that are not run every time, how many there are for each that is."""
COMMON = ("csr", "csc", "coo", "dcsr", "bsr", "dia")
SAMPLED = [
    Case("where_stored(A, A @ B)", formats, result)
    for formats, result in (
        (("csr", "coo"), "inferred"),  # an operand whose absence leaves something to do
        (("csr", "column coo"), "coo"),
        (("csc", "coo"), "dcsr"),
        (("column coo", "loose"), "inferred"),  # one that would be searched at pairs of others
        (("coo", "bsr"), "inferred"),
        (("blocked dcsr", "anti-dia"), "coo"),
    )
]
"""Ways in which a sum at stored entries went wrong once."""


def cases() -> list[Case]:
    """Return products of all common formats, and some of the rest."""
    every = list(matrix_cases())
    if WHOLE:
        return every
    products = [Case("A @ B", (a, b)) for a in COMMON for b in COMMON]
    return [*products, *SAMPLED, *every[::STRIDE]]


def is_dense(made: object) -> bool:
    """Whether a result of rank 2 or more has slots for every pair of coordinates."""
    if isinstance(made, np.ndarray):
        return made.ndim > 1
    if not isinstance(made, sj.SparseTensor):
        return False
    blocks = sum("mod" in str(level.expr) for level in made.format.levels)
    return sum(level.type.is_full for level in made.format.levels) > 1 + blocks


def growth(case: Case) -> float | None:
    """Return how much more statements are executed for four times as much; None if it is dense."""
    kernel = case.kernel
    found = []
    for extent in (SMALL, LARGE):
        operands = operands_of(case, extent)
        if is_dense(kernel(*operands)):
            return None
        found.append(executed(partial(kernel, *operands)))
    return found[1] / found[0]


def check(every: Sequence[Case], number: int, record: Callable[[str, object], None]) -> None:
    """Check one chunk of the cases."""
    too_much = {}
    counts = {"linear": 0, "dense": 0, "unsupported": 0}
    for case in every[number::CHUNKS]:
        try:
            found = growth(case)
        except sj.errors.UnsupportedError:
            counts["unsupported"] += 1
            continue
        counts["dense" if found is None else "linear"] += 1
        if found is not None and found > MOST:
            too_much[str(case)] = round(found, 1)
    for what, count in counts.items():
        record("count of costs", (what, count))
    assert not too_much
    assert counts["linear"] > counts["dense"] + counts["unsupported"]


@pytest.mark.parametrize("number", range(CHUNKS))
def test_matrices(number: int, record_property: Callable[[str, object], None]) -> None:
    check(cases(), number, record_property)


@pytest.mark.parametrize("number", range(CHUNKS))
def test_tensors(number: int, record_property: Callable[[str, object], None]) -> None:
    check(list(tensor_cases())[:: 1 if WHOLE else 5], number, record_property)


# ---------------------------------------------------------------- parts

PARTS: dict[str, Callable[..., object]] = {
    "A[:, 1:] * 2": lambda A: A[:, 1:] * 2.0,
    "A[::-1, ::-2] * 2": lambda A: A[::-1, ::-2] * 2.0,
    "A[1:, 1:].sum()": lambda A: A[1:, 1:].sum(),
    "A[:, 1:] + A[:, :-1]": lambda A: A[:, 1:] + A[:, :-1],
    "A[:, 2:] * A[:, :-2]": lambda A: A[:, 2:] * A[:, :-2],
    "A[1:, 1:] @ A[1:, :-1]": lambda A: A[1:, 1:] @ A[1:, :-1],
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    """Of blocks and diagonals, all slots are searched for: they are entries, whatever they hold."""
    too_much = {}
    kernel = sj.sparse_jit(PARTS[name], target="interpreter")
    for fmt in ("csr", "csc", "coo", "column coo", "dcsr", "ell", "loose"):
        found = []
        for extent in (SMALL, LARGE):
            (A,) = operands_of(Case("A * 2", (fmt,)), extent)
            if is_dense(kernel(A)):
                break
            found.append(executed(partial(kernel, A)))
        if found and found[1] > MOST * found[0]:
            too_much[fmt] = round(found[1] / found[0], 1)
    assert not too_much


# ---------------------------------------------------------------- extents alone

HYPERSPARSE = ("coo", "dcsr", "dcsc")


@pytest.mark.parametrize("operation", ["A @ B", "A.T @ B", "A + B", "A + B.T", "A * B", "A.T * 2"])
def test_extents_cost_nothing_where_all_levels_are_compressed(operation: str) -> None:
    too_much = {}
    count = OPERATIONS[operation].operands.count("matrix")
    for first in HYPERSPARSE:
        for second in HYPERSPARSE if count == 2 else ("",):
            case = Case(operation, (first, second)[:count], first)
            found = []
            for extent in (2_000_000, 200_000_000):
                operands = [scattered(name, extent) for name in case.formats]
                found.append(executed(partial(case.kernel, *operands)))
            if found[1] > 1.2 * found[0]:
                too_much[str(case)] = found
    assert not too_much


def scattered(name: str, extent: int) -> sj.SparseTensor:
    """Return a matrix with thirty entries at places that spread over the whole extent."""
    at = np.arange(10) * (extent // 10)
    rows, columns = np.repeat(at, 3), np.roll(np.repeat(at, 3), 5)
    return sj.from_coo((rows, columns), np.ones(30), (extent, extent), format=MATRICES[name])


def test_the_count_sees_a_walk_over_all_pairs() -> None:
    """A dense result has one, and searches and loops of the support library count as well."""
    kernel = sj.sparse_jit(lambda A, B: A @ B, target="interpreter", output=sj.Dense(2))
    found = []
    for extent in (SMALL, LARGE):
        operands = operands_of(Case("A @ B", ("csr", "csr")), extent)
        found.append(executed(partial(kernel, *operands)))
    assert found[1] > 2 * MOST * found[0]
