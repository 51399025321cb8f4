"""The slice of a loop body for some variables: what decides their values, and nothing else.

In: statements, and variables that they count up. Out: the statements without those that cannot
have an influence on it: what is stored and not read, values that nobody uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, map_body
from sparsejit.ir.loop_writing import binary, int_, plus
from sparsejit.ir.loops import (
    Assign,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Load,
    Memref,
    Push,
    Search,
    SortPrefix,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp

__all__ = ["counting_slice", "renamed"]


def counting_slice(
    body: Sequence[Stmt], counts: Sequence[Var], appended: Sequence[Memref]
) -> tuple[Stmt, ...]:
    """Return what of ``body`` decides how ``counts`` grow; nobody reads the ``appended`` arrays."""
    names = {memref.name for memref in appended}

    def drop(stmt: Stmt) -> Iterable[Stmt]:
        is_appended = isinstance(stmt, Push | Store) and stmt.memref.name in names
        return () if is_appended else (stmt,)

    sliced = map_body(body, change_stmt=drop)
    while True:
        smaller = _without_unused(sliced, counts)
        if smaller == sliced:
            return sliced
        sliced = smaller


def _without_unused(body: Sequence[Stmt], counts: Sequence[Var]) -> tuple[Stmt, ...]:
    """Leave out what nothing else in ``body`` reads, once."""
    wanted = {count.name for count in counts}
    read: Counter[str] = Counter()
    own: Counter[str] = Counter()
    for stmt in all_statements(body):
        for outer in expressions(stmt):
            names = [name for part in all_expressions(outer) for name in _name(part)]
            read.update(names)
            if isinstance(stmt, Assign):
                own[stmt.var.name] += names.count(stmt.var.name)

    def is_read(name: str) -> bool:
        return read[name] > own[name] or name in wanted

    def keep(stmt: Stmt) -> Iterable[Stmt]:
        match stmt:
            case Let(var) | Assign(var) if not is_read(var.name):
                return ()
            case Store(memref) | Push(memref) | SortPrefix(memref) if not is_read(memref.name):
                return ()
            case For(_, _, _, ()) | If(_, (), ()):
                return ()
            case For(_, lower, upper, (Assign(var, value),), reductions=()) if value == plus(
                var, int_(1)
            ):
                steps = upper if lower == int_(0) else binary(BinaryOp.SUB, upper, lower)
                return (Assign(var, plus(var, binary(BinaryOp.MAX, steps, int_(0)))),)
            case _:
                return (stmt,)

    return map_body(body, change_stmt=keep)


def _name(expr: Expr) -> tuple[str, ...]:
    match expr:
        case Var(name, _):
            return (name,)
        case Load(memref, _) | DimOf(memref, _) | Search(memref):
            return (memref.name,)
        case _:
            return ()


def renamed(body: Sequence[Stmt], table: Mapping[str, Var]) -> tuple[Stmt, ...]:
    """Return ``body`` with other variables, where they are introduced too."""

    def new(var: Var) -> Var:
        return table.get(var.name, var)

    def change(stmt: Stmt) -> Iterable[Stmt]:
        match stmt:
            case Let() | Assign():
                return (replace(stmt, var=new(stmt.var)),)
            case For():
                reductions = tuple(
                    (new(what) if isinstance(what, Var) else what, op)
                    for what, op in stmt.reductions
                )
                private = tuple(new(w) if isinstance(w, Var) else w for w in stmt.private)
                changed = replace(stmt, reductions=reductions, private=private)
                return (replace(changed, var=new(stmt.var)),)
            case _:
                return (stmt,)

    return map_body(body, lambda expr: new(expr) if isinstance(expr, Var) else expr, change)
