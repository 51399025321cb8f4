"""Level storage from sorted level coordinates, one level at a time.

``slot[e]`` is the slot of entry ``e`` in the storage built so far; it starts as 0 everywhere: in
the one slot of the root. Each function takes the slots of the level above, puts the slots of its
own level in their place, and returns how many there are. ``crd[e]`` is the coordinate of entry
``e`` at the level. The entries are in lexicographic order of their level coordinates, without
duplicates.
"""

from __future__ import annotations

from typing import Any

from numpy import int64
from numpy.typing import NDArray

__all__ = [
    "assemble_compressed",
    "assemble_coordinates",
    "assemble_dense",
    "assemble_loose",
    "assemble_nonunique",
    "assemble_padded",
    "assemble_run",
    "assemble_structured",
    "assemble_values",
]

Array = NDArray[Any]
Ints = NDArray[int64]


def assemble_dense(slot: Ints, slots: int64, crd: Ints, extent: int64) -> int64:
    """Build a dense, batch or range level: each parent has a slot for each coordinate.

    >>> import numpy as np
    >>> slot = np.array([0, 1])
    >>> print(assemble_dense(slot, np.int64(2), np.array([2, 0]), np.int64(3)), slot)
    6 [2 3]
    """
    for entry in range(slot.size):
        slot[entry] = slot[entry] * extent + crd[entry]
    return slots * extent


def assemble_compressed(slot: Ints, slots: int64, crd: Ints, pos: Array) -> int64:
    """Build a compressed level: each parent has a slot for each coordinate that occurs.

    Fills the positions ``pos``, one for each parent and one more.

    >>> import numpy as np
    >>> slot, pos = np.array([0, 0, 0, 2]), np.empty(4, np.int64)
    >>> print(assemble_compressed(slot, np.int64(3), np.array([1, 1, 4, 0]), pos), slot, pos)
    3 [0 0 1 2] [0 2 2 3]
    """
    pos[:] = 0
    made = int64(0)
    parent = int64(-1)
    coordinate = int64(-1)
    for entry in range(slot.size):
        if slot[entry] != parent or crd[entry] != coordinate:
            parent = slot[entry]
            coordinate = crd[entry]
            pos[parent + 1] += 1
            made = made + 1
        slot[entry] = made - 1
    for parent_slot in range(1, slots + 1):
        pos[parent_slot] += pos[parent_slot - 1]
    return made


def assemble_nonunique(slot: Ints, slots: int64, crd: Ints, pos: Array) -> int64:
    """Build a compressed level where each entry has a slot of its own (the head of COO)."""
    pos[:] = 0
    for entry in range(slot.size):
        pos[slot[entry] + 1] += 1
        slot[entry] = entry
    for parent in range(1, slots + 1):
        pos[parent] += pos[parent - 1]
    return int64(slot.size)


def assemble_run(slot: Ints, slots: int64, crds: tuple[Ints, ...], pos: Array) -> int64:
    """Build a compressed level and its singletons: a slot for all coordinates that occur together.

    >>> import numpy as np
    >>> slot, pos = np.zeros(3, np.int64), np.empty(2, np.int64)
    >>> rows, columns = np.array([1, 1, 1]), np.array([0, 0, 2])
    >>> print(assemble_run(slot, np.int64(1), (rows, columns), pos), slot, pos)
    2 [0 0 1] [0 2]
    """
    pos[:] = 0
    made = int64(0)
    parent = int64(-1)
    for entry in range(slot.size):
        new = slot[entry] != parent
        if not new:
            for crd in crds:
                if crd[entry] != crd[entry - 1]:
                    new = True
        if new:
            parent = slot[entry]
            pos[parent + 1] += 1
            made = made + 1
        slot[entry] = made - 1
    for parent_slot in range(1, slots + 1):
        pos[parent_slot] += pos[parent_slot - 1]
    return made


def assemble_loose(slots: int64, pos: Array, bounds: Array) -> None:
    """Write the positions of a compressed level as pairs: begin and end of each parent."""
    for parent in range(slots):
        bounds[parent, 0] = pos[parent]
        bounds[parent, 1] = pos[parent + 1]


def assemble_coordinates(slot: Ints, crd: Ints, coordinates: Array) -> None:
    """Write the coordinate of each entry to its slot."""
    for entry in range(slot.size):
        coordinates[slot[entry]] = crd[entry]


def assemble_structured(
    slot: Ints, slots: int64, crd: Ints, coordinates: Array, size: int64, extent: int64
) -> int64:
    """Build a structured level: ``size`` slots a parent, coordinates below ``extent``.

    Slots that no entry owns take the smallest free coordinates, so that the coordinates of a parent
    increase. Raises ``ValueError`` for a parent with more entries than slots.

    >>> import numpy as np
    >>> slot, coordinates = np.array([1, 1]), np.empty(6, np.int64)
    >>> made = assemble_structured(
    ...     slot, np.int64(3), np.array([1, 3]), coordinates, np.int64(2), np.int64(4)
    ... )
    >>> print(slot, coordinates)
    [2 3] [0 1 1 3 0 1]
    """
    first = int64(0)
    for parent in range(slots):
        last = first
        free = int64(size)
        while last < slot.size and slot[last] == parent:
            if last == first or crd[last] != crd[last - 1]:
                free = free - 1
            last += 1
        if free < 0:
            raise ValueError("a block of a structured level has more entries than slots")
        entry = first
        coordinate = int64(0)
        for own in range(parent * size, parent * size + size):
            if entry < last and (free == 0 or crd[entry] == coordinate):
                coordinate = crd[entry]
                while entry < last and crd[entry] == coordinate:
                    slot[entry] = own
                    entry += 1
            else:
                free = free - 1
            coordinates[own] = coordinate
            coordinate = coordinate + 1
        first = last
    return slots * size


def assemble_padded(slot: Ints, slots: int64, crd: Ints, coordinates: Array, size: int64) -> int64:
    """Build a padded level: ``size`` slots a parent; unused ones have coordinate -1.

    Raises ``ValueError`` for a parent with more entries than slots.
    """
    coordinates[:] = -1
    parent = int64(-1)
    used = int64(0)
    for entry in range(slot.size):
        if slot[entry] != parent:
            used = int64(1)
        elif crd[entry] != crd[entry - 1]:
            used = int64(used + 1)
        parent = slot[entry]
        if used > size:
            raise ValueError("a row of a padded level has more entries than slots")
        slot[entry] = parent * size + used - 1
        coordinates[slot[entry]] = crd[entry]
    return slots * size


def assemble_values(slot: Ints, values: Array, target: Array) -> None:
    """Write the value of each entry to its slot."""
    for entry in range(slot.size):
        target[slot[entry]] = values[entry]
