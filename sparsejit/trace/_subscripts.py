"""Subscript strings: NumPy's einsum notation, and the letters of matrix products.

In: a string and the ranks of the operands. Out: a letter for each dimension of each operand and of
the result; dimensions under an ellipsis get letters of their own (``.0``, ``.1``, ...). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TensorTypeError, TensorValueError
from sparsejit.trace._locations import caller

__all__ = ["Subscripts", "matmul_subscripts", "parse_subscripts"]

Letters = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subscripts:
    """The letters of each operand and of the result; ``what`` names the operation in messages."""

    inputs: tuple[Letters, ...]
    output: Letters
    what: str


def _refused(what: str, text: str) -> TensorValueError:
    return TensorValueError(f"{what} in einsum({text!r})", location=caller())


def parse_subscripts(text: object, ranks: Sequence[int]) -> Subscripts:
    """Return the letters that an einsum string gives to operands of these ranks.

    Raises ``TensorValueError`` for a string that NumPy refuses too.

    >>> parse_subscripts("ij, jk", [2, 2]).output
    ('i', 'k')
    """
    if not isinstance(text, str):
        raise TensorTypeError(
            f"einsum needs its subscripts as a string, not {type(text).__name__}",
            hint='write einsum("ij,j->i", A, x)',
            location=caller(),
        )
    compact = text.replace(" ", "")
    inputs, arrow, output = compact.partition("->")
    if "-" in inputs or ">" in inputs or (arrow and set(output) & set("->,")):
        raise _refused("invalid '->'", text)
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise _refused(f"{len(terms)} subscripts for {len(ranks)} operands", text)
    dots = [
        _dots(term, rank, text, k) for k, (term, rank) in enumerate(zip(terms, ranks, strict=True))
    ]
    widest = max([0, *(count for count in dots if count is not None)])
    letters = tuple(
        _letters(term, count or 0, widest) for term, count in zip(terms, dots, strict=True)
    )
    has_dots = any(count is not None for count in dots)
    if arrow:
        result = _output(output, letters, widest, has_dots, text)
    else:
        result = _implicit(letters, widest)
    return Subscripts(letters, result, f"einsum({text!r})")


def _dots(term: str, rank: int, text: str, number: int) -> int | None:
    """Return how many dimensions the ellipsis of a term stands for, None where there is none."""
    plain = term.replace("...", "", 1)
    for letter in plain:
        if letter == ".":
            raise _refused(f"a '.' that is no ellipsis '...' for operand {number}", text)
        if not (letter.isascii() and letter.isalpha()):
            raise _refused(f"invalid subscript {letter!r}, subscripts must be letters", text)
    if len(plain) > rank or ("..." not in term and len(plain) < rank):
        few = "many" if len(plain) > rank else "few"
        raise _refused(f"too {few} subscripts for operand {number}, which has rank {rank},", text)
    return rank - len(plain) if "..." in term else None


def _letters(term: str, count: int, widest: int) -> Letters:
    """Return one letter a dimension; those of the ellipsis are numbered from the right."""
    before, dots, after = term.partition("...")
    if not dots:
        return tuple(before)
    hidden = tuple(f".{d}" for d in range(widest - count, widest))
    return (*before, *hidden, *after)


def _output(
    output: str, inputs: Sequence[Letters], widest: int, has_dots: bool, text: str
) -> Letters:
    plain = output.replace("...", "", 1)
    for letter, count in Counter(plain).items():
        if letter == ".":
            raise _refused("a '.' that is no ellipsis '...' for the output", text)
        if not (letter.isascii() and letter.isalpha()):
            raise _refused(f"invalid subscript {letter!r}, subscripts must be letters", text)
        if count > 1:
            raise _refused(f"output subscript {letter!r} multiple times", text)
        if not any(letter in letters for letters in inputs):
            raise _refused(f"output subscript {letter!r}, which never appeared in an input,", text)
    if widest and "..." not in output:
        raise _refused("an ellipsis of the inputs is missing in the output", text)
    if "..." in output and not has_dots:
        return tuple(plain)
    return _letters(output, widest, widest)


def _implicit(inputs: Sequence[Letters], widest: int) -> Letters:
    counts = Counter(letter for letters in inputs for letter in letters)
    once = sorted(c for c, count in counts.items() if count == 1 and not c.startswith("."))
    return (*(f".{d}" for d in range(widest)), *once)


def matmul_subscripts(left: int, right: int) -> Subscripts:
    """Return the letters of ``@`` for operands of these ranks (at least 1), batches first.

    >>> matmul_subscripts(2, 1).output
    ('i',)
    """
    batch = max(left, right, 2) - 2
    rows: Letters = ("i",) if left > 1 else ()
    columns: Letters = ("k",) if right > 1 else ()
    hidden = tuple(f".{d}" for d in range(batch))
    first = (*hidden[batch - (left - 2) :], *rows, "j") if left > 1 else ("j",)
    second = (*hidden[batch - (right - 2) :], "j", *columns) if right > 1 else ("j",)
    return Subscripts((first, second), (*hidden, *rows, *columns), "@")
