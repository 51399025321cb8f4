"""``execute``: a launch plan on a device runtime.

In: a plan, a runtime and the caller's arrays. Out: the results. Whatever fails, what was started is
waited for, everything that the plan holds is given back, and a ``DeviceError`` says which step
failed and which of the caller's arrays may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.errors import BackendError, DeviceError, UnsupportedError, VerificationError
from sparsejit.ir.loops import Memref
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX
from sparsejit.runtime.device import DeviceResult, DeviceRuntime, Fault, FaultError
from sparsejit.runtime.plan import LaunchPlan
from sparsejit.runtime.plan_printing import step_text
from sparsejit.runtime.run_state import DescribeArrays, RunState
from sparsejit.runtime.stream_order import StreamOrder
from sparsejit.runtime.transfer import Transfers
from sparsejit.runtime.transfer_actions import TRANSFER_ACTIONS, take, take_scalar
from sparsejit.runtime.transfer_steps import Home, Take, TakeScalar
from sparsejit.runtime.work_actions import WORK_ACTIONS, RefusedError, UnmetError
from sparsejit.runtime.work_steps import Branch, Library, Loop, Repeat, Return, Step

__all__ = ["Done", "execute"]


@dataclass(frozen=True, slots=True)
class Done:
    """What a run gives: result arrays (host arrays or ``DeviceResult``), and refused calls."""

    results: tuple[Any, ...]
    refusals: tuple[str, ...]


def execute(
    plan: LaunchPlan,
    runtime: DeviceRuntime,
    transfers: Transfers,
    arguments: Sequence[object],
    loaded: dict[str, int] | None = None,
    describe: DescribeArrays = dict,
) -> Done:
    """Run a plan; ``arguments`` are a scalar or an array for each parameter, in order.

    A host array is a NumPy array, an array on the device a ``ResidentArray``. ``loaded`` remembers
    the plan's kernels on this runtime; ``describe`` is asked for the words of errors. Raises
    ``DeviceError`` when the device fails, ``ValueError`` where the operands are not what the plan
    requires; nothing stays allocated, registered or described.
    """
    run = _Run(plan, runtime, transfers, describe)
    if loaded is not None:
        run.state.kernels = loaded
    try:
        run.block(plan.steps, iter(arguments))
    except BaseException as error:
        run.abandon()
        if isinstance(error, FaultError):
            raise run.device_error(error) from error
        if isinstance(error, UnmetError):
            raise ValueError(run.with_changes(error.text)) from error
        if isinstance(error, DeviceError | BackendError):
            raise type(error)(error.what, hint=run.promise(error.hint)) from error
        raise
    return Done(run.results, tuple(run.state.refusals))


class _Run:
    def __init__(
        self,
        plan: LaunchPlan,
        runtime: DeviceRuntime,
        transfers: Transfers,
        describe: DescribeArrays,
    ) -> None:
        self.plan = plan
        self.results: tuple[Any, ...] = ()
        self.step: Step | None = None
        try:
            streams = runtime.current_stream(), runtime.transfer_stream()
        except FaultError as error:
            raise DeviceError(f"{plan.name} cannot start: {error}") from error
        order = StreamOrder(runtime, used_before=streams[0])
        self.state = RunState(plan, runtime, transfers, *streams, order, describe)

    def block(self, steps: Sequence[Step], arguments: Any = ()) -> None:
        for step in steps:
            match step:
                case Take():
                    take(self.state, step, next(arguments))
                case TakeScalar():
                    take_scalar(self.state, step, next(arguments))
                case Loop() | Repeat() | Branch() | Library():
                    self.control(step)
                case Return():
                    self.results = self.returned(step)
                case _:
                    self.step = step
                    _ACTIONS[type(step)](self.state, step)

    def control(self, step: Loop | Repeat | Branch | Library) -> None:
        values = self.state.values
        match step:
            case Loop(var, lower, upper, body):
                for number in range(values.index(lower), values.index(upper)):
                    values.give(var, Const(number, INDEX))
                    self.block(body)
            case Repeat(condition, body):
                while values.value(condition).value:
                    self.block(body)
            case Branch(condition, then, orelse):
                self.block(then if values.value(condition).value else orelse)
            case Library(call, steps, otherwise):
                mark = self.state.resources.mark()
                try:
                    self.block(steps)
                except RefusedError as refused:
                    if self.plan.needs_library:
                        raise UnsupportedError(
                            f'library="only", and the library refuses a call of {self.plan.name}',
                            hint='use library="auto"',
                            reasons=(f"{call}: {refused.reason}",),
                        ) from refused
                    self.state.resources.unwind(mark)
                    self.state.refusals.append(f"{call}: {refused.reason}")
                    self.block(otherwise)

    def returned(self, step: Return) -> tuple[Any, ...]:
        state = self.state
        if step.home is Home.HOST:
            found: tuple[Any, ...] = tuple(state.host[memref.name] for memref in step.memrefs)
        else:
            made = {
                memref.name: DeviceResult(
                    state.arrays[memref.name],
                    state.stream,
                    state.resources.detach(("memory", memref.name)),
                )
                for memref in dict.fromkeys(step.memrefs)
            }
            found = tuple(made[memref.name] for memref in step.memrefs)
        if len(state.resources):
            raise VerificationError("a plan gives everything back", state.resources.text)
        return found

    # ------------------------------------------------------------ failures

    def abandon(self) -> None:
        """Wait for what was started and give everything back."""
        state = self.state
        for stream in (state.transfer_stream, state.stream):
            try:
                state.runtime.synchronize(stream)
            except FaultError:
                continue  # The failure that is reported came first.
        state.has_waited = True
        state.resources.unwind()

    def device_error(self, error: FaultError) -> DeviceError:
        where = step_text(self.step, self.plan) if self.step is not None else "start"
        argument = self._argument()
        whose = f", which is for {argument}" if argument else ""
        hint = self.promise(_HINTS.get(error.fault, ""))
        return DeviceError(f"{self.plan.name} failed at '{where}'{whose}: {error}", hint=hint)

    def _argument(self) -> str:
        """Return which of the caller's arrays the failed step moves, empty where it is none."""
        memref = getattr(self.step, "memref", None)
        return self.state.describe().get(memref.name, "") if isinstance(memref, Memref) else ""

    def with_changes(self, text: str) -> str:
        """Return a sentence with which of the caller's arrays may differ, if any may."""
        return f"{text}; {self.promise('')}" if self.state.touched else text

    def promise(self, hint: str) -> str:
        """Return what to do next, and which of the caller's arrays may differ."""
        touched = sorted(self.state.touched)
        if touched:
            arrays = ", ".join(map(self.state.described, touched))
            kept = f"of the arguments, {arrays} may have changed, no other"
        else:
            kept = "no argument has changed"
        return f"{hint}; {kept}" if hint else kept


_HINTS = {
    Fault.OUT_OF_MEMORY: "free device memory, or use smaller operands or target='cpu'",
    Fault.ALREADY_REGISTERED: "another library has registered the memory: use 'regular-dma'",
}

_ACTIONS: Mapping[type, Callable[[RunState, Any], None]] = {**TRANSFER_ACTIONS, **WORK_ACTIONS}
