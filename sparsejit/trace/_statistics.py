"""Statistics of arrays: variance, average, counts, and the reductions that leave nan out.

In: traced arrays, with NumPy's arguments. Out: traced arrays. Each is a composition of reductions
and elementwise operations; of sparse arrays only the entries are visited, and the elements that are
missing enter once for each result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.errors import TensorValueError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._elementwise import where, where_stored
from sparsejit.trace._functions import METHODS, astype, broadcast_to, full_like
from sparsejit.trace._locations import caller
from sparsejit.trace._numpy_reductions import refuse_out
from sparsejit.trace._operands import as_array, shape_text
from sparsejit.trace._part_views import real
from sparsejit.trace._pointwise import Pointwise
from sparsejit.trace._reductions import checked_axes, mean_dtype, product_of

__all__ = ["FUNCTIONS", "count_nonzero", "squared"]


def squared(a: Any) -> Any:
    """Return the square of the absolute value, a real number."""
    return real(a * a.conj()) if a.element_type.is_complex else a * a


def _sizes(trace: Trace, array: Array, axes: tuple[int, ...], dtype: DType) -> Any:
    """Return the number of elements along axes, as an array of rank 0."""
    if not axes:
        return as_array(trace, numpy_dtype(dtype).type(1))
    return trace.pointwise(product_of(trace, [array.extents[d] for d in axes], dtype), ())


# ---------------------------------------------------------------- variance


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """``np.var``; of a sparse array only the entries are visited."""
    refuse_out("var", out)
    trace = require_trace("var")
    array: Any = as_array(trace, a)
    axes = checked_axes(axis, len(array.extents))
    result = mean_dtype(array.element_type, dtype)
    compute = numpy_dtype(result.compute)
    array = astype(array, compute) if array.element_type is not result.compute else array
    if mean is None:
        mean = METHODS["mean"](array, axes, None, None, True, where=where)
    divisor = (ddof if correction is None else correction) * -1
    kind = array.element_type.real if array.element_type.is_complex else array.element_type
    if where is None:
        total = _deviations(trace, array, mean, axes)
        count = _sizes(trace, array, axes, kind) + divisor
    else:
        total = METHODS["sum"](squared(array - mean), axes, None, None, True, where=where)
        count = _chosen(array, where, axes, True) + divisor
    made = total / METHODS["clip"](count, 0)
    if not keepdims:
        made = METHODS["squeeze"](made, axes)
    return astype(made, numpy_dtype(result.real if result.is_complex else result))


def _deviations(trace: Trace, array: Any, mean: Any, axes: tuple[int, ...]) -> Any:
    """Return the sum of the squared deviations, its axes kept."""
    if array.extents and array.read().view is None:
        array.force()
    view = array.read().view
    kind = None if view is None else view.value.type
    if kind is None or kind.format.is_all_full:
        return METHODS["sum"](squared(array - mean), axes, keepdims=True)
    entries = where_stored(array, squared(array - mean)).sum(axes, keepdims=True)
    stored = where_stored(array, np.int64(1)).sum(axes, keepdims=True)
    missing = _sizes(trace, array, axes, DType.FLOAT64) - stored  # may exceed 64 bits
    fill: Any = trace.pointwise(Pointwise(kind.fill, (), kind.dtype), ())
    rest = squared(fill - mean)
    return entries + where(missing > 0, astype(missing, rest.dtype) * rest, 0)


def _chosen(array: Any, mask: Any, axes: Any, keepdims: bool) -> Any:
    """Return how many elements of an array a mask chooses along axes."""
    wide = broadcast_to(mask, array.shape)
    return METHODS["sum"](wide, axes, np.int64, None, keepdims)


def std(a: Any, *args: Any, **options: Any) -> Any:
    """``np.std``: the square root of the variance."""
    return np.sqrt(var(a, *args, **options))


# ---------------------------------------------------------------- averages and ranges


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False
) -> Any:
    """``np.average``; weights that add up to zero give nan or inf, where NumPy raises."""
    trace = require_trace("average")
    array: Any = as_array(trace, a)
    axes = checked_axes(axis, len(array.extents))
    if weights is None:
        made = METHODS["mean"](array, axes, None, None, keepdims)
        total = _sizes(trace, array, axes, made.element_type)
    else:
        wide = _weights(trace, array, axes, axis, weights)
        dtype = np.result_type(array.dtype, wide.dtype)
        if array.element_type.is_integer or array.element_type is DType.BOOL:
            dtype = np.result_type(dtype, np.float64)
        total = METHODS["sum"](wide, axes, dtype, None, keepdims)
        product = astype(array, dtype) * astype(wide, dtype)
        made = METHODS["sum"](product, axes, dtype, None, keepdims) / total
    if not returned:
        return made
    return made, broadcast_to(total, made.shape)


def _weights(trace: Trace, array: Any, axes: tuple[int, ...], axis: Any, weights: Any) -> Any:
    """Return weights with a dimension for each of the array's, as ``np.average`` reads them."""
    given: Any = as_array(trace, weights)
    shapes = f"{shape_text(trace, array.extents)} and {shape_text(trace, given.extents)}"
    if len(given.extents) == len(array.extents):
        if not all(map(trace.extents.unify, array.extents, given.extents)):
            raise TensorValueError(
                f"the shapes of a and weights differ: {shapes}", location=caller()
            )
        return given
    if axis is None or len(given.extents) != len(axes):
        raise TensorValueError(
            f"axis must be specified when shapes of a and weights differ: {shapes}",
            location=caller(),
        )
    for d, extent in zip(axes, given.extents, strict=True):
        if not trace.extents.unify(array.extents[d], extent):
            raise TensorValueError(
                f"the weights do not have the extents of the axes: {shapes}", location=caller()
            )
    key = tuple(slice(None) if d in axes else None for d in range(len(array.extents)))
    return broadcast_to(given[key], array.shape)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """``np.ptp``: the maximum less the minimum."""
    refuse_out("ptp", out)
    largest = METHODS["max"](a, axis, None, keepdims)
    return largest - METHODS["min"](a, axis, None, keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """``np.count_nonzero``; stored zeros do not count."""
    array: Any = as_array(require_trace("count_nonzero"), a)
    return METHODS["sum"](array != 0, axis, np.int64, None, keepdims)


# ---------------------------------------------------------------- without nan


def _has_nan(array: Any) -> bool:
    return bool(array.element_type.is_float or array.element_type.is_complex)


def _without_nan(name: str, instead: float) -> Callable[..., Any]:
    """Return ``np.nansum`` or ``np.nanprod``: nan counts as the identity."""

    def function(a: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
        array: Any = as_array(require_trace(f"nan{name}"), a)
        if _has_nan(array):
            array = where(np.isnan(array), array.dtype.type(instead), array)
        return METHODS[name](array, axis, *args, **options)

    function.__name__ = function.__qualname__ = f"nan{name}"
    return function


def _extreme_without_nan(name: str, least: float) -> Callable[..., Any]:
    """Return ``np.nanmax`` or ``np.nanmin``; nan where there is nothing else."""

    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any
    ) -> Any:
        refuse_out(f"nan{name}", out)
        array: Any = as_array(require_trace(f"nan{name}"), a)
        if not _has_nan(array):
            return METHODS[name](array, axis, None, keepdims, **options)
        isnan = np.isnan(array)
        made = METHODS[name](
            where(isnan, array.dtype.type(least), array), axis, None, keepdims, **options
        )
        if options:  # an initial value is there also where all is nan
            return made
        return where(isnan.all(axis, keepdims=keepdims), array.dtype.type(np.nan), made)

    function.__name__ = function.__qualname__ = f"nan{name}"
    return function


def _moment_without_nan(name: str) -> Callable[..., Any]:
    """Return ``np.nanmean``, ``np.nanvar`` or ``np.nanstd``."""

    def function(a: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
        array: Any = as_array(require_trace(f"nan{name}"), a)
        if _has_nan(array):
            mask = ~np.isnan(array)
            given = options.pop("where", None)
            options["where"] = mask if given is None else np.logical_and(mask, given)
        return METHODS[name](array, axis, *args, **options)

    function.__name__ = function.__qualname__ = f"nan{name}"
    return function


def fill(a: Any, value: Any) -> None:
    """``ndarray.fill``: assigns one value to all elements."""
    a[...] = full_like(a, value)


METHODS.update({"var": var, "std": std, "ptp": ptp, "fill": fill})

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "var": var,
    "std": std,
    "average": average,
    "ptp": ptp,
    "count_nonzero": count_nonzero,
    "nansum": _without_nan("sum", 0),
    "nanprod": _without_nan("prod", 1),
    "nanmax": _extreme_without_nan("max", -np.inf),
    "nanmin": _extreme_without_nan("min", np.inf),
    "nanmean": _moment_without_nan("mean"),
    "nanvar": _moment_without_nan("var"),
    "nanstd": _moment_without_nan("std"),
}
"""NumPy's functions that are built here, by name."""
