"""Prefetch of gathered rows: what a loop over stored entries will load some entries later.

In: a loop with ``let k = crd[p]``, in which an inner loop runs over a row ``B[k, ..]``, or over the
stored entries ``pos[k] .. pos[k + 1]`` of one. Out: with each iteration, prefetches of the row that
the entry some places later points to. Where that lies is known long before it is wanted, which no
hardware guesses. Behind the last entry the last one is taken. Where all that is gathered lies in
the cache of a core, it is near in any case, and prefetches only take their time: they are left out.
(For single elements ``x[k]`` a prefetch costs more than it gives, measured.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import element_size
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._options import Caches, Host
from sparsejit.backends.llvm._streams import prefetch_line
from sparsejit.backends.llvm._text import Value, integer
from sparsejit.backends.llvm._vector_forms import is_step
from sparsejit.backends.llvm._work import segment_of
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions
from sparsejit.ir.loop_writing import as_index
from sparsejit.ir.loops import Cast, Expr, For, Let, Load, Memref, Stmt, Var
from sparsejit.ir.types import INDEX

__all__ = ["AheadOfStrip", "Gather", "are_far", "find_gathers", "worth_it", "write_prefetches"]

_AHEAD = 16
"""How many entries later."""
_SEGMENTS_AHEAD, _SEGMENT_LINES = 8, 3
"""How many entries later, and how much, where rows are stored entries."""
_LINE = 64
_LEAST = 256
"""How many bytes a row has: shorter ones are left to the hardware."""
_AT = Var("%ahead", INDEX)


@dataclass(frozen=True, slots=True)
class Gather:
    """``load`` is indexed by ``coordinate``, an element of ``stored`` at the loop's variable.

    Its last index advances with the loop ``row``. Where ``segments`` is given, ``row`` runs
    over stored entries from ``segments[coordinate]`` on, and ``load`` is of them.
    """

    load: Load
    coordinate: Var
    stored: Memref
    row: For
    segments: Memref | None = None


@dataclass(frozen=True, slots=True)
class AheadOfStrip:
    """Where a register tile stands in its rows, and the entries that it runs over.

    ``base`` is the first of its ``width`` elements, ``lower`` and ``upper`` bound the entries.
    """

    base: Value
    width: int
    lower: Value
    upper: Value


def find_gathers(loop: For) -> tuple[Gather, ...]:
    """Return what a loop gathers, each place once."""
    coordinates: dict[str, tuple[Var, Memref]] = {}
    for stmt in loop.body:
        if isinstance(stmt, Let) and not stmt.mutable:
            value = stmt.value.operand if isinstance(stmt.value, Cast) else stmt.value
            if isinstance(value, Load) and value.indices == (loop.var,):
                coordinates[stmt.var.name] = stmt.var, value.memref
    return tuple(dict.fromkeys(_gathers(loop, coordinates))) if coordinates else ()


def _gathers(loop: For, coordinates: dict[str, tuple[Var, Memref]]) -> Iterator[Gather]:
    inside = list(all_statements(loop.body))
    own = {stmt.var.name for stmt in inside if isinstance(stmt, Let | For)} | {loop.var.name}
    for row in loop.body:  # not behind a condition: positions are read
        segment = segment_of(row) if isinstance(row, For) else None
        if isinstance(row, For) and segment is not None:
            at = segment[1]
            place = coordinates.get(at.name) if isinstance(at, Var) else None
            if place is not None:
                yield from (Gather(load, *place, row, segment[0]) for load in _stored_loads(row))
    for row in inside:
        if isinstance(row, For) and not _uses(row.lower, own) and not _uses(row.upper, own):
            for load in _loads(row.body):
                if not load.indices:
                    continue
                *first, last = load.indices
                found = [v for v in coordinates if any(_uses(i, {v}) for i in first)]
                rest = own.difference(found)
                is_along = is_step(last, row.var.name, own)
                if is_along and len(found) == 1 and not any(_uses(i, rest) for i in first):
                    yield Gather(load, *coordinates[found[0]], row)


def _loads(body: Sequence[Stmt]) -> Iterator[Load]:
    for stmt in body:
        for outer in expressions(stmt):
            yield from (part for part in all_expressions(outer) if isinstance(part, Load))


def _stored_loads(row: For) -> Iterator[Load]:
    """What a loop over stored entries loads of each."""
    for load in _loads(tuple(all_statements(row.body))):
        if load.indices == (row.var,):
            yield load


def _uses(expr: Expr, names: set[str]) -> bool:
    return any(isinstance(part, Var) and part.name in names for part in all_expressions(expr))


def worth_it(
    e: Expressions, gathers: tuple[Gather, ...], strip: AheadOfStrip | None
) -> tuple[tuple[Gather, ...], Value | None]:
    """Return the gathers that are worth it, and the condition under which they are, if any.

    ``strip`` says where a register tile stands.
    """
    b, chosen = e.builder, []
    condition: Value | None = None
    for gather in gathers:
        array = e.arrays.get(gather.load.memref.name)
        size = element_size(gather.load.memref)
        if array is None or not array.is_unit:
            continue
        if gather.segments is not None:
            chosen += [gather] * (strip is None)
            continue
        if strip is not None:
            chosen += [gather] * (strip.width * size >= _LEAST)
            continue
        chosen.append(gather)
        if condition is None:
            length = b.op("sub", e.value(gather.row.upper), e.value(gather.row.lower))
            condition = b.compare("sge", b.mul(length, size), integer(_LEAST))
    return tuple(chosen), condition


def are_far(e: Expressions, gathers: tuple[Gather, ...], caches: Caches) -> Value:
    """Return whether what is gathered does not fit into the cache that a core has alone."""
    b, total = e.builder, integer(0)
    gathered = {gather.load.memref.name: gather.load.memref for gather in gathers}
    extents = {
        memref: [e.arrays[name].extent(b, axis) for axis in range(memref.rank)]
        for name, memref in gathered.items()
    }
    with b.in_front(chain.from_iterable(extents.values())):
        for memref, sizes in extents.items():
            size = integer(element_size(memref))
            for extent in sizes:
                size = b.op("mul", size, extent)  # it may wrap: views can be of any extent
            total = b.op("add", total, size)
        return b.compare("sgt", total, integer(caches.own // 2))


def write_prefetches(
    e: Expressions,
    gathers: tuple[Gather, ...],
    at: Value,
    strip: AheadOfStrip | None,
    host: Host,
) -> None:
    """Write the prefetches of the iteration ``at``, of rows as the processor wants them."""
    before = dict(e.values)
    for gather in gathers:
        if gather.segments is not None:
            _write_segment(e, gather, gather.segments, at)
        elif strip is not None:
            _write_strip(e, gather, at, strip, host)
        else:
            _write_row(e, gather, at, host)
    e.values.clear()
    e.values.update(before)


def _look_ahead(e: Expressions, gather: Gather, ahead: Value) -> None:
    """Let the coordinate be that of a later entry, of the last one behind that."""
    b = e.builder
    least = e.functions.intrinsic("llvm.umin.i64", "i64", "i64", "i64")
    last = b.add(e.arrays[gather.stored.name].extent(b, 0), -1)
    e.values[_AT.name] = b.call(least, [ahead, last])
    e.values[gather.coordinate.name] = e.value(as_index(gather.stored, _AT))


def _write_strip(
    e: Expressions, gather: Gather, at: Value, strip: AheadOfStrip, host: Host
) -> None:
    """Prefetch a strip of a later entry.

    Behind the last entry comes the first one with the next strip, or the next row's entries.
    """
    b = e.builder
    row, following = gather.row, b.add(strip.base, strip.width)
    is_last = b.compare("sge", following, e.value(row.upper))
    ahead = b.add(at, _AHEAD)
    is_beyond = b.compare("sge", ahead, strip.upper)
    back = b.select(is_last, integer(0), b.op("sub", strip.upper, strip.lower))
    start = b.select(is_last, e.value(row.lower), following)
    _look_ahead(e, gather, b.select(is_beyond, b.op("sub", ahead, back), ahead))
    e.values[row.var.name] = b.select(is_beyond, start, strip.base)
    place = e.place(e.arrays[gather.load.memref.name], gather.load.indices)
    size = min(strip.width * element_size(gather.load.memref), host.row_bytes)
    for distance in (*range(0, size, _LINE), size - 1):
        prefetch_line(e, place, integer(distance), host.locality)


def _write_row(e: Expressions, gather: Gather, at: Value, host: Host) -> None:
    """Prefetch the first lines of a later entry's row; of a short row the last one again.

    Rows of NumPy's arrays begin in the middle of a line: one more has their end.
    """
    b = e.builder
    _look_ahead(e, gather, b.add(at, _AHEAD))
    start = e.value(gather.row.lower)
    e.values[gather.row.var.name] = start
    place = e.place(e.arrays[gather.load.memref.name], gather.load.indices)
    least = e.functions.intrinsic("llvm.umin.i64", "i64", "i64", "i64")
    size = b.mul(b.op("sub", e.value(gather.row.upper), start), element_size(gather.load.memref))
    last = b.add(size, -1)
    for distance in (*range(0, host.row_bytes, _LINE), host.row_bytes - 1):
        by = integer(distance)
        if distance >= _LEAST:
            by = b.call(least, [by, last])
        prefetch_line(e, place, by, host.locality)


def _write_segment(e: Expressions, gather: Gather, segments: Memref, at: Value) -> None:
    """Prefetch the first entries of a row; then the hardware goes on."""
    _look_ahead(e, gather, e.builder.add(at, _SEGMENTS_AHEAD))
    e.values[gather.row.var.name] = e.value(as_index(segments, gather.coordinate))
    place = e.place(e.arrays[gather.load.memref.name], gather.load.indices)
    for line in range(_SEGMENT_LINES):
        prefetch_line(e, place, integer(line * _LINE))
