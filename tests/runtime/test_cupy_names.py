"""What the runtime asks of CuPy is there, where CuPy is installed; no driver is needed."""

from __future__ import annotations

from typing import Any

import pytest

from sparsejit.ir.device_code import DeviceArray
from sparsejit.ir.types import DType
from sparsejit.runtime.cuda import CudaRuntime

RUNTIME = (
    "CUDARuntimeError driverGetVersion eventCreateWithFlags eventDestroy eventQuery eventRecord "
    "eventSynchronize free freeHost getDeviceCount getDeviceProperties hostAlloc hostRegister "
    "hostUnregister malloc memcpyAsync pointerGetAttributes streamSynchronize streamWaitEvent"
)
OTHERS = (
    "copyto cumsum cuda.Device cuda.MemoryPointer cuda.Stream cuda.UnownedMemory cuda.alloc "
    "cuda.driver.CUDADriverError cuda.function.Module.get_function cuda.function.Module.load "
    "cuda.get_current_stream cuda.memory.OutOfMemoryError lexsort maximum ndarray stack"
)


@pytest.fixture(scope="module")
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("name", RUNTIME.split())
def test_functions_of_the_runtime(cupy: Any, name: str) -> None:
    assert hasattr(cupy.cuda.runtime, name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_other_names(cupy: Any, name: str) -> None:
    found = cupy
    for part in name.split("."):
        found = getattr(found, part)


def test_cupys_arrays_over_memory_that_we_own(cupy: Any) -> None:
    """A view of memory by address has the strides that it is given; nothing is touched."""
    where = DeviceArray(4096, DType.FLOAT32, (3, 2), (1, 3))
    runtime = object.__new__(CudaRuntime)
    runtime._cupy = cupy
    runtime._device = cupy.cuda.Device(0)
    array = runtime.view(where)
    assert (array.shape, array.strides, array.data.ptr) == ((3, 2), (4, 12), 4096)
    resident = runtime.resident(array)
    assert resident.array == where
