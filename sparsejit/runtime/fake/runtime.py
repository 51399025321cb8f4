"""``FakeRuntime``: the runtime protocol on the fake device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.ir.device_code import (
    DeviceArray,
    KernelCode,
    LibraryArguments,
    LibraryCode,
    LibraryPhase,
    LibraryRefusal,
)
from sparsejit.ir.loops import ScanOp
from sparsejit.runtime.device import Attribute, DeviceResult, ResidentArray
from sparsejit.runtime.fake.arrays import FakeArray
from sparsejit.runtime.fake.injection import Injection
from sparsejit.runtime.fake.kernels import Launched, check_launch
from sparsejit.runtime.fake.library import LibraryCalls
from sparsejit.runtime.fake.memory import Block, Memory, MisuseError, Region, host_region, poison
from sparsejit.runtime.fake.streams import Streams

__all__ = ["FakeRuntime"]

_CURRENT, _TRANSFER = 11, 12
_ATTRIBUTES = {Attribute.PROCESSORS: 3, Attribute.THREADS: 256, Attribute.CAN_MAP_HOST_MEMORY: 1}


class FakeRuntime:
    """A device in this process.

    ``seed`` picks among the orders that a device may take. ``injection`` makes a call fail.
    ``refuses`` lets the library refuse calls of these operations, by name, when asked for sizes.
    """

    def __init__(
        self,
        seed: int = 0,
        injection: Injection | None = None,
        refuses: frozenset[str] = frozenset(),
        reuses_memory: bool = True,
    ) -> None:
        self._random = Random(seed)
        self.injection = injection or Injection()
        self.memory = Memory(self._random, reuses_memory)
        self.streams = Streams(self._random, {_CURRENT: [], _TRANSFER: []})
        self.library = LibraryCalls(self.memory, self.streams, self._random, refuses, self._enqueue)
        self._kernels: dict[int, KernelCode] = {}

    @property
    def name(self) -> str:
        """``"fake"``."""
        return "fake"

    def leaks(self) -> list[str]:
        """Return what is still held, and what was lost: empty behind a right program."""
        held = [f"{b.data.nbytes} bytes of {b.kind} memory" for b in self.memory.live()]
        events = [f"event {event}" for event in self.streams.events]
        return [*held, *events, *self.library.leaks(), *self.memory.lost]

    def attribute(self, attribute: Attribute) -> int:
        """Return an attribute: a small device, so that kernels meet few blocks."""
        return _ATTRIBUTES[attribute]

    # ------------------------------------------------------------ streams and events

    def current_stream(self) -> int:
        """Return the computing stream."""
        return _CURRENT

    def transfer_stream(self) -> int:
        """Return the stream of copies to the device."""
        return _TRANSFER

    def synchronize(self, stream: int) -> None:
        """Run all work on a stream."""
        fails = self.injection.count("synchronize")
        self.streams.synchronize(stream)
        if fails:
            raise self.injection.fault("synchronize")

    def create_event(self) -> int:
        """Return a new event."""
        self.injection.enter("create_event")
        return self.streams.create_event()

    def record_event(self, event: int, stream: int) -> None:
        """Record an event."""
        self.injection.enter("record_event")
        self.streams.record(event, stream)

    def stream_wait(self, stream: int, event: int) -> None:
        """Order a stream behind an event."""
        self.injection.enter("stream_wait")
        self.streams.wait(stream, event)

    def is_done(self, event: int) -> bool:
        """Return whether an event is done."""
        self.injection.enter("is_done")
        return self.streams.is_done(event)

    def wait_event(self, event: int) -> None:
        """Wait for an event."""
        fails = self.injection.count("wait_event")
        self.streams.wait_event(event)
        if fails:
            raise self.injection.fault("wait_event")

    def destroy_event(self, event: int) -> None:
        """End an event."""
        self.streams.event(event)
        del self.streams.events[event]
        self.injection.enter("destroy_event")

    # ------------------------------------------------------------ memory

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return poisoned device memory."""
        self.injection.enter("allocate")
        return self.memory.allocate(nbytes).start

    def free(self, pointer: int, stream: int) -> None:
        """Free device memory behind the work of a stream."""
        block = self.memory.free(pointer)
        whole = (block.region(block.start, block.stop),)
        self.streams.enqueue("free", stream, (), whole, None)
        self.injection.enter("free")

    def copy_to_device(self, target: int, source: NDArray[Any], stream: int) -> None:
        """Copy from the host: late from pinned memory, which nobody may change meanwhile."""
        self._host_array(source, "copy_to_device")
        self.injection.enter("copy_to_device")
        data = _flat(source)
        region, bytes_at = self._device_bytes(target, source)
        if self.memory.mapped(source) is None:
            snapshot = data.copy()
            self._enqueue("copy_to_device", stream, (), (region,), _assign(bytes_at, snapshot))
            self.streams.synchronize(stream)
            return
        before = data.copy()

        def run() -> None:
            if not np.array_equal(data, before):
                raise MisuseError("the source of a copy changed while it was in flight")
            bytes_at[...] = data

        self._enqueue("copy_to_device", stream, (host_region(source),), (region,), run)

    def copy_to_host(self, target: NDArray[Any], source: int, stream: int) -> None:
        """Copy to the host: late into pinned memory, poisoned until then if nothing needs it."""
        self._host_array(target, "copy_to_host")
        self.injection.enter("copy_to_host")
        region, bytes_at = self._device_bytes(source, target)
        data = _flat(target)
        is_late = self.memory.mapped(target) is not None
        is_busy = self.streams.is_busy(host_region(target))
        work = _assign(data, bytes_at)
        self._enqueue("copy_to_host", stream, (region,), (host_region(target),), work)
        if not is_late:
            self.streams.synchronize(stream)
        elif not is_busy:
            poison(data)

    def copy_on_device(self, target: DeviceArray, source: DeviceArray, stream: int) -> None:
        """Copy between device arrays."""
        self.injection.enter("copy_on_device")
        if target.shape != source.shape or target.dtype is not source.dtype:
            raise MisuseError(f"a copy of {source} into {target}")
        regions = self.memory.region(source), self.memory.region(target)
        work = _assign(self.memory.view(target), self.memory.view(source))
        self._enqueue("copy_on_device", stream, *regions, work)

    def fill(self, target: DeviceArray, value: Any, stream: int) -> None:
        """Fill a device array."""
        self.injection.enter("fill")
        view = self.memory.view(target)
        if view.dtype != value.dtype:
            raise MisuseError(f"{target.dtype.value} is filled with {value.dtype}")
        region = self.memory.region(target)
        self._enqueue("fill", stream, (), region, _assign(view, value))

    def pinned(self, nbytes: int) -> NDArray[Any]:
        """Return pinned, poisoned host memory."""
        self.injection.enter("pinned")
        return self.memory.pin(nbytes)

    def free_pinned(self, memory: NDArray[Any]) -> None:
        """Free pinned memory; nothing may use it any more."""
        self.streams.host_touches(host_region(memory), "free_pinned", True)
        self.memory.end_host(memory, "pinned")
        self.injection.enter("free_pinned")

    def register(self, memory: NDArray[Any]) -> None:
        """Register host memory."""
        self.injection.enter("register")
        self.memory.register(memory)

    def unregister(self, memory: NDArray[Any]) -> None:
        """End a registration; nothing may use it any more."""
        self.streams.host_touches(host_region(memory), "unregister", True)
        self.memory.end_host(memory, "registered")
        self.injection.enter("unregister")

    def device_pointer(self, memory: NDArray[Any]) -> int:
        """Return the device address of mapped memory."""
        self.injection.enter("device_pointer")
        block = self.memory.mapped(memory)
        if block is None:
            raise MisuseError("device_pointer of memory that is not registered")
        return block.start + memory.ctypes.data - block.host

    # ------------------------------------------------------------ work

    def load(self, code: KernelCode) -> int:
        """Return the kernel."""
        self.injection.enter("load")
        number = len(self._kernels) + 1
        self._kernels[number] = code
        return number

    def launch(self, kernel: int, blocks: int, arguments: Sequence[Any], stream: int) -> None:
        """Queue a kernel."""
        self.injection.enter("launch")
        if kernel not in self._kernels:
            raise MisuseError(f"launch of {kernel}, which is no kernel")
        code = self._kernels[kernel]
        check_launch(code, blocks, arguments)
        launched = Launched(code, blocks, tuple(arguments), self._random.randrange(1 << 30))
        reads, writes = launched.regions(self.memory)
        self._enqueue(code.entry, stream, reads, writes, launched.prepared(self.memory))

    def scan(self, array: DeviceArray, op: ScanOp, stream: int) -> None:
        """Queue a prefix scan."""
        self.injection.enter("scan")
        view, region = self.memory.view(array), self.memory.region(array)
        combine: Any = np.add if op is ScanOp.SUM else np.maximum

        def run() -> None:
            view[...] = combine.accumulate(view)

        self._enqueue("scan", stream, region, region, run)

    def sort(self, array: DeviceArray, count: int, stream: int) -> None:
        """Queue a sort."""
        self.injection.enter("sort")
        view, region = self.memory.view(array), self.memory.region(array)
        if not 0 <= count <= view.size:
            raise MisuseError(f"sort of {count} elements of {view.size}")
        self._enqueue("sort", stream, region, region, lambda: view[:count].sort())

    def sort_order(
        self, order: DeviceArray, keys: Sequence[DeviceArray], count: int, stream: int
    ) -> None:
        """Queue the sort of entries by keys."""
        self.injection.enter("sort_order")
        views = [self.memory.view(key) for key in keys]
        target = self.memory.view(order)
        if not keys or any(view.size < count for view in (target, *views)):
            raise MisuseError(f"sort of {count} entries by shorter keys, or by none")
        reads = tuple(region for key in keys for region in self.memory.region(key))

        def run() -> None:
            target[:count] = np.lexsort([view[:count] for view in reversed(views)])

        self._enqueue("sort_order", stream, reads, self.memory.region(order), run)

    # ------------------------------------------------------------ library calls

    def describe(
        self, code: LibraryCode, arguments: LibraryArguments, stream: int
    ) -> int | LibraryRefusal:
        """Make a library call, by the library's rules."""
        self.injection.enter("describe")
        return self.library.describe(code, arguments, stream)

    def phase_sizes(self, call: int, phase: LibraryPhase) -> Sequence[int] | LibraryRefusal:
        """Answer sizes that no program can know beforehand."""
        self.injection.enter("phase_sizes")
        return self.library.sizes(call, phase)

    def run_phase(
        self,
        call: int,
        phase: LibraryPhase,
        workspaces: Sequence[int],
        targets: Mapping[str, DeviceArray],
    ) -> None:
        """Queue a phase."""
        self.injection.enter("run_phase")
        self.library.run(call, phase, workspaces, targets)

    def destroy(self, call: int) -> None:
        """End a library call."""
        self.library.destroy(call)
        self.injection.enter("destroy")

    # ------------------------------------------------------------ the caller's arrays

    def resident(self, array: Any) -> ResidentArray:
        """Return a ``FakeArray`` of this device as plans take it."""
        if not isinstance(array, FakeArray) or array.runtime is not self:
            raise MisuseError(f"{type(array).__name__} is no array of this device")
        return ResidentArray(array.where, array)

    def as_array(self, result: DeviceResult) -> FakeArray:
        """Return a result as an array."""
        return FakeArray(self, result.array, result.release)

    # ------------------------------------------------------------ parts

    def _enqueue(
        self,
        name: str,
        stream: int,
        reads: Sequence[Region],
        writes: Sequence[Region],
        run: Callable[[], None],
    ) -> None:
        fails = self.injection.is_late and self.injection.count(f"late {name}")
        work = run if not fails else lambda: self.streams.fail(name)
        self.streams.enqueue(name, stream, reads, writes, work)

    def _device_bytes(self, pointer: int, like: NDArray[Any]) -> tuple[Region, NDArray[Any]]:
        block: Block = self.memory.find(pointer, like.nbytes)
        if block.kind != "device":
            raise MisuseError(f"a copy between the host and {block.kind} memory of the host")
        if pointer % like.dtype.itemsize:
            raise MisuseError(f"{pointer:#x} is not aligned to {like.dtype}")
        start = pointer - block.start
        region = block.region(pointer, pointer + like.nbytes)
        return region, block.data[start : start + like.nbytes]

    @staticmethod
    def _host_array(array: object, name: str) -> None:
        if not isinstance(array, np.ndarray):
            raise MisuseError(f"{name} of {type(array).__name__}, which is no host array")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise MisuseError(f"{name} of an array that is not contiguous")


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bytes of a contiguous array, without a copy."""
    flat = array.ravel(order="K")
    if not np.may_share_memory(flat, array):
        raise MisuseError("an array that is copied has no element")
    return flat.view(np.uint8)


def _assign(target: NDArray[Any], source: Any) -> Callable[[], None]:
    def run() -> None:
        target[...] = source

    return run
