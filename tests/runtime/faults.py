"""Seeded faults in what plans and runs launches: each must be caught on the fake device.

Eight kinds: the wrong address space, missing order, wrong lifetimes, leaks, registrations, library
calls, data that does not move, and broken promises after a failure. The first of "registration"
and of "address space" are upstream's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from sparsejit.runtime import execute as execution
from sparsejit.runtime.work_steps import Step

__all__ = ["FAULTS", "Fault"]

RUNTIME = "sparsejit.runtime"


@dataclass(frozen=True, slots=True)
class Fault:
    """``place`` is ``module:name``, ``module:Class.name``, or a step whose action is replaced."""

    kind: str
    what: str
    place: str
    wrong: Callable[[Any], Any]

    def seed(self, patch: Any) -> None:
        """Put the wrong piece in the place of the right one."""
        module, _, path = self.place.partition(":")
        if not path:
            step = next(s for s in execution._ACTIONS if s.__name__ == self.place)
            patch.setitem(execution._ACTIONS, step, self.wrong(execution._ACTIONS[step]))
            return
        holder: Any = import_module(f"{RUNTIME}.{module}")
        *classes, name = path.split(".")
        for part in classes:
            holder = getattr(holder, part)
        patch.setattr(holder, name, self.wrong(getattr(holder, name)))


def _nothing(right: Any) -> Any:
    return lambda *args, **kwargs: None


def _twice(right: Any) -> Any:
    def both(state: Any, step: Any) -> None:
        kept = state.arrays[step.memref.name]
        pointer, stream = kept.pointer, state.stream
        right(state, step)
        state.runtime.free(pointer, stream)

    return both


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda right: lambda *args, **kwargs: value


def _host_pointer(right: Any) -> Any:
    return lambda self, array: array.ctypes.data


def _given_host_memory(right: Any) -> Any:
    def copy_in(state: Any, step: Any) -> None:
        right(state, step)
        array = state.arrays[step.memref.name]
        pointer = state.host[step.memref.name].ctypes.data
        state.arrays[step.memref.name] = replace(array, pointer=pointer)

    return copy_in


def _position_zero(right: Any) -> Any:
    return lambda self, stream: replace(right(self, stream), count=0)


def _without_event(right: Any) -> Any:
    return lambda self, block, stream=None: right(self, block, None)


def _keeps_events(right: Any) -> Any:
    def wait(self: Any, stream: int, position: Any) -> None:
        if position.stream != stream:
            event = self._runtime.create_event()
            self._runtime.record_event(event, position.stream)
            self._runtime.stream_wait(stream, event)

    return wait


def _free_early(right: Any) -> Any:
    return lambda self, name: min(right(self, name), 1)


def _forgets(kind: str) -> Callable[[Any], Any]:
    def forget(right: Any) -> Any:
        def end(state: Any, step: Any) -> None:
            key = getattr(step, "call", None) or step.memref.name
            state.resources.detach((kind, key))
            state.arrays.pop(key, None)

        return end

    return forget


def _freed_results(right: Any) -> Any:
    def detach(self: Any, key: Any) -> Any:
        right(self, key)()
        return lambda: None

    return detach


def _wrong_buffer(right: Any) -> Any:
    """Upstream's: one buffer twice, and never the output."""

    def unregister(state: Any, step: Any) -> None:
        names = [placed.memref.name for placed in state.plan.placed]
        if step.memref.name == names[-1]:
            state.resources.detach(("registration", names[-1]))
            state.transfers.registrations.unregister(state.host[names[0]])
        else:
            right(state, step)

    return unregister


def _not_counted(right: Any) -> Any:
    def register(self: Any, array: Any) -> None:
        right(self, array)
        for known in self._by_start.values():
            known.users = 1

    return register


def _resized(wrong: Callable[[Any, Any, Any, Any], None]) -> Callable[[Any], Any]:
    """The array gets its new memory, and what was there is treated wrongly."""

    def resizing(right: Any) -> Any:
        def resize(state: Any, step: Any) -> None:
            old = state.arrays[step.memref.name]
            count = state.values.index(step.count)
            if (count,) == old.shape:
                return
            wrong(state, step, old, count)

        return resize

    return resizing


def _old_memory_stays(state: Any, step: Any, old: Any, count: int) -> None:
    name = step.memref.name
    state.resources.detach(("memory", name))
    state.arrays[name] = state.allocate(("memory", name), step.memref, (count,))


def _old_memory_first(state: Any, step: Any, old: Any, count: int) -> None:
    name, kept = step.memref.name, min(count, *old.shape)
    state.resources.end(("memory", name))
    new = state.arrays[name] = state.allocate(("memory", name), step.memref, (count,))
    if kept:
        parts = (replace(array, shape=(kept,)) for array in (new, old))
        state.runtime.copy_on_device(*parts, state.stream)


def _elements_are_lost(state: Any, step: Any, old: Any, count: int) -> None:
    name = step.memref.name
    state.resources.end(("memory", name))
    state.arrays[name] = state.allocate(("memory", name), step.memref, (count,))


def _old_size(state: Any, step: Any, old: Any, count: int) -> None:
    return None


def _no_root(right: Any) -> Any:
    return lambda array: array.reshape(-1).view("u1")


def _too_small(right: Any) -> Any:
    def allocate(state: Any, step: Any) -> None:
        if "work" in step.memref.name:
            step = replace(step, extents=())
        right(state, step)

    return allocate


def _next_phase(right: Any) -> Any:
    def run(state: Any, step: Any) -> None:
        phases = len(state.plan.calls[step.call].phases)
        right(state, replace(step, phase=phases - 1))

    return run


def _in_c_order(right: Any) -> Any:
    layout = import_module(f"{RUNTIME}.transfer_steps").Layout
    return lambda shape, order: right(shape, layout.C)


def _reserves(right: Any) -> Any:
    return import_module(f"{RUNTIME}.transfer_actions")._reserve


def _swapped(right: Any) -> Any:
    def launch(state: Any, step: Any) -> None:
        code = state.plan.kernels[step.kernel]
        params = (code.params[-1], *code.params[1:-1], code.params[0])
        kernels = {**state.plan.kernels, step.kernel: replace(code, params=params)}
        plan, state.plan = state.plan, replace(state.plan, kernels=kernels)
        state.kernels[step.kernel] = state.runtime.load(code)
        try:
            right(state, step)
        finally:
            state.plan = plan

    return launch


def _no_blocks(right: Any) -> Any:
    def grid(state: Any, step: Any) -> None:
        right(state, step)
        state.values.give(step.blocks, replace(state.values.value(step.blocks), value=0))

    return grid


def _reordered(first: str, second: str) -> Callable[[Any], Any]:
    """Two neighboring kinds of steps, exchanged where they first follow each other."""

    def steps(right: Any) -> Any:
        def planned(self: Any) -> tuple[Step, ...]:
            found = list(right(self))
            names = [type(step).__name__ for step in found]
            for at in range(1, len(found)):
                if names[at - 1 : at + 1] == [first, second]:
                    found[at - 1], found[at] = found[at], found[at - 1]
                    break
            return tuple(found)

        return planned

    return steps


def _unstages_early(right: Any) -> Any:
    def planned(self: Any) -> tuple[Step, ...]:
        found = list(right(self))
        late = [step for step in found if type(step).__name__ == "Unstage"]
        wait = next((s for s in found if type(s).__name__ == "Wait"), None)
        if late and wait is not None:
            found.remove(late[0])
            found.insert(found.index(wait), late[0])
        return tuple(found)

    return planned


def _no_wait(right: Any) -> Any:
    def abandon(self: Any) -> None:
        self.state.resources.unwind()

    return abandon


def _all_marked(right: Any) -> Any:
    return lambda self, mark=frozenset(): None if mark else right(self, mark)


FAULTS = (
    Fault(
        "address",
        "a host pointer is mapped",
        "transfer:Registrations.device_pointer",
        _host_pointer,
    ),
    Fault("address", "kernels get the host's memory", "CopyIn", _given_host_memory),
    Fault("order", "streams do not wait", "stream_order:StreamOrder.wait", _nothing),
    Fault("order", "nothing waits for transfers", "Await", _nothing),
    Fault("order", "the host does not wait", "Wait", _nothing),
    Fault(
        "order", "allocations have no order", "stream_order:StreamOrder.position", _position_zero
    ),
    Fault("order", "staging has no event", "transfer:PinnedPool.give_back", _without_event),
    Fault("lifetime", "memory is freed twice", "Free", _twice),
    Fault("lifetime", "operands end too early", "uses:Uses.last", _free_early),
    Fault(
        "lifetime",
        "results are freed first",
        "planning:_Planner.steps",
        _reordered("CopyOut", "Free"),
    ),
    Fault("lifetime", "results are freed", "resources:Resources.detach", _freed_results),
    Fault("lifetime", "old memory is freed first", "ResizeArray", _resized(_old_memory_first)),
    Fault("leak", "old memory stays", "ResizeArray", _resized(_old_memory_stays)),
    Fault("data", "elements are lost", "ResizeArray", _resized(_elements_are_lost)),
    Fault("data", "arrays keep their sizes", "ResizeArray", _resized(_old_size)),
    Fault("leak", "memory is not freed", "Free", _forgets("memory")),
    Fault("leak", "failures free nothing", "resources:Resources.unwind", _nothing),
    Fault("leak", "descriptors stay", "Destroy", _forgets("call")),
    Fault("leak", "events stay", "stream_order:StreamOrder.wait", _keeps_events),
    Fault("leak", "staging stays", "Release", _forgets("staging")),
    Fault("leak", "refused calls stay", "resources:Resources.unwind", _all_marked),
    Fault("registration", "the wrong buffer is unregistered", "Unregister", _wrong_buffer),
    Fault("registration", "users are not counted", "transfer:Registrations.register", _not_counted),
    Fault("registration", "parts are registered", "transfer:root_memory", _no_root),
    Fault("registration", "nothing is unregistered", "Unregister", _forgets("registration")),
    Fault("registration", "pages end in flight", "planning:_Planner._must_wait", _always(False)),
    Fault("library", "a workspace is too small", "Allocate", _too_small),
    Fault("library", "phases are skipped", "RunPhase", _next_phase),
    Fault(
        "library", "a library writes mapped memory", "placing:_why_not_stored_mapped", _always("")
    ),
    Fault("data", "nothing is written", "uses:Uses.writes", _always(())),
    Fault("data", "all arrays are in C order", "transfer_actions:contiguous_strides", _in_c_order),
    Fault("data", "strided arrays stay as they were", "Unpack", _nothing),
    Fault("data", "staging is empty", "Stage", _reserves),
    Fault("data", "arguments are swapped", "LaunchKernel", _swapped),
    Fault("data", "kernels have no blocks", "Grid", _no_blocks),
    Fault("promise", "changes are not noted", "run_state:RunState.writes", _nothing),
    Fault("promise", "work goes on behind a failure", "execute:_Run.abandon", _no_wait),
    Fault(
        "promise",
        "staging is read too early",
        "planning:_Planner.steps",
        _unstages_early,
    ),
)
