"""Plain reductions of what has a fill value: fold the entries, count them, combine once.

In: a reduction over variables whose elements are a constant wherever nothing is stored. Out: the
value of the result. ``A.max(axis=1)`` is the maximum of the entries and, where a row has fewer
entries than columns, of that and 0; no coordinate is visited for what it does not store. A fill
value enters only where something is missing, so that a nan does not reach full rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, add
from sparsejit.errors import Location
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import constant, identity_const
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import INDEX, DType
from sparsejit.trace._context import Trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._entries import (
    MOST,
    entries_of,
    has_nothing,
    nothing_of,
    over_entries,
    sparse_accesses,
    stored_at,
)
from sparsejit.trace._fold import Fold, fold_fresh
from sparsejit.trace._pointwise import (
    Pointwise,
    binary,
    cast,
    constant_of,
    of_value,
    pruned,
    select,
)
from sparsejit.trace._result_formats import absent_fill
from sparsejit.trace._symbolic import extent_value

__all__ = ["counted", "is_counted", "missing_count"]

_IDEMPOTENT = (BinaryOp.MIN, BinaryOp.MAX, BinaryOp.AND, BinaryOp.OR)


def is_counted(term: Term) -> bool:
    """Whether what is missing contributes a constant to a reduction, and so need not be visited."""
    part = pruned(term.part)
    if not term.reduced or not 0 < len(sparse_accesses(part)) <= MOST or has_nothing(part):
        return False
    fill = absent_fill(part)
    if fill is None or term.op not in (*_IDEMPOTENT, BinaryOp.ADD, BinaryOp.MUL):
        return False
    identity = identity_const(term.op, part.dtype)
    return identity is not None and fill.value != identity.value


def counted(
    trace: Trace,
    term: Term,
    shape: Sequence[AffineExpr],
    extents: Mapping[int, AffineExpr],
    format: Format | None,
    location: Location | None,
) -> Value | None:
    """Return a reduction that ``is_counted``; None where it is over nothing at all."""
    found = _Counted(trace, term, shape, extents, location)
    if any(not trace.extents.holds(add(extents[v], Constant(-1))) for v in term.reduced):
        return None
    combined = found.combined(format)
    return fresh(trace, Term(combined), shape, extents, format, location)


def missing_count(
    trace: Trace, count: Pointwise, reduced: Sequence[int], extents: Mapping[int, AffineExpr]
) -> Pointwise:
    """Return how many of the elements that are reduced are not among those counted."""
    return _missing(trace, count, reduced, extents, INDEX)


def _missing(
    trace: Trace,
    count: Pointwise,
    reduced: Sequence[int],
    extents: Mapping[int, AffineExpr],
    dtype: DType,
) -> Pointwise:
    sizes = [cast(extent_value(trace, extents[v]), dtype) for v in reduced]
    total = reduce(lambda one, other: binary(BinaryOp.MUL, one, other), sizes)
    return binary(BinaryOp.SUB, total, cast(count, dtype))


@dataclass(frozen=True, slots=True)
class _Counted:
    trace: Trace
    term: Term
    shape: Sequence[AffineExpr]
    extents: Mapping[int, AffineExpr]
    location: Location | None

    def combined(self, format: Format | None) -> Pointwise:
        """Return the result from the entries, their number and the fill value.

        ``format`` is that of the result, if it was asked for: what is folded has it too, where the
        fill value stays what it is.
        """
        op, part = self.term.op, pruned(self.term.part)
        fill = absent_fill(part)
        wide = part.dtype.compute
        identity = identity_const(op, wide)
        assert fill is not None
        assert identity is not None
        entries = entries_of(part)
        keeps_fill = op in _IDEMPOTENT or fill.value == 0
        layout = format if keeps_fill else Dense(len(self.shape))
        elements = over_entries(entries, lambda e: cast(e, wide), nothing_of(wide))
        folded = self._fold(Fold(elements, identity, op), layout)
        ones = over_entries(entries, lambda e: constant_of(1, INDEX), nothing_of(INDEX))
        count = self._fold(Fold(ones, constant(0, INDEX), BinaryOp.ADD), layout)
        # Two extents and more may multiply beyond 64 bits: floats then tell whether any is missing.
        # Integers wrap in the result as their sum does.
        kind = DType.FLOAT64 if len(self.term.reduced) > 1 else INDEX
        missing = _missing(self.trace, count, self.term.reduced, self.extents, kind)
        some = binary(BinaryOp.GT, missing, constant_of(0, kind))
        if folded.dtype.is_integer:
            missing = missing_count(self.trace, count, self.term.reduced, self.extents)
        value = select(some, _with_missing(op, folded, fill, missing), folded)
        result = cast(value, part.dtype)
        sparse = sparse_accesses(folded)
        if not sparse:
            return result
        return select(stored_at(folded, 0), result, Pointwise(fill, (), part.dtype))

    def _fold(self, fold: Fold, format: Format | None) -> Pointwise:
        made = fold_fresh(
            self.trace,
            fold,
            self.term.reduced,
            self.shape,
            self.extents,
            format,
            self.location,
        )
        return of_value(made)


def _with_missing(op: BinaryOp, folded: Pointwise, fill: Const, missing: Pointwise) -> Pointwise:
    """Return what the fold becomes when the fill value joins it ``missing`` times."""
    part = constant_of(fill.value, folded.dtype)
    if op in _IDEMPOTENT:
        return binary(op, folded, part)
    if op is BinaryOp.ADD:
        return binary(op, folded, binary(BinaryOp.MUL, part, cast(missing, folded.dtype)))
    if fill.value == 0:
        return part
    return binary(op, folded, _power(part, missing))


def _power(part: Pointwise, times: Pointwise) -> Pointwise:
    """Return ``part`` to a number of times; integers wrap as their repeated product does."""
    if not part.dtype.is_integer:
        return binary(BinaryOp.POW, part, cast(times, part.dtype))
    whole = DType.UINT64 if part.dtype.is_unsigned_integer else INDEX
    return cast(binary(BinaryOp.POW, cast(part, whole), cast(times, whole)), part.dtype)
