"""Blocks of a trace: the function's own, and those of loop bodies and branches inside it.

Operations are appended to the innermost block. What was made before in a block around it is visible
there, and what needs nothing of a loop is computed before the loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import field

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim
from sparsejit.ir.tensor import Op, Value

__all__ = ["Block"]


@dataclass(slots=True, eq=False)
class Block:
    """The operations of a block, and what it needs to make only once.

    ``counts`` are the values of extents and loop counters, ``slices`` those taken so far; both
    start as those of ``parent``. ``repeats``: it is the body or the test of a loop.
    """

    ops: list[Op] = field(default_factory=list)
    counts: dict[Dim, Value] = field(default_factory=dict)
    slices: dict[Hashable, Value] = field(default_factory=dict)
    parent: Block | None = None
    repeats: bool = False

    @staticmethod
    def inside(parent: Block, repeats: bool) -> Block:
        """Return a new block inside ``parent``."""
        return Block([], dict(parent.counts), dict(parent.slices), parent, repeats)

    def _outward(self) -> Iterator[Block]:
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    def is_within(self, other: Block) -> bool:
        """Return whether this is ``other`` or a block inside it."""
        return any(block is other for block in self._outward())

    def repeats_inside(self, other: Block) -> bool:
        """Return whether a loop that is inside ``other`` runs this block again and again."""
        for block in self._outward():
            if block is other:
                return False
            if block.repeats:
                return True
        return False
