"""Statements of index notation in plain NumPy, over the whole grid of their indices.

In: an ``IndexUpdate`` and the values of all names. Out: the assignment, done. ``ValueError`` where
the statement has no meaning: extents that differ, an index with two meanings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.programs.language import (
    Apply,
    At,
    Coord,
    IndexExpr,
    IndexUpdate,
    Item,
    Load,
    Num,
    Over,
    Place,
    Var,
    children,
)
from tests.programs.pairs import Pair, as_plain, pair

__all__ = ["check_dtypes", "fitting", "index_update", "same_kind"]

Indices = dict[str, int]

INDICES = ("i", "j", "k")
UFUNCS = {"+=": np.add, "-=": np.subtract, "*=": np.multiply}


def same_kind(op: str, old: Any, value: Any) -> Any:
    """Return what an update makes of old elements, with NumPy's rule for casts."""
    array = np.array(as_plain(old))
    UFUNCS[op](array, as_plain(value), out=array, casting="same_kind")
    return array


def fitting(value: Any, dtype: np.dtype[Any]) -> None:
    """Refuse numbers that an integer type lacks: what they become is no matter of NumPy's."""
    given = np.asarray(as_plain(value))
    if dtype.kind in "iu" and given.dtype.kind not in "biu":
        limits, real = np.iinfo(dtype), given.real.astype(float)
        if not bool(((real >= limits.min) & (real <= limits.max)).all()):
            raise ValueError("a number does not fit")


def check_dtypes(template: str, dtypes: list[np.dtype[Any]]) -> None:
    """Refuse what NumPy does in another dtype, or not exactly."""
    names = {dtype.name for dtype in dtypes}
    if "bfloat16" in names and any(word in template for word in ("@", "dot(", "clip(")):
        raise ValueError("NumPy computes this in float32")
    if names & {"complex64", "complex128"} and any(
        word in template for word in ("sign(", "abs(", "larger_size")
    ):
        raise ValueError("the size of a complex number is not exact")


def _loads(expr: IndexExpr) -> Iterator[Load]:
    if isinstance(expr, Load):
        yield expr
    for part in children(expr):
        assert not isinstance(part, Var | Apply | Item)
        yield from _loads(part)


def index_update(statement: IndexUpdate, names: dict[str, Any]) -> None:
    """Run one statement of index notation."""
    left = [index for place in statement.at for index in place.indices]
    _check_sums(statement)
    accesses = [load for _, term in statement.terms for load in _loads(term)]
    bounded = [(load.at, np.shape(names[load.name])) for load in accesses]
    if not statement.fresh:
        bounded.append((statement.at, np.shape(names[statement.name])))
    extents = _extents(bounded)
    total: Any = None
    for sign, term in statement.terms:
        value = _term(term, left, extents, names)
        if total is None:
            total = value if sign == "+" else -value
        else:
            total = np.add(total, value) if sign == "+" else np.subtract(total, value)
    total = np.broadcast_to(total, [extents[index] for index in left])
    if statement.fresh:
        made = np.array(total)
        is_sparse = any(isinstance(names[load.name], Pair) for load in accesses)
        names[statement.name] = pair(made, None) if is_sparse else made
        return
    target = names[statement.name]
    if not isinstance(target, np.ndarray):
        raise ValueError("a number has no elements")
    grids = np.meshgrid(*(np.arange(extents[index]) for index in left), indexing="ij", copy=True)
    by_index = dict(zip(left, grids, strict=True))
    key = tuple(_at_grid(place, by_index) for place in statement.at)
    old = target[key]
    if statement.op == "=":
        fitting(total, target.dtype)
    target[key] = total if statement.op == "=" else same_kind(statement.op, old, total)


def _at_grid(place: Place, grids: Mapping[str, Any]) -> Any:
    """Return where a place is, for each value of its indices."""
    if not place.index:
        return place.offset
    found = grids[place.index] * place.stride + place.offset
    return found + grids[place.other] if place.other else found


def _check_sums(statement: IndexUpdate) -> None:
    """Refuse a reduction over an index that is not there, or that is used beside it too."""
    outside = {index for place in statement.at for index in place.indices}
    terms = [term for _, term in statement.terms]
    closed = set().union(*map(_closed, terms))
    outside = outside.union(*map(_free, terms))
    if closed & outside:
        raise ValueError("an index has two meanings")
    for term in terms:
        for part in _reductions(term):
            if part.index not in _own(part):
                raise ValueError("a reduction over an index that the expression lacks")
            if any(
                place.index and not place.is_plain for load in _loads(part) for place in load.at
            ):
                # Its extents would have to agree with those outside of the reduction.
                raise ValueError("an affine index inside of a reduction")


def _own(expr: IndexExpr) -> set[str]:
    """Return the indices of an expression."""
    if isinstance(expr, Coord):
        return {expr.index}
    own = (
        {index for place in expr.at for index in place.indices} if isinstance(expr, Load) else set()
    )
    return own.union(*(_own(part) for part in children(expr)))  # type: ignore[arg-type]  # index expressions


def _free(expr: IndexExpr) -> set[str]:
    """Return the indices that occur outside of the reductions over them."""
    if isinstance(expr, Over):
        return set[str]().union(*map(_free, expr.args)) - {expr.index}
    return _own(expr)


def _reductions(expr: IndexExpr) -> Iterator[Over]:
    if isinstance(expr, Over):
        if expr.index:
            yield expr
        for part in expr.args:
            yield from _reductions(part)


def _extents(bounded: list[tuple[At, tuple[int, ...]]]) -> Indices:
    """Return the largest extents that keep every access inside; plain accesses must agree."""
    plain: Indices = {}
    extents: Indices = {}
    double: list[tuple[Place, int]] = []
    for at, shape in bounded:
        if len(at) != len(shape):
            raise ValueError("an access has another rank")
        for place, extent in zip(at, shape, strict=True):
            room = extent - place.offset
            if room < (0 if place.index else 1):
                raise ValueError("an access leaves its array")
            if place.is_plain and plain.setdefault(place.index, extent) != extent:
                raise ValueError("extents differ")
            if place.other:
                double.append((place, room))
            elif place.index:
                count = -(-room // place.stride)
                extents[place.index] = min(extents.get(place.index, count), count)
    for place, room in double:
        _bound_double(place, room, extents)
    return extents


def _bound_double(place: Place, room: int, extents: Indices) -> None:
    """Give the one of two indices that nothing else bounds its extent, or check both."""
    known = [index for index in place.indices if index in extents]
    if len(known) == 2:
        last = place.stride * (extents[place.index] - 1) + extents[place.other] - 1
        if last >= room or 0 in (extents[place.index], extents[place.other]):
            raise ValueError("an access leaves its array")
    elif known == [place.other]:
        left = room - (extents[place.other] - 1)
        extents[place.index] = -(-left // place.stride)
    elif known == [place.index]:
        extents[place.other] = room - place.stride * (extents[place.index] - 1)
    else:
        raise ValueError("extents are not determined")
    if min(extents[index] for index in place.indices) < 1:
        raise ValueError("nothing fits")


def _term(term: IndexExpr, left: list[str], extents: Indices, names: Mapping[str, Any]) -> Any:
    """Return a term over the indices on the left, summed over its other ones."""
    value = _grid(term, extents, names)
    if not np.shape(value):
        return value  # a number promotes weakly, also as a term
    own = _own(term) - _closed(term)
    for axis, index in enumerate(INDICES):
        if index in own and index not in left:
            value = np.add.reduce(value, axis=axis, keepdims=True, dtype=value.dtype)
    axes = [axis for axis, index in enumerate(INDICES) if index not in left]
    value = np.squeeze(as_plain(value), axis=tuple(axes))
    ordered = [index for index in INDICES if index in left]
    return np.transpose(value, [ordered.index(index) for index in left])


def _closed(expr: IndexExpr) -> set[str]:
    """Return the indices that reductions inside have reduced over."""
    own = {expr.index} if isinstance(expr, Over) and expr.index else set()
    return own.union(*(_closed(part) for part in children(expr)))  # type: ignore[arg-type]  # index expressions


def _grid(expr: IndexExpr, extents: Indices, names: Mapping[str, Any]) -> Any:
    """Return the values over all of i, j and k, with extent 1 along those that do not occur.

    Numbers stay numbers, since Python's promote weakly.
    """
    match expr:
        case Num(value):
            return value
        case Coord(index):
            if index not in extents:
                raise ValueError("nothing bounds the index")
            return _along(index, extents)
        case Load(name, ()):
            return names[name]
        case Load(name, at):
            grids = {index: _along(index, extents) for place in at for index in place.indices}
            key = tuple(np.reshape(_at_grid(place, grids), _shape(place, extents)) for place in at)
            whole = names[name]
            found = whole[key]
            if isinstance(found, Pair):
                # Of a part of a padded operand, zeros between the entries may be dropped.
                is_part = any(map(_leaves_out, key, whole.shape))
                found.sure = whole.sure and not (whole.pads and is_part)
            return found
        case Over(template, args, index, reduction):
            values = {f"_{n}": _grid(arg, extents, names) for n, arg in enumerate(args)}
            check_dtypes(template, [np.asarray(value).dtype for value in values.values()])
            made = eval(template.format(*values), SCOPE, values)
            return _reduced(made, index, reduction) if index else made


def _leaves_out(places: Any, extent: int) -> bool:
    return len(np.unique(places)) < extent


def _along(index: str, extents: Indices) -> Any:
    shape = [1, 1, 1]
    shape[INDICES.index(index)] = extents[index]
    return np.arange(extents[index]).reshape(shape)


def _shape(place: Place, extents: Indices) -> list[int]:
    return [extents[index] if index in place.indices else 1 for index in INDICES]


def _reduced(made: Any, index: str, reduction: str) -> Any:
    axis = INDICES.index(index)
    made = as_plain(made)
    match reduction:
        case "sum":
            return np.add.reduce(made, axis=axis, keepdims=True, dtype=made.dtype)
        case "prod":
            return np.multiply.reduce(made, axis=axis, keepdims=True, dtype=made.dtype)
        case _:
            return getattr(np, reduction)(made, axis=axis, keepdims=True)


def _at_entries(S: Any, value: Any) -> Any:
    """``where_stored`` of indexed expressions: further indices are dense beyond the pattern."""
    if isinstance(S, Pair) and (S.stored is None or not S.sure):
        raise ValueError("the pattern is not known")
    value = as_plain(value)
    dtype = np.asarray(value).dtype
    stored: Any = S.stored if isinstance(S, Pair) else np.ones(np.shape(S), bool)
    return np.where(stored, value, np.zeros((), dtype))


SCOPE = {
    "np": np,
    "sj": SimpleNamespace(
        maximum=np.maximum, minimum=np.minimum, where=np.where, where_stored=_at_entries
    ),
}
