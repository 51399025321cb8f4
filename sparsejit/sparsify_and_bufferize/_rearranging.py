"""Reshapes, concatenations and padding: tensors of which the elements stand elsewhere.

In: the operation and the buffers of its sources. Out: the statements that make the result. A dense
result is allocated and filled part by part, a sparse one is left to ``_sparse_reshaping``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, add, identity_map
from sparsejit.ir import loops, tensor
from sparsejit.ir.facts import Fact
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.scalar import Arg, Const
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import INDEX, IteratorType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import (
    Buffer,
    DenseBuffer,
    ScalarBuffer,
    declare_levels,
)
from sparsejit.sparsify_and_bufferize._entry_moves import Arrangement, delinearized, linearized
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._sparse_reshaping import rearrange_entries
from sparsejit.sparsify_and_bufferize._sparsify import sparsify

__all__ = ["Rearranged", "rearrange"]

Stmts = tuple[loops.Stmt, ...]


@dataclass(frozen=True, slots=True)
class Rearranged:
    """The statements that make a result, where it is, and what was decided."""

    statements: Stmts
    result: Buffer
    facts: tuple[Fact, ...]
    namer: Names


def rearrange(
    op: Arrangement,
    sources: Sequence[Buffer],
    symbols: Mapping[int, loops.Expr],
    namer: Names,
    options: StageOptions,
) -> Rearranged:
    """Return the lowering of ``op``; its result is a new tensor.

    Raises ``UnsupportedError`` for a format of the result that cannot be assembled.
    """
    namer, space = namer.fork(), options.memory_space or 0
    kind = op.result.type
    if not kind.is_dense:
        name = namer.fresh(f"s{op.result.name}")
        result = declare_levels(name, kind, options.index_widths, space)
        statements, facts = rearrange_entries(op, sources, result, symbols, namer, options.placing)
        return Rearranged(statements, result, facts, namer)
    memref = loops.Memref(namer.fresh(f"b{op.result.name}"), kind.dtype, kind.rank, space)
    writer = _DenseWriter(op.result, memref, symbols, namer, options)
    match op:
        case tensor.Reshape():
            body = writer.reshaped(op.source, sources[0])
        case tensor.Concat():
            body = writer.concatenated(op, sources)
        case tensor.Pad():
            body = writer.padded(op, sources[0])
        case tensor.ExtractSlice():
            raise AssertionError("a slice of a dense tensor is a view")
    alloc = loops.Alloc(memref, tuple(map(writer.lower, kind.shape)))
    buffer = DenseBuffer(memref, memref.name)
    return Rearranged((alloc, *body), buffer, tuple(writer.facts), writer.namer)


class _DenseWriter:
    """Fills one dense result."""

    def __init__(
        self,
        result: Value,
        memref: loops.Memref,
        symbols: Mapping[int, loops.Expr],
        namer: Names,
        options: StageOptions,
    ) -> None:
        self.facts: list[Fact] = []
        self.namer = namer
        self._result = result
        self._memref = memref
        self._symbols = symbols
        self._options = options

    def lower(self, expr: AffineExpr) -> loops.Expr:
        return ix.lower_affine(expr, self._symbols)

    def reshaped(self, source: Value, buffer: Buffer) -> Stmts:
        """Visit the dimensions of one side; the element's number says where it is on the other."""
        old, new = (tuple(map(self.lower, v.type.shape)) for v in (source, self._result))
        from_source = len(new) <= 1
        walked = old if from_source else new
        names = tuple(loops.Var(self.namer.fresh(f"r{d}"), INDEX) for d in range(len(walked)))
        number = linearized(names, walked)
        if from_source:
            element, place = _element(buffer, names), delinearized(number, new)
        else:
            element, place = _element(buffer, delinearized(number, old)), names
        body: Stmts = (loops.Store(self._memref, place, element),)
        return self._nest(names, walked, body)

    def _nest(
        self, names: Sequence[loops.Var], extents: Sequence[loops.Expr], body: Stmts
    ) -> Stmts:
        for name, extent in reversed(list(zip(names, extents, strict=True))):
            body = (loops.For(name, ix.index(0), extent, body, parallel=True),)
        return body

    def concatenated(self, op: tensor.Concat, sources: Sequence[Buffer]) -> Stmts:
        statements: list[loops.Stmt] = []
        start: AffineExpr = Constant(0)
        for source, buffer in zip(op.sources, sources, strict=True):
            offsets = tuple(
                start if dim == op.axis else Constant(0) for dim in range(source.type.rank)
            )
            statements += self._part(source, buffer, offsets)
            start = add(start, source.type.shape[op.axis])
        return tuple(statements)

    def padded(self, op: tensor.Pad, buffer: Buffer) -> Stmts:
        return (*self._filled(op.value), *self._part(op.source, buffer, op.low))

    def _filled(self, value: Const) -> Stmts:
        shape = tuple(map(self.lower, self._result.type.shape))
        names = tuple(loops.Var(self.namer.fresh(f"f{d}"), INDEX) for d in range(len(shape)))
        return self._nest(names, shape, (loops.Store(self._memref, names, loops.Lit(value)),))

    def _part(self, source: Value, buffer: Buffer, offsets: tuple[AffineExpr, ...]) -> Stmts:
        """Write ``source`` into the part of the result that begins at ``offsets``."""
        rank, dtype = source.type.rank, source.type.dtype
        name = self.namer.fresh(f"v{self._result.name}")
        memref = loops.Memref(name, dtype, rank, self._memref.space)
        sizes = tuple(map(self.lower, source.type.shape))
        at = tuple(map(self.lower, offsets))
        view = loops.View(memref, self._memref, at, sizes, (1,) * rank)
        if isinstance(buffer, DenseBuffer):
            return (view, loops.Copy(memref, buffer.memref))
        copy = Generic(
            self._result,
            (source,),
            Value(self._result.name, replace(source.type, format=self._result.type.format)),
            (identity_map(rank), identity_map(rank)),
            (IteratorType.PARALLEL,) * rank,
            source.type.shape,
            Arg(0),
        )
        target = DenseBuffer(memref, self._memref.name, view)
        made = sparsify(copy, (buffer,), target, self._symbols, self.namer, self._options)
        self.namer = made.namer
        self.facts += made.facts
        return (view, *made.statements)


def _element(buffer: Buffer, at: tuple[loops.Expr, ...]) -> loops.Expr:
    match buffer:
        case DenseBuffer(memref):
            return loops.Load(memref, at)
        case ScalarBuffer(var):
            return var
        case _:
            raise AssertionError("a dense tensor has a memref or is a variable")
