"""What is known of a stored operand before it is computed with: as much as code may depend on.

Rows are the entries below one parent of a compressed level. Their lengths come in a few classes, so
that matrices with other numbers of entries share their code.
"""

from __future__ import annotations

from enum import Enum

from sparsejit._dataclasses import dataclass

__all__ = ["RowLengths", "StoredFacts", "lengths_of"]

_LONG = 12
"""A warp a row pays from about this many entries a row; a third of its lanes have work then."""
_SKEW = 64
"""How many times the mean a row must have for a search of the row of each entry to pay."""


class RowLengths(Enum):
    """How long the rows of a compressed level are."""

    SHORT = f"short, fewer than {_LONG} entries on average"
    LONG = f"long, {_LONG} entries or more on average"
    UNEVEN = f"uneven, the longest has more than {_SKEW} times the mean and {_SKEW * _LONG} entries"

    def __repr__(self) -> str:
        return f"RowLengths.{self.name}"


def lengths_of(mean: float, longest: float) -> RowLengths:
    """Return the class of rows that have so many entries, on average and at most.

    >>> lengths_of(3.0, 5.0), lengths_of(30.0, 90.0), lengths_of(3.0, 1e6)
    (RowLengths.SHORT, RowLengths.LONG, RowLengths.UNEVEN)
    """
    if longest > _SKEW * max(mean, _LONG):
        return RowLengths.UNEVEN
    return RowLengths.SHORT if mean < _LONG else RowLengths.LONG


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """Facts about an operand.

    ``rows`` has an entry for each of its buffers: the lengths of rows for positions whose contents
    are known, else None. ``has_full_batches``: there are batches, and each stores as many entries
    as it has room for.
    """

    rows: tuple[RowLengths | None, ...]
    has_full_batches: bool = False
