"""Expressions of the loop IR as values in registers."""

from __future__ import annotations

from typing import assert_never

from sparsejit.backends.llvm._arithmetic import Arithmetic
from sparsejit.backends.llvm._arrays import Array, address
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._text import Builder, Value, integer
from sparsejit.backends.llvm._types import constant, half_constant, in_memory, in_register
from sparsejit.backends.llvm._user_calls import UserCalls
from sparsejit.ir.loop_walk import all_expressions, expr_dtype
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
    Unary,
    Var,
)
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["Expressions"]


class Expressions:
    """Writes expressions through ``builder``; knows the variables and arrays in scope.

    ``values`` has variables that never change, ``slots`` the stack slots of those that do.
    """

    def __init__(self, builder: Builder, functions: Functions) -> None:
        self.builder = builder
        self.functions = functions
        self.arithmetic = Arithmetic(builder, functions)
        self.calls = UserCalls(builder, functions)
        self.values: dict[str, Value] = {}
        self.slots: dict[str, Value] = {}
        self.arrays: dict[str, Array] = {}

    def value(self, expr: Expr, flags: str = "") -> Value:  # noqa: C901 - one case for each kind
        """Return ``expr`` in a register; ``flags`` are fast-math flags of its outermost sums."""
        b = self.builder
        match expr:
            case Var(name, dtype):
                if name in self.values:
                    return self.values[name]
                return b.load(self.slots[name], in_register(dtype), 8)
            case Lit(const):
                return self.constant(const)
            case Load(memref, indices):
                return self._load(self.arrays[memref.name], indices)
            case DimOf(memref, axis):
                return self.arrays[memref.name].extent(b, axis)
            case Unary(op, operand, _):
                return self.arithmetic.unary(op, self.value(operand), expr_dtype(operand))
            case Cast(operand, dtype):
                return self.arithmetic.cast(self.value(operand), expr_dtype(operand), dtype)
            case Binary(op, lhs, rhs, _):
                sides = self.value(lhs, flags), self.value(rhs, flags)
                return self.arithmetic.binary(op, *sides, expr_dtype(lhs), flags)
            case Select():
                return self._select(expr)
            case Search():
                return self._search(expr)
            case Call(function, operands):
                return self.calls.value(function, [self.value(operand) for operand in operands])
            case _:
                assert_never(expr)

    def constant(self, const: Const) -> Value:
        """Return a constant of any dtype."""
        return constant(const) if const.dtype is const.dtype.compute else half_constant(const)

    @property
    def units(self) -> frozenset[str]:
        """The arrays whose neighbors along the last axis lie side by side."""
        return frozenset(name for name, array in self.arrays.items() if array.is_unit)

    def place(self, array: Array, indices: tuple[Expr, ...]) -> Value:
        """Return the address of an element."""
        return address(self.builder, array, [self.value(index) for index in indices])

    def _load(self, array: Array, indices: tuple[Expr, ...]) -> Value:
        return self.load_at(array, self.place(array, indices))

    def load_at(self, array: Array, where: Value) -> Value:
        """Return the element of an array that lies at an address."""
        dtype = array.memref.dtype
        loaded = self.builder.load(where, in_memory(dtype), array.align)
        if dtype is DType.BOOL:
            return self.builder.compare("ne", loaded, integer(0, "i8"))
        return loaded

    def store(self, array: Array, indices: tuple[Expr, ...], value: Value) -> None:
        """Store ``value`` (in a register, of the array's dtype) in an element."""
        self.store_at(array, self.place(array, indices), value)

    def store_at(self, array: Array, where: Value, value: Value) -> None:
        """Store ``value`` in the element of an array that lies at an address."""
        if array.memref.dtype is DType.BOOL:
            value = self.builder.cast("zext", value, "i8")
        self.builder.store(value, where, array.align)

    def _select(self, expr: Select) -> Value:
        """Choose; a side that loads or calls has its own block, others are computed both ways."""
        b = self.builder
        condition = self.value(expr.condition)
        sides = (expr.then, expr.orelse)
        if not any(
            isinstance(inner, Load | Search | Call)
            for side in sides
            for inner in all_expressions(side)
        ):
            return b.select(condition, self.value(expr.then), self.value(expr.orelse))
        then, orelse, end = b.new_block("then"), b.new_block("orelse"), b.new_block("chosen")
        b.branch_if(condition, then, orelse)
        incoming = []
        for block, side in zip((then, orelse), sides, strict=True):
            b.place(block)
            value = self.value(side)
            incoming.append((value, b.block))
            b.branch(end)
        b.place(end)
        chosen = b.phi(incoming[0][0].type)
        for value, block in incoming:
            chosen.add(value, block)
        return chosen.value

    def _search(self, expr: Search) -> Value:
        b = self.builder
        array = self.arrays[expr.coordinates.name]
        dtype = array.memref.dtype
        function = self.functions.search(
            in_memory(dtype), is_signed=dtype.is_signed_integer, ordered=expr.ordered
        )
        data = array.data(b)
        if expr.column is not None:
            data = b.offset(data, b.mul(array.stride(b, 1), expr.column))
        bounds = [self.value(part) for part in (expr.lower, expr.upper, expr.key)]
        return b.call(function, [data, array.stride(b, 0), *bounds])
