"""What only one iteration of a fused nest uses lives in that iteration: a number, or a row.

In: a fused loop and what its function does elsewhere. Out: the loop without the arrays that pass
values from one nest of the group to another, where each iteration reads only what it has written
itself, and the names of these arrays, which are no longer to be allocated.
An array with one element an iteration becomes a variable, one with a row an array of that row, and
the values of stored entries become those of one row, or a variable where one loop over the entries
makes and uses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from operator import itemgetter

from sparsejit._dataclasses import dataclass
from sparsejit.ir.fold import zero_of
from sparsejit.ir.loop_fusion import Accesses
from sparsejit.ir.loop_uses import arrays_written
from sparsejit.ir.loop_uses import roots as roots_of
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    blocks,
    expressions,
    map_body,
    map_expr,
    memrefs,
    memrefs_written,
    result_memrefs,
)
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Push,
    Resize,
    Search,
    Stmt,
    Store,
    Var,
    View,
)
from sparsejit.sparsify_and_bufferize._index import subtract

__all__ = ["Surroundings", "Workspaces", "with_known_extents"]

_ROW = ("row",)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the loops of a function have around them, found once for all of them.

    ``allocs`` has the number of the block that an array is allocated in, and the place there,
    ``frees`` that of the block where it is freed, ``loops`` that of the block a loop stands in.
    ``uses`` counts the statements that mention an array.
    """

    allocs: dict[str, tuple[int, int, Alloc]]
    frees: dict[str, int]
    loops: dict[str, int]
    uses: Mapping[str, int]
    results: frozenset[str]
    roots: Mapping[str, str]
    names: Names

    @staticmethod
    def of(func: LoopFunc) -> Surroundings:
        """Return the surroundings of the loops of ``func``."""
        found = Surroundings(
            {},
            {},
            {},
            Counter(_mentioned(func.body)),
            frozenset(memref.name for memref in result_memrefs(func)),
            roots_of(func),
            Names.of(func),
        )
        numbers = count()
        waiting = [func.body]
        while waiting:
            body, number = waiting.pop(), next(numbers)
            for place, stmt in enumerate(body):
                match stmt:
                    case Alloc(memref):
                        found.allocs[memref.name] = number, place, stmt
                    case Dealloc(memref):
                        found.frees[memref.name] = number
                    case For(var):
                        found.loops[var.name] = number
                    case _:
                        pass
                waiting += blocks(stmt)
        return found


def _mentioned(body: Iterable[Stmt]) -> Iterator[str]:
    """Yield the arrays that statements mention, each once a statement."""
    for stmt in all_statements(body):
        yield from {memref.name for memref in memrefs(stmt)}


@dataclass(frozen=True, slots=True)
class Workspaces:
    """A fused loop after arrays were replaced: ``numbers`` became variables, ``rows`` arrays of
    one iteration. ``outside`` counts the statements elsewhere that mention an array."""

    loop: For
    around: Surroundings
    outside: Mapping[str, int]
    numbers: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    @staticmethod
    def of(loop: For, around: Surroundings) -> Workspaces:
        """Return a loop as it is in its surroundings."""
        inside = Counter(_mentioned(loop.body))
        outside = {name: around.uses[name] - number for name, number in inside.items()}
        return Workspaces(loop, around, outside)

    def with_rows(self) -> Workspaces:
        """Replace the arrays that have one element, or one row, for each iteration."""
        change = _Change.of(self)
        for alloc in change.candidates:
            if change.keys.get(alloc.memref.name) != _ROW:
                continue
            if alloc.memref.rank > 1:
                change.row(alloc)
            elif alloc.memref.dtype.compute is alloc.memref.dtype:
                change.number(alloc, None)
        return self._after(change)

    def with_entries(self) -> Workspaces:
        """Replace the values of the stored entries of each iteration."""
        change = _Change.of(self)
        for alloc in change.candidates:
            memref, key = alloc.memref, change.keys.get(alloc.memref.name)
            if key is None or len(key) < 2 or memref.rank > 1:
                continue
            places = _loops_over(change.body, memref)
            if len(places) == 1 and memref.dtype.compute is memref.dtype:
                change.number(alloc, places[0].var.name)
            elif len(key) == 2 and len({(loop.lower, loop.upper) for loop in places}) == 1:
                change.segment(alloc, places[0])
        return self._after(change)

    def _after(self, change: _Change) -> Workspaces:
        return Workspaces(
            replace(self.loop, body=change.body),
            self.around,
            self.outside,
            (*self.numbers, *change.numbers),
            (*self.rows, *change.rows),
        )


@dataclass(slots=True)
class _Change:
    """The body of a fused loop while its arrays are replaced, one after the other.

    ``candidates`` are the allocations whose arrays only this loop uses, element by element;
    ``keys`` say how all accesses to an array go by the loop's variable, where that is known.
    """

    candidates: tuple[Alloc, ...]
    keys: Mapping[str, tuple[str, ...]]
    body: tuple[Stmt, ...]
    names: Names
    numbers: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)

    @staticmethod
    def of(kept: Workspaces) -> _Change:
        """Return the loop as it is."""
        loop, roots = kept.loop, kept.around.roots
        written = frozenset(arrays_written(loop.body))
        keys = Accesses.of(loop, roots).keys_of(written, roots) or {}
        single = {name: next(iter(some)) for name, some in keys.items() if len(some) == 1}
        return _Change(tuple(_candidates(kept)), single, loop.body, kept.around.names)

    def number(self, alloc: Alloc, loop: str | None) -> None:
        """Let the element of an array that one iteration uses be a variable: of the fused loop, or
        of a loop inside."""
        memref = alloc.memref
        var = Var(memref.name, memref.dtype)
        start = Lit(alloc.fill if alloc.fill is not None else zero_of(memref.dtype))

        def statement(stmt: Stmt) -> Iterable[Stmt]:
            if isinstance(stmt, For) and stmt.var.name == loop:
                return (replace(stmt, body=_as_variable(stmt.body, memref, var, start)),)
            return (stmt,)

        if loop is None:
            self.body = _as_variable(self.body, memref, var, start)
        else:
            self.body = map_body(self.body, change_stmt=statement)
        self.numbers.append(memref.name)

    def row(self, alloc: Alloc) -> None:
        """Let the row of an array that one iteration uses be an array of its own."""
        memref = alloc.memref
        row = replace(memref, rank=memref.rank - 1)
        moved = _with_places(self.body, memref, row, lambda indices: indices[1:])
        self.body = (Alloc(row, alloc.extents[1:], alloc.fill), *moved, Dealloc(row))
        self.rows.append(memref.name)

    def segment(self, alloc: Alloc, over: For) -> None:
        """Let the values of the entries that one iteration runs over be an array of their own."""
        memref = alloc.memref
        first = self.names.var(f"{memref.name}_from")
        known, is_filled = _without_fill(self.body, over, alloc)
        moved = _with_places(known, memref, memref, lambda at: (subtract(at[0], first),))
        fill = None if is_filled else alloc.fill
        made = Alloc(memref, (subtract(over.upper, first),), fill)
        self.body = (Let(first, over.lower), made, *moved, Dealloc(memref))
        self.rows.append(memref.name)


def _as_variable(stmts: tuple[Stmt, ...], memref: Memref, var: Var, start: Lit) -> tuple[Stmt, ...]:
    """Return the body of an iteration with an element as a variable; the first statement that
    stores it as a whole introduces it, where nothing reads it before."""
    count = sum(isinstance(s, Store) and s.memref == memref for s in all_statements(stmts))

    def expression(expr: Expr) -> Expr:
        return var if isinstance(expr, Load) and expr.memref == memref else expr

    def statement(stmt: Stmt) -> Iterable[Stmt]:
        match stmt:
            case Store(target, _, value, reduce) if target == memref:
                whole = value if reduce is None else Binary(reduce, var, value, var.dtype)
                return (Assign(var, whole),)
            case _:
                return (stmt,)

    first = next(place for place, stmt in enumerate(stmts) if _mentions(stmt, memref))
    made = list(map_body(stmts, expression, statement))
    opening = stmts[first]
    is_whole = isinstance(opening, Store) and opening.memref == memref and opening.reduce is None
    if not is_whole or any(_loads(outer, memref) for outer in expressions(opening)):
        return (Let(var, start, mutable=True), *made)
    assign = made[first]
    assert isinstance(assign, Assign)
    made[first] = Let(var, assign.value, mutable=count > 1)
    return tuple(made)


def _without_fill(
    stmts: tuple[Stmt, ...], over: For, alloc: Alloc
) -> tuple[tuple[Stmt, ...], bool]:
    """Return statements that read no element before it is stored, and whether there are such.

    The first loop over the entries meets each once, so what it reads before it stores the element
    is what the array was filled with.
    """
    memref = alloc.memref
    at = next(place for place, stmt in enumerate(stmts) if _mentions(stmt, memref))
    loop = stmts[at]
    if not isinstance(loop, For) or (loop.lower, loop.upper) != (over.lower, over.upper):
        return stmts, False
    place = next((n for n, stmt in enumerate(loop.body) if _stores(stmt, memref)), None)
    store = None if place is None else loop.body[place]
    if not isinstance(store, Store) or store.reduce is not None:
        return stmts, False
    if alloc.fill is None and any(_mentions(stmt, memref) for stmt in loop.body[:place]):
        return stmts, False

    def expression(expr: Expr) -> Expr:
        is_fill = isinstance(expr, Load) and expr.memref == memref and alloc.fill is not None
        return Lit(alloc.fill) if is_fill and alloc.fill is not None else expr

    before = map_body(loop.body[:place], expression)
    value = map_expr(store.value, expression)
    body = (*before, replace(store, value=value), *loop.body[len(before) + 1 :])
    return (*stmts[:at], replace(loop, body=body), *stmts[at + 1 :]), True


def _stores(stmt: Stmt, memref: Memref) -> bool:
    inner = all_statements((stmt,))
    return any(isinstance(other, Store) and other.memref == memref for other in inner)


def _with_places(
    stmts: tuple[Stmt, ...],
    memref: Memref,
    target: Memref,
    place: Callable[[tuple[Expr, ...]], tuple[Expr, ...]],
) -> tuple[Stmt, ...]:
    """Return statements with the elements of an array at other places of another array."""

    def expression(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.memref == memref:
            return Load(target, place(expr.indices))
        return expr

    def statement(stmt: Stmt) -> Iterable[Stmt]:
        if isinstance(stmt, Store) and stmt.memref == memref:
            return (replace(stmt, memref=target, indices=place(stmt.indices)),)
        return (stmt,)

    return map_body(stmts, expression, statement)


# ---------------------------------------------------------------- which arrays


def with_known_extents(func: LoopFunc) -> LoopFunc:
    """Return ``func`` without questions for the extents of arrays that keep those they are made
    with, of parameters and numbers."""
    changing = {
        stmt.memref.name for stmt in all_statements(func.body) if isinstance(stmt, Push | Resize)
    }
    params = {param.name for param in func.params}
    known: dict[str, tuple[Expr, ...]] = {}

    def expression(expr: Expr) -> Expr:
        if isinstance(expr, DimOf) and expr.memref.name in known:
            return known[expr.memref.name][expr.axis]
        return expr

    def is_lasting(expr: Expr) -> bool:
        return all(
            not isinstance(part, Load | Search)
            and (not isinstance(part, Var) or part.name in params)
            and (not isinstance(part, DimOf) or part.memref.name in params)
            for part in all_expressions(expr)
        )

    made: list[Stmt] = []
    for stmt in func.body:
        (stmt,) = map_body((stmt,), expression)
        match stmt:
            case Alloc(memref, extents) if memref.name not in changing:
                if all(map(is_lasting, extents)):
                    known[memref.name] = extents
            case _:
                pass
        made.append(stmt)
    return replace(func, body=tuple(made))


def _candidates(kept: Workspaces) -> Iterator[Alloc]:
    """Yield the allocations next to a loop whose arrays only that loop uses, by element."""
    around, gone = kept.around, {*kept.numbers, *kept.rows}
    block = around.loops[kept.loop.var.name]
    within: dict[str, list[Stmt]] = {}
    for stmt in all_statements(kept.loop.body):
        for name in {memref.name for memref in memrefs(stmt)}:
            within.setdefault(name, []).append(stmt)
    found: list[tuple[int, Alloc]] = []
    for name, users in within.items():
        number, place, alloc = around.allocs.get(name, (-1, -1, None))
        if alloc is None or number != block or name in gone or name in around.results:
            continue
        if around.frees.get(name) != block or kept.outside.get(name) != 1:
            continue
        if all(_by_element(stmt, name) for stmt in users):
            found.append((place, alloc))
    yield from (alloc for _, alloc in sorted(found, key=itemgetter(0)))


def _by_element(stmt: Stmt, name: str) -> bool:
    """Whether a statement uses an array by loads and stores only."""
    parts = [part for outer in expressions(stmt) for part in all_expressions(outer)]
    if any(isinstance(part, DimOf) and part.memref.name == name for part in parts):
        return False
    if any(isinstance(part, Search) and part.coordinates.name == name for part in parts):
        return False
    if isinstance(stmt, Store):
        return True
    others = {memref.name for memref in memrefs_written(stmt)}
    loaded = any(isinstance(part, Load) and part.memref.name == name for part in parts)
    return loaded and name not in others and not isinstance(stmt, Copy | View | Alloc | Dealloc)


def _loops_over(body: Sequence[Stmt], memref: Memref) -> list[For]:
    """Return the loops whose variables are the first index of the accesses to an array."""
    used = {
        index.name
        for stmt in all_statements(body)
        for index in _first_indices(stmt, memref)
        if isinstance(index, Var)
    }
    return [
        stmt for stmt in all_statements(body) if isinstance(stmt, For) and stmt.var.name in used
    ]


def _first_indices(stmt: Stmt, memref: Memref) -> Iterator[Expr]:
    if isinstance(stmt, Store) and stmt.memref == memref:
        yield stmt.indices[0]
    for outer in expressions(stmt):
        for part in all_expressions(outer):
            if isinstance(part, Load) and part.memref == memref:
                yield part.indices[0]


def _mentions(stmt: Stmt, memref: Memref) -> bool:
    return any(other == memref for inner in all_statements((stmt,)) for other in memrefs(inner))


def _loads(expr: Expr, memref: Memref) -> bool:
    parts = all_expressions(expr)
    return any(isinstance(part, Load) and part.memref == memref for part in parts)
