"""Which parameters a program reads and assigns, statement by statement, by names and views.

In: a ``Program``. Out: whether DESIGN's rule of aliases lets a call be refused: two assigned
arguments overlap, or one that is read after the other was assigned.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.programs.language import (
    Apply,
    Expr,
    IndexExpr,
    IndexUpdate,
    Item,
    Let,
    Load,
    Loop,
    Program,
    Statement,
    Update,
    Var,
    children,
)
from tests.programs.plain import Memory

__all__ = ["assigned_objects", "has_aliases", "may_be_refused"]

Roots = dict[str, int | None]

_VIEWS = (
    "{0}.T", "{0}[", "{0}.reshape", "np.reshape(", "np.diagonal(", "np.transpose(",
    "np.expand_dims(", "np.squeeze({0}[",
)  # fmt: skip
"""How the texts of views of their first hole begin."""


def _names(expr: Expr | IndexExpr) -> Iterator[str]:
    match expr:
        case Var(name) | Load(name, _):
            yield name
        case _:
            for part in children(expr):
                yield from _names(part)


def _view_of(expr: Expr) -> str | None:
    """Return the name that an expression is a view of, if it is one."""
    match expr:
        case Var(name):
            return name
        case Item(base, _):
            return _view_of(base)
        case Apply(template, (base, *_)) if template.startswith(_VIEWS):
            return _view_of(base)
        case _:
            return None


def _accesses(program: Program) -> Iterator[tuple[int, int, bool]]:
    """Yield (statement, object, whether it is assigned), for reads and assignments."""
    roots: Roots = {param.name: param.object for param in program.params}
    for number, statement in enumerate(program.statements):
        for name in _read(statement):
            root = roots.get(name)
            if root is not None:
                yield number, root, False
        if isinstance(statement, Let):
            base = _view_of(statement.value)
            roots[statement.name] = None if base is None else roots.get(base)
        elif isinstance(statement, Loop):
            roots.update(dict.fromkeys(statement.names))
        elif isinstance(statement, IndexUpdate) and statement.fresh:
            roots[statement.name] = None
        else:
            root = roots.get(statement.name)
            if root is not None:
                yield number, root, True
    for name in program.returns:
        root = roots.get(name)
        if root is not None:
            yield len(program.statements), root, False


def _read(statement: Statement) -> Iterator[str]:
    match statement:
        case Let(_, value):
            yield from _names(value)
        case Update(name, _, op, value):
            yield from _names(value)
            if op != "=":
                yield name
        case IndexUpdate(name, _, op, terms, fresh):
            for _, term in terms:
                yield from _names(term)
            if op != "=" and not fresh:
                yield name
        case Loop(_, _, inits, own, bodies, _, test):
            for expr in (*inits, *([] if test is None else [test])):
                yield from _names(expr)
            for inner in (inner for body in bodies for inner in body):
                yield from (name for name in _read(inner) if name not in own)


def assigned_objects(program: Program) -> set[int]:
    """Return the numbers of the objects that are assigned to."""
    return {number for _, number, is_assigned in _accesses(program) if is_assigned}


def has_aliases(program: Program, memory: Memory) -> bool:
    """Whether the same object is passed twice, or two objects overlap."""
    numbers = [param.object for param in program.params if param.object is not None]
    return len(set(numbers)) < len(numbers) or any(_overlapping(program, memory))


def _overlapping(program: Program, memory: Memory) -> Iterator[tuple[int, int]]:
    for one, first in enumerate(memory.objects):
        for two, second in enumerate(memory.objects):
            if one != two and np.may_share_memory(first, second):
                yield one, two


def may_be_refused(program: Program, memory: Memory) -> bool:
    """Whether the rule of aliases lets a call of the program be refused."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for statement, number, is_assigned in _accesses(program):
        if is_assigned:
            first.setdefault(number, statement)
        else:
            last[number] = statement
    for one, two in _overlapping(program, memory):
        if one in first and two in first:
            return True
        # One statement may be several operations, so reads in the assigning one are let pass too.
        if one in first and two in last and last[two] >= first[one]:
            return True
    return False
