"""Views: the strided part of a buffer that a slice speaks of."""

from __future__ import annotations

from collections.abc import Mapping

from sparsejit.affine import AffineExpr
from sparsejit.ir import loops, tensor
from sparsejit.ir.loop_writing import Names
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import DenseBuffer

__all__ = ["same_place", "view_of"]


def view_of(
    op: tensor.ExtractSlice | tensor.InsertSlice,
    whole: DenseBuffer,
    rank: int,
    symbols: Mapping[int, loops.Expr],
    namer: Names,
) -> loops.View:
    """Return the part of ``whole`` that ``op`` reads or replaces, a memref of ``rank``."""

    def lowered(exprs: tuple[AffineExpr, ...]) -> tuple[loops.Expr, ...]:
        return tuple(ix.lower_affine(expr, symbols) for expr in exprs)

    name = namer.fresh(f"v{op.result.name}")
    memref = loops.Memref(name, whole.memref.dtype, rank, whole.memref.space)
    return loops.View(
        memref, whole.memref, lowered(op.offsets), lowered(op.sizes), op.strides, op.dropped
    )


def same_place(one: loops.View, other: loops.View) -> bool:
    """Whether two views show the same elements of the same buffer."""
    return (one.source, one.offsets, one.sizes, one.strides, one.dropped) == (
        other.source,
        other.offsets,
        other.sizes,
        other.strides,
        other.dropped,
    )
