"""From dimensions to levels: the loops of a ``Generic`` as the storage of its operands sees them.

Enters a ``Generic`` over dimensions; leaves a ``LevelSpace``: loops split where an operand stores
blocks (``i floordiv 2``, ``i mod 2``), and for each operand the expression of every level over
those loops. After this step nobody looks at a dimension-to-level map again. Source: MLIR's
sparse-reinterpret-map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparsejit import affine
from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, FloorDiv, Mod
from sparsejit.formats import Format, Level, LevelType
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


_ZERO = Constant(0)


@dataclass(frozen=True, slots=True)
class Grid:
    """How the loops of a ``Generic`` are changed.

    ``blocks``: the block size of each loop that is split; ``diagonals``: for each loop ``i`` that
    is replaced by the diagonal ``j - i``, the loop ``j``.
    """

    blocks: Mapping[int, int]
    diagonals: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Block:
    """On the inner loop of a split: the outer loop, the block size, the extent of the whole."""

    outer: int
    size: int
    extent: AffineExpr


@dataclass(frozen=True, slots=True)
class Diagonal:
    """On the loop along a diagonal: the loop over diagonals, the extent of the other dimension."""

    offset: int
    extent: AffineExpr


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop from ``lower`` up to ``extent`` (excluded), both over the function's symbols."""

    name: str
    extent: AffineExpr
    iterator: IteratorType
    lower: AffineExpr = _ZERO
    block: Block | None = None
    diagonal: Diagonal | None = None

    @property
    def is_parallel(self) -> bool:
        """Whether iterations write distinct elements of the result."""
        return self.iterator is IteratorType.PARALLEL


@dataclass(frozen=True, slots=True)
class LevelAccess:
    """A level of an operand: its coordinate over the loops, its type, its extent (symbols).

    ``below`` is set on a level of diagonals ``j - i``: the extent of ``i``, so that coordinates
    begin at ``1 - below``.
    """

    expr: AffineExpr
    type: LevelType
    size: AffineExpr
    below: AffineExpr | None = None

    @property
    def is_diagonal(self) -> bool:
        """Whether the level stores diagonals."""
        return self.below is not None


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

    ``grid`` says which loops of the ``Generic`` were split or replaced.
    """

    grid: Grid
    loops: tuple[Loop, ...]
    coordinates: tuple[AffineExpr, ...]
    inputs: tuple[Access, ...]
    output: Access

    def inner_of(self, outer: int) -> int | None:
        """Return the inner loop of the split that ``outer`` belongs to, if it does."""
        split = [(n, loop.block) for n, loop in enumerate(self.loops) if loop.block is not None]
        return next((number for number, block in split if block.outer == outer), None)

    @property
    def off_grid(self) -> frozenset[int]:
        """The inputs that can only be searched: a stored level is indexed by part of a loop.

        Either the operand has blocks that the loops do not follow, or the loops are split into
        blocks that it does not have.
        """
        changed = {n for n, loop in enumerate(self.loops) if loop.block or loop.diagonal}
        changed |= {loop.block.outer for loop in self.loops if loop.block is not None}
        changed |= {loop.diagonal.offset for loop in self.loops if loop.diagonal is not None}

        def is_off(level: LevelAccess) -> bool:
            whole = isinstance(level.expr, Dim)
            mixed = _has_parts(level.expr) or bool(affine.dims_of(level.expr) & changed)
            return not level.type.is_full and not whole and (mixed or level.is_diagonal)

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

    The first follows the blocks and diagonals of the operands; where there are any, the second
    leaves all loops whole, so that such operands can be searched while others are iterated.
    """
    grid = _grid_of(op)
    whole = level_space_of(op, Grid({}, {}))
    return (whole,) if grid == Grid({}, {}) else (level_space_of(op, grid), whole)


def level_space_of(op: Generic, grid: Grid) -> LevelSpace:
    """Return the level space of ``op`` over the loops of ``grid``."""
    loops: list[Loop] = []
    coordinates: dict[int, AffineExpr] = {}
    for d, (extent, iterator) in enumerate(zip(op.extents, op.iterator_types, strict=True)):
        name = loop_name(d)
        here = len(loops)
        if d in grid.blocks:
            size = grid.blocks[d]
            count = affine.floordiv(affine.add(extent, Constant(size - 1)), size)
            loops.append(Loop(f"{name}_o", count, iterator))
            loops.append(
                Loop(f"{name}_i", Constant(size), iterator, block=Block(here, size, extent))
            )
            coordinates[d] = affine.add(affine.mul(Constant(size), Dim(here)), Dim(here + 1))
        elif d in grid.diagonals:
            plus = grid.diagonals[d]
            alike = iterator is op.iterator_types[plus]
            kind = iterator if alike else IteratorType.REDUCTION
            lower = affine.add(affine.mul(Constant(-1), extent), Constant(1))
            loops.append(Loop(f"{loop_name(plus)}_{name}", op.extents[plus], kind, lower))
        else:
            loops.append(Loop(name, extent, iterator))
            coordinates[d] = Dim(here)
    _cut_diagonals(op, grid, loops, coordinates)
    ordered = [coordinates[d] for d in range(len(op.extents))]
    inputs = tuple(
        _access(value, index_map, ordered, grid)
        for value, index_map in zip(op.inputs, op.indexing_maps, strict=False)
    )
    output = _access(op.init, op.indexing_maps[-1], ordered, grid)
    return LevelSpace(grid, tuple(loops), tuple(ordered), inputs, output)


def _cut_diagonals(
    op: Generic, grid: Grid, loops: list[Loop], coordinates: dict[int, AffineExpr]
) -> None:
    """Replace each loop ``i`` of a diagonal by ``j - d``, and keep ``j`` where that is inside."""
    for minus, plus in grid.diagonals.items():
        offset = next(
            n
            for n, loop in enumerate(loops)
            if loop.name == f"{loop_name(plus)}_{loop_name(minus)}"
        )
        along = coordinates[plus]
        assert isinstance(along, Dim)
        coordinates[minus] = affine.add(along, affine.mul(Constant(-1), Dim(offset)))
        diagonal = Diagonal(offset, op.extents[minus])
        loops[along.index] = replace(loops[along.index], diagonal=diagonal)


def _grid_of(op: Generic) -> Grid:
    """Return the blocks and diagonals in which operands are stored (the output's first)."""
    blocks: dict[int, int] = {}
    diagonals: dict[int, int] = {}
    operands = ((op.init, op.indexing_maps[-1]), *zip(op.inputs, op.indexing_maps, strict=False))
    for value, index_map in operands:
        dims = dict(enumerate(index_map.results))
        for level in value.type.format.levels:
            over_loops = affine.substitute(level.expr, dims)
            match over_loops:
                case FloorDiv(Dim(loop), size) | Mod(Dim(loop), size):
                    blocks.setdefault(loop, size)
                case affine.Add(Dim(plus), affine.Mul(Constant(-1), Dim(minus))):
                    taken = {*diagonals, *diagonals.values(), *blocks}
                    free = plus != minus and not {plus, minus} & taken
                    if _is_diagonal(level) and free:
                        diagonals.setdefault(minus, plus)
                case _:
                    pass
    diagonal = {*diagonals, *diagonals.values()}
    return Grid({loop: size for loop, size in blocks.items() if loop not in diagonal}, diagonals)


def _is_diagonal(level: Level) -> bool:
    return isinstance(level.expr, affine.Add)


def _below(level: Level, shape: tuple[AffineExpr, ...]) -> AffineExpr | None:
    match level.expr:
        case affine.Add(Dim(), affine.Mul(Constant(-1), Dim(minus))):
            return shape[minus]
        case _:
            return None


def _access(
    value: Value, index_map: AffineMap, coordinates: list[AffineExpr], grid: Grid
) -> Access:
    over_loops = dict(enumerate(coordinates))
    indices = tuple(affine.substitute(result, over_loops) for result in index_map.results)
    if value.type.is_dense:
        return Access(value, indices, ())
    dims = dict(enumerate(index_map.results))
    sizes = level_sizes(value.type.format, value.type.shape)
    levels: list[LevelAccess] = []
    for level, size in zip(value.type.format.levels, sizes, strict=True):
        expr = _over_grid(affine.substitute(level.expr, dims), over_loops, grid)
        levels.append(LevelAccess(expr, level.type, size, _below(level, value.type.shape)))
    return Access(value, indices, tuple(levels))


def _over_grid(expr: AffineExpr, over_loops: dict[int, AffineExpr], grid: Grid) -> AffineExpr:
    match expr:
        case FloorDiv(Dim(loop), size) if grid.blocks.get(loop) == size:
            whole = over_loops[loop]
            assert isinstance(whole, affine.Add)
            assert isinstance(whole.lhs, affine.Mul)
            return whole.lhs.rhs
        case Mod(Dim(loop), size) if grid.blocks.get(loop) == size:
            whole = over_loops[loop]
            assert isinstance(whole, affine.Add)
            return whole.rhs
        case _:
            return _collected(affine.substitute(expr, over_loops))


def _collected(expr: AffineExpr) -> AffineExpr:
    """Return ``expr`` as one loop where everything else cancels: ``j - (j - d)`` is ``d``."""
    linear = affine.as_linear(expr)
    match linear:
        case ({} as terms, 0) if len(terms) == 1 and set(terms.values()) == {1}:
            return Dim(next(iter(terms)))
        case _:
            return expr
