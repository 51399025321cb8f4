"""Loops inside of a fused nest that run over the same entries become one.

In: a fused loop. Out: the same with neighboring loops of its body joined, where each pass of the
later one only needs, of what the earlier one makes, what the same pass has made. Both keep the
order of their passes, so sums are added up as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    map_body,
    memrefs_written,
)
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Load,
    Search,
    Stmt,
    Store,
    Var,
    While,
)

__all__ = ["Effects", "fuse_inside", "split_between"]


def fuse_inside(loop: For, roots: Mapping[str, str]) -> tuple[For, tuple[str, ...]]:
    """Return ``loop`` with loops in its body joined, and the variables of those that were."""
    joined: list[str] = []
    made = replace(loop, body=_block(loop.body, joined, roots))
    return made, tuple(dict.fromkeys(joined))


def _block(body: Sequence[Stmt], joined: list[str], roots: Mapping[str, str]) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        if not (isinstance(stmt, For) and _join(made, stmt, joined, roots)):
            made.append(stmt)
    return tuple(made)


def _join(made: list[Stmt], loop: For, joined: list[str], roots: Mapping[str, str]) -> bool:
    """Put a loop into the last one before it over the same range, if it may."""
    for place in range(len(made) - 1, -1, -1):
        first = made[place]
        if not isinstance(first, For) or (first.lower, first.upper) != (loop.lower, loop.upper):
            continue
        if first.reductions or loop.reductions or (_is_nest(first) and not _is_map(loop)):
            return False
        second = _renamed(loop, first.var)
        whole = Effects.of((first,), roots), Effects.of((loop,), roots)
        bounds = {name for bound in (loop.lower, loop.upper) for name in _names(bound, roots)}
        if bounds & whole[0].writes or not _is_pass_by_pass(first.body, second, first.var, roots):
            return False
        split = split_between(made[place + 1 :], *whole, lambda stmt: Effects.of((stmt,), roots))
        if split is None:
            return False
        before, after = split
        parallel = first.parallel and loop.parallel
        both = replace(first, body=(*first.body, *second), parallel=parallel)
        made[place:] = [*before, both, *after]
        joined.append(first.var.name)
        return True
    return False


@dataclass(frozen=True, slots=True)
class Effects:
    """The names that statements read and those that they write, of variables and arrays alike.

    ``are_known`` is false for statements that do more than that.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    are_known: bool = True

    @staticmethod
    def of(body: Iterable[Stmt], roots: Mapping[str, str]) -> Effects:
        """Return the effects of statements and all inside of them; views stand for ``roots``."""
        reads: set[str] = set()
        writes: set[str] = set()
        are_known = True
        for stmt in all_statements(body):
            for outer in expressions(stmt):
                reads.update(_names(outer, roots))
            writes.update(roots.get(m.name, m.name) for m in memrefs_written(stmt))
            match stmt:
                case Let(var) | Assign(var) | For(var):
                    writes.add(var.name)
                case Store() | If():
                    pass
                case Alloc(memref) | Dealloc(memref):
                    name = roots.get(memref.name, memref.name)
                    writes.update((name, _extents(name)))
                case Copy(_, source):
                    reads.add(roots.get(source.name, source.name))
                case _:
                    are_known = False
        return Effects(frozenset(reads), frozenset(writes), are_known)

    def __or__(self, other: Effects) -> Effects:
        reads, writes = self.reads | other.reads, self.writes | other.writes
        return Effects(reads, writes, self.are_known and other.are_known)

    def meets(self, other: Effects) -> bool:
        """Whether the order of the two matters, or is not known to be free."""
        if not (self.are_known and other.are_known):
            return True
        return bool(
            self.writes & (other.reads | other.writes) or other.writes & (self.reads | self.writes)
        )


def _extents(name: str) -> str:
    """The extents of an array, which stay as they are made while its elements change."""
    return f"{name}.extents"


def _names(expr: Expr, roots: Mapping[str, str]) -> Iterator[str]:
    for part in all_expressions(expr):
        match part:
            case Var(name):
                yield name
            case Load(memref, _) | Search(memref):
                yield roots.get(memref.name, memref.name)
            case DimOf(memref, _):
                yield _extents(roots.get(memref.name, memref.name))
            case _:
                pass


def split_between(
    between: Sequence[Stmt],
    first: Effects,
    second: Effects,
    effects_of: Callable[[Stmt], Effects],
) -> tuple[list[Stmt], list[Stmt]] | None:
    """Return what may go before ``first`` and what behind ``second``; None where it may not.

    The order of what goes to one side stays.
    """
    before: list[Stmt] = []
    after: list[Stmt] = []
    waiting = Effects(frozenset(), frozenset())
    for stmt in between:
        effects = effects_of(stmt)
        if not effects.meets(waiting) and not effects.meets(first):
            before.append(stmt)
        elif not effects.meets(second):
            after.append(stmt)
            waiting |= effects
        else:
            return None
    return before, after


def _is_nest(loop: For) -> bool:
    """Whether a loop has loops inside, which should have all registers for themselves."""
    return any(isinstance(stmt, For | While) for stmt in all_statements(loop.body))


def _is_map(loop: For) -> bool:
    """Whether each pass makes elements of its own, and hands no variable to the next one."""
    return all(isinstance(stmt, Let | Store) for stmt in loop.body)


def _renamed(loop: For, var: Var) -> tuple[Stmt, ...]:
    return map_body(loop.body, lambda expr: var if expr == loop.var else expr)


def _is_pass_by_pass(
    first: Sequence[Stmt], second: Sequence[Stmt], var: Var, roots: Mapping[str, str]
) -> bool:
    """Whether two bodies over ``var`` meet in the elements of the same pass only."""
    effects = Effects.of(first, roots), Effects.of(second, roots)
    if not all(one.are_known for one in effects):
        return False
    common = effects[0].writes & (effects[1].reads | effects[1].writes)
    common |= effects[1].writes & (effects[0].reads | effects[0].writes)
    found = [place for body in (first, second) for place in _accesses(body)]
    if any(roots.get(name, name) in common and name in roots for name, _ in found):
        return False  # through a view an element has another place
    arrays = {name for name, _ in found}
    if common - arrays:  # a variable, or an array that is made or copied as a whole
        return False
    return all(indices[:1] == (var,) for name, indices in found if name in common)


def _accesses(body: Sequence[Stmt]) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """Yield the elements of arrays that statements read and write."""
    for stmt in all_statements(body):
        if isinstance(stmt, Store):
            yield stmt.memref.name, stmt.indices
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                match part:
                    case Load(memref, indices):
                        yield memref.name, indices
                    case Search(memref):
                        yield memref.name, ()
                    case _:
                        pass
