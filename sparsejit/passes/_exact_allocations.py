"""Arrays that grow, as arrays of exact size: measured by a first run, filled by a second.

In: the statements of a block. Out: the same results without ``Push`` and ``Trim``. What stands
between the first and the last push into an array runs twice. The first run is a slice: only what
decides how often and where something is pushed, on copies of what it changes. The second run stores
into arrays of the size that the first one found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparsejit.errors import UnsupportedError
from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loop_uses import assigned, loaded, used, variables
from sparsejit.ir.loop_walk import (
    all_statements,
    blocks,
    expressions,
    map_body,
    memrefs,
    memrefs_defined,
    memrefs_written,
)
from sparsejit.ir.loop_writing import Names, binary, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Copy,
    Dealloc,
    DenseResult,
    DimOf,
    Expr,
    For,
    If,
    Let,
    LoopFunc,
    Memref,
    Push,
    Result,
    SortPrefix,
    Stmt,
    Store,
    Trim,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy, introduced, renamed

__all__ = ["allocate_exactly"]

_HINT = "run it with target='cpu', or choose a dense result format with output="


def allocate_exactly(func: LoopFunc) -> LoopFunc:
    """Return ``func`` without ``Push`` and ``Trim``.

    Raises ``UnsupportedError`` where the size of an array depends on what was pushed into it, and
    where an array grows in one block and ends in another.

    >>> allocate_exactly(LoopFunc("f", (), (), ())).body
    ()
    """
    if not any(isinstance(stmt, Push | Trim) for stmt in all_statements(func.body)):
        return func
    names = Names.of(func)
    body = _block(func.body, names)
    body, results = _trimmed(body, func.results, names)
    if any(isinstance(stmt, Push | Trim) for stmt in all_statements(body)):
        raise UnsupportedError(
            "an array that grows in one block of the program and ends in another has no size that "
            "can be measured before it is allocated on a device",
            hint=_HINT,
        )
    return replace(func, body=body, results=results)


def _block(body: Sequence[Stmt], names: Names) -> tuple[Stmt, ...]:
    """Replace the pushes into arrays that this block allocates; blocks inside come first."""
    inside: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For() | While():
                inside.append(replace(stmt, body=_block_of(stmt.body, names)))
            case If():
                then = _block_of(stmt.then, names)
                inside.append(replace(stmt, then=then, orelse=_block_of(stmt.orelse, names)))
            case LibraryCall():
                inside.append(_library_call(stmt, names))
            case _:
                inside.append(stmt)
    owned = {stmt.memref.name for stmt in inside if isinstance(stmt, Alloc)}
    grown = {name for stmt in inside for name in _pushed(stmt)} & owned
    left = [stmt for stmt in inside if not (isinstance(stmt, Alloc) and stmt.memref.name in grown)]
    arrays = {stmt.memref.name: stmt.memref for stmt in inside if isinstance(stmt, Alloc)}
    for first, last in reversed(_regions(left, grown)):
        region = left[first : last + 1]
        behind = _without_trims(left[last + 1 :], region, grown)
        left[first:] = [*_exact(region, arrays, names), *behind]
    return tuple(left)


def _library_call(stmt: LibraryCall, names: Names) -> LibraryCall:
    """Rebuild what stands for a library call; the arrays that it leaves keep their names."""
    targets = tuple(map(DenseResult, stmt.targets))
    body, left = _trimmed(_block(stmt.otherwise, names), targets, names)
    found = [result.memref for result in left if isinstance(result, DenseResult)]
    pairs = [
        (one, target) for one, target in zip(found, stmt.targets, strict=True) if one != target
    ]
    aside = {target.name: replace(target, name=names.fresh(target.name)) for _, target in pairs}
    back = {one.name: target for one, target in pairs}
    return replace(stmt, otherwise=renamed(renamed(body, aside), back))


def _without_trims(behind: list[Stmt], region: list[Stmt], grown: set[str]) -> list[Stmt]:
    """Leave out the trims of arrays that have the size that is asked for already.

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
            isinstance(stmt, Trim)
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


def _block_of(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    rebuilt, _ = _trimmed(_block(body, names), (), names)
    return rebuilt


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


def _exact(region: list[Stmt], arrays: dict[str, Memref], names: Names) -> list[Stmt]:
    """The statements that stand for a region: allocations, the first run, the second run."""
    grown = sorted({name for stmt in region for name in _pushed(stmt)} & arrays.keys())
    changing = {item.name for item in introduced(region)} | assigned(region).keys()
    early = [
        stmt
        for stmt in region
        if isinstance(stmt, Alloc)
        and not any(variables(part).keys() & changing for part in stmt.extents)
    ]
    late = [stmt for stmt in region if isinstance(stmt, Dealloc)]
    work = tuple(stmt for stmt in region if stmt not in early and stmt not in late)
    measured, needs = _Measure(work, grown, names).statements()
    exact = [Alloc(arrays[name], (needs[name],)) for name in grown]

    def stored(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Push) and stmt.memref.name in grown:
            return (Store(stmt.memref, (stmt.count,), stmt.value),)
        return (stmt,)

    return [*early, *measured, *exact, *map_body(work, change_stmt=stored), *late]


# ---------------------------------------------------------------- the first run


class _Measure:
    """The slice of a region that decides how many elements its arrays get."""

    def __init__(self, work: tuple[Stmt, ...], grown: Sequence[str], names: Names) -> None:
        self._work = work
        self._names = names
        self._needs = {name: names.var(f"{name}_size") for name in grown}
        self._vars: set[str] = set()
        self._arrays: dict[str, Memref] = {}

    def statements(self) -> tuple[list[Stmt], dict[str, Var]]:
        """Return the statements of the first run, and the variable of each array's size."""
        size = -1
        while size != len(self._vars) + len(self._arrays):
            size = len(self._vars) + len(self._arrays)
            kept = self._slice(self._work)
        self._check()
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

    def _check(self) -> None:
        """Refuse slices that read what is pushed, or change arrays by more than stores."""
        for name in self._needs:
            if name in self._arrays:
                raise UnsupportedError(
                    f"how many elements are pushed into {name} depends on what is in it, so its "
                    "size cannot be measured before it is allocated on a device",
                    hint=_HINT,
                )
        for stmt in all_statements(self._work):
            simple = isinstance(stmt, Let | Assign | Store | SortPrefix | For | While | If)
            if not simple and self._matters(stmt):
                raise UnsupportedError(
                    "the size of a sparse result depends on an array that is made between its "
                    "entries, so it cannot be measured before it is allocated on a device",
                    hint=_HINT,
                )

    def _changed(self, kept: Sequence[Stmt]) -> list[Memref]:
        found: dict[str, Memref] = {}
        for stmt in all_statements(kept):
            found |= {memref.name: memref for memref in memrefs_written(stmt)}
        return [found[name] for name in sorted(found)]


# ---------------------------------------------------------------- trimming


def _trimmed(
    body: tuple[Stmt, ...], results: tuple[Result, ...], names: Names
) -> tuple[tuple[Stmt, ...], tuple[Result, ...]]:
    """Replace ``Trim`` by an array of its own, or by nothing where the array has that size."""
    owned: set[str] = set()
    made: list[Stmt] = []
    rest = list(body)
    while rest:
        stmt = rest.pop(0)
        if isinstance(stmt, Alloc):
            owned.add(stmt.memref.name)
        if not (isinstance(stmt, Trim) and stmt.memref.name in owned):
            made.append(stmt)
            continue
        old = stmt.memref
        new = replace(old, name=names.fresh(old.name))
        count = names.var(f"{old.name}_count")
        part = replace(old, name=names.fresh(f"{old.name}_front"))
        made += [
            Let(count, stmt.count),
            Alloc(new, (count,)),
            View(part, old, (int_(0),), (count,), (1,)),
            Copy(new, part),
            Dealloc(old),
        ]
        owned.add(new.name)
        rest = list(renamed(tuple(rest), {old.name: new}))
        results = renamed(results, {old.name: new})
    return tuple(made), results
