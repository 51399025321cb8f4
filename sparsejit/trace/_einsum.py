"""Sums of products: einsum, and what is one (``@``, ``dot``, ``tensordot``, ``outer``, ...).

In: arrays and, for each of their dimensions, a letter; the letters of the result. Out: an array; a
sum of products over the letters that the result lacks is one ``Generic`` with all operands.
Subscripts are read as NumPy reads them, errors included.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim
from sparsejit.errors import TensorValueError
from sparsejit.formats import Format
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Cast, ScalarExpr, Unary
from sparsejit.ir.tensor import Value
from sparsejit.trace._array import Array
from sparsejit.trace._context import Deferred, Trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import shape_text
from sparsejit.trace._pointwise import Pointwise, binary, cast, substituted
from sparsejit.trace._promotion import product_dtype
from sparsejit.trace._subscripts import Subscripts

__all__ = ["Aligned", "aligned", "contract", "light", "reduced"]

_CHEAP = (UnaryOp.NEG, UnaryOp.CONJ, UnaryOp.REAL, UnaryOp.IMAG)


def light(trace: Trace, array: Array) -> Pointwise:
    """Return the content of ``array`` to be used inside a sum: at most a cheap operation on one
    value.

    What costs more is computed first, once, rather than at every step of the sum.
    """
    part = array.read()
    if len(part.accesses) <= 1 and _is_cheap(part.body):
        return part
    if not array.extents:
        return part
    array.force()
    return array.read()


def _is_cheap(body: ScalarExpr) -> bool:
    match body:
        case Cast(inner, _):
            return _is_cheap(inner)
        case Unary(op, inner):
            return op in _CHEAP and _is_cheap(inner)
        case _:
            return isinstance(body, Arg)


@dataclass(frozen=True, slots=True)
class Aligned:
    """Operands over common variables, those of the result first, and the extent of each."""

    parts: tuple[Pointwise, ...]
    rank: int
    summed: tuple[int, ...]
    extents: dict[int, AffineExpr]


def aligned(
    trace: Trace, arrays: Sequence[Array], subscripts: Subscripts, *, always_light: bool = False
) -> Aligned:
    """Return the contents of ``arrays`` over the letters of ``subscripts``.

    They are ``light`` where something is summed, or always.
    """
    extents = _letter_extents(trace, arrays, subscripts)
    output = subscripts.output
    summed = [
        letter
        for letter in dict.fromkeys(c for inner in subscripts.inputs for c in inner)
        if letter not in output
    ]
    number = {letter: n for n, letter in enumerate((*output, *summed))}
    parts = []
    for array, letters in zip(arrays, subscripts.inputs, strict=True):
        moved: dict[int, AffineExpr] = {}
        for d, letter in enumerate(letters):
            repeats = trace.extents.is_one(array.extents[d]) and extents[letter] != Constant(1)
            moved[d] = Constant(0) if repeats else Dim(number[letter])
        is_light = bool(summed) or always_light
        parts.append(substituted(light(trace, array) if is_light else array.read(), moved))
    sizes = {number[letter]: extents[letter] for letter in number}
    # A Python scalar is an array of NumPy's default type here, as in NumPy.
    strong = tuple(cast(part, part.dtype) for part in parts)
    return Aligned(strong, len(output), tuple(number[c] for c in summed), sizes)


def contract(trace: Trace, arrays: Sequence[Array], subscripts: Subscripts) -> Array:
    """Return the sum of products that ``subscripts`` describe."""
    found = aligned(trace, arrays, subscripts)
    dtype = product_dtype(found.parts)
    product = cast(found.parts[0], dtype)
    for part in found.parts[1:]:
        product = binary(BinaryOp.MUL, product, cast(part, dtype))
    return reduced(trace, Term(product, found.summed), found.rank, found.extents)


def reduced(trace: Trace, term: Term, rank: int, extents: dict[int, AffineExpr]) -> Array:
    """Return the array that a term over ``rank`` result dimensions is, computed when needed."""
    shape = tuple(extents[d] for d in range(rank))
    if not term.reduced:
        return trace.pointwise(term.part, shape)
    location = caller()

    def emit(format: Format | None) -> Value:
        return fresh(trace, term, shape, extents, format, location)

    return trace.pointwise(Deferred(emit, term.part.dtype), shape)


def _letter_extents(
    trace: Trace, arrays: Sequence[Array], subscripts: Subscripts
) -> dict[str, AffineExpr]:
    """Return the extent of each letter; dimensions of extent 1 repeat."""
    found: dict[str, AffineExpr] = {}
    for array, letters in zip(arrays, subscripts.inputs, strict=True):
        own: dict[str, AffineExpr] = {}
        for letter, extent in zip(letters, array.extents, strict=True):
            if letter in own and not _agree(trace, own[letter], extent):
                raise TensorValueError(
                    f"dimensions in single operand for collapsing index {letter!r} don't match",
                    hint=f"its shape is {shape_text(trace, array.extents)}",
                    location=caller(),
                )
            own[letter] = extent
            if trace.extents.is_one(extent):
                found.setdefault(letter, Constant(1))
            elif found.get(letter, Constant(1)) == Constant(1):
                found[letter] = extent
            elif not trace.extents.unify(found[letter], extent):
                texts = ", ".join(
                    f"{''.join(inner)} is {shape_text(trace, other.extents)}"
                    for other, inner in zip(arrays, subscripts.inputs, strict=True)
                )
                raise TensorValueError(
                    f"extents of index {letter!r} differ in {subscripts.what}",
                    hint=texts,
                    location=caller(),
                )
    return {letter: trace.extents.resolve(extent) for letter, extent in found.items()}


def _agree(trace: Trace, lhs: AffineExpr, rhs: AffineExpr) -> bool:
    return trace.extents.is_one(lhs) == trace.extents.is_one(rhs) and trace.extents.unify(lhs, rhs)
