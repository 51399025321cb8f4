"""Which sinks can take the result of an operation under a plan, and why others cannot.

A result with exactly the entries of an operand copies its pattern, one with those that others have
too has a slot for each; one whose elements come in
order and once is appended; one scattered into row by row goes through a dense workspace; one whose
elements come once, and in order under each parent, is counted and placed, unless entries are to be
sorted; any other goes through a workspace of entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparsejit.affine import AffineExpr, Dim, dims_of
from sparsejit.errors import UnsupportedError
from sparsejit.formats import LevelKind
from sparsejit.ir.fold import identity_const
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Select
from sparsejit.sparsify_and_bufferize._append_sink import AppendSink, appended_loops
from sparsejit.sparsify_and_bufferize._buffers import DenseBuffer, SparseBuffer
from sparsejit.sparsify_and_bufferize._counting_sink import CountingSink
from sparsejit.sparsify_and_bufferize._entries_sink import EntriesSink
from sparsejit.sparsify_and_bufferize._entry_counts import always_stores
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._kernel import Kernel
from sparsejit.sparsify_and_bufferize._level_space import Access
from sparsejit.sparsify_and_bufferize._pattern_sink import PatternSink
from sparsejit.sparsify_and_bufferize._plans import Plan, Task
from sparsejit.sparsify_and_bufferize._sampled_sink import SampledSink
from sparsejit.sparsify_and_bufferize._scatter_sink import ScatterSink
from sparsejit.sparsify_and_bufferize._sinks import DenseSink, FullSink, Sink
from sparsejit.sparsify_and_bufferize._workspace_sink import WorkspaceSink

__all__ = ["sinks_for"]

MakeSink = Callable[[Kernel], Sink]


def sinks_for(task: Task, plan: Plan) -> list[MakeSink]:
    """Return the ways to write the result, the best first; making one may be unsupported."""
    order = plan.order
    destination = task.destination
    match destination:
        case DenseBuffer():
            return [
                lambda kernel: DenseSink(kernel, destination, scatters=_scatters(kernel, order))
            ]
        case SparseBuffer() if task.updates:
            last = len(task.op.inputs) - 1
            return [lambda kernel: PatternSink(kernel, last, destination, in_place=True)]
        case SparseBuffer() if destination.format.is_all_full:
            return [lambda kernel: FullSink(kernel, destination, scatters=_scatters(kernel, order))]
        case SparseBuffer() if plan.sampler is not None:
            return [lambda kernel: _sampled(kernel, plan.sampler, task, destination)]
        case SparseBuffer() if plan.scatter:
            return _scattering(task, order, destination)
        case SparseBuffer() if task.options.storage == "runtime":
            return [
                lambda kernel: EntriesSink(
                    *_appendable(kernel, order, destination, every_level=True)
                ),
                # What the library does not assemble: entries with levels of their own below them.
                lambda kernel: PatternSink(kernel, _pattern_operand(kernel), destination),
            ]
        case SparseBuffer():
            return [
                lambda kernel: PatternSink(kernel, _pattern_operand(kernel), destination),
                lambda kernel: SampledSink(kernel, _flagged_operand(kernel), destination),
                lambda kernel: _sampled(kernel, _sampling_operand(kernel), task, destination),
                lambda kernel: AppendSink(
                    *_appendable(kernel, order, destination, every_level=False)
                ),
            ]


def _sampled(kernel: Kernel, number: int | None, task: Task, result: SparseBuffer) -> Sink:
    operand = _needed(kernel, number)
    keeps_slots = kernel.op.inputs[operand] in task.shared
    return SampledSink(kernel, operand, result, keeps_slots=keeps_slots)


def _scattering(task: Task, order: LoopOrder, destination: SparseBuffer) -> list[MakeSink]:
    """Return the workspaces for a result whose elements come in any order."""

    def scatter(kernel: Kernel) -> Sink:
        reserves = task.options.placing == "counted"
        return ScatterSink(kernel, destination, _combination(kernel, order), order, reserves)

    if task.options.storage == "runtime":
        return [scatter]
    placed: list[MakeSink] = [lambda kernel: CountingSink(kernel, order, destination), scatter]
    if task.options.placing == "sorted":
        placed.reverse()
    return [lambda kernel: WorkspaceSink(*_by_rows(kernel, task, order, destination)), *placed]


def _scatters(kernel: Kernel, order: LoopOrder) -> bool:
    return kernel.reads_out and _reduces_outside(kernel, order)


def _by_rows(
    kernel: Kernel, task: Task, order: LoopOrder, result: SparseBuffer
) -> tuple[Kernel, SparseBuffer, BinaryOp]:
    """Check that only the last level of the result is scattered into, under each parent."""
    if task.options.is_long(kernel.space.output.levels[-1].size):
        raise UnsupportedError("a workspace of an extent that dwarfs what is stored")
    combine = _combination(kernel, order)
    loops_of_levels = appended_loops(kernel)
    rows = loops_of_levels[:-1]
    if combine is None or order.loops[: len(rows)] != rows:
        raise UnsupportedError("the result is not made row by row")
    return kernel, result, combine


def _combination(kernel: Kernel, order: LoopOrder) -> BinaryOp | None:
    """Return the reduction that combines contributions; None where each element comes once."""
    if not kernel.reads_out:
        return None
    if kernel.guard is not None and _reduces_outside(kernel, order):
        raise UnsupportedError("scattering would lose the entries whose sum has no terms")
    match kernel.op.body:
        case Binary(op, Arg(out)) | Select(_, Binary(op, Arg(out)), _) if out == kernel.out:
            if identity_const(op, kernel.op.init.type.dtype.compute) is not None:
                return op
        case _:
            pass
    raise UnsupportedError(
        "scattering with an update that is no reduction",
        hint="use an associative and commutative operation such as + or max",
    )


def _reduces_outside(kernel: Kernel, order: LoopOrder) -> bool:
    """Whether an element of the result is met again after another one was written."""
    output = kernel.space.output
    written = set[int]().union(*(dims_of(index) for index in output.indices))
    if len(written) > len(output.indices):
        return True
    inner = [loop in written for loop in order.loops]
    return False in inner and True in inner[inner.index(False) :]


def _appendable(
    kernel: Kernel, order: LoopOrder, result: SparseBuffer, *, every_level: bool
) -> tuple[Kernel, SparseBuffer]:
    """Check that elements of the result come in order and once: no workspace is needed."""
    levels = kernel.space.output.levels
    stored = [n for n, level in enumerate(levels) if not level.type.is_full]
    last = len(levels) - 1 if every_level or kernel.guard is not None else stored[-1]
    written = {n for level in levels[: last + 1] for n in _loops_of(level.expr)}
    reductions = [loop for loop in order.loops if not kernel.space.loops[loop].is_parallel]
    place = {loop: depth for depth, loop in enumerate(order.loops)}
    early = [r for r in reductions if any(place[r] < place[loop] for loop in written)]
    if early:
        name = kernel.space.loops[early[0]].name
        raise UnsupportedError(
            f"the result would need a workspace: the reduction over {name} runs outside of a loop "
            "that appends to it",
            hint="ask for a dense result",
        )
    return kernel, result


def _loops_of(expr: AffineExpr) -> tuple[int, ...]:
    return (expr.index,) if isinstance(expr, Dim) else ()


def _pattern_operand(kernel: Kernel) -> int:
    """Return an input whose entries are exactly those of the result.

    So it is where the input is indexed like the result and stored alike, nothing is to do where it
    is absent, and something always is where it is present.
    """
    output = kernel.space.output
    sparse = list(kernel.twins)
    for number in sparse:
        access = kernel.space.inputs[number]
        if not _is_stored_alike(access, output) or not isinstance(
            kernel.inputs[number], SparseBuffer
        ):
            continue
        if kernel.may_be_empty(number):
            continue
        others = frozenset(sparse) - {number}
        start = kernel.start()
        if kernel.outcome(start.without(frozenset({number}))) is not None:
            continue
        if always_stores(kernel, number, others):
            return number
    raise UnsupportedError("no operand has exactly the entries of the result")


def _needed(kernel: Kernel, number: int | None) -> int:
    """Check that the result stores nothing where an input does not, and only what is computed."""
    assert number is not None
    if kernel.guard is not None:
        raise UnsupportedError("sampling would lose the entries whose sum has no terms")
    if kernel.outcome(kernel.start().without(frozenset({number}))) is not None:
        raise UnsupportedError("the result stores more than the operand that would sample it")
    return number


def _flagged_operand(kernel: Kernel) -> int:
    """Return an input in the slots of another one that has exactly the entries of the result."""
    for number, access in enumerate(kernel.space.inputs):
        if not kernel.may_be_empty(number) or access.levels != kernel.space.output.levels:
            continue
        alone = replace(kernel, unasked=number)
        leader = next(k for k, twins in kernel.twins.items() if number in {k, *twins})
        if set(kernel.twins) == {leader} and always_stores(alone, leader, frozenset()):
            return _needed(kernel, number)
    raise UnsupportedError("no operand in the slots of another one has the entries of the result")


def _sampling_operand(kernel: Kernel) -> int:
    """Return an input that stores what the result does, and maybe more: others decide that.

    With one sparse input it is cheap to count the entries first.
    """
    sparse = list(kernel.twins)
    for number in sparse if len(sparse) > 1 else ():
        if kernel.space.inputs[number].levels == kernel.space.output.levels:
            return number
    raise UnsupportedError("no operand has the entries of the result among its own")


def _is_stored_alike(access: Access, output: Access) -> bool:
    """Whether the levels of an input are those of the result, which may go on with dense ones."""
    count = len(access.levels)
    block = output.levels[count:]
    return access.levels == output.levels[:count] and all(
        level.type.kind is LevelKind.DENSE and isinstance(level.expr, Dim) for level in block
    )
