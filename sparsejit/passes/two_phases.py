"""Loop pass: sparse results are assembled in two phases, count and fill, which run in parallel.

In: a loop function. Out: the same function in which a loop that appends to arrays, ::

    for i in 0 .. n {
      while filled <= i { pos[filled] = count; filled = filled + 1 }
      ... push crd[count] = j; push vals[count] = x; count = count + 1 ...
    }

has become a loop that counts what each iteration appends, a scan of these numbers, and a loop in
which each iteration writes to the place that is known by now. The first loop keeps of the original
what decides how much is appended, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    free_vars,
    map_body,
    memrefs,
    memrefs_defined,
)
from sparsejit.ir.loops import (
    Alloc,
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
    Push,
    Scan,
    ScanOp,
    SortPrefix,
    Stmt,
    Store,
    Trim,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.passes._counting_slice import counting_slice, renamed

__all__ = ["assemble_in_two_phases"]

_ZERO, _ONE = Lit(Const(0, INDEX)), Lit(Const(1, INDEX))


def assemble_in_two_phases(func: LoopFunc, *, any_start: bool = False) -> LoopFunc:
    """Return ``func`` with loops that append split into counting and filling.

    With ``any_start`` also those that do not start from 0, such as one over stored coordinates.

    >>> assemble_in_two_phases(LoopFunc("f", (), (), ())).body
    ()
    """
    body, facts, taken = list(func.body), list(func.facts), _names(func)
    if any_start:
        body = _from_zero(body, taken)
    for stmt in tuple(body):
        appending = _appending(body, stmt) if isinstance(stmt, For) else None
        if appending is not None:
            body = _split(body, appending, taken)
            text = "what it appends is counted first, then filled in"
            facts.append(Fact(FactKind.STORAGE, appending.loop.var.name, text))
    return replace(func, body=tuple(body), facts=tuple(facts))


def _from_zero(body: Sequence[Stmt], taken: set[str]) -> list[Stmt]:
    """Count the passes of loops that append from 0."""
    made: list[Stmt] = []
    for stmt in body:
        pushes = isinstance(stmt, For) and any(isinstance(s, Push) for s in all_statements((stmt,)))
        if not isinstance(stmt, For) or not pushes or stmt.lower == _ZERO or stmt.parallel:
            made.append(stmt)
            continue
        names = (_fresh(taken, f"{stmt.var.name}_{what}") for what in ("start", "count", "pass"))
        start, count, number = (Var(name, INDEX) for name in names)
        passes = Binary(BinaryOp.SUB, stmt.upper, start, INDEX)
        again = Let(stmt.var, Binary(BinaryOp.ADD, start, number, INDEX))
        loop = replace(stmt, var=number, lower=_ZERO, upper=count, body=(again, *stmt.body))
        made += [
            Let(start, stmt.lower),
            Let(count, Binary(BinaryOp.MAX, passes, _ZERO, INDEX)),
            loop,
        ]
    return made


@dataclass(frozen=True, slots=True)
class _Appending:
    """A loop that appends: ``count`` says where, ``arrays`` are appended to.

    ``catch_up`` writes positions at the start of each iteration, ``filled`` says how many there
    are; None where the loop has none.
    """

    loop: For
    count: Var
    arrays: tuple[Memref, ...]
    catch_up: While | None
    filled: Var | None


def _appending(body: Sequence[Stmt], loop: For) -> _Appending | None:
    """Describe a loop of a function, None where it appends nothing or in another way."""
    own = {what.name for what in loop.private}
    inside = list(all_statements(loop.body))
    pushes = [s for s in inside if isinstance(s, Push) and s.memref.name not in own]
    counts = {stmt.count for stmt in pushes}
    if len(counts) != 1 or any(memrefs_defined(stmt) for stmt in inside):
        return None
    (count,) = counts
    if not isinstance(count, Var) or loop.lower != _ZERO or loop.parallel:
        return None
    catch_up = _catch_up(loop, count)
    filled = catch_up.body[1].var if catch_up and isinstance(catch_up.body[1], Assign) else None
    arrays = tuple(dict.fromkeys(stmt.memref for stmt in pushes))
    found = _Appending(loop, count, arrays, catch_up, filled)
    fits = _shares_nothing_else(found) and _starts_empty(body, found) and _counts_fast(found)
    return found if fits else None


def _catch_up(loop: For, count: Var) -> While | None:
    """The statement that writes the positions up to the loop's variable, if it comes first."""
    match loop.body[:1]:
        case (While(Binary(BinaryOp.LE, Var() as filled, at, _), (Store(), Assign())) as stmt,):
            store, advance = stmt.body
            assert isinstance(store, Store)
            steps = advance == Assign(filled, Binary(BinaryOp.ADD, filled, _ONE, INDEX))
            value = store.value.operand if isinstance(store.value, Cast) else store.value
            plain = store.indices == (filled,) and store.reduce is None and value == count
            return stmt if at == loop.var and steps and plain else None
        case _:
            return None


def _shares_nothing_else(found: _Appending) -> bool:
    """Whether iterations share the count, the arrays and private things only."""
    loop, count = found.loop, found.count
    rest = loop.body[1:] if found.catch_up else loop.body
    own = {loop.var.name, count.name, *(what.name for what in loop.private)}
    own |= {stmt.var.name for stmt in all_statements(rest) if isinstance(stmt, Let | For)}
    appended = {memref.name for memref in found.arrays}
    return all(_is_own(stmt, own, appended, count) for stmt in all_statements(rest))


def _is_own(stmt: Stmt, own: set[str], appended: set[str], count: Var) -> bool:
    """Whether a statement changes only what its iteration has, or appends."""
    for outer in expressions(stmt):
        if _reads(outer, appended) or (_uses(outer, count) and not _may_use(stmt, count)):
            return False
    match stmt:
        case Assign(var, value):
            step = Binary(BinaryOp.ADD, count, _ONE, INDEX)
            return var.name in own and (var != count or value == step)
        case Store(memref) | SortPrefix(memref):
            return memref.name in own
        case Push(memref):
            return memref.name in own | appended
        case Scan() | Trim() | Dealloc():
            return False
        case _:
            return True


def _counts_fast(found: _Appending) -> bool:
    """Whether counting walks no segments anew for each coordinate, as long as filling does."""
    sliced = counting_slice(found.loop.body, found.count, found.arrays)
    inner = [stmt for stmt in all_statements(sliced) if isinstance(stmt, For)]
    return not any(isinstance(s, While) for loop in inner for s in all_statements(loop.body))


def _may_use(stmt: Stmt, count: Var) -> bool:
    """Whether a statement appends, or advances the count."""
    return (isinstance(stmt, Push) and stmt.count == count) or (
        isinstance(stmt, Assign) and stmt.var == count
    )


def _uses(expr: Expr, var: Var) -> bool:
    return any(part == var for part in all_expressions(expr))


def _reads(expr: Expr, names: set[str]) -> bool:
    return any(
        isinstance(part, Load | DimOf) and part.memref.name in names
        for part in all_expressions(expr)
    )


def _starts_empty(body: Sequence[Stmt], found: _Appending) -> bool:
    """Whether count and arrays are empty before the loop, and only cut to length behind it."""
    place = body.index(found.loop)
    appended = {memref.name for memref in found.arrays}
    empty: set[str] = set()
    for stmt in body[:place]:
        match stmt:
            case Alloc(memref, (extent,)) if memref.name in appended and extent == _ZERO:
                empty.add(memref.name)
            case Let(var, value, True) if var in (found.count, found.filled) and value == _ZERO:
                empty.add(var.name)
            case _ if appended & {memref.name for memref in memrefs(stmt)}:
                return False
            case Assign(var) if var in (found.count, found.filled):
                return False
            case For() | While() | If() if _touches(stmt, found, appended):
                return False
            case _:
                pass
    wanted = appended | {var.name for var in (found.count, found.filled) if var is not None}
    return empty == wanted and _ends_whole(body, body[place:], found)


def _ends_whole(body: Sequence[Stmt], rest: Sequence[Stmt], found: _Appending) -> bool:
    """Whether nobody else appends, and the arrays are cut to what was counted."""
    appended = {memref.name for memref in found.arrays}
    inside = {id(stmt) for stmt in all_statements((found.loop,))}
    for stmt in all_statements(body):
        match stmt:
            case Trim(memref, length) if memref.name in appended:
                if length != found.count or stmt not in rest:
                    return False
            case Push(memref) if memref.name in appended and id(stmt) not in inside:
                return False
            case _:
                pass
    return True


def _touches(loop: For | While | If, found: _Appending, appended: set[str]) -> bool:
    for stmt in all_statements((loop,)):
        if isinstance(stmt, Assign) and stmt.var in (found.count, found.filled):
            return True
        if appended & {memref.name for memref in memrefs(stmt)}:
            return True
    return False


# ---------------------------------------------------------------- the two loops


def _split(body: Sequence[Stmt], found: _Appending, taken: set[str]) -> list[Stmt]:
    """Return a function's body with one loop split."""
    appended = {memref.name for memref in found.arrays}
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() if stmt is found.loop:
                made += _phases(found, taken)
            case Alloc(memref) | Trim(memref) if memref.name in appended:
                pass
            case _:
                made.append(stmt)
    return made


def _phases(found: _Appending, taken: set[str]) -> Iterator[Stmt]:
    loop, count = found.loop, found.count
    counts = Memref(_fresh(taken, f"{count.name}_before"), INDEX, 1)
    is_extent = isinstance(loop.upper, Var)
    upper = loop.upper if is_extent else Binary(BinaryOp.MAX, loop.upper, _ZERO, INDEX)
    yield Alloc(counts, (Binary(BinaryOp.ADD, upper, _ONE, INDEX),))
    yield Store(counts, (_ZERO,), _ZERO)
    yield _counting(found, counts, taken)
    yield Scan(counts, ScanOp.SUM)
    last = Binary(BinaryOp.SUB, DimOf(counts, 0), _ONE, INDEX)
    yield Assign(count, Load(counts, (last,)))
    yield from (Alloc(memref, (count,)) for memref in found.arrays)
    yield _filling(found, counts, taken)
    if found.filled is not None:
        yield Assign(found.filled, upper)
    yield Dealloc(counts)


def _counting(found: _Appending, counts: Memref, taken: set[str]) -> For:
    """The loop that counts, under names of its own."""
    loop, own = found.loop, Var(_fresh(taken, found.count.name), INDEX)
    rest = loop.body[1:] if found.catch_up else loop.body
    sliced = counting_slice(rest, found.count, found.arrays)
    inside = [loop.var, *(s.var for s in all_statements(sliced) if isinstance(s, Let | For))]
    table = {var.name: Var(_fresh(taken, var.name), var.dtype) for var in inside}
    table[found.count.name] = own
    var = table[loop.var.name]
    after = Binary(BinaryOp.ADD, var, _ONE, INDEX)
    body = (
        Let(own, _ZERO, mutable=True),
        *renamed(sliced, table),
        Store(counts, (after,), own),
    )
    used = {what.name for what in free_vars(body)} | {
        memref.name for stmt in all_statements(body) for memref in memrefs(stmt)
    }
    private = tuple(what for what in loop.private if what.name in used)
    return For(var, loop.lower, loop.upper, body, parallel=True, private=private)


def _filling(found: _Appending, counts: Memref, taken: set[str]) -> For:
    loop, own = found.loop, Var(_fresh(taken, found.count.name), INDEX)
    appended = {memref.name for memref in found.arrays}
    body: list[Stmt] = [Let(own, Load(counts, (loop.var,)), mutable=True)]
    rest = loop.body
    if found.catch_up is not None:
        store = found.catch_up.body[0]
        assert isinstance(store, Store)
        body.append(replace(store, indices=(loop.var,)))
        rest = loop.body[1:]
    made = renamed((*body, *_stored(rest, appended)), {found.count.name: own})
    return replace(loop, body=made, parallel=True)


def _stored(body: Sequence[Stmt], appended: set[str]) -> tuple[Stmt, ...]:
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
