"""Slices, reshapes, concatenations and padding of sparse tensors: entries that move elsewhere.

In: the operation and the buffers of its sources. Out: loops that visit the stored entries of each
source and compute where they go. Where their order allows it they are counted and placed, else
collected in one workspace, sorted and assembled.
Nothing is visited that is not stored; stored entries stay, but for fill values that only fill a
dense level of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, identity_map
from sparsejit.errors import Location, UnsupportedError
from sparsejit.formats import CSF
from sparsejit.ir import loops, tensor
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_writing import Names
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
from sparsejit.sparsify_and_bufferize._entry_moves import (
    Arrangement,
    Mover,
    levels_to_sort_of,
    movers,
    walked,
)
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder, loop_orders
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_space import (
    Grid,
    LevelSpace,
    level_space_of,
    level_spaces_of,
)
from sparsejit.sparsify_and_bufferize._loop_nest import LoopNest
from sparsejit.sparsify_and_bufferize._options import Placing
from sparsejit.sparsify_and_bufferize._scatter_sink import ScatterSink
from sparsejit.sparsify_and_bufferize._sinks import PlainSink, Sink, Stmts

__all__ = ["rearrange_entries"]


def rearrange_entries(
    op: Arrangement,
    sources: Sequence[Buffer],
    result: SparseBuffer,
    symbols: Mapping[int, loops.Expr],
    namer: Names,
    placing: Placing,
) -> tuple[Stmts, tuple[Fact, ...]]:
    """Return the statements that define ``result``, and what was done; names come from ``namer``.

    ``placing`` is the option of the stage.
    Raises ``UnsupportedError`` for a result format that cannot be assembled.
    """
    entered = [
        _walk(value, buffer, op, move, symbols, namer)
        for value, buffer, move in zip(_sources(op), sources, movers(op, symbols), strict=True)
        if not isinstance(buffer, NoEntries)
    ]
    keys = levels_to_sort_of(op, [walk.dims for walk in entered])
    kernel = _target_kernel(op, symbols, namer)
    statements, how = _collected(kernel, result, op, entered, keys, placing)
    name = op.result.name
    facts = (
        Fact(FactKind.LOOP_ORDER, name, "stored entries"),
        Fact(FactKind.STORAGE, name, f"entries moved, {how}"),
    )
    return statements, facts


def _collected(
    kernel: Kernel,
    result: SparseBuffer,
    op: Arrangement,
    walks: Sequence[_Walk],
    keys: int,
    placing: Placing,
) -> tuple[Stmts, str]:
    """Return the statements that collect the entries of all walks in the result, and how."""
    bound = _total(op, walks)
    levels = kernel.space.output.levels
    if keys <= counted_levels(levels) and placing == "counted":
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
    target.reserve(bound if placing == "counted" else None)
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


def _target_kernel(op: Arrangement, symbols: Mapping[int, loops.Expr], namer: Names) -> Kernel:
    """What is known of the result's entries: its loops are the dimensions of the result."""
    nowhere = _visit((), (), op.result, Nothing(op.result.type.dtype), op.location)
    return Kernel(nowhere, level_space_of(nowhere, Grid({}, {})), (), symbols, namer)


class _MovingSink(PlainSink):
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
    namer: Names,
) -> _Walk:
    """Return the first way to visit the entries of one source that works."""
    kind = value.type
    levels = kind.format.levels
    drops = kind.is_dense or levels[-1].type.is_full
    fill = op.result.type.fill
    body = where_not_fill(fill) if drops else Arg(0)
    indices, extents = walked(op, value)
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
