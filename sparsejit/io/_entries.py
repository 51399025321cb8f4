"""What the text writers need of an operand: its coordinates, its values and its shape.

What enters is a SciPy sparse array or matrix of any format, a ``SparseTensor`` with fill value 0 or
a NumPy array; what leaves is an ``Entries`` in the order of storage, duplicates and zeros kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import COO
from sparsejit.io._table import Array
from sparsejit.tensors import SparseTensor

__all__ = ["Entries", "sparse_entries", "value_words"]


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """``coordinates[d][e]`` and ``values[e]`` of entry ``e``; coordinates count from 0."""

    shape: tuple[int, ...]
    coordinates: tuple[Array, ...]
    values: Array


def sparse_entries(x: object, kind: str, any_fill: bool = False) -> Entries:
    """Return the entries of a sparse operand; ``kind`` names the kind of file in messages.

    ``any_fill`` says that the caller keeps a fill value that is not 0.

    Raises ``TensorTypeError`` for what is not sparse or has rank 0, ``UnsupportedError`` for a fill
    value that the file cannot express.
    """
    match x:
        case SparseTensor():
            return _tensor_entries(x, kind, any_fill)
        case _ if sp.issparse(x):
            matrix: Any = x
            coo = matrix.tocoo()
            coords = coo.coords if isinstance(coo, sp.coo_array) else (coo.row, coo.col)
            return Entries(coo.shape, tuple(coords), coo.data)
        case np.ndarray():
            raise TensorTypeError(
                f"{kind} holds sparse tensors, not a dense array",
                hint="convert it first, for example with scipy.sparse.coo_array(x)",
            )
        case _:
            raise TensorTypeError(
                f"cannot write a {type(x).__name__} to {kind}",
                hint="expected a SciPy sparse array, a SparseTensor or a NumPy array",
            )


def _tensor_entries(x: SparseTensor, kind: str, any_fill: bool) -> Entries:
    if x.ndim == 0:
        raise TensorTypeError(f"{kind} cannot hold a tensor of rank 0")
    if x.fill_value != 0 and not any_fill:
        raise UnsupportedError(
            f"{kind} cannot express a fill value of {x.fill_value}; unstored means 0 there",
            hint="write an .npz file, which keeps it",
        )
    coo = x.convert(COO(x.ndim))
    columns = [np.asarray(column) for column in coo.coordinates if column is not None]
    return Entries(x.shape, tuple(columns), np.asarray(coo.values))


def value_words(values: Array, kind: str) -> tuple[str, list[str]]:
    """Return the kind of ``values`` and the shortest text that reads back as each of them.

    The kinds are the Matrix Market's fields ``real``, ``integer``, ``unsigned-integer`` and
    ``complex``; the two parts of a complex number are separated by a blank. Floats of other widths
    get the digits of their own width. Raises ``TensorTypeError`` for other dtypes.

    >>> value_words(np.array([0.1, 2], np.float32), "a .mtx file")
    ('real', ['0.1', '2.0'])
    """
    match values.dtype.kind:
        case "b" | "i":
            return "integer", [str(number) for number in values.astype(np.int64).tolist()]
        case "u":
            name = "unsigned-integer" if values.dtype.itemsize == 8 else "integer"
            return name, [str(number) for number in values.tolist()]
        case "c" if values.dtype.itemsize <= 16:
            parts = zip(_real_words(values.real), _real_words(values.imag), strict=True)
            return "complex", [f"{real} {imaginary}" for real, imaginary in parts]
        case "f" if values.dtype.itemsize <= 8:
            return "real", _real_words(values)
        case _ if values.dtype.name == "bfloat16":
            return "real", _real_words(values.astype(np.float32))
        case _:
            raise TensorTypeError(f"{kind} cannot hold values of dtype {values.dtype}")


def _real_words(values: Array) -> list[str]:
    if values.dtype == np.float64:
        return [repr(number) for number in values.tolist()]
    return [str(number) for number in values]
