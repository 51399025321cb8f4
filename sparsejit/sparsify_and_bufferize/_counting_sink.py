"""Sparse results in another order than entries are met: count them, add up, put each in its place.

The loops run twice. First they count the children of each parent; the sums of the counts are the
positions; then each entry goes to the next free slot of its parent, from the front or from the
back. It takes time linear in entries and parents. Entries of one parent stay in the order in which
they were met, or its reverse, so that has to be the right one. Where dense levels come last, a
child is a block, and entries of one block are met one after the other. Source: Gustavson's
transposition; a counting sort.
"""

from __future__ import annotations

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, SparseBuffer, coordinates_of
from sparsejit.sparsify_and_bufferize._entry_counts import count_bound
from sparsejit.sparsify_and_bufferize._entry_order import levels_to_sort
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_space import LevelAccess
from sparsejit.sparsify_and_bufferize._loop_nest import LoopNest
from sparsejit.sparsify_and_bufferize._scalar_lowering import literal
from sparsejit.sparsify_and_bufferize._sinks import PlainSink, Stmts, narrowed

__all__ = [
    "Buckets",
    "CountingSink",
    "PlacingSink",
    "TallySink",
    "counted_levels",
    "counted_parents",
]

_ADD = BinaryOp.ADD


def counted_levels(levels: tuple[LevelAccess, ...]) -> int:
    """Return ``counted_parents``, or -1 where entries cannot be counted and placed."""
    try:
        return counted_parents(levels)
    except UnsupportedError:
        return -1


def counted_parents(levels: tuple[LevelAccess, ...]) -> int:
    """Return how many full levels come first in a result that can be counted and placed.

    After them comes one compressed level, with the singletons that go with it or with dense levels
    below it, and no more. Raises ``UnsupportedError`` for other levels.
    """
    full = next((n for n, lvl in enumerate(levels) if not lvl.type.is_full), len(levels))
    parents, stored = levels[:full], levels[full:]
    kinds = [lvl.type.kind for lvl in stored]
    dense = all(lvl.type.kind is LevelKind.DENSE and not lvl.is_diagonal for lvl in parents)
    run = kinds[:1] == [LevelKind.COMPRESSED] and (
        set(kinds[1:]) <= {LevelKind.SINGLETON} or set(kinds[1:]) <= {LevelKind.DENSE}
    )
    if not (parents and dense and run):
        raise UnsupportedError("entries are placed under dense levels only, into one level")
    return full


class Buckets:
    """The result's arrays: positions count first, and then say where the next entry goes."""

    def __init__(self, kernel: Kernel, result: SparseBuffer, *, backward: bool = False) -> None:
        self._kernel = kernel
        self._levels = kernel.space.output.levels
        self._full = counted_parents(self._levels)
        self.result = result
        pos = result.positions[self._full]
        assert pos is not None
        self._pos = pos
        self._one = loops.Lit(Const(1, pos.dtype))
        self._backward = backward
        below = self._levels[self._full + 1 :]
        self._block = below if below and below[0].type.is_full else ()
        name = result.values.name.removesuffix("_vals")
        self._lasts = loops.Memref(kernel.namer.fresh(f"{name}_lasts"), INDEX, 1)

    @property
    def _parents(self) -> loops.Expr:
        count: loops.Expr = ix.index(1)
        for level in self._levels[: self._full]:
            count = ix.multiply(count, self._kernel.extent(level.size))
        return count

    def _parent(self, state: State) -> loops.Expr:
        number: loops.Expr = ix.index(0)
        for level in self._levels[: self._full]:
            size = self._kernel.extent(level.size)
            number = ix.add(ix.multiply(number, size), self._kernel.at(level.expr, state))
        return number

    def opened(self) -> Stmts:
        """Return what comes before anything is counted."""
        extent = ix.add(self._parents, ix.index(1))
        made: Stmts = (loops.Alloc(self._pos, (extent,), Const(0, self._pos.dtype)),)
        if self._block:
            made += (loops.Alloc(self._lasts, (self._parents,), Const(-1, INDEX)),)
        return made

    def count(self, state: State) -> Stmts:
        """Return what counts the entry at ``state``: in the place after its parent's, or there."""
        parent = self._parent(state)
        place = parent if self._backward else ix.add(parent, ix.index(1))
        return self._if_new(state, parent, (loops.Store(self._pos, (place,), self._one, _ADD),))

    def _if_new(self, state: State, parent: loops.Expr, then: Stmts) -> Stmts:
        """Return what does ``then`` for the first entry of a block."""
        if not self._block:
            return then
        here = self._kernel.at(self._levels[self._full].expr, state)
        known = ix.equal(loops.Load(self._lasts, (parent,)), here)
        return (loops.If(known, (), (*then, loops.Store(self._lasts, (parent,), here))),)

    def counted(self, total: loops.Expr | None = None) -> Stmts:
        """Return what comes between counting and placing; ``total`` is the count if known."""
        made: list[loops.Stmt] = [loops.Scan(self._pos, loops.ScanOp.SUM)]
        if total is None or self._block:
            name = self._kernel.namer.fresh(f"{self.result.values.name}_count")
            total = loops.Var(name, INDEX)
            made.append(loops.Let(total, ix.as_index(loops.Load(self._pos, (self._parents,)))))
        columns = ix.index(len(self._levels) - self._full)
        memrefs = [coordinates_of(self.result, number) for number in self._stored]
        for memref, column in dict.fromkeys((memref, column or 0) for memref, column in memrefs):
            if column == 0:
                made.append(loops.Alloc(memref, (total, columns)[: memref.rank]))
        if not self._block:
            return (*made, loops.Alloc(self.result.values, (total,)))
        slots = total
        for level in self._block:
            slots = ix.multiply(slots, self._kernel.extent(level.size))
        place = loops.Var(self._kernel.namer.fresh("f"), INDEX)
        forget = loops.Store(self._lasts, (place,), ix.index(-1))
        return (
            *made,
            loops.Alloc(self.result.values, (slots,), self._kernel.fill),
            loops.For(place, ix.index(0), self._parents, (forget,), parallel=True),
        )

    @property
    def _stored(self) -> range:
        """The levels with coordinates."""
        return range(self._full, len(self._levels) - len(self._block))

    def place(self, state: State, value: loops.Expr) -> Stmts:
        """Return what puts the entry at ``state`` in its place."""
        fresh = self._kernel.namer.fresh
        slot, parent = loops.Var(fresh("q"), INDEX), loops.Var(fresh("parent"), INDEX)
        values = self.result.values
        opened = (*self._next(slot, parent), *self._coordinates(state, slot))
        if not self._backward:
            opened += (loops.Store(self._pos, (parent,), self._one, _ADD),)
        at: loops.Expr = slot
        if self._block:
            at = ix.as_index(loops.Load(self._pos, (parent,)))
            at = at if self._backward else ix.subtract(at, ix.index(1))
            for level in self._block:
                inside = self._kernel.at(level.expr, state)
                at = ix.add(ix.multiply(at, self._kernel.extent(level.size)), inside)
        return (
            loops.Let(parent, self._parent(state)),
            *self._if_new(state, parent, opened),
            loops.Store(values, (at,), narrowed(value, values.dtype)),
        )

    def _next(self, slot: loops.Var, parent: loops.Var) -> Stmts:
        """Return what takes the next free slot of a parent."""
        free = ix.as_index(loops.Load(self._pos, (parent,)))
        if not self._backward:
            return (loops.Let(slot, free),)
        taken = loops.Store(self._pos, (parent,), narrowed(slot, self._pos.dtype))
        return (loops.Let(slot, ix.subtract(free, ix.index(1))), taken)

    def _coordinates(self, state: State, slot: loops.Var) -> Stmts:
        made: list[loops.Stmt] = []
        for number in self._stored:
            memref, column = coordinates_of(self.result, number)
            at = (slot,) if column is None else (slot, ix.index(column))
            coordinate = self._kernel.at(self._levels[number].expr, state)
            made.append(loops.Store(memref, at, narrowed(coordinate, memref.dtype)))
        return tuple(made)

    def closed(self) -> Stmts:
        """Return what makes positions of ends: each is the end of the parent before."""
        freed = (loops.Dealloc(self._lasts),) if self._block else ()
        if self._backward:
            return freed
        fresh, pos = self._kernel.namer.fresh, self._pos
        start, end = loops.Var(fresh("start"), pos.dtype), loops.Var(fresh("end"), pos.dtype)
        place = loops.Var(fresh("f"), INDEX)
        body = (
            loops.Let(end, loops.Load(pos, (place,))),
            loops.Store(pos, (place,), start),
            loops.Assign(start, end),
        )
        last = ix.add(self._parents, ix.index(1))
        zero = loops.Lit(Const(0, pos.dtype))
        shift = loops.For(place, ix.index(0), last, body)
        return (*freed, loops.Let(start, zero, mutable=True), shift)


class _Placed(PlainSink):
    """What both passes have in common: nothing happens around loops."""

    random_access = True
    concurrent = False
    storage = "counted, then placed"

    def __init__(self, kernel: Kernel, buckets: Buckets) -> None:
        self._kernel = kernel
        self._buckets = buckets

    @property
    def result(self) -> Buffer:
        return self._buckets.result

    def load(self, state: State) -> loops.Expr:
        return literal(self._kernel.fill)


class TallySink(_Placed):
    """The first pass: counts entries, whatever their values."""

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        return self._buckets.count(state)


class PlacingSink(_Placed):
    """The second pass: puts entries in their places."""

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        assert reduce is None
        return self._buckets.place(state, value)


class CountingSink(PlacingSink):
    """The second pass, with the first one before it."""

    def __init__(self, kernel: Kernel, order: LoopOrder, result: SparseBuffer) -> None:
        full = counted_parents(kernel.space.output.levels)
        forward = levels_to_sort(kernel.space, order) <= full
        backward = not forward and levels_to_sort(kernel.space, order, backward=True) <= full
        if kernel.reads_out or order.located or not (forward or backward):
            raise UnsupportedError("entries of one parent do not come once and in order")
        super().__init__(kernel, Buckets(kernel, result, backward=backward))
        self._order = order

    def prologue(self) -> Stmts:
        kernel, buckets = self._kernel, self._buckets
        first = LoopNest(kernel, self._order, TallySink(kernel, buckets)).statements()
        bound = count_bound(kernel)
        total = bound.slots if bound is not None and bound.is_exact else None
        return (*buckets.opened(), *first, *buckets.counted(total))

    def epilogue(self) -> Stmts:
        return self._buckets.closed()
