"""``Assemble`` by parallel loops and scans: level storage from sorted level coordinates.

``slot[e]`` is the slot of entry ``e`` in the storage built so far, ``slots`` their number; at first
all entries are in the one slot of the root. Entries are in lexicographic order, so the slots never
decrease: where a new one starts is seen from the entry before, and a scan numbers them.
"""

from __future__ import annotations

from typing import assert_never

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
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
    """Return the statements that build the storage.

    Raises ``UnsupportedError`` for a level with a fixed number of slots: a device cannot say that
    a parent has more entries than these.
    """
    return _Assembly(stmt, names).statements()


class _Assembly:
    """Builds the levels of one tensor; ``targets`` are the arrays that are not made yet."""

    def __init__(self, stmt: Assemble, names: Names) -> None:
        self._stmt = stmt
        self._names = names
        self._slot = names.array("slot")
        self._slots = names.var("slots")
        self._targets = list(stmt.targets)

    def statements(self) -> list[Stmt]:
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

    def _each(self, e: Var, *body: Stmt) -> Stmt:
        return For(e, int_(0), self._stmt.count, body, parallel=True)

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
                raise UnsupportedError(
                    f"a result with a {level.kind.value} level is not assembled on a device: it "
                    "has no way to say that a parent has more entries than slots",
                    hint="choose another result format with output=, and convert on the host",
                )
            case _:
                assert_never(level.kind)

    def _dense(self, number: int) -> list[Stmt]:
        e = self._names.var("e")
        crd, size = self._stmt.coordinates[number], self._stmt.level_extents[number]
        moved = plus(times(Load(self._slot, (e,)), size), Load(crd, (e,)))
        widen = Assign(self._slots, times(self._slots, size))
        return [self._each(e, Store(self._slot, (e,), moved)), widen]

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
        following = compare(
            BinaryOp.NE, Load(slot, (plus(b, int_(1)),)), Load(slot, (b,))
        )  # read where there is a following entry only
        is_last = Select(compare(BinaryOp.LT, plus(b, int_(1)), stmt.count), following, _TRUE)
        end = as_dtype(Load(made, (plus(b, int_(1)),)), ends.dtype)
        number_of = binary(BinaryOp.SUB, Load(made, (plus(c, int_(1)),)), int_(1))
        built: list[Stmt] = [
            Alloc(made, (plus(stmt.count, int_(1)),), Const(0, INDEX)),
            self._each(a, Store(made, (plus(a, int_(1)),), new)),
            Scan(made, ScanOp.SUM),
            Alloc(ends, (plus(self._slots, int_(1)),), Const(0, ends.dtype)),
            self._each(b, If(is_last, (Store(ends, (plus(Load(slot, (b,)), int_(1)),), end),))),
            Scan(ends, ScanOp.MAX),
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

    def _pairs(self, pos: Memref, ends: Memref) -> list[Stmt]:
        p = self._names.var("p")
        low, high = Load(ends, (p,)), Load(ends, (plus(p, int_(1)),))
        body = (Store(pos, (p, int_(0)), low), Store(pos, (p, int_(1)), high))
        loop = For(p, int_(0), self._slots, body, parallel=True)
        return [Alloc(pos, (self._slots, int_(2))), loop, Dealloc(ends)]

    def _coordinates(self, number: int) -> tuple[list[Stmt], int]:
        """Store the coordinates of each slot, once: at its first entry."""
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
        same = self._same_as_before(self._slot, e)
        first = Select(compare(BinaryOp.EQ, e, int_(0)), _TRUE, compare(BinaryOp.EQ, same, _FALSE))
        loop = self._each(e, If(first, tuple(body)))
        return [Alloc(target, extents[: target.rank]), loop], columns
