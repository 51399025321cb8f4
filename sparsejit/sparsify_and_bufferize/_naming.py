"""Names of generated variables and memrefs: unique in one function, handed out in order."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["LOOP_NAMES", "Namer", "loop_name"]

LOOP_NAMES = "ijklmnpqrstuvw"


def loop_name(number: int) -> str:
    """Return the name of loop ``number``: i, j, k, ... then i1, j1, ...

    >>> loop_name(1), loop_name(14)
    ('j', 'i1')
    """
    round_, place = divmod(number, len(LOOP_NAMES))
    return LOOP_NAMES[place] + (str(round_) if round_ else "")


class Namer:
    """Hands out names that were not handed out before in the same function."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, base: str) -> str:
        """Return ``base``, or ``base_2``, ``base_3``, ... when it is taken."""
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def fork(self) -> Namer:
        """Return an independent copy, for an attempt that may be thrown away."""
        return Namer(self._taken)
