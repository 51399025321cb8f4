"""Read-after-write conflicts: would a read see a write that it should not see?

In go a ``Flow``, the alias sets and the in-place decisions taken so far; out come the conflicts
that one more in-place use would make. A conflict names the read, the write that changes what it
reads, and the definition that it should have read. The rules follow MLIR's One-Shot analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from sparsejit.affine import AffineExpr, Constant, add, as_linear, dims_of, mul
from sparsejit.ir import tensor
from sparsejit.sparsify_and_bufferize._alias_sets import DisjointSets
from sparsejit.sparsify_and_bufferize._flow import Alias, Flow, Operand, Use

__all__ = [
    "Facts",
    "RawConflict",
    "conflicts_of",
    "conflicts_within",
    "facts_of",
    "is_equivalent",
]


@dataclass(frozen=True, slots=True, order=True)
class RawConflict:
    """``read`` should see the contents of ``definition`` (a value) but ``write`` changed them."""

    read: Use
    write: Use
    definition: str


def is_equivalent(alias: Alias, same: Callable[[str, str], bool]) -> bool:
    """Whether the aliasing value is the very buffer, given which values are the same buffer."""
    return not alias.part and (alias.carried is None or same(*alias.carried))


def _identical(one: str, other: str) -> bool:
    """Equivalence while decisions are still taken: a value is only itself."""
    return one == other


@dataclass(frozen=True, slots=True)
class Facts:
    """What no decision changes: the definitions that each value shows, and which uses read.

    ``readers`` read elements themselves or hand their buffer on, without writing, to a value that
    is read. ``read_values`` are read by some use of theirs, or through such an alias.
    """

    flow: Flow
    definitions: Mapping[str, tuple[str, ...]]
    reads: frozenset[Use]
    readers: frozenset[Use]
    read_values: frozenset[str]


def facts_of(flow: Flow) -> Facts:
    """Return the facts about ``flow``."""
    read_values = frozenset(name for name in flow.sites if _is_value_read(flow, name))
    reads = frozenset(use for use in flow.all_uses() if _reads(flow.operand(use), read_values))
    readers = frozenset(
        use for use in flow.all_uses() if use in reads or _hands_on(flow.operand(use), read_values)
    )
    definitions = {name: _definitions_of(flow, name) for name in flow.sites}
    return Facts(flow, definitions, reads, readers, read_values)


def _reads(operand: Operand, read_values: Collection[str]) -> bool:
    return operand.reads or operand.reads_through in read_values


def _hands_on(operand: Operand, read_values: Collection[str]) -> bool:
    alias = operand.alias
    return not operand.writes and alias is not None and alias.value in read_values


def _is_value_read(flow: Flow, value: str) -> bool:
    """Whether any use reads the elements of ``value``, also through aliases that do not write."""
    waiting, seen = [value], {value}
    while waiting:
        for use in flow.uses[waiting.pop()]:
            operand = flow.operand(use)
            if operand.reads:
                return True
            onward = [] if operand.reads_through is None else [operand.reads_through]
            if not operand.writes and operand.alias is not None:
                onward.append(operand.alias.value)
            waiting.extend(name for name in onward if name not in seen)
            seen.update(onward)
    return False


def _defines(flow: Flow, value: str) -> bool:
    """Whether ``value`` has contents of its own, rather than those of an operand."""
    site = flow.sites[value]
    if site.kind == "argument":
        return True
    op = flow.ops[site.op]
    aliasing = flow.aliasing_operands(value)
    if not aliasing:
        return not op.undefined
    if any(flow.operand(use).writes for use, _ in aliasing):
        return True
    return any(
        _is_written_inside(flow, flow.operand(use).value.name, site.op)
        for use, alias in aliasing
        if alias.maybe
    )


def _is_written_inside(flow: Flow, yielded: str, around: int) -> bool:
    """Whether contents that a branch yields come from an operation inside ``around``."""

    def accept(name: str) -> bool:
        site = flow.sites[name]
        inside = any(block.op == around for block in site.block)
        return inside and _defines(flow, name)

    return bool(_walk_back(flow, yielded, accept, leaves=False))


def _definitions_of(flow: Flow, value: str) -> tuple[str, ...]:
    """Return the values whose contents a read of ``value`` sees; none if they are undefined."""
    return _walk_back(flow, value, lambda found: _defines(flow, found), leaves=False)


def _walk_back(
    flow: Flow,
    value: str,
    accept: Callable[[str], bool],
    *,
    leaves: bool,
    equivalent_only: bool = False,
) -> tuple[str, ...]:
    """Return the first accepted values met from ``value`` through aliasing operands.

    With ``leaves`` the values where the walk ends without having accepted any are returned as
    well. ``equivalent_only`` follows operands that are the same buffer, of the same type.
    """
    found: dict[str, None] = {}
    waiting = [value]
    seen: set[str] = set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if accept(current):
            found[current] = None
            continue
        aliasing = flow.aliasing_operands(current)
        if not aliasing and leaves:
            found[current] = None
        for use, alias in aliasing:
            operand = flow.operand(use)
            same_type = operand.value.type == flow.sites[current].value.type
            if equivalent_only and not (is_equivalent(alias, _identical) and same_type):
                if leaves:
                    found[current] = None
            else:
                waiting.append(operand.value.name)
    return tuple(found)


def conflicts_of(
    facts: Facts, aliases: DisjointSets, in_place: Collection[Use], use: Use
) -> tuple[RawConflict, ...]:
    """Return the conflicts that ``use`` would make if it were in place as well.

    It would make one set of two alias sets, and add its own write. What was decided before makes
    no conflict, so only reads of one set and writes of the other are looked at.
    """
    operand, flow = facts.flow.operand(use), facts.flow
    groups = [aliases.members(operand.value.name)]
    if operand.alias is not None and not aliases.together(operand.value.name, operand.alias.value):
        groups.append(aliases.members(operand.alias.value))
    read_by = [
        [u for name in group for u in flow.uses[name] if u in facts.readers] for group in groups
    ]
    pairs = [(read, use) for reads in read_by for read in reads] if operand.writes else []
    if len(groups) == 2:
        for reads, others in zip(read_by, reversed(groups), strict=True):
            writes = _in_place_writes(flow, others, in_place)
            pairs += [(read, write) for read in reads for write in writes]
    return _conflicts(facts, pairs)


def conflicts_within(
    facts: Facts, aliases: DisjointSets, in_place: Collection[Use], use: Use
) -> tuple[RawConflict, ...]:
    """Return the conflicts that decisions so far make in the buffers of ``use`` and its alias."""
    operand, flow = facts.flow.operand(use), facts.flow
    roots = [operand.value.name] + ([] if operand.alias is None else [operand.alias.value])
    names = tuple(dict.fromkeys(name for root in roots for name in aliases.members(root)))
    reads = [found for name in names for found in flow.uses[name] if found in facts.readers]
    writes = _in_place_writes(flow, names, in_place)
    return _conflicts(facts, [(read, write) for read in reads for write in writes])


def _in_place_writes(flow: Flow, names: Iterable[str], in_place: Collection[Use]) -> list[Use]:
    uses = (use for name in names for use in flow.uses[name])
    return [use for use in uses if use in in_place and flow.operand(use).writes]


def _conflicts(facts: Facts, pairs: Iterable[tuple[Use, Use]]) -> tuple[RawConflict, ...]:
    found = {
        RawConflict(read, write, definition)
        for read, write in pairs
        for definition in _changed_definitions(facts, read, write)
    }
    return tuple(sorted(found))


def _changed_definitions(facts: Facts, read: Use, write: Use) -> list[str]:
    """The definitions of ``read`` that ``write`` overwrites before it."""
    flow = facts.flow
    definitions = facts.definitions[flow.operand(read).value.name]
    changed = [name for name in definitions if not _is_redefined(flow, write, name)]
    if not changed:
        return []
    if _can_use_order(flow, read, write, definitions) and (
        _happens_before(flow, read.op, write.op)
        or read == write
        or _is_elementwise(flow, read, write)
        or _never_both_run(flow, read.op, write.op)
    ):
        return []
    return [] if _are_matching_subsets(flow, read, write) else changed


def _is_redefined(flow: Flow, write: Use, definition: str) -> bool:
    """Whether the definition comes after the write, or is the write itself."""
    site = flow.sites[definition]
    path = flow.ops[write.op].path
    if site.kind == "argument":
        if path[: len(site.block)] != site.block:
            return True
    elif _happens_before(flow, write.op, site.op) or any(block.op == site.op for block in path):
        return True
    alias = flow.operand(write).alias
    return alias is not None and alias.value == definition


def _happens_before(flow: Flow, first: int, second: int) -> bool:
    """Whether ``first``, or an operation around it, comes before ``second`` in one block."""
    path = flow.ops[second].path
    for candidate in (first, *(block.op for block in reversed(flow.ops[first].path))):
        if any(block.op == candidate for block in path):
            return False
        depth = len(flow.ops[candidate].path)
        if flow.ops[candidate].path == path[:depth]:
            beside = second if len(path) == depth else path[depth].op
            if candidate < beside:
                return True
    return False


def _never_both_run(flow: Flow, one: int, other: int) -> bool:
    """Whether two operations are in different branches of the innermost operation around both."""
    for ours, others in zip(flow.ops[one].path, flow.ops[other].path, strict=False):
        if ours != others:
            return ours.op == others.op and flow.ops[ours.op].exclusive
    return False


def _can_use_order(flow: Flow, read: Use, write: Use, definitions: tuple[str, ...]) -> bool:
    """Whether program order can rule a conflict out: no loop runs both without the definition."""
    loops = [block for block in flow.ops[read.op].path if flow.ops[block.op].repetitive]
    around = {write.op, *(block.op for block in flow.ops[write.op].path)}
    for name in definitions:
        inner = [block for block in loops if block not in flow.sites[name].block]
        if inner and inner[0].op in around:
            return False
    return True


def _is_elementwise(flow: Flow, read: Use, write: Use) -> bool:
    """Whether one operation reads every element before it writes the same element."""
    if read.op != write.op:
        return False
    identity = flow.ops[read.op].identity
    if not (identity and identity[read.operand] and identity[write.operand]):
        return False
    one, other = flow.operand(read).value.name, flow.operand(write).value.name
    return _leads_to(flow, one, other) or _leads_to(flow, other, one)


def _leads_to(flow: Flow, start: str, goal: str) -> bool:
    """Whether ``start`` is ``goal``, changed as a whole any number of times."""
    return bool(
        _walk_back(flow, start, lambda found: found == goal, leaves=False, equivalent_only=True)
    )


# ---------------------------------------------------------------- slices


def _are_matching_subsets(flow: Flow, read: Use, write: Use) -> bool:
    """Whether a slice is taken out, changed and put back, so that nothing else is touched."""
    reader, writer = flow.ops[read.op], flow.ops[write.op]
    if _inserts(reader.source):
        if read.operand == 1 and _comes_from_subset(flow, write, reader.source):
            return True
        if read.operand == 0 and write == Use(read.op, 1):
            return _comes_from_subset(flow, read, reader.source)
    if _inserts(writer.source) and write.operand == 1:
        source = Use(write.op, 0)
        return flow.operand(read).value == flow.operand(source).value and _comes_from_subset(
            flow, source, writer.source
        )
    return False


def _inserts(op: tensor.Op | None) -> bool:
    return isinstance(op, tensor.InsertSlice | tensor.Materialize)


def _comes_from_subset(flow: Flow, use: Use, insertion: tensor.Op | None) -> bool:
    """Whether the value of ``use`` goes back, on all ways, to the part that ``insertion`` sets."""

    def matches(name: str) -> bool:
        site = flow.sites[name]
        if site.kind == "argument":
            return False
        match insertion, flow.ops[site.op].source:
            case tensor.Materialize(_, _, dest), _:
                return dest.name == name
            case tensor.InsertSlice() as put, tensor.ExtractSlice() as got:
                return put.dest == got.source and _same_slice(flow, put, got)
            case _:
                return False

    origins = _walk_back(flow, flow.operand(use).value.name, matches, leaves=True)
    return all(matches(name) for name in origins)


def _same_slice(flow: Flow, one: tensor.InsertSlice, other: tensor.ExtractSlice) -> bool:
    """Whether two slices name the same elements, as far as linear arithmetic can tell.

    As upstream, nothing is said of places in a loop that never runs.
    """
    places = (*one.offsets, *one.sizes, *other.offsets, *other.sizes)
    if any(dims_of(place) & flow.idle_counters for place in places):
        return False
    ours, others = (*one.offsets, *one.sizes), (*other.offsets, *other.sizes)
    return one.strides == other.strides and all(map(_is_equal, ours, others))


def _is_equal(left: AffineExpr, right: AffineExpr) -> bool:
    return left == right or as_linear(add(left, mul(Constant(-1), right))) == ({}, 0)
