"""``update``: what an element is combined with, by an operation that Python has no operator for.

In: an element ``y[i]``, the name of an operation, and an expression. Out: the array has a new
content. The expression is reduced, by the same operation, over the indices that the element lacks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsejit.affine import Dim, dims_of
from sparsejit.errors import TensorValueError, TraceError
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Trace, Unassigned, require_trace
from sparsejit.trace._indexed import Index, Indexed, as_indexed, single
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import variables_of
from sparsejit.trace._reduce import reduction
from sparsejit.trace._statements import assign_indexed

__all__ = ["update"]

_OPERATIONS: dict[str, tuple[np.ufunc, str]] = {
    **dict.fromkeys(("add", "sum"), (np.add, "sum")),
    **dict.fromkeys(("mul", "prod"), (np.multiply, "prod")),
    "min": (np.minimum, "min"),
    "max": (np.maximum, "max"),
    **dict.fromkeys(("or", "any"), (np.logical_or, "any")),
    **dict.fromkeys(("and", "all"), (np.logical_and, "all")),
}


def update(target: Any, op: str, value: Any) -> None:
    """``target = target op value`` in place, for the operations of reductions.

    ``target`` is an element ``y[i]`` of index notation, or an array or a part of one; ``op`` is
    ``"min"``, ``"max"``, ``"add"``, ``"mul"``, ``"or"`` or ``"and"`` (or ``"sum"``, ``"prod"``,
    ``"any"``, ``"all"``). ``value`` is reduced by the same operation over the indices that the
    target lacks. Raises ``TensorValueError`` for another operation, ``TraceError`` for a target
    that is no element and for an output without content.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def relaxed(distance, A):
    ...     i, j = sj.indices("i j")
    ...     sj.update(distance[j], "min", distance[i] + A[i, j])
    >>> distance = np.array([0.0, np.inf])
    >>> relaxed(distance, np.array([[0.0, 3.0], [1.0, 0.0]]))
    >>> distance
    array([0., 3.])
    """
    trace, location = require_trace("update"), caller()
    if op not in _OPERATIONS:
        raise TensorValueError(
            f"op={op!r} is none of {', '.join(map(repr, _OPERATIONS))}", location=location
        )
    ufunc, name = _OPERATIONS[op]
    match _element(target):
        case (array, key):
            if isinstance(array._cell.content, Unassigned):
                raise TraceError(
                    "an output is updated before it is assigned",
                    hint="assign to it first, as in M[i] = ...",
                    location=location,
                )
            assign_indexed(trace, array, key, _reduced(trace, name, key, value), ufunc)
        case _ if isinstance(target, Array):
            assign_value(trace, target, as_array(trace, value), ufunc, location)
        case _:
            raise TraceError(
                "update takes an element such as y[i], or an array",
                hint='write sj.update(y[i], "min", ...)',
                location=location,
            )


def _element(target: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the array and the subscript of an element, None for anything else."""
    if isinstance(target, Indexed) and target.origin is not None:
        return target.origin
    if isinstance(target, Array) and target._cell.immutable and target._inplace is not None:
        return target._inplace[0], target._inplace[1]
    return None


def _reduced(trace: Trace, name: str, key: tuple[Any, ...], value: Any) -> Any:
    """Return a value reduced over the indices that a left side lacks."""
    if not isinstance(value, Index | Indexed):
        return value
    kept = {v for item in key if isinstance(item, Index) for v in dims_of(item.expr)}
    found = variables_of(single(trace, as_indexed(trace, value)).part)
    over = tuple(Index(trace, Dim(v)) for v in found if v not in kept)
    return reduction(name, value, None, over, False, None) if over else value
