"""Loop fusion: neighboring parallel loops over one range become one loop.

In: a loop function. Out: the same function in which a parallel loop that only uses, of what another
one before it writes, what the same pass has written, goes into that loop. So rows are filled, added
up and used again while they are in the cache.

Two passes are known not to meet when all their accesses to an array go by the loop's variable: as
the first index, or as the segment ``pos[i] .. pos[i + 1]`` that an inner loop runs over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    map_body,
    memrefs,
    memrefs_written,
)
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Cast,
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
    Search,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["Accesses", "append_loop", "fuse_loops", "view_roots"]

_Key = tuple[str, ...]
"""How an access goes by the loop's variable: ``("row",)``, or the segments on the way."""


def fuse_loops(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with loops fused where that is right."""
    return replace(func, body=_fused(func.body, view_roots(func)))


def view_roots(func: LoopFunc) -> dict[str, str]:
    """Return, of each view, the allocation or parameter whose memory it shows."""
    roots: dict[str, str] = {}
    for stmt in all_statements(func.body):
        if isinstance(stmt, View):
            roots[stmt.memref.name] = roots.get(stmt.source.name, stmt.source.name)
    return roots


def _fused(body: Sequence[Stmt], roots: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Fuse in one block: each loop goes into the last one before it, if it may."""
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For():
                stmt = replace(stmt, body=_fused(stmt.body, roots))
                append_loop(made, stmt, roots)
            case While():
                made.append(replace(stmt, body=_fused(stmt.body, roots)))
            case If():
                then, orelse = _fused(stmt.then, roots), _fused(stmt.orelse, roots)
                made.append(replace(stmt, then=then, orelse=orelse))
            case _:
                made.append(stmt)
    return tuple(made)


def append_loop(made: list[Stmt], loop: For, roots: Mapping[str, str]) -> str | None:
    """Append a loop to a block, or put it into the last loop of the block, if it may.

    Returns the variable of the loop that it was put into, else None. ``roots`` are those of views.
    """
    for place in range(len(made) - 1, -1, -1):
        stmt = made[place]
        if isinstance(stmt, For):
            between = made[place + 1 :]
            split = _split(stmt, between, loop, roots)
            if split is None or not _may_fuse(stmt, loop, roots):
                break
            before, after = split
            renamed = _renamed(loop.body, loop.var, stmt.var)
            made[place:] = [*before, replace(stmt, body=(*stmt.body, *renamed)), *after]
            return stmt.var.name
        if not isinstance(stmt, Alloc | Copy | Let | Dealloc):
            break
    made.append(loop)
    return None


def _renamed(body: Sequence[Stmt], old: Var, new: Var) -> tuple[Stmt, ...]:
    return map_body(body, lambda expr: new if expr == old else expr)


def _split(
    first: For, between: Sequence[Stmt], second: For, roots: Mapping[str, str]
) -> tuple[list[Stmt], list[Stmt]] | None:
    """Return what of ``between`` may go before the first loop and behind the second one."""
    written = {_root(memref, roots) for memref in _written(first)}
    touched = {_root(memref, roots) for memref in _touched((first,))}
    wanted = {_root(memref, roots) for memref in _touched((second,))}
    before: list[Stmt] = []
    after: list[Stmt] = []
    for stmt in between:
        match stmt:
            case Dealloc(memref):
                if _root(memref, roots) in wanted:
                    return None
                after.append(stmt)
            case Alloc() | Copy() | Let():
                reads = {_root(memref, roots) for memref in _elements_read(stmt)}
                makes = {_root(memref, roots) for memref in memrefs_written(stmt)}
                if (reads & written) or (makes & touched) or _is_mutable(stmt):
                    return None
                before.append(stmt)
            case _:
                return None
    freed = {stmt.memref.name for stmt in after if isinstance(stmt, Dealloc)}
    if any(memref.name in freed for memref in _touched(before)):
        return None
    return before, after


def _is_mutable(stmt: Stmt) -> bool:
    return isinstance(stmt, Let) and stmt.mutable


def _root(memref: Memref, roots: Mapping[str, str]) -> str:
    return roots.get(memref.name, memref.name)


def _elements_read(stmt: Stmt) -> Iterator[Memref]:
    """The arrays that a statement without blocks reads elements of."""
    if isinstance(stmt, Copy):
        yield stmt.source
    for outer in expressions(stmt):
        for part in all_expressions(outer):
            match part:
                case Load(memref, _):
                    yield memref
                case Search(coordinates):
                    yield coordinates
                case _:
                    pass


def _written(loop: For) -> Iterator[Memref]:
    for stmt in all_statements(loop.body):
        yield from memrefs_written(stmt)


def _touched(body: Iterable[Stmt]) -> Iterator[Memref]:
    for stmt in all_statements(body):
        yield from memrefs(stmt)


def _may_fuse(first: For, second: For, roots: Mapping[str, str]) -> bool:
    """Whether the loops run over one range, and use each other's arrays pass by pass."""
    if not (first.parallel and second.parallel) or first.reductions or second.reductions:
        return False
    if (first.lower, first.upper) != (second.lower, second.upper):
        return False
    written = {_root(memref, roots) for loop in (first, second) for memref in _written(loop)}
    if _bounds_read(second, written, roots):
        return False
    found: dict[str, _Key] = {}
    for loop in (first, second):
        accesses = Accesses(loop, roots, written)
        if not accesses.are_known:
            return False
        for root, key in accesses.found:
            if found.setdefault(root, key) != key:
                return False
    return True


def _bounds_read(loop: For, written: set[str], roots: Mapping[str, str]) -> bool:
    return any(
        isinstance(part, Load | DimOf) and _root(part.memref, roots) in written
        for bound in (loop.lower, loop.upper)
        for part in all_expressions(bound)
    )


class Accesses:
    """How one loop accesses the arrays ``written``: ``found`` are pairs of array and key.

    ``are_known`` is false where an access may meet that of another pass, or where the loop does
    what cannot be said in accesses.
    """

    def __init__(self, loop: For, roots: Mapping[str, str], written: set[str]) -> None:
        self.found: list[tuple[str, _Key]] = []
        self.are_known = True
        self._roots = roots
        self._written = written
        self._keys: dict[str, _Key] = {loop.var.name: ("row",)}
        self._local: set[str] = set()
        self._variables = {
            stmt.var.name for stmt in all_statements(loop.body) if isinstance(stmt, Let | For)
        }
        for stmt in all_statements(loop.body):
            self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                self._expression(part)
        match stmt:
            case Let() | If() | While():
                pass
            case For(var, lower, upper):
                key = self._segment(lower, upper)
                if key is not None:
                    self._keys[var.name] = key
            case Assign(var):
                self.are_known &= var.name in self._variables
            case Alloc(memref):
                self._local.add(memref.name)
            case Dealloc(memref):
                self.are_known &= memref.name in self._local
            case Store(memref, indices):
                self._access(memref, indices)
            case _:
                self.are_known = False

    def _expression(self, expr: Expr) -> None:
        match expr:
            case Load(memref, indices):
                self._access(memref, indices)
            case Search(coordinates):
                self.are_known &= self._root(coordinates) not in self._written
            case _:
                pass

    def _root(self, memref: Memref) -> str:
        return self._roots.get(memref.name, memref.name)

    def _access(self, memref: Memref, indices: Sequence[Expr]) -> None:
        root = self._root(memref)
        if root not in self._written or memref.name in self._local:
            return
        key = None
        if indices and isinstance(indices[0], Var):
            key = self._keys.get(indices[0].name)
        if key is None or root != memref.name:
            self.are_known = False
            return
        self.found.append((root, key))

    def _segment(self, lower: Expr, upper: Expr) -> _Key | None:
        """The key of a loop over ``pos[i] .. pos[i + 1]``, where ``i`` has one."""
        match _plain(lower), _plain(upper):
            case Load(low, (Var(name, _) as at,)), Load(high, (Binary(BinaryOp.ADD, by, step, _),)):
                is_next = by == at and isinstance(step, Lit) and step.const.value == 1
                is_fixed = low == high and self._root(low) not in self._written
                if is_next and is_fixed and name in self._keys:
                    return (*self._keys[name], low.name)
            case _:
                pass
        return None


def _plain(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) else expr
