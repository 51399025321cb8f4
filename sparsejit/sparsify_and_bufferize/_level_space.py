"""From dimensions to levels: the loops of a ``Generic`` as the storage of its operands sees them.

Enters a ``Generic`` over dimensions; leaves a ``LevelSpace``: loops split where an operand stores
blocks (``i floordiv 2``, ``i mod 2``), and for each operand the expression of every level over
those loops. After this step nobody looks at a dimension-to-level map again. Source: MLIR's
sparse-reinterpret-map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsejit import affine
from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, FloorDiv, Mod
from sparsejit.formats import Format, LevelType
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import IteratorType
from sparsejit.sparsify_and_bufferize._naming import loop_name

__all__ = [
    "Access",
    "LevelAccess",
    "LevelSpace",
    "Loop",
    "level_sizes",
    "level_space_of",
    "level_spaces_of",
]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its extent over the function's symbols.

    ``block`` is set on the inner loop of a split: (outer loop, block size, extent of the whole).
    """

    name: str
    extent: AffineExpr
    iterator: IteratorType
    block: tuple[int, int, AffineExpr] | None = None

    @property
    def is_parallel(self) -> bool:
        """Whether iterations write distinct elements of the result."""
        return self.iterator is IteratorType.PARALLEL


@dataclass(frozen=True, slots=True)
class LevelAccess:
    """A level of an operand: its coordinate over the loops, its type, its extent (symbols)."""

    expr: AffineExpr
    type: LevelType
    size: AffineExpr


@dataclass(frozen=True, slots=True)
class Access:
    """How the loops reach an operand: by ``indices`` (dense) or level by level (``levels``)."""

    value: Value
    indices: tuple[AffineExpr, ...]
    levels: tuple[LevelAccess, ...]

    @property
    def is_sparse(self) -> bool:
        """Whether the operand has levels (any format but ``Dense``)."""
        return not self.value.type.is_dense

    @property
    def may_be_absent(self) -> bool:
        """Whether some coordinate of the operand may store nothing."""
        return any(not level.type.is_full for level in self.levels)


@dataclass(frozen=True, slots=True)
class LevelSpace:
    """``coordinates[d]`` is loop ``d`` of the ``Generic`` over the loops here.

    ``blocks`` has the block size of each loop of the ``Generic`` that was split.
    """

    blocks: Mapping[int, int]
    loops: tuple[Loop, ...]
    coordinates: tuple[AffineExpr, ...]
    inputs: tuple[Access, ...]
    output: Access

    @property
    def off_grid(self) -> frozenset[int]:
        """The inputs that can only be searched: a stored level is indexed by part of a loop.

        Either the operand has blocks that the loops do not follow, or the loops are split into
        blocks that it does not have.
        """
        split = {loop.block[0] for loop in self.loops if loop.block is not None}
        split |= {number for number, loop in enumerate(self.loops) if loop.block is not None}

        def is_off(level: LevelAccess) -> bool:
            whole = isinstance(level.expr, Dim)
            mixed = _has_parts(level.expr) or bool(affine.dims_of(level.expr) & split)
            return not level.type.is_full and not whole and mixed

        return frozenset(
            number
            for number, access in enumerate(self.inputs)
            if any(is_off(level) for level in access.levels)
        )


def _has_parts(expr: AffineExpr) -> bool:
    match expr:
        case FloorDiv() | Mod():
            return True
        case affine.Add(lhs, rhs) | affine.Mul(lhs, rhs):
            return _has_parts(lhs) or _has_parts(rhs)
        case _:
            return False


def level_sizes(fmt: Format, shape: tuple[AffineExpr, ...]) -> tuple[AffineExpr, ...]:
    """Return the extent of each level over the symbols of ``shape``."""
    return tuple(_level_size(level.expr, shape) for level in fmt.levels)


def _level_size(expr: AffineExpr, shape: tuple[AffineExpr, ...]) -> AffineExpr:
    match expr:
        case Dim(d):
            return shape[d]
        case FloorDiv(Dim(d), divisor):
            return affine.floordiv(affine.add(shape[d], Constant(divisor - 1)), divisor)
        case Mod(_, divisor):
            return Constant(divisor)
        case Constant():
            return Constant(1)
        case _:
            dims = sorted(affine.dims_of(expr))
            total: AffineExpr = Constant(-1)
            for d in dims:
                total = affine.add(shape[d], total)
            return total


def level_spaces_of(op: Generic) -> tuple[LevelSpace, ...]:
    """Return the level spaces of ``op``, the best first.

    The first follows the blocks of the operands; where there are any, the second leaves all loops
    whole, so that blocked operands can be searched while others are iterated.
    """
    blocks = _blocks(op)
    return (
        (level_space_of(op, blocks), level_space_of(op, {}))
        if blocks
        else (level_space_of(op, {}),)
    )


def level_space_of(op: Generic, blocks: Mapping[int, int]) -> LevelSpace:
    """Return the level space of ``op`` with the loops in ``blocks`` split."""
    loops: list[Loop] = []
    coordinates: list[AffineExpr] = []
    for d, (extent, iterator) in enumerate(zip(op.extents, op.iterator_types, strict=True)):
        name = loop_name(d)
        outer = len(loops)
        if d not in blocks:
            loops.append(Loop(name, extent, iterator))
            coordinates.append(Dim(outer))
            continue
        size = blocks[d]
        count = affine.floordiv(affine.add(extent, Constant(size - 1)), size)
        loops.append(Loop(f"{name}_o", count, iterator))
        loops.append(Loop(f"{name}_i", Constant(size), iterator, (outer, size, extent)))
        coordinates.append(affine.add(affine.mul(Constant(size), Dim(outer)), Dim(outer + 1)))
    split = {d: (coordinates[d], size) for d, size in blocks.items()}
    inputs = tuple(
        _access(value, index_map, coordinates, split)
        for value, index_map in zip(op.inputs, op.indexing_maps, strict=False)
    )
    output = _access(op.init, op.indexing_maps[-1], coordinates, split)
    return LevelSpace(blocks, tuple(loops), tuple(coordinates), inputs, output)


def _blocks(op: Generic) -> dict[int, int]:
    """Return the block size of each loop that some operand stores in blocks (the output first)."""
    found: dict[int, int] = {}
    operands = ((op.init, op.indexing_maps[-1]), *zip(op.inputs, op.indexing_maps, strict=False))
    for value, index_map in operands:
        dims = dict(enumerate(index_map.results))
        for level in value.type.format.levels:
            match affine.substitute(level.expr, dims):
                case FloorDiv(Dim(loop), size) | Mod(Dim(loop), size):
                    found.setdefault(loop, size)
                case _:
                    pass
    return found


def _access(
    value: Value,
    index_map: AffineMap,
    coordinates: list[AffineExpr],
    split: dict[int, tuple[AffineExpr, int]],
) -> Access:
    over_loops = dict(enumerate(coordinates))
    indices = tuple(affine.substitute(result, over_loops) for result in index_map.results)
    if value.type.is_dense:
        return Access(value, indices, ())
    dims = dict(enumerate(index_map.results))
    sizes = level_sizes(value.type.format, value.type.shape)
    levels: list[LevelAccess] = []
    for level, size in zip(value.type.format.levels, sizes, strict=True):
        over_dims = affine.substitute(level.expr, dims)
        levels.append(LevelAccess(_in_blocks(over_dims, over_loops, split), level.type, size))
    return Access(value, indices, tuple(levels))


def _in_blocks(
    expr: AffineExpr,
    over_loops: dict[int, AffineExpr],
    split: dict[int, tuple[AffineExpr, int]],
) -> AffineExpr:
    match expr:
        case FloorDiv(Dim(loop), size) if loop in split and split[loop][1] == size:
            whole = split[loop][0]
            assert isinstance(whole, affine.Add)
            return _outer(whole)
        case Mod(Dim(loop), size) if loop in split and split[loop][1] == size:
            whole = split[loop][0]
            assert isinstance(whole, affine.Add)
            return whole.rhs
        case _:
            return affine.substitute(expr, over_loops)


def _outer(whole: affine.Add) -> AffineExpr:
    match whole.lhs:
        case affine.Mul(Constant(), outer):
            return outer
        case outer:
            return outer
