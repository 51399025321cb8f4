"""Whether there seems to be a device: asked at calls, so it opens nothing and imports little.

In: the environment, and the runtime that was chosen for this context. Out: a yes or no.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsejit.runtime.opening import Device

__all__ = ["CHOSEN", "cuda_driver", "device_at_hand"]

CHOSEN: ContextVar[Device | None] = ContextVar("sparsejit_device", default=None)
"""The device that plans run on in this context, whatever the environment says."""


def device_at_hand() -> bool:
    """Return whether there seems to be a device; this opens nothing and takes no time."""
    if CHOSEN.get() is not None or os.environ.get("SPARSEJIT_DEVICE") == "fake":
        return True
    asked = os.environ.get("SPARSEJIT_DEVICE") or "cuda"
    return asked == "cuda" and _has_driver() and importlib.util.find_spec("cupy") is not None


@cache
def _has_driver() -> bool:
    return cuda_driver() is not None


def cuda_driver() -> Any:
    """Load the driver's library, which starts nothing; None where there is none."""
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
