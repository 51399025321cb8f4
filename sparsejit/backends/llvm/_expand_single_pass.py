"""``Assemble`` in one pass over the entries, for formats that have no slots to spare.

Entries come in order, so each level remembers what its last node was: an entry opens a node where a
coordinate of the level differs or its parent is another. Positions are caught up when a parent has
its first child. Only values of blocks, which have to be counted first, take a second pass.
"""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.formats import Format, LevelKind
from sparsejit.ir.loop_writing import Names, as_dtype, compare, int_, plus, times
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Load,
    Memref,
    Push,
    Resize,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["has_single_pass", "single_pass"]

_COMPRESSED = (LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED)
_SLOTTED = (LevelKind.STRUCTURED, LevelKind.PADDED)


@dataclass(frozen=True, slots=True)
class _Run:
    """A compressed level with its singletons: levels ``first .. end - 1`` and their arrays."""

    first: int
    end: int
    pos: Memref
    ends: Memref
    crds: tuple[Memref, ...]
    made: Var
    filled: Var
    lasts: tuple[Var, ...]
    parent: Var


def has_single_pass(stmt: Assemble) -> bool:
    """Whether ``single_pass`` builds this storage."""
    levels = stmt.format.levels
    if any(level.type.kind in _SLOTTED for level in levels):
        return False
    structs = any(memref.rank == 2 for memref in stmt.targets)
    return not (structs and levels[-1].type.is_full)


def single_pass(stmt: Assemble, names: Names) -> list[Stmt]:
    """Return the statements that build the storage."""
    return _SinglePass(stmt, names).statements()


class _SinglePass:
    def __init__(self, stmt: Assemble, names: Names) -> None:
        self._stmt = stmt
        self._names = names
        self._runs = {run.first: run for run in _runs(stmt, names)}
        self._entry = names.var("e")
        last = max((run.end for run in self._runs.values()), default=0)
        self._has_tail = last < stmt.format.num_levels
        self._tail_from = last
        self._slot = names.array("slot")

    def statements(self) -> list[Stmt]:
        stmt, values = self._stmt, self._stmt.targets[-1]
        made: list[Stmt] = []
        for run in self._runs.values():
            made += self._opened(run)
        if not self._has_tail:
            made.append(Alloc(values, (stmt.count,)))
        elif self._runs:
            made.append(Alloc(self._slot, (stmt.count,)))
        if self._runs:
            made.append(For(self._entry, int_(0), stmt.count, tuple(self._visit())))
        slots: Expr = int_(1)
        for number in range(stmt.format.num_levels):
            run_here = self._runs.get(number)
            if run_here is not None:
                made += self._closed(run_here, slots)
                slots = run_here.made
            elif stmt.format.levels[number].type.is_full:
                slots = times(slots, stmt.level_extents[number])
        if self._has_tail:
            made += self._values_of_blocks(slots)
        return made

    # ------------------------------------------------------------ one level

    def _opened(self, run: _Run) -> list[Stmt]:
        stmt = self._stmt
        made: list[Stmt] = []
        parents: Expr | None = int_(1)
        for number in range(run.first):
            full = stmt.format.levels[number].type.is_full
            parents = times(parents, stmt.level_extents[number]) if parents and full else None
        room = plus(parents, int_(1)) if parents else int_(0)
        made.append(Alloc(run.ends, (room,)))
        for crd in run.crds:
            columns = (int_(run.end - run.first),) if crd.rank == 2 else ()
            made.append(Alloc(crd, (stmt.count, *columns)))
        made += [Let(var, int_(0), mutable=True) for var in (run.made, run.filled)]
        made += [Let(last, int_(-1), mutable=True) for last in (*run.lasts, run.parent)]
        return made

    def _visit(self) -> list[Stmt]:
        """Return what is done for one entry, level by level."""
        stmt, e = self._stmt, self._entry
        made: list[Stmt] = []
        slot: Expr = int_(0)
        for number, level in enumerate(stmt.format.levels):
            if level.type.is_full:
                if number < self._tail_from:
                    at = Load(stmt.coordinates[number], (e,))
                    slot = plus(times(slot, stmt.level_extents[number]), at)
            elif number in self._runs:
                run = self._runs[number]
                here = self._names.var("here")
                made += [Let(here, slot), *self._node(run, here)]
                slot = plus(run.made, int_(-1))
        if self._has_tail:
            return [*made, Store(self._slot, (e,), slot)]
        return [*made, Store(stmt.targets[-1], (e,), Load(stmt.values, (e,)))]

    def _node(self, run: _Run, here: Var) -> list[Stmt]:
        """Return what opens a node where the entry needs one."""
        e = self._entry
        places = [
            Load(self._stmt.coordinates[number], (e,)) for number in range(run.first, run.end)
        ]
        opening: list[Stmt] = [*self._caught_up(run, here)]
        for column, at in enumerate(places):
            crd = run.crds[min(column, len(run.crds) - 1)]
            where = (run.made,) if crd.rank == 1 else (run.made, int_(column))
            opening.append(Store(crd, where, as_dtype(at, crd.dtype)))
        opening.append(Assign(run.made, plus(run.made, int_(1))))
        if run.end == self._stmt.format.num_levels:
            return opening  # entries are distinct
        new = compare(BinaryOp.NE, here, run.parent)
        for at, last in zip(places, run.lasts, strict=True):
            new = compare(BinaryOp.OR, new, compare(BinaryOp.NE, at, last))
            opening.append(Assign(last, at))
        return [If(new, (*opening, Assign(run.parent, here)))]

    def _caught_up(self, run: _Run, parent: Expr) -> list[Stmt]:
        """Return what sets the positions up to and including that of ``parent``."""
        value = as_dtype(run.made, run.ends.dtype)
        step: Stmt = Store(run.ends, (run.filled,), value)
        if self._grows(run):
            step = Push(run.ends, run.filled, value)
        advance = Assign(run.filled, plus(run.filled, int_(1)))
        return [While(compare(BinaryOp.LE, run.filled, parent), (step, advance))]

    def _grows(self, run: _Run) -> bool:
        levels = self._stmt.format.levels[: run.first]
        return not all(level.type.is_full for level in levels)

    def _closed(self, run: _Run, parents: Expr) -> list[Stmt]:
        made = self._caught_up(run, parents)
        if self._grows(run):
            made.append(Resize(run.ends, plus(parents, int_(1))))
        if run.end < self._stmt.format.num_levels:
            made += [Resize(crd, run.made) for crd in run.crds]
        if run.ends is not run.pos:
            made += self._pairs(run, parents)
        return made

    def _pairs(self, run: _Run, parents: Expr) -> list[Stmt]:
        p, pos = self._names.var("p"), run.pos
        low = as_dtype(Load(run.ends, (p,)), pos.dtype)
        high = as_dtype(Load(run.ends, (plus(p, int_(1)),)), pos.dtype)
        body = (Store(pos, (p, int_(0)), low), Store(pos, (p, int_(1)), high))
        loop = For(p, int_(0), parents, body)
        return [Alloc(pos, (parents, int_(2))), loop, Dealloc(run.ends)]

    def _values_of_blocks(self, slots: Expr) -> list[Stmt]:
        """Return the second pass: the slot of an entry below its last node."""
        stmt, f, values = self._stmt, self._names.var("e"), self._stmt.targets[-1]
        slot: Expr = Load(self._slot, (f,)) if self._runs else int_(0)
        for number in range(self._tail_from, stmt.format.num_levels):
            at = Load(stmt.coordinates[number], (f,))
            slot = plus(times(slot, stmt.level_extents[number]), at)
        put = Store(values, (slot,), Load(stmt.values, (f,)))
        freed = [Dealloc(self._slot)] if self._runs else []
        return [
            Alloc(values, (slots,), stmt.fill),
            For(f, int_(0), stmt.count, (put,)),
            *freed,
        ]


def _runs(stmt: Assemble, names: Names) -> list[_Run]:
    """Return the compressed levels; a COO tail that is one array has one memref."""
    found: list[_Run] = []
    targets = list(stmt.targets)
    number = 0
    while number < stmt.format.num_levels:
        if stmt.format.levels[number].type.kind not in _COMPRESSED:
            number += 1
            continue
        end = _end_of_run(stmt.format, number)
        pos = targets.pop(0)
        crds = [targets.pop(0)]
        if crds[0].rank == 1:
            crds += [targets.pop(0) for _ in range(number + 1, end)]
        loose = pos.rank == 2
        ends = names.array(f"{pos.name}_ends", pos.dtype) if loose else pos
        made, filled, parent = (names.var(base) for base in ("made", "filled", "parent"))
        lasts = tuple(names.var("last") for _ in range(number, end))
        found.append(_Run(number, end, pos, ends, tuple(crds), made, filled, lasts, parent))
        number = end
    return found


def _end_of_run(fmt: Format, number: int) -> int:
    end = number + 1
    while end < fmt.num_levels and fmt.levels[end].type.kind is LevelKind.SINGLETON:
        end += 1
    return end
