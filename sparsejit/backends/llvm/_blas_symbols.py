"""Where the functions of BLAS are: SciPy brings one, and the addresses of its functions with it.

Nothing else of ``scipy.linalg`` is imported for them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import scipy

from sparsejit.backends.llvm._blas import BLAS_SYMBOLS
from sparsejit.errors import BackendError

__all__ = ["blas_addresses"]


@functools.cache
def blas_addresses() -> dict[str, int]:
    """Return where the functions of SciPy's BLAS are, by the symbols of generated code."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    name_of = ctypes.pythonapi.PyCapsule_GetName
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    capsules = _cython_blas().__pyx_capi__
    return {
        symbol: pointer_of(capsules[name], name_of(capsules[name]))
        for symbol, name in BLAS_SYMBOLS.items()
    }


def _cython_blas() -> ModuleType:
    """Return ``scipy.linalg.cython_blas`` without its package, which is slow to import."""
    name = "scipy.linalg.cython_blas"
    folder = Path(scipy.__file__).parent / "linalg"
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"cython_blas{suffix}"
        if path.exists():
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise BackendError(f"no {name} in SciPy {scipy.__version__}", hint='use library="never"')
