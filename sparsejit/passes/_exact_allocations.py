"""Arrays that grow, as arrays that get their size at once: measured first, filled then.

In: a function. Out: the same results without ``Push``. What stands between the first and the last
push into an array runs twice. The first run is a slice: only what decides how often and where
something is pushed, on copies of what it changes. The second run stores into an array of the size
that the first one found. Where the size depends on what is pushed, or on arrays that are made
meanwhile, this is done for a smaller piece, down to one push: it makes room in the array that is
there, which the host has resized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loop_uses import assigned, loaded, used, variables
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    blocks,
    expressions,
    map_body,
    memrefs,
    memrefs_defined,
    memrefs_written,
)
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus, times
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    LoopFunc,
    Memref,
    Push,
    Resize,
    Select,
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy, introduced, renamed

__all__ = ["allocate_exactly"]


def allocate_exactly(func: LoopFunc) -> LoopFunc:
    """Return ``func`` without ``Push``.

    >>> allocate_exactly(LoopFunc("f", (), (), ())).body
    ()
    """
    if not any(isinstance(stmt, Push) for stmt in all_statements(func.body)):
        return func
    return replace(func, body=_block(func.body, Names.of(func)))


def _block(body: Sequence[Stmt], names: Names) -> tuple[Stmt, ...]:
    """Replace the pushes into arrays that this block allocates; blocks inside come first."""
    inside = [_with_blocks(stmt, partial(_block, names=names)) for stmt in body]
    allocs = {stmt.memref.name: stmt for stmt in inside if isinstance(stmt, Alloc)}
    grown = {name for stmt in inside for name in _pushed(stmt)} & allocs.keys()
    left = [stmt for stmt in inside if not (isinstance(stmt, Alloc) and stmt.memref.name in grown)]
    for first, last in reversed(_regions(left, grown)):
        region = left[first : last + 1]
        pushed = sorted({name for stmt in region for name in _pushed(stmt)} & grown)
        exact = _exact(region, [allocs[name].memref for name in pushed], names)
        if exact is not None:
            left[first:] = [*exact, *_still_resized(left[last + 1 :], region, grown)]
        else:
            given = [allocs[name] for name in pushed]
            left[first : last + 1] = [*given, *_making_room(region, pushed, names)]
    return tuple(left)


def _with_blocks(stmt: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """Return a statement with its blocks changed."""
    match stmt:
        case For() | While():
            return replace(stmt, body=change(stmt.body))
        case If():
            return replace(stmt, then=change(stmt.then), orelse=change(stmt.orelse))
        case LibraryCall():
            return replace(stmt, otherwise=change(stmt.otherwise))
        case _:
            return stmt


def _still_resized(behind: list[Stmt], region: list[Stmt], grown: set[str]) -> list[Stmt]:
    """Leave out the changes of size to what an array has already.

    That is where a variable counts the pushes: it grows by one in the block of each push.
    """
    counters: dict[str, Expr] = {}
    for block in _blocks(region):
        for place, stmt in enumerate(block):
            if isinstance(stmt, Push) and stmt.memref.name in grown:
                count = stmt.count
                same = counters.setdefault(stmt.memref.name, count) == count
                steps = (
                    isinstance(count, Var)
                    and Assign(count, plus(count, int_(1))) in block[place + 1 :]
                )
                if not (steps and same):
                    counters[stmt.memref.name] = int_(-1)
    later = assigned(behind)
    return [
        stmt
        for stmt in behind
        if not (
            isinstance(stmt, Resize)
            and isinstance(stmt.count, Var)
            and counters.get(stmt.memref.name) == stmt.count
            and stmt.count.name not in later
        )
    ]


def _blocks(body: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    yield body
    for stmt in body:
        for block in blocks(stmt):
            yield from _blocks(block)


# ---------------------------------------------------------------- regions


def _pushed(stmt: Stmt) -> set[str]:
    return {inner.memref.name for inner in all_statements((stmt,)) if isinstance(inner, Push)}


def _regions(body: Sequence[Stmt], grown: set[str]) -> list[tuple[int, int]]:
    """From the first to the last push into each array of this block; what overlaps is merged."""
    spans: dict[str, tuple[int, int]] = {}
    for place, stmt in enumerate(body):
        for name in _pushed(stmt) & grown:
            spans[name] = (spans.get(name, (place, place))[0], place)
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans.values()):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _keeps_its_size(body: Sequence[Stmt], name: str) -> bool:
    """Whether an array gets no other size before the last push into it."""
    last = max(place for place, stmt in enumerate(body) if name in _pushed(stmt))
    return not any(
        isinstance(stmt, Resize) and stmt.memref.name == name
        for stmt in all_statements(body[: last + 1])
    )


def _exact(region: list[Stmt], arrays: list[Memref], names: Names) -> list[Stmt] | None:
    """Return what stands for a region: allocations, the first run, the second run.

    None where the sizes cannot be measured before the region has run.
    """
    grown = [array.name for array in arrays]
    changing = {item.name for item in introduced(region)} | assigned(region).keys()
    early = [
        stmt
        for stmt in region
        if isinstance(stmt, Alloc)
        and not any(variables(part).keys() & changing for part in stmt.extents)
    ]
    late = [stmt for stmt in region if isinstance(stmt, Dealloc)]
    work = tuple(stmt for stmt in region if stmt not in early and stmt not in late)
    measured = _measured(work, grown, names)
    if measured is None:
        return None
    first_run, needs = measured
    exact = [Alloc(array, (needs[array.name],)) for array in arrays]
    return [*early, *first_run, *exact, *_stored(work, grown), *late]


def _stored(body: Sequence[Stmt], grown: Sequence[str]) -> tuple[Stmt, ...]:
    """Store what is pushed: there is room for it."""

    def store(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Push) and stmt.memref.name in grown:
            return (Store(stmt.memref, (stmt.count,), stmt.value),)
        return (stmt,)

    return map_body(body, change_stmt=store)


def _making_room(body: Sequence[Stmt], grown: Sequence[str], names: Names) -> tuple[Stmt, ...]:
    """Return statements that push into arrays from outside, with room made before each of them."""
    made: list[Stmt] = []
    for stmt in body:
        pushed = sorted(_pushed(stmt) & set(grown))
        measured = _measured((stmt,), pushed, names) if pushed else None
        if not pushed:
            made.append(stmt)
        elif isinstance(stmt, Push):
            need = names.var(f"{stmt.memref.name}_size")
            made += [Let(need, plus(stmt.count, int_(1))), _room(stmt.memref, need)]
            made += _stored((stmt,), pushed)
        elif measured is not None:
            first_run, needs = measured
            pushes = (inner for inner in all_statements((stmt,)) if isinstance(inner, Push))
            arrays = {push.memref.name: push.memref for push in pushes}
            made += [*first_run, *(_room(arrays[name], needs[name]) for name in pushed)]
            made += _stored((stmt,), pushed)
        else:
            made.append(_with_blocks(stmt, partial(_making_room, grown=pushed, names=names)))
    return tuple(made)


def _room(array: Memref, need: Var) -> Stmt:
    """Make room for ``need`` elements; the room doubles, so that repeated pushes copy little."""
    room = DimOf(array, 0)
    more = binary(BinaryOp.MAX, need, times(int_(2), room))
    return Resize(array, Select(compare(BinaryOp.GT, need, room), more, room))


# ---------------------------------------------------------------- the first run


def _measured(
    work: tuple[Stmt, ...], grown: Sequence[str], names: Names
) -> tuple[list[Stmt], dict[str, Var]] | None:
    """Return the first run of statements, and the variable of each array's size.

    None where the slice would read what is pushed, or change arrays by more than stores, and where
    an array gets a size in between.
    """
    if not all(_keeps_its_size(work, name) for name in grown):
        return None
    measure = _Measure(work, grown, names)
    kept = measure.slice()
    return measure.statements(kept) if measure.is_possible() else None


class _Measure:
    """The slice of a region that decides how many elements its arrays get."""

    def __init__(self, work: tuple[Stmt, ...], grown: Sequence[str], names: Names) -> None:
        self._work = work
        self._names = names
        self._needs = {name: names.var(f"{name}_size") for name in grown}
        self._vars: set[str] = set()
        self._arrays: dict[str, Memref] = {}
        self._moving = {item.name for item in introduced(work)} | {
            stmt.memref.name for stmt in all_statements(work) if isinstance(stmt, Push | Resize)
        }

    def slice(self) -> tuple[Stmt, ...]:
        """Return what decides the sizes, under the names that it has."""
        size = -1
        while size != len(self._vars) + len(self._arrays):
            size = len(self._vars) + len(self._arrays)
            kept = self._slice(self._work)
        return kept

    def is_possible(self) -> bool:
        """Whether the slice reads nothing that is pushed, and changes arrays by stores alone."""
        if self._needs.keys() & self._arrays.keys():
            return False
        simple = Let | Assign | Store | SortPrefix | For | While | If
        return all(
            isinstance(stmt, simple) or not self._matters(stmt)
            for stmt in all_statements(self._work)
        )

    def statements(self, kept: tuple[Stmt, ...]) -> tuple[list[Stmt], dict[str, Var]]:
        """Return the statements of the first run, and the variable of each array's size."""
        outside = (assigned(kept).keys() & self._vars) - {item.name for item in introduced(kept)}
        starts: list[Stmt] = [Let(need, int_(0), mutable=True) for need in self._needs.values()]
        new: dict[str, Memref | Var] = {}
        for var in assigned(kept).values():
            if var.name in outside and var not in self._needs.values():
                new[var.name] = copy = self._names.var(f"{var.name}_there", var.dtype)
                starts.append(Let(copy, var, mutable=True))
        ends: list[Stmt] = []
        for array in self._changed(kept):
            new[array.name] = private = replace(array, name=self._names.fresh(f"{array.name}_too"))
            extents = tuple(DimOf(array, axis) for axis in range(array.rank))
            starts += [Alloc(private, extents), Copy(private, array)]
            ends.append(Dealloc(private))
        return [*starts, *renamed(fresh_copy(kept, self._names), new), *ends], self._needs

    def _need(self, *exprs: Expr) -> None:
        for expr in exprs:
            self._vars |= variables(expr).keys()
            self._arrays |= loaded(expr)
            extents = (part for part in all_expressions(expr) if isinstance(part, DimOf))
            moving = (part.memref for part in extents if part.memref.name in self._moving)
            self._arrays |= {memref.name: memref for memref in moving}

    def _slice(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Keep what is needed so far, and note what that needs."""
        kept: list[Stmt] = []
        for stmt in body:
            match stmt:
                case For():
                    inner = self._slice(stmt.body)
                    if inner:
                        self._need(*expressions(stmt))
                        kept.append(self._loop(stmt, inner))
                case While():
                    inner = self._slice(stmt.body)
                    if inner:
                        self._need(stmt.condition)
                        kept.append(replace(stmt, body=inner))
                case If():
                    then, orelse = self._slice(stmt.then), self._slice(stmt.orelse)
                    if then or orelse:
                        self._need(stmt.condition)
                        kept.append(replace(stmt, then=then, orelse=orelse))
                case Push(memref, count, _) if memref.name in self._needs:
                    self._need(count)
                    need = self._needs[memref.name]
                    more = binary(BinaryOp.MAX, need, plus(count, int_(1)))
                    kept.append(Assign(need, more))
                case _ if self._matters(stmt):
                    self._need(*expressions(stmt))
                    kept.append(stmt)
                case _:
                    pass
        return tuple(kept)

    def _loop(self, loop: For, inner: tuple[Stmt, ...]) -> For:
        """The slice of a loop: it shares what it still has, and a parallel one reduces sizes."""
        names = used(inner).keys() | {m.name for s in all_statements(inner) for m in memrefs(s)}
        private = tuple(item for item in loop.private if item.name in names)
        shared = tuple(pair for pair in loop.reductions if pair[0].name in names)
        if loop.parallel:
            sizes = [need for need in self._needs.values() if need.name in assigned(inner)]
            shared += tuple((need, BinaryOp.MAX) for need in sizes)
        return replace(loop, body=inner, private=private, reductions=shared)

    def _matters(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(var) | Assign(var):
                return var.name in self._vars
            case _:
                written = (*memrefs_written(stmt), *memrefs_defined(stmt))
                return any(memref.name in self._arrays for memref in written)

    def _changed(self, kept: Sequence[Stmt]) -> list[Memref]:
        found: dict[str, Memref] = {}
        for stmt in all_statements(kept):
            found |= {memref.name: memref for memref in memrefs_written(stmt)}
        return [found[name] for name in sorted(found)]
