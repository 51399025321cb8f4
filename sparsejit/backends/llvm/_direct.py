"""A kernel for arguments like those of one call: nothing is looked up again, everything is guarded.

In: the parameters of a kernel and the arguments it was called with. Out: a ``Direct``. Extents are
part of it; the arrays are compared in machine code, scalars are packed by what their parameter
wants.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._calls import Results, scalar_format, scalar_words
from sparsejit.backends.llvm._guarded_call import guarded_call, makes_arrays, takes_operands
from sparsejit.backends.llvm._guarded_call_parts import (
    Buffer,
    Double,
    Fresh,
    Made,
    New,
    NumberOf,
    Part,
    Received,
    Seen,
    SparseOf,
    Straight,
    Word,
)
from sparsejit.backends.straight import Array, Asked, Constant, Number, Sparse
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import Memref, Var
from sparsejit.ir.types import DType

__all__ = ["Direct", "direct_call"]


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The entry of a kernel and how its block is filled; see ``guarded_call``."""

    entry: tuple[int, object]
    template: tuple[int, ...]
    room: int
    parts: tuple[Part, ...]
    fresh: tuple[Fresh, ...]
    cache: bool

    def call(self) -> Callable[..., Any] | None:
        """Return the guarded call of the arguments."""
        address, _ = self.entry
        return guarded_call(
            address, self.template, self.room, self.parts, self.fresh, cache=self.cache
        )

    def straight(self, asked: Asked) -> Callable[..., Any] | None:
        """Return the call of the operands, None where Python has to do some of it."""
        if not takes_operands() or Received() in self.parts:
            return None
        template = list(self.template)
        parts: list[Part] = []
        left = iter(self.parts)
        for operand in asked.operands:
            match operand:
                case Constant(buffers):
                    for buffer, part in zip(buffers, islice(left, len(buffers)), strict=True):
                        if not isinstance(part, Seen):
                            return None
                        template[part.place] = id(buffer)
                case Sparse(mark, num_buffers):
                    seen = [part for part in islice(left, num_buffers) if isinstance(part, Seen)]
                    parts += [SparseOf(mark), *map(Buffer, seen)]
                case Array():
                    parts.append(next(left))
                case Number(kind):
                    part = next(left)
                    if not isinstance(part, Double):
                        return None
                    parts.append(NumberOf(part.place, kind))
                case _:
                    assert_never(operand)
        places = [part.place for part in left if isinstance(part, Made)]
        parts += [New(place, *made) for place, made in zip(places, asked.made, strict=True)]
        pairs = ((self.parts[one], self.parts[other]) for one, other in asked.apart)
        apart = tuple(
            (one, other)
            for one, other in pairs
            if isinstance(one, Seen) and isinstance(other, Seen) and one.size and other.size
        )
        straight = Straight(asked, apart, (self.entry, tuple(self.parts)))
        return guarded_call(
            self.entry[0], template, self.room, parts, self.fresh, straight, cache=self.cache
        )


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """A guarded call: ``call(*arguments, *made, *words)``, the arguments behind the extents.

    It returns a status: 0, what ``failure`` explains, or ``MISS``; in the place of 0, where the
    kernel makes arrays, these. ``made`` are extents and dtypes of the arrays to be made for
    results. ``room`` is the length of ``words``, the array of 64-bit integers to be added where it
    is not 0. ``pack[k]`` is None, or what becomes of argument k.
    """

    call: Callable[..., Any]
    extents: tuple[Any, ...]
    made: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    room: int
    pack: tuple[Callable[[Any], Any] | None, ...]
    can_fail: bool
    failure: Callable[[int], Exception]
    results: Results
    layout: _Layout
    order: tuple[int, ...] | None

    @property
    def makes_arrays(self) -> bool:
        """Whether ``call`` returns arrays."""
        return self.order is not None

    def straight(self, asked: Asked) -> Callable[..., Any] | None:
        """Return the call of the user's operands, None where Python has to do some of it."""
        return self.layout.straight(asked)

    def arranged(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the result arrays of what a straight call returned."""
        if self.order is None:
            return self.results.wrapped((), (), arrays)
        return [arrays[place] for place in self.order]

    def wrapped(
        self, answer: Any, words: Any, arguments: Sequence[Any], made: Sequence[Any]
    ) -> Sequence[Any]:
        """Return the result arrays."""
        if self.order is not None:
            if not made:
                arrays: Sequence[Any] = answer
                return arrays
            return self.arranged((*made, *answer))
        numbers = words.tolist() if self.room else ()
        return self.results.wrapped(numbers, (*self.extents, *arguments), made)


def direct_call(
    params: Sequence[Memref | Var],
    results: Results,
    entry: tuple[int, object],
    arguments: Sequence[Any],
    num_extents: int,
    failure: Callable[[int], Exception],
    *,
    cache: bool,
) -> Direct | None:
    """Return the direct call for arguments like these, None where this Python does not have it.

    ``entry`` is the address of the code for arrays like these, and its owner. The first
    ``num_extents`` arguments are the extents that it is for. ``cache`` allows the disk cache.
    """
    template: list[int] = []
    parts: list[Part] = []
    pack: list[Callable[[Any], Any] | None] = []
    for number, (param, argument) in enumerate(zip(params, arguments, strict=True)):
        place = len(template)
        if isinstance(param, Memref):
            template.append(0)
            parts.append(Seen.of(place, argument))
            pack.append(None)
        elif number < num_extents:
            template += [int(argument), 0]
        else:
            template += [0, 0]
            is_double = param.dtype is DType.FLOAT64 and isinstance(argument, float)
            parts.append(Double(place) if is_double else Word(place))
            pack.append(None if is_double else _packer(param.dtype))
    made = results.shapes(arguments)
    for _ in made:
        parts.append(Made(len(template)))
        template.append(0)
    owned = results.owned() if makes_arrays() else None
    room, start = results.room, len(template)
    fresh = [Fresh(start + place, numpy_dtype(m.dtype), m.rank) for m, place in owned or ()]
    if room and not fresh:
        parts.append(Received())
    layout = _Layout(entry, tuple(template), room, tuple(parts), tuple(fresh), cache)
    call = layout.call()
    if call is None:
        return None
    return Direct(
        call,
        tuple(arguments[:num_extents]),
        made,
        0 if fresh else room,
        tuple(pack),
        results.can_fail,
        failure,
        results,
        layout,
        results.order() if fresh else None,
    )


def _packer(dtype: DType) -> Callable[[Any], bytes]:
    """Return what makes the two words of a scalar."""
    layout = struct.Struct(f"={scalar_format(dtype)}")
    kind = numpy_dtype(dtype)

    def packed(value: Any) -> bytes:
        words = scalar_words(value, kind)
        return layout.pack(*words) if isinstance(words, tuple) else layout.pack(words)

    return packed
