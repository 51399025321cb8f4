"""The switches of the atomic stage; independent of each other, after upstream's."""

from __future__ import annotations

from typing import Literal

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, dims_of
from sparsejit.ir.contraction_order import ContractionOrder
from sparsejit.ir.types import IndexWidths

__all__ = ["Placing", "StageOptions"]

Placing = Literal["counted", "sorted"]


@dataclass(frozen=True, slots=True)
class StageOptions:
    """The options of ``sparsify_and_bufferize``.

    ``storage``: sparse results are written directly (``"inline"``) or handed, entry by entry, to
    the support library (``"runtime"``). ``initialize_buffers`` zero-fills buffers that would be
    undefined. ``memory_space``: the space of new allocations; None means that it must be inferred.
    ``index_widths`` are those of positions and coordinates whose format names none.
    ``library_kernels`` names the kernels that may be matched (values of ``LibraryOp``).
    ``full_batches`` names the parameters with a batch level each batch of which stores as many
    entries as it has room for: libraries take no others. ``long_extents`` are the symbols whose
    values dwarf what the operands store: no array of such an extent is made on the way.
    ``contractions`` gives the orders of chains of products, ``()`` leaves all as written, None
    chooses for typical sizes. ``fuse_generics`` groups generics under common loops (on a host: not
    where ``library_kernels`` names some that only devices have). ``placing``: entries that come
    once and in another order than they are stored in go to the next free slot of their parent
    (``"counted"``, in linear time, by one thread) or are sorted (``"sorted"``, by any number of
    threads, which count first what each of them adds). ``part``: walks over the outermost stored
    levels of operands are cut into parts of at least so many entries, which can run at once; None
    leaves them whole. ``rows_apart``: so are walks over sorted entries that repeat coordinates of a
    result of random access, which can otherwise be visited one by one (by threads that add up what
    they share). The remaining three are for analysis only, and the stage refuses to lower
    unless they are True: ``allow_return_allocs``,
    ``function_boundaries``, ``create_deallocs``.
    """

    storage: Literal["inline", "runtime"] = "inline"
    initialize_buffers: bool = False
    allow_return_allocs: bool = True
    function_boundaries: bool = True
    create_deallocs: bool = True
    memory_space: int | None = 0
    index_widths: IndexWidths = IndexWidths()
    library_kernels: frozenset[str] = frozenset()
    full_batches: frozenset[str] = frozenset()
    long_extents: frozenset[int] = frozenset()
    contractions: tuple[ContractionOrder, ...] | None = None
    fuse_generics: bool = True
    placing: Placing = "counted"
    part: int | None = None
    rows_apart: bool = True

    def is_long(self, extent: AffineExpr) -> bool:
        """Whether an extent dwarfs what the operands store."""
        return bool(self.long_extents & dims_of(extent))
