"""Prefetch of streams: the stored entries that later passes and rows will read.

In: a loop over stored entries, which reads ``crd[p]`` and ``vals[p]``. Out: prefetches of what lies
some way behind them. Loops over short segments follow each other through these arrays, and where
each pass goes to other places in between, the hardware does not look far enough ahead: its own
prefetching stops at the end of a page, and there are as many streams as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.backends.llvm._arrays import element_size
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.backends.llvm._text import Value, integer
from sparsejit.backends.llvm._work import segment_of
from sparsejit.ir.loop_uses import arrays_written
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions
from sparsejit.ir.loops import For, Load, Memref, While

__all__ = ["AHEAD", "find_streams", "prefetch_line", "prefetch_streams"]

AHEAD = 2048
"""How many bytes ahead."""
_LINE = 64
_LINES = 3
"""How many lines at once where there are no prefetches inside of the loop."""


def find_streams(loop: For, options: CodeOptions) -> tuple[Memref, ...]:
    """Return the arrays that a loop over stored entries only reads, entry by entry."""
    if "streams" in options.without or segment_of(loop) is None:
        return ()
    inside = list(all_statements(loop.body))
    written = arrays_written(loop.body)
    found = dict.fromkeys(
        part.memref
        for stmt in inside
        for outer in expressions(stmt)
        for part in all_expressions(outer)
        if isinstance(part, Load) and part.indices == (loop.var,)
    )
    return tuple(memref for memref in found if memref.name not in written)


def prefetch_streams(
    e: Expressions, loop: For, streams: Sequence[Memref], at: Value, *, is_inside: bool
) -> None:
    """Write the prefetches of the passes from ``at`` on.

    ``is_inside`` says that this is written inside of the loop, where one line will do.
    """
    has_loops = any(isinstance(stmt, For | While) for stmt in loop.body)
    if is_inside != has_loops:
        return
    for memref in streams:
        array = e.arrays[memref.name]
        if array.is_unit:
            place = e.builder.offset(array.data(e.builder), e.builder.mul(at, element_size(memref)))
            for line in range(1 if is_inside else _LINES):
                prefetch_line(e, place, integer(AHEAD + line * _LINE))


def prefetch_line(e: Expressions, place: Value, distance: Value, locality: int = 3) -> None:
    """Prefetch the line so many bytes behind an address, whether there is memory or not.

    ``locality`` is that of LLVM: 3 for the nearest cache, 2 for the second one.
    """
    b = e.builder
    prefetch = e.functions.intrinsic("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    flags = [integer(0, "i32"), integer(locality, "i32"), integer(1, "i32")]
    b.call(prefetch, [b.beyond(place, distance), *flags])
