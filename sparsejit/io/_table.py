"""Tables of numbers: one entry a line, the same columns in every line.

What enters is a text, the place where the table begins and a ``Layout``; what leaves is one NumPy
array per column. NumPy's C parser reads what is in order; whatever it refuses is read again line by
line by ``_read_line_by_line``, which defines what is accepted and finds the words of each error.
"""

from __future__ import annotations

import enum
import io
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.io._text import Text, clip, data_lines

__all__ = [
    "Column",
    "Kind",
    "Layout",
    "Start",
    "check_coordinates",
    "integer",
    "is_integer",
    "line_of_entry",
    "read_table",
]

Array: TypeAlias = NDArray[Any]


class Kind(enum.Enum):
    """What the numbers of a column are."""

    INTEGER = "int64"
    UNSIGNED = "uint64"
    REAL = "float64"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the name that messages use, and the kind of its numbers."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns, how a comment line begins, and a ``note`` for a wrong number of columns."""

    columns: tuple[Column, ...]
    comment: bytes
    note: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a table begins: offset and number of its first line, and the count announced before it.

    ``count`` is None where the file announces none; ``size_line`` is the line that announced it.
    """

    offset: int
    line: int
    count: int | None = None
    size_line: int = 0


_INTEGER = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(
    rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)
_D_TO_E = bytes.maketrans(b"dD", b"ee")
# White space for NumPy, but not for `bytes.split`.
_SEPARATORS = (b"\x1c", b"\x1d", b"\x1e", b"\x1f")


def is_integer(word: bytes) -> bool:
    """Say whether a word is an integer, of any size.

    >>> is_integer(b"-12"), is_integer(b"1.0")
    (True, False)
    """
    return _INTEGER.fullmatch(word) is not None


def integer(text: Text, line: int, name: str, word: bytes) -> int:
    """Return ``word`` as a signed 64-bit integer; ``name`` says in messages what it is."""
    return int(_number(text, line, Column(name, Kind.INTEGER), word))


def read_table(text: Text, start: Start, layout: Layout) -> list[Array]:
    """Return one array per column of the table, in the order of the file.

    Raises ``ValueError`` that names file and line for a line with too few or too many words, for a
    word that is no number of its column's kind or does not fit into it, and where the number of
    entries is not the announced one.
    """
    arrays = _read_at_once(text, start, layout)
    if arrays is not None and start.count in (None, len(arrays[0])):
        return arrays
    return _read_line_by_line(text, start, layout)


def _read_at_once(text: Text, start: Start, layout: Layout) -> list[Array] | None:
    """Return the columns as NumPy's parser reads them, None where it or we want a closer look."""
    body = text.data[start.offset :]
    if not body.isascii() or any(byte in body for byte in _SEPARATORS) or body.isspace():
        return None
    dtype = np.dtype([(f"c{k}", c.kind.value) for k, c in enumerate(layout.columns)])
    if not body:
        return [np.empty(0, c.kind.value) for c in layout.columns]
    try:
        table = np.loadtxt(io.StringIO(body.decode("ascii")), dtype, comments=None, ndmin=1)
    except ValueError:
        return None
    return [np.ascontiguousarray(table[name]) for name in dtype.names or ()]


def _read_line_by_line(text: Text, start: Start, layout: Layout) -> list[Array]:
    lists: list[list[Any]] = [[] for _ in layout.columns]
    count = start.count
    for line in data_lines(text, layout.comment, start.offset, start.line):
        if count is not None and len(lists[0]) == count:
            raise text.error(
                line.number,
                f"more than the {_entries(count)} that line {start.size_line} announces",
            )
        if len(line.words) != len(layout.columns):
            raise text.error(line.number, _wrong_count(layout, len(line.words)))
        for numbers, column, word in zip(lists, layout.columns, line.words, strict=True):
            numbers.append(_number(text, line.number, column, word))
    if count is not None and len(lists[0]) < count:
        raise text.error(
            text.last_line,
            f"the file ends after {_entries(len(lists[0]))}; "
            f"line {start.size_line} announces {count}",
        )
    return [
        np.array(numbers, dtype=column.kind.value)
        for numbers, column in zip(lists, layout.columns, strict=True)
    ]


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _wrong_count(layout: Layout, found: int) -> str:
    names = ", ".join(column.name for column in layout.columns)
    plural = "number" if len(layout.columns) == 1 else "numbers"
    note = f" ({layout.note})" if layout.note else ""
    return f"expected {len(layout.columns)} {plural} ({names}), found {found}{note}"


def _number(text: Text, line: int, column: Column, word: bytes) -> int | float:
    if column.kind is Kind.REAL:
        if not _REAL.fullmatch(word):
            raise text.error(line, f"{column.name} {clip(word)} is not a number")
        return float(word.translate(_D_TO_E))
    if not _INTEGER.fullmatch(word):
        raise text.error(line, f"{column.name} {clip(word)} is not an integer")
    limits = np.iinfo(column.kind.value)
    digits = word.lstrip(b"+-").lstrip(b"0") or b"0"
    # int() refuses thousands of digits, and no number of 64 bits has more than 20.
    magnitude = int(digits[:21])
    number = -magnitude if word.startswith(b"-") else magnitude
    if not limits.min <= number <= limits.max:
        raise text.error(line, f"{column.name} {clip(word)} does not fit in {column.kind.value}")
    return number


def check_coordinates(
    text: Text,
    start: Start,
    layout: Layout,
    coordinates: Sequence[Array],
    extents: Sequence[int],
    base: int = 1,
) -> None:
    """Raise ``ValueError`` at the first entry with a coordinate outside its extent."""
    first: tuple[int, int] | None = None
    for k, (column, extent) in enumerate(zip(coordinates, extents, strict=True)):
        if not column.size or (column.min() >= base and column.max() - base < extent):
            continue
        outside = (column < base) | (column > base - 1 + extent)
        entry = int(np.argmax(outside))
        if first is None or entry < first[0]:
            first = entry, k
    if first is None:
        return
    entry, k = first
    name, value = layout.columns[k].name, int(coordinates[k][entry])
    hint = "; indices count from 1 (is this a 0-based file?)" if base == 1 and value == 0 else ""
    raise text.error(
        line_of_entry(text, start, layout, entry),
        f"{name} {value} is outside {base}..{base - 1 + extents[k]}{hint}",
    )


def line_of_entry(text: Text, start: Start, layout: Layout, entry: int) -> int:
    """Return the number of the line that holds entry ``entry`` (from 0) of a table."""
    for k, line in enumerate(data_lines(text, layout.comment, start.offset, start.line)):
        if k == entry:
            return line.number
    return text.last_line
