"""Statements about whole arrays as loops: ``Sort``, ``Scan`` and ``Assemble``.

In: a ``LoopFunc``. Out: the same function with loads, stores and loops instead, so that the printer
of LLVM IR knows small statements only. Sorting is a stable radix sort (digits of 11 bits);
assembling goes level by level, with ``slot[e]``, the slot of entry ``e`` in the storage built so
far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir.loop_walk import all_statements, memrefs_defined
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Cast,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Scan,
    ScanOp,
    Select,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["expand"]

_DIGIT = 11


def expand(func: LoopFunc) -> LoopFunc:
    """Return ``func`` without ``Sort``, ``Scan`` and ``Assemble``."""
    taken = {param.name for param in func.params}
    for stmt in all_statements(func.body):
        taken.update(memref.name for memref in memrefs_defined(stmt))
        if isinstance(stmt, Let | For):
            taken.add(stmt.var.name)
    return replace(func, body=_Expander(taken).block(func.body))


def _int(value: int) -> Lit:
    return Lit(Const(value, INDEX))


def _binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(op, lhs, rhs, INDEX)


def _plus(lhs: Expr, rhs: Expr) -> Expr:
    return _binary(BinaryOp.ADD, lhs, rhs)


def _times(lhs: Expr, rhs: Expr) -> Expr:
    return _binary(BinaryOp.MUL, lhs, rhs)


def _compare(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(op, lhs, rhs, DType.BOOL)


def _as(value: Expr, dtype: DType) -> Expr:
    return value if dtype is INDEX else Cast(value, dtype)


class _Expander:
    """Rebuilds blocks; hands out names that are not taken."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def _fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def _var(self, base: str, dtype: DType = INDEX) -> Var:
        return Var(self._fresh(base), dtype)

    def _array(self, base: str) -> Memref:
        return Memref(self._fresh(base), INDEX, 1)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For() | While():
                    made.append(replace(stmt, body=self.block(stmt.body)))
                case If():
                    then, orelse = self.block(stmt.then), self.block(stmt.orelse)
                    made.append(replace(stmt, then=then, orelse=orelse))
                case Sort():
                    made += self._sort(stmt)
                case SortPrefix():
                    made += self._sort_prefix(stmt)
                case Scan():
                    made.append(self._scan(stmt))
                case Assemble():
                    made += self._assemble(stmt)
                case _:
                    made.append(stmt)
        return tuple(made)

    # ------------------------------------------------------------ scans and sorts

    def _scan(self, stmt: Scan) -> Stmt:
        memref, dtype = stmt.memref, stmt.memref.dtype
        i = self._var("i")
        before = Load(memref, (_binary(BinaryOp.SUB, i, _int(1)),))
        here = Load(memref, (i,))
        op = BinaryOp.ADD if stmt.op is ScanOp.SUM else BinaryOp.MAX
        step = Store(memref, (i,), Binary(op, before, here, dtype))
        return For(i, _int(1), DimOf(memref, 0), (step,))

    def _sort(self, stmt: Sort) -> list[Stmt]:
        """Sort the order by each coordinate, the least significant first, digit by digit."""
        q = self._var("q")
        other, starts = self._array("sort_other"), self._array("sort_starts")
        made: list[Stmt] = [
            Alloc(stmt.order, (stmt.count,)),
            Alloc(other, (stmt.count,)),
            Alloc(starts, (_int((1 << _DIGIT) + 1),)),
            For(q, _int(0), stmt.count, (Store(stmt.order, (q,), q),)),
        ]
        keys = list(zip(stmt.coordinates, stmt.extents, strict=True))
        for crd, extent in reversed(keys):
            shift = self._var("shift")
            top = _binary(BinaryOp.SHR, _binary(BinaryOp.SUB, extent, _int(1)), shift)
            made.append(Let(shift, _int(0), mutable=True))
            body = self._count_sort(stmt, crd, shift, other, starts)
            advance = Assign(shift, _plus(shift, _int(_DIGIT)))
            made.append(While(_compare(BinaryOp.GT, top, _int(0)), (*body, advance)))
        return [*made, Dealloc(other), Dealloc(starts)]

    def _count_sort(
        self, stmt: Sort, crd: Memref, shift: Var, other: Memref, starts: Memref
    ) -> tuple[Stmt, ...]:
        b, q, q2, q3 = (self._var(base) for base in ("b", "q", "q", "q"))
        digit, digit2, entry = self._var("digit"), self._var("digit"), self._var("entry")

        def digit_of(where: Expr) -> Expr:
            moved = _binary(BinaryOp.SHR, Load(crd, (where,)), shift)
            return _binary(BinaryOp.AND, moved, _int((1 << _DIGIT) - 1))

        bump = _plus(digit, _int(1))
        count = (
            Let(digit, digit_of(Load(stmt.order, (q,)))),
            Store(starts, (bump,), _int(1), BinaryOp.ADD),
        )
        target = Load(starts, (digit2,))
        place = (
            Let(entry, Load(stmt.order, (q2,))),
            Let(digit2, digit_of(entry)),
            Store(other, (target,), entry),
            Store(starts, (digit2,), _int(1), BinaryOp.ADD),
        )
        clear = self._var("b")
        total = _int(1 << _DIGIT)
        return (
            For(clear, _int(0), _int((1 << _DIGIT) + 1), (Store(starts, (clear,), _int(0)),)),
            For(q, _int(0), stmt.count, count),
            For(b, _int(0), total, (self._add_before(starts, b),)),
            For(q2, _int(0), stmt.count, place),
            For(q3, _int(0), stmt.count, (Store(stmt.order, (q3,), Load(other, (q3,))),)),
        )

    def _add_before(self, starts: Memref, b: Var) -> Stmt:
        return Store(starts, (_plus(b, _int(1)),), Load(starts, (b,)), BinaryOp.ADD)

    def _sort_prefix(self, stmt: SortPrefix) -> list[Stmt]:
        """Shell's method; the gaps shrink by about 2.2."""
        array = stmt.memref
        gap, start, place = self._var("gap"), self._var("start"), self._var("place")
        value = self._var("value")
        below = _binary(BinaryOp.SUB, place, gap)
        inside = _compare(BinaryOp.GE, place, gap)
        larger = _compare(BinaryOp.GT, Load(array, (below,)), value)
        moving = Select(inside, larger, Lit(Const(False, DType.BOOL)))
        step = (Store(array, (place,), Load(array, (below,))), Assign(place, below))
        insert: tuple[Stmt, ...] = (
            Let(value, Load(array, (start,))),
            Let(place, start, mutable=True),
            While(moving, step),
            Store(array, (place,), value),
        )
        grown = _plus(_binary(BinaryOp.FLOORDIV, _times(gap, _int(11)), _int(5)), _int(1))
        shrunk = _binary(BinaryOp.FLOORDIV, _times(gap, _int(5)), _int(11))
        return [
            Let(gap, _int(1), mutable=True),
            While(_compare(BinaryOp.LT, gap, stmt.count), (Assign(gap, grown),)),
            While(
                _compare(BinaryOp.GT, gap, _int(0)),
                (For(start, gap, stmt.count, insert), Assign(gap, shrunk)),
            ),
        ]

    # ------------------------------------------------------------ assembly

    def _assemble(self, stmt: Assemble) -> list[Stmt]:
        slot = self._array("slot")
        slots = self._var("slots")
        e = self._var("e")
        made: list[Stmt] = [
            Alloc(slot, (stmt.count,)),
            For(e, _int(0), stmt.count, (Store(slot, (e,), _int(0)),)),
            Let(slots, _int(1), mutable=True),
        ]
        targets = list(stmt.targets)
        level = 0
        while level < stmt.format.num_levels:
            statements, count = self._level(stmt, level, slot, slots, targets)
            made += statements
            level += count
        (values,) = targets
        f = self._var("e")
        made.append(Alloc(values, (slots,), stmt.fill))
        put = Store(values, (Load(slot, (f,)),), Load(stmt.values, (f,)))
        return [*made, For(f, _int(0), stmt.count, (put,)), Dealloc(slot)]

    def _level(
        self, stmt: Assemble, number: int, slot: Memref, slots: Var, targets: list[Memref]
    ) -> tuple[list[Stmt], int]:
        """Build one level (or a whole array-of-structs tail); return how many levels it was."""
        level = stmt.format.levels[number].type
        crd = stmt.coordinates[number]
        match level.kind:
            case LevelKind.DENSE | LevelKind.RANGE:
                e = self._var("e")
                size = stmt.level_extents[number]
                moved = _plus(_times(Load(slot, (e,)), size), Load(crd, (e,)))
                body = (Store(slot, (e,), moved),)
                widen = Assign(slots, _times(slots, size))
                return [For(e, _int(0), stmt.count, body), widen], 1
            case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
                made = self._positions(stmt, number, slot, slots, targets.pop(0))
                more, count = self._coordinates(stmt, number, slot, slots, targets)
                return made + more, count
            case LevelKind.SINGLETON:
                return self._coordinates(stmt, number, slot, slots, targets)
            case LevelKind.STRUCTURED | LevelKind.PADDED | LevelKind.BATCH:
                raise UnsupportedError(
                    f"a result with a {level.kind.value} level on this target",
                    hint='use target="interpreter", or another result format',
                )

    def _positions(
        self, stmt: Assemble, number: int, slot: Memref, slots: Var, pos: Memref
    ) -> list[Stmt]:
        """Count the children of each parent, add up, and give each entry its slot."""
        unique = not stmt.format.levels[number].type.nonunique
        loose = pos.rank == 2
        ends = self._array(f"{pos.name}_ends") if loose else pos
        crd = stmt.coordinates[number]
        p, e, s = self._var("p"), self._var("e"), self._var("p")
        made_count, parent, last = self._var("made"), self._var("parent"), self._var("last")
        here = self._var("here")
        dtype = ends.dtype
        one = _as(_int(1), dtype)
        new = _compare(BinaryOp.NE, here, parent)
        if unique:
            other = _compare(BinaryOp.NE, Load(crd, (e,)), last)
            new = Binary(BinaryOp.OR, new, other, DType.BOOL)
        opened: tuple[Stmt, ...] = (
            Assign(parent, here),
            Assign(last, Load(crd, (e,))),
            Store(ends, (_plus(here, _int(1)),), one, BinaryOp.ADD),
            Assign(made_count, _plus(made_count, _int(1))),
        )
        visit: tuple[Stmt, ...] = (Let(here, Load(slot, (e,))),)
        visit += (If(new, opened),) if unique else opened
        visit += (Store(slot, (e,), _binary(BinaryOp.SUB, made_count, _int(1))),)
        made: list[Stmt] = [
            Alloc(ends, (_plus(slots, _int(1)),)),
            For(p, _int(0), _plus(slots, _int(1)), (Store(ends, (p,), _as(_int(0), dtype)),)),
            Let(made_count, _int(0), mutable=True),
            Let(parent, _int(-1), mutable=True),
            Let(last, _int(-1), mutable=True),
            For(e, _int(0), stmt.count, visit),
            For(s, _int(0), slots, (self._add_before(ends, s),)),
        ]
        if loose:
            made += self._pairs(pos, ends, slots)
        return [*made, Assign(slots, made_count)]

    def _pairs(self, pos: Memref, ends: Memref, slots: Var) -> list[Stmt]:
        p = self._var("p")
        low = _as(Load(ends, (p,)), pos.dtype)
        high = _as(Load(ends, (_plus(p, _int(1)),)), pos.dtype)
        body = (Store(pos, (p, _int(0)), low), Store(pos, (p, _int(1)), high))
        return [Alloc(pos, (slots, _int(2))), For(p, _int(0), slots, body), Dealloc(ends)]

    def _coordinates(
        self, stmt: Assemble, number: int, slot: Memref, slots: Var, targets: list[Memref]
    ) -> tuple[list[Stmt], int]:
        target = targets.pop(0)
        columns = stmt.format.num_levels - number if target.rank == 2 else 1
        extents: tuple[Expr, ...] = (slots,) if columns == 1 else (slots, _int(columns))
        e = self._var("e")
        body: list[Stmt] = []
        for column in range(columns):
            at = Load(slot, (e,))
            where = (at,) if target.rank == 1 else (at, _int(column))
            value = Load(stmt.coordinates[number + column], (e,))
            body.append(Store(target, where, _as(value, target.dtype)))
        return [Alloc(target, extents), For(e, _int(0), stmt.count, tuple(body))], columns
