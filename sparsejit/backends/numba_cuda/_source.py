"""A kernel as Python text for Numba CUDA: one flat function, right for any number of threads.

In: a ``Launch``. Out: its text, in which the threads (or warps) of a grid deal out the iterations.
In a warp all lanes run the same statements; they share the iterations of inner parallel loops and
combine what they have by shuffles, and lane 0 stores what is one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sparsejit.backends import _spellings
from sparsejit.backends._expressions import constant
from sparsejit.backends._layout import Atom, Call, Index, Infix, Node, Prefix, flat, layout
from sparsejit.backends.numba_cuda._expressions import KernelExpressions
from sparsejit.backends.numba_cuda._lowered import Lowered, Total
from sparsejit.backends.numba_cuda._memory import volume
from sparsejit.backends.numba_cuda._turns import Counter, InTurns, in_turns
from sparsejit.backends.python_source import SourceWriter
from sparsejit.ir.device_statements import Schedule
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.loop_writing import int_
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    Memref,
    SortPrefix,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import renamed
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["KernelWriter", "OwnNames"]

_SHUFFLED = (DType.INT32, DType.INT64, DType.FLOAT32, DType.FLOAT64)
_ATOMIC = {
    BinaryOp.ADD: "atomic_add",
    BinaryOp.SUB: "atomic_sub",
    BinaryOp.MIN: "atomic_min",
    BinaryOp.MAX: "atomic_max",
    BinaryOp.AND: "atomic_and",
    BinaryOp.OR: "atomic_or",
    BinaryOp.XOR: "atomic_xor",
}
_ANY_OF_BOOLS = (BinaryOp.OR, BinaryOp.ADD, BinaryOp.MAX)


@dataclass(frozen=True, slots=True)
class OwnNames:
    """The names of what a thread knows of itself."""

    thread: str
    threads: str
    lane: str
    group: str
    groups: str


class KernelWriter(SourceWriter):
    """The lines of one kernel."""

    def __init__(
        self, lowered: Lowered, names: dict[str, str], expressions: KernelExpressions, own: OwnNames
    ) -> None:
        super().__init__(names, expressions)
        self._kernel = lowered
        self._kernel_expressions = expressions
        self._own = own
        self._is_warp = False
        """Whether the lanes of a warp run this statement together."""

    # ------------------------------------------------------------ the kernel

    def write(self) -> None:
        """Write the body of the function."""
        kernel, own = self._kernel, self._own
        match kernel.schedule:
            case Schedule.ONE_THREAD:
                self.line("if cuda.grid(1) != 0:")
                self.line("    return")
                self._starts(Atom("0"))
                self.block(kernel.before)
                return
            case Schedule.WARP:
                self.line(f"{own.lane} = int64(cuda.laneid)")
                self.line(f"{own.group} = int64(cuda.grid(1)) >> 5")
                self.line(f"{own.groups} = int64(cuda.gridsize(1)) >> 5")
                first, step = own.group, own.groups
            case Schedule.THREAD | Schedule.BALANCED:
                self.line(f"{own.thread} = int64(cuda.grid(1))")
                self.line(f"{own.threads} = int64(cuda.gridsize(1))")
                first, step = own.thread, own.threads
        self._starts(Atom(first))
        self.block(kernel.before)
        is_warp = kernel.schedule is Schedule.WARP
        self._copies(*((own.lane, "32") if is_warp else ("0", "1")))
        for total in kernel.totals:
            self.assign(self.names[total.var.name], _identity(total.op, total.var.dtype))
        self._is_warp = kernel.schedule is Schedule.WARP
        assert kernel.loop is not None
        self._dealt(kernel.loop, first, step)
        for total in kernel.totals:
            self._finish(total)

    def _starts(self, group: Node) -> None:
        """Where the part of a workspace begins that this group of threads has."""
        for alloc in self._kernel.memory.workspaces:
            start = self._kernel.memory.starts[alloc.memref.name]
            size = self.expressions.typed(volume(alloc.extents))
            self.assign(self.names[start.name], Infix("*", group, size))

    def _copies(self, first: str, step: str) -> None:
        """What each group of threads has of its own starts as what is there, if anything is."""
        memory = self._kernel.memory
        copied = [pair for pair in memory.private if pair[0].name in memory.copied]
        for original, own in copied:
            at = self.fresh(f"{self.names[own.name]}_at")
            extent = self.expressions.extent(original, 0)
            self.line(f"for {at} in range({first}, {flat(extent)}, {step}):")
            target = f"{self.names[own.name]}[{self.names[memory.starts[own.name].name]} + {at}]"
            self.line(f"    {target} = {self.names[original.name]}[{at}]")
        if copied and self._kernel.schedule is Schedule.WARP:
            self.line("cuda.syncwarp()")

    def _dealt(self, loop: For, first: str, step: str) -> None:
        """The loop of the kernel; as a ``while``, since a range would divide by the step."""
        var = self.names[loop.var.name]
        self.assign(var, _plus(self.expressions.expression(loop.lower), first))
        upper = self.expressions.expression(loop.upper)
        if not isinstance(upper, Atom):
            end = self.fresh("end")
            self.assign(end, upper)
            upper = Atom(end)
        self.nested("while", Infix("<", Atom(var), upper), loop.body)
        self.line(f"    {var} += {step}")

    def _strided(self, loop: For, first: str, step: str) -> None:
        lower, upper = (self.expressions.expression(e) for e in (loop.lower, loop.upper))
        start = _plus(lower, first)
        head = f"for {self.names[loop.var.name]} in"
        self.nested(head, Call("range", (start, upper, Atom(step))), loop.body)

    def _finish(self, total: Total) -> None:
        """One atomic step for a warp: of what its lanes have, or what each of them has alike."""
        if self._kernel.schedule is not Schedule.WARP:
            self.line(f"{self._own.lane} = int64(cuda.laneid)")
            self._combine(self.names[total.var.name], total.op, total.var.dtype)
        self.line(f"if {self._own.lane} == 0:")
        self._indent += 4
        self._atomic(total.memref, total.indices, Atom(self.names[total.var.name]), total.store)
        self._indent -= 4

    # ------------------------------------------------------------ statements

    def statement(self, stmt: Stmt) -> None:
        """Write one statement."""
        match stmt:
            case Alloc() | View() | Dealloc():
                pass  # places are arithmetic, and workspaces are there from the start
            case SortPrefix():
                self._sort(stmt)
            case _:
                super().statement(stmt)

    def control(self, stmt: For | While | If) -> None:
        """Write a loop or a branch; in a warp, lanes share parallel loops."""
        match stmt:
            case For(parallel=True, reductions=()) if self._is_warp:
                self._shared_loop(stmt)
            case For(parallel=True) if self._is_warp:
                self._reduction(stmt)
            case For() if self._is_warp and (turns := self._in_turns(stmt)) is not None:
                self._turns(turns)
            case _:
                super().control(stmt)

    def _in_turns(self, loop: For) -> InTurns | None:
        return in_turns(loop, self._kernel.memory.places, self._kernel.atomics)

    def _shared_loop(self, loop: For) -> None:
        wait = self._kernel.must_wait(loop)
        if wait:
            self.line("cuda.syncwarp()")
        self._is_warp = False
        self._strided(loop, self._own.lane, "32")
        self._is_warp = True
        if wait:
            self.line("cuda.syncwarp()")

    def _reduction(self, loop: For) -> None:
        """Each lane reduces its share from the identity; then all have the sum of the shares."""
        parts: dict[str, Memref | Var] = {}
        reductions = [(var, op) for var, op in loop.reductions if isinstance(var, Var)]
        for var, op in reductions:
            parts[var.name] = part = replace(var, name=f"{var.name}%part")
            self.names[part.name] = self.fresh(f"{self.names[var.name]}_part")
            self.assign(self.names[part.name], _identity(op, var.dtype))
        self._is_warp = False
        self._strided(renamed(loop, parts), self._own.lane, "32")
        self._is_warp = True
        for var, op in reductions:
            part_name, name = self.names[f"{var.name}%part"], self.names[var.name]
            self._combine(part_name, op, var.dtype)
            self.assign(name, _spellings.binary(op, Atom(name), Atom(part_name), var.dtype))

    def _turns(self, turns: InTurns) -> None:
        """Each lane takes a pass of 32 (see ``_turns``)."""
        loop = turns.loop
        if not turns.keys and not turns.counters:
            self._shared_loop(loop)
            return
        wait = self._kernel.must_wait(loop)
        if wait:
            self.line("cuda.syncwarp()")
        var, lane = self.names[loop.var.name], self._own.lane
        first, end = self.fresh(f"{var}_first"), self.fresh(f"{var}_end")
        self.assign(end, self.expressions.typed(loop.upper))
        lower = self.expressions.expression(loop.lower)
        self.line(f"for {first} in range({flat(lower)}, {end}, 32):")
        self._indent += 4
        self.line(f"{var} = {first} + {lane}")
        for counter in turns.counters:
            found = self.names[_found(counter).name] = self.fresh(f"{counter.var.name}_found")
            self.line(f"{found} = False")
        body = map_body(turns.body, change_stmt=partial(self._kept, turns.counters))
        self._is_warp = False
        if turns.keys:
            self._in_order(turns, f"{var} < {end}", body)
        else:
            self.nested("if", Infix("<", Atom(var), Atom(end)), body)
        for counter in turns.counters:
            self._append(counter)
        self._is_warp = True
        self._indent -= 4
        if wait:
            self.line("cuda.syncwarp()")

    def _in_order(self, turns: InTurns, has_pass: str, body: Sequence[Stmt]) -> None:
        """Lanes with equal keys run one after another; a lane without a pass has no turn."""
        lane, fresh = self._own.lane, self.fresh
        keys = [fresh("key") for _ in turns.keys]
        alike, turn, now, going = (fresh(name) for name in ("alike", "turn", "now", "going"))
        for key in keys:
            self.line(f"{key} = int64(-1) - {lane}")
        self.line(f"if {has_pass}:")
        self._indent += 4
        self.block(turns.ready)
        for name, key in zip(keys, turns.keys, strict=True):
            self.assign(name, Call("int64", (self.expressions.expression(key),)))
        self._indent -= 4
        self.line(f"{alike} = {' & '.join(f'peers({key})' for key in keys)}")
        self.line(f"{turn} = lanes_below({alike}, {lane}) if {has_pass} else int64(-1)")
        self.line(f"{now} = int64(0)")
        self.line(f"{going} = int64(1)")
        self.line(f"while {going} != 0:")
        self._indent += 4
        self.nested("if", Infix("==", Atom(turn), Atom(now)), body)
        self.line("cuda.syncwarp()")
        self.line(f"{now} += 1")
        self.line(f"{going} = vote({turn} >= {now})")
        self._indent -= 4

    def _kept(self, counters: Sequence[Counter], stmt: Stmt) -> tuple[Stmt, ...]:
        """A lane keeps what it appends, and remembers that it does."""
        for counter in counters:
            if stmt == counter.step:
                return (Assign(_found(counter), Lit(Const(True, DType.BOOL))),)
            if stmt in counter.peaks:
                return ()
            if isinstance(stmt, Store) and stmt in counter.stores:
                kept = _what(stmt)
                pointer = self._kernel.memory.places[stmt.memref.name].pointer
                self.names[kept.name] = self.fresh(f"{self.names[pointer.name]}_kept")
                return (Let(kept, stmt.value),)
        return (stmt,)

    def _append(self, counter: Counter) -> None:
        count, lane = self.names[counter.var.name], self._own.lane
        found, votes = self.names[_found(counter).name], self.fresh(f"{counter.var.name}_votes")
        self.line(f"{votes} = vote({found})")
        if counter.stores:
            place = Var(f"{counter.var.name}%place", INDEX)
            self.names[place.name] = self.fresh(f"{count}_place")
            self.line(f"if {found}:")
            self._indent += 4
            self.line(f"{self.names[place.name]} = {count} + lanes_below({votes}, {lane})")
            for store in counter.stores:
                self._plain_store(replace(store, indices=(place,), value=_what(store)))
            self._indent -= 4
        self.line(f"{count} += count_lanes({votes})")
        if counter.peaks:
            self.line(f"if {votes} != 0:")
            for peak in counter.peaks:
                name = self.names[peak.var.name]
                self.line(f"    {name} = max({name}, {count})")

    def _combine(self, name: str, op: BinaryOp, dtype: DType) -> None:
        """Reduce over the lanes of a warp."""
        for distance in (16, 8, 4, 2, 1):
            other = _shuffled(Atom(name), distance, dtype)
            node = _spellings.binary(op, Atom(name), other, dtype)
            self.assign(name, _as_float32(node, dtype))

    def store(self, stmt: Store) -> None:
        """Write a store; in a warp, lane 0 does it."""
        alone = self._is_warp
        wait = alone and self._kernel.must_wait(stmt)
        if wait:
            self.line("cuda.syncwarp()")
        if alone:
            self.line(f"if {self._own.lane} == 0:")
            self._indent += 4
        self._plain_store(stmt)
        if alone:
            self._indent -= 4
        if wait:
            self.line("cuda.syncwarp()")

    def _plain_store(self, stmt: Store) -> None:
        memref, value = stmt.memref, stmt.value
        if stmt.reduce is not None and memref.name in self._kernel.atomics:
            self._atomic(memref, stmt.indices, self.expressions.typed(value), stmt.reduce)
        elif memref.dtype is DType.BOOL:
            node = self.expressions.typed(value)
            if stmt.reduce is not None:
                before = self.expressions.element(memref, stmt.indices)
                node = _spellings.binary(stmt.reduce, before, node, DType.BOOL)
            pointer, offset = self._kernel_expressions.address(memref, stmt.indices)
            self._put(pointer, offset, Call("uint8", (node,)))
        else:
            super().store(stmt)

    def _put(self, pointer: str, offset: Node, value: Node) -> None:
        text = layout(Index(pointer, (offset,)), self._indent, self._indent + 40)
        self.assign(text, value)

    def _atomic(self, memref: Memref, indices: tuple[Expr, ...], value: Node, op: BinaryOp) -> None:
        """One atomic step; of bools, a store of the value that wins."""
        pointer, offset = self._kernel_expressions.address(memref, indices)
        if memref.dtype is DType.BOOL:
            any_of = op in _ANY_OF_BOOLS
            self.nested("if", value if any_of else Prefix("not ", value), ())
            self.lines.pop()  # the `pass` of the empty branch
            self._indent += 4
            self._put(pointer, offset, Atom("1" if any_of else "0"))
            self._indent -= 4
            return
        at = offset if not _is_number(offset) else Call("int64", (offset,))
        self.assign("", Call(_ATOMIC[op], (Atom(pointer), at, value)), "")

    def _sort(self, stmt: SortPrefix) -> None:
        assert not self._is_warp, "lanes sort together by loops that they share"
        pointer, start = self._kernel_expressions.address(stmt.memref, (int_(0),))
        at = Call("int64", (start,)) if _is_number(start) else start
        call = Call("sort_range", (Atom(pointer), at, self.expressions.typed(stmt.count)))
        self.assign("", call, "")


def _found(counter: Counter) -> Var:
    """Whether a lane counts in its pass."""
    return Var(f"{counter.var.name}%found", DType.BOOL)


def _what(store: Store) -> Var:
    """What a lane appends to an array."""
    return Var(f"{store.memref.name}%kept", store.memref.dtype)


def _plus(lower: Node, first: str) -> Node:
    return Atom(first) if lower == Atom("0") else Infix("+", lower, Atom(first))


def _is_number(node: Node) -> bool:
    return isinstance(node, Atom) and node.text.lstrip("-").isdigit()


def _identity(op: BinaryOp, dtype: DType) -> Node:
    start = identity_const(BinaryOp.ADD if op is BinaryOp.SUB else op, dtype)
    assert start is not None, f"{op!r} has an identity"
    return constant(start)


def _shuffled(value: Node, distance: int, dtype: DType) -> Node:
    """What the lane at ``distance`` has; four types can be sent, others are sent as one of them."""
    at = Atom(str(distance))
    if dtype in _SHUFFLED:
        return Call("shuffle", (value, at))
    if dtype.is_complex:
        return Call(dtype.value, (Call("shuffle_complex", (value, at)),))
    wide = "int64" if dtype in (DType.UINT32, DType.UINT64) else "int32"
    sent = Call("shuffle", (Call(wide, (value,)), at))
    return Infix("!=", sent, Atom("0")) if dtype is DType.BOOL else Call(dtype.value, (sent,))


def _as_float32(node: Node, dtype: DType) -> Node:
    if dtype is DType.FLOAT32 and isinstance(node, Call):
        return Call("float32", (node,))
    return node
