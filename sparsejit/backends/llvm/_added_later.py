"""Sums of a row without a branch: coordinates first, a zero in the place of each, then the terms.

In: the loops that note the coordinates of a row in a workspace, of which a new one stores its term
and another one adds it; and the loop over the coordinates, which moves each sum to the result. Out:
loops that only note; a loop over the coordinates that stores zeros; and behind it the loops again,
which only add, and a loop that moves the sums. Which coordinates are new is what no processor
predicts where half of them are; the loops run twice, but what they read is in the nearest cache the
second time. Zeros are negative: added to one, every number stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._workspace_rows import WorkspaceRows
from sparsejit.ir.loop_uses import loaded, variables
from sparsejit.ir.loop_walk import all_statements, map_body, map_expr
from sparsejit.ir.loop_writing import Names, as_index, int_, plus
from sparsejit.ir.loops import (
    Assign,
    Cast,
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
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["AddedLater", "added_later"]


@dataclass(frozen=True, slots=True)
class AddedLater:
    """The loops that note, what is before the loop over coordinates, it, and what is behind."""

    noting: tuple[Stmt, ...]
    before: tuple[Stmt, ...]
    sweep: Stmt
    behind: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class _Moved:
    """What a loop over coordinates ``c`` does: ``put_coordinate``, ``put_sum``, ``step``."""

    c: Let
    put_coordinate: Store
    put_sum: Store
    step: Assign


def added_later(
    noting: tuple[Stmt, ...], sweep: Stmt, rows: WorkspaceRows, names: Names
) -> AddedLater | None:
    """Return the loops of a row that is a sum, None for another one."""
    notes = [stmt for stmt in all_statements(noting) if isinstance(stmt, If) and rows.is_note(stmt)]
    arrays = {_sum_in(note, rows) for note in notes}
    (sums,) = arrays if len(arrays) == 1 else (None,)
    moved = None if sums is None else _moved(sweep, sums)
    if sums is None or moved is None or not isinstance(sweep, For):
        return None
    forget = Store(sums, (moved.c.var,), Lit(_zero_of(sums.dtype)))
    begin, q, c = (names.var(base) for base in ("begin", "q", "c"))
    total = map_expr(moved.put_sum.value, lambda part: c if part == moved.c.var else part)
    read = (
        Let(c, as_index(moved.put_coordinate.memref, q)),
        Store(moved.put_sum.memref, (q,), total),
    )

    def only_noted(stmt: Stmt) -> Iterable[Stmt]:
        if not isinstance(stmt, If) or not rows.is_note(stmt):
            return (stmt,)
        return (If(stmt.condition, (), tuple(filter(rows.is_bookkeeping, stmt.orelse))),)

    def only_added(stmt: Stmt) -> Iterable[Stmt]:
        return stmt.then if isinstance(stmt, If) and rows.is_note(stmt) else (stmt,)

    return AddedLater(
        map_body(noting, change_stmt=only_noted),
        (Let(begin, moved.step.var),),
        For(
            sweep.var,
            sweep.lower,
            sweep.upper,
            (moved.c, moved.put_coordinate, forget, moved.step),
        ),
        (
            *fresh_copy(map_body(noting, change_stmt=only_added), names),
            For(q, begin, moved.step.var, read),
        ),
    )


def _sum_in(note: If, rows: WorkspaceRows) -> Memref | None:
    """Return the array to which a note adds what it stores where the coordinate is new."""
    meet = tuple(inner for inner in note.orelse if not rows.is_bookkeeping(inner))
    match note.then, meet:
        case (Store(sums, at, term, BinaryOp.ADD),), (first,) if first == Store(
            sums, at, term
        ) and _has_zero(sums.dtype):
            return sums
        case _:
            return None


def _moved(sweep: Stmt, sums: Memref) -> _Moved | None:
    """Return what the loop over coordinates does, None where that is more than moving sums."""
    match sweep:
        case For(
            body=(
                Let(c) as let,
                Store(_, (Var() as place,), kept, None) as put_coordinate,
                Store(_, (Var() as beside,), value, None) as put_sum,
                Assign(var, following) as step,
            )
        ) if place == beside == var and following == plus(var, int_(1)):
            is_coordinate = (kept.operand if isinstance(kept, Cast) else kept) == c
            reads_sum = set(loaded(value)) == {sums.name} and set(variables(value)) == {c.name}
            if is_coordinate and reads_sum and Load(sums, (c,)) in _parts(value):
                return _Moved(let, put_coordinate, put_sum, step)
        case _:
            pass
    return None


def _parts(value: Expr) -> tuple[Expr, ...]:
    return (value, value.operand) if isinstance(value, Cast) else (value,)


def _has_zero(dtype: DType) -> bool:
    """Whether there is a number that changes none when it is added; sums are not of bools."""
    return dtype.is_float or dtype.is_integer


def _zero_of(dtype: DType) -> Const:
    return Const(-0.0 if dtype.is_float else 0, dtype)
