"""Matrix Market files: coordinate and array, every field and symmetry, and taco's tensor form.

What enters is a text; what leaves is a SciPy COO array of rank 1 or 2 with the unstored half
filled in, a NumPy array for ``array`` files, or a ``SparseTensor`` for a sparse tensor of rank 3
and more. Entries stay as they are stored: duplicates, zeros and their order included.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsejit.formats import COO
from sparsejit.io._banner import Field, Head, Symmetry, read_head
from sparsejit.io._plain import read_plain_table
from sparsejit.io._table import Array, check_coordinates, line_of_entry, read_table
from sparsejit.io._text import Text
from sparsejit.tensors import SparseTensor, from_coo

__all__ = ["Matrix", "read_matrix_market"]

Matrix: TypeAlias = "sp.coo_array[Any, Any] | NDArray[Any] | SparseTensor"


def read_matrix_market(text: Text) -> Matrix:
    """Return what a Matrix Market file holds; ``ValueError`` names file and line of a damage."""
    head = read_head(text)
    extents = () if head.dense else head.shape
    columns = read_plain_table(text, head.start, head.layout, extents)
    if columns is None:
        columns = read_table(text, head.start, head.layout)
    coordinates, values = columns[: len(extents)], _values(head, columns[len(extents) :])
    if head.dense:
        return _dense(text, head, values)
    check_coordinates(text, head.start, head.layout, coordinates, extents)
    coordinates = [_narrow(column, head.shape) for column in coordinates]
    if head.symmetry is not Symmetry.GENERAL:
        row, column = coordinates
        coordinates, values = _fill_in(text, head, row, column, values)
    if len(extents) > 2:
        return from_coo(coordinates, values, head.shape, format=COO(len(extents)))
    place: Any = tuple(coordinates)
    return sp.coo_array((values, place), shape=head.shape)


def _values(head: Head, columns: list[Array]) -> Array:
    match head.field:
        case Field.REAL | Field.INTEGER | Field.UNSIGNED:
            return columns[0]
        case Field.COMPLEX:
            values = np.empty(len(columns[0]), np.complex128)
            # Not `real + 1j * imag`, which turns an infinite part into nan.
            values.real, values.imag = columns
            return values
        case Field.PATTERN:
            return np.ones(head.start.count or 0)


def _narrow(column: Array, shape: tuple[int, ...]) -> Array:
    """Return coordinates counted from 0, in the type that SciPy keeps them in."""
    small = max(shape, default=0) <= np.iinfo(np.int32).max
    return (column - 1).astype(np.int32 if small else np.int64, copy=False)


def _mirrored(text: Text, head: Head, values: Array, lines: tuple[Array, ...]) -> Array:
    """Return the values of the other half; ``lines`` tells which entries they come from."""
    match head.symmetry:
        case Symmetry.GENERAL | Symmetry.SYMMETRIC:
            return values
        case Symmetry.HERMITIAN:
            return np.conj(values)
        case Symmetry.SKEW:
            lowest = np.iinfo(np.int64).min
            if head.field is Field.INTEGER and (values == lowest).any():
                entry = int(lines[0][np.argmax(values == lowest)])
                raise text.error(
                    line_of_entry(text, head.start, head.layout, entry),
                    f"the negative of {lowest}, on the other side, does not fit in int64",
                )
            return -values


def _fill_in(
    text: Text, head: Head, row: Array, column: Array, values: Array
) -> tuple[list[Array], Array]:
    """Return the entries of both halves of a symmetric, skew-symmetric or Hermitian matrix."""
    _refuse_both_halves(text, head, row, column)
    off = np.flatnonzero(row != column)
    other = _mirrored(text, head, values[off], (off,))
    coordinates = [np.concatenate((row, column[off])), np.concatenate((column, row[off]))]
    return coordinates, np.concatenate((values, other))


def _refuse_both_halves(text: Text, head: Head, row: Array, column: Array) -> None:
    """Refuse a file that stores an entry and its mirror image: filling in would double both."""
    above = np.flatnonzero(row < column)
    if not above.size or not (row > column).any():
        return
    below = row > column
    stored = set(zip(row[below].tolist(), column[below].tolist(), strict=True))
    for entry, i, j in zip(
        above.tolist(), row[above].tolist(), column[above].tolist(), strict=True
    ):
        if (j, i) in stored:
            raise text.error(
                line_of_entry(text, head.start, head.layout, entry),
                f"entry ({i + 1}, {j + 1}) is stored on both sides of the diagonal; "
                f"a {head.symmetry.value} file holds one half",
            )


def _dense(text: Text, head: Head, values: Array) -> Array:
    """Return the array whose elements (or whose lower triangle) the file lists column by column."""
    if head.symmetry is Symmetry.GENERAL:
        return np.ascontiguousarray(values.reshape(head.shape, order="F"))
    whole = np.zeros(head.shape, values.dtype)
    # The upper triangle row by row is the lower triangle column by column.
    column, row = np.triu_indices(head.shape[0], 1 if head.symmetry is Symmetry.SKEW else 0)
    whole[row, column] = values
    off = np.flatnonzero(row != column)
    whole[column[off], row[off]] = _mirrored(text, head, values[off], (off,))
    return whole
