"""``CudaRuntime``: the runtime protocol on a CUDA device, through CuPy.

CuPy is imported when the runtime is made, never before. It owns memory, streams, modules and the
libraries' handles; memory of its pool is reused in order with the stream that it was allocated on,
which is the caller's current one. Everything here waits for a real device: the fake one keeps the
same protocol.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.errors import DeviceError, UnsupportedError
from sparsejit.ir.device_code import (
    DeviceArray,
    KernelCode,
    LibraryArguments,
    LibraryCode,
    LibraryPhase,
    LibraryRefusal,
)
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import ScanOp
from sparsejit.ir.types import DType
from sparsejit.runtime.cuda_library import CudaLibraries
from sparsejit.runtime.device import (
    Attribute,
    DeviceResult,
    Fault,
    FaultError,
    ResidentArray,
)

__all__ = ["CudaRuntime"]

_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3
_PORTABLE_AND_MAPPED = 3
_NO_TIMING = 2
_FAULTS = {
    2: Fault.OUT_OF_MEMORY,
    712: Fault.ALREADY_REGISTERED,
    713: Fault.NOT_REGISTERED,
    700: Fault.LAUNCH,
    719: Fault.LAUNCH,
    1: Fault.INVALID,
}
"""``cudaError_t`` (driver_types.h)."""
_ATTRIBUTES = {
    Attribute.PROCESSORS: "MultiProcessorCount",
    Attribute.THREADS: "MaxThreadsPerMultiProcessor",
    Attribute.CAN_MAP_HOST_MEMORY: "CanMapHostMemory",
}


class CudaRuntime:
    """The current device of this process; ``cupy`` is the module CuPy, with a device to use."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._api = cupy.cuda.runtime
        self._device = cupy.cuda.Device()
        self._transfer = cupy.cuda.Stream(non_blocking=True)
        self._attributes: dict[Attribute, int] = {}
        self._memory: dict[int, Any] = {}
        self._kernels: list[tuple[Any, KernelCode]] = []
        self._libraries = CudaLibraries(self)

    @property
    def name(self) -> str:
        """The name that the driver gives the device."""
        properties = self._api.getDeviceProperties(self._device.id)
        return str(properties["name"].decode(errors="replace"))

    @property
    def arch(self) -> str:
        """The architecture as compilers name it: ``"sm_90"``."""
        return f"sm_{self._device.compute_capability}"

    def attribute(self, attribute: Attribute) -> int:
        """Return an attribute of the device; CuPy asks for all of them, so once is enough."""
        if not self._attributes:
            found = self._device.attributes
            self._attributes = {key: int(found[name]) for key, name in _ATTRIBUTES.items()}
        return self._attributes[attribute]

    @contextmanager
    def faults(self, call: str) -> Iterator[None]:
        """Turn what CuPy raises into ``FaultError``."""
        errors = self._cupy.cuda
        try:
            yield
        except errors.runtime.CUDARuntimeError as error:
            fault = _FAULTS.get(error.status, Fault.OTHER)
            raise FaultError(fault, call, str(error)) from error
        except errors.driver.CUDADriverError as error:
            raise FaultError(Fault.LAUNCH, call, str(error)) from error
        except errors.memory.OutOfMemoryError as error:
            raise FaultError(Fault.OUT_OF_MEMORY, call, str(error)) from error

    # ------------------------------------------------------------ streams and events

    def current_stream(self) -> int:
        """Return CuPy's current stream, that the caller's own work goes to.

        Raises ``DeviceError`` where another device is current than when this one was opened.
        """
        current = self._cupy.cuda.Device()
        if current.id != self._device.id:
            raise DeviceError(
                f"device {current.id} is CuPy's current one, and sparsejit uses {self._device.id}",
                hint="make that device the current one around the call",
            )
        return int(self._cupy.cuda.get_current_stream().ptr)

    def transfer_stream(self) -> int:
        """Return a stream of our own that does not wait for the default stream."""
        return int(self._transfer.ptr)

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        with self.faults("synchronize"):
            self._api.streamSynchronize(stream)

    def create_event(self) -> int:
        """Return a new event without a clock."""
        with self.faults("create_event"):
            return int(self._api.eventCreateWithFlags(_NO_TIMING))

    def record_event(self, event: int, stream: int) -> None:
        """Record an event."""
        with self.faults("record_event"):
            self._api.eventRecord(event, stream)

    def stream_wait(self, stream: int, event: int) -> None:
        """Order a stream behind an event."""
        with self.faults("stream_wait"):
            self._api.streamWaitEvent(stream, event)

    def is_done(self, event: int) -> bool:
        """Return whether an event is done."""
        with self.faults("is_done"):
            return int(self._api.eventQuery(event)) == 0

    def wait_event(self, event: int) -> None:
        """Wait for an event."""
        with self.faults("wait_event"):
            self._api.eventSynchronize(event)

    def destroy_event(self, event: int) -> None:
        """End an event."""
        with self.faults("destroy_event"):
            self._api.eventDestroy(event)

    # ------------------------------------------------------------ memory

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return memory of CuPy's pool, for the stream."""
        with self.faults("allocate"), self.on(stream):
            memory = self._cupy.cuda.alloc(nbytes)
        self._memory[memory.ptr] = memory
        return int(memory.ptr)

    def free(self, pointer: int, stream: int) -> None:
        """Give memory back to the pool, which reuses it in order with its stream."""
        with self.faults("free"):
            del self._memory[pointer]

    def copy_to_device(self, target: int, source: NDArray[Any], stream: int) -> None:
        """Copy a contiguous host array."""
        with self.faults("copy_to_device"):
            address = source.ctypes.data
            self._api.memcpyAsync(target, address, source.nbytes, _TO_DEVICE, stream)

    def copy_to_host(self, target: NDArray[Any], source: int, stream: int) -> None:
        """Copy into a contiguous host array."""
        with self.faults("copy_to_host"):
            self._api.memcpyAsync(target.ctypes.data, source, target.nbytes, _TO_HOST, stream)

    def copy_on_device(self, target: DeviceArray, source: DeviceArray, stream: int) -> None:
        """Copy between arrays of any strides."""
        with self.faults("copy_on_device"), self.on(stream):
            self._cupy.copyto(self.view(target), self.view(source))

    def copy_bytes(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy bytes on the device, for library calls."""
        with self.faults("copy_on_device"):
            self._api.memcpyAsync(target, source, nbytes, _ON_DEVICE, stream)

    def fill(self, target: DeviceArray, value: Any, stream: int) -> None:
        """Fill an array."""
        with self.faults("fill"), self.on(stream):
            self.view(target)[...] = _as_bits(value)

    def pinned(self, nbytes: int) -> NDArray[Any]:
        """Return pinned and mapped host memory."""
        with self.faults("pinned"):
            address = int(self._api.hostAlloc(nbytes, _PORTABLE_AND_MAPPED))
        room: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        return np.frombuffer(room, np.uint8)

    def free_pinned(self, memory: NDArray[Any]) -> None:
        """Free pinned memory."""
        with self.faults("free_pinned"):
            self._api.freeHost(memory.ctypes.data)

    def register(self, memory: NDArray[Any]) -> None:
        """Pin and map the pages of an array."""
        with self.faults("register"):
            self._api.hostRegister(memory.ctypes.data, memory.nbytes, _PORTABLE_AND_MAPPED)

    def unregister(self, memory: NDArray[Any]) -> None:
        """Undo ``register``."""
        with self.faults("unregister"):
            self._api.hostUnregister(memory.ctypes.data)

    def device_pointer(self, memory: NDArray[Any]) -> int:
        """Return the device address of pinned or registered memory, as the driver tells it."""
        with self.faults("device_pointer"):
            attributes = self._api.pointerGetAttributes(memory.ctypes.data)
        if not attributes.devicePointer:
            raise FaultError(Fault.NOT_REGISTERED, "device_pointer", "it has no device address")
        return int(attributes.devicePointer)

    # ------------------------------------------------------------ work

    def load(self, code: KernelCode) -> int:
        """Load a kernel's cubin."""
        cubin = code.cubin(self.arch)
        with self.faults("load"):
            module = self._cupy.cuda.function.Module()
            module.load(cubin)
            self._kernels.append((module.get_function(code.entry), code))
        return len(self._kernels) - 1

    def launch(self, kernel: int, blocks: int, arguments: Sequence[Any], stream: int) -> None:
        """Launch a kernel through CuPy's function object."""
        function, code = self._kernels[kernel]
        words = tuple(map(_word, arguments))
        with self.faults("launch"), self.on(stream) as used:
            function((blocks, 1, 1), (code.block, 1, 1), words, 0, used)

    def scan(self, array: DeviceArray, op: ScanOp, stream: int) -> None:
        """Scan by CuPy: sums by CUB, maxima by doubling steps."""
        with self.faults("scan"), self.on(stream):
            view = self.view(array)
            if op is ScanOp.SUM:
                self._cupy.cumsum(view, dtype=view.dtype, out=view)
                return
            step = 1
            while step < view.size:
                view[step:] = self._cupy.maximum(view[step:], view[:-step])
                step *= 2

    def sort(self, array: DeviceArray, count: int, stream: int) -> None:
        """Sort by CuPy."""
        with self.faults("sort"), self.on(stream):
            self.view(array)[:count].sort()

    def sort_order(
        self, order: DeviceArray, keys: Sequence[DeviceArray], count: int, stream: int
    ) -> None:
        """Sort entries by CuPy's ``lexsort``, whose last key is the most significant."""
        with self.faults("sort_order"), self.on(stream):
            stacked = self._cupy.stack([self.view(key)[:count] for key in reversed(keys)])
            self.view(order)[:count] = self._cupy.lexsort(stacked)

    # ------------------------------------------------------------ library calls

    def describe(
        self, code: LibraryCode, arguments: LibraryArguments, stream: int
    ) -> int | LibraryRefusal:
        """Make the descriptors of a library call."""
        return self._libraries.describe(code, arguments, stream)

    def phase_sizes(self, call: int, phase: LibraryPhase) -> Sequence[int] | LibraryRefusal:
        """Ask the library for sizes."""
        return self._libraries.sizes(call, phase)

    def run_phase(
        self,
        call: int,
        phase: LibraryPhase,
        workspaces: Sequence[int],
        targets: Mapping[str, DeviceArray],
    ) -> None:
        """Start a phase."""
        self._libraries.run(call, phase, workspaces, targets)

    def destroy(self, call: int) -> None:
        """End a library call."""
        self._libraries.destroy(call)

    # ------------------------------------------------------------ CuPy's arrays

    def resident(self, array: Any) -> ResidentArray:
        """Return a CuPy array as plans take it."""
        if array.device.id != self._device.id:
            raise DeviceError(
                f"an operand lies on device {array.device.id}, and the others on {self._device.id}",
                hint="copy it to the same device",
            )
        size = array.dtype.itemsize
        strides = tuple(stride // size for stride in array.strides)
        dtype = DType(array.dtype.name)
        where = DeviceArray(int(array.data.ptr), dtype, tuple(array.shape), strides)
        return ResidentArray(where, array)

    def as_array(self, result: DeviceResult) -> Any:
        """Return a result as a CuPy array that frees its memory."""
        array = result.array
        if array.dtype is DType.BFLOAT16:
            raise UnsupportedError("CuPy has no arrays of bfloat16")
        owner = _Owner(result.release)
        return self.view(array, owner)

    def view(self, array: DeviceArray, owner: object = None) -> Any:
        """Return an array as one of CuPy's; bfloat16 as its bits."""
        dtype = np.dtype(np.uint16) if array.dtype is DType.BFLOAT16 else numpy_dtype(array.dtype)
        span = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if n)
        nbytes = (span + 1) * dtype.itemsize
        memory = self._cupy.cuda.UnownedMemory(array.pointer, nbytes, owner, self._device.id)
        strides = tuple(stride * dtype.itemsize for stride in array.strides)
        start = self._cupy.cuda.MemoryPointer(memory, 0)
        return self._cupy.ndarray(array.shape, dtype, start, strides)

    @contextmanager
    def on(self, stream: int) -> Iterator[Any]:
        """Make a stream CuPy's current one: it is the caller's, which is so already, or our own."""
        current = self._cupy.cuda.get_current_stream()
        if current.ptr == stream:
            yield current
            return
        assert stream == self._transfer.ptr, "work goes to one of two streams"
        with self._transfer as used:
            yield used


class _Owner:
    """Frees the memory of a result when its array ends."""

    __slots__ = ("_release",)

    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release

    def __del__(self) -> None:
        self._release()


def _as_bits(value: Any) -> Any:
    """Return a scalar as CuPy takes it."""
    is_bfloat16 = value.dtype.itemsize == 2 and value.dtype.kind not in "iuf"
    return value.view(np.uint16) if is_bfloat16 else value


def _word(argument: Any) -> Any:
    """Return an argument of a kernel as CuPy passes it: by its type, 64 bits for a pointer."""
    if isinstance(argument, DeviceArray):
        return np.uint64(argument.pointer)
    return np.int64(argument) if isinstance(argument, int) else _as_bits(argument)
