"""The elementwise operations: what each NumPy ufunc is, in scalar expressions.

In: a ufunc and its operands as ``Pointwise`` expressions over common variables. Out: the
expression of the result, in the dtype that NumPy's loop gives. A ufunc is a row of the IR's table
of operations, or an entry here that spells it with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsejit.errors import TensorValueError, UnsupportedError
from sparsejit.ir.fold import integer_limits
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg
from sparsejit.ir.types import DType
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, binary, cast, constant_of, select, unary
from sparsejit.trace._promotion import converted, loop_dtypes, result_dtype

__all__ = ["apply", "as_bool", "choose", "is_elementwise", "weakened"]

_UNARY = {getattr(np, op.info.numpy): op for op in UnaryOp if hasattr(np, op.info.numpy)}
_BINARY = {getattr(np, op.info.numpy): op for op in BinaryOp}
_COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_ONLY_FLOATS = {UnaryOp.ISNAN: False, UnaryOp.ISINF: False, UnaryOp.ISFINITE: True}

Rule = Callable[..., Pointwise]


def _const(value: float, like: Pointwise) -> Pointwise:
    return constant_of(value, like.dtype)


def as_bool(part: Pointwise) -> Pointwise:
    """Return whether ``part`` is not zero (nan is not)."""
    if part.dtype is DType.BOOL:
        return cast(part, DType.BOOL)
    return binary(BinaryOp.NE, cast(part, part.dtype), _const(0, part))


def _logical(op: BinaryOp) -> Rule:
    return lambda lhs, rhs: binary(op, as_bool(lhs), as_bool(rhs))


def _reciprocal(part: Pointwise) -> Pointwise:
    one = _const(1, part)
    if not part.dtype.is_integer:
        return binary(BinaryOp.DIV, one, part)
    # Integers: 1 over x rounded toward zero is x for 1 and -1, else 0; 1 over 0 is 0, as ever.
    is_unit = binary(BinaryOp.EQ, part, one)
    if part.dtype.is_signed_integer:
        minus = binary(BinaryOp.EQ, part, _const(-1, part))
        is_unit = binary(BinaryOp.OR, is_unit, minus)
    return select(is_unit, part, _const(0, part))


def _scaled(factor: float) -> Rule:
    return lambda part: binary(BinaryOp.MUL, part, _const(factor, part))


def _heaviside(part: Pointwise, at_zero: Pointwise) -> Pointwise:
    zero = _const(0, part)
    below = binary(BinaryOp.LT, part, zero)
    above = binary(BinaryOp.GT, part, zero)
    # What is neither below nor above nor zero is nan.
    is_zero = binary(BinaryOp.EQ, part, zero)
    rest = select(is_zero, at_zero, part)
    return select(below, zero, select(above, _const(1, part), rest))


_RULES: dict[np.ufunc, Rule] = {
    np.positive: lambda part: part,
    np.fabs: lambda part: unary(UnaryOp.ABS, part),
    np.square: lambda part: binary(BinaryOp.MUL, part, part),
    np.reciprocal: _reciprocal,
    np.logical_not: lambda part: unary(UnaryOp.NOT, as_bool(part)),
    np.logical_and: _logical(BinaryOp.AND),
    np.logical_or: _logical(BinaryOp.OR),
    np.logical_xor: _logical(BinaryOp.XOR),
    np.float_power: lambda lhs, rhs: binary(BinaryOp.POW, lhs, rhs),
    np.deg2rad: _scaled(math.pi / 180),
    np.radians: _scaled(math.pi / 180),
    np.rad2deg: _scaled(180 / math.pi),
    np.degrees: _scaled(180 / math.pi),
    np.heaviside: _heaviside,
}


def is_elementwise(ufunc: np.ufunc) -> bool:
    """Return whether the ufunc is one that ``apply`` knows."""
    return ufunc in _UNARY or ufunc in _BINARY or ufunc in _RULES


def apply(ufunc: np.ufunc, operands: Sequence[Pointwise]) -> Pointwise:
    """Return ``ufunc`` of expressions over common variables.

    Raises ``UnsupportedError`` for a ufunc without scalar expression, ``TensorTypeError`` where
    NumPy has no loop for the dtypes.
    """
    if not is_elementwise(ufunc):
        raise UnsupportedError(
            f"np.{ufunc.__name__} is not built",
            location=caller(),
            reasons=("the IR has no scalar operation for it",),
        )
    if ufunc in _COMPARISONS:
        decided = _beyond_bounds(ufunc, *operands)
        if decided is not None:
            return decided
        operands = _as_given(operands)
    if ufunc is np.power:
        operands = _checked_power(*operands)
    dtypes = loop_dtypes(ufunc, operands)
    inputs = [converted(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=False)]
    rule = _RULES.get(ufunc)
    if rule is not None:
        return cast(rule(*inputs), dtypes[-1])
    if ufunc in _UNARY:
        return cast(_apply_unary(_UNARY[ufunc], inputs[0]), dtypes[-1])
    op = _BINARY[ufunc]
    if inputs[0].dtype is not inputs[1].dtype:
        return _mixed_comparison(op, *inputs)
    return cast(binary(op, *inputs), dtypes[-1])


def _checked_power(base: Pointwise, exponent: Pointwise) -> tuple[Pointwise, Pointwise]:
    """Return the operands of a power, refusing what Python and NumPy decide by the exponent's sign.

    Of two Python integers the power is a float where the exponent is negative; NumPy's integers
    have no negative powers.
    """
    if not (base.dtype.is_integer and exponent.dtype.is_integer):
        return base, exponent
    const = exponent.const
    if base.weak and exponent.weak and const is None:
        raise UnsupportedError(
            "the power of two Python integers is not built",
            hint="pass one of them as a float",
            reasons=("its type depends on the exponent's sign, known only at run time",),
            location=caller(),
        )
    if const is None or const.value.real >= 0:
        return base, exponent
    if base.weak and exponent.weak:
        return replace(cast(base, DType.FLOAT64), weak=True), exponent
    raise TensorValueError(
        "Integers to negative integer powers are not allowed.",
        hint="convert the base with .astype(float)",
        location=caller(),
    )


def _apply_unary(op: UnaryOp, part: Pointwise) -> Pointwise:
    discrete = part.dtype.is_integer or part.dtype is DType.BOOL
    if discrete and op in _ONLY_FLOATS:
        return constant_of(_ONLY_FLOATS[op], DType.BOOL)
    if discrete and op in (UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.TRUNC, UnaryOp.CONJ):
        return part
    if op is UnaryOp.CONJ and not part.dtype.is_complex:
        return part
    if op is UnaryOp.ABS and (part.dtype is DType.BOOL or part.dtype.is_unsigned_integer):
        return part
    return unary(op, part)


def _beyond_bounds(ufunc: np.ufunc, lhs: Pointwise, rhs: Pointwise) -> Pointwise | None:
    """Return the comparison of an integer array with a Python integer that its type cannot hold."""
    for array, number, is_left in ((lhs, rhs, False), (rhs, lhs, True)):
        const = number.const
        if not (number.weak and const is not None and array.dtype.is_integer and not array.weak):
            continue
        if not isinstance(const.value, int) or isinstance(const.value, bool):
            continue
        least, largest = integer_limits(array.dtype)
        if least <= const.value <= largest:
            continue
        inside = 0  # stands for every value of the array: all compare alike
        pair = (const.value, inside) if is_left else (inside, const.value)
        return constant_of(bool(ufunc(np.float64(pair[0]), np.float64(pair[1]))), DType.BOOL)
    return None


def _as_given(operands: Sequence[Pointwise]) -> tuple[Pointwise, ...]:
    """Return operands to compare: integers of the call are compared as they are, also too large."""
    if not all(operand.dtype.is_integer for operand in operands):
        return tuple(operands)
    return tuple(
        replace(operand, weak=False) if operand.weak and operand.const is None else operand
        for operand in operands
    )


def _mixed_comparison(op: BinaryOp, lhs: Pointwise, rhs: Pointwise) -> Pointwise:
    """Compare int64 with uint64 exactly: a negative number is below all unsigned ones."""
    if lhs.dtype is DType.INT64:
        negative = binary(BinaryOp.LT, lhs, _const(0, lhs))
        smaller = op in (BinaryOp.LT, BinaryOp.LE, BinaryOp.NE)
        rest = binary(op, _wrapped(lhs, DType.UINT64), rhs)
        return select(negative, constant_of(smaller, DType.BOOL), rest)
    negative = binary(BinaryOp.LT, rhs, _const(0, rhs))
    greater = op in (BinaryOp.GT, BinaryOp.GE, BinaryOp.NE)
    rest = binary(op, lhs, _wrapped(rhs, DType.UINT64))
    return select(negative, constant_of(greater, DType.BOOL), rest)


def choose(condition: Pointwise, then: Pointwise, orelse: Pointwise) -> Pointwise:
    """Return ``np.where(condition, then, orelse)``: both sides in their common dtype.

    NumPy casts a Python integer that the dtype cannot hold here, where a ufunc refuses it.
    """
    dtype = result_dtype((then, orelse))
    return select(as_bool(condition), _wrapped(then, dtype), _wrapped(orelse, dtype))


def _wrapped(part: Pointwise, dtype: DType) -> Pointwise:
    """Return ``part`` in ``dtype``; of numbers of a call, those converted at once must fit."""
    integers = part.dtype.is_integer and dtype.is_integer and part.dtype is not dtype
    if integers and isinstance(part.body, Arg) and not part.accesses[0].value.type.rank:
        part = binary(BinaryOp.OR, part, _const(0, part))
    return cast(part, dtype)


def weakened(part: Pointwise, operands: Sequence[Pointwise]) -> Pointwise:
    """Return ``part`` as a Python scalar when all operands of a Python operator were such."""
    return replace(part, weak=True) if all(operand.weak for operand in operands) else part
