"""Triangles and diagonals: what of a matrix stands above, below or on a diagonal.

In: traced arrays, with NumPy's arguments. Out: traced arrays. A triangle of a sparse array stores
the entries that are in it and no others; a diagonal matrix stores its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsejit.affine import Add, AffineExpr, Constant, Dim, mul
from sparsejit.errors import TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.formats import COO
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.trace._arranging import pad
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._entries import has_nothing, nothing_of, over_entries
from sparsejit.trace._functions import diagonal
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pattern_operands import patterns_of
from sparsejit.trace._pointwise import Pointwise, binary, cast, constant_of, select, variable
from sparsejit.trace._reshaped import ravel, reshape
from sparsejit.trace._symbolic import as_extent

__all__ = ["FUNCTIONS"]


def _offset(what: str, k: Any) -> int:
    if not isinstance(k, int | np.integer):
        raise TensorTypeError(f"{what}: the offset k is an integer, not {k!r}", location=caller())
    return int(k)


def _kept(trace: Trace, a: Any, condition: Pointwise) -> Any:
    """Return an array with zeros, or nothing stored, where a condition on coordinates fails."""
    given = patterns_of(trace, (a,))
    (part,), (fill,) = given.parts, given.fills
    if has_nothing(part) and isinstance(fill, Const) and fill.value == 0:
        nothing = nothing_of(part.dtype)

        def kept(entry: Pointwise) -> Pointwise:
            return select(condition, replace(entry, weak=False), nothing)

        return given.result(over_entries(part, kept, nothing))
    array = as_array(trace, a)
    content = cast(array.read(), array.element_type)
    zero = constant_of(0, array.element_type)
    return trace.pointwise(select(condition, content, zero), array.extents)


def _triangle(what: str, op: BinaryOp) -> Callable[..., Any]:
    """Return ``np.triu`` or ``np.tril``: what compares so with a diagonal."""

    def function(m: Any, k: Any = 0) -> Any:
        trace = require_trace(what)
        array = as_array(trace, m)
        rank = len(array.extents)
        shift = _offset(what, k)
        if rank < 2:
            raise UnsupportedError(
                f"{what} of an array of rank {rank} is not built",
                hint="use a matrix",
                location=caller(),
            )
        row: AffineExpr = Dim(rank - 2)
        diagonal_at = variable(Add(row, Constant(shift)) if shift else row)
        return _kept(trace, array, binary(op, variable(Dim(rank - 1)), diagonal_at))

    function.__name__ = function.__qualname__ = what
    return function


def diag(v: Any, k: Any = 0) -> Any:
    """``np.diag``: the diagonal of a matrix, or a sparse matrix with this diagonal."""
    trace = require_trace("diag")
    array: Any = as_array(trace, v)
    shift = _offset("diag", k)
    if len(array.extents) == 2:
        return diagonal(array, shift)
    if len(array.extents) != 1:
        raise TensorValueError("Input must be 1- or 2-d.", location=caller())
    column = array[(slice(None), None)]
    entries = trace.pointwise(column.read(), column.extents)
    entries.force(COO(2))
    return _on_diagonal(trace, entries, shift)


def _on_diagonal(trace: Trace, column: Any, shift: int) -> Any:
    """Return a square matrix with the elements of a column on a diagonal.

    Elements of a row-major matrix of n columns that stand one below and right of the other are
    n + 1 apart: the column is padded to that many, and what is too much is cut off.
    """
    size = column.shape[0]
    extent = size + abs(shift)
    area = mul(*(as_extent(extent) or Constant(0),) * 2)
    trace.extents.check_fits(area, "a matrix of np.diag with a number of elements")
    flat = ravel(pad(column, ((0, 0), (0, extent))))
    before = shift if shift > 0 else -shift * extent
    # Of the zeros after the last element, as many stay as fill the matrix.
    rows = flat[: extent * extent - before]
    return reshape(pad(rows, (before, 0)), extent, extent)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``np.fill_diagonal``: assigns one value to the diagonal of a matrix."""
    trace = require_trace("fill_diagonal")
    array = as_array(trace, a)
    if len(array.extents) != 2 or wrap:
        raise UnsupportedError(
            "fill_diagonal of anything but a matrix, or with wrap=, is not built",
            hint="use index notation: i = sj.indices('i')[0]; A[i, i] = ...",
            location=caller(),
        )
    value = as_array(trace, val)
    if value.extents:
        raise UnsupportedError("fill_diagonal with an array is not built", location=caller())
    dtype = array.element_type
    on = binary(BinaryOp.EQ, variable(Dim(0)), variable(Dim(1)))
    part = select(on, cast(value.read(), dtype), cast(array.read(), dtype))
    target: Any = array
    target[...] = trace.pointwise(part, array.extents)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "diag": diag,
    "diagflat": lambda v, k=0: diag(ravel(v), k),
    "fill_diagonal": fill_diagonal,
    "tril": _triangle("tril", BinaryOp.LE),
    "triu": _triangle("triu", BinaryOp.GE),
}
"""NumPy's functions that are built here, by name."""
