"""What a call costs, in statements that the interpreter executes and elements that it allocates.

In: a function without arguments. Out: a number that is the same on every machine. Loops, searches
and sorts count by what they execute; an array of the generated code counts by its elements.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import sparsejit.backends.support

__all__ = ["executed"]

_GENERATED = "<sparsejit "
_SUPPORT = str(Path(sparsejit.backends.support.__file__).parent)


def executed(call: Callable[[], object]) -> int:
    """Return how many statements of generated code and of its support library ``call`` executes.

    To these are added the elements of all arrays that the generated code has when it returns.
    """
    total = 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal total
        if event == "line":
            total += 1
        elif event == "return" and frame.f_code.co_filename.startswith(_GENERATED):
            values = frame.f_locals.values()
            total += sum(value.size for value in values if isinstance(value, np.ndarray))
        return line

    def entered(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        return line if name.startswith((_GENERATED, _SUPPORT)) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return total
