"""Library calls on a CUDA device: handles, loaded libraries, and the calls that are described."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.errors import DeviceError
from sparsejit.ir.device_code import (
    DeviceArray,
    LibraryArguments,
    LibraryCode,
    LibraryPhase,
    LibraryRefusal,
)

if TYPE_CHECKING:
    from sparsejit.runtime.cuda import CudaRuntime

__all__ = ["CudaLibraries"]

_SONAMES = {
    "cusparse": ("libcusparse.so.12", "libcusparse.so.13"),
    "cusparseLt": ("libcusparseLt.so.0",),
}
_PACKAGES = {"cusparse": "cuda-toolkit[cusparse]", "cusparseLt": "nvidia-cusparselt-cu13"}
_HANDLE_BYTES, _HANDLE_ALIGNMENT = 65536, 16


class CudaLibraries:
    """The libraries of one device; CuPy's handle of cuSPARSE, our own of cuSPARSELt."""

    def __init__(self, runtime: CudaRuntime) -> None:
        self._runtime = runtime
        self._loaded: dict[str, Any] = {}
        self._structured: tuple[Any, int] | None = None
        self._calls: dict[int, _Call] = {}
        self._next = 1

    def load(self, name: str) -> Any:
        """Return a library; where CuPy has loaded it, this is the very instance."""
        if name not in self._loaded:
            self._loaded[name] = _open(name)
        return self._loaded[name]

    def handle(self, name: str, stream: int) -> int:
        """Return the handle of a library, its work going to the stream."""
        if name == "cusparseLt":
            return self._structured_handle()
        device = importlib.import_module("cupy.cuda.device")
        table = importlib.import_module("cupy_backends.cuda.libs.cusparse")
        handle = int(device.get_cusparse_handle())
        table.setStream(handle, stream)
        return handle

    def _structured_handle(self) -> int:
        """The handle of cuSPARSELt is a structure of the caller, made once."""
        if self._structured is None:
            room = ctypes.create_string_buffer(_HANDLE_BYTES + _HANDLE_ALIGNMENT)
            start = ctypes.addressof(room)
            address = -(-start // _HANDLE_ALIGNMENT) * _HANDLE_ALIGNMENT
            function = self.load("cusparseLt").cusparseLtInit
            function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_int
            status = int(function(address))
            if status:
                raise DeviceError(f"cusparseLtInit answers with status {status}")
            self._structured = (room, address)
        return self._structured[1]

    # ------------------------------------------------------------ calls

    def describe(
        self, code: LibraryCode, arguments: LibraryArguments, stream: int
    ) -> int | LibraryRefusal:
        """Make descriptors and remember the call; what is not installed is refused."""
        try:
            for name in ("cusparse", code.library):
                self.load(name)
        except DeviceError as error:
            return LibraryRefusal(error.what)
        call = _Call(self, self._runtime, code, stream)
        try:
            state = code.describe(call, arguments)
        except BaseException:
            call.free()
            raise
        if isinstance(state, LibraryRefusal):
            call.free()
            return state
        call.state = state
        self._calls[self._next] = call
        self._next += 1
        return self._next - 1

    def sizes(self, number: int, phase: LibraryPhase) -> Sequence[int] | LibraryRefusal:
        """Ask for the sizes of a phase."""
        call = self._calls[number]
        return phase.sizes(call, call.state)

    def run(
        self,
        number: int,
        phase: LibraryPhase,
        workspaces: Sequence[int],
        targets: Mapping[str, DeviceArray],
    ) -> None:
        """Start a phase."""
        call = self._calls[number]
        phase.run(call, call.state, workspaces, targets)

    def destroy(self, number: int) -> None:
        """End a call and what it allocated."""
        call = self._calls.pop(number)
        try:
            call.code.destroy(call, call.state)
        finally:
            call.free()


@dataclass(slots=True, eq=False)
class _Call:
    """What a library call asks of the device (``LibraryRuntime``)."""

    libraries: CudaLibraries
    runtime: CudaRuntime
    code: LibraryCode
    stream: int
    state: Any = None
    memory: list[int] = field(default_factory=list)

    def library(self, name: str) -> Any:
        """Return a loaded library."""
        return self.libraries.load(name)

    def handle(self, name: str) -> int:
        """Return a handle on this call's stream."""
        return self.libraries.handle(name, self.stream)

    def allocate(self, nbytes: int) -> int:
        """Return memory that lasts as long as the call."""
        pointer = self.runtime.allocate(max(nbytes, 1), self.stream)
        self.memory.append(pointer)
        return pointer

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device."""
        if nbytes:
            self.runtime.copy_bytes(target, source, nbytes, self.stream)

    def read(self, pointer: int, nbytes: int) -> bytes:
        """Wait and read."""
        host = np.empty(nbytes, np.uint8)
        if nbytes:
            self.runtime.copy_to_host(host, pointer, self.stream)
        self.runtime.synchronize(self.stream)
        return host.tobytes()

    def write(self, pointer: int, data: bytes) -> None:
        """Copy bytes to the device."""
        if data:
            self.runtime.copy_to_device(pointer, np.frombuffer(data, np.uint8), self.stream)

    def free(self) -> None:
        """Free what the call allocated."""
        while self.memory:
            self.runtime.free(self.memory.pop(), self.stream)


def _open(name: str) -> Any:
    """Load a library: through CuPy, which finds it among the wheels, or by NVIDIA's finder."""
    try:
        if name == "cusparse":
            importlib.import_module("cupyx.cusparse")
        elif importlib.util.find_spec("cuda.pathfinder") is not None:
            importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib(name)
    except (ImportError, RuntimeError):
        pass  # It may lie where the system finds it.
    for soname in _SONAMES[name]:
        try:
            return ctypes.CDLL(soname)
        except OSError:
            continue
    raise DeviceError(
        f"{name} cannot be loaded: {' or '.join(_SONAMES[name])} is missing",
        hint=f"pip install '{_PACKAGES[name]}', or use library=\"never\"",
    )
