"""Static values: what takes part in a trace as it is, and the token that stands for it in a key.

In: any Python object. Out: a hashable token; two are equal when the values are interchangeable in a
trace: same types, numbers compared by bits (1, 1.0 and True differ, and so do 0.0 and -0.0), and
objects without a value of their own by identity.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from enum import Enum

import numpy as np

__all__ = ["Identity", "is_static", "static_token"]


class Identity:
    """The token of an object that stands for itself; it does not keep the object alive."""

    __slots__ = ("_number", "_reference", "_strong")

    def __init__(self, obj: object) -> None:
        self._number = id(obj)
        self._strong: object = None
        try:
            self._reference = weakref.ref(obj)
        except TypeError:  # an object without weak references is kept, so its number stays its own
            self._strong = obj

    def _alive(self) -> object:
        return self._reference() if self._strong is None else self._strong

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity) or self._number != other._number:
            return False
        mine = self._alive()
        return mine is not None and mine is other._alive()


def is_static(value: object) -> bool:
    """Whether an argument is a constant of the trace by itself: bool, str, None, enum or class."""
    return value is None or isinstance(value, bool | str | bytes | Enum | type)


def static_token(value: object, name: str) -> Hashable:
    """Return the token of a static value; ``ValueError`` for one that cannot be hashed.

    ``name`` is the argument's, for the message.

    >>> static_token(0.0, "alpha") == static_token(-0.0, "alpha")
    False
    """
    match value:
        case None | bool() | str() | bytes():
            return value.__class__, value
        case Enum():
            return value.__class__, value.name
        case np.generic():
            return value.dtype, value.tobytes()
        case int():
            return value.__class__, value
        case float():
            return value.__class__, value.hex()
        case complex():
            return value.__class__, value.real.hex(), value.imag.hex()
        case tuple() | list():
            return value.__class__, *(static_token(item, name) for item in value)
        case dict():
            pairs = ((static_token(k, name), static_token(v, name)) for k, v in value.items())
            return value.__class__, *pairs
        case _:
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    f"the static argument {name!r} must be hashable, not {_kind(value)}"
                ) from None
            return value.__class__, value


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
