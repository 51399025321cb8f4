"""Statements of the loop IR with other expressions in them: the part of rebuilding without blocks.

In: a statement and what gives the new expression for each of its own. Out: the new statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, ReadBack, Require, SparseMatrix
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Expr,
    Let,
    Push,
    Resize,
    SelectMemref,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    View,
)

__all__ = ["with_expressions", "with_operands"]


def with_expressions(  # noqa: C901 - one case for each kind
    stmt: Stmt, walk: Callable[[Expr], Expr]
) -> Stmt:
    """Return a statement without blocks, with the expressions that ``walk`` gives for its own."""

    def all_of(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(map(walk, exprs))

    match stmt:
        case Let() | Assign():
            return replace(stmt, value=walk(stmt.value))
        case Alloc():
            return replace(stmt, extents=all_of(stmt.extents))
        case View():
            return replace(stmt, offsets=all_of(stmt.offsets), sizes=all_of(stmt.sizes))
        case Store():
            return replace(stmt, indices=all_of(stmt.indices), value=walk(stmt.value))
        case Push():
            return replace(stmt, count=walk(stmt.count), value=walk(stmt.value))
        case Resize() | SortPrefix():
            return replace(stmt, count=walk(stmt.count))
        case Sort():
            return replace(stmt, extents=all_of(stmt.extents), count=walk(stmt.count))
        case Assemble():
            extents = all_of(stmt.level_extents)
            return replace(stmt, level_extents=extents, count=walk(stmt.count))
        case ReadBack():
            return replace(stmt, indices=all_of(stmt.indices))
        case Require() | SelectMemref():
            return replace(stmt, condition=walk(stmt.condition))
        case _:
            return stmt


def with_operands(
    stmt: LibraryCall, walk: Callable[[Expr], Expr], otherwise: tuple[Stmt, ...]
) -> LibraryCall:
    """Return a library call with other expressions, around its rebuilt ``otherwise``."""

    def operand(old: SparseMatrix | DenseMatrix) -> SparseMatrix | DenseMatrix:
        if isinstance(old, DenseMatrix):
            return old
        return replace(old, extents=tuple(map(walk, old.extents)))

    return replace(
        stmt,
        inputs=tuple(map(operand, stmt.inputs)),
        output=operand(stmt.output),
        alpha=walk(stmt.alpha),
        beta=walk(stmt.beta),
        otherwise=otherwise,
    )
