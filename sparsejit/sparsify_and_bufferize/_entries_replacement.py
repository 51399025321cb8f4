"""A sparse tensor takes over what another one of its type stores, however much that is.

So loops change the sparse tensors that they carry, and branches leave sparse results: the arrays of
the target grow or shrink to those of the source.
"""

from __future__ import annotations

from sparsejit.errors import Location, UnsupportedError
from sparsejit.ir import loops
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import SparseBuffer

__all__ = ["replaced_entries"]


def replaced_entries(
    target: SparseBuffer, source: SparseBuffer, namer: Names, location: Location | None
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
        place = loops.Var(namer.fresh("q"), INDEX)
        count = loops.DimOf(origin, 0)
        push = loops.Push(to, place, loops.Load(origin, (place,)))
        made.append(loops.For(place, ix.index(0), count, (push,)))
        made.append(loops.Trim(to, count))
    return tuple(made)
