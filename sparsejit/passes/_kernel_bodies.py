"""What a kernel runs, in statements on elements: fills, copies and scans become loops.

In: the statements of a kernel. Out: the same with ``Let``, ``Assign``, ``Store``, ``SortPrefix``,
``Alloc`` without a fill, ``Dealloc``, ``View``, loops and branches only. An ``Alloc`` is memory
that each group of threads has for itself.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.loop_writing import Names, binary, int_
from sparsejit.ir.loops import (
    Alloc,
    Binary,
    Copy,
    DimOf,
    Expr,
    For,
    Lit,
    Load,
    Memref,
    Scan,
    ScanOp,
    Stmt,
    Store,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["kernel_body"]


def kernel_body(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Return ``body`` in statements on elements.

    >>> kernel_body((), Names(set()))
    ()
    """

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Alloc(memref, extents, fill) if fill is not None:
                loop = _each(memref, extents, lambda at: Lit(fill), names)
                return (Alloc(memref, extents), loop)
            case Copy(target, source):
                extents = tuple(DimOf(source, axis) for axis in range(source.rank))
                return (_each(target, extents, lambda at: Load(source, at), names),)
            case Scan():
                return (_scan(stmt, names),)
            case _:
                return (stmt,)

    return map_body(body, change_stmt=change)


def _each(
    target: Memref,
    extents: tuple[Expr, ...],
    value: Callable[[tuple[Expr, ...]], Expr],
    names: Names,
) -> Stmt:
    """Store a value into each element, in parallel."""
    at = tuple(names.var("f") for _ in extents)
    made: Stmt = Store(target, at, value(at))
    for var, extent in reversed(list(zip(at, extents, strict=True))):
        made = For(var, int_(0), extent, (made,), parallel=True)
    return made


def _scan(stmt: Scan, names: Names) -> Stmt:
    memref, i = stmt.memref, names.var("i")
    before = Load(memref, (binary(BinaryOp.SUB, i, int_(1)),))
    op = BinaryOp.ADD if stmt.op is ScanOp.SUM else BinaryOp.MAX
    step = Store(memref, (i,), Binary(op, before, Load(memref, (i,)), memref.dtype))
    return For(i, int_(1), DimOf(memref, 0), (step,))
