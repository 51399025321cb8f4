"""Slices, reshapes, concatenations and padding of sparse tensors: entries that move elsewhere.

In: the operation and the buffers of its sources. Out: loops that visit the stored entries of each
source, compute where they go, collect them in one workspace, sort them and assemble the result.
Nothing is visited that is not stored; stored entries stay, but for fill values that only fill a
dense level of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparsejit.affine import AffineExpr, AffineMap, Constant, Dim, add, dims_of, identity_map, mul
from sparsejit.errors import Location, UnsupportedError
from sparsejit.formats import CSF, LevelKind
from sparsejit.ir import loops, tensor
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Nothing, ScalarExpr
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import INDEX, IteratorType, TensorType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, NoEntries, SparseBuffer
from sparsejit.sparsify_and_bufferize._conversion import where_not_fill
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
from sparsejit.sparsify_and_bufferize._sinks import Stmts

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
    target = _target(op, result, symbols, namer)
    statements: list[loops.Stmt] = []
    orders: list[tuple[int, ...] | None] = []
    for value, buffer, move in zip(_sources(op), sources, _movers(op, symbols), strict=True):
        if not isinstance(buffer, NoEntries):
            made, order = _moved(value, buffer, op, target, move, symbols, namer)
            statements += made
            orders.append(order)
    ordered = _comes_in_order(op, orders)
    end = target.epilogue_in_order() if ordered else target.epilogue()
    name = op.result.name
    facts = (
        Fact(FactKind.LOOP_ORDER, name, "stored entries"),
        Fact(FactKind.STORAGE, name, f"entries moved, {'' if ordered else 'sorted and '}assembled"),
    )
    return (*target.prologue(), *statements, *end), facts


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
    """A workspace whose entries may turn out to have come in the order of the result."""

    def epilogue_in_order(self) -> Stmts:
        """Return the epilogue where nothing is to sort."""
        self._sorted, self._values, self._kept = self._at, self._entries, self._count
        assemble = loops.Assemble(
            self._result.flat,
            self._result.format,
            self._extents,
            self._at,
            self._entries,
            self._count,
            self._kernel.fill,
        )
        return self._narrowed(assemble)


def _target(
    op: Arrangement, result: SparseBuffer, symbols: Mapping[int, loops.Expr], namer: Namer
) -> _Workspace:
    """The workspace of the result's entries; its loops are the dimensions of the result."""
    nowhere = _visit((), (), op.result, Nothing(op.result.type.dtype), op.location)
    space = level_space_of(nowhere, Grid({}, {}))
    return _Workspace(Kernel(nowhere, space, (), symbols, namer), result, None)


class _MovingSink:
    """Hands the entries that a loop nest meets on to ``target``, at other coordinates.

    They may come in any order, but not at the same time.
    """

    random_access = True
    storage = "moved"

    def __init__(self, kernel: Kernel, target: ScatterSink, move: Mover) -> None:
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


def _moved(
    value: Value,
    buffer: Buffer,
    op: Arrangement,
    target: ScatterSink,
    move: Mover,
    symbols: Mapping[int, loops.Expr],
    namer: Namer,
) -> tuple[Stmts, tuple[int, ...] | None]:
    """Return the loops over the entries of one source, and the order of its dimensions in them.

    The order is None where it is none of dimensions.
    """
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
            kernel = Kernel(visit, space, (buffer,), symbols, namer)
            try:
                nest = LoopNest(kernel, order, _MovingSink(kernel, target, move))
                return _in_sequence(nest.statements()), _order_of(value, space, order)
            except UnsupportedError as error:
                refused = refused or error
    assert refused is not None
    raise UnsupportedError(refused.what, hint=refused.hint, location=op.location)


def _order_of(source: Value, space: LevelSpace, order: LoopOrder) -> tuple[int, ...] | None:
    levels = source.type.format.levels
    plain = space.grid == Grid({}, {}) and not order.located
    return order.loops if plain and all(not lvl.type.nonordered for lvl in levels) else None


def _comes_in_order(op: Arrangement, orders: Sequence[tuple[int, ...] | None]) -> bool:
    """Whether all entries are met in the order of the result's levels."""
    levels = op.result.type.format.levels
    wanted = tuple(lvl.expr.index for lvl in levels if isinstance(lvl.expr, Dim))
    if len(wanted) != len(levels):
        return False
    match op:
        case tensor.Pad():
            return all(order == wanted for order in orders)
        case tensor.Concat(_, sources, axis):
            rising = len(sources) == 1 or axis == wanted[0]
            return rising and all(order == wanted for order in orders)
        case tensor.Reshape():
            rows = all(order == tuple(range(len(order or ()))) for order in orders)
            return rows and wanted == tuple(range(len(wanted)))
        case tensor.ExtractSlice():
            kept = [dim for dim in range(len(op.offsets)) if dim not in op.dropped]
            rising = all(op.strides[d] > 0 or _strided(op, d) is not None for d in kept)
            seen = tuple(kept[dim] for dim in wanted)
            return rising and all(
                order is not None and tuple(d for d in order if d in kept) == seen
                for order in orders
            )


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


def _in_sequence(statements: Stmts) -> Stmts:
    """Return the loops so that entries are collected one after the other."""

    def change(stmt: loops.Stmt) -> Iterable[loops.Stmt]:
        return (replace(stmt, parallel=False) if isinstance(stmt, loops.For) else stmt,)

    return map_body(statements, change_stmt=change)


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
