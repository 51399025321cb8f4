"""How many terms a row will have: loops that say so before the row is computed.

In: statements of a row, and which of them handle a term. Out: statements that count how often these
run at most, by the lengths of the innermost loops around them; the outer loops, and what the
lengths depend on, are repeated under other names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sparsejit.ir.loop_uses import arrays_written, read
from sparsejit.ir.loop_walk import all_statements, blocks
from sparsejit.ir.loop_writing import Names, binary, int_, plus
from sparsejit.ir.loops import Assign, Expr, For, If, Let, Push, SortPrefix, Stmt, Store, Var, While
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.rename import fresh_copy

__all__ = ["terms_of"]


def terms_of(
    row: Sequence[Stmt], is_term: Callable[[Stmt], bool], terms: Var, names: Names
) -> tuple[Stmt, ...] | None:
    """Return statements that define ``terms``; None where only the row itself can tell."""
    counted = tuple(_Counter(is_term, terms).block(row))
    own = {stmt.var.name for stmt in all_statements(counted) if isinstance(stmt, Let)}
    assigned = {stmt.var for stmt in all_statements(counted) if isinstance(stmt, Assign)}
    is_alone = all(var.name in own for var in assigned - {terms})
    if not is_alone or arrays_written(row).keys() & read(counted).keys():
        return None
    return Let(terms, int_(0), mutable=True), *fresh_copy(counted, names)


class _Counter:
    def __init__(self, is_term: Callable[[Stmt], bool], terms: Var) -> None:
        self._is_term = is_term
        self._terms = terms

    def block(self, body: Sequence[Stmt]) -> Iterator[Stmt]:
        for stmt in body:
            yield from self._statement(stmt)

    def _statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if self._is_term(stmt):
            yield self._add(int_(1))
            return
        match stmt:
            case For() if not any(map(self._is_term, all_statements(stmt.body))):
                pass
            case For() if not any(isinstance(s, For | While) for s in all_statements(stmt.body)):
                length = binary(BinaryOp.SUB, stmt.upper, stmt.lower)
                yield self._add(binary(BinaryOp.MAX, length, int_(0)))
            case For():
                inner = tuple(self.block(stmt.body))
                yield replace(stmt, body=inner, parallel=False, reductions=(), private=())
            case While():
                yield replace(stmt, body=tuple(self.block(stmt.body)))
            case If():
                then, orelse = (tuple(self.block(part)) for part in blocks(stmt))
                if then or orelse:
                    yield replace(stmt, then=then, orelse=orelse)
            case Store() | Push() | SortPrefix():
                pass
            case _:
                yield stmt

    def _add(self, count: Expr) -> Stmt:
        return Assign(self._terms, plus(self._terms, count))
