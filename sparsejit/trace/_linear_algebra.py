"""Norms and products of ``np.linalg`` that are sums of products, and ``np.kron``.

In: traced arrays, with NumPy's arguments. Out: traced arrays. Of sparse arrays only the entries are
visited. What needs a factorization is refused (see ``_refusals``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.ir.types import DType
from sparsejit.trace._context import require_trace
from sparsejit.trace._functions import (
    METHODS,
    astype,
    diagonal,
    expand_dims,
    matmul,
    outer,
    swapaxes,
    tensordot,
    trace_of,
    transpose,
)
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import cast
from sparsejit.trace._promotion import loop_dtypes
from sparsejit.trace._reductions import checked_axes
from sparsejit.trace._reshaped import ravel, reshape
from sparsejit.trace._statistics import squared

__all__ = ["FUNCTIONS"]


def _inexact(what: str, a: Any) -> Any:
    """Return an array, integers and bool in float64."""
    array: Any = as_array(require_trace(what), a)
    exact = array.element_type.is_integer or array.element_type is DType.BOOL
    return astype(array, np.float64) if exact else array


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``np.linalg.norm``: of matrices without those that need singular values."""
    array = _inexact("linalg.norm", x)
    rank = len(array.extents)
    if axis is None:
        if ord is None or (rank == 2 and ord in ("f", "fro")) or (rank == 1 and ord == 2):
            made = np.sqrt(squared(array).sum())
            return reshape(made, *(1,) * rank) if keepdims else made
        axes = tuple(range(rank))
    else:
        given = axis if isinstance(axis, tuple | list) else (axis,)
        axes = tuple(checked_axes(one, rank)[0] for one in given)
    if len(axes) == 1:
        return _vector_norm(array, ord, axes, keepdims)
    if len(axes) != 2:
        raise TensorValueError("Improper number of dimensions to norm.", location=caller())
    if axes[0] == axes[1]:
        raise TensorValueError("Duplicate axes given.", location=caller())
    return _matrix_norm(array, ord, axes, keepdims)


def _vector_norm(array: Any, order: Any, axes: Any, keepdims: bool) -> Any:
    if order is None or order == 2:
        return np.sqrt(squared(array).sum(axes, keepdims=keepdims))
    if isinstance(order, str):
        raise TensorValueError(f"Invalid norm order '{order}' for vectors", location=caller())
    size = abs(array)
    if order == np.inf:
        return size.max(axes, keepdims=keepdims)
    if order == -np.inf:
        return size.min(axes, keepdims=keepdims)
    if order == 0:
        return astype(array != 0, size.dtype).sum(axes, keepdims=keepdims)
    if order == 1:
        return size.sum(axes, keepdims=keepdims)
    return (size**order).sum(axes, keepdims=keepdims) ** (1 / order)


def _matrix_norm(array: Any, order: Any, axes: Any, keepdims: bool) -> Any:
    if order in (None, "fro", "f"):
        return np.sqrt(squared(array).sum(axes, keepdims=keepdims))
    if order in (2, -2, "nuc"):
        raise UnsupportedError(
            f"the norm of order {order!r} of a matrix is not built",
            hint="use the Frobenius norm, or scipy.sparse.linalg.svds outside of the function",
            location=caller(),
            reasons=("it needs singular values",),
        )
    if order not in (1, -1, np.inf, -np.inf):
        raise TensorValueError("Invalid norm order for matrices.", location=caller())
    inner, outside = axes if order in (1, -1) else axes[::-1]
    sums = abs(array).sum(inner, keepdims=True)
    made = (sums.max if order > 0 else sums.min)(outside, keepdims=True)
    return made if keepdims else METHODS["squeeze"](made, axes)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """``np.linalg.vector_norm``: over all elements, or over axes."""
    array = _inexact("linalg.vector_norm", x)
    axes = checked_axes(axis, len(array.extents))
    return _vector_norm(array, ord, axes, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """``np.linalg.matrix_norm``: over the last two axes."""
    array = _inexact("linalg.matrix_norm", x)
    rank = len(array.extents)
    return norm(array, ord, (*checked_axes(-2, rank), *checked_axes(-1, rank)), keepdims)


# ---------------------------------------------------------------- products


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """``np.vecdot``: dot products along an axis, the first operand conjugated."""
    trace = require_trace("vecdot")
    left, right = as_array(trace, x1), as_array(trace, x2)
    product: Any = METHODS["conj"](left) * right
    kept = product.element_type is not DType.BOOL
    return METHODS["sum"](product, axis, product.dtype) if kept else product.any(axis)


def matvec(x1: Any, x2: Any, /) -> Any:
    """``np.matvec``: a matrix and a vector, or batches of them."""
    made = matmul(x1, expand_dims(x2, -1))
    return METHODS["squeeze"](made, -1)


def vecmat(x1: Any, x2: Any, /) -> Any:
    """``np.vecmat``: a conjugated vector and a matrix, or batches of them."""
    left: Any = METHODS["conj"](as_array(require_trace("vecmat"), x1))
    return METHODS["squeeze"](matmul(expand_dims(left, -2), x2), -2)


def kron(a: Any, b: Any) -> Any:
    """``np.kron``: the products of all pairs of elements, blocks of ``b`` scaled by ``a``."""
    trace = require_trace("kron")
    left: Any = as_array(trace, a)
    right: Any = as_array(trace, b)
    rank = max(len(left.extents), len(right.extents))
    left, right = (x[(None,) * (rank - len(x.extents))] for x in (left, right))
    if not rank:
        return left * right
    product = tensordot(left, right, axes=0)
    order = [place for d in range(rank) for place in (d, rank + d)]
    sizes = [m * n for m, n in zip(left.shape, right.shape, strict=True)]
    return reshape(transpose(product, order), *sizes)


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """``np.linalg.multi_dot``: a chain of products, in the order that costs least."""
    if out is not None:
        raise UnsupportedError("linalg.multi_dot with out= is not built", location=caller())
    factors = list(arrays)
    if len(factors) < 2:
        raise TensorValueError("Expecting at least two arrays.", location=caller())
    return reduce(matmul, factors)


def matrix_power(a: Any, n: Any) -> Any:
    """``np.linalg.matrix_power`` for positive exponents, by repeated squaring."""
    trace = require_trace("linalg.matrix_power")
    array: Any = as_array(trace, a)
    extents = array.extents
    if len(extents) < 2 or not trace.extents.unify(extents[-1], extents[-2]):
        raise TensorValueError("Last 2 dimensions of the array must be square", location=caller())
    if not isinstance(n, int | np.integer):
        raise TensorTypeError("exponent must be an integer", location=caller())
    if n < 1:
        raise UnsupportedError(
            f"linalg.matrix_power with the exponent {n} is not built",
            hint="use np.eye, or solve outside of the function",
            location=caller(),
            reasons=("only products are", "a negative exponent needs an inverse"),
        )
    made, square = None, array
    for bit in reversed(f"{int(n):b}"):
        if bit == "1":
            made = square if made is None else matmul(made, square)
        n //= 2
        square = matmul(square, square) if n else square
    return METHODS["copy"](made)


def _last(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the last two axes rather than the first two."""

    def made(x: Any, /, *, offset: int = 0, **options: Any) -> Any:
        return function(x, offset, -2, -1, **options)

    return made


def _matrix_transpose(x: Any, /) -> Any:
    array = as_array(require_trace("matrix_transpose"), x)
    if len(array.extents) < 2:
        raise TensorValueError(
            f"Input array must be at least 2-dimensional, but it is {len(array.extents)}",
            location=caller(),
        )
    return swapaxes(array, -1, -2)


def vdot(a: Any, b: Any) -> Any:
    """``np.vdot``: the first operand conjugated, both flattened."""
    trace = require_trace("vdot")
    left, right = as_array(trace, a), as_array(trace, b)
    shapes = left.extents, right.extents
    if len(shapes[0]) == len(shapes[1]) and all(map(trace.extents.unify, *shapes)):
        axes = tuple(range(len(shapes[0])))
        return tensordot(METHODS["conj"](left), right, axes=(axes, axes))
    return tensordot(METHODS["conj"](ravel(left)), ravel(right), axes=1)


def _outer(a: Any, b: Any, out: Any = None) -> Any:
    """``np.outer``: both operands flattened, and multiplied in the dtype of ``np.multiply``."""
    if out is not None:
        raise UnsupportedError("outer with out= is not built", location=caller())
    trace = require_trace("outer")
    given = [as_array(trace, a), as_array(trace, b)]
    if given[0].element_type is not given[1].element_type:
        parts = [replace(array.read(), weak=False) for array in given]
        dtype = loop_dtypes(np.multiply, parts)[0]
        pairs = zip(given, parts, strict=True)
        given = [trace.pointwise(cast(part, dtype), array.extents) for array, part in pairs]
    return outer(*(x if len(x.extents) == 1 else ravel(x) for x in given))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "kron": kron,
    "matrix_transpose": _matrix_transpose,
    "outer": _outer,
    "vdot": vdot,
    "linalg.diagonal": _last(diagonal),
    "linalg.matmul": matmul,
    "linalg.matrix_norm": matrix_norm,
    "linalg.matrix_power": matrix_power,
    "linalg.matrix_transpose": _matrix_transpose,
    "linalg.multi_dot": multi_dot,
    "linalg.norm": norm,
    "linalg.outer": outer,
    "linalg.tensordot": tensordot,
    "linalg.trace": _last(trace_of),
    "linalg.vecdot": vecdot,
    "linalg.vector_norm": vector_norm,
}
"""NumPy's functions that are built here, by name."""

UFUNCS: dict[str, Callable[..., Any]] = {"vecdot": vecdot, "matvec": matvec, "vecmat": vecmat}
"""NumPy's generalized ufuncs by name: some versions of NumPy lack them."""
