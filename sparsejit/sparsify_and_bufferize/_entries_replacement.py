"""A sparse tensor takes over what another one of its type stores, however much that is.

So loops change the sparse tensors that they carry, and branches leave sparse results: the arrays of
the target grow or shrink to those of the source.
"""

from __future__ import annotations

from sparsejit.errors import Location, UnsupportedError
from sparsejit.ir import loops
from sparsejit.sparsify_and_bufferize._buffers import SparseBuffer

__all__ = ["replaced_entries"]


def replaced_entries(
    target: SparseBuffer, source: SparseBuffer, location: Location | None
) -> tuple[loops.Stmt, ...]:
    """Return the statements that make ``target`` store what ``source`` stores.

    Raises ``UnsupportedError`` where an array of the storage has several dimensions.
    """
    made: list[loops.Stmt] = []
    for to, origin in zip(target.flat, source.flat, strict=True):
        if to.rank != 1:
            raise UnsupportedError(
                f"a loop or branch that makes a sparse tensor in the format {target.format}",
                hint="use a format without batches and arrays of structs",
                location=location,
            )
        made += [loops.Resize(to, loops.DimOf(origin, 0)), loops.Copy(to, origin)]
    return tuple(made)
