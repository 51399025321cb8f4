"""What the lanes of a warp do together, as Python text: loops that they share, votes and sums.

In: parallel loops, and sequential ones that lanes can share (see ``_turns``), of a kernel in which
a warp runs each iteration. Out: lines in which lane ``k`` takes passes ``k``, ``k + 32`` and so on.
Around such loops all lanes run the same statements.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sparsejit._dataclasses import dataclass
from sparsejit.backends import _spellings
from sparsejit.backends._expressions import constant
from sparsejit.backends._layout import Atom, Call, Infix, Node, flat
from sparsejit.backends.numba_cuda._expressions import KernelExpressions
from sparsejit.backends.numba_cuda._lowered import Lowered
from sparsejit.backends.numba_cuda._turns import Counter, InTurns, in_turns
from sparsejit.backends.python_source import SourceWriter
from sparsejit.ir.device_statements import Require
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.loops import Assign, For, If, Let, Lit, Memref, Stmt, Store, Var, While
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import renamed
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["LaneWriter", "OwnNames", "identity", "moved"]

_SHUFFLED = (DType.INT32, DType.INT64, DType.FLOAT32, DType.FLOAT64)


@dataclass(frozen=True, slots=True)
class OwnNames:
    """The names of what a thread knows of itself."""

    thread: str
    threads: str
    lane: str
    group: str
    groups: str


class LaneWriter(SourceWriter):
    """The lines of one kernel, where lanes share loops."""

    def __init__(
        self, lowered: Lowered, names: dict[str, str], expressions: KernelExpressions, own: OwnNames
    ) -> None:
        super().__init__(names, expressions)
        self._kernel = lowered
        self._kernel_expressions = expressions
        self._own = own
        self._is_warp = False
        """Whether the lanes of a warp run this statement together."""

    @abstractmethod
    def plain_store(self, stmt: Store) -> None:
        """Write a store of this lane's own."""

    def control(self, stmt: For | While | If | Require) -> None:
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
            self.assign(self.names[part.name], identity(op, var.dtype))
        self._is_warp = False
        self._strided(renamed(loop, parts), self._own.lane, "32")
        self._is_warp = True
        for var, op in reductions:
            part_name, name = self.names[f"{var.name}%part"], self.names[var.name]
            self.combine(part_name, op, var.dtype)
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
        for name in keys:
            self.line(f"{name} = int64(-1) - {lane}")
        self.line(f"if {has_pass}:")
        self._indent += 4
        self.block(turns.ready)
        for name, key in zip(keys, turns.keys, strict=True):
            self.assign(name, Call("int64", (self.expressions.expression(key),)))
        self._indent -= 4
        self.line(f"{alike} = {' & '.join(f'peers({name})' for name in keys)}")
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
                self.plain_store(replace(store, indices=(place,), value=_what(store)))
            self._indent -= 4
        self.line(f"{count} += count_lanes({votes})")
        if counter.peaks:
            self.line(f"if {votes} != 0:")
            for peak in counter.peaks:
                name = self.names[peak.var.name]
                self.line(f"    {name} = max({name}, {count})")

    def combine(self, name: str, op: BinaryOp, dtype: DType) -> None:
        """Reduce over the lanes of a warp."""
        for distance in (16, 8, 4, 2, 1):
            other = _shuffled(Atom(name), distance, dtype)
            node = _spellings.binary(op, Atom(name), other, dtype)
            self.assign(name, _as_float32(node, dtype))

    def _strided(self, loop: For, first: str, step: str) -> None:
        lower, upper = (self.expressions.expression(e) for e in (loop.lower, loop.upper))
        start = moved(lower, first)
        head = f"for {self.names[loop.var.name]} in"
        self.nested(head, Call("range", (start, upper, Atom(step))), loop.body)


def _found(counter: Counter) -> Var:
    """Whether a lane counts in its pass."""
    return Var(f"{counter.var.name}%found", DType.BOOL)


def _what(store: Store) -> Var:
    """What a lane appends to an array."""
    return Var(f"{store.memref.name}%kept", store.memref.dtype)


def moved(lower: Node, first: str) -> Node:
    """Return ``lower + first``."""
    return Atom(first) if lower == Atom("0") else Infix("+", lower, Atom(first))


def identity(op: BinaryOp, dtype: DType) -> Node:
    """Return what a reduction starts from."""
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
