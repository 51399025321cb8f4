"""Where the elements of a kernel's arrays are: pointers, strides and extents as parameters.

In: a ``Launch``. Out: the parameters of its kernel, their names, and for each memref the place of
an element as a number of elements from a pointer. Memory from outside that has rank 1 is contiguous
unless it is a view; all else has strides as parameters. A view inside the kernel is arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import (
    ExtentParam,
    KernelParam,
    PointerParam,
    ScalarParam,
    StrideParam,
)
from sparsejit.ir.device_statements import Launch
from sparsejit.ir.loop_uses import read
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    blocks,
    expressions,
    free_memrefs,
    free_vars,
    memrefs_written,
)
from sparsejit.ir.loop_writing import Names, int_, plus, times
from sparsejit.ir.loops import Alloc, DimOf, Expr, For, Lit, LoopFunc, Memref, Stmt, Var, View
from sparsejit.ir.types import INDEX

__all__ = ["Memory", "Place", "memory_of", "unfilled_rooms"]


@dataclass(frozen=True, slots=True)
class Place:
    """Element ``indices`` of a memref is ``pointer[start + sum(index * stride)]``."""

    pointer: Memref
    start: Expr
    strides: tuple[Expr, ...]
    extents: tuple[Expr, ...]

    def offset(self, indices: Sequence[Expr]) -> Expr:
        """Return the place of an element as a number of elements from the pointer."""
        total = self.start
        for index, stride in zip(indices, self.strides, strict=True):
            total = _sum(total, _product(index, stride))
        return total


def _is(expr: Expr, value: int) -> bool:
    return isinstance(expr, Lit) and expr.const.dtype is INDEX and expr.const.value == value


def _sum(lhs: Expr, rhs: Expr) -> Expr:
    return rhs if _is(lhs, 0) else lhs if _is(rhs, 0) else plus(lhs, rhs)


def _product(lhs: Expr, rhs: Expr) -> Expr:
    if _is(lhs, 0) or _is(rhs, 0):
        return int_(0)
    return rhs if _is(lhs, 1) else lhs if _is(rhs, 1) else times(lhs, rhs)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a kernel.

    ``words`` are its parameters with a variable or memref each, whose name is that of the
    parameter. ``workspaces`` are the allocations inside, ``starts`` the variables that hold where
    the part of a group of threads begins. ``private`` are arrays from outside, each with the
    workspace that stands for it; those that are ``copied`` start as their copy.
    """

    words: tuple[tuple[KernelParam, Memref | Var], ...]
    places: Mapping[str, Place]
    workspaces: tuple[Alloc, ...]
    starts: Mapping[str, Var]
    private: tuple[tuple[Memref, Memref], ...] = ()
    copied: frozenset[str] = frozenset()


def memory_of(
    launch: Launch, views: frozenset[str], unfilled: frozenset[str], names: Names
) -> Memory:
    """Return the memory of a kernel.

    ``views`` are the memrefs from outside that are views, ``unfilled`` those in which nothing is.
    """
    words = list(_scalars(launch, names))
    places: dict[str, Place] = {}
    asked = _extents_asked(launch)
    rooms = {memref.name: memref for memref in _private(launch)}
    asked |= {(name, 0) for name in rooms}
    touched = _touched(launch) | rooms.keys()
    for memref in dict.fromkeys((*free_memrefs(launch.body), *rooms.values())):
        has_elements = memref.name in touched and memref.name not in rooms.keys() & unfilled
        if has_elements:
            words.append((PointerParam(memref), memref))
        is_plain = not has_elements or (memref.rank == 1 and memref.name not in views)
        strides: list[Expr] = [int_(1)] * memref.rank if is_plain else []
        sizes: list[Expr] = []
        for axis in range(memref.rank):
            if not is_plain:
                stride = names.var(f"{memref.name}_s{axis}")
                words.append((StrideParam(memref, axis), stride))
                strides.append(stride)
            size: Expr = DimOf(memref, axis)
            if (memref.name, axis) in asked:
                size = names.var(f"{memref.name}_n{axis}")
                words.append((ExtentParam(memref, axis), size))
            sizes.append(size)
        places[memref.name] = Place(memref, int_(0), tuple(strides), tuple(sizes))
    own = tuple(
        (room, replace(room, name=names.fresh(f"{room.name}_{launch.kernel}")))
        for room in rooms.values()
    )
    allocs = tuple(stmt for stmt in all_statements(launch.body) if isinstance(stmt, Alloc))
    allocs += tuple(Alloc(copy, (DimOf(room, 0),)) for room, copy in own)
    starts = {alloc.memref.name: names.var(f"{alloc.memref.name}_start") for alloc in allocs}
    for alloc in allocs:
        words.append((PointerParam(alloc.memref), alloc.memref))
        strides_inside = row_major(alloc.extents)
        start = starts[alloc.memref.name]
        places[alloc.memref.name] = Place(alloc.memref, start, strides_inside, alloc.extents)
    for room, copy in own:
        extents = places[room.name].extents
        places[room.name] = replace(places[copy.name], extents=extents)
    for stmt in all_statements(launch.body):
        if isinstance(stmt, View):
            places[stmt.memref.name] = _viewed(stmt, places[stmt.source.name])
    return Memory(tuple(words), places, allocs, starts, own, frozenset(rooms.keys() - unfilled))


def unfilled_rooms(func: LoopFunc) -> frozenset[str]:
    """Return the arrays that are only ever used as rooms and have no contents to start from.

    >>> unfilled_rooms(LoopFunc("f", (), (), ()))
    frozenset()
    """
    allocs = (stmt for stmt in all_statements(func.body) if isinstance(stmt, Alloc))
    return frozenset({a.memref.name for a in allocs if a.fill is None} - set(_filled(func.body)))


def _filled(body: Iterable[Stmt]) -> Iterator[str]:
    """The arrays that statements store into, but for the rooms of a kernel inside of it."""
    for stmt in body:
        rooms = {memref.name for memref in _private(stmt)} if isinstance(stmt, Launch) else set()
        yield from (memref.name for memref in memrefs_written(stmt))
        if isinstance(stmt, View):
            yield stmt.source.name
        for block in blocks(stmt):
            yield from (name for name in _filled(block) if name not in rooms)


def _private(launch: Launch) -> Iterator[Memref]:
    loop = launch.body[-1] if launch.body else None
    if isinstance(loop, For):
        yield from (item for item in loop.private if isinstance(item, Memref))


def _scalars(launch: Launch, names: Names) -> Iterator[tuple[KernelParam, Memref | Var]]:
    for var in free_vars(launch.body):
        if not var.dtype.is_complex:
            yield ScalarParam(var), var
            continue
        yield ScalarParam(var, "real"), names.var(f"{var.name}_real", var.dtype.real)
        yield ScalarParam(var, "imag"), names.var(f"{var.name}_imag", var.dtype.real)


def _extents_asked(launch: Launch) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for stmt in all_statements(launch.body):
        for outer in expressions(stmt):
            for part in all_expressions(outer):
                if isinstance(part, DimOf):
                    found.add((part.memref.name, part.axis))
    return found


def _touched(launch: Launch) -> set[str]:
    """The memrefs of which there must be memory: of others, the kernel asks for an extent."""
    found = set(read(launch.body))
    for stmt in all_statements(launch.body):
        found |= {memref.name for memref in memrefs_written(stmt)}
        if isinstance(stmt, View):
            found.add(stmt.source.name)
    return found


def row_major(extents: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the strides of a contiguous array, the last axis running fastest."""
    strides: list[Expr] = []
    step: Expr = int_(1)
    for extent in reversed(extents):
        strides.insert(0, step)
        step = _product(extent, step)
    return tuple(strides)


def volume(extents: Sequence[Expr]) -> Expr:
    """Return the number of elements.

    >>> volume(()) == int_(1)
    True
    """
    total: Expr = int_(1)
    for extent in extents:
        total = _product(total, extent)
    return total


def _viewed(stmt: View, source: Place) -> Place:
    kept = [axis for axis in range(stmt.source.rank) if axis not in stmt.dropped]
    strides = tuple(_product(source.strides[axis], int_(stmt.strides[axis])) for axis in kept)
    sizes = tuple(stmt.sizes[axis] for axis in kept)
    return Place(source.pointer, source.offset(stmt.offsets), strides, sizes)
