"""Patterns: whether a computed tensor stores nothing where a given tensor stores nothing.

In: the operations so far, and the names of the tensor (in all its states). Out: for a value, the
places over its dimensions where that tensor must have an entry for the value to have one. So a
softmax of ``S`` may be assigned to ``S``, whose pattern it keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import assert_never

from sparsejit.affine import AffineExpr, Constant, Dim, add, dims_of, mul, substitute
from sparsejit.ir.scalar import Arg
from sparsejit.ir.simplify import Known, Missing, NoValue, simplify_absence
from sparsejit.ir.tensor import Convert, ExtractSlice, Generic, Op, Pad, Value
from sparsejit.trace._extents import difference, tidy

__all__ = ["Places", "places_within"]

Places = frozenset[tuple[AffineExpr, ...]]

_DEEPEST = 16
"""Values are followed back through so many operations."""


def places_within(value: Value, names: Collection[str], ops: Iterable[Op]) -> Places:
    """Return the places over the dimensions of ``value`` outside of which it stores nothing.

    Each is one where the tensor called ``names`` stores something if ``value`` does.
    """
    made = {
        op.result.name: op for op in ops if isinstance(op, Generic | Convert | ExtractSlice | Pad)
    }

    def follow(current: Value, depth: int) -> Places:
        if current.name in names:
            return frozenset({tuple(Dim(d) for d in range(current.type.rank))})
        op = made.get(current.name)
        if op is None or depth == 0 or current.type.format.is_all_full:
            return frozenset()
        if not isinstance(op, Generic):
            return frozenset(
                tuple(tidy(substitute(expr, _moved(op))) for expr in place)
                for place in follow(op.source, depth - 1)
            )
        found: set[tuple[AffineExpr, ...]] = set()
        for operand, value in enumerate(op.inputs):
            if not value.type.format.is_all_full and _is_needed(op, operand):
                for place in follow(value, depth - 1):
                    seen = _seen_from_result(op, operand, place)
                    if seen is not None:
                        found.add(seen)
        return frozenset(found)

    return follow(value, _DEEPEST)


def _moved(op: Convert | ExtractSlice | Pad) -> dict[int, AffineExpr]:
    """Return where each dimension of the source is, over the dimensions of the result."""
    rank = op.source.type.rank
    match op:
        case Convert():
            return {d: Dim(d) for d in range(rank)}
        case ExtractSlice():
            kept = iter(range(rank))
            return {
                d: op.offsets[d]
                if d in op.dropped
                else add(op.offsets[d], mul(Constant(op.strides[d]), Dim(next(kept))))
                for d in range(rank)
            }
        case Pad():
            return {d: difference(Dim(d), low) for d, low in enumerate(op.low)}
        case _:
            assert_never(op)


def _is_needed(op: Generic, operand: int) -> bool:
    """Whether ``op`` stores nothing where this operand stores nothing."""
    operands = (*op.inputs, op.init)
    dtypes = [value.type.dtype for value in operands]
    match simplify_absence(op.body, dtypes, {operand: operands[operand].type.fill}):
        case NoValue():
            return True
        case Missing(const):
            return const == op.init.type.fill or const.value == op.init.type.fill.value
        case Known(expr):
            return expr == Arg(len(op.inputs))


def _seen_from_result(
    op: Generic, operand: int, place: tuple[AffineExpr, ...]
) -> tuple[AffineExpr, ...] | None:
    """Return a place over an operand's dimensions as one over the result's, if it is one."""
    written = op.indexing_maps[-1].results
    dims: dict[int, AffineExpr] = {
        expr.index: Dim(d) for d, expr in enumerate(written) if isinstance(expr, Dim)
    }
    read = dict(enumerate(op.indexing_maps[operand].results))
    exprs = [substitute(expr, read) for expr in place]
    if len(dims) < len(written) or any(not dims_of(expr) <= set(dims) for expr in exprs):
        return None
    return tuple(substitute(expr, dims) for expr in exprs)
