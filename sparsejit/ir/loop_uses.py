"""What loop IR uses, by name: variables, the arrays whose elements are read, and whose they are.

``variables``, ``loaded`` ask an expression; ``used``, ``read``, ``assigned``, ``arrays_written``
ask statements, at any depth; ``roots`` says which array a view is part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, memrefs_written
from sparsejit.ir.loops import (
    Assign,
    Copy,
    Expr,
    For,
    Load,
    LoopFunc,
    Memref,
    Search,
    Select,
    SelectMemref,
    Sort,
    Stmt,
    Var,
    View,
)

__all__ = [
    "arrays_written",
    "assigned",
    "is_pure",
    "loaded",
    "loads_always",
    "read",
    "rooted",
    "roots",
    "used",
    "variables",
]


def variables(expr: Expr) -> dict[str, Var]:
    """Return the variables of an expression, by name.

    >>> from sparsejit.ir.types import INDEX
    >>> list(variables(Var("i", INDEX)))
    ['i']
    """
    return {part.name: part for part in all_expressions(expr) if isinstance(part, Var)}


def loaded(expr: Expr) -> dict[str, Memref]:
    """Return the arrays whose elements an expression reads, by name."""
    found: dict[str, Memref] = {}
    for part in all_expressions(expr):
        match part:
            case Load(memref, _) | Search(memref):
                found[memref.name] = memref
            case _:
                pass
    return found


def is_pure(expr: Expr) -> bool:
    """Whether an expression reads no memory: the host knows its value."""
    return not loaded(expr)


def loads_always(expr: Expr) -> bool:
    """Whether every load in an expression happens, whatever the values are."""
    return not any(isinstance(part, Select | Search) for part in all_expressions(expr))


def used(body: Iterable[Stmt]) -> dict[str, Var]:
    """Return the variables that statements read or assign, by name."""
    found: dict[str, Var] = {}
    for stmt in all_statements(body):
        for outer in expressions(stmt):
            found |= variables(outer)
        if isinstance(stmt, Assign):
            found[stmt.var.name] = stmt.var
        if isinstance(stmt, For):
            shared = (*(item for item, _ in stmt.reductions), *stmt.private)
            found |= {item.name: item for item in shared if isinstance(item, Var)}
    return found


def read(body: Iterable[Stmt]) -> dict[str, Memref]:
    """Return the arrays whose elements statements read in expressions or copy, by name."""
    found: dict[str, Memref] = {}
    for stmt in all_statements(body):
        for outer in expressions(stmt):
            found |= loaded(outer)
        match stmt:
            case Copy(_, source):
                found[source.name] = source
            case Sort(_, coordinates):
                found |= {memref.name: memref for memref in coordinates}
            case _:
                pass
    return found


def arrays_written(body: Iterable[Stmt]) -> dict[str, Memref]:
    """Return the existing arrays that statements write to, or give another length, by name."""
    return {m.name: m for stmt in all_statements(body) for m in memrefs_written(stmt)}


def assigned(body: Iterable[Stmt]) -> dict[str, Var]:
    """Return the variables that statements assign, by name."""
    found = (stmt for stmt in all_statements(body) if isinstance(stmt, Assign))
    return {stmt.var.name: stmt.var for stmt in found}


def roots(func: LoopFunc) -> Mapping[str, str]:
    """Return, for each view of a function, the array that it is part of in the end.

    One of two arrays (``SelectMemref``, which is never written) counts as the first of them.

    >>> roots(LoopFunc("f", (), (), ()))
    {}
    """
    found: dict[str, str] = {}
    for stmt in all_statements(func.body):
        match stmt:
            case View(memref, source) | SelectMemref(memref, _, source):
                found[memref.name] = found.get(source.name, source.name)
            case _:
                pass
    return found


def rooted(names: Iterable[str], of: Mapping[str, str]) -> set[str]:
    """Return the arrays that memrefs of these names are part of."""
    return {of.get(name, name) for name in names}
