"""Subscripts of arrays: ``A[i, j]`` with indices, and NumPy's basic indexing.

In: an array and a key. Out: an ``Indexed`` when the key has indices; else the array that slices,
integers, ``None`` and ``...`` select, a view where the base is dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsejit.affine import AffineExpr, Constant, dims_of
from sparsejit.errors import SubscriptError, TraceError, UnsupportedError
from sparsejit.trace._array import Array
from sparsejit.trace._context import Cell, Trace, Unassigned
from sparsejit.trace._einsum import light
from sparsejit.trace._elementwise import elementwise
from sparsejit.trace._indexed import Index, Indexed, IndexedTerm
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, substituted, variables_of
from sparsejit.trace._refusals import GATHER
from sparsejit.trace._symbolic import as_extent
from sparsejit.trace._views import Picked, View, element, pick

__all__ = ["basic", "basic_view", "has_indices", "indexed_access", "keys_of", "same_key"]


def keys_of(key: Any) -> tuple[Any, ...]:
    """Return a subscript as a tuple."""
    return key if isinstance(key, tuple) else (key,)


def has_indices(key: Sequence[Any]) -> bool:
    """Return whether a subscript is index notation."""
    return any(isinstance(item, Index | Indexed) for item in key)


def same_key(lhs: Sequence[Any], rhs: Sequence[Any]) -> bool:
    """Return whether two subscripts of index notation are the same."""
    return [_plain(item) for item in lhs] == [_plain(item) for item in rhs]


def _plain(item: Any) -> object:
    return item.expr if isinstance(item, Index) else item


def indexed_access(trace: Trace, array: Array, key: tuple[Any, ...]) -> Indexed:
    """Return ``array[key]`` for a key with indices.

    Raises ``TensorTypeError`` for a wrong number of indices, ``UnsupportedError`` for a key that
    mixes them with slices, or uses a value as an index.
    """
    if isinstance(array._cell.content, Unassigned):
        return Indexed(trace, (), None, origin=(array, key))
    rank = len(array.extents)
    if len(key) != rank:
        raise SubscriptError(
            f"{len(key)} indices for an array of rank {rank}",
            hint="give one index for each dimension",
            location=caller(),
        )
    for item in key:
        if not isinstance(item, Index | int | np.integer) or isinstance(item, bool):
            kind = "a value" if isinstance(item, Indexed | Array) else f"{item!r}"
            raise UnsupportedError(
                f"{kind} as an index is not built",
                hint="an index is an index variable, an affine combination, or an integer",
                location=caller(),
            )
    base = _without_negative(trace, array, key)
    left = [item for item in key if isinstance(item, Index) or item >= 0]
    pairs = zip(left, base.present_view.axes, strict=True)
    is_new = any(isinstance(item, Index) and not dims for item, dims in pairs)
    part = None if is_new else _read_at(trace, base, left)
    indices = [item for item in left if isinstance(item, Index)]
    read = set[int]() if part is None else set(variables_of(part))
    if part is None or any(not dims_of(item.expr) <= read for item in indices):
        # A new axis bounds an index only in a tensor of its own.
        base = elementwise(trace, lambda parts: parts[0], (base,))
        base.force()
        part = _read_at(trace, base, left)
    return Indexed(trace, (IndexedTerm(part),), part, origin=(array, key))


def _read_at(trace: Trace, base: Array, key: Sequence[Any]) -> Pointwise:
    """Return what an array is at indices and places that are not negative."""
    moved: dict[int, AffineExpr] = {}
    for d, item in enumerate(key):
        if isinstance(item, Index):
            moved[d] = item.expr
        else:
            moved[d] = element(trace.extents, base.extents[d], Constant(int(item)), d)
    return substituted(light(trace, base), moved)


def _without_negative(trace: Trace, array: Array, key: tuple[Any, ...]) -> Array:
    """Return the array with its dimensions that a negative integer indexes taken at that place."""
    if all(isinstance(item, Index) or item >= 0 for item in key):
        return array
    return basic(
        trace, array, tuple(slice(None) if isinstance(i, Index) or i >= 0 else i for i in key)
    )


# ---------------------------------------------------------------- basic indexing


def _expanded(trace: Trace, key: tuple[Any, ...], rank: int) -> list[Any]:
    """Return the key with its ellipsis (at the end if there is none) written out."""
    used = sum(item is not None and item is not Ellipsis for item in key)
    if used > rank:
        raise SubscriptError(
            f"too many indices for array: array is {rank}-dimensional, but {used} were indexed",
            location=caller(),
        )
    places = [n for n, item in enumerate(key) if item is Ellipsis]
    if len(places) > 1:
        raise SubscriptError("an index can only have a single ellipsis ('...')", location=caller())
    rest = [slice(None)] * (rank - used)
    if not places:
        return [*key, *rest]
    return [*key[: places[0]], *rest, *key[places[0] + 1 :]]


def _offset(item: Any) -> AffineExpr | None:
    if isinstance(item, np.integer):
        return Constant(int(item))
    return as_extent(item)


def basic_view(trace: Trace, array: Array, key: tuple[Any, ...]) -> View:
    """Return the view of the array's base that a basic subscript selects.

    Raises ``TensorTypeError`` outside of bounds, ``UnsupportedError`` for advanced indexing.
    """
    view = array.present_view
    axis = 0
    for item in _expanded(trace, key, len(array.extents)):
        offset = _offset(item)
        if item is None:
            view = view.expanded(axis)
            axis += 1
        elif isinstance(item, slice):
            if item != slice(None):
                picked = _picked(trace, view, axis, item)
                view = view.sliced(axis, picked) if view.axes[axis] else view
            axis += 1
        elif offset is not None:
            extent = trace.extents.resolve(view.shape[axis])
            at = element(trace.extents, extent, offset, axis)
            if view.axes[axis]:
                view = view.sliced(axis, Picked(at, Constant(1)))
            view = view.without([axis])
        else:
            raise UnsupportedError(
                f"indexing with {_kind_of(item)} is not built",
                hint=f"use slices, integers, None and ..., or index notation; to gather, {GATHER}",
                location=caller(),
                reasons=("which elements are meant is known only at run time",),
            )
    return view


def _kind_of(item: Any) -> str:
    """Return what a message calls an object in a subscript."""
    return "an array" if isinstance(item, Array | np.ndarray) else type(item).__name__


def _picked(trace: Trace, view: View, axis: int, item: slice) -> Picked:
    bounds = [None if b is None else _offset(b) for b in (item.start, item.stop)]
    step = 1 if item.step is None else item.step
    given = sum(b is not None for b in (item.start, item.stop))
    if sum(b is not None for b in bounds) != given or not isinstance(step, int):
        raise TraceError(
            "the bounds of a slice are not known while tracing",
            hint="use integers, or extents such as A.shape[0]",
            location=caller(),
        )
    picked = pick(trace.extents, view.shape[axis], bounds[0], bounds[1], step)
    if not view.axes[axis] and picked.size != Constant(1):
        raise UnsupportedError(
            "an empty slice of a new axis is not built",
            hint="slice before the axis is made",
            location=caller(),
        )
    return picked


def basic(trace: Trace, array: Array, key: tuple[Any, ...]) -> Array:
    """Return ``array[key]`` for a basic subscript: a view of a dense array, else a copy."""
    view = basic_view(trace, array, key)
    scalar = not view.axes and Ellipsis not in key  # a scalar, where x[0, ...] is a view
    if not scalar and array.is_dense:
        return array.viewed(view)
    made = array.viewed(view)
    if all(item is None or item is Ellipsis or item == slice(None) for item in key) and not scalar:
        copy: Array = elementwise(trace, lambda parts: parts[0], (made,))
        return copy
    return trace.array(Cell(made.extents, made.read(), immutable=scalar, location=caller()))
