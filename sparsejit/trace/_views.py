"""Views: which part of a base tensor a name stands for, and in which order of dimensions.

Basic slices, ``.T`` and new axes of dense values are views: reading sees the base's present value,
writing changes the base. Composition is pure; ``_array`` turns a view into ``ExtractSlice``,
``InsertSlice`` and permuted indexing maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, add, floordiv, mul
from sparsejit.errors import SubscriptError, TensorValueError
from sparsejit.trace._extents import Extents, difference, tidy
from sparsejit.trace._locations import caller

__all__ = ["Picked", "View", "element", "pick", "whole"]


@dataclass(frozen=True, slots=True)
class Picked:
    """A slice of one dimension: elements ``offset + k * stride`` for ``k < size``."""

    offset: AffineExpr
    size: AffineExpr
    stride: int = 1


@dataclass(frozen=True, slots=True)
class View:
    """A slice of the base in every dimension, then an arrangement.

    ``axes[r]`` are the base's dimensions that dimension ``r`` of the view runs along: one, several
    for a diagonal, none for a new dimension of extent 1. Dimensions of the base that are in no
    place have size 1. ``is_diagonal``: the view is one, or a part of one.
    """

    picked: tuple[Picked, ...]
    axes: tuple[tuple[int, ...], ...]
    is_diagonal: bool = False

    @property
    def shape(self) -> tuple[AffineExpr, ...]:
        """The extents of the view."""
        return tuple(self.picked[dims[0]].size if dims else Constant(1) for dims in self.axes)

    @property
    def dropped(self) -> tuple[int, ...]:
        """The dimensions of the base that the view does not have."""
        return tuple(d for d in range(len(self.picked)) if self.place(d) is None)

    def place(self, dim: int) -> int | None:
        """Return the dimension of the view that runs along dimension ``dim`` of the base."""
        return next((r for r, dims in enumerate(self.axes) if dim in dims), None)

    def permuted(self, order: Sequence[int]) -> View:
        """Return the view whose dimension ``r`` is dimension ``order[r]`` of this one."""
        return replace(self, axes=tuple(self.axes[r] for r in order))

    def expanded(self, axis: int) -> View:
        """Return the view with a new dimension of extent 1 before ``axis``."""
        return replace(self, axes=(*self.axes[:axis], (), *self.axes[axis:]))

    def without(self, axes: Sequence[int]) -> View:
        """Return the view without these dimensions, which have size 1.

        From now on it is 1 itself: a computed size is so only by assumption.
        """
        gone = {dim for r in axes for dim in self.axes[r]}
        picked = tuple(
            Picked(part.offset, Constant(1)) if d in gone else part
            for d, part in enumerate(self.picked)
        )
        kept = tuple(dims for r, dims in enumerate(self.axes) if r not in axes)
        return replace(self, picked=picked, axes=kept)

    def sliced(self, axis: int, part: Picked) -> View:
        """Return the view with its dimension ``axis`` (not a new one) sliced further."""
        picked = list(self.picked)
        for dim in self.axes[axis]:
            old = picked[dim]
            offset = tidy(add(old.offset, mul(Constant(old.stride), part.offset)))
            picked[dim] = Picked(offset, part.size, old.stride * part.stride)
        return replace(self, picked=tuple(picked))

    def diagonal(self, first: int, second: int) -> View:
        """Return the view of a diagonal, its dimension last; both dimensions have one extent."""
        merged = self.axes[first] + self.axes[second]
        rest = [dims for r, dims in enumerate(self.axes) if r not in (first, second)]
        return replace(self, axes=(*rest, merged), is_diagonal=True)

    def is_contiguous(self, shape: Sequence[AffineExpr], extents: Extents) -> bool:
        """Return whether the elements follow each other in a base of ``shape`` in row-major order.

        Dimensions of extent 1 are where they like; of the others only the first may be a part.
        """
        wide = [d for d, part in enumerate(self.picked) if not extents.is_one(part.size)]
        if [dims[0] for dims in self.axes if dims and dims[0] in wide] != wide:
            return False
        if self.is_diagonal or any(self.picked[d].stride != 1 for d in wide):
            return False
        # What comes before the first of them is one element, what comes behind is all there is.
        behind = range(wide[0] + 1, len(shape)) if wide else range(0)
        return all(extents.same(self.picked[d].size, shape[d]) for d in behind)

    def is_whole(self, shape: Sequence[AffineExpr], extents: Extents) -> bool:
        """Return whether every element of a base of ``shape`` is in the view."""
        return all(
            picked.offset == Constant(0)
            and picked.stride == 1
            and extents.same(picked.size, extent)
            for picked, extent in zip(self.picked, shape, strict=True)
        )


def whole(shape: Sequence[AffineExpr]) -> View:
    """Return the view of a base that is the base."""
    return View(
        tuple(Picked(Constant(0), e) for e in shape), tuple((d,) for d in range(len(shape)))
    )


def element(extents: Extents, extent: AffineExpr, number: AffineExpr, axis: int) -> AffineExpr:
    """Return the offset of element ``number`` along a dimension, counted from the end if negative.

    Raises ``TensorTypeError`` where it is outside.
    """
    forward = extents.holds(number)
    offset = number if forward else tidy(add(extent, number))
    inside = difference(difference(extent, Constant(1)), offset) if forward else offset
    if not extents.holds(inside):
        at, size = extents.number(number), extents.number(extent)
        raise SubscriptError(
            f"index {at} is out of bounds for axis {axis} with size {size}", location=caller()
        )
    return offset


def _bound(
    extents: Extents, extent: AffineExpr, bound: AffineExpr, least: int, beyond: int
) -> AffineExpr:
    """Clamp a bound of a slice as Python does, for a forward (0, 0) or backward (-1, -1) one."""
    if not extents.holds(bound):
        offset = tidy(add(extent, bound))
        return offset if extents.holds(difference(offset, Constant(least))) else Constant(least)
    last = tidy(add(extent, Constant(beyond)))
    return bound if extents.holds(difference(last, bound)) else last


def pick(
    extents: Extents,
    extent: AffineExpr,
    first: AffineExpr | None,
    last: AffineExpr | None = None,
    step: int = 1,
) -> Picked:
    """Return the slice ``first:last:step`` of a dimension, bounds clamped as Python clamps them.

    What was clamped is an assumption about the extent that the trace records.
    """
    extent = extents.resolve(extent)
    if step == 0:
        raise TensorValueError("slice step cannot be zero", location=caller())
    if step > 0:
        start: AffineExpr = Constant(0)
        stop = extent
        if first is not None:
            start = _bound(extents, extent, first, 0, 0)
        if last is not None:
            stop = _bound(extents, extent, last, 0, 0)
        span = difference(stop, start)
    else:
        start = tidy(add(extent, Constant(-1)))
        stop = Constant(-1)
        if first is not None:
            start = _bound(extents, extent, first, -1, -1)
        if last is not None:
            stop = _bound(extents, extent, last, -1, -1)
        span = difference(start, stop)
    if isinstance(span, Constant) and span.value < 0:
        return Picked(Constant(0), Constant(0), 1)
    if not extents.holds(span):
        return Picked(Constant(0), Constant(0), 1)
    size = floordiv(add(span, Constant(abs(step) - 1)), abs(step))
    if isinstance(size, Constant) and size.value == 1:
        return Picked(start, size, 1)
    return Picked(start, size, step)
