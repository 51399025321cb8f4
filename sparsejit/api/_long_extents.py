"""Which extents dwarf what a call stores: no array of them is to be made on the way.

In: at a call, the extents and the operands. Out: the symbols of the long ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.tensors import Operand

__all__ = ["long_extents"]

_LONG = 1 << 24
"""Of fewer elements an array is no loss, whatever is stored."""
_SPARSE = 64
"""How many times what is stored an extent must be for an array of it not to pay."""


def long_extents(numbers: Sequence[int], operands: Sequence[Operand]) -> frozenset[int]:
    """Return the symbols whose values dwarf all that the operands store, positions included."""
    if max(numbers, default=0) <= _LONG:
        return frozenset()
    stored = sum(buffer.size for operand in operands for buffer in operand.buffers)
    return frozenset(k for k, number in enumerate(numbers) if number > max(_LONG, _SPARSE * stored))
