"""NumPy's protocols: which of NumPy's functions work on traced arrays.

In: a call that NumPy dispatched, ``np.exp(A)`` or ``np.sum(A, axis=1)``. Out: a traced array, or an
``UnsupportedError`` that names the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.errors import UnsupportedError
from sparsejit.trace import _arg_reductions, _reduce
from sparsejit.trace import _functions as functions
from sparsejit.trace._arranging import FUNCTIONS as ARRANGING
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Trace
from sparsejit.trace._elementwise import elementwise, where
from sparsejit.trace._indexed import Index, Indexed, indexed_operator
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._reductions import BITWISE, reduce_bits
from sparsejit.trace._semirings import einsum
from sparsejit.trace._ufuncs import apply

__all__ = ["call_function", "call_ufunc"]

_REDUCE = {
    np.add: "sum",
    np.multiply: "prod",
    np.minimum: "min",
    np.maximum: "max",
    np.logical_or: "any",
    np.logical_and: "all",
}


def call_ufunc(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return what a ufunc call on traced arrays gives."""
    out = kwargs.pop("out", None)
    if method == "reduce" and ufunc in _REDUCE and out in (None, (None,)):
        name = _REDUCE[ufunc]
        axis = kwargs.pop("axis", 0)
        return functions.METHODS[name](inputs[0], axis=axis, **kwargs)
    if method == "reduce" and ufunc in BITWISE and out in (None, (None,)):
        axis, keepdims = kwargs.pop("axis", 0), kwargs.pop("keepdims", False)
        if not kwargs:
            return reduce_bits(trace, ufunc, as_array(trace, inputs[0]), axis, bool(keepdims))
    if method == "outer" and not kwargs and out is None:
        left, right = (functions.copy(operand) for operand in inputs)
        rank = len(right.extents)
        wide = left[(..., *(None,) * rank)]
        return call_ufunc(trace, ufunc, "__call__", (wide, right), {})
    if method != "__call__" or kwargs:
        words = ", ".join(f"{key}=" for key in kwargs)
        call = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
        raise UnsupportedError(
            f"{call}{' with ' + words if words else ''} is not built", location=caller()
        )
    result = _called(trace, ufunc, inputs)
    if out is None:
        return result
    (target,) = out
    if not isinstance(target, Array):
        raise UnsupportedError(
            f"np.{ufunc.__name__} with out= an array that is no traced one", location=caller()
        )
    assign_value(trace, target, result, None, caller())
    return target


def _called(trace: Trace, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    if ufunc is np.matmul:
        return functions.matmul(*inputs)
    if ufunc is np.divmod:
        return tuple(_called(trace, one, inputs) for one in (np.floor_divide, np.remainder))
    if any(isinstance(operand, Index | Indexed) for operand in inputs):
        return indexed_operator(trace, ufunc, inputs)
    return elementwise(trace, lambda parts: apply(ufunc, parts), inputs)


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what a NumPy function gives; ``UnsupportedError`` for one that is not built."""
    known = _FUNCTIONS.get(func)
    if known is None:
        module = func.__module__.replace("numpy", "np", 1)
        raise UnsupportedError(
            f"{module}.{func.__name__} is not built",
            location=caller(),
            reasons=("tracing has no rule for this function",),
        )
    if not _fits(known, args, kwargs):  # np.dot(a, b, None) spells out that there is no out=
        args = args[: max((n for n, arg in enumerate(args, 1) if arg is not None), default=0)]
        kwargs = {k: arg for k, arg in kwargs.items() if arg is not np._NoValue}
    if not _fits(known, args, kwargs):
        raise UnsupportedError(
            f"np.{func.__name__} with these arguments is not built", location=caller()
        )
    return known(*args, **kwargs)


def _fits(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether a function takes these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **rest: Any) -> Any:
    if out is not None or rest:
        raise UnsupportedError("np.einsum with out=, dtype=, order= or casting=", location=caller())
    return einsum(*operands)


def _where(condition: Any, *sides: Any) -> Any:
    if len(sides) != 2:
        raise UnsupportedError(
            "np.where with one argument is not built",
            location=caller(),
            reasons=("the size of its result is known only at run time",),
        )
    return where(condition, *sides)


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **ARRANGING,
    np.einsum: _einsum,
    np.where: _where,
    np.dot: functions.dot,
    np.tensordot: functions.tensordot,
    np.outer: functions.outer,
    np.inner: functions.inner,
    np.vdot: functions.vdot,
    np.trace: functions.trace_of,
    np.diagonal: functions.diagonal,
    np.transpose: functions.transpose,
    np.swapaxes: functions.swapaxes,
    np.moveaxis: functions.moveaxis,
    np.expand_dims: functions.expand_dims,
    np.squeeze: functions.squeeze,
    np.broadcast_to: functions.broadcast_to,
    np.clip: functions.clip,
    np.real: functions.real,
    np.imag: functions.imag,
    np.round: functions.round_,
    np.copy: functions.copy,
    np.zeros_like: functions.zeros_like,
    np.ones_like: functions.ones_like,
    np.full_like: functions.full_like,
    np.sum: functions.METHODS["sum"],
    np.prod: functions.METHODS["prod"],
    np.min: functions.METHODS["min"],
    np.max: functions.METHODS["max"],
    np.any: functions.METHODS["any"],
    np.all: functions.METHODS["all"],
    np.mean: functions.METHODS["mean"],
    np.argmax: functions.METHODS["argmax"],
    np.argmin: functions.METHODS["argmin"],
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}
_ = _arg_reductions, _reduce  # they add methods
