"""Sparse results whose innermost level is scattered into, row by row: a dense workspace.

All levels but the last are appended in order. The last one meets its coordinates in any order and
more than once while its parent is open: values go to a dense array of the level's extent, the
coordinates met to a list; when the parent closes, the list is sorted and appended. A stamp for each
parent tells what the array holds of it, so nothing is cleared. Source: Gustavson's sparse
accumulator; MLIR's expanded access pattern.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit.errors import UnsupportedError
from sparsejit.ir import loops
from sparsejit.ir.loop_walk import free_memrefs
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._append_sink import AppendSink
from sparsejit.sparsify_and_bufferize._buffers import SparseBuffer
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._scalar_lowering import literal
from sparsejit.sparsify_and_bufferize._sinks import Stmts, narrowed

__all__ = ["WorkspaceSink"]


class WorkspaceSink(AppendSink):
    """Appends all levels but the last, which is collected in a workspace under each parent."""

    storage = "appended row by row through a dense workspace"

    def __init__(self, kernel: Kernel, result: SparseBuffer, combine: BinaryOp) -> None:
        super().__init__(kernel, result)
        if self._has_block:
            raise UnsupportedError("a dense level after the scattered one")
        if len(self._sizes) < 2 or not result.format.levels[0].type.is_full:
            raise UnsupportedError("a workspace of the extent of a level that may be very long")
        self._combine = combine
        name = result.values.name.removesuffix("_vals")
        fresh = kernel.namer.fresh
        dtype = result.values.dtype.compute
        self._sums = loops.Memref(fresh(f"{name}_sums"), dtype, 1)
        self._stamps = loops.Memref(fresh(f"{name}_stamps"), INDEX, 1)
        self._met = loops.Memref(fresh(f"{name}_met"), INDEX, 1)
        self._stamp = loops.Var(fresh(f"{name}_stamp"), INDEX)
        self._number = loops.Var(fresh(f"{name}_number"), INDEX)

    @property
    def _scattered(self) -> int:
        return len(self._sizes) - 1

    def prologue(self) -> Stmts:
        extent = self._sizes[self._scattered]
        return (
            *super().prologue(),
            loops.Alloc(self._sums, (extent,)),
            loops.Alloc(self._stamps, (extent,), Const(0, INDEX)),
            loops.Alloc(self._met, (ix.index(0),)),
            loops.Let(self._stamp, ix.index(0), mutable=True),
            loops.Let(self._number, ix.index(0), mutable=True),
        )

    def epilogue(self) -> Stmts:
        frees = tuple(loops.Dealloc(memref) for memref in (self._sums, self._stamps, self._met))
        return (*super().epilogue(), *frees)

    def with_private(self, body: Stmts) -> Stmts:
        """Return the loops with the workspace as what parts of their iterations may have alone.

        Loops that do not use it, such as one that cuts stored rows into parts, stay as they are.
        """
        private = (self._sums, self._stamps, self._met, self._stamp, self._number)
        return tuple(
            replace(stmt, private=private)
            if isinstance(stmt, loops.For) and self._sums in free_memrefs(stmt.body)
            else stmt
            for stmt in body
        )

    def enter_loop(self, loop: int, state: State) -> Stmts:
        if loop == self._loops[self._scattered]:
            return ()
        return super().enter_loop(loop, state)

    def enter_coordinate(self, loop: int, state: State) -> tuple[Stmts, State, Stmts]:
        if loop == self._loops[self._scattered]:
            return (), state, ()
        before, inner, after = super().enter_coordinate(loop, state)
        if loop != self._loops[self._scattered - 1]:
            return before, inner, after
        opened = (
            *self._catch_up_last(inner),
            loops.Assign(self._stamp, ix.add(self._stamp, ix.index(1))),
            loops.Assign(self._number, ix.index(0)),
        )
        return (*before, *opened), inner, (*self._flush(inner), *after)

    def _catch_up_last(self, state: State) -> Stmts:
        if self._tail is not None and self._scattered > self._tail:
            return ()
        stored = self._stored[self._scattered]
        return self._catch_up(stored, self._parent(self._scattered, state))

    def _flush(self, state: State) -> Stmts:
        """Append what was met under this parent, in order."""
        fresh = self._kernel.namer.fresh
        place, coordinate = loops.Var(fresh("q"), INDEX), loops.Var(fresh("c"), INDEX)
        last = self._loops[self._scattered]
        at = replace(state, loop_values={**state.loop_values, last: coordinate})
        value = loops.Load(self._sums, (coordinate,))
        body = (
            loops.Let(coordinate, loops.Load(self._met, (place,))),
            *super().store(at, value, None),
        )
        return (
            loops.SortPrefix(self._met, self._number),
            loops.For(place, ix.index(0), self._number, body),
        )

    def load(self, state: State) -> loops.Expr:
        return literal(self._kernel.fill)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        if reduce is not self._combine:
            raise UnsupportedError("a reduction of its own inside of a scattered one")
        coordinate = state.loop_values[self._loops[self._scattered]]
        known = ix.equal(loops.Load(self._stamps, (coordinate,)), self._stamp)
        first = loops.Binary(reduce, literal(self._kernel.fill), value, self._sums.dtype)
        started = value if self._starts_neutral else first
        meet = (
            loops.Store(self._stamps, (coordinate,), self._stamp),
            loops.Store(self._sums, (coordinate,), started),
            loops.Push(self._met, self._number, narrowed(coordinate, INDEX)),
            loops.Assign(self._number, ix.add(self._number, ix.index(1))),
        )
        add = (loops.Store(self._sums, (coordinate,), value, reduce),)
        return (loops.If(known, add, meet),)

    @property
    def _starts_neutral(self) -> bool:
        """Whether the fill value, from which a reduction starts, changes nothing."""
        info = self._combine.info
        return info.left_identity == self._kernel.fill.value
