"""Rows of very different lengths, dealt out by stored entries.

In: a parallel loop over rows that reduces the entries of each row into one element. Out: a parallel
loop over chunks of as many entries each: a chunk finds the row of its first entry by a binary
search in the positions, and adds what it has of each row to the row's element in one atomic step.
Source: the merge-based SpMV of Merrill and Garland, with a search in place of the merge path.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loop_uses import read, variables
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus, times
from sparsejit.ir.loops import (
    Assign,
    Cast,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import renamed
from sparsejit.passes._kernel_schedules import reductions_of

__all__ = ["BalancedRows", "balanced", "rows_of"]

_ENTRIES = 16
"""How many entries a thread takes: enough to pay for its search, few enough to fill a device."""


@dataclass(frozen=True, slots=True)
class BalancedRows:
    """A loop over rows: ``acc`` starts from an element, reduces the ``entries``, and is stored.

    ``positions`` says where a row begins, ``stored`` is an array that the entries walk along.
    """

    acc: Var
    op: BinaryOp
    entries: For
    store: Store
    positions: Memref
    stored: Memref


def rows_of(loop: For) -> BalancedRows | None:
    """Return the parts of a loop over rows that may be dealt out by entries, else None."""
    match loop.body:
        case (Let(acc, Load(memref, indices), True), For() as entries, Store() as store) if (
            loop.lower == int_(0)
            and store == Store(memref, indices, acc)
            and memref.name not in read((entries,))
            and all(set(variables(index)) <= {loop.var.name} for index in indices)
        ):
            positions = _positions(entries, loop.var)
            stored = _walked(entries)
            update = reductions_of(entries).get(acc.name)
            if positions is None or stored is None or update is None:
                return None
            if len(reductions_of(entries)) > 1 or identity_const(update.op, acc.dtype) is None:
                return None
            return BalancedRows(acc, update.op, entries, store, positions, stored)
        case _:
            return None


def _positions(entries: For, row: Var) -> Memref | None:
    """The array of which elements ``row`` and ``row + 1`` bound the loop over entries."""
    match _plain(entries.lower), _plain(entries.upper):
        case Load(positions, (first,)), Load(ends, (second,)) if (
            positions == ends and first == row and second == plus(row, int_(1))
        ):
            return positions
        case _:
            return None


def _plain(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) else expr


def _walked(entries: For) -> Memref | None:
    for stmt in all_statements(entries.body):
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                match part:
                    case Load(memref, (index, *_)) if index == entries.var:
                        return memref
                    case _:
                        pass
    return None


def balanced(loop: For, rows: BalancedRows, names: Names) -> For:
    """Return the loop over chunks of entries; its stores into the rows' elements race."""
    chunk, place, end, row = (names.var(base) for base in ("chunk", "place", "end", "row"))
    last = names.var("last")
    begins = _position(rows, int_(0))
    bounded = binary(BinaryOp.MIN, plus(place, int_(_ENTRIES)), last)
    body: tuple[Stmt, ...] = (
        Let(last, _position(rows, loop.upper)),
        Let(place, plus(begins, times(chunk, int_(_ENTRIES))), mutable=True),
        Let(end, bounded),
        Let(row, int_(0), mutable=True),
        If(
            compare(BinaryOp.LT, place, end),
            (
                *_search(rows, loop.upper, place, row, names),
                While(compare(BinaryOp.LT, place, end), _row(loop, rows, place, end, row, names)),
            ),
        ),
    )
    whole = plus(DimOf(rows.stored, 0), int_(_ENTRIES - 1))
    chunks = binary(BinaryOp.FLOORDIV, whole, int_(_ENTRIES))
    return For(chunk, int_(0), chunks, body, parallel=True)


def _position(rows: BalancedRows, row: Expr) -> Expr:
    like = rows.entries.lower
    load = Load(rows.positions, (row,))
    return replace(like, operand=load) if isinstance(like, Cast) else load


def _search(
    rows: BalancedRows, number: Expr, place: Var, row: Var, names: Names
) -> tuple[Stmt, ...]:
    """Find the last row that begins at ``place`` or before."""
    beyond, middle = names.var("beyond"), names.var("middle")
    half = binary(BinaryOp.FLOORDIV, plus(row, beyond), int_(2))
    starts = compare(BinaryOp.LE, _position(rows, middle), place)
    step: tuple[Stmt, ...] = (
        Let(middle, half),
        If(starts, (Assign(row, middle),), (Assign(beyond, middle),)),
    )
    more = compare(BinaryOp.GT, binary(BinaryOp.SUB, beyond, row), int_(1))
    return (Let(beyond, number, mutable=True), While(more, step))


def _row(
    loop: For, rows: BalancedRows, place: Var, end: Var, row: Var, names: Names
) -> tuple[Stmt, ...]:
    """What a chunk has of one row, behind rows without entries."""
    stop, acc = names.var("stop"), names.var(rows.acc.name, rows.acc.dtype)
    following = _position(rows, plus(row, int_(1)))
    start = identity_const(rows.op, acc.dtype)
    assert start is not None
    new = {loop.var.name: row, rows.acc.name: acc}
    walk = replace(rows.entries, lower=place, upper=stop)
    update = replace(rows.store, value=rows.acc, reduce=rows.op)
    skip = While(compare(BinaryOp.LE, following, place), (Assign(row, plus(row, int_(1))),))
    return (
        skip,
        Let(stop, binary(BinaryOp.MIN, following, end)),
        Let(acc, Lit(start), mutable=True),
        renamed(walk, new),
        renamed(update, new),
        Assign(place, stop),
    )
