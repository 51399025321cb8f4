"""From level storage to coordinates: which slot belongs to which coordinate.

In: a ``Structure`` whose buffers have been checked. Out: one int64 array per level or dimension and
the slot of each stored entry, in storage order. All of it is NumPy on whole arrays; time and memory
are linear in the number of slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Add, AffineExpr, Constant, Dim, FloorDiv, Mod, Mul
from sparsejit.formats import Format, LevelKind
from sparsejit.tensors._storage import (
    Array,
    Structure,
    batches_of,
    is_aos_run,
    run_end,
)

__all__ = [
    "Entries",
    "count_entries",
    "entries_of",
    "level_columns",
    "may_have_unowned_slots",
    "owned_nodes",
    "ragged_ranges",
    "segment_bounds",
]


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The stored entries: ``coords[d]`` and ``slots`` are int64 arrays of one length."""

    coords: tuple[Array, ...]
    slots: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The owned nodes of a level, with their coordinates in this and all outer levels.

    ``is_all`` says that these are all nodes of the level, in order.
    """

    number: Array
    columns: tuple[Array, ...]
    is_all: bool = True


def entries_of(structure: Structure) -> Entries:
    """Return every entry that owns a slot inside the shape, in storage order."""
    fmt = structure.format
    number, columns = owned_nodes(structure, fmt.num_levels - 1)
    coords = tuple(
        _evaluate(expr, columns, len(number)).astype(np.int64, copy=False)
        for expr in fmt.lvl_to_dim.results
    )
    inside = _inside(fmt, structure.shape, coords)
    if inside is not None:
        coords = tuple(column[inside] for column in coords)
        number = number[inside]
    return Entries(coords, number)


def count_entries(structure: Structure, slots: int) -> int:
    """Return how many of a tensor's slots are entries inside the shape."""
    if not may_have_unowned_slots(structure.format, structure.shape):
        return slots
    return len(entries_of(structure).slots)


def may_have_unowned_slots(fmt: Format, shape: Sequence[int]) -> bool:
    """Whether a slot may be no entry: padding, gaps, or coordinates outside the shape.

    >>> from sparsejit.formats import BSR
    >>> may_have_unowned_slots(BSR(2, 2), (4, 4)), may_have_unowned_slots(BSR(2, 2), (3, 4))
    (False, True)
    """
    with_gaps = (LevelKind.LOOSE_COMPRESSED, LevelKind.PADDED, LevelKind.BATCH)
    for level in fmt.levels:
        match level.expr:
            case FloorDiv(Dim(dim), divisor) if shape[dim] % divisor:
                return True
            case Add():
                return True
            case _ if level.type.kind in with_gaps:
                return True
            case _:
                pass
    return False


def _inside(fmt: Format, shape: Sequence[int], coords: Sequence[Array]) -> Array | None:
    """Return the mask of coordinates inside the shape, None when all of them must be."""
    inside: Array | None = None
    for expr, extent, column in zip(fmt.lvl_to_dim.results, shape, coords, strict=True):
        if isinstance(expr, Dim):
            continue
        fits = (column >= 0) & (column < extent)
        inside = fits if inside is None else inside & fits
    return None if inside is None or inside.all() else inside


def owned_nodes(structure: Structure, last: int) -> tuple[Array, tuple[Array, ...]]:
    """Return the numbers of the owned nodes of level ``last`` and their level coordinates.

    Nodes come in storage order. ``last = -1`` gives the root: one node without coordinates.
    """
    fmt = structure.format
    sizes = fmt.level_sizes(structure.shape)
    batches = batches_of(fmt, sizes).count
    nodes = _Nodes(np.zeros(1, np.int64), ())
    for level in range(last + 1):
        nodes = _descend(structure, level, sizes[level], batches, nodes)
    return nodes.number, nodes.columns


def _descend(structure: Structure, level: int, size: int, batches: int, nodes: _Nodes) -> _Nodes:
    kind = structure.format.levels[level].type.kind
    match kind:
        case LevelKind.DENSE | LevelKind.BATCH | LevelKind.RANGE:
            inner = np.arange(size, dtype=np.int64)
            repeated = tuple(np.repeat(column, size) for column in nodes.columns)
            number = (nodes.number[:, None] * size + inner).reshape(-1)
            return _Nodes(number, (*repeated, np.tile(inner, len(nodes.number))), nodes.is_all)
        case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
            return _compressed_children(structure, level, batches, nodes)
        case LevelKind.SINGLETON:
            column = _coordinates_at(structure, level, nodes.number, nodes.is_all)
            return _Nodes(nodes.number, (*nodes.columns, column), nodes.is_all)
        case LevelKind.STRUCTURED | LevelKind.PADDED:
            slots = structure.format.levels[level].type.size[0]
            inner = np.arange(slots, dtype=np.int64)
            number = (nodes.number[:, None] * slots + inner).reshape(-1)
            column = _coordinates_at(structure, level, number, nodes.is_all)
            columns = (*(np.repeat(outer, slots) for outer in nodes.columns), column)
            if kind is LevelKind.STRUCTURED:
                return _Nodes(number, columns, nodes.is_all)
            used = column >= 0
            return _Nodes(number[used], tuple(outer[used] for outer in columns), is_all=False)
        case _:
            assert_never(kind)


def _compressed_children(structure: Structure, level: int, batches: int, nodes: _Nodes) -> _Nodes:
    starts, ends, capacity, batch = segment_bounds(structure, level, batches, nodes.number)
    counts = ends - starts
    kind = structure.format.levels[level].type.kind
    is_all = nodes.is_all and batches == 1 and kind is LevelKind.COMPRESSED
    if is_all:
        number = np.arange(capacity, dtype=np.int64)
    else:
        number = ragged_ranges(starts, counts)
    if batches != 1:
        number += np.repeat(batch * capacity, counts)
    column = _coordinates_at(structure, level, number, is_all)
    repeated = tuple(np.repeat(outer, counts) for outer in nodes.columns)
    return _Nodes(number, (*repeated, column), is_all)


def segment_bounds(
    structure: Structure, level: int, batches: int, parents: Array
) -> tuple[Array, Array, int, Array]:
    """Return starts and ends of the parents' segments, the slots of a batch, and their batches.

    Starts and ends count within a batch.
    """
    positions, coordinates = structure.positions[level], structure.coordinates[level]
    assert positions is not None
    assert coordinates is not None
    loose = structure.format.levels[level].type.kind is LevelKind.LOOSE_COMPRESSED
    depth = positions.ndim - (2 if loose else 1)
    capacity = coordinates.shape[depth]
    per_batch = positions.shape[depth] - (0 if loose else 1)
    flat = positions.reshape(batches, *positions.shape[depth:])
    if batches == 1:
        batch, local = np.zeros(1, np.int64), parents
    else:
        batch, local = np.divmod(parents, max(per_batch, 1))
    if loose:
        starts, ends = flat[batch, local, 0], flat[batch, local, 1]
    else:
        starts, ends = flat[batch, local], flat[batch, local + 1]
    return starts.astype(np.int64), ends.astype(np.int64), capacity, batch


def _coordinates_at(structure: Structure, level: int, nodes: Array, is_all: bool) -> Array:
    """Return the coordinates that the nodes of ``level`` store, as int64."""
    chosen: Array | slice = slice(None) if is_all else nodes
    fmt = structure.format
    start = level
    while fmt.levels[start].type.kind is LevelKind.SINGLETON:
        start -= 1
    if is_aos_run(fmt, start):
        pairs = structure.coordinates[start]
        assert pairs is not None
        rank = run_end(fmt, start) - start + 1
        found = pairs.reshape(-1, rank)[chosen, level - start]
    else:
        own = structure.coordinates[level]
        assert own is not None
        found = own.reshape(-1)[chosen]
    return np.asarray(found.astype(np.int64, copy=False))


def ragged_ranges(starts: Array, counts: Array) -> Array:
    """Return ``starts[0], starts[0] + 1, ...``: the ranges of the given lengths, one after another.

    >>> ragged_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    first = np.repeat(starts - (ends - counts), counts)
    return np.asarray(np.arange(total, dtype=np.int64) + first)


def level_columns(fmt: Format, coords: Sequence[Array], count: int) -> tuple[Array, ...]:
    """Return the coordinate that each level stores for entries at ``coords``.

    >>> from sparsejit.formats import BSR
    >>> at = (np.array([3]), np.array([5]))
    >>> [column.item() for column in level_columns(BSR(2, 2), at, 1)]
    [1, 2, 1, 1]
    """
    return tuple(_evaluate(level.expr, coords, count) for level in fmt.levels)


def _evaluate(expr: AffineExpr, columns: Sequence[Array], count: int) -> Array:
    match expr:
        case Dim(index):
            return np.asarray(columns[index])
        case Constant(value):
            return np.full(count, value, np.int64)
        case Add(lhs, rhs):
            return np.asarray(_evaluate(lhs, columns, count) + _evaluate(rhs, columns, count))
        case Mul(Constant(factor), rhs):
            return np.asarray(_evaluate(rhs, columns, count) * factor)
        case Mul(lhs, rhs):
            return np.asarray(_evaluate(lhs, columns, count) * _evaluate(rhs, columns, count))
        case FloorDiv(lhs, divisor):
            return np.asarray(_evaluate(lhs, columns, count) // divisor)
        case Mod(lhs, divisor):
            return np.asarray(_evaluate(lhs, columns, count) % divisor)
        case _:
            assert_never(expr)
