"""The values of a plan's host: expressions of the loop IR, evaluated one at a time.

In: an expression, the host's variables and the shapes of arrays. Out: a constant, exactly what the
same expression gives in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from sparsejit.errors import VerificationError
from sparsejit.ir.fold import fold_binary, fold_cast, fold_unary
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
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX

__all__ = ["HostValues"]

_INDEX_OPS: Mapping[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}
_SAFE = 2**31
"""Sums, differences and products of numbers below fit in an index."""


class HostValues:
    """The variables of the host while a plan runs; ``extent`` gives an extent of an array.

    >>> values = HostValues(lambda name, axis: 7)
    >>> values.index(Binary(BinaryOp.ADD, Lit(Const(1, INDEX)), Lit(Const(2, INDEX)), INDEX))
    3
    """

    def __init__(self, extent: Callable[[str, int], int]) -> None:
        self._extent = extent
        self._known: dict[str, Const] = {}

    def give(self, var: Var, value: Const) -> None:
        """Give a variable a value."""
        self._known[var.name] = value

    def index(self, expr: Expr) -> int:
        """Return the value of an index."""
        return int(self.value(expr).value.real)

    def value(self, expr: Expr) -> Const:
        """Return the value of an expression."""
        match expr:
            case Var(name):
                return self._known[name]
            case Lit(const):
                return const
            case DimOf(memref, axis):
                return Const(self._extent(memref.name, axis), INDEX)
            case Unary(op, operand):
                return fold_unary(op, self.value(operand))
            case Binary(op, lhs, rhs):
                return _binary(op, self.value(lhs), self.value(rhs))
            case Cast(operand, dtype):
                found = self.value(operand)
                return found if found.dtype is dtype else fold_cast(found, dtype)
            case Select(condition, then, orelse):
                return self.value(then if self.value(condition).value else orelse)
            case Load() | Search():
                raise VerificationError("the host loads nothing from a device", repr(expr))
            case Call():
                raise VerificationError(
                    "no compiled function of a user goes to a device", repr(expr)
                )
            case _:
                assert_never(expr)


def _binary(op: BinaryOp, lhs: Const, rhs: Const) -> Const:
    quick = _INDEX_OPS.get(op)
    if quick is None or lhs.dtype is not INDEX or rhs.dtype is not INDEX:
        return fold_binary(op, lhs, rhs)
    left, right = int(lhs.value.real), int(rhs.value.real)
    if max(abs(left), abs(right)) >= _SAFE:
        return fold_binary(op, lhs, rhs)
    return Const(quick(left, right), INDEX)
