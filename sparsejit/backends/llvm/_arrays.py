"""Memrefs in generated code: where pointer, extents and strides are, and addresses of elements.

Those of an array that grows are in stack slots (which LLVM turns into registers), those of all
others are values. An array is contiguous, or has strides; then neighbors along its last axis may
still be known to lie side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._text import Builder, Value, integer
from sparsejit.backends.llvm._types import alignment, in_memory
from sparsejit.ir.loops import Memref, View

__all__ = ["Array", "Layout", "address", "element_size", "one_of", "view_of"]


class Layout(Enum):
    """What is known of the strides of an array when code is generated for it."""

    CONTIGUOUS = "c"
    UNIT = "u"
    """Elements of the last axis lie side by side."""
    STRIDED = "s"
    """Nothing; elements may also lie at any address."""


@dataclass(frozen=True, slots=True)
class Array:
    """``pointer``, ``extents`` and ``strides`` (bytes; empty when contiguous) of ``memref``.

    ``in_slots``: pointer and extents are addresses of stack slots rather than values.
    """

    memref: Memref
    layout: Layout
    pointer: Value
    extents: tuple[Value, ...]
    strides: tuple[Value, ...] = ()
    in_slots: bool = False

    @property
    def align(self) -> int:
        """The alignment of the elements."""
        return 1 if self.layout is Layout.STRIDED else alignment(self.memref.dtype)

    @property
    def is_unit(self) -> bool:
        """Whether the elements of the last axis lie side by side."""
        return self.layout is not Layout.STRIDED and self.memref.rank > 0

    def data(self, b: Builder) -> Value:
        """Return the address of the first element."""
        return b.load(self.pointer, "ptr", 8) if self.in_slots else self.pointer

    def extent(self, b: Builder, axis: int) -> Value:
        """Return the extent along ``axis``."""
        value = self.extents[axis]
        return b.load(value, "i64", 8) if self.in_slots else value

    def stride(self, b: Builder, axis: int) -> Value:
        """Return the distance in bytes between neighbors along ``axis``."""
        if self.layout is not Layout.CONTIGUOUS:
            return self.strides[axis]
        size = integer(element_size(self.memref))
        for later in range(axis + 1, self.memref.rank):
            size = b.mul(self.extent(b, later), size)
        return size


def element_size(memref: Memref) -> int:
    """Return the size of an element in bytes."""
    return memref.dtype.bits // 8


def address(b: Builder, array: Array, indices: Sequence[Value]) -> Value:
    """Return the address of an element; of several, where indices are vectors."""
    data = array.data(b)
    if not indices:
        return data
    element = in_memory(array.memref.dtype)
    if array.layout is Layout.CONTIGUOUS:
        place = indices[0]
        for axis in range(1, len(indices)):
            place = b.add(b.mul(place, array.extent(b, axis)), indices[axis])
        return b.offset(data, place, element)
    outer = indices[:-1] if array.layout is Layout.UNIT else indices
    for axis, index in enumerate(outer):
        data = b.offset(data, b.mul(index, array.stride(b, axis)))
    return data if array.layout is Layout.STRIDED else b.offset(data, indices[-1], element)


def view_of(
    b: Builder, source: Array, stmt: View, offsets: Sequence[Value], sizes: Sequence[Value]
) -> Array:
    """Return the part of an array that a view shows."""
    pointer = source.data(b)
    extents: list[Value] = []
    strides: list[Value] = []
    for axis in range(stmt.source.rank):
        stride = source.stride(b, axis)
        pointer = b.offset(pointer, b.mul(offsets[axis], stride))
        if axis not in stmt.dropped:
            extents.append(sizes[axis])
            strides.append(b.mul(stride, stmt.strides[axis]))
    last = stmt.source.rank - 1
    keeps_unit = last >= 0 and last not in stmt.dropped and stmt.strides[last] == 1
    layout = Layout.UNIT if keeps_unit and source.is_unit else Layout.STRIDED
    return Array(stmt.memref, layout, pointer, tuple(extents), tuple(strides))


def one_of(b: Builder, memref: Memref, condition: Value, then: Array, orelse: Array) -> Array:
    """Return ``then`` where a condition holds, else ``orelse``, as ``memref``."""
    arrays, axes = (then, orelse), range(memref.rank)

    def chosen(one: Value, other: Value) -> Value:
        return b.select(condition, one, other)

    pointer = chosen(then.data(b), orelse.data(b))
    extents = tuple(chosen(then.extent(b, axis), orelse.extent(b, axis)) for axis in axes)
    strides = tuple(chosen(then.stride(b, axis), orelse.stride(b, axis)) for axis in axes)
    layout = Layout.UNIT if all(array.is_unit for array in arrays) else Layout.STRIDED
    return Array(memref, layout, pointer, extents, strides)
