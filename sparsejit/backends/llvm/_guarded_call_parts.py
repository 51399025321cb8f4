"""The parts of guarded calls, and the words that describe them in tables.

In: what each argument must be, what else must hold, what is to be made. Out: descriptors, as
``_guarded_call_text`` reads them.
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from types import FunctionType
from typing import Any, assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._guarded_call_table import FLAGS, Kind
from sparsejit.backends.llvm._interface import OBJECT_HEAD
from sparsejit.backends.straight import ABSENT, Asked, Cell, Condition, Entry, Field, Variable

__all__ = [
    "Buffer",
    "Double",
    "Fresh",
    "Made",
    "New",
    "NumberOf",
    "Part",
    "Received",
    "Seen",
    "SparseOf",
    "Straight",
    "Word",
    "condition_words",
    "descriptor",
    "fresh_words",
    "pair_words",
]

_C_CONTIGUOUS = 0x1


@dataclass(frozen=True, slots=True)
class Seen:
    """An array that must be alike in all of this; its address goes to word ``place``."""

    place: int
    dtype: np.dtype[Any]
    flags: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(place: int, array: Any) -> Seen:
        """Return what arrays like ``array`` must be."""
        return Seen(place, array.dtype, array.flags.num & FLAGS, array.shape, array.strides)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def bounds(self) -> tuple[int, int]:
        """Where its memory begins and ends, as offsets from its first element."""
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
        return low, high + self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Made:
    """An array that the caller has just made as it should be: not compared."""

    place: int


@dataclass(frozen=True, slots=True)
class Double:
    """An object of type float, or of a subtype of NumPy's."""

    place: int


@dataclass(frozen=True, slots=True)
class Word:
    """Sixteen bytes in a ``bytes`` object: a scalar of any other type."""

    place: int


@dataclass(frozen=True, slots=True)
class Received:
    """An array of 64-bit integers that receives the words which the entry writes."""


@dataclass(frozen=True, slots=True)
class SparseOf:
    """A sparse object with a mark; its buffers follow."""

    mark: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """The next buffer of the last sparse object."""

    seen: Seen


@dataclass(frozen=True, slots=True)
class NumberOf:
    """An object of this type, which holds a double."""

    place: int
    type: type


@dataclass(frozen=True, slots=True)
class New:
    """No argument: an array for a result, to be made for each call."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


Part = Seen | Made | Double | Word | Received | SparseOf | Buffer | NumberOf | New


@dataclass(frozen=True, slots=True)
class Fresh:
    """An array to be made of memory whose address the entry writes to word ``place``.

    Its extents stand behind the address. The memory is of ``malloc``; the array frees it.
    """

    place: int
    dtype: np.dtype[Any]
    rank: int


@dataclass(frozen=True, slots=True, eq=False)
class Straight:
    """What a call does that is asked to do all; of ``apart`` no two arrays may share memory.

    ``kept`` has to live as long as the call.
    """

    asked: Asked
    apart: tuple[tuple[Seen, Seen], ...]
    kept: tuple[object, ...]


def descriptor(part: Part) -> list[int]:
    """Return the words that describe one part."""
    kind, *rest = _words(part)
    return [kind, len(rest) + 2, *rest]


def _words(part: Part) -> list[int]:
    """Return these words without their number."""
    match part:
        case Seen(place, dtype, flags, shape, strides):
            compared = () if flags & _C_CONTIGUOUS else strides
            head = [Kind.SEEN, place, id(dtype), flags, len(shape), len(compared)]
            return [*head, *shape, *compared]
        case Made(place):
            return [Kind.MADE, place]
        case Double(place):
            return [Kind.DOUBLE, place]
        case Word(place):
            return [Kind.WORD, place]
        case Received():
            return [Kind.RECEIVED, 0]
        case SparseOf(mark):
            return [Kind.SPARSE, 0, mark]
        case Buffer(seen):
            return [Kind.BUFFER, *descriptor(seen)[2:]]
        case NumberOf(place, kind):
            return [Kind.NUMBER, place, id(kind)]
        case New(place, shape, dtype):
            size = prod(shape) * dtype.itemsize
            return [Kind.NEW, place, id(dtype), size, len(shape), *shape]
        case _:
            assert_never(part)


def fresh_words(new: Fresh) -> list[int]:
    """Return the words of an array to be made of the entry's memory."""
    return [id(new.dtype), new.rank, new.place, new.dtype.itemsize]


def condition_words(condition: Condition) -> list[int]:
    """Return the words of a condition."""
    address = 0 if condition.value is ABSENT else id(condition.value)
    match condition:
        case Entry(namespace, key, _):
            return [0, id(namespace), id(key), address]
        case Cell(cell, _):
            return [1, id(cell), OBJECT_HEAD, address]
        case Field(function, name, value):
            return [1, id(function), _offset_of(name), 0 if value is None else address]
        case Variable(variable, _):
            return [2, id(variable), 0, address]
        case _:
            assert_never(condition)


@functools.cache
def _offset_of(name: str) -> int:
    """Return where a function has the object that is its attribute ``name``."""

    def example(a: int = 0, *, b: int = 1) -> int:
        return a + b

    size = FunctionType.__basicsize__
    words = memoryview(ctypes.string_at(id(example), size)).cast("P")
    return words.tolist().index(id(getattr(example, name))) * words.itemsize


def pair_words(one: Seen, other: Seen) -> list[int]:
    """Return the words of two arrays that may share no memory."""
    return [one.place, *one.bounds, other.place, *other.bounds]
