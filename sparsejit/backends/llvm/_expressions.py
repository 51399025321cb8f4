"""Expressions of the loop IR as values in registers."""

from __future__ import annotations

from typing import assert_never

from llvmlite import ir

from sparsejit.backends.llvm._arithmetic import Arithmetic
from sparsejit.backends.llvm._arrays import Array, address
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._types import I64, constant, in_memory, in_register
from sparsejit.ir.loop_walk import all_expressions, expr_dtype
from sparsejit.ir.loops import (
    Binary,
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
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType

__all__ = ["Expressions"]

_NO_WRAP = {BinaryOp.ADD: "add", BinaryOp.SUB: "sub", BinaryOp.MUL: "mul"}


class Expressions:
    """Writes expressions through ``builder``; knows the variables and arrays in scope.

    ``values`` has variables that never change, ``slots`` the stack slots of those that do.
    """

    def __init__(self, builder: ir.IRBuilder, functions: Functions) -> None:
        self.builder = builder
        self.functions = functions
        self.arithmetic = Arithmetic(builder, functions)
        self.values: dict[str, ir.Value] = {}
        self.slots: dict[str, ir.Value] = {}
        self.arrays: dict[str, Array] = {}

    def value(self, expr: Expr, flags: tuple[str, ...] = ()) -> ir.Value:
        """Return ``expr`` in a register; ``flags`` are fast-math flags of its outermost sums."""
        b = self.builder
        match expr:
            case Var(name, dtype):
                if name in self.values:
                    return self.values[name]
                return b.load(self.slots[name], typ=in_register(dtype))
            case Lit(const):
                return constant(const)
            case Load(memref, indices):
                return self._load(self.arrays[memref.name], indices)
            case DimOf(memref, axis):
                return self.arrays[memref.name].extent(b, axis)
            case Unary(op, operand, _):
                return self.arithmetic.unary(op, self.value(operand), expr_dtype(operand))
            case Cast(operand, dtype):
                return self.arithmetic.cast(self.value(operand), expr_dtype(operand), dtype)
            case Binary():
                return self._binary(expr, flags)
            case Select():
                return self._select(expr)
            case Search():
                return self._search(expr)
            case _:
                assert_never(expr)

    def _load(self, array: Array, indices: tuple[Expr, ...]) -> ir.Value:
        where = address(self.builder, array, [self.value(index) for index in indices])
        dtype = array.memref.dtype
        loaded = self.builder.load(where, typ=in_memory(dtype), align=max(dtype.real.bits // 8, 1))
        if dtype is DType.BOOL:
            return self.builder.icmp_unsigned("!=", loaded, ir.Constant(loaded.type, 0))
        return loaded

    def store(self, array: Array, indices: tuple[Expr, ...], value: ir.Value) -> None:
        """Store ``value`` (in a register, of the array's dtype) in an element."""
        where = address(self.builder, array, [self.value(index) for index in indices])
        dtype = array.memref.dtype
        if dtype is DType.BOOL:
            value = self.builder.zext(value, in_memory(dtype))
        self.builder.store(value, where, align=max(dtype.real.bits // 8, 1))

    def _binary(self, expr: Binary, flags: tuple[str, ...]) -> ir.Value:
        dtype = expr_dtype(expr.lhs)
        lhs, rhs = self.value(expr.lhs, flags), self.value(expr.rhs, flags)
        if dtype is INDEX and expr.op in _NO_WRAP and _is_index(expr):
            return getattr(self.builder, _NO_WRAP[expr.op])(lhs, rhs, flags=("nsw",))
        return self.arithmetic.binary(expr.op, lhs, rhs, dtype, flags)

    def _select(self, expr: Select) -> ir.Value:
        """Choose; sides that load are evaluated in a block of their own, others on both ways."""
        b = self.builder
        condition = self.value(expr.condition)
        sides = (expr.then, expr.orelse)
        if not any(isinstance(i, Load | Search) for side in sides for i in all_expressions(side)):
            return b.select(condition, self.value(expr.then), self.value(expr.orelse))
        then, orelse = b.append_basic_block("then"), b.append_basic_block("orelse")
        end = b.append_basic_block("chosen")
        b.cbranch(condition, then, orelse)
        incoming = []
        for block, side in zip((then, orelse), sides, strict=True):
            b.position_at_end(block)
            value = self.value(side)
            incoming.append((value, b.block))
            b.branch(end)
        b.position_at_end(end)
        chosen = b.phi(incoming[0][0].type)
        for value, block in incoming:
            chosen.add_incoming(value, block)
        return chosen

    def _search(self, expr: Search) -> ir.Value:
        b = self.builder
        array = self.arrays[expr.coordinates.name]
        dtype = array.memref.dtype
        function = self.functions.search(
            in_memory(dtype),
            dtype.is_signed_integer,
            expr.ordered,  # type: ignore[arg-type]
        )
        data = array.data(b)
        if expr.column is not None:
            offset = b.mul(array.stride(b, 1), ir.Constant(I64, expr.column))
            data = b.gep(data, [offset], source_etype=ir.IntType(8))
        bounds = [self.value(part) for part in (expr.lower, expr.upper, expr.key)]
        return b.call(function, [data, array.stride(b, 0), *bounds])


def _is_index(expr: Binary) -> bool:
    """Whether an int64 operation is index arithmetic, which never wraps.

    Elements of int64 tensors may wrap; an expression over loads of int64 values is not known to be
    an index, one over variables, constants and extents is.
    """
    return not any(
        isinstance(inner, Load) and inner.memref.dtype is INDEX for inner in all_expressions(expr)
    )
