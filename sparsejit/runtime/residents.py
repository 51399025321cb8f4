"""Fixed arrays: host arrays that a bound plan keeps, copied to a device once.

An array is fixed by who promises that it never changes. Its copy on a device is made when a kernel
first needs it and freed when the array ends; the array is held weakly.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from sparsejit.runtime.device import DeviceResult

__all__ = ["FIXED", "FixedArrays"]


class FixedArrays:
    """The fixed arrays of this process, by ``id``, and their copies by device.

    >>> import numpy as np
    >>> fixed, array = FixedArrays(), np.ones(3)
    >>> fixed.fix(array)
    >>> fixed.is_fixed(array), fixed.is_fixed(np.ones(3))
    (True, False)
    """

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[NDArray[Any]]] = {}
        self._copies: dict[tuple[int, int], DeviceResult] = {}
        self._lock = threading.RLock()

    def fix(self, array: NDArray[Any]) -> None:
        """Promise that the elements of an array never change."""
        key = id(array)
        self._known[key] = weakref.ref(array, lambda _: self._end(key))

    def is_fixed(self, array: object) -> bool:
        """Return whether this very array is fixed."""
        known = self._known.get(id(array))
        return known is not None and known() is array

    def resident(
        self, array: NDArray[Any], device: int, upload: Callable[[], DeviceResult]
    ) -> DeviceResult:
        """Return the copy of a fixed array on a device, by its number; ``upload`` makes it."""
        with self._lock:
            key = (id(array), device)
            made = self._copies.get(key)
            if made is None:
                made = self._copies[key] = upload()
            return made

    def forget(self, device: int) -> None:
        """Free all copies on a device."""
        with self._lock:
            for key in [key for key in self._copies if key[1] == device]:
                self._copies.pop(key).release()

    def _end(self, number: int) -> None:
        self._known.pop(number, None)
        with self._lock:
            for key in [key for key in self._copies if key[0] == number]:
                self._copies.pop(key).release()


FIXED = FixedArrays()
"""The arrays that bound plans keep."""
