"""Walks over the outermost stored levels, cut into parts that do not depend on each other.

In: sorted coordinates at ``lower .. upper - 1``, one run for each operand. Out: a loop over parts,
in each of which every run is a shorter one, and equal coordinates are in one part. The parts have
about as many stored entries each: a cut is first tried at a coordinate of the longest run, and
moved by halves until what all runs have before it is about its share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.ir import loops
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.sparsify_and_bufferize import _index as ix

__all__ = ["Run", "in_parts"]

Stmts = tuple[loops.Stmt, ...]
_MOST_PARTS = 64
_SLACK = 8
"""A cut may be off by one so many-th of a part."""


@dataclass(frozen=True, slots=True)
class Run:
    """Sorted coordinates, called ``name``: ``coordinate`` tells the one at a position.

    ``entries`` tells how many entries are stored before a position.
    """

    name: str
    lower: loops.Expr
    upper: loops.Expr
    coordinate: Callable[[loops.Expr], loops.Expr]
    entries: Callable[[loops.Expr], loops.Expr]


def in_parts(
    runs: Sequence[Run],
    bounds: tuple[loops.Expr, loops.Expr],
    entries: int,
    names: Names,
    body: Callable[[tuple[tuple[loops.Expr, loops.Expr], ...]], Stmts],
    *,
    parallel: bool,
) -> Stmts:
    """Return the loop over parts of at least so many ``entries``.

    ``bounds`` are those of the coordinates at which to cut. ``body`` gets the bounds of each run in
    one part. ``parallel`` says that parts may run at once.
    """
    cuts = _Cuts(runs, bounds, entries, names)
    part = names.var("part")
    after = ix.add(part, ix.index(1))
    inner = body(tuple((loops.Load(c, (part,)), loops.Load(c, (after,))) for c in cuts.places))
    if not inner:
        return ()
    loop = loops.For(part, ix.index(0), cuts.parts, inner, parallel)
    return (*cuts.statements(), loop, *map(loops.Dealloc, cuts.places))


class _Cuts:
    """Where each run is cut: the array ``places`` has the begin of every part, and the last end."""

    def __init__(
        self,
        runs: Sequence[Run],
        bounds: tuple[loops.Expr, loops.Expr],
        entries: int,
        names: Names,
    ) -> None:
        self._runs = runs
        self._bounds = bounds
        self._entries = entries
        self._names = names
        self._begins = [names.var(f"{run.name}_begin") for run in runs]
        self._ends = [names.var(f"{run.name}_last") for run in runs]
        self._total = names.var("total")
        self.parts = names.var("parts")
        self.places = [names.array(f"{run.name}_cuts") for run in runs]

    def statements(self) -> Stmts:
        """Return what makes the cuts."""
        made: list[loops.Stmt] = []
        for run, begin, end in zip(self._runs, self._begins, self._ends, strict=True):
            made += [loops.Let(begin, run.lower), loops.Let(end, run.upper)]
        some = _floordiv(self._total, ix.index(self._entries))
        parts = ix.minimum(ix.add(some, ix.index(1)), ix.index(_MOST_PARTS))
        made += [loops.Let(self._total, self._before(self._ends)), loops.Let(self.parts, parts)]
        for cut, begin, end in zip(self.places, self._begins, self._ends, strict=True):
            made += [
                loops.Alloc(cut, (ix.add(self.parts, ix.index(1)),)),
                loops.Store(cut, (ix.index(0),), begin),
                loops.Store(cut, (self.parts,), end),
            ]
        return (*made, self._cutting())

    def _before(self, places: Sequence[loops.Expr]) -> loops.Expr:
        """How many entries all runs have before these places."""
        total: loops.Expr = ix.index(0)
        for run, begin, place in zip(self._runs, self._begins, places, strict=True):
            total = ix.add(total, ix.subtract(run.entries(place), run.entries(begin)))
        return total

    def _cutting(self) -> loops.Stmt:
        """Return the loop that cuts every run before the coordinate at which a part begins."""
        names = self._names
        at, share, slack, before = (names.var(n) for n in ("at", "share", "slack", "before"))
        key, least, most = names.var("key"), names.var("least"), names.var("most")
        is_open = names.var("is_open", DType.BOOL)
        lows = [names.var("low") for _ in self._runs]
        body: list[loops.Stmt] = []
        for run, low, begin, end in zip(self._runs, lows, self._begins, self._ends, strict=True):
            body += _search(run, low, begin, end, key, names)
        body += [loops.Store(cut, (at,), low) for cut, low in zip(self.places, lows, strict=True)]
        few = ix.less(ix.add(before, slack), share)
        many = ix.less(ix.add(share, slack), before)
        is_off = ix.compare(BinaryOp.OR, few, many)
        half = _floordiv(ix.subtract(most, least), ix.index(2))
        body += [
            loops.Let(before, self._before(lows)),
            loops.Assign(is_open, ix.all_of((ix.less(least, most), is_off))),
            loops.If(
                ix.less(before, share),
                (loops.Assign(least, ix.minimum(ix.add(key, ix.index(1)), most)),),
                (loops.Assign(most, key),),
            ),
            loops.Assign(key, ix.add(least, half)),
        ]
        lower, upper = self._bounds
        opened = (
            loops.Let(share, _floordiv(ix.multiply(self._total, at), self.parts)),
            loops.Let(slack, _floordiv(self._total, ix.multiply(self.parts, ix.index(_SLACK)))),
            loops.Let(least, lower, mutable=True),
            loops.Let(most, upper, mutable=True),
            loops.Let(key, ix.minimum(ix.maximum(self._guess(at), least), most), mutable=True),
            loops.Let(is_open, ix.true(), mutable=True),
        )
        tried = loops.While(is_open, tuple(body))
        return loops.For(at, ix.index(1), self.parts, (*opened, tried), parallel=True)

    def _guess(self, at: loops.Var) -> loops.Expr:
        """A coordinate of the longest run, where it is in equal pieces."""
        lengths = [ix.subtract(e, b) for b, e in zip(self._begins, self._ends, strict=True)]
        longest: loops.Expr = lengths[0]
        for length in lengths[1:]:
            longest = ix.maximum(longest, length)
        share = _floordiv(ix.multiply(longest, at), self.parts)
        first, *others = zip(self._runs, self._begins, lengths, strict=True)
        chosen = first[0].coordinate(ix.add(first[1], share))
        for run, begin, length in others:
            there = run.coordinate(ix.add(begin, share))
            chosen = loops.Select(ix.equal(length, longest), there, chosen)
        return chosen


def _floordiv(lhs: loops.Expr, rhs: loops.Expr) -> loops.Expr:
    return loops.Binary(BinaryOp.FLOORDIV, lhs, rhs, INDEX)


def _search(
    run: Run, low: loops.Var, begin: loops.Expr, end: loops.Expr, key: loops.Expr, names: Names
) -> Stmts:
    """Return what sets ``low`` to the first position with a coordinate not less than ``key``."""
    high, middle = names.var("high"), names.var("middle")
    half = loops.Binary(BinaryOp.FLOORDIV, ix.add(low, high), ix.index(2), INDEX)
    body = (
        loops.Let(middle, half),
        loops.If(
            ix.less(run.coordinate(middle), key),
            (loops.Assign(low, ix.add(middle, ix.index(1))),),
            (loops.Assign(high, middle),),
        ),
    )
    return (
        loops.Let(low, begin, mutable=True),
        loops.Let(high, end, mutable=True),
        loops.While(ix.less(low, high), body),
    )
