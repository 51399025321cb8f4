"""What a function reads from outside, as a list of names to compare at every call.

In: the user's function. Out: each name with the object it had, where comparing these is enough to
know that the cache key has not changed; or None, and then every call walks over what is captured.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.api._accesses import Root
from sparsejit.api._captures import follows, names_of, package_of
from sparsejit.api._flatten import is_scalar
from sparsejit.api._static import is_static
from sparsejit.backends.straight import ABSENT, Cell, Condition, Entry

__all__ = ["Guards", "guards_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Guards:
    """Names of namespaces and closure cells, with what they held."""

    names: tuple[tuple[Mapping[str, Any], str, object], ...]
    cells: tuple[tuple[types.CellType, object], ...]

    def hold(self) -> bool:
        """Whether every name still has the same object."""
        for namespace, name, value in self.names:
            if namespace.get(name, ABSENT) is not value:
                return False
        return all(_content(cell) is value for cell, value in self.cells)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What has to hold, for machine code."""
        names = (Entry(namespace, name, value) for namespace, name, value in self.names)
        return *names, *(Cell(cell, value) for cell, value in self.cells)


def guards_of(fn: Callable[..., Any]) -> Guards | None:
    """Return the guards of ``fn``; None where it captures arrays, containers or other objects.

    None too for what is no function: a bound method, a partial, an object that is called.
    """
    if not isinstance(fn, types.FunctionType):
        return None
    names: list[tuple[Mapping[str, Any], str, object]] = []
    cells: list[tuple[types.CellType, object]] = []
    seen: set[types.FunctionType] = set()
    waiting = [fn]
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        for name, _ in names_of(function.__code__, Root.GLOBAL):
            names.append((function.__globals__, name, function.__globals__.get(name, ABSENT)))
        read = {name for name, _ in names_of(function.__code__, Root.CLOSURE)}
        pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        cells += [(cell, _content(cell)) for name, cell in pairs if name in read]
        for value in (*(value for *_, value in names), *(value for _, value in cells)):
            if isinstance(value, types.FunctionType):
                if follows(value, package_of(fn)):
                    waiting.append(value)
            elif not _is_known_by_identity(value, package_of(fn)):
                return None
    return Guards(tuple(names), tuple(cells))


def _is_known_by_identity(value: object, package: str) -> bool:
    """Whether the same object always has the same token, and is no operand."""
    if value is ABSENT or isinstance(value, types.BuiltinFunctionType):
        return True
    if isinstance(value, types.ModuleType):
        return not follows(value, package)
    return is_static(value) or is_scalar(value)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell: the name is not bound yet
        return ABSENT
