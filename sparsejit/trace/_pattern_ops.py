"""MLIR's semi-ring operations ``unary``, ``binary`` and ``select``: functions of what is stored.

In: arrays or indexed expressions, and plain Python functions of scalars. Out: the same kind. The
result stores an entry where a function gave a value, and nothing where it gave None or was None. It
is computed where it is used, so a ``binary`` inside a ``reduce`` makes no tensor of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparsejit.errors import TraceError
from sparsejit.ir.scalar import Const
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._entries import has_nothing, nothing_of, over_entries
from sparsejit.trace._fold import scalar_value
from sparsejit.trace._locations import caller
from sparsejit.trace._pattern_operands import Patterns, coordinate_names, patterns_of
from sparsejit.trace._pointwise import Pointwise, of_value
from sparsejit.trace._pointwise import select as chosen
from sparsejit.trace._promotion import converted, result_dtype
from sparsejit.trace._ufuncs import as_bool
from sparsejit.trace._user_functions import read_function

__all__ = ["binary", "select", "unary"]

Leaf = Callable[[str, Sequence[Pointwise]], Pointwise]
"""Gives the value of a region (``present``, ``left``, ...) for the elements there."""
Build = Callable[[Leaf, Pointwise], Pointwise]
"""Puts the values of the regions together; what is nothing is given."""


def unary(x: Any, present: Any = None, absent: Any = None) -> Any:
    """``present`` of the entries of ``x``, ``absent`` where it stores none.

    Each is a plain Python function of scalars, ``"identity"``, or None for "nothing there".
    ``present`` takes the element; further parameters of both are bound by name to indices (``i``,
    ``j``, ``k``, ... are the dimensions of a whole array) and are coordinates. A function may
    return None, too. The dtype is the common one of what the functions give. Where ``absent`` gives
    values, entries are stored there. A function that cannot be read into expressions is compiled
    by Numba, gives what Numba infers, and runs on the CPU only; an exception in it is a
    ``BackendError`` of the call. Raises ``TraceError`` for a function that Numba does not compile
    either, and for a parameter that names no index.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def clipped(A):
    ...     return sj.unary(A, present=lambda a: min(7.0, max(3.0, a)))
    """
    trace = require_trace("unary")
    given = patterns_of(trace, (x,))
    (part,) = given.parts

    def build(leaf: Leaf, nothing: Pointwise) -> Pointwise:
        missing = leaf("absent", []) if has_nothing(part) else nothing
        return over_entries(part, lambda a: leaf("present", [a]), missing)

    element = _sample(given, 0)
    absent = _with_fill(absent, given.fills[0])
    regions = {"present": (present, [element]), "absent": (absent, [])}
    return _result(given, build, regions)


def binary(x: Any, y: Any, overlap: Any = None, left: Any = None, right: Any = None) -> Any:
    """``overlap`` where both store an entry, ``left`` where only ``x`` does, ``right`` where ``y``.

    Each is a plain Python function of scalars (``overlap`` of two), ``"identity"`` (for ``left``
    and ``right``), or None for "nothing there". Dense operands store everything. See ``unary``.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def difference(A, B):
    ...     return sj.binary(A, B, left="identity")
    """
    trace = require_trace("binary")
    given = patterns_of(trace, (x, y))
    first, second = given.parts
    if overlap == "identity":
        raise TraceError("overlap= is a function of two values or None", location=caller())

    def build(leaf: Leaf, nothing: Pointwise) -> Pointwise:
        def with_first(a: Pointwise) -> Pointwise:
            alone = leaf("left", [a]) if has_nothing(second) else nothing
            return over_entries(second, lambda b: leaf("overlap", [a, b]), alone)

        without = nothing
        if has_nothing(first):
            without = over_entries(second, lambda b: leaf("right", [b]), nothing)
        return over_entries(first, with_first, without)

    a, b = _sample(given, 0), _sample(given, 1)
    regions = {"overlap": (overlap, [a, b]), "left": (left, [a]), "right": (right, [b])}
    return _result(given, build, regions)


def select(x: Any, keep: Any) -> Any:
    """The entries of ``x`` for which ``keep`` holds; the others are not stored.

    ``keep`` is a plain Python function of the element, with coordinates by name. See ``unary``.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def upper(A):
    ...     return sj.select(A, lambda a, i, j: j >= i)
    """
    trace = require_trace("select")
    given = patterns_of(trace, (x,))
    (part,) = given.parts
    nothing = nothing_of(part.dtype)

    def kept(entry: Pointwise) -> Pointwise:
        condition = read_function(trace, "keep", keep, [entry], coordinate_names(given))
        if condition is None:
            raise TraceError("keep= gives None for an entry", location=caller())
        sides = replace(entry, weak=False), nothing
        return chosen(as_bool(condition), *sides)

    return given.result(over_entries(part, kept, nothing))


def _with_fill(absent: Any, fill: Const | None) -> Any:
    """Return ``absent``; ``"identity"`` is the element that reads there, the fill value."""
    return fill if isinstance(absent, str) and absent == "identity" else absent


def _sample(given: Patterns, operand: int) -> Pointwise:
    """Return what stands for an element of an operand, to know what functions of it give."""
    part = given.parts[operand]
    return replace(of_value(scalar_value(given.trace, part.dtype)), weak=part.weak)


def _result(
    given: Patterns, build: Build, regions: Mapping[str, tuple[Any, Sequence[Pointwise]]]
) -> Any:
    """Return what ``build`` makes of the regions, all in the common dtype of their values.

    ``regions`` has for each its function and samples of the elements that it takes.
    """
    samples = [_region(given, name, *region) for name, region in regions.items()]
    dtype = result_dtype([part for part in samples if part is not None] or given.parts)
    nothing = nothing_of(dtype)

    def leaf(region: str, values: Sequence[Pointwise]) -> Pointwise:
        part = _region(given, region, regions[region][0], values)
        if part is None:
            return nothing
        typed = over_entries(part, lambda entry: converted(entry, dtype), nothing)
        return _stored(given.trace, typed) if region == "absent" else typed

    return given.result(build(leaf, nothing))


def _region(
    given: Patterns, region: str, function: Any, values: Sequence[Pointwise]
) -> Pointwise | None:
    """Return the value of one region for the elements there; None for nothing."""
    match function:
        case None:
            return None
        case Const():
            return Pointwise(function, (), function.dtype)
        case "identity":
            return values[0]
        case str():
            raise TraceError(
                f'{region}= is a function, "identity" or None, not {function!r}', location=caller()
            )
        case _:
            return read_function(given.trace, region, function, values, coordinate_names(given))


def _stored(trace: Trace, part: Pointwise) -> Pointwise:
    """Return ``part`` as an entry where no operand stores one: a constant alone would be a fill."""
    if part.const is None:
        return part
    return of_value(fresh(trace, Term(part), (), {}, None, caller()), ())
