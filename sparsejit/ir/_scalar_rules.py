"""The rules of scalar expressions: numbers in range, dtypes that fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from sparsejit.ir.fold import applies
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    UserFunction,
    dtype_of,
)
from sparsejit.ir.types import DType

__all__ = ["broken_call", "broken_numbers", "broken_types"]


def _parts(expr: ScalarExpr) -> tuple[ScalarExpr, ...]:
    match expr:
        case Arg() | Const() | Coordinate() | Stored() | Nothing():
            return ()
        case Cast(operand, _) | Unary(_, operand):
            return (operand,)
        case Binary(_, lhs, rhs):
            return lhs, rhs
        case Select(condition, then, orelse):
            return condition, then, orelse
        case Call(_, operands):
            return operands
        case _:
            assert_never(expr)


def broken_numbers(expr: ScalarExpr, num_operands: int, num_loops: int) -> Iterator[str]:
    """Yield what is wrong with the numbers of operands and loops in ``expr``."""
    match expr:
        case Arg(index) | Stored(index) if not 0 <= index < num_operands:
            yield f"the body reads operand {index} of {num_operands}"
        case Coordinate(loop) if not 0 <= loop < num_loops:
            yield f"the body reads the coordinate of loop {loop} of {num_loops}"
        case _:
            for part in _parts(expr):
                yield from broken_numbers(part, num_operands, num_loops)


def broken_call(function: UserFunction, given: Sequence[DType]) -> Iterator[str]:
    """Yield what is wrong with a call of ``function`` with operands of the dtypes ``given``."""
    taken = function.operands
    if tuple(given) != taken:
        texts = (", ".join(dtype.value for dtype in dtypes) for dtypes in (given, taken))
        yield "{} is called with ({}), but takes ({})".format(function.text, *texts)
    for dtype in (*taken, function.result):
        if dtype.compute is not dtype:
            yield f"{function.text} computes in {dtype.value}, which only stores"


def broken_types(expr: ScalarExpr, dtypes: Sequence[DType]) -> Iterator[str]:  # noqa: C901 - one case for each kind
    """Yield what is wrong with the dtypes in ``expr``, innermost first."""
    for part in _parts(expr):
        yield from broken_types(part, dtypes)
    match expr:
        case Unary(op, operand):
            dtype = dtype_of(operand, dtypes)
            if not applies(op, dtype):
                yield f"{op!r} is not defined on {dtype.value}"
        case Binary(op, lhs, rhs):
            left, right = dtype_of(lhs, dtypes), dtype_of(rhs, dtypes)
            if left is not right:
                yield f"{op!r} of {left.value} and {right.value}"
            elif not applies(op, left):
                yield f"{op!r} is not defined on {left.value}"
        case Select(condition, then, orelse):
            asked = dtype_of(condition, dtypes)
            if asked is not DType.BOOL:
                yield f"a condition is bool, not {asked.value}"
            left, right = dtype_of(then, dtypes), dtype_of(orelse, dtypes)
            if left is not right:
                yield f"a select of {left.value} and {right.value}"
        case Call(function, operands):
            yield from broken_call(function, [dtype_of(part, dtypes) for part in operands])
        case _:
            pass
