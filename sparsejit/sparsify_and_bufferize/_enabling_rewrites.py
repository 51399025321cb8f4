"""Enabling rewrites: what must change before the analysis, so that sparsity is not lost.

- *Sampled product*: an elementwise product (or ``where_stored``) of sparse operands with a dense
  sum of products becomes one accumulating operation over the stored entries, by the distributive
  law. ``S * (A @ B)`` never forms ``A @ B``. Source: MLIR's fuse-multiply-over-add.
- *Invariant yield*: filling a fresh sparse tensor with its own fill value is the fresh tensor.

They are the first step of the stage because none of them may run after copy insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sparsejit.affine import AffineExpr, AffineMap, Dim, substitute
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Const,
    Coordinate,
    ScalarExpr,
    Select,
    Stored,
    args_of,
    map_leaves,
)
from sparsejit.ir.simplify import Missing, simplify_absence
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IteratorType
from sparsejit.ir.walk import definitions, replace_values, uses

__all__ = ["rewrite_before_analysis"]


def rewrite_before_analysis(func: TensorFunc) -> tuple[TensorFunc, tuple[Fact, ...]]:
    """Return ``func`` with the enabling rewrites applied until none applies, and what was done."""
    facts: list[Fact] = []
    changed = True
    while changed:
        changed = False
        for step in (_drop_invariant_yield, _fuse_sampled_product):
            made = step(func)
            if made is not None:
                func, fact = made
                facts.append(fact)
                changed = True
    return func, tuple(facts)


Rewritten = tuple[TensorFunc, Fact]


def _drop_invariant_yield(func: TensorFunc) -> Rewritten | None:
    made = definitions(func)
    for op in func.ops:
        match op:
            case Generic(result, (), init, body=Const() as value):
                fresh = isinstance(made.get(init.name), Empty)
                if fresh and not init.type.is_dense and value == init.type.fill:
                    text = "filling a fresh sparse tensor with its fill value was dropped"
                    fact = Fact(FactKind.REWRITE, result.name, text)
                    return _without(func, op, init), fact
            case _:
                pass
    return None


def _without(func: TensorFunc, op: Generic, instead: Value) -> TensorFunc:
    """Return ``func`` without ``op``, its result replaced by another value."""

    def change(value: Value) -> Value:
        return instead if value.name == op.result.name else value

    ops = tuple(replace_values(other, change) for other in func.ops if other is not op)
    return replace(func, ops=ops, results=tuple(change(value) for value in func.results))


# ---------------------------------------------------------------- sampled products


@dataclass(frozen=True, slots=True)
class _Sample:
    """``consumer`` multiplies (or samples) operand ``place``, which ``producer`` sums up."""

    consumer: Generic
    place: int
    producer: Generic


def _fuse_sampled_product(func: TensorFunc) -> Rewritten | None:
    for op in func.ops:
        if not isinstance(op, Generic):
            continue
        sample = _sample_of(func, op)
        if sample is None:
            continue
        fused = _fuse(sample)
        ops = tuple(fused if other is op else other for other in func.ops)
        rest = _without_dead(replace(func, ops=ops), sample.producer)
        name = sample.producer.result.name
        text = f"%{name} is summed at the stored entries only (sampled product); it is never formed"
        return rest, Fact(FactKind.REWRITE, op.result.name, text)
    return None


def _sample_of(func: TensorFunc, consumer: Generic) -> _Sample | None:
    if consumer.init.type.is_dense or consumer.init.type.fill.value != 0:
        return None
    if any(kind is not IteratorType.PARALLEL for kind in consumer.iterator_types):
        return None
    made = definitions(func)
    if not isinstance(made.get(consumer.init.name), Empty):
        return None
    for place, value in enumerate(consumer.inputs):
        producer = made.get(value.name)
        if not isinstance(producer, Generic) or _use_count(func, value) != 1:
            continue
        if _is_sum_from_zero(producer, made) and _samples(consumer, place):
            index_map = consumer.indexing_maps[place]
            keeps = len(_sparse_inputs(consumer)) == 1 or not _sparse_inputs(producer)
            if index_map.is_projected_permutation and keeps:
                return _Sample(consumer, place, producer)
    return None


def _use_count(func: TensorFunc, value: Value) -> int:
    return len(uses(func).get(value.name, ()))


def _is_sum_from_zero(op: Generic, made: dict[str, Op]) -> bool:
    """Whether ``op`` sums products into a fresh dense tensor of zeros."""
    out = len(op.inputs)
    start = made.get(op.init.name)
    match op.body, start:
        case Binary(BinaryOp.ADD, Arg(index), term), Generic(_, (), origin, body=Const(value)):
            fresh = isinstance(made.get(origin.name), Empty) and op.init.type.is_dense
            return index == out and out not in args_of(term) and value == 0 and fresh
        case _:
            return False


def _sparse_inputs(op: Generic) -> list[int]:
    """Return the inputs that may store nothing somewhere."""
    return [k for k, value in enumerate(op.inputs) if not value.type.format.is_all_full]


def _samples(consumer: Generic, place: int) -> bool:
    """Whether the consumer multiplies or samples ``place`` and is nothing without its operands."""
    if _linear(consumer.body, place) is None:
        return False
    sparse = _sparse_inputs(consumer)
    dtypes = tuple(value.type.dtype for value in (*consumer.inputs, consumer.init))
    fills = {k: consumer.inputs[k].type.fill for k in sparse}
    alone = simplify_absence(consumer.body, dtypes, fills)
    return bool(sparse) and isinstance(alone, Missing) and alone.const.value == 0


def _linear(body: ScalarExpr, place: int) -> tuple[ScalarExpr, ...] | None:
    """Return the other factors where ``body`` is a product with ``Arg(place)``, else None.

    ``Select(Stored(s), p, 0)`` counts as the product of ``p`` with an indicator.
    """
    match body:
        case Arg(index) if index == place:
            return ()
        case Binary(BinaryOp.MUL, lhs, rhs):
            for inside, other in ((lhs, rhs), (rhs, lhs)):
                factors = _linear(inside, place)
                if factors is not None and place not in args_of(other):
                    return (*factors, other)
            return None
        case Select(Stored(index), inside, Const(value)) if value == 0 and index != place:
            factors = _linear(inside, place)
            return None if factors is None else (*factors, Stored(index))
        case _:
            return None


def _fuse(sample: _Sample) -> Generic:
    consumer, place, producer = sample.consumer, sample.place, sample.producer
    outer = len(consumer.extents)
    kept = [k for k in range(len(consumer.inputs)) if k != place]
    inputs = (*(consumer.inputs[k] for k in kept), *producer.inputs)
    loops = _loops_of_producer(sample)
    reductions = [d for d, expr in loops.items() if expr.index >= outer]
    count = outer + len(reductions)
    maps = [AffineMap(count, consumer.indexing_maps[k].results) for k in kept]
    for index_map in producer.indexing_maps[:-1]:
        over: dict[int, AffineExpr] = dict(loops)
        results = tuple(substitute(expr, over) for expr in index_map.results)
        maps.append(AffineMap(count, results))
    maps.append(AffineMap(count, consumer.indexing_maps[-1].results))
    return Generic(
        consumer.result,
        inputs,
        consumer.init,
        tuple(maps),
        consumer.iterator_types + (IteratorType.REDUCTION,) * len(reductions),
        consumer.extents + tuple(producer.extents[d] for d in sorted(reductions)),
        _fused_body(sample, kept, loops, len(inputs)),
        consumer.location,
    )


def _loops_of_producer(sample: _Sample) -> dict[int, Dim]:
    """Return, for each loop of the producer, its loop in the fused operation."""
    consumer, producer = sample.consumer, sample.producer
    read = consumer.indexing_maps[sample.place].results
    found: dict[int, Dim] = {}
    for written, index in zip(producer.indexing_maps[-1].results, read, strict=True):
        assert isinstance(written, Dim)
        assert isinstance(index, Dim)
        found[written.index] = index
    following = len(consumer.extents)
    for loop in range(len(producer.extents)):
        if loop not in found:
            found[loop] = Dim(following)
            following += 1
    return found


def _fused_body(sample: _Sample, kept: list[int], loops: dict[int, Dim], out: int) -> ScalarExpr:
    factors = _linear(sample.consumer.body, sample.place)
    assert factors is not None
    assert isinstance(sample.producer.body, Binary)

    shifted = {number: len(kept) + number for number in range(len(sample.producer.inputs))}
    of_producer = _renumbering(shifted, {d: expr.index for d, expr in loops.items()})
    of_consumer = _renumbering({number: place for place, number in enumerate(kept)}, {})
    term = map_leaves(sample.producer.body.rhs, of_producer)
    guards: list[ScalarExpr] = []
    for factor in factors:
        moved = map_leaves(factor, of_consumer)
        if isinstance(moved, Stored):
            guards.append(moved)
        else:
            term = Binary(BinaryOp.MUL, moved, term)
    if _sparse_inputs(sample.producer) and not guards:
        # Where the sum has no terms, its dense form had a zero: the entry stays.
        (sampler,) = _sparse_inputs(sample.consumer)
        guards.append(Stored(kept.index(sampler)))
    body: ScalarExpr = Binary(BinaryOp.ADD, Arg(out), term)
    for guard in guards:
        body = Select(guard, body, Arg(out))
    return body


def _renumbering(
    operands: Mapping[int, int], loops: Mapping[int, int]
) -> Callable[[ScalarExpr], ScalarExpr]:
    """Return the change of leaves that gives operands and loops (where listed) new numbers."""

    def change(leaf: ScalarExpr) -> ScalarExpr:
        match leaf:
            case Arg(index):
                return Arg(operands[index])
            case Stored(index):
                return Stored(operands[index])
            case Coordinate(loop):
                return Coordinate(loops.get(loop, loop))
            case _:
                return leaf

    return change


def _without_dead(func: TensorFunc, producer: Generic) -> TensorFunc:
    """Remove the producer, what filled its destination, and that destination, where unused."""
    made = definitions(func)
    dead: Value | None = producer.result
    ops = func.ops
    while dead is not None and _use_count(replace(func, ops=ops), dead) == 0:
        op = made.get(dead.name)
        ops = tuple(other for other in ops if other is not op)
        dead = op.init if isinstance(op, Generic) else None
    return replace(func, ops=ops)
