"""Sums of products: einsum, and what is one (``@``, ``dot``, ``tensordot``, ``outer``, ...).

In: arrays and, for each of their dimensions, a letter; the letters of the result. Out: an array; a
sum of products over the letters that the result lacks is one ``Generic`` with all operands.
Subscripts are read as NumPy reads them, errors included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsejit.affine import AffineExpr, Constant, Dim
from sparsejit.errors import TensorTypeError
from sparsejit.formats import Format
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Cast, ScalarExpr, Unary
from sparsejit.ir.tensor import Value
from sparsejit.trace._array import Array
from sparsejit.trace._context import Deferred, Trace, require_trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, shape_text
from sparsejit.trace._pointwise import Pointwise, binary, cast, substituted
from sparsejit.trace._promotion import result_dtype
from sparsejit.trace._subscripts import Subscripts, parse_subscripts

__all__ = ["contract", "einsum", "light", "reduced"]

_CHEAP = (UnaryOp.NEG, UnaryOp.CONJ, UnaryOp.REAL, UnaryOp.IMAG)


def einsum(subscripts: str, *operands: Any) -> Any:
    """Sum of products, in NumPy's notation, of any number of operands.

    Letters name dimensions; one that the output lacks is summed over. Repeated letters in an
    operand take its diagonal; without ``->`` the output has the letters that occur once, in
    alphabetic order; ``...`` stands for the remaining dimensions, which broadcast. The dtype is
    NumPy's common one and is never widened. Raises ``TensorTypeError`` for bad subscripts and
    operands that do not fit, ``TraceError`` outside of a traced function.

    >>> import sparsejit as sj
    >>> sj.einsum("ij,j->i", [[1.0]], [2.0])
    Traceback (most recent call last):
        ...
    sparsejit.errors.TraceError: einsum was called outside of a traced function
      ...
    """
    trace = require_trace("einsum")
    arrays = [as_array(trace, operand) for operand in operands]
    read = parse_subscripts(subscripts, [len(array.extents) for array in arrays])
    return contract(trace, arrays, read)


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


def contract(trace: Trace, arrays: Sequence[Array], subscripts: Subscripts) -> Array:
    """Return the sum of products that ``subscripts`` describe."""
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
        parts.append(substituted(light(trace, array) if summed else array.read(), moved))
    # A Python scalar is an array of NumPy's default type here, as in NumPy.
    strong = [cast(part, part.dtype) for part in parts]
    dtype = result_dtype(strong)
    product = cast(strong[0], dtype)
    for part in strong[1:]:
        product = binary(BinaryOp.MUL, product, cast(part, dtype))
    sizes = {number[letter]: extents[letter] for letter in number}
    return reduced(trace, Term(product, tuple(number[c] for c in summed)), len(output), sizes)


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
                raise TensorTypeError(
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
                raise TensorTypeError(
                    f"extents of index {letter!r} differ in {subscripts.what}",
                    hint=texts,
                    location=caller(),
                )
    return {letter: trace.extents.resolve(extent) for letter, extent in found.items()}


def _agree(trace: Trace, lhs: AffineExpr, rhs: AffineExpr) -> bool:
    return trace.extents.is_one(lhs) == trace.extents.is_one(rhs) and trace.extents.unify(lhs, rhs)
