"""Slices, reshapes, concatenations and padding of sparse tensors: entries that move elsewhere.

In: the operation and the buffers of its sources. Out: loops that visit the stored entries of each
source and compute where they go. Where their order allows it they are counted and placed, else
collected in one workspace, sorted and assembled.
Nothing is visited that is not stored; stored entries stay, but for fill values that only fill a
dense level of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, add, dims_of, identity_map, mul
from sparsejit.errors import Location, UnsupportedError
from sparsejit.formats import CSF, LevelKind
from sparsejit.ir import loops, tensor
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Nothing, ScalarExpr
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import INDEX, IteratorType, TensorType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, NoEntries, SparseBuffer
from sparsejit.sparsify_and_bufferize._conversion import where_not_fill
from sparsejit.sparsify_and_bufferize._counting_sink import (
    Buckets,
    PlacingSink,
    TallySink,
    counted_levels,
)
from sparsejit.sparsify_and_bufferize._entry_counts import Bound, count_bound
from sparsejit.sparsify_and_bufferize._entry_order import Form, prefix_to_sort
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder, loop_orders
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_space import (
    Grid,
    LevelSpace,
    level_space_of,
    level_spaces_of,
)
from sparsejit.sparsify_and_bufferize._loop_nest import LoopNest
from sparsejit.sparsify_and_bufferize._naming import Namer
from sparsejit.sparsify_and_bufferize._scatter_sink import ScatterSink
from sparsejit.sparsify_and_bufferize._sinks import Sink, Stmts

__all__ = ["Arrangement", "delinearized", "linearized", "rearrange_entries"]

Arrangement = tensor.ExtractSlice | tensor.Reshape | tensor.Concat | tensor.Pad
Exprs = tuple[loops.Expr, ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """Where an entry goes: its new coordinates, valid where all ``conditions`` hold."""

    coordinates: Exprs
    conditions: Exprs = ()


Mover = Callable[[Exprs], _Move]
Lower = Callable[[AffineExpr], loops.Expr]


def rearrange_entries(
    op: Arrangement,
    sources: Sequence[Buffer],
    result: SparseBuffer,
    symbols: Mapping[int, loops.Expr],
    namer: Namer,
) -> tuple[Stmts, tuple[Fact, ...]]:
    """Return the statements that define ``result``, and what was done; names come from ``namer``.

    Raises ``UnsupportedError`` for a result format that cannot be assembled.
    """
    entered = [
        _walk(value, buffer, op, move, symbols, namer)
        for value, buffer, move in zip(_sources(op), sources, _movers(op, symbols), strict=True)
        if not isinstance(buffer, NoEntries)
    ]
    keys = _levels_to_sort(op, [walk.dims for walk in entered])
    kernel = _target_kernel(op, symbols, namer)
    statements, how = _collected(kernel, result, op, entered, keys)
    name = op.result.name
    facts = (
        Fact(FactKind.LOOP_ORDER, name, "stored entries"),
        Fact(FactKind.STORAGE, name, f"entries moved, {how}"),
    )
    return statements, facts


def _collected(
    kernel: Kernel, result: SparseBuffer, op: Arrangement, walks: Sequence[_Walk], keys: int
) -> tuple[Stmts, str]:
    """Return the statements that collect the entries of all walks in the result, and how."""
    bound = _total(op, walks)
    levels = kernel.space.output.levels
    if keys <= counted_levels(levels):
        buckets = Buckets(kernel, result)
        total = bound.slots if bound is not None and bound.is_exact else None
        counts = [walk.into(TallySink(kernel, buckets)) for walk in walks]
        places = [walk.into(PlacingSink(kernel, buckets)) for walk in walks]
        statements = (
            *buckets.opened(),
            *chain.from_iterable(counts),
            *buckets.counted(total),
            *chain.from_iterable(places),
            *buckets.closed(),
        )
        return statements, "counted and placed"
    target = _Workspace(kernel, result, None, None)
    target.reserve(bound)
    moved = chain.from_iterable([walk.into(target) for walk in walks])
    end = target.epilogue_by(keys)
    how = "sorted and assembled" if keys else "assembled"
    return (*target.prologue(), *moved, *end), how


def _sources(op: Arrangement) -> tuple[Value, ...]:
    return op.sources if isinstance(op, tensor.Concat) else (op.source,)


def _visit(
    source: tuple[Value, ...],
    indices: Sequence[AffineExpr],
    result: Value,
    body: ScalarExpr,
    location: Location | None,
) -> Generic:
    """An operation that visits all elements of ``result``, and the source at ``indices``."""
    rank = result.type.rank
    return Generic(
        result,
        source,
        result,
        (*(AffineMap(rank, tuple(indices)) for _ in source), identity_map(rank)),
        (IteratorType.PARALLEL,) * rank,
        result.type.shape,
        body,
        location,
    )


class _Workspace(ScatterSink):
    """A workspace of which it turns out how its entries came."""

    def epilogue_by(self, keys: int) -> Stmts:
        """Return the epilogue where entries have to be sorted by so many levels."""
        self._keys = keys
        return self.epilogue()


def _target_kernel(op: Arrangement, symbols: Mapping[int, loops.Expr], namer: Namer) -> Kernel:
    """What is known of the result's entries: its loops are the dimensions of the result."""
    nowhere = _visit((), (), op.result, Nothing(op.result.type.dtype), op.location)
    return Kernel(nowhere, level_space_of(nowhere, Grid({}, {})), (), symbols, namer)


class _MovingSink:
    """Hands the entries that a loop nest meets on to ``target``, at other coordinates.

    They may come in any order, but not at the same time.
    """

    random_access = True
    concurrent = False
    storage = "moved"

    def __init__(self, kernel: Kernel, target: Sink, move: Mover) -> None:
        self._kernel = kernel
        self._target = target
        self._move = move

    @property
    def result(self) -> Buffer:
        return self._target.result

    def prologue(self) -> Stmts:
        return ()

    def epilogue(self) -> Stmts:
        return ()

    def enter_loop(self, loop: int, state: State) -> Stmts:
        return ()

    def enter_coordinate(self, loop: int, state: State) -> tuple[Stmts, State, Stmts]:
        return (), state, ()

    def load(self, state: State) -> loops.Expr:
        raise AssertionError("what moves is read from its source")

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        kernel = self._kernel
        own = tuple(kernel.at(expr, state) for expr in kernel.space.coordinates)
        move = self._move(own)
        places = [loops.Var(kernel.namer.fresh("at"), INDEX) for _ in move.coordinates]
        lets = tuple(map(loops.Let, places, move.coordinates))
        there = State(dict(enumerate(places)), {}, frozenset())
        push = (*lets, *self._target.store(there, value, None))
        return (loops.If(ix.all_of(move.conditions), push),) if move.conditions else push

    def clear(self, state: State) -> Stmts:
        return ()


class _Nowhere(TallySink):
    """Takes entries and does nothing, to see whether a walk is possible."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        return (loops.Let(loops.Var(self._kernel.namer.fresh("seen"), INDEX), ix.index(1)),)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A way to visit the entries of one source, and ``dims``, the order in which they are met.

    It is None where that is no order of dimensions.
    """

    kernel: Kernel
    order: LoopOrder
    move: Mover
    dims: tuple[int, ...] | None

    def into(self, target: Sink) -> Stmts:
        """Return the loops that hand each entry to ``target``, one after the other."""
        return LoopNest(
            self.kernel, self.order, _MovingSink(self.kernel, target, self.move)
        ).statements()


def _walk(
    value: Value,
    buffer: Buffer,
    op: Arrangement,
    move: Mover,
    symbols: Mapping[int, loops.Expr],
    namer: Namer,
) -> _Walk:
    """Return the first way to visit the entries of one source that works."""
    kind = value.type
    levels = kind.format.levels
    drops = kind.is_dense or levels[-1].type.is_full
    fill = op.result.type.fill
    body = where_not_fill(fill) if drops else Arg(0)
    indices, extents = _walked(op, value)
    # Its format only says that the result is sparse; no such tensor is made.
    seen = Value(value.name, TensorType(extents, kind.dtype, CSF(kind.rank), fill))
    visit = _visit((value,), indices, seen, body, op.location)
    refused: UnsupportedError | None = None
    for space in level_spaces_of(visit):
        for order in loop_orders(space, scattered=True):
            attempt = Kernel(visit, space, (buffer,), symbols, namer.fork())
            try:
                _Walk(attempt, order, move, None).into(_Nowhere(attempt))
            except UnsupportedError as error:
                refused = refused or error
                continue
            dims = _order_of(value, space, order)
            return _Walk(Kernel(visit, space, (buffer,), symbols, namer), order, move, dims)
    assert refused is not None
    raise UnsupportedError(refused.what, hint=refused.hint, location=op.location)


def _total(op: Arrangement, walks: Sequence[_Walk]) -> Bound | None:
    """Return how many entries all walks meet at most, None where that is not known."""
    bounds = [count_bound(walk.kernel) for walk in walks]
    slots: loops.Expr = ix.index(0)
    for bound in bounds:
        if bound is None:
            return None
        slots = ix.add(slots, bound.slots)
    whole = not isinstance(op, tensor.ExtractSlice)
    return Bound(slots, whole and all(bound is not None and bound.is_exact for bound in bounds))


def _order_of(source: Value, space: LevelSpace, order: LoopOrder) -> tuple[int, ...] | None:
    levels = source.type.format.levels
    plain = space.grid == Grid({}, {}) and not order.located
    return order.loops if plain and all(not lvl.type.nonordered for lvl in levels) else None


def _levels_to_sort(op: Arrangement, orders: Sequence[tuple[int, ...] | None]) -> int:
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


def _walked(
    op: Arrangement, source: Value
) -> tuple[tuple[AffineExpr, ...], tuple[AffineExpr, ...]]:
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


# ---------------------------------------------------------------- where entries go


def _movers(op: Arrangement, symbols: Mapping[int, loops.Expr]) -> Sequence[Mover]:
    """Return, for each source, where its entries go."""

    def lower(expr: AffineExpr) -> loops.Expr:
        return ix.lower_affine(expr, symbols)

    match op:
        case tensor.ExtractSlice():
            return (lambda own: _sliced(op, own, lower),)
        case tensor.Reshape(result, source):
            old, new = (tuple(map(lower, value.type.shape)) for value in (source, result))
            return (lambda own: _Move(delinearized(linearized(own, old), new)),)
        case tensor.Pad():
            low = tuple(map(lower, op.low))
            return (lambda own: _Move(tuple(map(ix.add, own, low))),)
        case tensor.Concat():
            moves: list[Mover] = []
            start: AffineExpr = Constant(0)
            for source in op.sources:
                moves.append(_shifted(op.axis, lower(start)))
                start = add(start, source.type.shape[op.axis])
            return moves


def _shifted(axis: int, start: loops.Expr) -> Mover:
    def move(own: Exprs) -> _Move:
        return _Move((*own[:axis], ix.add(own[axis], start), *own[axis + 1 :]))

    return move


def _sliced(op: tensor.ExtractSlice, own: Exprs, lower: Lower) -> _Move:
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
    return _Move(tuple(places), tuple(conditions))


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
