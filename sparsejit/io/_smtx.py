"""DLMC patterns (``.smtx``): the sparsity of a pruned weight matrix, without values.

What enters is a text of three lines, ``rows, columns, entries`` (with or without commas), the row
offsets, and the column indices counted from 0; lines that begin with ``%`` are comments.
What leaves is a SciPy COO array of ones (float64).
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsejit.io._table import Array, integer
from sparsejit.io._text import Line, Text, clip, data_lines

__all__ = ["read_smtx"]

_NAMES = ("rows", "columns", "entries")


def read_smtx(text: Text) -> sp.coo_array[Any, Any]:
    """Return the pattern of an smtx file; ``ValueError`` names file and line of a damage."""
    lines = list(islice(data_lines(text, b"%"), 4))
    if not lines:
        raise text.error(text.last_line, "expected a line 'rows, columns, entries'")
    size = lines[0]
    words = b" ".join(size.words).replace(b",", b" ").split()
    if len(words) != 3:
        raise text.error(size.number, f"expected 'rows, columns, entries', found {len(words)}")
    rows, columns, count = (
        integer(text, size.number, name, word) for name, word in zip(_NAMES, words, strict=True)
    )
    for name, number in zip(_NAMES, (rows, columns, count), strict=True):
        if number < 0:
            raise text.error(size.number, f"{name} must not be negative, found {number}")
    offsets = _numbers(text, lines, 1, "row offset", rows + 1)
    indices = _numbers(text, lines, 2, "column index", count)
    if len(lines) > 3:
        raise text.error(lines[3].number, "expected 3 lines of data; more follow")
    _check_offsets(text, lines[1], offsets, count)
    outside = np.flatnonzero((indices < 0) | (indices >= columns))
    if outside.size:
        raise text.error(
            lines[2].number,
            f"column index {indices[outside[0]]} (number {outside[0] + 1} of the line) is outside "
            f"0..{columns - 1}",
        )
    small = max(rows, columns, count) <= np.iinfo(np.int32).max
    index_type = np.int32 if small else np.int64
    row: Array = np.repeat(np.arange(rows, dtype=index_type), np.diff(offsets))
    return sp.coo_array((np.ones(count), (row, indices.astype(index_type))), shape=(rows, columns))


def _numbers(text: Text, lines: list[Line], k: int, name: str, count: int) -> Array:
    """Return the ``count`` integers of the ``k``-th line with data; no integers need no line."""
    if k >= len(lines):
        if count:
            raise text.error(
                text.last_line, f"the file ends before its {count} {_plural(name, count)}"
            )
        return np.empty(0, np.int64)
    line = lines[k]
    if len(line.words) != count:
        raise text.error(
            line.number, f"expected {count} {_plural(name, count)}, found {len(line.words)}"
        )
    try:
        numbers = [int(word) for word in line.words if word.isdigit()]
        return np.array(numbers, np.int64).reshape(count)
    except (ValueError, OverflowError):
        for word in line.words:
            if integer(text, line.number, name, word) < 0:
                raise text.error(line.number, f"{name} {clip(word)} is negative") from None
        return np.array([int(word) for word in line.words], np.int64)


def _plural(name: str, count: int) -> str:
    if count == 1:
        return name
    return "column indices" if name == "column index" else name + "s"


def _check_offsets(text: Text, line: Line, offsets: Array, count: int) -> None:
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        k = int(np.argmax(falls))
        raise text.error(
            line.number, f"row offsets fall from {offsets[k]} to {offsets[k + 1]}; they must not"
        )
    if offsets[0] != 0 or offsets[-1] != count:
        raise text.error(
            line.number,
            f"row offsets run from {offsets[0]} to {offsets[-1]}; expected 0 to {count}",
        )
