"""What a straight call is asked for: a kernel behind a function that takes the user's operands.

In: for each operand what it must be, what else must be as it was, and who is told of the call. Out
of ``DirectCall.straight``: a callable that does all of it in machine code, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CellType, FunctionType
from typing import Any, Final

import numpy as np

from sparsejit._dataclasses import dataclass

__all__ = [
    "ABSENT", "Array", "Asked", "Cell", "Condition", "Constant", "Entry", "Field", "Number",
    "Operand", "Sparse", "Told", "Variable",
]  # fmt: skip

ABSENT: Final = object()
"""What a namespace holds under a name that it does not have."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array like that of the call it was made for."""


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse object of which there is a look with this mark, and it holds."""

    mark: int
    num_buffers: int


@dataclass(frozen=True, slots=True)
class Number:
    """An object of this type, which holds a double."""

    type: type


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """No argument of the call: these buffers always."""

    buffers: tuple[Any, ...]


Operand = Array | Sparse | Number | Constant


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A dictionary has this very object under a key, or has no such key."""

    namespace: Mapping[Any, Any]
    key: object
    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A cell of a closure has this very object, or is empty."""

    cell: CellType
    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A function has this very object as an attribute of this name, or has None there."""

    function: FunctionType
    name: str
    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A context variable has this very object."""

    variable: Any
    value: object


Condition = Entry | Cell | Field | Variable


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Who is told of a call that went well.

    ``hits`` is the address of a 64-bit integer that becomes one more. Each of ``lasts`` is a list
    whose first item becomes ``call``, and the address of a 64-bit integer that receives the
    nanoseconds. ``owner`` keeps these addresses alive.
    """

    call: object
    hits: int
    lasts: tuple[tuple[list[Any], int], ...]
    owner: object


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """All that a straight call does.

    ``apart`` are pairs of numbers of buffers that may share no memory, counted over all operands;
    ``made`` are extents and dtypes of the arrays made for results. It returns ``missed`` where
    anything is not as it was; the status where the kernel failed; else the arrays of the results,
    those that are made here first: in a tuple, or with ``is_single`` the one by itself. ``looks``
    are what sparse objects were when they were last looked at, by identity: a weak reference,
    64-bit words, buffers. The words are the mark, the number of attributes, and of each the
    addresses of its name and of what the object's dictionary held, None where it was missing.
    """

    operands: tuple[Operand, ...]
    conditions: tuple[Condition, ...]
    apart: tuple[tuple[int, int], ...]
    made: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    told: Told
    looks: Mapping[int, tuple[Any, ...]]
    missed: object
    is_single: bool
