"""The checks of one level: its positions, its coordinates, their order and uniqueness.

In: a ``LevelCheck``, the level with what is known from the levels above. Out: the number of nodes
in each batch, or a ``ValueError`` that names level, array and first bad index. The arrays'
presence, integer type and contiguity have been checked before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.formats import LevelKind
from sparsejit.tensors._assemble import order_entries
from sparsejit.tensors._coordinates import owned_nodes, ragged_ranges, segment_bounds
from sparsejit.tensors._storage import Array, Batches, Structure, is_aos_run, run_end

__all__ = ["LevelCheck", "check_coordinates", "check_positions"]

_WITH_UNOWNED_NODES = (LevelKind.BATCH, LevelKind.LOOSE_COMPRESSED, LevelKind.PADDED)


@dataclass(frozen=True, slots=True, eq=False)
class LevelCheck:
    """One level under check: its size, the batches, and the parents in each batch."""

    structure: Structure
    level: int
    size: int
    batches: Batches
    parents: int

    @property
    def where(self) -> str:
        return f"level {self.level} of ({self.structure.format})"

    @property
    def kind(self) -> LevelKind:
        return self.structure.format.levels[self.level].type.kind

    @property
    def position_array(self) -> Array:
        found = self.structure.positions[self.level]
        assert found is not None
        return found

    @property
    def coordinate_array(self) -> Array:
        found = self.structure.coordinates[self.level]
        assert found is not None
        return found

    @property
    def may_have_unowned_parents(self) -> bool:
        outer = self.structure.format.levels[: self.level]
        return any(level.type.kind in _WITH_UNOWNED_NODES for level in outer)


def _place(array: Array, flat: int) -> str:
    """Return the subscript of flat element ``flat``: ``[3]`` or ``[0, 3]``."""
    index = np.unravel_index(flat, array.shape)
    return f"[{', '.join(str(int(part)) for part in index)}]"


def _first(mask: Array) -> int | None:
    """Return the flat index of the first True, None when there is none."""
    flat = mask.reshape(-1)
    if not flat.size:
        return None
    found = int(flat.argmax())
    return found if flat[found] else None


def check_positions(check: LevelCheck) -> None:
    """Check shape, start, order and end of the positions of a compressed level."""
    positions, level, where = check.position_array, check.level, check.where
    loose = check.kind is LevelKind.LOOSE_COMPRESSED
    tail = (check.parents, 2) if loose else (check.parents + 1,)
    expected = (*check.batches.shape, *tail)
    name = f"positions[{level}]"
    if positions.shape != expected:
        raise ValueError(f"{where}: {name} has shape {positions.shape}, expected {expected}")
    if loose:
        _check_loose(check, positions, name)
        return
    if (bad := _first(positions[..., :1] != 0)) is not None:
        start = bad * positions.shape[-1]
        place, found = _place(positions, start), positions.flat[start]
        raise ValueError(f"{where}: {name}{place} is {found}, expected 0")
    if (bad := _first(positions[..., 1:] < positions[..., :-1])) is not None:
        row, column = divmod(bad, check.parents)
        flat = row * (check.parents + 1) + column + 1
        now, before = positions.flat[flat], positions.flat[flat - 1]
        place = _place(positions, flat)
        raise ValueError(f"{where}: {name}{place} is {now}, less than the one before it, {before}")


def _check_loose(check: LevelCheck, positions: Array, name: str) -> None:
    where, count = check.where, _capacity(check)
    if (bad := _first(positions < 0)) is not None:
        raise ValueError(f"{where}: {name}{_place(positions, bad)} is {positions.flat[bad]}")
    if (bad := _first(positions > count)) is not None:
        place, found = _place(positions, bad), positions.flat[bad]
        coordinates = f"coordinates[{check.level}] has {count} elements"
        raise ValueError(f"{where}: {name}{place} is {found}, but {coordinates}")
    starts, ends = positions[..., 0], positions[..., 1]
    if (bad := _first(ends < starts)) is not None:
        low, high = starts.flat[bad], ends.flat[bad]
        raise ValueError(
            f"{where}: {name}{_place(starts, bad)} is ({low}, {high}): it starts behind its end"
        )
    rows = positions.reshape(check.batches.count, check.parents, 2).astype(np.int64)
    for batch, row in enumerate(rows):  # a loop over batches, not over entries
        used = np.flatnonzero(row[:, 1] > row[:, 0])
        used = used[np.argsort(row[used, 0], kind="stable")]
        if (late := _first(row[used[1:], 0] < row[used[:-1], 1])) is not None:
            one, other = sorted((int(used[late]), int(used[late + 1])))
            parents = f"{one} and {other}" + (f" of batch {batch}" if len(rows) > 1 else "")
            raise ValueError(f"{where}: the segments of parents {parents} in {name} overlap")


def _capacity(check: LevelCheck) -> int:
    """Return the coordinates stored for each batch; 0 when the array's shape is too short."""
    depth = len(check.batches.shape)
    shape = check.coordinate_array.shape
    return shape[depth] if len(shape) > depth else 0


def check_coordinates(check: LevelCheck) -> int:
    """Check the coordinates of a level and of the singletons behind it; return nodes per batch."""
    if check.kind in (LevelKind.STRUCTURED, LevelKind.PADDED):
        return _check_slotted(check)
    end = run_end(check.structure.format, check.level)
    _check_run_shapes(check, end)
    nodes = _segment_nodes(check)
    columns = [_run_column(check, inner) for inner in range(check.level, end + 1)]
    for column in columns:
        _check_bounds(check, column, nodes)
    _check_order(check, columns, nodes)
    return _capacity(check)


def _check_run_shapes(check: LevelCheck, end: int) -> None:
    where, level, batch_shape = check.where, check.level, check.batches.shape
    fmt, count = check.structure.format, _capacity(check)
    if check.kind is LevelKind.COMPRESSED:
        needed = int(check.position_array[..., -1].max(initial=0))
        if needed > count or (needed < count and not batch_shape):
            raise ValueError(
                f"{where}: positions[{level}] ends at {needed}, "
                f"but coordinates[{level}] has {count} elements"
            )
    for inner in range(level, end + 1):
        array = check.structure.coordinates[inner]
        if array is None:  # inside the array of structs of the first level
            continue
        tail = (end - level + 1,) if is_aos_run(fmt, level) else ()
        expected = (*batch_shape, count, *tail)
        if array.shape != expected:
            where = f"level {inner} of ({fmt})"
            raise ValueError(
                f"{where}: coordinates[{inner}] has shape {array.shape}, expected {expected}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class _OwnedNodes:
    """The nodes of a level that entries own: their numbers (None: all, in order).

    ``counts`` says how many of them each owned parent has, one parent after another.
    """

    numbers: Array | None
    counts: Array

    @property
    def parents(self) -> Array:
        """The parent of each node, numbered among the owned parents."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def starts(self) -> Array:
        """The nodes but the first that have another parent than the one before them."""
        ends = np.cumsum(self.counts)
        return ends[(ends > 0) & (ends < self.total)]

    @property
    def siblings(self) -> Array:
        """Whether each node but the first has the parent of the one before it."""
        same = np.ones(max(self.total - 1, 0), np.bool_)
        same[self.starts - 1] = False
        return same

    def of(self, column: Array) -> Array:
        return column if self.numbers is None else column[self.numbers]

    def number(self, index: int) -> int:
        return index if self.numbers is None else int(self.numbers[index])


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """The coordinates of ``level``: a column of ``array``, which lies at ``coordinates[owner]``."""

    level: int
    owner: int
    array: Array
    values: Array
    stride: int

    def place(self, node: int) -> str:
        subscript = _place(self.array, node * self.stride + (self.level - self.owner))
        return f"coordinates[{self.owner}]{subscript}"


def _segment_nodes(check: LevelCheck) -> _OwnedNodes:
    structure, level, batches = check.structure, check.level, check.batches.count
    if check.kind is LevelKind.COMPRESSED and not check.may_have_unowned_parents:
        positions = check.position_array.astype(np.int64, copy=False)
        counts = positions[1:] - positions[:-1]
        return _OwnedNodes(None, counts)
    parents = owned_nodes(structure, level - 1)[0]
    starts, ends, capacity, batch = segment_bounds(structure, level, batches, parents)
    numbers = ragged_ranges(starts, ends - starts)
    if batches != 1:
        numbers += np.repeat(batch * capacity, ends - starts)
    return _OwnedNodes(numbers, ends - starts)


def _run_column(check: LevelCheck, inner: int) -> _Column:
    fmt, level = check.structure.format, check.level
    if is_aos_run(fmt, level):
        rank = run_end(fmt, level) - level + 1
        array = check.coordinate_array
        return _Column(inner, level, array, array.reshape(-1, rank)[:, inner - level], rank)
    own = check.structure.coordinates[inner]
    assert own is not None
    return _Column(inner, inner, own, own.reshape(-1), 1)


def _check_bounds(check: LevelCheck, column: _Column, nodes: _OwnedNodes) -> None:
    fmt, shape = check.structure.format, check.structure.shape
    low = fmt.level_starts(shape)[column.level]
    high = low + fmt.level_sizes(shape)[column.level] - 1
    if check.kind is LevelKind.PADDED:
        low = -1
    found = nodes.of(column.values)
    if not found.size or low <= int(found.min()) <= int(found.max()) <= high:
        return
    # Python integers as bounds: NumPy compares them exactly, whatever the array's type.
    if (bad := _first((found < low) | (found > high))) is not None:
        where = f"level {column.level} of ({fmt})"
        place = column.place(nodes.number(bad))
        raise ValueError(f"{where}: {place} is {found[bad]}, outside {low} .. {high}")


def _check_order(check: LevelCheck, columns: Sequence[_Column], nodes: _OwnedNodes) -> None:
    """Check what the levels of a run promise: order within a parent, distinct coordinates."""
    levels = check.structure.format.levels[check.level : check.level + len(columns)]
    found = [nodes.of(column.values) for column in columns]
    is_unique = not levels[-1].type.nonunique
    if any(level.type.nonordered for level in levels):
        if is_unique:
            wide = [values.astype(np.int64, copy=False) for values in found]
            repeated = _repeated([nodes.parents, *wide])
            _refuse_repeated(check, columns, found, nodes, repeated)
        return
    if is_unique and len(found) == 1 and _rises(found[0], nodes):
        return
    equal = nodes.siblings
    for column, values in zip(columns, found, strict=True):
        before, after = values[:-1], values[1:]
        if (bad := _first(equal & (before > after))) is not None:
            where = f"level {column.level} of ({check.structure.format})"
            place = column.place(nodes.number(bad + 1))
            raise ValueError(
                f"{where}: {place} is {after[bad]}, less than the one before it, {before[bad]}: "
                "sort the entries, or declare the level nonordered"
            )
        equal &= before == after
    if is_unique:
        bad = _first(equal)
        _refuse_repeated(check, columns, found, nodes, None if bad is None else bad + 1)


def _rises(values: Array, nodes: _OwnedNodes) -> bool:
    """Whether the coordinates rise within each parent: less to look at than where they do not."""
    rising = values[1:] > values[:-1]
    rising[nodes.starts - 1] = True
    return bool(rising.all())


def _repeated(columns: Sequence[Array]) -> int | None:
    """Return the first entry whose coordinates an earlier one has, None when all differ."""
    count = len(columns[0])
    order = order_entries(columns, count)
    if order.first is None:
        return None
    again = np.ones(count, np.bool_)
    again[order.first] = False
    entries = np.flatnonzero(again)
    return int((entries if order.permutation is None else order.permutation[entries]).min())


def _refuse_repeated(
    check: LevelCheck,
    columns: Sequence[_Column],
    found: Sequence[Array],
    nodes: _OwnedNodes,
    bad: int | None,
) -> None:
    if bad is None:
        return
    at = tuple(int(values[bad]) for values in found)
    coordinate = str(at[0]) if len(at) == 1 else str(at)
    place = columns[0].place(nodes.number(bad))
    raise ValueError(
        f"{check.where}: {place} stores {coordinate} a second time below one parent: "
        "add duplicates up with from_coo, or declare the level nonunique"
    )


def _check_slotted(check: LevelCheck) -> int:
    """Check a structured or padded level: a fixed number of slots for each parent."""
    fmt, level, array = check.structure.format, check.level, check.coordinate_array
    slots = fmt.levels[level].type.size[0]
    expected = (*check.batches.shape, check.parents * slots)
    name = f"coordinates[{level}]"
    if array.shape != expected:
        raise ValueError(f"{check.where}: {name} has shape {array.shape}, expected {expected}")
    if check.may_have_unowned_parents:
        owners = owned_nodes(check.structure, level - 1)[0]
    else:
        owners = np.arange(check.parents * check.batches.count)
    numbers = (owners[:, None] * slots + np.arange(slots)).reshape(-1)
    nodes = _OwnedNodes(numbers, np.full(len(owners), slots))
    column = _Column(level, level, array, array.reshape(-1), 1)
    _check_bounds(check, column, nodes)
    if check.kind is LevelKind.PADDED:
        used = (nodes.of(column.values) >= 0).reshape(-1, slots)
        if (bad := _first(used[:, 1:] & ~used[:, :-1])) is not None:
            row, before = divmod(bad, slots - 1)
            place = column.place(nodes.number(row * slots + before))
            raise ValueError(
                f"{check.where}: {place} is -1: unused slots come last in their parent"
            )
        nodes = _OwnedNodes(numbers[used.reshape(-1)], used.sum(axis=1))
    _check_order(check, [column], nodes)
    return check.parents * slots
