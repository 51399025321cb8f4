"""Arrays that grow, copies, searches in coordinates, and prefix scans.

In: NumPy arrays and int64 scalars. The functions are plain Python that Numba compiles as it stands.
Copies are loops, since Numba needs over two seconds to compile one assignment of an array.
"""

from __future__ import annotations

from typing import Any

from numpy import empty, int64
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

__all__ = [
    "copy1",
    "copy2",
    "copy3",
    "grow",
    "resize",
    "scalar_view",
    "scan_max",
    "scan_sum",
    "search",
    "search_column",
    "search_unordered",
    "search_unordered_column",
]

Array = NDArray[Any]


def copy1(target: Array, source: Array) -> None:
    """Copy all elements of a rank-1 array to the front of another one."""
    for i in range(source.shape[0]):
        target[i] = source[i]


def copy2(target: Array, source: Array) -> None:
    """Copy all elements of a rank-2 array.

    >>> import numpy as np
    >>> target = np.zeros((1, 2))
    >>> copy2(target, np.array([[3.0, 4.0]]))
    >>> target
    array([[3., 4.]])
    """
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


def copy3(target: Array, source: Array) -> None:
    """Copy all elements of a rank-3 array."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            for k in range(source.shape[2]):
                target[i, j, k] = source[i, j, k]


def grow(array: Array, count: int64) -> Array:
    """Return a copy of a rank-1 array with room for more than ``count`` elements.

    The room doubles, so that pushing n elements one by one copies at most 2 n.

    >>> import numpy as np
    >>> grow(np.arange(3), np.int64(3)).size
    16
    """
    grown: Array = empty(max(int64(2 * array.size), int64(count + 1), int64(16)), array.dtype)
    copy1(grown, array)
    return grown


def resize(array: Array, count: int64) -> Array:
    """Return an array of ``count`` elements: the first ones of ``array``, then undefined ones.

    >>> import numpy as np
    >>> resize(np.arange(3), np.int64(2)), resize(np.arange(3), np.int64(5))[:3]
    (array([0, 1]), array([0, 1, 2]))
    """
    if count <= array.size:
        return array[:count].copy()
    grown: Array = empty(count, array.dtype)
    copy1(grown, array)
    return grown


def scalar_view(array: Array) -> Array:
    """Return the rank-0 view of the first element.

    >>> import numpy as np
    >>> values = np.array([1.5, 2.5])
    >>> scalar_view(values[1:2])[()] = 7.0
    >>> values
    array([1.5, 7. ])
    """
    return as_strided(array, (), ())


def scan_sum(array: Array) -> None:
    """Replace each element by the sum of the elements up to it.

    >>> import numpy as np
    >>> counts = np.array([0, 2, 0, 1])
    >>> scan_sum(counts)
    >>> counts.tolist()
    [0, 2, 2, 3]
    """
    for i in range(1, array.size):
        array[i] += array[i - 1]


def scan_max(array: Array) -> None:
    """Replace each element by the largest of the elements up to it; a nan stays to the end."""
    for i in range(1, array.size):
        before = array[i - 1]
        if before > array[i] or before != before:
            array[i] = before


def search(coordinates: Array, lower: int64, upper: int64, key: int64) -> int64:
    """Return the first position in ``lower .. upper - 1`` that holds ``key``, or -1.

    The coordinates there are in increasing order.

    >>> import numpy as np
    >>> print(search(np.array([1, 4, 6]), np.int64(0), np.int64(3), np.int64(4)))
    1
    """
    end = upper
    while lower < end:
        middle = (lower + end) >> 1
        if int64(coordinates[middle]) < key:
            lower = middle + 1
        else:
            end = middle
    if lower < upper and int64(coordinates[lower]) == key:
        return lower
    return int64(-1)


def search_unordered(coordinates: Array, lower: int64, upper: int64, key: int64) -> int64:
    """Return the first position in ``lower .. upper - 1`` that holds ``key``, or -1."""
    for position in range(lower, upper):
        if int64(coordinates[position]) == key:
            return int64(position)
    return int64(-1)


def search_column(
    coordinates: Array, lower: int64, upper: int64, key: int64, column: int64
) -> int64:
    """Return what ``search`` does, in one column of an array of structs."""
    return search(coordinates[:, column], lower, upper, key)


def search_unordered_column(
    coordinates: Array, lower: int64, upper: int64, key: int64, column: int64
) -> int64:
    """Return what ``search_unordered`` does, in one column of an array of structs."""
    return search_unordered(coordinates[:, column], lower, upper, key)
