"""The checks of storage from outside: every damage is a ``ValueError`` that names its place.

In: format, shape, positions, coordinates and values as a user or another library handed them over.
Out: nothing, or the error. Levels are checked from the outermost inward, so that each check may
rely on the levels above; nothing is read through an index before it has been checked.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsejit.formats import Format, LevelKind
from sparsejit.tensors._check_levels import LevelCheck, check_coordinates, check_positions
from sparsejit.tensors._dtypes import checked_value_dtype
from sparsejit.tensors._storage import (
    Array,
    Structure,
    batches_of,
    is_signed_level,
    run_end,
    stores_coordinates,
)

__all__ = ["check_array", "check_shape", "check_structure", "check_values"]

_LARGEST_EXTENT = 2**63 - 1


def check_shape(fmt: Format, shape: Any) -> tuple[int, ...]:
    """Return ``shape`` as a tuple of ints that fits the rank of ``fmt``.

    >>> from sparsejit.formats import CSR
    >>> check_shape(CSR, [np.int64(2), 3])
    (2, 3)
    """
    try:
        # What is no iterable raises TypeError like what is no integer.
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError:
        raise ValueError(f"shape must be a tuple of integers, not {shape!r}") from None
    if len(extents) != fmt.ndim:
        raise ValueError(f"shape {extents} has {len(extents)} dimensions, ({fmt}) has {fmt.ndim}")
    for dim, extent in enumerate(extents):
        if not 0 <= extent <= _LARGEST_EXTENT:
            raise ValueError(f"shape[{dim}] is {extent}, outside 0 .. {_LARGEST_EXTENT}")
    return extents


def check_structure(structure: Structure) -> int:
    """Check positions and coordinates of all levels; return the number of slots for values.

    The buffers must be NumPy arrays. Raises ``ValueError`` as described in the module.
    """
    fmt = structure.format
    for arrays, name in (
        (structure.positions, "positions"),
        (structure.coordinates, "coordinates"),
    ):
        if len(arrays) != fmt.num_levels:
            raise ValueError(
                f"{name} has {len(arrays)} elements, ({fmt}) has {fmt.num_levels} levels"
            )
    sizes = fmt.level_sizes(structure.shape)
    batches = batches_of(fmt, sizes)
    per_batch = 1
    for level, (size, chosen) in enumerate(zip(sizes, fmt.levels, strict=True)):
        _check_presence(structure, level)
        check = LevelCheck(structure, level, size, batches, per_batch)
        match chosen.type.kind:
            case LevelKind.BATCH:
                pass
            case LevelKind.DENSE | LevelKind.RANGE:
                per_batch *= size
            case LevelKind.SINGLETON:
                pass  # checked with the level that begins the run
            case LevelKind.COMPRESSED | LevelKind.LOOSE_COMPRESSED:
                for later in range(level + 1, run_end(fmt, level) + 1):
                    _check_presence(structure, later)
                check_positions(check)
                per_batch = check_coordinates(check)
            case LevelKind.STRUCTURED | LevelKind.PADDED:
                per_batch = check_coordinates(check)
    return per_batch * batches.count


def check_values(structure: Structure, values: Array, slots: int) -> None:
    """Check dtype, number and layout of the values."""
    checked_value_dtype(values.dtype)
    check_array("values", values)
    if values.size != slots:
        raise ValueError(f"values has {values.size} elements, ({structure.format}) needs {slots}")


def _check_presence(structure: Structure, level: int) -> None:
    fmt = structure.format
    level_type = fmt.levels[level].type
    where = f"level {level} of ({fmt})"
    for arrays, name, wanted, width in (
        (structure.positions, "positions", level_type.has_positions, fmt.pos_width),
        (structure.coordinates, "coordinates", stores_coordinates(fmt, level), fmt.crd_width),
    ):
        array: Any = arrays[level]
        if not wanted:
            if array is not None:
                raise ValueError(f"{where}: {name}[{level}] must be None, none are stored here")
            continue
        if array is None:
            raise ValueError(f"{where}: {name}[{level}] is missing")
        if not isinstance(array, np.ndarray):
            found = type(array).__name__
            raise ValueError(f"{where}: {name}[{level}] must be a NumPy array, not {found}")
        signed = name == "coordinates" and is_signed_level(fmt, level)
        _check_index_dtype(f"{where}: {name}[{level}]", array.dtype, width, signed)
        check_array(f"{where}: {name}[{level}]", array, f"{name}[{level}]")


def _check_index_dtype(what: str, dtype: np.dtype[Any], width: int, signed: bool) -> None:
    if signed:
        allowed: Sequence[str] = ("int8", "int16", "int32", "int64")
    else:
        allowed = ("uint8", "uint16", "int32", "uint32", "int64", "uint64")
    if width:
        allowed = [name for name in allowed if name.endswith(f"t{width}")]
    if dtype.name not in allowed:
        raise ValueError(f"{what} has dtype {dtype}, expected {' or '.join(allowed)}")


def check_array(what: str, array: Any, name: str = "") -> None:
    """Refuse arrays that compiled code could not walk: foreign byte order, strides, alignment."""
    if not array.dtype.isnative:
        raise ValueError(f"{what} has foreign byte order")
    aligned = not isinstance(array, np.ndarray) or array.flags.aligned  # CuPy's always are
    if not (array.flags.c_contiguous and aligned):
        raise ValueError(f"{what} is not contiguous: pass np.ascontiguousarray({name or what})")
