"""Every format of every operand and result, with every operation, spelling, storage and shape.

Not all combinations are run, but every pair of choices is, several times over: the rows of three
covering arrays. Each result equals dense NumPy's and the reference evaluator's, and its storage
passes all checks. What raises ``UnsupportedError`` would count for nothing: there is nothing left.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from tests.matrix.combinations import (
    FACTORS,
    FORMATS,
    PATTERN_FACTORS,
    RESULT_FORMATS,
    UNCARRIED,
    Combination,
    Outcome,
    is_forbidden,
    run_combination,
)
from tests.matrix.covering import Row, covering_rows, uncovered_pairs
from tests.matrix.numba_slice import slice_of
from tests.matrix.operations import FRONT_ENDS, OPERATIONS
from tests.matrix.pattern_operations import PATTERN_OPERATIONS

CHUNKS = 8
COUNT = "count of matrix combinations on "  # printed at the end of the run

Record = Callable[[str, object], None]

_ROWS = [covering_rows(FACTORS, array, tries=6, forbidden=is_forbidden) for array in range(3)]
_PATTERN_ROWS = covering_rows(PATTERN_FACTORS, tries=3, forbidden=is_forbidden)
WHOLE = os.environ.get("SPARSEJIT_MATRIX") == "whole"
STRIDE = 5  # of the rows of the second table, how many there are for each that is run


def combinations_of(array: int) -> list[Combination]:
    """Return the combinations of one covering array."""
    return [
        Combination(**row, seed=1000 * array + number) for number, row in enumerate(_ROWS[array])
    ]


def test_every_pair_of_choices_occurs() -> None:
    assert len(OPERATIONS) >= 26
    assert len(FORMATS) >= 22
    assert len(RESULT_FORMATS) >= 14
    assert len(PATTERN_OPERATIONS) >= 28
    named = {operation.name: operation for operation in (*OPERATIONS, *PATTERN_OPERATIONS)}
    for operation in named.values():
        assert set(operation.spellings) == set(FRONT_ENDS)
    tables = [*((FACTORS, rows) for rows in _ROWS), (PATTERN_FACTORS, _PATTERN_ROWS)]
    for factors, rows in tables:
        missing = uncovered_pairs(factors, rows)
        # What NumPy refuses: complex numbers have no order, and nothing has no maximum.
        assert all(
            (second == "complex128" and named[first].ordered)
            or (two == "shape" and 0 in second and named[first].needs)
            or (two == "a" and named[first].carries and second in UNCARRIED)
            for _, first, two, second in missing
        ), missing


def test_the_slice_has_every_choice() -> None:
    for factor, choices in PATTERN_FACTORS.items():
        assert {row[factor] for _, row in _pattern_slice()} == set(choices)


@cache
def _pattern_slice() -> list[tuple[int, Row]]:
    """Return the rows that are run every time: every choice of each factor is among them."""
    numbered = list(enumerate(_PATTERN_ROWS))
    if WHOLE:
        return numbered
    return slice_of(_PATTERN_ROWS, PATTERN_FACTORS, len(numbered) // STRIDE)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pattern_operations_on_the_interpreter(chunk: int, record_property: Record) -> None:
    """``SPARSEJIT_MATRIX=whole`` runs every row of the second table."""
    part = _pattern_slice()[chunk::CHUNKS]
    chosen = [Combination(**row, seed=7000 + number) for number, row in part]
    _run(chosen, "interpreter", record_property, "the interpreter, second table")


@pytest.mark.parametrize("chunk", range(2))
def test_pattern_operations_on_llvm(
    chunk: int, record_property: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "llvm")
    chosen = slice_of(_PATTERN_ROWS, PATTERN_FACTORS, 28)[chunk::2]
    part = [Combination(**row, seed=7000 + number) for number, row in chosen]
    _run(part, "cpu", record_property, "LLVM, second table")


def _run(chosen: Sequence[Combination], target: str, record: Record, where: str) -> None:
    wrong: list[str] = []
    counts = dict.fromkeys(Outcome, 0)
    for combination in chosen:
        try:
            outcome = run_combination(combination, target)
        except Exception as error:  # all combinations are run before any is reported
            wrong.append(f"{combination}\n{type(error).__name__}: {error}")
            continue
        counts[outcome] += 1
        if outcome is not Outcome.RIGHT:
            wrong.append(f"{combination}\nis {outcome.value}")
    for outcome, number in counts.items():
        record(f"{COUNT}{where}", (outcome.value, number))
    assert not wrong, f"{len(wrong)} combinations are wrong\n\n" + "\n\n".join(wrong[:5])


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("array", range(len(_ROWS)))
def test_combinations_on_the_interpreter(array: int, chunk: int, record_property: Record) -> None:
    _run(combinations_of(array)[chunk::CHUNKS], "interpreter", record_property, "the interpreter")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_combinations_on_numba(
    chunk: int, record_property: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "numba")
    chosen = slice_of(_ROWS[0], FACTORS, 68)
    part = [Combination(**row, seed=number) for number, row in chosen[chunk::CHUNKS]]
    _run(part, "cpu", record_property, "Numba")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_combinations_on_llvm(
    chunk: int, record_property: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "llvm")
    _run(combinations_of(1)[chunk : CHUNKS * 12 : CHUNKS], "cpu", record_property, "LLVM")
