"""A route as one call in machine code: the operands of the user in, what the kernel made out.

In: a route, what else has to hold, and who is told. Out: a ``StraightRoute``, or None where some of
what the route does is Python: numbers that are checked or converted, arrays that are given back
their values when the kernel fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.api._route import MISSED, Route
from sparsejit.backends.straight import Asked, Condition, Entry, Told
from sparsejit.tensors import LOOKS

__all__ = ["StraightRoute"]


@dataclass(frozen=True, slots=True, eq=False)
class StraightRoute:
    """``call(*operands)`` returns ``MISSED``, the status of a kernel that failed, or its arrays.

    With ``is_plain`` the one array is the result. The operands are those that are not ``fixed``.
    """

    call: Callable[..., Any]
    route: Route
    is_plain: bool
    fixed: frozenset[int]

    @staticmethod
    def of(
        route: Route, conditions: tuple[Condition, ...], told: Told, fixed: frozenset[int]
    ) -> StraightRoute | None:
        """Return the straight route, None where there is none."""
        direct = route.direct
        if route.ranges or route.kept or any(pack is not None for pack in direct.pack):
            return None
        if not all(type(c.namespace) is dict for c in conditions if isinstance(c, Entry)):
            return None  # it may do anything when it is asked
        asked = Asked(
            route.operands, conditions, route.written, direct.made, told, LOOKS, MISSED,
            route.is_plain,
        )  # fmt: skip
        call = direct.straight(asked) if fixed == route.constants else None
        return None if call is None else StraightRoute(call, route, route.is_plain, fixed)

    def result(self, found: Any, args: Sequence[Any]) -> Any:
        """Return the result of a call that returned ``found``; raise what a kernel raises."""
        route = self.route
        if type(found) is int:
            raise route.direct.failure(found)
        objects: Sequence[Any] = args
        if self.fixed:  # results are none of them
            left = iter(args)
            places = range(len(args) + len(self.fixed))
            objects = [None if place in self.fixed else next(left) for place in places]
        return route.recipe.results(route.direct.arranged(found), objects)
