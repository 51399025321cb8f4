"""Runs of equal coordinates: loops over sorted entries add to one row until its coordinate changes.

In: a loop over the entries of a level that repeats coordinates, as the first one of ``coo`` does::

    for p in lower .. upper {
      let i = crd[p]
      for j in 0 .. n { C[i, j] += vals[p] * B[crd1[p], j] }
    }

Out: which loops are such, and a loop of the same meaning that takes run by run, in which the row
``C[i, ..]`` is one for all entries, so that it stays in registers (see ``_tiles``)::

    var at = lower
    while at < upper {
      let i = crd[at]
      var end = ...  // the first entry behind, with another i
      for p in at .. end { for j in 0 .. n { C[i, j] += vals[p] * B[crd1[p], j] } }
      at = end
    }

Nothing depends on the order of entries: where equal coordinates do not follow each other, runs are
short. Every element sees the same updates in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._tiles import Tile, find_tiles, tile_of
from sparsejit.backends.llvm._vector_forms import depends
from sparsejit.ir.loop_uses import arrays_written
from sparsejit.ir.loop_walk import all_statements, blocks, map_expr
from sparsejit.ir.loop_writing import binary, compare, int_, plus
from sparsejit.ir.loops import Assign, Cast, Expr, For, Let, Load, Stmt, Store, Var, While
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX

__all__ = ["Run", "find_runs"]


@dataclass(frozen=True, slots=True)
class Run:
    """What the entries of a run share: ``coordinates`` at the loop's variable, and a ``tile``.

    ``places`` are the variables that have the value of the loop's.
    """

    coordinates: tuple[Let, ...]
    tile: Tile
    places: frozenset[str]

    def is_in(self, loop: For) -> bool:
        """Whether the loop runs over all entries, not over those of one run."""
        return self.coordinates[0] in loop.body

    def by_runs(self, loop: For) -> tuple[Stmt, ...]:
        """Return the loop, run by run."""
        at, end, last = (Var(f"%{loop.var.name}_{word}", INDEX) for word in ("at", "end", "last"))
        following = binary(BinaryOp.MIN, plus(end, int_(1)), last)
        same = [
            compare(BinaryOp.EQ, self._at(let.value, following), let.var)
            for let in self.coordinates
        ]
        goes_on = reduce(_both, same, compare(BinaryOp.LT, end, last))
        shared = tuple(replace(let, value=self._at(let.value, at)) for let in self.coordinates)
        entries = replace(loop, lower=at, upper=plus(end, int_(1)), body=self._rest(loop))
        return (
            Let(last, binary(BinaryOp.SUB, loop.upper, int_(1))),
            Let(at, loop.lower, mutable=True),
            While(
                compare(BinaryOp.LE, at, last),
                (
                    *shared,
                    Let(end, at, mutable=True),
                    While(goes_on, (Assign(end, plus(end, int_(1))),)),
                    entries,
                    Assign(at, plus(end, int_(1))),
                ),
            ),
        )

    def _at(self, value: Expr, place: Expr) -> Expr:
        """Return a coordinate at another place."""

        def moved(part: Expr) -> Expr:
            return place if isinstance(part, Var) and part.name in self.places else part

        return map_expr(value, moved)

    def _rest(self, loop: For) -> tuple[Stmt, ...]:
        return tuple(stmt for stmt in loop.body if stmt not in self.coordinates)


def find_runs(
    body: Sequence[Stmt], roots: Mapping[str, str], units: frozenset[str]
) -> dict[str, Run]:
    """Return the loops to take by runs, by the name of their variable; operands as of `find_tiles`.

    Loops that have a tile of their own, or whose inner loops have one, are none.
    """
    return dict(_runs(body, roots, units))


def _runs(
    body: Sequence[Stmt], roots: Mapping[str, str], units: frozenset[str]
) -> Iterator[tuple[str, Run]]:
    for stmt in body:
        if isinstance(stmt, For):
            if find_tiles((stmt,), roots, units):
                continue
            run = _run(stmt, roots, units)
            if run is not None:
                yield stmt.var.name, run
                continue
        for block in blocks(stmt):
            yield from _runs(block, roots, units)


def _run(loop: For, roots: Mapping[str, str], units: frozenset[str]) -> Run | None:
    stores = [stmt for stmt in all_statements(loop.body) if isinstance(stmt, Store)]
    indices = [index for stmt in stores for index in stmt.indices]
    written = {roots.get(name, name) for name in arrays_written(loop.body)}
    places = _places(loop)
    shared = tuple(
        let
        for let, memref in _coordinates(loop, places)
        if roots.get(memref, memref) not in written
        and any(depends(index, {let.var.name}) for index in indices)
    )
    plain = replace(loop, body=tuple(stmt for stmt in loop.body if stmt not in shared))
    tile = tile_of(plain, roots, units) if shared else None
    return None if tile is None else Run(shared, tile, places)


def _places(loop: For) -> frozenset[str]:
    """The variable of a loop, and those that have its value."""
    places = {loop.var.name}
    for stmt in loop.body:
        match stmt:
            case Let(var, Var(name), False) if name in places:
                places.add(var.name)
            case _:
                pass
    return frozenset(places)


def _coordinates(loop: For, places: Collection[str]) -> Iterator[tuple[Let, str]]:
    """Yield what is an element at the loop's variable, and the array that it is of."""
    for stmt in loop.body:
        match stmt:
            case Let(_, Cast(Load(memref, (Var(name),)), _), False) | Let(
                _, Load(memref, (Var(name),)), False
            ) if name in places and stmt.var.dtype is INDEX:
                yield stmt, memref.name
            case _:
                pass


def _both(lhs: Expr, rhs: Expr) -> Expr:
    return compare(BinaryOp.AND, lhs, rhs)
