"""``argmin`` and ``argmax``: where the first extreme element is.

In: an array and an axis, or an indexed expression and indices. Out: int64 positions. The extreme
comes from a plain reduction; its place is the smaller of two: the first entry that equals it, and,
where the fill value equals it, the first coordinate that is not stored. No coordinate is visited
for what it does not store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Dim, as_linear, dims_of, mul
from sparsejit.errors import Location, TensorTypeError, TraceError, UnsupportedError
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import constant, integer_limits
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import INDEX
from sparsejit.trace._context import Deferred, Trace, require_trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._entries import (
    MOST,
    entries_of,
    has_nothing,
    nothing_of,
    over_entries,
    sparse_accesses,
    stored_at,
)
from sparsejit.trace._fold import Fold, fold_fresh, scalar_value
from sparsejit.trace._functions import METHODS
from sparsejit.trace._indexed import Index, Indexed
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pattern_operands import LazyIndexed, over_dimensions, tensor_of
from sparsejit.trace._pointwise import (
    Access,
    Pointwise,
    binary,
    cast,
    constant_of,
    of_value,
    pruned,
    select,
    substituted,
    variable,
    variables_of,
)
from sparsejit.trace._reduce import over_variables
from sparsejit.trace._reductions import Axes, check_not_empty, checked_axes
from sparsejit.trace._result_formats import absent_fill
from sparsejit.trace._symbolic import extent_value
from sparsejit.trace._ufuncs import apply

__all__ = ["argmax", "argmin"]

_NOWHERE = integer_limits(INDEX)[1]
"""The position of what is not there: larger than all others."""


def argmin(a: Any, axis: Any = None, *, over: Any = None, keepdims: bool = False) -> Any:
    """The position of the first smallest element: ``np.argmin``; unstored elements count.

    ``axis`` is one axis, or None for positions in the flattened array; an indexed expression is
    reduced ``over`` an index (or several, flattened in their order). int64; nan is the smallest.
    Raises ``TensorTypeError`` (also a ``ValueError``) for the position in nothing.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def nearest(D):
    ...     return sj.argmin(D, axis=1)
    """
    return _arg("argmin", BinaryOp.MIN, a, axis, over, keepdims)


def argmax(a: Any, axis: Any = None, *, over: Any = None, keepdims: bool = False) -> Any:
    """The position of the first largest element: ``np.argmax``; see ``argmin``.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def labels(scores):
    ...     return sj.argmax(scores, axis=1)
    """
    return _arg("argmax", BinaryOp.MAX, a, axis, over, keepdims)


def _arg(name: str, op: BinaryOp, a: Any, axis: Any, over: Any, keepdims: bool) -> Any:
    trace, location = require_trace(name), caller()
    if isinstance(a, Index | Indexed):
        if over is None or axis is not None:
            raise TraceError(
                f"{name} of an indexed expression needs the index to reduce",
                hint=f"write sj.{name}(expr, over=j)",
                location=location,
            )
        return _over_indices(trace, name, op, tensor_of(trace, a), over_variables(over), location)
    if over is not None:
        raise TraceError(
            f"{name} over indices needs an indexed expression, not a whole array",
            hint="index it, as in A[i, j], or use axis=",
            location=location,
        )
    array = as_array(trace, a)
    if isinstance(axis, tuple | list):
        raise TensorTypeError(f"{name} takes one axis, or None for all", location=location)
    shape = array.extents
    axes = checked_axes(axis, len(shape))
    if not axes:
        return trace.pointwise(constant_of(0, INDEX), shape)
    check_not_empty(trace, [shape[d] for d in axes], f"attempt to get {name} of an empty sequence")
    array.force()
    plan = Axes.of(shape, axes, keepdims)
    part = substituted(array.read(), plan.moved)

    def emit(format: Format | None) -> Value:
        task = _Task(trace, op, plan.rank, plan.extents, location)
        return task.value(part, plan.reduced, format)

    return trace.pointwise(Deferred(emit, INDEX), plan.shape)


def _over_indices(
    trace: Trace,
    name: str,
    op: BinaryOp,
    part: Pointwise,
    over: Sequence[int],
    location: Location | None,
) -> Any:
    variables = variables_of(part)
    for number in over:
        if number not in variables:
            raise TraceError(
                f"{name} over an index that the expression does not have: "
                f"{trace.index_names[number]}",
                location=location,
            )
    free = tuple(v for v in variables if v not in over)
    _, sizes = over_dimensions(trace, part, over)
    message = f"attempt to get {name} of an empty sequence"
    check_not_empty(trace, [sizes[n] for n in range(len(over))], message)

    def emit(order: Sequence[int], format: Format | None) -> Value:
        moved, extents = over_dimensions(trace, part, (*order, *over))
        task = _Task(trace, op, len(order), extents, location)
        return task.value(moved, range(len(order), len(order) + len(over)), format)

    if free:
        return LazyIndexed(trace, free, part, emit, dtype=INDEX)
    return trace.pointwise(Deferred(lambda format: emit((), format), INDEX), ())


@dataclass(frozen=True, slots=True)
class _Task:
    """One search; variables 0 to ``rank`` - 1 are the dimensions of the result."""

    trace: Trace
    op: BinaryOp
    rank: int
    extents: Mapping[int, AffineExpr]
    location: Location | None

    def value(self, part: Pointwise, reduced: Sequence[int], format: Format | None) -> Value:
        """Return the positions, linear over ``reduced``."""
        part = pruned(part)
        extreme = of_value(self._fresh(Term(part, tuple(reduced), self.op), self.rank))
        fill = absent_fill(part)
        entries = entries_of(part)
        if fill is None or not has_nothing(entries) or len(sparse_accesses(part)) > MOST:
            found = self._first(_matches(part, extreme), reduced)
            return self._fresh(Term(found, tuple(reduced), BinaryOp.MIN), self.rank, format)

        def at(entry: Pointwise) -> Pointwise:
            return self._first(_matches(entry, extreme), reduced)

        stored = self._smallest(over_entries(entries, at, nothing_of(INDEX)), reduced, self.rank)
        missing = self._first_missing(entries, reduced, self.rank)
        is_extreme = _matches(Pointwise(fill, (), part.dtype), extreme)
        candidate = select(is_extreme, missing, constant_of(_NOWHERE, INDEX))
        found = binary(BinaryOp.MIN, stored, candidate)
        if sparse_accesses(stored):  # where nothing is stored, the first element is the extreme
            found = select(stored_at(stored, 0), found, constant_of(0, INDEX))
        return self._fresh(Term(found), self.rank, format)

    # ------------------------------------------------------------ parts of it

    def _fresh(self, term: Term, rank: int, format: Format | None = None) -> Value:
        shape = [self.extents[d] for d in range(rank)]
        return fresh(self.trace, term, shape, self.extents, format, self.location)

    def _fold(
        self, fold: Fold, reduced: Sequence[int], rank: int, format: Format | None = None
    ) -> Pointwise:
        shape = [self.extents[d] for d in range(rank)]
        return of_value(
            fold_fresh(self.trace, fold, reduced, shape, self.extents, format, self.location)
        )

    def _smallest(self, entries: Pointwise, reduced: Sequence[int], rank: int) -> Pointwise:
        nowhere = constant(_NOWHERE, INDEX)
        return self._fold(Fold(entries, nowhere, BinaryOp.MIN), reduced, rank)

    def _extent(self, number: int) -> Pointwise:
        return cast(extent_value(self.trace, self.extents[number]), INDEX)

    def _linear(self, reduced: Sequence[int]) -> Pointwise:
        """Return the position of an element among those that are reduced."""
        if len(reduced) > 1:
            count = reduce(mul, (self.extents[number] for number in reduced))
            self.trace.extents.check_fits(count, "a number of elements", self.location)

        def step(position: Pointwise, number: int) -> Pointwise:
            scaled = binary(BinaryOp.MUL, position, self._extent(number))
            return binary(BinaryOp.ADD, scaled, variable(Dim(number)))

        return reduce(step, reduced[1:], variable(Dim(reduced[0])))

    def _first(self, condition: Pointwise, reduced: Sequence[int]) -> Pointwise:
        return select(condition, self._linear(reduced), constant_of(_NOWHERE, INDEX))

    def _first_missing(self, entries: Pointwise, reduced: Sequence[int], rank: int) -> Pointwise:
        """Return the first position that stores no entry; not less than all where there is none.

        Along the last of ``reduced`` the entries come in order: the first coordinate that differs
        from the number of those before it is missing. The others are searched in the results.
        """
        *others, last = reduced
        if not all(_ascends(entries.accesses[k], last) for k in sparse_accesses(entries)):
            nowhere = constant_of(_NOWHERE, INDEX)
            found = over_entries(entries, lambda entry: nowhere, self._linear(reduced))
            return of_value(self._fresh(Term(found, tuple(reduced), BinaryOp.MIN), rank))
        out = scalar_value(self.trace, INDEX)
        count, zero = of_value(out), constant(0, INDEX)
        follows = binary(BinaryOp.EQ, count, variable(Dim(last)))
        step = select(follows, binary(BinaryOp.ADD, count, constant_of(1, INDEX)), count)
        walk = Fold(over_entries(entries, lambda entry: step, nothing_of(INDEX)), zero, None, out)
        inner = rank + len(others)
        innermost = all(_is_innermost(entries.accesses[k], last) for k in sparse_accesses(entries))
        format = None if innermost else Dense(inner)
        counts = self._fold(walk, (last,), inner, format)
        return self._among(counts, others, last, rank) if others else counts

    def _among(self, counts: Pointwise, others: Sequence[int], last: int, rank: int) -> Pointwise:
        """Return the first missing position from the first missing ones of each fiber."""
        extent = self._extent(last)
        is_short = binary(BinaryOp.LT, counts, extent)
        start = binary(BinaryOp.MUL, self._linear(others), extent)
        position = binary(BinaryOp.ADD, start, counts)
        found = select(is_short, position, constant_of(_NOWHERE, INDEX))
        if not sparse_accesses(counts):
            return of_value(self._fresh(Term(found, tuple(others), BinaryOp.MIN), rank))
        entries = entries_of(counts)
        short = over_entries(entries, lambda entry: found, nothing_of(INDEX))
        stored = self._smallest(short, others, rank)
        # Where no fiber is missing its number may be the largest there is, times which nothing is.
        fibers = reduce(partial(binary, BinaryOp.MUL), map(self._extent, others))
        fiber = binary(BinaryOp.MIN, self._first_missing(entries, others, rank), fibers)
        return binary(BinaryOp.MIN, stored, binary(BinaryOp.MUL, fiber, extent))


def _matches(part: Pointwise, extreme: Pointwise) -> Pointwise:
    """Return whether an element is the extreme; nan is, wherever there is one."""
    same = binary(BinaryOp.EQ, part, extreme)
    if not (part.dtype.is_float or part.dtype.is_complex):
        return same
    return binary(BinaryOp.OR, same, apply(np.isnan, (part,)))


def _ascends(access: Access, number: int) -> bool:
    """Whether the entries of an operand come in the order of a variable, all others being fixed."""
    levels = access.value.type.format.levels
    if any(level.type.nonordered or len(dims_of(level.expr)) > 1 for level in levels):
        return False
    for index in access.index:
        linear = as_linear(index)
        if number in dims_of(index) and (linear is None or len(linear[0]) > 1):
            return False
        if linear is not None and linear[0].get(number, 1) < 0:
            return False
    return True


def _is_innermost(access: Access, number: int) -> bool:
    """Whether the last level of an operand is that of a variable."""
    last = access.value.type.format.levels[-1]
    return isinstance(last.expr, Dim) and number in dims_of(access.index[last.expr.index])


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a search with the arguments of NumPy's function and method."""

    def called(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if out is not None:
            raise UnsupportedError(f"{function.__name__} with out= is not built", location=caller())
        return function(a, axis, keepdims=bool(keepdims))

    called.__name__ = function.__name__
    return called


METHODS.update({"argmax": _numpy(argmax), "argmin": _numpy(argmin)})
