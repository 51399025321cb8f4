"""Captured operands: arrays and numbers that a function reads from outside of its arguments.

In: the user's function, at a call. Out: its captured arrays as further operands, everything else it
captures as a token of the cache key, and a plan of how to hand it tracers in place of the arrays.
Names are resolved at every call, so a rebound name is seen. Functions and classes of the same
package are followed, and so are attributes of objects (``self.W``).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.api._accesses import Root, accesses
from sparsejit.api._flatten import Operands, is_array, is_scalar
from sparsejit.api._static import Identity, is_static, static_token
from sparsejit.api._substitute import FunctionPlan, MethodPlan, ObjectPlan, PartialPlan
from sparsejit.tensors import VALUE_TYPES

__all__ = [
    "DISPATCHED",
    "Captures",
    "Chains",
    "builtins_of",
    "by_first",
    "follows",
    "names_of",
    "package_of",
    "read_captures",
]

Chains = tuple[tuple[str, ...], ...]
"""The attributes read from one object: ``("layer", "W")`` for ``model.layer.W``."""

DISPATCHED: Final = type(np.sum)
"""The type of NumPy's array functions."""

_ABSENT = object()

_WRITING = frozenset({"append", "extend", "add", "insert", "update", "clear"})
"""What only writes into a container: a log that a function keeps is no input of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Captures:
    """What a function captures at one call; a plan is None where nothing is to be replaced."""

    function: object
    receiver: object
    token: Hashable


def read_captures(fn: Callable[..., Any], operands: Operands, receiver: object = None) -> Captures:
    """Read what ``fn`` captures now; captured arrays are added to ``operands``.

    ``receiver`` is the object that a method is called on, None for a plain function.
    """
    reader = _Reader(operands, package_of(fn))
    if not isinstance(
        fn, types.FunctionType
    ):  # a bound method, a partial, an object that is called
        plan, token = reader.value(fn, ((),), getattr(fn, "__name__", type(fn).__name__))
        return Captures(plan, None, token)
    plan, token = reader.function(fn, is_called_here=True)
    if receiver is None:
        return Captures(plan, None, token)
    found, seen = reader.object(receiver, _receiver_chains(fn.__code__), "self")
    return Captures(plan, found, (token, seen))


def builtins_of(fn: Any) -> Mapping[str, Any]:
    """Return where a function finds the names that its globals lack."""
    found: Mapping[str, Any] = fn.__builtins__
    return found


def package_of(value: object) -> str:
    """Return the package in which a function or class was defined."""
    return (getattr(value, "__module__", None) or "").partition(".")[0]


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType, root: Root) -> tuple[tuple[str, Chains], ...]:
    """Return the names that ``code`` reads from ``root``, each with what is read from it."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for access in accesses(code):
        if access.root is root:
            found.setdefault(access.name, []).append(access.attributes)
    return tuple((name, tuple(chains)) for name, chains in found.items())


def _receiver_chains(code: types.CodeType) -> Chains:
    return tuple(chain for _, chains in names_of(code, Root.RECEIVER) for chain in chains)


class _Reader:
    """One walk over what a function captures."""

    def __init__(self, operands: Operands, package: str) -> None:
        self.operands = operands
        self.package = package
        self.visiting: set[int] = set()

    def function(
        self, fn: types.FunctionType, *, is_called_here: bool = False
    ) -> tuple[object, Hashable]:
        """Return the plan of a function, None when it captures no array, and its token.

        The defaults of a function that ``is_called_here`` are arguments already.
        """
        if id(fn) in self.visiting:
            return None, fn
        self.visiting.add(id(fn))
        tokens: list[Hashable] = [fn, Identity(fn.__code__)]
        replaced: list[dict[str, object]] = []
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        for root in (Root.GLOBAL, Root.CLOSURE):
            found: dict[str, object] = {}
            for name, chains in names_of(fn.__code__, root):
                value = _cell(cells.get(name)) if cells and root is Root.CLOSURE else _ABSENT
                if root is Root.GLOBAL:
                    value = fn.__globals__.get(name, _ABSENT)
                    value = builtins_of(fn).get(name, _ABSENT) if value is _ABSENT else value
                if value is _ABSENT:
                    continue
                plan, token = self.value(value, chains, name)
                tokens.append(token)
                if plan is not None:
                    found[name] = plan
            replaced.append(found)
        parts: list[object] = []
        for defaults in () if is_called_here else (fn.__defaults__, fn.__kwdefaults__):
            plan, token = self._container(defaults, fn.__name__) if defaults else (None, None)
            tokens.append(token)
            parts.append(plan)
        self.visiting.discard(id(fn))
        is_replaced = any(replaced) or any(part is not None for part in parts)
        return FunctionPlan(fn, *replaced, *parts) if is_replaced else None, tuple(tokens)

    def value(  # noqa: C901 - one case for each kind
        self, value: Any, chains: Chains, name: str
    ) -> tuple[object, Hashable]:
        """Return what stands for a captured value, None for itself, and its token."""
        match value:
            case types.FunctionType():
                return self.function(value) if self._follows(value) else (None, value)
            case types.ModuleType():
                return self.module(value, chains, name)
            case types.BuiltinFunctionType() | np.ufunc():
                return None, value
            case _ if type(value) is DISPATCHED:
                return None, value
            case types.MethodType():
                return self.method(value, name)
            case functools.partial():
                return self.partial(value, name)
            case type() if any(chains) and self._follows(value):
                return None, self.object(value, chains, name)[1]
            case _ if is_static(value) or is_scalar(value):
                return None, static_token(value, name)
            case _ if is_array(value):
                if isinstance(value, np.ndarray) and not _is_numeric(value):
                    return None, Identity(value)  # a table of names, say: no operand
                return self.operands.add(value, name)
            case list() | dict() | set() if all(chain and chain[0] in _WRITING for chain in chains):
                return None, Identity(value)
            case tuple() | list() | dict():
                return self._container(value, name)
            case _ if isinstance(getattr(value, "py_func", None), types.FunctionType):
                return self.function(value.py_func)
            case _:
                return self.object(value, chains, name)

    def _follows(self, value: object) -> bool:
        return follows(value, self.package)

    def _container(self, value: Any, name: str) -> tuple[object, Hashable]:
        if id(value) in self.visiting:
            return None, Identity(value)
        self.visiting.add(id(value))
        pairs: Iterable[tuple[Any, Any]] = (
            value.items() if isinstance(value, dict) else enumerate(value)
        )
        items, tokens, any_plan = [], [], False
        for key, item in pairs:
            plan, token = self.value(item, ((),), f"{name}[{key!r}]")
            any_plan = any_plan or plan is not None
            items.append((key, item if plan is None else plan))
            tokens.append((key if isinstance(key, int) else static_token(key, name), token))
        self.visiting.discard(id(value))
        token = (type(value), *tokens)
        if not any_plan:
            return None, token
        if isinstance(value, dict):
            return dict(items), token
        parts = [item for _, item in items]
        return (parts if isinstance(value, list) else tuple(parts)), token

    def method(self, value: types.MethodType, name: str) -> tuple[object, Hashable]:
        """Return the plan and token of a method with its object."""
        called = value.__name__
        plan, token = self.object(value.__self__, ((called,),), name)
        return (None if plan is None else MethodPlan(plan, called)), (value.__func__, token)

    def partial(self, value: functools.partial[Any], name: str) -> tuple[object, Hashable]:
        """Return the plan and token of a function with some of its arguments."""
        parts = (value.func, value.args, value.keywords)
        plans, tokens = zip(
            self.value(value.func, ((),), name),
            self._container(value.args, name),
            self._container(value.keywords, name),
            strict=True,
        )
        if plans == (None, None, None):
            return None, (functools.partial, *tokens)
        found = [part if plan is None else plan for part, plan in zip(parts, plans, strict=True)]
        return PartialPlan(*found), (functools.partial, *tokens)

    def module(self, value: types.ModuleType, chains: Chains, name: str) -> tuple[object, Hashable]:
        """Return the plan and token of a module, from the attributes that are read."""
        if id(value) in self.visiting:
            return None, value
        self.visiting.add(id(value))
        tokens: list[Hashable] = [value]
        attributes: dict[str, object] = {}
        for first, rests in _first_of(chains):
            found = vars(value).get(first, _ABSENT)
            if found is not _ABSENT:
                plan, token = self.value(found, rests, f"{name}.{first}")
                tokens.append((first, token))
                if plan is not None:
                    attributes[first] = plan
        self.visiting.discard(id(value))
        return (ObjectPlan(value, attributes) if attributes else None), tuple(tokens)

    def object(self, value: Any, chains: Chains, name: str) -> tuple[object, Hashable]:
        """Return the plan and token of an object, from the attributes that are read."""
        if id(value) in self.visiting:
            return None, Identity(value)
        self.visiting.add(id(value))
        tokens: list[Hashable] = [Identity(value)]
        attributes: dict[str, object] = {}
        waiting = by_first(chains)
        called = inspect.getattr_static(type(value), "__call__", None) if () in chains else None
        self._follow_method(called, waiting)
        done: set[str] = set()
        while first := next((attribute for attribute in waiting if attribute not in done), None):
            done.add(first)
            found = _attribute(value, first)
            if found is _ABSENT:
                continue
            self._follow_method(found, waiting)
            plan, token = self.value(found, tuple(waiting[first]), f"{name}.{first}")
            tokens.append((first, token))
            if plan is not None:
                attributes[first] = plan
        self.visiting.discard(id(value))
        return (ObjectPlan(value, attributes) if attributes else None), tuple(tokens)

    def _follow_method(self, found: Any, waiting: dict[str, list[tuple[str, ...]]]) -> None:
        """Add what a method reads from its object to the attributes to be read."""
        method = getattr(found, "py_func", found)
        if isinstance(method, types.FunctionType) and self._follows(method):
            for first, rests in by_first(_receiver_chains(method.__code__)).items():
                waiting.setdefault(first, []).extend(rests)


def follows(value: object, package: str) -> bool:
    """Whether what a function or module of this package reads is captured as well."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] == package
    return package_of(value) == package


def _is_numeric(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype in VALUE_TYPES and not isinstance(array, np.ma.MaskedArray)


@functools.lru_cache(maxsize=4096)
def _first_of(chains: Chains) -> tuple[tuple[str, Chains], ...]:
    return tuple((first, tuple(rests)) for first, rests in by_first(chains).items())


def by_first(chains: Chains) -> dict[str, list[tuple[str, ...]]]:
    """Return what is read from each attribute that is read."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for chain in chains:
        if chain:
            found.setdefault(chain[0], []).append(chain[1:])
    return found


def _cell(cell: types.CellType | None) -> Any:
    try:
        return _ABSENT if cell is None else cell.cell_contents
    except ValueError:  # an empty cell: the name is not bound yet
        return _ABSENT


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute without running code of a property; ``_ABSENT`` where that is needed."""
    if isinstance(value, type):  # bases too
        return inspect.getattr_static(value, name, _ABSENT)
    own = getattr(value, "__dict__", {})
    if name in own:
        return own[name]
    found = inspect.getattr_static(type(value), name, _ABSENT)
    if isinstance(found, types.MemberDescriptorType):
        return getattr(value, name, _ABSENT)
    is_computed = hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType)
    return _ABSENT if is_computed and not hasattr(found, "py_func") else found
