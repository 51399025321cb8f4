"""Dataclasses that are quick to define: their methods are made when they are first called.

In: a class, and the arguments of ``dataclasses.dataclass``. Out: a dataclass that behaves the same.
The standard decorator compiles six methods for each class, which takes half a millisecond; that was
more than half of ``import sparsejit``, and most classes are not met in a process. Classes that are
ordered, keyword-only, or have an ``__init__`` of their own use the standard one, and the modules
around them.
"""

from __future__ import annotations

import dataclasses
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
            setattr(made, name, _first_call(made, name, frozen))
    if not frozen:
        if eq:
            made.__hash__ = own.get("__hash__")
        return made
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    if slots and "__getstate__" not in own:
        made.__getstate__, made.__setstate__ = _state, _set_state
    return made


def _first_call(cls: Any, name: str, frozen: bool) -> Callable[..., Any]:
    """Return a method that puts the real one into its place when it is called."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        real = _real(cls, name, frozen)
        setattr(cls, name, real)
        return real(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return method


def _real(cls: Any, name: str, frozen: bool) -> Callable[..., Any]:
    """Return a method, compiled for the fields of a class."""
    parts = dataclasses.fields(cls)
    match name:
        case "__init__":
            return _init(cls, parts, frozen)
        case "__repr__":
            shown = [part.name for part in parts if part.repr]
            return lambda self: (
                f"{type(self).__qualname__}"
                f"({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"
            )
        case "__eq__":
            compared = [part.name for part in parts if part.compare]
            one, other = (_items(owner, compared) for owner in ("self", "other"))
            same = f"{one} == {other} if other.__class__ is self.__class__ else NotImplemented"
            return _compiled("self, other", [f"return {same}"], name, {})
        case _:
            hashed = [p.name for p in parts if (p.compare if p.hash is None else p.hash)]
            return _compiled("self", [f"return hash({_items('self', hashed)})"], name, {})


def _init(cls: Any, parts: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., Any]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    taken, lines = ["self"], []
    for part in parts:
        value, has_default = part.name, part.default is not dataclasses.MISSING
        if has_default:
            names[f"_default_{part.name}"] = part.default
        if part.default_factory is not dataclasses.MISSING:
            names[f"_factory_{part.name}"] = part.default_factory
            made = f"_factory_{part.name}()"
            value = f"{made} if {part.name} is _missing else {part.name}" if part.init else made
            default = "=_missing"
        else:
            default = f"=_default_{part.name}" if has_default else ""
            value = part.name if part.init else f"_default_{part.name}"
            if not (part.init or has_default):
                continue  # set by ``__post_init__``, or later
        if part.init:
            taken.append(f"{part.name}{default}")
        stored = f"_set(self, {part.name!r}, {value})" if frozen else f"self.{part.name} = {value}"
        lines.append(stored)
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compiled(", ".join(taken), lines or ["pass"], "__init__", names)


def _items(owner: str, names: list[str]) -> str:
    return f"({''.join([f'{owner}.{name}, ' for name in names])})"


def _compiled(
    parameters: str, lines: list[str], name: str, names: dict[str, Any]
) -> Callable[..., Any]:
    body = "".join([f"    {line}\n" for line in lines])
    exec(f"def {name}({parameters}):\n{body}", names)
    made: Callable[..., Any] = names[name]
    return made


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
