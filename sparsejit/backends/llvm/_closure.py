"""What the body of a parallel loop uses from outside, and the block of memory that carries it.

In: the values and arrays of a function that is being written. Out: the same values in another
function, as its parameters or loaded from a block.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import Array
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._text import Builder, Value

__all__ = ["SLOT", "Captures", "Closure"]

SLOT = 16
"""The bytes of a value in a closure: a complex number fits."""


@dataclass(frozen=True, slots=True)
class Captures:
    """What a body uses from outside; constants stay constants."""

    values: tuple[tuple[str, Value], ...]
    arrays: tuple[Array, ...]

    def flat(self) -> list[Value]:
        """Return all values that are no constants."""
        return [value for value in self._all() if value.known is None]

    def _all(self) -> Iterator[Value]:
        yield from (value for _, value in self.values)
        for array in self.arrays:
            yield from (array.pointer, *array.extents, *array.strides)

    def with_flat(self, flat: Sequence[Value]) -> Captures:
        """Return the same with other values in the place of ``flat()``."""
        given = iter(flat)

        def new(value: Value) -> Value:
            return next(given) if value.known is None else value

        values = tuple((name, new(value)) for name, value in self.values)
        return Captures(values, tuple(_with_values(array, new) for array in self.arrays))

    def into(self, expressions: Expressions) -> None:
        """Make all of it known to an expression printer."""
        expressions.values.update(self.values)
        expressions.arrays.update((array.memref.name, array) for array in self.arrays)

    def pointer(self, name: str) -> Value:
        """Return the pointer of an array."""
        return next(array.pointer for array in self.arrays if array.memref.name == name)

    def moved(self, name: str, pointer: Value) -> Captures:
        """Return the same with another pointer of one array."""
        arrays = tuple(
            replace(array, pointer=pointer) if array.memref.name == name else array
            for array in self.arrays
        )
        return replace(self, arrays=arrays)

    def pointers(self) -> list[str | None]:
        """Return for each value of ``flat`` the array whose pointer it is, None for another one."""
        names: list[str | None] = [None for _, value in self.values if value.known is None]
        for array in self.arrays:
            rest = (*array.extents, *array.strides)
            names += [array.memref.name, *(None for value in rest if value.known is None)]
        return names


class Closure:
    """A block of memory with captures and further values by name, each in a slot of its own."""

    def __init__(self, captures: Captures, named: dict[str, str]) -> None:
        self._captures = captures
        self._flat = captures.flat()
        self._kinds = named
        self._places = {name: len(self._flat) + number for number, name in enumerate(named)}

    @property
    def size(self) -> int:
        """The bytes of the block."""
        return SLOT * (len(self._flat) + len(self._kinds))

    def fill(self, b: Builder, block: Value, named: dict[str, Value]) -> None:
        """Put everything into the block."""
        for place, value in enumerate((*self._flat, *(named[name] for name in self._kinds))):
            b.store(value, b.offset(block, place * SLOT), 8)

    def captures(self, b: Builder, block: Value) -> Captures:
        """Return the captures as they are in the block."""
        return self._captures.with_flat(
            [
                b.load(b.offset(block, place * SLOT), value.type, 8)
                for place, value in enumerate(self._flat)
            ]
        )

    def arrays(self, b: Builder, block: Value, names: Container[str]) -> Captures:
        """Return the arrays of these names as they are in the block, and nothing else of it."""
        places = {value.text: place for place, value in enumerate(self._flat)}

        def read(value: Value) -> Value:
            if value.known is not None:
                return value
            return b.load(b.offset(block, places[value.text] * SLOT), value.type, 8)

        wanted = (array for array in self._captures.arrays if array.memref.name in names)
        return Captures((), tuple(_with_values(array, read) for array in wanted))

    def read(self, b: Builder, block: Value, *names: str) -> list[Value]:
        """Return further values as they are in the block."""
        return [
            b.load(b.offset(block, self._places[name] * SLOT), self._kinds[name], 8)
            for name in names
        ]


def _with_values(array: Array, of: Callable[[Value], Value]) -> Array:
    """Return an array with other values: ``of`` those that it has."""
    return replace(
        array,
        pointer=of(array.pointer),
        extents=tuple(map(of, array.extents)),
        strides=tuple(map(of, array.strides)),
    )
