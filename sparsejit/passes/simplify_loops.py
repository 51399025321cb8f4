"""Loop pass: arithmetic on indices that is known, and statements that do nothing.

In: any loop function. Out: the same function with index arithmetic on constants computed
(``i * 1``, ``0 + i``), branches on constants decided, loops that only count replaced by the number
of their rounds, flags that each round sets set behind them, and empty loops and branches left out.
Float arithmetic is not touched, because ``x + 0.0`` is not ``x`` for every x.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparsejit.ir.fold import fold_binary
from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.loops import Assign, Binary, Expr, For, If, Lit, LoopFunc, Select, Stmt, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.passes._flags import flags_behind

__all__ = ["simplify_loops"]


def simplify_loops(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with known index arithmetic and branches simplified.

    >>> from sparsejit.ir.loops import Let, Var
    >>> from sparsejit.ir.scalar import Const
    >>> i, j = Var("i", INDEX), Var("j", INDEX)
    >>> zero = Lit(Const(0, INDEX))
    >>> body = (Let(j, Binary(BinaryOp.ADD, i, zero, INDEX)), For(i, zero, j, ()))
    >>> simplify_loops(LoopFunc("f", (i,), body, ())).body == (Let(j, i),)
    True
    """
    return replace(func, body=map_body(func.body, _expression, _statement))


def _integer(expr: Expr) -> int | None:
    if isinstance(expr, Lit) and expr.const.dtype is INDEX and isinstance(expr.const.value, int):
        return expr.const.value
    return None


def _expression(expr: Expr) -> Expr:
    match expr:
        case Binary(op, Lit(lhs), Lit(rhs), dtype) if dtype is INDEX and lhs.dtype is INDEX:
            return Lit(fold_binary(op, lhs, rhs))
        case Binary(_, _, _, dtype) if dtype is INDEX:
            return _neutral(expr)
        case Select(Lit(const), then, orelse):
            return then if const.value else orelse
        case _:
            return expr


def _neutral(expr: Binary) -> Expr:
    """Leave out an operand that changes nothing."""
    left, right = _integer(expr.lhs), _integer(expr.rhs)
    match expr.op:
        case BinaryOp.ADD if left == 0:
            return expr.rhs
        case BinaryOp.ADD | BinaryOp.SUB if right == 0:
            return expr.lhs
        case BinaryOp.MUL if left == 1:
            return expr.rhs
        case BinaryOp.MUL | BinaryOp.FLOORDIV if right == 1:
            return expr.lhs
        case _:
            return expr


def _counted(count: Var, lower: Expr, upper: Expr) -> Assign:
    """Return what a loop does that only counts: an extent is read so, and may be any number."""
    span = _expression(Binary(BinaryOp.SUB, upper, lower, INDEX))
    rounds = Binary(BinaryOp.MAX, span, Lit(Const(0, INDEX)), INDEX)
    return Assign(count, Binary(BinaryOp.ADD, count, _expression(rounds), INDEX))


def _statement(stmt: Stmt) -> Iterable[Stmt]:
    match stmt:
        case For(_, _, _, ()):
            return ()
        case For(_, lower, upper, (Assign(count, Binary(BinaryOp.ADD, seen, step, dtype)),)) if (
            seen == count and dtype is INDEX and _integer(step) == 1
        ):
            return (_counted(count, lower, upper),)
        case For(reductions=(), parallel=False):
            return flags_behind(stmt)
        case If(Lit(const), then, orelse):
            return then if const.value else orelse
        case If(_, (), ()):
            return ()
        case _:
            return (stmt,)
