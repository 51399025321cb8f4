"""Backend ``cuda``: functions of kernels and library calls, run by launch plans.

In: a loop function whose work the outlining pass made kernels. Out: its device code as text, and a
kernel that plans each kind of call once and runs the plan. Nothing here needs a device before the
first call.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.backends import KernelSource, OnDevice
from sparsejit.backends.cusparse import library_codes
from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.errors import DeviceError, UnsupportedError
from sparsejit.ir.device_code import KernelCode
from sparsejit.ir.device_statements import Launch, LibraryCall
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import LoopFunc, Memref
from sparsejit.ir.types import DType
from sparsejit.runtime.device import DeviceResult, FaultError, ResidentArray
from sparsejit.runtime.execute import execute
from sparsejit.runtime.opening import Device, open_device
from sparsejit.runtime.plan import LaunchPlan, Strategy
from sparsejit.runtime.planning import plan_launch, plan_upload
from sparsejit.runtime.residents import FIXED
from sparsejit.runtime.run_state import DescribeArrays
from sparsejit.runtime.transfer import root_memory
from sparsejit.runtime.transfer_steps import CopyIn, Home, Layout, Placement

__all__ = [
    "CudaBackend",
    "CudaKernel",
    "Transferred",
    "plan_for",
    "planned_transfers",
]

LARGE_BYTES = 1 << 22
"""From here on registering pages costs less than copying them once through pinned staging."""

MOST_AROUND = 8
"""How much larger than an array the allocation around it may be, to be registered for it."""

_Placements = tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class CudaBackend:
    """Runs outlined functions on a CUDA device with one transfer strategy."""

    strategy: Strategy
    deterministic: bool = False
    library_only: bool = False

    @property
    def name(self) -> str:
        """``"cuda"``."""
        return "cuda"

    def emit(self, func: LoopFunc) -> KernelSource:
        """Return the device code of ``func`` as text: its kernels, and its calls of libraries."""
        return KernelSource(func.name, lambda: _source_text(func), func)

    def load(self, source: KernelSource, *, cache: bool = True) -> CudaKernel:
        """Return what runs the function; its kernels are compiled when they are first launched."""
        return CudaKernel(source.func, self)


def _source_text(func: LoopFunc) -> str:
    calls = [stmt for stmt in all_statements(func.body) if isinstance(stmt, LibraryCall)]
    lines = [f"# {stmt.op.value}: a call of cuSPARSE or cuSPARSELt" for stmt in calls]
    texts = [code.text.rstrip() for code in kernel_codes(func).values()]
    return "\n\n\n".join(["\n".join(lines), *texts] if lines else texts) + "\n"


class CudaKernel(OnDevice):
    """A function on a device: a plan for each way that its arrays can lie, made when it is met."""

    def __init__(self, func: LoopFunc, backend: CudaBackend) -> None:
        self.func = func
        self._strategy = backend.strategy
        self._backend = backend
        self._plans: dict[tuple[_Placements, Home], LaunchPlan] = {}
        self._lock = threading.Lock()
        self.last = Transferred()

    @cached_property
    def _codes(self) -> Mapping[str, KernelCode]:
        return kernel_codes(self.func)

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]:
        """Run with the flat arguments of a call; ``DeviceError`` when the device fails."""
        return self.run(arguments, dict)

    def run(self, arguments: Sequence[object], describe: DescribeArrays) -> tuple[object, ...]:
        """Run with the flat arguments of a call; errors call arrays what ``describe`` says."""
        device = open_device()
        with device.lock:
            homes = [_home(argument) for argument in arguments]
            results = Home.DEVICE if Home.DEVICE in homes else Home.HOST
            passed = [self._passed(argument, device) for argument in arguments]
            plan = self.planned(_placements(self.func, passed), results)
            loaded = device.kernels.setdefault(self, {})
            done = execute(plan, device.runtime, device.transfers, passed, loaded, describe)
            self.last = transferred(plan, passed, done.refusals)
            return _handed_over(done.results, device)

    def compile(self) -> None:
        """Open the device and load the kernels now, but for those where a library refuses.

        Raises ``DeviceError`` where no device can be used, ``BackendError`` without Numba CUDA.
        """
        device = open_device()
        fallback = {
            stmt.kernel
            for call in all_statements(self.func.body)
            if isinstance(call, LibraryCall)
            for stmt in all_statements(call.otherwise)
            if isinstance(stmt, Launch)
        }
        with device.lock:
            loaded = device.kernels.setdefault(self, {})
            for name, code in self._codes.items():
                if name not in loaded and name not in fallback:
                    try:
                        loaded[name] = device.runtime.load(code)
                    except FaultError as error:
                        what = f"kernel {name} of {self.func.name} cannot be loaded: {error}"
                        raise DeviceError(what) from error

    def _passed(self, argument: object, device: Device) -> object:
        if not isinstance(argument, np.ndarray):
            is_array = _home(argument) is Home.DEVICE
            return device.runtime.resident(argument) if is_array else argument
        if argument.ndim and FIXED.is_fixed(argument):
            made = FIXED.resident(
                argument, device.number, lambda: _uploaded(argument, self._strategy, device)
            )
            return ResidentArray(made.array, made)
        return argument

    def planned(self, placements: _Placements, results: Home) -> LaunchPlan:
        """Return the plan for arrays that lie so, made once."""
        key = (placements, results)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                by_name = dict(zip(_array_names(self.func), placements, strict=True))
                libraries = library_codes(deterministic=self._backend.deterministic)
                plan = plan_launch(
                    self.func, self._strategy, by_name, self._codes, libraries, results
                )
                if self._backend.library_only:
                    plan = _by_library_only(plan)
                self._plans[key] = plan
        return plan


@dataclass(frozen=True, slots=True)
class Transferred:
    """What a plan moves: ``moved`` bytes to the device, and a line on each array."""

    moved: int = 0
    lines: tuple[str, ...] = ()


def transferred(
    plan: LaunchPlan, arguments: Sequence[object], refusals: Sequence[str] = ()
) -> Transferred:
    """Return what a plan moves with these flat arguments."""
    nbytes = {
        placed.memref.name: array.nbytes
        for placed, array in zip(
            plan.placed, (a for a in arguments if not _is_scalar(a)), strict=False
        )
        if isinstance(array, np.ndarray)
    }
    copied = {step.memref.name for step in plan.steps if isinstance(step, CopyIn)}
    lines = [f"{placed.memref.name}: {placed.how} ({placed.reason})" for placed in plan.placed]
    lines += [f"no library for {refusal}" for refusal in (*plan.refusals, *refusals)]
    return Transferred(sum(nbytes.get(name, 0) for name in copied), tuple(lines))


def planned_transfers(kernel: CudaKernel, arguments: Sequence[object]) -> Transferred:
    """Return what a call with these flat arguments would move."""
    return transferred(plan_for(kernel, arguments), arguments)


def _handed_over(results: Sequence[Any], device: Device) -> tuple[object, ...]:
    """Return results as the caller's library has them; where it cannot, nothing stays behind."""
    made: list[object] = []
    try:
        for result in results:
            on_device = isinstance(result, DeviceResult)
            made.append(device.runtime.as_array(result) if on_device else result)
    except BaseException:
        for result in results[len(made) :]:
            if isinstance(result, DeviceResult):
                result.release()
        raise
    return tuple(made)


def _by_library_only(plan: LaunchPlan) -> LaunchPlan:
    if plan.refusals:
        raise UnsupportedError(
            f'library="only", and the library refuses calls of {plan.name}',
            hint='use library="auto"',
            reasons=plan.refusals,
        )
    return replace(plan, needs_library=True)


def plan_for(kernel: CudaKernel, arguments: Sequence[object]) -> LaunchPlan:
    """Return the plan of a call with these flat arguments; no device is asked."""
    homes = [_home(argument) for argument in arguments]
    results = Home.DEVICE if Home.DEVICE in homes else Home.HOST
    return kernel.planned(_placements(kernel.func, arguments), results)


def _array_names(func: LoopFunc) -> list[str]:
    return [param.name for param in func.params if isinstance(param, Memref)]


def _placements(func: LoopFunc, arguments: Sequence[object]) -> _Placements:
    return tuple(
        _placement(argument)
        for param, argument in zip(func.params, arguments, strict=True)
        if isinstance(param, Memref)
    )


def _is_scalar(argument: object) -> bool:
    return isinstance(argument, np.generic | bool | int | float | complex)


def _home(argument: object) -> Home:
    is_on_host = isinstance(argument, np.ndarray) or _is_scalar(argument)
    return Home.HOST if is_on_host else Home.DEVICE


def _placement(argument: Any) -> Placement:
    if isinstance(argument, ResidentArray) or not isinstance(argument, np.ndarray):
        return Placement(Home.DEVICE)
    flags = argument.flags
    layout = Layout.STRIDED
    if flags.c_contiguous:
        layout = Layout.C
    elif flags.f_contiguous:
        layout = Layout.FORTRAN
    is_large = argument.nbytes >= LARGE_BYTES
    return Placement(Home.HOST, layout, is_large, _why_not_registrable(argument))


def _why_not_registrable(array: Any) -> str:
    """Return why the memory around an array is not pinned where it lies."""
    around = root_memory(array)
    if not (array.flags.writeable and around.flags.writeable):
        return "its memory is read-only, which not every device can register"
    if around.nbytes > MOST_AROUND * max(array.nbytes, 1):
        return "it is a small part of its allocation, all of which would be registered"
    return ""


def _uploaded(array: Any, strategy: Strategy, device: Device) -> DeviceResult:
    """Copy a fixed array to the device, once."""
    memref = Memref("fixed", DType(array.dtype.name), array.ndim)
    plan = plan_upload(memref, strategy, _placement(array))
    done = execute(plan, device.runtime, device.transfers, [array])
    result = done.results[0]
    assert isinstance(result, DeviceResult)
    return result
