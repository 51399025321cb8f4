"""SciPy's functions called on traced arrays: the user reads what to do instead.

In: the exception that left the user's function. Out: a ``TraceError`` at the user's line where a
function of SciPy was given a traced array and did not know it; None otherwise. ``issparse`` is the
one function that is answered.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import scipy

from sparsejit.errors import Location, SparseJitError, TraceError
from sparsejit.trace._array import Array
from sparsejit.trace._locations import caller, is_internal

__all__ = ["is_asked_by_user", "of_scipy"]

_SCIPY = str(Path(scipy.__file__).resolve().parent)
_WRAPPERS = ("wrapper", "wrapped", "inner", "_wrapper", "func_wrapper", "fun")

_HINTS = {
    **dict.fromkeys(
        ("array", "matrix"),
        "leave it out: sparse operands are sparse already; sj.asarray(A, format) and A.tocsr() "
        "convert",
    ),
    "norm": "use np.linalg.norm",
    **dict.fromkeys(("diags", "diags_array", "spdiags"), "use np.diag or A * d[:, None]"),
    **dict.fromkeys(
        ("spsolve", "cg", "gmres", "bicgstab", "minres", "splu", "spilu", "inv", "factorized"),
        "iterate with sj.while_loop (conjugate gradients), or call SciPy's outside of the traced "
        "function",
    ),
}
_OTHERWISE = (
    "use NumPy's, as np.vstack, np.kron, np.diag and np.linalg.norm, or call SciPy's outside of "
    "the traced function"
)


def of_scipy(error: Exception) -> TraceError | None:
    """Return the error to show instead of one that SciPy raised for a traced array."""
    if isinstance(error, SparseJitError):
        return None
    place: Location | None = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not is_internal(code.co_filename):
            function = "" if code.co_name == "<module>" else code.co_name
            place = Location(code.co_filename, line, function)
            continue
        is_wrapper = not code.co_filename.startswith(_SCIPY) or code.co_name in _WRAPPERS
        if not is_wrapper and _has_array(tuple(frame.f_locals.values())):
            return _refusal(_name(frame), place)
    return None


def is_asked_by_user() -> bool:
    """Return whether a class is looked at for the user's ``scipy.sparse.issparse(A)``.

    SciPy's own code asks too, and must not take a traced array for one of its own. Raises
    ``TraceError`` for ``isspmatrix`` and its kin: matrices and arrays are one program.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") == "abc":
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(_SCIPY):
        return False
    above, name = frame.f_back, frame.f_code.co_name
    if above is None or is_internal(above.f_code.co_filename):
        return False
    if name.startswith("isspmatrix"):
        raise TraceError(
            f"whether a traced array is a matrix of SciPy's ({name}) is not known while tracing",
            hint="use sp.issparse, or ask outside of the traced function",
            location=caller(),
        )
    return name == "issparse"


def _has_array(values: Any) -> bool:
    return any(
        isinstance(value, Array) or (isinstance(value, list | tuple) and _has_array(value))
        for value in values
    )


def _name(frame: FrameType) -> str:
    """Return the name of a function, or of the class of which an object is made."""
    name = frame.f_code.co_name
    made = frame.f_locals.get("self")
    return type(made).__name__ if name == "__init__" and made is not None else name


def _refusal(name: str, place: Location | None) -> TraceError:
    kind = name.rpartition("_")[2] if name.endswith(("_array", "_matrix")) else name
    return TraceError(
        f"SciPy's {name} takes no traced arrays",
        hint=_HINTS.get(name, _HINTS.get(kind, _OTHERWISE)),
        location=place,
    )
