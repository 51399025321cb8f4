"""What a function reads from outside, as a list of names to compare at every call.

In: the user's function. Out: each name with the object it had, where comparing these is enough to
know that the cache key has not changed; or None, and then every call walks over what is captured.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.api._accesses import Root
from sparsejit.api._captures import (
    DISPATCHED,
    Chains,
    builtins_of,
    by_first,
    follows,
    names_of,
    package_of,
)
from sparsejit.api._flatten import is_scalar
from sparsejit.api._static import is_static
from sparsejit.backends.straight import ABSENT, Cell, Condition, Entry, Field

__all__ = ["Guards", "guards_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Guards:
    """Names of namespaces, closure cells and attributes of functions, with what they held."""

    names: tuple[tuple[Mapping[str, Any], str, object], ...]
    cells: tuple[tuple[types.CellType, object], ...]
    fields: tuple[tuple[types.FunctionType, str, object], ...]

    def hold(self) -> bool:
        """Whether every name still has the same object."""
        for namespace, name, value in self.names:
            if namespace.get(name, ABSENT) is not value:
                return False
        for function, name, value in self.fields:
            if getattr(function, name) is not value:
                return False
        return all(_content(cell) is value for cell, value in self.cells)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What has to hold, for machine code."""
        names = (Entry(namespace, name, value) for namespace, name, value in self.names)
        fields = (Field(function, name, value) for function, name, value in self.fields)
        return *names, *fields, *(Cell(cell, value) for cell, value in self.cells)


def guards_of(fn: Callable[..., Any]) -> Guards | None:
    """Return the guards of ``fn``; None where it captures arrays, containers or other objects.

    None too for what is no function: a bound method, a partial, an object that is called.
    """
    if not isinstance(fn, types.FunctionType):
        return None
    walk = _Walk(package_of(fn))
    if not walk.function(fn, is_called_here=True):
        return None
    return Guards(tuple(walk.names), tuple(walk.cells), tuple(walk.fields))


class _Walk:
    """A walk over what a function captures; it answers False where guards are not enough."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.names: list[tuple[Mapping[str, Any], str, object]] = []
        self.cells: list[tuple[types.CellType, object]] = []
        self.fields: list[tuple[types.FunctionType, str, object]] = []
        self.seen: set[types.FunctionType] = set()

    def function(self, fn: types.FunctionType, *, is_called_here: bool = False) -> bool:
        if fn in self.seen:
            return True
        self.seen.add(fn)
        self.fields.append((fn, "__code__", fn.__code__))
        if not is_called_here and not self.defaults(fn):
            return False
        for name, chains in names_of(fn.__code__, Root.GLOBAL):
            value = self.entry(fn.__globals__, name)
            if value is ABSENT:
                value = self.entry(builtins_of(fn), name)
            if not self.value(value, chains):
                return False
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        for name, chains in names_of(fn.__code__, Root.CLOSURE):
            if name in cells:
                content = _content(cells[name])
                self.cells.append((cells[name], content))
                if not self.value(content, chains):
                    return False
        return True

    def defaults(self, fn: types.FunctionType) -> bool:
        self.fields.append((fn, "__defaults__", fn.__defaults__))
        self.fields.append((fn, "__kwdefaults__", fn.__kwdefaults__))
        keywords = fn.__kwdefaults__ or {}
        values = [*(fn.__defaults__ or ()), *(self.entry(keywords, name) for name in keywords)]
        return all(self.value(value, ((),)) for value in values)

    def entry(self, namespace: Mapping[str, Any], name: str) -> object:
        value = namespace.get(name, ABSENT)
        self.names.append((namespace, name, value))
        return value

    def value(self, value: object, chains: Chains) -> bool:
        """Whether the same object always has the same token, and is no operand."""
        match value:
            case types.FunctionType():
                return not follows(value, self.package) or self.function(value)
            case types.ModuleType():
                rests = by_first(chains)
                return all(self.value(self.entry(vars(value), n), tuple(rests[n])) for n in rests)
            case type():
                return not (any(chains) and follows(value, self.package))
            case types.BuiltinFunctionType() | np.ufunc():
                return True
        return (
            value is ABSENT or isinstance(value, DISPATCHED) or is_static(value) or is_scalar(value)
        )


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell: the name is not bound yet
        return ABSENT
