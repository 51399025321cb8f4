"""Loops that append to arrays: which they are, and what they share between iterations.

In: a loop of a function. Out: its counts (one a level), the arrays that are appended to, each with
the length that it has in the end, and where positions catch up with a parent. None where iterations
share more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_uses import variables
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
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
    Memref,
    Push,
    Resize,
    Scan,
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.passes._catch_ups import CatchUp, catch_ups_of
from sparsejit.passes._counting_slice import counting_slice
from sparsejit.passes._index_terms import is_at_least

__all__ = ["Appending", "appending", "without_catch_ups"]

_ZERO, _ONE = Lit(Const(0, INDEX)), Lit(Const(1, INDEX))


@dataclass(frozen=True, slots=True)
class Appending:
    """A loop that appends: ``counts`` say where, ``arrays`` are appended to, with their lengths.

    ``blocks`` are the counts of blocks, which are written before it is known whether they stay.
    """

    loop: For
    counts: tuple[Var, ...]
    arrays: dict[str, tuple[Memref, Expr]]
    catch_ups: tuple[CatchUp, ...]
    blocks: tuple[Var, ...]

    @property
    def appended(self) -> list[Memref]:
        """The arrays that are appended to."""
        return [memref for memref, _ in self.arrays.values()]


def without_catch_ups(found: Appending) -> tuple[Stmt, ...]:
    """Return the loop's body without what catches up with positions."""
    statements = [known.stmt for known in found.catch_ups]
    return map_body(found.loop.body, change_stmt=lambda s: () if s in statements else (s,))


def appending(body: Sequence[Stmt], loop: For) -> Appending | None:
    """Describe a loop of a function, None where it appends nothing or in another way."""
    own = {what.name for what in loop.private}
    inside = list(all_statements(loop.body))
    if loop.parallel or any(memrefs_defined(stmt) for stmt in inside):
        return None
    catch_ups = tuple(catch_ups_of(inside))
    filled = {known.filled.name for known in catch_ups}
    introduced = {stmt.var.name for stmt in inside if isinstance(stmt, Let | For)} | own
    counts = tuple(
        dict.fromkeys(
            stmt.var
            for stmt in inside
            if isinstance(stmt, Assign) and stmt.var.name not in filled | introduced
        )
    )
    arrays = _appended(body, loop, counts, own, catch_ups)
    if not arrays or not _is_known(loop.lower, inside) or not _is_known(loop.upper, inside):
        return None
    blocks = tuple(count for count in counts if _has_blocks(inside, arrays, count))
    found = Appending(loop, counts, arrays, catch_ups, blocks)
    checks = (
        _catches_up_with_counts,
        _appends_in_place,
        _shares_nothing_else,
        _counts_fast,
    )
    return found if all(check(found) for check in checks) and _is_whole(body, found) else None


def _is_known(bound: Expr, inside: Sequence[Stmt]) -> bool:
    """Whether a bound has one value throughout the loop."""
    changed = {stmt.var.name for stmt in inside if isinstance(stmt, Assign)}
    written = {memref.name for stmt in inside for memref in _written(stmt)}
    loaded = {p.memref.name for p in all_expressions(bound) if isinstance(p, Load | DimOf)}
    return not (changed & variables(bound).keys() or written & loaded)


def _written(stmt: Stmt) -> tuple[Memref, ...]:
    return (stmt.memref,) if isinstance(stmt, Store | Push | SortPrefix) else ()


def _appended(
    body: Sequence[Stmt],
    loop: For,
    counts: Sequence[Var],
    own: set[str],
    catch_ups: Sequence[CatchUp],
) -> dict[str, tuple[Memref, Expr]]:
    """Return the arrays that grow, and how long they are in the end."""
    names = {count.name for count in counts}
    behind = body[body.index(loop) + 1 :]
    found = {
        stmt.memref.name: (stmt.memref, stmt.count)
        for stmt in behind
        if isinstance(stmt, Resize) and names & variables(stmt.count).keys()
    }
    lengths: dict[str, tuple[Memref, Expr]] = {}
    positions = {known.positions.name for known in catch_ups}
    for stmt in all_statements(loop.body):
        match stmt:
            case Push(memref, count) if memref.name not in own:
                if memref.name in found:
                    lengths[memref.name] = found[memref.name]
                elif isinstance(count, Var) and memref.name not in positions:
                    lengths[memref.name] = memref, count
                else:
                    return {}
            case Store(memref) if memref.name in found:
                lengths[memref.name] = found[memref.name]
            case _:
                pass
    return lengths


def _has_blocks(inside: Iterable[Stmt], arrays: dict[str, tuple[Memref, Expr]], count: Var) -> bool:
    """Whether several elements of an array are written for one step of a count."""
    return any(
        count.name in variables(at) and at != count
        for stmt in inside
        for memref, at in _places(stmt)
        if memref.name in arrays
    )


def _places(stmt: Stmt) -> Iterator[tuple[Memref, Expr]]:
    match stmt:
        case Push(memref, at) | Store(memref, (at,)):
            yield memref, at
        case _:
            pass


def _appends_in_place(found: Appending) -> bool:
    """Whether elements go to the end of their array: to the count, or to a block there."""
    inside = list(all_statements(found.loop.body))
    caught = {id(inner) for known in found.catch_ups for inner in known.stmt.body}
    steps = {stmt.var: (stmt.lower, stmt.upper) for stmt in inside if isinstance(stmt, For)}
    blocks: set[str] = set()
    written: set[str] = set()
    for stmt in inside:
        for memref, at in _places(stmt) if id(stmt) not in caught else ():
            if memref.name not in found.arrays:
                continue
            _, length = found.arrays[memref.name]
            match at:
                case _ if at == length and at in found.counts:
                    pass
                case Binary(BinaryOp.ADD, Binary(BinaryOp.MUL, _, size), Var() as step) if (
                    at.lhs == length and steps.get(step) == (_ZERO, size)
                ):
                    blocks.add(memref.name)
                    if not _is_known(size, inside):
                        return False
                case _ if isinstance(stmt, Store) and is_at_least(at, length):
                    written.add(memref.name)  # the block is made before, and not left
                case _:
                    return False
    return written <= blocks


def _catches_up_with_counts(found: Appending) -> bool:
    """Whether positions are those of the loop's variable, or of a count, or of what is below."""
    inside = list(all_statements(found.loop.body))
    for known in found.catch_ups:
        value = known.value.operand if isinstance(known.value, Cast) else known.value
        if value not in found.counts or not _is_known(known.each, inside):
            return False
        of_loop = known.base == found.loop.var and found.loop.lower == _ZERO
        if not known.is_spread:  # each iteration begins with its only one
            of_loop = of_loop and found.loop.body[0] == known.stmt
        grows = known.positions.name in found.arrays
        if of_loop == grows or not (of_loop or known.base in found.counts):
            return False
    kinds = {(k.filled, k.positions, k.value, k.base, k.each) for k in found.catch_ups}
    return len(kinds) == len({known.filled for known in found.catch_ups})


def _shares_nothing_else(found: Appending) -> bool:
    """Whether iterations share the counts, the arrays and private things only."""
    loop = found.loop
    inside = list(all_statements(loop.body))
    own = {loop.var.name, *(what.name for what in loop.private)}
    own |= {stmt.var.name for stmt in inside if isinstance(stmt, Let | For)}
    catching = {id(inner) for known in found.catch_ups for inner in all_statements((known.stmt,))}
    marks = {
        stmt.var.name for stmt in inside if isinstance(stmt, Let) and stmt.value in found.counts
    }
    return all(_is_own(stmt, own, found, marks) for stmt in inside if id(stmt) not in catching)


def _is_own(stmt: Stmt, own: set[str], found: Appending, marks: set[str]) -> bool:
    """Whether a statement changes only what its iteration has, or appends.

    ``marks`` keep what a count was.
    """
    counts = {count.name for count in found.counts}
    for outer in expressions(stmt):
        if _reads(outer, found.arrays):
            return False
        if (counts | marks) & variables(outer).keys() and not _may_use(stmt, outer, found, marks):
            return False
    match stmt:
        case Assign(var, value):
            step = Binary(BinaryOp.ADD, var, _ONE, INDEX)
            counts_up = var in found.counts and value == step
            return var.name in own - marks or counts_up or _takes_back(stmt, found)
        case Let(var, _, mutable):
            return not (mutable and var.name in marks)
        case Store(memref) | SortPrefix(memref):
            return memref.name in own or memref.name in found.arrays
        case Push(memref):
            return memref.name in own or memref.name in found.arrays
        case Scan() | Resize() | Dealloc():
            return False
        case _:
            return True


def _takes_back(stmt: Assign, found: Appending) -> bool:
    """Whether positions of a parent that is not kept are to be set once more."""
    for known in found.catch_ups:
        match stmt:
            case Assign(var, Binary(BinaryOp.MIN, lhs, least, _)) if (
                known.is_spread and var == lhs == known.filled
            ):
                return is_at_least(least, known.first_of(known.base))
            case _:
                pass
    return False


def _may_use(stmt: Stmt, outer: Expr, found: Appending, marks: set[str]) -> bool:
    """Whether a statement uses a count to append, to advance it, or to ask whether it grew."""
    match stmt:
        case Push(memref, at) | Store(memref, (at,)):
            return memref.name in found.arrays and outer == at
        case Assign(var):
            return var in found.counts or _takes_back(stmt, found)
        case Let(var):
            return var.name in marks
        case If(Binary(BinaryOp.LT, Var() as before, Var() as count)):
            return before.name in marks and count in found.counts
        case _:
            return False


def _reads(expr: Expr, names: Iterable[str]) -> bool:
    return any(
        isinstance(part, Load | DimOf) and part.memref.name in names
        for part in all_expressions(expr)
    )


def _counts_fast(found: Appending) -> bool:
    """Whether counting walks no segments anew for each coordinate, as long as filling does."""
    sliced = counting_slice(without_catch_ups(found), found.counts, found.appended)
    return not any(_walks_anew(stmt) for stmt in all_statements(sliced) if isinstance(stmt, For))


def _walks_anew(loop: For) -> bool:
    """Whether a walk inside of a loop begins where it did the time before."""
    own = {loop.var.name}
    starts: dict[str, bool] = {}
    for stmt in all_statements(loop.body):
        match stmt:
            case Let(var, value, mutable):
                follows = bool(variables(value).keys() & own)
                if follows:
                    own.add(var.name)
                if mutable:
                    starts[var.name] = follows
            case For(var, lower, upper):
                if (variables(lower).keys() | variables(upper).keys()) & own:
                    own.add(var.name)
            case While(condition):
                if not all(starts.get(name, True) for name in variables(condition)):
                    return True
            case _:
                pass
    return False


def _is_whole(body: Sequence[Stmt], found: Appending) -> bool:
    """Whether counts and arrays are empty before the loop, and only cut to length behind it."""
    wanted = {var.name for var in found.counts} | {known.filled.name for known in found.catch_ups}
    place = body.index(found.loop)
    empty: set[str] = set()
    for stmt in body[:place]:
        match stmt:
            case Alloc(memref) if memref.name in found.arrays:
                empty.add(memref.name)
            case Let(var, value, True) if var.name in wanted and value == _ZERO:
                empty.add(var.name)
            case _ if _touches(stmt, found.arrays, wanted):
                return False
            case _:
                pass
    if empty != wanted | found.arrays.keys():
        return False
    caught = {id(stmt) for known in catch_ups_of(body[place + 1 :]) for stmt in (known.stmt,)}
    return all(
        isinstance(stmt, Resize)
        or id(stmt) in caught
        or not any(
            isinstance(inner, Push | Resize) and inner.memref.name in found.arrays
            for inner in all_statements((stmt,))
        )
        for stmt in body[place + 1 :]
    )


def _touches(stmt: Stmt, arrays: Iterable[str], wanted: set[str]) -> bool:
    names = set(arrays)
    return any(
        (isinstance(inner, Assign) and inner.var.name in wanted)
        or names & {memref.name for memref in memrefs(inner)}
        for inner in all_statements((stmt,))
    )
