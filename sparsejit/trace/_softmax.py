"""``softmax`` over stored entries: maximum, exponentials, sum and quotient of what is stored.

In: an array and axes, or an indexed expression and indices. Out: the same kind, with the structure
of the operand. The maximum is subtracted first, so that no exponential overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsejit.affine import AffineExpr, Dim
from sparsejit.errors import Location, TensorTypeError
from sparsejit.formats import Format
from sparsejit.ir.fold import identity_const
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from sparsejit.trace._context import Deferred, Trace, require_trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._entries import entries_of, nothing_of, over_entries
from sparsejit.trace._fold import Fold, fold_fresh
from sparsejit.trace._indexed import Index, Indexed
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pattern_operands import LazyIndexed, over_dimensions, tensor_of
from sparsejit.trace._pointwise import (
    Pointwise,
    binary,
    cast,
    of_value,
    substituted,
    unary,
    variables_of,
)
from sparsejit.trace._reduce import over_variables
from sparsejit.trace._reductions import Axes, checked_axes

__all__ = ["softmax"]


def softmax(E: Any, axis: Any) -> Any:
    """``exp(E)`` over its sum along ``axis``, at the entries that ``E`` stores and over these only.

    ``axis`` is an integer or several for an array, index variables for an indexed expression. What
    is not stored takes no part, whatever the fill value; the result stores what ``E`` stores, with
    fill value 0. A row without entries stays empty; a row of only ``-inf`` gives nan. Integers
    become float64. Raises ``TensorTypeError`` for complex numbers.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def attention(S, Q, K, V):
    ...     return sj.softmax(sj.where_stored(S, Q @ K.T), axis=1) @ V
    """
    trace, location = require_trace("softmax"), caller()
    if isinstance(E, Index | Indexed):
        return _indexed(trace, tensor_of(trace, E), over_variables(axis), location)
    array = as_array(trace, E)
    part = array.read()
    if part.body != Arg(0):
        array.force()
        part = array.read()
    shape = array.extents
    axes = checked_axes(axis, len(shape))
    dtype = _dtype(part)

    def emit(format: Format | None) -> Value:
        return _computed(trace, part, shape, axes, format, location)

    return trace.pointwise(Deferred(emit, dtype), shape)


def _indexed(
    trace: Trace, part: Pointwise, over: Sequence[int], location: Location | None
) -> LazyIndexed:
    variables = variables_of(part)
    missing = [v for v in over if v not in variables]
    if missing:
        raise TensorTypeError(
            f"softmax over an index that the expression does not have: "
            f"{trace.index_names[missing[0]]}",
            location=location,
        )

    def emit(order: Sequence[int], format: Format | None) -> Value:
        moved, extents = over_dimensions(trace, part, order)
        shape = [extents[n] for n in range(len(order))]
        axes = [n for n, v in enumerate(order) if v in over]
        return _computed(trace, moved, shape, axes, format, location)

    return LazyIndexed(trace, variables, part, emit, dtype=_dtype(part))


def _dtype(part: Pointwise) -> DType:
    if part.dtype.is_complex:
        raise TensorTypeError("softmax of complex numbers", location=caller())
    return part.dtype if part.dtype.is_float else DType.FLOAT64


def _computed(
    trace: Trace,
    part: Pointwise,
    shape: Sequence[AffineExpr],
    axes: Sequence[int],
    format: Format | None,
    location: Location | None,
) -> Value:
    """Compute the softmax of a tensor over its dimensions ``axes``."""
    dtype = _dtype(part)
    wide = dtype.compute
    nothing = nothing_of(wide)
    plan = Axes.of(shape, axes, keepdims=False)
    kept = [Dim(d) for d in range(len(shape)) if d not in axes]
    extents = dict(enumerate(shape))

    def folded(elements: Pointwise, op: BinaryOp) -> Pointwise:
        identity = identity_const(op, wide)
        assert identity is not None
        fold = Fold(substituted(elements, plan.moved), identity, op)
        value = fold_fresh(trace, fold, plan.reduced, plan.shape, plan.extents, None, location)
        return of_value(value, kept)

    elements = over_entries(entries_of(part), lambda e: cast(e, wide), nothing)
    largest = folded(elements, BinaryOp.MAX)

    def exponential(entry: Pointwise) -> Pointwise:
        return unary(UnaryOp.EXP, binary(BinaryOp.SUB, entry, largest))

    powers = fresh(
        trace, Term(over_entries(elements, exponential, nothing)), shape, extents, None, location
    )
    elements = entries_of(of_value(powers))
    total = folded(elements, BinaryOp.ADD)

    def quotient(entry: Pointwise) -> Pointwise:
        return cast(binary(BinaryOp.DIV, entry, total), dtype)

    result = over_entries(elements, quotient, nothing_of(dtype))
    return fresh(trace, Term(result), shape, extents, format, location)
