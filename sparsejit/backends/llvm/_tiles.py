"""Register tiles: which loop nests add into a row that can stay in registers meanwhile.

In: the loops of a function. Out: the nests, each a loop (over stored entries, say) that holds inner
loops over a dense index, which update elements of arrays that depend on nothing inside but this
index::

    for p in A_pos[i] .. A_pos[i + 1] {
      let k = A_crd[p]
      for j in 0 .. n { C[i, j] += A_vals[p] * B[k, j] }
    }

Printed as it stands, each pass of the outer loop reads and writes the whole row of ``C``. Instead,
a part of the row goes to vector registers, the outer loop runs, and the part goes back; part by
part. Every element sees the same updates in the same order, so nothing is reassociated. Where the
row is filled just before with a constant, that is what the registers start from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._vector_forms import Passes, depends, has_vectors, is_row
from sparsejit.ir.loop_walk import all_expressions, all_statements, map_expr
from sparsejit.ir.loops import (
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Search,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX

__all__ = ["STRIP", "Tile", "find_tiles", "tile_of"]

STRIP = Var("%strip", INDEX)
"""The place in a row, in the indices of targets."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A nest: its inner loops by the name of their variable, their bounds and what they update.

    ``targets`` are the updated arrays with their indices, in which ``STRIP`` stands for the
    variable of the inner loop; ``bits`` is the size of the widest element in the vectors.
    ``starts`` are the constants that rows are filled with before, by the name of the array, and
    ``fills`` the loops that do so, which are left out.
    """

    leaves: frozenset[str]
    lower: Expr
    upper: Expr
    targets: tuple[tuple[Memref, tuple[Expr, ...]], ...]
    bits: int
    starts: tuple[tuple[str, Const], ...] = ()
    fills: frozenset[str] = frozenset()


def find_tiles(
    body: Sequence[Stmt], roots: Mapping[str, str], units: frozenset[str]
) -> dict[str, Tile]:
    """Return the nests of a body, outermost first, by the name of their loop's variable.

    ``roots`` name the array whose memory a view shows, ``units`` are the arrays whose elements lie
    side by side along the last axis.
    """
    return dict(_tiles(body, roots, units))


def _tiles(
    body: Sequence[Stmt], roots: Mapping[str, str], units: frozenset[str]
) -> Iterator[tuple[str, Tile]]:
    for place, stmt in enumerate(body):
        match stmt:
            case For():
                tile = tile_of(stmt, roots, units)
                if tile is not None:
                    yield stmt.var.name, _with_starts(tile, body[:place])
                else:
                    yield from _tiles(stmt.body, roots, units)
            case If(_, then, orelse):
                yield from _tiles(then, roots, units)
                yield from _tiles(orelse, roots, units)
            case While(_, inner):
                yield from _tiles(inner, roots, units)
            case _:
                pass


def tile_of(loop: For, roots: Mapping[str, str], units: frozenset[str]) -> Tile | None:
    """Return the nest whose outer loop is ``loop``, None where it is none."""
    return _Nest(loop, roots, units).tile()


def _with_starts(tile: Tile, before: Sequence[Stmt]) -> Tile:
    """Note which rows are filled with a constant by the loops directly before the nest."""
    starts: dict[str, Const] = {}
    fills: set[str] = set()
    for stmt in reversed(before):
        match stmt:
            case For(var, lower, upper, (Store(memref, indices, Lit(const), None),)) if (
                (lower, upper) == (tile.lower, tile.upper)
                and (memref, _row(indices, var)) in tile.targets
                and memref.name not in starts
            ):
                starts[memref.name] = const
                fills.add(var.name)
            case _:
                break
    return replace(tile, starts=tuple(starts.items()), fills=frozenset(fills))


def _row(indices: Sequence[Expr], var: Var) -> tuple[Expr, ...]:
    """Indices with ``STRIP`` in the place of a variable."""
    return tuple(map_expr(index, lambda part: STRIP if part == var else part) for index in indices)


class _Nest:
    """The question whether one loop is the outer loop of a nest."""

    def __init__(self, loop: For, roots: Mapping[str, str], units: frozenset[str]) -> None:
        self._loop = loop
        self._roots = roots
        self._units = units
        self._inside = frozenset(
            stmt.var.name
            for stmt in (loop, *all_statements(loop.body))
            if isinstance(stmt, Let | For)
        )
        self._leaves: list[For] = []

    def tile(self) -> Tile | None:
        loop = self._loop
        if not self._is_plain(loop.body) or not self._leaves:
            return None
        first = self._leaves[0]
        bounds = first.lower, first.upper
        if any((leaf.lower, leaf.upper) != bounds for leaf in self._leaves):
            return None
        if any(depends(bound, self._inside) for bound in bounds):
            return None
        targets = self._targets()
        if targets is None or not self._reads_others(targets):
            return None
        bits = self._bits()
        if bits is None:
            return None
        names = frozenset(leaf.var.name for leaf in self._leaves)
        return Tile(names, *bounds, tuple(targets), bits)

    def _is_plain(self, body: Sequence[Stmt]) -> bool:
        """Whether there is nothing but values, loops, branches and inner loops that update."""
        for stmt in body:
            match stmt:
                case Let(_, _, False):
                    pass
                case For():
                    if _is_leaf(stmt):
                        self._leaves.append(stmt)
                    elif not self._is_plain(stmt.body):
                        return False
                case If(_, then, orelse):
                    if not self._is_plain(then) or not self._is_plain(orelse):
                        return False
                case _:
                    return False
        return True

    def _targets(self) -> list[tuple[Memref, tuple[Expr, ...]]] | None:
        """The updated rows: one of each array, the same throughout, each with elements in a row."""
        found: dict[str, tuple[Memref, tuple[Expr, ...]]] = {}
        for leaf in self._leaves:
            for stmt in leaf.body:
                if not isinstance(stmt, Store):
                    continue
                is_side_by_side = is_row(stmt, leaf.var.name, {leaf.var.name})
                if stmt.memref.name not in self._units or not is_side_by_side:
                    return None
                row = stmt.memref, _row(stmt.indices, leaf.var)
                if any(depends(index, self._inside) for index in row[1]):
                    return None
                if found.setdefault(self._root(stmt.memref), row) != row:
                    return None
        return list(found.values())

    def _root(self, memref: Memref) -> str:
        return self._roots.get(memref.name, memref.name)

    def _reads_others(self, targets: Sequence[tuple[Memref, tuple[Expr, ...]]]) -> bool:
        """Whether no updated array is read in the nest."""
        written = {self._root(memref) for memref, _ in targets}
        statements = all_statements((self._loop,))
        return not any(
            self._root(part.memref if isinstance(part, Load) else part.coordinates) in written
            for stmt in statements
            for expr in _expressions(stmt)
            for part in all_expressions(expr)
            if isinstance(part, Load | Search)
        )

    def _bits(self) -> int | None:
        """The bits of the widest element in vectors; None where something has no vector form."""
        widest = 0
        for leaf in self._leaves:
            known = {leaf.var.name: leaf.var.dtype.bits}
            passes = Passes(leaf.var.name, self._units)
            for stmt in leaf.body:
                match stmt:
                    case Let(var, value):
                        bits = passes.bits(value, known)
                        known[var.name] = bits or 0
                    case Store(memref, _, value, reduce):
                        bits = passes.bits(value, known)
                        if reduce is None or not has_vectors(reduce, memref.dtype):
                            return None
                        bits = None if bits is None else max(bits, memref.dtype.bits)
                    case _:
                        return None
                if bits is None:
                    return None
                widest = max(widest, bits)
        return widest


def _expressions(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case Let():
            return (stmt.value,)
        case Store():
            return (*stmt.indices, stmt.value)
        case For():
            return stmt.lower, stmt.upper
        case If():
            return (stmt.condition,)
        case _:
            return ()


def _is_leaf(loop: For) -> bool:
    """Whether a loop updates elements, one in each array a pass, and does nothing else."""
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    return bool(stores) and all(isinstance(stmt, Store | Let) for stmt in loop.body)
