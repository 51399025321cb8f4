"""Rows that are collected in a dense workspace, and sorted: what is what in their loops.

``if stamps[j] == stamp { sums[j] += x } else { stamps[j] = stamp; sums[j] = x; push met[number] =
j; number = number + 1 }`` notes a coordinate; ``sort met[number]`` and a loop over ``met`` follow.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import (
    Assign,
    Binary,
    If,
    Load,
    LoopFunc,
    Memref,
    Push,
    SortPrefix,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["WorkspaceRows", "workspaces_of"]


@dataclass(frozen=True, slots=True)
class WorkspaceRows:
    """A workspace: ``stamps[j] == stamp`` where ``met[.. number]`` has ``j``."""

    stamps: Memref
    stamp: Var
    met: Memref
    number: Var

    def is_note(self, stmt: Stmt) -> bool:
        """Whether a statement notes what a row meets."""
        match stmt:
            case If(Binary(BinaryOp.EQ, Load(memref, (Var(),)), var)):
                return memref == self.stamps and var == self.stamp
            case _:
                return False

    def is_bookkeeping(self, stmt: Stmt) -> bool:
        """Whether a statement of the branch for what is new is of the workspace itself."""
        match stmt:
            case Store(memref) | Push(memref):
                return memref in (self.stamps, self.met)
            case Assign(var):
                return var == self.number
            case _:
                return False


def workspaces_of(func: LoopFunc) -> Iterator[WorkspaceRows]:
    """Return the workspaces of a function that are sorted."""
    statements = list(all_statements(func.body))
    for stmt in dict.fromkeys(s for s in statements if isinstance(s, SortPrefix)):
        if isinstance(stmt.count, Var):
            found = {_rows_of(other, stmt.memref, stmt.count) for other in statements} - {None}
            if len(found) == 1:
                yield from (rows for rows in found if rows is not None)


def _rows_of(stmt: Stmt, met: Memref, number: Var) -> WorkspaceRows | None:
    match stmt:
        case If(Binary(BinaryOp.EQ, Load(stamps), Var() as stamp)) if any(
            isinstance(inner, Push) and inner.memref == met for inner in stmt.orelse
        ):
            return WorkspaceRows(stamps, stamp, met, number)
        case _:
            return None
