"""Pinned host memory: a pool for staging, and registrations counted per root allocation.

Both belong to one runtime and outlive plans. A pinned block is reused once the event that was
recorded behind its last transfer is done. A registration covers the whole allocation that an array
is part of, holds it strongly, and ends with its last user: memory cannot be freed while registered.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.runtime.device import DeviceRuntime, Fault, FaultError

__all__ = ["PinnedBlock", "PinnedPool", "Registrations", "Transfers", "root_memory"]

SMALLEST_BLOCK = 1 << 12
KEPT_BYTES = 1 << 28


@dataclass(slots=True, eq=False)
class PinnedBlock:
    """Pinned memory of a pool, and the event that guards its next use (0 for none)."""

    memory: NDArray[Any]
    event: int = 0


class PinnedPool:
    """Blocks of pinned memory, in sizes of powers of two, at most ``KEPT_BYTES`` of them idle."""

    def __init__(self, runtime: DeviceRuntime) -> None:
        self._runtime = runtime
        self._idle: dict[int, list[PinnedBlock]] = {}
        self._kept = 0
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> PinnedBlock:
        """Return a block of at least ``nbytes`` that no transfer uses."""
        size = max(SMALLEST_BLOCK, 1 << max(nbytes - 1, 0).bit_length())
        with self._lock:
            idle = self._idle.get(size, [])
            for number, block in enumerate(idle):
                if not block.event or self._runtime.is_done(block.event):
                    del idle[number]
                    self._kept -= size
                    break
            else:
                return PinnedBlock(self._runtime.pinned(size))
        try:
            self._settle(block)
        except BaseException:
            self._runtime.free_pinned(block.memory)
            raise
        return block

    def give_back(self, block: PinnedBlock, stream: int | None = None) -> None:
        """Take a block back; ``stream`` may still be reading or writing it."""
        try:
            if stream is not None:
                block.event = self._runtime.create_event()
                self._runtime.record_event(block.event, stream)
        except FaultError:
            try:
                if stream is not None:
                    self._runtime.synchronize(stream)
            finally:
                self._drop(block)
            raise
        size = block.memory.nbytes
        with self._lock:
            if self._kept + size <= KEPT_BYTES:
                self._kept += size
                self._idle.setdefault(size, []).append(block)
                return
        self._drop(block)

    def close(self) -> None:
        """Free all idle blocks."""
        with self._lock:
            blocks = [block for idle in self._idle.values() for block in idle]
            self._idle.clear()
            self._kept = 0
        for block in blocks:
            self._drop(block)

    def _settle(self, block: PinnedBlock) -> None:
        """Wait for the event of a block and end it."""
        if block.event:
            event, block.event = block.event, 0
            try:
                self._runtime.wait_event(event)
            finally:
                self._runtime.destroy_event(event)

    def _drop(self, block: PinnedBlock) -> None:
        try:
            self._settle(block)
        finally:
            self._runtime.free_pinned(block.memory)


@dataclass(slots=True, eq=False)
class _Registration:
    """``memory`` is the whole allocation; ``users`` are the arrays of running plans in it."""

    memory: NDArray[Any]
    users: int


class Registrations:
    """Which host memory is registered, and for how many arrays of running plans."""

    def __init__(self, runtime: DeviceRuntime) -> None:
        self._runtime = runtime
        self._by_start: dict[int, _Registration] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_start)

    def register(self, array: NDArray[Any]) -> None:
        """Register the allocation that an array is part of, or count one more user of it."""
        memory = root_memory(array)
        with self._lock:
            known = self._around(array)
            if known is not None:
                known.users += 1
                return
            self._runtime.register(memory)
            self._by_start[memory.ctypes.data] = _Registration(memory, 1)

    def unregister(self, array: NDArray[Any]) -> None:
        """Take a user away; the last one ends the registration."""
        with self._lock:
            known = self._around(array)
            if known is None:
                raise FaultError(Fault.NOT_REGISTERED, "unregister", "no plan registered it")
            known.users -= 1
            if not known.users:
                del self._by_start[known.memory.ctypes.data]
                self._runtime.unregister(known.memory)

    def device_pointer(self, array: NDArray[Any]) -> int:
        """Return the address under which kernels reach an array of a registered allocation."""
        with self._lock:
            known = self._around(array)
        if known is None:
            raise FaultError(Fault.NOT_REGISTERED, "device_pointer", "no plan registered it")
        start = self._runtime.device_pointer(known.memory)
        return start + (array.ctypes.data - known.memory.ctypes.data)

    def _around(self, array: NDArray[Any]) -> _Registration | None:
        start, stop = array.ctypes.data, array.ctypes.data + array.nbytes
        for known in self._by_start.values():
            first = known.memory.ctypes.data
            if first <= start and stop <= first + known.memory.nbytes:
                return known
        return None


def root_memory(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bytes of the allocation that an array is part of, as an array that holds it.

    >>> base = np.zeros(10)
    >>> root_memory(base[2:4].reshape(2, 1)).nbytes
    80
    """
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    flat = root.reshape(-1, order="A" if root.flags.f_contiguous else "C")
    if not np.may_share_memory(flat, root):  # a root of another library that has gaps
        flat = array.reshape(-1, order="A")
    return flat.view(np.uint8)


class Transfers:
    """The pinned memory of one runtime."""

    def __init__(self, runtime: DeviceRuntime) -> None:
        self.pool = PinnedPool(runtime)
        self.registrations = Registrations(runtime)
