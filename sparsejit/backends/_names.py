"""Python names for the memrefs and variables of a loop function.

In: the names of the loop IR, which may be anything. Out: identifiers, unique, and none of Python's
or of the names that generated text imports. A name that is fine already stays as it is.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from sparsejit.backends import support
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType

__all__ = ["IMPORTED_FROM_NUMPY", "fresh_name", "python_names"]

IMPORTED_FROM_NUMPY = frozenset(
    {op.info.numpy for op in (*UnaryOp, *BinaryOp)} - {"real", "imag", "view", "bfloat16"}
    | {dtype.value for dtype in DType} - {"bool", "bfloat16"}
    | {"bool_", "empty", "full", "inf", "nan", "zeros"}
)
"""The names of NumPy that generated text may use; never those of a memref or variable."""

_RESERVED = frozenset((*keyword.kwlist, *dir(builtins), *support.__all__)) | IMPORTED_FROM_NUMPY


def fresh_name(base: str, taken: Iterable[str]) -> str:
    """Return an identifier like ``base`` that is neither reserved nor in ``taken``.

    >>> fresh_name("lambda", ()), fresh_name("x", ("x",)), fresh_name("%0", ())
    ('lambda_', 'x_1', '_0')
    """
    name = re.sub(r"\W", "_", base, flags=re.ASCII) or "_"
    name = f"_{name}" if name[0].isdigit() else name
    name = f"{name}_" if name in _RESERVED else name
    used = frozenset(taken)
    candidate, number = name, 0
    while candidate in used:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def python_names(names: Iterable[str]) -> dict[str, str]:
    """Return the Python name of each of ``names``; names that are identifiers come first.

    >>> python_names(["x%1", "x_1", "y"])
    {'x_1': 'x_1', 'y': 'y', 'x%1': 'x_1_1'}
    """
    ordered = list(dict.fromkeys(names))
    made: dict[str, str] = {}
    for name in sorted(ordered, key=lambda name: fresh_name(name, ()) != name):
        made[name] = fresh_name(name, made.values())
    return made
