"""Binding: from the arguments of one call to a tree of slots, a list of operands and a token.

In: positional and keyword arguments as the user passes them. Out: ``Bound``: arguments in the
function's own order with defaults filled in, arrays and numbers replaced by slots, static values in
place. A wrong number or name of arguments is the ``TypeError`` that Python itself would raise.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.api._flatten import Operands
from sparsejit.api._static import Identity, static_token
from sparsejit.errors import UnsupportedError

__all__ = ["Bound", "Signature"]


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of one call: ``args`` and ``kwargs`` hold slots of ``operands``."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    operands: Operands
    token: Hashable


def _signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    if isinstance(fn, np.ufunc):  # its other arguments must not be spelled out, defaults or not
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(f"x{n}", kind) for n in range(fn.nin)])
    return inspect.signature(fn)


def _defaults_of(fn: Any) -> tuple[object, ...]:
    """Return what the signature of a function depends on, to be compared by identity."""
    found: list[object] = []
    while fn is not None:
        if isinstance(fn, types.FunctionType):
            keywords = fn.__kwdefaults__ or {}
            found += (fn.__code__, fn.__defaults__, *keywords, *keywords.values())
        names = ("__func__", "func", "__wrapped__")
        fn = next((getattr(fn, name) for name in names if hasattr(fn, name)), None)
    return tuple(found)


class Signature:
    """The signature of the user's function and which of its arguments are static.

    Raises ``ValueError`` when ``static_argnames`` names no parameter of the function.
    """

    def __init__(self, fn: Callable[..., Any], static_argnames: Sequence[str]) -> None:
        self._fn = fn
        self._signature = _signature_of(fn)
        self._defaults = _defaults_of(fn)
        self._static = frozenset(static_argnames)
        parameters = self._signature.parameters
        self.names = tuple(parameters)
        kinds = {parameter.kind for parameter in parameters.values()}
        self._more = next(
            (n for n, p in parameters.items() if p.kind is inspect.Parameter.VAR_KEYWORD), None
        )
        self._is_plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        unknown = [name for name in static_argnames if name not in parameters]
        if unknown and self._more is None:
            raise ValueError(
                f"static_argnames names {unknown[0]!r}, which is no parameter of "
                f"{fn.__qualname__}; the choices are {', '.join(map(repr, parameters))}"
            )

    @property
    def arity(self) -> int | None:
        """How many operands the function takes by position, None where it takes anything else."""
        return len(self.names) if self._is_plain and not self._static else None

    def bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_method: bool = False
    ) -> Bound:
        """Bind and flatten; with ``is_method`` the first argument is an object, not an operand."""
        if self._is_plain and not kwargs and len(args) == len(self.names):
            return self._bound(dict(zip(self.names, args, strict=True)), is_method)
        self._look_again()
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._bound(bound.arguments, is_method)

    def bind_named(self, named: Mapping[str, Any], *, is_method: bool = False) -> Bound:
        """Bind arguments that are all given by name, also positional ones."""
        found = {name: named[name] for name in self.names if name in named}
        if self._is_plain and len(found) == len(named) == len(self.names):
            return self._bound(found, is_method)
        self._look_again()
        for name, parameter in self._signature.parameters.items():
            is_variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if name not in found and parameter.default is parameter.empty and not is_variable:
                raise TypeError(f"missing a required argument: {name!r}")
        unknown = [name for name in named if name not in found]
        if unknown:
            raise TypeError(f"got an unexpected keyword argument {unknown[0]!r}")
        bound = inspect.BoundArguments(self._signature, found)
        bound.apply_defaults()
        return self._bound(bound.arguments, is_method)

    def _look_again(self) -> None:
        """Take defaults that were changed; ``UnsupportedError`` where parameters were, too."""
        found = _defaults_of(self._fn)
        if len(found) == len(self._defaults) and all(map(operator.is_, found, self._defaults)):
            return
        signature = _signature_of(self._fn)
        kinds = [(p.name, p.kind) for p in self._signature.parameters.values()]
        if [(p.name, p.kind) for p in signature.parameters.values()] != kinds:
            raise UnsupportedError(
                "the parameters of the function are others than when it was decorated",
                hint="decorate it again",
            )
        self._signature, self._defaults = signature, found

    def _bound(self, named: Mapping[str, Any], is_method: bool) -> Bound:
        operands = Operands()
        receiver = self.names[0] if is_method and self.names else None
        trees: dict[str, object] = {}
        tokens: list[Hashable] = []
        for name, value in named.items():
            if name == receiver:
                trees[name] = value
                tokens.append(Identity(value))
            else:
                trees[name], token = self._argument(name, value, operands)
                tokens.append((name, token))
        if self._is_plain:
            return Bound(tuple(trees.values()), {}, operands, tuple(tokens))
        whole = inspect.BoundArguments(self._signature, trees)
        return Bound(whole.args, whole.kwargs, operands, tuple(tokens))

    def _argument(self, name: str, value: Any, operands: Operands) -> tuple[object, Hashable]:
        if name in self._static:
            return value, static_token(value, name)
        if name == self._more:
            found = {key: self._extra(key, item, operands) for key, item in sorted(value.items())}
            tree = {key: part for key, (part, _) in found.items()}
            return tree, tuple((key, token) for key, (_, token) in found.items())
        return operands.flatten(value, name)

    def _extra(self, name: str, value: Any, operands: Operands) -> tuple[object, Hashable]:
        if name in self._static:
            return value, static_token(value, name)
        return operands.flatten(value, name)
