"""From expressions to operations: every ``Generic`` of a trace is made here.

In: terms, each a ``Pointwise`` with the variables it is reduced over; the variables of the result
are 0, 1, ... in the order of its dimensions. Out: the value of the result, either fresh (``Empty``,
for a dense accumulation a ``Generic`` that fills it, then the computation) or built from the
destination's old value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, Dim, dims_of, substitute
from sparsejit.errors import Location, TensorTypeError
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import identity_const, zero_of
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Const,
    Coordinate,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    map_leaves,
)
from sparsejit.ir.tensor import Convert, Generic, Value
from sparsejit.ir.types import DType, IteratorType, TensorType
from sparsejit.trace._context import Trace
from sparsejit.trace._pointwise import (
    Access,
    Pointwise,
    pruned,
    renumbered,
)
from sparsejit.trace._result_formats import Layout, absent_fill, result_layout

__all__ = [
    "Term",
    "accumulate",
    "elementwise_into",
    "fill_with",
    "fold_into",
    "fresh",
    "identity_index",
    "requested",
]

Body = Callable[[ScalarExpr, ScalarExpr], ScalarExpr]


@dataclass(frozen=True, slots=True)
class Term:
    """``part`` combined by ``op`` over the variables ``reduced``; subtracted when ``negated``."""

    part: Pointwise
    reduced: tuple[int, ...] = ()
    op: BinaryOp = BinaryOp.ADD
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Loops:
    """The variables that loops run over, results first, and the extent of each."""

    order: tuple[int, ...]
    extents: tuple[AffineExpr, ...]

    @staticmethod
    def of(rank: int, reduced: Sequence[int], extents: Mapping[int, AffineExpr]) -> Loops:
        order = (*range(rank), *reduced)
        return Loops(order, tuple(extents[variable] for variable in order))


def _generic(
    trace: Trace,
    part: Pointwise,
    loops: Loops,
    dest: Value,
    dest_index: tuple[AffineExpr, ...],
    body: Body,
    location: Location | None,
) -> Value:
    """Append a ``Generic`` whose element is ``body(out, element of part)``."""
    part = pruned(part)
    element = body(Arg(len(part.accesses)), part.body)
    return _append(trace, part.accesses, element, loops, dest, dest_index, location)


def _append(
    trace: Trace,
    accesses: Sequence[Access],
    element: ScalarExpr,
    loops: Loops,
    dest: Value,
    dest_index: tuple[AffineExpr, ...],
    location: Location | None,
) -> Value:
    """Append a ``Generic``; ``element`` speaks of variables, the operation of loops."""
    numbers: dict[int, AffineExpr] = {variable: Dim(n) for n, variable in enumerate(loops.order)}

    def leaf(inner: ScalarExpr) -> ScalarExpr:
        if isinstance(inner, Coordinate):
            return Coordinate(loops.order.index(inner.loop))
        return inner

    count = len(loops.order)
    indices = (*(access.index for access in accesses), dest_index)
    maps = tuple(
        AffineMap(count, tuple(substitute(expr, numbers) for expr in index)) for index in indices
    )
    written = {dim for expr in maps[-1].results for dim in dims_of(expr)}
    kinds = tuple(
        IteratorType.PARALLEL if n in written else IteratorType.REDUCTION for n in range(count)
    )
    result = trace.value(dest.type)
    inputs = tuple(access.value for access in accesses)
    body = map_leaves(element, leaf)
    op = Generic(result, inputs, dest, maps, kinds, loops.extents, body, location)
    trace.ops.append(op)
    return result


def _replace(out: ScalarExpr, element: ScalarExpr) -> ScalarExpr:
    return element


def _combined(term: Term, dtype: DType) -> Body:
    """Return the body that accumulates; a computation at stored entries only stays one."""
    op = term.op
    identity = identity_const(op, dtype)

    def body(out: ScalarExpr, element: ScalarExpr) -> ScalarExpr:
        match element:
            case Select(Stored() as stored, then, Const() as orelse) if _same(orelse, identity):
                return Select(stored, combine(out, then), out)
            case _:
                return combine(out, element)

    def combine(out: ScalarExpr, element: ScalarExpr) -> ScalarExpr:
        if term.negated and not term.reduced:
            return Binary(BinaryOp.SUB, out, element)
        # Negated terms of a reduction are added: subtraction is not associative.
        return Binary(op, out, Unary(UnaryOp.NEG, element) if term.negated else element)

    return body


def _same(lhs: Const, rhs: Const | None) -> bool:
    return rhs is not None and lhs.value == rhs.value


def elementwise_into(
    trace: Trace,
    part: Pointwise,
    extents: Mapping[int, AffineExpr],
    dest: Value,
    dest_index: tuple[AffineExpr, ...],
    location: Location | None,
) -> Value:
    """Write ``part`` into ``dest`` at ``dest_index``, over the result variables in it."""
    variables = sorted({dim for expr in dest_index for dim in dims_of(expr)})
    loops = Loops(tuple(variables), tuple(extents[v] for v in variables))
    return _generic(trace, part, loops, dest, dest_index, _replace, location)


def accumulate(
    trace: Trace,
    term: Term,
    extents: Mapping[int, AffineExpr],
    dest: Value,
    dest_index: tuple[AffineExpr, ...],
    location: Location | None,
) -> Value:
    """Combine ``term`` onto what ``dest`` holds at ``dest_index``."""
    variables = sorted({dim for expr in dest_index for dim in dims_of(expr)})
    order = (*variables, *term.reduced)
    loops = Loops(order, tuple(extents[v] for v in order))
    body = _combined(term, dest.type.dtype)
    return _generic(trace, term.part, loops, dest, dest_index, body, location)


def fold_into(
    trace: Trace,
    part: Pointwise,
    reduced: Sequence[int],
    out: Value,
    extents: Mapping[int, AffineExpr],
    dest: Value,
    location: Location | None,
) -> Value:
    """Replace each element of ``dest``, one after the other over ``reduced``, by ``part``.

    ``part`` reads the element as that of ``out``, which stands for it. It need not be a reduction
    that could run in another order.
    """
    part = pruned(part)
    rank, inputs = dest.type.rank, [access for access in part.accesses if access.value != out]
    places = [
        len(inputs) if access.value == out else inputs.index(access) for access in part.accesses
    ]
    order = (*range(rank), *reduced)
    loops = Loops(order, tuple(extents[v] for v in order))
    element = renumbered(part.body, places)
    return _append(trace, inputs, element, loops, dest, identity_index(rank), location)


def identity_index(rank: int) -> tuple[AffineExpr, ...]:
    return tuple(Dim(d) for d in range(rank))


def _type(shape: Sequence[AffineExpr], dtype: DType, layout: Layout) -> TensorType:
    return TensorType(tuple(shape), dtype, layout.format, layout.fill)


def requested(format: Format, rank: int, location: Location | None) -> Format:
    """Return the format that is asked for; ``TensorTypeError`` where it has another rank."""
    if format.ndim != rank:
        raise TensorTypeError(
            f"the requested output format ({format}) has rank {format.ndim}, "
            f"the result rank {rank}",
            hint="ask for a format of the result's rank",
            location=location,
        )
    return format


def fresh(
    trace: Trace,
    term: Term,
    shape: Sequence[AffineExpr],
    extents: Mapping[int, AffineExpr],
    format: Format | None,
    location: Location | None,
) -> Value:
    """Compute one term into a new tensor of ``shape``; ``format`` None is inferred."""
    from sparsejit.trace._counting import counted, is_counted

    if is_counted(term):
        value = counted(trace, term, shape, extents, format, location)
        if value is not None:
            return value
    rank, part = len(shape), term.part
    reduction = term.op if term.reduced else None
    layout = result_layout(part, range(rank), reduction)
    if format is not None:
        wanted = requested(format, rank, location)
        fill = absent_fill(part) or zero_of(part.dtype)
        layout = Layout(wanted, zero_of(part.dtype) if wanted.is_dense else fill)
    at = identity_index(rank)
    if reduction is None:
        dest = trace.empty(_type(shape, part.dtype, layout), location)
        return elementwise_into(trace, part, extents, dest, at, location)
    identity = identity_const(reduction, part.dtype)
    if not layout.format.is_dense and not _same(layout.fill, identity):
        # What is not stored would be the identity, not the fill: reduce densely, then convert.
        dense = fresh(trace, term, shape, extents, Dense(rank), location)
        result = trace.value(_type(shape, part.dtype, Layout(layout.format, zero_of(part.dtype))))
        trace.ops.append(Convert(result, dense, location))
        return result
    dest = trace.empty(_type(shape, part.dtype, layout), location)
    if layout.format.is_dense and identity is not None:
        dest = fill_with(trace, identity, extents, dest, at, location)
    return accumulate(trace, term, extents, dest, at, location)


def fill_with(
    trace: Trace,
    value: Const,
    extents: Mapping[int, AffineExpr],
    dest: Value,
    dest_index: tuple[AffineExpr, ...],
    location: Location | None,
) -> Value:
    """Write a constant at ``dest_index``."""
    return elementwise_into(
        trace, Pointwise(value, (), value.dtype), extents, dest, dest_index, location
    )
