"""Running sums and products along an axis: loops of the program over the slices of an array.

In: traced arrays, with NumPy's arguments. Out: dense traced arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.formats import Dense
from sparsejit.ir.fold import numpy_dtype
from sparsejit.trace._context import require_trace
from sparsejit.trace._control import fori_loop
from sparsejit.trace._functions import METHODS, astype, moveaxis
from sparsejit.trace._numpy_reductions import refuse_out
from sparsejit.trace._operands import as_array
from sparsejit.trace._reductions import checked_axes, prepared
from sparsejit.trace._reshaped import ravel
from sparsejit.trace._scipy_methods import in_format

__all__ = ["FUNCTIONS"]


def _running(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    """Return ``np.cumsum`` or ``np.cumprod``; what it gives of a sparse array is dense."""

    def function(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        what = f"cum{name}"
        refuse_out(what, out)
        trace = require_trace(what)
        array: Any = as_array(trace, a)
        if axis is None:
            array, axis = ravel(array), 0
        place = checked_axes(axis, len(array.extents))[0]
        kind = prepared(name, array.read(), dtype).dtype
        first = moveaxis(astype(array, numpy_dtype(kind)), place, 0)
        made = in_format(first, Dense(len(first.extents)))

        def step(k: Any, carried: Any) -> Any:
            total = ufunc(carried[k], carried[k + 1])
            carried[k + 1] = total
            return carried

        if trace.extents.number(made.extents[0]) > 1:
            made = fori_loop(0, made.shape[0] - 1, step, made)
        return moveaxis(made, 0, place)

    function.__name__ = function.__qualname__ = f"cum{name}"
    return function


cumsum = _running("sum", np.add)
cumprod = _running("prod", np.multiply)


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a running function under its name of the array API."""

    def made(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return function(x, axis, dtype, out)

    return made


METHODS.update({"cumsum": cumsum, "cumprod": cumprod})

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cumprod": cumprod,
    "cumsum": cumsum,
    "cumulative_prod": _renamed(cumprod),
    "cumulative_sum": _renamed(cumsum),
}
"""NumPy's functions that are built here, by name."""
