"""Assignment: what ``y[...] = e`` and ``y[...] += e`` store.

In: a target array (through its view) and the terms of the new value over the target's dimensions.
Out: the target's cell has a new content. The value is computed in its own dtype; ``=`` then
converts as NumPy's assignment does, an update obeys the same-kind rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparsejit.affine import AffineExpr
from sparsejit.errors import Location, TensorTypeError, UnsupportedError
from sparsejit.ir.fold import numpy_dtype, zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace
from sparsejit.trace._emit import Term
from sparsejit.trace._operands import as_array, broadcast_to
from sparsejit.trace._pointwise import Pointwise, cast
from sparsejit.trace._promotion import can_cast, loop_dtypes
from sparsejit.trace._sparse_parts import is_part, of_whole
from sparsejit.trace._sums import signed_sum, summed
from sparsejit.trace._ufuncs import apply

__all__ = ["assign_terms", "assign_value"]


def assign_value(
    trace: Trace, target: Array, value: Any, update: np.ufunc | None, location: Location | None
) -> None:
    """Store an array or scalar, broadcast to the target; with ``update`` combined with the old."""
    part = broadcast_to(trace, as_array(trace, value), target.extents)
    assign_terms(trace, target, [Term(part)], dict(enumerate(target.extents)), update, location)


def assign_terms(
    trace: Trace,
    target: Array,
    terms: Sequence[Term],
    extents: Mapping[int, AffineExpr],
    update: np.ufunc | None,
    location: Location | None,
) -> None:
    """Store a sum of terms over the target's dimensions; with ``update`` combined with the old.

    Raises ``TensorTypeError`` where an update would need a cast that is not of the same kind.
    """
    trace.check_assignable(target._cell)
    if update is not None and _replaces(target):
        total = _total(trace, terms, target.extents, extents, location)
        target._cell.content = _updated(target, total, update, location)
        return
    if is_part(target):
        total = _total(trace, terms, target.extents, extents, location)
        new = total if update is None else _updated(target, total, update, location)
        whole = of_whole(target, cast(new, target.element_type), location)
        base = trace.array(target._cell)
        base.store([Term(whole)], dict(enumerate(base.extents)), True, location)
        return
    dtype = target.element_type
    additive = update in (None, np.add, np.subtract)
    if additive and _joint(terms, target if update is not None else None, dtype):
        if update is np.subtract:
            terms = [Term(_number(t.part, dtype), t.reduced, t.op, not t.negated) for t in terms]
        stored = _stored_terms(terms, dtype, update is None)
        target.store(stored, extents, update is None, location)
        return
    total = _total(trace, terms, target.extents, extents, location)
    if update is not None:
        total = _updated(target, total, update, location)
    target.store([Term(cast(total, dtype))], extents, True, location)


def _number(part: Pointwise, dtype: DType) -> Pointwise:
    """Return what is subtracted from a number: a bool is 0 or 1 then, though it has no negative.

    Raises ``TensorTypeError`` where a bool is subtracted from bools, as NumPy does.
    """
    if part.dtype is not DType.BOOL:
        return part
    return apply(np.subtract, (part, part)) if dtype is DType.BOOL else cast(part, dtype)


def _replaces(target: Array) -> bool:
    """Whether the target is a sparse intermediate: an update of it is a new tensor of that name."""
    if target._view is not None or target._cell.param is not None:
        return False
    return not target.is_dense


def _joint(terms: Sequence[Term], old: Array | None, dtype: DType) -> bool:
    """Whether all terms can be added to the target one after the other without another rounding."""
    if any(t.reduced and (t.op is not BinaryOp.ADD or t.part.dtype is not dtype) for t in terms):
        return False
    parts = [term.part for term in terms]
    if old is not None and dtype.compute is not dtype and not all(t.reduced for t in terms):
        return False  # 16-bit floats are only stored; the sum is computed in 32 bits, then rounded
    if old is not None:
        parts.append(Pointwise(zero_of(dtype), (), dtype))
    if len(parts) == 1:
        return terms[0].part.dtype is dtype or not terms[0].reduced
    total = parts[0]
    for part in parts[1:]:
        total = Pointwise(zero_of(loop_dtypes(np.add, (total, part))[-1]), (), _sum(total, part))
    return total.dtype is dtype


def _sum(lhs: Pointwise, rhs: Pointwise) -> DType:
    return loop_dtypes(np.add, (lhs, rhs))[-1]


def _stored_terms(terms: Sequence[Term], dtype: DType, overwrite: bool) -> list[Term]:
    """Return the terms in the order of storing: what is not reduced first, in one piece."""
    plain = [(term.negated, term.part) for term in terms if not term.reduced]
    made = [term for term in terms if term.reduced]
    if overwrite:
        first = (
            signed_sum(plain, dtype if made else None)
            if plain
            else Pointwise(zero_of(dtype), (), dtype)
        )
        return [Term(first), *made]
    if len(plain) == 1:  # y -= e subtracts, rather than adding the negation
        return [Term(plain[0][1], negated=plain[0][0]), *made]
    return [Term(signed_sum(plain)), *made] if plain else made


def _total(
    trace: Trace,
    terms: Sequence[Term],
    shape: Sequence[AffineExpr],
    extents: Mapping[int, AffineExpr],
    location: Location | None,
) -> Pointwise:
    done = [summed(trace, term, shape, extents, location) for term in terms]
    return signed_sum([(term.negated, term.part) for term in done])


def _updated(
    target: Array, total: Pointwise, update: np.ufunc, location: Location | None
) -> Pointwise:
    dtype = target.element_type
    result = apply(update, (target.read(), total))
    if not can_cast(result.dtype, dtype):
        source, wanted = numpy_dtype(result.dtype).name, numpy_dtype(dtype).name
        raise TensorTypeError(
            f"Cannot cast ufunc '{update.__name__}' output from dtype('{source}') to "
            f"dtype('{wanted}') with casting rule 'same_kind'",
            hint=f"convert the value with .astype({wanted!r}), or return a new array",
            location=location,
        )
    return cast(result, dtype)


def refuse(what: str, reason: str, location: Location | None) -> UnsupportedError:
    """Return the error for an assignment that is legal but not built."""
    return UnsupportedError(f"{what} is not built", reasons=(reason,), location=location)
