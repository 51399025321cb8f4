"""The methods that SciPy's sparse arrays have and NumPy's do not: their spellings on traced arrays.

In: traced arrays, sparse or dense. Out: traced arrays. A conversion (``A.tocsr()``) is one of the
program; ``nnz`` and its kin are values of the program, known when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.formats import BSR, COO, CSC, CSR, DIA, Dense, Format
from sparsejit.ir.tensor import Convert
from sparsejit.trace._array import Array
from sparsejit.trace._context import require_trace
from sparsejit.trace._elementwise import elementwise, where_stored
from sparsejit.trace._functions import METHODS
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import of_value
from sparsejit.trace._statistics import count_nonzero
from sparsejit.trace._ufuncs import apply

__all__ = ["in_format", "stored_count"]

_ELEMENTWISE = (
    *("sqrt", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh"),
    *("expm1", "log1p", "sign", "rint", "floor", "ceil", "trunc", "deg2rad", "rad2deg"),
    *("power", "maximum", "minimum"),
)


def in_format(a: Any, format: Format) -> Any:
    """Return an array stored in a format: itself, computed so, or converted."""
    trace = require_trace("a conversion")
    array = as_array(trace, a)
    rank = len(array.extents)
    if format.ndim != rank:
        raise TensorTypeError(
            f"the format ({format}) has rank {format.ndim}, the array rank {rank}",
            location=caller(),
        )
    copy: Array = METHODS["copy"](array)
    value = copy.force(format)
    if value.type.format.with_widths(0, 0) == format.with_widths(0, 0):
        return copy
    result = trace.value(replace(value.type, format=format))
    trace.ops.append(Convert(result, value, caller()))
    return trace.pointwise(of_value(result), array.extents)


def _conversion(name: str, format: Format) -> Callable[..., Any]:
    def function(a: Any, copy: bool = False) -> Any:
        return in_format(a, format)

    function.__name__ = function.__qualname__ = name
    return function


def tobsr(a: Any, blocksize: Any = None, copy: bool = False) -> Any:
    """``tobsr`` with a block size known while tracing."""
    if blocksize is None:
        raise UnsupportedError(
            "tobsr without blocksize= is not built",
            hint="give the block size, as in A.tobsr((2, 2))",
            location=caller(),
            reasons=("the blocks that fit best are known only at run time",),
        )
    return in_format(a, BSR(*(int(size) for size in blocksize)))


def tocoo(a: Any, copy: bool = False) -> Any:
    """``tocoo``."""
    return in_format(a, COO(len(as_array(require_trace("tocoo"), a).extents)))


def toarray(a: Any, order: Any = None, out: Any = None) -> Any:
    """``toarray``: the array, stored densely."""
    if out is not None:
        raise UnsupportedError("toarray with out= is not built", location=caller())
    return in_format(a, Dense(len(as_array(require_trace("toarray"), a).extents)))


def asformat(a: Any, format: Any, copy: bool = False) -> Any:
    """``asformat``, by SciPy's names or as a ``Format``."""
    if isinstance(format, Format):
        return in_format(a, format)
    if format is None:
        return METHODS["copy"](a)
    if format not in ("csr", "csc", "coo", "dia", "array"):
        raise TensorValueError(
            f"format {format!r} is none of 'csr', 'csc', 'coo', 'dia', 'array'",
            hint="give a sparsejit.Format",
            location=caller(),
        )
    return METHODS[f"to{format}"](a)


def stored_count(a: Any, axis: Any = None) -> Any:
    """``getnnz``: how many elements are stored, stored zeros among them, as a value."""
    require_trace("getnnz")
    return METHODS["sum"](where_stored(a, np.int64(1)), axis)


def _line(what: str, axis: int) -> Callable[..., Any]:
    """Return ``getrow`` or ``getcol``: a slice with one row or column."""

    def function(a: Any, i: int) -> Any:
        array: Any = as_array(require_trace(what), a)
        part = slice(i, i + 1 if i != -1 else None)
        _ = array[(i, ...)] if axis == 0 else array[..., i]
        return array[part] if axis == 0 else array[:, part]

    function.__name__ = function.__qualname__ = what
    return function


def _elementwise(name: str) -> Callable[..., Any]:
    ufunc = getattr(np, name)

    def function(*operands: Any) -> Any:
        trace = require_trace(name)
        return elementwise(trace, lambda parts: apply(ufunc, parts), operands)

    function.__name__ = function.__qualname__ = name
    return function


def _nothing(a: Any) -> None:
    """Do nothing: traced arrays are sorted and without duplicates."""


METHODS.update({name: _elementwise(name) for name in _ELEMENTWISE})
METHODS.update(
    {
        "asformat": asformat,
        "count_nonzero": count_nonzero,
        "getcol": _line("getcol", 1),
        "getnnz": stored_count,
        "getrow": _line("getrow", 0),
        "sort_indices": _nothing,
        "sum_duplicates": _nothing,
        "toarray": toarray,
        "tobsr": tobsr,
        "tocoo": tocoo,
        "tocsc": _conversion("tocsc", CSC),
        "tocsr": _conversion("tocsr", CSR),
        "todense": toarray,
        "todia": _conversion("todia", DIA),
    }
)
