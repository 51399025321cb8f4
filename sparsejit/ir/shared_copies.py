"""Shared copies: copies that nobody changes are left out, and what was copied is read instead.

In: a loop function. Out: the same function without arrays that are made as copies, never written,
not returned, and whose source, a parameter that is never written either, could be read all along.
Structures of intermediate sparse tensors are such copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loop_uses import rooted, roots
from sparsejit.ir.loop_walk import (
    all_statements,
    map_body,
    memrefs,
    memrefs_written,
    result_memrefs,
)
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    Load,
    LoopFunc,
    Memref,
    Search,
    Sort,
    Stmt,
    View,
)

__all__ = ["share_copies"]


def share_copies(func: LoopFunc) -> LoopFunc:
    """Return ``func`` without copies that are not needed."""
    shared = _shared(func)
    if not shared:
        return func

    def expression(expr: Expr) -> Expr:
        match expr:
            case Load(memref, indices):
                return Load(shared.get(memref.name, memref), indices)
            case DimOf(memref, axis):
                return DimOf(shared.get(memref.name, memref), axis)
            case Search():
                memref = expr.coordinates
                return replace(expr, coordinates=shared.get(memref.name, memref))
            case _:
                return expr

    def statement(stmt: Stmt) -> Iterable[Stmt]:
        return _changed(stmt, shared)

    return replace(func, body=map_body(func.body, expression, statement))


def _shared(func: LoopFunc) -> dict[str, Memref]:
    """The copies to leave out, by name, with what is read instead."""
    statements = list(all_statements(func.body))
    part_of = roots(func)  # an array changes with its parts
    changing = rooted(
        (
            memref.name
            for stmt in statements
            if not isinstance(stmt, Copy)
            for memref in memrefs_written(stmt)
        ),
        part_of,
    )
    copied = [stmt for stmt in statements if isinstance(stmt, Copy)]
    kept = {memref.name for memref in result_memrefs(func)}
    kept |= {stmt.source.name for stmt in statements if isinstance(stmt, View)}
    calls = (stmt for stmt in statements if isinstance(stmt, LibraryCall))
    kept |= {memref.name for call in calls for memref in memrefs(call)}
    allocated = _allocated(func.body)
    shared: dict[str, Memref] = {}
    given = {param.name for param in func.params if isinstance(param, Memref)}
    stable = given - changing - rooted((stmt.target.name for stmt in copied), part_of)
    for stmt in copied:
        target, source = stmt.target, shared.get(stmt.source.name, stmt.source)
        is_copy = target.name in allocated and target.name not in changing | kept
        is_only_one = sum(other.target.name == target.name for other in copied) == 1
        if is_copy and is_only_one and source.name in stable and stmt in func.body:
            shared[target.name] = source
    return shared


def _allocated(body: Sequence[Stmt]) -> set[str]:
    return {stmt.memref.name for stmt in body if isinstance(stmt, Alloc)}


def _changed(stmt: Stmt, shared: Mapping[str, Memref]) -> Iterable[Stmt]:
    match stmt:
        case Alloc(memref) | Dealloc(memref) if memref.name in shared:
            return ()
        case Copy(target, _) if target.name in shared:
            return ()
        case Copy(target, source):
            return (Copy(target, shared.get(source.name, source)),)
        case Sort():
            coordinates = tuple(shared.get(crd.name, crd) for crd in stmt.coordinates)
            return (replace(stmt, coordinates=coordinates),)
        case Assemble():
            coordinates = tuple(shared.get(crd.name, crd) for crd in stmt.coordinates)
            values = shared.get(stmt.values.name, stmt.values)
            return (replace(stmt, coordinates=coordinates, values=values),)
        case _:
            return (stmt,)
