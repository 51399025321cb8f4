"""Sorting entries by their level coordinates: a stable radix sort, linear in their number.

In: coordinate arrays and the extents that bound them. Out: the order of the entries. The functions
are plain Python that Numba compiles as it stands.
"""

from __future__ import annotations

from typing import Any

from numpy import empty, int64, zeros
from numpy.typing import NDArray

__all__ = ["sort_entries", "sort_prefix"]

Ints = NDArray[int64]

_DIGIT = 16
_BUCKETS = 1 << _DIGIT


def sort_entries(coordinates: tuple[Ints, ...], extents: tuple[int64, ...], count: int64) -> Ints:
    """Return the stable order of the first ``count`` entries, the first coordinate leading.

    Coordinates are at least 0 and below their extents.

    >>> import numpy as np
    >>> rows, columns = np.array([1, 0, 1, 0]), np.array([2, 5, 0, 5])
    >>> print(sort_entries((rows, columns), (np.int64(2), np.int64(6)), np.int64(4)))
    [1 3 2 0]
    """
    order = empty(count, int64)
    for entry in range(count):
        order[entry] = entry
    if count < 2:
        return order
    other = empty(count, int64)
    for key in range(len(coordinates) - 1, -1, -1):
        crd = coordinates[key]
        if _is_sorted(crd, order):
            continue
        extent = extents[key]
        if extent <= 4 * count + 1024:  # one counting sort with a bucket for each coordinate
            _count_sort(crd, order, other, int64(0), extent)
            order, other = other, order
            continue
        shift = int64(0)
        while shift < 63 and (extent - 1) >> shift > 0:
            _count_sort(crd, order, other, shift, int64(_BUCKETS))
            order, other = other, order
            shift = int64(shift + _DIGIT)
    return order


def _is_sorted(crd: Ints, order: Ints) -> Any:
    for place in range(1, order.size):  # noqa: SIM110 -- Numba compiles no generators here
        if crd[order[place]] < crd[order[place - 1]]:
            return False
    return True


def _count_sort(crd: Ints, order: Ints, target: Ints, shift: int64, buckets: int64) -> None:
    """Sort ``order`` stably into ``target`` by one digit (all of it when shift is 0 and small)."""
    mask = int64(_BUCKETS - 1)
    whole = buckets != _BUCKETS
    starts = zeros(buckets + 1, int64)
    for place in range(order.size):
        digit = crd[order[place]] if whole else (crd[order[place]] >> shift) & mask
        starts[digit + 1] += 1
    for bucket in range(buckets):
        starts[bucket + 1] += starts[bucket]
    for place in range(order.size):
        entry = order[place]
        digit = crd[entry] if whole else (crd[entry] >> shift) & mask
        target[starts[digit]] = entry
        starts[digit] += 1


def sort_prefix(array: Ints, count: int64) -> None:
    """Sort the first ``count`` elements: Shell's method, whose gaps shrink by about 2.2.

    >>> import numpy as np
    >>> values = np.array([5, 1, 4, 0])
    >>> sort_prefix(values, np.int64(3))
    >>> print(values)
    [1 4 5 0]
    """
    gap = int64(1)
    while gap < count:
        gap = int64(gap * 11 // 5 + 1)
    while gap > 0:
        for start in range(gap, count):
            value = array[start]
            place = int64(start)
            while place >= gap and array[place - gap] > value:
                array[place] = array[place - gap]
                place = int64(place - gap)
            array[place] = value
        gap = int64(gap * 5 // 11)
