"""What a parallel loop adds up: a part for each chunk, put together in the order of the chunks.

Variables have a slot in a block for each chunk; of an array each chunk but the first has a copy of
its own, which starts from what changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.backends.llvm._arrays import Array, Layout, element_size
from sparsejit.backends.llvm._closure import SLOT
from sparsejit.backends.llvm._control import loop
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._text import Builder, Value, integer
from sparsejit.backends.llvm._types import in_register
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loops import Memref, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["add_copies", "add_sums", "array_bytes", "identity", "start_copies"]

_HERE, _THERE = Var("%here", DType.INT64), Var("%there", DType.INT64)


def identity(op: BinaryOp, dtype: DType) -> Const:
    """Return what changes nothing: of a sum of floats the zero that keeps the sign of others."""
    if op is BinaryOp.ADD and dtype.is_float:
        return Const(-0.0, dtype)
    found = identity_const(op, dtype)
    assert found is not None, op
    return found


def add_sums(
    e: Expressions, sums: Value, parts: Value, variables: Sequence[tuple[Var, BinaryOp]]
) -> None:
    """Add the numbers of all chunks to the variables."""
    if not variables:
        return
    b = e.builder

    def add(part: Value) -> None:
        own = b.offset(sums, b.mul(part, SLOT * len(variables)))
        for number, (var, op) in enumerate(variables):
            kind, slot = in_register(var.dtype), e.slots[var.name]
            found = b.load(b.offset(own, number * SLOT), kind, 8)
            b.store(e.arithmetic.binary(op, b.load(slot, kind, 8), found, var.dtype), slot, 8)

    loop(b, integer(0), parts, add)


def array_bytes(b: Builder, array: Array) -> Value:
    """Return the size of an array in bytes."""
    return b.mul(_elements(b, array), element_size(array.memref))


def _elements(b: Builder, array: Array) -> Value:
    count = integer(1)
    for axis in range(array.memref.rank):
        count = b.mul(count, array.extent(b, axis))
    return count


def _flat(array: Array, pointer: Value) -> Array:
    memref = Memref(array.memref.name, array.memref.dtype, 1)
    return Array(memref, Layout.CONTIGUOUS, pointer, (integer(0),))


def start_copies(e: Expressions, room: Value, array: Array, op: BinaryOp, count: Value) -> None:
    """Fill ``count`` copies of an array, one behind the other, with what changes nothing."""
    b, copies = e.builder, _flat(array, room)
    b.module.needs_optimizer = True
    start = e.constant(identity(op, array.memref.dtype))

    def put(at: Value) -> None:
        e.values[_THERE.name] = at
        e.store(copies, (_THERE,), start)

    loop(b, integer(0), b.mul(_elements(b, array), count), put)


def add_copies(e: Expressions, room: Value, array: Array, op: BinaryOp, count: Value) -> None:
    """Add ``count`` copies to the array."""
    b, dtype = e.builder, array.memref.dtype
    b.module.needs_optimizer = True
    copies, whole = _flat(array, room), _flat(array, array.pointer)
    elements = _elements(b, array)

    def add(part: Value) -> None:
        first = b.mul(part, elements)

        def element(at: Value) -> None:
            e.values[_HERE.name], e.values[_THERE.name] = at, b.add(first, at)
            place = e.place(whole, (_HERE,))
            there = e.load_at(copies, e.place(copies, (_THERE,)))
            e.store_at(whole, place, e.arithmetic.binary(op, e.load_at(whole, place), there, dtype))

        loop(b, integer(0), elements, element)

    loop(b, integer(0), count, add)
