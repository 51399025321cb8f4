"""Memrefs in generated code: where pointer, extents and strides are, and addresses of elements.

A parameter's are arguments of the function; those of an array that the function makes are in stack
slots, since an array may grow or be made in one of two branches (LLVM turns slots into registers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from sparsejit.backends.llvm._types import I64, in_memory
from sparsejit.ir.loops import Memref

__all__ = ["Array", "address", "slots_for"]

I8 = ir.IntType(8)


@dataclass(frozen=True, slots=True)
class Array:
    """``pointer``, ``extents`` and ``strides`` (bytes; None when contiguous) of ``memref``.

    ``in_slots``: they are addresses of stack slots rather than values.
    """

    memref: Memref
    pointer: ir.Value
    extents: tuple[ir.Value, ...]
    strides: tuple[ir.Value, ...] | None
    in_slots: bool

    def data(self, builder: ir.IRBuilder) -> ir.Value:
        """Return the address of the first element."""
        if not self.in_slots:
            return self.pointer
        return builder.load(self.pointer, typ=ir.PointerType())

    def extent(self, builder: ir.IRBuilder, axis: int) -> ir.Value:
        """Return the extent along ``axis``."""
        value = self.extents[axis]
        return builder.load(value, typ=I64) if self.in_slots else value

    def stride(self, builder: ir.IRBuilder, axis: int) -> ir.Value:
        """Return the distance in bytes between neighbors along ``axis``."""
        if self.strides is not None:
            value = self.strides[axis]
            return builder.load(value, typ=I64) if self.in_slots else value
        size = ir.Constant(I64, element_size(self.memref))
        for later in range(axis + 1, self.memref.rank):
            size = builder.mul(size, self.extent(builder, later))
        return size


def element_size(memref: Memref) -> int:
    """Return the size of an element in bytes."""
    return memref.dtype.bits // 8


def slots_for(builder: ir.IRBuilder, memref: Memref, *, strided: bool) -> Array:
    """Return an array in new stack slots of the function that ``builder`` is in."""
    with builder.goto_entry_block():
        pointer = builder.alloca(ir.PointerType())
        extents = tuple(builder.alloca(I64) for _ in range(memref.rank))
        strides = tuple(builder.alloca(I64) for _ in range(memref.rank)) if strided else None
    return Array(memref, pointer, extents, strides, in_slots=True)


def address(builder: ir.IRBuilder, array: Array, indices: Sequence[ir.Value]) -> ir.Value:
    """Return the address of an element."""
    data = array.data(builder)
    if not indices:
        return data
    element = in_memory(array.memref.dtype)
    if array.strides is None:
        offset = indices[0]
        for axis in range(1, len(indices)):
            scaled = builder.mul(offset, array.extent(builder, axis), flags=("nsw",))
            offset = builder.add(scaled, indices[axis], flags=("nsw",))
        return builder.gep(data, [offset], inbounds=True, source_etype=element)
    offset = builder.mul(indices[0], array.stride(builder, 0), flags=("nsw",))
    for axis in range(1, len(indices)):
        step = builder.mul(indices[axis], array.stride(builder, axis), flags=("nsw",))
        offset = builder.add(offset, step, flags=("nsw",))
    return builder.gep(data, [offset], inbounds=True, source_etype=I8)
