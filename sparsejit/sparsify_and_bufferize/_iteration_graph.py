"""The order of the loops: level orders as edges, a topological sort, and what breaks a cycle.

Every sparse operand wants its levels' loops in storage order, and a sparse result must be written
in its own order. ``loop_orders`` yields candidates from best to worst; where the wishes contradict
each other a candidate says which operands are *located* (searched) instead of iterated.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import combinations

from sparsejit._dataclasses import dataclass
from sparsejit.affine import dims_of
from sparsejit.sparsify_and_bufferize._level_space import Access, LevelSpace

__all__ = ["LoopOrder", "loop_orders"]

Edges = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LoopOrder:
    """``loops`` from the outermost; ``located`` are the inputs whose level order it ignores."""

    loops: tuple[int, ...]
    located: frozenset[int] = frozenset()


def loop_orders(
    space: LevelSpace, *, scattered: bool = False, whole: bool = False
) -> Iterator[LoopOrder]:
    """Yield loop orders of ``space``, each valid for all operands that are not located.

    ``scattered``: the result takes its elements in any order. ``whole``: reductions stay inside of
    all loops of a sparse result, its dense levels included.

    First come orders that keep every operand's level order and end with the reductions of a sparse
    result; then those that locate one, two, ... operands, the last ones first.
    """
    fixed = _diagonal_edges(space)
    if not scattered:
        fixed |= _level_edges(space.output)
    blocks = _block_edges(space)
    last = frozenset[tuple[int, int]]() if scattered else _reductions_last(space, whole)
    off_grid = space.off_grid
    sparse = [
        number
        for number, access in enumerate(space.inputs)
        if access.may_be_absent and number not in off_grid
    ]
    full = [
        number
        for number, access in enumerate(space.inputs)
        if access.is_sparse and not access.may_be_absent
    ]
    seen: set[LoopOrder] = set()
    for count in range(len(sparse) + 1):
        for located in combinations(reversed(sparse), count):
            kept = [number for number in sparse if number not in located]
            wishes = [_level_edges(space.inputs[number]) for number in kept]
            soft = [_level_edges(space.inputs[number]) for number in full]
            edges = fixed.union(*wishes)
            shared = frozenset[tuple[int, int]]()
            if scattered:
                shared = _shared_first(space, kept, (*located, *off_grid))
            for extra in (
                *((blocks.union(shared, *soft),) if shared else ()),
                blocks.union(last, *soft),
                blocks | last,
                blocks.union(*soft),
                blocks,
                last,
                frozenset[tuple[int, int]](),
            ):
                loops = _sort(space, edges | extra)
                if loops is None:
                    continue
                order = LoopOrder(loops, off_grid.union(located))
                if order not in seen:
                    seen.add(order)
                    yield order
                break


def _level_edges(access: Access) -> Edges:
    """Each loop of a level comes before each loop of the next level."""
    edges: set[tuple[int, int]] = set()
    earlier: list[int] = []
    for level in access.levels:
        own = sorted(dims_of(level.expr))
        edges.update((before, loop) for before in earlier for loop in own if before != loop)
        earlier.extend(own)
    return frozenset((a, b) for a, b in edges if (b, a) not in edges)


def _block_edges(space: LevelSpace) -> Edges:
    """The inner loop of a split comes after the outer one, if no operand is stored otherwise."""
    split = [(n, loop.block) for n, loop in enumerate(space.loops) if loop.block is not None]
    return frozenset((block.outer, number) for number, block in split)


def _diagonal_edges(space: LevelSpace) -> Edges:
    """The loop along a diagonal comes after the one over diagonals, so that its bound is known."""
    along = [(n, loop.diagonal) for n, loop in enumerate(space.loops) if loop.diagonal is not None]
    return frozenset((diagonal.offset, number) for number, diagonal in along)


def _shared_first(space: LevelSpace, kept: Sequence[int], located: Sequence[int]) -> Edges:
    """The loops that a located operand shares with others come before those that it alone has.

    Converted to that order, it is walked from where the others are: those that are kept, and those
    that are converted before it.
    """
    others = set[int]().union(*(_loops_of(space.inputs[number]) for number in kept))
    edges: set[tuple[int, int]] = set()
    for number in sorted(located):
        own = _loops_of(space.inputs[number])
        edges.update((a, b) for a in own & others for b in own - others)
        others |= own
    return frozenset(edges)


def _loops_of(access: Access) -> set[int]:
    return set[int]().union(*(dims_of(level.expr) for level in access.levels))


def _reductions_last(space: LevelSpace, whole: bool) -> Edges:
    """Reductions stay inside the loops that append to a sparse result (or all that write it)."""
    if not space.output.may_be_absent:
        return frozenset()
    stored = [n for n, level in enumerate(space.output.levels) if not level.type.is_full]
    last = len(space.output.levels) if whole else stored[-1] + 1
    appended = set[int]().union(*(dims_of(level.expr) for level in space.output.levels[:last]))
    reductions = [n for n, loop in enumerate(space.loops) if not loop.is_parallel]
    return frozenset((loop, reduction) for loop in appended for reduction in reductions)


def _sort(space: LevelSpace, edges: Edges) -> tuple[int, ...] | None:
    """Return a topological order, best loops first, or None where the edges have a cycle."""
    count = len(space.loops)
    before = {loop: {a for a, b in edges if b == loop} for loop in range(count)}
    ready = [(_priority(space, loop), loop) for loop in range(count) if not before[loop]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, loop = heapq.heappop(ready)
        order.append(loop)
        for other in range(count):
            if loop in before[other]:
                before[other].discard(loop)
                if not before[other]:
                    heapq.heappush(ready, (_priority(space, other), other))
    return tuple(order) if len(order) == count else None


def _priority(space: LevelSpace, loop: int) -> tuple[bool, bool, bool, int]:
    """Loops over stored entries first, then reductions, then the loops that only dense data has.

    A dense parallel loop goes innermost: it streams through rows of dense operands (SpMM as
    ``i, k, j``), where a dense reduction inside would stride. A block of values at each entry of a
    result comes behind reductions over stored entries, and before others.
    """
    levels = [level for access in space.inputs for level in access.levels]
    sparse = any(loop in dims_of(level.expr) for level in levels)
    in_output_level = any(loop in dims_of(level.expr) for level in space.output.levels)
    stored = [n for n, level in enumerate(space.output.levels) if not level.type.is_full]
    above = space.output.levels[: stored[-1] + 1] if stored else space.output.levels
    in_block = in_output_level and not any(loop in dims_of(level.expr) for level in above)
    parallel = space.loops[loop].is_parallel
    outer_parallel = parallel and (sparse or (in_output_level and not in_block))
    return (not (sparse or in_output_level), not outer_parallel, parallel and not sparse, loop)
