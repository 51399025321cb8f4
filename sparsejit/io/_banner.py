"""The head of a Matrix Market file: banner, comments and size line.

What enters is a text; what leaves is a ``Head``: what the file holds, its extents, and where its
table starts. Taco's ``%%MatrixMarket tensor`` files are the same with any number of dimensions.
"""

from __future__ import annotations

import enum
import math
import re

from sparsejit._dataclasses import dataclass
from sparsejit.io._table import Column, Kind, Layout, Start, integer
from sparsejit.io._text import Line, Text, check_rank, clip, data_lines

__all__ = ["Field", "Head", "Symmetry", "read_head"]


class Field(enum.Enum):
    """The banner's field: what the values are."""

    REAL = "real"
    INTEGER = "integer"
    UNSIGNED = "unsigned-integer"
    COMPLEX = "complex"
    PATTERN = "pattern"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The value columns of a table with this field."""
        match self:
            case Field.REAL:
                return (Column("value", Kind.REAL),)
            case Field.INTEGER:
                return (Column("value", Kind.INTEGER),)
            case Field.UNSIGNED:
                return (Column("value", Kind.UNSIGNED),)
            case Field.COMPLEX:
                return (Column("real part", Kind.REAL), Column("imaginary part", Kind.REAL))
            case Field.PATTERN:
                return ()


class Symmetry(enum.Enum):
    """The banner's symmetry: what the half that is not stored is."""

    GENERAL = "general"
    SYMMETRIC = "symmetric"
    SKEW = "skew-symmetric"
    HERMITIAN = "hermitian"


@dataclass(frozen=True, slots=True)
class Head:
    """What a file holds; ``dense`` says ``array``, and ``layout`` has the index columns first."""

    dense: bool
    field: Field
    symmetry: Symmetry
    shape: tuple[int, ...]
    start: Start
    layout: Layout


_OBJECTS = ("matrix", "vector", "tensor")
# CHOLMOD's writers abbreviate.
_FORMATS = {"coordinate": False, "coord": False, "array": True}
_FIELDS = {field.value: field for field in Field} | {"double": Field.REAL}
_SYMMETRIES = {symmetry.value: symmetry for symmetry in Symmetry}
_WORDS: dict[str, tuple[str, ...]] = {
    "object": _OBJECTS,
    "format": tuple(_FORMATS),
    "field": tuple(_FIELDS),
    "symmetry": tuple(_SYMMETRIES),
}
_GRAPHBLAS_FLOAT = re.compile(
    rb"^\s*%%GraphBLAS\s+type\s+(?:float|double|fp32|fp64)\s*$", re.M | re.I
)


def read_head(text: Text) -> Head:
    """Return the head of a Matrix Market file; ``ValueError`` names what is wrong in which line."""
    first = next(data_lines(text, b"\0"), None)
    if first is None:
        raise text.error(1, "the file is empty; expected a Matrix Market banner")
    kind, dense, field, symmetry = _read_banner(text, first)
    size = next(data_lines(text, b"%", first.end, first.number + 1), None)
    if size is None:
        raise text.error(text.last_line, "the file ends before its size line")
    if field is Field.INTEGER and _GRAPHBLAS_FLOAT.search(text.data, first.end, size.end):
        # SuiteSparse's writers say `integer` when a matrix of floats holds whole numbers (and
        # infinities), and keep the type in this line.
        field = Field.REAL
    numbers = _read_sizes(text, size, kind, dense)
    shape = numbers if dense else numbers[:-1]
    if symmetry is not Symmetry.GENERAL and (len(shape) != 2 or shape[0] != shape[1]):
        sizes = "x".join(map(str, shape))
        raise text.error(size.number, f"{symmetry.value}, but {sizes} is not a square matrix")
    count = _stored_count(shape, symmetry) if dense else numbers[-1]
    note = "a pattern file holds no values" if field is Field.PATTERN else ""
    columns = (*(() if dense else _index_columns(len(shape))), *field.columns)
    return Head(
        dense,
        field,
        symmetry,
        shape,
        Start(size.end, size.number + 1, count, size.number),
        Layout(columns, b"%", note),
    )


def _read_banner(text: Text, line: Line) -> tuple[str, bool, Field, Symmetry]:
    words = [word.decode("ascii", "backslashreplace").lower() for word in line.words]
    form = "%%MatrixMarket object format field symmetry"
    if words[0] != "%%matrixmarket":
        raise text.error(
            line.number, f"no Matrix Market banner; expected '{form}', found {clip(line.words[0])}"
        )
    if len(words) != 5:
        raise text.error(line.number, f"expected 5 words ('{form}'), found {len(words)}")
    for (name, known), word in zip(_WORDS.items(), words[1:], strict=True):
        if word not in known:
            choices = ", ".join(known)
            raise text.error(line.number, f"unknown {name} {word!r}; expected one of: {choices}")
    dense, field, symmetry = _FORMATS[words[2]], _FIELDS[words[3]], _SYMMETRIES[words[4]]
    if field is Field.PATTERN and dense:
        raise text.error(line.number, "an array file cannot be a pattern")
    if field is Field.PATTERN and symmetry not in (Symmetry.GENERAL, Symmetry.SYMMETRIC):
        raise text.error(
            line.number, f"a pattern is general or symmetric; {symmetry.value} speaks about values"
        )
    if field is Field.UNSIGNED and symmetry is Symmetry.SKEW:
        raise text.error(line.number, "unsigned values cannot be skew-symmetric")
    return words[1], dense, field, symmetry


def _read_sizes(text: Text, line: Line, kind: str, dense: bool) -> tuple[int, ...]:
    """Return the numbers of the size line: the extents, and for coordinate files the count."""
    names = {
        "matrix": ["rows", "columns"],
        "vector": ["length"],
        "tensor": [f"extent {k + 1}" for k in range(max(1, len(line.words) - (not dense)))],
    }[kind] + ([] if dense else ["entries"])
    if len(line.words) != len(names):
        wanted = ", ".join(names)
        raise text.error(
            line.number, f"expected a size line ({wanted}), found {len(line.words)} words"
        )
    check_rank(text, len(names) if dense else len(names) - 1)
    numbers = []
    for name, word in zip(names, line.words, strict=True):
        number = integer(text, line.number, name, word)
        if number < 0:
            raise text.error(line.number, f"{name} must not be negative, found {number}")
        numbers.append(number)
    return tuple(numbers)


def _stored_count(shape: tuple[int, ...], symmetry: Symmetry) -> int:
    """Return how many numbers an array file holds: all, or one triangle."""
    match symmetry:
        case Symmetry.GENERAL:
            return math.prod(shape)
        case Symmetry.SYMMETRIC | Symmetry.HERMITIAN:
            return shape[0] * (shape[0] + 1) // 2
        case Symmetry.SKEW:
            return shape[0] * (shape[0] - 1) // 2


def _index_columns(ndim: int) -> tuple[Column, ...]:
    names = {1: ["index"], 2: ["row", "column"]}.get(ndim, [f"index {k + 1}" for k in range(ndim)])
    return tuple(Column(name, Kind.INTEGER) for name in names)
