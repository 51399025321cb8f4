"""Which operations have one operand more in MLIR than here.

In: a ``Generic``. Out: the loops whose extents MLIR could not tell.
"""

from __future__ import annotations

from sparsejit.affine import Dim
from sparsejit.ir.tensor import Generic

__all__ = ["uncarried_loops"]


def uncarried_loops(op: Generic) -> list[int]:
    """Return the loops of ``op`` that are no plain index of any operand.

    MLIR takes the extents of loops from its operands, so such loops need one more operand, which
    the body does not read; it stands before the destination.
    """
    carried = {
        result.index
        for map_ in op.indexing_maps
        for result in map_.results
        if isinstance(result, Dim)
    }
    return [loop for loop in range(len(op.iterator_types)) if loop not in carried]
