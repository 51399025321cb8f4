"""Reshapes: other shapes of the elements of an array, in row-major order.

In: an array and its new shape. Out: a view of a dense array (reading sees its present content,
assigning changes it), a new tensor of the same entries of a sparse one. Where only extents of 1
come or go, the view is one of dimensions and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsejit.affine import AffineExpr, Constant, floordiv, mod, mul
from sparsejit.errors import Location, TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.formats import Dense, Format
from sparsejit.ir.tensor import Reshape, Value
from sparsejit.trace._array import Array, force_cell
from sparsejit.trace._context import Cell, Deferred, Trace, require_trace
from sparsejit.trace._emit import Term
from sparsejit.trace._functions import METHODS
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, shape_text
from sparsejit.trace._part_views import is_strided
from sparsejit.trace._pointwise import Pointwise, of_value
from sparsejit.trace._sealed import LAYOUT
from sparsejit.trace._slices import coordinate_format, is_plain
from sparsejit.trace._symbolic import as_extent

__all__ = ["given_extent", "ravel", "reshape", "reshape_value", "reshaped"]


def reshape_value(
    trace: Trace,
    value: Value,
    shape: Sequence[AffineExpr],
    format: Format | None,
    location: Location | None,
) -> Value:
    """Append ``Reshape`` of a value; a sparse one keeps a format that fits, or takes ``format``."""
    kind, rank = value.type, len(shape)
    if kind.is_dense:
        chosen = Dense(rank)
    else:
        own = kind.format.with_widths(0, 0)
        fits = rank == kind.rank and is_plain(own)
        chosen = format or (own if fits else coordinate_format(rank))
    result = trace.value(replace(kind, shape=tuple(shape), format=chosen))
    trace.ops.append(Reshape(result, value, location))
    return result


class _ReshapedCell(Cell):
    """What a reshape of a dense array stands for: always the present content of its base."""

    __slots__ = ("_base", "_made", "_of")

    def __init__(self, base: Array, shape: tuple[AffineExpr, ...], location: Location | None):
        self._base = base
        self._of: Value | None = None
        self._made: Pointwise | None = None
        self.shape = shape
        self.param = None
        self.assigned = False
        self.immutable = False
        self.location = location
        self.block = base._trace.block_of(base._cell)
        self.sealed = None if is_contiguous(base) else LAYOUT

    @property
    def content(self) -> Pointwise:
        trace = self._base._trace
        trace.note_read(self._base._cell)  # what is seen is the base, as it is now
        root = force_cell(trace, self._base._cell)
        if self._made is None or root != self._of:
            with trace.within(self.block):
                value = reshape_value(trace, self._base.force(), self.shape, None, self.location)
            self._of, self._made = root, of_value(value)
        return self._made

    @content.setter
    def content(self, new: Pointwise) -> None:
        """Store a new content, which lies in the base."""
        base, view = self._base, new.view
        assert view is not None
        shape = base.extents
        back = reshape_value(base._trace, view.value, shape, None, caller())
        base.store([Term(of_value(back))], dict(enumerate(shape)), True, caller())
        self._of, self._made = force_cell(base._trace, base._cell), new


def is_contiguous(array: Array) -> bool:
    """Return whether the elements of a dense array follow each other in row-major order.

    Operands and computed arrays are taken to do so.
    """
    return array.present_view.is_contiguous(array._cell.shape, array._trace.extents)


def reshaped(trace: Trace, array: Array, shape: tuple[AffineExpr, ...]) -> Array:
    """Return ``array`` in another shape of as many elements."""
    location = caller()
    if array.is_dense:
        view = _of_dimensions(trace, array, shape)
        return trace.array(_ReshapedCell(array, shape, location)) if view is None else view
    value = array.force()

    def emit(format: Format | None) -> Value:
        wanted = None if format is not None and format.is_dense else format
        return reshape_value(trace, value, shape, wanted, location)

    return trace.pointwise(Deferred(emit, array.element_type), shape)


def _of_dimensions(trace: Trace, array: Array, shape: Sequence[AffineExpr]) -> Array | None:
    """Return the view that only leaves out and adds extents of 1, if that does."""
    own = array.extents
    ones = [d for d, extent in enumerate(own) if trace.extents.is_one(extent)]
    rest = [extent for d, extent in enumerate(own) if d not in ones]
    wide = [extent for extent in shape if not trace.extents.is_one(extent)]
    if len(rest) != len(wide) or not all(map(trace.extents.same, rest, wide)):
        return None
    view = array.present_view.without(ones)
    for place, extent in enumerate(shape):
        if trace.extents.is_one(extent):
            view = view.expanded(place)
    return array.viewed(view)


# ---------------------------------------------------------------- shapes


def _product(extents: Sequence[AffineExpr]) -> AffineExpr:
    total: AffineExpr = Constant(1)
    for extent in extents:
        total = mul(total, extent)
    return total


def _without_common(
    trace: Trace, left: Sequence[AffineExpr], right: Sequence[AffineExpr]
) -> tuple[list[AffineExpr], list[AffineExpr]]:
    """Return two lists of factors without those that both have."""
    rest, others = list(left), []
    for extent in right:
        found = next((k for k, other in enumerate(rest) if trace.extents.same(extent, other)), None)
        if found is None:
            others.append(extent)
        else:
            del rest[found]
    return rest, others


def _solved_shape(
    trace: Trace, own: Sequence[AffineExpr], wanted: Sequence[AffineExpr | None]
) -> tuple[AffineExpr, ...]:
    """Return the new shape, in which None (at most one) is what the others leave.

    Raises ``TensorTypeError`` where the number of elements differs.
    """
    extents = trace.extents
    given = [extent for extent in wanted if extent is not None]
    total, known = (extents.number(_product(part)) for part in (own, given))
    fits = known != 0 and total % known == 0 if None in wanted else total == known
    if not fits:
        text = ",".join("-1" if e is None else str(extents.number(e)) for e in wanted)
        text += "," if len(wanted) == 1 else ""
        raise TensorValueError(
            f"cannot reshape array of size {total} into shape ({text})",
            hint=f"the array has the shape {shape_text(trace, own)}",
            location=caller(),
        )
    left, right = _without_common(trace, own, given)
    if None not in wanted:
        if left or right:
            extents.unify(_product(left), _product(right))
        return tuple(given)
    divisor = _product(right)
    if not isinstance(divisor, Constant):
        divisor = Constant(trace.pin(divisor, "a reshape with -1"))
    rest = _product(left)
    if divisor.value != 1:
        extents.guard(mul(Constant(-1), mod(rest, divisor.value)))
        rest = floordiv(rest, divisor.value)
    return tuple(rest if extent is None else extent for extent in wanted)


def given_extent(trace: Trace, extent: Any, what: str) -> AffineExpr:
    """Return an integer or extent as an expression; ``TensorTypeError`` for anything else."""
    found = as_extent(int(extent) if isinstance(extent, np.integer) else extent)
    if found is None:
        raise TensorTypeError(
            f"{what} has integers and extents such as A.shape[0], not {extent!r}",
            location=caller(),
        )
    return found


# ---------------------------------------------------------------- functions and methods


def reshape(a: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    """``np.reshape``: a view of a dense array, a copy of a sparse one."""
    trace = require_trace("reshape")
    array: Any = as_array(trace, a)
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if order == "F":
        return reshape(array.T, tuple(given)[::-1]).T
    if order != "C" or copy is not None:
        raise UnsupportedError(
            f"reshape with {'copy=' if order == 'C' else f'order={order!r}'} is not built",
            hint="use order='C' or order='F'",
            location=caller(),
        )
    wanted: list[AffineExpr | None] = []
    for extent in given:
        found = given_extent(trace, extent, "a shape")
        wanted.append(None if found == Constant(-1) else found)
        if found != Constant(-1) and trace.extents.number(found) < 0:
            raise TensorValueError("negative dimensions are not allowed", location=caller())
    if wanted.count(None) > 1:
        raise TensorValueError("can only specify one unknown dimension", location=caller())
    return reshaped(trace, array, _solved_shape(trace, array.extents, wanted))


def ravel(a: Any, order: str = "C") -> Any:
    """``np.ravel``: all elements in one dimension, a copy where they do not follow each other."""
    array: Any = as_array(require_trace("ravel"), a)
    if order == "F":
        return ravel(array.T)
    flat = reshape(array, -1, order=order)
    if array.is_dense and (is_strided(array) or not is_contiguous(array)):
        return METHODS["copy"](flat)
    return flat


def _flatten(a: Any, order: str = "C") -> Any:
    return METHODS["copy"](ravel(a, order))


METHODS["reshape"] = reshape
METHODS["ravel"] = ravel
METHODS["flatten"] = _flatten
