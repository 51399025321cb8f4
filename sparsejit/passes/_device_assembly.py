"""``Assemble`` by parallel loops and scans: level storage from sorted level coordinates.

Slots never decrease from entry to entry: where a new one starts is seen from the entry before, and
a scan numbers them.
"""

from __future__ import annotations

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir.level_assembly import LevelAssembly
from sparsejit.ir.loop_writing import Names, as_dtype, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Dealloc,
    Expr,
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


class _Assembly(LevelAssembly):
    """Scans number the children; the first entry of each slot stores its coordinates."""

    is_parallel = True

    def _fixed(self, number: int, kind: LevelKind, size: int) -> list[Stmt]:
        raise UnsupportedError(
            f"a result with a {kind.value} level is not assembled on a device: it "
            "has no way to say that a parent has more entries than slots",
            hint="choose another result format with output=, and convert on the host",
        )

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

    def _stored_once(self, e: Var, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        same = self._same_as_before(self._slot, e)
        first = Select(compare(BinaryOp.EQ, e, int_(0)), _TRUE, compare(BinaryOp.EQ, same, _FALSE))
        return (If(first, body),)
