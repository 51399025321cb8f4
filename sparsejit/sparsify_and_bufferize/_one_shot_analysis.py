"""One-Shot analysis: which operand may be written in place, and where a copy is unavoidable.

In goes a ``TensorFunc``, out come ``Decisions``: for every tensor operand whether the operation may
work in that operand's buffer, and if not, the read-after-write conflict (or the read-only value)
that forbids it. Pure: the function is not touched. The method is MLIR's: a greedy walk from the
last operation to the first, over alias sets that merge with each in-place decision.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError
from sparsejit.ir.tensor import For, TensorFunc, While
from sparsejit.sparsify_and_bufferize._alias_sets import DisjointSets
from sparsejit.sparsify_and_bufferize._flow import BlockOf, Flow, FlowOp, Use
from sparsejit.sparsify_and_bufferize._op_effects import flow_of
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._raw_conflicts import (
    Facts,
    RawConflict,
    conflicts_of,
    conflicts_within,
    facts_of,
    is_equivalent,
)

__all__ = ["Decision", "Decisions", "analyze", "decisions_text", "reason_text"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one use. ``conflicts`` are all that an in-place use would have made.

    ``read_only`` are the values that must not be written but would be. ``omit_copy``: if the use
    is out of place, a new allocation does, since nobody reads what was there.
    """

    use: Use
    in_place: bool
    conflicts: tuple[RawConflict, ...] = ()
    read_only: tuple[str, ...] = ()
    omit_copy: bool = False


@dataclass(frozen=True, slots=True)
class Decisions:
    """All verdicts, in the order in which they were taken, and the sets that followed.

    ``equivalent_params`` has, for each result of the function, the number of the parameter in
    whose buffer it lives, or None. ``equivalent`` and ``aliases`` list the sets of value names.
    """

    flow: Flow
    taken: tuple[Decision, ...]
    by_use: Mapping[Use, Decision]
    equivalent: tuple[tuple[str, ...], ...]
    aliases: tuple[tuple[str, ...], ...]
    equivalent_params: tuple[int | None, ...]

    def are_equivalent(self, one: str, other: str) -> bool:
        """Whether two values are the same buffer."""
        return one == other or any(one in names and other in names for names in self.equivalent)


_DEFAULT_OPTIONS = StageOptions()


def analyze(
    func: TensorFunc, options: StageOptions = _DEFAULT_OPTIONS, *, as_upstream: bool = False
) -> Decisions:
    """Return the in-place decisions for ``func``.

    Raises ``UnsupportedError`` when no copy can help: an assigned parameter's old value is needed
    after its final value was materialized, or the destination is read only; and when a loop yields
    a new buffer although ``allow_return_allocs`` is off.

    ``as_upstream`` takes MLIR's rules to the letter, for comparison. Ours differ in two places: a
    loop always returns the buffer that it was given, and a program is refused only where no copy
    helps, not where an in-place use that nobody insists on would be wrong.
    """
    flow = flow_of(func, function_boundaries=options.function_boundaries, as_upstream=as_upstream)
    facts, aliases = facts_of(flow), DisjointSets(flow.sites)
    in_place: set[Use] = set()
    for use in flow.all_uses():
        if flow.operand(use).must:
            _merge(flow, aliases, in_place, use)
    for use in flow.all_uses():
        if as_upstream or use in in_place:
            _refuse_unavoidable(facts, aliases, in_place, use)
    taken = []
    for place in _bottom_up(flow.ops):
        for operand in range(len(flow.ops[place].operands)):
            decision = _decide(facts, aliases, in_place, Use(place, operand))
            taken.append(decision)
            if decision.in_place:
                _merge(flow, aliases, in_place, decision.use)
    equivalent = _equivalence(flow, in_place)
    if not options.allow_return_allocs:
        _refuse_new_buffers(flow, equivalent)
    return Decisions(
        flow=flow,
        taken=tuple(taken),
        by_use={decision.use: decision for decision in taken},
        equivalent=equivalent.sets(),
        aliases=aliases.sets(),
        equivalent_params=_equivalent_params(func, equivalent, options),
    )


def _merge(flow: Flow, aliases: DisjointSets, in_place: set[Use], use: Use) -> None:
    in_place.add(use)
    operand = flow.operand(use)
    if operand.alias is not None:
        aliases.merge(operand.value.name, operand.alias.value)


def _bottom_up(ops: tuple[FlowOp, ...]) -> list[int]:
    """The reverse of the order in which every operation follows those inside it."""
    inside: dict[tuple[BlockOf, ...], list[int]] = {}
    for place, op in enumerate(ops):
        inside.setdefault(op.path, []).append(place)
    last_first = []
    waiting = list(inside.get((), ()))
    while waiting:
        place = waiting.pop()
        last_first.append(place)
        for block in range(len(ops[place].args)):
            waiting.extend(inside.get((*ops[place].path, BlockOf(place, block)), ()))
    return last_first


def _decide(facts: Facts, aliases: DisjointSets, in_place: set[Use], use: Use) -> Decision:
    """One-Shot's question: can this use be in place, given what was decided before?"""
    flow = facts.flow
    omit_copy = _can_omit_copy(facts, use)
    read_only = _reached_read_only(flow, aliases, in_place, use, add_write=True)
    if read_only:
        return Decision(use, in_place=False, read_only=read_only, omit_copy=omit_copy)
    conflicts = conflicts_of(facts, aliases, in_place, use)
    if conflicts and not flow.operand(use).must:
        return Decision(use, in_place=False, conflicts=conflicts, omit_copy=omit_copy)
    return Decision(use, in_place=True)


def _reached_read_only(
    flow: Flow, aliases: DisjointSets, in_place: set[Use], use: Use, *, add_write: bool
) -> tuple[str, ...]:
    """The values that must not be written but would be, if ``use`` were in place."""
    operand = flow.operand(use)
    roots = [operand.value.name] + ([] if operand.alias is None else [operand.alias.value])
    names = [name for root in roots for name in aliases.members(root)]
    is_written = (add_write and operand.writes) or any(
        found in in_place and flow.operand(found).writes
        for name in names
        for found in flow.uses[name]
    )
    if not is_written:
        return ()
    return tuple(dict.fromkeys(name for name in names if name in flow.read_only))


def _can_omit_copy(facts: Facts, use: Use) -> bool:
    """Whether an out-of-place use needs no copy: what was there is undefined or never read."""
    operand, alias = facts.flow.operand(use), facts.flow.operand(use).alias
    if not facts.definitions[operand.value.name]:
        return True
    if use in facts.reads:
        return False
    return operand.writes or alias is None or alias.value not in facts.read_values


def _refuse_unavoidable(facts: Facts, aliases: DisjointSets, in_place: set[Use], use: Use) -> None:
    flow = facts.flow
    conflicts = conflicts_within(facts, aliases, in_place, use)
    if conflicts:
        raise UnsupportedError(
            "the old value of an assigned argument is needed after its new value was written",
            hint="copy the argument before assigning to it",
            reasons=(_conflict_text(flow, conflicts[0]),),
        )
    if use in in_place:
        read_only = _reached_read_only(flow, aliases, in_place, use, add_write=False)
        if read_only:
            raise UnsupportedError(
                f"%{read_only[0]} is written but is not one of the assigned arguments"
            )


def _equivalence(flow: Flow, in_place: set[Use]) -> DisjointSets:
    """The sets of values that are one buffer, inner operations before those around them."""
    equivalent = DisjointSets(flow.sites)
    for place in reversed(_bottom_up(flow.ops)):
        for result in flow.ops[place].results:
            found = flow.aliasing_operands(result.name)
            sources = [flow.operand(use).value.name for use, _ in found]
            if any(alias.maybe for _, alias in found) and not all(
                equivalent.together(sources[0], other) for other in sources
            ):
                continue
            for (use, alias), source in zip(found, sources, strict=True):
                if use in in_place and is_equivalent(alias, equivalent.together):
                    equivalent.merge(source, result.name)
    return equivalent


def _equivalent_params(
    func: TensorFunc, equivalent: DisjointSets, options: StageOptions
) -> tuple[int | None, ...]:
    if not options.function_boundaries:
        return (None,) * len(func.results)
    numbers = {param.name: number for number, param in enumerate(func.params)}
    return tuple(
        next((numbers[n] for n in equivalent.members(result.name) if n in numbers), None)
        for result in func.results
    )


def _refuse_new_buffers(flow: Flow, equivalent: DisjointSets) -> None:
    for op in flow.ops:
        match op.source:
            case For(args=args, yields=yields) | While(body_args=args, yields=yields):
                pass
            case _:
                continue
        for number, (arg, value) in enumerate(zip(args, yields, strict=True)):
            if not equivalent.together(arg.name, value.name):
                raise UnsupportedError(
                    f"loop {op.label} yields a new buffer for %{arg.name} (value {number})",
                    hint="allow_return_allocs allows it",
                    location=op.source.location,
                )


# ---------------------------------------------------------------- text


def _use_text(flow: Flow, use: Use) -> str:
    """Return a use as ``%0 outs`` or ``return#1``."""
    op, operand = flow.ops[use.op], flow.operand(use)
    if op.upstream in ("func.return", "scf.yield", "scf.condition"):
        return f"{op.label}#{operand.role}"
    return f"{op.label} {operand.role}"


def _definition_text(flow: Flow, name: str) -> str:
    site = flow.sites[name]
    if site.kind == "result":
        return f"%{name}"
    return f"param %{name}" if site.op < 0 else f"loop argument %{name}"


def _conflict_text(flow: Flow, conflict: RawConflict) -> str:
    return (
        f"RaW conflict: read by {_use_text(flow, conflict.read)}, "
        f"conflicting write by {_use_text(flow, conflict.write)}, "
        f"definition {_definition_text(flow, conflict.definition)}"
    )


def reason_text(decisions: Decisions, use: Use) -> str:
    """Return why a use is out of place: its first conflict, or the read-only value."""
    decision = decisions.by_use[use]
    if decision.conflicts:
        return _conflict_text(decisions.flow, decision.conflicts[0])
    return f"%{decision.read_only[0]} is read-only" if decision.read_only else "in place"


def decisions_text(func: TensorFunc, decisions: Decisions) -> str:
    """Return the decisions of every operand that can be written or shared, in program order.

    Operands that are only read are left out: they need no buffer of their own.
    """
    flow = decisions.flow
    lines = [f"decisions @{func.name}"]
    for use in flow.all_uses():
        decision, operand = decisions.by_use[use], flow.operand(use)
        if decision.in_place and (operand.must or not (operand.writes or operand.alias)):
            continue
        place = "in-place" if decision.in_place else "out-of-place"
        lines.append(f"  {_use_text(flow, use)} %{operand.value.name}: {place}")
        if not decision.in_place:
            lines.append(f"    {reason_text(decisions, use)}")
    for number, param in enumerate(decisions.equivalent_params):
        if param is not None:
            lines.append(f"  result {number} lives in param %{func.params[param].name}")
    return "\n".join(lines)
