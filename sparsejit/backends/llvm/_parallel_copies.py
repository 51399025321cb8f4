"""Lowering: whole arrays are copied and filled by parallel loops.

In: a loop function. Out: the same function in which copies, and arrays that start with one value,
at its top are parallel loops, if it has parallel loops at all. New memory is given to a process
page by page when it is first touched, which takes longer than most kernels; so all threads do it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import Names, int_
from sparsejit.ir.loops import (
    Alloc,
    Copy,
    DimOf,
    For,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Push,
    Resize,
    Stmt,
    Store,
)

__all__ = ["copy_in_parallel"]


def copy_in_parallel(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with parallel copies."""
    inside = list(all_statements(func.body))
    loops = [stmt for stmt in inside if isinstance(stmt, For)]
    if not any(loop.parallel for loop in loops):
        return func
    kept = {what.name for loop in loops for what in loop.private}
    kept |= {stmt.memref.name for stmt in inside if isinstance(stmt, Push | Resize)}
    names = Names.of(func)
    return replace(func, body=tuple(s for stmt in func.body for s in _parallel(stmt, kept, names)))


def _parallel(stmt: Stmt, kept: set[str], names: Names) -> Iterator[Stmt]:
    match stmt:
        case Alloc(memref, _, fill) if fill is not None and memref.rank and memref.name not in kept:
            yield replace(stmt, fill=None)
            yield _loop(memref, None, Lit(fill), names)
        case Copy(target, source) if target.rank and target.name not in kept:
            yield _loop(target, source, None, names)
        case _:
            yield stmt


def _loop(target: Memref, source: Memref | None, value: Lit | None, names: Names) -> For:
    at = tuple(names.var("c") for _ in range(target.rank))
    element = value if source is None else Load(source, at)
    assert element is not None
    body: tuple[Stmt, ...] = (Store(target, at, element),)
    for axis in reversed(range(target.rank)):
        body = (For(at[axis], int_(0), DimOf(target, axis), body, parallel=True),)
    (loop,) = body
    assert isinstance(loop, For)
    return loop
