"""Which loops of a function run on several threads, and why others do not.

In: the loops of a function, whose ``parallel`` states facts. Out: the names of those to outline
(see ``_outline``), and a reason for each loop that is left. One level of loops is enough: the
outermost parallel ones. Inside of a loop over stored entries a parallel loop is too short, unless
it has loops of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_walk import (
    all_statements,
    blocks,
    memrefs_defined,
)
from sparsejit.ir.loops import (
    Assign,
    Dealloc,
    For,
    If,
    Let,
    LoopFunc,
    Memref,
    Push,
    Resize,
    Scan,
    SortPrefix,
    Stmt,
    While,
)

__all__ = ["ParallelLoops", "parallel_loops"]


@dataclass(slots=True)
class ParallelLoops:
    """``chosen`` are the variables of loops, ``private`` the names that only they use.

    ``reasons`` say of other loops why they run on one thread.
    """

    chosen: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)


def parallel_loops(func: LoopFunc, tiled: Collection[str]) -> ParallelLoops:
    """Return what to do with the loops; ``tiled`` are those that a register tile takes."""
    found = ParallelLoops()
    _choose(func.body, found, tiled, is_inside=False, is_short=False)
    loops = [stmt for stmt in all_statements(func.body) if isinstance(stmt, For)]
    shared = {w.name for s in loops if s.var.name not in found.chosen for w in s.private}
    for stmt in loops:
        if stmt.var.name in found.chosen and shared.intersection(w.name for w in stmt.private):
            found.chosen.remove(stmt.var.name)
            found.reasons[stmt.var.name] = "its workspace is also used on one thread"
    chosen = [stmt for stmt in loops if stmt.var.name in found.chosen]
    found.private = {what.name for stmt in chosen for what in stmt.private}
    return found


def _choose(
    body: Sequence[Stmt],
    found: ParallelLoops,
    tiled: Collection[str],
    *,
    is_inside: bool,
    is_short: bool,
) -> None:
    for stmt in body:
        if isinstance(stmt, For) and stmt.parallel:
            reason = _obstacle(stmt, tiled, is_short=is_short)
            if reason is None:
                found.chosen.add(stmt.var.name)
                continue
            found.reasons[stmt.var.name] = reason
        elif isinstance(stmt, For) and not is_inside and _has_loops(stmt.body):
            found.reasons[stmt.var.name] = "iterations depend on each other"
        match stmt:
            case For() | While():
                if not (isinstance(stmt, For) and stmt.var.name in tiled):
                    short = not any(_is_nest(inner) for inner in all_statements(stmt.body))
                    _choose(stmt.body, found, tiled, is_inside=True, is_short=short)
            case If():
                for block in blocks(stmt):
                    _choose(block, found, tiled, is_inside=is_inside, is_short=is_short)
            case _:
                pass


def _has_loops(body: Sequence[Stmt]) -> bool:
    return any(isinstance(stmt, For | While) for stmt in all_statements(body))


def _is_nest(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.parallel and _has_loops(stmt.body)


def _obstacle(loop: For, tiled: Collection[str], *, is_short: bool) -> str | None:
    """Why a parallel loop is not outlined, None where it is."""
    if loop.var.name in tiled and any(isinstance(what, Memref) for what, _ in loop.reductions):
        return "it adds into a row that stays in registers"
    if is_short:
        return "it is short, inside of another loop"
    changed = sorted(_changed_outside(loop))
    return f"iterations share {', '.join(changed)}" if changed else None


def _changed_outside(loop: For) -> set[str]:
    """What the loop changes of variables, and of the length of arrays, from outside."""
    known = {what.name for what in (*loop.private, *(what for what, _ in loop.reductions))}
    changed: set[str] = set()
    for stmt in all_statements(loop.body):
        if isinstance(stmt, Let):
            known.add(stmt.var.name)
        known.update(memref.name for memref in memrefs_defined(stmt))
        match stmt:
            case Assign(var):
                changed.add(var.name)
            case (
                Push(memref) | Resize(memref) | SortPrefix(memref) | Scan(memref) | Dealloc(memref)
            ):
                changed.add(memref.name)
            case _:
                pass
    return changed - known
