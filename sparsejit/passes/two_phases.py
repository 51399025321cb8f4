"""Loop pass: sparse results are assembled in two phases, count and fill, which run in parallel.

In: a loop function. Out: the same function in which a loop that appends to arrays, ::

    for i in 0 .. n {
      while filled <= i { pos[filled] = count; filled = filled + 1 }
      ... push crd[count] = j; push vals[count] = x; count = count + 1 ...
    }

has become a loop that counts what each iteration appends, a scan of these numbers, and a loop in
which each iteration writes to the place that is known by now. The first loop keeps of the original
what decides how much is appended, and nothing else. There may be a count for each of several
levels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_walk import all_statements, free_vars, map_body, memrefs, memrefs_defined
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
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
    Push,
    Resize,
    Scan,
    ScanOp,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.passes._appending import Appending, appending, without_catch_ups
from sparsejit.passes._catch_ups import CatchUp
from sparsejit.passes._counting_slice import counting_slice, renamed

__all__ = ["assemble_in_two_phases"]

_ZERO, _ONE = Lit(Const(0, INDEX)), Lit(Const(1, INDEX))


def assemble_in_two_phases(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with loops that append split into counting and filling.

    >>> assemble_in_two_phases(LoopFunc("f", (), (), ())).body
    ()
    """
    body, facts, taken = list(func.body), list(func.facts), _names(func)
    for stmt in func.body:
        found = appending(body, stmt) if isinstance(stmt, For) else None
        if found is not None:
            body = _split(body, found, taken)
            text = "what it appends is counted first, then filled in"
            facts.append(Fact(FactKind.STORAGE, found.loop.var.name, text))
    return replace(func, body=tuple(body), facts=tuple(facts))


def _split(body: Sequence[Stmt], found: Appending, taken: set[str]) -> list[Stmt]:
    """Return a function's body with one loop split."""
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() if stmt is found.loop:
                made += _Phases(found, taken).statements()
            case Alloc(memref) | Resize(memref) if memref.name in found.arrays:
                pass
            case While():  # positions behind the last parent
                made += _stored((stmt,), found.arrays)
            case _:
                made.append(stmt)
    return made


class _Phases:
    """The two loops in the place of one, and what stands between them."""

    def __init__(self, found: Appending, taken: set[str]) -> None:
        self._found = found
        self._taken = taken
        self._before = {
            count.name: Memref(_fresh(taken, f"{count.name}_before"), INDEX, 1)
            for count in found.counts
        }
        loop = found.loop
        self._positions = list({known.filled: known for known in found.catch_ups}.values())
        self._first, self._end = loop.lower, loop.upper
        self._bounds: list[Stmt] = []
        if loop.lower != _ZERO or not isinstance(loop.upper, Var):
            self._first = self._bound(loop.lower, "first")
            least = Binary(BinaryOp.MAX, loop.upper, self._first, INDEX)
            self._end = self._bound(least, "end")

    def _bound(self, value: Expr, base: str) -> Expr:
        if isinstance(value, Lit):
            return value
        var = Var(_fresh(self._taken, f"{self._found.loop.var.name}_{base}"), INDEX)
        self._bounds.append(Let(var, value))
        return var

    def statements(self) -> Iterator[Stmt]:
        found = self._found
        yield from self._bounds
        span = _minus(self._end, self._first)
        for before in self._before.values():
            yield Alloc(before, (_plus(span, _ONE),))
            yield Store(before, (_ZERO,), _ZERO)
        yield self._counting()
        for count in found.counts:
            before = self._before[count.name]
            yield Scan(before, ScanOp.SUM)
            last = Binary(BinaryOp.SUB, DimOf(before, 0), _ONE, INDEX)
            yield Assign(count, Load(before, (last,)))
        yield from (Alloc(memref, (length,)) for memref, length in found.arrays.values())
        yield self._filling()
        for known in self._positions:
            base = self._end if known.base == found.loop.var else known.base
            yield Assign(known.filled, known.first_of(base))
        yield from (Dealloc(before) for before in self._before.values())

    def _row(self, var: Var) -> Expr:
        return _minus(var, self._first)

    def _counting(self) -> For:
        """The loop that counts, under names of its own."""
        found, loop = self._found, self._found.loop
        sliced = counting_slice(without_catch_ups(found), found.counts, found.appended)
        inside = [loop.var, *(s.var for s in all_statements(sliced) if isinstance(s, Let | For))]
        table = {
            var.name: Var(_fresh(self._taken, var.name), var.dtype)
            for var in (*found.counts, *inside)
        }
        own = [table[count.name] for count in found.counts]
        var = table[loop.var.name]
        befores = self._before.values()
        after = _plus(self._row(var), _ONE)
        body = (
            *(Let(count, _ZERO, mutable=True) for count in own),
            *renamed(sliced, table),
            *(Store(before, (after,), count) for before, count in zip(befores, own, strict=True)),
        )
        used = {what.name for what in free_vars(body)} | {
            memref.name for stmt in all_statements(body) for memref in memrefs(stmt)
        }
        private = tuple(what for what in loop.private if what.name in used)
        return For(var, self._first, self._end, body, parallel=True, private=private)

    def _filling(self) -> For:
        found, loop = self._found, self._found.loop
        spread = [known for known in self._positions if known.is_spread]
        opened: list[Stmt] = [Let(c, self._start(c), mutable=True) for c in found.counts]
        for known in spread:
            first = known.first_of(self._start(known.base))
            opened.append(Let(known.filled, first, mutable=True))
        body = self._kept(map_body(loop.body, change_stmt=self._filled_in))
        closed = [known.up_to(self._last_of(known)) for known in spread]
        own = [*found.counts, *(known.filled for known in spread)]
        table = {var.name: Var(_fresh(self._taken, var.name), INDEX) for var in own}
        made = renamed((*opened, *_stored(body, found.arrays), *closed), table)
        return replace(loop, lower=self._first, upper=self._end, body=made, parallel=True)

    def _start(self, base: Expr) -> Expr:
        """What a count, or the loop's variable, is before an iteration."""
        assert isinstance(base, Var)
        at = self._row(self._found.loop.var)
        return base if base == self._found.loop.var else Load(self._before[base.name], (at,))

    def _stop(self, base: Expr) -> Expr:
        """What a count, or the loop's variable, is after an iteration."""
        assert isinstance(base, Var)
        after = _plus(self._row(self._found.loop.var), _ONE)
        return after if base == self._found.loop.var else Load(self._before[base.name], (after,))

    def _last_of(self, known: CatchUp) -> Expr:
        """The last parent whose positions an iteration sets."""
        return _minus(known.first_of(self._stop(known.base)), _ONE)

    def _filled_in(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """What fills in what a statement appends."""
        for known in self._found.catch_ups:
            if stmt == known.stmt:
                return (self._caught_up(known),)
        match stmt:
            case For():
                return (replace(stmt, body=self._kept(stmt.body)),)
            case While():
                rooms = self._rooms(stmt.body)
                return (replace(stmt, condition=reduce(_both, rooms, stmt.condition)),)
            case _:
                return (stmt,)

    def _caught_up(self, known: CatchUp) -> Stmt:
        if known.is_spread:
            return known.up_to(Binary(BinaryOp.MIN, known.at, self._last_of(known), INDEX))
        store = Store(known.positions, (known.at,), known.value)
        is_outer = known.at == self._found.loop.var
        return store if is_outer else If(_less(known.at, self._stop(known.at)), (store,))

    def _kept(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return reduce(lambda inner, room: (If(room, inner),), self._rooms(body), body)

    def _rooms(self, body: tuple[Stmt, ...]) -> list[Expr]:
        """A block that is not kept is written over by the next one: not behind the last."""
        return [_less(c, self._stop(c)) for c in self._found.blocks if _steps(body, c)]


def _steps(body: Sequence[Stmt], count: Var) -> bool:
    """Whether an iteration of a loop with this body advances a count, and no loop inside does."""
    for stmt in body:
        match stmt:
            case Assign(var) if var == count:
                return True
            case If() if _steps((*stmt.then, *stmt.orelse), count):
                return True
            case _:
                pass
    return False


def _both(lhs: Expr, rhs: Expr) -> Expr:
    return Binary(BinaryOp.AND, lhs, rhs, DType.BOOL)


def _plus(lhs: Expr, rhs: Expr) -> Expr:
    return Binary(BinaryOp.ADD, lhs, rhs, INDEX)


def _minus(lhs: Expr, rhs: Expr) -> Expr:
    return lhs if rhs == _ZERO else Binary(BinaryOp.SUB, lhs, rhs, INDEX)


def _less(lhs: Expr, rhs: Expr) -> Expr:
    return Binary(BinaryOp.LT, lhs, rhs, DType.BOOL)


def _stored(body: Sequence[Stmt], appended: Collection[str]) -> tuple[Stmt, ...]:
    def store(stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Push(memref, at, value) if memref.name in appended:
                return (Store(memref, (at,), value),)
            case _:
                return (stmt,)

    return map_body(body, change_stmt=store)


def _names(func: LoopFunc) -> set[str]:
    taken = {param.name for param in func.params}
    for stmt in all_statements(func.body):
        taken.update(memref.name for memref in memrefs_defined(stmt))
        if isinstance(stmt, Let | For):
            taken.add(stmt.var.name)
    return taken


def _fresh(taken: set[str], base: str) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
