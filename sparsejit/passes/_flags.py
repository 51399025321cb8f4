"""Flags that every iteration of a loop sets are set once, behind the loop.

In: a loop whose iterations do ``hit = True``, whatever they find, and read it nowhere. Out: the
loop without that, and ``if lower < upper { hit = True }``. A loop that did nothing else is gone
with it: whether a segment has entries is asked, not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sparsejit.ir.loop_uses import arrays_written, assigned, loaded, variables
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions
from sparsejit.ir.loops import Assign, Binary, Call, Expr, For, If, Let, Lit, Search, Stmt, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = ["flags_behind"]


def flags_behind(loop: For) -> tuple[Stmt, ...]:
    """Return ``loop`` without flags, and what sets them behind it."""
    rest: list[Stmt] = []
    moved: list[Stmt] = []
    for stmt in loop.body:
        flag = _flag(stmt)
        if flag is not None and _is_alone(stmt, flag, loop):
            moved.append(stmt)
        else:
            rest.append(stmt)
    if not moved:
        return (loop,)
    some = Binary(BinaryOp.LT, loop.lower, loop.upper, DType.BOOL)
    left = (replace(loop, body=tuple(rest)),) if rest else ()
    return (*left, If(some, tuple(moved)))


def _flag(stmt: Stmt) -> Var | None:
    """The variable that a statement sets to a constant, maybe under conditions."""
    match stmt:
        case Assign(var, Lit()):
            return var
        case If(_, (inner,), ()):
            return _flag(inner)
        case _:
            return None


def _is_alone(stmt: Stmt, flag: Var, loop: For) -> bool:
    """Whether nothing else in the loop has to do with the flag, nor with its conditions."""
    inside = list(all_statements(loop.body))
    own = list(all_statements((stmt,)))
    others = [other for other in inside if not any(other is part for part in own)]
    if any(flag.name in variables(outer) for other in others for outer in expressions(other)):
        return False
    if any(isinstance(other, Assign) and other.var == flag for other in others):
        return False
    conditions = [outer for part in own if isinstance(part, If) for outer in expressions(part)]
    changed = {loop.var.name, *assigned(inside)}
    changed |= {other.var.name for other in inside if isinstance(other, Let | For)}
    written = arrays_written(loop.body).keys()
    return not any(
        changed & variables(outer).keys() or written & loaded(outer).keys() or _is_costly(outer)
        for outer in conditions
    ) and not _reads_written(loop, written)


def _reads_written(loop: For, written: Iterable[str]) -> bool:
    """Whether the bounds are of what the loop changes."""
    changed = assigned(loop.body)
    bounds: Sequence[Expr] = (loop.lower, loop.upper)
    return any(
        loaded(bound).keys() & set(written) or variables(bound).keys() & changed.keys()
        for bound in bounds
    )


def _is_costly(expr: Expr) -> bool:
    return any(isinstance(part, Search | Call) for part in all_expressions(expr))
