"""The programs of one function: those made for other keys, and for other extents of one key.

In: the key of a call. Out: the program whose extents fit it. A function that is traced anew again
and again (numbers that it reads from outside, objects that it is a method of) keeps the last ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

from sparsejit._dataclasses import dataclass
from sparsejit.api._call import Call
from sparsejit.api._program import Program

__all__ = ["MOST", "Programs", "fitting"]

MOST = 512
"""How many programs a function keeps; when there are more, the one made first is forgotten."""


@dataclass(slots=True, eq=False)
class _Entry:
    """The programs of one key.

    Its key is no longer equal to anything, itself included, when an object in it is gone; a
    dictionary still finds the very same key.
    """

    key: Hashable
    programs: tuple[Program, ...] = ()


class Programs:
    """Programs by key. One thread adds, others may look at the same time."""

    __slots__ = ("_by_key", "_order")

    def __init__(self) -> None:
        self._by_key: dict[Hashable, _Entry] = {}
        self._order: deque[tuple[_Entry, Program]] = deque()

    def find(self, key: Hashable, call: Call) -> tuple[Program, list[int]] | None:
        """Return the program for a call with this key, and the values of its symbols."""
        entry = self._by_key.get(key)
        return None if entry is None else fitting(entry.programs, call)

    def add(self, key: Hashable, program: Program) -> None:
        """Keep a program, the last one of its key."""
        if len(self._order) >= MOST:
            self._forget(*self._order.popleft())
        entry = self._by_key.setdefault(key, _Entry(key))
        entry.programs = (*entry.programs, program)
        self._order.append((entry, program))

    def _forget(self, entry: _Entry, program: Program) -> None:
        entry.programs = tuple(other for other in entry.programs if other is not program)
        if not entry.programs:
            del self._by_key[entry.key]


def fitting(programs: Iterable[Program], call: Call) -> tuple[Program, list[int]] | None:
    """Return the program whose extents fit, with the values of its symbols."""
    shapes = [operand.shape for operand in call.operands]
    for program in programs:
        numbers = program.extents.numbers([*shapes, *program.constant_shapes])
        if numbers is not None:
            return program, numbers
    return None
