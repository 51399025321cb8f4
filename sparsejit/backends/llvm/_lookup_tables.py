"""Lowering: searches in one segment, again and again, become look-ups in a table.

In: a loop over ``i`` with ``search(crd, pos[i] .. pos[i + 1], j)`` in a loop inside of a loop. Out:
for each ``i`` the segment is walked once, and ``table[crd[p]] = p``; then ``table[j]`` is where
``j`` is stored, or -1. The table has the level's extent; where that is far more than there are
entries, the search stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_uses import arrays_written, loaded, variables
from sparsejit.ir.loop_walk import (
    all_expressions,
    blocks,
    expressions,
    map_body,
)
from sparsejit.ir.loop_writing import Names, as_dtype, as_index, compare, int_, plus, times
from sparsejit.ir.loops import (
    Alloc,
    Cast,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Search,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["look_up_in_tables"]

_SPARSEST = 64
"""So many times the number of entries a table may be long."""
_SHORT = 1 << 16
"""As long it may be in any case."""


def look_up_in_tables(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with tables of the segments that are searched often."""
    names = Names.of(func)
    written = set(arrays_written(func.body))
    params = {param.name for param in func.params}
    body: list[Stmt] = []
    for stmt in func.body:
        body += (
            _Tables(stmt, names, params, written).statements() if isinstance(stmt, For) else (stmt,)
        )
    return replace(func, body=tuple(body))


@dataclass(frozen=True, slots=True)
class _Segment:
    """What is searched: ``lower .. upper`` of ``coordinates``."""

    coordinates: Memref
    lower: Expr
    upper: Expr
    extent: Expr

    @property
    def dtype(self) -> DType:
        """The type of positions."""
        lower = self.lower.operand if isinstance(self.lower, Cast) else self.lower
        return lower.memref.dtype if isinstance(lower, Load) else INDEX


class _Tables:
    """One loop, with tables for what is searched inside."""

    def __init__(self, loop: For, names: Names, params: set[str], written: set[str]) -> None:
        self._loop = loop
        self._names = names
        self._params = params
        self._written = written
        self._known = params | {loop.var.name}

    def statements(self) -> Sequence[Stmt]:
        segments = list(dict.fromkeys(self._segments(self._loop.body, 0)))
        made: list[Stmt] = []
        loop, behind = self._loop, list[Stmt]()
        for segment in segments:
            table = self._names.array(f"{segment.coordinates.name}_table", segment.dtype)
            fits = self._names.var("fits", DType.BOOL)
            length = self._names.var("length")
            made += _opened(segment, table, fits, length)
            loop = self._with_table(loop, segment, table, fits)
            behind.append(Dealloc(table))
        return (*made, loop, *behind)

    def _segments(self, body: Sequence[Stmt], depth: int) -> Iterator[_Segment]:
        for stmt in body:
            for outer in expressions(stmt) if depth > 1 else ():
                for part in all_expressions(outer):
                    if isinstance(part, Search) and self._is_fixed(part):
                        assert part.extent is not None
                        yield _Segment(part.coordinates, part.lower, part.upper, part.extent)
            inner = depth + isinstance(stmt, For | While)
            for block in blocks(stmt):
                yield from self._segments(block, inner)

    def _is_fixed(self, search: Search) -> bool:
        """Whether an iteration searches one segment, of an array that stays as it is."""
        bounds = search.lower, search.upper
        if search.extent is None or search.column is not None:
            return False
        if not variables(search.extent).keys() <= self._params or loaded(search.extent):
            return False
        names = {search.coordinates.name}.union(*(loaded(bound).keys() for bound in bounds))
        used = set[str]().union(*(variables(bound).keys() for bound in bounds))
        return used <= self._known and names <= self._params and not names & self._written

    def _with_table(self, loop: For, segment: _Segment, table: Memref, fits: Var) -> For:
        def change(expr: Expr) -> Expr:
            match expr:
                case Search(coordinates, lower, upper, key) if (
                    coordinates == segment.coordinates
                    and (lower, upper) == (segment.lower, segment.upper)
                ):
                    return Select(fits, as_index(table, key), expr)
                case _:
                    return expr

        body = map_body(loop.body, change)
        set_, clear = (self._walk(segment, table, is_set) for is_set in (True, False))
        around = (If(fits, (set_,)), *body, If(fits, (clear,)))
        return replace(loop, body=around, private=(*loop.private, table))

    def _walk(self, segment: _Segment, table: Memref, is_set: bool) -> For:
        """Note the positions of a segment, or forget them."""
        p = self._names.var("p")
        at = as_index(segment.coordinates, p)
        value = as_dtype(p, table.dtype) if is_set else _nowhere(table)
        return For(p, segment.lower, segment.upper, (Store(table, (at,), value),))


def _nowhere(table: Memref) -> Lit:
    return Lit(Const(-1, table.dtype))


def _opened(segment: _Segment, table: Memref, fits: Var, length: Var) -> Iterator[Stmt]:
    """Allocate a table, if it is not much longer than all segments."""
    most = plus(times(DimOf(segment.coordinates, 0), int_(_SPARSEST)), int_(_SHORT))
    yield Let(fits, compare(BinaryOp.LE, segment.extent, most))
    yield Let(length, Select(fits, segment.extent, int_(0)))
    yield Alloc(table, (length,), _nowhere(table).const)
