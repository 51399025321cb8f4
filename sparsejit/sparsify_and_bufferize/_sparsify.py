"""Sparsification of one ``Generic``: choose loop order and sink, build the nest.

Candidates are tried from best to worst; the first that can be lowered wins, and what it decided
becomes facts. Where none can, the ``UnsupportedError`` lists each candidate's reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from sparsejit.affine import AffineExpr, Dim, dims_of
from sparsejit.errors import UnsupportedError
from sparsejit.ir import loops
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.fold import identity_const
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.printing import format_text
from sparsejit.ir.scalar import Arg, Binary, ScalarExpr, Select, Stored, map_leaves
from sparsejit.ir.simplify import Known, NoValue, simplify_absence
from sparsejit.ir.tensor import Generic
from sparsejit.sparsify_and_bufferize._append_sink import AppendSink, appended_loops
from sparsejit.sparsify_and_bufferize._buffers import (
    Buffer,
    DenseBuffer,
    SparseBuffer,
    declare_levels,
)
from sparsejit.sparsify_and_bufferize._entries_sink import EntriesSink
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder, loop_orders
from sparsejit.sparsify_and_bufferize._iteration_lattice import lattice_text
from sparsejit.sparsify_and_bufferize._kernel import Kernel
from sparsejit.sparsify_and_bufferize._level_space import (
    LevelSpace,
    level_space_of,
    level_spaces_of,
)
from sparsejit.sparsify_and_bufferize._loop_nest import LoopNest
from sparsejit.sparsify_and_bufferize._naming import Namer
from sparsejit.sparsify_and_bufferize._operand_conversion import Conversion, conversions_for
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._pattern_sink import PatternSink
from sparsejit.sparsify_and_bufferize._scatter_sink import ScatterSink
from sparsejit.sparsify_and_bufferize._sinks import DenseSink, FullSink, Sink, Stmts
from sparsejit.sparsify_and_bufferize._workspace_sink import WorkspaceSink

__all__ = ["Sparsified", "sparsify"]

_MAX_CANDIDATES = 24


@dataclass(frozen=True, slots=True)
class Sparsified:
    """The loops of a ``Generic``, where its result is, what was decided, and its lattices."""

    statements: Stmts
    result: Buffer
    facts: tuple[Fact, ...]
    lattices: str
    namer: Namer


@dataclass(frozen=True, slots=True)
class _Plan:
    """One way to lower an operation: its loops, and how operands and result are treated.

    ``scatter``: the result goes through a workspace; ``convert``: the operands that do not fit the
    order are converted rather than searched.
    """

    space: LevelSpace
    order: LoopOrder
    scatter: bool
    convert: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """What ``sparsify`` is asked for, handed on to the ways of doing it."""

    op: Generic
    inputs: tuple[Buffer, ...]
    destination: DenseBuffer | SparseBuffer
    symbols: Mapping[int, loops.Expr]
    options: StageOptions
    updates: bool


def sparsify(
    op: Generic,
    inputs: tuple[Buffer, ...],
    destination: DenseBuffer | SparseBuffer,
    symbols: Mapping[int, loops.Expr],
    namer: Namer,
    options: StageOptions,
    *,
    updates: bool = False,
) -> Sparsified:
    """Return the loops of ``op``.

    ``destination`` is the buffer of a dense result, or the memrefs that a sparse result will
    define, or (``updates``) the storage of a sparse tensor whose entries change in place. Raises
    ``UnsupportedError`` where no way of lowering works, with all reasons.
    """
    if updates:
        assert isinstance(destination, SparseBuffer)
        op, inputs = _with_destination_as_input(op), (*inputs, destination)
    task = _Task(op, inputs, destination, symbols, options, updates)
    reasons: dict[str, UnsupportedError] = {}
    for plan in _plans(task):
        try:
            return _converted(task, plan, namer) if plan.convert else _lowered(task, plan, namer)
        except UnsupportedError as error:
            reasons.setdefault(error.what, error)
    raise _refusal(op, list(reasons.values()))


def _with_destination_as_input(op: Generic) -> Generic:
    """Return ``op`` with the entries of its destination to walk over as a last input.

    ``Stored`` of the destination speaks of that input. Raises ``UnsupportedError`` where the
    update would touch what is not stored.
    """
    last = len(op.inputs)

    def renumbered(leaf: ScalarExpr) -> ScalarExpr:
        return Arg(last + 1) if leaf == Arg(last) else leaf

    walked = replace(
        op,
        inputs=(*op.inputs, op.init),
        indexing_maps=(*op.indexing_maps, op.indexing_maps[-1]),
        body=map_leaves(op.body, renumbered),
    )
    dtypes = tuple(value.type.dtype for value in (*walked.inputs, walked.init))
    outside = simplify_absence(walked.body, dtypes, {last: op.init.type.fill})
    if outside not in (Known(Arg(last + 1)), NoValue()):
        raise UnsupportedError(
            f"the update of %{op.init.name} would store new entries",
            hint="keep to its pattern: where_stored(S, ...); or compute a new sparse result",
            location=op.location,
        )
    return walked


def _plans(task: _Task) -> Iterator[_Plan]:
    """Yield plans, the cheapest first.

    In order and searched, a pass over the operands does; a workspace sorts the contributions, a
    conversion sorts the entries of an operand before.
    """
    spaces = level_spaces_of(task.op)
    sparse = isinstance(task.destination, SparseBuffer) and not task.updates
    scattering = (False, True) if sparse and not task.op.init.type.format.is_all_full else (False,)
    for convert in (False, True):
        for scatter in scattering:
            for space in spaces:
                for order in islice(loop_orders(space, scattered=scatter), _MAX_CANDIDATES):
                    if order.located or not convert:
                        yield _Plan(space, order, scatter, convert)


def _lowered(task: _Task, plan: _Plan, namer: Namer) -> Sparsified:
    """Lower with one plan; the first sink that works. ``UnsupportedError`` says why none does."""
    refused: UnsupportedError | None = None
    for make_sink in _sinks(task, plan):
        kernel = Kernel(task.op, plan.space, task.inputs, task.symbols, namer.fork())
        try:
            sink = make_sink(kernel)
            nest = LoopNest(kernel, plan.order, sink)
            statements = nest.statements()
        except UnsupportedError as error:
            refused = error  # the last way is the most general, so its reason is the one to tell
            continue
        facts = _facts(kernel, plan.order, sink)
        return Sparsified(statements, sink.result, facts, _lattices(kernel, nest), kernel.namer)
    assert refused is not None
    raise refused


def _converted(task: _Task, plan: _Plan, namer: Namer) -> Sparsified:
    """Convert the operands that do not fit the order of ``plan``, then lower with it."""
    conversions, op = conversions_for(task.op, plan.space, plan.order)
    space = level_space_of(op, plan.space.grid)
    if space.off_grid:
        raise UnsupportedError("the blocks of the operands do not fit")
    inputs = list(task.inputs)
    statements: list[loops.Stmt] = []
    frees: list[loops.Stmt] = []
    facts: list[Fact] = []
    for conversion in conversions:
        value = conversion.op.result
        target = declare_levels(namer.fresh(f"s{value.name}"), value.type, 64)
        made = sparsify(
            conversion.op, (inputs[conversion.number],), target, task.symbols, namer, task.options
        )
        namer = made.namer
        inputs[conversion.number] = made.result
        statements += made.statements
        frees += [loops.Dealloc(memref) for memref in target.flat]
        facts.append(_conversion_fact(task.op, conversion))
    rest = _Plan(space, LoopOrder(plan.order.loops), plan.scatter, convert=False)
    changed = replace(task, op=op, inputs=tuple(inputs))
    lowered = _lowered(changed, rest, namer)
    return replace(
        lowered,
        statements=(*statements, *lowered.statements, *frees),
        facts=(*facts, *lowered.facts),
    )


def _conversion_fact(op: Generic, conversion: Conversion) -> Fact:
    source = op.inputs[conversion.number]
    before = format_text(source.type.format.with_widths(0, 0))
    after = format_text(conversion.op.result.type.format.with_widths(0, 0))
    text = f"{source.name} from {before} to {after}, in time linear in its stored entries"
    return Fact(FactKind.CONVERSION, op.result.name, text)


def _refusal(op: Generic, reasons: list[UnsupportedError]) -> UnsupportedError:
    if not reasons:
        reasons = [
            UnsupportedError(
                "the order of the result's levels contradicts that of the loops",
                hint="ask for a dense result, or for another result format",
            )
        ]
    if len(reasons) == 1:
        only = reasons[0]
        return UnsupportedError(only.what, hint=only.hint, location=op.location)
    return UnsupportedError(
        "no loop order of this operation can be lowered",
        hint=reasons[0].hint,
        location=op.location,
        reasons=tuple(reason.what for reason in reasons),
    )


MakeSink = Callable[[Kernel], Sink]


def _sinks(task: _Task, plan: _Plan) -> list[MakeSink]:
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
        case SparseBuffer() if plan.scatter:
            scatter: MakeSink = lambda kernel: ScatterSink(  # noqa: E731
                kernel, destination, _combination(kernel, order)
            )
            if task.options.storage == "runtime":
                return [scatter]
            return [lambda kernel: WorkspaceSink(*_by_rows(kernel, order, destination)), scatter]
        case SparseBuffer() if task.options.storage == "runtime":
            return [
                lambda kernel: EntriesSink(
                    *_appendable(kernel, order, destination, every_level=True)
                )
            ]
        case SparseBuffer():
            return [
                lambda kernel: PatternSink(kernel, _pattern_operand(kernel), destination),
                lambda kernel: AppendSink(
                    *_appendable(kernel, order, destination, every_level=False)
                ),
            ]


def _scatters(kernel: Kernel, order: LoopOrder) -> bool:
    return kernel.reads_out and _reduces_outside(kernel, order)


def _by_rows(
    kernel: Kernel, order: LoopOrder, result: SparseBuffer
) -> tuple[Kernel, SparseBuffer, BinaryOp]:
    """Check that only the last level of the result is scattered into, under each parent."""
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
    last = len(levels) - 1 if every_level else stored[-1]
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
    sparse = [k for k, access in enumerate(kernel.space.inputs) if access.may_be_absent]
    for number in sparse:
        access = kernel.space.inputs[number]
        same_map = [level.expr for level in access.levels] == [lvl.expr for lvl in output.levels]
        same_type = [level.type for level in access.levels] == [lvl.type for lvl in output.levels]
        if not (same_map and same_type) or access.value.type.shape != output.value.type.shape:
            continue
        if not isinstance(kernel.inputs[number], SparseBuffer):
            continue
        others = frozenset(sparse) - {number}
        start = kernel.start()
        if kernel.outcome(start.without(frozenset({number}))) is not None:
            continue
        if _always_stores(kernel, number, others):
            return number
    raise UnsupportedError("no operand has exactly the entries of the result")


def _always_stores(kernel: Kernel, number: int, others: frozenset[int]) -> bool:
    """Whether the body has a value where ``number`` is present and all ``others`` are absent."""
    body: ScalarExpr = kernel.op.body
    match body:
        case Select(Stored(index), _, Arg(out)) if index == number and out == kernel.out:
            return True
        case _:
            return _is_known(kernel, number, others)


def _is_known(kernel: Kernel, number: int, others: frozenset[int]) -> bool:
    """Whether something is left to store where exactly ``number`` is present."""
    fills = {k: kernel.op.inputs[k].type.fill for k in others}
    partial = simplify_absence(kernel.op.body, kernel.dtypes, fills, frozenset({number}))
    return kernel.outcome_of(partial) is not None and not kernel.may_be_nothing(partial)


def _facts(kernel: Kernel, order: LoopOrder, sink: Sink) -> tuple[Fact, ...]:
    name = kernel.op.result.name
    names = [kernel.space.loops[loop].name for loop in order.loops]
    text = ", ".join(names) if names else "no loops"
    located = [kernel.op.inputs[operand].name for operand in sorted(order.located)]
    if located:
        text += f"; {', '.join(located)} searched, stored in another order"
    return (
        Fact(FactKind.LOOP_ORDER, name, text),
        Fact(FactKind.STORAGE, name, sink.storage),
    )


def _lattices(kernel: Kernel, nest: LoopNest) -> str:
    names = [value.name for value in kernel.op.inputs]
    lines: list[str] = []
    for loop, lattice in nest.lattices:
        points = lattice_text(lattice, names).splitlines() or ["nothing"]
        lines.append(f"{kernel.space.loops[loop].name}: {', '.join(points)}")
    return "\n".join(lines)
