"""The steps of a plan in the words of UPSTREAM, section B."""

from __future__ import annotations

from sparsejit.runtime.plan import LaunchPlan
from sparsejit.runtime.transfer_steps import (
    Allocate,
    Await,
    CopyIn,
    CopyOut,
    Free,
    Register,
    Take,
    Unregister,
    Wait,
)
from sparsejit.runtime.work_steps import (
    AskSizes,
    Describe,
    Destroy,
    LaunchKernel,
    Library,
    RunPhase,
    Step,
)

__all__ = ["upstream_names"]


def upstream_names(plan: LaunchPlan) -> list[str]:
    """Return the steps that upstream's host program has, where the library takes the call."""
    found: list[str] = []
    for step in plan.steps:
        inner = step.steps if isinstance(step, Library) else (step,)
        found += [name for part in inner if (name := _name(part))]
    return found


def _name(step: Step) -> str:  # noqa: C901 - one case for each kind
    match step:
        case Take(memref):
            return f"take host {memref.name}"
        case Register(memref):
            return f"register {memref.name}"
        case Unregister(memref):
            return f"unregister {memref.name}"
        case Allocate(memref):
            return f"allocate {memref.name}"
        case CopyIn(memref):
            return f"copy {memref.name}"
        case Await():
            return "await"
        case Describe(call):
            return f"describe {call}"
        case AskSizes(call):
            return f"sizes of {call}"
        case RunPhase(call):
            return f"run {call}"
        case Destroy(call):
            return f"destroy {call}"
        case LaunchKernel(kernel):
            return f"launch {kernel}"
        case CopyOut(memref):
            return f"copy {memref.name} out"
        case Free(memref):
            return f"free {memref.name}"
        case Wait():
            return "wait"
        case _:
            return ""
