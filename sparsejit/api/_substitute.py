"""Substitution: a function that sees tracers where its captured arrays were.

In: the plan that ``_captures`` made. Out: copies of functions and objects in which captured arrays
are replaced; the originals stay as they are, so other threads notice nothing.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Sequence
from typing import Any, cast

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TraceError
from sparsejit.trace import Slot

__all__ = ["FunctionPlan", "MethodPlan", "ObjectPlan", "PartialPlan", "substitute"]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPlan:
    """A function to rebuild with other globals, closure variables and, if not None, defaults."""

    original: types.FunctionType
    globals: dict[str, object]
    cells: dict[str, object]
    defaults: object = None
    kwdefaults: object = None


@dataclass(frozen=True, slots=True, eq=False)
class ObjectPlan:
    """An object (or module) to copy, shallowly, with other attributes."""

    original: object
    attributes: dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class MethodPlan:
    """A method of an object that ``owner`` describes."""

    owner: object
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class PartialPlan:
    """A ``functools.partial`` to rebuild; each part is a plan or as it was."""

    func: object
    args: object
    keywords: object


def substitute(plan: object, tracers: Sequence[object]) -> object:
    """Return what ``plan`` describes, ``tracers[k]`` standing for slot ``k``."""
    match plan:
        case Slot(index):
            return tracers[index]
        case FunctionPlan():
            return _function(plan, tracers)
        case ObjectPlan():
            return _object(plan, tracers)
        case MethodPlan(owner, name):
            return getattr(substitute(owner, tracers), name)
        case PartialPlan():
            return _partial(plan, tracers)
        case list():
            return [substitute(item, tracers) for item in plan]
        case tuple():
            return tuple(substitute(item, tracers) for item in plan)
        case dict():
            return {key: substitute(item, tracers) for key, item in plan.items()}
        case _:
            return plan


def _function(plan: FunctionPlan, tracers: Sequence[object]) -> types.FunctionType:
    original = plan.original
    namespace = original.__globals__
    if plan.globals:
        changed = {name: substitute(item, tracers) for name, item in plan.globals.items()}
        namespace = {**namespace, **changed}
    closure = tuple(
        types.CellType(substitute(plan.cells[name], tracers)) if name in plan.cells else cell
        for name, cell in zip(
            original.__code__.co_freevars, original.__closure__ or (), strict=True
        )
    )
    made = types.FunctionType(original.__code__, namespace, original.__name__, None, closure)
    for name, plans in (("__defaults__", plan.defaults), ("__kwdefaults__", plan.kwdefaults)):
        found = getattr(original, name) if plans is None else substitute(plans, tracers)
        setattr(made, name, found)
    made.__dict__.update(original.__dict__)
    return made


def _partial(plan: PartialPlan, tracers: Sequence[object]) -> object:
    parts = (plan.func, plan.args, plan.keywords)
    func, args, keywords = (substitute(part, tracers) for part in parts)
    made: Any = functools.partial
    return made(func, *cast("tuple[Any, ...]", args), **cast("dict[str, Any]", keywords))


def _object(plan: ObjectPlan, tracers: Sequence[object]) -> object:
    original = plan.original
    if isinstance(original, types.ModuleType):
        made: object = types.ModuleType(original.__name__)
        vars(made).update(vars(original))
    else:
        try:
            made = copy.copy(original)
        except Exception as error:  # copying runs the class's own code, which may raise anything
            raise TraceError(
                f"the arrays of a {type(original).__qualname__} cannot be traced, because "
                f"copying it failed: {error}",
                hint="pass the arrays as arguments",
            ) from error
    for name, item in plan.attributes.items():
        if isinstance(item, FunctionPlan) and name not in getattr(original, "__dict__", {}):
            value: object = types.MethodType(_function(item, tracers), made)
        else:
            value = substitute(item, tracers)
        if isinstance(made, types.ModuleType):
            vars(made)[name] = value
        else:
            object.__setattr__(made, name, value)
    return made
