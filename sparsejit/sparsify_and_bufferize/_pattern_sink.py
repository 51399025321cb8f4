"""Sparse results whose entries are exactly those of one operand: scaling, maps, sampled products.

Nothing is counted and nothing is searched: the value at a position of the operand goes to the same
position of the result, in any format, and iterations are independent.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._scalar_lowering import widened
from sparsejit.sparsify_and_bufferize._sinks import PlainSink, Stmts, narrowed

__all__ = ["PatternSink"]


class PatternSink(PlainSink):
    """Exactly the entries of input ``operand``.

    A new result gets a copy of its positions and coordinates; ``in_place`` only its values change.
    Where the result has more levels, they are dense: a block of values at each entry.
    """

    random_access = True
    concurrent = True

    def __init__(
        self, kernel: Kernel, operand: int, result: SparseBuffer, *, in_place: bool = False
    ) -> None:
        self._in_place = in_place
        source = kernel.inputs[operand]
        assert isinstance(source, SparseBuffer)
        self._kernel = kernel
        self._operand = operand
        self._source = source
        levels = kernel.space.output.levels
        self._block = levels[len(kernel.space.inputs[operand].levels) :]
        self._result = result if self._block else replace(result, pattern=source.pattern)

    @property
    def result(self) -> Buffer:
        return self._result

    @property
    def storage(self) -> str:
        name = self._kernel.op.inputs[self._operand].name
        return f"in place, in the entries of {name}" if self._in_place else f"the pattern of {name}"

    def prologue(self) -> Stmts:
        if self._in_place:
            return ()
        statements: list[loops.Stmt] = []
        pairs = zip(self._result.flat[:-1], self._source.flat[:-1], strict=True)
        for target, source in pairs:
            extents = tuple(loops.DimOf(source, axis) for axis in range(source.rank))
            statements.append(loops.Alloc(target, extents))
            if target.dtype is source.dtype:
                statements.append(loops.Copy(target, source))
            else:
                statements += self._recast(target, source)
        values = self._result.values
        slots: loops.Expr = loops.DimOf(self._source.values, 0)
        for level in self._block:
            slots = ix.multiply(slots, self._kernel.extent(level.size))
        statements.append(loops.Alloc(values, (slots,), self._kernel.fill))
        return tuple(statements)

    def _recast(self, target: loops.Memref, source: loops.Memref) -> Stmts:
        axes = [loops.Var(self._kernel.namer.fresh("f"), INDEX) for _ in range(target.rank)]
        element = loops.Cast(loops.Load(source, tuple(axes)), target.dtype)
        body: Stmts = (loops.Store(target, tuple(axes), element),)
        for axis in reversed(range(target.rank)):
            extent = loops.DimOf(source, axis)
            body = (loops.For(axes[axis], ix.index(0), extent, body, parallel=True),)
        return body

    def _at(self, state: State) -> tuple[loops.Expr, ...]:
        slot = self._kernel.value_slot(self._operand, state.cursors[self._operand])
        for level in self._block:
            inside = self._kernel.at(level.expr, state)
            slot = ix.add(ix.multiply(slot, self._kernel.extent(level.size)), inside)
        return (slot,)

    def load(self, state: State) -> loops.Expr:
        values = self._result.values
        return widened(loops.Load(values, self._at(state)), values.dtype)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        values = self._result.values
        if reduce is not None and values.dtype.compute is not values.dtype:
            total = loops.Binary(reduce, self.load(state), value, values.dtype.compute)
            return (loops.Store(values, self._at(state), narrowed(total, values.dtype)),)
        return (loops.Store(values, self._at(state), narrowed(value, values.dtype), reduce),)
