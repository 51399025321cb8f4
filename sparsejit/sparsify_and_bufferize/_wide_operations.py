"""Operations over very many sparse operands, in parts.

Where more sparse operands meet than one iteration lattice can hold, a part of the body over a few
of them becomes an operation of its own, with a sparse result that stores the union of what it
reads. So a sum of twenty matrices is a tree of sums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from math import comb

from sparsejit.affine import AffineExpr, AffineMap, Dim, dims_of, identity_map, substitute
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    args_of,
    dtype_of,
    map_leaves,
)
from sparsejit.ir.simplify import Known, Missing, simplify_absence
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IteratorType, TensorType
from sparsejit.ir.walk import map_ops
from sparsejit.sparsify_and_bufferize._iteration_lattice import MAX_ITERATORS
from sparsejit.sparsify_and_bufferize._rewriting import renumbering

__all__ = ["split_wide_operations"]

_MAX_CASES = 150
"""More bodies than this in one operation would take long to compile."""


def split_wide_operations(
    func: TensorFunc, fresh: Callable[[], str]
) -> tuple[TensorFunc, tuple[Fact, ...]]:
    """Return ``func`` without operations over too many sparse operands, and what was done."""
    facts: list[Fact] = []

    def split(op: Op) -> tuple[Op, ...]:
        made: list[Op] = []
        while isinstance(op, Generic) and _is_wide(op):
            parts = _parted(op, fresh)
            if parts is None:
                break
            empty, part, op = parts
            made += (empty, part)
            text = f"computed in parts: %{part.result.name} over some of its operands"
            facts.append(Fact(FactKind.REWRITE, op.result.name, text))
        return (*made, op)

    return replace(func, ops=map_ops(func.ops, split)), tuple(facts)


def _is_wide(op: Generic) -> bool:
    """Whether the cases of the lattices would be too many: a sum over n has 2**n - 1 a loop."""
    sparse = sorted(_sparse_inputs(op))
    if len(sparse) <= 2:
        return False
    if len(sparse) > MAX_ITERATORS:
        return True
    dtypes = tuple(value.type.dtype for value in (*op.inputs, op.init))
    points = 0
    for size in range(len(sparse)):
        for absent in combinations(sparse, size):
            fills = {k: op.inputs[k].type.fill for k in absent}
            left = simplify_absence(op.body, dtypes, fills)
            points += isinstance(left, Known) and left.expr != Arg(len(op.inputs))
    return _cases(points.bit_length(), _depth(op)) > _MAX_CASES


def _depth(op: Generic) -> int:
    """The most loops over stored entries that one operand asks for."""
    return max(
        sum(not level.type.is_full for level in op.inputs[k].type.format.levels)
        for k in _sparse_inputs(op)
    )


@functools.cache
def _cases(operands: int, depth: int) -> int:
    """The bodies of a union of ``operands`` over ``depth`` nested loops.

    While all are met the loop goes on inside; each smaller set of k occurs in 2**(n - k) loops.
    """
    if depth == 0 or operands <= 1:
        return 1
    smaller = sum(
        (comb(operands, k) << (operands - k)) * _cases(k, depth - 1) for k in range(1, operands)
    )
    return _cases(operands, depth - 1) + smaller


def _part_size(op: Generic) -> int:
    """The most sparse operands that a part may have."""
    depth = _depth(op)
    return max(n for n in range(2, 6) if n == 2 or _cases(n, depth) <= _MAX_CASES)


def _sparse_inputs(op: Generic) -> frozenset[int]:
    return frozenset(k for k, value in enumerate(op.inputs) if not value.type.format.is_all_full)


def _parted(op: Generic, fresh: Callable[[], str]) -> tuple[Empty, Generic, Generic] | None:
    """Return a part of ``op`` with its destination, and ``op`` over the part's result."""
    part = _best_part(op)
    if part is None:
        return None
    expr, fill = part
    used = sorted(args_of(expr))
    loops = sorted(_loops_of(op, expr, used))
    place: dict[int, AffineExpr] = {loop: Dim(n) for n, loop in enumerate(loops)}
    number_of = {loop: n for n, loop in enumerate(loops)}
    shape = tuple(op.extents[loop] for loop in loops)
    kind = TensorType(shape, fill.const.dtype, _format(op, used, loops), fill.const)
    empty = Empty(Value(fresh(), kind), op.location)
    result = Value(fresh(), kind)
    number = {old: new for new, old in enumerate(used)}
    maps = [
        AffineMap(
            len(loops), tuple(substitute(index, place) for index in op.indexing_maps[k].results)
        )
        for k in used
    ]
    made = Generic(
        result,
        tuple(op.inputs[k] for k in used),
        empty.result,
        (*maps, identity_map(len(loops))),
        (IteratorType.PARALLEL,) * len(loops),
        shape,
        map_leaves(expr, renumbering(number, number_of)),
        op.location,
    )
    return empty, made, _over_part(op, expr, result, loops)


def _over_part(op: Generic, expr: ScalarExpr, part: Value, loops: list[int]) -> Generic:
    """Return ``op`` with ``expr`` replaced by a read of ``part``."""
    rest = _replaced(op.body, expr)
    out = len(op.inputs)
    kept = [k for k in range(out) if k in args_of(rest)]
    number = {old: new for new, old in enumerate(kept)}
    number |= {_PLACE: len(kept), out: len(kept) + 1}
    loop_map = AffineMap(len(op.extents), tuple(Dim(loop) for loop in loops))
    return replace(
        op,
        inputs=(*(op.inputs[k] for k in kept), part),
        indexing_maps=(*(op.indexing_maps[k] for k in kept), loop_map, op.indexing_maps[-1]),
        body=map_leaves(rest, renumbering(number, {})),
    )


_PLACE = -1
"""Stands for the part in a body whose operands are not yet renumbered."""


def _replaced(body: ScalarExpr, expr: ScalarExpr) -> ScalarExpr:
    if body is expr:
        return Arg(_PLACE)
    match body:
        case Cast(operand, dtype):
            return Cast(_replaced(operand, expr), dtype)
        case Unary(op, operand):
            return Unary(op, _replaced(operand, expr))
        case Binary(op, lhs, rhs):
            return Binary(op, _replaced(lhs, expr), _replaced(rhs, expr))
        case Select(condition, then, orelse):
            parts = (_replaced(part, expr) for part in (condition, then, orelse))
            return Select(*parts)
        case Call(function, operands):
            return Call(function, tuple(_replaced(operand, expr) for operand in operands))
        case _:
            return body


def _best_part(op: Generic) -> tuple[ScalarExpr, Missing] | None:
    """Return the subexpression over the most sparse operands that a part may have, and its fill."""
    sparse = _sparse_inputs(op)
    dtypes = tuple(value.type.dtype for value in (*op.inputs, op.init))
    best: tuple[ScalarExpr, Missing] | None = None
    most, largest = 1, _part_size(op)
    for expr in _subexpressions(op.body):
        count = len(args_of(expr) & sparse)
        if not most < count <= largest or len(op.inputs) in args_of(expr) or _asks(expr):
            continue
        fills = {k: op.inputs[k].type.fill for k in args_of(expr) & sparse}
        outcome = simplify_absence(expr, dtypes, fills)
        if isinstance(outcome, Missing) and outcome.const.dtype is dtype_of(expr, dtypes):
            best, most = (expr, outcome), count
    return best


def _subexpressions(body: ScalarExpr) -> Iterator[ScalarExpr]:
    yield body
    match body:
        case Cast(operand) | Unary(_, operand):
            yield from _subexpressions(operand)
        case Binary(_, lhs, rhs):
            yield from _subexpressions(lhs)
            yield from _subexpressions(rhs)
        case Select(condition, then, orelse):
            for part in (condition, then, orelse):
                yield from _subexpressions(part)
        case Call(_, operands):
            for part in operands:
                yield from _subexpressions(part)
        case _:
            pass


def _asks(expr: ScalarExpr) -> bool:
    """Whether an expression asks for patterns or may have no value: it must stay in its place."""
    return any(isinstance(inner, Stored | Nothing) for inner in _subexpressions(expr))


def _loops_of(op: Generic, expr: ScalarExpr, used: list[int]) -> set[int]:
    indices = [index for k in used for index in op.indexing_maps[k].results]
    loops = {loop for index in indices for loop in dims_of(index)}
    return loops | {inner.loop for inner in _subexpressions(expr) if isinstance(inner, Coordinate)}


def _format(op: Generic, used: list[int], loops: list[int]) -> Format:
    """Return the format that all operands of a part have, else one that stores any pattern."""
    whole = tuple(Dim(loop) for loop in loops)
    formats = {
        op.inputs[k].type.format.with_widths(0, 0)
        for k in used
        if op.indexing_maps[k].results == whole and not op.inputs[k].type.is_dense
    }
    if len(formats) == 1 and len(used) == sum(op.indexing_maps[k].results == whole for k in used):
        return formats.pop()
    compressed = LevelType(LevelKind.COMPRESSED)
    return Format.of(len(loops), tuple(Level(Dim(d), compressed) for d in range(len(loops))))
