"""NumPy arrays that the user's function makes, where they meet traced values: what to write.

An array of ``np.zeros(n)`` is NumPy's own: its elements are numbers, and a traced value has none.
With ``like=`` NumPy hands the call to the trace. Out: the error that says so, for an assignment
into such an array or a subscript of it by something traced, told by the user's instruction.
"""

from __future__ import annotations

import opcode
import sys
from types import FrameType

from sparsejit.errors import Location, TraceError
from sparsejit.trace._locations import caller, is_internal

__all__ = ["into_numpy_array", "refuse_numpy_use"]

_HINT = (
    "make it an array of the trace: np.zeros_like(x, shape=n), np.full(n, 0.0, like=x), "
    "np.array(..., like=x) with a traced x, or sj.output()"
)


def into_numpy_array(location: Location | None) -> TraceError:
    """Return the error for a traced value that is assigned into an array of NumPy's own."""
    return TraceError(
        "a traced value is assigned to a NumPy array made inside of the function",
        hint=_HINT,
        location=location,
    )


def refuse_numpy_use() -> None:
    """Raise ``TraceError`` where NumPy asks for an array because of the user's subscript.

    That is an assignment of a traced value to elements of a NumPy array, or a subscript of one.
    Nothing happens where NumPy asks for another reason.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return
    name = opcode.opname[frame.f_code.co_code[frame.f_lasti]]
    if name.startswith("STORE_"):  # STORE_SUBSCR, STORE_SLICE, and STORE_ATTR of y.flat
        raise into_numpy_array(caller())
    if name.startswith("BINARY_"):  # BINARY_SUBSCR, BINARY_SLICE, and BINARY_OP since 3.14
        raise TraceError(
            "a NumPy array made inside of the function is indexed by something traced",
            hint=_HINT,
            location=caller(),
        )
