"""One loop on one thread, as it stands: prefetches, and what LLVM is told about it.

Where it takes a look at the arrays to know what is best, the loop is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sparsejit.backends.llvm._block_moves import is_moved, move
from sparsejit.backends.llvm._context import Context
from sparsejit.backends.llvm._control import either, loop
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._loop_notes import (
    ONE_BY_ONE,
    are_long,
    is_left_to_llvm,
    loop_properties,
)
from sparsejit.backends.llvm._prefetch import (
    AheadOfStrip,
    Gather,
    are_far,
    find_gathers,
    worth_it,
    write_prefetches,
)
from sparsejit.backends.llvm._streams import find_streams, prefetch_streams
from sparsejit.backends.llvm._text import Value
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import For

__all__ = ["write_loop"]


def write_loop(
    e: Expressions,
    stmt: For,
    bounds: tuple[Value, Value],
    strip: AheadOfStrip | None,
    context: Context,
    outlined: Collection[str],
    print_body: Callable[[], None],
) -> None:
    """Write a loop; ``strip`` is the part of a row that registers have meanwhile, if any.

    ``outlined`` are the loops that run on several threads. They become functions, which are written
    once, so nothing around them is written twice.
    """
    if is_moved(stmt, e.units, context.roots):
        move(e, stmt, *bounds)
        return
    if is_left_to_llvm(stmt, context.roots):
        e.builder.module.needs_optimizer = True
    options = context.options
    is_once = any(isinstance(s, For) and s.var.name in outlined for s in all_statements(stmt.body))
    found = () if is_once or "prefetch" in options.without else find_gathers(stmt)
    gathers, condition = worth_it(e, found, strip)
    far = are_far(e, gathers, options.caches) if gathers else None
    streams = find_streams(stmt, options)
    prefetch_streams(e, stmt, streams, bounds[0], is_inside=False)

    def prefetch(ahead: tuple[Gather, ...], at: Value) -> None:
        write_prefetches(e, ahead, at, strip, options.host)

    def write(ahead: tuple[Gather, ...], properties: tuple[str, ...]) -> None:
        def body(at: Value) -> None:
            if ahead and far is not None:
                either(e.builder, far, lambda: prefetch(ahead, at), is_aside=True)
            prefetch_streams(e, stmt, streams, at, is_inside=True)
            e.values[stmt.var.name] = at
            print_body()

        loop(e.builder, *bounds, body, properties)

    usual = other = loop_properties(stmt)
    long = are_long(stmt)
    if condition is None and long is not None:
        condition, other = e.value(long), ONE_BY_ONE
    if condition is None:
        write(gathers, usual)
    else:
        either(e.builder, condition, lambda: write(gathers, usual), lambda: write((), other))
