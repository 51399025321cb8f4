"""Sinks: where the elements of a result go, whatever its format.

``Sink`` is what the loop nest asks for. ``DenseSink`` writes a strided array at any time,
``FullSink`` level storage in which every coordinate has a slot. Sparse results are in
``_pattern_sink``, ``_append_sink``, ``_entries_sink`` and ``_scatter_sink``.
"""

from __future__ import annotations

from typing import Protocol

from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, DenseBuffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._scalar_lowering import dtype_of_lowered, literal, widened

__all__ = ["DenseSink", "FullSink", "PlainSink", "Sink", "fill_loops", "narrowed"]

Stmts = tuple[loops.Stmt, ...]


class Sink(Protocol):
    """How the loop nest writes a result.

    ``random_access``: elements may be written in any order and more than once. ``concurrent``:
    distinct elements may be written at the same time.
    """

    @property
    def random_access(self) -> bool: ...

    @property
    def concurrent(self) -> bool: ...

    @property
    def result(self) -> Buffer:
        """The buffers of the finished result."""
        ...

    @property
    def storage(self) -> str:
        """How the result is stored, in words for ``explain``."""
        ...

    def prologue(self) -> Stmts:
        """Return what comes before all loops."""
        ...

    def epilogue(self) -> Stmts:
        """Return what comes after all loops."""
        ...

    def enter_loop(self, loop: int, state: State) -> Stmts:
        """Return what comes before the loops over ``loop``."""
        ...

    def enter_coordinate(self, loop: int, state: State) -> tuple[Stmts, State, Stmts]:
        """Return what comes before and after the body for one coordinate, and its state."""
        ...

    def load(self, state: State) -> loops.Expr:
        """Return the element of the result at ``state``, widened."""
        ...

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        """Return the write of ``value`` (a value in the dtype of arithmetic)."""
        ...

    def clear(self, state: State) -> Stmts:
        """Return what is to do where the result has no value."""
        ...


def narrowed(value: loops.Expr, dtype: DType) -> loops.Expr:
    """Return ``value`` in the dtype of the memref that it goes to."""
    return value if dtype_of_lowered(value) is dtype else loops.Cast(value, dtype)


def fill_loops(
    kernel: Kernel, memref: loops.Memref, extents: tuple[loops.Expr, ...], value: Const
) -> Stmts:
    """Return loops that give every element of ``memref`` one value."""
    names = [loops.Var(kernel.namer.fresh(f"f{axis}"), INDEX) for axis in range(memref.rank)]
    body: Stmts = (loops.Store(memref, tuple(names), narrowed(literal(value), memref.dtype)),)
    for var, extent in reversed(list(zip(names, extents, strict=True))):
        body = (loops.For(var, ix.index(0), extent, body, parallel=True),)
    return body


class PlainSink:
    """What most sinks do around loops and where the result has no value: nothing."""

    def prologue(self) -> Stmts:
        return ()

    def epilogue(self) -> Stmts:
        return ()

    def enter_loop(self, loop: int, state: State) -> Stmts:
        return ()

    def enter_coordinate(self, loop: int, state: State) -> tuple[Stmts, State, Stmts]:
        return (), state, ()

    def clear(self, state: State) -> Stmts:
        return ()


class DenseSink(PlainSink):
    """A strided array. A 16-bit float that many iterations add to is kept in 32 bits meanwhile."""

    random_access = True
    concurrent = True
    storage = "dense"

    def __init__(self, kernel: Kernel, buffer: DenseBuffer, *, scatters: bool) -> None:
        self._kernel = kernel
        self._buffer = buffer
        memref = buffer.memref
        wide = scatters and memref.dtype.compute is not memref.dtype
        self._memref = memref
        if wide:
            name = kernel.namer.fresh(f"{memref.name}_wide")
            self._memref = loops.Memref(name, memref.dtype.compute, memref.rank, memref.space)

    @property
    def result(self) -> Buffer:
        return self._buffer

    @property
    def _extents(self) -> tuple[loops.Expr, ...]:
        return tuple(self._kernel.extent(extent) for extent in self._kernel.op.init.type.shape)

    def prologue(self) -> Stmts:
        kernel = self._kernel
        background = kernel.background
        sparse = any(access.may_be_absent for access in kernel.space.inputs)
        is_visited = not sparse and kernel.outcome(kernel.start()) is not None
        statements: Stmts = ()
        if self._memref is not self._buffer.memref:
            statements += (loops.Alloc(self._memref, self._extents),)
            statements += self._convert(self._memref, self._buffer.memref)
        if not kernel.reads_out and not is_visited and background is not None:
            statements += fill_loops(kernel, self._memref, self._extents, background)
        return statements

    def epilogue(self) -> Stmts:
        if self._memref is self._buffer.memref:
            return ()
        return (*self._convert(self._buffer.memref, self._memref), loops.Dealloc(self._memref))

    def _convert(self, target: loops.Memref, source: loops.Memref) -> Stmts:
        axes = [
            loops.Var(self._kernel.namer.fresh(f"f{axis}"), INDEX) for axis in range(target.rank)
        ]
        element = loops.Cast(loops.Load(source, tuple(axes)), target.dtype)
        body: Stmts = (loops.Store(target, tuple(axes), element),)
        for var, extent in reversed(list(zip(axes, self._extents, strict=True))):
            body = (loops.For(var, ix.index(0), extent, body, parallel=True),)
        return body

    def _at(self, state: State) -> tuple[loops.Expr, ...]:
        return tuple(self._kernel.at(index, state) for index in self._kernel.space.output.indices)

    def load(self, state: State) -> loops.Expr:
        return widened(loops.Load(self._memref, self._at(state)), self._memref.dtype)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        dtype = self._memref.dtype
        if reduce is not None and dtype is not dtype.compute:  # storage types are not added to
            value, reduce = loops.Binary(reduce, self.load(state), value, dtype.compute), None
        return (loops.Store(self._memref, self._at(state), narrowed(value, dtype), reduce),)

    def clear(self, state: State) -> Stmts:
        return self.store(state, literal(self._kernel.fill), None)


class FullSink(DenseSink):
    """Level storage without stored coordinates: one rank-1 memref, positions by arithmetic."""

    storage = "all levels full"

    def __init__(self, kernel: Kernel, buffer: SparseBuffer, *, scatters: bool) -> None:
        self._levels = buffer
        super().__init__(kernel, DenseBuffer(buffer.values, buffer.values.name), scatters=scatters)

    @property
    def result(self) -> Buffer:
        return self._levels

    @property
    def _extents(self) -> tuple[loops.Expr, ...]:
        total: loops.Expr = ix.index(1)
        for level in self._kernel.space.output.levels:
            total = ix.multiply(total, self._kernel.extent(level.size))
        return (total,)

    def prologue(self) -> Stmts:
        fresh = loops.Alloc(self._buffer.memref, self._extents, self._kernel.fill)
        return (fresh, *super().prologue())

    def _at(self, state: State) -> tuple[loops.Expr, ...]:
        position: loops.Expr = ix.index(0)
        for level in self._kernel.space.output.levels:
            size = self._kernel.extent(level.size)
            position = ix.add(ix.multiply(position, size), self._kernel.at(level.expr, state))
        return (position,)
