"""Loop functions as LLVM modules.

``emit_module`` gives the text of a module with two functions: the loops, with ``noalias`` pointers
for all arrays, and ``entry(block)``, which unpacks a block of 64-bit words. The words are, in
order: for each parameter, a scalar in two words, or the address of an array, its extents and (where
it is not contiguous) its strides in bytes; the addresses of results that the caller has made; and
room for address, extents and strides of every result array. The functions return 0, or 1 when
there is no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from llvmlite import ir

from sparsejit.backends.llvm._arrays import Array, element_size, slots_for
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._types import I64, constant, in_register
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, result_memrefs
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopFunc,
    Memref,
    Push,
    Scan,
    Search,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    Trim,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = ["Layout", "emit_module", "preallocated"]

I8, I32 = ir.IntType(8), ir.IntType(32)
POINTER = ir.PointerType()
_SUMS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which array parameters are contiguous, in the order of the parameters."""

    contiguous: tuple[bool, ...]


def preallocated(func: LoopFunc) -> tuple[Alloc, ...]:
    """Return the allocations of results that the caller can make: extents known beforehand."""
    params = {param.name for param in func.params if isinstance(param, Var)}
    wanted = {memref.name for memref in result_memrefs(func)}
    grown = {
        stmt.memref.name for stmt in all_statements(func.body) if isinstance(stmt, Push | Trim)
    }

    def is_known(expr: Expr) -> bool:
        parts = list(all_expressions(expr))
        return all(not isinstance(part, Load | DimOf | Search) for part in parts) and all(
            part.name in params for part in parts if isinstance(part, Var)
        )

    return tuple(
        stmt
        for stmt in func.body
        if isinstance(stmt, Alloc)
        and stmt.memref.name in wanted - grown
        and all(is_known(extent) for extent in stmt.extents)
    )


def emit_module(func: LoopFunc, layout: Layout, *, reassociate: bool) -> str:
    """Return the text of the module of an expanded function (see ``_expand``)."""
    return _Writer(func, layout, reassociate).module_text()


class _Writer:
    """Builds the module of one function."""

    def __init__(self, func: LoopFunc, layout: Layout, reassociate: bool) -> None:
        self._func = func
        self._layout = layout
        self._flags: tuple[str, ...] = ("reassoc", "contract") if reassociate else ()
        self._module = ir.Module(name=func.name)
        self._functions = Functions(self._module)
        self._ready = {stmt.memref.name: stmt for stmt in preallocated(func)}
        self._loops = 0

    # ------------------------------------------------------------ the two functions

    def _words(self) -> list[tuple[Memref | Var, ir.Type, bool]]:
        """The arguments of the loops: what for, of which type, and whether it takes two words."""
        words: list[tuple[Memref | Var, ir.Type, bool]] = []
        contiguous = iter(self._layout.contiguous)
        for param in self._func.params:
            match param:
                case Var(_, dtype):
                    words.append((param, in_register(dtype), True))
                case Memref():
                    count = param.rank if next(contiguous) else 2 * param.rank
                    words.append((param, POINTER, False))
                    words += [(param, I64, False)] * count
                case _:
                    assert_never(param)
        words += [(stmt.memref, POINTER, False) for stmt in self._ready.values()]
        return words

    def module_text(self) -> str:
        words = self._words()
        kinds = [kind for _, kind, _ in words]
        loops = ir.Function(self._module, ir.FunctionType(I32, [*kinds, POINTER]), "loops")
        loops.linkage = "internal"
        for argument in loops.args:
            if argument.type == POINTER:
                argument.add_attribute("noalias")
        self._write_loops(loops, words)
        entry = ir.Function(self._module, ir.FunctionType(I32, [POINTER]), "entry")
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        place = 0
        operands = []
        for _, kind, is_wide in words:
            where = builder.gep(entry.args[0], [ir.Constant(I64, 8 * place)], source_etype=I8)
            if kind == ir.IntType(1):
                byte = builder.load(where, typ=I8)
                operands.append(builder.icmp_unsigned("!=", byte, ir.Constant(I8, 0)))
            else:
                operands.append(builder.load(where, typ=kind))
            place += 2 if is_wide else 1
        results = builder.gep(entry.args[0], [ir.Constant(I64, 8 * place)], source_etype=I8)
        builder.ret(builder.call(loops, [*operands, results]))
        return _with_distinct_loops(str(self._module))

    def _write_loops(
        self, function: ir.Function, words: Sequence[tuple[Memref | Var, ir.Type, bool]]
    ) -> None:
        function.append_basic_block("slots")
        body = function.append_basic_block("body")
        builder = ir.IRBuilder(function.entry_basic_block)
        builder.branch(body)
        builder.position_at_end(body)
        self._b = builder
        self._e = Expressions(builder, self._functions)
        self._function = function
        arguments = iter(function.args[:-1])
        contiguous = iter(self._layout.contiguous)
        for param in self._func.params:
            if isinstance(param, Var):
                self._e.values[param.name] = next(arguments)
                continue
            pointer = next(arguments)
            extents = tuple(next(arguments) for _ in range(param.rank))
            dense = next(contiguous)
            strides = None if dense else tuple(next(arguments) for _ in range(param.rank))
            self._e.arrays[param.name] = Array(param, pointer, extents, strides, in_slots=False)
        self._given = {name: next(arguments) for name in self._ready}
        self._block(self._func.body)
        self._return(function.args[-1])

    def _return(self, results: ir.Value) -> None:
        """Write address, extents and strides of the result arrays to the block."""
        b = self._b
        place = 0

        def put(value: ir.Value) -> None:
            nonlocal place
            where = b.gep(results, [ir.Constant(I64, 8 * place)], source_etype=I8)
            b.store(value, where)
            place += 1

        for memref in result_memrefs(self._func):
            array = self._e.arrays[memref.name]
            put(array.data(b))
            for axis in range(memref.rank):
                put(array.extent(b, axis))
            for axis in range(memref.rank):
                put(array.stride(b, axis))
        b.ret(ir.Constant(I32, 0))

    # ------------------------------------------------------------ statements

    def _block(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let(var, value, mutable):
                self._let(var, value, mutable)
            case Assign(var, value):
                self._b.store(
                    self._e.value(value, self._reduction(var, value)), self._e.slots[var.name]
                )
            case Store():
                self._store(stmt)
            case Alloc():
                self._alloc(stmt)
            case Dealloc(memref):
                free = self._functions.external("free", ir.VoidType(), POINTER)
                self._b.call(free, [self._e.arrays[memref.name].data(self._b)])
            case Copy(target, source):
                self._copy(target, source)
            case View():
                self._view(stmt)
            case Push():
                self._push(stmt)
            case Trim():
                self._trim(stmt)
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case If():
                self._if(stmt)
            case Sort() | SortPrefix() | Scan() | Assemble():
                raise AssertionError("the function was expanded")
            case _:
                assert_never(stmt)

    def _let(self, var: Var, value: Expr, mutable: bool) -> None:
        computed = self._e.value(value)
        if not mutable:
            self._e.values[var.name] = computed
            return
        with self._b.goto_entry_block():
            slot = self._b.alloca(in_register(var.dtype))
        self._e.slots[var.name] = slot
        self._b.store(computed, slot)

    def _reduction(self, var: Var, value: Expr) -> tuple[str, ...]:
        """Flags for ``var = var + term``: a reduction may be reassociated and contracted."""
        match value:
            case Binary(op, lhs, _, _) if op in _SUMS and lhs == var:
                return self._flags
            case _:
                return ()

    def _store(self, stmt: Store) -> None:
        array = self._e.arrays[stmt.memref.name]
        if stmt.reduce is None:
            self._e.store(array, stmt.indices, self._e.value(stmt.value))
            return
        flags = self._flags if stmt.reduce in _SUMS else ()
        value = self._e.value(stmt.value, flags)
        before = self._e.value(Load(stmt.memref, stmt.indices))
        dtype = stmt.memref.dtype
        total = self._e.arithmetic.binary(stmt.reduce, before, value, dtype, flags)
        self._e.store(array, stmt.indices, total)

    # ------------------------------------------------------------ memory

    def _allocate(self, size: ir.Value, *, zeroed: bool = False) -> ir.Value:
        """Return new memory; leave the function with 1 where there is none."""
        b = self._b
        if zeroed:
            calloc = self._functions.external("calloc", POINTER, I64, I64)
            pointer = b.call(calloc, [size, ir.Constant(I64, 1)])
        else:
            malloc = self._functions.external("malloc", POINTER, I64)
            pointer = b.call(malloc, [size])
        self._check_memory(pointer, size)
        return pointer

    def _check_memory(self, pointer: ir.Value, size: ir.Value) -> None:
        b = self._b
        null = b.icmp_unsigned("==", b.ptrtoint(pointer, I64), ir.Constant(I64, 0))
        missing = b.and_(null, b.icmp_signed("!=", size, ir.Constant(I64, 0)))
        fail, go_on = b.append_basic_block("no_memory"), b.append_basic_block("memory")
        b.cbranch(missing, fail, go_on)
        b.position_at_end(fail)
        b.ret(ir.Constant(I32, 1))
        b.position_at_end(go_on)

    def _alloc(self, stmt: Alloc) -> None:
        b, memref = self._b, stmt.memref
        array = slots_for(b, memref, strided=False)
        self._e.arrays[memref.name] = array
        count: ir.Value = ir.Constant(I64, 1)
        for slot, extent in zip(array.extents, stmt.extents, strict=True):
            value = self._e.value(extent)
            b.store(value, slot)
            count = b.mul(count, value)
        size = b.mul(count, ir.Constant(I64, element_size(memref)))
        if memref.name in self._given:
            pointer = self._given[memref.name]
        else:
            pointer = self._allocate(size)
        b.store(pointer, array.pointer)
        if stmt.fill is None:
            return
        fill = self._e.arithmetic.cast(
            constant(stmt.fill) if memref.dtype is memref.dtype.compute else self._wide(stmt),
            stmt.fill.dtype.compute,
            memref.dtype,
        )
        flat = Array(Memref(memref.name, memref.dtype, 1), pointer, (count,), None, in_slots=False)
        self._count(count, lambda at: self._put(flat, at, fill))

    def _wide(self, stmt: Alloc) -> ir.Value:
        assert stmt.fill is not None
        value = stmt.fill.value
        assert not isinstance(value, complex)
        return ir.Constant(ir.FloatType(), float(value))

    def _put(self, array: Array, at: ir.Value, value: ir.Value) -> None:
        name = f"%{array.memref.name}"
        self._e.values[name] = at
        self._e.store(array, (Var(name, DType.INT64),), value)

    def _copy(self, target: Memref, source: Memref) -> None:
        """Copy element by element over all axes (LLVM makes it a block copy where it is one)."""
        to, origin = self._e.arrays[target.name], self._e.arrays[source.name]
        at: list[Expr] = []

        def axis(number: int) -> None:
            if number == target.rank:
                self._e.store(to, tuple(at), self._e.value(Load(source, tuple(at))))
                return

            def body(index: ir.Value) -> None:
                name = f"%axis{number}"
                self._e.values[name] = index
                at.append(Var(name, DType.INT64))
                axis(number + 1)
                at.pop()

            self._count(origin.extent(self._b, number), body)

        axis(0)

    def _view(self, stmt: View) -> None:
        b = self._b
        source = self._e.arrays[stmt.source.name]
        view = slots_for(b, stmt.memref, strided=True)
        assert view.strides is not None
        pointer = source.data(b)
        kept = 0
        for axis in range(stmt.source.rank):
            stride = source.stride(b, axis)
            offset = b.mul(self._e.value(stmt.offsets[axis]), stride)
            pointer = b.gep(pointer, [offset], source_etype=I8)
            if axis in stmt.dropped:
                continue
            b.store(self._e.value(stmt.sizes[axis]), view.extents[kept])
            step = b.mul(stride, ir.Constant(I64, stmt.strides[axis]))
            b.store(step, view.strides[kept])
            kept += 1
        b.store(pointer, view.pointer)
        self._e.arrays[stmt.memref.name] = view

    def _push(self, stmt: Push) -> None:
        b = self._b
        array = self._e.arrays[stmt.memref.name]
        count = self._e.value(stmt.count)
        full = b.icmp_signed(">=", count, array.extent(b, 0))
        grow, go_on = b.append_basic_block("grow"), b.append_basic_block("grown")
        b.cbranch(full, grow, go_on)
        b.position_at_end(grow)
        twice = b.mul(array.extent(b, 0), ir.Constant(I64, 2))
        least = b.add(count, ir.Constant(I64, 16))
        room = b.select(b.icmp_signed(">", twice, least), twice, least)
        self._resize(array, room)
        b.branch(go_on)
        b.position_at_end(go_on)
        self._put(array, count, self._e.value(stmt.value))

    def _resize(self, array: Array, count: ir.Value) -> None:
        b = self._b
        size = b.mul(count, ir.Constant(I64, element_size(array.memref)))
        realloc = self._functions.external("realloc", POINTER, POINTER, I64)
        pointer = b.call(realloc, [array.data(b), size])
        self._check_memory(pointer, size)
        b.store(pointer, array.pointer)
        b.store(count, array.extents[0])

    def _trim(self, stmt: Trim) -> None:
        """Give back the room behind the last element; one byte stays of an empty array."""
        b = self._b
        array = self._e.arrays[stmt.memref.name]
        count = self._e.value(stmt.count)
        some = b.icmp_signed(">", count, ir.Constant(I64, 0))
        shrink, go_on = b.append_basic_block("shrink"), b.append_basic_block("shrunk")
        b.cbranch(some, shrink, go_on)
        b.position_at_end(shrink)
        self._resize(array, count)
        b.branch(go_on)
        b.position_at_end(go_on)
        b.store(count, array.extents[0])

    # ------------------------------------------------------------ control

    def _count(self, count: ir.Value, body: object) -> None:
        assert callable(body)
        self._loop(ir.Constant(I64, 0), count, body, vectorize=True)

    def _loop(self, lower: ir.Value, upper: ir.Value, body: object, *, vectorize: bool) -> None:
        assert callable(body)
        b = self._b
        before = b.block
        inside, after = b.append_basic_block("for"), b.append_basic_block("end")
        b.cbranch(b.icmp_signed("<", lower, upper), inside, after)
        b.position_at_end(inside)
        at = b.phi(I64)
        at.add_incoming(lower, before)
        body(at)
        following = b.add(at, ir.Constant(I64, 1), flags=("nsw",))
        at.add_incoming(following, b.block)
        back = b.cbranch(b.icmp_signed("<", following, upper), inside, after)
        if not vectorize:
            self._loops += 1
            mark = self._module.add_metadata([f"loop {self._loops}", "novector"])
            back.set_metadata("llvm.loop", mark)
        b.position_at_end(after)

    def _for(self, stmt: For) -> None:
        lower, upper = self._e.value(stmt.lower), self._e.value(stmt.upper)

        def body(at: ir.Value) -> None:
            self._e.values[stmt.var.name] = at
            self._block(stmt.body)

        self._loop(lower, upper, body, vectorize=not _gathers(stmt))

    def _while(self, stmt: While) -> None:
        b = self._b
        test, inside = b.append_basic_block("while"), b.append_basic_block("do")
        after = b.append_basic_block("done")
        b.branch(test)
        b.position_at_end(test)
        b.cbranch(self._e.value(stmt.condition), inside, after)
        b.position_at_end(inside)
        self._block(stmt.body)
        b.branch(test)
        b.position_at_end(after)

    def _if(self, stmt: If) -> None:
        b = self._b
        condition = self._e.value(stmt.condition)
        then, end = b.append_basic_block("if"), b.append_basic_block("endif")
        orelse = b.append_basic_block("else") if stmt.orelse else end
        b.cbranch(condition, then, orelse)
        b.position_at_end(then)
        self._block(stmt.then)
        b.branch(end)
        if stmt.orelse:
            b.position_at_end(orelse)
            self._block(stmt.orelse)
            b.branch(end)
        b.position_at_end(end)


def _gathers(stmt: For) -> bool:
    """Whether an innermost loop loads where another load says: gathers, slow when vectorized."""
    coordinates = {
        inner.var.name
        for inner in stmt.body
        if isinstance(inner, Let)
        and any(isinstance(part, Load) for part in all_expressions(inner.value))
    }
    for inner in stmt.body:
        for outer in expressions(inner):
            for part in all_expressions(outer):
                if isinstance(part, Load) and any(
                    isinstance(use, Var) and use.name in coordinates
                    for index in part.indices
                    for use in all_expressions(index)
                ):
                    return True
    return False


def _with_distinct_loops(text: str) -> str:
    """Turn the marks of loops into loop identifiers, which name themselves.

    llvmlite writes plain metadata; LLVM wants ``!7 = distinct !{!7, !8}``.
    """
    lines = []
    number = 0
    for line in text.splitlines():
        if line.startswith("!") and '"novector"' in line:
            name = line.split(" ", 1)[0]
            number += 1
            lines.append(f"{name} = distinct !{{{name}, !90000}}")
        else:
            lines.append(line)
    if number:
        lines.append('!90000 = !{!"llvm.loop.vectorize.enable", i1 false}')
    return "\n".join(lines) + "\n"
