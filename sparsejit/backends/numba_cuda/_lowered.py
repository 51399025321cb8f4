"""What a kernel does beyond its statements: totals of a whole grid, and when lanes wait.

In: a ``Launch`` and its memory. Out: ``Lowered``: the statements in front of the loop, the loop,
and ``totals``: elements that every iteration reduces into, which a thread sums up for itself first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.backends.numba_cuda._memory import Memory
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_uses import arrays_written, is_pure, loaded, variables
from sparsejit.ir.loop_walk import all_statements, expressions, map_body, memrefs_written
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import (
    Assign,
    Binary,
    Expr,
    For,
    If,
    Let,
    Lit,
    Memref,
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import introduced

__all__ = ["Lowered", "Total", "lowered"]


@dataclass(frozen=True, slots=True)
class Total:
    """``memref[indices]`` is reduced by ``store``, into which ``var`` goes in the end.

    ``op`` is how ``var`` is summed up before.
    """

    var: Var
    memref: Memref
    indices: tuple[Expr, ...]
    op: BinaryOp
    store: BinaryOp


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel as it is written. ``loop`` is None in a kernel of one thread."""

    schedule: Schedule
    before: tuple[Stmt, ...]
    loop: For | None
    totals: tuple[Total, ...]
    atomics: frozenset[str]
    memory: Memory
    shared: frozenset[str]

    def must_wait(self, stmt: For | Store) -> bool:
        """Whether lanes wait around a statement: other statements use what it stores."""
        return any(self._root(name) in self.shared for name in arrays_written((stmt,)))

    def _root(self, name: str) -> str:
        return self.memory.places[name].pointer.name


def lowered(launch: Launch, memory: Memory, names: Names) -> Lowered:
    """Return what is written for a kernel."""
    roots = {name: place.pointer.name for name, place in memory.places.items()}
    shared = frozenset(_shared(launch.body, roots))
    atomics = frozenset(memref.name for memref in launch.atomics)
    if launch.schedule is Schedule.ONE_THREAD:
        return Lowered(launch.schedule, launch.body, None, (), atomics, memory, shared)
    *before, loop = launch.body
    assert isinstance(loop, For)
    totals = _totals(loop, launch.atomics, names)
    by_name = {total.memref.name: total for total in totals}

    def change(stmt: Stmt) -> Iterable[Stmt]:
        if isinstance(stmt, Store) and stmt.memref.name in by_name:
            total = by_name[stmt.memref.name]
            added = Binary(total.op, total.var, stmt.value, total.var.dtype)
            return (Assign(total.var, added),)
        return (stmt,)

    loop = replace(loop, body=map_body(loop.body, change_stmt=change))
    return Lowered(launch.schedule, tuple(before), loop, totals, atomics, memory, shared)


def _totals(loop: For, atomics: tuple[Memref, ...], names: Names) -> tuple[Total, ...]:
    """The atomic arrays of which the loop updates one and the same element."""
    inner = {item.name for item in introduced((loop,))}
    found: list[Total] = []
    for memref in atomics:
        stores = [
            stmt
            for stmt in all_statements(loop.body)
            if isinstance(stmt, Store) and stmt.memref == memref
        ]
        places = {stmt.indices for stmt in stores}
        ops = {stmt.reduce for stmt in stores}
        if len(places) != 1 or len(ops) != 1:
            continue
        (indices,), (op,) = places, ops
        fixed = all(is_pure(part) and not variables(part).keys() & inner for part in indices)
        if fixed and op is not None:
            combined = BinaryOp.ADD if op is BinaryOp.SUB else op
            total = names.var(f"{memref.name}_total", memref.dtype)
            found.append(Total(total, memref, indices, combined, op))
    return tuple(found)


def _shared(body: tuple[Stmt, ...], roots: Mapping[str, str]) -> set[str]:
    """The arrays of which one lane may use what another one has stored.

    That is where several statements use an array, or one does again and again at other elements.
    """
    uses: dict[str, int] = {}
    stored: set[str] = set()
    for stmt in all_statements(body):
        touched = {m.name for part in expressions(stmt) for m in loaded(part).values()}
        written = {memref.name for memref in memrefs_written(stmt)}
        stored |= {roots[name] for name in written}
        for name in {roots[name] for name in touched | written}:
            uses[name] = uses.get(name, 0) + 1
    launched = body[-1] if body and isinstance(body[-1], For) else None
    again = _moving(launched.body, frozenset(), False) if launched is not None else set()
    return {name for name in stored if uses[name] > 1} | {roots[name] for name in again}


def _moving(body: tuple[Stmt, ...], own: frozenset[str], repeated: bool) -> set[str]:
    """The arrays that a statement in a sequential loop stores into, at elements that change.

    ``own`` are the variables of such loops. The lanes of a parallel loop from a constant on keep
    their elements, if nothing else is in the indices.
    """
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case Let(var) if repeated:
                own |= {var.name}
            case Store(memref, indices) if repeated:
                if any(variables(index).keys() & own for index in indices):
                    found.add(memref.name)
            case SortPrefix(memref):
                found.add(memref.name)
            case For(_, Lit(), _, inner, True, ()):
                found |= _moving(inner, own, repeated)
            case (For(_, _, _, inner) | While(_, inner)) as loop:
                inside = own | ({loop.var.name} if isinstance(loop, For) else set())
                found |= _moving(inner, inside, repeated or not _is_shared(loop))
                if _is_shared(loop) and repeated:
                    found |= arrays_written(inner).keys()
            case If(_, then, orelse):
                found |= _moving(then, own, repeated) | _moving(orelse, own, repeated)
            case _:
                pass
    return found


def _is_shared(loop: Stmt) -> bool:
    return isinstance(loop, For) and loop.parallel and not loop.reductions
