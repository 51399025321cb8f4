"""``FakeArray``: an array on the fake device, as CuPy's arrays are on a real one.

It has what describing operands and wrapping results asks of such arrays; its elements are reached
by ``get`` alone, which waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import DeviceArray
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.types import DType

if TYPE_CHECKING:
    from sparsejit.runtime.fake.runtime import FakeRuntime

__all__ = ["FakeArray", "to_fake"]


@dataclass(frozen=True, slots=True)
class _Data:
    ptr: int


@dataclass(frozen=True, slots=True)
class _Flags:
    c_contiguous: bool
    f_contiguous: bool
    writeable: bool = True


class FakeArray:
    """An array in the memory of a fake device, freed when it ends."""

    lies_on_device = True

    def __init__(
        self, runtime: FakeRuntime, where: DeviceArray, release: Callable[[], None] | None
    ) -> None:
        self.runtime = runtime
        self.where = where
        self._release = release
        self.dtype = numpy_dtype(where.dtype)
        self.shape = where.shape
        self.ndim = len(where.shape)
        self.size = int(np.prod(where.shape, dtype=np.int64))
        self.itemsize = self.dtype.itemsize
        self.nbytes = self.size * self.itemsize
        self.strides = tuple(stride * self.itemsize for stride in where.strides)
        self.data = _Data(where.pointer)
        flags = np.lib.stride_tricks.as_strided(
            np.empty(1, self.dtype), self.shape, self.strides
        ).flags
        self.flags = _Flags(flags.c_contiguous, flags.f_contiguous)

    def __len__(self) -> int:
        return self.shape[0]

    def __del__(self) -> None:
        if self._release is not None:
            self._release()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where the array lies, as all device arrays tell it."""
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.where.pointer, False),
            "strides": self.strides,
        }

    def get(self) -> NDArray[Any]:
        """Return the elements as a NumPy array, once the device has computed them."""
        self.runtime.streams.synchronize(self.runtime.current_stream())
        return np.array(self.runtime.memory.view(self.where), order="K")

    def copy(self, order: str = "C") -> FakeArray:
        """Return a copy on the device."""
        return to_fake(self.runtime, self.get())

    def __deepcopy__(self, memo: object) -> FakeArray:
        """Return a copy on the same device, as CuPy's arrays do."""
        return self.copy()

    def astype(self, dtype: DTypeLike, copy: bool = True) -> FakeArray:
        """Return the array with another dtype: itself where it has it and need not be copied."""
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return to_fake(self.runtime, self.get().astype(dtype))

    def reshape(self, *shape: Any) -> FakeArray:
        """Return the array in another shape: itself, or the same memory while this one lives."""
        if not self.flags.c_contiguous:
            raise ValueError("only arrays in C order are reshaped on the fake device")
        wanted = np.empty(self.shape, np.bool_).reshape(*shape).shape
        strides = np.empty(wanted, self.dtype).strides
        in_elements = tuple(stride // self.itemsize for stride in strides)
        where = DeviceArray(self.where.pointer, self.where.dtype, wanted, in_elements)
        view = FakeArray(self.runtime, where, None)
        view.base = self
        return view

    base: FakeArray | None = None

    def __getitem__(self, key: Any) -> FakeArray:
        if key in ((), Ellipsis):
            return self
        return to_fake(self.runtime, self.get()[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis:
            raise ValueError("arrays on the fake device are assigned as a whole")
        host = value.get() if isinstance(value, FakeArray) else value
        self.runtime.streams.synchronize(self.runtime.current_stream())
        self.runtime.memory.view(self.where)[...] = host


def to_fake(runtime: FakeRuntime, array: NDArray[Any]) -> FakeArray:
    """Return a copy of a host array on a fake device, in its order.

    >>> from sparsejit.runtime.fake import FakeRuntime
    >>> to_fake(FakeRuntime(), np.arange(3)).get().tolist()
    [0, 1, 2]
    """
    kept = np.array(array, order="K")
    block = runtime.memory.allocate(max(kept.nbytes, 1))
    strides = tuple(stride // kept.itemsize for stride in kept.strides)
    where = DeviceArray(block.start, DType(kept.dtype.name), kept.shape, strides)
    runtime.memory.view(where)[...] = kept

    def release() -> None:
        runtime.memory.free(block.start)

    return FakeArray(runtime, where, release)
