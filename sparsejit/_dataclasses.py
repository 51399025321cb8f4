"""Dataclasses that are quick to define: their methods are made when they are first called.

In: a class, and the arguments of ``dataclasses.dataclass``. Out: a dataclass that behaves the same.
The standard decorator compiles six methods for each class, which takes half a millisecond; that was
more than half of ``import sparsejit``, and most classes are not met in a process. Classes that are
ordered, keyword-only, or have an ``__init__`` of their own use the standard one, and the modules
around them.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False, weakref_slot=False):
        """Return what ``dataclasses.dataclass`` makes of a class.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 2
        >>> Point(1), Point(1) == Point(1, 2), hash(Point(1)) == hash(Point(1, y=2))
        (Point(x=1, y=2), True, True)
        """

        def made(given: type) -> type:
            return _made(given, frozen, eq, slots, weakref_slot)

        return made if cls is None else made(cls)


def _made(given: Any, frozen: bool, eq: bool, slots: bool, weakref_slot: bool) -> Any:
    own = dict(vars(given))
    if not own.get("__doc__"):  # it would be made of the signature
        given.__doc__ = given.__name__
    standard: Any = dataclasses.dataclass
    options = {"init": False, "repr": False, "eq": False}
    made: Any = standard(**options, slots=slots, weakref_slot=weakref_slot)(given)
    for name in _METHODS:
        is_wanted = eq or name not in ("__eq__", "__hash__")
        if is_wanted and own.get(name) is None:
            setattr(made, name, _Unmade(made, name))
    if not frozen:
        if eq:
            made.__hash__ = own.get("__hash__")
        return made
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    if slots and "__getstate__" not in own:
        made.__getstate__, made.__setstate__ = _state, _set_state
    return made


class _Unmade:
    """A method that puts the real one into its place when it is first looked up."""

    __slots__ = ("_cls", "_name")

    def __init__(self, cls: Any, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        real: Any = _real(self._cls, self._name)
        real.__qualname__ = f"{self._cls.__qualname__}.{self._name}"
        setattr(self._cls, self._name, real)
        return real.__get__(obj, owner)


def _real(cls: Any, name: str) -> Callable[..., Any]:
    """Return a method for the fields of a class."""
    parts = dataclasses.fields(cls)
    match name:
        case "__init__":
            return _init(cls, parts)
        case "__repr__":
            shown = [part.name for part in parts if part.repr]
            return lambda self: (
                f"{type(self).__qualname__}"
                f"({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"
            )
        case "__eq__":
            return _eq(_items([part.name for part in parts if part.compare]))
        case _:
            hashed = [p.name for p in parts if (p.compare if p.hash is None else p.hash)]
            items = _items(hashed)
            return lambda self: hash(items(self))


def _items(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what makes a tuple of some fields of an object."""
    match names:
        case []:
            return lambda _: ()
        case [only]:
            return lambda item: (getattr(item, only),)
        case _:
            return operator.attrgetter(*names)


def _eq(items: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def is_equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return items(self) == items(other)

    return is_equal


def _init(cls: Any, parts: tuple[dataclasses.Field[Any], ...]) -> Callable[..., Any]:
    """Return ``__init__``: compiled once for all classes whose fields differ in name only."""
    is_frozen = cls.__setattr__ is _refuse_to_set
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    taken, lines, defaults = ["self"], [], []
    for number, part in enumerate(parts):
        value = place = f"_{number}"
        if part.default_factory is not dataclasses.MISSING:
            names[f"_made{number}"] = part.default_factory
            value = f"_made{number}() if {place} is _missing else {place}"
        if part.init:
            taken.append(place)
            if value != place:
                defaults.append(dataclasses.MISSING)
            elif part.default is not dataclasses.MISSING:
                defaults.append(part.default)
        elif value != place:
            value = f"_made{number}()"
        elif part.default is not dataclasses.MISSING:
            names[f"_default{number}"] = part.default
            value = f"_default{number}"
        else:
            continue  # set by ``__post_init__``, or later
        lines.append(f"_set(self, {place!r}, {value})" if is_frozen else f"self.{place} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    code = _renamed(_compiled(", ".join(taken), "; ".join(lines) or "pass"), parts)
    return types.FunctionType(code, names, "__init__", tuple(defaults))


@functools.cache
def _compiled(parameters: str, body: str) -> types.CodeType:
    names: dict[str, Any] = {}
    exec(f"def __init__({parameters}): {body}", names)
    code: types.CodeType = names["__init__"].__code__
    return code


def _renamed(code: types.CodeType, parts: tuple[dataclasses.Field[Any], ...]) -> types.CodeType:
    """Return code with the names of fields where it has their numbers."""
    known: dict[Any, Any] = {f"_{number}": part.name for number, part in enumerate(parts)}
    return code.replace(
        co_varnames=tuple([known.get(name, name) for name in code.co_varnames]),
        co_names=tuple([known.get(name, name) for name in code.co_names]),
        co_consts=tuple([known.get(value, value) for value in code.co_consts]),
    )


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
