"""Merges of outermost stored levels in parts: where they are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.ir.loops import DenseResult, For, LoopFunc, Memref
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from tests.backends.loop_writing import run
from tests.sparsify_and_bufferize.programs import PROGRAMS

ENTRIES = 10
"""In a part, at least."""


def cutting() -> LoopFunc:
    """Return the sum of two DCSR matrices up to its cuts: those of both operands are returned."""
    func = sparsify_and_bufferize(PROGRAMS["add_dcsr"](), StageOptions(part=ENTRIES))
    (place,) = (
        number
        for number, stmt in enumerate(func.body)
        if isinstance(stmt, For) and stmt.var.name == "part"
    )
    cuts = [Memref(f"p0_{name}_cuts", INDEX, 1) for name in "AB"]
    return LoopFunc("cutting", func.params, func.body[:place], tuple(map(DenseResult, cuts)))


def weights(rows: Any, lengths: Any) -> Any:
    """Return a dense matrix with so many entries in each of these rows."""
    array = np.zeros((1000, 300))
    for row, length in zip(rows, lengths, strict=True):
        array[row, :length] = 1.0
    return array


RNG = np.random.default_rng(3)
SPREAD = weights(range(0, 1000, 3), RNG.integers(1, 9, 334))
FRONT = weights(range(40), [100] * 40)
BACK = weights(range(960, 1000), [100] * 40)
MANY_SHORT = weights(range(600), [1] * 600)
EMPTY = weights([], [])
PAIRS = {
    "alike": (SPREAD, SPREAD),
    "one behind the other": (FRONT, BACK),
    "the other way round": (BACK, FRONT),
    "few long rows and many short ones": (BACK, MANY_SHORT),
    "one operand is empty": (EMPTY, SPREAD),
}


def parts(first: Any, second: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the entries of each part, the cuts, and the coordinates of rows, of both operands."""
    pair = [sj.asarray(array, format=sj.DCSR) for array in (first, second)]
    buffers = [
        array
        for one in pair
        for array in (
            one.positions[0],
            one.coordinates[0],
            one.positions[1],
            one.coordinates[1],
            one.values,
        )
    ]
    wide = [a if a.dtype == np.float64 else a.astype(np.int64) for a in buffers]
    cuts = run("interpreter", cutting(), 1000, 300, *wide)
    total = sum(np.diff(one.positions[1][cut]) for one, cut in zip(pair, cuts, strict=True))
    return total, list(cuts), [one.coordinates[0] for one in pair]


@pytest.mark.parametrize("name", PAIRS)
def test_parts_have_about_as_many_entries_each(name: str) -> None:
    first, second = PAIRS[name]
    entries, cuts, rows = parts(first, second)
    total = np.count_nonzero(first) + np.count_nonzero(second)
    longest = max(np.count_nonzero(one, axis=1).max() for one in PAIRS[name])
    assert entries.sum() == total
    assert len(entries) == 64
    # Rows are not cut, and each end of a part may be off by an eighth.
    assert entries.max() <= total / 64 * 1.25 + 2 * longest
    for cut in cuts:
        assert (np.diff(cut) >= 0).all()
    for at in range(1, 64):  # equal rows are in one part
        before = [row[: cut[at]].max(initial=-1) for row, cut in zip(rows, cuts, strict=True)]
        after = [row[cut[at] :].min(initial=1000) for row, cut in zip(rows, cuts, strict=True)]
        assert max(before) < min(after)


def test_a_long_row_is_a_part_by_itself() -> None:
    rows = weights([1, 5, 700, 701, 990], [20, 20, 300, 20, 20])
    entries, _, _ = parts(rows, rows)
    assert entries.max() == 600
    assert len(entries) == 64


@pytest.mark.parametrize("count", [0, 4])
def test_few_entries_are_one_part(count: int) -> None:
    few = weights(range(count), [1] * count)
    entries, _, _ = parts(few, few)
    assert entries.tolist() == [2 * count]
