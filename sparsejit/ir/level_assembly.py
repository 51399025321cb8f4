"""``Assemble`` as loops, one level at a time: what every way of doing it has in common.

``slot[e]`` is the slot of entry ``e`` in the storage built so far, ``slots`` their number; at first
all entries are in the one slot of the root. Entries are in lexicographic order, so the slots never
decrease.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import assert_never

from sparsejit.formats import LevelKind
from sparsejit.ir.loop_writing import Names, as_dtype, compare, int_, plus, times
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["NO_ROOM", "LevelAssembly"]

NO_ROOM = {
    LevelKind.STRUCTURED: "a block of a structured level has more entries than slots",
    LevelKind.PADDED: "a row of a padded level has more entries than slots",
}
"""What it means that a parent has more entries than a level has slots for it."""

_FALSE = Lit(Const(False, DType.BOOL))


class LevelAssembly(ABC):
    """Builds the levels of one tensor; ``targets`` are the arrays that are not made yet.

    How the children of each parent are numbered, when an entry stores its coordinates, and what a
    level with a fixed number of slots is, the ways of doing it say. ``is_parallel``: so are loops
    over entries.
    """

    is_parallel = False

    def __init__(self, stmt: Assemble, names: Names) -> None:
        self._stmt = stmt
        self._names = names
        self._slot = names.array("slot")
        self._slots = names.var("slots")
        self._targets = list(stmt.targets)

    def statements(self) -> list[Stmt]:
        """Return the statements that build the storage."""
        stmt = self._stmt
        made: list[Stmt] = [
            Alloc(self._slot, (stmt.count,), Const(0, INDEX)),
            Let(self._slots, int_(1), mutable=True),
        ]
        level = 0
        while level < stmt.format.num_levels:
            statements, count = self._level(level)
            made += statements
            level += count
        (values,) = self._targets
        made.append(Alloc(values, (self._slots,), stmt.fill))
        e = self._names.var("e")
        put = Store(values, (Load(self._slot, (e,)),), Load(stmt.values, (e,)))
        return [*made, self._each(e, put), Dealloc(self._slot)]

    @abstractmethod
    def _positions(self, number: int, pos: Memref) -> list[Stmt]:
        """Number the children of each parent, and give each entry its slot."""

    @abstractmethod
    def _fixed(self, number: int, kind: LevelKind, size: int) -> list[Stmt]:
        """Build a level with ``size`` slots for each parent."""

    def _stored_once(self, e: Var, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return what entry ``e`` does to store the coordinates of its slot."""
        return body

    def _each(self, e: Var, *body: Stmt) -> Stmt:
        return For(e, int_(0), self._stmt.count, body, parallel=self.is_parallel)

    def _level(self, number: int) -> tuple[list[Stmt], int]:
        """Build one level (or a whole array-of-structs tail); return how many levels it was."""
        level = self._stmt.format.levels[number].type
        match level.kind:
            case LevelKind.DENSE | LevelKind.BATCH | LevelKind.RANGE:
                return self._dense(number), 1
            case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
                made = self._positions(number, self._targets.pop(0))
                more, count = self._coordinates(number)
                return made + more, count
            case LevelKind.SINGLETON:
                return self._coordinates(number)
            case LevelKind.STRUCTURED | LevelKind.PADDED:
                return self._fixed(number, level.kind, level.size[0]), 1
            case _:
                assert_never(level.kind)

    def _dense(self, number: int) -> list[Stmt]:
        e = self._names.var("e")
        crd, size = self._stmt.coordinates[number], self._stmt.level_extents[number]
        moved = plus(times(Load(self._slot, (e,)), size), Load(crd, (e,)))
        widen = Assign(self._slots, times(self._slots, size))
        return [self._each(e, Store(self._slot, (e,), moved)), widen]

    def _pairs(self, pos: Memref, ends: Memref) -> list[Stmt]:
        """Return pairs of positions, begin and end, from the ends of all segments."""
        p = self._names.var("p")
        low = as_dtype(Load(ends, (p,)), pos.dtype)
        high = as_dtype(Load(ends, (plus(p, int_(1)),)), pos.dtype)
        body = (Store(pos, (p, int_(0)), low), Store(pos, (p, int_(1)), high))
        loop = For(p, int_(0), self._slots, body, parallel=self.is_parallel)
        return [Alloc(pos, (self._slots, int_(2))), loop, Dealloc(ends)]

    def _filled_block(
        self, number: int, target: Memref, begin: Expr, size: int, entries: tuple[Expr, Expr, Var]
    ) -> list[Stmt]:
        """Give the ``size`` slots of a structured level from ``begin`` on their coordinates.

        ``entries`` are the first entry, the one behind the last, and how many slots no entry owns:
        these take the smallest coordinates that are free.
        """
        names, slot, crd = self._names, self._slot, self._stmt.coordinates[number]
        first, last, free = entries
        entry, at, own = names.var("entry"), names.var("at"), names.var("own")
        here = compare(BinaryOp.EQ, Load(crd, (entry,)), at)
        wanted = compare(BinaryOp.OR, compare(BinaryOp.EQ, free, int_(0)), here)
        is_left = compare(BinaryOp.LT, entry, last)
        take: tuple[Stmt, ...] = (
            Assign(at, Load(crd, (entry,))),
            While(
                Select(is_left, here, _FALSE),
                (Store(slot, (entry,), own), Assign(entry, plus(entry, int_(1)))),
            ),
        )
        fill: tuple[Stmt, ...] = (
            If(
                Select(is_left, wanted, _FALSE),
                take,
                (Assign(free, plus(free, int_(-1))),),
            ),
            Store(target, (own,), as_dtype(at, target.dtype)),
            Assign(at, plus(at, int_(1))),
        )
        return [
            Let(entry, first, mutable=True),
            Let(at, int_(0), mutable=True),
            For(own, begin, plus(begin, int_(size)), fill),
        ]

    def _coordinates(self, number: int) -> tuple[list[Stmt], int]:
        target = self._targets.pop(0)
        columns = self._stmt.format.num_levels - number if target.rank == 2 else 1
        extents: tuple[Expr, ...] = (self._slots, int_(columns))
        e = self._names.var("e")
        at = Load(self._slot, (e,))
        body: list[Stmt] = []
        for column in range(columns):
            where = (at,) if target.rank == 1 else (at, int_(column))
            value = Load(self._stmt.coordinates[number + column], (e,))
            body.append(Store(target, where, as_dtype(value, target.dtype)))
        loop = self._each(e, *self._stored_once(e, tuple(body)))
        return [Alloc(target, extents[: target.rank]), loop], columns
