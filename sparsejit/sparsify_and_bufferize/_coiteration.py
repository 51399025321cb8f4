"""The shape of one loop: what a lattice becomes.

- no iterators: a dense loop over the extent;
- one iterator and nothing to do without it: a loop over its positions (segments of equal
  coordinates where its level is nonunique);
- several iterators: for each lattice point a ``while`` that runs as long as all its iterators last,
  visits the least coordinate and dispatches to the first point that fits;
- something to do at every coordinate: a dense loop with the iterators advancing alongside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._iteration_lattice import IterationLattice, LatticePoint
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._level_iterators import Cursor, LevelIterator
from sparsejit.sparsify_and_bufferize._merge_parts import Run, in_parts

__all__ = ["Visit", "coiterate"]

Stmts = tuple[loops.Stmt, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """One coordinate: its value, and the cursors of the operands that are present there.

    ``needs_guard``: the coordinate may lie outside the extent of a block's dimension.
    """

    coordinate: loops.Expr
    cursors: Mapping[int, Cursor]
    needs_guard: bool = True


Body = Callable[[Visit], Stmts]


@dataclass(frozen=True, slots=True)
class _Walker:
    """The run-time state of one iterator: current position, end, and end of the current segment.

    It walks over the positions ``lower .. upper - 1``.
    """

    operand: int
    level: LevelIterator
    parent: Cursor
    lower: loops.Expr
    upper: loops.Expr
    position: loops.Var
    end: loops.Var
    segment: loops.Var | None

    @property
    def has_more(self) -> loops.Expr:
        return ix.less(self.position, self.end)

    @property
    def cursor(self) -> Cursor:
        return self.level.child(self.parent, self.position, self.segment)

    def coordinate(self, position: loops.Expr) -> loops.Expr:
        return self.level.coordinate(position, self.parent)


def coiterate(
    kernel: Kernel,
    state: State,
    loop: int,
    lattice: IterationLattice,
    body: Body,
    *,
    parallel: bool,
    collapse: bool,
    part: int | None = None,
) -> Stmts:
    """Return the loop (or loops) over ``loop`` that visit the points of ``lattice``.

    ``collapse``: a nonunique level may be visited entry by entry. ``part``: what would be a walk
    from the first entries to the last is cut into parts of at least so many.
    """
    shape = _Shape(kernel, state, loop, lattice, body)
    if not lattice.iterators:
        return shape.dense(parallel)
    walkers = {operand: shape.walker(operand) for operand in sorted(lattice.iterators)}
    if lattice.is_full:
        return shape.alongside(walkers)
    alone = next(iter(walkers.values())) if len(walkers) == 1 else None
    if alone is not None and (alone.segment is None or collapse):
        return shape.single(alone, parallel)
    walk = shape.merged if alone is None else shape.segmented
    starts = all(walker.parent == Cursor(0, ix.index(0)) for walker in walkers.values())
    ordered = all(walker.level.is_ordered for walker in walkers.values())
    if part is None or not starts or not ordered:
        return walk(walkers)
    return shape.in_parts(walkers, walk, part, parallel)


@dataclass(frozen=True, slots=True)
class _Shape:
    kernel: Kernel
    state: State
    loop: int
    lattice: IterationLattice
    body: Body

    def _coordinate(self) -> loops.Var:
        return loops.Var(self.kernel.namer.fresh(self.kernel.space.loops[self.loop].name), INDEX)

    def _bounds(self) -> tuple[loops.Expr, loops.Expr]:
        """The bounds of the loop; inside a block or along a diagonal, what is in the tensor."""
        loop = self.kernel.space.loops[self.loop]
        lower, upper = self.kernel.extent(loop.lower), self.kernel.extent(loop.extent)
        inner = self.kernel.space.inner_of(self.loop)
        if inner is not None and inner in self.state.loop_values:
            block = self.kernel.space.loops[inner].block
            assert block is not None
            left = ix.subtract(self.kernel.extent(block.extent), self.state.loop_values[inner])
            size = ix.index(block.size)
            rounded = ix.add(left, ix.index(block.size - 1))
            upper = loops.Binary(BinaryOp.FLOORDIV, rounded, size, INDEX)
        if loop.block is not None and loop.block.outer in self.state.loop_values:
            size = ix.index(loop.block.size)
            begun = ix.multiply(size, self.state.loop_values[loop.block.outer])
            upper = ix.minimum(upper, ix.subtract(self.kernel.extent(loop.block.extent), begun))
        if loop.diagonal is not None:
            offset = self.state.loop_values[loop.diagonal.offset]
            lower = ix.maximum(lower, offset)
            last = ix.add(self.kernel.extent(loop.diagonal.extent), offset)
            upper = ix.minimum(upper, last)
        return lower, upper

    def dense(self, parallel: bool) -> Stmts:
        var = self._coordinate()
        inner = self.body(Visit(var, {}, needs_guard=False))
        return (loops.For(var, *self._bounds(), inner, parallel),) if inner else ()

    def walker(self, operand: int) -> _Walker:
        fresh = self.kernel.namer.fresh
        level = self.kernel.iterator(operand, self.state.cursors[operand].level)
        position = loops.Var(fresh(level.position_name), INDEX)
        end = loops.Var(fresh(f"{position.name}_end"), INDEX)
        segment = None
        if level.type.nonunique:
            segment = loops.Var(fresh(f"{position.name}_seg"), INDEX)
        parent = self.state.cursors[operand]
        return _Walker(operand, level, parent, *level.bounds(parent), position, end, segment)

    # ------------------------------------------------------------ one iterator alone

    def single(self, walker: _Walker, parallel: bool) -> Stmts:
        lower, upper = walker.lower, walker.upper
        var = self._coordinate()
        cursor = walker.level.child(walker.parent, walker.position)
        inner = self.body(Visit(var, {walker.operand: cursor}))
        if not inner:
            return ()
        bound = (loops.Let(var, walker.coordinate(walker.position)), *inner)
        if upper == ix.add(lower, ix.index(1)):  # the only child of a single entry
            return (loops.Let(walker.position, lower), *bound)
        alone = parallel and walker.segment is None
        return (loops.For(walker.position, lower, upper, bound, alone),)

    def segmented(self, walkers: Mapping[int, _Walker]) -> Stmts:
        """Visit the segments of the only iterator, whose level repeats coordinates."""
        (walker,) = walkers.values()
        return self._segments(walker, self._opened(walker))

    def _opened(self, walker: _Walker) -> Stmts:
        start = loops.Let(walker.position, walker.lower, mutable=True)
        return (start, loops.Let(walker.end, walker.upper))

    def _segments(self, walker: _Walker, opening: Stmts) -> Stmts:
        var = self._coordinate()
        inner = self.body(Visit(var, {walker.operand: walker.cursor}))
        if not inner:
            return ()
        assert walker.segment is not None
        body = (
            loops.Let(var, walker.coordinate(walker.position)),
            *self._find_segment(walker, var),
            *inner,
            loops.Assign(walker.position, walker.segment),
        )
        return (*opening, loops.While(walker.has_more, body))

    def _find_segment(self, walker: _Walker, coordinate: loops.Expr) -> Stmts:
        """Set the segment's end behind the last entry with ``coordinate`` (none: to position)."""
        assert walker.segment is not None
        more = ix.less(walker.segment, walker.end)
        same = ix.guarded(more, ix.equal(walker.coordinate(walker.segment), coordinate))
        step = loops.Assign(walker.segment, ix.add(walker.segment, ix.index(1)))
        return (
            loops.Let(walker.segment, walker.position, mutable=True),
            loops.While(same, (step,)),
        )

    # ------------------------------------------------------------ parts

    def in_parts(
        self,
        walkers: Mapping[int, _Walker],
        walk: Callable[[Mapping[int, _Walker]], Stmts],
        entries: int,
        parallel: bool,
    ) -> Stmts:
        """Walk over parts of the outermost levels, one after the other or at once."""
        runs = [self._run(walker) for walker in walkers.values()]

        def body(bounds: tuple[tuple[loops.Expr, loops.Expr], ...]) -> Stmts:
            return walk(
                {
                    operand: replace(walker, lower=lower, upper=upper)
                    for (operand, walker), (lower, upper) in zip(
                        walkers.items(), bounds, strict=True
                    )
                }
            )

        names = self.kernel.namer
        return in_parts(runs, self._bounds(), entries, names, body, parallel=parallel)

    def _run(self, walker: _Walker) -> Run:
        def entries(position: loops.Expr) -> loops.Expr:
            return self.kernel.slots_below(walker.operand, walker.level.number, position)

        name = walker.level.position_name
        return Run(name, walker.lower, walker.upper, walker.coordinate, entries)

    # ------------------------------------------------------------ several iterators

    def merged(self, walkers: Mapping[int, _Walker]) -> Stmts:
        statements: list[loops.Stmt] = []
        for walker in walkers.values():
            statements += self._opened(walker)
        for point in self.lattice.points:
            if any(other.outcome is not None for other in self.lattice.below(point)):
                statements += self._while(point, walkers)
        return tuple(statements)

    def _while(self, point: LatticePoint, walkers: Mapping[int, _Walker]) -> Stmts:
        members = [walkers[operand] for operand in sorted(point.iterators)]
        members = [self._renamed(walker) for walker in members]
        if len(members) == 1 and len(self.lattice.below(point)) == 1:
            return self._rest_of(members[0])
        by_operand = {walker.operand: walker for walker in members}
        current: dict[int, loops.Var] = {}
        body: list[loops.Stmt] = []
        for walker in members:
            name = self.kernel.namer.fresh(f"c{walker.level.number}_{walker.level.name}")
            current[walker.operand] = loops.Var(name, INDEX)
            body.append(loops.Let(current[walker.operand], walker.coordinate(walker.position)))
        least: loops.Expr = current[members[0].operand]
        for walker in members[1:]:
            least = ix.minimum(least, current[walker.operand])
        var = self._coordinate()
        body.append(loops.Let(var, least))
        here = {operand: ix.equal(value, var) for operand, value in current.items()}
        for walker in members:
            if walker.segment is not None:
                body += self._find_segment(walker, var)
        body += self._dispatch(self.lattice.below(point), here, by_operand, var)
        body += [self._advance(walker, here[walker.operand]) for walker in members]
        more = ix.all_of(tuple(walker.has_more for walker in members))
        return (loops.While(more, tuple(body)),)

    def _rest_of(self, walker: _Walker) -> Stmts:
        """Visit what is left of one iterator when all others are exhausted."""
        if walker.segment is not None:
            return self._segments(walker, ())
        position = loops.Var(self.kernel.namer.fresh(walker.level.position_name), INDEX)
        var = self._coordinate()
        inner = self.body(Visit(var, {walker.operand: walker.level.child(walker.parent, position)}))
        bound = (loops.Let(var, walker.coordinate(position)), *inner)
        return (loops.For(position, walker.position, walker.end, bound),) if inner else ()

    def _renamed(self, walker: _Walker) -> _Walker:
        """Give the segment variable of a walker a new name: each loop introduces its own."""
        if walker.segment is None:
            return walker
        segment = loops.Var(self.kernel.namer.fresh(walker.segment.name), INDEX)
        return replace(walker, segment=segment)

    def _advance(self, walker: _Walker, matched: loops.Expr) -> loops.Stmt:
        after = walker.segment or ix.add(walker.position, ix.index(1))
        return loops.If(matched, (loops.Assign(walker.position, after),))

    def _dispatch(
        self,
        points: tuple[LatticePoint, ...],
        here: Mapping[int, loops.Expr],
        walkers: Mapping[int, _Walker],
        coordinate: loops.Var,
    ) -> Stmts:
        """Return the cases: the first point all of whose iterators are at ``coordinate``."""
        if not points:
            return ()
        point, *rest = points
        inner: Stmts = ()
        if point.outcome is not None:
            cursors = {operand: walkers[operand].cursor for operand in sorted(point.iterators)}
            inner = self.body(Visit(coordinate, cursors))
        others = self._dispatch(tuple(rest), here, walkers, coordinate)
        if not point.iterators:
            return inner
        if not inner and not others:
            return ()
        condition = ix.all_of(tuple(here[operand] for operand in sorted(point.iterators)))
        return (loops.If(condition, inner, others),)

    # ------------------------------------------------------------ alongside a dense loop

    def alongside(self, walkers: Mapping[int, _Walker]) -> Stmts:
        lower, upper = self._bounds()
        statements: list[loops.Stmt] = []
        for walker in walkers.values():
            statements += self._opened(walker)
            if lower != ix.index(0) or walker.level.may_start_below_zero:
                statements += self._skip_below(walker, lower)
        var = self._coordinate()
        body: list[loops.Stmt] = []
        here: dict[int, loops.Expr] = {}
        for operand, walker in walkers.items():
            flag = loops.Var(self.kernel.namer.fresh(f"at_{walker.level.name}"), DType.BOOL)
            same = ix.equal(walker.coordinate(walker.position), var)
            body.append(loops.Let(flag, ix.guarded(walker.has_more, same)))
            here[operand] = flag
            if walker.segment is not None:
                body += self._find_segment(walker, var)
        body += self._dispatch(self.lattice.points, here, walkers, var)
        body += [self._advance(walker, here[operand]) for operand, walker in walkers.items()]
        return (*statements, loops.For(var, lower, upper, tuple(body)))

    def _skip_below(self, walker: _Walker, lower: loops.Expr) -> Stmts:
        """Pass over entries before the first coordinate of the loop."""
        before = ix.guarded(walker.has_more, ix.less(walker.coordinate(walker.position), lower))
        step = loops.Assign(walker.position, ix.add(walker.position, ix.index(1)))
        return (loops.While(before, (step,)),)
