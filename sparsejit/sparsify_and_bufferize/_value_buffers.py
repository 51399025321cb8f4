"""Where the values of a function are: for each the buffer it lives in, from parameters to results.

In: a function after copy insertion. Out: buffers by the names of values, the views that slices are,
and what is freed where. ``_dense_bufferize`` walks the operations and adds the buffer of each.
"""

from __future__ import annotations

from typing import assert_never

from sparsejit.errors import Location, UnsupportedError
from sparsejit.ir import loops, tensor
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import INDEX
from sparsejit.ir.walk import results_of
from sparsejit.sparsify_and_bufferize._buffers import (
    Buffer,
    DenseBuffer,
    NoEntries,
    ScalarBuffer,
    SparseBuffer,
    memrefs_of,
    parameter_buffer,
    parameters_of,
)
from sparsejit.sparsify_and_bufferize._copy_insertion import CopyInserted
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._views import same_place, view_of

__all__ = ["ValueBuffers"]

Stmts = tuple[loops.Stmt, ...]


class ValueBuffers:
    """The buffers of a function's values, by name."""

    def __init__(self, inserted: CopyInserted, options: StageOptions) -> None:
        self._inserted = inserted
        self._options = options
        self._symbols: dict[int, loops.Expr] = {
            number: loops.Var(name, INDEX) for number, name in enumerate(inserted.symbols)
        }
        self._buffers: dict[str, Buffer] = {}
        self._storage: dict[str, SparseBuffer] = {}  # of sparse values, by the root they grow from
        self._copied: dict[str, SparseBuffer] = {}  # what a copy of a sparse value was made of
        assigned = {value.name for value in inserted.assigned}
        params: list[loops.Memref | loops.Var] = [
            loops.Var(name, INDEX) for name in inserted.symbols[: inserted.num_extents]
        ]
        for param in inserted.params:
            buffer = parameter_buffer(param, param.name in assigned)
            self._buffers[param.name] = buffer
            params.extend(parameters_of(buffer))
        self._params = tuple(params)
        taken = {*inserted.symbols, *(param.name for param in params)}
        self._namer = Names(taken)

    def _result(self, value: Value) -> loops.Result:
        buffer = self._buffers[value.name]
        for number, param in enumerate(self._inserted.params):
            if buffer == self._buffers[param.name] or value.name == param.name:
                return loops.ParamResult(number)
        match buffer:
            case DenseBuffer(memref):
                return loops.DenseResult(memref)
            case SparseBuffer():
                kind = value.type
                return loops.SparseResult(buffer.format, kind.shape, kind.fill, buffer.flat)
            case ScalarBuffer() | NoEntries():
                raise AssertionError("a result that is no parameter has a memref")
            case _:
                assert_never(buffer)

    def _frees(self, ops: tuple[tensor.Op, ...]) -> Stmts:
        """Return the ends of the buffers that a block of ``ops`` makes and that do not escape."""
        made = {result.name for op in ops for result in results_of(op)}
        freed: list[loops.Stmt] = []
        for owned in self._inserted.owned:
            if owned.value not in made or owned.escapes:
                continue
            buffer = self._storage.get(owned.value) or self._buffers.get(owned.value)
            if isinstance(buffer, DenseBuffer | SparseBuffer):
                ended = buffer.owned if isinstance(buffer, SparseBuffer) else memrefs_of(buffer)
                freed += [loops.Dealloc(memref) for memref in ended]
        return tuple(freed)

    # ------------------------------------------------------------ dense values and slices

    def _dense(self, value: Value, location: Location | None) -> DenseBuffer:
        buffer = self._buffers[value.name]
        if isinstance(buffer, DenseBuffer):
            return buffer
        raise UnsupportedError(
            f"changing or slicing the sparse tensor %{value.name} in place",
            hint="compute a new sparse result instead",
            location=location,
        )

    def _copy(self, target: loops.Memref, source: Value, location: Location | None) -> loops.Stmt:
        if isinstance(self._buffers[source.name], ScalarBuffer):
            return loops.Store(target, (), self._element(source))
        return loops.Copy(target, self._dense(source, location).memref)

    def _element(self, scalar: Value) -> loops.Expr:
        buffer = self._buffers[scalar.name]
        if isinstance(buffer, ScalarBuffer):
            return buffer.var
        return loops.Load(self._dense(scalar, None).memref, ())

    def _extract(self, op: tensor.ExtractSlice) -> Stmts:
        whole = self._dense(op.source, op.location)
        view = view_of(op, whole, op.result.type.rank, self._symbols, self._namer)
        self._buffers[op.result.name] = DenseBuffer(view.memref, whole.root, view)
        return (view,)

    def _insert_slice(self, op: tensor.InsertSlice) -> Stmts:
        whole = self._dense(op.dest, op.location)
        source = self._dense(op.source, op.location)
        self._buffers[op.result.name] = whole
        view = view_of(op, whole, op.source.type.rank, self._symbols, self._namer)
        if source.view is not None and same_place(source.view, view):
            return ()  # the source was computed in the slice itself
        return (view, loops.Copy(view.memref, source.memref))
