"""``einsum``, also over semirings: sums and products by other operations.

In: subscripts, arrays, and the name of a semiring. Out: an array. Under a semiring only stored
entries meet; the sum starts from its identity, which is also what the result does not store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TensorValueError
from sparsejit.formats import Format
from sparsejit.ir.fold import identity_const, zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Deferred, Trace, require_trace
from sparsejit.trace._einsum import Aligned, aligned, contract
from sparsejit.trace._entries import nothing_of, sparse_accesses, stored_at
from sparsejit.trace._fold import Fold, fold_fresh
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._part_views import will_be_dense
from sparsejit.trace._pointwise import Pointwise, binary, cast, constant_of, select
from sparsejit.trace._promotion import product_dtype
from sparsejit.trace._sealed import VIEW_OF_SUM
from sparsejit.trace._subscripts import Subscripts, parse_subscripts
from sparsejit.trace._ufuncs import as_bool

__all__ = ["einsum"]


@dataclass(frozen=True, slots=True)
class _Semiring:
    """``plus`` and ``times``; ``times`` None is 1 for each pair of entries.

    ``from_zero``: the sum starts from 0, and not from the identity of ``plus``.
    """

    plus: BinaryOp
    times: BinaryOp | None
    is_boolean: bool = False
    from_zero: bool = False


_SEMIRINGS = {
    "plus_times": _Semiring(BinaryOp.ADD, BinaryOp.MUL),
    "min_plus": _Semiring(BinaryOp.MIN, BinaryOp.ADD),
    "max_plus": _Semiring(BinaryOp.MAX, BinaryOp.ADD),
    "max_times": _Semiring(BinaryOp.MAX, BinaryOp.MUL),
    "min_max": _Semiring(BinaryOp.MIN, BinaryOp.MAX),
    "or_and": _Semiring(BinaryOp.OR, BinaryOp.AND, is_boolean=True),
    "plus_pair": _Semiring(BinaryOp.ADD, None),
    "any_pair": _Semiring(BinaryOp.MAX, None, from_zero=True),
}


def einsum(subscripts: str, *operands: Any, semiring: str | None = None) -> Any:
    """Sum of products, in NumPy's notation, of any number of operands.

    Letters name dimensions; one that the output lacks is summed over. Repeated letters in an
    operand take its diagonal; without ``->`` the output has the letters that occur once, in
    alphabetic order; ``...`` stands for the remaining dimensions, which broadcast. The dtype is
    NumPy's common one and is never widened.

    ``semiring`` takes another sum and product: ``"min_plus"``, ``"max_plus"``, ``"max_times"``,
    ``"min_max"``, ``"or_and"``, ``"plus_pair"`` (counts pairs of entries), ``"any_pair"`` (1 where
    there is one), ``"plus_times"``. What is not stored then is the identity of the sum, whatever
    the fill value of the operand (0 for ``any``), and so is the fill value of the result.

    Raises ``TensorTypeError`` for bad subscripts and operands that do not fit, ``ValueError`` for
    an unknown semiring, ``TraceError`` outside of a traced function.

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
    if semiring is not None:
        return _over(trace, arrays, read, semiring)
    made = contract(trace, arrays, read)
    sums_nothing = len(arrays) == 1 and set(read.inputs[0]) == set(read.output)
    if sums_nothing and will_be_dense(arrays[0]):
        made._cell.sealed = VIEW_OF_SUM
    return made


def _over(trace: Trace, arrays: Sequence[Array], subscripts: Subscripts, name: str) -> Array:
    """Return the sum of products over a semiring."""
    if name not in _SEMIRINGS:
        raise TensorValueError(
            f"semiring={name!r} is none of {', '.join(map(repr, _SEMIRINGS))}", location=caller()
        )
    ring = _SEMIRINGS[name]
    found = aligned(trace, arrays, subscripts, always_light=True)
    dtype = _dtype(found, ring)
    start = zero_of(dtype) if ring.from_zero else identity_const(ring.plus, dtype)
    assert start is not None
    product, guard = _product(found, ring, dtype), _guard(found)
    shape, location = tuple(found.extents[d] for d in range(found.rank)), caller()
    if not found.summed:
        fill = Pointwise(start, (), dtype)
        return trace.pointwise(product if guard is None else select(guard, product, fill), shape)
    entries = product if guard is None else select(guard, product, nothing_of(dtype))
    fold = Fold(entries, start, ring.plus)

    def emit(format: Format | None) -> Value:
        return fold_fresh(trace, fold, found.summed, shape, found.extents, format, location)

    return trace.pointwise(Deferred(emit, dtype), shape)


def _dtype(found: Aligned, ring: _Semiring) -> DType:
    common = product_dtype(found.parts)
    if ring.is_boolean:
        return DType.BOOL
    counts = ring.times is None and ring.plus is BinaryOp.ADD
    return DType.INT64 if counts and common is DType.BOOL else common


def _product(found: Aligned, ring: _Semiring, dtype: DType) -> Pointwise:
    if ring.times is None:
        return constant_of(1, dtype)
    factors = [as_bool(p) if ring.is_boolean else cast(p, dtype) for p in found.parts]
    times = ring.times
    return reduce(lambda one, other: binary(times, one, other), factors)


def _guard(found: Aligned) -> Pointwise | None:
    """Return whether all operands store an entry; None where all of them always do."""
    stored = [stored_at(part, k) for part in found.parts for k in sparse_accesses(part)]
    if not stored:
        return None
    return reduce(lambda one, other: binary(BinaryOp.AND, one, other), stored)
