"""What a run does at each step that moves data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.errors import TensorTypeError
from sparsejit.ir.fold import constant, numpy_dtype
from sparsejit.runtime.device import ResidentArray
from sparsejit.runtime.run_state import (
    RunState,
    contiguous_strides,
    device_array,
    is_empty,
)
from sparsejit.runtime.transfer_steps import (
    Allocate,
    Await,
    CopyIn,
    CopyOut,
    Free,
    Home,
    Layout,
    Map,
    NewResult,
    Pack,
    Register,
    Release,
    Reserve,
    Source,
    Stage,
    Take,
    TakeScalar,
    Unpack,
    Unregister,
    Unstage,
    Wait,
)

__all__ = ["TRANSFER_ACTIONS", "take", "take_scalar"]


def take(state: RunState, step: Take, given: object) -> None:
    """Take an array and check that the plan was made for it."""
    memref, placement = step.memref, step.placement
    dtype = numpy_dtype(memref.dtype)
    if isinstance(given, ResidentArray):
        array = given.array
        fits = placement.home is Home.DEVICE and array.dtype is memref.dtype
        if not fits or len(array.shape) != memref.rank:
            raise TensorTypeError(
                f"{state.described(memref.name)} is not the device array that was planned for"
            )
        state.arrays[memref.name] = array
        state.in_place.add(memref.name)
        return
    if not isinstance(given, np.ndarray) or placement.home is not Home.HOST:
        raise TensorTypeError(
            f"{state.described(memref.name)} is not the host array that was planned for"
        )
    host: NDArray[Any] = given
    if host.dtype != dtype or host.ndim != memref.rank or not _lies_as(host, placement.layout):
        raise TensorTypeError(
            f"{state.described(memref.name)} must be an array of {dtype} and rank {memref.rank}, "
            f"{placement.layout.value}, not of {host.dtype} and rank {host.ndim}"
        )
    state.host[memref.name] = host
    state.placements[memref.name] = placement


def _lies_as(array: NDArray[Any], layout: Layout) -> bool:
    match layout:
        case Layout.C:
            return bool(array.flags.c_contiguous)
        case Layout.FORTRAN:
            return bool(array.flags.f_contiguous)
        case Layout.STRIDED:
            return True


def take_scalar(state: RunState, step: TakeScalar, given: object) -> None:
    """Take an extent or a number, in its dtype."""
    state.values.give(step.var, constant(given, step.var.dtype))


# ---------------------------------------------------------------- memory of the host


def _pack(state: RunState, step: Pack) -> None:
    state.packed[step.memref.name] = np.array(state.host[step.memref.name], order="C")


def _unpack(state: RunState, step: Unpack) -> None:
    name = step.memref.name
    state.touched.add(name)
    state.host[name][...] = state.packed[name]


def _register(state: RunState, step: Register) -> None:
    host = state.host[step.memref.name]
    if host.size:
        registrations = state.transfers.registrations
        registrations.register(host)
        key = ("registration", step.memref.name)
        state.resources.add(key, lambda: registrations.unregister(host))


def _unregister(state: RunState, step: Unregister) -> None:
    if state.host[step.memref.name].size:
        state.resources.end(("registration", step.memref.name))


def _reserve(state: RunState, step: Reserve | Stage) -> None:
    name = step.memref.name
    host, pool = state.host[name], state.transfers.pool
    block = pool.take(host.nbytes)

    def give_back() -> None:
        pool.give_back(block, None if state.has_waited else state.transfer_stream)

    state.resources.add(("staging", name), give_back)
    strides = contiguous_strides(host.shape, state.layout(name))
    in_bytes = tuple(stride * host.itemsize for stride in strides)
    view = np.ndarray(host.shape, host.dtype, block.memory.data, 0, in_bytes)
    state.staging[name] = (block, view)


def _stage(state: RunState, step: Stage) -> None:
    _reserve(state, step)
    name = step.memref.name
    state.staging[name][1][...] = state.host[name]


def _unstage(state: RunState, step: Unstage) -> None:
    name = step.memref.name
    if name in state.plan.assigned:
        state.touched.add(name)
    state.host[name][...] = state.staging[name][1]


def _release(state: RunState, step: Release) -> None:
    state.resources.end(("staging", step.memref.name))


def _new_result(state: RunState, step: NewResult) -> None:
    memref = step.memref
    if step.extents is None:
        shape = state.arrays[memref.name].shape
    else:
        shape = tuple(state.values.index(extent) for extent in step.extents)
    state.host[memref.name] = np.empty(shape, numpy_dtype(memref.dtype))


# ---------------------------------------------------------------- memory of the device


def _map(state: RunState, step: Map) -> None:
    name = step.memref.name
    host = state.host[name]
    pointer = state.transfers.registrations.device_pointer(host) if host.size else 0
    state.arrays[name] = device_array(pointer, step.memref, host)
    state.in_place.add(name)


def _allocate(state: RunState, step: Allocate) -> None:
    memref = step.memref
    shape = tuple(max(state.values.index(extent), 0) for extent in step.extents)
    made = state.allocate(("memory", memref.name), memref, shape, step.layout)
    state.arrays[memref.name] = made
    if step.token:
        state.tokens[step.token] = state.order.position(state.stream)


def _memory(state: RunState, name: str, source: Source) -> NDArray[Any]:
    match source:
        case Source.ARRAY:
            return state.host[name]
        case Source.PACKED:
            return state.packed[name]
        case Source.STAGED:
            return state.staging[name][1]


def _copy_in(state: RunState, step: CopyIn) -> None:
    name, stream = step.memref.name, state.transfer_stream
    state.order.wait(stream, state.tokens[step.after])
    memory = _memory(state, name, step.source)
    if memory.size:
        state.runtime.copy_to_device(state.arrays[name].pointer, memory, stream)
        state.order.started(stream)
        state.has_waited = False
    state.tokens[step.token] = state.order.position(stream)


def _await(state: RunState, step: Await) -> None:
    # The latest transfer first: one event covers the others.
    for token in reversed(step.tokens):
        state.order.wait(state.stream, state.tokens[token])


def _copy_out(state: RunState, step: CopyOut) -> None:
    name = step.memref.name
    array = state.arrays[name]
    if is_empty(array):
        return
    if step.target is Source.ARRAY and name in state.plan.assigned:
        state.touched.add(name)
    memory = _memory(state, name, step.target)
    state.runtime.copy_to_host(memory, array.pointer, state.stream)
    state.started()


def _free(state: RunState, step: Free) -> None:
    del state.arrays[step.memref.name]
    state.resources.end(("memory", step.memref.name))


def _wait(state: RunState, step: Wait) -> None:
    state.runtime.synchronize(state.stream)
    state.has_waited = True


TRANSFER_ACTIONS: Mapping[type, Callable[[RunState, Any], None]] = {
    Pack: _pack,
    Unpack: _unpack,
    Register: _register,
    Unregister: _unregister,
    Stage: _stage,
    Reserve: _reserve,
    Unstage: _unstage,
    Release: _release,
    NewResult: _new_result,
    Map: _map,
    Allocate: _allocate,
    CopyIn: _copy_in,
    Await: _await,
    CopyOut: _copy_out,
    Free: _free,
    Wait: _wait,
}
