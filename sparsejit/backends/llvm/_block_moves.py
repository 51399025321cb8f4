"""Loops that fill neighbors with zeros, or copy them, as calls of the C library.

In: a loop whose passes store a zero, or an element of another array, side by side. Out: one call,
which LLVM would make of the loop as well, after many passes over it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparsejit.backends.llvm._arrays import Array, Layout, address, element_size
from sparsejit.backends.llvm._control import loop
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._text import Builder, Value, integer
from sparsejit.ir.fold import zero_of
from sparsejit.ir.loop_writing import int_
from sparsejit.ir.loops import Binary, Expr, For, Lit, Load, Memref, Store, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const

__all__ = ["fill", "is_moved", "move"]


def is_moved(stmt: For, units: frozenset[str], roots: Mapping[str, str]) -> bool:
    """Whether a loop is a call of the C library.

    ``units`` are the arrays whose neighbors lie side by side; ``roots`` name the array whose memory
    a view shows.
    """
    match stmt.body:
        case (Store(target, indices, Lit(const), None),):
            is_known = const == zero_of(target.dtype)
            return is_known and _are_neighbors(target, indices, stmt.var, units)
        case (Store(target, indices, Load(source, places), None),):
            one, other = (roots.get(memref.name, memref.name) for memref in (target, source))
            return (
                one != other
                and target.dtype is source.dtype
                and _are_neighbors(target, indices, stmt.var, units)
                and _are_neighbors(source, places, stmt.var, units)
            )
        case _:
            return False


def _are_neighbors(
    memref: Memref, indices: tuple[Expr, ...], var: Var, units: frozenset[str]
) -> bool:
    *outer, last = indices or (int_(0),)
    match last:
        case Binary(BinaryOp.ADD, first, step) if step == var:
            outer.append(first)
        case _ if last != var:
            return False
    are_fixed = all(isinstance(index, Var | Lit) and index != var for index in outer)
    return are_fixed and memref.name in units


def move(e: Expressions, stmt: For, lower: Value, upper: Value) -> None:
    """Write a loop that ``is_moved``."""
    b = e.builder
    (store,) = stmt.body
    assert isinstance(store, Store)
    count = b.op("sub", upper, lower)
    count = b.select(b.compare("slt", lower, upper), count, integer(0))
    e.values[stmt.var.name] = lower
    target = e.place(e.arrays[store.memref.name], store.indices)
    size = b.mul(count, element_size(store.memref))
    if not isinstance(store.value, Load):
        _clear(b, target, size)
        return
    source = e.place(e.arrays[store.value.memref.name], store.value.indices)
    copy = b.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])
    b.call(copy, [target, source, size, integer(0, "i1")])


def fill(e: Expressions, array: Array, const: Const) -> None:
    """Write ``const`` to all elements of a contiguous array."""
    b, memref = e.builder, array.memref
    count = integer(1)
    for extent in array.extents:
        count = b.mul(count, extent)
    if const == zero_of(memref.dtype):
        _clear(b, array.pointer, b.mul(count, element_size(memref)))
        return
    b.module.needs_optimizer = True
    value = e.constant(const)
    flat = Array(Memref(memref.name, memref.dtype, 1), Layout.CONTIGUOUS, array.pointer, (count,))
    loop(b, integer(0), count, lambda at: e.store_at(flat, address(b, flat, [at]), value))


def _clear(b: Builder, where: Value, size: Value) -> None:
    """Write zeros to ``size`` bytes."""
    fill = b.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
    b.call(fill, [where, integer(0, "i8"), size, integer(0, "i1")])
