"""Memory of one iteration whose size each iteration has for itself: sized by the largest.

In: a parallel loop that allocates, at the front of its body, arrays of extents that depend on the
iteration. Out: a loop that finds the largest extents, and the loop with arrays of these: memory
that a group of threads can be given before it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparsejit.ir.loop_uses import is_pure, variables
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, map_body
from sparsejit.ir.loop_writing import Names, binary, int_
from sparsejit.ir.loops import Alloc, Assign, DimOf, Expr, For, Let, Stmt, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy, introduced

__all__ = ["with_bounded_room"]


def with_bounded_room(loop: For, names: Names) -> tuple[list[Stmt], For] | None:
    """Return statements that find the largest extents, and the loop that asks for these.

    None where all extents are known before the loop, or where they depend on more than constants
    at the front of the body.
    """
    own = {item.name for item in introduced((loop,))}
    lets, asked = _front(loop, own, names)
    known = {let.var.name for let in lets} | {loop.var.name}
    if any(variables(extent).keys() & own - known for extent in asked):
        return None
    if not asked or not _all_at_the_front(loop, own, asked):
        return None
    steps: list[Stmt] = [
        Assign(size, binary(BinaryOp.MAX, size, extent)) for extent, size in asked.items()
    ]
    shared = tuple((size, BinaryOp.MAX) for size in asked.values())
    measuring = replace(loop, body=(*_needed(lets, asked), *steps), reductions=shared)
    before: list[Stmt] = [Let(size, int_(0), mutable=True) for size in asked.values()]

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Alloc):
            extents = tuple(asked.get(extent, extent) for extent in stmt.extents)
            return (replace(stmt, extents=extents),)
        return (stmt,)

    made = replace(loop, body=map_body(loop.body, change_stmt=change))
    return [*before, *fresh_copy((measuring,), names)], made


def _front(loop: For, own: set[str], names: Names) -> tuple[list[Let], dict[Expr, Var]]:
    """The constants at the front of a body, and the extents there that only it knows."""
    lets: list[Let] = []
    asked: dict[Expr, Var] = {}
    told = _asked_for_extents(loop)
    for stmt in loop.body:
        match stmt:
            case Let(mutable=False):
                lets.append(stmt)
            case Alloc(memref, extents) if memref.name not in told:
                for extent in extents:
                    if not (is_pure(extent) and not variables(extent).keys() & own):
                        asked.setdefault(extent, names.var(f"{memref.name}_room"))
            case _:
                break
    return lets, asked


def _asked_for_extents(loop: For) -> set[str]:
    return {
        part.memref.name
        for stmt in all_statements(loop.body)
        for outer in expressions(stmt)
        for part in all_expressions(outer)
        if isinstance(part, DimOf)
    }


def _all_at_the_front(loop: For, own: set[str], asked: dict[Expr, Var]) -> bool:
    """Whether every allocation inside has extents that are known or found."""
    allocs = (stmt for stmt in all_statements(loop.body) if isinstance(stmt, Alloc))
    extents = (extent for alloc in allocs for extent in alloc.extents)
    return all(
        extent in asked or (is_pure(extent) and not variables(extent).keys() & own)
        for extent in extents
    )


def _needed(lets: Sequence[Let], asked: dict[Expr, Var]) -> list[Stmt]:
    """The constants that the extents are computed from, in order."""
    needed = {name for extent in asked for name in variables(extent)}
    kept: list[Stmt] = []
    for let in reversed(lets):
        if let.var.name in needed:
            needed |= variables(let.value).keys()
            kept.insert(0, let)
    return kept
