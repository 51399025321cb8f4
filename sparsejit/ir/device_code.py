"""Device code: what backends make of kernels and library calls, as data that a runtime runs.

Backends and the runtime do not know each other; this is all that passes between them. ``cubin`` is
for a device, ``replay`` runs the same kernel on NumPy arrays, thread by thread, for the fake one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_statements import LibraryCall
from sparsejit.ir.loops import Expr, Memref, Var
from sparsejit.ir.types import DType

__all__ = [
    "DeviceArray",
    "ExtentParam",
    "KernelCode",
    "KernelCodes",
    "KernelParam",
    "LibraryArguments",
    "LibraryCode",
    "LibraryCodes",
    "LibraryPhase",
    "LibraryRefusal",
    "LibraryRuntime",
    "PointerParam",
    "ScalarParam",
    "StrideParam",
]


@dataclass(frozen=True, slots=True)
class PointerParam:
    """The address of element 0 of a memref in device memory: a 64-bit word."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class ExtentParam:
    """The extent of a memref along an axis: an int64."""

    memref: Memref
    axis: int


@dataclass(frozen=True, slots=True)
class StrideParam:
    """How many elements apart neighbors of a memref along an axis lie: an int64."""

    memref: Memref
    axis: int


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """The value of a scalar variable of the host, in its dtype.

    A complex number takes two parameters: ``part`` says which part of it this one is.
    """

    var: Var
    part: Literal["", "real", "imag"] = ""


KernelParam = PointerParam | ExtentParam | StrideParam | ScalarParam

Replay = Callable[[Sequence[Any], int, int], None]


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel ready for a device.

    ``entry`` is its name in the image that ``cubin(arch)`` gives for an architecture such as
    ``"sm_90"``. It runs with ``block`` threads a block, and is right for any number of blocks;
    ``threads`` says how many threads have work, in terms of the host's variables and of extents.
    ``workspaces`` are memrefs of device memory that the runtime provides while the kernel runs,
    each with its extents for one group of threads and the number of threads in a group; a kernel
    that has some gets ``(groups, *extents)``. ``reads`` and ``writes`` name the memrefs that are
    loaded from and stored to; ``updates`` those of ``writes`` that are changed by atomics or read
    before they are written.

    ``replay(arguments, blocks, seed)`` runs the kernel on the host for that many blocks, in an
    order of threads that ``seed`` picks: an argument for each of ``params``, a NumPy array (of any
    rank, over the very memory) for a pointer, an ``int`` or NumPy scalar for the others.
    """

    entry: str
    params: tuple[KernelParam, ...]
    text: str
    block: int
    threads: Expr
    reads: frozenset[str]
    writes: frozenset[str]
    updates: frozenset[str]
    cubin: Callable[[str], bytes]
    replay: Replay
    workspaces: tuple[tuple[Memref, tuple[Expr, ...], int], ...] = ()


KernelCodes = Mapping[str, KernelCode]
"""Kernels by the name that their ``Launch`` has."""


# ---------------------------------------------------------------- library calls


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array in memory that a device reaches: ``strides`` count elements, not bytes."""

    pointer: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LibraryArguments:
    """A library call with its run-time values.

    ``arrays`` are those of the operands by the names of their memrefs (without the ``targets``,
    which are not there yet), ``extents`` the values of ``SparseMatrix.extents`` for each input and
    then for the output, empty for a dense one. ``alpha`` and ``beta`` are NumPy scalars.
    """

    arrays: Mapping[str, DeviceArray]
    extents: tuple[tuple[int, ...], ...]
    alpha: Any
    beta: Any


@dataclass(frozen=True, slots=True)
class LibraryRefusal:
    """The library does not take this call; nothing has been computed. ``reason`` says why."""

    reason: str


class LibraryRuntime(Protocol):
    """What a library call may ask of the device that it runs on. Pointers and streams are ints."""

    @property
    def stream(self) -> int:
        """The stream that the call's work goes to."""
        ...

    def library(self, name: str) -> Any:
        """Return the loaded library as ``ctypes.CDLL``: ``"cusparse"`` or ``"cusparseLt"``.

        Raises ``DeviceError`` where it cannot be loaded.
        """
        ...

    def handle(self, name: str) -> int:
        """Return the handle of a library for this device, its stream set to ``stream``."""
        ...

    def allocate(self, nbytes: int) -> int:
        """Return device memory that lasts as long as the call: until it is destroyed."""
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy device memory, in order with the work on ``stream``."""
        ...

    def read(self, pointer: int, nbytes: int) -> bytes:
        """Wait for ``stream`` and return bytes of device memory."""
        ...

    def write(self, pointer: int, data: bytes) -> None:
        """Copy bytes to device memory, in order with the work on ``stream``."""
        ...


@dataclass(frozen=True, slots=True)
class LibraryPhase:
    """A part of a library call: sizes are asked, memory of these sizes is given, work is started.

    ``sizes(runtime, state)`` answers one number for each of ``workspaces`` (bytes; 0 is right) and
    then one for each of ``targets`` (elements); a refusal is possible in the first phase only.
    ``run(runtime, state, workspaces, targets)`` gets device memory of these sizes. A workspace
    lasts until the call is destroyed. Neither function waits for the work unless it has to.
    """

    name: str
    sizes: Callable[[LibraryRuntime, Any], Sequence[int] | LibraryRefusal]
    run: Callable[[LibraryRuntime, Any, Sequence[int], Mapping[str, DeviceArray]], None]
    workspaces: tuple[str, ...] = ()
    targets: tuple[Memref, ...] = ()


@dataclass(frozen=True, slots=True)
class LibraryCode:
    """A library call ready for a device.

    On a device: ``describe(runtime, arguments)`` makes descriptors and gives the call's state (or
    refuses), the ``phases`` run in order, ``destroy(runtime, state)`` ends what ``describe`` made,
    also after a failure in between. ``describe`` cleans up after itself where it raises.

    ``streamed`` names the memrefs that the library reads once, in order: they may stay in mapped
    host memory. ``reads`` and ``writes`` name all memrefs that it loads from and stores to.

    Without a device: ``check(arguments)`` yields a sentence for each rule of the library that the
    arguments break, and ``replay(arrays, arguments)`` computes on NumPy arrays: it changes none of
    ``arrays`` (the operands by the names of their memrefs) and returns the new contents of each
    memref of ``writes`` and of each target, with shape and dtype.
    """

    call: LibraryCall
    library: str
    phases: tuple[LibraryPhase, ...]
    describe: Callable[[LibraryRuntime, LibraryArguments], Any]
    destroy: Callable[[LibraryRuntime, Any], None]
    reads: frozenset[str]
    writes: frozenset[str]
    streamed: frozenset[str]
    check: Callable[[LibraryArguments], Sequence[str]]
    replay: Callable[[Mapping[str, Any], LibraryArguments], Mapping[str, Any]]


LibraryCodes = Callable[[LibraryCall], LibraryCode | LibraryRefusal]
"""The code of a library call, or why the library does not take it, whatever the device."""
