"""What the lowering of one ``Generic`` knows: its level space, buffers, names, and its algebra.

A ``Kernel`` answers the questions that the loop nest asks at every point: which operands are
absent, what is left of the body, and where its elements are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sparsejit.affine import AffineExpr, Constant, Dim, dims_determined_by, dims_of
from sparsejit.ir import loops
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Const, Nothing, ScalarExpr, Select, Stored, args_of
from sparsejit.ir.simplify import Known, Missing, NoValue, Partial, simplify_absence
from sparsejit.ir.tensor import Generic
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, NoEntries, SparseBuffer
from sparsejit.sparsify_and_bufferize._level_iterators import Cursor, LevelIterator
from sparsejit.sparsify_and_bufferize._level_space import LevelAccess, LevelSpace

__all__ = ["Kernel", "State"]


@dataclass(frozen=True, slots=True)
class State:
    """A point in the loop nest.

    ``loop_values`` has the bound loops; ``cursors`` the sparse inputs that may still store
    something here, ``absent`` those that do not. ``slots`` holds what the sink wants to remember
    (positions of result levels); ``accumulator`` the variable that stands for the result's element
    once only reductions remain, ``hit`` the one that tells whether it received a contribution.
    ``twins`` are the operands that go along with another one, which has the same entries.
    """

    loop_values: Mapping[int, loops.Expr]
    cursors: Mapping[int, Cursor]
    absent: frozenset[int]
    slots: Mapping[int, loops.Expr] = field(default_factory=dict)
    accumulator: loops.Var | None = None
    hit: loops.Var | None = None
    twins: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def bind(self, loop: int, value: loops.Expr) -> State:
        """Return the state with a loop's value known."""
        return replace(self, loop_values={**self.loop_values, loop: value})

    def advance(self, operand: int, cursor: Cursor) -> State:
        """Return the state with a level of ``operand`` (and of its twins) resolved."""
        moved = dict.fromkeys((operand, *self.twins.get(operand, ())), cursor)
        return replace(self, cursors={**self.cursors, **moved})

    def without(self, operands: frozenset[int]) -> State:
        """Return the state where ``operands`` (and their twins) store nothing."""
        operands = operands.union(*(self.twins.get(k, ()) for k in operands))
        left = {k: cursor for k, cursor in self.cursors.items() if k not in operands}
        return replace(self, cursors=left, absent=self.absent | operands)


def _same_value(one: Const, other: Const | None) -> bool:
    """Whether two constants compare equal: 0.0 is -0.0 here, and nan is nan."""
    if other is None:
        return False
    both_nan = one.value != one.value and other.value != other.value
    return one.value == other.value or both_nan


@dataclass(frozen=True)
class Kernel:
    """One ``Generic`` about to become loops; ``symbols`` are the function's symbols by number.

    ``has_entries``: the result stores all that it will, so that what is not summed needs no visit.
    ``unasked`` is an input whose slots are visited whether they hold an entry or not.
    """

    op: Generic
    space: LevelSpace
    inputs: tuple[Buffer, ...]
    symbols: Mapping[int, loops.Expr]
    namer: Names
    has_entries: bool = False
    unasked: int | None = None

    @property
    def out(self) -> int:
        """The operand number of the destination in the body."""
        return len(self.op.inputs)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the operands, the destination's last."""
        return (*(value.type.dtype for value in self.op.inputs), self.op.init.type.dtype)

    @property
    def reads_out(self) -> bool:
        """Whether the body accumulates into (or otherwise reads) the destination."""
        return self.out in args_of(self.op.body)

    @property
    def fill(self) -> Const:
        """The result's value where nothing is stored."""
        return self.op.init.type.fill

    def start(self) -> State:
        """Return the state outside of all loops."""
        cursors: dict[int, Cursor] = {}
        absent: set[int] = set()
        for number, buffer in enumerate(self.inputs):
            match buffer:
                case SparseBuffer():
                    cursors[number] = Cursor(0, ix.index(0))
                case NoEntries():
                    absent.add(number)
                case _:
                    pass
        return State({}, cursors, frozenset(absent), twins=self.twins)

    @cached_property
    def twins(self) -> Mapping[int, frozenset[int]]:
        """The sparse inputs, each with those behind it that have the same slots.

        So it is where both took over the entries of one tensor and are indexed alike; they are
        found where the first one is.
        """
        found: dict[tuple[str, tuple[LevelAccess, ...]], list[int]] = {}
        for number, (buffer, access) in enumerate(zip(self.inputs, self.space.inputs, strict=True)):
            pattern = buffer.pattern if isinstance(buffer, SparseBuffer) else f"{number}"
            if access.may_be_absent:
                found.setdefault((pattern, access.levels), []).append(number)
        return {first: frozenset(rest) for first, *rest in found.values()}

    @cached_property
    def followers(self) -> frozenset[int]:
        """The twins of others: no loop asks where they are."""
        return frozenset[int]().union(*self.twins.values())

    def iterator(self, operand: int, level: int) -> LevelIterator:
        """Return the level iterator of ``level`` of a sparse input."""
        buffer = self.inputs[operand]
        assert isinstance(buffer, SparseBuffer)
        access = self.space.inputs[operand].levels[level]
        name = self.op.inputs[operand].name
        return LevelIterator(name, buffer, level, access.type, self.extent(access.size))

    def slots_below(self, operand: int, level: int, position: loops.Expr) -> loops.Expr:
        """Return how many slots the levels below have before a position of ``level``.

        Levels with gaps between their segments, and what is below them, are left out.
        """
        for number in range(level + 1, len(self.space.inputs[operand].levels)):
            first = self.iterator(operand, number).first_slot(position)
            if first is None:
                break
            position = first
        return position

    def level_expr(self, operand: int, level: int) -> AffineExpr:
        """Return the coordinate of ``level`` of a sparse input, over the loops."""
        return self.space.inputs[operand].levels[level].expr

    def is_resolved(self, operand: int, cursor: Cursor) -> bool:
        """Whether all levels of ``operand`` are resolved: it stores an entry here."""
        levels = len(self.space.inputs[operand].levels)
        return cursor.level == levels + self.may_be_empty(operand)

    def may_be_empty(self, operand: int) -> bool:
        """Whether slots of ``operand`` have flags that say whether they hold an entry."""
        buffer = self.inputs[operand]
        has_flags = isinstance(buffer, SparseBuffer) and buffer.met is not None
        return has_flags and operand != self.unasked

    def flag(self, operand: int, cursor: Cursor) -> loops.Expr | None:
        """Return the flag of the slot at ``cursor``, where that is what is left to ask."""
        buffer = self.inputs[operand]
        assert isinstance(buffer, SparseBuffer)
        is_slot = cursor.level == len(self.space.inputs[operand].levels)
        if buffer.met is None or not is_slot:
            return None
        return loops.Load(buffer.met, (self.value_slot(operand, cursor),))

    def is_inside(self, operand: int, cursor: Cursor) -> bool:
        """Whether the next level has all coordinates of a loop: none is outside of its extent."""
        level = self.space.inputs[operand].levels[cursor.level]
        if not isinstance(level.expr, Dim) or level.is_diagonal:
            return False
        loop = self.space.loops[level.expr.index]
        plain = loop.lower == Constant(0) and loop.block is None and loop.diagonal is None
        return plain and loop.extent == level.size

    def value_slot(self, operand: int, cursor: Cursor) -> loops.Expr:
        """Return where the value at a resolved ``cursor`` is: batches have equally many slots."""
        if not cursor.batch:
            return cursor.position
        buffer = self.inputs[operand]
        assert isinstance(buffer, SparseBuffer)
        number: loops.Expr = ix.index(0)
        count: loops.Expr = ix.index(1)
        for level, coordinate in zip(self.space.inputs[operand].levels, cursor.batch, strict=False):
            size = self.extent(level.size)
            number = ix.add(ix.multiply(number, size), coordinate)
            count = ix.multiply(count, size)
        slots = loops.Binary(BinaryOp.FLOORDIV, loops.DimOf(buffer.values, 0), count, INDEX)
        return ix.add(ix.multiply(number, slots), cursor.position)

    def extent(self, expr: AffineExpr) -> loops.Expr:
        """Return an extent over the function's symbols as an index expression."""
        return ix.lower_affine(expr, self.symbols)

    def at(self, expr: AffineExpr, state: State) -> loops.Expr:
        """Return an expression over loops as an index expression."""
        return ix.lower_affine(expr, state.loop_values)

    def is_bound(self, expr: AffineExpr, state: State) -> bool:
        """Whether all loops that ``expr`` reads have a value."""
        return all(loop in state.loop_values for loop in dims_of(expr))

    def remaining(self, state: State) -> Partial:
        """Return what is left of the body at ``state``."""
        fills = {k: self.op.inputs[k].type.fill for k in state.absent}
        present = {k for k, cursor in state.cursors.items() if self.is_resolved(k, cursor)}
        always = {
            k
            for k, access in enumerate(self.space.inputs)
            if not access.may_be_absent and k not in state.absent
        }
        found = frozenset(present | always)
        return simplify_absence(self.op.body, self.dtypes, fills, found)

    def outcome(self, state: State) -> Partial | None:
        """Return what is left to do at ``state``, or None where nothing is."""
        partial = self.remaining(state)
        guard = None if self.has_entries else self.guard
        if guard is not None and guard not in state.absent and state.accumulator is None:
            return partial
        return self.outcome_of(partial)

    @cached_property
    def guard(self) -> int | None:
        """The operand of ``where_stored`` around a sum: the result stores what it stores.

        Until the sum begins, its entries are to be visited whatever is summed.
        """
        match self.op.body:
            case Select(Stored(index), _, Arg(out)) if out == self.out:
                # Over the loops of the operation: those along a diagonal mix two of them.
                maps = self.op.indexing_maps
                used = {loop for expr in maps[index].results for loop in dims_of(expr)}
                written = dims_determined_by(maps[-1].results)
                sparse_result = self.space.output.may_be_absent
                return index if used <= written and sparse_result else None
            case _:
                return None

    def outcome_of(self, partial: Partial) -> Partial | None:
        """Return ``partial``, or None where it neither changes nor stores anything."""
        match partial:
            case NoValue():
                cleared = not self.reads_out and not _same_value(self.fill, self.background)
                return partial if cleared else None  # where nothing is, the fill value is
            case Known(Arg(index)) if index == self.out:
                return None
            case Missing(const) if not self.reads_out and _same_value(const, self.background):
                return None
            case _:
                return partial

    @property
    def background(self) -> Const | None:
        """The value of the result where no sparse operand stores anything, if it is a constant.

        A dense result is filled with it beforehand, a sparse one has it as its fill value; in
        both cases such coordinates need no visit.
        """
        if self.space.output.may_be_absent:
            return self.fill
        nowhere = self.start().without(
            frozenset(k for k, access in enumerate(self.space.inputs) if access.may_be_absent)
        )
        match self.remaining(nowhere):
            case Missing(const):
                return const
            case NoValue():
                return self.fill
            case Known():
                return None

    def may_be_nothing(self, partial: Partial) -> bool:
        """Whether the remaining body may turn out, at run time, to have no value."""

        def nothing(expr: ScalarExpr) -> bool:
            match expr:
                case Nothing():
                    return True
                case Select(_, then, orelse):
                    return nothing(then) or nothing(orelse)
                case _:
                    return False

        return isinstance(partial, Known) and nothing(partial.expr)

    def body_expr(self, partial: Partial) -> ScalarExpr:
        """Return the expression to compute for an outcome."""
        match partial:
            case Known(expr):
                return expr
            case Missing(const):
                return const
            case NoValue():
                return Nothing(self.op.init.type.dtype)
