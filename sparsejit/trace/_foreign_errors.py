"""Errors of others that leave the user's function: the user reads what to do instead.

In: the exception, raised by Python, NumPy or SciPy because of traced arrays. Out: a ``TraceError``
at the user's line; None for an exception that says by itself what is wrong.
"""

from __future__ import annotations

import traceback
from collections import Counter

from sparsejit.errors import Location, TraceError
from sparsejit.trace._locations import is_internal
from sparsejit.trace._numpy_arrays import into_numpy_array
from sparsejit.trace._scipy_calls import of_scipy

__all__ = ["restated"]

_RECURSIVE = 16
"""How often a line must be on the stack that ran over for a recursion of the user's."""


def restated(error: Exception) -> TraceError | None:
    """Return the error to show instead of one that left the user's function."""
    return _of_recursion(error) or _of_numpy(error) or of_scipy(error)


def _of_recursion(error: Exception) -> TraceError | None:
    """Restate that a function calls itself without end: its condition is not known in a trace."""
    if not isinstance(error, RecursionError):
        return None
    places: Counter[Location] = Counter()
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not is_internal(code.co_filename):
            places[Location(code.co_filename, line, code.co_name)] += 1
    for place, count in places.most_common(1):
        if count >= _RECURSIVE:
            return TraceError(
                f"{place.function} calls itself without end while it is traced",
                hint="a recursion must end by static values (static_argnames=, shapes made "
                "numbers by int()): what is traced decides nothing, and sj.cond traces both of "
                "its branches; write what depends on values with sj.fori_loop or sj.while_loop",
                location=place,
            )
    return None


def _of_numpy(error: Exception) -> TraceError | None:
    """Say better what NumPy says of an array of its own that is to hold a traced element."""
    cause = error.__cause__ or error.__context__
    if (
        isinstance(error, ValueError)
        and isinstance(cause, TraceError)
        and str(error).startswith("setting an array element")
    ):
        return into_numpy_array(cause.location)
    return None
