"""Where tensor values live: memrefs for dense ones, level arrays for sparse ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Add
from sparsejit.formats import Format, LevelKind
from sparsejit.ir import loops
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType, IndexWidths, TensorType

__all__ = [
    "Buffer",
    "DenseBuffer",
    "NoEntries",
    "ScalarBuffer",
    "SparseBuffer",
    "coordinates_of",
    "declare_levels",
    "index_dtype",
    "memrefs_of",
    "parameter_buffer",
    "parameters_of",
    "with_pattern",
]


@dataclass(frozen=True, slots=True)
class DenseBuffer:
    """A plain dense tensor: one strided memref. ``root`` is the allocation it is a view of."""

    memref: loops.Memref
    root: str
    view: loops.View | None = None


@dataclass(frozen=True, slots=True)
class ScalarBuffer:
    """A rank-0 parameter that is only read: a variable."""

    var: loops.Var


@dataclass(frozen=True, slots=True)
class SparseBuffer:
    """Level storage. ``positions[l]`` and ``coordinates[l]`` are None where level l has none.

    An array-of-structs tail has one rank-2 coordinates memref, at its first level. Positions and
    coordinates under batch levels have the batches as leading dimensions; values are flat, with
    equally many slots for each batch. Values with the same ``pattern`` have the same entries in the
    same places (a result that took over those of an operand); it says nothing about the memrefs.
    With ``met`` positions and coordinates are another tensor's, and a slot holds an entry where its
    flag is set: what is made in the slots of a tensor, before anybody asks for it alone.
    """

    format: Format
    positions: tuple[loops.Memref | None, ...]
    coordinates: tuple[loops.Memref | None, ...]
    values: loops.Memref
    pattern: str = field(default="", compare=False)
    met: loops.Memref | None = None

    @property
    def flat(self) -> tuple[loops.Memref, ...]:
        """The memrefs as ``SparseResult`` lists them: positions, coordinates by level, values."""
        found: list[loops.Memref] = []
        for position, coordinate in zip(self.positions, self.coordinates, strict=True):
            found += [memref for memref in (position, coordinate) if memref is not None]
        return (*found, self.values)

    @property
    def owned(self) -> tuple[loops.Memref, ...]:
        """The memrefs that end with the tensor."""
        return self.flat if self.met is None else (self.values, self.met)


@dataclass(frozen=True, slots=True)
class NoEntries:
    """A fresh sparse tensor that stores nothing; its storage is made by whoever writes it."""

    type: TensorType


Buffer = DenseBuffer | ScalarBuffer | SparseBuffer | NoEntries


def index_dtype(width: int, automatic: int, *, signed: bool = False) -> DType:
    """Return the dtype of positions or coordinates of ``width`` bits (0: the automatic width).

    ``signed``: they may be negative, as diagonals and unused padded slots are.

    >>> index_dtype(16, 64), index_dtype(0, 32)
    (DType.UINT16, DType.INT32)
    """
    by_width: Mapping[int, DType] = {
        8: DType.INT8 if signed else DType.UINT8,
        16: DType.INT16 if signed else DType.UINT16,
        32: DType.INT32,
        64: DType.INT64,
    }
    return by_width[width or automatic]


def declare_levels(
    name: str, tensor: TensorType, automatic: IndexWidths, space: int = 0
) -> SparseBuffer:
    """Return memrefs for the level storage of a tensor called ``name``."""
    fmt = tensor.format
    pos = index_dtype(fmt.pos_width, automatic.positions)
    positions: list[loops.Memref | None] = []
    coordinates: list[loops.Memref | None] = []
    batches = sum(level.type.kind is LevelKind.BATCH for level in fmt.levels)
    for number, level in enumerate(fmt.levels):
        kind = level.type.kind
        rank = batches + (2 if kind is LevelKind.LOOSE_COMPRESSED else 1)
        has_positions = level.type.has_positions
        positions.append(
            loops.Memref(f"{name}_pos{number}", pos, rank, space) if has_positions else None
        )
        in_struct = fmt.is_aos and fmt.coo_start is not None and number > fmt.coo_start
        first_of_struct = fmt.is_aos and number == fmt.coo_start
        signed = kind is LevelKind.PADDED or isinstance(level.expr, Add)
        crd = index_dtype(fmt.crd_width, automatic.coordinates, signed=signed)
        has_own = level.type.has_coordinates and not in_struct
        coordinates.append(
            loops.Memref(f"{name}_crd{number}", crd, batches + 1 + first_of_struct, space)
            if has_own
            else None
        )
    values = loops.Memref(f"{name}_vals", tensor.dtype, 1, space)
    return SparseBuffer(fmt, tuple(positions), tuple(coordinates), values, pattern=name)


def coordinates_of(buffer: SparseBuffer, level: int) -> tuple[loops.Memref, int | None]:
    """Return the memref with the coordinates of ``level`` and its column in an array of structs."""
    own = buffer.coordinates[level]
    start = buffer.format.coo_start
    if buffer.format.is_aos and start is not None and level >= start:
        struct = buffer.coordinates[start]
        assert struct is not None
        return struct, level - start
    assert own is not None
    return own, None


def parameter_buffer(param: Value, written: bool) -> Buffer:
    """Return the buffers of a parameter; a rank-0 one that is only read is a variable."""
    tensor = param.type
    if not tensor.is_dense:
        return declare_levels(param.name, tensor, IndexWidths())
    if tensor.rank == 0 and not written:
        return ScalarBuffer(loops.Var(param.name, tensor.dtype))
    memref = loops.Memref(param.name, tensor.dtype, tensor.rank)
    return DenseBuffer(memref, memref.name)


def parameters_of(buffer: Buffer) -> tuple[loops.Memref | loops.Var, ...]:
    """Return what a parameter that lives in ``buffer`` is to the loop function."""
    return (buffer.var,) if isinstance(buffer, ScalarBuffer) else memrefs_of(buffer)


def with_pattern(buffer: Buffer, pattern: str) -> Buffer:
    """Return the buffer of a value whose entries are those of ``pattern``, if it has any."""
    return replace(buffer, pattern=pattern) if isinstance(buffer, SparseBuffer) else buffer


def memrefs_of(buffer: Buffer) -> tuple[loops.Memref, ...]:
    """Return the memrefs of a buffer that has some."""
    match buffer:
        case DenseBuffer(memref):
            return (memref,)
        case SparseBuffer():
            return buffer.flat
        case ScalarBuffer() | NoEntries():
            raise AssertionError("a buffer without memrefs")
        case _:
            assert_never(buffer)
