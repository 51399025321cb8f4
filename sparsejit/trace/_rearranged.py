"""Functions that move whole slices: flips, rolls, repetitions, splits, blocks, differences.

In: traced arrays, with NumPy's arguments. Out: traced arrays. All are slices, concatenations,
reshapes and broadcasts, so that entries of sparse arrays move and nothing is densified.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.trace._arranging import concatenate
from sparsejit.trace._context import require_trace
from sparsejit.trace._functions import METHODS, broadcast_to, expand_dims, moveaxis, transpose
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._reductions import checked_axes
from sparsejit.trace._reshaped import ravel, reshape

__all__ = ["FUNCTIONS", "along", "array_of", "static"]


def array_of(what: str, obj: Any) -> Any:
    """Return an operand of a function, inside of a trace."""
    return as_array(require_trace(what), obj)


def along(rank: int, axis: int, part: Any) -> tuple[Any, ...]:
    """Return the subscript that takes ``part`` of one axis."""
    return (slice(None),) * axis + (part,) + (slice(None),) * (rank - axis - 1)


def static(what: str, value: Any) -> int:
    """Return an integer that has to be known while tracing."""
    try:
        return int(value.__index__())
    except AttributeError:
        raise TensorTypeError(
            f"{what} are integers known while tracing, not {value!r}", location=caller()
        ) from None


# ---------------------------------------------------------------- flips and rolls


def flip(m: Any, axis: Any = None) -> Any:
    """``np.flip``: the elements in reverse order along axes."""
    array = array_of("flip", m)
    rank = len(array.extents)
    axes = checked_axes(axis, rank)
    return array[tuple(slice(None, None, -1) if d in axes else slice(None) for d in range(rank))]


def _flipped(what: str, axis: int) -> Callable[..., Any]:
    def function(m: Any) -> Any:
        array = array_of(what, m)
        if len(array.extents) <= axis:
            raise TensorValueError(f"Input must be >= {axis + 1}-d.", location=caller())
        return flip(array, axis)

    function.__name__ = function.__qualname__ = what
    return function


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """``np.rot90``."""
    array = array_of("rot90", m)
    rank = len(array.extents)
    first, second = (checked_axes(axis, rank)[0] for axis in axes)
    turns = k % 4
    if turns == 0:
        return array[...]
    if turns == 2:
        return flip(array, (first, second))
    order = list(range(rank))
    order[first], order[second] = second, first
    if turns == 1:
        return transpose(flip(array, second), order)
    return flip(transpose(array, order), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """``np.roll``: what leaves at one end comes in at the other; shifts known while tracing."""
    array = METHODS["copy"](array_of("roll", a))
    if axis is None:
        return reshape(roll(ravel(array), shift, 0), *array.shape)
    shifts = shift if isinstance(shift, tuple | list) else (shift,)
    places = axis if isinstance(axis, tuple | list) else (axis,)
    rank = len(array.extents)
    count = max(len(shifts), len(places))
    for step, place in zip(
        shifts * count if len(shifts) == 1 else shifts,
        places * count if len(places) == 1 else places,
        strict=False,
    ):
        array = _rolled(array, static("shifts", step), checked_axes(place, rank)[0])
    return array


def _rolled(array: Any, shift: int, axis: int) -> Any:
    rank, extent = len(array.extents), array.shape[axis]
    if abs(shift) > array._trace.extents.number(array.extents[axis]):
        size = int(extent)
        shift = shift % size if size else 0
    if shift == 0:
        return array
    parts = (slice(-shift, None), slice(None, -shift))
    return concatenate([array[along(rank, axis, part)] for part in parts], axis=axis)


# ---------------------------------------------------------------- repetitions


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """``np.repeat`` by one number that is known while tracing."""
    array = array_of("repeat", a)
    if axis is None:
        array, axis = ravel(array), 0
    if isinstance(repeats, tuple | list | np.ndarray) and np.size(repeats) == 1:
        repeats = np.ravel(repeats)[0]
    if not isinstance(repeats, int | np.integer):
        raise UnsupportedError(
            "repeat with a number for each element is not built",
            hint="concatenate slices, or multiply by a sparse matrix of ones",
            location=caller(),
        )
    if repeats < 0:
        raise TensorValueError("repeats may not contain negative values.", location=caller())
    place = checked_axes(axis, len(array.extents))[0]
    shape = array.shape
    # Copies of the whole, then the elements of one place beside each other: sparse arrays stay so.
    wide = broadcast_to(expand_dims(array, place), (*shape[:place], int(repeats), *shape[place:]))
    whole = (*shape[:place], shape[place] * int(repeats), *shape[place + 1 :])
    return METHODS["copy"](reshape(moveaxis(wide, place, place + 1), *whole))


def tile(A: Any, reps: Any) -> Any:
    """``np.tile`` by numbers that are known while tracing."""
    array = array_of("tile", A)
    given = reps if isinstance(reps, tuple | list) else (reps,)
    counts = [static("repetitions", count) for count in given]
    rank = max(len(counts), len(array.extents))
    array = array[(None,) * (rank - len(array.extents))]
    counts = [1] * (rank - len(counts)) + counts
    for axis, count in enumerate(counts):
        if count != 1:
            shape = array.shape
            wide = broadcast_to(expand_dims(array, axis), (*shape[:axis], count, *shape[axis:]))
            array = reshape(wide, *shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    return METHODS["copy"](array)


# ---------------------------------------------------------------- differences


def diff(a: Any, n: int = 1, axis: int = -1, **options: Any) -> Any:
    """``np.diff``: the differences of neighbors, ``n`` times."""
    array = array_of("diff", a)
    if any(value is not np._NoValue for value in options.values()):
        raise UnsupportedError("diff with prepend= or append= is not built", location=caller())
    rank = len(array.extents)
    place = checked_axes(axis, rank)[0]
    if n < 0:
        raise TensorValueError(f"order must be non-negative but got {n}", location=caller())
    for _ in range(n):
        later, before = (
            array[along(rank, place, part)] for part in (slice(1, None), slice(None, -1))
        )
        array = later != before if array.dtype == bool else later - before
    return array


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """``np.trapezoid``: the integral along an axis by the trapezoidal rule."""
    array = array_of("trapezoid", y)
    rank = len(array.extents)
    place = checked_axes(axis, rank)[0]
    width = dx
    if x is not None:
        points = array_of("trapezoid", x)
        width = diff(points) if len(points.extents) == 1 else diff(points, axis=place)
        if len(points.extents) == 1:
            width = width[tuple(slice(None) if d == place else None for d in range(rank))]
    later, before = (array[along(rank, place, part)] for part in (slice(1, None), slice(None, -1)))
    return (width * (later + before) / 2.0).sum(place)


METHODS["repeat"] = repeat

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "diff": diff,
    "flip": flip,
    "fliplr": _flipped("fliplr", 1),
    "flipud": _flipped("flipud", 0),
    "repeat": repeat,
    "roll": roll,
    "rot90": rot90,
    "tile": tile,
    "trapezoid": trapezoid,
}
"""NumPy's functions that are built here, by name."""
