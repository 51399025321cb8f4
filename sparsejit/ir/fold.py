"""Constant folding: what an operation gives on constants, exactly as NumPy computes it.

What enters are an operation and ``Const`` operands; what leaves is a ``Const``. Where NumPy warns,
nothing is said; where it raises or leaves the result open, the rules of the language hold:

- integer overflow wraps; integer division and remainder by zero give 0;
- a negative integer power is that of the integer nearest to zero: 1 ** -n is 1, 0 and all others 0;
- a shift by the width or more, or by a negative amount, gives 0, or the sign for ``>>``;
- a float that becomes an integer is truncated; nan becomes 0, what does not fit the nearest limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from sparsejit.ir.ops import BinaryOp, ResultKind, UnaryOp, identity_of
from sparsejit.ir.scalar import Const, result_dtype
from sparsejit.ir.types import DType

__all__ = [
    "algebra_const",
    "applies",
    "constant",
    "fold_binary",
    "fold_cast",
    "fold_unary",
    "identity_const",
    "integer_limits",
    "numpy_dtype",
    "numpy_unary",
    "zero_of",
]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return NumPy's dtype (that of ``ml_dtypes`` for bfloat16).

    >>> numpy_dtype(DType.FLOAT32)
    dtype('float32')
    """
    made: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16 if dtype is DType.BFLOAT16 else dtype.value)
    return made


def constant(value: Any, dtype: DType) -> Const:
    """Return ``value`` (a Python or NumPy scalar) as a constant of ``dtype``, converted to it.

    >>> constant(0.1, DType.FLOAT32)
    Const(0.10000000149011612, DType.FLOAT32)
    >>> constant(300, DType.UINT8)
    Const(44, DType.UINT8)
    """
    match value:
        case bool() | np.bool_():
            return fold_cast(Const(bool(value), DType.BOOL), dtype)
        case int() | np.integer():
            return _of_integer(int(value), dtype)
        case complex() | np.complexfloating():
            return fold_cast(Const(complex(value), DType.COMPLEX128), dtype)
        case _:
            return fold_cast(Const(float(value), DType.FLOAT64), dtype)


@cache
def zero_of(dtype: DType) -> Const:
    """Return the zero (or False) of ``dtype``."""
    return constant(0, dtype)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """Return the least and the largest value of an integer type (0 and 1 for bool).

    >>> integer_limits(DType.INT8)
    (-128, 127)
    """
    if dtype is DType.BOOL:
        return 0, 1
    info = np.iinfo(numpy_dtype(dtype))
    return int(info.min), int(info.max)


def identity_const(op: BinaryOp, dtype: DType) -> Const | None:
    """Return the identity of the reduction ``op`` at ``dtype``, or None where it has none.

    >>> identity_const(BinaryOp.MIN, DType.FLOAT64)
    Const(float("inf"), DType.FLOAT64)
    >>> identity_const(BinaryOp.AND, DType.UINT8)
    Const(255, DType.UINT8)
    """
    return algebra_const(identity_of(op), dtype)


def algebra_const(number: int | float | str | None, dtype: DType) -> Const | None:
    """Return an entry of the operations' table as a constant of ``dtype``.

    ``"min"`` and ``"max"`` are the least and the largest value; -1 is all ones; None stays None.
    """
    match number:
        case None:
            return None
        case "min" | "max":
            return _limit(number == "max", dtype)
        case str():
            raise ValueError(f"no such entry of the algebra: {number!r}")
        case -1 if dtype is DType.BOOL:
            return Const(True, dtype)
        case _:
            return constant(number, dtype)


def _limit(largest: bool, dtype: DType) -> Const:
    if dtype.is_integer:
        return Const(integer_limits(dtype)[largest], dtype)
    if dtype is DType.BOOL:
        return Const(largest, dtype)
    infinite = math.inf if largest else -math.inf
    return Const(complex(infinite, infinite) if dtype.is_complex else infinite, dtype)


@cache
def applies(op: UnaryOp | BinaryOp, dtype: DType) -> bool:
    """Return whether ``op`` is defined on operands of ``dtype``, as they are and without a cast.

    The result has the dtype that the operation's row says. 16-bit floats have what float32 has.

    >>> applies(UnaryOp.SQRT, DType.FLOAT16), applies(UnaryOp.SQRT, DType.INT64)
    (True, False)
    """
    operand = numpy_dtype(dtype.compute)
    if op in (UnaryOp.REAL, UnaryOp.IMAG):
        return True
    if op is UnaryOp.BITS:
        return dtype in (DType.FLOAT32, DType.FLOAT64)
    if op is UnaryOp.FROM_BITS:
        return dtype in (DType.UINT32, DType.UINT64)
    ufunc = getattr(np, op.info.numpy)
    given = (operand,) * ufunc.nin
    try:
        resolved = ufunc.resolve_dtypes((*given, None))
    except TypeError:
        return False
    result = numpy_dtype(result_dtype(op, dtype.compute))
    return bool(resolved == (*given, result))


def numpy_unary(op: UnaryOp) -> Callable[[Any], Any]:
    """Return what computes an operation on NumPy's arrays and scalars.

    >>> numpy_unary(UnaryOp.BITS)(np.float32(1.0))
    np.uint32(1065353216)
    """
    match op.info.result:
        case ResultKind.BITS:
            return lambda values: values.view(f"u{values.dtype.itemsize}")
        case ResultKind.FLOAT:
            return lambda values: values.view(f"f{values.dtype.itemsize}")
        case _:
            function: Callable[[Any], Any] = getattr(np, op.info.numpy)
            return function


def _silence() -> np.errstate:
    return np.errstate(all="ignore")


def _array(const: Const) -> np.ndarray[Any, Any]:
    return np.asarray(const.value).astype(numpy_dtype(const.dtype))


def _to_const(result: Any, dtype: DType) -> Const:
    """Round what NumPy computed to ``dtype``, as a Python number."""
    scalar = np.asarray(result).astype(numpy_dtype(dtype))
    if dtype is DType.BFLOAT16:
        return Const(float(scalar.astype(np.float64)), dtype)
    return Const(scalar.item(), dtype)


def _refuse(op: UnaryOp | BinaryOp, dtype: DType) -> None:
    if not applies(op, dtype):
        raise ValueError(f"{op!r} is not defined on {dtype.value}")


def fold_unary(op: UnaryOp, operand: Const) -> Const:
    """Return ``op`` of a constant; ``ValueError`` where ``op`` has no meaning on its dtype.

    >>> fold_unary(UnaryOp.EXP, Const(0.0, DType.FLOAT64))
    Const(1.0, DType.FLOAT64)
    """
    _refuse(op, operand.dtype)
    dtype = result_dtype(op, operand.dtype)
    with _silence():
        value = _array(operand).astype(numpy_dtype(operand.dtype.compute))
        return _to_const(numpy_unary(op)(value), dtype)


def fold_binary(op: BinaryOp, lhs: Const, rhs: Const) -> Const:
    """Return ``lhs op rhs``; ``ValueError`` for two dtypes, or one that ``op`` is not defined on.

    >>> fold_binary(BinaryOp.FLOORDIV, Const(7, DType.INT8), Const(0, DType.INT8))
    Const(0, DType.INT8)
    """
    if lhs.dtype is not rhs.dtype:
        raise ValueError(f"{op!r} of {lhs.dtype.value} and {rhs.dtype.value}")
    _refuse(op, lhs.dtype)
    dtype = result_dtype(op, lhs.dtype)
    with _silence():
        if op is BinaryOp.POW and dtype.is_signed_integer and _real(rhs) < 0:
            return Const(_negative_power(int(_real(lhs)), int(_real(rhs))), dtype)
        compute = numpy_dtype(lhs.dtype.compute)
        values = _array(lhs).astype(compute), _array(rhs).astype(compute)
        return _to_const(getattr(np, op.info.numpy)(*values), dtype)


def _negative_power(base: int, exponent: int) -> int:
    if base == -1:
        return -1 if exponent % 2 else 1
    return int(base == 1)


def _real(const: Const) -> float | int:
    return const.value.real


def fold_cast(const: Const, dtype: DType) -> Const:
    """Return ``const`` converted to ``dtype``; complex to real keeps the real part.

    >>> fold_cast(Const(float("nan"), DType.FLOAT64), DType.INT32)
    Const(0, DType.INT32)
    >>> fold_cast(Const(-1e30, DType.FLOAT64), DType.INT8)
    Const(-128, DType.INT8)
    """
    if dtype is DType.BOOL:
        return Const(bool(const.value), dtype)
    if not (const.dtype.is_float or const.dtype.is_complex):
        return _of_integer(int(_real(const)), dtype, const.dtype)
    if dtype.is_integer:
        return Const(_truncate(float(_real(const)), dtype), dtype)
    with _silence():
        value = const.value if dtype.is_complex else _real(const)
        source = const.dtype if dtype.is_complex else const.dtype.real
        return _to_const(_array(Const(value, source)), dtype)


def _truncate(value: float, dtype: DType) -> int:
    if math.isnan(value):
        return 0
    least, largest = integer_limits(dtype)
    if math.isinf(value):
        return largest if value > 0 else least
    return min(max(int(value), least), largest)


def _of_integer(value: int, dtype: DType, source: DType | None = None) -> Const:
    if dtype is DType.BOOL:
        return Const(value != 0, dtype)
    if dtype.is_integer:
        least, _ = integer_limits(dtype)
        return Const((value - least) % 2**dtype.bits + least, dtype)
    with _silence():
        exact: Any = value if source is None else np.asarray(value, numpy_dtype(source))
        try:
            return _to_const(exact, dtype)
        except OverflowError:  # a Python integer beyond the range of floats
            infinite = math.inf if value > 0 else -math.inf
            return Const(complex(infinite) if dtype.is_complex else infinite, dtype)
