"""FROSTT tensors (``.tns``): one entry a line, its coordinates counted from 1 and its value.

What enters is a text; what leaves is a ``SparseTensor`` in ``COO(n)``: sorted, duplicates added,
zeros kept, float64 values (a file of ours may name another type).

A FROSTT file has no size line, yet many files carry one. Recognized, by the lines with data:

* ``rank count``, then the extents, then that many entries (MLIR's extended form);
* ``rank``, then the extents, then the entries (HiParTI);
* ``sptensor``, ``rank``, the extents, ``count``, then the entries (Genten, Tensor Toolbox), 0-based
  if a coordinate is 0 and 1-based if one equals its extent;
* a first comment ``# sparsejit shape 4 3 2 dtype float64`` (what ``write`` puts there).

Refused, because they might be taken for entries: a first line that could be extents and count of
what follows, a rank-1 file that reads as the extended form too, a coordinate 0 in any form but
``sptensor``, and an ``sptensor`` whose base cannot be told. Without a size line the extents are the
largest coordinates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from sparsejit._dataclasses import dataclass
from sparsejit.formats import COO
from sparsejit.io._table import (
    Array,
    Column,
    Kind,
    Layout,
    Start,
    check_coordinates,
    integer,
    is_integer,
    read_table,
)
from sparsejit.io._text import Line, Text, check_rank, data_lines
from sparsejit.tensors import SparseTensor, from_coo

__all__ = ["read_frostt", "shape_comment"]

_OURS = re.compile(rb"# sparsejit shape((?: [0-9]+)+) dtype (float64|int64|uint64)\n")
_KINDS = {b"float64": Kind.REAL, b"int64": Kind.INTEGER, b"uint64": Kind.UNSIGNED}


@dataclass(frozen=True, slots=True)
class _Head:
    """What stands before the entries; ``base`` is None where the entries must tell it."""

    ndim: int
    shape: tuple[int, ...] | None
    start: Start
    base: int | None = 1
    kind: Kind = Kind.REAL


def shape_comment(shape: Sequence[int], kind: str) -> bytes:
    """Return the comment that keeps the extents and the kind of values of a file we write.

    >>> shape_comment((4, 3), "int64")
    b'# sparsejit shape 4 3 dtype int64\\n'
    """
    return f"# sparsejit shape {' '.join(map(str, shape))} dtype {kind}\n".encode()


def read_frostt(text: Text) -> SparseTensor:
    """Return the tensor of a FROSTT file; ``ValueError`` names file and line of a damage.

    More than 64 dimensions raise ``UnsupportedError``.
    """
    head = _read_head(text)
    check_rank(text, head.ndim)
    names = [f"coordinate {k + 1}" for k in range(head.ndim)]
    indices = tuple(Column(name, Kind.INTEGER) for name in names)
    layout = Layout((*indices, Column("value", head.kind)), b"#", _note(head))
    *coordinates, values = read_table(text, head.start, layout)
    shape = head.shape
    if shape is None:
        check_coordinates(text, head.start, layout, coordinates, (2**63 - 1,) * head.ndim)
        _refuse_size_line(text, head.start, coordinates, values)
        shape = tuple(int(column.max()) for column in coordinates)
    base = _base(text, coordinates, shape) if head.base is None else head.base
    check_coordinates(text, head.start, layout, coordinates, shape, base)
    coordinates = [column - base for column in coordinates]
    return from_coo(coordinates, values, shape, format=COO(head.ndim))


def _note(head: _Head) -> str:
    if head.shape is None:
        return "as in the first line; FROSTT files have no size line"
    return f"the head says rank {head.ndim}"


def _read_head(text: Text) -> _Head:
    ours = _OURS.match(text.data)
    if ours:
        shape = tuple(integer(text, 1, "extent", word) for word in ours[1].split())
        return _Head(len(shape), shape, Start(ours.end(), 2), kind=_KINDS[ours[2]])
    lines = list(islice(data_lines(text, b"#"), 4))
    if not lines:
        raise text.error(text.last_line, "no entries; expected lines of coordinates and a value")
    if lines[0].words[0].lower() == b"sptensor":
        return _sptensor_head(text, lines)
    if len(lines[0].words) == 1:
        return _hiparti_head(text, lines)
    if _is_extended(lines):
        return _extended_head(text, lines)
    first = text.data.rindex(b"\n", 0, lines[0].end - 1) + 1 if lines[0].number > 1 else 0
    return _Head(len(lines[0].words) - 1, None, Start(first, lines[0].number))


def _extents(text: Text, line: Line, ndim: int) -> tuple[int, ...]:
    if len(line.words) != ndim:
        raise text.error(
            line.number, f"expected {ndim} extents, one per dimension, found {len(line.words)}"
        )
    return tuple(_natural(text, line.number, "extent", word) for word in line.words)


def _natural(text: Text, line: int, name: str, word: bytes, least: int = 0) -> int:
    number = integer(text, line, name, word)
    if number < least:
        raise text.error(line, f"{name} must be at least {least}, not {number}")
    return number


def _sptensor_head(text: Text, lines: list[Line]) -> _Head:
    if len(lines) < 4:
        raise text.error(
            text.last_line, "expected the lines 'sptensor', rank, extents and count of entries"
        )
    word, rank, extents, count = lines
    for line in (word, rank, count):
        if len(line.words) != 1:
            raise text.error(line.number, f"expected 1 word, found {len(line.words)}")
    ndim = _natural(text, rank.number, "rank", rank.words[0], 1)
    shape = _extents(text, extents, ndim)
    entries = _natural(text, count.number, "count", count.words[0])
    return _Head(ndim, shape, Start(count.end, count.number + 1, entries, count.number), None)


def _hiparti_head(text: Text, lines: list[Line]) -> _Head:
    rank = lines[0]
    if not is_integer(rank.words[0]) or len(lines) < 2:
        raise text.error(rank.number, "expected coordinates and a value, found 1 word")
    ndim = _natural(text, rank.number, "rank", rank.words[0], 1)
    shape = _extents(text, lines[1], ndim)
    return _Head(ndim, shape, Start(lines[1].end, lines[1].number + 1))


def _is_extended(lines: list[Line]) -> bool:
    """Say whether the first two lines are ``rank count`` and ``rank`` extents.

    Entries of a rank-1 tensor have two words as well, and so does the line after them, which makes
    the difference: two extents are followed by entries of three words.
    """
    if len(lines[0].words) != 2 or len(lines) < 2:
        return False
    if not all(map(is_integer, lines[0].words + lines[1].words)):
        return False
    ndim, width = int(lines[0].words[0][:20]), len(lines[1].words)
    return ndim == width and (width != 2 or len(lines) < 3 or len(lines[2].words) != 2)


def _extended_head(text: Text, lines: list[Line]) -> _Head:
    size = lines[0]
    ndim = _natural(text, size.number, "rank", size.words[0], 1)
    count = _natural(text, size.number, "count", size.words[1])
    if ndim == 2 and len(lines) == 2:
        raise text.error(
            size.number,
            "two lines of two integers are an empty matrix in the extended form, or a vector with "
            "two entries",
        )
    shape = _extents(text, lines[1], ndim)
    return _Head(ndim, shape, Start(lines[1].end, lines[1].number + 1, count, size.number))


def _refuse_size_line(
    text: Text, start: Start, coordinates: Sequence[Array], values: Array
) -> None:
    """Refuse a first entry that could be a line of extents and count, in a file without a head."""
    first = next(data_lines(text, b"#", start.offset, start.line))
    if not all(map(is_integer, first.words)):
        return
    rest = len(values) - 1
    covers = all(column[0] >= column[1:].max(initial=1) for column in coordinates)
    if values[0] == rest and covers:
        raise text.error(
            first.number,
            "this may be an entry, or a size line (extents and count of what follows), which a "
            "FROSTT file does not have; remove it, or put it behind another entry",
        )
    if len(coordinates) == 1 and coordinates[0][0] == 2 and values[0] == rest - 1:
        raise text.error(
            first.number,
            "this may be an entry of a vector, or the size line 'rank count' of a matrix whose "
            "entries lack a number",
        )


def _base(text: Text, coordinates: Sequence[Array], shape: tuple[int, ...]) -> int:
    """Return what an ``sptensor`` counts from: Genten from 0, Tensor Toolbox from 1."""
    if not coordinates[0].size:
        return 1
    if any(int(column.min()) <= 0 for column in coordinates):
        return 0
    if any(int(column.max()) >= size for column, size in zip(coordinates, shape, strict=True)):
        return 1
    raise text.error(
        text.last_line,
        "no coordinate is 0 and none equals its extent, so the file may count from 0 (Genten) or "
        "from 1 (Tensor Toolbox)",
    )
