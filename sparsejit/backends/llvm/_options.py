"""What generated code depends on beside the loop function."""

from __future__ import annotations

from dataclasses import replace

from sparsejit._dataclasses import dataclass

__all__ = ["LOWERINGS", "Caches", "CodeOptions", "Host"]

LOWERINGS = (
    "bitmaps", "blas", "copies", "fills", "fusion", "merges", "packing", "prefetch", "runs",
    "stamps", "streams", "sums", "tables", "threads", "tiles",
)  # fmt: skip
"""The names of what is done to loops to make them faster; each can be left out, to measure it."""


@dataclass(frozen=True, slots=True)
class Host:
    """What code depends on of the processor; by default a plain one, the same on every machine.

    ``vector_bits`` is the size of the vector registers; ``gathers`` says whether vectors of
    elements from any place are loaded faster by one instruction than one after the other.
    ``locality`` is the cache into which rows are prefetched, as LLVM numbers them: 3 is the
    nearest one, 2 the second. ``row_bytes`` is how much of a row is prefetched; what lies behind
    is left to the hardware.
    """

    vector_bits: int = 256
    gathers: bool = False
    locality: int = 3
    row_bytes: int = 512


@dataclass(frozen=True, slots=True)
class Caches:
    """The bytes of the cache that a core has alone, and of the last one before the memory."""

    own: int = 1 << 20
    last: int = 1 << 25


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """``reassociate`` allows sums and products over loops in another order, and contraction.

    ``host`` is the processor, ``without`` are lowerings to leave out; ``caches`` decide what is
    copied into parts that fit there.
    """

    reassociate: bool = True
    host: Host = Host()
    without: frozenset[str] = frozenset()
    caches: Caches = Caches()

    @property
    def key(self) -> str:
        """All of this as a text, the same in every process."""
        return repr((replace(self, without=frozenset()), sorted(self.without)))

    @property
    def sum_flags(self) -> str:
        """The fast-math flags of sums over loops."""
        return "reassoc contract" if self.reassociate else ""

    @property
    def term_flags(self) -> str:
        """The fast-math flags of products that go into sums over loops."""
        return "contract" if self.reassociate else ""
