"""Bound plans: a function with some arguments fixed, for iterations that change the others.

In: a function and the arguments to fix. Out: a callable of the rest. Fixed arguments are copied
when they are bound, so their values are those of that moment on every target.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.api._call import Prepared
from sparsejit.api._flatten import is_array, like_container
from sparsejit.api._route import MISSED
from sparsejit.api._routes import Routes, Tally
from sparsejit.runtime.residents import FIXED
from sparsejit.tensors import Check

if TYPE_CHECKING:
    from sparsejit.api._function import CompiledFunction

__all__ = ["Plan", "copied"]


@dataclass(frozen=True, slots=True, eq=False)
class _Fixed:
    """A fixed argument, and its arrays (and those fixed together with it), described."""

    value: Any
    prepared: dict[int, Prepared]


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """The fixed arguments, and the routes for calls with them.

    ``parts`` has, for each parameter, whether it is fixed and its value or the number of the open
    argument; ``front`` are the values where the fixed parameters come first, else None.
    """

    fixed: dict[str, _Fixed]
    routes: Routes
    parts: tuple[tuple[bool, Any], ...]
    front: tuple[Any, ...] | None

    @staticmethod
    def of(function: CompiledFunction, fixed: dict[str, _Fixed], tally: Tally) -> _State:
        numbers = count()
        parts = tuple(
            (True, fixed[name].value) if name in fixed else (False, next(numbers))
            for name in function.parameters
        )
        values = tuple(value for is_fixed, value in parts[: len(fixed)] if is_fixed)
        places = frozenset(place for place, (is_fixed, _) in enumerate(parts) if is_fixed)
        front = values if len(values) == len(fixed) else None
        return _State(fixed, function.routes(tally, places), parts, front)

    def merged(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return the values of all parameters."""
        if self.front is not None:
            return (*self.front, *args)
        return [value if is_fixed else args[value] for is_fixed, value in self.parts]

    @property
    def prepared(self) -> dict[int, Prepared]:
        """The fixed arrays, described, by identity."""
        return {key: part for whole in self.fixed.values() for key, part in whole.prepared.items()}


class Plan:
    """What ``f.bind(**fixed)`` returns: ``f`` of the arguments that are left.

    Positional arguments fill the parameters that are not fixed, in order. Results are fresh at each
    call. Assigning to a fixed argument is a ``ValueError``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> scale = sj.sparse_jit(lambda a, x: a * x, target="interpreter").bind(a=np.array([1.0, 2.0]))
    >>> scale(np.ones(2)).tolist()
    [1.0, 2.0]
    >>> scale.update(a=np.array([5.0, 6.0]))
    >>> scale(np.ones(2)).tolist()
    [5.0, 6.0]
    """

    def __init__(self, function: CompiledFunction, fixed: dict[str, Any]) -> None:
        self._function = function
        unknown = [name for name in fixed if name not in function.parameters]
        if unknown:
            raise TypeError(
                f"bind() got an unexpected keyword argument {unknown[0]!r}; the parameters of "
                f"{function.__name__} are {', '.join(map(repr, function.parameters))}"
            )
        self._tally = function.plan_tally()
        self._state = _State.of(function, _fixed(fixed, function.options.check), self._tally)
        self._open = tuple(name for name in function.parameters if name not in fixed)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        state = self._state  # another thread may update it
        is_positional = not kwargs and len(args) == len(self._open)
        try:
            if is_positional:
                found = state.routes.straight_answer(args)
                if found is not MISSED:
                    return found
                found = state.routes.answer(state.merged(args))
                if found is not MISSED:
                    return found
            named = self._named(state, args, kwargs)
            result, route = self._function.call_named(named, state.prepared, self._tally)
        except Exception as error:  # raised again, whatever it is: explain() tells why
            self._tally.failed(error)
            raise
        if route is not None and is_positional:
            state.routes.note(state.merged(args), route)
        return result

    def _named(
        self, state: _State, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of all arguments by name; ``TypeError`` for one too many."""
        named = dict(zip(self._open, args, strict=False))
        if len(args) > len(self._open):
            raise TypeError(
                f"the plan takes {len(self._open)} positional arguments, {len(args)} were given"
            )
        for name in kwargs:
            if name in named or name in state.fixed:
                raise TypeError(f"argument {name!r} has a value already")
        return {**{name: part.value for name, part in state.fixed.items()}, **named, **kwargs}

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """Say what is done for these arguments and why; without arguments, for the last call.

        As ``explain`` of the function, for the arguments that are not fixed. Raises ``ValueError``
        when the plan was not called.
        """
        if args or kwargs or (self._tally.last is None and not self._open):
            state = self._state
            return self._function.explain_named(self._named(state, args, kwargs), state.prepared)
        return self._function.explain_last(self._tally)

    def update(self, /, **fixed: Any) -> None:
        """Replace fixed arguments; their values are copied now.

        Raises ``ValueError`` for a name that is not fixed.
        """
        present = self._state.fixed
        for name in fixed:
            if name not in present:
                choices = ", ".join(map(repr, present)) or "none"
                raise ValueError(f"update() of {name!r}, which is not bound; bound are {choices}")
        changed = _fixed(fixed, self._function.options.check)
        self._state = _State.of(self._function, {**present, **changed}, self._tally)


def _fixed(given: dict[str, Any], check: Check) -> dict[str, _Fixed]:
    """Copy and describe arguments; an object met twice is copied once."""
    memo: dict[int, Any] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return like_container(value, list(map(walk, value)))
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if not is_array(value):
            return value
        if id(value) not in memo:
            memo[id(value)] = copied(value)
        return memo[id(value)]

    values = {name: walk(value) for name, value in given.items()}
    prepared = {id(made): Prepared.of(made, check) for made in memo.values()}
    for part in prepared.values():
        for buffer in part.operand.buffers:
            if isinstance(buffer, np.ndarray):
                FIXED.fix(buffer)
    return {name: _Fixed(value, prepared) for name, value in values.items()}


def copied(value: Any) -> Any:
    """Return a copy of an array or sparse array, with memory of its own."""
    if isinstance(value, np.ndarray):
        return np.array(value, order="K", subok=True)
    if hasattr(value, "copy"):
        return value.copy()
    return copy.deepcopy(value)
