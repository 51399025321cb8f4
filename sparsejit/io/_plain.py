"""The fast way in for large tables of plain numbers: SciPy's multithreaded Matrix Market parser.

SciPy's parser is ten times as fast as NumPy's, but it ignores what follows a number in its word
(``1.5`` in an index column moves ``.5`` into the next column, ``1d3`` is read as 1), ignores
further words in a line, and a NUL byte or an array without elements ends the process. So a table is
handed over only after ``_is_plain`` has shown that every word is a complete number, one per column
in every line, with single blanks between them; everything else is read by the parser that defines
what is accepted (``_table``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsejit.io._table import Array, Kind, Layout, Start
from sparsejit.io._text import Text

__all__ = ["read_plain_table"]

Bytes: TypeAlias = NDArray[np.uint8]

# Below this many bytes NumPy's parser takes milliseconds.
_WORTHWHILE = 1 << 18
_CHUNK = 1 << 18

_DIGITS = b"0123456789"
_FIELDS = {
    (): "pattern",
    (Kind.INTEGER,): "integer",
    (Kind.UNSIGNED,): "unsigned-integer",
    (Kind.REAL,): "real",
}


def read_plain_table(
    text: Text, start: Start, layout: Layout, extents: tuple[int, ...]
) -> list[Array] | None:
    """Return the columns of a large, plain, undamaged table, coordinates counted from 1; else None.

    ``extents`` are those of the index columns, two for a sparse matrix, none for a list of values.
    None says nothing about the table: it may be small, unusual or damaged.
    """
    values = tuple(column.kind for column in layout.columns[len(extents) :])
    body = len(text.data) - start.offset
    if body < _WORTHWHILE or not start.count:
        return None
    if len(extents) not in (0, 2) or values not in _FIELDS or not (extents or values):
        return None
    if not _is_plain(text.data, start, len(layout.columns), values):
        return None
    kind, sizes = ("coordinate", extents) if extents else ("array", (start.count, 1))
    numbers = (*sizes, start.count) if extents else sizes
    banner = f"%%MatrixMarket matrix {kind} {_FIELDS[values]} general\n"
    header = banner + " ".join(map(str, numbers)) + "\n"
    matrix = _parse(header.encode(), memoryview(text.data)[start.offset :])
    if matrix is None:
        return None
    if not extents:
        return [np.asarray(matrix).reshape(-1)]
    return [matrix.row + 1, matrix.col + 1, matrix.data][: len(layout.columns)]


def _parse(header: bytes, body: memoryview) -> Any:
    """Return what SciPy reads, from a file of our own so that nobody can change it meanwhile."""
    try:
        with tempfile.TemporaryDirectory(prefix="sparsejit-") as folder:
            path = Path(folder) / "table.mtx"
            with path.open("wb") as file:
                file.write(header)
                file.write(body)
            import scipy.io  # takes longer than the rest of this package's readers

            return scipy.io.mmread(path, spmatrix=False)
    except (OSError, ValueError, OverflowError, MemoryError):
        # No room for a temporary file, or an entry that the other parser will name.
        return None


def _is_plain(data: bytes, start: Start, columns: int, values: tuple[Kind, ...]) -> bool:
    """Say whether the table has ``count`` times ``columns`` words, each a complete number.

    Only the last column may hold ``values``, all others are indices without a sign. The number of
    lines SciPy checks itself.
    """
    blanks = 0
    # The checks look at up to this many marks and the next one; each chunk repeats as many.
    reach = max(columns, 2)
    before = bytes((_NOTHING,)) * (reach - 1) + bytes((_END,))
    for first in range(start.offset, len(data), _CHUNK):
        codes = before + data[first : first + _CHUNK].translate(_CODES, _DIGITS)
        before = codes[len(codes) - reach :]
        marks = np.frombuffer(codes, np.uint8)
        if not (_marks_end_lines(marks, _ALLOWED[values]) and _blanks_begin_lines(marks, columns)):
            return False
        blanks += int(np.count_nonzero(marks[reach:] == _BLANK))
        # One byte before the chunk: at first the line end before the table.
        raw = np.frombuffer(data, np.uint8, min(_CHUNK + 1, len(data) - first + 1), first - 1)
        if not _words_are_whole(raw):
            return False
    # Short lines at the very end, whose blanks `_blanks_begin_lines` cannot see, lack some.
    return blanks == (columns - 1) * (start.count or 0)


# The marks that are left of a table without its digits, as codes; _NOTHING stands before the table.
_BLANK, _END, _SIGN, _POINT, _POWER, _OTHER, _NOTHING = range(7)
_CODES = bytes(
    {" ": _BLANK, "\t": _BLANK, "\n": _END, "+": _SIGN, "-": _SIGN, ".": _POINT, "e": _POWER}.get(
        chr(byte).replace("E", "e"), _OTHER
    )
    for byte in range(256)
)


def _pairs(*following: tuple[int, tuple[int, ...]]) -> NDArray[np.bool_]:
    """Return the table that says for ``8 * mark + next mark`` whether the pair may occur."""
    table = np.zeros(64, np.bool_)
    table[[8 * _NOTHING + _NOTHING, 8 * _NOTHING + _END]] = True
    for mark, allowed in following:
        table[[8 * mark + after for after in allowed]] = True
    return table


# A number's marks follow each other up to the line end; a blank after one would mean another word.
_ALLOWED = {
    (): _pairs((_BLANK, (_BLANK, _END)), (_END, (_BLANK, _END))),
    (Kind.UNSIGNED,): _pairs((_BLANK, (_BLANK, _END)), (_END, (_BLANK, _END))),
    (Kind.INTEGER,): _pairs(
        (_BLANK, (_BLANK, _END, _SIGN)), (_END, (_BLANK, _END, _SIGN)), (_SIGN, (_END,))
    ),
    (Kind.REAL,): _pairs(
        (_BLANK, (_BLANK, _END, _SIGN, _POINT, _POWER)),
        (_END, (_BLANK, _END, _SIGN, _POINT, _POWER)),
        (_SIGN, (_POINT, _POWER, _END)),
        (_POINT, (_POWER, _END)),
        (_POWER, (_SIGN, _END)),
    ),
}


def _marks_end_lines(marks: Bytes, allowed: NDArray[np.bool_]) -> bool:
    """Say whether the marks of a line are at most ``-.e-``, in this order, in its last word."""
    pairs = (marks[:-1] << 3) | marks[1:]
    if not allowed[pairs].all():
        return False
    # The sign of an exponent is the last mark of its line.
    exponent = pairs[:-1] == 8 * _POWER + _SIGN
    return not (exponent & (marks[2:] != _END)).any()


def _blanks_begin_lines(marks: Bytes, columns: int) -> bool:
    """Say whether exactly ``columns - 1`` blanks follow every line end, but for the last ones."""
    at_end = marks[:-columns] == _END
    for k in range(1, columns + 1):
        follows = marks[k : k + len(at_end)] == _BLANK
        if (at_end & (follows if k == columns else ~follows)).any():
            return False
    return True


def _words_are_whole(raw: Bytes) -> bool:
    """Say whether no blank touches another, and signs and exponents have their digits.

    A sign begins a number or an exponent, and digits follow it, as they follow an exponent. What
    lacks digits otherwise (``.``, ``e5``) SciPy refuses.
    """
    blank = raw <= 32
    digit = (raw - np.uint8(48)) < 10
    sign = (raw == ord("+")) | (raw == ord("-"))
    power = (raw | 32) == ord("e")
    wrong = sign[1:] & ~(blank | power)[:-1]
    wrong |= power[:-1] & ~(digit | sign)[1:]
    wrong |= sign[:-1] & ~(digit | (raw == ord(".")))[1:]
    # The byte before the table is a line end, so this also refuses a blank that begins a line.
    wrong |= blank[:-1] & blank[1:]
    return not wrong.any()
