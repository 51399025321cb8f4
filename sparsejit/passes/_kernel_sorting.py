"""Sorting by the lanes of a warp: ``SortPrefix`` as loops whose passes are independent.

In: the statements of a kernel in which a warp runs each iteration. Out: the same with every sort as
a bitonic network. A step compares elements in disjoint pairs and puts the smaller one in front, so
that lanes share its passes; elements behind the last one would be larger than all others and stay
where they are, so that pairs with one of them are left out. Source: K. E. Batcher, Sorting networks
and their applications, 1968, with the first step of a merge mirrored.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit.ir.loop_walk import map_body
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus, times
from sparsejit.ir.loops import (
    Assign,
    Expr,
    For,
    If,
    Let,
    Load,
    Memref,
    SortPrefix,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["with_shared_sorts"]


def with_shared_sorts(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Return ``body`` with its sorts as loops.

    >>> with_shared_sorts((), Names())
    ()
    """

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        return _network(stmt, names) if isinstance(stmt, SortPrefix) else (stmt,)

    return map_body(body, change_stmt=change)


def _network(stmt: SortPrefix, names: Names) -> tuple[Stmt, ...]:
    """Merge sorted blocks of ``width`` elements in pairs, wider and wider ones."""
    count, width, gap = (names.var(base) for base in ("count", "width", "gap"))
    mirrored = binary(BinaryOp.SUB, times(int_(2), width), int_(1))
    merge: tuple[Stmt, ...] = (
        _step(stmt.memref, count, width, lambda low: binary(BinaryOp.XOR, low, mirrored), names),
        Let(gap, _half(width), mutable=True),
        While(
            compare(BinaryOp.GT, gap, int_(0)),
            (
                _step(stmt.memref, count, gap, lambda low: plus(low, gap), names),
                Assign(gap, _half(gap)),
            ),
        ),
        Assign(width, times(int_(2), width)),
    )
    return (
        Let(count, stmt.count),
        Let(width, int_(1), mutable=True),
        While(compare(BinaryOp.LT, width, count), merge),
    )


def _half(value: Var) -> Expr:
    return binary(BinaryOp.FLOORDIV, value, int_(2))


def _step(
    memref: Memref, count: Var, gap: Var, partner: Callable[[Expr], Expr], names: Names
) -> For:
    """Order the pairs of one step: of each block of ``2 * gap`` elements, the first half is low.

    ``gap`` is a power of two. No more than half of ``count + gap`` low elements are there.
    """
    pair, low, high = (names.var(base) for base in ("pair", "low", "high"))
    first, second = (names.var(base, memref.dtype) for base in ("first", "second"))
    inside = binary(BinaryOp.AND, pair, binary(BinaryOp.SUB, gap, int_(1)))
    ordered: tuple[Stmt, ...] = (
        Let(first, Load(memref, (low,))),
        Let(second, Load(memref, (high,))),
        If(
            compare(BinaryOp.LT, second, first),
            (Store(memref, (low,), second), Store(memref, (high,), first)),
        ),
    )
    body: tuple[Stmt, ...] = (
        Let(low, binary(BinaryOp.SUB, times(int_(2), pair), inside)),
        Let(high, partner(low)),
        If(compare(BinaryOp.LT, high, count), ordered),
    )
    pairs = binary(BinaryOp.FLOORDIV, plus(count, gap), int_(2))
    return For(pair, int_(0), pairs, body, parallel=True)
