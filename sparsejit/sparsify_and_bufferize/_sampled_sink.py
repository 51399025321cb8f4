"""Sparse results with some of the entries of one operand: sampled products, intersections.

Each slot of the operand has room for a value and a flag that says whether something was written.
So elements are written in any order and more than once, without a workspace of the result's extent
and without sorting; in the end the slots that were written are counted row by row, and moved
together. What decides whether there is an element is done once, not first to count.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir import loops
from sparsejit.ir.loops import ScanOp
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._sinks import PlainSink, Stmts, narrowed

__all__ = ["SampledSink"]


class SampledSink(PlainSink):
    """Some of the entries of input ``operand``, stored like it: full levels, then a compressed one.

    With ``keeps_slots`` they stay where they are, in the slots of the operand, with their flags.
    Of an operand that is like this the result has just the entries: each slot gets a value, where
    the one that it is made of was, which nobody else reads.
    Raises ``UnsupportedError`` for another format.
    """

    random_access = True
    concurrent = True

    def __init__(
        self, kernel: Kernel, operand: int, result: SparseBuffer, *, keeps_slots: bool = False
    ) -> None:
        source = kernel.inputs[operand]
        *upper, last = result.format.levels
        compressed = last.type.kind is LevelKind.COMPRESSED and not last.type.nonunique
        if not compressed or not all(level.type.kind is LevelKind.DENSE for level in upper):
            raise UnsupportedError("sampling into another format than full levels and one stored")
        dtype = result.values.dtype
        if not isinstance(source, SparseBuffer) or dtype.compute is not dtype:
            raise UnsupportedError("sampling into 16-bit floats, which are not added up")
        self._kernel = kernel
        self._operand = operand
        self._source = source
        self._result = result
        name = result.values.name.removesuffix("_vals")
        fresh = kernel.namer.fresh
        self.flagged = None if source.met is None else operand
        replaces = source.met is not None and source.values.dtype is dtype
        self._room = source.values if replaces else loops.Memref(fresh(f"{name}_room"), dtype, 1)
        self._met = source.met or loops.Memref(fresh(f"{name}_met"), DType.BOOL, 1)
        self._made = tuple(m for m in (self._room, self._met) if m not in source.owned)
        self._keeps_slots = keeps_slots

    @property
    def result(self) -> Buffer:
        if self._keeps_slots:
            return replace(self._source, values=self._room, met=self._met)
        return self._result

    @property
    def storage(self) -> str:
        name = self._kernel.op.inputs[self._operand].name
        if self._keeps_slots:
            return f"some entries of {name}, in its slots"
        return f"some entries of {name}, moved together in the end"

    def prologue(self) -> Stmts:
        slots = (loops.DimOf(self._source.values, 0),)
        start = self._kernel.fill if self._kernel.reads_out else None
        fills = {self._room: start, self._met: ix.true(False).const}
        return tuple(loops.Alloc(memref, slots, fills[memref]) for memref in self._made)

    def epilogue(self) -> Stmts:
        if self._keeps_slots:
            return ()
        level = len(self._result.format.levels) - 1
        pos, crd = self._result.positions[level], self._result.coordinates[level]
        assert pos is not None
        assert crd is not None
        parents: loops.Expr = ix.index(1)
        for above in self._kernel.space.output.levels[:-1]:
            parents = ix.multiply(parents, self._kernel.extent(above.size))
        total = ix.as_index(loops.Load(pos, (parents,)))
        return (
            loops.Alloc(pos, (ix.add(parents, ix.index(1)),)),
            loops.Store(pos, (ix.index(0),), narrowed(ix.index(0), pos.dtype)),
            self._counted(pos, parents),
            loops.Scan(pos, ScanOp.SUM),
            loops.Alloc(crd, (total,)),
            loops.Alloc(self._result.values, (total,)),
            self._moved(pos, crd, parents),
            *(loops.Dealloc(memref) for memref in self._made),
        )

    def _rows(self, row: loops.Var) -> tuple[loops.Expr, loops.Expr]:
        """The slots of one parent."""
        ends = self._source.positions[-1]
        assert ends is not None
        first = ix.as_index(loops.Load(ends, (row,)))
        return first, ix.as_index(loops.Load(ends, (ix.add(row, ix.index(1)),)))

    def _counted(self, pos: loops.Memref, parents: loops.Expr) -> loops.Stmt:
        fresh = self._kernel.namer.fresh
        row, slot = loops.Var(fresh("r"), INDEX), loops.Var(fresh("p"), INDEX)
        count = loops.Var(fresh("kept"), INDEX)
        more = ix.add(count, loops.Cast(loops.Load(self._met, (slot,)), INDEX))
        body = (
            loops.Let(count, ix.index(0), mutable=True),
            loops.For(slot, *self._rows(row), (loops.Assign(count, more),)),
            loops.Store(pos, (ix.add(row, ix.index(1)),), narrowed(count, pos.dtype)),
        )
        return loops.For(row, ix.index(0), parents, body, parallel=True)

    def _moved(self, pos: loops.Memref, crd: loops.Memref, parents: loops.Expr) -> loops.Stmt:
        """Every slot is moved to the next place; the next one takes the same, if it was empty."""
        fresh = self._kernel.namer.fresh
        row, slot = loops.Var(fresh("r"), INDEX), loops.Var(fresh("p"), INDEX)
        place, end = loops.Var(fresh("q"), INDEX), loops.Var(fresh("q_end"), INDEX)
        source = self._source.coordinates[-1]
        assert source is not None
        coordinate = ix.as_index(loops.Load(source, (slot,)))
        kept = loops.Cast(loops.Load(self._met, (slot,)), INDEX)
        move = (
            loops.Store(crd, (place,), narrowed(coordinate, crd.dtype)),
            loops.Store(self._result.values, (place,), loops.Load(self._room, (slot,))),
            loops.Assign(place, ix.add(place, kept)),
            loops.Assign(slot, ix.add(slot, ix.index(1))),
        )
        after = ix.add(row, ix.index(1))
        body = (
            loops.Let(place, ix.as_index(loops.Load(pos, (row,))), mutable=True),
            loops.Let(end, ix.as_index(loops.Load(pos, (after,)))),
            loops.Let(slot, self._rows(row)[0], mutable=True),
            loops.While(ix.less(place, end), move),
        )
        return loops.For(row, ix.index(0), parents, body, parallel=True)

    def load(self, state: State) -> loops.Expr:
        return loops.Load(self._room, self._at(state))

    def _at(self, state: State) -> tuple[loops.Expr, ...]:
        return (self._kernel.value_slot(self._operand, state.cursors[self._operand]),)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        at = self._at(state)
        put = loops.Store(self._room, at, narrowed(value, self._room.dtype), reduce)
        return (put,) if self.flagged is not None else (put, loops.Store(self._met, at, ix.true()))
