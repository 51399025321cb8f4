"""Sparse results by way of the support library (``storage="runtime"``).

The loops hand over each entry with its level coordinates, in order; one ``Assemble`` at the end
builds the level storage of any format. Source: MLIR's runtime library (lexicographic insertion).
"""

from __future__ import annotations

from sparsejit.formats import LevelKind
from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._append_sink import appended_loops, refuse_unassembled
from sparsejit.sparsify_and_bufferize._buffers import Buffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._scalar_lowering import literal
from sparsejit.sparsify_and_bufferize._sinks import PlainSink, Stmts, narrowed

__all__ = ["EntriesSink"]


class EntriesSink(PlainSink):
    """Collects (level coordinates, value) in lexicographic order and assembles them at the end."""

    random_access = False
    concurrent = False
    storage = "assembled by the support library"

    def __init__(self, kernel: Kernel, result: SparseBuffer) -> None:
        self._kernel = kernel
        self._result = result
        refuse_unassembled(kernel, (LevelKind.BATCH, LevelKind.RANGE))
        self._loops = appended_loops(kernel)
        name = result.values.name.removesuffix("_vals")
        fresh = kernel.namer.fresh
        self._coordinates = tuple(
            loops.Memref(fresh(f"{name}_at{level}"), INDEX, 1) for level in range(len(self._loops))
        )
        self._entries = loops.Memref(fresh(f"{name}_entries"), result.values.dtype, 1)
        self._count = loops.Var(fresh(f"{name}_count"), INDEX)

    @property
    def result(self) -> Buffer:
        return self._result

    def prologue(self) -> Stmts:
        buffers = (*self._coordinates, self._entries)
        allocs = tuple(loops.Alloc(memref, (ix.index(0),)) for memref in buffers)
        return (*allocs, loops.Let(self._count, ix.index(0), mutable=True))

    def epilogue(self) -> Stmts:
        kernel = self._kernel
        extents = tuple(kernel.extent(level.size) for level in kernel.space.output.levels)
        assemble = loops.Assemble(
            self._result.flat,
            self._result.format,
            extents,
            self._coordinates,
            self._entries,
            self._count,
            kernel.fill,
        )
        buffers = (*self._coordinates, self._entries)
        return (assemble, *(loops.Dealloc(memref) for memref in buffers))

    def load(self, state: State) -> loops.Expr:
        return literal(self._kernel.fill)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        assert reduce is None
        pushed: list[loops.Stmt] = [
            loops.Push(memref, self._count, state.loop_values[loop])
            for memref, loop in zip(self._coordinates, self._loops, strict=True)
        ]
        pushed.append(loops.Push(self._entries, self._count, narrowed(value, self._entries.dtype)))
        pushed.append(loops.Assign(self._count, ix.add(self._count, ix.index(1))))
        return tuple(pushed)
