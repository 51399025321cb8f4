"""Slices of sparse tensors that become tensors of their own: the stored entries that are inside.

In: an expression that only reads a sparse value, at strided places. Out: the value of the slice,
sparse as its source is. Inside of other expressions no slice is made: the source is read there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.affine import AffineExpr, Constant, Dim, as_linear
from sparsejit.errors import Location
from sparsejit.formats import COO, Format, LevelKind, SparseVector
from sparsejit.ir.tensor import ExtractSlice, Value
from sparsejit.ir.types import TensorType
from sparsejit.trace._computation import without_batches
from sparsejit.trace._context import Trace
from sparsejit.trace._pointwise import Pointwise
from sparsejit.trace._result_formats import result_layout

__all__ = ["coordinate_format", "is_plain", "sparse_slice"]

_PLAIN = (LevelKind.DENSE, LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED, LevelKind.SINGLETON)


def is_plain(fmt: Format) -> bool:
    """Return whether each level stores one dimension, entry by entry: no blocks, no diagonals."""
    return all(isinstance(lvl.expr, Dim) and lvl.type.kind in _PLAIN for lvl in fmt.levels)


def coordinate_format(rank: int) -> Format:
    """Return the format of entries that come from anywhere: coordinates."""
    return SparseVector if rank == 1 else COO(rank)


def sparse_slice(
    trace: Trace,
    part: Pointwise,
    shape: Sequence[AffineExpr],
    format: Format | None,
    location: Location | None,
) -> Value | None:
    """Return the value of ``part`` as a slice of a sparse tensor; None where it is no such.

    ``format`` is the one asked for; without, the slice keeps the format of its source where each
    level stores one dimension, and is sparse in any case.
    """
    view = part.view
    if view is None or view.value.type.is_dense or not shape or (format and format.is_dense):
        return None
    offsets: list[AffineExpr] = []
    sizes: list[AffineExpr] = []
    strides: list[int] = []
    dropped: list[int] = []
    for d, index in enumerate(view.index):
        terms, offset = as_linear(index) or ({}, 0)
        if len(terms) > 1 or any(dim != d - len(dropped) for dim in terms):
            return None
        if not terms:
            dropped.append(d)
        offsets.append(Constant(offset))
        sizes.append(shape[next(iter(terms))] if terms else Constant(1))
        strides.append(next(iter(terms.values()), 1))
    if len(view.index) - len(dropped) != len(shape):
        return None
    chosen = format or _format_of(view.value, part, len(shape), bool(dropped))
    kind = view.value.type
    if without_batches(chosen) != chosen:
        if (tuple(offsets), tuple(sizes), tuple(strides)) == (
            (Constant(0),) * len(offsets),
            kind.shape,
            (1,) * len(strides),
        ):
            return None  # a copy has the pattern of its source
        chosen = chosen if format else without_batches(chosen)
    result = trace.value(TensorType(tuple(shape), kind.dtype, chosen, kind.fill))
    where = (tuple(offsets), tuple(sizes), tuple(strides), tuple(dropped))
    trace.ops.append(ExtractSlice(result, view.value, *where, location))
    return result


def _format_of(source: Value, part: Pointwise, rank: int, drops: bool) -> Format:
    """Return the format of a slice: that of the source, unless it cuts blocks or diagonals."""
    fmt = source.type.format.with_widths(0, 0)
    if not drops and is_plain(fmt):
        return fmt
    inferred = result_layout(part, range(rank)).format
    return coordinate_format(rank) if inferred.is_dense else inferred
