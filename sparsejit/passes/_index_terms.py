"""Index arithmetic as a sum of products, to tell which of two indices is larger.

In: expressions of indices and extents, none of them negative. Out: whether one is at least as large
as another, for all values of these.
"""

from __future__ import annotations

from collections import Counter

from sparsejit.ir.loops import Binary, Expr, Lit
from sparsejit.ir.ops import BinaryOp

__all__ = ["is_at_least"]

_Terms = Counter[tuple[Expr, ...]]


def is_at_least(expr: Expr, least: Expr) -> bool:
    """Whether ``expr`` is not less than ``least``, whatever the values in both are.

    >>> from sparsejit.ir.loop_writing import int_, plus, times
    >>> from sparsejit.ir.loops import Var
    >>> from sparsejit.ir.types import INDEX
    >>> i, j = Var("i", INDEX), Var("j", INDEX)
    >>> is_at_least(plus(times(plus(times(i, int_(2)), j), int_(2)), j), times(i, int_(4)))
    True
    >>> is_at_least(i, j)
    False
    """
    difference = _terms(expr)
    difference.subtract(_terms(least))
    return all(count >= 0 for count in difference.values())


def _terms(expr: Expr) -> _Terms:
    """How often each product of variables, or of what else is no sum, occurs in ``expr``."""
    match expr:
        case Lit(const) if isinstance(const.value, int):
            return Counter({(): const.value})
        case Binary(BinaryOp.ADD, lhs, rhs, _):
            terms = _terms(lhs)
            terms.update(_terms(rhs))
            return terms
        case Binary(BinaryOp.SUB, lhs, rhs, _):
            terms = _terms(lhs)
            terms.subtract(_terms(rhs))
            return terms
        case Binary(BinaryOp.MUL, lhs, rhs, _):
            made: _Terms = Counter()
            for left, times in _terms(lhs).items():
                for right, more in _terms(rhs).items():
                    made[tuple(sorted((*left, *right), key=repr))] += times * more
            return made
        case _:
            return Counter({(expr,): 1})
