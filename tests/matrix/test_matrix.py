"""Every format of every operand and result, with every operation, spelling, storage and shape.

Not all combinations are run, but every pair of choices is, several times over: the rows of three
covering arrays. Each result equals dense NumPy's and the reference evaluator's, and its storage
passes all checks. What raises ``UnsupportedError`` would count for nothing: there is nothing left.
"""

from collections.abc import Callable, Sequence

import pytest

from tests.matrix.combinations import (
    FACTORS,
    FORMATS,
    RESULT_FORMATS,
    Combination,
    Outcome,
    is_forbidden,
    run_combination,
)
from tests.matrix.covering import covering_rows, uncovered_pairs
from tests.matrix.numba_slice import slice_of
from tests.matrix.operations import FRONT_ENDS, OPERATIONS

CHUNKS = 8
COUNT = "count of matrix combinations on "  # printed at the end of the run

Record = Callable[[str, object], None]

_ROWS = [covering_rows(FACTORS, array, tries=6, forbidden=is_forbidden) for array in range(3)]


def combinations_of(array: int) -> list[Combination]:
    """Return the combinations of one covering array."""
    return [
        Combination(**row, seed=1000 * array + number) for number, row in enumerate(_ROWS[array])
    ]


def test_every_pair_of_choices_occurs() -> None:
    assert len(OPERATIONS) >= 26
    assert len(FORMATS) >= 22
    assert len(RESULT_FORMATS) >= 14
    for operation in OPERATIONS:
        assert set(operation.spellings) == set(FRONT_ENDS)
    for rows in _ROWS:
        missing = uncovered_pairs(FACTORS, rows)
        # What NumPy refuses: complex numbers have no order, and nothing has no maximum.
        assert all(
            first in ("maximum", "row maximum")
            and (second == "complex128" or (two == "shape" and second[1] == 0))
            for _, first, two, second in missing
        ), missing


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
