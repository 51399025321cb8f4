"""Loop expressions as Python expressions.

In: an ``Expr`` and the Python names of memrefs and variables. Out: a ``Node``. Every value has
exactly its dtype, except that int64 and float64 literals and extents stay plain numbers where the
other operand gives the dtype (``i + 1``): such an expression is *weak*, as NumPy calls it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.backends import _spellings
from sparsejit.backends._layout import Atom, Call, Conditional, Index, Infix, Node
from sparsejit.backends.support import f32_to_bf16, f64_to_f16
from sparsejit.ir import loops
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loops import (
    Binary,
    Cast,
    DimOf,
    Expr,
    Lit,
    Load,
    Memref,
    Search,
    Select,
    Unary,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType
from sparsejit.user_code import symbol_of

__all__ = ["ExpressionWriter", "Names", "constant", "expression", "typed"]

Names = Mapping[str, str]
"""The Python name of each memref and variable of a function."""


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _number(const: Const) -> Node:
    """The constant as a plain Python number."""
    match const.dtype:
        case DType.BOOL:
            return Atom(str(bool(const.value)))
        case DType.FLOAT16 | DType.BFLOAT16:
            return Atom(hex(_half_bits(float(_real(const)), const.dtype)))
        case DType.COMPLEX64 | DType.COMPLEX128:
            value = complex(const.value)
            parts = (Atom(_float_text(value.real)), Atom(_float_text(value.imag)))
            return Call("complex", parts)
        case DType.FLOAT32 | DType.FLOAT64:
            return Atom(_float_text(float(_real(const))))
        case _:
            return Atom(str(int(_real(const))))


def _half_bits(value: float, dtype: DType) -> int:
    with np.errstate(all="ignore"):
        if dtype is DType.FLOAT16:
            return int(f64_to_f16(np.float64(value)))
        return int(f32_to_bf16(np.float32(value)))


def _real(const: Const) -> bool | int | float:
    assert not isinstance(const.value, complex)
    return const.value


def constant(const: Const) -> Node:
    """Return a constant that has its dtype.

    >>> constant(Const(0.5, DType.FLOAT32))
    Call(function='float32', items=(Atom(text='0.5'),))
    """
    number = _number(const)
    if const.dtype is DType.BOOL:
        return number
    return Call(_spellings.constructor(const.dtype), (number,))


def _is_weak(expr: Expr) -> bool:
    match expr:
        case Lit(const):
            return const.dtype in (DType.INT64, DType.FLOAT64)
        case DimOf():
            return True
        case Select(_, then, orelse):
            return _is_weak(then) or _is_weak(orelse)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class ExpressionWriter:
    """Writes expressions over NumPy arrays, by the Python names of memrefs and variables.

    Another kind of memory overrides what an element, an extent and a search are.
    """

    names: Names

    def typed(self, expr: Expr) -> Node:
        """Return ``expr`` as a value of exactly its dtype."""
        node = self.expression(expr)
        if not _is_weak(expr):
            return node
        return Call(_spellings.constructor(expr_dtype(expr)), (node,))

    def expression(self, expr: Expr) -> Node:  # noqa: C901 - one case for each kind
        """Return ``expr`` as a Python expression; a weak one may be a plain Python number."""
        match expr:
            case Var(name, _):
                return Atom(self.names[name])
            case Lit(const):
                weak = const.dtype in (DType.INT64, DType.FLOAT64)
                return _number(const) if weak else constant(const)
            case Unary(op, operand, _):
                return _spellings.unary(op, self.typed(operand), expr_dtype(operand))
            case Binary():
                return self._binary(expr)
            case Select(condition, then, orelse):
                parts = (self.expression(part) for part in (condition, then, orelse))
                return Conditional(*parts)
            case Cast(operand, dtype):
                return _spellings.cast(self.typed(operand), expr_dtype(operand), dtype)
            case Load(memref, indices):
                return self.element(memref, indices)
            case DimOf(memref, axis):
                return self.extent(memref, axis)
            case Search():
                return self.search(expr)
            case loops.Call(function, operands):
                passed = tuple(map(self.typed, operands))
                return Call(self.names[symbol_of(function)], passed)
            case _:
                assert_never(expr)

    def element(self, memref: Memref, indices: tuple[Expr, ...]) -> Node:
        """Return ``memref[indices]`` as a value."""
        return self.place(memref, indices)

    def place(self, memref: Memref, indices: tuple[Expr, ...]) -> Index:
        """Return ``memref[indices]`` as what may be assigned."""
        return Index(self.names[memref.name], tuple(map(self.expression, indices)))

    def extent(self, memref: Memref, axis: int) -> Node:
        """Return the extent of ``memref`` along ``axis``."""
        return Atom(f"{self.names[memref.name]}.shape[{axis}]")

    def search(self, expr: Search) -> Node:
        """Return a call of the support library's search."""
        order = "search" if expr.ordered else "search_unordered"
        operands: list[Node] = [Atom(self.names[expr.coordinates.name])]
        operands += map(self.typed, (expr.lower, expr.upper, expr.key))
        if expr.column is None:
            return Call(order, tuple(operands))
        return Call(f"{order}_column", (*operands, Atom(str(expr.column))))

    def _binary(self, expr: Binary) -> Node:
        dtype = expr_dtype(expr.lhs)
        match expr:
            case Binary(BinaryOp.ADD, augend, Lit(Const(int() as value, DType.INT64)), _) if (
                -(2**62) < value < 0  # the negated literal stays an int64
            ):
                return Infix("-", self.typed(augend), Atom(str(-value)))
            case _:
                pass
        lhs, rhs = self.expression(expr.lhs), self.expression(expr.rhs)
        is_infix = _spellings.is_infix(expr.op)
        if not is_infix or (_is_weak(expr.lhs) and _is_weak(expr.rhs)):
            lhs = self.typed(expr.lhs)
        if not is_infix and not _spellings.is_positive_literal(rhs):
            rhs = self.typed(expr.rhs)
        return _spellings.binary(expr.op, lhs, rhs, dtype)


def typed(expr: Expr, names: Names) -> Node:
    """Return ``expr`` over NumPy arrays as a value of exactly its dtype."""
    return ExpressionWriter(names).typed(expr)


def expression(expr: Expr, names: Names) -> Node:
    """Return ``expr`` over NumPy arrays; a weak one may be a plain Python number.

    >>> i = Var("i", DType.INT64)
    >>> x = Memref("x", DType.FLOAT64, 1)
    >>> expression(Load(x, (i,)), {"x": "x", "i": "i"})
    Index(array='x', items=(Atom(text='i'),))
    """
    return ExpressionWriter(names).expression(expr)
