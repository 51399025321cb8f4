"""A call from Python in a fraction of a microsecond: guards and packing in machine code.

In: the address of an entry and what was seen at one call of it. Out: a callable of Python's
vectorcall convention. It compares type, dtype, flags, extents and strides of each array with what
was seen, lays down the words that the entry takes, releases the GIL and calls it; of the memory
that the entry hands out it makes arrays, which free it. Where anything differs it touches nothing
and returns ``MISS``. The code is the same for all kernels; what differs is a table, so it is
compiled once and kept on disk like any other.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit._locks import OpenLock
from sparsejit.backends.llvm._guarded_call_text import (
    BYTES_HEAD,
    FLAGS,
    HANDLER,
    HEAD_WORDS,
    TEXT,
    TUPLE_HEAD,
)
from sparsejit.backends.llvm._interface import OBJECT_HEAD
from sparsejit.debug import logger
from sparsejit.errors import BackendError

__all__ = [
    "Double",
    "Fresh",
    "Made",
    "Part",
    "Received",
    "Seen",
    "Word",
    "guarded_call",
    "is_supported",
    "makes_arrays",
]

_C_CONTIGUOUS = 0x1
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


@dataclass(frozen=True, slots=True)
class Fresh:
    """An array to be made of memory whose address the entry writes to word ``place``.

    Its extents stand behind the address. The memory is of ``malloc``; the array frees it.
    """

    place: int
    dtype: np.dtype[Any]
    rank: int


def _descriptor(part: Part) -> list[int]:
    """Return the words that describe one argument in the table."""
    match part:
        case Seen(place, array):
            flags = array.flags.num & FLAGS
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
    address: int,
    template: Sequence[int],
    room: int,
    parts: Sequence[Part],
    fresh: Sequence[Fresh] = (),
    *,
    cache: bool,
) -> Callable[..., Any] | None:
    """Return a callable of one object for each of ``parts``, which calls the entry at ``address``.

    The entry gets ``template`` with the words of the parts written over it, and ``room`` words
    behind it. The callable returns the status, in the place of 0 the tuple of the ``fresh`` arrays
    where there are any. None where this Python is not laid out as the code expects.
    """
    code = _code(cache)
    if code is None:
        return None
    words = len(template) + room
    table = [len(parts), address, *code.functions, id(np.ndarray), words, room]
    table += [len(fresh), *_maker_addresses()] if fresh else [0] * 7
    assert len(table) == HEAD_WORDS
    for part in parts:
        table += _descriptor(part)
    for new in fresh:
        table += [id(new.dtype), new.rank, new.place]
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


def _addresses(*names: str) -> tuple[int, ...]:
    """Return the addresses of functions of Python."""
    found = (ctypes.cast(getattr(ctypes.pythonapi, n), ctypes.c_void_p).value for n in names)
    return tuple(value or 0 for value in found)


class _Code:
    """The loaded code: what makes callables of tables, and the functions of Python it calls."""

    __slots__ = ("_definition", "_make", "_owner", "functions")

    def __init__(self, address: int, owner: object) -> None:
        api = ctypes.pythonapi
        self.functions = _addresses("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLong")
        self._owner = owner
        self._definition = _MethodDefinition(b"guarded_call", address, _METH_FASTCALL, None)
        make = api.PyCFunction_NewEx
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        make.restype = ctypes.py_object
        self._make: Any = make

    def bound(self, table: bytes) -> Callable[..., Any]:
        """Return the function of Python whose ``self`` is ``table``."""
        made: Callable[..., Any] = self._make(ctypes.addressof(self._definition), table, None)
        return made


_lock = OpenLock()


def _code(cache: bool) -> _Code | None:
    with _lock:
        return _loaded(cache)


@functools.cache
def _loaded(cache: bool) -> _Code | None:
    from sparsejit.backends.llvm._engine import Emitted, load_module

    if not is_supported():
        return None
    try:
        loaded = load_module(lambda _: Emitted(TEXT, ()), (TEXT,), "guarded", {}, cache=cache)
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
        and ctypes.string_at(id(content) + BYTES_HEAD, len(content)) == content
    )


# ---------------------------------------------------------------- new arrays

_VERSION, _NEW_FROM_DESCR, _HANDLER = 0, 94, 306
"""Places in the table of NumPy's functions and objects: they are part of its binary interface."""
_VERSIONS = range(0x2000000, 0x3000000)


@functools.cache
def makes_arrays() -> bool:
    """Whether arrays can be made in machine code: NumPy's table and tuples are as expected."""
    one, two = object(), object()
    pair = (one, two)
    items = tuple((ctypes.c_int64 * 2).from_address(id(pair) + TUPLE_HEAD))
    return items == (id(one), id(two)) and _of_numpy() is not None


@functools.cache
def _maker_addresses() -> tuple[int, ...]:
    new_array, handler = _of_numpy() or (0, 0)
    free = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value or 0
    return (new_array, *_addresses("PyTuple_New", "Py_IncRef", "Py_DecRef"), free, handler)


@functools.cache
def _of_numpy() -> tuple[int, int] | None:
    """Return the addresses of ``PyArray_NewFromDescr`` and of ``PyDataMem_DefaultHandler``.

    The handler frees with ``free`` what it is given, as NumPy's own arrays do. None where they are
    not known, or where arrays do not keep their handler where it is looked for.
    """
    core: Any = sys.modules.get("numpy._core._multiarray_umath")
    capsule = getattr(core, "_ARRAY_API", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    table = (ctypes.c_void_p * (_HANDLER + 1)).from_address(pointer(capsule, None))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[_VERSION] or 0)()
    if version not in _VERSIONS:
        return None
    handler = ctypes.c_void_p.from_address(table[_HANDLER] or 0).value
    probe = np.empty(3)
    kept = ctypes.c_void_p.from_address(id(probe) + HANDLER).value
    is_known = handler is not None and kept == handler and table[_NEW_FROM_DESCR] is not None
    return (table[_NEW_FROM_DESCR] or 0, handler or 0) if is_known else None
