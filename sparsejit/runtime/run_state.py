"""The state of a plan while it runs: arrays on both sides, values, tokens, what must go back."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from numpy.typing import NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.ir.device_code import DeviceArray
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import Memref
from sparsejit.runtime.device import DeviceRuntime
from sparsejit.runtime.host_values import HostValues
from sparsejit.runtime.plan import LaunchPlan
from sparsejit.runtime.resources import Resources
from sparsejit.runtime.stream_order import Position, StreamOrder
from sparsejit.runtime.transfer import PinnedBlock, Transfers
from sparsejit.runtime.transfer_steps import Layout, Placement

__all__ = [
    "DescribeArrays",
    "RunState",
    "contiguous_strides",
    "device_array",
    "is_empty",
]


DescribeArrays = Callable[[], Mapping[str, str]]
"""What the caller calls each array of an argument, by its memref."""


@dataclass(slots=True, eq=False)
class RunState:
    """``host`` has the caller's arrays and new results, ``arrays`` what kernels see, by memref.

    ``touched`` are the caller's arrays that may differ from now on; ``describe`` says what the
    caller calls them.
    """

    plan: LaunchPlan
    runtime: DeviceRuntime
    transfers: Transfers
    stream: int
    transfer_stream: int
    order: StreamOrder
    describe: DescribeArrays = dict
    values: HostValues = field(init=False)
    resources: Resources = field(default_factory=Resources)
    host: dict[str, NDArray[Any]] = field(default_factory=dict)
    packed: dict[str, NDArray[Any]] = field(default_factory=dict)
    staging: dict[str, tuple[PinnedBlock, NDArray[Any]]] = field(default_factory=dict)
    placements: dict[str, Placement] = field(default_factory=dict)
    arrays: dict[str, DeviceArray] = field(default_factory=dict)
    in_place: set[str] = field(default_factory=set)
    roots: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Position] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    calls: dict[str, int] = field(default_factory=dict)
    kernels: dict[str, int] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    has_waited: bool = False

    def __post_init__(self) -> None:
        # Not a method of its own: a cycle would keep the caller's arrays until it is collected.
        self.values = HostValues(partial(_extent, self.arrays, self.host))

    def array(self, memref: Memref) -> DeviceArray:
        """Return the array that kernels see: without an address where none needs its elements."""
        found = self.arrays.get(memref.name)
        return device_array(0, memref, self.host[memref.name]) if found is None else found

    def extent(self, name: str, axis: int) -> int:
        """Return an extent of an array, on whichever side it is."""
        return _extent(self.arrays, self.host, name, axis)

    def described(self, name: str) -> str:
        """Return the words for an array of the caller."""
        return self.describe().get(name, repr(name))

    def writes(self, name: str) -> None:
        """Note that a caller's array is about to change where it lies."""
        while name in self.roots:
            name = self.roots[name]
        if name in self.in_place and name in self.plan.assigned:
            self.touched.add(name)

    def started(self) -> None:
        """Count a piece of work on the computing stream."""
        self.order.started(self.stream)
        self.has_waited = False

    def allocate(
        self, key: Hashable, memref: Memref, shape: tuple[int, ...], layout: Layout = Layout.C
    ) -> DeviceArray:
        """Return a new contiguous array; its memory is held as ``key``."""
        runtime, stream = self.runtime, self.stream
        nbytes = max(math.prod(shape) * numpy_dtype(memref.dtype).itemsize, 1)
        pointer = runtime.allocate(nbytes, stream)
        self.resources.add(key, lambda: runtime.free(pointer, stream))
        return DeviceArray(pointer, memref.dtype, shape, contiguous_strides(shape, layout))

    def layout(self, name: str) -> Layout:
        """Return the order of an array's elements on the device."""
        placement = self.placements.get(name)
        is_fortran = placement is not None and placement.layout is Layout.FORTRAN
        return Layout.FORTRAN if is_fortran else Layout.C


def _extent(
    arrays: Mapping[str, DeviceArray], host: Mapping[str, NDArray[Any]], name: str, axis: int
) -> int:
    found: DeviceArray | NDArray[Any] | None = arrays.get(name)
    return int((host[name] if found is None else found).shape[axis])


def contiguous_strides(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array.

    >>> contiguous_strides((2, 3, 5), Layout.C), contiguous_strides((2, 3), Layout.FORTRAN)
    ((15, 5, 1), (1, 2))
    """
    order = range(len(shape)) if layout is Layout.FORTRAN else reversed(range(len(shape)))
    strides = [0] * len(shape)
    step = 1
    for axis in order:
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def is_empty(array: DeviceArray) -> bool:
    """Return whether an array has no element."""
    return 0 in array.shape


def device_array(pointer: int, memref: Memref, like: NDArray[Any]) -> DeviceArray:
    """Return an array of the device with the shape and strides of a host array."""
    size = numpy_dtype(memref.dtype).itemsize
    strides = tuple(stride // size for stride in like.strides)
    return DeviceArray(pointer, memref.dtype, tuple(like.shape), strides)
