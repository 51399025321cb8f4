"""Which combinations also run on Numba: few enough to compile, and every choice is among them.

Compiling takes most of the time, and grows with the code: a sum of two formats that are walked
together costs several products. Cheap rows are preferred.
"""

from collections.abc import Sequence
from typing import Any

from tests.matrix.covering import Row

__all__ = ["slice_of"]

_UNIONS = (
    "add", "subtract", "maximum", "multiply and add", "row sums", "compare", "map of fill",
    "row maximum", "broadcast",
)  # fmt: skip
_WEIGHTS = {
    "dense": 0, "column-major": 0, "csr": 1, "csc": 1, "inferred": 1, "loose": 1, "dcsr": 2,
    "dcsc": 2, "compressed dense": 2,
}  # fmt: skip


def _cost(row: Row) -> int:
    formats = sum(_WEIGHTS.get(row[factor], 3) for factor in ("a", "b", "result"))
    formats += 4 if 0 in row["shape"] else 0  # nothing to compute shows little
    return (formats + 2) * (2 if row["operation"] in _UNIONS else 1)


def slice_of(
    rows: Sequence[Row], factors: dict[str, Sequence[Any]], number: int
) -> list[tuple[int, Row]]:
    """Return rows with their places: every choice of every factor, then the cheapest."""
    missing = {(name, choice) for name, choices in factors.items() for choice in choices}
    left = list(enumerate(rows))
    taken: list[tuple[int, Row]] = []
    while left and (missing or len(taken) < number):
        prices = [_price(row, missing) for _, row in left]
        best = left.pop(prices.index(min(prices)))
        taken.append(best)
        missing -= set(best[1].items())
    return taken


def _price(row: Row, missing: set[tuple[str, Any]]) -> float:
    new = sum(choice in missing for choice in row.items())
    return _cost(row) / new if new else 1000 + _cost(row)
