"""The extents of indices: how far each index of a statement runs.

In: the accesses of a statement. Out: an extent for each index variable, the largest that keeps
every access inside its operand. Accesses by an index alone must agree; an affine access (``x[i +
j]``) bounds the index that nothing else bounds, or shortens one that it alone contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim, add, as_linear, dims_of, floordiv, mul
from sparsejit.errors import SubscriptError, TensorValueError, TraceError, UnsupportedError
from sparsejit.ir.tensor import ExtractSlice, Value
from sparsejit.ir.types import TensorType
from sparsejit.trace._context import Trace
from sparsejit.trace._extents import difference, tidy
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Access, Pointwise

__all__ = ["Bound", "bounds_of", "check_bounded", "index_extents", "remember_bounds", "within"]


@dataclass(frozen=True, slots=True)
class Bound:
    """An index expression and the extent of the dimension that it indexes.

    ``at_most``: an index alone may stop before the end, as a longer expression may.
    """

    index: AffineExpr
    extent: AffineExpr
    at_most: bool = False


def bounds_of(trace: Trace, parts: Sequence[Pointwise]) -> list[Bound]:
    """Return the bounds that all accesses set, without repetition.

    An intermediate that was computed over indices sets those of what it was computed from.
    """
    found: dict[Bound, None] = {}
    for part in parts:
        for access in part.accesses:
            known = trace.bounds.get(access.value.name)
            pairs = zip(access.index, access.value.type.shape, strict=True)
            found.update(dict.fromkeys(known or (Bound(*pair) for pair in pairs)))
    return list(found)


def remember_bounds(
    trace: Trace, value: Value, bounds: Sequence[Bound], extents: Mapping[int, AffineExpr]
) -> None:
    """Remember what bounds the indices of ``value``, computed over those in ``extents``."""
    kept = [bound for bound in bounds if dims_of(bound.index) <= set(extents)]
    limits = [Bound(Dim(v), extent, at_most=True) for v, extent in extents.items()]
    trace.bounds[value.name] = (*kept, *limits)


def index_extents(
    trace: Trace, bounds: Sequence[Bound], names: Mapping[int, str]
) -> dict[int, AffineExpr]:
    """Return the extent of each index variable in ``bounds``.

    Raises ``TensorTypeError`` where accesses disagree or leave an operand, ``TraceError`` where an
    extent is not determined. ``names`` are the user's names of the variables.
    """
    extents: dict[int, AffineExpr] = {}
    affine: list[Bound] = []
    for bound in bounds:
        match bound:
            case Bound(Dim(variable), extent, at_most=False):
                _plain(trace, extents, variable, extent, names)
            case Bound(Constant()):
                pass
            case _:
                affine.append(bound)
    # Those with one index come first: they may shorten it.
    waiting = sorted(affine, key=lambda bound: len(dims_of(bound.index)))
    while waiting:
        ready = [bound for bound in waiting if len(dims_of(bound.index) - set(extents)) <= 1]
        if not ready:
            unknown = sorted(names[v] for v in dims_of(waiting[0].index) - set(extents))
            raise TraceError(
                f"the extents of {' and '.join(unknown)} are not determined",
                hint="use all but one of them as the only index of a dimension somewhere",
                location=caller(),
            )
        for bound in ready:
            _affine(trace, extents, bound.index, bound.extent, names)
        waiting = [bound for bound in waiting if bound not in ready]
    return {v: trace.extents.resolve(extent) for v, extent in extents.items()}


def check_bounded(
    trace: Trace, variables: Sequence[int], extents: Mapping[int, AffineExpr]
) -> None:
    """Raise ``TraceError`` for an index variable that has no extent."""
    for variable in variables:
        if variable not in extents:
            name = trace.index_names[variable]
            raise TraceError(
                f"nothing bounds the index {name}",
                hint=f"use {name} as an index of an operand, or give sj.output(shape=)",
                location=caller(),
            )


def _plain(
    trace: Trace,
    extents: dict[int, AffineExpr],
    variable: int,
    extent: AffineExpr,
    names: Mapping[int, str],
) -> None:
    known = extents.setdefault(variable, extent)
    if not trace.extents.unify(known, extent):
        numbers = trace.extents.number(known), trace.extents.number(extent)
        raise TensorValueError(
            f"index {names[variable]} runs over extents that differ: {numbers[0]} and {numbers[1]}",
            location=caller(),
        )


def _span(
    linear: Mapping[int, int], extents: Mapping[int, AffineExpr], skip: int | None, sign: int
) -> AffineExpr:
    """Return the extreme of the terms with this sign, over all indices but ``skip``."""
    total: AffineExpr = Constant(0)
    for variable, factor in linear.items():
        if variable != skip and factor * sign > 0:
            last = difference(extents[variable], Constant(1))
            total = add(total, mul(Constant(factor), last))
    return tidy(total)


def _affine(
    trace: Trace,
    extents: dict[int, AffineExpr],
    index: AffineExpr,
    extent: AffineExpr,
    names: Mapping[int, str],
) -> None:
    read = as_linear(index)
    if read is None:
        raise UnsupportedError("an index that is not linear is not built", location=caller())
    linear, offset = read
    unknown = [v for v in linear if v not in extents]
    target = unknown[0] if unknown else (next(iter(linear)) if len(linear) == 1 else None)
    highest = add(_span(linear, extents, target, 1), Constant(offset))
    lowest = add(_span(linear, extents, target, -1), Constant(offset))
    room = difference(difference(extent, Constant(1)), highest)
    if target is not None:
        factor = linear[target]
        available = room if factor > 0 else lowest
        if trace.extents.holds(available):
            bound = floordiv(tidy(add(available, Constant(abs(factor)))), abs(factor))
        else:
            bound = Constant(0)
        known = extents.get(target)
        if known is None or trace.extents.holds(difference(known, bound)):
            extents[target] = tidy(bound)
        # The other end is at the target's coordinate 0.
        _inside(trace, lowest if factor > 0 else room, index, names)
    else:
        _inside(trace, lowest, index, names)
        _inside(trace, room, index, names)


def _inside(trace: Trace, room: AffineExpr, index: AffineExpr, names: Mapping[int, str]) -> None:
    if not trace.extents.holds(room):
        text = index_text(index, names)
        raise SubscriptError(f"the index {text} leaves its operand", location=caller())


def index_text(index: AffineExpr, names: Mapping[int, str]) -> str:
    """Return an index expression in the user's names."""
    read = as_linear(index)
    if read is None:
        return "?"
    linear, offset = read
    parts = [names[v] if f == 1 else f"{f} * {names[v]}" for v, f in linear.items()]
    if offset or not parts:
        parts.append(str(offset))
    return " + ".join(parts).replace("+ -", "- ")


def within(trace: Trace, part: Pointwise, extents: Mapping[int, AffineExpr]) -> Pointwise:
    """Return ``part`` with sparse operands cut to what the indices reach.

    A loop over a sparse operand visits what is stored, also beyond the extent of a loop that a
    shorter access bounds.
    """
    accesses = tuple(_cut(trace, access, extents) for access in part.accesses)
    return Pointwise(part.body, accesses, part.dtype, part.weak)


def _cut(trace: Trace, access: Access, extents: Mapping[int, AffineExpr]) -> Access:
    kind = access.value.type
    sizes = tuple(
        extents[index.index] if isinstance(index, Dim) else extent
        for index, extent in zip(access.index, kind.shape, strict=True)
    )
    if kind.is_dense or all(map(trace.extents.same, sizes, kind.shape)):
        return access
    result: Value = trace.value(TensorType(sizes, kind.dtype, kind.format, kind.fill))
    zeros = (Constant(0),) * len(sizes)
    ones = (1,) * len(sizes)
    trace.ops.append(ExtractSlice(result, access.value, zeros, sizes, ones, (), caller()))
    return Access(result, access.index)
