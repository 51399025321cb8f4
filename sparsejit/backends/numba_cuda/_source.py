"""A kernel as Python text for Numba CUDA: one flat function, right for any number of threads.

In: a ``Launch``. Out: its text, in which the threads (or warps) of a grid deal out the iterations.
In a warp all lanes run the same statements; they share the iterations of inner parallel loops and
combine what they have by shuffles, and lane 0 stores what is one number.
"""

from __future__ import annotations

from sparsejit.backends import _spellings
from sparsejit.backends._layout import Atom, Call, Index, Infix, Node, Prefix, flat, layout
from sparsejit.backends.numba_cuda._lanes import LaneWriter, identity, moved
from sparsejit.backends.numba_cuda._lowered import Total
from sparsejit.backends.numba_cuda._memory import volume
from sparsejit.ir.device_statements import Schedule
from sparsejit.ir.loop_writing import int_
from sparsejit.ir.loops import (
    Alloc,
    Dealloc,
    Expr,
    For,
    Memref,
    SortPrefix,
    Stmt,
    Store,
    View,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = ["KernelWriter"]

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


class KernelWriter(LaneWriter):
    """The lines of one kernel."""

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
            self.assign(self.names[total.var.name], identity(total.op, total.var.dtype))
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
        self.assign(var, moved(self.expressions.expression(loop.lower), first))
        upper = self.expressions.expression(loop.upper)
        if not isinstance(upper, Atom):
            end = self.fresh("end")
            self.assign(end, upper)
            upper = Atom(end)
        self.nested("while", Infix("<", Atom(var), upper), loop.body)
        self.line(f"    {var} += {step}")

    def _finish(self, total: Total) -> None:
        """One atomic step for a warp: of what its lanes have, or what each of them has alike."""
        if self._kernel.schedule is not Schedule.WARP:
            self.line(f"{self._own.lane} = int64(cuda.laneid)")
            self.combine(self.names[total.var.name], total.op, total.var.dtype)
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

    def store(self, stmt: Store) -> None:
        """Write a store; in a warp, lane 0 does it."""
        alone = self._is_warp
        wait = alone and self._kernel.must_wait(stmt)
        if wait:
            self.line("cuda.syncwarp()")
        if alone:
            self.line(f"if {self._own.lane} == 0:")
            self._indent += 4
        self.plain_store(stmt)
        if alone:
            self._indent -= 4
        if wait:
            self.line("cuda.syncwarp()")

    def plain_store(self, stmt: Store) -> None:
        """Write a store of this lane's own: one atomic step where it races."""
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


def _is_number(node: Node) -> bool:
    return isinstance(node, Atom) and node.text.lstrip("-").isdigit()
