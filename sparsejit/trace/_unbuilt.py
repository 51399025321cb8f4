"""What the language has and tracing does not build yet: each says so, with the reason.

In: a call. Out: always an ``UnsupportedError`` (a ``TraceError`` outside of a traced function), so
that a program that is legal is refused rather than misread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from sparsejit.errors import UnsupportedError
from sparsejit.trace._context import require_trace
from sparsejit.trace._locations import caller

__all__ = ["FUNCTIONS"]

_REASONS = {
    "update": "updates by other operations than Python's operators are not traced yet",
}


def _refusing(name: str, reason: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        require_trace(name)
        raise UnsupportedError(f"{name} is not built", reasons=(reason,), location=caller())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Not built: {reason}. Raises ``UnsupportedError``."
    return function


FUNCTIONS = {name: _refusing(name, reason) for name, reason in _REASONS.items()}
"""The functions by name, which the package exports until they are built."""
