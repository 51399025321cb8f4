"""Making tensors: from coordinates, from dense arrays, by pruning.

In: NumPy arrays (or what NumPy makes arrays of). Out: a ``SparseTensor`` in the format asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsejit.affine import Mod, dims_of
from sparsejit.errors import TensorTypeError
from sparsejit.formats import COO, Dense, Format, Level, LevelKind
from sparsejit.tensors._checks import check_shape
from sparsejit.tensors._dense import stored_entries, stored_from_dense
from sparsejit.tensors._dtypes import checked_value_dtype, fill_scalar
from sparsejit.tensors._sparse_tensor import SparseTensor, trusted_tensor
from sparsejit.tensors._storage import Array

__all__ = ["from_coo", "from_dense", "pruned"]


def from_coo(
    coords: Any, values: Any, shape: Sequence[int], format: Format | None = None
) -> SparseTensor:
    """Return the tensor with ``values`` at ``coords``, in ``format`` (default: ``COO(ndim)``).

    ``coords`` is one integer array per dimension, or one array (ndim, nse); entries may come in
    any order, and duplicates add up (bool: or). Stored zeros are kept. The fill value is 0.

    Raises ``ValueError`` for coordinates outside ``shape``, lengths that differ, or a format that
    cannot hold the entries; ``TensorTypeError`` for value types that are not supported.

    >>> from sparsejit.formats import CSR
    >>> a = from_coo(([0, 1, 0], [2, 0, 2]), [1.0, 2.0, 3.0], (2, 3), CSR)
    >>> a.to_numpy().tolist()
    [[0.0, 0.0, 4.0], [2.0, 0.0, 0.0]]
    """
    extents = check_shape(Dense(len(tuple(shape))), shape)
    ndim = len(extents)
    if format is None:
        format = COO(ndim) if ndim else Dense(0)
    check_shape(format, extents)
    found = np.asarray(values)
    checked_value_dtype(found.dtype)
    if found.ndim != 1:
        raise ValueError(f"values must be one-dimensional, not of shape {found.shape}")
    columns = tuple(
        _checked_column(column, dim, extent, len(found))
        for dim, (column, extent) in enumerate(zip(_columns(coords, ndim), extents, strict=True))
    )
    fill = fill_scalar(0, found.dtype)
    structure, stored = stored_entries(format, extents, columns, found, fill)
    # A tensor never shares its buffers with the arrays of coordinates it was made from.
    return trusted_tensor(structure, stored.copy() if stored is found else stored, fill)


def _columns(coords: Any, ndim: int) -> list[Any]:
    try:
        columns = list(coords)
    except TypeError:
        raise ValueError(f"coords must be one array per dimension, not {coords!r}") from None
    if len(columns) != ndim:
        raise ValueError(f"coords has {len(columns)} arrays for {ndim} dimensions")
    return columns


def _checked_column(column: Any, dim: int, extent: int, count: int) -> Array:
    array = np.asarray(column)
    if array.ndim != 1 or len(array) != count:
        raise ValueError(f"coords[{dim}] has shape {array.shape}, values has {count} elements")
    if not count:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"coords[{dim}] has dtype {array.dtype}; coordinates are integers")
    outside = (array < 0) | (array >= extent)
    if outside.any():
        bad = int(outside.argmax())
        where = f"coords[{dim}][{bad}] is {array[bad]}"
        raise ValueError(f"{where}, outside 0 .. {extent - 1} of dimension {dim}")
    return array.astype(np.int64)


def from_dense(array: Any, format: Format, fill_value: Any = 0) -> SparseTensor:
    """Return the dense ``array`` in ``format``; entries equal to ``fill_value`` are dropped.

    nan equals nan here. A format with dense levels stores the fill value in their free slots;
    a dense format shares the array's memory when it is contiguous.

    Raises ``ValueError`` when the format cannot hold the entries (more than ``n`` in a structured
    block, more than ``k`` in a padded row), ``TensorTypeError`` for a wrong rank or dtype.

    >>> from sparsejit.formats import BSR
    >>> a = from_dense(np.eye(3), BSR(2, 2))
    >>> a.nse, len(a.values)
    (5, 8)
    """
    dense = np.asarray(array)
    structure, values = stored_from_dense(dense, format, fill_value)
    return trusted_tensor(structure, values, fill_value)


def pruned(array: Array, format: Format) -> SparseTensor:
    """Return ``array`` in a structured format with only the ``n`` largest of each ``m`` kept.

    Size is the absolute value; nan counts as largest, and of equals the first is kept.
    """
    structured = [level for level in format.levels if level.type.kind is LevelKind.STRUCTURED]
    if len(structured) != 1:
        raise ValueError(f"prune needs a format with one structured level, not ({format})")
    checked_value_dtype(array.dtype, "the array")
    if array.ndim != format.ndim:
        raise TensorTypeError(f"({format}) has {format.ndim} dimensions, the array {array.ndim}")
    return from_dense(np.where(_largest(array, structured[0]), array, array.dtype.type(0)), format)


def _largest(array: Array, level: Level) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the mask of the ``n`` largest of each ``m`` along the level's dimension."""
    n, m = level.type.size
    assert isinstance(level.expr, Mod)
    axis = next(iter(dims_of(level.expr)))
    size = np.moveaxis(_magnitude(array), axis, -1)
    extent = size.shape[-1]
    blocks = -(-extent // m)
    padded = np.full(
        (*size.shape[:-1], blocks * m), -1.0 if size.dtype.kind == "f" else 0, size.dtype
    )
    padded[..., :extent] = size
    grouped = padded.reshape(*size.shape[:-1], blocks, m)
    # The largest first, equals in order: the ranks of a stable descending sort.
    descending = np.argsort(grouped[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    kept = np.zeros(grouped.shape, np.bool_)
    np.put_along_axis(kept, m - 1 - descending[..., :n], True, axis=-1)
    flat = kept.reshape(*size.shape[:-1], blocks * m)[..., :extent]
    return np.moveaxis(flat, -1, axis)


def _magnitude(array: Array) -> Array:
    """Return absolute values in a type that orders and does not overflow; nan is infinite."""
    if array.dtype.kind in "bu":
        return array
    if array.dtype.kind == "i":
        # abs(-128) is -128 as int8, and 128 when the same bits are read unsigned.
        return np.abs(array).view(array.dtype.name.replace("int", "uint"))
    size = np.abs(array).astype(np.float64)
    return np.where(np.isnan(size), np.inf, size)
