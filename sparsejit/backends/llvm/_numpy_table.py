"""NumPy's functions and objects for C code, by their places in its binary interface."""

from __future__ import annotations

import ctypes
import functools
import sys
from enum import IntEnum
from typing import Any

__all__ = ["NumpyPlace", "numpy_address"]


class NumpyPlace(IntEnum):
    """Places in the table: they stay the same in all versions 2 of NumPy."""

    VERSION = 0
    NEW_FROM_DESCR = 94
    SET_HANDLER = 304
    DEFAULT_HANDLER = 306


_VERSIONS = range(0x2000000, 0x3000000)


def numpy_address(place: NumpyPlace) -> int:
    """Return what stands in the table at a place, 0 where the table is not known."""
    table = _table()
    return 0 if table is None else table[place] or 0


@functools.cache
def _table() -> Any:
    core: Any = sys.modules.get("numpy._core._multiarray_umath")
    capsule = getattr(core, "_ARRAY_API", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    table = (ctypes.c_void_p * (max(NumpyPlace) + 1)).from_address(pointer(capsule, None))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[NumpyPlace.VERSION] or 0)()
    return table if version in _VERSIONS else None
