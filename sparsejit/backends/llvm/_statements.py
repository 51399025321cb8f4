"""The statements of an expanded loop function as LLVM IR (see ``_expand``).

What enters are statements, what leaves are the blocks of one function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from sparsejit.backends.llvm._arrays import Layout, one_of, view_of
from sparsejit.backends.llvm._blas import Product
from sparsejit.backends.llvm._context import Context
from sparsejit.backends.llvm._control import either
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._loop_notes import is_of_known_length
from sparsejit.backends.llvm._outline import write_parallel
from sparsejit.backends.llvm._own_memory import OwnMemory
from sparsejit.backends.llvm._parallel import ParallelLoops
from sparsejit.backends.llvm._plain_loops import write_loop
from sparsejit.backends.llvm._prefetch import AheadOfStrip
from sparsejit.backends.llvm._sorting import sort_prefix
from sparsejit.backends.llvm._text import Builder, Value, integer
from sparsejit.backends.llvm._tile_printing import TilePrinter
from sparsejit.backends.llvm._tiles import Tile
from sparsejit.backends.llvm._types import in_register
from sparsejit.backends.llvm._vector_sums import find_sums, write_sums
from sparsejit.ir.device_statements import (
    DenseMatrix,
    Launch,
    LibraryCall,
    LibraryOp,
    ReadBack,
    Require,
)
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Copy,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Memref,
    Push,
    Resize,
    Scan,
    SelectMemref,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["Statements"]

_SUMS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)


class Statements:
    """Writes statements through a builder.

    ``given`` is the memory of arrays that the caller has made, ``parallel`` are the loops that run
    on several threads.
    """

    def __init__(
        self,
        builder: Builder,
        functions: Functions,
        context: Context,
        given: Mapping[str, Value],
        parallel: ParallelLoops,
    ) -> None:
        self.builder = self._b = builder
        self.functions = self._functions = functions
        self.context = context
        self._parallel = parallel
        self._skipped: frozenset[str] = frozenset(parallel.private)
        self._options = context.options
        self._tiles = {**context.tiles, **{name: run.tile for name, run in context.runs.items()}}
        self._left_out = {name for tile in context.tiles.values() for name in tile.fills}
        self._tile: tuple[Tile, TilePrinter] | None = None
        self._fail = builder.new_block("fail")
        self._status = builder.slot("i32")
        self.may_fail = False
        self.expressions = self._e = Expressions(builder, functions)
        self._memory = OwnMemory(self._e, functions, context.growable, given, self.fail)
        self._e.calls.fail = self.fail

    def child(self, builder: Builder) -> Statements:
        """Return a printer for the body of a parallel loop, in a function of its own."""
        made = Statements(builder, self._functions, self.context, {}, ParallelLoops())
        made.expressions.calls.functions = self.expressions.calls.functions
        return made

    def block(self, body: Sequence[Stmt]) -> None:
        """Write statements one after the other."""
        for stmt in body:
            self._statement(stmt)

    def on_one_thread(self, body: Sequence[Stmt]) -> None:
        """Write a loop that was to run on several threads, and around it what only it uses."""
        chosen, skipped = self._parallel, self._skipped
        self._parallel, self._skipped = ParallelLoops(), frozenset()
        self.block(body)
        self._parallel, self._skipped = chosen, skipped

    def fail(self, status: Value, when: Value) -> None:
        """Free all memory and return ``status`` where ``when`` holds."""
        b = self._b
        self.may_fail = True
        leave, go_on = b.new_block("leave"), b.new_block("go_on")
        b.branch_if(when, leave, go_on)
        b.place(leave)
        b.store(status, self._status, 4)
        b.branch(self._fail)
        b.place(go_on)

    def finish(self) -> None:
        """Return 0; write the block that frees all memory and returns another status."""
        b = self._b
        self._memory.free_kept()
        b.ret(integer(0, "i32"))
        if not self.may_fail:
            return
        b.place(self._fail)
        self._memory.free_all()
        b.ret(b.load(self._status, "i32", 4))

    def _statement(self, stmt: Stmt) -> None:  # noqa: C901 - one case for each kind
        match stmt:
            case Let(var) if var.name in self._skipped:
                pass
            case Alloc(memref) | Dealloc(memref) if memref.name in self._skipped:
                pass
            case Let(var, value, mutable):
                self._let(var, value, mutable)
            case Assign(var, value):
                self._b.store(self._assigned(var, value), self._e.slots[var.name], 8)
            case Store():
                self._store(stmt)
            case Alloc():
                self._memory.alloc(stmt)
            case Dealloc(memref):
                self._memory.dealloc(memref)
            case View():
                self._view(stmt)
            case SelectMemref():
                self._select_memref(stmt)
            case Push():
                self._memory.push(stmt)
            case Resize():
                self._memory.resize(stmt)
            case SortPrefix(memref, count):
                self._sort_prefix(memref, count)
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case If():
                self._if(stmt)
            case Copy() | Sort() | Scan() | Assemble():
                raise AssertionError("the function was expanded")
            case LibraryCall():
                self._library_call(stmt)
            case Launch() | ReadBack() | Require():
                raise AssertionError("the function was made for no device")
            case _:
                assert_never(stmt)

    def _library_call(self, stmt: LibraryCall) -> None:
        assert stmt.op is LibraryOp.GEMM, "all others are in host form"
        operands = [k for k in (*stmt.inputs, stmt.output) if isinstance(k, DenseMatrix)]
        left, right, result = ((k, self._e.arrays[k.memref.name]) for k in operands)
        product = Product(self._b, result[0].memref.dtype)
        alpha = self._e.value(stmt.alpha)
        product.write((left, right, result), alpha, lambda: self.block(stmt.otherwise))

    # ------------------------------------------------------------ values

    def _let(self, var: Var, value: Expr, mutable: bool) -> None:
        computed = self._e.value(value)
        if not mutable:
            self._e.values[var.name] = computed
            return
        slot = self._b.slot(in_register(var.dtype))
        self._e.slots[var.name] = slot
        self._b.store(computed, slot, 8)

    def _assigned(self, var: Var, value: Expr) -> Value:
        """The new value; ``var = var + term`` is a reduction, which may be reassociated."""
        match value:
            case Binary(op, lhs, rhs, dtype) if op in _SUMS and lhs == var:
                term = self._e.value(rhs, self._options.term_flags)
                before = self._e.value(lhs)
                return self._e.arithmetic.binary(op, before, term, dtype, self._options.sum_flags)
            case _:
                return self._e.value(value)

    def _store(self, stmt: Store) -> None:
        array = self._e.arrays[stmt.memref.name]
        if stmt.reduce is None:
            self._e.store(array, stmt.indices, self._e.value(stmt.value))
            return
        is_sum = stmt.reduce in _SUMS
        value = self._e.value(stmt.value, self._options.term_flags if is_sum else "")
        where = self._e.place(array, stmt.indices)
        before = self._e.load_at(array, where)
        dtype, flags = stmt.memref.dtype, self._options.sum_flags if is_sum else ""
        total = self._e.arithmetic.binary(stmt.reduce, before, value, dtype, flags)
        self._e.store_at(array, where, total)

    # ------------------------------------------------------------ arrays

    def _view(self, stmt: View) -> None:
        offsets = [self._e.value(offset) for offset in stmt.offsets]
        sizes = [self._e.value(size) for size in stmt.sizes]
        source = self._e.arrays[stmt.source.name]
        self._e.arrays[stmt.memref.name] = view_of(self._b, source, stmt, offsets, sizes)

    def _select_memref(self, stmt: SelectMemref) -> None:
        arrays = (self._e.arrays[source.name] for source in (stmt.then, stmt.orelse))
        condition = self._e.value(stmt.condition)
        self._e.arrays[stmt.memref.name] = one_of(self._b, stmt.memref, condition, *arrays)

    def _sort_prefix(self, memref: Memref, count: Expr) -> None:
        array = self._e.arrays[memref.name]
        assert array.layout is Layout.CONTIGUOUS
        operands = [array.data(self._b), self._e.value(count)]
        self._b.call(sort_prefix(self._functions), operands)

    # ------------------------------------------------------------ control

    def _for(self, stmt: For) -> None:
        if self._tile is not None and stmt.var.name in self._tile[0].leaves:
            self._tile[1].leaf(stmt)
            return
        if stmt.var.name in self._left_out:
            return
        if stmt.var.name in self._parallel.chosen:
            write_parallel(self, stmt)
            return
        run = self.context.runs.get(stmt.var.name)
        if run is not None and run.is_in(stmt):
            self.block(run.by_runs(stmt))
            return
        tile = self._tiles.get(stmt.var.name)
        if tile is None or self._tile is not None:
            self._inner_for(stmt)
            return
        printer = TilePrinter(self._e, tile, self._options)
        self._tile = tile, printer
        printer.write(lambda: self.plain_for(stmt))
        self._tile = None

    def _inner_for(self, stmt: For) -> None:
        """Write a loop on one thread: by vectors where it only adds up."""
        if is_of_known_length(stmt):
            self._b.module.needs_optimizer = True
        found = find_sums(stmt, self._e.units, self.context.roots, self._options)
        if found is not None:
            write_sums(self._e, stmt, found, self._options)
        else:
            self.plain_for(stmt)

    def plain_for(self, stmt: For) -> None:
        """Write a loop as it stands, on one thread."""
        self._memory.note(stmt)
        lower, upper = self._e.value(stmt.lower), self._e.value(stmt.upper)
        strip = None
        if self._tile is not None:
            strip = AheadOfStrip(self._tile[1].base, self._tile[1].width, lower, upper)
        context, chosen = self.context, self._parallel.chosen
        write_loop(
            self._e, stmt, (lower, upper), strip, context, chosen, lambda: self.block(stmt.body)
        )

    def _while(self, stmt: While) -> None:
        b = self._b
        test, inside, after = b.new_block("while"), b.new_block("do"), b.new_block("done")
        b.branch(test)
        b.place(test)
        b.branch_if(self._e.value(stmt.condition), inside, after)
        b.place(inside)
        self.block(stmt.body)
        b.branch(test)
        b.place(after)

    def _if(self, stmt: If) -> None:
        orelse = (lambda: self.block(stmt.orelse)) if stmt.orelse else None
        either(self._b, self._e.value(stmt.condition), lambda: self.block(stmt.then), orelse)
