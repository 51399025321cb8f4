"""Loop fusion: neighboring parallel loops over one range become one loop.

In: a loop function. Out: the same function in which a parallel loop that only uses, of what another
one before it writes, what the same pass has written, goes into that loop. So rows are filled, added
up and used again while they are in the cache.

Two passes are known not to meet when all their accesses to an array go by the loop's variable: as
the first index, or as the segment ``pos[i] .. pos[i + 1]`` that an inner loop runs over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_uses import roots
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
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["Accesses", "Fusion", "fuse_loops"]

_Key = tuple[str, ...]
"""How an access goes by the loop's variable: ``("row",)``, or the segments on the way."""


def fuse_loops(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with loops fused where that is right."""
    return replace(func, body=_fused(func.body, Fusion(roots(func))))


def _fused(body: Sequence[Stmt], fusion: Fusion) -> tuple[Stmt, ...]:
    """Fuse in one block: each loop goes into the last one before it, if it may."""
    made: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For():
                stmt = replace(stmt, body=_fused(stmt.body, fusion))
                fusion.append(made, stmt)
            case While():
                made.append(replace(stmt, body=_fused(stmt.body, fusion)))
            case If():
                then, orelse = _fused(stmt.then, fusion), _fused(stmt.orelse, fusion)
                made.append(replace(stmt, then=then, orelse=orelse))
            case _:
                made.append(stmt)
    return tuple(made)


class Fusion:
    """Puts loops into others; ``roots`` are those of views.

    What a loop accesses is found once, and put together where loops are.
    """

    def __init__(self, roots: Mapping[str, str]) -> None:
        self._roots = roots
        self._known: dict[int, tuple[For, Accesses]] = {}

    def append(self, made: list[Stmt], loop: For) -> str | None:
        """Append a loop to a block, or put it into the last loop of the block, if it may.

        Returns the variable of the loop that it was put into, else None.
        """
        for place in range(len(made) - 1, -1, -1):
            stmt = made[place]
            if isinstance(stmt, For):
                if not _have_one_range(stmt, loop):
                    break
                split = self._split(stmt, made[place + 1 :], loop)
                if split is None or not self._may_fuse(stmt, loop):
                    break
                before, after = split
                renamed = _renamed(loop.body, loop.var, stmt.var)
                both = replace(stmt, body=(*stmt.body, *renamed))
                self._known[id(both)] = both, self._of(stmt) | self._of(loop)
                made[place:] = [*before, both, *after]
                return stmt.var.name
            if not isinstance(stmt, Alloc | Copy | Let | Dealloc):
                break
        made.append(loop)
        return None

    def _of(self, loop: For) -> Accesses:
        known = self._known.get(id(loop))
        if known is None:  # the loop is kept, so that nothing else gets its identity
            known = self._known[id(loop)] = loop, Accesses.of(loop, self._roots)
        return known[1]

    def _split(
        self, first: For, between: Sequence[Stmt], second: For
    ) -> tuple[list[Stmt], list[Stmt]] | None:
        """Return what of ``between`` may go before the first loop and behind the second one."""
        roots = self._roots
        before: list[Stmt] = []
        after: list[Stmt] = []
        freed: set[str] = set()
        for stmt in between:
            match stmt:
                case Dealloc(memref):
                    if _root(memref, roots) in self._of(second).touched:
                        return None
                    after.append(stmt)
                    freed.add(memref.name)
                case Alloc() | Copy() | Let():
                    reads = {_root(memref, roots) for memref in _elements_read(stmt)}
                    makes = {_root(memref, roots) for memref in memrefs_written(stmt)}
                    whole = self._of(first)
                    if (reads & whole.written) or (makes & whole.touched) or _is_mutable(stmt):
                        return None
                    before.append(stmt)
                case _:
                    return None
        if freed and any(memref.name in freed for stmt in before for memref in memrefs(stmt)):
            return None
        return before, after

    def _may_fuse(self, first: For, second: For) -> bool:
        """Whether the loops use each other's arrays pass by pass."""
        if not (first.parallel and second.parallel) or first.reductions or second.reductions:
            return False
        one, other = self._of(first), self._of(second)
        written = one.written | other.written
        if _bounds_read(second, written, self._roots):
            return False
        found = (one.keys_of(written, self._roots), other.keys_of(written, self._roots))
        if found[0] is None or found[1] is None:
            return False
        return all(
            len(keys | found[0].get(root, keys)) == 1 for root, keys in found[1].items()
        ) and all(len(keys) == 1 for keys in found[0].values())


def _have_one_range(first: For, second: For) -> bool:
    return first.lower == second.lower and first.upper == second.upper


def _renamed(body: Sequence[Stmt], old: Var, new: Var) -> tuple[Stmt, ...]:
    return map_body(body, lambda expr: new if expr == old else expr)


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


def _bounds_read(loop: For, written: frozenset[str], roots: Mapping[str, str]) -> bool:
    return any(
        isinstance(part, Load | DimOf) and _root(part.memref, roots) in written
        for bound in (loop.lower, loop.upper)
        for part in all_expressions(bound)
    )


@dataclass(frozen=True, slots=True)
class Accesses:
    """How a loop accesses arrays, each named by the one that it is part of.

    ``written`` and ``touched`` are those of which it writes elements, or uses anything. ``keys``
    say how accesses go by the loop's variable; ``unclear`` are those with an access that may meet
    that of another pass. ``are_known`` is false where the loop does what no access says.
    """

    written: frozenset[str]
    touched: frozenset[str]
    keys: Mapping[str, frozenset[_Key]]
    unclear: frozenset[str]
    are_known: bool

    @staticmethod
    def of(loop: For, roots: Mapping[str, str]) -> Accesses:
        """Return the accesses of one loop; ``roots`` are those of views."""
        return _Reading(loop, roots).found()

    def __or__(self, other: Accesses) -> Accesses:
        """Return the accesses of both loops, put into one."""
        keys = dict(self.keys)
        for root, some in other.keys.items():
            keys[root] = keys.get(root, frozenset()) | some
        return Accesses(
            self.written | other.written,
            self.touched | other.touched,
            keys,
            self.unclear | other.unclear,
            self.are_known and other.are_known,
        )

    def keys_of(
        self, written: frozenset[str], roots: Mapping[str, str]
    ) -> Mapping[str, frozenset[_Key]] | None:
        """Return the keys of the arrays ``written``, None where one has an access without.

        A segment is one only while its positions stay as they are.
        """
        if not self.are_known or self.unclear & written:
            return None
        found = {root: keys for root, keys in self.keys.items() if root in written}
        by = {roots.get(name, name) for keys in found.values() for key in keys for name in key[1:]}
        return None if by & written else found


class _Reading:
    """Reads the accesses of one loop."""

    def __init__(self, loop: For, roots: Mapping[str, str]) -> None:
        self._roots = roots
        self._loop_keys: dict[str, _Key] = {loop.var.name: ("row",)}
        self._local: set[str] = set()
        self._keys: dict[str, set[_Key]] = {}
        self._written: set[str] = set()
        self._touched: set[str] = set()
        self._unclear: set[str] = set()
        self._are_known = True
        body = list(all_statements(loop.body))
        self._variables = {stmt.var.name for stmt in body if isinstance(stmt, Let | For)}
        self._touched.update(self._root(memref) for memref in memrefs(loop))
        for stmt in body:
            self._statement(stmt)

    def found(self) -> Accesses:
        keys = {root: frozenset(some) for root, some in self._keys.items()}
        written, touched = frozenset(self._written), frozenset(self._touched)
        return Accesses(written, touched, keys, frozenset(self._unclear), self._are_known)

    def _statement(self, stmt: Stmt) -> None:
        self._touched.update(self._root(memref) for memref in memrefs(stmt))
        self._written.update(self._root(memref) for memref in memrefs_written(stmt))
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                self._expression(part)
        match stmt:
            case Let() | If() | While():
                pass
            case For(var, lower, upper):
                key = self._segment(lower, upper)
                if key is not None:
                    self._loop_keys[var.name] = key
            case Assign(var):
                self._are_known &= var.name in self._variables
            case Alloc(memref):
                self._local.add(memref.name)
            case Dealloc(memref):
                self._are_known &= memref.name in self._local
            case Store(memref, indices):
                self._access(memref, indices)
            case _:
                self._are_known = False

    def _expression(self, expr: Expr) -> None:
        match expr:
            case Load(memref, indices):
                self._access(memref, indices)
            case Search(coordinates):
                self._unclear.add(self._root(coordinates))
            case _:
                pass

    def _root(self, memref: Memref) -> str:
        return _root(memref, self._roots)

    def _access(self, memref: Memref, indices: Sequence[Expr]) -> None:
        if memref.name in self._local:
            return
        root = self._root(memref)
        key = None
        if indices and isinstance(indices[0], Var):
            key = self._loop_keys.get(indices[0].name)
        if key is None or root != memref.name:
            self._unclear.add(root)
        else:
            self._keys.setdefault(root, set()).add(key)

    def _segment(self, lower: Expr, upper: Expr) -> _Key | None:
        """The key of a loop over ``pos[i] .. pos[i + 1]``, where ``i`` has one."""
        match _plain(lower), _plain(upper):
            case Load(low, (Var(name, _) as at,)), Load(high, (Binary(BinaryOp.ADD, by, step, _),)):
                is_next = by == at and isinstance(step, Lit) and step.const.value == 1
                if is_next and low == high and name in self._loop_keys:
                    return (*self._loop_keys[name], low.name)
            case _:
                pass
        return None


def _plain(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) else expr
