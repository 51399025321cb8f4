"""``reduce``: a user's reduction over stored entries, from an identity that enters once.

In: an array and axes, or an indexed expression and indices. Out: the same kind. A function that is
one associative operation of the IR reduces in any order; every other one in the order of the loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr
from sparsejit.errors import Location, TraceError
from sparsejit.formats import Dense, Format
from sparsejit.ir.fold import identity_const, zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Cast, Const, ScalarExpr
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._context import Deferred, Trace, require_trace
from sparsejit.trace._emit import Term, accumulate, fill_with, fold_into, requested
from sparsejit.trace._entries import nothing_of, over_entries
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pattern_operands import (
    LazyIndexed,
    Patterns,
    coordinate_names,
    over_dimensions,
    patterns_of,
)
from sparsejit.trace._pointwise import Pointwise, of_value, substituted
from sparsejit.trace._promotion import converted, result_dtype
from sparsejit.trace._reduce import over_variables
from sparsejit.trace._reductions import Axes, checked_axes
from sparsejit.trace._result_formats import entries_layout
from sparsejit.trace._user_functions import read_function

__all__ = ["Fold", "fold_fresh", "reduce", "scalar_value"]


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction of entries: ``part`` is ``Nothing`` where nothing contributes.

    The result starts from ``identity``, which is also what it does not store. With an operation
    ``op`` the elements of ``part`` are combined by it; without, ``part`` is the next element and
    reads the last one as the value of ``out``.
    """

    part: Pointwise
    identity: Const
    op: BinaryOp | None = None
    out: Value | None = None

    def over(self, part: Pointwise) -> Fold:
        """Return the same reduction of ``part``."""
        return replace(self, part=part)


def fold_fresh(
    trace: Trace,
    fold: Fold,
    reduced: Sequence[int],
    shape: Sequence[AffineExpr],
    extents: Mapping[int, AffineExpr],
    format: Format | None,
    location: Location | None,
) -> Value:
    """Compute a reduction over the variables ``reduced`` into a new tensor of ``shape``."""
    rank, dtype = len(shape), fold.identity.dtype
    if format is None:
        format = entries_layout(fold.part, range(rank), fold.identity, reduces=True).format
    else:
        format = requested(format, rank, location)
    fill = zero_of(dtype) if format.is_dense else fold.identity
    dest = trace.empty(TensorType(tuple(shape), dtype, format, fill), location)
    at = of_value(dest).accesses[0].index
    if format.is_dense:
        dest = fill_with(trace, fold.identity, extents, dest, at, location)
    if fold.op is not None:
        term = Term(fold.part, tuple(reduced), fold.op)
        return accumulate(trace, term, extents, dest, at, location)
    assert fold.out is not None
    return fold_into(trace, fold.part, reduced, fold.out, extents, dest, location)


def reduce(
    f: Any,
    x: Any,
    identity: Any = None,
    *,
    over: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """Reduce the entries of ``x`` by ``f(result, element)``, starting from ``identity``.

    ``f`` is a plain Python function of two scalars; ``identity``, a static number, enters once per
    result and may be left out where ``f`` is one operation that has one (``min``, ``operator.add``,
    ...). Arrays are reduced over ``axis``, indexed expressions ``over`` indices. A result without
    entries is not stored; the fill value is the identity. A function that is no associative
    operation is applied in the order in which entries are stored. Raises ``TraceError`` without
    identity, and for a function that can neither be read nor compiled by Numba.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def smallest(A):
    ...     return sj.reduce(min, A, axis=1)
    """
    trace = require_trace("reduce")
    given = patterns_of(trace, (x,))
    fold = _fold_of(given, f, identity)
    if given.shape is None:
        if axis is not None or keepdims:
            raise TraceError(
                "an indexed expression is reduced over indices, not axes",
                hint="write sj.reduce(f, expr, over=j)",
                location=caller(),
            )
        return _over_indices(given, fold, over)
    if over is not None:
        raise TraceError(
            "reduce over indices needs an indexed expression, not a whole array",
            hint="index it, as in A[i, j], or use axis=",
            location=caller(),
        )
    return fold_axes(trace, fold, given.shape, checked_axes(axis, len(given.shape)), keepdims)


def fold_axes(
    trace: Trace, fold: Fold, shape: Sequence[AffineExpr], axes: Sequence[int], keepdims: bool
) -> Any:
    """Return a reduction over axes of an array, computed when it is needed."""
    plan, location = Axes.of(shape, axes, keepdims), caller()
    moved = fold.over(substituted(fold.part, plan.moved))

    def emit(format: Format | None) -> Value:
        return fold_fresh(trace, moved, plan.reduced, plan.shape, plan.extents, format, location)

    return trace.pointwise(Deferred(emit, fold.identity.dtype), plan.shape)


def _over_indices(given: Patterns, fold: Fold, over: Any) -> Any:
    if over is None:
        raise TraceError(
            "reduce of an indexed expression needs the indices to reduce",
            hint="write sj.reduce(f, expr, over=j)",
            location=caller(),
        )
    trace, location = given.trace, caller()
    numbers = over_variables(over)
    for number in numbers:
        if number not in given.variables:
            name = trace.index_names[number]
            raise TraceError(
                f"reduce over an index that the expression does not have: {name}",
                location=location,
            )
    free = tuple(v for v in given.variables if v not in numbers)

    def emit(order: Sequence[int], format: Format | None) -> Value:
        moved, extents = over_dimensions(trace, fold.part, (*order, *numbers), given.source)
        rank = len(order)
        reduced = range(rank, rank + len(numbers))
        shape = [extents[n] for n in range(rank)]
        return fold_fresh(trace, fold.over(moved), reduced, shape, extents, format, location)

    if free:
        return LazyIndexed(trace, free, given.source, emit, dtype=fold.identity.dtype)
    return trace.pointwise(Deferred(lambda format: emit((), format), fold.identity.dtype), ())


# ---------------------------------------------------------------- the user's function


def _fold_of(given: Patterns, f: Any, identity: Any) -> Fold:
    """Return the reduction that ``f`` is."""
    trace, (part,) = given.trace, given.parts
    start = None if identity is None else _number(trace, identity)
    dtype = result_dtype([replace(part, weak=False), *([start] if start is not None else [])])
    out, element = (scalar_value(trace, kind) for kind in (dtype, part.dtype))
    names = coordinate_names(given)
    whole = read_function(trace, "reduce", f, [of_value(out), of_value(element)], names)
    if whole is None:
        raise TraceError("the function of reduce gives None", location=caller())
    op = _operation(whole, out, element) if whole.dtype is dtype else None
    const = None if start is None else converted(start, dtype).const
    if const is None and op is not None:
        const = identity_const(op, dtype)
    if const is None:
        raise TraceError(
            "reduce needs the value to start from",
            hint="give a number known while tracing: identity=0",
            location=caller(),
        )
    nothing = nothing_of(dtype)

    def typed(found: Pointwise | None) -> Pointwise:
        if found is None:
            return nothing
        return over_entries(found, lambda entry: converted(entry, dtype), nothing)

    if op is not None:
        return Fold(over_entries(part, typed, nothing), const, op)

    def combined(entry: Pointwise) -> Pointwise:
        return typed(read_function(trace, "reduce", f, [of_value(out), entry], names))

    return Fold(over_entries(part, combined, nothing), const, None, out)


def _number(trace: Trace, identity: Any) -> Pointwise:
    if not isinstance(identity, bool | int | float | complex | np.generic):
        raise TraceError(
            f"identity is a number known while tracing, not {type(identity).__name__}",
            location=caller(),
        )
    return as_array(trace, identity).read()


def scalar_value(trace: Trace, dtype: DType) -> Value:
    """Return a value that stands for an element while a function is read."""
    return trace.value(TensorType((), dtype, Dense(0), zero_of(dtype)))


def _operation(whole: Pointwise, out: Value, element: Value) -> BinaryOp | None:
    """Return the operation that combines ``out`` and ``element``, if it is a single one."""

    def value_of(body: ScalarExpr) -> Value | None:
        match body:
            case Arg(index):
                return whole.accesses[index].value
            case Cast(Arg(index), _):
                value = whole.accesses[index].value
                return value if value == element else None
            case _:
                return None

    match whole.body:
        case Binary(op, lhs, rhs) if op.info.associative and op.info.commutative:
            return op if {value_of(lhs), value_of(rhs)} == {out, element} else None
        case _:
            return None
