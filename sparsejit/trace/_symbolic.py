"""``SymbolicInt``: an extent as a Python number.

``A.shape[k]`` can be added, multiplied and used as an extent without fixing it. Where Python needs
the number itself (``int()``, ``range``, a comparison, a branch), the extent becomes a constant of
the trace, and a fact says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from sparsejit.affine import (
    Add,
    AffineExpr,
    Constant,
    Dim,
    FloorDiv,
    Mod,
    Mul,
    add,
    floordiv,
    mod,
    mul,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import INDEX
from sparsejit.trace._context import Trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._extents import counts, difference, tidy
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, binary, constant_of, of_value

__all__ = ["SymbolicInt", "as_extent", "extent_value", "symbolic"]


class SymbolicInt:
    """An integer that is an expression over the extents of the operands.

    ``+ - *`` with integers and other extents, and ``//`` and ``%`` by a positive constant, stay
    symbolic; everything else takes the number, which makes the extent static.
    """

    __slots__ = ("_trace", "expr")

    def __init__(self, trace: Trace, expr: AffineExpr) -> None:
        self._trace = trace
        self.expr = expr

    def _number(self, what: str) -> int:
        return self._trace.pin(self.expr, what)

    def __index__(self) -> int:
        return self._number("int()")

    __int__ = __index__

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __bool__(self) -> bool:
        return bool(self._number("a branch"))

    def __hash__(self) -> int:
        return hash(self._number("hash()"))

    def __repr__(self) -> str:
        return repr(self._number("printing"))

    def _compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        """Compare the number, which makes the extent static; a loop's counter gives a value."""
        if counts(self.expr) or (isinstance(other, SymbolicInt) and counts(other.expr)):
            return compare(self._value, other)
        return compare(self._number("a comparison"), _plain(other))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, SymbolicInt) and self._trace.extents.same(self.expr, other.expr):
            return True
        if isinstance(other, SymbolicInt | int | float):
            return self._compared(operator.eq, other)
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        if isinstance(other, SymbolicInt) and self._trace.extents.same(self.expr, other.expr):
            return False
        if isinstance(other, SymbolicInt | int | float):
            return self._compared(operator.ne, other)
        return NotImplemented

    def __lt__(self, other: SymbolicInt | float) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: SymbolicInt | float) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: SymbolicInt | float) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: SymbolicInt | float) -> Any:
        return self._compared(operator.ge, other)

    # ------------------------------------------------------------ arithmetic

    def _made(self, expr: AffineExpr) -> SymbolicInt | int:
        return symbolic(self._trace, expr)

    @property
    def _value(self) -> Any:
        """The run-time value, an array of rank 0 with the operators of arrays."""
        return self._trace.pointwise(extent_value(self._trace, self.expr), ())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        values = [i._value if isinstance(i, SymbolicInt) else i for i in inputs]
        return getattr(ufunc, method)(*values, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._number("np.asarray"), dtype)

    def __truediv__(self, other: object) -> Any:
        if (
            isinstance(other, int) and other == 1 and not counts(self.expr)
        ):  # np.arange(n) asks for the float n / 1
            return float(self._number("a division by 1"))
        return self._value / other if _is_number(other) else NotImplemented

    def __rtruediv__(self, other: object) -> Any:
        return other / self._value if _is_number(other) else NotImplemented

    def __pow__(self, other: object) -> Any:
        return self._value**other if _is_number(other) else NotImplemented

    def __rpow__(self, other: object) -> Any:
        return other**self._value if _is_number(other) else NotImplemented

    def __add__(self, other: object) -> Any:
        expr = as_extent(other)
        if expr is None:
            return self._value + other if _is_number(other) else NotImplemented
        return self._made(tidy(add(self.expr, expr)))

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        expr = as_extent(other)
        if expr is None:
            return self._value - other if _is_number(other) else NotImplemented
        return self._made(difference(self.expr, expr))

    def __rsub__(self, other: object) -> Any:
        expr = as_extent(other)
        if expr is None:
            return other - self._value if _is_number(other) else NotImplemented
        return self._made(difference(expr, self.expr))

    def __neg__(self) -> SymbolicInt | int:
        return self._made(tidy(mul(Constant(-1), self.expr)))

    def __mul__(self, other: object) -> Any:
        expr = as_extent(other)
        if expr is None:
            return self._value * other if _is_number(other) else NotImplemented
        return self._made(tidy(mul(self.expr, expr)))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> SymbolicInt | int:
        if isinstance(other, int) and not isinstance(other, bool) and other > 0:
            return self._made(floordiv(self.expr, other))
        if isinstance(other, SymbolicInt | int):
            return self._number("division") // int(other)
        return NotImplemented

    def __mod__(self, other: object) -> SymbolicInt | int:
        if isinstance(other, int) and not isinstance(other, bool) and other > 0:
            return self._made(mod(self.expr, other))
        if isinstance(other, SymbolicInt | int):
            return self._number("division") % int(other)
        return NotImplemented


def extent_value(trace: Trace, extent: AffineExpr) -> Pointwise:
    """Return an extent as a run-time value: an int64 that is weak, as Python's integers are."""

    def walk(expr: AffineExpr) -> Pointwise:
        match expr:
            case Constant(value):
                return Pointwise(Const(value, INDEX), (), INDEX)
            case Dim():
                return of_value(_counted(trace, expr))
            case Add(lhs, rhs):
                return binary(BinaryOp.ADD, walk(lhs), walk(rhs))
            case Mul(lhs, rhs):
                return binary(BinaryOp.MUL, walk(lhs), walk(rhs))
            case FloorDiv(lhs, divisor):
                return binary(BinaryOp.FLOORDIV, walk(lhs), walk(Constant(divisor)))
            case Mod(lhs, divisor):
                return binary(BinaryOp.REM, walk(lhs), walk(Constant(divisor)))
            case _:
                assert_never(expr)

    return replace(walk(trace.extents.resolve(extent)), weak=True)


def _counted(trace: Trace, symbol: Dim) -> Value:
    """Return the value of an extent symbol: the IR has no other way to read it than to count."""
    value = trace.counts.get(symbol)
    if value is None:
        ones = Term(constant_of(1, INDEX), reduced=(0,))
        with trace.within(None):  # once, before all loops
            value = trace.counts.get(symbol) or fresh(trace, ones, (), {0: symbol}, None, caller())
            trace.counts[symbol] = value
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, SymbolicInt | int | float | complex)


def _plain(value: SymbolicInt | float) -> float:
    return int(value) if isinstance(value, SymbolicInt) else value


def symbolic(trace: Trace, expr: AffineExpr) -> SymbolicInt | int:
    """Return an extent as a Python number: an ``int`` where it is a constant."""
    resolved = trace.extents.resolve(expr)
    return resolved.value if isinstance(resolved, Constant) else SymbolicInt(trace, resolved)


def as_extent(value: object) -> AffineExpr | None:
    """Return an ``int`` or a ``SymbolicInt`` as an expression, None for anything else."""
    if isinstance(value, SymbolicInt):
        return value._trace.extents.resolve(value.expr)
    if isinstance(value, int) and not isinstance(value, bool):
        return Constant(value)
    return None
