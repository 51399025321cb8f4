"""``Lowered``: a function for one kind of operands, to be looked at, checked and compiled.

In: a program and the operands it was traced for. Out: its text at every level, what ``explain``
says of it, what the reference evaluator computes, and a callable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparsejit.api._cuda import CudaKernel, Transferred, plan_for, planned_transfers
from sparsejit.api._program import Program, Variant
from sparsejit.api._target import Target, backend_of, cuda_backend, why_not_cuda
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.debug import TEXT_LEVELS
from sparsejit.errors import UnsupportedError
from sparsejit.explain import OperandNote, Report, explain_text
from sparsejit.ir.facts import Fact
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.printing import print_tensor
from sparsejit.runtime.plan_printing import print_plan

if TYPE_CHECKING:
    from sparsejit.api._function import CompiledFunction

__all__ = ["Lowered", "make_report"]


class Lowered:
    """What ``f.lower(*args)`` returns: ``f``, traced for the kinds of these arguments.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> double = sj.sparse_jit(lambda x: x * 2, target="interpreter")
    >>> lowered = double.lower(np.ones(3))
    >>> lowered.text("tensor").splitlines()[0].split("(")[1]
    '%x: f64[d0]) -> '
    """

    def __init__(
        self,
        function: CompiledFunction,
        program: Program,
        variant: Variant,
        target: Target,
        operands: tuple[OperandNote, ...],
        caller: Callable[..., Any],
        arguments: Sequence[object] = (),
    ) -> None:
        self._function = function
        self._caller = caller
        self._program = program
        self._variant = variant
        self._target = target
        self._operands = operands
        self._arguments = arguments
        self._texts: dict[str, str] = {}

    def text(self, level: str) -> str:
        """Return the program's text at a level.

        ``"tensor"`` is what the atomic stage takes, ``"decisions"`` and ``"copies"`` what its
        analysis decided, ``"loops"`` what the backend takes, ``"source"`` the generated code,
        ``"plan"`` the launch plan of a device, ``"mlir"`` the function as MLIR. Raises
        ``ValueError`` for another level and ``UnsupportedError`` for one that the target or the
        program does not have.
        """
        if level not in TEXT_LEVELS:
            choices = ", ".join(map(repr, TEXT_LEVELS))
            raise ValueError(f"level must be one of {choices}, not {level!r}")
        match level:
            case "tensor":
                return print_tensor(self._program.func)
            case "source":
                return self._source()
            case "plan":
                return self._plan()
            case "mlir" if "mlir" not in self._stage_texts():
                from sparsejit.ir.mlir import print_mlir

                return print_mlir(self._program.func)
            case "copies":
                texts = self._stage_texts()
                fused = texts.get("copies:fused")
                return texts[level] if fused is None else f"{texts[level]}\n{fused}"
            case _:
                return self._stage_texts()[level]

    def _stage_texts(self) -> dict[str, str]:
        """Lower, which is deterministic, once more and listen."""
        if not self._texts:
            loops = self._program.lower(self._variant, self._texts.__setitem__)
            self._texts["loops"] = print_loops(loops)
        return self._texts

    def _source(self) -> str:
        backend = backend_of(self._target, self._function.options)
        return backend.emit(self._program.lower(self._variant)).text

    def _plan(self) -> str:
        if self._target.name != "cuda":
            why = "there is no launch plan without a device: the generated code is called directly"
            raise UnsupportedError(f'text("plan") for target {self._target.name!r}', reasons=(why,))
        return print_plan(plan_for(self._device_kernel(), self._arguments))

    def _device_kernel(self) -> CudaKernel:
        compiled = self._program.compiled.get(self._variant)
        if compiled is not None and isinstance(compiled.kernel, CudaKernel):
            return compiled.kernel
        backend = cuda_backend(self._function.options)
        return backend.load(backend.emit(self._program.lower(self._variant)))

    def explain(self) -> str:
        """Return what was decided for these operands, and why; nothing is run."""
        report = make_report(
            self._function, self._program, self._variant, self._target, self._operands
        )
        if self._target.name == "cuda" and not report.refused:
            kernel = self._device_kernel()
            report = with_transfers(report, planned_transfers(kernel, self._arguments))
        return explain_text(report)

    def reference(self, /, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the traced program in NumPy, by brute force.

        ``args`` are as in a call and may have other extents. Returns what the call would return,
        with a pair ``(values, stored)`` in the place of each array: the dense values and the
        boolean mask of what is stored. The arguments are not changed.
        """
        return self._function.evaluate(self._program, args, kwargs)

    def compile(self) -> Callable[..., Any]:
        """Compile the kernel now, and return the function; calls of this kind find it ready.

        Raises ``DeviceError`` when the target is cuda and no device can be used.
        """
        self._function.compile_now(self._program, self._variant, self._target)
        return self._caller


def _backend_facts(function: CompiledFunction, target: Target, loops: LoopFunc) -> tuple[Fact, ...]:
    backend = backend_of(target, function.options)
    return backend.facts(loops) if isinstance(backend, LlvmBackend) else ()


def _facts_or_refusal(
    function: CompiledFunction, program: Program, variant: Variant, target: Target
) -> tuple[tuple[Fact, ...], str]:
    """Return what the stage and the backend decided, or why the target cannot run the function."""
    never = why_not_cuda(program.func) if target.name == "cuda" else ""
    if never:
        return (), never
    compiled = program.compiled.get(variant)
    try:
        loops = compiled.loops if compiled is not None else program.lower(variant)
    except UnsupportedError as error:
        if target.name != "cuda":
            raise
        return (), error.what
    return (*loops.facts, *_backend_facts(function, target, loops)), ""


def make_report(
    function: CompiledFunction,
    program: Program,
    variant: Variant,
    target: Target,
    operands: tuple[OperandNote, ...],
    run_seconds: float | None = None,
    was_hit: bool | None = None,
) -> Report:
    """Return the facts for ``explain``."""
    compiled = program.compiled.get(variant)
    kernel = compiled.kernel if compiled is not None else None
    transfers = kernel.last if isinstance(kernel, CudaKernel) else Transferred()
    facts, refused = _facts_or_refusal(function, program, variant, target)
    info = function.cache_info()
    return Report(
        func=program.func,
        target=target.name,
        target_reason=target.reason,
        engine=target.engine,
        refused=refused,
        transfer=function.options.transfer.value,
        operands=operands,
        facts=(*program.traced.facts, *facts),
        index_widths=variant.widths if program.width_is_open else None,
        trace_seconds=program.seconds,
        compile_seconds=None if compiled is None else compiled.seconds,
        run_seconds=run_seconds,
        was_hit=was_hit,
        counts=(("traces", info.traces), ("compiles", info.compiles), ("hits", info.hits)),
        moved=transfers.moved,
        placed=transfers.lines,
    )


def with_transfers(report: Report, transfers: Transferred) -> Report:
    """Return the report with what a plan moves."""
    return replace(report, moved=transfers.moved, placed=transfers.lines)
