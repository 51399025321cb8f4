"""Binsparse files (HDF5), through the package ``binsparse`` where it is installed.

What enters or leaves is a file; what leaves or enters are SciPy COO arrays (rank 1 and 2), NumPy
arrays (where every level is dense) and ``SparseTensor`` s in ``COO(n)``. The package parses the
container; the levels are walked and checked here, because it hands them on unchecked.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import COO
from sparsejit.io._entries import sparse_entries
from sparsejit.io._table import Array
from sparsejit.tensors import SparseTensor, from_coo

__all__ = ["read_binsparse", "write_binsparse"]

Stored: TypeAlias = "sp.coo_array[Any, Any] | NDArray[Any] | SparseTensor"


def _package() -> Any:
    try:
        return importlib.import_module("binsparse")
    except ImportError as missing:
        raise UnsupportedError(
            "Binsparse files need the package 'binsparse', which is not installed",
            hint="install it (pip install binsparse), or use .npz, .mtx or .tns files",
        ) from missing


def read_binsparse(path: Path) -> Stored:
    """Return the content of a Binsparse file.

    Raises ``UnsupportedError`` where the package is missing, ``ValueError`` for a damaged file.
    """
    package = _package()
    path.stat()  # a missing file is an OSError, unlike a damaged one
    try:
        stored = package.load_binsparse(path, alias=False)
        return _content(path, package, stored)
    except (ValueError, KeyError, TypeError, OSError) as damage:
        raise ValueError(f"{path}: not a readable Binsparse file ({damage})") from damage


def _content(path: Path, package: Any, stored: Any) -> Stored:
    order = stored.transpose or tuple(range(len(stored.shape)))
    if any(order[order[k]] != k for k in range(len(order))):
        raise UnsupportedError(
            f"{path}: levels in the order {list(order)}",
            hint="only orders that are their own inverse are read",
        )
    sizes = [stored.shape[d] for d in order]
    levels = _Levels([], np.zeros(0), 1, True)
    _walk(package, stored.level, sizes, levels)
    columns = [levels.columns[level] for level in order]
    if levels.all_dense and len(levels.values) == math.prod(sizes):
        return np.ascontiguousarray(levels.values.reshape(sizes).transpose(order))
    fill = stored.fill_value if stored.fill else 0
    if fill == 0 and len(sizes) in (1, 2):
        return sp.coo_array((levels.values, tuple(columns)), shape=stored.shape)
    made = from_coo(columns, levels.values, stored.shape, format=COO(len(sizes)))
    return SparseTensor(
        made.format, made.shape, made.positions, made.coordinates, made.values, fill_value=fill
    )


@dataclass(slots=True)
class _Levels:
    """The walk over the levels: coordinates so far, one per node of the current level."""

    columns: list[Array]
    values: Array
    nodes: int
    all_dense: bool


def _walk(package: Any, level: Any, sizes: Sequence[int], done: _Levels) -> None:
    depth = len(done.columns)
    match level:
        case package.ElementLevel():
            done.values = np.asarray(level.values)
            if len(done.values) != done.nodes:
                raise ValueError(f"expected {done.nodes} values, found {len(done.values)}")
        case package.DenseLevel():
            for size in sizes[depth : depth + level.rank]:
                done.columns = [np.repeat(column, size) for column in done.columns]
                done.columns.append(np.tile(np.arange(size), done.nodes))
                done.nodes *= size
            _walk(package, level.level, sizes, done)
        case package.SparseLevel():
            done.all_dense = False
            _descend(level, sizes[depth : depth + level.rank], done)
            _walk(package, level.level, sizes, done)
        case _:
            raise ValueError(f"unknown level {type(level).__name__}")


def _descend(level: Any, sizes: Sequence[int], done: _Levels) -> None:
    indices = [np.asarray(column).astype(np.int64) for column in level.indices]
    count = len(indices[0])
    if any(len(column) != count for column in indices):
        raise ValueError("the index arrays of a level differ in length")
    for column, size in zip(indices, sizes, strict=True):
        if count and not (column.min() >= 0 and column.max() < size):
            raise ValueError(f"an index is outside 0..{size - 1}")
    pointers = np.array([0, count])
    if level.pointers_to_next is not None:
        pointers = np.asarray(level.pointers_to_next).astype(np.int64)
    steps = np.diff(pointers)
    falls = (pointers[1:] < pointers[:-1]).any()
    if len(pointers) != done.nodes + 1 or falls or pointers[0] != 0 or pointers[-1] != count:
        raise ValueError(f"the pointers do not split {count} entries into {done.nodes} parts")
    done.columns = [np.repeat(column, steps) for column in done.columns] + indices
    done.nodes = count


def write_binsparse(path: Path, x: object) -> None:
    """Write ``x``, sparse or dense, to a Binsparse file; sparse ones in coordinate form.

    Duplicates are added up, which the format demands. Raises ``UnsupportedError`` where the package
    is missing, ``TensorTypeError`` for what it cannot hold.
    """
    package = _package()
    kind = "a Binsparse file"
    if isinstance(x, np.ndarray):
        stored = _dense(package, x, kind)
    else:
        entries = sparse_entries(x, kind, any_fill=True)
        ndim = len(entries.shape)
        made = from_coo(entries.coordinates, entries.values, entries.shape, format=COO(ndim))
        columns = tuple(column for column in made.coordinates if column is not None)
        fill = {}
        if isinstance(x, SparseTensor) and x.fill_value != 0:
            fill = {"fill": True, "fill_value": x.fill_value}
        level = package.SparseLevel(ndim, package.ElementLevel(_kept(made.values, kind)), columns)
        stored = package.CustomTensor(made.shape, len(made.values), level=level, **fill)
    package.save_binsparse(stored, path, alias=True)


def _dense(package: Any, x: Array, kind: str) -> Any:
    if x.ndim == 0:
        raise TensorTypeError(f"{kind} cannot hold an array of rank 0")
    element = package.ElementLevel(_kept(x.reshape(-1), kind))
    return package.CustomTensor(x.shape, x.size, level=package.DenseLevel(x.ndim, element))


def _kept(values: Array, kind: str) -> Array:
    """Return ``values`` if their type is among those that Binsparse has."""
    fits = values.dtype.kind in "biufc" and 4 <= values.dtype.itemsize <= 16
    if not fits and values.dtype.name not in ("bool", "int8", "int16", "uint8", "uint16"):
        raise TensorTypeError(f"{kind} cannot hold values of dtype {values.dtype}")
    return np.ascontiguousarray(values)
