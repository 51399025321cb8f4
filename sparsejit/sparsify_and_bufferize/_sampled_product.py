"""Sampled products: a dense sum of products is computed where a sparse operand asks for it only.

In: a function. Out: the function with sampled products fused, or None. ``A @ B`` in ``S * (A @ B)``
is summed at the entries of ``S``, and then the entries, which both have, are multiplied; it is
never formed. Where nothing is done to the sum, as in ``where_stored(S, A @ B)``, or it is added to
what ``S`` stores, that is one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, Dim, substitute
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.contraction import is_zero
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.fold import zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Const,
    ScalarExpr,
    Select,
    Stored,
    args_of,
    map_leaves,
)
from sparsejit.ir.simplify import Known, simplify_absence
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IteratorType, TensorType
from sparsejit.sparsify_and_bufferize._rewriting import (
    Rewritten,
    Setting,
    is_elementwise,
    renumbering,
    replaced_in_blocks,
    without_unused,
)

__all__ = ["fuse_sampled_product"]

_MOST_CONSUMERS = 4
"""A sum that is sampled more often is formed."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """``consumer`` reads operand ``place``, the sum ``producer``, where ``sampler`` stores only.

    ``sampler`` is the number of an operand: an input, or the destination whose entries change.
    """

    consumer: Generic
    place: int
    producer: Generic
    sampler: int


def fuse_sampled_product(func: TensorFunc, fresh: Callable[[], str]) -> Rewritten | None:
    """Fuse sampled products, one into a consumer, and say so; None where there is none."""
    setting = Setting(func)
    made: dict[str, tuple[Op, ...]] = {}
    facts: list[Fact] = []
    gone: list[Value] = []
    for op in setting.generics():
        sample = _sample_of(setting, op)
        if sample is None or sample.producer.result.name in made:
            continue
        name = sample.producer.result.name
        text = f"%{name} is summed at the stored entries only (sampled product); it is never formed"
        is_alone = _is_sum_alone(setting, sample)
        made[op.result.name] = (_fuse(sample),) if is_alone else _sampled_before(sample, fresh)
        facts.append(Fact(FactKind.REWRITE, op.result.name, text))
        gone.append(sample.producer.result)
    if not made:
        return None
    return without_unused(replaced_in_blocks(func, made), gone), tuple(facts)


# ---------------------------------------------------------------- recognizing


def _sample_of(setting: Setting, consumer: Generic) -> _Sample | None:
    if not _sparse_inputs(consumer) and consumer.init.type.format.is_all_full:
        return None
    for place, value in enumerate(consumer.inputs):
        made = setting.made.get(value.name)
        if not isinstance(made, Generic) or not _is_sum_from_zero(setting, made):
            continue
        if not made.init.type.is_dense and not _asks_for_entries(consumer, place):
            continue  # a product of sparse tensors: what is cheaper is decided by counts
        sampler = _sampler(setting, consumer, place)
        if sampler is None or setting.producer(consumer, value) is None:
            continue
        others = [user for user in setting.uses[value.name] if user is not consumer]
        if len(others) >= _MOST_CONSUMERS or consumer.inputs.count(value) > 1:
            continue
        if all(_samples_too(setting, user, value) for user in others):
            return _Sample(consumer, place, made, sampler)
    return None


def _samples_too(setting: Setting, user: object, value: Value) -> bool:
    """Whether another user of the sum samples it as well, so that it need not be formed."""
    if not isinstance(user, Generic) or user.inputs.count(value) != 1 or user.init == value:
        return False
    alone = _sampler(setting, user, user.inputs.index(value)) is not None
    return alone and setting.producer(user, value) is not None


def _is_sum_from_zero(setting: Setting, op: Generic) -> bool:
    """Whether ``op`` sums into a fresh tensor of zeros."""
    out = len(op.inputs)
    match op.body:
        case Binary(BinaryOp.ADD, Arg(index), term):
            plain = index == out and out not in args_of(term) and not is_elementwise(op)
            permuted = op.indexing_maps[-1].is_projected_permutation
            return plain and permuted and is_zero(op.init, setting.made)
        case _:
            return False


def _asks_for_entries(consumer: Generic, place: int) -> bool:
    """Whether the body reads operand ``place`` at another one's entries alone, as such."""
    match consumer.body:
        case Select(Stored(index), then, _):
            return index != place and Stored(place) not in _leaves(then)
        case _:
            return False


def _leaves(body: ScalarExpr) -> list[ScalarExpr]:
    found: list[ScalarExpr] = []

    def note(leaf: ScalarExpr) -> ScalarExpr:
        found.append(leaf)
        return leaf

    map_leaves(body, note)
    return found


def _sparse_inputs(op: Generic) -> list[int]:
    """Return the inputs that may store nothing somewhere."""
    return [k for k, value in enumerate(op.inputs) if not value.type.format.is_all_full]


def _sampler(setting: Setting, consumer: Generic, place: int) -> int | None:
    """Return the sparse operand without whose entry operand ``place`` is not read."""
    read = consumer.indexing_maps[place]
    if not read.is_projected_permutation:
        return None
    operands = (*consumer.inputs, consumer.init)
    dtypes = [value.type.dtype for value in operands]
    sparse = [k for k in _sparse_inputs(consumer) if k != place]
    if _updates_entries(setting, consumer):
        sparse.append(len(consumer.inputs))
    for k in sparse:
        index_map = consumer.indexing_maps[k]
        if not index_map.is_projected_permutation or not set(index_map.results) <= set(
            read.results
        ):
            continue
        alone = simplify_absence(consumer.body, dtypes, {k: operands[k].type.fill})
        if not isinstance(alone, Known) or place not in args_of(alone.expr):
            return k
    return None


def _updates_entries(setting: Setting, consumer: Generic) -> bool:
    """Whether the consumer changes entries of a sparse tensor that has some, in place."""
    sparse = not consumer.init.type.format.is_all_full
    return sparse and not isinstance(setting.made.get(consumer.init.name), Empty)


# ---------------------------------------------------------------- nothing but the sum


def _is_sum_alone(setting: Setting, sample: _Sample) -> bool:
    """Whether the consumer is the sum at some entries, or adds it to entries, and no more.

    What is done to a sum is done once, to the whole of it: not to its terms, which a factor that
    is infinite, or no term at all, would tell apart.
    """
    consumer = sample.consumer
    if _updates_entries(setting, consumer):
        added = _added(consumer)
        return added is not None and _guards(added.rhs, sample.place) is not None
    if consumer.init.type.is_dense or consumer.init.type.fill.value != 0:
        return False
    fresh = isinstance(setting.made.get(consumer.init.name), Empty)
    guards = _guards(consumer.body, sample.place)
    if not fresh or not is_elementwise(consumer) or not guards:
        return False
    return len(guards) == 1 or not _sparse_inputs(sample.producer)


def _added(consumer: Generic) -> Binary | None:
    """Return what an in-place update adds to (or subtracts from) the entries, all else left."""
    out = len(consumer.inputs)
    match consumer.body:
        case Select(Stored(index), Binary(BinaryOp.ADD | BinaryOp.SUB) as added, Arg(kept)):
            plain = index == kept == out and added.lhs == Arg(out)
            alone = out not in args_of(added.rhs) and is_elementwise(consumer)
            return added if plain and alone else None
        case _:
            return None


def _guards(body: ScalarExpr, place: int) -> tuple[Stored, ...] | None:
    """Return where ``body`` is ``Arg(place)``, being 0 elsewhere, innermost first."""
    match body:
        case Arg(index) if index == place:
            return ()
        case Select(Stored(index) as guard, inside, Const(value)) if value == 0 and index != place:
            guards = _guards(inside, place)
            return None if guards is None else (*guards, guard)
        case _:
            return None


def _fuse(sample: _Sample) -> Generic:
    """Return the consumer as a sum over the producer's terms."""
    consumer, place, producer = sample.consumer, sample.place, sample.producer
    kept = [k for k in range(len(consumer.inputs)) if k != place]
    inputs = (*(consumer.inputs[k] for k in kept), *producer.inputs)
    loops = _loops_of_producer(sample)
    reductions = sorted(d for d, expr in loops.items() if expr.index >= len(consumer.extents))
    count = len(consumer.extents) + len(reductions)
    maps = [AffineMap(count, consumer.indexing_maps[k].results) for k in kept]
    maps += _producer_maps(producer, loops, count)
    maps.append(AffineMap(count, consumer.indexing_maps[-1].results))
    return Generic(
        consumer.result,
        inputs,
        consumer.init,
        tuple(maps),
        consumer.iterator_types + (IteratorType.REDUCTION,) * len(reductions),
        consumer.extents + tuple(producer.extents[d] for d in reductions),
        _fused_body(sample, kept, loops, len(inputs)),
        consumer.location,
    )


def _producer_maps(producer: Generic, loops: dict[int, Dim], count: int) -> list[AffineMap]:
    over: dict[int, AffineExpr] = dict(loops)
    return [
        AffineMap(count, tuple(substitute(expr, over) for expr in index_map.results))
        for index_map in producer.indexing_maps[:-1]
    ]


def _loops_of_producer(sample: _Sample) -> dict[int, Dim]:
    """Return, for each loop of the producer, its loop in the fused operation."""
    consumer, producer = sample.consumer, sample.producer
    read = consumer.indexing_maps[sample.place].results
    return _numbered_loops(producer, list(read), len(consumer.extents))


def _numbered_loops(producer: Generic, read: list[AffineExpr], following: int) -> dict[int, Dim]:
    """Return loops for the producer's: those that it writes by as read, the others after them."""
    found: dict[int, Dim] = {}
    for written, index in zip(producer.indexing_maps[-1].results, read, strict=True):
        assert isinstance(written, Dim)
        assert isinstance(index, Dim)
        found[written.index] = index
    for loop in range(len(producer.extents)):
        if loop not in found:
            found[loop] = Dim(following)
            following += 1
    return found


def _fused_body(sample: _Sample, kept: list[int], loops: dict[int, Dim], out: int) -> ScalarExpr:
    added = _added(sample.consumer)
    within = _guards(sample.consumer.body if added is None else added.rhs, sample.place)
    assert within is not None
    shifted = {number: len(kept) + number for number in range(len(sample.producer.inputs))}
    of_consumer = renumbering({number: place for place, number in enumerate(kept)}, {})
    guards: list[ScalarExpr] = [] if added is None else [Stored(out)]
    guards += [map_leaves(guard, of_consumer) for guard in within]
    combine = BinaryOp.ADD if added is None else added.op
    return _guarded(_term(sample.producer, shifted, loops), guards, out, combine)


def _term(producer: Generic, operands: dict[int, int], loops: dict[int, Dim]) -> ScalarExpr:
    assert isinstance(producer.body, Binary)
    numbers = {loop: expr.index for loop, expr in loops.items()}
    return map_leaves(producer.body.rhs, renumbering(operands, numbers))


def _guarded(
    term: ScalarExpr, guards: list[ScalarExpr], out: int, combine: BinaryOp = BinaryOp.ADD
) -> ScalarExpr:
    body: ScalarExpr = Binary(combine, Arg(out), term)
    for guard in guards:
        body = Select(guard, body, Arg(out))
    return body


# ---------------------------------------------------------------- sampled before


def _sampled_before(sample: _Sample, fresh: Callable[[], str]) -> tuple[Empty | Generic, ...]:
    """Return the sum in the entries of the sampler, and the consumer that reads it there."""
    consumer, place, producer = sample.consumer, sample.place, sample.producer
    sampler = (*consumer.inputs, consumer.init)[sample.sampler]
    read = consumer.indexing_maps[place].results
    dims = {expr: d for d, expr in enumerate(read)}
    at = [dims[expr] for expr in consumer.indexing_maps[sample.sampler].results]
    kind = producer.result.type
    format = _sampled_format(sampler.type.format, at, kind.rank)
    entries = TensorType(kind.shape, kind.dtype, format, zero_of(kind.dtype))
    empty, sampled = Value(fresh(), entries), Value(fresh(), entries)
    loops = _numbered_loops(producer, [Dim(d) for d in range(kind.rank)], kind.rank)
    order = sorted(loops, key=lambda loop: loops[loop].index)
    count = len(loops)
    maps = [AffineMap(count, tuple(Dim(d) for d in at)), *_producer_maps(producer, loops, count)]
    maps.append(AffineMap(count, tuple(Dim(d) for d in range(kind.rank))))
    inputs = (sampler, *producer.inputs)
    shifted = {number: 1 + number for number in range(len(producer.inputs))}
    body = _guarded(_term(producer, shifted, loops), [Stored(0)], len(inputs))
    total = Generic(
        sampled,
        inputs,
        empty,
        tuple(maps),
        tuple(producer.iterator_types[loop] for loop in order),
        tuple(producer.extents[loop] for loop in order),
        body,
        producer.location,
    )
    numbers = (*consumer.inputs[:place], sampled, *consumer.inputs[place + 1 :])
    return Empty(empty, producer.location), total, replace(consumer, inputs=numbers)


def _sampled_format(fmt: Format, at: list[int], rank: int) -> Format:
    """Return the sampler's format over the dimensions of the sum, dense beyond the sampler's."""
    moved: dict[int, AffineExpr] = {dim: Dim(d) for dim, d in enumerate(at)}
    levels = [Level(substitute(level.expr, moved), level.type) for level in fmt.levels]
    levels += [Level(Dim(d), LevelType(LevelKind.DENSE)) for d in range(rank) if d not in at]
    return Format.of(rank, tuple(levels))
