"""A stable sort of coordinates, in time linear in their number.

In: int64 columns of coordinates. Out: the permutation that sorts them lexicographically and keeps
equal ones in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import scipy.sparse as sp

from sparsejit.tensors._storage import Array

__all__ = ["sorting_permutation"]

_LARGEST_KEY = 2**62
_FEW = 20_000  # below, one comparison sort is faster than passes over digits


def sorting_permutation(columns: Sequence[Array]) -> Array:
    """Return the stable permutation that sorts the rows of ``columns``; there is at least one row.

    >>> sorting_permutation((np.array([1, 0, 1]), np.array([0, 5, 0]))).tolist()
    [1, 0, 2]
    """
    least = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, least, strict=True)]
    largest = prod(spans)
    if largest >= _LARGEST_KEY:
        return np.lexsort(tuple(reversed(columns)))
    key = np.zeros(len(columns[0]), np.int64)
    for column, low, span in zip(columns, least, spans, strict=True):
        key *= span
        key += column
        key -= low
    if len(key) < _FEW:
        return np.argsort(key, kind="stable")
    return _sorted_by_digits(key, largest)


def _sorted_by_digits(key: Array, largest: int) -> Array:
    """Sort by counting, the last digit first; a digit is small enough for a table of counts."""
    passes = -(-largest.bit_length() // min(len(key).bit_length() + 1, 30))
    bits = -(-largest.bit_length() // passes)
    order: Array | None = None
    for number in range(passes):
        digit = ((key >> (number * bits)) & (2**bits - 1)).astype(np.int32)
        if order is None:
            order = _counted(digit, 2**bits)
        else:
            order = order[_counted(digit[order], 2**bits)]
    assert order is not None
    return order


def _counted(digit: Array, base: int) -> Array:
    """Return the stable permutation that sorts ``digit``, all below ``base``."""
    # A row of a matrix that becomes columns: SciPy transposes by a stable counting sort.
    count = len(digit)
    index = np.dtype(np.int32 if count <= np.iinfo(np.int32).max else np.int64)
    row = sp.csr_array((1, base), dtype=index)
    row.data = np.arange(count, dtype=index)
    row.indices = digit.astype(index, copy=False)
    row.indptr = np.array([0, count], index)
    return np.asarray(row.tocsc().data)
