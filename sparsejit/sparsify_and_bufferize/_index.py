"""Index arithmetic in the loop IR: constants folded, so that the generated loops stay readable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from sparsejit import affine
from sparsejit.affine import AffineExpr
from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = [
    "add",
    "all_of",
    "as_index",
    "compare",
    "equal",
    "guarded",
    "index",
    "less",
    "lower_affine",
    "maximum",
    "minimum",
    "multiply",
    "subtract",
    "true",
]

_FALSE = loops.Lit(Const(False, DType.BOOL))


def index(value: int) -> loops.Lit:
    """Return an int64 constant."""
    return loops.Lit(Const(value, INDEX))


def true(value: bool = True) -> loops.Lit:
    """Return a bool constant."""
    return loops.Lit(Const(value, DType.BOOL))


def _constant(expr: loops.Expr) -> int | None:
    match expr:
        case loops.Lit(Const(int() as value, _)):
            return value
        case _:
            return None


def add(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return ``lhs + rhs``."""
    left, right = _constant(lhs), _constant(rhs)
    if left is not None and right is not None:
        return index(left + right)
    if left == 0:
        return rhs
    if right == 0:
        return lhs
    if right is not None and right < 0:
        return loops.Binary(BinaryOp.SUB, lhs, index(-right), INDEX)
    return loops.Binary(BinaryOp.ADD, lhs, rhs, INDEX)


def subtract(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return ``lhs - rhs``."""
    left, right = _constant(lhs), _constant(rhs)
    if right is not None:
        return add(lhs, index(-right)) if left is None else index(left - right)
    return loops.Binary(BinaryOp.SUB, lhs, rhs, INDEX)


def multiply(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return ``lhs * rhs``."""
    left, right = _constant(lhs), _constant(rhs)
    if left is not None and right is not None:
        return index(left * right)
    if left == 0 or right == 0:
        return index(0)
    if left == 1:
        return rhs
    if right == 1:
        return lhs
    return loops.Binary(BinaryOp.MUL, lhs, rhs, INDEX)


def minimum(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return the lesser of two indices."""
    return loops.Binary(BinaryOp.MIN, lhs, rhs, INDEX)


def compare(op: BinaryOp, lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return the comparison ``lhs op rhs``."""
    return loops.Binary(op, lhs, rhs, DType.BOOL)


def less(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return ``lhs < rhs``."""
    return compare(BinaryOp.LT, lhs, rhs)


def maximum(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return the greater of two indices."""
    return loops.Binary(BinaryOp.MAX, lhs, rhs, INDEX)


def equal(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    """Return ``lhs == rhs``."""
    return compare(BinaryOp.EQ, lhs, rhs)


def all_of(conditions: tuple[loops.Expr, ...]) -> loops.Expr:
    """Return the conjunction; none of the conditions may depend on another to be evaluable."""
    if not conditions:
        return true()
    result = conditions[0]
    for condition in conditions[1:]:
        result = loops.Binary(BinaryOp.AND, result, condition, DType.BOOL)
    return result


def as_index(load: loops.Load) -> loops.Expr:
    """Return an element of a position or coordinate memref as an int64."""
    return load if load.memref.dtype is INDEX else loops.Cast(load, INDEX)


def lower_affine(expr: AffineExpr, values: Mapping[int, loops.Expr]) -> loops.Expr:
    """Return ``expr`` with dimension ``d`` standing for ``values[d]``."""
    match expr:
        case affine.Dim(number):
            return values[number]
        case affine.Constant(value):
            return index(value)
        case affine.Add(lhs, affine.Mul(affine.Constant(-1), rhs)):
            return subtract(lower_affine(lhs, values), lower_affine(rhs, values))
        case affine.Add(lhs, rhs):
            return add(lower_affine(lhs, values), lower_affine(rhs, values))
        case affine.Mul(lhs, rhs):
            return multiply(lower_affine(lhs, values), lower_affine(rhs, values))
        case affine.FloorDiv(lhs, divisor):
            return loops.Binary(BinaryOp.FLOORDIV, lower_affine(lhs, values), index(divisor), INDEX)
        case affine.Mod(lhs, divisor):
            return loops.Binary(BinaryOp.REM, lower_affine(lhs, values), index(divisor), INDEX)
        case _:
            assert_never(expr)


def guarded(condition: loops.Expr, then: loops.Expr) -> loops.Expr:
    """Return ``condition and then``, evaluating ``then`` only where the condition holds."""
    return loops.Select(condition, then, _FALSE)
