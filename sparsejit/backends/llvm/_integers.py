"""Operations on bools and integers as LLVM IR; nothing traps.

Division by zero gives 0 and overflow wraps; shifts by the width or more, or by a negative number,
give 0 or the sign. Operands may be vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparsejit.backends.llvm._support_functions import SupportFunctions
from sparsejit.backends.llvm._text import (
    Builder,
    Value,
    integer,
    lanes_of,
    scalar_of,
    vector_of,
)
from sparsejit.backends.llvm._types import real_type
from sparsejit.errors import UnsupportedError
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType

__all__ = ["binary_bool", "binary_integer", "refused", "unary_bool", "unary_integer"]

_UNSIGNED = {
    BinaryOp.LT: "ult", BinaryOp.LE: "ule", BinaryOp.GT: "ugt", BinaryOp.GE: "uge",
    BinaryOp.EQ: "eq", BinaryOp.NE: "ne",
}  # fmt: skip
_SIGNED = {**_UNSIGNED, **{op: f"s{name[1:]}" for op, name in list(_UNSIGNED.items())[:4]}}
_PLAIN: Mapping[BinaryOp, str] = {
    BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul", BinaryOp.AND: "and",
    BinaryOp.OR: "or", BinaryOp.XOR: "xor",
}  # fmt: skip
_OF_BOOLS: Mapping[BinaryOp, str] = {
    **dict.fromkeys((BinaryOp.ADD, BinaryOp.OR, BinaryOp.MAX, BinaryOp.FMAX), "or"),
    **dict.fromkeys((BinaryOp.MUL, BinaryOp.AND, BinaryOp.MIN, BinaryOp.FMIN), "and"),
    BinaryOp.XOR: "xor",
}
_SAME = (UnaryOp.CONJ, UnaryOp.REAL, UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.TRUNC, UnaryOp.RINT)


def refused(op: UnaryOp | BinaryOp, dtype: DType) -> UnsupportedError:
    """Return the error of an operation that has no LLVM code."""
    return UnsupportedError(f"{op.name.lower()} of {dtype.value} in LLVM code")


def _number(value: int, like: Value) -> Value:
    number = integer(value, scalar_of(like.type))
    lanes = lanes_of(like.type)
    return number if lanes == 1 else Value(like.type, f"splat ({number})")


def _truth(value: int, like: Value) -> Value:
    lanes = lanes_of(like.type)
    one = integer(value, "i1")
    return one if lanes == 1 else Value(vector_of("i1", lanes), f"splat ({one})")


def _of_exact(op: UnaryOp, value: Value) -> Value | None:
    """What is the same for every type without fractions."""
    match op:
        case _ if op in _SAME:
            return value
        case UnaryOp.IMAG:
            return _number(0, value)
        case UnaryOp.ISNAN | UnaryOp.ISINF:
            return _truth(0, value)
        case UnaryOp.ISFINITE:
            return _truth(1, value)
        case _:
            return None


def unary_bool(b: Builder, op: UnaryOp, value: Value) -> Value:
    """Return ``op(value)`` of a bool."""
    if op is UnaryOp.NOT:
        return b.op("xor", value, _truth(1, value))
    found = value if op is UnaryOp.ABS else _of_exact(op, value)
    if found is None:
        raise refused(op, DType.BOOL)
    return found


def unary_integer(b: Builder, op: UnaryOp, value: Value, dtype: DType) -> Value:
    """Return ``op(value)`` of an integer."""
    zero = _number(0, value)
    match op:
        case UnaryOp.NEG:
            return b.op("sub", zero, value)
        case UnaryOp.NOT:
            return b.op("xor", value, _number(-1, value))
        case UnaryOp.ABS if dtype.is_signed_integer:
            return b.select(b.compare("slt", value, zero), b.op("sub", zero, value), value)
        case UnaryOp.ABS:
            return value
        case UnaryOp.FROM_BITS:
            target = vector_of(real_type(dtype.as_float), lanes_of(value.type))
            return b.cast("bitcast", value, target)
        case UnaryOp.SIGN:
            positive = b.select(b.compare("ne", value, zero), _number(1, value), zero)
            if dtype.is_unsigned_integer:
                return positive
            return b.select(b.compare("slt", value, zero), _number(-1, value), positive)
        case _:
            found = _of_exact(op, value)
            if found is None:
                raise refused(op, dtype)
            return found


def binary_bool(b: Builder, op: BinaryOp, lhs: Value, rhs: Value) -> Value:
    """Return ``lhs op rhs`` of bools."""
    if op in _OF_BOOLS:
        return b.op(_OF_BOOLS[op], lhs, rhs)
    if op in _UNSIGNED:
        return b.compare(_UNSIGNED[op], lhs, rhs)
    raise refused(op, DType.BOOL)


def binary_integer(
    b: Builder, op: BinaryOp, lhs: Value, rhs: Value, dtype: DType, library: SupportFunctions
) -> Value:
    """Return ``lhs op rhs`` of integers."""
    comparisons = _SIGNED if dtype.is_signed_integer else _UNSIGNED
    if op in _PLAIN:
        return b.op(_PLAIN[op], lhs, rhs)
    if op in comparisons:
        return b.compare(comparisons[op], lhs, rhs)
    match op:
        case BinaryOp.MIN | BinaryOp.FMIN:
            return b.select(b.compare(comparisons[BinaryOp.LT], lhs, rhs), lhs, rhs)
        case BinaryOp.MAX | BinaryOp.FMAX:
            return b.select(b.compare(comparisons[BinaryOp.GT], lhs, rhs), lhs, rhs)
        case BinaryOp.SHL | BinaryOp.SHR:
            return _shift(b, op, lhs, rhs, dtype)
        case BinaryOp.FLOORDIV | BinaryOp.REM | BinaryOp.FMOD:
            if dtype.is_unsigned_integer:
                return _divide_unsigned(b, op, lhs, rhs)
            return _divide(b, op, lhs, rhs)
        case BinaryOp.POW:
            return _power(b, lhs, rhs, dtype, library)
        case _:
            raise refused(op, dtype)


def _shift(b: Builder, op: BinaryOp, lhs: Value, rhs: Value, dtype: DType) -> Value:
    fits = b.compare("ult", rhs, _number(dtype.bits, lhs))
    zero = _number(0, lhs)
    if op is BinaryOp.SHR and dtype.is_signed_integer:
        last = _number(dtype.bits - 1, lhs)
        return b.op("ashr", lhs, b.select(fits, rhs, last))
    amount = b.select(fits, rhs, zero)
    return b.select(fits, b.op("shl" if op is BinaryOp.SHL else "lshr", lhs, amount), zero)


def _divide_unsigned(b: Builder, op: BinaryOp, lhs: Value, rhs: Value) -> Value:
    name = "udiv" if op is BinaryOp.FLOORDIV else "urem"
    if rhs.known:
        return b.op(name, lhs, rhs)
    zero = _number(0, lhs)
    by_zero = b.compare("eq", rhs, zero)
    result = b.op(name, lhs, b.select(by_zero, _number(1, lhs), rhs))
    return b.select(by_zero, zero, result)


def _is_power_of_two(number: int | None) -> bool:
    return number is not None and number > 0 and number & (number - 1) == 0


def _divide(b: Builder, op: BinaryOp, lhs: Value, rhs: Value) -> Value:
    """Divide by a divisor that cannot trap, then choose: by 0 is 0, by -1 is negation."""
    if op is BinaryOp.FLOORDIV and _is_power_of_two(rhs.known):
        assert rhs.known is not None
        return b.op("ashr", lhs, _number(rhs.known.bit_length() - 1, lhs))
    zero, one = _number(0, lhs), _number(1, lhs)
    is_plain = rhs.known is not None and rhs.known not in (0, -1)
    special: Callable[[Value, Value, Value], Value]
    if is_plain:
        safe = rhs

        def special(result: Value, by_zero: Value, by_minus_one: Value) -> Value:
            return result
    else:
        is_zero = b.compare("eq", rhs, zero)
        is_minus_one = b.compare("eq", rhs, _number(-1, lhs))
        safe = b.select(b.op("or", is_zero, is_minus_one), one, rhs)

        def special(result: Value, by_zero: Value, by_minus_one: Value) -> Value:
            return b.select(is_zero, by_zero, b.select(is_minus_one, by_minus_one, result))

    quotient, rest = b.op("sdiv", lhs, safe), b.op("srem", lhs, safe)
    if op is BinaryOp.FMOD:
        return special(rest, zero, zero)
    opposite = b.compare("slt", b.op("xor", rest, safe), zero)
    adjust = b.op("and", b.compare("ne", rest, zero), opposite)
    if op is BinaryOp.FLOORDIV:
        floor = b.op("sub", quotient, b.select(adjust, one, zero))
        return special(floor, zero, b.op("sub", zero, lhs))
    return special(b.op("add", rest, b.select(adjust, safe, zero)), zero, zero)


def _power(b: Builder, lhs: Value, rhs: Value, dtype: DType, library: SupportFunctions) -> Value:
    extend = "sext" if dtype.is_signed_integer else "zext"
    name = "int_pow" if dtype.is_signed_integer else "uint_pow"
    if lanes_of(lhs.type) > 1:
        raise refused(BinaryOp.POW, dtype)
    wide = [value if dtype.bits == 64 else b.cast(extend, value, "i64") for value in (lhs, rhs)]
    power = b.call(library.function(name, "double"), wide)
    return power if dtype.bits == 64 else b.cast("trunc", power, lhs.type)
