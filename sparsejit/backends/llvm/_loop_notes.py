"""What LLVM is told about a loop: whether and how to vectorize it.

Hardware gathers are the slowest way to load elements that other loads point to, and scatters to
store them, so a loop over stored entries that has such loads or stores stays scalar; where it adds
up, four sums run side by side. Segments that are short on average are added up one by one: where
the fours end, and where the rest does, is what no processor predicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sparsejit.backends.llvm._work import segment_of
from sparsejit.ir.loop_walk import all_expressions, all_statements, blocks, expressions
from sparsejit.ir.loop_writing import as_index, binary, compare, int_, times
from sparsejit.ir.loops import (
    Assign,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Search,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp

__all__ = [
    "ONE_BY_ONE",
    "are_long",
    "has_nested_segments",
    "is_left_to_llvm",
    "is_of_known_length",
    "loop_properties",
]

_LONG = 8
_SCALAR = '!{!"llvm.loop.vectorize.width", i32 1}'
_NO_UNROLLING = '!{!"llvm.loop.unroll.disable"}'
_FOUR_SUMS = '!{!"llvm.loop.interleave.count", i32 4}'
ONE_BY_ONE = (_SCALAR, _NO_UNROLLING)
"""The metadata nodes of a loop over short segments."""


def are_long(stmt: For) -> Expr | None:
    """Whether segments that a loop adds up have many entries each, on average.

    None where this is not asked: the loop runs over no segments, or adds up nothing in fours.
    """
    segment = segment_of(stmt)
    adds_up = any(isinstance(inner, Assign) for inner in stmt.body)
    if segment is None or not adds_up or not loop_properties(stmt):
        return None
    pos, _ = segment
    last = binary(BinaryOp.SUB, DimOf(pos, 0), int_(1))
    stored = binary(BinaryOp.SUB, as_index(pos, last), as_index(pos, int_(0)))
    return compare(BinaryOp.GE, stored, times(last, int_(_LONG)))


def loop_properties(stmt: For) -> tuple[str, ...]:
    """Return the metadata nodes of a loop."""
    if any(blocks(inner) for inner in stmt.body) or not _gathers(stmt):
        return ()
    return _SCALAR, _FOUR_SUMS


def is_left_to_llvm(stmt: For, roots: Mapping[str, str]) -> bool:
    """Whether LLVM's passes make a loop faster than it is printed.

    They run innermost ones in vectors, unless they gather, one pass needs what another one stores,
    or places are counted; and they thread what branches. ``roots`` name the array whose memory a
    view shows.
    """
    inside = list(all_statements(stmt.body))
    if any(isinstance(inner, For | While) for inner in inside):
        return False
    if any(isinstance(inner, If) for inner in inside) or loop_properties(stmt):
        return True
    counted = {inner.var.name for inner in inside if isinstance(inner, Assign)}
    stored = {roots.get(s.memref.name, s.memref.name): s for s in inside if isinstance(s, Store)}
    if any(_mentions(index, counted) for store in stored.values() for index in store.indices):
        return False
    loads = [
        part
        for inner in inside
        for outer in expressions(inner)
        for part in all_expressions(outer)
        if isinstance(part, Load)
    ]
    stores = [stored.get(roots.get(load.memref.name, load.memref.name)) for load in loads]
    return all(
        store is None or store.indices == load.indices
        for load, store in zip(loads, stores, strict=True)
    )


def is_of_known_length(stmt: For) -> bool:
    """Whether LLVM's passes unroll a loop."""
    return isinstance(stmt.lower, Lit) and isinstance(stmt.upper, Lit)


def has_nested_segments(body: Sequence[Stmt]) -> bool:
    """Whether loops over stored entries hold others, whose few passes LLVM keeps short."""
    loops = [stmt for stmt in all_statements(body) if isinstance(stmt, For) and segment_of(stmt)]
    return any(
        isinstance(inner, For) and segment_of(inner) is not None
        for loop in loops
        for inner in all_statements(loop.body)
    )


def _mentions(expr: Expr, names: Collection[str]) -> bool:
    return any(isinstance(part, Var) and part.name in names for part in all_expressions(expr))


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
