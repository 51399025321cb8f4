"""The fake device's memory: allocations, pinned and registered host memory, and their addresses.

Device allocations lie at addresses that no host array has, with gaps between them. Pinned and
registered host memory has a device address of its own, which differs from its host address: who
confuses the two is found out.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import DeviceArray
from sparsejit.ir.fold import numpy_dtype
from sparsejit.runtime.device import Fault, FaultError

__all__ = ["Block", "Memory", "MisuseError", "Region", "host_region", "poison"]

DEVICE_BASE = 0x7F00_0000_0000_0000
ALIAS_BASE = 0x7A00_0000_0000_0000
GAP = 1 << 12
ALIGNMENT = 256


class MisuseError(AssertionError):
    """The program under test does what a real device would not forgive."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes ``start .. stop - 1`` of the host (``space`` "host") or of the device."""

    space: str
    start: int
    stop: int

    def meets(self, other: Region) -> bool:
        """Return whether two regions have a byte in common."""
        if self.space != other.space:
            return False
        return self.start < other.stop and other.start < self.stop


@dataclass(slots=True, eq=False)
class Block:
    """Memory that the device reaches at ``start``: its own, or the host's (``host`` address)."""

    start: int
    data: NDArray[Any]
    kind: str
    host: int = 0
    is_live: bool = True

    @property
    def stop(self) -> int:
        """The address behind its last byte."""
        return self.start + self.data.nbytes

    def region(self, start: int, stop: int) -> Region:
        """Return a part of it, by device addresses; memory of the host counts as the host's."""
        if self.kind == "device":
            return Region("device", start, stop)
        shift = self.host - self.start
        return Region("host", start + shift, stop + shift)


def poison(data: NDArray[Any]) -> None:
    """Fill bytes so that what is read before it is written shows: nan, or -1."""
    data.view(np.uint8).reshape(-1)[...] = 0xFF


def host_region(array: NDArray[Any]) -> Region:
    """Return the bytes of a contiguous array of the host."""
    return Region("host", array.ctypes.data, array.ctypes.data + array.nbytes)


class Memory:
    """All blocks by device address; freed ones are remembered, to tell what a bad pointer was."""

    def __init__(self, random: Random, reuses: bool) -> None:
        self._random = random
        self._reuses = reuses
        self._blocks: dict[int, Block] = {}
        self._freed: list[Block] = []
        self._next = {"device": DEVICE_BASE, "alias": ALIAS_BASE}
        self.lost: list[str] = []

    def live(self) -> Iterator[Block]:
        """Yield the blocks that are allocated or registered."""
        return iter(self._blocks.values())

    # ------------------------------------------------------------ device memory

    def allocate(self, nbytes: int) -> Block:
        """Return new, poisoned device memory; it may be where freed memory was."""
        if nbytes < 1:
            raise MisuseError(f"an allocation of {nbytes} bytes")
        for number, old in enumerate(self._freed if self._reuses else ()):
            if old.kind == "device" and old.data.nbytes == nbytes and self._random.random() < 0.7:
                del self._freed[number]
                return self._add(Block(old.start, np.empty(nbytes, np.uint8), "device"))
        return self._add(
            Block(self._address("device", nbytes), np.empty(nbytes, np.uint8), "device")
        )

    def _add(self, block: Block) -> Block:
        if block.kind == "device":
            poison(block.data)
        self._blocks[block.start] = block
        return block

    def _address(self, space: str, nbytes: int) -> int:
        start = self._next[space]
        padded = -(-nbytes // ALIGNMENT) * ALIGNMENT
        self._next[space] = start + padded + GAP
        return start

    def free(self, pointer: int) -> Block:
        """End a device allocation."""
        block = self._blocks.get(pointer)
        if block is None or block.kind != "device":
            raise MisuseError(f"free of {self._what(pointer)}")
        del self._blocks[pointer]
        block.is_live = False
        self._freed.append(block)
        return block

    # ------------------------------------------------------------ memory of the host

    def pin(self, nbytes: int) -> NDArray[Any]:
        """Return new, poisoned pinned memory of the host."""
        data = np.empty(nbytes, np.uint8)
        poison(data)
        self._alias(data, "pinned")
        return data

    def register(self, memory: NDArray[Any]) -> None:
        """Map memory of the host, as the driver does: no mapped range again, nothing read-only."""
        if not memory.nbytes or not (memory.flags.c_contiguous or memory.flags.f_contiguous):
            raise MisuseError("register of an array that is empty or not contiguous")
        if not memory.flags.writeable:
            raise FaultError(Fault.INVALID, "register", "error 1, the memory is read-only")
        wanted = host_region(memory)
        if any(block.region(block.start, block.stop).meets(wanted) for block in self.live()):
            raise FaultError(Fault.ALREADY_REGISTERED, "register", "error 712")
        # Weakly: whoever registers must keep the memory.
        root = memory
        while isinstance(root.base, np.ndarray):
            root = root.base
        data = np.frombuffer(_bytes_at(memory), np.uint8)
        start = self._alias(data, "registered").start
        weakref.finalize(root, self._collected, start).atexit = False

    def _alias(self, data: NDArray[Any], kind: str) -> Block:
        start = self._address("alias", data.nbytes)
        return self._add(Block(start, data, kind, data.ctypes.data))

    def _collected(self, start: int) -> None:
        if start in self._blocks:
            self.lost.append("registered memory was freed")

    def end_host(self, memory: NDArray[Any], kind: str) -> Block:
        """Undo ``pin`` or ``register`` of exactly this memory."""
        address = memory.ctypes.data
        for block in self.live():
            if block.kind == kind and block.host == address and block.data.nbytes == memory.nbytes:
                del self._blocks[block.start]
                block.is_live = False
                self._freed.append(block)
                return block
        inside = any(
            b.kind != "device" and b.host <= address < b.host + b.data.nbytes for b in self.live()
        )
        fault = Fault.INVALID if inside else Fault.NOT_REGISTERED
        raise FaultError(fault, f"end of {kind} memory", "error 1" if inside else "error 713")

    def mapped(self, memory: NDArray[Any]) -> Block | None:
        """Return the pinned or registered block that a host array lies in."""
        wanted = host_region(memory)
        for block in self.live():
            last = block.host + block.data.nbytes
            if block.kind != "device" and block.host <= wanted.start and wanted.stop <= last:
                return block
        return None

    # ------------------------------------------------------------ pointers

    def find(self, pointer: int, nbytes: int) -> Block:
        """Return the block that holds ``nbytes`` at a pointer of the device."""
        for block in self.live():
            if block.start <= pointer and pointer + nbytes <= block.stop:
                return block
        raise MisuseError(f"{nbytes} bytes at {self._what(pointer)}")

    def _what(self, pointer: int) -> str:
        for block in self.live():
            if block.start <= pointer < block.stop:
                return f"offset {pointer - block.start} of {block.data.nbytes} bytes"
        for block in reversed(self._freed):
            if block.start <= pointer < block.stop:
                return f"{block.kind} memory that is freed already"
        if not pointer:
            return "the null pointer"
        if pointer >= ALIAS_BASE:
            return "an address between the allocations of the device"
        return "an address of the host: the device does not reach it"

    def bounds(self, array: DeviceArray) -> tuple[Block, int, int]:
        """Return the block of an array with an element, and its first and last address."""
        size = numpy_dtype(array.dtype).itemsize
        spans = [(n - 1) * s * size for n, s in zip(array.shape, array.strides, strict=True)]
        start = array.pointer + sum(span for span in spans if span < 0)
        stop = array.pointer + sum(span for span in spans if span > 0) + size
        if array.pointer % size:
            raise MisuseError(f"{array.pointer:#x} is not aligned to {array.dtype.value}")
        return self.find(start, stop - start), start, stop

    def view(self, array: DeviceArray) -> NDArray[Any]:
        """Return the elements of an array, as the device sees them now."""
        dtype = numpy_dtype(array.dtype)
        if 0 in array.shape:
            return np.empty(array.shape, dtype)
        block, _, _ = self.bounds(array)
        strides = tuple(stride * dtype.itemsize for stride in array.strides)
        return np.ndarray(array.shape, dtype, block.data.data, array.pointer - block.start, strides)

    def region(self, array: DeviceArray) -> tuple[Region, ...]:
        """Return the bytes that an array spans, none where it has no element."""
        if 0 in array.shape:
            return ()
        block, start, stop = self.bounds(array)
        return (block.region(start, stop),)


def _bytes_at(memory: NDArray[Any]) -> Any:
    """Return the bytes of an array, without holding it."""
    return (ctypes.c_uint8 * memory.nbytes).from_address(memory.ctypes.data)
