"""What is remembered about a caller's object between calls: its structure, never its values.

In: an object and an ``Adapter`` that knows where its arrays are. Out: the ``Operand`` of this call.
A record is valid while address, length, strides and dtype of each index buffer, the shape and the
flags of the object are what they were. It holds the index buffers strongly, so that no address can
be recycled, and the object weakly; it dies with the object. Values are read anew at every call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.tensors._dtypes import checked_value_dtype, fill_scalar
from sparsejit.tensors._operand import Kind, Operand
from sparsejit.tensors._sparse_tensor import is_device_array
from sparsejit.tensors._storage import Structure, join_buffers
from sparsejit.tensors._values import ValuePlan

__all__ = [
    "Adapter",
    "Record",
    "Settled",
    "build_record",
    "canonical_values",
    "operand_from",
    "recall",
    "record_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """An object's canonical structure, the plan for its values, and how many values it has.

    With ``may_have_slack`` the object's array of values may be longer; the rest is unused. Behind
    its first axis it has the shape ``each``, where that is known.
    """

    structure: Structure
    plan: ValuePlan
    value_count: int
    may_have_slack: bool = False
    each: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """Where one kind of caller's object keeps what.

    ``index_arrays`` and ``values`` return the arrays as the object holds them, ``flags`` whatever
    else its structure depends on. ``settle(obj, is_trusted)`` checks and makes canonical.
    ``attributes`` names what in the object's dictionary all of this is read from: where the same
    objects are there again, nothing was replaced.
    """

    kind: Callable[[Any], Kind]
    index_arrays: Callable[[Any], tuple[Any, ...]]
    values: Callable[[Any], Any]
    flags: Callable[[Any], tuple[Any, ...]]
    settle: Callable[[Any, bool], Settled]
    fill_value: Callable[[Any], Any]
    attributes: tuple[str, ...] = ()


_Token = tuple[int, int, Any, Any]


@dataclass(slots=True, eq=False)
class Record:
    """The structure of one object, and the operand of its last call if that can be used again."""

    owner: weakref.ref[Any]
    adapter: Adapter
    watched: tuple[Any, ...]
    tokens: tuple[_Token, ...]
    flags: tuple[Any, ...]
    settled: Settled
    is_checked: bool
    operand: Operand | None = None
    seen_values: Any = None
    ready: Any = None  # what ``_ready`` makes of the operand

    def is_valid_for(self, obj: Any) -> bool:
        """Whether ``obj`` is the object of this record and its structure has not changed."""
        if self.owner() is not obj or self.adapter.flags(obj) != self.flags:
            return False
        arrays = self.adapter.index_arrays(obj)
        return len(arrays) == len(self.tokens) and all(
            map(_is_same, arrays, self.watched, self.tokens)
        )


def _is_same(array: Any, seen: Any, token: _Token) -> bool:
    """Whether ``array`` has the address, length, dtype and strides that ``seen`` had."""
    if array is seen and type(array) is np.ndarray:
        # The record holds the array, so its memory has not moved: NumPy resizes no array that is
        # referred to elsewhere. Asking for the address would take longer than all the rest.
        return array.size == token[1] and array.dtype is token[2] and array.strides == token[3]
    return _token(array) == token


_records: dict[int, Record] = {}


def record_of(obj: Any) -> Record | None:
    """Return the record of ``obj``, which may be out of date."""
    record = _records.get(id(obj))
    return record if record is not None and record.owner() is obj else None


def recall(obj: Any, needs_check: bool) -> Operand | None:
    """Return the operand of ``obj`` from its record, None when there is no valid one."""
    record = _records.get(id(obj))
    if record is None or (needs_check and not record.is_checked) or not record.is_valid_for(obj):
        return None
    values = record.adapter.values(obj)
    last = record.operand
    if last is not None and values is record.seen_values and values.dtype == last.dtype:
        return last
    return _operand_of_values(record, obj, values)


def build_record(obj: Any, adapter: Adapter, is_trusted: bool) -> Operand:
    """Read the structure of ``obj``, remember it, and return the operand of this call."""
    flags = adapter.flags(obj)
    watched = adapter.index_arrays(obj)
    settled = adapter.settle(obj, is_trusted)
    tokens = tuple(map(_token, watched))
    key = id(obj)

    def forget(dead: weakref.ref[Any]) -> None:
        found = _records.get(key)
        if found is not None and found.owner is dead:
            _records.pop(key, None)

    owner = weakref.ref(obj, forget)
    record = Record(owner, adapter, watched, tokens, flags, settled, not is_trusted)
    operand = _operand_of_values(record, obj, adapter.values(obj))
    _records[key] = record
    return operand


def _token(array: Any) -> _Token:
    """Return address, length, dtype and strides of an index array."""
    if type(array) is np.ndarray:
        return array.__array_interface__["data"][0], array.size, array.dtype, array.strides
    if is_device_array(array):
        return array.data.ptr, array.size, array.dtype, array.strides
    address = np.asarray(array).__array_interface__["data"][0]
    return address, array.size, array.dtype, array.strides


def _operand_of_values(record: Record, obj: Any, values: Any) -> Operand:
    adapter = record.adapter
    operand = operand_from(record.settled, values, adapter.fill_value(obj), adapter.kind(obj))
    if operand.is_shared:
        record.operand, record.seen_values = operand, values
    return operand


def operand_from(settled: Settled, values: Any, fill_value: Any, kind: Kind) -> Operand:
    """Return the operand of a settled structure with the values that the object has now.

    Raises ``TensorTypeError`` for an unsupported dtype, ``ValueError`` for a wrong length.
    """
    on_device = is_device_array(values)
    if not on_device and not isinstance(values, np.ndarray):
        raise ValueError(f"values must be an array, not {type(values).__name__}")
    dtype = checked_value_dtype(values.dtype)
    fill = fill_scalar(fill_value, dtype)
    source, canonical = canonical_values(settled, values, fill)
    structure = settled.structure
    buffers = join_buffers(structure, canonical)
    if structure.format.is_dense:
        buffers = (canonical.reshape(structure.shape),)
    fmt, shape = structure.format, structure.shape
    return Operand(fmt, shape, dtype, fill, buffers, kind, on_device, source, settled.plan)


def canonical_values(settled: Settled, values: Any, fill: Any) -> tuple[Any, Any]:
    """Return what is used of an object's array of values, and that in canonical order, flat."""
    source = _used_part(settled, values)
    flat = source if source.ndim == 1 else source.reshape(-1)
    if not flat.flags.c_contiguous or not (is_device_array(values) or flat.flags.aligned):
        flat = flat.copy()
    return source, settled.plan.read(flat, fill)


def _used_part(settled: Settled, values: Any) -> Any:
    count, each = settled.value_count, settled.each
    fmt = settled.structure.format
    if each is not None and values.ndim and values.shape[1:] != each:
        needed = ", ".join(["n", *map(str, each)])
        raise ValueError(f"values has shape {values.shape}, ({fmt}) needs ({needed})")
    if values.size == count:
        return values
    if settled.may_have_slack and values.ndim and values.size > count:
        return values[: count // prod(values.shape[1:])]
    raise ValueError(f"values has {values.size} elements, ({fmt}) needs {count}")
