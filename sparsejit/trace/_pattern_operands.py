"""Operands and results of what reads patterns: entries that are not computed yet.

In: arrays or indexed expressions, as the user gives them. Out: their entries as expressions over
common variables; and back, from an expression with ``Nothing`` to a value of the user's kind. Such
a value is computed where ordinary arithmetic meets it: ``Nothing`` never enters an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Dim
from sparsejit.errors import Location
from sparsejit.formats import Format
from sparsejit.ir.scalar import Arg, Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Cell, Deferred, Trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._entries import MOST, entries_of, has_nothing, sparse_accesses
from sparsejit.trace._index_extents import (
    bounds_of,
    check_bounded,
    index_extents,
    remember_bounds,
    within,
)
from sparsejit.trace._indexed import Index, Indexed, IndexedTerm, as_indexed, single
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, broadcast
from sparsejit.trace._pointwise import (
    Pointwise,
    join,
    of_value,
    substituted,
    variable,
    variables_of,
)
from sparsejit.trace._result_formats import absent_fill

__all__ = [
    "LazyIndexed",
    "Patterns",
    "coordinate_names",
    "over_dimensions",
    "patterns_of",
    "tensor_of",
]

Emit = Callable[[Sequence[int], Format | None], Value]
"""Computes an indexed result over its variables in an order, in a format."""


@dataclass(slots=True)
class DeferredEntries(Deferred):
    """A result that is emitted when it is needed, with its entries for who reads just these."""

    entries: Pointwise


class LazyIndexed(Indexed):
    """An indexed result that is computed where it is used.

    ``part`` says over which indices: it is reduced over those not in ``variables``. ``entries`` is
    what it stores where nothing is reduced.
    """

    __slots__ = ("_made", "dtype", "emit", "entries", "part", "variables")

    def __init__(
        self,
        trace: Trace,
        variables: Sequence[int],
        part: Pointwise,
        emit: Emit,
        *,
        dtype: DType,
        entries: Pointwise | None = None,
    ) -> None:
        self._trace = trace
        self.origin = None
        self.variables = tuple(variables)
        self.part = part
        self.emit = emit
        self.dtype = dtype
        self.entries = entries
        self._made: IndexedTerm | None = None

    def shape(self, order: Sequence[int]) -> tuple[AffineExpr, ...]:
        """Return the extents of indices."""
        extents = _extents_of(self._trace, self.part)
        return tuple(extents[v] for v in order)

    @property
    def terms(self) -> tuple[IndexedTerm, ...]:
        """The result as the element of a tensor."""
        if self._made is None:
            value = self.emit(self.variables, None)
            at = _indexed_value(self._trace, value, self.part, self.variables)
            self._made = IndexedTerm(at)
        return (self._made,)

    @property
    def tree(self) -> Pointwise | None:
        """The same in one piece."""
        return self.terms[0].part


@dataclass(frozen=True, slots=True)
class Patterns:
    """The operands of an operation on patterns.

    ``parts`` are their entries over common variables: dimensions of arrays (``shape`` is that of
    the result), or the user's indices (``shape`` is None). ``fills`` are the values elsewhere.
    ``source`` reads all operands, also those of which no entry is left: it bounds the indices.
    """

    trace: Trace
    parts: tuple[Pointwise, ...]
    fills: tuple[Const | None, ...]
    source: Pointwise
    shape: tuple[AffineExpr, ...] | None
    location: Location | None

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables: dimensions of arrays, or indices in order of appearance."""
        if self.shape is not None:
            return tuple(range(len(self.shape)))
        return variables_of(self.source)

    def result(self, part: Pointwise) -> Any:
        """Return ``part``, which is ``Nothing`` where it has no entry, as the operands came."""
        trace, shape, location = self.trace, self.shape, self.location
        if shape is None:
            if not has_nothing(part):
                return Indexed(trace, (IndexedTerm(part),), part)
            at = over_indices(trace, part, location, self.source)
            return LazyIndexed(
                trace, self.variables, self.source, at, dtype=part.dtype, entries=part
            )
        if not has_nothing(part):
            return trace.pointwise(part, shape)

        def emit(format: Format | None) -> Value:
            return fresh(trace, Term(part), shape, dict(enumerate(shape)), format, location)

        return trace.pointwise(DeferredEntries(emit, part.dtype, part), shape)


def _extents_of(trace: Trace, part: Pointwise) -> dict[int, AffineExpr]:
    extents = index_extents(trace, bounds_of(trace, [part]), trace.index_names)
    check_bounded(trace, variables_of(part), extents)
    return extents


def _indexed_value(
    trace: Trace, value: Value, part: Pointwise, variables: Sequence[int]
) -> Pointwise:
    """Return the element, at indices, of a value that was computed from ``part`` over them."""
    extents = _extents_of(trace, part)
    known = {v: extents[v] for v in variables}
    remember_bounds(trace, value, bounds_of(trace, [part]), known)
    return of_value(value, [Dim(v) for v in variables])


def over_dimensions(
    trace: Trace, part: Pointwise, variables: Sequence[int], source: Pointwise | None = None
) -> tuple[Pointwise, dict[int, AffineExpr]]:
    """Return an expression over indices as one over dimensions 0, 1, ..., and their extents.

    ``source`` bounds the indices, where that is not the expression itself.
    """
    extents = _extents_of(trace, part if source is None else source)
    moved: dict[int, AffineExpr] = {v: Dim(n) for n, v in enumerate(variables)}
    cut = substituted(within(trace, part, extents), moved)
    return cut, {n: extents[v] for n, v in enumerate(variables)}


def over_indices(
    trace: Trace, part: Pointwise, location: Location | None, source: Pointwise | None = None
) -> Emit:
    """Return what computes an expression over indices."""

    def emit(order: Sequence[int], format: Format | None) -> Value:
        moved, extents = over_dimensions(trace, part, order, source)
        shape = [extents[n] for n in range(len(order))]
        return fresh(trace, Term(moved), shape, extents, format, location)

    return emit


def patterns_of(trace: Trace, operands: Sequence[Any]) -> Patterns:
    """Return the entries of operands: of arrays, which broadcast, or of indexed expressions.

    Raises ``TraceError`` where whole arrays are mixed with indexed expressions.
    """
    if any(isinstance(operand, Index | Indexed) for operand in operands):
        pairs = [_indexed_part(trace, operand) for operand in operands]
        return _patterns(trace, [part for part, _ in pairs], None, [read for _, read in pairs])
    arrays = [_light(trace, as_array(trace, operand)) for operand in operands]
    parts, shape = broadcast(trace, arrays)
    return _patterns(trace, parts, shape, parts)


def _patterns(
    trace: Trace,
    parts: Sequence[Pointwise],
    shape: tuple[AffineExpr, ...] | None,
    sources: Sequence[Pointwise],
) -> Patterns:
    fills = tuple(absent_fill(part) for part in parts)
    (body, *_), accesses = join(sources)
    source = Pointwise(body, accesses, sources[0].dtype)
    return Patterns(trace, tuple(map(entries_of, parts)), fills, source, shape, caller())


def _light(trace: Trace, array: Array) -> Array:
    """Return an array whose content has few sparse operands, or entries that are not computed."""
    content = array._cell.content
    if isinstance(content, DeferredEntries) and array._view is None:
        return trace.array(Cell(array.extents, content.entries, location=array._cell.location))
    if len(sparse_accesses(array.read())) > MOST:
        array.force()
    return array


def _indexed_part(trace: Trace, operand: Any) -> tuple[Pointwise, Pointwise]:
    """Return an operand and what bounds its indices."""
    indexed = as_indexed(trace, operand)
    if isinstance(indexed, LazyIndexed) and indexed.entries is not None:
        return indexed.entries, indexed.part
    part = single(trace, indexed).part
    found = part if len(sparse_accesses(part)) <= MOST else _tensor(trace, part)
    return found, found


def tensor_of(trace: Trace, operand: Any) -> Pointwise:
    """Return an indexed operand as the element of a tensor; it is computed if it is none."""
    part = single(trace, as_indexed(trace, operand)).part
    return part if part.body == Arg(0) else _tensor(trace, part)


def _tensor(trace: Trace, part: Pointwise) -> Pointwise:
    variables = variables_of(part)
    value = over_indices(trace, part, caller())(variables, None)
    return _indexed_value(trace, value, part, variables)


def coordinate_names(given: Patterns) -> Mapping[str, Pointwise]:
    """Return what the parameters of a user function are bound to: coordinates by name.

    The dimensions of whole arrays are called ``i``, ``j``, ``k``, ...
    """
    if given.shape is not None:
        return {chr(ord("i") + d): variable(Dim(d)) for d in given.variables}
    return {given.trace.index_names[v]: variable(Dim(v)) for v in given.variables}
