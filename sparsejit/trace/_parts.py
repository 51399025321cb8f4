"""Functions that take arrays apart and put them together: takes, splits, blocks, and new axes.

In: traced arrays, with NumPy's arguments. Out: traced arrays, which are slices and concatenations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sparsejit.errors import TensorValueError, UnsupportedError
from sparsejit.trace._arranging import concatenate, hstack
from sparsejit.trace._context import require_trace
from sparsejit.trace._functions import METHODS, broadcast_to, moveaxis
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, broadcast
from sparsejit.trace._rearranged import along, array_of, static
from sparsejit.trace._reductions import checked_axes
from sparsejit.trace._refusals import GATHER
from sparsejit.trace._reshaped import ravel, reshape
from sparsejit.trace._symbolic import symbolic

__all__ = ["FUNCTIONS", "taken"]

_MOST_PARTS = 64
"""Elements at more places than this, not next to each other, are not taken slice by slice."""


# ---------------------------------------------------------------- parts


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """``np.take`` at places that are known while tracing: slices, put together."""
    array = array_of("take", a)
    if axis is None:
        array, axis = ravel(array), 0
    place = checked_axes(axis, len(array.extents))[0]
    found = np.asarray(indices) if isinstance(indices, list | tuple | int | np.integer) else None
    if out is not None or mode != "raise" or found is None or found.dtype.kind not in "iu":
        raise UnsupportedError(
            "take at places known only at run time is not built",
            hint=GATHER,
            location=caller(),
            reasons=("a value as an index is not built",),
        )
    if found.ndim == 0:
        return METHODS["copy"](array[along(len(array.extents), place, int(found))])
    runs = _runs(found.tolist())
    if found.ndim > 1 or len(runs) > _MOST_PARTS:
        raise UnsupportedError(
            f"take at {found.size} places in {found.ndim} dimensions is not built",
            hint=GATHER,
            location=caller(),
            reasons=(f"places are taken slice by slice, at most {_MOST_PARTS} of them",),
        )
    rank = len(array.extents)
    for first, last in runs:  # slices would clamp what is outside
        for end in (first, last):
            _ = array[along(rank, place, end)]
    parts = [array[along(rank, place, slice(first, last + 1 or None))] for first, last in runs]
    if not parts:
        return array[along(rank, place, slice(0, 0))]
    return METHODS["copy"](parts[0]) if len(parts) == 1 else concatenate(parts, axis=place)


def taken(array: Any, key: tuple[Any, ...]) -> Any:
    """Return ``array[key]`` for a key with one list of integers, which are known while tracing."""
    lists = [k for k, item in enumerate(key) if isinstance(item, list)]
    if len(lists) > 1 or not all(isinstance(item, list | slice) for item in key):
        raise UnsupportedError(
            "a list of places beside other places is not built",
            hint="take them one after the other",
            location=caller(),
        )
    axis = lists[0]
    rest = tuple(slice(None) if k == axis else item for k, item in enumerate(key))
    return take(array[rest], key[axis], axis=axis)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of successive places of one sign."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] + 1 == place and place != 0:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """``np.array_split``: at places, or into a number of parts that is known while tracing."""
    array = array_of("split", ary)
    rank = len(array.extents)
    place = checked_axes(axis, rank)[0]
    extent = array.shape[place]
    if isinstance(indices_or_sections, tuple | list | np.ndarray):
        ends = [0, *indices_or_sections, extent]
    else:
        count = static("sections", indices_or_sections)
        if count < 1:
            raise TensorValueError("number sections must be larger than 0.", location=caller())
        size, extra = divmod(int(extent), count)
        sizes = [size + 1] * extra + [size] * (count - extra)
        ends = [sum(sizes[:k]) for k in range(count + 1)]
    return [array[along(rank, place, slice(*pair))] for pair in pairwise(ends)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """``np.split``: equal parts, or at places."""
    array = array_of("split", ary)
    if isinstance(indices_or_sections, int | np.integer) and indices_or_sections > 0:
        place = checked_axes(axis, len(array.extents))[0]
        count = int(indices_or_sections)
        if array.shape[place] % count != 0:
            raise TensorValueError(
                "array split does not result in an equal division", location=caller()
            )
        size = array.shape[place] // count
        ends = [size * k for k in range(count)] + [array.shape[place]]
        rank = len(array.extents)
        return [array[along(rank, place, slice(*pair))] for pair in pairwise(ends)]
    return array_split(array, indices_or_sections, axis)


def _hsplit(ary: Any, indices_or_sections: Any) -> Any:
    array = array_of("hsplit", ary)
    return split(array, indices_or_sections, 0 if len(array.extents) == 1 else 1)


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """``np.unstack``: the slices along an axis, whose extent becomes static."""
    array = array_of("unstack", x)
    rank = len(array.extents)
    place = checked_axes(axis, rank)[0]
    return tuple(array[along(rank, place, k)] for k in range(int(array.shape[place])))


# ---------------------------------------------------------------- put together


def block(arrays: Any) -> Any:
    """``np.block``: nested lists of arrays, the innermost along the last axis."""
    trace = require_trace("block")

    def depth_of(item: Any) -> int:
        return 1 + max(map(depth_of, item), default=0) if isinstance(item, list) else 0

    def leaves(item: Any) -> list[Any]:
        return [one for part in item for one in leaves(part)] if isinstance(item, list) else [item]

    depth = depth_of(arrays)
    rank = max([depth, *(len(as_array(trace, leaf).extents) for leaf in leaves(arrays))])

    def joined(item: Any, level: int) -> Any:
        if not isinstance(item, list):
            array: Any = as_array(trace, item)
            return array[(None,) * (rank - len(array.extents))]
        parts = [joined(part, level + 1) for part in item]
        return concatenate(parts, axis=rank - depth + level)

    return joined(arrays, 0)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """``np.append``: a concatenation."""
    return concatenate([arr, values], axis=axis)


def dstack(tup: Any) -> Any:
    """``np.dstack``: along the third axis."""
    return concatenate([atleast_3d(array) for array in tup], axis=2)


def column_stack(tup: Any) -> Any:
    """``np.column_stack``: vectors and matrices beside each other."""
    arrays = [array_of("column_stack", array) for array in tup]
    return hstack([a if len(a.extents) > 1 else reshape(a, -1, 1) for a in arrays])


# ---------------------------------------------------------------- shapes


def _at_least(rank: int, widen: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(*arrays: Any) -> Any:
        made = [array_of(f"atleast_{rank}d", array) for array in arrays]
        wide = [widen(a) if len(a.extents) < rank else a for a in made]
        return wide[0] if len(wide) == 1 else tuple(wide)

    function.__name__ = function.__qualname__ = f"atleast_{rank}d"
    return function


def _three(array: Any) -> Any:
    match len(array.extents):
        case 0:
            return array[None, None, None]
        case 1:
            return array[None, :, None]
        case _:
            return array[:, :, None]


atleast_1d = _at_least(1, lambda a: a[None])
atleast_2d = _at_least(2, lambda a: a[(None,) * (2 - len(a.extents))])
atleast_3d = _at_least(3, _three)


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """``np.broadcast_arrays``."""
    trace = require_trace("broadcast_arrays")
    arrays = [as_array(trace, array) for array in args]
    _, shape = broadcast(trace, arrays)
    if all(
        len(array.extents) == len(shape) and all(map(trace.extents.same, array.extents, shape))
        for array in arrays
    ):
        return tuple(arrays)
    wide = tuple(symbolic(trace, extent) for extent in shape)
    return tuple(broadcast_to(array, wide) for array in arrays)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """``np.rollaxis``."""
    array = array_of("rollaxis", a)
    rank = len(array.extents)
    place = checked_axes(axis, rank)[0]
    before = start + rank if start < 0 else start
    return moveaxis(array, place, before - 1 if place < before else before)


METHODS["take"] = take

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "append": append,
    "array_split": array_split,
    "atleast_1d": atleast_1d,
    "atleast_2d": atleast_2d,
    "atleast_3d": atleast_3d,
    "block": block,
    "broadcast_arrays": broadcast_arrays,
    "column_stack": column_stack,
    "dstack": dstack,
    "hsplit": _hsplit,
    "rollaxis": rollaxis,
    "split": split,
    "take": take,
    "unstack": unstack,
    "vsplit": lambda ary, indices: split(ary, indices, 0),
}
"""NumPy's functions that are built here, by name."""
