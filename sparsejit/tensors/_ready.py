"""What a call takes of a sparse object that has not changed: one look at its attributes.

In: an object that was described before. Out: the buffers that kernels take, with a number that
stands for everything else about it; or None, and then ``describe`` has to look again. Whether
something was put in the place of an array is seen here; what was done to an array in its place
(dtype, extents, flags) is compared by whoever hands the buffers on, except for arrays that are not
among them: these are compared here.
"""

from __future__ import annotations

import struct
import weakref
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.tensors._concrete import concrete
from sparsejit.tensors._operand import Operand
from sparsejit.tensors._records import Record, Settled, canonical_values, recall, record_of
from sparsejit.tensors._sparse_tensor import SparseTensor

__all__ = ["LOOKS", "Ready", "ready_of"]

_Watched = tuple[Any, Any, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """An operand with named index widths, and when it can be taken again.

    ``mark`` is equal for operands that differ in their buffers only: not in format, dtype, shape,
    fill value, kind, or the number of values. ``seen`` are attributes of the object and what they
    held, ``watched`` are arrays with dtype, extents and strides. Where the values are no array of
    the object, ``buffers`` lack them, and ``reading`` says what they are read from at each call.
    """

    origin: Operand | None
    buffers: tuple[Any, ...]
    mark: int
    seen: tuple[tuple[str, Any], ...]
    watched: tuple[_Watched, ...]
    reading: tuple[Settled, Any, Any] | None = None

    @property
    def all_buffers(self) -> tuple[Any, ...]:
        """The buffers, with the values that the object has now."""
        if self.reading is None:
            return self.buffers
        return *self.buffers, canonical_values(*self.reading)[1]

    def is_of(self, operand: Operand) -> bool:
        """Whether the buffers are those of an operand, but for values that are read anew."""
        count = len(self.buffers) + (self.reading is not None)
        pairs = zip(self.buffers, operand.buffers, strict=False)
        return count == len(operand.buffers) and all(one is other for one, other in pairs)

    def holds_for(self, obj: Any) -> bool:
        """Whether the object still has what was seen."""
        held = obj.__dict__.get
        for name, value in self.seen:
            if held(name) is not value:
                return False
        return not self.watched or all(map(_is_as_seen, self.watched))


def _is_as_seen(watched: _Watched) -> bool:
    array, dtype, shape, strides = watched
    return array.dtype is dtype and array.shape == shape and array.strides == strides


def ready_of(obj: Any, needs_check: bool) -> Ready | None:
    """Return what a call takes of ``obj``, None where it has to be described anew.

    With ``needs_check`` its structure must have been checked.
    """
    if type(obj) is SparseTensor:
        return _of_tensor(obj)
    record = record_of(obj)
    if record is None or (needs_check and not record.is_checked):
        return None
    ready: Ready | None = record.ready
    if ready is None or ready.origin is not record.operand:
        return _of_record(obj, record)
    if not ready.holds_for(obj):
        return None if ready.reading is None else _of_record(obj, record)
    if record.is_checked:
        _look_at(obj, ready)
    return ready


def _of_tensor(tensor: SparseTensor) -> Ready | None:
    operand, ready = tensor.operand, tensor.ready
    if operand is None:
        return None
    if ready is None or ready.origin is not operand:
        structure = tensor.structure
        own = (*structure.positions, *structure.coordinates, tensor.values)
        ready = tensor.ready = _made(operand, (), [array for array in own if array is not None])
    elif not ready.watched:
        _look_at(tensor, ready)
    if ready is None or not all(map(_is_as_seen, ready.watched)):
        return None
    return ready


def _of_record(obj: Any, record: Record) -> Ready | None:
    """Make what can be taken again of a record that is valid now."""
    operand, names = record.operand, record.adapter.attributes
    is_plain = type(obj).__module__.startswith("scipy.sparse")
    if not names or not is_plain or not record.is_valid_for(obj):
        return None
    values = record.adapter.values(obj)
    if operand is not None and values is not record.seen_values:
        return None
    held = obj.__dict__
    seen = tuple((name, held.get(name)) for name in names)
    if isinstance(held.get("coords", ()), list):  # could be changed in its place
        return None
    own = [*record.watched, values]
    ready = _made(operand, seen, own) if operand is not None else _read(obj, record, seen, own)
    record.ready = ready
    return ready


def _read(obj: Any, record: Record, seen: tuple[tuple[str, Any], ...], own: list[Any]) -> Any:
    """Make what can be taken again of a record whose values are read at each call."""
    if not all(type(array) is np.ndarray for array in own):
        return None
    operand = recall(obj, needs_check=False)
    if operand is None or record.operand is not None or operand.is_dense:
        return None
    ready = _made(operand, seen, own)
    if ready is None:
        return None
    watched = tuple((array, array.dtype, array.shape, array.strides) for array in own)
    reading = record.settled, own[-1], operand.fill_value
    return replace(ready, origin=None, buffers=ready.buffers[:-1], watched=watched, reading=reading)


def _made(operand: Operand, seen: tuple[tuple[str, Any], ...], own: list[Any]) -> Ready | None:
    if operand.on_device or not all(type(array) is np.ndarray for array in own):
        return None
    found = concrete(operand)
    watched = tuple(
        (array, array.dtype, array.shape, array.strides)
        for array in own
        if not any(array is buffer for buffer in found.buffers)
    )
    return Ready(operand, found.buffers, _mark(found), seen, watched)


# Numbers are never used again: when the table is emptied, what follows gets new ones.
_LARGEST = 4096
_numbers = count(1)
_marks: dict[tuple[Any, ...], int] = {}


def _mark(operand: Operand) -> int:
    key = (
        operand.format,
        operand.dtype,
        operand.fill_value.tobytes(),
        operand.shape,
        operand.kind,
        tuple(buffer.size for buffer in operand.buffers),
    )
    if len(_marks) >= _LARGEST:
        _marks.clear()
    return _marks.setdefault(key, next(_numbers))


# ---------------------------------------------------------------- for machine code

LOOKS: dict[int, tuple[weakref.ref[Any], bytes, tuple[Any, ...], Ready]] = {}
"""What straight calls take of checked objects, by identity; whether it holds they find out.

Each look is as these calls want it (``backends.straight``), and has the ``Ready`` that it is of. An
object is looked at when it is taken for the second time.
"""


def _look_at(obj: Any, ready: Ready) -> None:
    """Let straight calls take what ``ready`` has of ``obj``, which holds now."""
    key = id(obj)
    known = LOOKS.get(key)
    if ready.watched or (known is not None and known[3] is ready):
        return

    def forget(dead: weakref.ref[Any]) -> None:
        found = LOOKS.get(key)
        if found is not None and found[0] is dead:
            LOOKS.pop(key, None)

    pairs = [address for name, value in ready.seen for address in (id(name), id(value))]
    words = struct.pack(f"={2 + len(pairs)}q", ready.mark, len(ready.seen), *pairs)
    LOOKS[key] = weakref.ref(obj, forget), words, ready.buffers, ready
