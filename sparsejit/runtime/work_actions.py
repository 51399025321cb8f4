"""What a run does at each step that computes, and at the steps of library calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from sparsejit.errors import VerificationError
from sparsejit.ir.device_code import (
    DeviceArray,
    ExtentParam,
    KernelParam,
    LibraryArguments,
    LibraryRefusal,
    PointerParam,
    ScalarParam,
    StrideParam,
)
from sparsejit.ir.device_statements import SparseMatrix
from sparsejit.ir.fold import constant, numpy_dtype
from sparsejit.ir.loops import Expr
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.runtime.device import Attribute
from sparsejit.runtime.run_state import RunState, is_empty
from sparsejit.runtime.work_steps import (
    AskSizes,
    Check,
    Compute,
    CopyDevice,
    Describe,
    Destroy,
    Fill,
    Grid,
    LaunchKernel,
    ReadScalar,
    ResizeArray,
    RunPhase,
    ScanArray,
    SortArray,
    SortEntries,
    ViewOf,
)

__all__ = ["WORK_ACTIONS", "RefusedError", "UnmetError"]


class RefusedError(Exception):
    """A library refuses a call before it computed anything; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnmetError(Exception):
    """What the operands must fulfill does not hold; ``text`` says what."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def _scalar(const: Const) -> Any:
    """Return a constant as a NumPy scalar of its dtype."""
    return np.asarray(const.value).astype(numpy_dtype(const.dtype))[()]


# ---------------------------------------------------------------- arrays


def _fill(state: RunState, step: Fill) -> None:
    array = state.arrays[step.memref.name]
    if not is_empty(array):
        state.writes(step.memref.name)
        state.runtime.fill(array, _scalar(step.value), state.stream)
        state.started()


def _copy_device(state: RunState, step: CopyDevice) -> None:
    target, source = state.arrays[step.target.name], state.arrays[step.source.name]
    if target.shape != source.shape:
        raise VerificationError("copies keep the shape", f"{source.shape} into {target.shape}")
    if not is_empty(target):
        state.writes(step.target.name)
        state.runtime.copy_on_device(target, source, state.stream)
        state.started()


def _view(state: RunState, step: ViewOf) -> None:
    source = state.array(step.source)
    offsets = [state.values.index(expr) for expr in step.offsets]
    sizes = [max(state.values.index(expr), 0) for expr in step.sizes]
    for offset, size, stride, extent in zip(
        offsets, sizes, step.strides, source.shape, strict=True
    ):
        last = offset + (size - 1) * stride
        if size and not (0 <= offset < extent and 0 <= last < extent):
            raise VerificationError("a view lies inside", f"{offset} .. {last} of {extent}")
    first = sum(o * s for o, s in zip(offsets, source.strides, strict=True)) if all(sizes) else 0
    kept = [axis for axis in range(len(sizes)) if axis not in step.dropped]
    start = source.pointer + first * numpy_dtype(source.dtype).itemsize
    state.roots[step.memref.name] = step.source.name
    state.arrays[step.memref.name] = DeviceArray(
        start if source.pointer else 0,
        source.dtype,
        tuple(sizes[axis] for axis in kept),
        tuple(source.strides[axis] * step.strides[axis] for axis in kept),
    )


def _resize(state: RunState, step: ResizeArray) -> None:
    memref, old = step.memref, state.arrays[step.memref.name]
    count = max(state.values.index(step.count), 0)
    if (count,) == old.shape:
        return
    here, meanwhile = ("memory", memref.name), ("resized memory", memref.name)
    new = state.allocate(meanwhile, memref, (count,))
    kept = (min(count, *old.shape),)
    if all(kept):
        target, source = replace(new, shape=kept), replace(old, shape=kept)
        state.runtime.copy_on_device(target, source, state.stream)
        state.started()
    state.arrays[memref.name] = new
    # The old memory is forgotten before it is freed, so the new one has its place whatever happens.
    free = state.resources.detach(here)
    state.resources.add(here, state.resources.detach(meanwhile))
    free()


def _scan(state: RunState, step: ScanArray) -> None:
    array = state.arrays[step.memref.name]
    if not is_empty(array):
        state.writes(step.memref.name)
        state.runtime.scan(array, step.op, state.stream)
        state.started()


def _sort(state: RunState, step: SortArray) -> None:
    count = state.values.index(step.count)
    if count > 1:
        state.writes(step.memref.name)
        state.runtime.sort(state.arrays[step.memref.name], count, state.stream)
        state.started()


def _sort_entries(state: RunState, step: SortEntries) -> None:
    count = state.values.index(step.count)
    if count > 0:
        keys = [state.arrays[memref.name] for memref in step.coordinates]
        state.runtime.sort_order(state.arrays[step.order.name], keys, count, state.stream)
        state.started()


# ---------------------------------------------------------------- scalars


def _compute(state: RunState, step: Compute) -> None:
    state.values.give(step.var, state.values.value(step.value))


def _read_scalar(state: RunState, step: ReadScalar) -> None:
    array = state.arrays[step.memref.name]
    indices = [state.values.index(expr) for expr in step.indices]
    if not all(0 <= i < extent for i, extent in zip(indices, array.shape, strict=True)):
        raise VerificationError("elements read back exist", f"{indices} of {array.shape}")
    element = np.empty(1, numpy_dtype(array.dtype))
    place = sum(i * stride for i, stride in zip(indices, array.strides, strict=True))
    pointer = array.pointer + place * element.itemsize
    state.runtime.copy_to_host(element, pointer, state.stream)
    state.runtime.synchronize(state.stream)
    state.values.give(step.var, constant(element[0], step.var.dtype))


def _check(state: RunState, step: Check) -> None:
    if not state.values.value(step.condition).value:
        raise UnmetError(step.text)


# ---------------------------------------------------------------- kernels


def _grid(state: RunState, step: Grid) -> None:
    code = state.plan.kernels[step.kernel]
    resident = max(state.runtime.attribute(Attribute.THREADS) // code.block, 1)
    most = state.runtime.attribute(Attribute.PROCESSORS) * resident
    wanted = -(-state.values.index(code.threads) // code.block)
    state.values.give(step.blocks, Const(min(max(wanted, 1), most), INDEX))


def _launch(state: RunState, step: LaunchKernel) -> None:
    code = state.plan.kernels[step.kernel]
    kernel = state.kernels.get(step.kernel)
    if kernel is None:
        kernel = state.kernels[step.kernel] = state.runtime.load(code)
    arguments = [_argument(state, param) for param in code.params]
    for name in code.writes:
        state.writes(name)
    state.runtime.launch(kernel, state.values.index(step.blocks), arguments, state.stream)
    state.started()


def _argument(state: RunState, param: KernelParam) -> Any:
    match param:
        case PointerParam(memref):
            return state.arrays[memref.name]
        case ExtentParam(memref, axis):
            return state.extent(memref.name, axis)
        case StrideParam(memref, axis):
            return state.arrays[memref.name].strides[axis]
        case ScalarParam(var, part):
            value = _scalar(state.values.value(var))
            return getattr(value, part) if part else value
        case _:
            assert_never(param)


# ---------------------------------------------------------------- library calls


def _describe(state: RunState, step: Describe) -> None:
    code, runtime = state.plan.calls[step.call], state.runtime
    call = code.call
    new = {target.name for target in call.targets}
    names = (code.reads | code.writes) - new
    arguments = LibraryArguments(
        {name: state.arrays[name] for name in sorted(names)},
        tuple(_extents(state, operand) for operand in (*call.inputs, call.output)),
        _scalar(state.values.value(call.alpha)),
        _scalar(state.values.value(call.beta)),
    )
    described = runtime.describe(code, arguments, state.stream)
    if isinstance(described, LibraryRefusal):
        raise RefusedError(described.reason)
    state.calls[step.call] = described
    state.resources.add(("call", step.call), lambda: runtime.destroy(described))


def _extents(state: RunState, operand: object) -> tuple[int, ...]:
    extents: tuple[Expr, ...] = operand.extents if isinstance(operand, SparseMatrix) else ()
    return tuple(map(state.values.index, extents))


def _ask_sizes(state: RunState, step: AskSizes) -> None:
    phase = state.plan.calls[step.call].phases[step.phase]
    sizes = state.runtime.phase_sizes(state.calls[step.call], phase)
    if isinstance(sizes, LibraryRefusal):
        if step.phase:
            raise _late_refusal(step, sizes)
        raise RefusedError(sizes.reason)
    for var, size in zip(step.sizes, sizes, strict=True):
        state.values.give(var, Const(int(size), INDEX))


def _late_refusal(step: AskSizes, refusal: LibraryRefusal) -> VerificationError:
    return VerificationError(
        "libraries refuse before they compute", f"{step.call} refuses late: {refusal.reason}"
    )


def _run_phase(state: RunState, step: RunPhase) -> None:
    code = state.plan.calls[step.call]
    phase = code.phases[step.phase]
    for name in code.writes:
        state.writes(name)
    workspaces = [state.arrays[memref.name].pointer for memref in step.workspaces]
    targets = {memref.name: state.arrays[memref.name] for memref in phase.targets}
    state.runtime.run_phase(state.calls[step.call], phase, workspaces, targets)
    state.started()


def _destroy(state: RunState, step: Destroy) -> None:
    del state.calls[step.call]
    state.resources.end(("call", step.call))


WORK_ACTIONS: Mapping[type, Callable[[RunState, Any], None]] = {
    Fill: _fill,
    CopyDevice: _copy_device,
    ViewOf: _view,
    ResizeArray: _resize,
    ScanArray: _scan,
    SortArray: _sort,
    SortEntries: _sort_entries,
    Compute: _compute,
    ReadScalar: _read_scalar,
    Check: _check,
    Grid: _grid,
    LaunchKernel: _launch,
    Describe: _describe,
    AskSizes: _ask_sizes,
    RunPhase: _run_phase,
    Destroy: _destroy,
}
