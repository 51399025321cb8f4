"""Outputs: the results of index notation that are there before they are assigned.

In: a shape, dtype and format, as far as they are given. Out: a traced array without content.
"""

from __future__ import annotations

from typing import Any

from sparsejit.affine import AffineExpr
from sparsejit.errors import TensorTypeError
from sparsejit.formats import Format
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Cell, Unassigned, require_trace
from sparsejit.trace._functions import checked_shape
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import constant_of
from sparsejit.trace._promotion import dtype_of_numpy

__all__ = ["output", "start_output"]


def unassigned_cell(shape: tuple[AffineExpr, ...] | None, dtype: DType | None, format: Any) -> Cell:
    """Return the cell of ``sj.output``."""
    if format is not None and not isinstance(format, Format):
        raise TensorTypeError(
            f"format must be a sparsejit.Format, not {format!r}", location=caller()
        )
    if format is not None and shape is not None and format.ndim != len(shape):
        raise TensorTypeError(
            f"the format ({format}) has rank {format.ndim}, the shape rank {len(shape)}",
            location=caller(),
        )
    return Cell(shape or (), Unassigned(shape, dtype, format))


def start_output(output: Array, value: Any) -> None:
    """Give an output that is assigned by slices its zeros."""
    cell, trace = output._cell, output._trace
    content = cell.content
    if not isinstance(content, Unassigned):
        return
    array = as_array(trace, value)
    dtype = content.dtype if content.dtype is not None else array.element_type
    cell.shape = array.extents if content.shape is None else content.shape
    cell.content = constant_of(0, dtype)


def output(shape: Any = None, dtype: Any = None, format: Any = None) -> Any:
    """A fresh result for index notation: ``M = sj.output(); M[i, r] = ...``.

    Shape, dtype and format follow from what is assigned unless given; elements that no assignment
    reaches are zero (for which the shape must be given). Raises ``TraceError`` outside of a traced
    function, ``TensorTypeError`` for a bad shape, dtype or format.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def matvec(A, x):
    ...     i, j = sj.indices("i j")
    ...     y = sj.output()
    ...     y[i] = A[i, j] * x[j]
    ...     return y
    """
    trace = require_trace("output")
    extents = None
    if shape is not None:
        extents = checked_shape(trace, shape)
    kind = None if dtype is None else dtype_of_numpy(dtype)
    cell = unassigned_cell(extents, kind, format)
    return trace.array(cell)
