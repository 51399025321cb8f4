"""Disjoint sets of value names: which values may share a buffer, and which surely do.

The analysis keeps two of them. The *alias* sets merge with every in-place decision; the
*equivalence* sets merge once, when all decisions are taken. Members are listed in the order in
which they were added, so that nothing printed depends on hashing.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["DisjointSets"]


class DisjointSets:
    """A partition of names that only grows coarser.

    >>> sets = DisjointSets(("a", "b", "c"))
    >>> sets.merge("c", "a")
    >>> sets.members("a"), sets.together("a", "b")
    (('a', 'c'), False)
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._order = {name: number for number, name in enumerate(names)}
        self._members: dict[str, tuple[str, ...]] = {name: (name,) for name in self._order}

    def members(self, name: str) -> tuple[str, ...]:
        """Return all names in the set of ``name``, oldest first."""
        return self._members[name]

    def together(self, one: str, other: str) -> bool:
        """Whether the two names are in one set."""
        return other in self._members[one]

    def merge(self, one: str, other: str) -> None:
        """Make one set of the two sets that hold the names."""
        if self.together(one, other):
            return
        merged = tuple(
            sorted((*self._members[one], *self._members[other]), key=self._order.__getitem__)
        )
        for name in merged:
            self._members[name] = merged

    def sets(self) -> tuple[tuple[str, ...], ...]:
        """Return the sets, each once, in the order of their oldest members."""
        return tuple(self._members[name] for name in self._order if self._members[name][0] == name)
