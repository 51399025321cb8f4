"""Elementwise functions of arrays, and what looks alike on indexed expressions.

In: arrays, scalars or indexed expressions. Out: the same kind. Arrays broadcast; nothing is
computed until it is needed, so a chain of elementwise operations is one ``Generic``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.ir.scalar import Arg, ScalarExpr, Stored
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._indexed import Index, Indexed, combined, indexed_operator
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, broadcast
from sparsejit.trace._pointwise import Pointwise, cast, constant_of, select
from sparsejit.trace._promotion import converted, result_dtype
from sparsejit.trace._ufuncs import apply, choose, weakened

__all__ = ["elementwise", "maximum", "minimum", "on_arrays", "operator", "where", "where_stored"]

Rule = Callable[[Sequence[Pointwise]], Pointwise]


def on_arrays(trace: Trace, rule: Rule, operands: Sequence[Any]) -> Array:
    """Return ``rule`` of the broadcast contents of arrays and scalars."""
    arrays = [as_array(trace, operand) for operand in operands]
    parts, shape = broadcast(trace, arrays)
    return trace.pointwise(rule(parts), shape)


def elementwise(trace: Trace, rule: Rule, operands: Sequence[Any]) -> Any:
    """Return ``rule`` of arrays and scalars, or of indexed expressions when one of them is such."""
    if any(isinstance(operand, Index | Indexed) for operand in operands):
        return combined(trace, rule, operands)
    return on_arrays(trace, rule, operands)


def operator(trace: Trace, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    """Return a Python operator; of Python scalars it gives a Python scalar (NEP 50)."""
    if any(isinstance(operand, Index | Indexed) for operand in operands):
        return indexed_operator(trace, ufunc, operands)
    return elementwise(
        trace, lambda parts: weakened(apply(ufunc, _as_numbers(ufunc, parts)), parts), operands
    )


_OF_TRUTHS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert)


def _as_numbers(ufunc: np.ufunc, parts: Sequence[Pointwise]) -> Sequence[Pointwise]:
    """Return the operands of an operator: Python's bools are the numbers 0 and 1, NumPy's not."""
    if not all(part.weak for part in parts) or ufunc in _OF_TRUTHS:
        return parts
    return [
        replace(cast(part, DType.INT64), weak=True) if part.dtype is DType.BOOL else part
        for part in parts
    ]


def where(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where ``condition`` holds, else ``y``: ``np.where`` of three operands.

    Operands are arrays that broadcast, scalars, or indexed expressions; the dtype is the common one
    of ``x`` and ``y``. Raises ``TraceError`` outside of a traced function.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def clipped(x):
    ...     return sj.where(x > 1, 1.0, x)
    """
    trace = require_trace("where")
    return elementwise(trace, lambda parts: choose(*parts), (condition, x, y))


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two operands, elementwise: ``np.minimum`` (nan wins).

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def capped(x):
    ...     return sj.minimum(x, 2)
    >>> capped(np.array([1, 5]))
    array([1, 2])
    """
    trace = require_trace("minimum")
    return elementwise(trace, lambda parts: apply(np.minimum, parts), (x, y))


def maximum(x: Any, y: Any) -> Any:
    """The larger of two operands, elementwise: ``np.maximum`` (nan wins).

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def relu(x):
    ...     return sj.maximum(x, 0)
    >>> relu(np.array([-1, 5]))
    array([0, 5])
    """
    trace = require_trace("maximum")
    return elementwise(trace, lambda parts: apply(np.maximum, parts), (x, y))


def where_stored(S: Any, expr: Any, fill_value: Any = 0) -> Any:
    """``expr`` at the entries that ``S`` stores, ``fill_value`` elsewhere; nothing else is
    computed.

    ``S`` is a sparse array (a dense one stores everything) and ``expr`` an array that broadcasts
    against it; or both are indexed. The result has S's structure, the dtype of ``expr`` and
    the fill value ``fill_value``, a static scalar. ``where_stored(S, A @ B)`` is a sampled product.
    Raises ``TraceError`` where ``S`` is an expression, ``TensorTypeError`` for a bad fill value.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def sampled(S, A, B):
    ...     return sj.where_stored(S, A @ B)
    """
    trace = require_trace("where_stored")
    if isinstance(S, Array) and S._view is None and _stored(S.read()) is None:
        S.force()

    def rule(parts: Sequence[Pointwise]) -> Pointwise:
        return _where_stored(parts[0], parts[1], fill_value)

    return elementwise(trace, rule, (S, expr))


def _stored(pattern: Pointwise) -> ScalarExpr | None:
    return Stored(0) if pattern.body == Arg(0) else None


def _where_stored(pattern: Pointwise, part: Pointwise, fill_value: Any) -> Pointwise:
    stored = _stored(pattern)
    if stored is None:
        raise UnsupportedError(
            "where_stored needs a tensor, not an expression, as its pattern",
            hint="assign the expression to a name of its own first",
            location=caller(),
        )
    if not isinstance(fill_value, bool | int | float | complex | np.generic):
        raise TensorTypeError(
            f"fill_value must be a number known while tracing, not {type(fill_value).__name__}",
            location=caller(),
        )
    dtype = result_dtype([part])
    fill = _fill(fill_value, dtype)
    guard = Pointwise(stored, pattern.accesses, DType.BOOL)
    return select(guard, converted(part, dtype), fill)


def _fill(fill_value: bool | complex | np.generic, dtype: DType) -> Pointwise:
    """Return the fill value as a constant; rounding of floats is all that may happen to it."""
    fill = constant_of(fill_value, dtype)
    assert fill.const is not None
    is_same = fill.const.value == fill_value or fill_value != fill_value
    rounds = dtype.is_complex or (dtype.is_float and not np.iscomplexobj(fill_value))
    if not (is_same or rounds):
        raise TensorTypeError(
            f"fill_value {fill_value!r} is no value of {dtype.value}", location=caller()
        )
    return fill
