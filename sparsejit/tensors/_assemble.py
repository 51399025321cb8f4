"""From coordinates to level storage: the structure of any format for given entries.

In: one int64 array per level with the coordinates of the entries, in any order, perhaps with
duplicates. Out: a permutation that sorts them and the first entry of each distinct coordinate
(``order_entries``); positions, coordinates and the slot of each entry (``assemble``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.formats import Format, LevelKind
from sparsejit.tensors._coordinates import ragged_ranges
from sparsejit.tensors._sorting import sorting_permutation
from sparsejit.tensors._storage import (
    Array,
    Batches,
    Structure,
    batches_of,
    is_aos_run,
    is_signed_level,
    run_end,
    scipy_index_dtype,
    width_dtype,
)

__all__ = ["Assembled", "Order", "assemble", "order_entries", "with_index_types"]

_MOST = 2**62  # nodes of a level; more cannot be numbered with 64 bits, let alone stored


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """How entries become sorted and distinct: ``permutation`` first, then the ``first`` of each.

    Either is None where nothing has to be done. ``columns`` are the coordinates that result.
    """

    permutation: Array | None
    first: Array | None
    columns: tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Assembled:
    """A structure, the slot of each entry it was made from, and the number of slots."""

    structure: Structure
    slots: Array
    num_slots: int


def order_entries(columns: Sequence[Array], count: int) -> Order:
    """Return what sorts ``count`` entries lexicographically and joins those with equal coordinates.

    The sort is stable, so duplicates keep their order.

    >>> order = order_entries((np.array([1, 0, 1]),), 3)
    >>> order.permutation.tolist(), order.first.tolist()
    ([1, 0, 2], [0, 1])
    """
    columns = tuple(columns)
    equal, is_sorted = _compare_neighbors(columns, count)
    permutation = None
    if not is_sorted:
        permutation = sorting_permutation(columns)
        columns = tuple(column[permutation] for column in columns)
        equal, _ = _compare_neighbors(columns, count)
    if not equal.any():
        return Order(permutation, None, columns)
    first = np.flatnonzero(np.concatenate(([True], ~equal)))
    return Order(permutation, first, tuple(column[first] for column in columns))


def _compare_neighbors(columns: Sequence[Array], count: int) -> tuple[Array, bool]:
    """Return which entries equal the one before them, and whether none is less than it."""
    equal = np.ones(max(count - 1, 0), np.bool_)
    for column in columns:
        before, after = column[:-1], column[1:]
        if (equal & (before > after)).any():
            return equal, False
        equal &= before == after
    return equal, True


@dataclass(slots=True)
class _Assembly:
    """The state of ``assemble`` between two levels.

    ``node[e]`` is the node of entry ``e`` in the level above; the level has ``per_batch`` nodes in
    each of the batches. ``differs[e]`` says whether the entry differs from the one before it in
    the levels done so far.
    """

    fmt: Format
    columns: Sequence[Array]
    batches: Batches
    node: Array
    differs: Array
    per_batch: int = 1
    positions: dict[int, Array] = field(default_factory=dict)
    coordinates: dict[int, Array] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.per_batch * self.batches.count


def assemble(
    fmt: Format, shape: tuple[int, ...], columns: Sequence[Array], count: int
) -> Assembled:
    """Return the storage of ``count`` entries whose level coordinates are sorted and distinct.

    There may be fewer ``columns`` than levels when the levels left are full: then an entry is a
    node of the last level that has a column, and nodes are counted instead of slots.

    Raises ``ValueError`` where a ``structured`` or ``padded`` level has too few slots, an explicit
    width is too small, or a level has more nodes than can be numbered.

    >>> from sparsejit.formats import CSR
    >>> made = assemble(CSR, (3, 4), (np.array([0, 2]), np.array([1, 3])), 2)
    >>> made.structure.positions[1].tolist(), made.structure.coordinates[1].tolist()
    ([0, 1, 1, 2], [1, 3])
    """
    sizes = fmt.level_sizes(shape)
    differs = np.zeros(count, np.bool_)
    differs[:1] = True
    batches = batches_of(fmt, sizes)
    state = _Assembly(fmt, columns, batches, np.zeros(count, np.int64), differs)
    for level in range(len(columns)):
        size = sizes[level]
        match fmt.levels[level].type.kind:
            case LevelKind.BATCH:
                state.node = state.node * size + columns[level]
                _note_differences(state, level, level)
            case LevelKind.DENSE | LevelKind.RANGE:
                state.node = state.node * size + columns[level]
                state.per_batch *= size
                _note_differences(state, level, level)
            case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
                _add_compressed(state, level)
            case LevelKind.SINGLETON:
                pass  # written with the level that begins the run
            case LevelKind.STRUCTURED | LevelKind.PADDED:
                _add_slotted(state, level)
        if state.total > _MOST:
            raise ValueError(f"level {level} of ({fmt}) has {state.total} slots: too many to store")
    arrays = tuple(
        tuple(found.get(level) for level in range(fmt.num_levels))
        for found in (state.positions, state.coordinates)
    )
    structure = with_index_types(Structure(fmt, shape, *arrays))
    return Assembled(structure, state.node, state.total)


def _note_differences(state: _Assembly, first: int, last: int) -> None:
    for column in state.columns[first : last + 1]:
        state.differs[1:] |= column[1:] != column[:-1]


@dataclass(frozen=True, slots=True, eq=False)
class _Leaders:
    """The first entry of each node of a level, in order (None: every entry), and their parents."""

    entries: Array | None
    parents: Array

    def of(self, column: Array) -> Array:
        return column if self.entries is None else column[self.entries]

    def entry(self, index: int) -> int:
        return index if self.entries is None else int(self.entries[index])


def _distinct(state: _Assembly, first: int, last: int) -> _Leaders:
    """Return the leaders of the nodes of these levels."""
    _note_differences(state, first, last)
    if state.differs.all():
        return _Leaders(None, state.node)
    entries = np.flatnonzero(state.differs)
    return _Leaders(entries, state.node[entries])


def _number_entries(state: _Assembly, leaders: _Leaders, node_of_leader: Array) -> None:
    if leaders.entries is None:
        state.node = node_of_leader
    else:
        state.node = node_of_leader[np.cumsum(state.differs) - 1]


def _add_compressed(state: _Assembly, level: int) -> None:
    end = run_end(state.fmt, level)
    leaders = _distinct(state, level, end)
    batches, parents_per_batch = state.batches.count, state.per_batch
    counts = np.bincount(leaders.parents, minlength=state.total).reshape(batches, parents_per_batch)
    positions = np.zeros((batches, parents_per_batch + 1), np.int64)
    np.cumsum(counts, axis=1, out=positions[:, 1:])
    in_batch = positions[:, -1]
    capacity = int(in_batch.max(initial=0))
    numbers = ragged_ranges(np.arange(batches) * capacity, in_batch)
    state.per_batch = capacity
    if state.fmt.levels[level].type.kind is LevelKind.LOOSE_COMPRESSED:
        pairs = np.stack((positions[:, :-1], positions[:, 1:]), axis=2)
        state.positions[level] = pairs.reshape(*state.batches.shape, parents_per_batch, 2)
    else:
        state.positions[level] = positions.reshape(*state.batches.shape, parents_per_batch + 1)
    _write_coordinates(state, level, end, numbers, leaders)
    _number_entries(state, leaders, numbers)


def _write_coordinates(
    state: _Assembly, start: int, end: int, numbers: Array, leaders: _Leaders
) -> None:
    """Write the coordinates of a compressed level and the singletons that follow it."""
    shape = (*state.batches.shape, state.per_batch)
    if is_aos_run(state.fmt, start):
        together = np.zeros((state.total, end - start + 1), np.int64)
        for level in range(start, end + 1):
            together[numbers, level - start] = leaders.of(state.columns[level])
        state.coordinates[start] = together.reshape(*shape, end - start + 1)
        return
    for level in range(start, end + 1):
        column = leaders.of(state.columns[level])
        if len(numbers) != state.total:  # batches of different lengths
            column = np.zeros(state.total, np.int64)
            column[numbers] = leaders.of(state.columns[level])
        state.coordinates[level] = column.reshape(shape)


def _add_slotted(state: _Assembly, level: int) -> None:
    """Add a level with a fixed number of slots for each parent: structured or padded."""
    level_type = state.fmt.levels[level].type
    slots = level_type.size[0]
    leaders = _distinct(state, level, level)
    parents, column = leaders.parents, leaders.of(state.columns[level])
    rank = np.arange(len(parents)) - np.searchsorted(parents, parents)
    if (rank >= slots).any():
        entry = leaders.entry(int(np.flatnonzero(rank >= slots)[0]))
        at = tuple(int(outer[entry]) for outer in state.columns[: level + 1])
        raise ValueError(
            f"level {level} of ({state.fmt}): {level_type} has no slot for entry {slots + 1} "
            f"below one parent, at level coordinates {at}"
        )
    parent_count = state.total
    if level_type.kind is LevelKind.PADDED:
        stored = np.full(parent_count * slots, -1, np.int64)
        numbers = parents * slots + rank
        stored[numbers] = column
    else:
        chosen = _chosen_coordinates(parent_count, level_type.size, parents, column)
        stored = np.nonzero(chosen)[1]
        numbers = parents * slots + (np.cumsum(chosen, axis=1) - 1)[parents, column]
    state.per_batch *= slots
    state.coordinates[level] = stored.reshape(*state.batches.shape, state.per_batch)
    _number_entries(state, leaders, numbers)


def _chosen_coordinates(
    parent_count: int, size: tuple[int, ...], parents: Array, column: Array
) -> Array:
    """Return which ``n`` of the ``m`` coordinates of each parent are stored.

    The entries' own come first; free slots take the least coordinates that are left.
    """
    n, m = size
    used = np.zeros((parent_count, m), np.bool_)
    used[parents, column] = True
    missing = n - used.sum(axis=1)
    free_rank = np.cumsum(~used, axis=1)
    chosen: Array = used | (free_rank <= missing[:, None])
    return chosen


def with_index_types(structure: Structure) -> Structure:
    """Return the structure with positions and coordinates in the format's widths.

    Automatic widths follow SciPy's rule for the extents and the largest position. Raises
    ``ValueError`` when an explicit width is too small.
    """
    fmt = structure.format
    ends = (array.max(initial=0) for array in structure.positions if array is not None)
    stored = max(map(int, ends), default=0)
    automatic = scipy_index_dtype(structure.shape, stored)
    positions = tuple(
        array if array is None else _fit(array, fmt.pos_width, False, automatic, "pos_width")
        for array in structure.positions
    )
    coordinates = tuple(
        array
        if array is None
        else _fit(array, fmt.crd_width, is_signed_level(fmt, level), automatic, "crd_width")
        for level, array in enumerate(structure.coordinates)
    )
    return Structure(fmt, structure.shape, positions, coordinates)


def _fit(
    array: Array, width: int, signed: bool, automatic: np.dtype[np.generic], name: str
) -> Array:
    dtype = width_dtype(width, signed) if width else automatic
    if width:
        limits = np.iinfo(dtype)
        for extreme in (int(array.max(initial=0)), int(array.min(initial=0))):
            if not limits.min <= extreme <= limits.max:
                raise ValueError(f"{name}={width} is too small for {extreme}")
    return np.ascontiguousarray(array, dtype)
