"""The loop nest of one ``Generic`` in a given loop order.

``LoopNest.statements`` recurses over the loops. At each it asks the iteration lattice which
operands must be visited, lets ``_coiteration`` shape the loop, resolves the levels that have become
reachable (locating by arithmetic or search) and goes on inside, until the element can be computed
and handed to the sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sparsejit.affine import Constant, Dim, dims_of
from sparsejit.errors import UnsupportedError
from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Nothing, ScalarExpr, Select, args_of
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._append_sink import AppendSink
from sparsejit.sparsify_and_bufferize._buffers import DenseBuffer, ScalarBuffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._coiteration import Visit, coiterate
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._iteration_lattice import IterationLattice, lattice_of
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_iterators import Cursor, LevelIterator
from sparsejit.sparsify_and_bufferize._pattern_sink import PatternSink
from sparsejit.sparsify_and_bufferize._sampled_sink import SampledSink
from sparsejit.sparsify_and_bufferize._scalar_lowering import lower_scalar, widened
from sparsejit.sparsify_and_bufferize._sinks import Sink, Stmts
from sparsejit.sparsify_and_bufferize._walks import Walks
from sparsejit.sparsify_and_bufferize._workspace_sink import WorkspaceSink

__all__ = ["LoopNest"]


class LoopNest:
    """Builds the statements of ``kernel`` with its loops in ``order``, writing to ``sink``.

    Elements of ``sampler`` are looked up where a reduction is around, not walked for each round.
    Walks over the outermost levels are cut into parts of at least ``part`` entries; ``rows_apart``
    says whether entries that could be visited one by one are.
    """

    def __init__(
        self,
        kernel: Kernel,
        order: LoopOrder,
        sink: Sink,
        *,
        visits_grids: bool = True,
        sampler: int | None = None,
        part: int | None = None,
        rows_apart: bool = True,
    ) -> None:
        self._kernel = replace(
            kernel,
            has_entries=isinstance(sink, PatternSink),
            unasked=sink.flagged if isinstance(sink, SampledSink) else None,
        )
        self._order = order.loops
        self._located = order.located
        self._sink = sink
        self._walks = Walks(self._kernel, visits_grids=visits_grids)
        self._sampler = sampler
        self._part = part if sink.concurrent or isinstance(sink, AppendSink) else None
        self._rows_apart = rows_apart and self._part is not None
        self.lattices: list[tuple[int, IterationLattice]] = []

    def statements(self) -> Stmts:
        """Return the whole nest, with what the sink needs before and after."""
        body = self._settle(self._kernel.start(), lambda state: self._inside(0, state))
        if isinstance(self._sink, WorkspaceSink):
            body = self._sink.with_private(body)
        return (*self._sink.prologue(), *body, *self._sink.epilogue())

    # ------------------------------------------------------------ one loop

    def _inside(self, depth: int, state: State) -> Stmts:
        if depth == len(self._order):
            return self._write_outcome(state)
        if self._opens_accumulator(depth, state):
            return self._accumulate(depth, state)
        return self._loop(depth, state)

    def _loop(self, depth: int, state: State) -> Stmts:
        kernel = self._kernel
        loop = self._order[depth]
        iterators = [
            operand
            for operand, cursor in sorted(state.cursors.items())
            if operand not in kernel.followers
            and not kernel.is_resolved(operand, cursor)
            and kernel.level_expr(operand, cursor.level) == Dim(loop)
            and kernel.iterator(operand, cursor.level).is_iterable
            and not (operand == self._sampler and self._is_in_reduction(depth))
        ]
        lattice = self._lattice(iterators, state)
        searched = self._walks.searched(lattice, state)
        if searched:
            iterators = [operand for operand in iterators if operand not in searched]
            lattice = self._lattice(iterators, state)
        everyone = frozenset(iterators)
        self.lattices.append((loop, lattice))
        if not lattice.points:
            return ()
        self._refuse_quadratic(loop, lattice, state)
        self._refuse_disorder(lattice, state)
        self._walks.refuse(loop, lattice, state)

        def body(visit: Visit) -> Stmts:
            return self._visit(depth, state, everyone, visit)

        outside = self._walks
        self._walks = outside.inside(loop, lattice)
        statements = coiterate(
            kernel,
            state,
            loop,
            lattice,
            body,
            parallel=kernel.space.loops[loop].is_parallel and self._sink.concurrent,
            collapse=self._may_collapse(state) and not self._are_apart(depth, state, iterators),
            part=self._part if depth == 0 else None,
        )
        self._walks = outside
        return (*self._sink.enter_loop(loop, state), *statements) if statements else ()

    def _lattice(self, iterators: list[int], state: State) -> IterationLattice:
        everyone = frozenset(iterators)
        return lattice_of(
            iterators, lambda present: self._kernel.outcome(state.without(everyone - present))
        )

    def _is_in_reduction(self, depth: int) -> bool:
        return any(not self._kernel.space.loops[loop].is_parallel for loop in self._order[:depth])

    def _visit(self, depth: int, state: State, everyone: frozenset[int], visit: Visit) -> Stmts:
        """Return the body for one coordinate at which the operands in ``visit`` are present."""
        loop = self._order[depth]
        here = state.bind(loop, visit.coordinate).without(everyone - frozenset(visit.cursors))
        for operand, cursor in visit.cursors.items():
            here = here.advance(operand, cursor)

        def inside(settled: State) -> Stmts:
            before, inner, after = self._sink.enter_coordinate(loop, settled)
            body = self._inside(depth + 1, inner)
            return (*before, *body, *after) if body else ()

        body = self._settle(here, inside)
        if not visit.needs_guard:
            return body
        return self._guard(loop, here, self._within(loop, state, visit, body))

    def _within(self, number: int, state: State, visit: Visit, body: Stmts) -> Stmts:
        """Pass over coordinates of an operand that are not coordinates of the loop.

        An operand may be longer than the loop, and diagonals may be negative.
        """
        kernel = self._kernel
        loop = kernel.space.loops[number]
        levels = [
            kernel.space.inputs[operand].levels[state.cursors[operand].level]
            for operand in visit.cursors
        ]
        strays = loop.lower == Constant(0) and any(level.is_diagonal for level in levels)
        longer = any(level.size != loop.extent and not level.is_diagonal for level in levels)
        if not body or not (strays or longer):
            return body
        inside = ix.less(visit.coordinate, kernel.extent(loop.extent))
        if strays:
            positive = ix.compare(BinaryOp.LE, ix.index(0), visit.coordinate)
            inside = ix.all_of((positive, inside))
        return (loops.If(inside, body),)

    def _guard(self, number: int, state: State, body: Stmts) -> Stmts:
        """Keep a coordinate that an operand stores inside the dimension that it is part of."""
        loops_here = self._kernel.space.loops
        loop = loops_here[number]
        inner = self._kernel.space.inner_of(number)
        if inner is not None and inner in state.loop_values:  # it came first
            loop, number = loops_here[inner], inner
        if not body or (loop.block is None and loop.diagonal is None):
            return body
        if loop.diagonal is not None:
            other = ix.subtract(state.loop_values[number], state.loop_values[loop.diagonal.offset])
            below = ix.less(other, self._kernel.extent(loop.diagonal.extent))
            inside = ix.all_of((ix.compare(BinaryOp.LE, ix.index(0), other), below))
            return (loops.If(inside, body),)
        assert loop.block is not None
        if loop.block.outer not in state.loop_values:
            return body
        outer, size, extent = loop.block.outer, loop.block.size, loop.block.extent
        whole = ix.add(
            ix.multiply(ix.index(size), state.loop_values[outer]), state.loop_values[number]
        )
        return (loops.If(ix.less(whole, self._kernel.extent(extent)), body),)

    def _settle(self, state: State, then: Callable[[State], Stmts]) -> Stmts:
        """Resolve every level whose coordinate is known by now, then go on."""
        kernel = self._kernel
        if kernel.outcome(state) is None:
            return ()
        for operand, cursor in sorted(state.cursors.items()):
            if kernel.is_resolved(operand, cursor):
                continue
            flag = kernel.flag(operand, cursor)
            if flag is not None:
                asked = replace(cursor, level=cursor.level + 1)
                found = self._settle(state.advance(operand, asked), then)
                missed = self._settle(state.without(frozenset({operand})), then)
                return (loops.If(flag, found, missed),) if found or missed else ()
            expr = kernel.level_expr(operand, cursor.level)
            if not kernel.is_bound(expr, state):
                continue
            level = kernel.iterator(operand, cursor.level)
            coordinate = kernel.at(expr, state)
            if not level.is_iterable:
                located = level.locate_full(cursor, coordinate)
                return self._step_into(operand, level, located, state, then)
            position = loops.Var(kernel.namer.fresh(level.position_name), INDEX)
            found = self._settle(state.advance(operand, level.child(cursor, position)), then)
            missed = self._settle(state.without(frozenset({operand})), then)
            if not found and not missed:
                return ()
            is_inside = kernel.is_inside(operand, cursor)
            bind = loops.Let(position, level.locate(cursor, coordinate, is_inside=is_inside))
            exists = ix.compare(BinaryOp.GE, position, ix.index(0))
            return (bind, loops.If(exists, found, missed))
        return then(state)

    def _step_into(
        self,
        operand: int,
        level: LevelIterator,
        located: Cursor,
        state: State,
        then: Callable[[State], Stmts],
    ) -> Stmts:
        """Resolve a full level at ``located``, under a name unless it is as simple as one."""
        if isinstance(located.position, loops.Var | loops.Lit):
            return self._settle(state.advance(operand, located), then)
        position = loops.Var(self._kernel.namer.fresh(level.position_name), INDEX)
        named = replace(located, position=position)
        rest = self._settle(state.advance(operand, named), then)
        return (loops.Let(position, located.position), *rest) if rest else ()

    # ------------------------------------------------------------ what is refused

    def _refuse_quadratic(self, loop: int, lattice: IterationLattice, state: State) -> None:
        """Refuse to visit every coordinate only because an operand is searched, not iterated.

        It is no loss where an operand that is iterated has a slot for each.
        """
        kernel = self._kernel
        if not lattice.is_full or not self._located:
            return
        for operand, cursor in state.cursors.items():
            if operand in self._located or kernel.is_resolved(operand, cursor):
                continue
            enumerates = not kernel.iterator(operand, cursor.level).is_iterable
            if enumerates and loop in dims_of(kernel.level_expr(operand, cursor.level)):
                return
        names = ", ".join(kernel.op.inputs[operand].name for operand in sorted(self._located))
        raise UnsupportedError(
            f"no loop order fits the level orders of all operands: {names} would be searched at "
            "every coordinate",
            hint=f"convert {names} to a format in the order of the other operands",
        )

    def _refuse_disorder(self, lattice: IterationLattice, state: State) -> None:
        """Unordered coordinates cannot be merged with others, nor appended."""
        kernel = self._kernel
        alone = len(lattice.iterators) == 1 and not lattice.is_full and self._sink.random_access
        for operand in sorted(lattice.iterators):
            level = kernel.iterator(operand, state.cursors[operand].level)
            if not level.is_ordered and not alone:
                raise UnsupportedError(
                    f"level {level.number} of {level.name} is nonordered",
                    hint="sort it: convert the operand to an ordered format",
                )

    def _may_collapse(self, state: State) -> bool:
        """Whether entries may be visited one by one where a nonunique level repeats a coordinate.

        True where every remaining loop over stored entries walks the same single operand.
        """
        kernel = self._kernel
        open_operands = [
            operand
            for operand, cursor in state.cursors.items()
            if operand not in kernel.followers and not kernel.is_resolved(operand, cursor)
        ]
        if len(open_operands) != 1 or not self._sink.random_access:
            return False
        return kernel.outcome(state.without(frozenset(open_operands))) is None

    def _are_apart(self, depth: int, state: State, iterators: Sequence[int]) -> bool:
        """Whether sorted entries are cut into parts, none of which has a row of another.

        Then nothing is added up across threads, and what a row needs is there for all its entries.
        """
        loop = self._kernel.space.loops[self._order[depth]]
        return (
            self._rows_apart
            and depth == 0
            and loop.is_parallel
            and all(
                self._kernel.iterator(operand, state.cursors[operand].level).is_ordered
                for operand in iterators
            )
        )

    # ------------------------------------------------------------ reductions in a register

    def _opens_accumulator(self, depth: int, state: State) -> bool:
        """Whether the result's element is known and loops remain: it can live in a variable."""
        kernel = self._kernel
        if not kernel.reads_out or state.accumulator is not None:
            return False
        output = kernel.space.output
        indices = (*output.indices, *(level.expr for level in output.levels))
        return all(kernel.is_bound(index, state) for index in indices)

    def _accumulate(self, depth: int, state: State) -> Stmts:
        kernel = self._kernel
        dtype = kernel.op.init.type.dtype.compute
        total = loops.Var(kernel.namer.fresh("acc"), dtype)
        inner = replace(state, accumulator=total)
        hit: loops.Var | None = None
        has_slots = self._sink.random_access and not isinstance(self._sink, SampledSink)
        if not has_slots and not self._always_contributes(state):
            hit = loops.Var(kernel.namer.fresh("hit"), DType.BOOL)
            inner = replace(inner, hit=hit)
        body = self._loop(depth, inner)
        if not body and (self._sink.random_access or hit is not None):
            return ()
        write = self._sink.store(inner, total, None)
        opened: Stmts = (loops.Let(total, self._sink.load(state), mutable=True),)
        if hit is None:
            return (*opened, *body, *write)
        return (*opened, loops.Let(hit, ix.true(False), mutable=True), *body, loops.If(hit, write))

    def _always_contributes(self, state: State) -> bool:
        """Whether the result stores an entry here even if no iteration contributes.

        So it is where all sparse operands are known to be present, and under ``where_stored``.
        """
        kernel = self._kernel
        guard = kernel.guard
        if guard is not None:
            return guard not in state.cursors or kernel.is_resolved(guard, state.cursors[guard])
        return all(kernel.is_resolved(k, cursor) for k, cursor in state.cursors.items())

    # ------------------------------------------------------------ the element

    def _write_outcome(self, state: State) -> Stmts:
        outcome = self._kernel.outcome(state)
        if outcome is None:
            return ()
        return self._write(self._kernel.body_expr(outcome), state)

    def _write(self, expr: ScalarExpr, state: State) -> Stmts:
        kernel = self._kernel
        match expr:
            case Nothing():
                return () if kernel.reads_out else self._sink.clear(state)
            case Arg(index) if index == kernel.out:
                return ()
            case Select(condition, then, orelse) if self._is_conditional(then, orelse):
                chosen = self._write(then, state)
                other = self._write(orelse, state)
                return (loops.If(self._lower(condition, state), chosen, other),)
            case _:
                pass
        if state.accumulator is not None:
            update: Stmts = (loops.Assign(state.accumulator, self._lower(expr, state)),)
            if state.hit is not None:
                update = (*update, loops.Assign(state.hit, ix.true()))
            return update
        match expr:
            case Binary(op, Arg(index), value) if self._reduces(op, index, value):
                return self._sink.store(state, self._lower(value, state), op)
            case _:
                return self._sink.store(state, self._lower(expr, state), None)

    def _is_conditional(self, then: ScalarExpr, orelse: ScalarExpr) -> bool:
        keeps = (Arg(self._kernel.out),) if self._kernel.reads_out else ()
        return any(isinstance(side, Nothing) or side in keeps for side in (then, orelse))

    def _reduces(self, op: BinaryOp, index: int, value: ScalarExpr) -> bool:
        associative = op.info.associative and op.info.commutative
        return associative and index == self._kernel.out and index not in args_of(value)

    def _lower(self, expr: ScalarExpr, state: State) -> loops.Expr:
        kernel = self._kernel

        def element(operand: int) -> loops.Expr:
            if operand == kernel.out:
                return state.accumulator or self._sink.load(state)
            dtype = kernel.op.inputs[operand].type.dtype
            match kernel.inputs[operand]:
                case ScalarBuffer(var):
                    return widened(var, dtype)
                case DenseBuffer(memref):
                    indices = kernel.space.inputs[operand].indices
                    at = tuple(kernel.at(index, state) for index in indices)
                    return widened(loops.Load(memref, at), dtype)
                case SparseBuffer() as buffer:
                    cursor = state.cursors[operand]
                    element = loops.Load(buffer.values, (kernel.value_slot(operand, cursor),))
                    return widened(element, dtype)
                case _:
                    raise AssertionError("an operand without entries is never loaded")

        def coordinate(loop: int) -> loops.Expr:
            return kernel.at(kernel.space.coordinates[loop], state)

        return lower_scalar(expr, kernel.dtypes, element, coordinate)
