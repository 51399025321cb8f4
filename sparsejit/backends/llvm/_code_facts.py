"""What ``explain`` says about compiled code: lowerings, and which loops run on several threads.

In: the loops of a function. Out: facts; each is about a loop by its variable, or the function.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit.backends.llvm._lowerings import LOOP_LOWERINGS, lower
from sparsejit.backends.llvm._options import CodeOptions, Host
from sparsejit.backends.llvm._parallel import parallel_loops
from sparsejit.backends.llvm._pool import has_threads, thread_limit
from sparsejit.backends.llvm._pool_text import MOST_THREADS
from sparsejit.backends.llvm._prefetch import find_gathers
from sparsejit.backends.llvm._runs import find_runs
from sparsejit.backends.llvm._streams import find_streams
from sparsejit.backends.llvm._tiles import find_tiles
from sparsejit.backends.llvm._vector_sums import find_sums
from sparsejit.backends.llvm._work import work_of
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_uses import roots as roots_of
from sparsejit.ir.loop_walk import all_statements, memrefs
from sparsejit.ir.loops import For, LoopFunc, Memref, Var

__all__ = ["code_facts"]


def code_facts(func: LoopFunc, options: CodeOptions) -> tuple[Fact, ...]:
    """Return the facts about the code of a function."""
    lowered = lower(func, options)
    without = ", ".join(sorted(options.without))
    facts = [Fact(FactKind.CODE, func.name, f"left out: {without}")] if without else []
    facts += _changed(func, options)
    facts += _printed(lowered, options)
    return (*facts, *_threads(lowered, options))


def _changed(func: LoopFunc, options: CodeOptions) -> Iterator[Fact]:
    """Which lowerings change the loops."""
    every = options.without | frozenset(LOOP_LOWERINGS)
    before = lower(func, replace(options, without=every))
    for name in _WORDS:
        alone = replace(options, without=every - {name})
        if name not in options.without and lower(func, alone) != before:
            yield Fact(FactKind.CODE, func.name, _WORDS[name])


_WORDS = {
    "bitmaps": "what a row of many terms meets is noted in a bitmap, and read from it in order",
    "copies": "copies that nobody changes are not made",
    "fills": "rows of a new array are filled by the loop that writes to them",
    "fusion": "neighboring loops over one range become one",
    "packing": "gathered rows are packed in panels of columns where that pays, by sizes of caches",
    "stamps": "rows that are only counted are noted without a branch, all by stamps of 16 bits",
    "tables": "what is searched again and again is looked up in a table of its row",
    "merges": "sorted segments are merged with one branch an entry, and counted without any",
}


def _printed(func: LoopFunc, options: CodeOptions) -> Iterator[Fact]:
    """What is done when the loops are printed."""
    loops = [stmt for stmt in all_statements(func.body) if isinstance(stmt, For)]
    names = {memref.name for stmt in all_statements(func.body) for memref in memrefs(stmt)}
    roots = roots_of(func)
    known = func.body, roots, frozenset(names)
    tiles = {} if "tiles" in options.without else find_tiles(*known)
    for name, tile in tiles.items():
        rows = ", ".join(memref.name for memref, _ in tile.targets)
        yield Fact(FactKind.CODE, name, f"rows of {rows} stay in vector registers")
    has_runs = not options.without.intersection(("runs", "tiles"))
    for name, run in (find_runs(*known) if has_runs else {}).items():
        rows = ", ".join(memref.name for memref, _ in run.tile.targets)
        text = f"rows of {rows} stay in vector registers, as long as coordinates are equal"
        yield Fact(FactKind.CODE, name, text)
    yield from _sums(loops, frozenset(names), roots, options)
    for loop in loops:
        streams = ", ".join(memref.name for memref in find_streams(loop, options))
        if streams:
            yield Fact(FactKind.CODE, loop.var.name, f"{streams} are prefetched for later rows")
    for loop in () if "prefetch" in options.without else loops:
        rows = ", ".join(sorted({gather.load.memref.name for gather in find_gathers(loop)}))
        if rows:
            text = f"rows of {rows} are prefetched for later entries"
            yield Fact(FactKind.CODE, loop.var.name, text)


def _sums(
    loops: Sequence[For], names: frozenset[str], roots: Mapping[str, str], options: CodeOptions
) -> Iterator[Fact]:
    """Which sums have several parts: lanes of vectors, or variables where these would be slower."""
    anywhere = replace(options, host=Host(gathers=True))
    for loop in loops:
        found = find_sums(loop, names, roots, anywhere)
        for var, _ in () if found is None else found.sums:
            yield Fact(FactKind.CODE, loop.var.name, f"{var.name} is summed in parts side by side")


def _threads(func: LoopFunc, options: CodeOptions) -> tuple[Fact, ...]:
    """Which loops run on several threads, how they are cut, why not."""
    limit = thread_limit()
    if "threads" in options.without:
        why = "left out" if has_threads() else "the pool of threads is for Linux"
        return (Fact(FactKind.THREADS, func.name, f"one: {why}"),)
    if limit == 1:
        asked = os.environ.get("SPARSEJIT_NUM_THREADS")
        why = "SPARSEJIT_NUM_THREADS is 1" if asked else "a control group allows one core's time"
        return (Fact(FactKind.THREADS, func.name, f"one: {why}"),)
    found = parallel_loops(func, ())
    facts = [
        Fact(FactKind.THREADS, stmt.var.name, _how(stmt))
        for stmt in all_statements(func.body)
        if isinstance(stmt, For) and stmt.var.name in found.chosen
    ]
    facts += [
        Fact(FactKind.THREADS, name, f"one: {reason}") for name, reason in found.reasons.items()
    ]
    if found.chosen:
        cores = "one for each core" if limit == MOST_THREADS else f"at most {limit}"
        facts.append(Fact(FactKind.THREADS, func.name, f"{cores}; one for a loop of little work"))
    return tuple(facts)


def _how(loop: For) -> str:
    return "; ".join(_parts(loop))


def _parts(loop: For) -> Iterator[str]:
    stored = [pos.name for pos in work_of(loop).leaves]
    yield f"in parallel, cut by stored entries ({', '.join(stored)})" if stored else "in parallel"
    sums = [what.name for what, _ in loop.reductions if isinstance(what, Var)]
    if sums:
        yield f"{', '.join(sums)} added up in parts"
    rows = [what.name for what, _ in loop.reductions if isinstance(what, Memref)]
    if rows:
        yield f"a copy of {', '.join(rows)} for each thread"
    rooms = [what.name for what in loop.private if isinstance(what, Memref)]
    if rooms:
        yield f"{', '.join(rooms)} for each chunk"
