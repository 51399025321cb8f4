"""The runtime protocol: everything that a launch plan asks of a device, some thirty functions.

Pointers, streams and events are ints. Host memory is handed over as contiguous NumPy arrays, so
that whoever holds a call in flight holds its memory. Work is ordered within a stream; between
streams by events only. Every function may raise ``FaultError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import (
    DeviceArray,
    KernelCode,
    LibraryArguments,
    LibraryCode,
    LibraryPhase,
    LibraryRefusal,
)
from sparsejit.ir.loops import ScanOp

__all__ = [
    "Attribute",
    "DeviceResult",
    "DeviceRuntime",
    "Fault",
    "FaultError",
    "ResidentArray",
]


class Fault(Enum):
    """What kind of failure a device reports."""

    OUT_OF_MEMORY = "out of memory"
    ALREADY_REGISTERED = "memory is registered already"
    NOT_REGISTERED = "memory is not registered"
    LAUNCH = "a kernel failed"
    INVALID = "an argument is not valid"
    OTHER = "the device failed"

    def __repr__(self) -> str:
        return f"Fault.{self.name}"


class FaultError(Exception):
    """A function of the runtime failed: ``call`` names it, ``text`` is what the device said."""

    def __init__(self, fault: Fault, call: str, text: str = "") -> None:
        super().__init__(f"{call}: {text or fault.value}")
        self.fault = fault
        self.call = call
        self.text = text or fault.value


class Attribute(Enum):
    """The attributes of a device that plans depend on."""

    PROCESSORS = "multiprocessors"
    THREADS = "resident threads of a multiprocessor"
    CAN_MAP_HOST_MEMORY = "whether kernels reach registered host memory"

    def __repr__(self) -> str:
        return f"Attribute.{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class ResidentArray:
    """An array of the caller on the device; ``owner`` keeps its memory."""

    array: DeviceArray
    owner: object


@dataclass(frozen=True, slots=True, eq=False)
class DeviceResult:
    """A result that stays on the device; ``release`` frees it, in order with ``stream``."""

    array: DeviceArray
    stream: int
    release: Callable[[], None]


class DeviceRuntime(Protocol):
    """A device and its driver, for one thread at a time."""

    @property
    def name(self) -> str:
        """The device's name in texts."""
        ...

    def attribute(self, attribute: Attribute) -> int:
        """Return an attribute of the device."""
        ...

    # ------------------------------------------------------------ streams and events

    def current_stream(self) -> int:
        """Return the stream that the caller's own work goes to."""
        ...

    def transfer_stream(self) -> int:
        """Return the stream for copies to the device, which lasts as long as the runtime."""
        ...

    def synchronize(self, stream: int) -> None:
        """Wait for all work on a stream; a failure of earlier work is reported here."""
        ...

    def create_event(self) -> int:
        """Return a new event."""
        ...

    def record_event(self, event: int, stream: int) -> None:
        """Let the event stand for all work on the stream so far."""
        ...

    def stream_wait(self, stream: int, event: int) -> None:
        """Let later work on the stream wait for the event."""
        ...

    def is_done(self, event: int) -> bool:
        """Return whether what the event stands for has been done."""
        ...

    def wait_event(self, event: int) -> None:
        """Wait for the event."""
        ...

    def destroy_event(self, event: int) -> None:
        """End an event."""
        ...

    # ------------------------------------------------------------ memory

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return device memory, at least one byte.

        It may have been used before: work on another stream must be ordered behind ``stream``.
        """
        ...

    def free(self, pointer: int, stream: int) -> None:
        """Give memory back once the work on ``stream`` so far is done."""
        ...

    def copy_to_device(self, target: int, source: NDArray[Any], stream: int) -> None:
        """Copy a contiguous array; blocks unless its memory is pinned or registered."""
        ...

    def copy_to_host(self, target: NDArray[Any], source: int, stream: int) -> None:
        """Copy into a contiguous array; blocks unless its memory is pinned or registered."""
        ...

    def copy_on_device(self, target: DeviceArray, source: DeviceArray, stream: int) -> None:
        """Copy elements between arrays of one shape, of any strides."""
        ...

    def fill(self, target: DeviceArray, value: Any, stream: int) -> None:
        """Give every element of an array, of any strides, the value: a NumPy scalar."""
        ...

    def pinned(self, nbytes: int) -> NDArray[Any]:
        """Return pinned host memory as an array of bytes."""
        ...

    def free_pinned(self, memory: NDArray[Any]) -> None:
        """Give pinned host memory back."""
        ...

    def register(self, memory: NDArray[Any]) -> None:
        """Pin and map the pages of a contiguous array: ALREADY_REGISTERED where it overlaps."""
        ...

    def unregister(self, memory: NDArray[Any]) -> None:
        """Undo ``register`` of exactly this memory: NOT_REGISTERED for any other."""
        ...

    def device_pointer(self, memory: NDArray[Any]) -> int:
        """Return the address under which kernels reach pinned or registered memory."""
        ...

    # ------------------------------------------------------------ work

    def load(self, code: KernelCode) -> int:
        """Return the kernel, loaded for this device; it lasts as long as the runtime."""
        ...

    def launch(self, kernel: int, blocks: int, arguments: Sequence[Any], stream: int) -> None:
        """Run a kernel: a ``DeviceArray`` for each pointer, an int or NumPy scalar for the rest."""
        ...

    def scan(self, array: DeviceArray, op: ScanOp, stream: int) -> None:
        """Inclusive prefix scan of a rank-1 array in place, by a library."""
        ...

    def sort(self, array: DeviceArray, count: int, stream: int) -> None:
        """Sort the first ``count`` elements of a rank-1 array in place, by a library."""
        ...

    def sort_order(
        self, order: DeviceArray, keys: Sequence[DeviceArray], count: int, stream: int
    ) -> None:
        """Write the numbers below ``count`` in the stable order of their keys, by a library.

        The most significant key comes first; there is one at least.
        """
        ...

    # ------------------------------------------------------------ library calls

    def describe(
        self, code: LibraryCode, arguments: LibraryArguments, stream: int
    ) -> int | LibraryRefusal:
        """Make the descriptors of a library call and return the call, or why it is refused."""
        ...

    def phase_sizes(self, call: int, phase: LibraryPhase) -> Sequence[int] | LibraryRefusal:
        """Return the sizes of a phase's workspaces (bytes) and then of its targets (elements)."""
        ...

    def run_phase(
        self,
        call: int,
        phase: LibraryPhase,
        workspaces: Sequence[int],
        targets: Mapping[str, DeviceArray],
    ) -> None:
        """Start the work of a phase on memory of the sizes that it asked for."""
        ...

    def destroy(self, call: int) -> None:
        """End the descriptors of a library call."""
        ...

    # ------------------------------------------------------------ the caller's arrays

    def resident(self, array: Any) -> ResidentArray:
        """Return a device array of the caller's library as plans take it."""
        ...

    def as_array(self, result: DeviceResult) -> Any:
        """Return a result as an array of that library, which frees it in the end."""
        ...
