"""The text of a launch plan: deterministic, one step a line, never read back."""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.ir.loop_printing import library_text, memref_text, print_expr
from sparsejit.ir.loops import Expr
from sparsejit.ir.printing import const_text
from sparsejit.ir.types import INDEX
from sparsejit.runtime.plan import LaunchPlan
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
    Stage,
    Take,
    TakeScalar,
    Unpack,
    Unregister,
    Unstage,
    Wait,
)
from sparsejit.runtime.work_steps import (
    AskSizes,
    Branch,
    Check,
    Compute,
    CopyDevice,
    Describe,
    Destroy,
    Fill,
    Grid,
    LaunchKernel,
    Library,
    Loop,
    ReadScalar,
    Repeat,
    ResizeArray,
    Return,
    RunPhase,
    ScanArray,
    SortArray,
    SortEntries,
    Step,
    ViewOf,
)

__all__ = ["print_plan", "step_text"]


def print_plan(plan: LaunchPlan) -> str:
    """Return the text of a plan.

    >>> from sparsejit.runtime.plan import Strategy
    >>> print(print_plan(LaunchPlan("f", Strategy.PINNED_DMA, (Wait(),))), end="")
    plan @f, pinned-dma {
      wait
    }
    """
    lines = [f"plan @{plan.name}, {plan.strategy.value} {{"]
    lines += [f"  // {p.memref.name} is {p.how}: {p.reason}" for p in plan.placed]
    lines += [f"  // no library for {refusal}" for refusal in plan.refusals]
    lines += ["  " + line for line in _block(plan.steps, plan)]
    return "\n".join([*lines, "}", ""])


def _block(steps: Sequence[Step], plan: LaunchPlan) -> list[str]:
    lines: list[str] = []
    for step in steps:
        match step:
            case Loop(var, lower, upper, body):
                head = f"for {var.name} in {print_expr(lower)} .. {print_expr(upper)}"
                lines += _braces(head, body, plan)
            case Repeat(condition, body):
                lines += _braces(f"while {print_expr(condition)}", body, plan)
            case Branch(condition, then, orelse):
                lines += _braces(f"if {print_expr(condition)}", then, plan)
                if orelse:
                    lines.pop()
                    lines += _braces("} else", orelse, plan)
            case Library(call, inner, otherwise):
                lines += _braces(
                    f"library {call} = {library_text(plan.calls[call].call)}", inner, plan
                )
                lines.pop()
                lines += _braces("} where refused", otherwise, plan)
            case _:
                lines.append(step_text(step, plan))
    return lines


def _braces(head: str, steps: Sequence[Step], plan: LaunchPlan) -> list[str]:
    return [f"{head} {{", *("  " + line for line in _block(steps, plan)), "}"]


def _list(exprs: Sequence[Expr]) -> str:
    return f"[{', '.join(map(print_expr, exprs))}]"


def step_text(step: Step, plan: LaunchPlan) -> str:
    """Return the line of a step without blocks."""
    match step:
        case Take() | TakeScalar() | Pack() | Unpack() | Register() | Unregister():
            return _argument_line(step)
        case Stage() | Reserve() | Unstage() | Release() | NewResult() | Map():
            return _argument_line(step)
        case Allocate() | CopyIn() | CopyOut() | Free() | Await() | Wait():
            return _memory_line(step)
        case Describe() | AskSizes() | RunPhase() | Destroy():
            return _library_line(step, plan)
        case _:
            return _work_line(step)


def _argument_line(step: Step) -> str:  # noqa: C901 - one case for each kind
    match step:
        case Take(memref, placement):
            order = f", {placement.layout.value}" if placement.layout is not Layout.C else ""
            home = placement.home.value
            return f"take {home} {memref.name}: {memref_text(memref)}{order}"
        case TakeScalar(var):
            return f"take {var.name}: {'index' if var.dtype is INDEX else var.dtype.short}"
        case Pack(memref):
            return f"pack host {memref.name}"
        case Unpack(memref):
            return f"unpack host {memref.name}"
        case Register(memref):
            return f"register host {memref.name}"
        case Unregister(memref):
            return f"unregister host {memref.name}"
        case Stage(memref):
            return f"stage host {memref.name}"
        case Reserve(memref):
            return f"reserve staging for host {memref.name}"
        case Unstage(memref):
            return f"unstage host {memref.name}"
        case Release(memref):
            return f"release staging of host {memref.name}"
        case NewResult(memref, extents):
            size = f"like {memref.name}" if extents is None else _list(extents)
            return f"new host {memref.name}: {memref_text(memref)} {size}"
        case Map(memref):
            return f"{memref.name} = device address of host {memref.name}"
        case _:
            raise AssertionError(f"a step without a text: {step!r}")


def _memory_line(step: Step) -> str:
    match step:
        case Allocate(memref, extents, token, layout):
            order = f", {layout.value}" if layout is not Layout.C else ""
            given = f"{token} = " if token else ""
            return f"{given}allocate {memref.name}: {memref.dtype.short}{_list(extents)}{order}"
        case CopyIn(memref, source, after, token):
            return f"{token} = copy {source.value} {memref.name} -> {memref.name} after {after}"
        case Await(tokens):
            return f"await {', '.join(tokens)}"
        case CopyOut(memref, target):
            return f"copy {memref.name} -> {target.value} {memref.name}"
        case Free(memref):
            return f"free {memref.name}"
        case Wait():
            return "wait"
        case _:
            raise AssertionError(f"a step without a text: {step!r}")


def _work_line(step: Step) -> str:  # noqa: C901 - one case for each kind
    match step:
        case Fill(memref, value):
            return f"fill {memref.name} = {const_text(value)}"
        case CopyDevice(target, source):
            return f"copy {source.name} -> {target.name}"
        case ViewOf(memref, source, offsets, sizes, strides, dropped):
            rest = f" drop {list(dropped)}" if dropped else ""
            part = f"{_list(offsets)} {_list(sizes)} {list(strides)}{rest}"
            return f"view {memref.name} = {source.name}{part}"
        case ResizeArray(memref, count):
            return f"resize {memref.name}[{print_expr(count)}]"
        case Grid(blocks, kernel):
            return f"{blocks.name} = blocks for {kernel}"
        case LaunchKernel(kernel, blocks, workspaces):
            given = f" with {', '.join(w.name for w in workspaces)}" if workspaces else ""
            return f"launch {kernel} on {blocks.name}{given}"
        case ScanArray(memref, op):
            return f"scan {op.value} {memref.name}"
        case SortArray(memref, count):
            return f"sort {memref.name}[{print_expr(count)}]"
        case SortEntries(order, coordinates, count):
            keys = ", ".join(memref.name for memref in coordinates)
            return f"sort {order.name} by {keys} count {print_expr(count)}"
        case Compute(var, value):
            return f"{var.name} = {print_expr(value)}"
        case ReadScalar(var, memref, indices):
            return f"read back {var.name} = {memref.name}{_list(indices)}"
        case Check(condition, text):
            return f"require {print_expr(condition)} else {text!r}"
        case Return(memrefs, home):
            where = "" if home is Home.HOST else "device "
            return f"return {', '.join(where + memref.name for memref in memrefs)}".rstrip()
        case _:
            raise AssertionError(f"a step without a text: {step!r}")


def _library_line(step: Step, plan: LaunchPlan) -> str:
    match step:
        case Describe(call):
            return f"describe {call}"
        case AskSizes(call, phase, sizes):
            name = plan.calls[call].phases[phase].name
            return f"{', '.join(size.name for size in sizes)} = sizes of {call} {name}"
        case RunPhase(call, phase, workspaces):
            given = f" with {', '.join(w.name for w in workspaces)}" if workspaces else ""
            return f"run {call} {plan.calls[call].phases[phase].name}{given}"
        case Destroy(call):
            return f"destroy {call}"
        case _:
            raise AssertionError(f"a step without a text: {step!r}")
