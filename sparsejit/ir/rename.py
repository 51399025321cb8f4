"""Other names for what statements of the loop IR speak of.

In: statements, expressions or results, and what each name is to stand for. Out: the same with these
memrefs and variables in their place, where they are introduced too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_args

from sparsejit.ir import loops
from sparsejit.ir.device_statements import ReadBack
from sparsejit.ir.loop_walk import all_statements, memrefs_defined
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import For, Let, Memref, Stmt, Var

__all__ = ["Renaming", "fresh_copy", "introduced", "renamed"]

Renaming = Mapping[str, Memref | Var]
Node = TypeVar("Node")

_KINDS = (*get_args(loops.Expr), *get_args(loops.Stmt), *get_args(loops.Result))
_MODULES = {kind.__module__ for kind in _KINDS}
"""Where the parts of loop functions are declared; all else is data without names."""


def renamed(node: Node, names: Renaming) -> Node:
    """Return ``node`` (a statement, an expression, a result, or a tuple of them) with new names.

    >>> from sparsejit.ir.loops import Load
    >>> from sparsejit.ir.types import DType, INDEX
    >>> x, y = Memref("x", DType.FLOAT64, 1), Memref("y", DType.FLOAT64, 1)
    >>> renamed(Load(x, (Var("i", INDEX),)), {"x": y}).memref.name
    'y'
    """
    made: Any = _renamed(node, names) if names else node
    result: Node = made
    return result


def _renamed(node: Any, names: Renaming) -> Any:
    match node:
        case Memref() | Var():
            return names.get(node.name, node)
        case tuple():
            return tuple(_renamed(item, names) for item in node)
        case _ if is_dataclass(node) and type(node).__module__ in _MODULES:
            parts = (_renamed(getattr(node, item.name), names) for item in fields(node))
            kind: Any = type(node)
            return kind(*parts)
        case _:
            return node


def introduced(body: Iterable[Stmt]) -> tuple[Memref | Var, ...]:
    """Return every name that ``body`` introduces, at any depth, in program order."""
    found: list[Memref | Var] = []
    for stmt in all_statements(body):
        if isinstance(stmt, Let | For | ReadBack):
            found.append(stmt.var)
        found.extend(memrefs_defined(stmt))
    return tuple(found)


def fresh_copy(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Return ``body`` in which everything it introduces has a new name.

    >>> from sparsejit.ir.loop_writing import int_
    >>> from sparsejit.ir.types import INDEX
    >>> fresh_copy((Let(Var("i", INDEX), int_(0)),), Names({"i"}))[0].var.name
    'i_2'
    """
    new: dict[str, Memref | Var] = {}
    for item in introduced(body):
        new[item.name] = replace(item, name=names.fresh(item.name))
    return renamed(body, new)
