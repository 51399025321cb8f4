"""Sparse results whose elements come in any order and more than once: a workspace of entries.

The loops push each contribution with its level coordinates; afterwards the entries are sorted,
those of one coordinate combined in the order in which they came, and assembled. It works in any
rank and for any format, in time linear in the number of contributions.
"""

from __future__ import annotations

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir import loops
from sparsejit.ir.fold import fold_cast, identity_const
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._append_sink import refuse_unassembled
from sparsejit.sparsify_and_bufferize._buffers import Buffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._entry_counts import Bound, count_bound
from sparsejit.sparsify_and_bufferize._entry_order import levels_to_sort
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_space import LevelAccess
from sparsejit.sparsify_and_bufferize._scalar_lowering import literal
from sparsejit.sparsify_and_bufferize._sinks import PlainSink, Stmts, narrowed

__all__ = ["ScatterSink"]


class ScatterSink(PlainSink):
    """Collects contributions, then sorts, combines and assembles them.

    ``combine`` is the reduction of the operation, None where each element is written once;
    ``order`` that of the loops, None where it tells nothing about the order of contributions. It
    ``reserves`` room for entries where it can tell how many come. The values wait in the dtype of
    arithmetic: 16-bit floats are rounded once, at the end.
    """

    concurrent = False
    storage = "scattered into a workspace of entries, sorted, combined and assembled"

    def __init__(
        self,
        kernel: Kernel,
        result: SparseBuffer,
        combine: BinaryOp | None,
        order: LoopOrder | None,
        reserves: bool = True,
    ) -> None:
        refuse_unassembled(kernel, (LevelKind.BATCH,))
        self._kernel = kernel
        self._result = result
        self._combine = combine
        self._keys = len(kernel.space.output.levels)
        if order is not None:
            self._keys = levels_to_sort(kernel.space, order, repeated=combine is not None)
        name = result.values.name.removesuffix("_vals")
        fresh = kernel.namer.fresh
        levels = range(len(kernel.space.output.levels))
        dtype = result.values.dtype.compute
        self._at = tuple(loops.Memref(fresh(f"{name}_at{level}"), INDEX, 1) for level in levels)
        self._entries = loops.Memref(fresh(f"{name}_entries"), dtype, 1)
        self._count = loops.Var(fresh(f"{name}_count"), INDEX)
        self._order = loops.Memref(fresh(f"{name}_order"), INDEX, 1)
        self._sorted = tuple(
            loops.Memref(fresh(f"{name}_sorted{level}"), INDEX, 1) for level in levels
        )
        self._values = loops.Memref(fresh(f"{name}_values"), dtype, 1)
        self._kept = loops.Var(fresh(f"{name}_kept"), INDEX)
        self._room: loops.Expr | None = None
        if combine is None and reserves:
            self.reserve(count_bound(kernel))

    def reserve(self, bound: Bound | None) -> None:
        """Make room for as many entries beforehand, rather than as they come."""
        self._room = None if bound is None else bound.slots

    @property
    def random_access(self) -> bool:
        """Contributions may come in any order, but one that is added up comes as one."""
        return self._combine is None

    @property
    def result(self) -> Buffer:
        return self._result

    @property
    def _extents(self) -> tuple[loops.Expr, ...]:
        return tuple(self._kernel.extent(level.size) for level in self._kernel.space.output.levels)

    def prologue(self) -> Stmts:
        room = self._room or ix.index(0)
        allocs = tuple(loops.Alloc(memref, (room,)) for memref in (*self._at, self._entries))
        return (*allocs, loops.Let(self._count, ix.index(0), mutable=True))

    def epilogue(self) -> Stmts:
        if self._combine is None and not self._keys:
            return self._assembled_as_met()
        gathered = (*self._sorted, self._values)
        assemble = loops.Assemble(
            self._result.flat,
            self._result.format,
            self._extents,
            self._sorted,
            self._values,
            self._kept,
            self._kernel.fill,
        )
        pushed = (*self._at, self._entries, self._order)
        return (
            loops.Sort(
                self._order, self._at[: self._keys], self._extents[: self._keys], self._count
            ),
            *(loops.Alloc(memref, (self._count,)) for memref in gathered),
            loops.Let(self._kept, ix.index(0), mutable=True),
            self._gather(),
            *(loops.Dealloc(memref) for memref in pushed),
            *self._trimmed(),
            *self._unshifted(),
            *self._started(),
            *self._narrowed(assemble),
        )

    def _assembled_as_met(self) -> Stmts:
        """Return the epilogue where entries came in order."""
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
        return (*self._unshifted(), *self._narrowed(assemble))

    def _shift(self, level: LevelAccess) -> loops.Expr:
        """What is added to a coordinate while entries are sorted: diagonals may be negative."""
        if level.below is None:
            return ix.index(0)
        return ix.subtract(self._kernel.extent(level.below), ix.index(1))

    def _unshifted(self) -> Stmts:
        made: list[loops.Stmt] = []
        levels = self._kernel.space.output.levels
        for level, memref in zip(levels, self._sorted, strict=True):
            if level.is_diagonal:
                place = loops.Var(self._kernel.namer.fresh("q"), INDEX)
                real = ix.subtract(loops.Load(memref, (place,)), self._shift(level))
                store = loops.Store(memref, (place,), real)
                made.append(loops.For(place, ix.index(0), self._kept, (store,), parallel=True))
        return tuple(made)

    def _trimmed(self) -> Stmts:
        if self._combine is None:
            return ()
        return tuple(loops.Resize(memref, self._kept) for memref in (*self._sorted, self._values))

    def _gather(self) -> loops.Stmt:
        """Take the entries in order; one at the coordinate of the last one is combined with it."""
        fresh = self._kernel.namer.fresh
        place, entry = loops.Var(fresh("q"), INDEX), loops.Var(fresh("e"), INDEX)
        keep: list[loops.Stmt] = [
            loops.Store(target, (self._kept,), loops.Load(source, (entry,)))
            for target, source in zip(self._sorted, self._at, strict=True)
        ]
        value = loops.Load(self._entries, (entry,))
        keep.append(loops.Store(self._values, (self._kept,), value))
        keep.append(loops.Assign(self._kept, ix.add(self._kept, ix.index(1))))
        body: Stmts = tuple(keep)
        if self._combine is not None:
            last = ix.subtract(self._kept, ix.index(1))
            same = ix.all_of(
                tuple(
                    ix.equal(loops.Load(target, (last,)), loops.Load(source, (entry,)))
                    for target, source in zip(self._sorted, self._at, strict=True)
                )
            )
            repeated = ix.guarded(ix.less(ix.index(0), self._kept), same)
            combined = loops.Store(self._values, (last,), value, self._combine)
            body = (loops.If(repeated, (combined,), tuple(keep)),)
        look_up = loops.Let(entry, loops.Load(self._order, (place,)))
        return loops.For(place, ix.index(0), self._count, (look_up, *body))

    def _narrowed(self, assemble: loops.Assemble) -> Stmts:
        """Assemble, with values rounded to the result's dtype where that is a 16-bit float."""
        dtype = self._result.values.dtype
        frees = tuple(loops.Dealloc(memref) for memref in (*self._sorted, self._values))
        if dtype is self._values.dtype:
            return (assemble, *frees)
        name = self._kernel.namer.fresh(f"{self._values.name}_narrow")
        narrow = loops.Memref(name, dtype, 1)
        place = loops.Var(self._kernel.namer.fresh("q"), INDEX)
        element = narrowed(loops.Load(self._values, (place,)), dtype)
        body = (loops.Store(narrow, (place,), element),)
        return (
            loops.Alloc(narrow, (self._kept,)),
            loops.For(place, ix.index(0), self._kept, body, parallel=True),
            loops.Assemble(
                assemble.targets,
                assemble.format,
                assemble.level_extents,
                assemble.coordinates,
                narrow,
                assemble.count,
                assemble.fill,
            ),
            *frees,
            loops.Dealloc(narrow),
        )

    def load(self, state: State) -> loops.Expr:
        """A contribution starts from the identity; the fill value joins once, at the end."""
        if self._combine is None:
            return literal(self._kernel.fill)
        identity = identity_const(self._combine, self._entries.dtype)
        assert identity is not None
        return literal(identity)

    def _started(self) -> Stmts:
        """Combine each element with the fill value that the reduction starts from."""
        if self._combine is None:
            return ()
        fill = fold_cast(self._kernel.fill, self._entries.dtype)
        if fill == identity_const(self._combine, self._entries.dtype):
            return ()
        place = loops.Var(self._kernel.namer.fresh("q"), INDEX)
        start = loops.Store(self._values, (place,), literal(fill), self._combine)
        return (loops.For(place, ix.index(0), self._kept, (start,), parallel=True),)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        if reduce is None and self._kernel.reads_out and state.accumulator is None:
            raise UnsupportedError(
                "scattering with an update that is no reduction",
                hint="use an associative and commutative operation such as + or max",
            )
        places = (
            ix.add(self._kernel.at(level.expr, state), self._shift(level))
            for level in self._kernel.space.output.levels
        )
        pushed = [self._added(memref, at) for memref, at in zip(self._at, places, strict=True)]
        pushed.append(self._added(self._entries, value))
        pushed.append(loops.Assign(self._count, ix.add(self._count, ix.index(1))))
        return tuple(pushed)

    def _added(self, memref: loops.Memref, value: loops.Expr) -> loops.Stmt:
        if self._room is None:
            return loops.Push(memref, self._count, value)
        return loops.Store(memref, (self._count,), value)
