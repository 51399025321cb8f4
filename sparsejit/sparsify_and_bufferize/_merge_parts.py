"""Walks over the outermost stored levels, cut into parts that do not depend on each other.

In: sorted coordinates at ``lower .. upper - 1``, one run for each operand. Out: a loop over parts,
in each of which every run is a shorter one, and equal coordinates are in one part. The parts are
cut where the longest run is in equal pieces, by a search in the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.ir import loops
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX
from sparsejit.sparsify_and_bufferize import _index as ix

__all__ = ["Run", "in_parts"]

Stmts = tuple[loops.Stmt, ...]
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class Run:
    """Sorted coordinates, called ``name``: ``coordinate`` tells the one at a position."""

    name: str
    lower: loops.Expr
    upper: loops.Expr
    coordinate: Callable[[loops.Expr], loops.Expr]


def in_parts(
    runs: Sequence[Run],
    entries: int,
    names: Names,
    body: Callable[[tuple[tuple[loops.Expr, loops.Expr], ...]], Stmts],
    *,
    parallel: bool,
) -> Stmts:
    """Return the loop over parts of at least so many ``entries``.

    ``body`` gets the bounds of each run in one part. ``parallel`` says that parts may run at once.
    """
    begins = [names.var(f"{run.name}_begin") for run in runs]
    lengths = [names.var(f"{run.name}_length") for run in runs]
    cuts = [names.array(f"{run.name}_cuts") for run in runs]
    parts, part = names.var("parts"), names.var("part")
    after = ix.add(part, ix.index(1))
    inner = body(tuple((loops.Load(cut, (part,)), loops.Load(cut, (after,))) for cut in cuts))
    if not inner:
        return ()
    made: list[loops.Stmt] = []
    total: loops.Expr = ix.index(0)
    for run, begin, length in zip(runs, begins, lengths, strict=True):
        made += [loops.Let(begin, run.lower), loops.Let(length, ix.subtract(run.upper, begin))]
        total = ix.add(total, length)
    some = loops.Binary(BinaryOp.FLOORDIV, total, ix.index(entries), INDEX)
    made.append(loops.Let(parts, ix.minimum(ix.add(some, ix.index(1)), ix.index(_MOST_PARTS))))
    for cut, begin, length in zip(cuts, begins, lengths, strict=True):
        made += [
            loops.Alloc(cut, (ix.add(parts, ix.index(1)),)),
            loops.Store(cut, (ix.index(0),), begin),
            loops.Store(cut, (parts,), ix.add(begin, length)),
        ]
    made.append(_cutting(runs, begins, lengths, cuts, parts, names))
    made.append(loops.For(part, ix.index(0), parts, inner, parallel))
    return (*made, *map(loops.Dealloc, cuts))


def _cutting(
    runs: Sequence[Run],
    begins: Sequence[loops.Var],
    lengths: Sequence[loops.Var],
    cuts: Sequence[loops.Memref],
    parts: loops.Var,
    names: Names,
) -> loops.Stmt:
    """Return the loop that cuts every run before the coordinate at which a part begins."""
    at, key, longest = names.var("at"), names.var("key"), names.var("longest")
    most: loops.Expr = lengths[0]
    for length in lengths[1:]:
        most = ix.maximum(most, length)
    share = loops.Binary(BinaryOp.FLOORDIV, ix.multiply(longest, at), parts, INDEX)
    first, *others = zip(runs, begins, lengths, strict=True)
    chosen = first[0].coordinate(ix.add(first[1], share))
    for run, begin, length in others:
        there = run.coordinate(ix.add(begin, share))
        chosen = loops.Select(ix.equal(length, longest), there, chosen)
    body: list[loops.Stmt] = [loops.Let(longest, most), loops.Let(key, chosen)]
    for run, begin, length, cut in zip(runs, begins, lengths, cuts, strict=True):
        low = names.var("low")
        body += _search(run, low, begin, ix.add(begin, length), key, names)
        body.append(loops.Store(cut, (at,), low))
    return loops.For(at, ix.index(1), parts, tuple(body), parallel=True)


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
