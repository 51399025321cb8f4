"""Lowering: operands that are gathered again and again are packed in panels of columns.

In: a loop nest that gathers rows of a dense operand by stored coordinates, with inner loops along
these rows::

    for i in 0 .. m {
      for p in A_pos[i] .. A_pos[i + 1] {
        let k = A_crd[p]
        for j in 0 .. n { C[i, j] += A_vals[p] * B[k, j] }
      }
    }

Out: the same nest once for each panel of columns, which is copied before, so that all of its rows
lie close together. Each element sees the same updates in the same order. The width is found when
the function runs (``_panel_width``); where no panels pay there is one panel, of all columns, and
nothing is copied: the nest is written once and reads the operand itself::

    select P = room if width < n else B
    while begin < n {
      let first = begin
      let end = min(first + width, n)
      if width < n { for k, j { room[k, j] = B[k, first + j] } }
      for i, p { for j in first .. end { C[i, j] += A_vals[p] * P[k, j - first] } }
      begin = end
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._options import Caches
from sparsejit.backends.llvm._panel_width import Gathered, panel_width
from sparsejit.backends.llvm._prefetch import find_gathers
from sparsejit.ir.loop_uses import arrays_written, rooted, roots
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expressions,
    free_vars,
    map_body,
)
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
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
    SelectMemref,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = ["pack_operands"]


def pack_operands(func: LoopFunc, caches: Caches) -> LoopFunc:
    """Return ``func`` with panels of the operands that its nests gather."""
    packing = _Packing(roots(func), caches, Names.of(func))
    return replace(func, body=packing.block(func.body, frozenset()))


@dataclass(frozen=True, slots=True)
class _Nest:
    """A nest whose inner loops ``leaves`` all run over ``0 .. upper`` and do all the work.

    Every array that it writes is read and written at the place of the inner loop only, so the
    passes of the inner loops may run in any order, and apart from each other.
    """

    loop: For
    leaves: frozenset[str]
    upper: Expr
    gathered: tuple[Gathered, ...]


class _Packing:
    def __init__(self, part_of: Mapping[str, str], caches: Caches, names: Names) -> None:
        self._part_of = part_of
        self._caches = caches
        self._names = names

    def block(self, body: Sequence[Stmt], around: frozenset[str]) -> tuple[Stmt, ...]:
        """Return statements with panels; ``around`` are the variables of the loops around them."""
        made: list[Stmt] = []
        changing = around
        for stmt in body:
            match stmt:
                case For():
                    nest = _find_nest(stmt, self._part_of)
                    if nest is not None and not _uses(stmt, changing):
                        made += self._panels(nest)
                        continue
                    if not stmt.parallel:
                        inside = changing | {stmt.var.name} | _set_in(stmt.body)
                        stmt = replace(stmt, body=self.block(stmt.body, inside))
                case While():
                    inside = changing | _set_in(stmt.body)
                    stmt = replace(stmt, body=self.block(stmt.body, inside))
                case If(condition, then, orelse):
                    blocks = (self.block(block, changing) for block in (then, orelse))
                    stmt = If(condition, *blocks)
                case _:
                    pass
            made.append(stmt)
        return tuple(made)

    def _panels(self, nest: _Nest) -> Iterator[Stmt]:
        """Yield what stands in the place of a nest."""
        finding, width = panel_width(nest.gathered, nest.upper, self._caches, self._names)
        begin, first, end = (self._names.var(name) for name in ("begin", "first", "end"))
        packed = self._names.var("packed", DType.BOOL)
        yield from finding
        yield Let(packed, compare(BinaryOp.LT, width, nest.upper))
        shown: dict[str, Memref] = {}
        copies: list[Stmt] = []
        rooms: list[Memref] = []
        for one in nest.gathered:
            room, panel = (
                replace(one.operand, name=self._names.fresh(f"{one.operand.name}_{name}"))
                for name in ("room", "panel")
            )
            rows = Select(packed, DimOf(one.operand, 0), int_(0))
            yield Alloc(room, (rows, width))
            yield SelectMemref(panel, packed, room, one.operand)
            copies.append(self._copy(room, one.operand, first, end))
            rooms.append(room)
            shown[one.operand.name] = panel
        body = (
            Let(first, begin),
            Let(end, binary(BinaryOp.MIN, plus(first, width), nest.upper)),
            If(packed, tuple(copies)),
            *_of_panel(nest, shown, first, end),
            Assign(begin, end),
        )
        yield Let(begin, int_(0), mutable=True)
        yield While(compare(BinaryOp.LT, begin, nest.upper), body)
        yield from map(Dealloc, rooms)

    def _copy(self, room: Memref, operand: Memref, first: Var, end: Var) -> Stmt:
        row, column = self._names.var("k"), self._names.var("c")
        value = Load(operand, (row, plus(first, column)))
        columns = binary(BinaryOp.SUB, end, first)
        inner = For(column, int_(0), columns, (Store(room, (row, column), value),), parallel=True)
        return For(row, int_(0), DimOf(operand, 0), (inner,), parallel=True)


def _of_panel(nest: _Nest, shown: Mapping[str, Memref], first: Var, end: Var) -> tuple[Stmt, ...]:
    """Return a nest over one panel, where the panels of operands are ``shown``."""

    def statement(stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For) or stmt.var.name not in nest.leaves:
            return (stmt,)

        def element(expr: Expr) -> Expr:
            match expr:
                case Load(memref, (row, column)) if memref.name in shown and column == stmt.var:
                    return Load(shown[memref.name], (row, binary(BinaryOp.SUB, column, first)))
                case _:
                    return expr

        return (replace(stmt, lower=first, upper=end, body=map_body(stmt.body, element)),)

    return map_body((nest.loop,), change_stmt=statement)


def _set_in(body: Sequence[Stmt]) -> frozenset[str]:
    """The variables that statements introduce or assign."""
    found = (stmt for stmt in all_statements(body) if isinstance(stmt, Let | Assign | For))
    return frozenset(stmt.var.name for stmt in found)


def _uses(loop: For, names: frozenset[str]) -> bool:
    return any(var.name in names for var in free_vars((loop,)))


# ---------------------------------------------------------------- which nests


def _find_nest(loop: For, part_of: Mapping[str, str]) -> _Nest | None:
    """Return the nest of a loop, None where its inner loops cannot run panel by panel."""
    inside = list(all_statements((loop,)))
    loops = [stmt for stmt in inside if isinstance(stmt, For)]
    leaves = {stmt.var.name: stmt for stmt in loops if _is_leaf(stmt)}
    if not leaves or loop.var.name in leaves or any(s.reductions or s.private for s in loops):
        return None
    own = _set_in((loop,))
    (upper, *others) = dict.fromkeys(leaf.upper for leaf in leaves.values())
    is_one_range = not others and all(leaf.lower == int_(0) for leaf in leaves.values())
    if not is_one_range or not isinstance(upper, Var | DimOf) or _is_one_of(upper, own):
        return None
    written = rooted(arrays_written((loop,)), part_of)
    for leaf in leaves.values():
        if not _is_in_place(leaf, written, part_of):
            return None
    outside = map_body((loop,), change_stmt=lambda stmt: () if _is_leaf(stmt) else (stmt,))
    if not _only_walks(outside, own, written, part_of):
        return None
    gathered = tuple(_gathered(loops, leaves, written, part_of))
    return _Nest(loop, frozenset(leaves), upper, gathered) if gathered else None


def _is_leaf(stmt: Stmt) -> bool:
    """Whether a statement is a loop that writes elements and holds no other loop."""
    return (
        isinstance(stmt, For)
        and any(isinstance(inner, Store) for inner in stmt.body)
        and all(
            isinstance(inner, Store) or (isinstance(inner, Let) and not inner.mutable)
            for inner in stmt.body
        )
    )


def _is_one_of(expr: Expr, names: frozenset[str]) -> bool:
    return isinstance(expr, Var) and expr.name in names


def _is_in_place(leaf: For, written: set[str], part_of: Mapping[str, str]) -> bool:
    """Whether a pass reads and writes what is written in its own column only."""

    def fits(memref: Memref, indices: Sequence[Expr]) -> bool:
        return bool(indices) and indices[-1] == leaf.var and memref.name not in part_of

    for stmt in leaf.body:
        if isinstance(stmt, Store) and not fits(stmt.memref, stmt.indices):
            return False
        for part in _parts(stmt):
            match part:
                case Load(memref, indices) if rooted((memref.name,), part_of) & written:
                    if not fits(memref, indices):
                        return False
                case Search(memref) if rooted((memref.name,), part_of) & written:
                    return False
                case _:
                    pass
    return True


def _parts(stmt: Stmt) -> Iterator[Expr]:
    for outer in expressions(stmt):
        yield from all_expressions(outer)


def _only_walks(
    body: Sequence[Stmt], own: frozenset[str], written: set[str], part_of: Mapping[str, str]
) -> bool:
    """Whether statements only compute variables of their own, and read nothing that is written.

    They may note the same as in the panel before, in what is read behind the nest.
    """
    for stmt in all_statements(body):
        match stmt:
            case Assign(var) if var.name not in own:
                return False
            case Store(memref, _, Lit(), None) if memref.name not in part_of:
                pass
            case Let() | Assign() | For() | While() | If() | Alloc(_, _, None) | Dealloc():
                pass  # a row of its own has room for all panels, one after the other
            case _:
                return False
        for part in _parts(stmt):
            match part:
                case Load(memref) | Search(memref) if (
                    part_of.get(memref.name, memref.name) in written
                ):
                    return False
                case _:
                    pass
    return True


def _gathered(
    loops: Sequence[For],
    leaves: Mapping[str, For],
    written: set[str],
    part_of: Mapping[str, str],
) -> Iterator[Gathered]:
    """Yield the operands of rank 2 that are gathered, each once."""
    seen: set[str] = set()
    for loop in loops:
        for gather in find_gathers(loop):
            operand, row = gather.load.memref, gather.row
            if (
                gather.segments is None
                and row.var.name in leaves
                and operand.rank == 2
                and gather.load.indices[-1] == row.var
                and not rooted((operand.name,), part_of) & written
                and operand.name not in seen
            ):
                seen.add(operand.name)
                yield Gathered(operand, gather.stored)
