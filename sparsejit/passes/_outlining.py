"""Outlining of blocks: which statements become which kernels, and what the host does around them.

Statements on elements that no kernel of its own takes are collected in a *group*, which becomes one
kernel of one thread (of one warp, where it has parallel loops inside). A variable that it sets and
that is needed behind it goes through an array of one element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from sparsejit.ir.device_statements import Launch, LibraryCall, ReadBack, Require, Schedule
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loop_uses import (
    arrays_written,
    assigned,
    is_pure,
    loads_always,
    read,
    rooted,
    used,
    variables,
)
from sparsejit.ir.loop_walk import (
    all_statements,
    expr_dtype,
    map_expr,
)
from sparsejit.ir.loop_writing import Names, int_
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Copy,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Push,
    Resize,
    Scan,
    SelectMemref,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy, renamed
from sparsejit.ir.types import DType
from sparsejit.passes._balanced_rows import balanced, rows_of
from sparsejit.passes._bounded_room import with_bounded_room
from sparsejit.passes._host_loops import needs_host, runs_by_itself, stays_on_host
from sparsejit.passes._kernel_accumulators import with_accumulators
from sparsejit.passes._kernel_bodies import kernel_body
from sparsejit.passes._kernel_schedules import (
    ChooseSchedule,
    KernelShape,
    shape_of,
    with_shared_reductions,
)
from sparsejit.passes._kernel_sorting import with_shared_sorts
from sparsejit.passes._racing_reductions import can_race, raced, scalar_reductions

__all__ = ["Outliner"]


class Outliner:
    """Outlines the blocks of one function; kernels are numbered in program order."""

    def __init__(
        self, names: Names, of: Mapping[str, str], ordered: bool, choose: ChooseSchedule
    ) -> None:
        self.names = names
        self.of = of
        self.ordered = ordered
        self.shapes: dict[str, KernelShape] = {}  # of the loops that kernels were made of
        self._choose = choose
        self._kernels = 0

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return what the host does for a block."""
        if not self.ordered:
            body = scalar_reductions(body, self.of, self.names)
        return _Block(self, body).statements()

    def launch(self, schedule: Schedule, body: Sequence[Stmt], atomics: Sequence[Memref]) -> Launch:
        """Return the next kernel."""
        self._kernels += 1
        lowered = kernel_body(tuple(body), self.names)
        lowered = with_accumulators(lowered, atomics, self.of, self.names)
        if schedule is Schedule.WARP:
            lowered = with_shared_sorts(lowered, self.names)
            lowered = with_shared_reductions(lowered, self._may_split)
        return Launch(f"k{self._kernels - 1}", schedule, lowered, tuple(atomics))

    def _may_split(self, op: BinaryOp, dtype: DType) -> bool:
        """Whether a reduction may be computed in parts: floats in any order, or no floats."""
        exact = dtype.is_integer or dtype is DType.BOOL or op in (BinaryOp.MIN, BinaryOp.MAX)
        return identity_const(op, dtype) is not None and (exact or not self.ordered)

    def scheduled(self, loop: For) -> tuple[Schedule, For, tuple[Memref, ...]]:
        """Return the schedule of the next kernel's loop, the loop for it, and what races then."""
        rows = rows_of(loop)
        if rows is not None and not can_race(rows.op, rows.acc.dtype, ordered=self.ordered):
            rows = None
        if _has_room(loop):
            return Schedule.WARP, loop, ()
        shape = self.shapes[f"k{self._kernels}"] = shape_of(loop, is_balanceable=rows is not None)
        schedule = self._choose(shape)
        if rows is None or schedule is not Schedule.BALANCED:
            return (Schedule.WARP if schedule is Schedule.BALANCED else schedule), loop, ()
        return schedule, balanced(loop, rows, self.names), (rows.store.memref,)


class _Block:
    """One block: what the host does so far, and the group that is not a kernel yet."""

    def __init__(self, outliner: Outliner, body: Sequence[Stmt]) -> None:
        self._outliner = outliner
        self._names = outliner.names
        self._rest = list(body)
        self._current: tuple[Stmt, ...] = ()
        self._made: list[Stmt] = []
        self._group: list[Stmt] = []
        self._frees: list[Stmt] = []
        self._own: set[str] = set()

    def statements(self) -> tuple[Stmt, ...]:
        while self._rest:
            stmt = self._rest.pop(0)
            self._current = (stmt,)
            if isinstance(stmt, Let):
                self._own.add(stmt.var.name)
            self._statement(stmt)
        self._current = ()
        self._flush()
        return tuple(self._made)

    def _statement(self, stmt: Stmt) -> None:  # noqa: C901 - one case for each kind
        match stmt:
            case Let() | Assign():
                self._scalar(stmt)
            case Store() | SortPrefix():
                self._group.append(stmt)
            case For():
                self._loop(stmt)
            case While() | If():
                if stays_on_host(stmt):
                    self._control(stmt)
                else:
                    self._group.append(stmt)
            case Dealloc():
                self._frees.append(stmt)
                if not self._group:
                    self._flush()
            case Alloc():
                extents = tuple(self._known(extent) for extent in stmt.extents)
                self._made.append(replace(stmt, extents=extents))
            case Copy() | View() | Scan() | Sort() | Resize() | ReadBack() | Require():
                self._host(stmt)
            case LibraryCall():
                self._flush()
                otherwise = self._outliner.block(stmt.otherwise)
                alpha, beta = self._known(stmt.alpha), self._known(stmt.beta)
                self._made.append(replace(stmt, alpha=alpha, beta=beta, otherwise=otherwise))
            case Launch():
                self._flush()
                self._made.append(stmt)
            case Push() | Assemble() | SelectMemref():
                raise AssertionError("arrays have their sizes and are known, tensors are assembled")
            case _:
                assert_never(stmt)

    # ------------------------------------------------------------ scalars and host statements

    def _scalar(self, stmt: Let | Assign) -> None:
        """The host computes what reads no memory, unless the group comes in between."""
        changed = assigned(self._group).keys() | _lets(self._group).keys()
        waits = bool(variables(stmt.value).keys() & changed)
        if isinstance(stmt, Assign):
            waits |= stmt.var.name in used(self._group) or stmt.var.name in changed
        if is_pure(stmt.value) and not waits:
            self._made.append(stmt)
        else:
            self._group.append(stmt)

    def _host(self, stmt: Copy | View | Scan | Sort | Resize | ReadBack | Require) -> None:
        self._flush()
        match stmt:
            case View():
                offsets = tuple(map(self._known, stmt.offsets))
                sizes = tuple(map(self._known, stmt.sizes))
                self._made.append(replace(stmt, offsets=offsets, sizes=sizes))
            case Sort():
                extents = tuple(map(self._known, stmt.extents))
                self._made.append(replace(stmt, extents=extents, count=self._known(stmt.count)))
            case Require():
                self._made.append(replace(stmt, condition=self._known(stmt.condition)))
            case Resize():
                self._made.append(replace(stmt, count=self._known(stmt.count)))
            case ReadBack():
                indices = tuple(map(self._known, stmt.indices))
                self._made.append(replace(stmt, indices=indices))
            case Copy() | Scan():
                self._made.append(stmt)
            case _:
                assert_never(stmt)

    def _known(self, expr: Expr) -> Expr:
        """Return ``expr`` as the host knows it: read back where it is in memory."""
        changed = assigned(self._group) | _lets(self._group)
        if is_pure(expr):
            waits = {name: var for name, var in variables(expr).items() if name in changed}
            if waits:
                self._flush(waits)
            return expr
        var = self._names.var("known", expr_dtype(expr))
        self._group.append(Let(var, expr))
        self._flush({var.name: var})
        return var

    def _control(self, stmt: For | While | If) -> None:
        """A loop or branch of the host, around kernels."""
        block = self._outliner.block
        match stmt:
            case For():
                lower, upper = self._known(stmt.lower), self._known(stmt.upper)
                self._flush()
                body = block(stmt.body)
                self._made.append(
                    replace(
                        stmt, lower=lower, upper=upper, body=body, parallel=False, reductions=()
                    )
                )
            case If():
                condition = self._known(stmt.condition)
                self._flush()
                self._made.append(If(condition, block(stmt.then), block(stmt.orelse)))
            case While():
                self._flush()
                if is_pure(stmt.condition):
                    self._made.append(While(stmt.condition, block(stmt.body)))
                    return
                going = self._names.var("going", expr_dtype(stmt.condition))
                self._made.append(Let(going, self._known(stmt.condition), mutable=True))
                body = (*stmt.body, Assign(going, stmt.condition))
                self._made.append(While(going, block(body)))
            case _:
                assert_never(stmt)

    # ------------------------------------------------------------ kernels

    def _loop(self, loop: For) -> None:
        outliner = self._outliner
        bounded = with_bounded_room(loop, self._names) if loop.parallel else None
        if bounded is not None:
            *before, measuring = bounded[0]
            self._flush()
            self._made += before
            assert isinstance(measuring, For)
            self._reduction(measuring)
            loop = bounded[1]
        if loop.parallel and not runs_by_itself(loop):
            self._loop(replace(loop, parallel=False, reductions=(), private=()))
        elif loop.parallel and loop.reductions:
            self._reduction(loop)
        elif loop.parallel and not needs_host(loop):
            self._kernel(loop, ())
        elif (made := raced(loop, outliner.of, ordered=outliner.ordered)) is not None:
            self._kernel(made.loop, made.arrays)
        elif stays_on_host(loop):
            self._control(loop)
        else:
            self._group.append(loop)

    def _reduction(self, loop: For) -> None:
        """Each iteration reduces into variables of its own, and then into arrays of one element."""
        ordered = self._outliner.ordered
        reductions = [(var, op) for var, op in loop.reductions if isinstance(var, Var)]
        starts = [identity_const(op, var.dtype) for var, op in reductions]
        allowed = all(can_race(op, var.dtype, ordered=ordered) for var, op in reductions)
        if None in starts or not allowed or needs_host(loop):
            self._loop(replace(loop, parallel=False, reductions=(), private=()))
            return
        self._flush()
        body, new = list(loop.body), dict[str, Memref | Var]()
        cells, before, behind = [], list[Stmt](), list[Stmt]()
        for (var, op), start in zip(reductions, starts, strict=True):
            assert start is not None
            own = self._names.var(var.name, var.dtype)
            cell = Memref(self._names.fresh(f"{var.name}_cell"), var.dtype, 1)
            part = self._names.var(var.name, var.dtype)
            new[var.name] = own
            cells.append(cell)
            body.insert(0, Let(own, Lit(start), mutable=True))
            body.append(Store(cell, (int_(0),), own, op))
            before.append(Alloc(cell, (int_(1),), start))
            behind.append(ReadBack(part, cell, (int_(0),)))
            behind.append(Assign(var, Binary(op, var, part, var.dtype)))
            behind.append(Dealloc(cell))
        self._made += before
        self._kernel(replace(loop, body=renamed(tuple(body), new), reductions=()), cells)
        self._made += behind

    def _kernel(self, loop: For, atomics: Sequence[Memref]) -> None:
        """A kernel; what the group reads from memory for it, it may read itself."""
        of = self._outliner.of
        writes = rooted(arrays_written((loop,)), of)
        lets = [stmt for stmt in self._group if isinstance(stmt, Let) and not stmt.mutable]
        if len(lets) < len(self._group) or rooted(read(lets), of) & writes:
            self._flush()
            lets = []
        needed = set(used((loop,)))
        own: list[Stmt] = []
        for stmt in reversed(lets):
            if stmt.var.name in needed:
                needed |= variables(stmt.value).keys()
                own.insert(0, stmt)
        schedule, loop, racing = self._outliner.scheduled(loop)
        body = fresh_copy((*own, loop), self._names) if own else (loop,)
        self._made.append(self._outliner.launch(schedule, body, (*atomics, *racing)))

    def _flush(self, also: Mapping[str, Var] | None = None) -> None:
        """Make a kernel of the group, and read back what is needed behind it."""
        group, self._group = self._group, []
        live = {*used((*self._current, *self._rest)), *(also or ())}
        changed = _changed(group)
        outside = changed.keys() - self._own
        exports = {
            name: var
            for name, var in (_lets(group) | changed).items()
            if name in live or name in outside
        }
        if all(isinstance(stmt, Let | Assign) and loads_always(stmt.value) for stmt in group):
            self._read_back(group, exports)
        elif exports or not all(isinstance(stmt, Let | Assign) for stmt in group):
            self._one_kernel(tuple(group), exports)
        self._made += self._frees
        self._frees = []

    def _read_back(self, group: Sequence[Stmt], exports: Mapping[str, Var]) -> None:
        needed = set(exports)
        wanted: list[Let | Assign] = []
        for stmt in reversed(group):
            if isinstance(stmt, Let | Assign) and stmt.var.name in needed:
                needed |= variables(stmt.value).keys()
                wanted.append(stmt)
        for stmt in reversed(wanted):
            self._made.append(replace(stmt, value=map_expr(stmt.value, self._fetched)))

    def _fetched(self, expr: Expr) -> Expr:
        if not isinstance(expr, Load):
            return expr
        var = self._names.var(f"{expr.memref.name}_at", expr.memref.dtype)
        self._made.append(ReadBack(var, expr.memref, expr.indices))
        return var

    def _one_kernel(self, group: tuple[Stmt, ...], exports: Mapping[str, Var]) -> None:
        """Run the group in one thread or one warp; ``exports`` go through arrays of one element."""
        names = self._names
        introduced = _lets(group)
        starts = _changed(group)
        new: dict[str, Memref | Var] = {}
        body: list[Stmt] = []
        for var in starts.values():
            inside = names.var(f"{var.name}_here", var.dtype)
            new[var.name] = inside
            body.append(Let(inside, var, mutable=True))
        for name, var in introduced.items():
            new[name] = names.var(name, var.dtype)
        body += renamed(group, new)
        cells = {
            name: Memref(names.fresh(f"{name}_cell"), var.dtype, 1) for name, var in exports.items()
        }
        for name, var in exports.items():
            here = new.get(name, var)
            assert isinstance(here, Var)
            body.append(Store(cells[name], (int_(0),), here))
            self._made.append(Alloc(cells[name], (int_(1),)))
        self._made.append(self._small_launch(body))
        mutable = {s.var.name for s in group if isinstance(s, Let) and s.mutable}
        for name, var in exports.items():
            if name in introduced and name not in mutable:
                self._made.append(ReadBack(var, cells[name], (int_(0),)))
            else:
                value = names.var(name, var.dtype)
                self._made.append(ReadBack(value, cells[name], (int_(0),)))
                known = name in introduced
                self._made.append(Let(var, value, mutable=True) if known else Assign(var, value))
            self._made.append(Dealloc(cells[name]))

    def _small_launch(self, body: Sequence[Stmt]) -> Launch:
        parallel = any(isinstance(s, For) and s.parallel for s in all_statements(body))
        if not parallel:
            return self._outliner.launch(Schedule.ONE_THREAD, body, ())
        once = For(self._names.var("once"), int_(0), int_(1), tuple(body), parallel=True)
        return self._outliner.launch(Schedule.WARP, (once,), ())


def _has_room(loop: For) -> bool:
    """Whether the loop needs memory of its own: there are fewer warps than threads to have some."""
    arrays = any(isinstance(item, Memref) for item in loop.private)
    return arrays or any(isinstance(stmt, Alloc) for stmt in all_statements(loop.body))


def _lets(group: Sequence[Stmt]) -> dict[str, Var]:
    """The variables that the statements themselves introduce, not those inside of them."""
    return {stmt.var.name: stmt.var for stmt in group if isinstance(stmt, Let)}


def _changed(group: Sequence[Stmt]) -> dict[str, Var]:
    """The variables from before the group that it assigns."""
    own = {stmt.var.name for stmt in all_statements(group) if isinstance(stmt, Let)}
    return {name: var for name, var in assigned(group).items() if name not in own}
