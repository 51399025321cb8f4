"""A call from Python in a fraction of a microsecond: guards and packing in machine code.

In: the address of an entry and what was seen at one call of it. Out: a callable of Python's
vectorcall convention. It compares type, dtype, flags, extents and strides of each array with what
was seen, lays down the words that the entry takes, releases the GIL and calls it. Where anything
differs it touches nothing and returns ``MISS``. The code is the same for all kernels; what differs
is a table, so it is compiled once and kept on disk like any other.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsejit.backends.base import MISS
from sparsejit.backends.llvm._module import OBJECT_HEAD, Emitted
from sparsejit.debug import logger
from sparsejit.errors import BackendError

__all__ = [
    "Double",
    "Made",
    "Part",
    "Received",
    "Seen",
    "Word",
    "guarded_call",
    "is_supported",
]

_FLAGS = 0x503
"""The flags of an array that matter: contiguous (C, Fortran), aligned, writeable."""

_C_CONTIGUOUS = 0x1
_BYTES_HEAD = bytes.__basicsize__ - 1
_HEAD_WORDS = 8
_METH_FASTCALL = 0x80


@dataclass(frozen=True, slots=True)
class Seen:
    """An array that must be like ``array``; its address goes to word ``place``."""

    place: int
    array: Any


@dataclass(frozen=True, slots=True)
class Made:
    """An array that the caller has just made as it should be: not compared."""

    place: int


@dataclass(frozen=True, slots=True)
class Double:
    """An object of type float, or of a subtype of NumPy's."""

    place: int


@dataclass(frozen=True, slots=True)
class Word:
    """Sixteen bytes in a ``bytes`` object: a scalar of any other type."""

    place: int


@dataclass(frozen=True, slots=True)
class Received:
    """An array of 64-bit integers that receives the words which the entry writes."""


Part = Seen | Made | Double | Word | Received


def _descriptor(part: Part) -> list[int]:
    """Return the words that describe one argument in the table."""
    match part:
        case Seen(place, array):
            flags = array.flags.num & _FLAGS
            strides = [] if flags & _C_CONTIGUOUS else list(array.strides)
            shape = list(array.shape)
            head = [0, place, id(array.dtype), flags, len(shape), len(strides)]
            return [*head, *shape, *strides]
        case Made(place):
            return [1, place]
        case Double(place):
            return [2, place]
        case Word(place):
            return [3, place]
        case Received():
            return [4, 0]


def guarded_call(
    address: int, template: Sequence[int], room: int, parts: Sequence[Part]
) -> Callable[..., int] | None:
    """Return a callable of one object for each of ``parts``, which calls the entry at ``address``.

    The entry gets ``template`` with the words of the parts written over it, and ``room`` words
    behind it. None where this Python is not laid out as the code expects.
    """
    code = _code()
    if code is None:
        return None
    words = len(template) + room
    table = [len(parts), address, *code.functions, id(np.ndarray), words, room]
    assert len(table) == _HEAD_WORDS
    for part in parts:
        table += _descriptor(part)
    content = struct.pack(f"={len(table) + words}q", *table, *template, *[0] * room)
    # The template stands behind the descriptors, where the walk over these ends.
    return code.bound(content)


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Code:
    """The loaded code: what makes callables of tables, and the functions of Python it calls."""

    __slots__ = ("_definition", "_make", "_owner", "functions")

    def __init__(self, address: int, owner: object) -> None:
        api = ctypes.pythonapi
        names = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLong")
        found = (ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in names)
        self.functions = tuple(value or 0 for value in found)
        self._owner = owner
        self._definition = _MethodDefinition(b"guarded_call", address, _METH_FASTCALL, None)
        make = api.PyCFunction_NewEx
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        make.restype = ctypes.py_object
        self._make: Any = make

    def bound(self, table: bytes) -> Callable[..., int]:
        """Return the function of Python whose ``self`` is ``table``."""
        made: Callable[..., int] = self._make(ctypes.addressof(self._definition), table, None)
        return made


_lock = threading.Lock()


def _code() -> _Code | None:
    with _lock:
        return _loaded()


@functools.cache
def _loaded() -> _Code | None:
    from sparsejit.backends.llvm._engine import load_module

    if not is_supported():
        return None
    try:
        loaded = load_module(lambda _: Emitted(_TEXT, ()), (_TEXT,), "guarded", cache=True)
    except BackendError as error:
        logger.warning("calls take the long way: %s", error)
        return None
    return _Code(loaded.address, loaded)


@functools.cache
def is_supported() -> bool:
    """Whether objects of this Python have their fields where the code looks for them."""
    if sys.implementation.name != "cpython" or not hasattr(ctypes.pythonapi, "PyCFunction_NewEx"):
        return False
    probe = np.empty((3, 5), np.int16)[::2]
    fields = (ctypes.c_int64 * 7).from_address(id(probe) + OBJECT_HEAD)
    kind = ctypes.c_int64.from_address(id(probe) + OBJECT_HEAD - 8).value
    number = ctypes.c_double.from_address(id(2.5) + OBJECT_HEAD).value
    wide = ctypes.c_double.from_address(id(np.float64(4.5)) + OBJECT_HEAD).value
    content = b"twelve bytes"
    return (
        kind == id(np.ndarray)
        and fields[0] == probe.__array_interface__["data"][0]
        and fields[1] & 0xFFFFFFFF == probe.ndim
        and fields[5] == id(probe.dtype)
        and fields[6] & 0xFFFFFFFF == probe.flags.num
        and tuple((ctypes.c_int64 * 2).from_address(fields[2])) == probe.shape
        and tuple((ctypes.c_int64 * 2).from_address(fields[3])) == probe.strides
        and (number, wide) == (2.5, 4.5)
        and ctypes.string_at(id(content) + _BYTES_HEAD, len(content)) == content
    )


_TEXT = f"""
define ptr @guarded(ptr %self, ptr %args, i64 %count) {{
entry:
  %cursor = alloca ptr
  %number = alloca i64
  %at = alloca i64
  %table = getelementptr i8, ptr %self, i64 {_BYTES_HEAD}
  %entry_at = getelementptr i64, ptr %table, i64 1
  %save_at = getelementptr i64, ptr %table, i64 2
  %restore_at = getelementptr i64, ptr %table, i64 3
  %box_at = getelementptr i64, ptr %table, i64 4
  %array_type_at = getelementptr i64, ptr %table, i64 5
  %words_at = getelementptr i64, ptr %table, i64 6
  %room_at = getelementptr i64, ptr %table, i64 7
  %expected = load i64, ptr %table
  %function = load ptr, ptr %entry_at
  %save = load ptr, ptr %save_at
  %restore = load ptr, ptr %restore_at
  %box = load ptr, ptr %box_at
  %array_type = load i64, ptr %array_type_at
  %words = load i64, ptr %words_at
  %room = load i64, ptr %room_at
  %block = alloca i64, i64 %words
  %first = getelementptr i64, ptr %table, i64 {_HEAD_WORDS}
  store ptr %first, ptr %cursor
  store i64 0, ptr %number
  %right_count = icmp eq i64 %count, %expected
  br i1 %right_count, label %skip, label %miss

skip:
  %k = load i64, ptr %number
  %all_skipped = icmp eq i64 %k, %count
  br i1 %all_skipped, label %template, label %skip_one
skip_one:
  %c = load ptr, ptr %cursor
  %skip_size = call i64 @size_of(ptr %c)
  %c_next = getelementptr i64, ptr %c, i64 %skip_size
  store ptr %c_next, ptr %cursor
  %k_next = add i64 %k, 1
  store i64 %k_next, ptr %number
  br label %skip

template:
  %source = load ptr, ptr %cursor
  store i64 0, ptr %at
  br label %copy
copy:
  %w = load i64, ptr %at
  %copied = icmp eq i64 %w, %words
  br i1 %copied, label %arguments, label %copy_one
copy_one:
  %from = getelementptr i64, ptr %source, i64 %w
  %to = getelementptr i64, ptr %block, i64 %w
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %w_next = add i64 %w, 1
  store i64 %w_next, ptr %at
  br label %copy

arguments:
  store ptr %first, ptr %cursor
  store i64 0, ptr %number
  br label %argument
argument:
  %n = load i64, ptr %number
  %done = icmp eq i64 %n, %count
  br i1 %done, label %run, label %look
look:
  %d = load ptr, ptr %cursor
  %object_at = getelementptr ptr, ptr %args, i64 %n
  %object = load ptr, ptr %object_at
  %kind = load i64, ptr %d
  %place_at = getelementptr i64, ptr %d, i64 1
  %place = load i64, ptr %place_at
  %slot = getelementptr i64, ptr %block, i64 %place
  switch i64 %kind, label %next [ i64 0, label %seen
                                  i64 1, label %made
                                  i64 2, label %double
                                  i64 3, label %bytes ]
seen:
  %fits = call i1 @fits(ptr %d, ptr %object, i64 %array_type)
  br i1 %fits, label %made, label %miss
made:
  %address = ptrtoint ptr %object to i64
  store i64 %address, ptr %slot
  br label %next
double:
  %value_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD}
  %value = load i64, ptr %value_at
  store i64 %value, ptr %slot
  br label %next
bytes:
  %low_at = getelementptr i8, ptr %object, i64 {_BYTES_HEAD}
  %high_at = getelementptr i8, ptr %object, i64 {_BYTES_HEAD + 8}
  %low = load i64, ptr %low_at
  %high = load i64, ptr %high_at
  %slot_high = getelementptr i64, ptr %slot, i64 1
  store i64 %low, ptr %slot
  store i64 %high, ptr %slot_high
  br label %next
next:
  %size = call i64 @size_of(ptr %d)
  %d_next = getelementptr i64, ptr %d, i64 %size
  store ptr %d_next, ptr %cursor
  %n_next = add i64 %n, 1
  store i64 %n_next, ptr %number
  br label %argument

run:
  %state = call ptr %save()
  %status = call i32 %function(ptr %block)
  call void %restore(ptr %state)
  %has_room = icmp ne i64 %room, 0
  br i1 %has_room, label %receive, label %finish
receive:
  %last = sub i64 %count, 1
  %receiver_at = getelementptr ptr, ptr %args, i64 %last
  %receiver = load ptr, ptr %receiver_at
  %data_at = getelementptr i8, ptr %receiver, i64 {OBJECT_HEAD}
  %data = load ptr, ptr %data_at
  %begin = sub i64 %words, %room
  store i64 0, ptr %at
  br label %hand_out
hand_out:
  %r = load i64, ptr %at
  %handed = icmp eq i64 %r, %room
  br i1 %handed, label %finish, label %hand_one
hand_one:
  %r_block = add i64 %begin, %r
  %r_from = getelementptr i64, ptr %block, i64 %r_block
  %r_to = getelementptr i64, ptr %data, i64 %r
  %r_word = load i64, ptr %r_from
  store i64 %r_word, ptr %r_to
  %r_next = add i64 %r, 1
  store i64 %r_next, ptr %at
  br label %hand_out

finish:
  %wide = sext i32 %status to i64
  br label %return
miss:
  br label %return
return:
  %answer = phi i64 [ %wide, %finish ], [ {MISS}, %miss ]
  %boxed = call ptr %box(i64 %answer)
  ret ptr %boxed
}}

define internal i64 @size_of(ptr %d) {{
  %kind = load i64, ptr %d
  %is_seen = icmp eq i64 %kind, 0
  br i1 %is_seen, label %seen, label %short
seen:
  %rank_at = getelementptr i64, ptr %d, i64 4
  %steps_at = getelementptr i64, ptr %d, i64 5
  %rank = load i64, ptr %rank_at
  %steps = load i64, ptr %steps_at
  %both = add i64 %rank, %steps
  %size = add i64 %both, 6
  ret i64 %size
short:
  ret i64 2
}}

define internal i1 @fits(ptr %d, ptr %object, i64 %array_type) {{
  %type_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD - 8}
  %type = load i64, ptr %type_at
  %is_array = icmp eq i64 %type, %array_type
  br i1 %is_array, label %array, label %no
array:
  %dtype_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 40}
  %flags_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 48}
  %rank_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 8}
  %dtype = load i64, ptr %dtype_at
  %all_flags = load i32, ptr %flags_at
  %flags_32 = and i32 %all_flags, {_FLAGS}
  %flags = zext i32 %flags_32 to i64
  %rank_32 = load i32, ptr %rank_at
  %rank = zext i32 %rank_32 to i64
  %dtype_seen_at = getelementptr i64, ptr %d, i64 2
  %flags_seen_at = getelementptr i64, ptr %d, i64 3
  %rank_seen_at = getelementptr i64, ptr %d, i64 4
  %steps_at = getelementptr i64, ptr %d, i64 5
  %dtype_seen = load i64, ptr %dtype_seen_at
  %flags_seen = load i64, ptr %flags_seen_at
  %rank_seen = load i64, ptr %rank_seen_at
  %steps = load i64, ptr %steps_at
  %same_dtype = icmp eq i64 %dtype, %dtype_seen
  %same_flags = icmp eq i64 %flags, %flags_seen
  %same_rank = icmp eq i64 %rank, %rank_seen
  %same_two = and i1 %same_dtype, %same_flags
  %same = and i1 %same_two, %same_rank
  br i1 %same, label %numbers, label %no
numbers:
  %shape_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 16}
  %strides_at = getelementptr i8, ptr %object, i64 {OBJECT_HEAD + 24}
  %shape = load ptr, ptr %shape_at
  %strides = load ptr, ptr %strides_at
  %shape_seen = getelementptr i64, ptr %d, i64 6
  %strides_seen = getelementptr i64, ptr %shape_seen, i64 %rank
  %same_shape = call i1 @equal(ptr %shape, ptr %shape_seen, i64 %rank)
  br i1 %same_shape, label %steps_too, label %no
steps_too:
  %same_strides = call i1 @equal(ptr %strides, ptr %strides_seen, i64 %steps)
  ret i1 %same_strides
no:
  ret i1 false
}}

define internal i1 @equal(ptr %one, ptr %two, i64 %count) {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k_next, %more ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %yes, label %compare
compare:
  %one_at = getelementptr i64, ptr %one, i64 %k
  %two_at = getelementptr i64, ptr %two, i64 %k
  %a = load i64, ptr %one_at
  %b = load i64, ptr %two_at
  %same = icmp eq i64 %a, %b
  br i1 %same, label %more, label %no
more:
  %k_next = add i64 %k, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
