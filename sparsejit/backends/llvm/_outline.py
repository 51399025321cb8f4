"""Parallel loops in LLVM IR: the body of a loop as a function that the pool calls for chunks.

A loop ``for i in lower .. upper`` becomes three functions. ``body(captures, lower, upper, sums)``
runs a part of the iterations, ``cut(closure, chunk, chunks)`` says where a chunk begins, and
``work(closure, chunk, chunks)`` is what the pool calls. The closure is a block of memory with all
that the body uses from outside. Chunks have equal work: where iterations run over the segments of
position arrays, ``cut`` searches in these. Arrays arrive as ``noalias`` parameters.

What the iterations add up is kept apart for each chunk, and put together in the order of the
chunks, whatever thread had them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sparsejit.backends.llvm._arrays import Layout, element_size
from sparsejit.backends.llvm._closure import SLOT, Captures, Closure
from sparsejit.backends.llvm._control import first_place
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._partial_sums import (
    add_copies,
    add_sums,
    array_bytes,
    identity,
    start_copies,
)
from sparsejit.backends.llvm._pool import COUNT, RUN
from sparsejit.backends.llvm._text import COLD, Builder, Callee, Value, integer
from sparsejit.backends.llvm._types import in_register
from sparsejit.backends.llvm._work import Work, place_of, work_of
from sparsejit.ir.loop_walk import free_memrefs, free_vars
from sparsejit.ir.loops import Alloc, Dealloc, For, Memref, Stmt, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

if TYPE_CHECKING:
    from sparsejit.backends.llvm._statements import Statements

__all__ = ["write_parallel"]

_PER_THREAD = 8
"""Into how many chunks a loop is cut for each thread."""
_PARTS = 64
"""Into how many a loop is cut that adds up numbers, however many threads there are."""
_MOST_PARTS = 256
_MOST_COST = 1 << 20
"""The most that an iteration or an entry is thought to cost, in nanoseconds."""
_MOST_ROOM = 1 << 26
"""The most bytes that copies of reduced arrays may have."""
_INDEX = DType.INT64
_LOWER, _UPPER = Var("%lower", _INDEX), Var("%upper", _INDEX)


def write_parallel(parent: Statements, stmt: For) -> None:
    """Write a parallel loop at the place where ``parent`` is."""
    _Outline(parent, stmt).write()


class _Outline:
    """One loop: its captures, its functions, and the code that runs them."""

    def __init__(self, parent: Statements, stmt: For) -> None:
        self._parent = parent
        self._b = parent.builder
        self._e = parent.expressions
        self._functions = parent.functions
        self._stmt = stmt
        private = [parent.context.setup[what.name] for what in stmt.private]
        self._setup = tuple(private)
        self._sums = [(what, op) for what, op in stmt.reductions if isinstance(what, Var)]
        reduced = [(what, op) for what, op in stmt.reductions if isinstance(what, Memref)]
        self._work: Work = work_of(stmt)
        self._captures = self._captured()
        arrays = {array.memref.name: array for array in self._captures.arrays}
        self._reduced = [(arrays[memref.name], op) for memref, op in reduced]

    def write(self) -> None:
        if any(array.layout is not Layout.CONTIGUOUS for array, _ in self._reduced):
            self._parent.on_one_thread((*self._setup, self._stmt, *self._undoing()))
            return
        b = self._b
        lower, upper = self._e.value(self._stmt.lower), self._e.value(self._stmt.upper)
        some, end = b.new_block("some"), b.new_block("none")
        b.branch_if(b.compare("slt", lower, upper), some, end)
        b.place(some)
        self._write_some(lower, upper)
        b.branch(end)
        b.place(end)

    def _captured(self) -> Captures:
        """The variables and arrays from outside, as they are now."""
        stmt, e, b = self._stmt, self._e, self._b
        own = {what.name for what in stmt.private} | {var.name for var, _ in self._sums}
        inside = (*self._setup, *stmt.body)
        values = tuple(
            (var.name, e.value(var))
            for var in free_vars(inside)
            if var.name not in own and var.name != stmt.var.name
        )
        arrays = [
            e.arrays[memref.name] for memref in free_memrefs(inside) if memref.name not in own
        ]
        found = tuple(
            replace(
                array,
                pointer=array.data(b),
                extents=tuple(array.extent(b, axis) for axis in range(array.memref.rank)),
                in_slots=False,
            )
            for array in arrays
        )
        return Captures(values, found)

    # ------------------------------------------------------------ the body

    def _body(self) -> tuple[Callee, bool]:
        """Write ``body(captures, lower, upper, sums)``; also return whether it may fail."""
        flat = self._captures.flat()
        operands = [*(value.type for value in flat), "i64", "i64", "ptr"]
        function = self._functions.module.define(
            f"body_{self._stmt.var.name}",
            "i32",
            operands,
            attributes=[*self._notes(), "", "", "noalias"],
            suffix="noinline nounwind",
        )
        b = Builder(function)
        child = self._parent.child(b)
        *given, lower, upper, sums = function.params
        self._captures.with_flat(given).into(child.expressions)
        child.expressions.values.update({_LOWER.name: lower, _UPPER.name: upper})
        child.block(self._setup)
        slots = [self._start(child, var, op) for var, op in self._sums]
        child.block((replace(self._stmt, lower=_LOWER, upper=_UPPER, parallel=False),))
        for number, slot in enumerate(slots):
            kind = in_register(self._sums[number][0].dtype)
            b.store(b.load(slot, kind, 8), b.offset(sums, number * SLOT), 8)
        child.block(self._undoing())
        child.finish()
        b.finish()
        return function.callee, child.may_fail

    def _undoing(self) -> tuple[Stmt, ...]:
        """What frees the memory that only the loop uses."""
        return tuple(Dealloc(stmt.memref) for stmt in self._setup if isinstance(stmt, Alloc))

    def _notes(self) -> list[str]:
        """Say of pointers that they share nothing, where no two arrays show one memory."""
        roots = self._parent.context.roots
        names = [array.memref.name for array in self._captures.arrays]
        shown = [roots.get(name, name) for name in names]
        alone = {name for name in names if shown.count(roots.get(name, name)) == 1}
        return ["noalias" if name in alone else "" for name in self._captures.pointers()]

    def _start(self, child: Statements, var: Var, op: BinaryOp) -> Value:
        slot = child.builder.slot(in_register(var.dtype))
        child.expressions.slots[var.name] = slot
        start = child.expressions.constant(identity(op, var.dtype))
        child.builder.store(start, slot, 8)
        return slot

    # ------------------------------------------------------------ chunks

    def _cut(self, closure: Closure) -> Callee:
        """Write ``cut(closure, chunk, chunks)``: the first iteration of a chunk."""
        function = self._functions.module.define(
            f"cut_{self._stmt.var.name}", "i64", ["ptr", "i64", "i64"], suffix=COLD
        )
        b = Builder(function)
        block, chunk, chunks = function.params
        lower, upper, total, each = closure.read(b, block, "lower", "upper", "total", "each")
        e = Expressions(b, self._functions)
        weighed = [pos.name for chain, _ in self._work.stored for pos in chain]
        closure.arrays(b, block, weighed).into(e)
        share = _share(b, total, chunk, chunks)
        weights = closure.read(b, block, *(f"weight{n}" for n in range(len(self._work.stored))))
        if not weights:
            b.ret(b.add(lower, _share(b, b.op("sub", upper, lower), chunk, chunks)))
        else:

            def is_before(at: Value) -> Value:
                return b.compare("slt", self._done(e, weights, each, lower, at), share)

            b.ret(first_place(b, lower, upper, is_before))
        b.finish()
        return function.callee

    def _done(
        self, e: Expressions, weights: Sequence[Value], each: Value, lower: Value, at: Value
    ) -> Value:
        """The work of ``lower .. at``."""
        b = e.builder
        total = _times(b, each, b.op("sub", at, lower))
        e.values[_LOWER.name], e.values[_UPPER.name] = lower, at
        for (chain, _), weight in zip(self._work.stored, weights, strict=True):
            ends = e.value(place_of(chain, _UPPER)), e.value(place_of(chain, _LOWER))
            total = b.op("add", total, _times(b, weight, b.op("sub", *ends)))
        return total

    def _chunk(self, closure: Closure, body: Callee) -> Callee:
        """Write ``work(closure, chunk, chunks)``."""
        cut = self._cut(closure)
        function = self._functions.module.define(
            f"work_{self._stmt.var.name}", "i32", ["ptr", "i64", "i64"], suffix=COLD
        )
        b = Builder(function)
        block, chunk, chunks = function.params
        lower = b.call(cut, [block, chunk, chunks])
        upper = b.call(cut, [block, b.add(chunk, 1), chunks])
        captures = closure.captures(b, block)
        is_first = b.compare("eq", chunk, integer(0))
        for number, (array, _) in enumerate(self._reduced):
            room, size = closure.read(b, block, f"room{number}", f"size{number}")
            place = b.offset(room, _times(b, b.add(chunk, -1), size))
            first = captures.pointer(array.memref.name)
            captures = captures.moved(array.memref.name, b.select(is_first, first, place))
        (sums,) = closure.read(b, block, "sums")
        own = b.offset(sums, _times(b, chunk, SLOT * len(self._sums)))
        b.ret(b.call(body, [*captures.flat(), lower, upper, own]))
        b.finish()
        return function.callee

    # ------------------------------------------------------------ running

    def _write_some(self, lower: Value, upper: Value) -> None:
        """Run all iterations: by the pool where it pays, else by one call of the body."""
        b, e = self._b, self._e
        body, may_fail = self._body()
        each = e.value(self._work.each)
        each = self._cost(b.select(b.compare("sgt", each, integer(0)), each, integer(1)))
        weights = [self._cost(e.value(weight)) for _, weight in self._work.stored]
        total = self._done(e, weights, each, lower, upper)
        count = b.call(self._functions.module.declare(COUNT, "i64", ["i64"]), [total])
        rooms = [array_bytes(b, array) for array, _ in self._reduced]
        chunks = self._chunks(count, b.op("sub", upper, lower), total, rooms)
        sums = b.slot(f"[{_MOST_PARTS * max(len(self._sums), 1) * SLOT} x i8]")
        several, single, after = (b.new_block(name) for name in ("several", "single", "ran"))
        b.branch_if(b.compare("sgt", chunks, integer(1)), several, single)

        b.place(single)
        status_of_one = b.call(body, [*self._captures.flat(), lower, upper, sums])
        from_one = b.block
        b.branch(after)

        b.place(several)
        named = {"lower": lower, "upper": upper, "total": total, "each": each, "sums": sums}
        named |= {f"weight{number}": weight for number, weight in enumerate(weights)}
        spare = [_times(b, size, b.add(chunks, -1)) for size in rooms]
        room = [b.call(self._functions.malloc(), [size]) for size in spare]
        named |= {f"room{number}": value for number, value in enumerate(room)}
        named |= {f"size{number}": value for number, value in enumerate(rooms)}
        copies = b.add(chunks, -1)
        for pointer, (array, op) in zip(room, self._reduced, strict=True):
            start_copies(e, pointer, array, op, copies)
        status_of_all = self._run(body, named, chunks)
        for pointer, (array, op) in zip(room, self._reduced, strict=True):
            add_copies(e, pointer, array, op, copies)
            b.call(self._functions.free(), [pointer])
        from_all = b.block
        b.branch(after)

        b.place(after)
        status, parts = b.phi("i32"), b.phi("i64")
        status.add(status_of_one, from_one)
        status.add(status_of_all, from_all)
        parts.add(integer(1), from_one)
        parts.add(chunks, from_all)
        if may_fail:
            self._parent.fail(status.value, b.compare("ne", status.value, integer(0, "i32")))
        add_sums(e, sums, parts.value, self._sums)

    def _cost(self, estimate: Value) -> Value:
        """Bound an estimate, so that the sum for all iterations does not wrap."""
        least = self._functions.intrinsic("llvm.umin.i64", "i64", "i64", "i64")
        return self._b.call(least, [estimate, integer(_MOST_COST)])

    def _chunks(self, count: Value, length: Value, total: Value, rooms: Sequence[Value]) -> Value:
        """Into how many chunks to cut: 1 where one thread is enough, or room would be too much."""
        b = self._b
        chunks = _times(b, count, _PER_THREAD)
        if rooms:
            chunks = self._least(count, integer(_MOST_PARTS))
            room = _times(b, _total(b, rooms), chunks)
            is_small = b.compare("slt", room, integer(_MOST_ROOM))
            pays = b.compare("sle", room, _times(b, total, 2))
            chunks = b.select(b.op("and", is_small, pays), chunks, integer(1))
        elif self._setup:
            room = _total(b, self._private_bytes())
            pays = b.compare("sle", _times(b, room, chunks), total)
            fewer = b.compare("sle", _times(b, room, count), total)
            chunks = b.select(pays, chunks, b.select(fewer, count, integer(1)))
        elif self._sums:
            chunks = integer(_PARTS)
        chunks = self._least(chunks, integer(_MOST_PARTS)) if self._sums else chunks
        chunks = self._least(chunks, length)
        return b.select(b.compare("sgt", count, integer(1)), chunks, integer(1))

    def _private_bytes(self) -> list[Value]:
        """The sizes of the arrays that each chunk has alone and fills before it starts."""
        sizes = []
        for stmt in self._setup:
            if isinstance(stmt, Alloc) and stmt.fill is not None:
                size = integer(element_size(stmt.memref))
                for extent in stmt.extents:
                    size = _times(self._b, size, self._e.value(extent))
                sizes.append(size)
        return sizes

    def _least(self, lhs: Value, rhs: Value) -> Value:
        return self._b.select(self._b.compare("slt", lhs, rhs), lhs, rhs)

    def _run(self, body: Callee, named: dict[str, Value], chunks: Value) -> Value:
        b = self._b
        closure = Closure(self._captures, {name: value.type for name, value in named.items()})
        work = self._chunk(closure, body)
        block = b.slot(f"[{closure.size} x i8]")
        closure.fill(b, block, named)
        run = self._functions.module.declare(RUN, "i32", ["ptr", "ptr", "i64"])
        return b.call(run, [Value("ptr", f"@{work.name}"), block, chunks])


def _total(b: Builder, sizes: Sequence[Value]) -> Value:
    total = integer(0)
    for size in sizes:
        total = b.op("add", total, size)
    return total


def _times(b: Builder, lhs: Value, rhs: Value | int) -> Value:
    """A product that may wrap: what is far too large gives a bad estimate, and nothing worse."""
    return b.op("mul", lhs, integer(rhs) if isinstance(rhs, int) else rhs)


def _share(b: Builder, total: Value, chunk: Value, chunks: Value) -> Value:
    """``total * chunk / chunks`` without a product that may wrap."""
    rest = b.op("sdiv", b.mul(b.op("srem", total, chunks), chunk), chunks)
    return b.add(b.mul(b.op("sdiv", total, chunks), chunk), rest)
