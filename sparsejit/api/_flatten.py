"""From nested arguments to a flat list of operands.

In: tuples, lists and dicts of arrays, scalars and static values. Out: the same containers with a
``Slot`` for each operand, the operands themselves (an array met twice is one operand), and a token
of the structure and of the static values for the cache key.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsejit.api._static import is_static, static_token
from sparsejit.errors import TensorTypeError
from sparsejit.tensors import SparseTensor
from sparsejit.trace import Slot

__all__ = ["Operands", "is_array", "is_operand", "is_scalar", "like_container"]

_NUMBERS = (int, float, complex, np.generic)
_ARRAYS = (np.ndarray, SparseTensor, sp.sparray, sp.spmatrix)
_NO_ARRAYS = (*_NUMBERS, str, tuple, list, dict, type)
_FOREIGN = frozenset({"cupy", "cupyx", "sparse", "torch"})


def is_array(value: object) -> bool:
    """Whether a value is a tensor by itself, of NumPy or of another library."""
    if isinstance(value, _ARRAYS):
        return True
    if isinstance(value, _NO_ARRAYS):
        return False
    return (
        hasattr(value, "__dlpack__")
        or hasattr(value, "__cuda_array_interface__")
        or type(value).__module__.partition(".")[0] in _FOREIGN
    )


def is_scalar(value: object) -> bool:
    """Whether a value is a number that a call may change without compiling anew."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def is_operand(value: object) -> bool:
    """Whether a value becomes a parameter of the tensor function."""
    return is_scalar(value) or is_array(value)


_DEEPEST = 100
"""How deep containers may be nested."""


class Operands:
    """The operands met so far, in order; ``names`` says what each is called in the function."""

    __slots__ = ("_numbers", "names", "objects")

    def __init__(self) -> None:
        self.objects: list[object] = []
        self.names: list[str] = []
        self._numbers: dict[int, int] = {}

    def add(self, value: object, name: str) -> tuple[Slot, Hashable]:
        """Return the slot of an operand and its token; every scalar is an operand of its own."""
        number = len(self.objects)
        if not is_scalar(value):
            number = self._numbers.setdefault(id(value), number)
        if number == len(self.objects):
            self.objects.append(value)
            self.names.append(name)
        return Slot(number), number

    def flatten(self, value: object, name: str) -> tuple[object, Hashable]:
        """Return ``value`` with slots in the place of operands, and the token of its structure.

        ``TensorTypeError`` for a leaf that is neither an operand nor static.
        """
        if type(value) is np.ndarray or is_operand(value):
            return self.add(value, name)
        if is_static(value):
            return value, static_token(value, name)
        match value:
            case tuple() | list() | dict() if name.count("[") > _DEEPEST:
                raise TensorTypeError(
                    f"argument {_root(name)!r} is nested more than {_DEEPEST} deep, or holds itself"
                )
            case tuple() | list():
                parts = [self.flatten(item, f"{name}[{at}]") for at, item in enumerate(value)]
                tree = like_container(value, [part for part, _ in parts])
                return tree, (type(value), *(token for _, token in parts))
            case dict():
                found = {key: self.flatten(item, f"{name}[{key!r}]") for key, item in value.items()}
                tokens = ((static_token(key, name), token) for key, (_, token) in found.items())
                return {key: part for key, (part, _) in found.items()}, (dict, *tokens)
            case _:
                raise TensorTypeError(
                    f"argument {name!r} is of type {type(value).__qualname__}, which is neither "
                    "an array, a sparse tensor nor a number",
                    hint=f"for a constant of the function use static_argnames={_root(name)!r}",
                )


def like_container(container: tuple[Any, ...] | list[Any], items: list[Any]) -> Any:
    """Return the items in a container of the same type (list, tuple or a named tuple)."""
    if isinstance(container, list):
        return items
    if hasattr(container, "_fields"):  # a named tuple
        return type(container)(*items)
    return tuple(items)


def _root(name: str) -> str:
    return name.partition("[")[0]
