"""``Assemble`` by parallel loops and scans: level storage from sorted level coordinates.

Slots never decrease from entry to entry: where a new one starts is seen from the entry before, and
a scan numbers them. Levels with a fixed number of slots are filled one parent beside the other.
"""

from __future__ import annotations

from sparsejit.formats import LevelKind
from sparsejit.ir.device_statements import Require
from sparsejit.ir.level_assembly import NO_ROOM, LevelAssembly
from sparsejit.ir.loop_writing import Names, as_dtype, binary, compare, int_, plus, times
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
    Scan,
    ScanOp,
    Select,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["assembled"]

_FALSE, _TRUE = Lit(Const(False, DType.BOOL)), Lit(Const(True, DType.BOOL))


def assembled(stmt: Assemble, names: Names) -> list[Stmt]:
    """Return the statements that build the storage; they require room for all entries."""
    return _Assembly(stmt, names).statements()


class _Assembly(LevelAssembly):
    """Scans number the children; the first entry of each slot stores its coordinates."""

    is_parallel = True

    def _fixed(self, number: int, kind: LevelKind, size: int) -> list[Stmt]:
        """Fill the slots of all parents; the fullest one must have room."""
        names, slots, target = self._names, self._slots, self._targets.pop(0)
        ends, fullest = names.array("ends"), names.var("fullest")
        parent, e, used = names.var("parent"), names.var("e"), names.var("used")
        first, last = names.var("first"), names.var("last")
        begin = times(parent, int_(size))
        is_padded = kind is LevelKind.PADDED
        count = self._count(number, first, e, used)
        if is_padded:
            own = If(
                compare(BinaryOp.LE, used, int_(size)), self._owned(number, target, begin, e, used)
            )
            fill: list[Stmt] = [For(e, first, last, (count, own))]
        else:
            free = names.var("free")
            fill = [
                For(e, first, last, (count,)),
                Let(free, binary(BinaryOp.SUB, int_(size), used), mutable=True),
                *self._filled_block(number, target, begin, size, (first, last, free)),
            ]
        body = (
            Let(first, Load(ends, (parent,))),
            Let(last, Load(ends, (plus(parent, int_(1)),))),
            Let(used, int_(0), mutable=True),
            *fill,
            Assign(fullest, binary(BinaryOp.MAX, fullest, used)),
        )
        shared = ((fullest, BinaryOp.MAX),)
        unowned = Const(-1, target.dtype) if is_padded else None
        b = names.var("e")
        return [
            *self._ends(ends, b, plus(b, int_(1))),
            Alloc(target, (times(slots, int_(size)),), unowned),
            Let(fullest, int_(0), mutable=True),
            For(parent, int_(0), slots, body, parallel=True, reductions=shared),
            Dealloc(ends),
            Require(compare(BinaryOp.LE, fullest, int_(size)), NO_ROOM[kind]),
            Assign(slots, times(slots, int_(size))),
        ]

    def _count(self, number: int, first: Var, e: Var, used: Var) -> Stmt:
        """Count entry ``e`` of a parent, the first of which is ``first``, if it needs a slot."""
        repeats = self._same_as_before(self._stmt.coordinates[number], e)
        is_again = Select(compare(BinaryOp.GT, e, first), repeats, _FALSE)
        return If(is_again, (), (Assign(used, plus(used, int_(1))),))

    def _owned(
        self, number: int, target: Memref, begin: Expr, e: Var, used: Var
    ) -> tuple[Stmt, ...]:
        """Give entry ``e`` the last slot in use of those from ``begin`` on."""
        own = self._names.var("own")
        coordinate = Load(self._stmt.coordinates[number], (e,))
        return (
            Let(own, plus(begin, binary(BinaryOp.SUB, used, int_(1)))),
            Store(target, (own,), as_dtype(coordinate, target.dtype)),
            Store(self._slot, (e,), own),
        )

    def _ends(self, ends: Memref, b: Var, value: Expr) -> list[Stmt]:
        """Define where the part of each slot ends: ``value`` of its last entry ``b``."""
        stmt, slot = self._stmt, self._slot
        following = compare(
            BinaryOp.NE, Load(slot, (plus(b, int_(1)),)), Load(slot, (b,))
        )  # read where there is a following entry only
        is_last = Select(compare(BinaryOp.LT, plus(b, int_(1)), stmt.count), following, _TRUE)
        end = as_dtype(value, ends.dtype)
        return [
            Alloc(ends, (plus(self._slots, int_(1)),), Const(0, ends.dtype)),
            self._each(b, If(is_last, (Store(ends, (plus(Load(slot, (b,)), int_(1)),), end),))),
            Scan(ends, ScanOp.MAX),
        ]

    def _positions(self, number: int, pos: Memref) -> list[Stmt]:
        """Number the children by a scan; the last child of each parent ends its segment."""
        stmt, slot, names = self._stmt, self._slot, self._names
        unique = not stmt.format.levels[number].type.nonunique
        ends = names.array(f"{pos.name}_ends", pos.dtype) if pos.rank == 2 else pos
        made = names.array("made")
        a, b, c, count = names.var("e"), names.var("e"), names.var("e"), names.var("count")
        new: Expr = int_(1)
        if unique:
            same = self._same_as_before(slot, a), self._same_as_before(stmt.coordinates[number], a)
            differs = Select(compare(BinaryOp.AND, *same), int_(0), int_(1))
            new = Select(compare(BinaryOp.EQ, a, int_(0)), int_(1), differs)
        number_of = binary(BinaryOp.SUB, Load(made, (plus(c, int_(1)),)), int_(1))
        built: list[Stmt] = [
            Alloc(made, (plus(stmt.count, int_(1)),), Const(0, INDEX)),
            self._each(a, Store(made, (plus(a, int_(1)),), new)),
            Scan(made, ScanOp.SUM),
            *self._ends(ends, b, Load(made, (plus(b, int_(1)),))),
            self._each(c, Store(slot, (c,), number_of)),
            Let(count, Load(made, (stmt.count,))),
            Dealloc(made),
        ]
        if pos.rank == 2:
            built += self._pairs(pos, ends)
        return [*built, Assign(self._slots, count)]

    def _same_as_before(self, array: Memref, e: Var) -> Expr:
        before = Load(array, (binary(BinaryOp.SUB, e, int_(1)),))
        return compare(BinaryOp.EQ, Load(array, (e,)), before)

    def _stored_once(self, e: Var, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        same = self._same_as_before(self._slot, e)
        first = Select(compare(BinaryOp.EQ, e, int_(0)), _TRUE, compare(BinaryOp.EQ, same, _FALSE))
        return (If(first, body),)
