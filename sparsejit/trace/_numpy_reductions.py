"""The plain reductions with the arguments of NumPy's functions and methods.

In: ``axis``, ``dtype``, ``keepdims``, ``initial`` and ``where`` as NumPy takes them. Out: an array.
What ``where`` leaves out counts as the identity; ``initial`` is one more element of each result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.affine import Constant
from sparsejit.errors import TensorValueError, UnsupportedError
from sparsejit.ir.fold import identity_const, numpy_dtype
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._elementwise import elementwise
from sparsejit.trace._elementwise import where as choose
from sparsejit.trace._extents import difference
from sparsejit.trace._functions import METHODS, astype, broadcast_to
from sparsejit.trace._indexed import Index, Indexed
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._reduce import reduction
from sparsejit.trace._reductions import OPERATIONS, Axes, checked_axes, mean_dtype, prepared
from sparsejit.trace._symbolic import symbolic
from sparsejit.trace._ufuncs import apply

__all__ = ["REDUCTIONS", "refuse_out"]

_UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def refuse_out(what: str, out: Any) -> None:
    """Raise ``UnsupportedError`` for an ``out=`` array."""
    if out is not None and out is not np._NoValue:
        raise UnsupportedError(
            f"{what} with out= is not built",
            hint=f"assign the result, as in y[...] = np.{what}(...)",
            location=caller(),
        )


def _given(value: Any) -> Any:
    return None if value is np._NoValue else value


def _reduced(
    name: str, a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """Return a reduction of an array, NumPy's placeholders for what is not given left out."""
    keepdims = bool(_given(keepdims) or False)
    initial, where = _given(initial), _given(where)
    if isinstance(a, Indexed | Index) or (initial is None and where is None) or where is True:
        return reduction(name, a, axis, None, keepdims, dtype)
    trace = require_trace(name)
    array: Any = as_array(trace, a)
    if name == "mean":
        return _mean_where(array, axis, dtype, keepdims, where)
    if where is not None:
        array = _masked(trace, name, array, dtype, initial, where)
    if initial is None:
        return reduction(name, array, axis, None, keepdims, dtype)
    kind = prepared(name, array.read(), dtype).dtype
    start = astype(initial, numpy_dtype(kind))
    axes = checked_axes(axis, len(array.extents))
    if name in ("min", "max") and not _has_elements(trace, array, axes):
        shape = Axes.of(array.extents, axes, keepdims).shape
        return broadcast_to(start, tuple(symbolic(trace, extent) for extent in shape))
    made = reduction(name, array, axes, None, keepdims, dtype)
    ufunc = _UFUNCS[name]
    return elementwise(trace, lambda parts: apply(ufunc, parts), (made, start))


def _has_elements(trace: Trace, array: Array, axes: tuple[int, ...]) -> bool:
    return all(trace.extents.holds(difference(array.extents[d], Constant(1))) for d in axes)


def _masked(trace: Trace, name: str, array: Any, dtype: Any, initial: Any, where: Any) -> Any:
    """Return an array with what changes nothing in place of what a mask leaves out."""
    if name in ("min", "max") and initial is None:
        raise TensorValueError(
            f"reduction operation '{_UFUNCS[name].__name__}' does not have an identity, so to use "
            "a where mask one has to specify 'initial'",
            location=caller(),
        )
    kind = prepared(name, array.read(), dtype).dtype
    identity = identity_const(OPERATIONS[name], kind)
    assert identity is not None
    if name in ("any", "all"):
        array = array != 0
    neutral = numpy_dtype(kind).type(identity.value)
    return choose(where, astype(array, numpy_dtype(kind)), neutral)


def _mean_where(array: Any, axis: Any, dtype: Any, keepdims: bool, where: Any) -> Any:
    """Return the mean of the elements that a mask chooses; nan where there is none."""
    result = mean_dtype(array.element_type, dtype)
    kind, wide = numpy_dtype(result), numpy_dtype(result.compute)
    total = _reduced("sum", array, axis, wide, keepdims, None, where)
    chosen = broadcast_to(where, array.shape)
    return astype(total / reduction("sum", chosen, axis, None, keepdims, wide), kind)


def _with_dtype(name: str) -> Any:
    """Return ``sum``, ``prod`` or ``mean`` with NumPy's arguments."""

    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        refuse_out(name, out)
        return _reduced(name, a, axis, dtype, keepdims, initial, where)

    function.__name__ = function.__qualname__ = name
    return function


def _mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = None,
) -> Any:
    """``np.mean``."""
    refuse_out("mean", out)
    return _reduced("mean", a, axis, dtype, keepdims, None, where)


def _without_dtype(name: str) -> Any:
    """Return ``min`` or ``max`` with NumPy's arguments."""

    def function(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        refuse_out(name, out)
        return _reduced(name, a, axis, None, keepdims, initial, where)

    function.__name__ = function.__qualname__ = name
    return function


def _truth(name: str) -> Any:
    """Return ``any`` or ``all`` with NumPy's arguments."""

    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = None
    ) -> Any:
        refuse_out(name, out)
        return _reduced(name, a, axis, None, keepdims, None, where)

    function.__name__ = function.__qualname__ = name
    return function


REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _with_dtype(name) for name in ("sum", "prod")},
    **{name: _without_dtype(name) for name in ("min", "max")},
    **{name: _truth(name) for name in ("any", "all")},
    "mean": _mean,
}
"""The reductions by name."""

METHODS.update(REDUCTIONS)
