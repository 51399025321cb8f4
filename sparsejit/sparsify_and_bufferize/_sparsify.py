"""Sparsification of one ``Generic``: choose loop order and sink, build the nest.

Plans are tried from best to worst; the first that can be lowered wins, and what it decided becomes
facts. Where none can, the ``UnsupportedError`` lists each plan's reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import identity_map
from sparsejit.errors import UnsupportedError
from sparsejit.ir import loops
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.printing import format_text
from sparsejit.ir.scalar import Arg, ScalarExpr, Select, Stored, map_leaves
from sparsejit.ir.simplify import Known, NoValue, simplify_absence
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import IndexWidths, IteratorType
from sparsejit.sparsify_and_bufferize._buffers import (
    Buffer,
    DenseBuffer,
    SparseBuffer,
    declare_levels,
)
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._iteration_lattice import lattice_text
from sparsejit.sparsify_and_bufferize._kernel import Kernel
from sparsejit.sparsify_and_bufferize._level_space import level_space_of
from sparsejit.sparsify_and_bufferize._loop_nest import LoopNest
from sparsejit.sparsify_and_bufferize._operand_conversion import Conversion, conversions_for
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._plans import Plan, Task, plans_of
from sparsejit.sparsify_and_bufferize._sink_choice import sinks_for
from sparsejit.sparsify_and_bufferize._sinks import Sink, Stmts
from sparsejit.sparsify_and_bufferize._walks import GridError

__all__ = ["Sparsified", "sparsify"]


@dataclass(frozen=True, slots=True)
class Sparsified:
    """The loops of a ``Generic``, where its result is, what was decided, and its lattices."""

    statements: Stmts
    result: Buffer
    facts: tuple[Fact, ...]
    lattices: str
    namer: Names


def sparsify(
    op: Generic,
    inputs: tuple[Buffer, ...],
    destination: DenseBuffer | SparseBuffer,
    symbols: Mapping[int, loops.Expr],
    namer: Names,
    options: StageOptions,
    *,
    updates: bool = False,
    converts: bool = True,
    shared: frozenset[Value] = frozenset(),
) -> Sparsified:
    """Return the loops of ``op``.

    ``destination`` is the buffer of a dense result, or the memrefs that a sparse result will
    define, or (``updates``) the storage of a sparse tensor whose entries change in place.
    ``converts`` allows that operands are converted first. A result with some of the entries of an
    input in ``shared`` may be left in the slots of that input.
    Raises ``UnsupportedError`` where no way of lowering works, with all reasons.
    """
    if updates:
        assert isinstance(destination, SparseBuffer)
        op, inputs = _with_destination_as_input(op), (*inputs, destination)
    task = Task(op, inputs, destination, symbols, options, updates, converts, shared=shared)
    reasons: dict[str, UnsupportedError] = {}
    for grids in (False, True):
        allowed = replace(task, visits_grids=grids)
        for plan in plans_of(allowed):
            try:
                if plan.convert:
                    return _converted(allowed, plan, namer)
                return _lowered(allowed, plan, namer)
            except UnsupportedError as error:
                reasons.setdefault(error.what, error)
        if not any(isinstance(reason, GridError) for reason in reasons.values()):
            break
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


def _lowered(task: Task, plan: Plan, namer: Names) -> Sparsified:
    """Lower with one plan; the first sink that works. ``UnsupportedError`` says why none does."""
    refused: UnsupportedError | None = None
    for make_sink in sinks_for(task, plan):
        kernel = Kernel(task.op, plan.space, task.inputs, task.symbols, namer.fork())
        try:
            sink = make_sink(kernel)
            nest = LoopNest(
                kernel,
                plan.order,
                sink,
                visits_grids=task.visits_grids,
                sampler=plan.sampler,
                part=task.options.part,
                rows_apart=task.options.rows_apart,
            )
            statements = nest.statements()
        except UnsupportedError as error:
            # The last way is the most general, so its reason is the one to tell.
            refused = refused if isinstance(refused, GridError) else error
            continue
        facts = (*_facts(kernel, plan, sink), *_loop_facts(kernel, statements))
        return Sparsified(statements, sink.result, facts, _lattices(kernel, nest), kernel.namer)
    assert refused is not None
    raise refused


def _converted(task: Task, plan: Plan, namer: Names) -> Sparsified:
    """Convert the operands that do not fit the order of ``plan``, then lower with it."""
    conversions, op = conversions_for(task.op, plan.space, plan.order, task.options)
    last = len(op.inputs) - 1
    moved = task.updates and any(conversion.number == last for conversion in conversions)
    if moved:  # the update happens in the converted copy of the destination
        init = op.inputs[last]
        op = replace(op, init=init, result=Value(op.result.name, init.type))
    space = level_space_of(op, plan.space.grid)
    if space.off_grid:
        raise UnsupportedError("the blocks of the operands do not fit")
    inputs = list(task.inputs)
    statements: list[loops.Stmt] = []
    frees: list[loops.Stmt] = []
    facts: list[Fact] = []
    rest = Plan(space, LoopOrder(plan.order.loops), plan.scatter, convert=False)
    _try(replace(task, op=op), rest, conversions, namer.fork())
    for conversion in conversions:
        value = conversion.op.result
        target = declare_levels(namer.fresh(f"s{value.name}"), value.type, IndexWidths())
        made = sparsify(
            conversion.op,
            (inputs[conversion.number],),
            target,
            task.symbols,
            namer,
            task.options,
            converts=False,
        )
        namer = made.namer
        inputs[conversion.number] = made.result
        statements += made.statements
        frees += [loops.Dealloc(memref) for memref in target.flat]
        facts.append(_conversion_fact(task.op, conversion))
    changed = replace(task, op=op, inputs=tuple(inputs))
    if moved:
        copy = inputs[last]
        assert isinstance(copy, SparseBuffer)
        changed = replace(changed, destination=copy)
    lowered = _lowered(changed, rest, namer)
    statements += lowered.statements
    facts += lowered.facts
    if moved:
        back = _written_back(task, op.inputs[last], inputs[last], lowered.namer)
        statements += back.statements
        lowered = replace(lowered, result=back.result, namer=back.namer)
    return replace(lowered, statements=(*statements, *frees), facts=tuple(facts))


def _try(task: Task, plan: Plan, conversions: Sequence[Conversion], namer: Names) -> None:
    """Raise ``UnsupportedError`` where a plan does not work, before anything is converted."""
    inputs = list(task.inputs)
    for conversion in conversions:
        value = conversion.op.result
        inputs[conversion.number] = declare_levels(
            namer.fresh(value.name), value.type, IndexWidths()
        )
    destination = task.destination
    if task.updates:
        copy = inputs[-1]
        assert isinstance(copy, SparseBuffer)
        destination = copy
    _lowered(replace(task, inputs=tuple(inputs), destination=destination), plan, namer)


def _written_back(task: Task, copy: Value, buffer: Buffer, namer: Names) -> Sparsified:
    """Give the entries of an updated sparse tensor the values that a copy of it has now.

    The tensor is walked as it is stored and the copy is searched, so nothing is converted.
    """
    init, rank = task.op.init, copy.type.rank
    back = Generic(
        task.op.result,
        (copy,),
        init,
        (identity_map(rank),) * 2,
        (IteratorType.PARALLEL,) * rank,
        init.type.shape,
        Select(Stored(1), Arg(0), Arg(1)),
        task.op.location,
    )
    walked = _with_destination_as_input(back)
    again = replace(task, op=walked, inputs=(buffer, task.destination))
    reasons: dict[str, UnsupportedError] = {}
    for plan in plans_of(again):
        if plan.convert:
            break
        try:
            return _lowered(again, plan, namer)
        except UnsupportedError as error:
            reasons.setdefault(error.what, error)
    raise _refusal(walked, list(reasons.values()))


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


def _facts(kernel: Kernel, plan: Plan, sink: Sink) -> tuple[Fact, ...]:
    order = plan.order
    name = kernel.op.result.name
    names = [kernel.space.loops[loop].name for loop in order.loops]
    text = ", ".join(names) if names else "no loops"
    located = [kernel.op.inputs[operand].name for operand in sorted(order.located)]
    if located:
        text += f"; {', '.join(located)} searched, stored in another order"
    if plan.sampler is not None:
        text += f"; {kernel.op.inputs[plan.sampler].name} searched, row by row"
    return (
        Fact(FactKind.LOOP_ORDER, name, text),
        Fact(FactKind.STORAGE, name, sink.storage),
    )


def _loop_facts(kernel: Kernel, statements: Stmts) -> Iterator[Fact]:
    """Tell what each loop runs over, in the names of the operation: an index, or a level."""
    result = kernel.op.result.name
    over = {loop.name: f"{loop.name} of %{result}" for loop in kernel.space.loops}
    for operand, value in enumerate(kernel.op.inputs):
        if isinstance(kernel.inputs[operand], SparseBuffer):
            for level in range(len(kernel.space.inputs[operand].levels)):
                name = kernel.iterator(operand, level).position_name
                over[name] = f"level {level} of %{value.name}"
    for stmt in all_statements(statements):
        if isinstance(stmt, loops.For):
            base, _, number = stmt.var.name.rpartition("_")
            known = over.get(base if number.isdigit() and base in over else stmt.var.name)
            if known is not None:
                yield Fact(FactKind.LOOP, stmt.var.name, known)


def _lattices(kernel: Kernel, nest: LoopNest) -> str:
    names = [value.name for value in kernel.op.inputs]
    lines: list[str] = []
    for loop, lattice in nest.lattices:
        points = lattice_text(lattice, names).splitlines() or ["nothing"]
        lines.append(f"{kernel.space.loops[loop].name}: {', '.join(points)}")
    return "\n".join(lines)
