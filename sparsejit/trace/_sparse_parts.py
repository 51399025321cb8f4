"""Assignment to a part of a sparse tensor: ``S[1:] *= 2``, ``S[0, j] = ...``, said of the whole.

In: a view of a sparse tensor and the new value over the dimensions of the view. Out: the value over
the dimensions of the tensor: the new one at the coordinates of the view, elsewhere the present one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from sparsejit.affine import (
    Add,
    AffineExpr,
    Constant,
    Dim,
    Mod,
    add,
    as_linear,
    dims_of,
    floordiv,
    mul,
    substitute,
)
from sparsejit.errors import Location, UnsupportedError
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Coordinate, ScalarExpr, map_leaves
from sparsejit.ir.tensor import ExtractSlice, Value
from sparsejit.ir.types import INDEX
from sparsejit.trace._array import Array
from sparsejit.trace._context import Cell, Trace
from sparsejit.trace._extents import counts, difference, tidy
from sparsejit.trace._pointwise import (
    Access,
    Pointwise,
    binary,
    cast,
    constant_of,
    join,
    of_value,
    pruned,
    select,
    variable,
)
from sparsejit.trace._symbolic import extent_value, symbolic
from sparsejit.trace._views import Picked, View

__all__ = ["is_part", "of_whole"]


def is_part(array: Array) -> bool:
    """Whether ``array`` is a part of a sparse tensor, which may be assigned."""
    view = array._view
    if view is None or array.is_dense or view.is_diagonal:
        return False
    is_whole = view.is_whole(array._cell.shape, array._trace.extents) and not view.dropped
    return not is_whole or any(len(dims) != 1 for dims in view.axes)


def of_whole(array: Array, new: Pointwise, location: Location | None) -> Pointwise:
    """Return the content of the whole tensor of which a part has the content ``new``."""
    trace, view = array._trace, array.present_view
    base = trace.array(array._cell)
    present = base.read()
    moved = _moved(trace, pruned(new), array, base, location)
    tests = [
        test for d in range(len(view.picked)) for test in _tests(trace, base, view.picked[d], d)
    ]
    if not tests:
        return moved
    inside = reduce(lambda one, other: binary(BinaryOp.AND, one, other), tests)
    return select(inside, moved, cast(present, moved.dtype))


def _number(trace: Trace, expr: AffineExpr) -> Pointwise:
    return cast(extent_value(trace, expr), INDEX)


def _tests(trace: Trace, base: Array, picked: Picked, dim: int) -> list[Pointwise]:
    """Return the conditions under which a coordinate of the tensor is in the view."""
    extents, here = trace.extents, variable(Dim(dim))
    extent, step = base.extents[dim], abs(picked.stride)
    last = tidy(
        add(picked.offset, mul(Constant(picked.stride), difference(picked.size, Constant(1))))
    )
    low, high = (picked.offset, last) if picked.stride > 0 else (last, picked.offset)
    if extents.same(low, high):
        one = _number(trace, low)
        whole = extents.same(extent, Constant(1))
        return [] if whole else [binary(BinaryOp.EQ, here, one)]
    tests = []
    if low != Constant(0):
        tests.append(binary(BinaryOp.GE, here, _number(trace, low)))
    if not extents.same(high, difference(extent, Constant(1))):
        tests.append(binary(BinaryOp.LE, here, _number(trace, high)))
    if step > 1:
        start = extents.pin(low) if not isinstance(low, Constant) else low.value
        away = variable(Mod(Add(Dim(dim), Constant(-start % step)), step))
        tests.append(binary(BinaryOp.EQ, away, constant_of(0, INDEX)))
    return tests


def _moved(
    trace: Trace, part: Pointwise, array: Array, base: Array, location: Location | None
) -> Pointwise:
    """Return an expression over the dimensions of a view as one over those of its base."""
    view = array.present_view
    found = [_access(trace, access, view, base, location) for access in part.accesses]
    (body,), accesses = join((Pointwise(part.body, tuple(found), part.dtype),))

    def leaf(inner: ScalarExpr) -> ScalarExpr:
        if isinstance(inner, Coordinate):
            return variable(_coordinate(view, view.axes[inner.loop], location)).body
        return inner

    return Pointwise(map_leaves(body, leaf), accesses, part.dtype)


def _coordinate(view: View, dims: Sequence[int], location: Location | None) -> AffineExpr:
    """Return the coordinate along a dimension of a view, from that of the base."""
    if not dims:
        return Constant(0)
    picked = view.picked[dims[0]]
    if isinstance(picked.offset, Constant):
        here, start = Dim(dims[0]), picked.offset
        away = difference(here, start) if picked.stride > 0 else difference(start, here)
        return away if abs(picked.stride) == 1 else floordiv(away, abs(picked.stride))
    raise UnsupportedError(
        "the coordinate of an element of a part of a sparse tensor that starts at an extent",
        hint="assign to the whole of it, or to a part that starts at a number",
        location=location,
    )


def _access(
    trace: Trace, access: Access, view: View, base: Array, location: Location | None
) -> Access:
    """Return where an element of an operand is, over the dimensions of the base."""
    source, index = _source(trace, access)
    made: list[AffineExpr] = []
    own = base.read().view
    is_own = own is not None and own.value == source
    for p, expr in enumerate(index):
        place = next((r for r in range(len(view.axes)) if r in dims_of(expr)), None)
        if place is None:
            picked = view.picked[p] if is_own else None
            at_own = picked is not None and _is_one(trace, picked) and expr == picked.offset
            made.append(Dim(p) if at_own else expr)
            continue
        dims = view.axes[place]
        if not dims:
            made.append(substitute(expr, {place: Constant(0)}))
            continue
        picked = view.picked[dims[0]]
        here = tidy(add(picked.offset, mul(Constant(picked.stride), Dim(place))))
        same = trace.extents.same(source.type.shape[p], base.extents[dims[0]])
        if isinstance(picked.offset, Constant) and tidy(expr) == here and same:
            made.append(Dim(dims[0]))
            continue
        source, expr = _spread(trace, source, p, expr, (place, picked, dims[0]), base, location)
        made.append(expr)
    return Access(source, tuple(made))


def _is_one(trace: Trace, picked: Picked) -> bool:
    return trace.extents.same(picked.size, Constant(1))


def _source(trace: Trace, access: Access) -> tuple[Value, tuple[AffineExpr, ...]]:
    """Return the value that an operand is a slice of, and where its elements are there."""
    for op in trace.ops:
        match op:
            case ExtractSlice(result, source, offsets, _, strides, dropped) if (
                result == access.value
            ):
                if any(not isinstance(offset, Constant) for offset in offsets):
                    return access.value, access.index
                left = iter(access.index)
                index = [
                    offset if d in dropped else tidy(add(offset, mul(Constant(stride), next(left))))
                    for d, (offset, stride) in enumerate(zip(offsets, strides, strict=True))
                ]
                return source, tuple(index)
            case _:
                pass
    return access.value, access.index


def _spread(
    trace: Trace,
    source: Value,
    dim: int,
    expr: AffineExpr,
    along: tuple[int, Picked, int],
    base: Array,
    location: Location | None,
) -> tuple[Value, AffineExpr]:
    """Return an operand that has its elements at the coordinates of the base, and where."""
    from sparsejit.trace._arranging import pad

    place, picked, at = along
    first, step = substitute(expr, {place: Constant(0)}), _step(expr, place)
    if step is None or counts(picked.offset):
        raise UnsupportedError(
            "a part of a sparse tensor, assigned from elements whose places are not in a row",
            hint="compute a new sparse result instead",
            location=location,
        )
    rank, size = source.type.rank, picked.size
    last = tidy(add(first, mul(Constant(step), difference(size, Constant(1)))))
    low, high = (first, last) if step > 0 else (last, first)
    taken = slice(symbolic(trace, low), symbolic(trace, tidy(add(high, Constant(1)))), abs(step))
    rows: Any = trace.array(Cell(source.type.shape, of_value(source), location=location))
    rows = rows[tuple(taken if d == dim else slice(None) for d in range(rank))]
    if (step > 0) != (picked.stride > 0):
        rows = rows[tuple(slice(None, None, -1 if d == dim else 1) for d in range(rank))]
    rows = _apart(trace, rows, dim, abs(picked.stride))
    end = tidy(add(picked.offset, mul(Constant(picked.stride), difference(size, Constant(1)))))
    before, beyond = (picked.offset, end) if picked.stride > 0 else (end, picked.offset)
    after = difference(difference(base.extents[at], beyond), Constant(1))
    width = (symbolic(trace, before), symbolic(trace, after))
    fill = source.type.fill.value
    wide = pad(rows, [width if d == dim else (0, 0) for d in range(rank)], constant_values=fill)
    return wide.force(), Dim(at)


def _step(expr: AffineExpr, place: int) -> int | None:
    """Return how far an index moves with a dimension of the view, if that is always as far."""
    linear = as_linear(expr)
    return linear[0].get(place) if linear is not None and len(linear[0]) == 1 else None


def _apart(trace: Trace, rows: Any, dim: int, step: int) -> Any:
    """Return an array whose elements along ``dim`` are ``step`` apart, the fill between them."""
    from sparsejit.trace._arranging import pad

    if step == 1:
        return rows
    shape = tuple(symbolic(trace, extent) for extent in rows.extents)
    apart = rows.reshape(*shape[: dim + 1], 1, *shape[dim + 1 :])
    wide = pad(apart, [(0, step - 1 if d == dim + 1 else 0) for d in range(len(shape) + 1)])
    flat = wide.reshape(*shape[:dim], shape[dim] * step, *shape[dim + 1 :])
    until = slice(None, shape[dim] * step - (step - 1))
    return flat[tuple(until if d == dim else slice(None) for d in range(len(shape)))]
