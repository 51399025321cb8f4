"""Where the entries of a rearranged tensor go, and in which order they come there.

In: a slice, reshape, concatenation or padding. Out: for each source, the new coordinates of an
entry; and by how many levels of the result the entries of all sources have to be sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim, add, dims_of, mul
from sparsejit.formats import LevelKind
from sparsejit.ir import loops, tensor
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._entry_order import Form, prefix_to_sort

__all__ = [
    "Arrangement",
    "Exprs",
    "Mover",
    "delinearized",
    "levels_to_sort_of",
    "linearized",
    "movers",
    "walked",
]

Arrangement = tensor.ExtractSlice | tensor.Reshape | tensor.Concat | tensor.Pad
Exprs = tuple[loops.Expr, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """Where an entry goes: its new coordinates, valid where all ``conditions`` hold."""

    coordinates: Exprs
    conditions: Exprs = ()


Mover = Callable[[Exprs], Move]
Lower = Callable[[AffineExpr], loops.Expr]


def movers(op: Arrangement, symbols: Mapping[int, loops.Expr]) -> Sequence[Mover]:
    """Return, for each source, where its entries go."""

    def lower(expr: AffineExpr) -> loops.Expr:
        return ix.lower_affine(expr, symbols)

    match op:
        case tensor.ExtractSlice():
            return (lambda own: _sliced(op, own, lower),)
        case tensor.Reshape(result, source):
            old, new = (tuple(map(lower, value.type.shape)) for value in (source, result))
            return (lambda own: Move(delinearized(linearized(own, old), new)),)
        case tensor.Pad():
            low = tuple(map(lower, op.low))
            return (lambda own: Move(tuple(map(ix.add, own, low))),)
        case tensor.Concat():
            moves: list[Mover] = []
            start: AffineExpr = Constant(0)
            for source in op.sources:
                moves.append(_shifted(op.axis, lower(start)))
                start = add(start, source.type.shape[op.axis])
            return moves


def _shifted(axis: int, start: loops.Expr) -> Mover:
    def move(own: Exprs) -> Move:
        return Move((*own[:axis], ix.add(own[axis], start), *own[axis + 1 :]))

    return move


def _sliced(op: tensor.ExtractSlice, own: Exprs, lower: Lower) -> Move:
    """Whether and where an element of the whole is in the slice."""
    places: list[loops.Expr] = []
    conditions: list[loops.Expr] = []
    extents = op.source.type.shape
    rows = zip(own, op.offsets, op.sizes, op.strides, extents, strict=True)
    for dim, (place, offset, size, stride, extent) in enumerate(rows):
        whole = (offset, size, stride) == (Constant(0), extent, 1)
        if not whole and _strided(op, dim) is None:
            first, step = lower(offset), ix.index(abs(stride))
            far = ix.subtract(place, first) if stride > 0 else ix.subtract(first, place)
            conditions.append(ix.compare(BinaryOp.GE, far, ix.index(0)))
            if abs(stride) > 1:
                rest = loops.Binary(BinaryOp.REM, far, step, INDEX)
                conditions.append(ix.equal(rest, ix.index(0)))
                far = loops.Binary(BinaryOp.FLOORDIV, far, step, INDEX)
            conditions.append(ix.less(far, lower(size)))
            place = far
        if dim not in op.dropped:
            places.append(place)
    return Move(tuple(places), tuple(conditions))


def linearized(coordinates: Exprs, shape: Exprs) -> loops.Expr:
    """Return the number of an element in row-major order."""

    number: loops.Expr = ix.index(0)
    for coordinate, extent in zip(coordinates, shape, strict=True):
        number = ix.add(ix.multiply(number, extent), coordinate)
    return number


def delinearized(number: loops.Expr, shape: Exprs) -> Exprs:
    """Return the coordinates of element ``number`` in row-major order."""
    found: list[loops.Expr] = []
    for dim in range(len(shape) - 1, -1, -1):
        extent = shape[dim]
        if extent == ix.index(1):
            found.append(ix.index(0))
        elif all(outer == ix.index(1) for outer in shape[:dim]):
            found.append(number)
        else:
            found.append(loops.Binary(BinaryOp.REM, number, extent, INDEX))
            number = loops.Binary(BinaryOp.FLOORDIV, number, extent, INDEX)
    return tuple(reversed(found))


# ---------------------------------------------------------------- in which order


def levels_to_sort_of(op: Arrangement, orders: Sequence[tuple[int, ...] | None]) -> int:
    """Return by how many levels of the result the entries of all sources must be sorted."""
    levels = op.result.type.format.levels
    wanted = [lvl.expr.index for lvl in levels if isinstance(lvl.expr, Dim)]
    if len(wanted) != len(levels):
        return len(levels)
    return max((_keys(op, order, wanted) for order in orders), default=0)


def _keys(op: Arrangement, order: tuple[int, ...] | None, wanted: Sequence[int]) -> int:
    """Return by how many levels the entries of one source must be sorted.

    Those of ``op``'s sources come one source after the other: that is an order of its own.
    """
    source = (-1, "")
    if order is None:
        return len(wanted)
    match op:
        case tensor.Reshape():
            plain = (*range(len(order)),)
            return 0 if order == plain and wanted == sorted(wanted) else len(wanted)
        case tensor.Pad():
            return prefix_to_sort([_along(dim) for dim in order], [[_along(d)] for d in wanted])
        case tensor.Concat(_, _, axis):
            places = [[{source: Fraction(1)}] * (d == axis) + [_along(d)] for d in wanted]
            return prefix_to_sort([{source: Fraction(1)}, *map(_along, order)], places)
        case tensor.ExtractSlice():
            kept = [dim for dim in range(len(op.offsets)) if dim not in op.dropped]
            seen = [kept[dim] for dim in wanted]
            rising = {d: op.strides[d] > 0 or _strided(op, d) is not None for d in kept}
            met = [_along(dim) for dim in order if dim in kept]
            return prefix_to_sort(met, [[_along(dim, rising[dim])] for dim in seen])


def _along(dim: int, rising: bool = True) -> Form:
    return {(dim, ""): Fraction(1 if rising else -1)}


def walked(op: Arrangement, source: Value) -> tuple[tuple[AffineExpr, ...], tuple[AffineExpr, ...]]:
    """Return where loops read the source, and their extents: in a slice, only what is inside."""
    indices: list[AffineExpr] = []
    extents: list[AffineExpr] = []
    for dim, extent in enumerate(source.type.shape):
        inside = _strided(op, dim)
        if isinstance(op, tensor.ExtractSlice) and inside is not None:
            extent = op.sizes[dim]
        indices.append(Dim(dim) if inside is None else inside)
        extents.append(extent)
    return tuple(indices), tuple(extents)


def _strided(op: Arrangement, dim: int) -> AffineExpr | None:
    """Return where a loop over the slice reads ``dim``, if that is found without a search.

    So it is where one dense level stores the dimension and the slice begins at a known place.
    """
    if not isinstance(op, tensor.ExtractSlice) or not isinstance(op.offsets[dim], Constant):
        return None
    levels = [lvl for lvl in op.source.type.format.levels if dim in dims_of(lvl.expr)]
    if [(lvl.expr, lvl.type.kind) for lvl in levels] != [(Dim(dim), LevelKind.DENSE)]:
        return None
    return add(mul(Constant(op.strides[dim]), Dim(dim)), op.offsets[dim])
