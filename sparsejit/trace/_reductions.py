"""Reductions of array expressions: sum, prod, min, max, mean, any, all.

In: an array and the axes. Out: an array. The elementwise expression that is reduced is computed
inside the reduction, in one ``Generic``. Types widen as NumPy widens them; what is not stored
counts with its fill value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim, add
from sparsejit.errors import AxisError, TensorTypeError, TensorValueError
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace
from sparsejit.trace._einsum import reduced
from sparsejit.trace._emit import Term
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, binary, cast, substituted
from sparsejit.trace._promotion import dtype_of_numpy, loop_dtypes
from sparsejit.trace._symbolic import extent_value
from sparsejit.trace._ufuncs import as_bool

__all__ = [
    "BITWISE",
    "OPERATIONS",
    "Axes",
    "check_not_empty",
    "checked_axes",
    "mean",
    "mean_dtype",
    "no_identity",
    "prepared",
    "product_of",
    "reduce_axes",
    "reduce_bits",
    "widened",
]

OPERATIONS = {
    "sum": BinaryOp.ADD,
    "prod": BinaryOp.MUL,
    "min": BinaryOp.MIN,
    "max": BinaryOp.MAX,
    "any": BinaryOp.OR,
    "all": BinaryOp.AND,
}


def widened(dtype: DType) -> DType:
    """Return the dtype of ``sum`` and ``prod``: small integers and bool become 64 bits wide.

    >>> widened(DType.UINT8), widened(DType.FLOAT32)
    (DType.UINT64, DType.FLOAT32)
    """
    if dtype.is_unsigned_integer:
        return DType.UINT64
    return DType.INT64 if dtype.is_integer or dtype is DType.BOOL else dtype


def checked_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that ``axis`` (None, an integer or several) names, in order.

    Raises ``AxisError`` for an axis out of bounds or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given: Sequence[Any] = axis if isinstance(axis, tuple | list) else (axis,)
    axes = []
    for one in given:
        try:
            number = one.__index__()
        except AttributeError:
            raise TensorTypeError(
                f"an axis is an integer, not {one!r}", location=caller()
            ) from None
        if not -rank <= number < rank:
            raise AxisError(
                f"axis {number} is out of bounds for array of dimension {rank}",
                hint=f"axes are {-rank} to {rank - 1}" if rank else "it has no axes",
                location=caller(),
            )
        axes.append(number % rank)
    if len(set(axes)) != len(axes):
        raise AxisError("duplicate value in 'axis'", location=caller())
    return tuple(sorted(axes))


def no_identity(name: str) -> str:
    """Return NumPy's words for a reduction of nothing."""
    return f"zero-size array to reduction operation {name} which has no identity"


def check_not_empty(trace: Trace, extents: Sequence[AffineExpr], message: str) -> None:
    """Raise ``TensorValueError`` where one of the extents is 0."""
    for extent in extents:
        if not trace.extents.holds(add(extent, Constant(-1))):
            raise TensorValueError(message, location=caller())


def prepared(name: str, part: Pointwise, dtype: Any) -> Pointwise:
    """Return the elements that a reduction combines, in the dtype it combines them in."""
    if name in ("any", "all"):
        return as_bool(part)
    if dtype is not None:
        return cast(part, dtype_of_numpy(dtype))
    return cast(part, widened(part.dtype) if name in ("sum", "prod") else part.dtype)


@dataclass(frozen=True, slots=True)
class Axes:
    """A reduction over ``axes`` of an array: where its dimensions go, and the loops.

    Variables 0 to ``rank`` - 1 are the dimensions of the result, ``reduced`` those after them.
    """

    axes: tuple[int, ...]
    moved: dict[int, AffineExpr]
    rank: int
    extents: dict[int, AffineExpr]

    @staticmethod
    def of(shape: Sequence[AffineExpr], axes: Sequence[int], keepdims: bool) -> Axes:
        # Dimensions that stay with extent 1 have one coordinate, 0, and no operand depends on it.
        places = [d for d in range(len(shape)) if keepdims or d not in axes]
        moved: dict[int, AffineExpr] = {
            d: Dim(places.index(d)) for d in range(len(shape)) if d not in axes
        }
        extents: dict[int, AffineExpr] = {
            n: Constant(1) if d in axes else shape[d] for n, d in enumerate(places)
        }
        rank = len(places)
        for n, d in enumerate(axes, rank):
            moved[d] = Dim(n)
            extents[n] = shape[d]
        return Axes(tuple(axes), moved, rank, extents)

    @property
    def reduced(self) -> tuple[int, ...]:
        """The variables that are reduced."""
        return tuple(range(self.rank, self.rank + len(self.axes)))

    @property
    def shape(self) -> tuple[AffineExpr, ...]:
        """The shape of the result."""
        return tuple(self.extents[d] for d in range(self.rank))


def _with_axes(
    trace: Trace, array: Array, part: Pointwise, axes: Sequence[int], keepdims: bool, op: BinaryOp
) -> Array:
    plan = Axes.of(array.extents, axes, keepdims)
    term = Term(substituted(part, plan.moved), plan.reduced, op)
    return reduced(trace, term, plan.rank, plan.extents)


def reduce_axes(
    trace: Trace,
    name: str,
    array: Array,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
) -> Array:
    """Return ``np.<name>(array, axis, keepdims=)`` for one of ``OPERATIONS``.

    Raises ``TensorTypeError`` for a minimum or maximum over nothing.
    """
    axes = checked_axes(axis, len(array.extents))
    part = prepared(name, array.read(), dtype)
    if name in ("min", "max"):
        check_not_empty(trace, [array.extents[d] for d in axes], no_identity(name))
    return _with_axes(trace, array, part, axes, keepdims, OPERATIONS[name])


BITWISE: dict[np.ufunc, BinaryOp] = {
    np.bitwise_or: BinaryOp.OR,
    np.bitwise_and: BinaryOp.AND,
    np.bitwise_xor: BinaryOp.XOR,
}


def reduce_bits(trace: Trace, ufunc: np.ufunc, array: Array, axis: Any, keepdims: bool) -> Array:
    """Return ``ufunc.reduce(array, axis, keepdims=)`` for one of ``BITWISE``."""
    axes = checked_axes(axis, len(array.extents))
    part = array.read()
    dtype = loop_dtypes(ufunc, (cast(part, part.dtype),) * 2)[-1]
    return _with_axes(trace, array, cast(part, dtype), axes, keepdims, BITWISE[ufunc])


def mean_dtype(source: DType, dtype: Any) -> DType:
    """Return the dtype of a mean: the one asked for, float64 for integers and bool."""
    if dtype is not None:
        return dtype_of_numpy(dtype)
    return DType.FLOAT64 if source.is_integer or source is DType.BOOL else source


def product_of(trace: Trace, extents: Sequence[AffineExpr], dtype: DType) -> Pointwise:
    """Return the product of extents as a run-time value."""
    counts = [cast(extent_value(trace, extent), dtype) for extent in extents]
    return reduce(lambda one, other: binary(BinaryOp.MUL, one, other), counts)


def mean(
    trace: Trace, array: Array, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> Array:
    """Return ``np.mean``: integers in float64, 16-bit floats summed in float32."""
    axes = checked_axes(axis, len(array.extents))
    part = array.read()
    result = mean_dtype(part.dtype, dtype)
    total = _with_axes(trace, array, cast(part, result.compute), axes, keepdims, BinaryOp.ADD)
    content = total.read()
    quotient = content
    if axes:
        count = product_of(trace, [array.extents[d] for d in axes], content.dtype)
        quotient = binary(BinaryOp.DIV, content, count)
    return trace.pointwise(cast(quotient, result), total.extents)
