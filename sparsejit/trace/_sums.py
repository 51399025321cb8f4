"""Sums of several terms: one expression, one operation, or one for each term.

In: terms with signs, as index notation splits an expression at its top-level ``+`` and ``-``. Out:
their sum as an expression, or the value of a new tensor that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sparsejit.affine import AffineExpr, Dim, dims_of
from sparsejit.errors import Location
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Coordinate, ScalarExpr, map_leaves
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._context import Trace
from sparsejit.trace._emit import (
    Term,
    accumulate,
    elementwise_into,
    fill_with,
    fresh,
    identity_index,
)
from sparsejit.trace._pointwise import Pointwise, cast, of_value, substituted
from sparsejit.trace._promotion import result_dtype
from sparsejit.trace._result_formats import result_layout
from sparsejit.trace._ufuncs import apply

__all__ = ["fresh_sum", "signed_sum", "summed"]


def signed_sum(parts: Sequence[tuple[bool, Pointwise]], beside: DType | None = None) -> Pointwise:
    """Return the sum of expressions, each with whether it is subtracted, left to right.

    ``beside`` is the dtype of the whole sum where these are not all of its terms.
    """
    total: Pointwise | None = None
    for negated, part in parts:
        if total is None:
            if negated and part.dtype is DType.BOOL and (beside or len(parts) > 1):
                # `y -= a - b` subtracts a number, though there is no -a of bools.
                part = cast(part, beside or result_dtype([other for _, other in parts]))
            total = apply(np.negative, (part,)) if negated else part
        else:
            total = apply(np.subtract if negated else np.add, (total, part))
    assert total is not None
    return total


def summed(
    trace: Trace,
    term: Term,
    shape: Sequence[AffineExpr],
    extents: Mapping[int, AffineExpr],
    location: Location | None,
) -> Term:
    """Return ``term`` with its reduction computed, into a tensor of its own variables.

    The tensor has only the result variables that the term depends on; the others broadcast.
    """
    if not term.reduced:
        return term
    used = {
        dim for access in term.part.accesses for index in access.index for dim in dims_of(index)
    }
    used |= _coordinates(term.part.body)
    kept = [dim for dim in range(len(shape)) if dim in used]
    moved: dict[int, AffineExpr] = {dim: Dim(n) for n, dim in enumerate(kept)}
    local = {n: extents[dim] for n, dim in enumerate(kept)}
    local.update({variable: extents[variable] for variable in term.reduced})
    inner = replace(term, part=substituted(term.part, moved), negated=False)
    value = fresh(trace, inner, [shape[dim] for dim in kept], local, None, location)
    part = of_value(value, [Dim(dim) for dim in kept])
    return Term(part, negated=term.negated)


def _coordinates(body: ScalarExpr) -> set[int]:
    found: set[int] = set()

    def leaf(inner: ScalarExpr) -> ScalarExpr:
        if isinstance(inner, Coordinate):
            found.add(inner.loop)
        return inner

    map_leaves(body, leaf)
    return found


def fresh_sum(
    trace: Trace,
    terms: Sequence[Term],
    shape: Sequence[AffineExpr],
    extents: Mapping[int, AffineExpr],
    dtype: DType,
    format: Format | None,
    location: Location | None,
) -> Value:
    """Compute a sum of terms into a new tensor of ``dtype``.

    Terms without reduction make one ``Generic``; into a dense result each reduction accumulates,
    for a sparse one the reductions are computed first and added elementwise.
    """
    if len(terms) == 1 and terms[0].op is BinaryOp.ADD and terms[0].negated:
        positive = apply(np.negative, (terms[0].part,))
        terms = (replace(terms[0], part=positive, negated=False),)
    if len(terms) == 1 and not terms[0].negated and terms[0].part.dtype is dtype:
        return fresh(trace, terms[0], shape, extents, format, location)
    plain = [(term.negated, term.part) for term in terms if not term.reduced]
    joint = all(
        term.op is BinaryOp.ADD and term.part.dtype is dtype for term in terms if term.reduced
    )
    dense = (format is None or format.is_dense) and _all_dense(terms, shape, plain, dtype)
    if not (joint and dense):
        done = [summed(trace, term, shape, extents, location) for term in terms]
        total = signed_sum([(term.negated, term.part) for term in done])
        return fresh(trace, Term(cast(total, dtype)), shape, extents, format, location)
    kind = TensorType(tuple(shape), dtype, Dense(len(shape)), zero_of(dtype))
    dest, at = trace.empty(kind, location), identity_index(len(shape))
    if plain:
        first = cast(signed_sum(plain, dtype), dtype)
        dest = elementwise_into(trace, first, extents, dest, at, location)
    else:
        dest = fill_with(trace, zero_of(dtype), extents, dest, at, location)
    for term in terms:
        if term.reduced:
            dest = accumulate(trace, term, extents, dest, at, location)
    return dest


def _all_dense(
    terms: Sequence[Term],
    shape: Sequence[AffineExpr],
    plain: Sequence[tuple[bool, Pointwise]],
    dtype: DType,
) -> bool:
    """Whether the sum is dense: one dense term is enough to make it so."""
    result = range(len(shape))
    layouts = [result_layout(term.part, result, term.op) for term in terms if term.reduced]
    if plain:
        layouts.append(result_layout(signed_sum(plain, dtype), result))
    return any(layout.format.is_dense for layout in layouts)
