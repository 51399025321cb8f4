"""Lowering: rows of a new array are filled by the loop that writes to them, just before it does.

In: loops that give every element of a new array one value, and behind them a parallel loop over the
entries of a level, ``i = crd[p]``, that uses row ``i`` of the array alone. Out: that loop fills row
``i`` itself, just before it needs it, and notes that it met it; rows that it never met are filled
behind it. So for rows of rows, down to those that registers start from. A large array goes to
memory once rather than twice. Such a loop is parallel only where the coordinates of its level
differ: no row is met by two of its entries, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, memrefs
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import (
    Alloc,
    Cast,
    Dealloc,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Stmt,
    Store,
    Unary,
    Var,
    View,
)
from sparsejit.ir.ops import UnaryOp
from sparsejit.ir.rename import fresh_copy, renamed
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["fill_late"]


def fill_late(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with fills of rows in the loops that first write to them."""
    names = Names.of(func)
    shown = {stmt.source for stmt in all_statements(func.body) if isinstance(stmt, View)}
    new = {stmt.memref for stmt in func.body if isinstance(stmt, Alloc)} - shown
    return replace(func, body=_block(func.body, new, (), names))


def _block(
    body: tuple[Stmt, ...], new: Collection[Memref], prefix: tuple[Var, ...], names: Names
) -> tuple[Stmt, ...]:
    """Return statements with fills in the loops; rows of ``new`` arrays begin with ``prefix``."""
    for stmt in body:
        fill = _fill(stmt, prefix)
        if fill is not None and fill.memref in new:
            body = _late(body, fill, names) or body
    return body


@dataclass(frozen=True, slots=True)
class _Fill:
    """A loop that gives rows ``memref[*prefix, loop.var]`` one value."""

    loop: For
    memref: Memref
    prefix: tuple[Var, ...]


def _fill(stmt: Stmt, prefix: tuple[Var, ...]) -> _Fill | None:
    """Return what a statement fills, row by row; rows have a rank of 1 or more."""
    axes: list[Var] = []
    inner: Stmt = stmt
    while isinstance(inner, For) and inner.parallel and len(inner.body) == 1:
        axes.append(inner.var)
        (inner,) = inner.body
    match stmt, inner:
        case For(), Store(memref, indices, Lit(), None) if len(axes) > 1 and indices == (
            *prefix,
            *axes,
        ):
            return _Fill(stmt, memref, prefix)
        case _:
            return None


def _late(body: tuple[Stmt, ...], fill: _Fill, names: Names) -> tuple[Stmt, ...] | None:
    """Return the statements with the fill in the loop that uses the array next, if one does."""
    place = next(n for n, stmt in enumerate(body) if stmt is fill.loop)
    uses = (n for n, s in enumerate(body) if n > place and _mentions((s,), fill.memref))
    user = next(uses, None)
    if user is None:
        return None
    loop = body[user]
    row = _row(loop, fill) if isinstance(loop, For) else None
    if row is None:
        return None
    assert isinstance(loop, For)
    met = names.array("met", DType.BOOL)
    at = loop.body.index(row) + 1
    own = renamed(fresh_copy(fill.loop.body, names), {fill.loop.var.name: row.var})
    noted = Store(met, (row.var,), Lit(Const(True, DType.BOOL)))
    inside = _block((*own, *loop.body[at:]), (fill.memref,), (*fill.prefix, row.var), names)
    missed = Unary(UnaryOp.NOT, Load(met, (fill.loop.var,)), DType.BOOL)
    return (
        *body[:place],
        *body[place + 1 : user],
        Alloc(met, (fill.loop.upper,), Const(False, DType.BOOL)),
        replace(loop, body=(*loop.body[:at], noted, *inside)),
        replace(fill.loop, body=(If(missed, fill.loop.body),)),
        Dealloc(met),
        *body[user + 1 :],
    )


def _row(loop: For, fill: _Fill) -> Let | None:
    """Return the row that an entry uses alone of the array: the coordinate that the loop reads."""
    memref = fill.memref
    if not loop.parallel or loop.private or any(what == memref for what, _ in loop.reductions):
        return None
    for stmt in loop.body:
        match stmt:
            case Let(var, Load(_, (at,)) | Cast(Load(_, (at,))), False) if at == loop.var:
                row = (*fill.prefix, var)
                return stmt if _uses_row_alone(loop.body, memref, row) else None
            case Let():
                pass
            case _:
                return None
    return None


def _uses_row_alone(body: Sequence[Stmt], memref: Memref, row: tuple[Var, ...]) -> bool:
    """Whether all that statements do with an array is to load and store elements of this row."""
    for stmt in all_statements(body):
        used = [
            part.indices
            for outer in expressions(stmt)
            for part in all_expressions(outer)
            if isinstance(part, Load) and part.memref == memref
        ]
        if isinstance(stmt, Store) and stmt.memref == memref:
            used.append(stmt.indices)
        if memref in memrefs(stmt) and not used:
            return False
        if any(indices[: len(row)] != row for indices in used):
            return False
    return True


def _mentions(body: Sequence[Stmt], memref: Memref) -> bool:
    return any(memref in memrefs(stmt) for stmt in all_statements(body))
