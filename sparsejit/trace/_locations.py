"""Where in the user's source an operation was written.

Out: the innermost frame of the calling stack that is neither sparsejit's own nor NumPy's or
SciPy's, so that a message points at the line the user wrote, also through ``np.exp(A)``.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from types import FrameType

import numpy as np
import scipy

from sparsejit.errors import Location

__all__ = ["caller", "is_internal", "user_place"]

_PACKAGES = tuple(
    str(Path(file).resolve().parent) + os.sep
    for file in (Path(__file__).parent, np.__file__, scipy.__file__)
)
_TRACE = str(Path(__file__).with_name("_trace.py"))


@lru_cache(maxsize=4096)
def is_internal(filename: str) -> bool:
    """Return whether code of a file is sparsejit's own, NumPy's or SciPy's."""
    return filename.startswith(_PACKAGES) or filename.startswith("<__array_function__")


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame is internal; the methods that dataclasses write have no file of their own."""
    filename = frame.f_code.co_filename
    generated = filename == "<string>"
    module = str(frame.f_globals.get("__name__", ""))
    return is_internal(filename) or (generated and module.startswith("sparsejit."))


def caller() -> Location | None:
    """Return the place of the innermost frame outside of sparsejit, NumPy and SciPy.

    >>> caller().line
    1
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not _is_ours(frame):
            function = "" if code.co_name == "<module>" else code.co_name
            return Location(code.co_filename, frame.f_lineno, function)
        frame = frame.f_back
    return None


def user_place() -> tuple[tuple[int, int], ...]:
    """Return the instructions that the user's functions are at, those above the trace left out."""
    place: list[tuple[int, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _TRACE:
        if not _is_ours(frame):
            place.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(place)
