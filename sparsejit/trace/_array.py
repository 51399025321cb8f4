"""``Array``: what a traced operand, intermediate or result is, without its operators.

An array stands for a cell, which holds the present content, seen through a view. ``read`` gives an
expression of the content, ``force`` its SSA value, ``store`` replaces it (through the view: the
base's). Operators and NumPy's protocols are in ``_tracer``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparsejit.affine import AffineExpr, Constant, Dim, add, mul
from sparsejit.errors import Location, TraceError
from sparsejit.formats import Dense, Format
from sparsejit.ir.tensor import ExtractSlice, InsertSlice, Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._blocks import Block
from sparsejit.trace._context import Cell, Deferred, Trace, Unassigned, check_alive
from sparsejit.trace._emit import Term, accumulate, elementwise_into, fresh
from sparsejit.trace._extents import counts
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, cast, of_value, size_of, substituted
from sparsejit.trace._sealed import READ_ONLY
from sparsejit.trace._slices import sparse_slice
from sparsejit.trace._sparse_assignment import entries_stored
from sparsejit.trace._views import View, whole

__all__ = ["Array", "computed", "content_of", "force_cell"]

_LARGEST = 48
"""Expressions of more nodes are computed before they are used further, so that none explodes."""


def content_of(trace: Trace, cell: Cell) -> Pointwise:
    """Return the content of ``cell`` as an expression; what is deferred is emitted.

    In a loop, what comes from outside of it is computed before, once.
    """
    outside = bool(cell.shape) and trace.block.repeats_inside(trace.block_of(cell))
    content = cell.content
    if trace.elements and not cell.shape and isinstance(content, Pointwise):
        return content
    if not isinstance(content, Pointwise) or _should_be_computed(content, outside):
        force_cell(trace, cell)
    assert isinstance(cell.content, Pointwise)
    return cell.content


def _should_be_computed(content: Pointwise, outside: bool) -> bool:
    """Whether an expression is computed before it is used; ``outside``: a loop uses it often."""
    computes = bool(content.accesses) and content.view is None
    return size_of(content) > _LARGEST or (outside and computes)


def force_cell(trace: Trace, cell: Cell, format: Format | None = None) -> Value:
    """Return the SSA value of the content; it is computed when there is none yet.

    ``format`` is that of a value computed now.
    """
    content, block = cell.content, trace.block_of(cell)
    if isinstance(content, Unassigned):
        raise unassigned()
    if isinstance(content, Deferred):
        with trace.within(block):
            value = content.emit(format)
    else:
        known = _whole_value(trace, cell, content)
        if known is not None:
            return known
        with trace.within(block):
            value = computed(trace, content, cell.shape, format, cell.location)
    weak = isinstance(content, Pointwise) and content.weak
    made = of_value(value)
    cell.computed(Pointwise(made.body, made.accesses, made.dtype, weak))
    return value


def computed(
    trace: Trace,
    content: Pointwise,
    shape: Sequence[AffineExpr],
    format: Format | None,
    location: Location | None,
) -> Value:
    """Return a new value with this content; a slice of a sparse tensor keeps to stored entries."""
    sliced = sparse_slice(trace, content, shape, format, location)
    if sliced is not None:
        return sliced
    return fresh(trace, Term(content), shape, dict(enumerate(shape)), format, location)


def _whole_value(trace: Trace, cell: Cell, content: Pointwise) -> Value | None:
    """Return the value that ``content`` is, untransposed and whole."""
    view = content.view
    if view is None or view.index != tuple(Dim(d) for d in range(len(cell.shape))):
        return None
    extents = trace.extents
    same = all(map(extents.same, view.value.type.shape, cell.shape))
    return view.value if same else None


def unassigned() -> TraceError:
    """Return the error for an output that is used before it has a content."""
    return TraceError(
        "an output is used before it is assigned",
        hint="assign to it first, as in M[i, j] = ...",
        location=caller(),
    )


class Array:
    """A traced array: a view of a cell's content. Not for users; see ``ArrayTracer``."""

    __slots__ = ("_cell", "_inplace", "_trace", "_view")

    def __init__(self, trace: Trace, cell: Cell, view: View | None = None) -> None:
        self._trace = trace
        self._cell = cell
        self._view = view
        # Of ``x[0]``, a copy: where it is from and how often that had been written to. Of ``x[0] +
        # e`` written ``x[0] += e``: the update as well, until the assignment follows.
        self._inplace: tuple[Any, ...] | None = None

    @property
    def extents(self) -> tuple[AffineExpr, ...]:
        """The extent expressions, one a dimension."""
        if isinstance(self._cell.content, Unassigned):
            raise unassigned()
        shape = self._cell.shape if self._view is None else self._view.shape
        return tuple(self._trace.extents.resolve(extent) for extent in shape)

    @property
    def element_type(self) -> DType:
        """The element type."""
        dtype = self._cell.content.dtype
        if dtype is None:
            raise unassigned()
        return dtype

    @property
    def is_dense(self) -> bool:
        """Whether the present content is a plain dense value, which views can alias."""
        return force_cell(self._trace, self._cell).type.is_dense

    def read(self) -> Pointwise:
        """Return the present content as an expression over the dimensions of this array."""
        check_alive(self._trace, "a traced array")
        self._trace.note_read(self._cell)
        view = self._view
        if view is None:
            return content_of(self._trace, self._cell)
        if view.is_whole(self._cell.shape, self._trace.extents):
            places = _base_index(view)
            moved = {d: place for d, place in enumerate(places) if place != Dim(d)}
            return substituted(content_of(self._trace, self._cell), moved)
        value = force_cell(self._trace, self._cell)
        if not value.type.is_dense:
            index = _affine_index(self._trace, view)
            if index is not None:
                return of_value(value, index)
        with self._trace.within(self._place):
            sliced = _extract(self._trace, value, view)
        return of_value(sliced, _slice_index(view, drops=value.type.is_dense))

    def force(self, format: Format | None = None) -> Value:
        """Return the present content as an SSA value, in ``format`` if it is computed now."""
        check_alive(self._trace, "a traced array")
        if self._view is None:
            self._trace.note_read(self._cell)
            return force_cell(self._trace, self._cell, format)
        seen = Cell(self.extents, self.read(), location=self._cell.location, block=self._place)
        return force_cell(self._trace, seen, format)

    @property
    def _place(self) -> Block:
        """The block that what is seen belongs to: that of the base, unless a loop counts in it."""
        view = self._view
        picked = () if view is None else view.picked
        if any(counts(part.offset) or counts(part.size) for part in picked):
            return self._trace.block
        return self._trace.block_of(self._cell)

    def viewed(self, view: View) -> Array:
        """Return the array that sees the same cell through ``view``."""
        made = self._trace.array(self._cell)
        made._view = view
        return made

    @property
    def present_view(self) -> View:
        """The view, spelled out also where it is everything."""
        return whole(self._cell.shape) if self._view is None else self._view

    # ------------------------------------------------------------ writing

    def store(
        self,
        terms: Sequence[Term],
        extents: Mapping[int, AffineExpr],
        overwrite: bool,
        location: Location | None,
    ) -> None:
        """Replace the content by terms over this array's dimensions (``overwrite``), or add them.

        Terms without reduction come in one; reductions have the dtype of this array.
        """
        trace, cell = self._trace, self._cell
        check_alive(trace, "a traced array")
        trace.check_assignable(cell)
        base = force_cell(trace, cell)
        if not base.type.is_dense:
            cell.content = entries_stored(self, base, terms, extents, overwrite, location)
            cell.assigned, cell.location = True, location
            return
        view = self.present_view
        sealed = READ_ONLY if view.is_diagonal else cell.sealed
        if sealed is not None:
            raise sealed.error(location)
        is_whole = view.is_whole(cell.shape, trace.extents) and not view.dropped
        dest = base if is_whole else _extract(trace, base, view)
        # A new axis has one coordinate, 0, and no dimension of the destination.
        zero: dict[int, AffineExpr] = {
            r: Constant(0) for r, dims in enumerate(view.axes) if not dims
        }
        at = _base_index(view) if is_whole else _slice_index(view, drops=True)
        for term in terms:
            part = cast(substituted(term.part, zero), base.type.dtype)
            if overwrite and not term.reduced:
                dest = elementwise_into(trace, part, extents, dest, at, location)
            else:
                moved = Term(part, term.reduced, term.op, term.negated)
                dest = accumulate(trace, moved, extents, dest, at, location)
        if not is_whole:
            dest = _insert(trace, dest, base, view)
        cell.content = of_value(dest)
        cell.assigned = True
        cell.location = location


def _offsets(
    view: View,
) -> tuple[tuple[AffineExpr, ...], tuple[AffineExpr, ...], tuple[int, ...]]:
    offsets = tuple(picked.offset for picked in view.picked)
    sizes = tuple(picked.size for picked in view.picked)
    return offsets, sizes, tuple(picked.stride for picked in view.picked)


def _extract(trace: Trace, value: Value, view: View) -> Value:
    """Return the slice that a view takes, before its arrangement."""
    offsets, sizes, strides = _offsets(view)
    dropped = view.dropped if value.type.is_dense else ()
    key = (value.name, offsets, sizes, strides, dropped)
    if key in trace.slices:  # an update reads and writes the same slice
        return trace.slices[key]
    shape = tuple(size for d, size in enumerate(sizes) if d not in dropped)
    format = Dense(len(shape)) if value.type.is_dense else value.type.format
    result = trace.value(TensorType(shape, value.type.dtype, format, value.type.fill))
    trace.ops.append(ExtractSlice(result, value, offsets, sizes, strides, dropped, caller()))
    trace.slices[key] = result
    return result


def _insert(trace: Trace, source: Value, dest: Value, view: View) -> Value:
    offsets, sizes, strides = _offsets(view)
    result = trace.value(dest.type)
    op = InsertSlice(result, source, dest, offsets, sizes, strides, view.dropped, caller())
    trace.ops.append(op)
    return result


def _affine_index(trace: Trace, view: View) -> list[AffineExpr] | None:
    """Return where the base is accessed when affine maps can say it, over the view's dimensions.

    A sparse base is then read as it is, without a slice of its own: a loop may end before the
    dimension does.
    """
    made: list[AffineExpr] = []
    for d, picked in enumerate(view.picked):
        offset = picked.offset
        if counts(offset) or counts(picked.size):
            return None
        if not isinstance(offset, Constant):
            offset = Constant(trace.pin(offset, "a slice of a sparse tensor from its end"))
        place = view.place(d)
        if place is None:
            made.append(offset)
            continue
        made.append(add(mul(Constant(picked.stride), Dim(place)), offset))
    return made


def _base_index(view: View) -> tuple[AffineExpr, ...]:
    """Return where the base itself is accessed, over the view's dimensions."""
    return tuple(_along(view, d, picked.offset) for d, picked in enumerate(view.picked))


def _slice_index(view: View, drops: bool) -> tuple[AffineExpr, ...]:
    """Return where the slice is accessed, over the view's dimensions.

    A dense slice drops what the view does not have; a sparse one keeps it, with extent 1.
    """
    dims = [d for d in range(len(view.picked)) if not (drops and d in view.dropped)]
    return tuple(_along(view, d, Constant(0)) for d in dims)


def _along(view: View, dim: int, otherwise: AffineExpr) -> AffineExpr:
    place = view.place(dim)
    return otherwise if place is None else Dim(place)
