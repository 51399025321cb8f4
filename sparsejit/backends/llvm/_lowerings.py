"""What is done to loops before they are printed, to make them faster: one function after another.

In: a loop function. Out: one of the same meaning. What takes more than loops to say (register
tiles) is planned when the function is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sparsejit.backends.llvm._bitmap_rows import note_rows_in_bitmaps
from sparsejit.backends.llvm._late_fills import fill_late
from sparsejit.backends.llvm._lookup_tables import look_up_in_tables
from sparsejit.backends.llvm._merge_loops import merge_loops
from sparsejit.backends.llvm._options import Caches, CodeOptions
from sparsejit.backends.llvm._packing import pack_operands
from sparsejit.backends.llvm._parallel_copies import copy_in_parallel
from sparsejit.backends.llvm._row_stamps import narrow_stamps
from sparsejit.ir.device_statements import LibraryOp
from sparsejit.ir.host_form import host_form
from sparsejit.ir.loop_fusion import fuse_loops
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.shared_copies import share_copies

__all__ = ["LOOP_LOWERINGS", "lower"]


def _lowerings(caches: Caches) -> tuple[tuple[str, Callable[[LoopFunc], LoopFunc]], ...]:
    """Return the lowerings by name, in order; ``caches`` decide what is packed."""
    return (
        ("copies", share_copies),
        ("fusion", fuse_loops),
        ("merges", merge_loops),
        ("bitmaps", note_rows_in_bitmaps),
        ("stamps", narrow_stamps),
        ("tables", look_up_in_tables),
        ("fills", fill_late),
        ("threads", copy_in_parallel),
        ("packing", partial(pack_operands, caches=caches)),
    )


LOOP_LOWERINGS = tuple(name for name, _ in _lowerings(Caches()))
"""The names of the lowerings, in order."""


def lower(func: LoopFunc, options: CodeOptions) -> LoopFunc:
    """Return ``func`` for a host, after all lowerings but those to leave out."""
    keep = frozenset() if "blas" in options.without else frozenset({LibraryOp.GEMM})
    func = host_form(func, keep)
    for name, lowering in _lowerings(options.caches):
        if name not in options.without:
            func = lowering(func)
    return func
