"""Numba's compiled functions in our disk cache.

Numba's own cache keeps one index for all signatures of a function, which two processes can damage
for each other, and trusts what it reads. Here a compiled function is one entry, under a key of all
it depends on: the text, the support library, the versions, the machine and the signature.
"""

from __future__ import annotations

import pickle
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from sparsejit.backends.disk_cache import digest, read_entry, write_entry
from sparsejit.debug import logger

__all__ = ["DiskCache", "use_disk_cache"]

_KIND = "numba"


_rebuild: Any = CompileResult._rebuild
_dumps: Any = dumps


class DiskCache(NullCache):
    """What a Numba dispatcher asks for compiled code before it compiles, and tells afterwards."""

    def __init__(self, key: str) -> None:
        self._key = key

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for a signature, or None."""
        target_context.refresh()
        payload = read_entry(_KIND, self._entry(sig, target_context.codegen()))
        if payload is None:
            return None
        try:
            return _rebuild(target_context, *pickle.loads(payload))
        except Exception as error:  # a damaged entry may raise anything; it is compiled again
            logger.warning("a cached kernel cannot be used and is compiled again: %s", error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function."""
        if data.lifted or data.library.has_dynamic_globals:
            return
        try:
            payload = _dumps(data._reduce())
        except Exception as error:  # pickling raises many kinds; each process compiles it then
            logger.warning("a kernel cannot be cached: %s", error)
            return
        write_entry(_KIND, self._entry(sig, data.codegen), payload)

    def _entry(self, sig: Any, codegen: Any) -> str:
        return digest(self._key, str(sig), repr(codegen.magic_tuple()))


def use_disk_cache(dispatcher: Any, key: str) -> None:
    """Let ``dispatcher`` look for compiled code under ``key`` and the versions of the tools."""
    dispatcher._cache = DiskCache(digest(key, numba.__version__))
