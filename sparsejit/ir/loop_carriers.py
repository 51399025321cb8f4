"""Which operations have one operand more in MLIR than here.

In: a ``Generic``. Out: whether MLIR could not tell the extent of one of its loops.
"""

from __future__ import annotations

from sparsejit.affine import Dim
from sparsejit.ir.tensor import Generic

__all__ = ["needs_loop_carrier"]


def needs_loop_carrier(op: Generic) -> bool:
    """Whether some loop of ``op`` is no plain index of any operand.

    MLIR takes the extents of loops from its operands, so such a loop needs one more operand, which
    the body does not read; it stands before the destination.
    """
    carried = {
        result.index
        for map_ in op.indexing_maps
        for result in map_.results
        if isinstance(result, Dim)
    }
    return any(loop not in carried for loop in range(len(op.iterator_types)))
