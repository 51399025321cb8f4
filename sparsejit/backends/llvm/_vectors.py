"""Expressions of an inner loop as vectors: neighboring passes side by side.

In: an expression, and where its loop's variable stands: at ``base`` in the first lane of a strip of
``count`` vectors. Out: its value for one vector of the strip: a vector where it depends on the
variable, else a scalar, which is computed once. Lanes under a false mask load nothing. Where an
index is a vector other than of neighbors, each lane loads from a place of its own.
"""

from __future__ import annotations

from dataclasses import field
from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import Array, address
from sparsejit.backends.llvm._expressions import Expressions
from sparsejit.backends.llvm._text import Value, integer, lanes_of, scalar_of, vector_of
from sparsejit.backends.llvm._types import in_memory
from sparsejit.backends.llvm._vector_forms import depends, is_row
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loops import (
    Binary,
    Call,
    Cast,
    DimOf,
    Expr,
    Lit,
    Load,
    Search,
    Select,
    Store,
    Unary,
    Var,
)
from sparsejit.ir.types import DType

__all__ = ["Strip", "iota"]


def iota(lanes: int) -> Value:
    """Return the vector 0, 1, 2, ... of indices."""
    return Value(vector_of("i64", lanes), f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>")


@dataclass(slots=True)
class Strip:
    """``masks`` has one for each vector, None for a whole one.

    ``names`` are the variables that differ between lanes: that of the loop, and values made of it.
    """

    expressions: Expressions
    variable: str
    base: Value
    lanes: int
    masks: tuple[Value | None, ...]
    names: set[str] = field(default_factory=set)
    _vectors: dict[tuple[str, int], Value] = field(default_factory=dict)
    _scalars: dict[Expr, Value] = field(default_factory=dict)
    _places: dict[Load, Value] = field(default_factory=dict)
    _stored: dict[tuple[Load, int], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.add(self.variable)

    def define(self, var: Var, value: Expr) -> None:
        """Introduce a variable of the inner loop."""
        if depends(value, self.names):
            for number in range(len(self.masks)):
                self._vectors[var.name, number] = self.value(value, number)
            self.names.add(var.name)
        else:
            self.expressions.values[var.name] = self.value(value, 0)

    def store(self, stmt: Store) -> None:
        """Store neighboring elements, one for each pass; loads of them give what was stored."""
        element = Load(stmt.memref, stmt.indices)
        for number in range(len(self.masks)):
            value = self.vector(stmt.value, number)
            self.store_at(*self._place(element), number, value)
            self._stored[element, number] = value

    def value(self, expr: Expr, number: int, flags: str = "") -> Value:
        """Return the value of ``expr`` in the vector ``number`` of the strip."""
        if not depends(expr, self.names):
            if expr not in self._scalars:
                self._scalars[expr] = self.expressions.value(expr, flags)
            return self._scalars[expr]
        arithmetic = self.expressions.arithmetic
        match expr:
            case Var(name, _):
                return self._variable(name, number)
            case Load():
                return self._load(expr, number)
            case Unary(op, operand, _):
                return arithmetic.unary(op, self.value(operand, number), expr_dtype(operand))
            case Cast(operand, dtype):
                return arithmetic.cast(self.value(operand, number), expr_dtype(operand), dtype)
            case Binary(op, lhs, rhs, _):
                left, right = self.vector(lhs, number, flags), self.vector(rhs, number, flags)
                return arithmetic.binary(op, left, right, expr_dtype(lhs), flags)
            case Select(condition, then, orelse):
                parts = [self.vector(part, number) for part in (condition, then, orelse)]
                return self.expressions.builder.select(*parts)
            case Lit() | DimOf() | Search() | Call():
                raise AssertionError(f"{expr} is no expression of vectors")
            case _:
                assert_never(expr)

    def vector(self, expr: Expr, number: int, flags: str = "") -> Value:
        """Return the value of ``expr`` as a vector, also where all lanes are the same."""
        value = self.value(expr, number, flags)
        is_vector = lanes_of(value.type) == self.lanes
        return value if is_vector else self.expressions.builder.splat(value, self.lanes)

    def _variable(self, name: str, number: int) -> Value:
        if name != self.variable:
            return self._vectors[name, number]
        b = self.expressions.builder
        start = b.splat(b.add(self.base, number * self.lanes), self.lanes)
        return b.op("add", start, iota(self.lanes))

    def _load(self, expr: Load, number: int) -> Value:
        if (expr, number) in self._stored:
            return self._stored[expr, number]
        if not is_row(expr, self.variable, self.names):
            return self._gather(expr, number)
        return self.load_at(*self._place(expr), number)

    def _place(self, expr: Load) -> tuple[Array, Value]:
        """Return an array, and the address of the element of the first pass."""
        array = self.expressions.arrays[expr.memref.name]
        if expr not in self._places:
            self.expressions.values[self.variable] = self.base
            self._places[expr] = self.expressions.place(array, expr.indices)
        return array, self._places[expr]

    def _gather(self, expr: Load, number: int) -> Value:
        """Return elements that lie at a place of its own each."""
        b = self.expressions.builder
        array = self.expressions.arrays[expr.memref.name]
        indices = [self.value(index, number) for index in expr.indices]
        where = address(b, array, indices)
        kind = vector_of(in_memory(array.memref.dtype), self.lanes)
        callee = self.expressions.functions.intrinsic(
            f"llvm.masked.gather.{_suffix(kind)}.v{self.lanes}p0",
            *(kind, where.type, "i32", vector_of("i1", self.lanes), kind),
        )
        mask = self.masks[number] or Value(vector_of("i1", self.lanes), "splat (i1 true)")
        zero = Value(kind, "zeroinitializer")
        return b.call(callee, [where, integer(array.align, "i32"), mask, zero])

    def load_at(self, array: Array, first: Value, number: int) -> Value:
        """Return a vector of neighboring elements, ``number`` vectors behind ``first``."""
        b = self.expressions.builder
        dtype = array.memref.dtype
        element = in_memory(dtype)
        kind = vector_of(element, self.lanes)
        where = b.offset(first, number * self.lanes, element)
        mask = self.masks[number]
        if mask is None:
            loaded = b.load(where, kind, array.align)
        else:
            callee = self.expressions.functions.intrinsic(
                f"llvm.masked.load.{_suffix(kind)}.p0", kind, "ptr", "i32", mask.type, kind
            )
            zero = Value(kind, "zeroinitializer")
            loaded = b.call(callee, [where, integer(array.align, "i32"), mask, zero])
        if dtype is DType.BOOL:
            return b.compare("ne", loaded, Value(kind, "zeroinitializer"))
        return loaded

    def store_at(self, array: Array, first: Value, number: int, value: Value) -> None:
        """Store a vector of neighboring elements, ``number`` vectors behind ``first``."""
        b = self.expressions.builder
        dtype = array.memref.dtype
        element = in_memory(dtype)
        kind = vector_of(element, self.lanes)
        if dtype is DType.BOOL:
            value = b.cast("zext", value, kind)
        where = b.offset(first, number * self.lanes, element)
        mask = self.masks[number]
        if mask is None:
            b.store(value, where, array.align)
            return
        callee = self.expressions.functions.intrinsic(
            f"llvm.masked.store.{_suffix(kind)}.p0", "void", kind, "ptr", "i32", mask.type
        )
        b.call(callee, [value, where, integer(array.align, "i32"), mask])


def _suffix(kind: str) -> str:
    """The name of a vector type in the names of intrinsics: ``v4f64``."""
    element = scalar_of(kind)
    short = {"double": "f64", "float": "f32"}.get(element, element)
    return f"v{lanes_of(kind)}{short}"
