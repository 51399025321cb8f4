"""Arrays of NumPy whose memory is kept when they are gone, where it is large.

In: the loaded pool, of which ``_memory_text`` is a part. Out: new arrays, and what other makers of
arrays need: the function that hands out memory, and the object by which an array gives it back
(NumPy's ``PyDataMem_Handler``).
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.backends.llvm._engine import thread_pool
from sparsejit.backends.llvm._memory_text import LARGE
from sparsejit.backends.llvm._numpy_table import NumpyPlace, numpy_address
from sparsejit.backends.llvm._pool import Pool, has_threads

__all__ = ["ArrayMemory", "array_memory", "free_function", "new_array"]

_CAPSULE = b"mem_handler"


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class ArrayMemory:
    """``take`` is the address of a function of a size, ``handler`` what arrays keep.

    Both stay until the process ends: an array may be the last of all objects.
    """

    __slots__ = ("_fields", "_set_handler", "handler", "take")

    def __init__(self, pool: Pool, set_handler: int) -> None:
        self.take = pool.addresses["take_lines"]
        names = ("malloc", "calloc", "realloc", "free")
        functions = (pool.addresses[f"array_{name}"] for name in names)
        self._fields = _Handler(b"sparsejit", 1, None, *functions)
        make = ctypes.pythonapi.PyCapsule_New
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        make.restype = ctypes.py_object
        self.handler: Any = make(ctypes.addressof(self._fields), _CAPSULE, None)
        self._set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a new array."""
        before = self._set_handler(self.handler)
        try:
            return np.empty(shape, dtype)
        finally:
            self._set_handler(before)


@functools.cache
def array_memory() -> ArrayMemory | None:
    """Return where arrays of this process have memory from that is kept.

    None where the pool does not know the system, or NumPy is not as expected.
    """
    set_handler = numpy_address(NumpyPlace.SET_HANDLER)
    return ArrayMemory(thread_pool(), set_handler) if has_threads() and set_handler else None


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a new array with undefined elements, of kept memory where it is large."""
    if math.prod(shape) * dtype.itemsize >= LARGE:
        memory = array_memory()
        if memory is not None:
            return memory.empty(shape, dtype)
    return np.empty(shape, dtype)


def free_function() -> Callable[[int], None]:
    """Return what frees the memory that generated code hands out, by its address."""
    if has_threads():
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(thread_pool().addresses["give_memory"])
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    made: Callable[[int], None] = free
    return made
