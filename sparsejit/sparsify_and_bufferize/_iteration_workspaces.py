"""What only one iteration of a fused nest uses lives in that iteration: a number, or a row.

In: a function and the variable of a fused loop. Out: the same without the arrays that pass values
from one nest of the group to another, where each iteration reads only what it has written itself.
An array with one element an iteration becomes a variable, one with a row an array of that row, and
the values of stored entries become those of one row, or a variable where one loop over the entries
makes and uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sparsejit.ir.fold import zero_of
from sparsejit.ir.loop_fusion import Accesses, view_roots
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
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Copy,
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
    Search,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize._index import subtract

__all__ = ["Workspaces", "with_known_extents"]

_ROW = ("row",)


@dataclass(frozen=True, slots=True)
class Workspaces:
    """The fused loop ``outer`` of ``func`` after arrays were replaced: ``numbers`` became
    variables, ``rows`` arrays of one iteration."""

    func: LoopFunc
    outer: str
    numbers: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    def with_rows(self) -> Workspaces:
        """Replace the arrays that have one element, or one row, for each iteration."""
        change = _Change.of(self.func, self.outer)
        for alloc in change.candidates():
            if change.keys.get(alloc.memref.name) != _ROW:
                continue
            if alloc.memref.rank > 1:
                change.row(alloc)
            elif alloc.memref.dtype.compute is alloc.memref.dtype:
                change.number(alloc, None)
        return self._after(change)

    def with_entries(self) -> Workspaces:
        """Replace the values of the stored entries of each iteration."""
        change = _Change.of(self.func, self.outer)
        for alloc in change.candidates():
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
            change.applied(),
            self.outer,
            (*self.numbers, *change.numbers),
            (*self.rows, *change.rows),
        )


@dataclass(slots=True)
class _Change:
    """The body of a fused loop while its arrays are replaced, one after the other.

    ``keys`` say how all accesses to an array go by the loop's variable, where that is known.
    """

    func: LoopFunc
    loop: For
    keys: dict[str, tuple[str, ...]]
    body: tuple[Stmt, ...]
    numbers: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)

    @staticmethod
    def of(func: LoopFunc, outer: str) -> _Change:
        """Return the loop as it is."""
        block = _block_of(func.body, outer)
        loop = next(stmt for stmt in block if isinstance(stmt, For) and stmt.var.name == outer)
        written = {m.name for stmt in all_statements(loop.body) for m in memrefs_written(stmt)}
        found = Accesses(loop, view_roots(func), written)
        keys: dict[str, set[tuple[str, ...]]] = {}
        for root, key in found.found if found.are_known else ():
            keys.setdefault(root, set()).add(key)
        single = {name: next(iter(some)) for name, some in keys.items() if len(some) == 1}
        return _Change(func, loop, single, loop.body)

    def candidates(self) -> list[Alloc]:
        """Return the allocations whose arrays only this loop uses, element by element."""
        return list(_candidates(self.func, self.loop))

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
        taken = set(_all_names(self.func))
        name = f"{memref.name}_from"
        while name in taken:
            name += "_"
        first = Var(name, INDEX)
        known, is_filled = _without_fill(self.body, over, alloc)
        moved = _with_places(known, memref, memref, lambda at: (subtract(at[0], first),))
        fill = None if is_filled else alloc.fill
        made = Alloc(memref, (subtract(over.upper, first),), fill)
        self.body = (Let(first, over.lower), made, *moved, Dealloc(memref))
        self.rows.append(memref.name)

    def applied(self) -> LoopFunc:
        """Return the function with the new body, and without the old allocations."""
        gone = {*self.numbers, *self.rows}
        if not gone:
            return self.func
        loop = replace(self.loop, body=self.body)

        def walk(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
            made: list[Stmt] = []
            for stmt in stmts:
                match stmt:
                    case Alloc(memref) | Dealloc(memref) if memref.name in gone:
                        pass
                    case For(var) if var == loop.var:
                        made.append(loop)
                    case For() | While():
                        made.append(replace(stmt, body=walk(stmt.body)))
                    case If():
                        made.append(replace(stmt, then=walk(stmt.then), orelse=walk(stmt.orelse)))
                    case _:
                        made.append(stmt)
            return tuple(made)

        return replace(self.func, body=walk(self.func.body))


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


def _candidates(func: LoopFunc, loop: For) -> Iterator[Alloc]:
    """Yield the allocations next to a loop whose arrays only that loop uses, by element."""
    block = _block_of(func.body, loop.var.name)
    results = {memref.name for memref in result_memrefs(func)}
    inside = {id(stmt) for stmt in all_statements(loop.body)}
    within: dict[str, list[Stmt]] = {}
    outside: dict[str, list[Stmt]] = {}
    for stmt in all_statements(func.body):
        users = within if id(stmt) in inside else outside
        for name in {memref.name for memref in memrefs(stmt)}:
            users.setdefault(name, []).append(stmt)
    ends = {stmt.memref.name for stmt in block if isinstance(stmt, Dealloc)}
    for alloc in block:
        if not isinstance(alloc, Alloc) or alloc.memref.name in results:
            continue
        name = alloc.memref.name
        others = [stmt for stmt in outside.get(name, ()) if not isinstance(stmt, Dealloc)]
        if name not in ends or others or len(outside[name]) != 1 or name not in within:
            continue
        if all(_by_element(stmt, name) for stmt in within[name]):
            yield alloc


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


def _block_of(body: tuple[Stmt, ...], outer: str) -> tuple[Stmt, ...]:
    """Return the block that a loop stands in."""
    for stmt in body:
        if isinstance(stmt, For) and stmt.var.name == outer:
            return body
        for block in blocks(stmt):
            found = _block_of(block, outer)
            if found:
                return found
    return ()


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


def _all_names(func: LoopFunc) -> Iterator[str]:
    yield from (param.name for param in func.params)
    for stmt in all_statements(func.body):
        if isinstance(stmt, Let | For):
            yield stmt.var.name
        yield from (memref.name for memref in memrefs(stmt))
