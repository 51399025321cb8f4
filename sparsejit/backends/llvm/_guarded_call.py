"""A call from Python in a fraction of a microsecond: guards and packing in machine code.

In: the address of an entry and what was seen at one call of it. Out: a callable of Python's
vectorcall convention. It compares type, dtype, flags, extents and strides of each array with what
was seen, lays down the words that the entry takes, releases the GIL and calls it; of the memory
that the entry hands out it makes arrays, which free it. A straight call takes the operands of the
user, compares all that a call depends on, and tells those who count calls. Where anything differs
it touches nothing and returns ``MISS``, or the object given for that. The code is the same for all
kernels; what differs is a table, so it is compiled once and kept on disk like any other.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import time
import types
import weakref
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from sparsejit._locks import OpenLock
from sparsejit.backends.base import MISS
from sparsejit.backends.llvm._guarded_call_parts import (
    Buffer,
    Fresh,
    New,
    Part,
    Straight,
    condition_words,
    descriptor,
    fresh_words,
    pair_words,
)
from sparsejit.backends.llvm._guarded_call_table import (
    BYTES_HEAD,
    FUNCTIONS,
    HANDLER,
    HEAD,
    TUPLE_HEAD,
    Answer,
)
from sparsejit.backends.llvm._guarded_call_text import TEXT
from sparsejit.backends.llvm._interface import OBJECT_HEAD
from sparsejit.backends.llvm._memory import array_memory
from sparsejit.backends.llvm._numpy_table import NumpyPlace, numpy_address
from sparsejit.debug import logger
from sparsejit.errors import BackendError

__all__ = ["guarded_call", "is_supported", "makes_arrays", "takes_operands"]

_METH_FASTCALL = 0x80


def guarded_call(
    address: int,
    template: Sequence[int],
    room: int,
    parts: Sequence[Part],
    fresh: Sequence[Fresh] = (),
    straight: Straight | None = None,
    *,
    cache: bool,
) -> Callable[..., Any] | None:
    """Return a callable of one object for each of ``parts``, which calls the entry at ``address``.

    The entry gets ``template`` with the words of the parts written over it, and ``room`` words
    behind it. The callable returns the status, in the place of 0 the tuple of the ``fresh`` arrays
    where there are any. Buffers and new arrays take no object; a straight call returns all arrays
    in the place of 0, the new ones first. None where this Python is not laid out as the code
    expects.
    """
    code = _code(cache)
    if code is None:
        return None
    head = {
        "arguments": sum(not isinstance(part, Buffer | New) for part in parts),
        "parts": len(parts),
        "words": len(template) + room,
        "room": room,
        "fresh": len(fresh),
        "num_made": sum(isinstance(part, New) for part in parts),
        "answer": Answer.TUPLE if fresh else Answer.STATUS,
        "function": address,
        "array_type": id(np.ndarray),
        "missed": id(MISS),
        "none": id(None),
    }
    sections = {
        "parts_at": list(chain(*map(descriptor, parts))),
        "fresh_at": list(chain(*map(fresh_words, fresh))),
    }
    if straight is not None:
        asked, told = straight.asked, straight.asked.told
        head |= {
            "conditions": len(asked.conditions),
            "pairs": len(straight.apart),
            "tallies": len(told.lasts),
            "answer": Answer.ARRAY if asked.is_single else Answer.TUPLE,
            "missed": id(asked.missed),
            "looks": id(asked.looks),
            "clock_number": time.CLOCK_MONOTONIC,
        }
        lasts = chain(*((id(last), place) for last, place in told.lasts))
        sections |= {
            "conditions_at": list(chain(*map(condition_words, asked.conditions))),
            "pairs_at": list(chain(*(pair_words(*both) for both in straight.apart))),
            "tallies_at": [told.hits, id(told.call), *lasts],
        }
    sections["template_at"] = [*template, *[0] * room]
    table = _table(head | code.functions, sections)
    return code.bound(table, (tuple(parts), tuple(fresh), straight))


def _table(head: dict[str, int], sections: dict[str, list[int]]) -> bytes:
    """Return the table of these words in front and these sections behind."""
    place = len(HEAD)
    for name, words in sections.items():
        head[name] = place
        place += len(words)
    front = [head.get(name, 0) for name in HEAD]
    return struct.pack(f"={place}q", *front, *chain(*sections.values()))


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_OF_PYTHON = {
    "save": "Eval_SaveThread",
    "restore": "Eval_RestoreThread",
    "box": "Long_FromLong",
    "new_tuple": "Tuple_New",
    "keep": "_IncRef",
    "drop": "_DecRef",
    "find": "Dict_GetItem",
    "key_of": "Long_FromVoidPtr",
    "dict_of": "Object_GenericGetDict",
    "clear": "Err_Clear",
    "read": "ContextVar_Get",
    "put": "List_SetItem",
}
"""The functions of Python that guarded calls use, without ``Py`` in front."""


def _addresses(*names: str) -> tuple[int, ...]:
    """Return the addresses of functions of Python."""
    found = (ctypes.cast(getattr(ctypes.pythonapi, n), ctypes.c_void_p).value for n in names)
    return tuple(value or 0 for value in found)


class _Code:
    """The loaded code: what makes callables of tables, and the functions it calls, by name."""

    __slots__ = ("_definition", "_make", "_owner", "functions")

    def __init__(self, address: int, owner: object) -> None:
        self.functions = _functions()
        self._owner = owner
        self._definition = _MethodDefinition(b"guarded_call", address, _METH_FASTCALL, None)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        make.restype = ctypes.py_object
        self._make: Any = make

    def bound(self, table: bytes, kept: tuple[object, ...]) -> Callable[..., Any]:
        """Return the function of Python that reads ``table`` and keeps what it has addresses of."""
        own = (table, *kept)
        made: Callable[..., Any] = self._make(ctypes.addressof(self._definition), own, None)
        return made


_lock = OpenLock()


def _code(cache: bool) -> _Code | None:
    with _lock:
        return _loaded(cache)


@functools.cache
def _loaded(cache: bool) -> _Code | None:
    from sparsejit.backends.llvm._engine import Effort, Emitted, load_module

    if not is_supported():
        return None
    try:
        # Optimized it is a tenth of a microsecond faster, and takes ten times as long to compile.
        loaded = load_module(
            lambda _: Emitted(TEXT, (), Effort.LEAST), (TEXT,), "guarded", {}, cache=cache
        )
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


@functools.cache
def takes_operands() -> bool:
    """Whether straight calls can be made: cells and weak references are as expected, too."""
    has_lock: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    if not has_lock() or not hasattr(time, "CLOCK_MONOTONIC"):
        return False  # the order of reads and writes is that of the lock
    one = {object()}
    holders = types.CellType(one), weakref.ref(one)
    held = [ctypes.c_int64.from_address(id(holder) + OBJECT_HEAD).value for holder in holders]
    return held == [id(one)] * 2 and makes_arrays() and hasattr(ctypes.CDLL(None), "clock_gettime")


# ---------------------------------------------------------------- new arrays


@functools.cache
def makes_arrays() -> bool:
    """Whether arrays can be made in machine code: NumPy's table and tuples are as expected."""
    one, two = object(), object()
    pair = (one, two)
    items = tuple((ctypes.c_int64 * 2).from_address(id(pair) + TUPLE_HEAD))
    return items == (id(one), id(two)) and _of_numpy() is not None


def _functions() -> dict[str, int]:
    """Return the addresses of the functions that guarded calls use, and of NumPy's handlers."""
    new_array, handler = _of_numpy() or (0, 0)
    memory = array_memory()
    library = ctypes.CDLL(None)
    names = {name: f"Py{rest}" for name, rest in _OF_PYTHON.items()}
    found = dict(zip(names, _addresses(*names.values()), strict=True))
    for name, symbol in (("free", "free"), ("clock", "clock_gettime")):
        function = getattr(library, symbol, None)
        found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0
    found |= {"new_array": new_array, "take": 0 if memory is None else memory.take}
    assert sorted(found) == sorted(FUNCTIONS)
    large = handler if memory is None else id(memory.handler)
    return {**found, "handler": handler, "large_handler": large}


@functools.cache
def _of_numpy() -> tuple[int, int] | None:
    """Return the addresses of ``PyArray_NewFromDescr`` and of ``PyDataMem_DefaultHandler``.

    The handler frees with ``free`` what it is given, as NumPy's own arrays do. None where they are
    not known, or where arrays do not keep their handler where it is looked for.
    """
    new_array = numpy_address(NumpyPlace.NEW_FROM_DESCR)
    place = numpy_address(NumpyPlace.DEFAULT_HANDLER)
    if not new_array or not place:
        return None
    handler = ctypes.c_void_p.from_address(place).value
    probe = np.empty(3)
    kept = ctypes.c_void_p.from_address(id(probe) + HANDLER).value
    return (new_array, handler) if handler is not None and kept == handler else None
