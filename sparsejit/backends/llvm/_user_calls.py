"""Calls of user functions in LLVM IR: of C functions that Numba compiled (see ``user_code``).

In: the function and its operands in registers. Out: the result in a register. The function is an
external symbol, so that an object in the disk cache holds no address of a process; where it returns
a status, the whole kernel fails with one that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._text import Builder, Value, integer
from sparsejit.backends.llvm._types import alignment, in_register, real_type
from sparsejit.ir.scalar import UserFunction
from sparsejit.ir.types import DType
from sparsejit.user_code import symbol_of

__all__ = ["FIRST_STATUS", "UserCalls"]

FIRST_STATUS = 1 << 16
"""The status of a kernel in which the first of its user functions failed; the next ones follow."""


class UserCalls:
    """Writes calls; ``functions`` are all that the kernel calls, ``fail`` leaves it."""

    def __init__(self, builder: Builder, declared: Functions) -> None:
        self._b = builder
        self._declared = declared
        self.functions: tuple[UserFunction, ...] = ()
        self.fail: Callable[[Value, Value], None] | None = None

    def value(self, function: UserFunction, operands: Sequence[Value]) -> Value:
        """Return what the function gives."""
        assert self.fail is not None
        b, result = self._b, function.result
        passed: list[Value] = []
        for operand, dtype in zip(operands, function.operands, strict=True):
            passed += self._passed(operand, dtype)
        kind = _carrier(result)
        room = b.slot(f"[2 x {kind}]" if result.is_complex else kind)
        kinds = [*(operand.type for operand in passed), "ptr"]
        callee = self._declared.module.declare(symbol_of(function), "i32", kinds)
        status = b.call(callee, [*passed, room])
        number = FIRST_STATUS + self.functions.index(function)
        self.fail(integer(number, "i32"), b.compare("ne", status, integer(0, "i32")))
        return self._taken(room, result)

    def _passed(self, value: Value, dtype: DType) -> list[Value]:
        """Return the words that carry an operand."""
        b = self._b
        if dtype.is_complex:
            return [b.part(value, 0), b.part(value, 1)]
        if dtype.is_float or value.type == "i64":
            return [value]
        return [b.cast("sext" if dtype.is_signed_integer else "zext", value, "i64")]

    def _taken(self, room: Value, dtype: DType) -> Value:
        """Return the result that lies at an address."""
        b, kind = self._b, _carrier(dtype)
        align = alignment(dtype) if dtype.is_float or dtype.is_complex else 8
        value = b.load(room, kind, align)
        if dtype.is_complex:
            return b.pair(value, b.load(b.offset(room, align), kind, align))
        if dtype is DType.BOOL:
            return b.compare("ne", value, integer(0))
        target = in_register(dtype)
        return value if value.type == target else b.cast("trunc", value, target)


def _carrier(dtype: DType) -> str:
    return real_type(dtype) if dtype.is_float or dtype.is_complex else "i64"
