"""From scalar expressions over operands to loop expressions over loaded elements.

16-bit floats widen here: every expression that leaves has a dtype that arithmetic runs in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from sparsejit.errors import VerificationError
from sparsejit.ir import loops, scalar
from sparsejit.ir.fold import fold_cast
from sparsejit.ir.ops import ResultKind
from sparsejit.ir.scalar import Const, ScalarExpr
from sparsejit.ir.types import INDEX, DType

__all__ = ["dtype_of_lowered", "literal", "lower_scalar", "widened"]


def literal(const: Const) -> loops.Lit:
    """Return a constant in the dtype that arithmetic runs in."""
    return loops.Lit(fold_cast(const, const.dtype.compute))


def widened(load: loops.Expr, dtype: DType) -> loops.Expr:
    """Return an element of ``dtype``, widened when it is a 16-bit float."""
    return load if dtype is dtype.compute else loops.Cast(load, dtype.compute)


def lower_scalar(  # noqa: C901 - one case for each kind
    expr: ScalarExpr,
    dtypes: Sequence[DType],
    element: Callable[[int], loops.Expr],
    coordinate: Callable[[int], loops.Expr],
) -> loops.Expr:
    """Return ``expr`` as a loop expression.

    ``element(k)`` is the (widened) element of operand ``k``, ``coordinate(d)`` the value of loop
    ``d`` of the operation. ``Stored`` and ``Nothing`` must have been resolved before.
    """

    def walk(inner: ScalarExpr) -> loops.Expr:
        match inner:
            case scalar.Arg(index):
                return element(index)
            case Const():
                return literal(inner)
            case scalar.Coordinate(loop):
                return coordinate(loop)
            case scalar.Cast(operand, dtype):
                return _cast(walk(operand), dtype)
            case scalar.Unary(op, operand):
                value = walk(operand)
                return loops.Unary(op, value, _result(op.info.result, dtype_of_lowered(value)))
            case scalar.Binary(op, lhs, rhs):
                left, right = walk(lhs), walk(rhs)
                result = _result(op.info.result, dtype_of_lowered(left))
                return loops.Binary(op, left, right, result)
            case scalar.Select(condition, then, orelse):
                return loops.Select(walk(condition), walk(then), walk(orelse))
            case scalar.Call(function, operands):
                return loops.Call(function, tuple(map(walk, operands)))
            case scalar.Stored() | scalar.Nothing():
                raise VerificationError("no unresolved storedness", f"{inner} reached the loops")
            case _:
                assert_never(inner)

    return walk(expr)


def _cast(value: loops.Expr, dtype: DType) -> loops.Expr:
    if dtype is not dtype.compute:  # round to the storage type, go on in the wide one
        return loops.Cast(loops.Cast(value, dtype), dtype.compute)
    return value if dtype_of_lowered(value) is dtype else loops.Cast(value, dtype)


def _result(kind: ResultKind, operand: DType) -> DType:
    match kind:
        case ResultKind.SAME:
            return operand
        case ResultKind.BOOL:
            return DType.BOOL
        case ResultKind.REAL:
            return operand.real
        case ResultKind.BITS:
            return operand.as_bits
        case ResultKind.FLOAT:
            return operand.as_float
        case _:
            assert_never(kind)


def dtype_of_lowered(expr: loops.Expr) -> DType:
    """Return the dtype of a loop expression."""
    match expr:
        case loops.Var(_, dtype):
            return dtype
        case loops.Lit(const):
            return const.dtype
        case loops.Unary(_, _, dtype) | loops.Binary(_, _, _, dtype) | loops.Cast(_, dtype):
            return dtype
        case loops.Select(_, then, _):
            return dtype_of_lowered(then)
        case loops.Load(memref, _):
            return memref.dtype
        case loops.DimOf() | loops.Search():
            return INDEX
        case loops.Call(function):
            return function.result
        case _:
            assert_never(expr)
