"""Where positions catch up with a parent: ``while filled <= at { pos[filled] = count; ... }``.

In: statements. Out: those that do this, and whose parents they are: those of a loop, or of a count,
``each`` of which has one or, where levels between store every coordinate, several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_writing import int_, plus, times
from sparsejit.ir.loops import (
    Assign,
    Binary,
    Expr,
    For,
    Lit,
    Memref,
    Push,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = ["CatchUp", "catch_ups_of"]

_ONE = int_(1)


@dataclass(frozen=True, slots=True)
class CatchUp:
    """``stmt`` writes ``value`` to the positions up to and including ``at``.

    ``filled`` says how many there are. ``at`` is one of the ``each`` parents of ``base``.
    """

    stmt: While
    positions: Memref
    filled: Var
    at: Expr
    value: Expr
    base: Expr
    each: Expr

    @property
    def is_spread(self) -> bool:
        """Whether the base has several parents."""
        return self.each != _ONE

    def first_of(self, base: Expr) -> Expr:
        """Return the first parent of a base."""
        return times(base, self.each) if self.is_spread else base

    def up_to(self, last: Expr) -> While:
        """Return what catches up with ``last``, in an array that has the room."""
        advance = Assign(self.filled, plus(self.filled, _ONE))
        behind = Binary(BinaryOp.LE, self.filled, last, DType.BOOL)
        return While(behind, (Store(self.positions, (self.filled,), self.value), advance))


def catch_ups_of(inside: Iterable[Stmt]) -> Iterator[CatchUp]:
    """Find the statements that write the positions up to a parent."""
    statements = list(inside)
    loops = {stmt.var: (stmt.lower, stmt.upper) for stmt in statements if isinstance(stmt, For)}
    for stmt in statements:
        match stmt:
            case While(
                Binary(BinaryOp.LE, Var() as filled, at, _),
                (
                    Push(pos, Var() as place, value) | Store(pos, (Var() as place,), value, None),
                    Assign() as advance,
                ),
            ):
                if place == filled and advance == Assign(filled, plus(filled, _ONE)):
                    yield CatchUp(stmt, pos, filled, at, value, *_base_of(at, loops))
            case _:
                pass


def _base_of(at: Expr, loops: Mapping[Var, tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """Split ``(base * n + i) * m + j`` with loops over all ``i`` and ``j`` into base and size."""
    match at:
        case Binary(BinaryOp.ADD, Binary(BinaryOp.MUL, parent, size), Var() as step) if loops.get(
            step
        ) == (int_(0), size):
            base, each = _base_of(parent, loops)
            return base, _product(each, size)
        case _:
            return at, _ONE


def _product(lhs: Expr, rhs: Expr) -> Expr:
    if lhs == _ONE:
        return rhs
    match lhs, rhs:
        case Lit(one), Lit(other) if isinstance(one.value, int) and isinstance(other.value, int):
            return int_(one.value * other.value)
        case _:
            return times(lhs, rhs)
