"""What LLVM is told about a loop: whether and how to vectorize it.

Hardware gathers are the slowest way to load elements that other loads point to, and scatters to
store them, so a loop over stored entries that has such loads or stores stays scalar; where it adds
up, four sums run side by side.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparsejit.ir.loop_walk import all_expressions, blocks, expressions
from sparsejit.ir.loops import Expr, For, Let, Load, Search, Store, Var

__all__ = ["loop_properties"]

_SCALAR = '!{!"llvm.loop.vectorize.width", i32 1}'
_FOUR_SUMS = '!{!"llvm.loop.interleave.count", i32 4}'


def loop_properties(stmt: For) -> tuple[str, ...]:
    """Return the metadata nodes of a loop."""
    if any(blocks(inner) for inner in stmt.body) or not _gathers(stmt):
        return ()
    return _SCALAR, _FOUR_SUMS


def _gathers(stmt: For) -> bool:
    """Whether an innermost loop loads or stores where another load says."""
    loaded: set[str] = set()
    for inner in stmt.body:
        for outer in expressions(inner):
            for part in all_expressions(outer):
                if isinstance(part, Load) and _is_loaded(part.indices, loaded):
                    return True
        if isinstance(inner, Store) and _is_loaded(inner.indices, loaded):
            return True
        if isinstance(inner, Let) and _is_loaded((inner.value,), loaded):
            loaded.add(inner.var.name)
    return False


def _is_loaded(exprs: Iterable[Expr], loaded: set[str]) -> bool:
    return any(
        isinstance(part, Load | Search) or (isinstance(part, Var) and part.name in loaded)
        for expr in exprs
        for part in all_expressions(expr)
    )
