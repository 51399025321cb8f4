"""NumPy's type promotion (NEP 50), asked of NumPy itself.

In: the ufunc and the operands. Out: the dtype that each operand is converted to. A Python scalar is
weak: it adapts to the dtype of what it meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError
from sparsejit.ir.fold import integer_limits, numpy_dtype
from sparsejit.ir.types import DType
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, cast

__all__ = [
    "can_cast",
    "converted",
    "dtype_of_numpy",
    "loop_dtypes",
    "product_dtype",
    "result_dtype",
]

_BY_NAME = {dtype.value: dtype for dtype in DType}


def dtype_of_numpy(dtype: Any) -> DType:
    """Return the element type of a NumPy dtype (or what NumPy takes for one).

    Raises ``TensorTypeError`` for a type that tensors cannot have.

    >>> dtype_of_numpy("float32")
    DType.FLOAT32
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError as error:
        raise TensorTypeError(
            str(error), hint=f"use {', '.join(_BY_NAME)}", location=caller()
        ) from None
    found = _BY_NAME.get(wanted.name)
    if found is None:
        raise TensorTypeError(
            f"dtype {wanted} is not supported",
            hint=f"use {', '.join(_BY_NAME)}",
            location=caller(),
        )
    return found


def _kind(operand: Pointwise) -> Any:
    """Return what NumPy's resolution wants: a dtype, or a Python type for a weak scalar."""
    if operand.weak:
        if operand.dtype.is_complex:
            return complex
        if operand.dtype.is_float:
            return float
        if operand.dtype.is_integer:
            return int
    return numpy_dtype(operand.dtype)


def loop_dtypes(ufunc: np.ufunc, operands: Sequence[Pointwise]) -> tuple[DType, ...]:
    """Return the dtypes in which ``ufunc`` computes: of its inputs, then of its outputs.

    Raises ``TensorTypeError`` where NumPy has no loop for the operands.
    """
    kinds = tuple(_kind(operand) for operand in operands)
    if all(operand.weak for operand in operands):  # NumPy would compare two as Python objects
        kinds = tuple(numpy_dtype(operand.dtype) for operand in operands)
    try:
        found = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))
    except TypeError as error:
        names = ", ".join(numpy_dtype(operand.dtype).name for operand in operands)
        raise TensorTypeError(f"{ufunc.__name__} of {names}: {error}", location=caller()) from None
    return tuple(dtype_of_numpy(dtype) for dtype in found)


def result_dtype(operands: Sequence[Pointwise]) -> DType:
    """Return ``np.result_type`` of the operands.

    Raises ``TensorTypeError`` where they have no common dtype, as float16 and bfloat16.
    """
    samples = [
        _kind(operand)(0) if isinstance(_kind(operand), type) else _kind(operand)
        for operand in operands
    ]
    try:
        return dtype_of_numpy(np.result_type(*samples))
    except np.exceptions.DTypePromotionError:
        names = " and ".join(dict.fromkeys(operand.dtype.value for operand in operands))
        raise TensorTypeError(
            f"{names} have no common dtype",
            hint="convert one of them, as with .astype(np.float32)",
            location=caller(),
        ) from None


def product_dtype(operands: Sequence[Pointwise]) -> DType:
    """Return the dtype of a sum of products, as ``np.matmul`` has it.

    It is the common one; float16 with bfloat16 gives float32, in which both are computed.
    """
    halves = (DType.FLOAT16, DType.BFLOAT16)
    if {operand.dtype for operand in operands}.issuperset(halves):
        operands = [
            cast(operand, DType.FLOAT32) if operand.dtype in halves else operand
            for operand in operands
        ]
    return result_dtype(operands)


def converted(operand: Pointwise, dtype: DType) -> Pointwise:
    """Return ``operand`` in the dtype of the loop.

    Raises ``TensorTypeError`` for a Python integer that the dtype cannot hold, as NumPy does.
    """
    const = operand.const
    if operand.weak and const is not None and dtype.is_integer and isinstance(const.value, int):
        least, largest = integer_limits(dtype)
        if not least <= const.value <= largest:
            raise TensorTypeError(
                f"Python integer {const.value} out of bounds for {dtype.value}",
                hint="convert the array to a wider type with .astype",
                location=caller(),
            )
    return cast(operand, dtype)


def can_cast(source: DType, target: DType) -> bool:
    """Return whether NumPy's same-kind rule lets an in-place operation store the result.

    >>> can_cast(DType.FLOAT64, DType.FLOAT32), can_cast(DType.FLOAT64, DType.INT64)
    (True, False)
    """
    return np.can_cast(numpy_dtype(source), numpy_dtype(target), casting="same_kind")
