"""Which functions of the user a program calls.

In: a tensor function, or statements of the loop IR. Out: each function once, in order of
appearance.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions
from sparsejit.ir.loops import Call, Stmt
from sparsejit.ir.scalar import UserFunction, calls_of
from sparsejit.ir.tensor import Generic, TensorFunc
from sparsejit.ir.walk import all_ops

__all__ = ["called_by_loops", "called_by_tensors"]


def called_by_loops(body: Iterable[Stmt]) -> tuple[UserFunction, ...]:
    """Return the user functions that statements call."""
    found: dict[UserFunction, None] = {}
    for stmt in all_statements(body):
        for outer in expressions(stmt):
            for expr in all_expressions(outer):
                if isinstance(expr, Call):
                    found.setdefault(expr.function)
    return tuple(found)


def called_by_tensors(func: TensorFunc) -> tuple[UserFunction, ...]:
    """Return the user functions that the bodies of operations call."""
    found: dict[UserFunction, None] = {}
    for op in all_ops(func.ops):
        if isinstance(op, Generic):
            found.update(dict.fromkeys(call.function for call in calls_of(op.body)))
    return tuple(found)
