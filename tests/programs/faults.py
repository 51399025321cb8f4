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

from sparsejit.affine import Constant

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
    Fault("views start at 0", f"{STAGE}._dense_bufferize:view_of", _no_offset),
    Fault(
        "reads come after writes", f"{STAGE}._raw_conflicts:_is_elementwise", _always_elementwise
    ),
    Fault("aliases are not looked for", "sparsejit.api._run:copies_needed", _nothing),
    Fault("transposes do nothing", "sparsejit.trace._views:View.permuted", _same_order),
    Fault("-= adds", "sparsejit.trace._assignment:_updated", _never_flips),
)
