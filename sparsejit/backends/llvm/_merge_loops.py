"""Lowering: loops that merge two sorted segments, with one branch an entry, or none.

In: loops ``while (p < end) & (q < last)`` with ``let j = min(a, b)`` of the coordinates at ``p``
and ``q``, which ask ``a == j`` and ``b == j`` for each of the things to do, and again to advance.
Out: ``a`` and ``b`` are compared with each other. Where the three cases do different things, each
advances itself; a loop that only counts has no branch at all, since which of the coordinates is
less is what no processor predicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.loops import Assign, Binary, Cast, Expr, If, Let, Lit, LoopFunc, Stmt, Var, While
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX

__all__ = ["merge_loops"]

_ONE = Lit(Const(1, INDEX))


def merge_loops(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with merging loops rewritten."""
    return replace(func, body=map_body(func.body, change_stmt=_statement))


def _statement(stmt: Stmt) -> Iterable[Stmt]:
    if isinstance(stmt, While):
        for place, inner in enumerate(stmt.body):
            match inner:
                case Let(least, Binary(BinaryOp.MIN, Var() as a, Var() as b, dtype), False) if (
                    dtype is INDEX
                ):
                    body = _rewritten(stmt.body[place + 1 :], least, a, b)
                    return (replace(stmt, body=(*stmt.body[: place + 1], *body)),)
                case _:
                    pass
    return (stmt,)


def _rewritten(body: Sequence[Stmt], least: Var, a: Var, b: Var) -> tuple[Stmt, ...]:
    found = map_body(body, lambda expr: _compared(expr, least, a, b))
    found = map_body(found, change_stmt=lambda stmt: (_whole(stmt, a, b),))
    match found:
        case (
            If(Binary(BinaryOp.EQ, _, _, _) as both, x, (If(Binary(BinaryOp.LT), y, z) as rest,)),
            If(Binary(BinaryOp.LE, first, _, _), forth, ()),
            If(Binary(BinaryOp.LE, second, _, _), on, ()),
        ) if (first, second) == (a, b) and both.lhs == a and both.rhs == b:
            if x == y == z:
                return (*x, *map(_branch_free, found[1:]))
            inner = replace(rest, then=(*y, *forth), orelse=(*z, *on))
            return (If(both, (*x, *forth, *on), (inner,)),)
        case _:
            return tuple(map(_branch_free, found))


def _compared(expr: Expr, least: Var, a: Var, b: Var) -> Expr:
    """Compare the two coordinates instead of each with the least."""
    match expr:
        case Binary(BinaryOp.EQ, lhs, rhs, dtype) if rhs == least and lhs in (a, b):
            return Binary(BinaryOp.LE, lhs, b if lhs == a else a, dtype)
        case Binary(BinaryOp.AND, Binary(BinaryOp.LE) as lhs, Binary(BinaryOp.LE) as rhs, _) if (
            lhs.lhs,
            lhs.rhs,
            rhs.lhs,
            rhs.rhs,
        ) == (a, b, b, a):
            return Binary(BinaryOp.EQ, a, b, lhs.dtype)
        case _:
            return expr


def _whole(stmt: Stmt, a: Var, b: Var) -> Stmt:
    """In a chain that asks for all three cases, the last question needs no answer."""
    match stmt:
        case If(
            Binary(BinaryOp.EQ, lhs, rhs, dtype) as both,
            x,
            (If(Binary(BinaryOp.LE, c, d, _), y, (If(Binary(BinaryOp.LE, e, f, _), z, ()),)),),
        ) if (lhs, rhs, c, d, e, f) == (a, b, a, b, b, a):
            return If(both, x, (If(Binary(BinaryOp.LT, a, b, dtype), y, z),))
        case _:
            return stmt


def _branch_free(stmt: Stmt) -> Stmt:
    """Add a condition as a number instead of branching over an addition of one."""
    match stmt:
        case If(condition, (Assign(var, Binary(BinaryOp.ADD, lhs, step, _)),), ()) if (
            lhs == var and step == _ONE
        ):
            return Assign(var, Binary(BinaryOp.ADD, var, Cast(condition, INDEX), INDEX))
        case _:
            return stmt
