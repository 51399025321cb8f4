"""Arrays made inside of the function: NumPy's creation functions with ``like=`` a traced array.

``np.full(n, 0.0, like=x)`` is what ``np.full(n, 0.0)`` is, as an array of the trace: dense, its
elements may be traced values and can be assigned, and its extents follow those of the operands
(but for ``zeros`` and ``empty``, for which NumPy asks for the numbers first).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.affine import Add, Constant, Dim
from sparsejit.ir.ops import BinaryOp
from sparsejit.trace._arranging import stack
from sparsejit.trace._array import Array
from sparsejit.trace._context import require_trace
from sparsejit.trace._functions import (
    astype,
    checked_shape,
    constant_array,
    copy,
    expand_dims,
)
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import binary, cast, variable
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._symbolic import SymbolicInt

__all__ = ["FUNCTIONS"]


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None
) -> Any:
    """``np.full``: of the type of ``fill_value`` where none is given."""
    trace = require_trace("full")
    given = as_array(trace, fill_value)
    wanted = given.element_type if dtype is None else dtype_of_numpy(dtype)
    return constant_array(trace, given, wanted, checked_shape(trace, shape))


def zeros(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None) -> Any:
    """``np.zeros``, and ``np.empty``, whose elements may be anything."""
    return full(shape, 0, float if dtype is None else dtype)


def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
    """``np.ones``."""
    return full(shape, 1, float if dtype is None else dtype)


def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: Any = 0,
) -> Any:
    """``np.array``, also of lists with traced values in them: a new array."""
    trace = require_trace("array")
    made = _nested(obj) if _has_traced(obj) else as_array(trace, np.asarray(obj))
    made = _as_type(made, dtype)
    missing = int(ndmin) - len(made.extents)
    return expand_dims(made, tuple(range(missing))) if missing > 0 else made


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Any:
    """``np.asarray``: a traced array of that type as it is, anything else as ``np.array``."""
    is_same = isinstance(a, Array) and (dtype is None or dtype_of_numpy(dtype) is a.element_type)
    return a if is_same and not copy else array(a, dtype)


def _as_type(made: Any, dtype: Any) -> Any:
    return copy(made) if dtype is None else astype(made, dtype)


def _has_traced(obj: Any) -> bool:
    if isinstance(obj, list | tuple):
        return any(map(_has_traced, obj))
    return isinstance(obj, Array | SymbolicInt)


def _nested(obj: Any) -> Any:
    """Return a list of lists of traced values as the array that it spells."""
    if isinstance(obj, list | tuple):
        return stack([_nested(item) for item in obj])
    return as_array(require_trace("array"), obj)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Any:
    """``np.arange``: up to an extent it is as long as that is in each call."""
    trace = require_trace("arange")
    if stop is None:
        start, stop = 0, start
    if isinstance(stop, SymbolicInt) and type(start) is int and start == 0 and step == 1:
        (extent,) = checked_shape(trace, stop)
        wanted = dtype_of_numpy(np.int64 if dtype is None else dtype)
        return trace.pointwise(cast(variable(Dim(0)), wanted), (extent,))
    made: Any = np.arange
    return array(made(start, stop, step, dtype))


def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
) -> Any:
    """``np.eye``: dense, with ones on the diagonal ``k``."""
    trace = require_trace("eye")
    extents = checked_shape(trace, (N, N if M is None else M))
    row = Add(Dim(0), Constant(int(k))) if int(k) else Dim(0)
    on = binary(BinaryOp.EQ, variable(Dim(1)), variable(row))
    return trace.pointwise(cast(on, dtype_of_numpy(dtype)), extents)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arange": arange,
    "array": array,
    "asanyarray": asarray,
    "asarray": asarray,
    "empty": zeros,
    "eye": eye,
    "full": full,
    "identity": lambda n, dtype=None: eye(n, dtype=float if dtype is None else dtype),
    "ones": ones,
    "zeros": zeros,
}
"""NumPy's functions with ``like=``, by name."""
