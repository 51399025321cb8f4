"""Parts of sparse operands that a loop could only search: they are copied before.

``A[i, j + 2]`` has no level over ``j``, so that every ``j`` would be tried for each ``i``, unless
another operand says at which ``j`` something is stored. The part is an operand of its own then,
``A[:, 2:]``, whose stored entries are walked. It takes time linear in the entries of ``A``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, as_linear, dims_of, identity_map
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.scalar import Arg
from sparsejit.ir.simplify import Known, simplify_absence
from sparsejit.ir.tensor import Empty, ExtractSlice, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IteratorType
from sparsejit.ir.walk import map_ops

__all__ = ["slice_operands"]

_PLAIN = (LevelKind.DENSE, LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED, LevelKind.SINGLETON)
_COMPRESSED = LevelType(LevelKind.COMPRESSED)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an operand: where it is, how it is stored, and what it is indexed with."""

    format: Format
    offsets: tuple[AffineExpr, ...]
    sizes: tuple[AffineExpr, ...]
    strides: tuple[int, ...]
    index: tuple[AffineExpr, ...]
    moved: frozenset[int]
    """The loops over dimensions that are stored and cut, or walked with steps."""


def slice_operands(
    func: TensorFunc, fresh: Callable[[], str]
) -> tuple[TensorFunc, tuple[Fact, ...]]:
    """Return ``func`` with parts of sparse operands copied where nothing else is walked."""
    facts: list[Fact] = []

    def change(op: Op) -> tuple[Op, ...]:
        made: list[Op] = []
        if not isinstance(op, Generic):
            return (op,)
        for number, value in enumerate(op.inputs):
            part = _part(op, number)
            if part is None or part.moved <= _walked(op, number):
                continue
            whole, copied = _with_entries(value, part.format, fresh)
            copy = Value(fresh(), replace(whole.type, shape=part.sizes, format=part.format))
            where = (part.offsets, part.sizes, part.strides, ())
            made += (*copied, ExtractSlice(copy, whole, *where, op.location))
            inputs, maps = list(op.inputs), list(op.indexing_maps)
            inputs[number] = copy
            maps[number] = AffineMap(maps[number].num_dims, part.index)
            op = replace(op, inputs=tuple(inputs), indexing_maps=tuple(maps))
            text = f"the part of %{value.name} is copied first, so that what it stores is walked"
            facts.append(Fact(FactKind.REWRITE, op.result.name, text))
        return (*made, op)

    ops = tuple(map_ops(func.ops, change))
    return (replace(func, ops=ops), tuple(facts)) if facts else (func, ())


def _with_entries(
    value: Value, fmt: Format, fresh: Callable[[], str]
) -> tuple[Value, tuple[Op, ...]]:
    """Return a value in a format that stores entries, with the operations that copy it there.

    A slice of blocks would lose their zeros.
    """
    if _stores_entries(value.type.format):
        return value, ()
    rank = value.type.rank
    kind = replace(value.type, format=fmt)
    dest, result = Value(fresh(), kind), Value(fresh(), kind)
    maps, loops = (identity_map(rank),) * 2, (IteratorType.PARALLEL,) * rank
    copy = Generic(result, (value,), dest, maps, loops, kind.shape, Arg(0))
    return result, (Empty(dest), copy)


def _part(op: Generic, number: int) -> _Part | None:
    """Return the part of an input that an operation reads, None where it is no such or all."""
    kind = op.inputs[number].type
    fmt = None if kind.is_dense else _entries_format(kind.format)
    if fmt is None:
        return None
    stored = {
        dim for level in kind.format.levels if not level.type.is_full for dim in dims_of(level.expr)
    }
    offsets: list[AffineExpr] = []
    sizes: list[AffineExpr] = []
    strides: list[int] = []
    index: list[AffineExpr] = []
    moved: set[int] = set()
    for dim, expr in enumerate(op.indexing_maps[number].results):
        terms, offset = as_linear(expr) or ({}, -1)
        if len(terms) > 1 or offset < 0:
            return None
        loop, stride = next(iter(terms.items()), (None, 1))
        if loop is not None and dim in stored and (stride, offset) != (1, 0):
            moved.add(loop)
        is_whole = loop is not None and (stride, offset) == (1, 0)
        size = op.extents[loop] if loop is not None else Constant(1)
        offsets.append(Constant(offset))
        sizes.append(kind.shape[dim] if is_whole else size)
        strides.append(stride)
        index.append(Dim(loop) if loop is not None else Constant(0))
    if not moved or len(set(index)) < len(index):
        return None
    return _Part(fmt, tuple(offsets), tuple(sizes), tuple(strides), tuple(index), frozenset(moved))


def _stores_entries(fmt: Format) -> bool:
    """Whether no slot is there because of another one: there are no blocks, nor diagonals."""
    return all(isinstance(lvl.expr, Dim) for lvl in fmt.levels) and not fmt.levels[-1].type.is_full


def _entries_format(fmt: Format) -> Format | None:
    """Return a format that stores the same entries of any part, level by level; None for batches.

    Slots of blocks and diagonals become entries of their own, whatever they hold.
    """
    kinds = [level.type.kind for level in fmt.levels]
    if LevelKind.BATCH in kinds:
        return None
    if _stores_entries(fmt):
        levels = [
            level if level.type.kind in _PLAIN else replace(level, type=_COMPRESSED)
            for level in fmt.levels
        ]
    else:
        dims = dict.fromkeys(dim for level in fmt.levels for dim in sorted(dims_of(level.expr)))
        levels = [Level(Dim(dim), _COMPRESSED) for dim in dims]
        if kinds[0] is LevelKind.DENSE:
            levels[0] = replace(levels[0], type=LevelType(LevelKind.DENSE))
    return Format.of(fmt.ndim, tuple(levels), fmt.pos_width, fmt.crd_width)


def _walked(op: Generic, number: int) -> frozenset[int]:
    """Return the loops that visit only what another operand stores, which has to be there."""
    dtypes = tuple(value.type.dtype for value in (*op.inputs, op.init))
    found: set[int] = set()
    for other, value in enumerate(op.inputs):
        kind = value.type
        if other == number or kind.is_dense:
            continue
        absent = simplify_absence(op.body, dtypes, {other: kind.fill})
        if isinstance(absent, Known) and absent != Known(Arg(len(op.inputs))):
            continue
        results = op.indexing_maps[other].results
        stored = [level for level in kind.format.levels if not level.type.is_full]
        for index in {results[dim] for level in stored for dim in dims_of(level.expr)}:
            if isinstance(index, Dim):
                found.add(index.index)
    return frozenset(found)
