"""What generated code depends on beside the loop function."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LOWERINGS", "CodeOptions"]

LOWERINGS = ("blas", "copies", "fusion", "merges", "prefetch", "threads", "tiles")
"""The names of what is done to loops to make them faster; each can be left out, to measure it."""


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """``reassociate`` allows sums and products over loops in another order, and contraction.

    ``vector_bits`` is the size of the vector registers, ``without`` are lowerings to leave out.
    """

    reassociate: bool = True
    vector_bits: int = 256
    without: frozenset[str] = frozenset()

    @property
    def sum_flags(self) -> str:
        """The fast-math flags of sums over loops."""
        return "reassoc contract" if self.reassociate else ""

    @property
    def term_flags(self) -> str:
        """The fast-math flags of products that go into sums over loops."""
        return "contract" if self.reassociate else ""
