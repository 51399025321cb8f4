"""The names of the loops of one operation."""

from __future__ import annotations

__all__ = ["LOOP_NAMES", "loop_name"]

LOOP_NAMES = "ijklmnpqrstuvw"


def loop_name(number: int) -> str:
    """Return the name of loop ``number``: i, j, k, ... then i1, j1, ...

    >>> loop_name(1), loop_name(14)
    ('j', 'i1')
    """
    round_, place = divmod(number, len(LOOP_NAMES))
    return LOOP_NAMES[place] + (str(round_) if round_ else "")
