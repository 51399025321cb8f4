"""The state of a plan while it runs: arrays on both sides, values, tokens, what must go back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

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
    "RunState",
    "contiguous_strides",
    "device_array",
    "is_empty",
]


@dataclass(slots=True, eq=False)
class RunState:
    """``host`` has the caller's arrays and new results, ``arrays`` what kernels see, by memref.

    ``touched`` are the caller's arrays that may differ from now on.
    """

    plan: LaunchPlan
    runtime: DeviceRuntime
    transfers: Transfers
    stream: int
    transfer_stream: int
    order: StreamOrder
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
        self.values = HostValues(self.extent)

    def extent(self, name: str, axis: int) -> int:
        """Return an extent of an array, on whichever side it is."""
        found: DeviceArray | NDArray[Any] | None = self.arrays.get(name)
        return int((self.host[name] if found is None else found).shape[axis])

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

    def layout(self, name: str) -> Layout:
        """Return the order of an array's elements on the device."""
        placement = self.placements.get(name)
        is_fortran = placement is not None and placement.layout is Layout.FORTRAN
        return Layout.FORTRAN if is_fortran else Layout.C


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
