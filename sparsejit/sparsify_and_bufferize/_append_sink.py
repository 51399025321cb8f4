"""Sparse results written directly, in storage order: positions, coordinates, values.

Positions of level l are caught up when the loops reach a parent: ``pos[P]`` is the number of
children before parent P. A coordinate of an inner level is appended only after one of its
descendants was (so no empty rows are stored); where dense levels come last, a block of values is
reserved first and kept if something was written into it. Source: TACO's append and MLIR's
compressed insertion.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim
from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir import loops
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix
from sparsejit.sparsify_and_bufferize._buffers import Buffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._entry_counts import count_bound
from sparsejit.sparsify_and_bufferize._kernel import Kernel, State
from sparsejit.sparsify_and_bufferize._scalar_lowering import literal, widened
from sparsejit.sparsify_and_bufferize._sinks import Stmts, narrowed

__all__ = ["AppendSink", "appended_loops", "refuse_unassembled"]

_FLAG = -1
"""The key under which ``State.slots`` keeps the flag of the innermost reserved block."""


def appended_loops(kernel: Kernel) -> tuple[int, ...]:
    """Return the loop of each result level; ``UnsupportedError`` where it is not one loop."""
    found: list[int] = []
    for number, level in enumerate(kernel.space.output.levels):
        match level.expr:
            case Dim(loop):
                found.append(loop)
            case _:
                raise UnsupportedError(
                    f"level {number} of the result is not indexed by a loop of its own",
                    hint="ask for a dense result, or for blocks of the operands' size",
                )
    return tuple(found)


def refuse_unassembled(kernel: Kernel, kinds: tuple[LevelKind, ...]) -> None:
    """Raise ``UnsupportedError`` for a result with a level of one of ``kinds``."""
    for number, level in enumerate(kernel.space.output.levels):
        if level.type.kind in kinds:
            raise UnsupportedError(
                f"a result with a {level.type.kind.value} level (level {number}) must have the "
                "pattern of one operand",
                hint="ask for another result format and convert it",
            )


def _refuse_levels_below_runs(kernel: Kernel) -> None:
    """Raise ``UnsupportedError`` where each entry has levels of its own below it."""
    levels = kernel.space.output.levels
    for number, level in enumerate(levels):
        below = levels[number + 1 :]
        if level.type.nonunique and any(lv.type.kind is not LevelKind.SINGLETON for lv in below):
            raise UnsupportedError(
                f"a result that stores coordinates more than once (level {number}) above other "
                "levels is not appended to",
                hint="ask for another result format and convert it",
            )


@dataclass(frozen=True, slots=True)
class _Stored:
    """A level that stores coordinates: its memrefs and the variables that count what it holds."""

    level: int
    pos: loops.Memref | None
    crd: loops.Memref
    count: loops.Var
    filled: loops.Var
    parents: loops.Expr | None  # the number of parents where it is known beforehand


class AppendSink:
    """Appends to level storage; the loops visit coordinates in the order of the levels."""

    random_access = False
    concurrent = False
    storage = "appended in order"

    def __init__(self, kernel: Kernel, result: SparseBuffer) -> None:
        refuse_unassembled(kernel, (LevelKind.BATCH, LevelKind.RANGE))
        _refuse_levels_below_runs(kernel)
        self._kernel = kernel
        self._result = result
        self._loops = appended_loops(kernel)
        self._sizes = tuple(kernel.extent(level.size) for level in kernel.space.output.levels)
        fmt = result.format
        self._tail = fmt.coo_start
        stored = [n for n, level in enumerate(fmt.levels) if not level.type.is_full]
        self._last = self._tail if self._tail is not None else stored[-1]
        self._stored: dict[int, _Stored] = {}
        for level in stored:
            if self._tail is None or level <= self._tail:
                self._stored[level] = self._store_level(level)
        self._tail_crd = self._tail_memrefs()
        block: loops.Expr = ix.index(1)
        if self._tail is None:
            for size in self._sizes[self._last + 1 :]:
                block = ix.multiply(block, size)
        self._block = block
        self._has_block = self._tail is None and self._last + 1 < len(self._sizes)
        self._bound = None if kernel.reads_out or self._has_block else count_bound(kernel)

    @property
    def result(self) -> Buffer:
        return self._result

    def _store_level(self, level: int) -> _Stored:
        kernel = self._kernel
        kind = self._result.format.levels[level].type.kind
        if kind not in (LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED):
            raise UnsupportedError(
                f"a result with a {kind.value} level must have the pattern of one operand",
                hint="ask for another result format and convert it",
            )
        parents: loops.Expr | None = ix.index(1)
        for before in range(level):
            full = self._result.format.levels[before].type.is_full
            parents = ix.multiply(parents, self._sizes[before]) if parents and full else None
        name = self._result.values.name.removesuffix("_vals")
        declared = self._result.positions[level]
        assert declared is not None
        pos = declared
        if kind is LevelKind.LOOSE_COMPRESSED:
            pos = loops.Memref(kernel.namer.fresh(f"{name}_ends{level}"), declared.dtype, 1)
        crd = self._result.coordinates[level]
        assert crd is not None
        if crd.rank == 2:
            crd = loops.Memref(kernel.namer.fresh(f"{name}_column{level}"), crd.dtype, 1)
        count = loops.Var(kernel.namer.fresh(f"{name}_count{level}"), INDEX)
        filled = loops.Var(kernel.namer.fresh(f"{name}_filled{level}"), INDEX)
        return _Stored(level, pos, crd, count, filled, parents)

    def _tail_memrefs(self) -> tuple[loops.Memref, ...]:
        """The coordinates of a COO tail, one rank-1 memref a level."""
        if self._tail is None:
            return ()
        found = [self._stored[self._tail].crd]
        name = self._result.values.name.removesuffix("_vals")
        for level in range(self._tail + 1, len(self._sizes)):
            own = self._result.coordinates[level]
            fresh = self._kernel.namer.fresh
            found.append(own or loops.Memref(fresh(f"{name}_column{level}"), found[0].dtype, 1))
        return tuple(found)

    # ------------------------------------------------------------ before and after the loops

    def prologue(self) -> Stmts:
        statements: list[loops.Stmt] = []
        for stored in self._stored.values():
            assert stored.pos is not None
            extent = ix.add(stored.parents, ix.index(1)) if stored.parents else ix.index(1)
            statements.append(loops.Alloc(stored.pos, (extent,)))
            if self._tail is None or stored.level < self._tail:
                room = self._room if stored.level == self._last else ix.index(0)
                statements.append(loops.Alloc(stored.crd, (room,)))
            statements.append(loops.Let(stored.count, ix.index(0), mutable=True))
            statements.append(loops.Let(stored.filled, ix.index(0), mutable=True))
        statements += [loops.Alloc(crd, (self._room,)) for crd in self._tail_crd]
        statements.append(loops.Alloc(self._result.values, (self._room,)))
        return tuple(statements)

    @property
    def _room(self) -> loops.Expr:
        """Room for entries: all that may come where that is known, else they make room."""
        return ix.index(0) if self._bound is None else self._bound.slots

    @property
    def _is_exact(self) -> bool:
        return self._bound is not None and self._bound.is_exact

    def epilogue(self) -> Stmts:
        statements: list[loops.Stmt] = []
        parents: loops.Expr = ix.index(1)
        for level in range(self._last + 1):
            if level not in self._stored:
                parents = ix.multiply(parents, self._sizes[level])
                continue
            stored = self._stored[level]
            statements += self._catch_up(stored, parents)
            assert stored.pos is not None
            if stored.parents is None:
                statements.append(loops.Resize(stored.pos, ix.add(parents, ix.index(1))))
            if stored.level != self._tail and not (stored.level == self._last and self._is_exact):
                statements.append(loops.Resize(stored.crd, stored.count))
            statements += self._loosen(stored, parents)
            parents = stored.count
        if not self._is_exact:
            statements += [loops.Resize(crd, parents) for crd in self._tail_crd]
            statements.append(loops.Resize(self._result.values, ix.multiply(parents, self._block)))
        return (*statements, *self._interleave(parents))

    def _catch_up(self, stored: _Stored, parent: loops.Expr) -> Stmts:
        """Set the positions up to and including that of ``parent``."""
        assert stored.pos is not None
        value = narrowed(stored.count, stored.pos.dtype)
        step: loops.Stmt = (
            loops.Push(stored.pos, stored.filled, value)
            if stored.parents is None
            else loops.Store(stored.pos, (stored.filled,), value)
        )
        advance = loops.Assign(stored.filled, ix.add(stored.filled, ix.index(1)))
        behind = ix.compare(BinaryOp.LE, stored.filled, parent)
        return (loops.While(behind, (step, advance)),)

    def _loosen(self, stored: _Stored, parents: loops.Expr) -> Stmts:
        """Turn positions into the pairs of a loose_compressed level."""
        pairs = self._result.positions[stored.level]
        if pairs is None or pairs is stored.pos or stored.pos is None:
            return ()
        p = loops.Var(self._kernel.namer.fresh("p"), INDEX)
        low = loops.Load(stored.pos, (p,))
        high = loops.Load(stored.pos, (ix.add(p, ix.index(1)),))
        body = (
            loops.Store(pairs, (p, ix.index(0)), low),
            loops.Store(pairs, (p, ix.index(1)), high),
        )
        return (
            loops.Alloc(pairs, (parents, ix.index(2))),
            loops.For(p, ix.index(0), parents, body, parallel=True),
            loops.Dealloc(stored.pos),
        )

    def _interleave(self, count: loops.Expr) -> Stmts:
        """Turn the columns of a COO tail into an array of structs where the format wants one."""
        if self._tail is None:
            return ()
        struct = self._result.coordinates[self._tail]
        if struct is None or struct.rank != 2:
            return ()
        p = loops.Var(self._kernel.namer.fresh("p"), INDEX)
        body = tuple(
            loops.Store(struct, (p, ix.index(column)), loops.Load(crd, (p,)))
            for column, crd in enumerate(self._tail_crd)
        )
        return (
            loops.Alloc(struct, (count, ix.index(len(self._tail_crd)))),
            loops.For(p, ix.index(0), count, body, parallel=True),
            *(loops.Dealloc(crd) for crd in self._tail_crd),
        )

    # ------------------------------------------------------------ inside the loops

    def _parent(self, level: int, state: State) -> loops.Expr:
        return state.slots[level - 1] if level else ix.index(0)

    def enter_loop(self, loop: int, state: State) -> Stmts:
        if loop not in self._loops:
            return ()
        level = self._loops.index(loop)
        stored = self._stored.get(level)
        return self._catch_up(stored, self._parent(level, state)) if stored else ()

    def enter_coordinate(self, loop: int, state: State) -> tuple[Stmts, State, Stmts]:
        if loop not in self._loops:
            return (), state, ()
        level = self._loops.index(loop)
        if self._tail is not None and level >= self._tail:
            return (), state, ()
        coordinate = state.loop_values[loop]
        stored = self._stored.get(level)
        if stored is None:
            parent = self._parent(level, state)
            slot = ix.add(ix.multiply(parent, self._sizes[level]), coordinate)
            return (), self._at_slot(state, level, slot), ()
        inner = self._at_slot(state, level, stored.count)
        if level < self._last:
            return self._keep_if_children(stored, coordinate, inner)
        return (
            self._reserve_block(stored, coordinate, inner) if self._has_block else ((), inner, ())
        )

    @staticmethod
    def _at_slot(state: State, level: int, slot: loops.Expr) -> State:
        return replace(state, slots={**state.slots, level: slot})

    def _commit(self, stored: _Stored, coordinate: loops.Expr) -> Stmts:
        return (
            loops.Push(stored.crd, stored.count, narrowed(coordinate, stored.crd.dtype)),
            loops.Assign(stored.count, ix.add(stored.count, ix.index(1))),
        )

    def _keep_if_children(
        self, stored: _Stored, coordinate: loops.Expr, inner: State
    ) -> tuple[Stmts, State, Stmts]:
        child = self._stored[min(level for level in self._stored if level > stored.level)]
        before = loops.Var(self._kernel.namer.fresh("before"), INDEX)
        grown = ix.less(before, child.count)
        undone: Stmts = ()
        if child.level > stored.level + 1:
            # Positions were set for each coordinate of the full levels between; where nothing is
            # kept, the next parent takes the same slots, and only the first position holds for it.
            first: loops.Expr = stored.count
            for level in range(stored.level + 1, child.level):
                first = ix.multiply(first, self._sizes[level])
            kept = ix.minimum(child.filled, ix.add(first, ix.index(1)))
            undone = (loops.Assign(child.filled, kept),)
        after = loops.If(grown, self._commit(stored, coordinate), undone)
        return (loops.Let(before, child.count),), inner, (after,)

    def _reserve_block(
        self, stored: _Stored, coordinate: loops.Expr, inner: State
    ) -> tuple[Stmts, State, Stmts]:
        kernel = self._kernel
        values = self._result.values
        slot = loops.Var(kernel.namer.fresh("t"), INDEX)
        written = loops.Var(kernel.namer.fresh("written"), DType.BOOL)
        at = ix.add(ix.multiply(stored.count, self._block), slot)
        fill = narrowed(literal(kernel.fill), values.dtype)
        reserve = loops.For(slot, ix.index(0), self._block, (loops.Push(values, at, fill),))
        flagged = replace(inner, slots={**inner.slots, _FLAG: written})
        before = (loops.Let(written, ix.true(False), mutable=True), reserve)
        return before, flagged, (loops.If(written, self._commit(stored, coordinate)),)

    def load(self, state: State) -> loops.Expr:
        if not self._has_block:
            return literal(self._kernel.fill)
        values = self._result.values
        slot = state.slots[len(self._sizes) - 1]
        return widened(loops.Load(values, (slot,)), values.dtype)

    def store(self, state: State, value: loops.Expr, reduce: BinaryOp | None) -> Stmts:
        values = self._result.values
        if self._has_block:
            if reduce is not None and values.dtype.compute is not values.dtype:
                value = loops.Binary(reduce, self.load(state), value, values.dtype.compute)
                reduce = None
            written = state.slots[_FLAG]
            assert isinstance(written, loops.Var)
            slot = state.slots[len(self._sizes) - 1]
            return (
                loops.Store(values, (slot,), narrowed(value, values.dtype), reduce),
                loops.Assign(written, ix.true()),
            )
        assert reduce is None
        stored = self._stored[self._last]
        pushed: list[loops.Stmt] = []
        crds = self._tail_crd or (stored.crd,)
        for offset, crd in enumerate(crds):
            coordinate = state.loop_values[self._loops[self._last + offset]]
            pushed.append(self._added(crd, stored.count, narrowed(coordinate, crd.dtype)))
        pushed.append(self._added(values, stored.count, narrowed(value, values.dtype)))
        pushed.append(loops.Assign(stored.count, ix.add(stored.count, ix.index(1))))
        return tuple(pushed)

    def _added(self, memref: loops.Memref, count: loops.Var, value: loops.Expr) -> loops.Stmt:
        if self._bound is None:
            return loops.Push(memref, count, value)
        return loops.Store(memref, (count,), value)

    def clear(self, state: State) -> Stmts:
        return ()
