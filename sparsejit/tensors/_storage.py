"""The structure of a stored tensor: format, shape, positions and coordinates, without values.

Here is also the arithmetic that all of storage shares: how many nodes each level has, which width
indices get, and the order in which the buffers of a tensor are handed on. A *node* is one place of
a level (a dense slot, a compressed coordinate); the nodes of the last level are the *slots*, one
value each.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Add
from sparsejit.formats import Format, LevelKind

__all__ = [
    "Array",
    "Batches",
    "Structure",
    "batches_of",
    "buffer_names",
    "inner_size",
    "is_aos_run",
    "is_signed_level",
    "join_buffers",
    "last_stored",
    "run_end",
    "scipy_index_dtype",
    "split_buffers",
    "stores_coordinates",
    "width_dtype",
]

Array = np.ndarray[Any, np.dtype[Any]]
OptionalArrays = tuple[Array | None, ...]

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """What a tensor stores, apart from its values; arrays per level, None where there is none."""

    format: Format
    shape: tuple[int, ...]
    positions: OptionalArrays
    coordinates: OptionalArrays


@dataclass(frozen=True, slots=True)
class Batches:
    """The batch levels in front: their extents and how many batches these make."""

    shape: tuple[int, ...]
    count: int


def batches_of(fmt: Format, sizes: Sequence[int]) -> Batches:
    """Return the batches of a format whose levels have these sizes.

    >>> from sparsejit.formats import CSR, Batched
    >>> batches_of(Batched(CSR), (3, 4, 5))
    Batches(shape=(3,), count=3)
    """
    shape = tuple(
        size
        for level, size in zip(fmt.levels, sizes, strict=True)
        if level.type.kind is LevelKind.BATCH
    )
    return Batches(shape, prod(shape))


def run_end(fmt: Format, level: int) -> int:
    """Return the last level that shares its nodes with ``level``: the end of its singletons.

    >>> from sparsejit.formats import COO, CSR
    >>> run_end(COO(3), 0), run_end(CSR, 1)
    (2, 1)
    """
    end = level
    while end + 1 < fmt.num_levels and fmt.levels[end + 1].type.kind is LevelKind.SINGLETON:
        end += 1
    return end


def is_aos_run(fmt: Format, level: int) -> bool:
    """Whether ``level`` begins a COO run kept as an array of structs, (nse, rank)."""
    end = run_end(fmt, level)
    return end > level and not fmt.levels[end].type.soa


def stores_coordinates(fmt: Format, level: int) -> bool:
    """Whether ``coordinates[level]`` is an array (a singleton may lie in an array of structs)."""
    level_type = fmt.levels[level].type
    if level_type.kind is LevelKind.SINGLETON:
        return level_type.soa
    return level_type.has_coordinates


def is_signed_level(fmt: Format, level: int) -> bool:
    """Whether coordinates of this level may be negative: ``j - i``, or -1 for an unused slot."""
    chosen = fmt.levels[level]
    return isinstance(chosen.expr, Add) or chosen.type.kind is LevelKind.PADDED


def inner_size(fmt: Format, sizes: Sequence[int]) -> int:
    """Return the slots below one node of the last level that stores coordinates.

    >>> from sparsejit.formats import BSR
    >>> inner_size(BSR(2, 3), BSR(2, 3).level_sizes((4, 6)))
    6
    """
    return prod(sizes[last_stored(fmt) + 1 :])


def last_stored(fmt: Format) -> int:
    """Return the innermost level that stores coordinates, -1 when all levels are full."""
    stored = [n for n, level in enumerate(fmt.levels) if level.type.has_coordinates]
    return stored[-1] if stored else -1


def scipy_index_dtype(shape: Sequence[int], stored: int) -> np.dtype[Any]:
    """Return SciPy's choice of index type: 32 bits when extents and stored count fit, else 64.

    >>> scipy_index_dtype((10, 2**31), 5).name
    'int64'
    """
    return _INT32 if max(stored, *shape, 0) <= _LARGEST_INT32 else _INT64


def width_dtype(width: int, signed: bool = False) -> np.dtype[Any]:
    """Return the integer type of an explicit width; 8 and 16 bits are unsigned unless ``signed``.

    >>> width_dtype(8).name, width_dtype(8, signed=True).name, width_dtype(64).name
    ('uint8', 'int8', 'int64')
    """
    return np.dtype(f"{'u' if width < 32 and not signed else 'i'}{width // 8}")


def buffer_names(fmt: Format) -> tuple[tuple[int, str], ...]:
    """Return (level, "positions" | "coordinates") for each index buffer in canonical order.

    The values come behind them. This is the order of ``Operand.buffers`` and of ``wrap_result``.

    >>> from sparsejit.formats import COO, CSR
    >>> buffer_names(CSR)
    ((1, 'positions'), (1, 'coordinates'))
    >>> buffer_names(COO(2))
    ((0, 'positions'), (0, 'coordinates'), (1, 'coordinates'))
    """
    names: list[tuple[int, str]] = []
    for number, level in enumerate(fmt.levels):
        if level.type.has_positions:
            names.append((number, "positions"))
        if stores_coordinates(fmt, number):
            names.append((number, "coordinates"))
    return tuple(names)


def join_buffers(structure: Structure, values: Array) -> tuple[Array, ...]:
    """Return the buffers in canonical order: level by level, then the values."""
    arrays = {"positions": structure.positions, "coordinates": structure.coordinates}
    found = [arrays[name][level] for level, name in buffer_names(structure.format)]
    return (*(array for array in found if array is not None), values)


def split_buffers(
    fmt: Format, shape: tuple[int, ...], buffers: Sequence[Array]
) -> tuple[Structure, Array]:
    """Return the structure and the values of buffers in canonical order.

    Raises ``ValueError`` when their number is not the format's.
    """
    names = buffer_names(fmt)
    if len(buffers) != len(names) + 1:
        raise ValueError(f"({fmt}) has {len(names) + 1} buffers, not {len(buffers)}")
    positions: list[Array | None] = [None] * fmt.num_levels
    coordinates: list[Array | None] = [None] * fmt.num_levels
    for (level, name), array in zip(names, buffers, strict=False):
        (positions if name == "positions" else coordinates)[level] = array
    return Structure(fmt, shape, tuple(positions), tuple(coordinates)), buffers[-1]
