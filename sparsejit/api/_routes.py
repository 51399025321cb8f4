"""The routes of one function: found by a look-up, or tried first because the last call took it.

In: the arguments of a call. Out: its result, or ``MISSED``. Calls with nothing but operands, all
positional, are answered before anything is bound; what the function reads from outside and the
environment are compared with what they were when the route was made. Other calls are looked up by
the tokens of their arguments.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from itertools import count
from time import perf_counter
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit._locks import OpenLock
from sparsejit.api._flatten import is_operand
from sparsejit.api._guards import Guards, guards_of
from sparsejit.api._route import MISSED, LastCall, Route, sign
from sparsejit.api._straight import StraightRoute
from sparsejit.backends.straight import ABSENT, Condition, Entry, Told, Variable
from sparsejit.trace import trace_in_progress

__all__ = ["Failure", "Routes", "Tally"]

_LARGEST = 512
"""How many routes a function keeps; when there are more, all are forgotten."""

_NAMES = ("SPARSEJIT_TARGET", "SPARSEJIT_CPU_BACKEND")
# Looking a name up in os.environ encodes it and decodes what is found, in a microsecond.
_variables: Any = getattr(os.environ, "_data", None)
if isinstance(_variables, dict) and hasattr(os.environ, "encodekey"):
    _keys: Any = tuple(map(os.environ.encodekey, _NAMES))
else:
    _variables, _keys = os.environ, _NAMES
_FIRST, _SECOND = _keys


def _environment() -> tuple[object, object]:
    """Return the variables that choose the target."""
    return _variables.get(_FIRST), _variables.get(_SECOND)


@dataclass(slots=True, eq=False)
class _Era:
    """Routes for operands alone, while environment and captured names are what they were."""

    environment: tuple[object, object]
    guards: Guards
    routes: dict[tuple[Hashable, ...], Route] = field(default_factory=dict)
    recent: Route | None = None
    straights: dict[Route, StraightRoute | None] = field(default_factory=dict)

    def conditions(self) -> tuple[Condition, ...]:
        """Return what has to hold for this to last, and that no function is being traced."""
        variables = (
            Entry(_variables, key, ABSENT if value is None else value)
            for key, value in zip(_keys, self.environment, strict=True)
        )
        return Variable(trace_in_progress, None), *variables, *self.guards.conditions

    def lasts(self) -> bool:
        return (
            _variables.get(_FIRST) == self.environment[0]
            and _variables.get(_SECOND) == self.environment[1]
            and self.guards.hold()
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """The last call raised an exception; ``text`` is its kind and message."""

    text: str


class Tally:
    """How many calls of a function found their route, and how the last one ended.

    A plan has a tally of its own, of which
    ``whole`` is that of its function: its calls count there, and are the last ones there too.
    """

    __slots__ = ("_last", "_lock", "_looks", "_numbers", "_words", "one_more", "whole")

    def __init__(self, whole: Tally | None = None) -> None:
        self.whole: Tally = whole or self
        self._numbers = count()
        # Atomic, and the cheapest way to count.
        self.one_more: Callable[[], int] = whole.one_more if whole else self._numbers.__next__
        self._looks = 0
        self._lock = OpenLock()
        # Machine code writes to these: the last call, how many it counted, nanoseconds of the last.
        self._last: list[LastCall | Failure | None] = [None]
        self._words = array("q", [0, 0])

    @property
    def last(self) -> tuple[LastCall, float] | Failure | None:
        """The last call with its seconds, or why it failed."""
        found = self._last[0]
        return (found, self._words[1] * 1e-9) if isinstance(found, LastCall) else found

    @last.setter
    def last(self, found: tuple[LastCall, float] | Failure) -> None:
        if isinstance(found, Failure):
            self._last[0] = found
        else:
            self._words[1] = round(found[1] * 1e9)
            self._last[0] = found[0]

    def told(self, call: LastCall) -> Told:
        """Return what straight calls do that are ``call``."""
        size, addresses = self._words.itemsize, {}
        for tally in (self, self.whole):
            addresses[tally] = tally._words.buffer_info()[0]
        lasts = tuple((tally._last, at + size) for tally, at in addresses.items())
        return Told(call, addresses[self.whole], lasts, (self, self.whole))

    @property
    def hits(self) -> int:
        """How often ``one_more`` was called, and how many calls machine code counted."""
        with self._lock:
            found = self.one_more() - self._looks
            self._looks += 1
        return found + self.whole._words[0]

    def failed(self, error: Exception) -> None:
        """Note that the last call raised an exception, of which only the text is kept."""
        self.last = self.whole.last = Failure(f"{type(error).__name__}: {error}")


class Routes:
    """The routes of ``fn``; the parameters are ``arity``, None where one takes no operand.

    Those that are ``fixed``, by number, are always the same.
    """

    __slots__ = (
        "_arity",
        "_asked",
        "_by_key",
        "_era",
        "_fixed",
        "_fn",
        "_needs_check",
        "_straight",
        "_tally",
    )

    def __init__(
        self,
        fn: Callable[..., Any],
        arity: int | None,
        needs_check: bool,
        tally: Tally,
        fixed: frozenset[int] = frozenset(),
    ) -> None:
        self._fn = fn
        self._arity = arity
        self._needs_check = needs_check
        self._tally = tally
        self._fixed = fixed
        self._era: _Era | None = None
        self._straight: StraightRoute | None = None
        self._by_key: dict[Hashable, Route] = {}
        self._asked: set[Hashable] = set()

    # ------------------------------------------------------------ operands alone

    def straight_answer(self, args: Sequence[Any]) -> Any:
        """Return the result of a call like the last one, or ``MISSED``.

        ``args`` are the positional arguments without those that are fixed.
        """
        straight = self._straight
        if straight is None:
            return MISSED
        try:
            found = straight.call(*args)
            if found is MISSED or (straight.is_plain and type(found) is not int):
                return found
            return straight.result(found, args)
        except MemoryError as error:
            raise straight.route.out_of_memory(error) from error

    def answer(self, args: Sequence[Any]) -> Any:
        """Return the result of a call with these positional arguments, or ``MISSED``."""
        era = self._era
        if era is None or len(args) != self._arity or not era.lasts():
            return MISSED
        recent = era.recent
        if recent is not None:
            found = self._run(recent, args)
            if found is not MISSED:
                return found
        signs = self._signs(args)
        route = None if signs is None else era.routes.get(signs)
        if route is None or route is recent:
            return MISSED
        self._take(era, route)
        return self._run(route, args)

    def _run(self, route: Route, objects: Sequence[Any]) -> Any:
        start = perf_counter()
        result = route.run(objects)
        if result is not MISSED:
            tally = self._tally
            tally.last = tally.whole.last = route.call, perf_counter() - start
            tally.one_more()
        return result

    def _signs(self, objects: Sequence[Any]) -> tuple[Hashable, ...] | None:
        """Return the signs of distinct operands, None where one has none."""
        signs = tuple([sign(value, self._needs_check) for value in objects])
        if None in signs or len(set(map(id, objects))) != len(objects):
            return None
        return signs

    def note(self, args: Sequence[Any], route: Route) -> None:
        """Remember the route of a call with these positional arguments."""
        if len(args) != self._arity or not all(map(is_operand, args)):
            return
        signs = self._signs(args)
        if signs is None:
            return
        era = self._era
        if era is None or not era.lasts() or len(era.routes) >= _LARGEST:
            guards = guards_of(self._fn)
            if guards is None:
                return
            era = self._era = _Era(_environment(), guards)
        # A new object has these signs only after its call, which made another route for them.
        era.straights.pop(era.routes.get(signs, route), None)
        era.routes[signs] = route
        self._take(era, route)

    def _take(self, era: _Era, route: Route) -> None:
        """Let the next calls try this route first."""
        era.recent = route
        if route not in era.straights:
            told = self._tally.told(route.call)
            era.straights[route] = StraightRoute.of(route, era.conditions(), told, self._fixed)
        self._straight = era.straights[route]

    # ------------------------------------------------------------ any call

    def key(self, tokens: Hashable, objects: Sequence[Any]) -> Hashable | None:
        """Return what a call is looked up by, None where it has no route."""
        signs = tuple([sign(value, self._needs_check) for value in objects])
        return None if None in signs else (_environment(), tokens, signs)

    def comes_again(self, key: Hashable | None) -> bool:
        """Whether a call with this key came before, which is remembered from now on.

        Then a route is worth its making, which takes longer than a small kernel; objects of another
        size each time, as batches are, would never take theirs.
        """
        if key is None or key in self._asked:
            return key is not None
        if len(self._asked) >= _LARGEST:
            self._asked.clear()
        self._asked.add(key)
        return False

    def answer_to(self, key: Hashable | None, objects: Sequence[Any]) -> Any:
        """Return the result of a call with this key, or ``MISSED``."""
        route = None if key is None else self._by_key.get(key)
        return MISSED if route is None else self._run(route, objects)

    def add(self, key: Hashable | None, route: Route) -> None:
        """Remember the route of a call with this key."""
        if key is not None:
            if len(self._by_key) >= _LARGEST:
                self._by_key.clear()
            self._by_key[key] = route
