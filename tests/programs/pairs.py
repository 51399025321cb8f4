"""Pairs: NumPy arrays that know which of their elements a sparse tensor stores.

Values are those of dense NumPy, whatever is computed. The mask of what is stored is followed
through the operations for which it is known; where it is not, ``stored`` is None and nothing that
reads a pattern may be drawn on the value. ``sure``: the compiled value is a sparse tensor too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

__all__ = ["Array", "Pair", "as_plain", "mask_of", "pair"]

Array = np.ndarray[Any, np.dtype[Any]]

_UNIONS = (
    np.add, np.subtract, np.maximum, np.minimum, np.equal, np.not_equal, np.less, np.less_equal,
    np.greater, np.greater_equal,
)  # fmt: skip
_PRODUCTS = (np.dot, np.inner, np.outer, np.tensordot)
_DIVISIONS = (np.true_divide, np.floor_divide, np.remainder)


class Pair(np.ndarray[Any, np.dtype[Any]]):
    """``stored`` and ``fill``; ``pads``: what is stored depends on the format of the result."""

    stored: Array | None
    fill: Any
    sure: bool
    pads: bool

    def __array_finalize__(self, source: Any) -> None:
        """Forget the mask: only what is known to keep it sets it again."""
        self.stored, self.fill, self.sure, self.pads = None, 0, False, False

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute on all elements, and tell what is stored where that is known."""
        outs = options.pop("out", ())
        plain = [as_plain(item) for item in inputs]
        if outs:
            return self._in_place(ufunc, method, plain, outs, options)
        value = getattr(ufunc, method)(*plain, **options)
        if method != "__call__" or not isinstance(value, np.ndarray):
            return _unknown(value) if np.ndim(value) > 1 else value
        value = _with_annihilator(ufunc, inputs, value)
        return _described(ufunc, inputs, value)

    def _in_place(
        self, ufunc: Any, method: str, plain: list[Any], outs: Sequence[Any], options: Any
    ) -> Any:
        (out,) = outs
        base = as_plain(out)
        before = base.copy()
        getattr(ufunc, method)(*plain, out=(base,), **options)
        if isinstance(out, Pair) and out.stored is not None:
            _keep_unstored(base, before, out.stored)
        return out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Compute on all elements; rearrangements move the mask as they move the values."""
        if func in _PRODUCTS and not all(map(_is_finite, args[:2])):
            raise ValueError("a product with inf depends on what is stored")
        value = func(*_plain_all(args), **kwargs)
        if func in _REARRANGING and isinstance(value, np.ndarray):
            return _rearranged(func, args, kwargs, value)
        return _unknown(value)

    def __getitem__(self, key: Any) -> Any:
        """Copy, as slices of sparse operands are copies.

        With new axes the inferred format may be a dense one.
        """
        value = as_plain(self)[key]
        has_new_axes = isinstance(key, tuple) and any(part is None for part in key)
        if self.stored is None or has_new_axes or not isinstance(value, np.ndarray):
            return _unknown(value.copy()) if isinstance(value, np.ndarray) else value
        return pair(value.copy(), self.stored[key], self.fill, pads=self.pads)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign where entries are stored; the others cannot change."""
        base = as_plain(self)
        before = base.copy()
        base[key] = as_plain(value)
        _keep_unstored(base, before, self.stored)

    @property
    def T(self) -> Self:
        """The transpose, a view as that of a dense array."""
        stored = None if self.stored is None else self.stored.T
        made: Self = pair(as_plain(self).T, stored, self.fill, self.sure, self.pads)  # type: ignore[assignment]  # a Pair
        return made

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return other extents."""
        return self._moved(lambda array: array.reshape(*shape, **options), sure=False)

    def transpose(self, *axes: Any) -> Any:
        """Return other axes."""
        return self._moved(lambda array: array.transpose(*axes), sure=False)

    def copy(self, order: Any = "C") -> Any:
        """Return the same elsewhere."""
        return self._moved(lambda array: array)

    def astype(self, dtype: Any) -> Any:  # type: ignore[override]  # no other argument is drawn
        """Return another dtype."""
        value = as_plain(self).astype(dtype)
        fill = np.asarray(self.fill).astype(dtype)[()]
        return pair(value, self.stored, fill, self.sure, self.pads)

    def _moved(self, move: Any, sure: bool = True) -> Any:
        # In another shape a format may drop what only fills its blocks.
        is_known = self.stored is not None and (sure or not self.pads)
        stored = move(self.stored) if is_known else None
        value = move(as_plain(self)).copy()
        return pair(value, stored, self.fill, self.sure and sure, self.pads)


def pair(
    value: Any, stored: Array | None, fill: Any = 0, sure: bool = False, pads: bool = False
) -> Pair:
    """Return an array with what is known of its pattern."""
    made: Pair = np.asarray(value).view(Pair)
    made.stored, made.fill, made.sure, made.pads = stored, fill, sure, pads
    return made


def as_plain(value: Any) -> Any:
    """Return the array without its mask; it is the same memory."""
    return value.view(np.ndarray) if isinstance(value, Pair) else value


def mask_of(value: Any) -> Array | None:
    """Return what is stored: all of an array, and None where it is not known."""
    return value.stored if isinstance(value, Pair) else np.ones(np.shape(value), bool)


def _plain_all(args: Any) -> Any:
    if isinstance(args, tuple | list):
        return type(args)(map(_plain_all, args))
    return as_plain(args)


def _unknown(value: Any) -> Any:
    return pair(value, None) if isinstance(value, np.ndarray) else value


def _same(one: Array, other: Array) -> bool:
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _keep_unstored(base: Array, before: Array, stored: Array | None) -> None:
    """Refuse to change what is not stored, or what may not be; not even a zero changes its sign."""
    if stored is None or not _same(base[~stored], before[~stored]):
        base[...] = before
        raise ValueError("what is not stored cannot change")
    base[~stored] = before[~stored]


# ---------------------------------------------------------------- elementwise


def _with_annihilator(ufunc: Any, inputs: Sequence[Any], value: Array) -> Array:
    """Return the value with 0 where nothing is divided, also by 0, or times nothing, also inf."""
    if ufunc in (np.multiply, np.matmul):
        return _times_nothing(ufunc, inputs, value)
    left = inputs[0]
    if ufunc not in _DIVISIONS or not isinstance(left, Pair) or left.fill:
        return value
    if left.stored is None or value.shape != left.shape:
        raise ValueError("a quotient depends on what is stored")
    return np.where(left.stored, value, np.zeros((), value.dtype))


def _times_nothing(ufunc: Any, inputs: Sequence[Any], value: Array) -> Array:
    if all(map(_is_finite, inputs)):
        return value
    for item in inputs:
        if not isinstance(item, Pair) or item.fill:
            continue
        if item.stored is None or item.shape != value.shape or ufunc is np.matmul:
            raise ValueError("a product with inf depends on what is stored")
        value = np.where(item.stored, value, np.zeros((), value.dtype))
    return value


def _is_finite(value: Any) -> bool:
    array = np.asarray(as_plain(value))
    return array.dtype.kind in "biu" or bool(np.isfinite(array).all())


def _described(ufunc: Any, inputs: Sequence[Any], value: Array) -> Any:
    pairs = [item for item in inputs if isinstance(item, Pair)]
    if ufunc is np.matmul:
        return _of_matmul(inputs, pairs, value)
    dense = [item for item in inputs if not isinstance(item, Pair) and np.ndim(item)]
    if any(item.stored is None or item.shape != value.shape for item in pairs):
        return _unknown(value)
    masks = [item.stored for item in pairs if item.stored is not None]
    if len(pairs) == 1 and (not dense or (ufunc is np.multiply and not pairs[0].fill)):
        (one,) = pairs
        fill = 0 if dense else ufunc(*(_fill(item) for item in inputs))
        if ufunc in _DIVISIONS and one is not inputs[0]:
            return _unknown(value)
        return pair(value, one.stored, fill, one.sure, one.pads)
    if len(pairs) < 2 or dense or any(item.pads for item in pairs):
        return _unknown(value)
    fills = [item.fill for item in pairs]
    if ufunc is np.multiply and not any(fills):
        return pair(value, np.logical_and.reduce(masks))
    if ufunc in _UNIONS:
        return pair(value, np.logical_or.reduce(masks), ufunc(*map(_fill, pairs)))
    return _unknown(value)


def _of_matmul(inputs: Sequence[Any], pairs: Sequence[Pair], value: Array) -> Any:
    """Return a product of matrices, which stores where products of entries meet.

    A factor that was computed may be dense by then.
    """
    unclear = any(item.pads or item.fill or not item.sure for item in pairs)
    if len(pairs) < 2 or value.ndim < 2 or unclear:
        return _unknown(value)
    one, two = (item.stored for item in inputs)
    if one is None or two is None:
        return _unknown(value)
    return pair(value, (one.astype(int) @ two.astype(int)) > 0)


def _fill(item: Any) -> Any:
    if isinstance(item, Pair):
        return np.asarray(item.fill).astype(item.dtype)[()]
    return as_plain(item)


# ---------------------------------------------------------------- rearrangements


_REARRANGING = (
    np.concatenate, np.stack, np.reshape, np.pad, np.transpose, np.expand_dims, np.squeeze,
)  # fmt: skip


def _rearranged(func: Any, args: Any, kwargs: Any, value: Array) -> Any:
    parts = args[0] if isinstance(args[0], tuple | list) else (args[0],)
    masks = [mask_of(part) for part in parts]
    # Zeros that only fill a dense level are dropped, so what a dense part stores is not known.
    pads = any(not isinstance(part, Pair) or part.pads or part.fill for part in parts)
    if pads or any(mask is None for mask in masks) or kwargs.get("constant_values"):
        return _unknown(value)
    given = tuple(masks) if isinstance(args[0], tuple | list) else masks[0]
    options = {name: option for name, option in kwargs.items() if name != "constant_values"}
    return pair(value, func(given, *args[1:], **options))
