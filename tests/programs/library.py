"""What a program's texts call ``sj`` when they are evaluated in NumPy: small and by brute force.

Nothing of sparsejit takes part. Tensors are ``Pair``s, or arrays of which all is stored; a value
whose pattern is not known is refused where a pattern is read, so that no such program is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tests.programs.pairs import Array, Pair, as_plain, mask_of, pair

__all__ = ["library", "plain_einsum"]

TIMES: dict[str, tuple[Any, Any]] = {
    "plus_times": (np.add, np.multiply),
    "min_plus": (np.minimum, np.add),
    "max_plus": (np.maximum, np.add),
    "max_times": (np.maximum, np.multiply),
    "min_max": (np.minimum, np.maximum),
    "or_and": (np.logical_or, np.logical_and),
    "plus_pair": (np.add, None),
    "any_pair": (np.maximum, None),
}


def identity(name: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity of a semiring's plus."""
    if name in ("plus_times", "or_and", "plus_pair", "any_pair"):
        return 0
    sign = 1 if name.startswith("min") else -1
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if sign > 0 else info.min
    return sign * np.inf


# ---------------------------------------------------------------- patterns


def known(x: Any) -> Array:
    """Return the mask of a value that a pattern may be read from; ``ValueError`` for others."""
    mask = mask_of(x)
    if mask is None or not np.ndim(x) or (isinstance(x, Pair) and not x.sure):
        raise ValueError("the pattern is not known")
    return mask


def where_stored(S: Any, value: Any, fill_value: Any = 0) -> Any:
    stored = known(S)
    plain = np.asarray(as_plain(value))
    if np.broadcast_shapes(plain.shape, stored.shape) != stored.shape:
        raise ValueError("a pattern with further indices")
    if plain.dtype.kind == "b" and fill_value:
        raise ValueError("2 is no bool")
    made = np.where(stored, plain, np.asarray(fill_value).astype(plain.dtype))
    return pair(made, stored, fill_value, True, S.pads) if isinstance(S, Pair) else made


def softmax(E: Any, axis: Any) -> Any:
    stored, values = known(E), as_plain(E)
    if values.dtype.kind == "c":
        raise ValueError("complex numbers have no order")
    dtype = values.dtype if _is_float(values.dtype) else np.dtype(float)
    wide = values.astype(np.float64)
    most = np.where(stored, wide, -np.inf).max(axis=axis, keepdims=True, initial=-np.inf)
    powers = np.where(stored, np.exp(wide - most), 0.0)
    made = np.where(stored, powers / powers.sum(axis=axis, keepdims=True), 0.0).astype(dtype)
    return pair(made, stored, 0, True, E.pads) if isinstance(E, Pair) else made


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def _applied(function: Callable[..., Any], *arrays: Array, where: Array) -> Array:
    """Return a function of scalars at the entries, given coordinates where it names them."""
    dtype = np.result_type(*arrays)
    if dtype.kind == "b":
        raise ValueError("bools and numbers have no common arithmetic")
    made = np.zeros(where.shape, dtype)
    count = function.__code__.co_argcount - len(arrays)
    for place in np.argwhere(where):
        scalars = [array[tuple(place)] for array in arrays]
        value = function(*scalars, *map(np.int64, place[:count]))
        made[tuple(place)] = np.asarray(value).astype(dtype)
    return made


def unary(x: Any, present: Any = None, absent: Any = None) -> Any:
    stored, values = known(x), as_plain(x)
    made = np.zeros_like(values)
    if present == "identity":
        made = np.where(stored, values, made)
    elif present is not None:
        made = _applied(present, values, where=stored)
    if absent is None:
        if present is None:
            raise ValueError("nothing at all")
        return _kept(x, made, stored)
    if present is None:  # the dtype is the one of what the functions give
        made = np.where(stored, 0, absent())
        return pair(made, ~stored if isinstance(x, Pair) else None)
    return np.where(stored, made, absent())


def _kept(x: Any, made: Array, stored: Array) -> Any:
    """Return a result with the pattern of an operand, or a part of it."""
    if isinstance(x, Pair):
        return pair(made, stored, 0, not x.pads, x.pads)
    return pair(made, None)  # sparse or dense, as it comes


def binary(x: Any, y: Any, overlap: Any = None, left: Any = None, right: Any = None) -> Any:
    one, two = known(x), known(y)
    if one.shape != two.shape or as_plain(x).dtype != as_plain(y).dtype:
        raise ValueError("operands alike only")
    made = np.zeros_like(as_plain(x))
    stored = np.zeros(one.shape, bool)
    if overlap is not None:
        made = _applied(overlap, as_plain(x), as_plain(y), where=one & two)
        stored = one & two
    for side, own, mask in ((left, x, one & ~two), (right, y, two & ~one)):
        if side is not None:
            values = as_plain(own) if side == "identity" else _applied(side, own, where=mask)
            made, stored = np.where(mask, values, made), stored | mask
    pads = any(not isinstance(item, Pair) or item.pads for item in (x, y))
    return pair(made, None if pads else stored)


def select(x: Any, keep: Any) -> Any:
    stored, values = known(x), as_plain(x)
    count = keep.__code__.co_argcount - 1
    kept = np.zeros_like(stored)
    for place in np.argwhere(stored):
        kept[tuple(place)] = bool(keep(values[tuple(place)], *map(int, place[:count])))
    made = np.where(kept, values, np.zeros((), values.dtype))
    pads = not isinstance(x, Pair) or x.pads
    return pair(made, None if pads else kept)


def reduce(f: Any, x: Any, identity: Any = None, axis: Any = None) -> Any:
    stored, values = known(x), as_plain(x)
    if values.dtype.kind == "b":
        raise ValueError("bools and numbers have no common arithmetic")
    lines, masks = np.moveaxis(values, axis, -1), np.moveaxis(stored, axis, -1)
    made = np.full(lines.shape[:-1], identity, values.dtype)
    for place in np.ndindex(made.shape):
        total = made[place]
        for value in lines[place][masks[place]]:
            total = np.asarray(f(total, value)).astype(values.dtype)[()]
        made[place] = total
    return pair(made, None)


# ---------------------------------------------------------------- sums of products


def plain_einsum(subscripts: str, *operands: Any, semiring: str = "") -> Any:
    """Return an einsum by a product over all indices at once."""
    left, _, out = subscripts.partition("->")
    terms = left.split(",")
    letters = sorted(set(left) - {","})
    dtype = np.result_type(*operands)
    plus, times = TIMES[semiring or "plus_times"]
    if dtype.kind == "c" and semiring not in ("", "plus_times", "or_and", "plus_pair"):
        raise ValueError("complex numbers have no common order")
    if semiring == "or_and" or (semiring == "plus_pair" and dtype.kind == "b"):
        dtype = np.dtype(bool if semiring == "or_and" else np.int64)
    work = np.dtype(np.float32) if dtype.itemsize == 2 and _is_float(dtype) else dtype
    masks = [mask_of(operand) for operand in operands]
    stored: Any = np.ones([1] * len(letters), bool)
    value: Any = np.ones([1] * len(letters), work)
    is_first = True
    for term, operand, mask in zip(terms, operands, masks, strict=True):
        grid = _spread(as_plain(operand), term, letters)
        if times is not None:
            grid = grid.astype(work)
            value = grid if is_first else times(value, grid)
        is_first = False
        if semiring and (mask is None or (isinstance(operand, Pair) and not operand.sure)):
            raise ValueError("the pattern is not known")
        stored = stored & _spread(
            np.ones(np.shape(operand), bool) if mask is None else mask, term, letters
        )
    value = np.broadcast_to(value, stored.shape)
    axes = tuple(n for n, letter in enumerate(letters) if letter not in out)
    if semiring:
        start = np.asarray(identity(semiring, dtype)).astype(work)
        value = np.where(stored, value, start)
        made = plus.reduce(value, axis=axes, initial=start) if axes else value
    elif work.kind == "b":
        made = np.logical_or.reduce(value, axis=axes)
    else:
        made = np.add.reduce(value, axis=axes, dtype=work)
    kept = [letter for letter in letters if letter in out]
    order = [kept.index(letter) for letter in out]
    made = np.transpose(np.asarray(made).astype(dtype), order)
    pattern = np.transpose(stored.any(axis=axes), order)
    return _product(operands, made, pattern, semiring)


def _spread(array: Array, term: str, letters: list[str]) -> Array:
    """Return an operand over all letters, its diagonal where a letter repeats."""
    array = np.asarray(array)
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            one = term.index(letter)
            two = term.index(letter, one + 1)
            array = np.diagonal(array, axis1=one, axis2=two)
            term = term[:one] + term[one + 1 : two] + term[two + 1 :] + letter
    order = [term.index(letter) for letter in letters if letter in term]
    shape = [array.shape[term.index(c)] if c in term else 1 for c in letters]
    return np.transpose(array, order).reshape(shape)


def _product(operands: Any, made: Array, pattern: Array, semiring: str) -> Any:
    pairs = [item for item in operands if isinstance(item, Pair)]
    if not pairs or not made.ndim:
        return made[()] if not made.ndim else made
    is_known = all(not item.pads and (semiring or not item.fill) for item in pairs) and all(
        item.stored is not None for item in pairs
    )
    is_known = is_known and made.ndim > 1  # sums along all but one axis are dense
    fill = identity(semiring, made.dtype) if semiring else 0
    return pair(made, pattern if is_known and len(pairs) == len(operands) else None, fill)


# ---------------------------------------------------------------- loops


def _copied(values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(map(_copied, values))
    if isinstance(values, Pair):
        return pair(as_plain(values).copy(), values.stored, values.fill, values.sure, values.pads)
    return np.array(values)[()] if isinstance(values, np.ndarray | np.generic) else values


def _checked(before: Any, after: Any) -> Any:
    """Refuse what a loop cannot carry: another dtype, shape, or sparse instead of dense."""
    for one, other in zip(before, after, strict=True):
        is_alike = np.asarray(one).dtype == np.asarray(other).dtype
        if not is_alike or np.shape(one) != np.shape(other):
            raise ValueError("a carried value changes its type")
        if isinstance(one, Pair) != isinstance(other, Pair):
            raise ValueError("a carried value changes its format")
        if isinstance(one, Pair) and not (one.sure and other.sure and one.fill == other.fill):
            raise ValueError("a carried value changes its format")
    return after


def fori_loop(lo: int, hi: int, body: Any, init: Any) -> Any:
    init = _copied(init)
    if hi <= lo:
        _checked(init, body(lo, _copied(init)))  # it is traced all the same
    for i in range(lo, hi):
        init = _copied(_checked(init, body(i, init)))
    return init


def while_loop(goes_on: Any, body: Any, init: Any) -> Any:
    init = _copied(init)
    _checked(init, body(_copied(init)))  # it is traced even if no round is done
    while goes_on(init):
        init = _copied(_checked(init, body(init)))
    return init


def cond(pred: Any, then: Any, orelse: Any, *operands: Any) -> Any:
    one, other = then(*_copied(operands)), orelse(*_copied(operands))
    _checked(one, other)
    return _copied(one if pred else other)


library = SimpleNamespace(
    maximum=np.maximum,
    minimum=np.minimum,
    where=np.where,
    sum=np.sum,
    min=np.min,
    einsum=plain_einsum,
    where_stored=where_stored,
    softmax=softmax,
    unary=unary,
    binary=binary,
    select=select,
    reduce=reduce,
    fori_loop=fori_loop,
    while_loop=while_loop,
    cond=cond,
)
"""The names of ``sj`` that programs use."""
