"""Loop functions as LLVM modules.

``emit_module`` gives the text of a module with two functions: the loops, with ``noalias`` pointers
for all arrays, and an entry that takes the address of a block of 64-bit words. The words are, in
order: for each parameter, a scalar in two words or the address of an object whose fields are those
of a NumPy array; the same for each result that the caller has made; and room for the
addresses of the memory that results show, then for address, extents and strides of every other
result array. The functions return 0, or the status of a failure.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.backends.llvm._arrays import Array, Layout
from sparsejit.backends.llvm._context import Context
from sparsejit.backends.llvm._engine import Effort, Emitted
from sparsejit.backends.llvm._expand import Expanded
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._interface import OBJECT_HEAD, growable, owned_roots, preallocated
from sparsejit.backends.llvm._loop_notes import has_nested_segments
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.backends.llvm._parallel import ParallelLoops, parallel_loops
from sparsejit.backends.llvm._runs import Run, find_runs
from sparsejit.backends.llvm._statements import Statements
from sparsejit.backends.llvm._text import COLD, Builder, Module, Value, integer
from sparsejit.backends.llvm._text_values import Callee
from sparsejit.backends.llvm._tiles import Tile, find_tiles
from sparsejit.backends.llvm._types import in_register
from sparsejit.ir.loop_uses import roots
from sparsejit.ir.loop_walk import (
    all_statements,
    memrefs_defined,
    result_memrefs,
)
from sparsejit.ir.loops import (
    Alloc,
    Let,
    LoopFunc,
    Memref,
    SelectMemref,
    Stmt,
    Var,
    View,
)
from sparsejit.ir.user_functions import called_by_loops

__all__ = [
    "emit_module",
]


def _setup(func: LoopFunc) -> dict[str, Stmt]:
    """Return what introduces each array and variable of a function."""
    made: dict[str, Stmt] = {}
    for stmt in all_statements(func.body):
        match stmt:
            case Let(var):
                made[var.name] = stmt
            case Alloc(memref):
                made[memref.name] = stmt
            case _:
                pass
    return made


def emit_module(
    expanded: Expanded, layouts: Sequence[Layout], entry: str, options: CodeOptions
) -> Emitted:
    """Return the module of an expanded function; ``layouts`` are those of its array parameters."""
    return _ModuleWriter(expanded, layouts, options).emitted(entry)


class _ModuleWriter:
    """Builds the module of one function."""

    def __init__(self, expanded: Expanded, layouts: Sequence[Layout], options: CodeOptions) -> None:
        self._expanded = expanded
        self._func = expanded.func
        self._options = options
        self._module = Module()
        self._functions = Functions(self._module)
        remaining = iter(layouts)
        self._layouts = {
            param.name: next(remaining) for param in self._func.params if isinstance(param, Memref)
        }
        self._made = [stmt.memref for stmt in preallocated(self._func)]

    def emitted(self, entry: str) -> Emitted:
        operands: list[str] = []
        for param in self._func.params:
            if isinstance(param, Var):
                operands.append(in_register(param.dtype))
            else:
                has_strides = self._layouts[param.name] is not Layout.CONTIGUOUS
                operands += ["ptr", *["i64"] * (param.rank * (1 + has_strides))]
        operands += ["ptr"] * (len(self._made) + 1)
        attributes = ["noalias" if kind == "ptr" else "" for kind in operands]
        loops = self._module.define(
            "loops", "i32", operands, attributes=attributes, suffix="noinline nounwind"
        )
        self._write_loops(Builder(loops))
        outer = self._module.define(entry, "i32", ["ptr"], is_internal=False, suffix=COLD)
        self._write_entry(Builder(outer), loops.callee)
        return Emitted(self._module.text(), self._module.external, self._effort())

    def _effort(self) -> Effort:
        if has_nested_segments(self._func.body):
            return Effort.NESTED
        return Effort.FULL if self._module.needs_optimizer else Effort.PRINTED

    # ------------------------------------------------------------ the entry

    def _write_entry(self, b: Builder, loops: Callee) -> None:
        (block,) = b.function.params
        operands: list[Value] = []
        place = 0
        for param in (*self._func.params, *self._made):
            where = b.offset(block, 8 * place)
            match param:
                case Var():
                    operands.append(_scalar(b, where, in_register(param.dtype)))
                    place += 2
                case Memref():
                    operands += self._fields(b, b.load(where, "ptr", 8), param)
                    place += 1
        operands.append(b.offset(block, 8 * place))
        b.ret(b.call(loops, operands))
        b.finish()

    def _fields(self, b: Builder, array: Value, memref: Memref) -> list[Value]:
        """Return pointer, extents and strides of an array, as far as the loops take them."""
        found = [b.load(b.offset(array, OBJECT_HEAD), "ptr", 8)]
        layout = self._layouts.get(memref.name)
        if layout is None or not memref.rank:
            return found
        for which in (16, 24)[: 1 if layout is Layout.CONTIGUOUS else 2]:
            numbers = b.load(b.offset(array, OBJECT_HEAD + which), "ptr", 8)
            found += [b.load(b.offset(numbers, 8 * axis), "i64", 8) for axis in range(memref.rank)]
        return found

    # ------------------------------------------------------------ the loops

    def _write_loops(self, b: Builder) -> None:
        arguments = iter(b.function.params)
        values: dict[str, Value] = {}
        arrays: dict[str, Array] = {}
        for param in self._func.params:
            if isinstance(param, Var):
                values[param.name] = next(arguments)
                continue
            layout = self._layouts[param.name]
            pointer = next(arguments)
            extents = tuple(next(arguments) for _ in range(param.rank))
            count = 0 if layout is Layout.CONTIGUOUS else param.rank
            strides = tuple(next(arguments) for _ in range(count))
            arrays[param.name] = Array(param, layout, pointer, extents, strides)
        given = {memref.name: next(arguments) for memref in self._made}
        tiles, runs = self._nests()
        context = Context(
            growable=growable(self._func),
            roots=roots(self._func),
            setup=_setup(self._func),
            tiles=tiles,
            runs=runs,
            options=self._options,
        )
        statements = Statements(b, self._functions, context, given, self._parallel(tiles))
        statements.expressions.calls.functions = called_by_loops(self._func.body)
        statements.expressions.values.update(values)
        statements.expressions.arrays.update(arrays)
        statements.block(self._func.body)
        self._write_results(b, statements, next(arguments))
        statements.finish()
        b.finish()

    def _nests(self) -> tuple[dict[str, Tile], dict[str, Run]]:
        """The nests whose rows stay in registers: throughout, and in runs of equal coordinates."""
        if "tiles" in self._options.without:
            return {}, {}
        units = {name for name, layout in self._layouts.items() if layout is not Layout.STRIDED}
        for stmt in all_statements(self._func.body):
            match stmt:
                case View():
                    pass
                case SelectMemref(memref, _, then, orelse):
                    units.update({memref.name} if {then.name, orelse.name} <= units else ())
                case _:
                    units.update(made.name for made in memrefs_defined(stmt))
        known = self._func.body, roots(self._func), frozenset(units)
        return find_tiles(*known), {} if "runs" in self._options.without else find_runs(*known)

    def _parallel(self, tiles: dict[str, Tile]) -> ParallelLoops:
        """The loops that run on several threads."""
        if "threads" in self._options.without:
            return ParallelLoops()
        return parallel_loops(self._func, tiles)

    def _write_results(self, b: Builder, statements: Statements, results: Value) -> None:
        """Write address, extents and strides of the result arrays to the block."""
        expressions = statements.expressions
        if self._expanded.status is not None:
            status = b.cast("trunc", expressions.value(self._expanded.status), "i32")
            statements.fail(status, b.compare("ne", status, integer(0, "i32")))
        made = {memref.name for memref in self._made}
        words = [expressions.arrays[root].data(b) for root in owned_roots(self._func)]
        for memref in result_memrefs(self._func):
            if memref.name not in made:
                array = expressions.arrays[memref.name]
                words.append(array.data(b))
                words += [array.extent(b, axis) for axis in range(memref.rank)]
                words += [array.stride(b, axis) for axis in range(memref.rank)]
        for place, word in enumerate(words):
            b.store(word, b.offset(results, 8 * place), 8)


def _scalar(b: Builder, where: Value, kind: str) -> Value:
    if kind == "i1":
        return b.compare("ne", b.load(where, "i8", 8), integer(0, "i8"))
    return b.load(where, kind, 8)
