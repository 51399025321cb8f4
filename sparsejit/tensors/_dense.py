"""Dense arrays to storage of any format, and back.

In: a NumPy array and a format, or storage. Out: storage, or a NumPy array. What equals the fill
value is not stored, except where the format stores every coordinate of a level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError
from sparsejit.formats import Format
from sparsejit.tensors._assemble import assemble, order_entries
from sparsejit.tensors._coordinates import entries_of, level_columns
from sparsejit.tensors._dtypes import checked_value_dtype, fill_scalar, is_fill
from sparsejit.tensors._storage import Array, Structure
from sparsejit.tensors._values import add_duplicates

__all__ = ["dense_array", "plain_dense_view", "stored_entries", "stored_from_dense"]


def dense_array(structure: Structure, values: Array, fill: Any) -> Array:
    """Return the dense array of a stored tensor; a view of ``values`` when all levels are dense."""
    view = plain_dense_view(structure, values)
    if view is not None:
        return view
    entries = entries_of(structure)
    found = values[entries.slots]
    out = np.full(structure.shape, fill, values.dtype)
    if structure.format.is_unique:
        out[entries.coords] = found
        return out
    order = order_entries(entries.coords, len(found))
    if order.permutation is not None:
        found = found[order.permutation]
    if order.first is not None:
        found = add_duplicates(found, order.first)
    out[order.columns] = found
    return out


def plain_dense_view(structure: Structure, values: Array) -> Array | None:
    """Return the values as an array of the tensor's shape, when each dimension is a dense level."""
    fmt = structure.format
    back = fmt.lvl_to_dim
    if not (fmt.is_all_full and back.is_projected_permutation and fmt.num_levels == fmt.ndim):
        return None
    order = [result.index for result in back.results if hasattr(result, "index")]
    return values.reshape(fmt.level_sizes(structure.shape)).transpose(order)


def stored_from_dense(array: Array, fmt: Format, fill_value: Any) -> tuple[Structure, Array]:
    """Return the storage of ``array`` in ``fmt``: structure and flat values.

    Raises ``TensorTypeError`` when ranks differ, ``ValueError`` when the format cannot hold the
    entries.
    """
    checked_value_dtype(array.dtype, "the array")
    if array.ndim != fmt.ndim:
        raise TensorTypeError(f"({fmt}) has {fmt.ndim} dimensions, the array {array.ndim}")
    fill = fill_scalar(fill_value, array.dtype)
    if fmt.is_dense:
        structure = Structure(fmt, array.shape, (None,) * fmt.ndim, (None,) * fmt.ndim)
        return structure, np.ascontiguousarray(array).reshape(-1)
    coords = np.nonzero(~is_fill(array, fill)) if array.ndim else ()
    return stored_entries(fmt, array.shape, coords, array[coords].reshape(-1), fill)


def stored_entries(
    fmt: Format, shape: tuple[int, ...], coords: tuple[Array, ...], values: Array, fill: Any
) -> tuple[Structure, Array]:
    """Return the storage of entries at int64 ``coords`` inside ``shape``, in any order.

    Duplicates add up. Raises ``ValueError`` when the format cannot hold the entries.
    """
    columns = level_columns(fmt, coords, len(values))
    order = order_entries(columns, len(values))
    if order.permutation is not None:
        values = values[order.permutation]
    if order.first is not None:
        values = add_duplicates(values, order.first)
    made = assemble(fmt, shape, order.columns, len(values))
    if made.num_slots == len(values):  # distinct, sorted entries fill all slots: in this order
        return made.structure, np.ascontiguousarray(values)
    everything = np.full(made.num_slots, fill, values.dtype)
    everything[made.slots] = values
    return made.structure, everything
