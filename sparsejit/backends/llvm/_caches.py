"""The sizes of this machine's caches: what the system says, or what most machines have."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from sparsejit.backends.llvm._options import Caches

__all__ = ["machine_caches"]

_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@functools.cache
def machine_caches() -> Caches:
    """Return the sizes of the caches of this machine."""
    plain = Caches()
    own = _size(2) or plain.own
    return Caches(own, max(_size(3) or plain.last, own))


def _size(level: int) -> int:
    """Return the bytes of the data cache of a level, 0 where the system does not know."""
    name = f"SC_LEVEL{level}_CACHE_SIZE"
    if name in getattr(os, "sysconf_names", {}):
        size = os.sysconf(name)
        if size > 0:
            return size
    try:
        return dict(map(_described, sorted(_FOLDER.glob("index*")))).get(level, 0)
    except (OSError, ValueError):
        return 0


def _described(folder: Path) -> tuple[int, int]:
    """Return level and bytes of the cache that a folder of the system describes."""
    level, size = ((folder / name).read_text().strip() for name in ("level", "size"))
    unit = _UNITS.get(size[-1:], 1)
    return int(level), int(size.rstrip("KMG")) * unit
