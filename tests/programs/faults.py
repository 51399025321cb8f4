"""Seeded faults: wrong pieces of the compiler, one at a time, that random programs must catch.

Each names a function or method by its place, and makes the wrong one from the right one. The places
are text: nothing here imports the stage's inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from sparsejit.affine import Constant, add
from sparsejit.ir.fold import zero_of

__all__ = ["FAULTS", "Fault"]

STAGE = "sparsejit.sparsify_and_bufferize"


@dataclass(frozen=True, slots=True)
class Fault:
    """``place`` is ``module:name`` or ``module:Class.name``."""

    what: str
    place: str
    wrong: Callable[[Any], Any]

    def target(self) -> tuple[Any, str]:
        """Return the object that holds the function, and its name there."""
        module, _, path = self.place.partition(":")
        holder: Any = import_module(module)
        *classes, name = path.split(".")
        for part in classes:
            holder = getattr(holder, part)
        return holder, name


def _nothing(right: Any) -> Any:
    return lambda *args, **kwargs: ()


def _no_contents(right: Any) -> Any:
    return lambda self, like, copy, location: right(self, like, None, location)


def _drops_a_point(right: Any) -> Any:
    def lattice_of(*args: Any) -> Any:
        lattice = right(*args)
        return replace(lattice, points=lattice.points[:-1] or lattice.points)

    return lattice_of


def _sum_is_annihilated(right: Any) -> Any:
    def binary(op: Any, lhs: Any, rhs: Any) -> Any:
        for side in (lhs, rhs):
            if op.name == "ADD" and type(side).__name__ == "Missing":
                return side
        return right(op, lhs, rhs)

    return binary


def _skips_the_first(right: Any) -> Any:
    index = import_module(f"{STAGE}._index")

    def bounds(self: Any, cursor: Any) -> Any:
        first, last = right(self, cursor)
        return index.add(first, index.index(1)), last

    return bounds


def _strong_scalars(right: Any) -> Any:
    def kind(operand: Any) -> Any:
        return right(replace(operand, weak=False))

    return kind


def _no_offset(right: Any) -> Any:
    def view(op: Any, *others: Any) -> Any:
        zeros = tuple(Constant(0) for _ in op.offsets)
        return right(replace(op, offsets=zeros), *others)

    return view


def _always_elementwise(right: Any) -> Any:
    return lambda flow, read, write: read.op == write.op


def _same_order(right: Any) -> Any:
    return lambda self, order: self


def _never_flips(right: Any) -> Any:
    def updated(target: Any, total: Any, update: Any, location: Any) -> Any:
        return right(target, total, np.add if update is np.subtract else update, location)

    return updated


def _all_start_at_0(right: Any) -> Any:
    def placed(parts: Any, axis: int) -> Any:
        return [(part, tuple(Constant(0) for _ in at)) for part, at in right(parts, axis)]

    return placed


def _not_shifted(right: Any) -> Any:
    index = import_module(f"{STAGE}._index")
    return lambda axis, start: right(axis, index.index(0))


def _swapped_branches(right: Any) -> Any:
    def branches(self: Any, op: Any) -> Any:
        return right(self, replace(op, then=op.orelse, orelse=op.then))

    return branches


def _begins_late(right: Any) -> Any:
    return lambda self, op: right(self, replace(op, lower=add(op.lower, Constant(1))))


def _zero_fill(right: Any) -> Any:
    return lambda part: None if right(part) is None else zero_of(part.dtype)


FAULTS = (
    Fault("the analysis finds no conflict", f"{STAGE}._one_shot_analysis:conflicts_of", _nothing),
    Fault("copies have no contents", f"{STAGE}._copy_insertion:_Inserter._alloc", _no_contents),
    Fault("a lattice lacks its last point", f"{STAGE}._loop_nest:lattice_of", _drops_a_point),
    Fault("0 annihilates sums", "sparsejit.ir.simplify:_binary", _sum_is_annihilated),
    Fault(
        "segments lose an entry", f"{STAGE}._level_iterators:LevelIterator.bounds", _skips_the_first
    ),
    Fault("appending does not catch up", f"{STAGE}._append_sink:AppendSink._catch_up", _nothing),
    Fault("Python scalars are not weak", "sparsejit.trace._promotion:_kind", _strong_scalars),
    Fault("views start at 0", f"{STAGE}._value_buffers:view_of", _no_offset),
    Fault(
        "reads come after writes", f"{STAGE}._raw_conflicts:_is_elementwise", _always_elementwise
    ),
    Fault("aliases are not looked for", "sparsejit.api._run:copies_needed", _nothing),
    Fault("transposes do nothing", "sparsejit.trace._views:View.permuted", _same_order),
    Fault("-= adds", "sparsejit.trace._assignment:_updated", _never_flips),
    Fault("parts are put on each other", "sparsejit.trace._arranging:_in_a_row", _all_start_at_0),
    Fault("moved entries stay", f"{STAGE}._entry_moves:_shifted", _not_shifted),
    Fault("branches are swapped", f"{STAGE}._dense_bufferize:_Bufferizer._if", _swapped_branches),
    Fault("loops begin late", f"{STAGE}._dense_bufferize:_Bufferizer._for", _begins_late),
    Fault(
        "requested formats are ignored",
        "sparsejit.trace._trace:_requested",
        lambda right: lambda options, position: None,
    ),
    Fault(
        "semirings compute with what is missing",
        "sparsejit.trace._semirings:_guard",
        lambda right: lambda found: None,
    ),
    Fault(
        "missing elements do not count",
        "sparsejit.trace._counting:_with_missing",
        lambda right: lambda op, folded, fill, missing: folded,
    ),
    Fault(
        "every element is the least",
        "sparsejit.trace._arg_reductions:_matches",
        lambda right: lambda part, extreme: right(part, part),
    ),
    Fault("fill values are 0", "sparsejit.trace._emit:absent_fill", _zero_fill),
    Fault(
        "affine indices reach too far",
        "sparsejit.trace._index_extents:_span",
        lambda right: lambda *args: Constant(0),
    ),
    Fault("dense results are not filled", f"{STAGE}._sinks:DenseSink.prologue", _nothing),
    Fault(
        "sums are not widened",
        "sparsejit.trace._reductions:widened",
        lambda right: lambda dtype: dtype,
    ),
    Fault(
        "user reductions begin with 0",
        "sparsejit.trace._fold:_number",
        lambda right: lambda trace, identity: right(trace, 0),
    ),
)
