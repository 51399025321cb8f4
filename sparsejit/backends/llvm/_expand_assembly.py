"""``Assemble`` as loops: level storage from sorted level coordinates, one level at a time.

The support library's ``assembly`` is the same in Python. A parent with more entries than slots sets
the status.
"""

from __future__ import annotations

from sparsejit.backends.llvm._expand_single_pass import has_single_pass, single_pass
from sparsejit.formats import Level, LevelKind
from sparsejit.ir.level_assembly import NO_ROOM, LevelAssembly
from sparsejit.ir.loop_writing import (
    Names,
    as_dtype,
    binary,
    compare,
    int_,
    plus,
    times,
)
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
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
from sparsejit.ir.types import DType

__all__ = ["FULL", "assembly"]

FULL = {
    LevelKind.STRUCTURED: (2, NO_ROOM[LevelKind.STRUCTURED]),
    LevelKind.PADDED: (3, NO_ROOM[LevelKind.PADDED]),
}
"""The status of a level without room for an entry, and what that means."""

_FALSE = Lit(Const(False, DType.BOOL))


def assembly(stmt: Assemble, names: Names, status: Var) -> list[Stmt]:
    """Return the statements that build the storage; they set ``status`` where it has no room."""
    if has_single_pass(stmt):
        return single_pass(stmt, names)
    return _Assembly(stmt, names, status).statements()


class _Assembly(LevelAssembly):
    """One entry after another; a parent with more entries than slots sets the status."""

    def __init__(self, stmt: Assemble, names: Names, status: Var) -> None:
        super().__init__(stmt, names)
        self._status = status

    def _var(self, base: str) -> Var:
        return self._names.var(base)

    def _fixed(self, number: int, kind: LevelKind, size: int) -> list[Stmt]:
        target = self._targets.pop(0)
        build = self._structured if kind is LevelKind.STRUCTURED else self._padded
        return build(number, target, size)

    def _positions(self, number: int, pos: Memref) -> list[Stmt]:
        """Count the children of each parent, add up, and give each entry its slot."""
        stmt, slot, slots = self._stmt, self._slot, self._slots
        end = number + 1
        while end < stmt.format.num_levels and _is_singleton(stmt.format.levels[end]):
            end += 1
        unique = end < stmt.format.num_levels
        loose = pos.rank == 2
        ends = self._names.array(f"{pos.name}_ends") if loose else pos
        crds = stmt.coordinates[number:end]
        p, e, s, here = self._var("p"), self._var("e"), self._var("p"), self._var("here")
        count, parent = self._var("made"), self._var("parent")
        lasts = [self._var("last") for _ in crds]
        one = as_dtype(int_(1), ends.dtype)
        new = compare(BinaryOp.NE, here, parent)
        for crd, last in zip(crds, lasts, strict=True):
            new = compare(BinaryOp.OR, new, compare(BinaryOp.NE, Load(crd, (e,)), last))
        opened: tuple[Stmt, ...] = (
            Assign(parent, here),
            *(Assign(last, Load(crd, (e,))) for crd, last in zip(crds, lasts, strict=True)),
            Store(ends, (plus(here, int_(1)),), one, BinaryOp.ADD),
            Assign(count, plus(count, int_(1))),
        )
        visit: tuple[Stmt, ...] = (Let(here, Load(slot, (e,))),)
        visit += (If(new, opened),) if unique else opened
        visit += (Store(slot, (e,), binary(BinaryOp.SUB, count, int_(1))),)
        zero = Store(ends, (p,), as_dtype(int_(0), ends.dtype))
        made: list[Stmt] = [
            Alloc(ends, (plus(slots, int_(1)),)),
            For(p, int_(0), plus(slots, int_(1)), (zero,)),
            Let(count, int_(0), mutable=True),
            Let(parent, int_(-1), mutable=True),
            *(Let(last, int_(-1), mutable=True) for last in lasts),
            For(e, int_(0), stmt.count, visit),
            For(s, int_(0), slots, (_add_before(ends, s),)),
        ]
        if loose:
            made += self._pairs(pos, ends)
        return [*made, Assign(slots, count)]

    # ------------------------------------------------------------ fixed numbers of slots

    def _structured(self, number: int, target: Memref, size: int) -> list[Stmt]:
        """Slots that no entry owns take the smallest free coordinates of their parent."""
        stmt, slot, slots = self._stmt, self._slot, self._slots
        crd = stmt.coordinates[number]
        first, parent, last, free = (self._var(n) for n in ("first", "parent", "last", "free"))
        same = compare(BinaryOp.EQ, Load(slot, (last,)), parent)
        more = Select(compare(BinaryOp.LT, last, stmt.count), same, _FALSE)
        repeated = compare(BinaryOp.EQ, Load(crd, (last,)), Load(crd, (_before(last),)))
        repeats = Select(compare(BinaryOp.GT, last, first), repeated, _FALSE)
        begin = times(parent, int_(size))
        code, _ = FULL[LevelKind.STRUCTURED]
        each: tuple[Stmt, ...] = (
            Let(last, first, mutable=True),
            Let(free, int_(size), mutable=True),
            While(
                more,
                (
                    If(repeats, (), (Assign(free, _before(free)),)),
                    Assign(last, plus(last, int_(1))),
                ),
            ),
            If(compare(BinaryOp.LT, free, int_(0)), (Assign(self._status, int_(code)),)),
            *self._filled_block(number, target, begin, size, (first, last, free)),
            Assign(first, last),
        )
        return [
            Alloc(target, (times(slots, int_(size)),)),
            Let(first, int_(0), mutable=True),
            For(parent, int_(0), slots, each),
            Assign(slots, times(slots, int_(size))),
        ]

    def _padded(self, number: int, target: Memref, size: int) -> list[Stmt]:
        """Slots that no entry owns have coordinate -1."""
        stmt, slot, slots = self._stmt, self._slot, self._slots
        s, e, here, at = (self._var(base) for base in ("s", "e", "here", "at"))
        parent, used = self._var("parent"), self._var("used")
        code, _ = FULL[LevelKind.PADDED]
        crd = stmt.coordinates[number]
        another = compare(BinaryOp.NE, Load(crd, (e,)), Load(crd, (_before(e),)))
        each: tuple[Stmt, ...] = (
            Let(here, Load(slot, (e,))),
            If(
                compare(BinaryOp.NE, here, parent),
                (Assign(used, int_(1)),),
                (If(another, (Assign(used, plus(used, int_(1))),)),),
            ),
            Assign(parent, here),
            If(
                compare(BinaryOp.GT, used, int_(size)),
                (Assign(self._status, int_(code)), Assign(used, int_(size))),
            ),
            Let(at, plus(times(here, int_(size)), binary(BinaryOp.SUB, used, int_(1)))),
            Store(slot, (e,), at),
            Store(target, (at,), as_dtype(Load(stmt.coordinates[number], (e,)), target.dtype)),
        )
        unused = Store(target, (s,), as_dtype(int_(-1), target.dtype))
        return [
            Alloc(target, (times(slots, int_(size)),)),
            For(s, int_(0), times(slots, int_(size)), (unused,)),
            Let(parent, int_(-1), mutable=True),
            Let(used, int_(0), mutable=True),
            For(e, int_(0), stmt.count, each),
            Assign(slots, times(slots, int_(size))),
        ]


def _is_singleton(level: Level) -> bool:
    return level.type.kind is LevelKind.SINGLETON


def _before(place: Var) -> Expr:
    return plus(place, int_(-1))


def _add_before(ends: Memref, s: Var) -> Stmt:
    return Store(ends, (plus(s, int_(1)),), Load(ends, (s,)), BinaryOp.ADD)
