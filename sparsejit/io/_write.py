"""The text writers: Matrix Market, FROSTT and DLMC files.

What enters is an operand; what leaves is the whole text. Numbers are written with the shortest
digits that read back as the same number, entries in the order in which they are stored.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sparsejit.errors import TensorTypeError
from sparsejit.io._entries import Entries, sparse_entries, value_words
from sparsejit.io._frostt import shape_comment
from sparsejit.io._table import Array

__all__ = ["frostt_text", "matrix_market_text", "smtx_text"]

_OBJECTS = {1: "vector", 2: "matrix"}
_FROSTT_TYPES = {"real": "float64", "integer": "int64", "unsigned-integer": "uint64"}


def matrix_market_text(x: object) -> bytes:
    """Return ``x`` as a Matrix Market file: ``array`` for NumPy arrays, else ``coordinate``.

    The symmetry is ``general``. Rank 1 is a ``vector``; ranks above 2 get taco's ``tensor`` form.
    """
    kind = "a .mtx file"
    if isinstance(x, np.ndarray):
        return _array_text(x, kind)
    entries = sparse_entries(x, kind)
    field, words = value_words(entries.values, kind)
    sizes = " ".join(map(str, (*entries.shape, len(words))))
    name = _OBJECTS.get(len(entries.shape), "tensor")
    head = f"%%MatrixMarket {name} coordinate {field} general\n{sizes}\n"
    return (head + _lines(_indices(entries), words)).encode()


def _array_text(x: Array, kind: str) -> bytes:
    if x.ndim == 0:
        raise TensorTypeError(f"{kind} cannot hold an array of rank 0")
    field, words = value_words(x.reshape(-1, order="F"), kind)
    name = _OBJECTS.get(x.ndim, "tensor")
    sizes = " ".join(map(str, x.shape))
    head = f"%%MatrixMarket {name} array {field} general\n{sizes}\n"
    return (head + _lines([], words)).encode()


def frostt_text(x: object) -> bytes:
    """Return ``x`` as a FROSTT file whose first line, a comment, keeps shape and kind of values."""
    kind = "a .tns file"
    entries = sparse_entries(x, kind)
    field, words = value_words(entries.values, kind)
    if field == "complex":
        raise TensorTypeError(f"{kind} cannot hold complex values", hint="write an .npz file")
    head = shape_comment(entries.shape, _FROSTT_TYPES[field])
    return head + _lines(_indices(entries), words).encode()


def smtx_text(x: object) -> bytes:
    """Return the pattern of a matrix as a DLMC file; every stored value must be 1."""
    kind = "an .smtx file"
    entries = sparse_entries(x, kind)
    if len(entries.shape) != 2:
        raise TensorTypeError(f"{kind} holds matrices, not a tensor of rank {len(entries.shape)}")
    if not (entries.values == 1).all():
        raise ValueError(f"{kind} holds a pattern; values other than 1 would be lost")
    row, column = entries.coordinates
    order = np.lexsort((column, row))
    offsets = np.zeros(entries.shape[0] + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=entries.shape[0]), out=offsets[1:])
    sizes = (*entries.shape, len(row))
    lines = (map(str, sizes), map(str, offsets.tolist()), map(str, column[order].tolist()))
    first, *rest = lines
    return "\n".join([", ".join(first), *map(" ".join, rest), ""]).encode()


def _indices(entries: Entries) -> list[Iterable[int]]:
    return [(np.asarray(c).astype(np.int64) + 1).tolist() for c in entries.coordinates]


def _lines(indices: list[Iterable[int]], words: list[str]) -> str:
    """Return one line per entry: its indices, then its value."""
    columns = [*(map(str, column) for column in indices), words]
    return "".join([" ".join(line) + "\n" for line in zip(*columns, strict=True)])
