"""From a function whose every write may happen in place to statements over memrefs.

A plain walk over the operations, each replaced by its buffer form; nothing is folded, moved or
copied beyond what copy insertion decided. A ``Generic`` goes to the sparsifier (a dense one is the
case without sparse operands), all other operations are lowered here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from sparsejit.affine import identity_map
from sparsejit.errors import UnsupportedError
from sparsejit.ir import loops, tensor
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.fold import zero_of
from sparsejit.ir.scalar import Const, Nothing
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType, IteratorType
from sparsejit.ir.walk import blocks_of, only_readers, operands_of
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import (
    DenseBuffer,
    NoEntries,
    ScalarBuffer,
    SparseBuffer,
    declare_levels,
    with_pattern,
)
from sparsejit.sparsify_and_bufferize._conversion import conversion_op
from sparsejit.sparsify_and_bufferize._copy_insertion import CopyInserted
from sparsejit.sparsify_and_bufferize._entries_replacement import replaced_entries
from sparsejit.sparsify_and_bufferize._entry_moves import Arrangement
from sparsejit.sparsify_and_bufferize._fusion import Nest, fuse_generics, nests_of
from sparsejit.sparsify_and_bufferize._library_calls import (
    Start,
    library_call,
    scaled_values,
    starts_of_products,
    structure_copy,
    update_of_sampled,
)
from sparsejit.sparsify_and_bufferize._library_kernels import match_library_kernel
from sparsejit.sparsify_and_bufferize._library_match import Match, Mismatch
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._rearranging import rearrange
from sparsejit.sparsify_and_bufferize._sparsify import sparsify
from sparsejit.sparsify_and_bufferize._value_buffers import ValueBuffers

__all__ = ["bufferize"]

Stmts = tuple[loops.Stmt, ...]
Observer = Callable[[str, str], None]


def bufferize(
    inserted: CopyInserted, options: StageOptions, observe: Observer | None
) -> loops.LoopFunc:
    """Return the loop function; ``observe`` is told the lattices of each ``Generic`` as text."""
    return _Bufferizer(inserted, options, observe).run()


class _Bufferizer(ValueBuffers):
    """Walks the operations; each result gets a buffer."""

    def __init__(
        self, inserted: CopyInserted, options: StageOptions, observe: Observer | None
    ) -> None:
        super().__init__(inserted, options)
        self._observe = observe
        self._nests: dict[str, Nest] = {}  # by the variable of an outermost loop
        self._facts: list[Fact] = []
        self._starts: dict[str, Start] = {}  # of what libraries add products to, by name
        self._readers = only_readers(inserted.ops, inserted.results)
        self._delayed = starts_of_products(inserted.ops, inserted.results, inserted.roots, options)

    def run(self) -> loops.LoopFunc:
        body = [*self._block(self._inserted.ops)]
        results: list[loops.Result] = []
        for value in self._inserted.results:
            body += self._finish(value)
            results.append(self._result(value))
        body += self._frees(self._inserted.ops)
        copies = [Fact(FactKind.COPY, copy.value, copy.text) for copy in self._inserted.copies]
        facts = (*self._facts, *copies)
        func = loops.LoopFunc(self._inserted.name, self._params, tuple(body), tuple(results), facts)
        return fuse_generics(func, self._nests, self._options, self._observe)

    # ------------------------------------------------------------ results and ends of buffers

    def _finish(self, value: Value) -> Stmts:
        """Make the storage of a sparse result that nothing was ever written to."""
        buffer = self._buffers[value.name]
        if not isinstance(buffer, NoEntries):
            return ()
        nothing = tensor.Generic(
            value,
            (),
            value,
            (identity_map(value.type.rank),),
            (IteratorType.PARALLEL,) * value.type.rank,
            value.type.shape,
            Nothing(value.type.dtype),
        )
        return self._generic(nothing)

    # ------------------------------------------------------------ operations

    def _block(self, ops: tuple[tensor.Op, ...]) -> Stmts:
        return tuple(statement for op in ops for statement in self._op(op))

    def _op(self, op: tensor.Op) -> Stmts:  # noqa: C901 - one case for each kind
        match op:
            case tensor.Generic():
                return self._generic(op)
            case tensor.AllocTensor():
                return self._alloc(op)
            case tensor.Insert(result, scalar, dest, indices):
                memref = self._dense(dest, op.location).memref
                self._buffers[result.name] = self._buffers[dest.name]
                at = tuple(ix.lower_affine(index, self._symbols) for index in indices)
                return (loops.Store(memref, at, self._element(scalar)),)
            case tensor.ExtractSlice() if op.source.type.is_dense:
                return self._extract(op)
            case tensor.ExtractSlice() | tensor.Reshape() | tensor.Concat() | tensor.Pad():
                return self._rearrange(op)
            case tensor.InsertSlice():
                return self._insert_slice(op)
            case tensor.Materialize(result, source, dest):
                if self._buffers[source.name] == self._buffers[dest.name]:
                    self._buffers[result.name] = self._buffers[source.name]
                    return ()
                if not dest.type.is_dense:
                    return (*self._finish(source), *self._write_entries(op))
                target = self._dense(dest, op.location)
                self._buffers[result.name] = target
                return (self._copy(target.memref, source, op.location),)
            case tensor.For():
                return self._for(op)
            case tensor.While():
                return self._while(op)
            case tensor.If():
                return self._if(op)
            case tensor.Convert():
                fresh = tensor.AllocTensor(op.result, None, op.location)
                return (*self._alloc(fresh), *self._generic(conversion_op(op)))
            case tensor.Empty():
                raise AssertionError("copy insertion turned every Empty into AllocTensor")
            case _:
                assert_never(op)

    def _generic(self, op: tensor.Generic) -> Stmts:
        if op.result.name in self._delayed:
            self._starts[op.result.name] = Start(op, self._buffers, self._loops(op))
            return ()
        found = match_library_kernel(op, self._options)
        match found:
            case Mismatch(reason):
                if op.inputs:  # filling a buffer is nothing that one would want a library for
                    self._facts.append(Fact(FactKind.LIBRARY, op.result.name, reason))
                return self._loops(op)
            case Match():
                text = f"{found.op.value}; generated loops where the library refuses the call"
                self._facts.append(Fact(FactKind.LIBRARY_CALL, op.result.name, text))
                return self._library_call(op, found)
            case _:
                assert_never(found)

    def _library_call(self, op: tensor.Generic, match: Match) -> Stmts:
        if match.sample is not None and match.sample < len(op.inputs):
            return self._sampled_product(op, match)
        inputs = tuple(self._buffers[value.name] for value in op.inputs)
        otherwise, start = self._loops(op), self._starts.pop(op.init.name, None)
        buffers = (*inputs, self._buffers[op.result.name])
        return (library_call(match, op, buffers, self._symbols, otherwise, start),)

    def _sampled_product(self, op: tensor.Generic, match: Match) -> Stmts:
        """A new result: its structure is copied, then the library adds onto its zeros."""
        assert match.sample is not None
        sample = self._buffers[op.inputs[match.sample].name]
        target = self._destination(op)
        assert isinstance(sample, SparseBuffer)
        assert isinstance(target, SparseBuffer)
        made = structure_copy(target, sample, loops.Lit(zero_of(op.init.type.dtype)))
        self._buffers[op.init.name] = with_pattern(target, sample.pattern)
        update, updating = update_of_sampled(match, op)
        call = self._library_call(updating, update)
        scaling = scaled_values(target, sample, self._namer) if match.is_scaled else ()
        return (*made, *call, *scaling)

    def _loops(self, op: tensor.Generic) -> Stmts:
        inputs = tuple(self._buffers[value.name] for value in op.inputs)
        root = self._inserted.roots[op.init.name]
        destination = self._destination(op)
        made = sparsify(
            op,
            inputs,
            destination,
            self._symbols,
            self._namer,
            self._options,
            updates=isinstance(self._buffers[op.init.name], SparseBuffer),
            shared=self._shared(op),
        )
        self._namer = made.namer
        self._buffers[op.result.name] = made.result
        if isinstance(made.result, SparseBuffer):
            self._storage[root] = made.result
        self._facts += made.facts
        self._nests |= nests_of(op, made.statements)
        if self._observe is not None:
            self._observe("lattices", f"%{op.result.name}\n{made.lattices}".rstrip())
        return made.statements

    def _shared(self, op: tensor.Generic) -> frozenset[Value]:
        """Return the inputs of ``op`` that the only reader of its result reads as well.

        So these are as they are when the result is read, which may be left in their slots.
        """
        reader = self._readers.get(op.result.name)
        if reader is None or isinstance(match_library_kernel(reader, self._options), Match):
            return frozenset()
        return frozenset(op.inputs) & frozenset(reader.inputs)

    def _rearrange(self, op: Arrangement) -> Stmts:
        sources = tuple(self._buffers[value.name] for value in operands_of(op))
        made = rearrange(op, sources, self._symbols, self._namer, self._options)
        self._namer = made.namer
        self._buffers[op.result.name] = made.result
        self._facts += made.facts
        return made.statements

    def _destination(self, op: tensor.Generic) -> DenseBuffer | SparseBuffer:
        buffer = self._buffers[op.init.name]
        match buffer:
            case DenseBuffer():
                return buffer
            case NoEntries(kind):
                name = self._namer.fresh(f"s{op.result.name}")
                widths = self._options.index_widths
                space = self._options.memory_space or 0
                return declare_levels(name, kind, widths, space)
            case SparseBuffer():
                return buffer
            case ScalarBuffer():
                raise AssertionError("a parameter that is written has a memref")
            case _:
                assert_never(buffer)

    def _alloc(self, op: tensor.AllocTensor) -> Stmts:
        kind = op.result.type
        if not kind.is_dense:
            return self._alloc_sparse(op)
        space = self._options.memory_space or 0
        name = self._namer.fresh(f"b{op.result.name}")
        memref = loops.Memref(name, kind.dtype, kind.rank, space)
        self._buffers[op.result.name] = DenseBuffer(memref, memref.name)
        extents = tuple(ix.lower_affine(extent, self._symbols) for extent in kind.shape)
        fill = zero_of(kind.dtype) if self._options.initialize_buffers else None
        alloc = loops.Alloc(memref, extents, fill if op.copy is None else None)
        if op.copy is None:
            return (alloc,)
        return (alloc, self._copy(memref, op.copy, op.location))

    def _alloc_sparse(self, op: tensor.AllocTensor) -> Stmts:
        if op.copy is None:
            self._buffers[op.result.name] = NoEntries(op.result.type)
            return ()
        statements: list[loops.Stmt] = [*self._finish(op.copy)]
        source = self._buffers[op.copy.name]
        assert isinstance(source, SparseBuffer)
        name = self._namer.fresh(f"s{op.result.name}")
        copy = declare_levels(name, op.result.type, self._options.index_widths)
        self._buffers[op.result.name] = with_pattern(copy, source.pattern)
        self._copied[op.result.name] = source
        for target, origin in zip(copy.flat, source.flat, strict=True):
            extents = tuple(loops.DimOf(origin, axis) for axis in range(origin.rank))
            statements += [loops.Alloc(target, extents), loops.Copy(target, origin)]
        return tuple(statements)

    def _write_entries(self, op: tensor.Materialize) -> Stmts:
        """Write the values of a copy of a sparse tensor back; both have the same entries.

        A tensor that loops or branches make takes all that another one stores.
        """
        source, target = self._buffers[op.source.name], self._buffers[op.dest.name]
        if self._inserted.roots[op.dest.name] not in {p.name for p in self._inserted.params}:
            assert isinstance(source, SparseBuffer)
            assert isinstance(target, SparseBuffer)
            self._buffers[op.result.name] = with_pattern(target, source.pattern)
            return replaced_entries(target, source, op.location)
        same = self._copied.get(self._inserted.roots[op.source.name]) == target
        if not (same and isinstance(source, SparseBuffer) and isinstance(target, SparseBuffer)):
            raise UnsupportedError(
                f"storing other entries in the sparse tensor %{op.dest.name}",
                hint="compute a new sparse result instead",
                location=op.location,
            )
        self._buffers[op.result.name] = target
        return (loops.Copy(target.values, source.values),)

    # ------------------------------------------------------------ loops

    def _scope(self, ops: tuple[tensor.Op, ...]) -> Stmts:
        """Return a block with the ends of what it makes."""
        return (*self._block(ops), *self._frees(ops))

    def _carry(self, op: tensor.For | tensor.While) -> None:
        """Let all states of what a loop carries live in the buffers of its initial values."""
        blocks = (block.args for block in blocks_of(op))
        for init, *carried in zip(op.inits, *blocks, op.results, strict=True):
            for value in carried:
                self._buffers[value.name] = with_pattern(self._buffers[init.name], value.name)

    def _for(self, op: tensor.For) -> Stmts:
        self._carry(op)
        lower = ix.lower_affine(op.lower, self._symbols)
        upper = ix.lower_affine(op.upper, self._symbols)
        induction = self._symbols[op.induction]
        assert isinstance(induction, loops.Var)
        return (loops.For(induction, lower, upper, self._scope(op.body)),)

    def _while(self, op: tensor.While) -> Stmts:
        """Test at the start of each round, so that the test stands in the program once."""
        self._carry(op)
        goes_on = loops.Var(self._namer.fresh("goes_on"), DType.BOOL)
        test = self._block(op.test)
        decide = loops.Assign(goes_on, self._element(op.condition))
        rest = loops.If(goes_on, self._scope(op.body))
        body = (*test, decide, *self._frees(op.test), rest)
        start = loops.Let(goes_on, loops.Lit(Const(True, DType.BOOL)), mutable=True)
        return (start, loops.While(goes_on, body))

    def _if(self, op: tensor.If) -> Stmts:
        condition = self._element(op.condition)
        storage = self._branch_storage(op)
        then, orelse = self._scope(op.then), self._scope(op.orelse)
        for result, value in zip(op.results, op.then_yields, strict=True):
            self._buffers[result.name] = with_pattern(self._buffers[value.name], result.name)
        return (*storage, loops.If(condition, then, orelse))

    def _branch_storage(self, op: tensor.If) -> Stmts:
        """Make the storage that the branches leave sparse results in, without entries yet."""
        made: list[loops.Stmt] = []
        for value in op.then_yields:
            root = self._inserted.roots[value.name]
            buffer = self._buffers.get(root)
            # What was computed before the branches has its storage already.
            if isinstance(buffer, NoEntries) and root not in self._storage:
                name = self._namer.fresh(f"s{root}")
                widths, space = self._options.index_widths, self._options.memory_space or 0
                storage = declare_levels(name, buffer.type, widths, space)
                self._buffers[root] = storage
                made += [loops.Alloc(m, (ix.index(0),) * m.rank) for m in storage.flat]
        return tuple(made)
