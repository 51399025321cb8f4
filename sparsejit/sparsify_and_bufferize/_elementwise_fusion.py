"""Elementwise fusion: a producer that is used once is computed where it is used.

In: a function. Out: the function with producers fused, or None. Only where nothing is computed
twice (each element of the producer is read once) and no sparsity is lost (absence means the same
before and after). The epilogue of a reduction stays an operation of its own, and so does what a
library computes, unless fusion saves an intermediate larger than the result.
"""

from __future__ import annotations

from sparsejit.affine import AffineMap, Dim, substitute
from sparsejit.formats import Format, LevelKind
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.scalar import Arg, Nothing, ScalarExpr, Stored, args_of, map_leaves
from sparsejit.ir.simplify import Missing, simplify_absence
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.sparsify_and_bufferize._library_kernels import match_library_kernel
from sparsejit.sparsify_and_bufferize._library_match import Match
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._rewriting import (
    Rewritten,
    Setting,
    is_elementwise,
    renumbering,
    replaced_in_blocks,
    without_unused,
)

__all__ = ["fuse_elementwise", "kept_apart"]

_LARGEST = 64
"""Fused bodies have at most so many leaves."""

_EXACT = (LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED, LevelKind.SINGLETON)


def fuse_elementwise(func: TensorFunc, options: StageOptions) -> Rewritten | None:
    """Fuse elementwise producers, one into a consumer, and say so; None where there is none."""
    setting = Setting(func)
    made: dict[str, tuple[Op, ...]] = {}
    facts: list[Fact] = []
    gone: list[Value] = []
    for consumer in setting.generics():
        for place, value in enumerate(consumer.inputs):
            producer = None if value.name in made else _fusible(setting, consumer, place)
            if producer is None:
                continue
            fused = _fused(consumer, place, producer)
            if _is_better_apart(consumer, producer, fused, options):
                continue
            made[consumer.result.name] = (fused,)
            gone.append(producer.result)
            text = f"%{value.name} is computed where it is used (elementwise fusion)"
            fact = Fact(FactKind.REWRITE, consumer.result.name, f"{text}; it is never formed")
            facts.append(fact)
            break
    if not made:
        return None
    return without_unused(replaced_in_blocks(func, made), gone), tuple(facts)


def kept_apart(func: TensorFunc, options: StageOptions) -> tuple[Fact, ...]:
    """Return what was not fused because a library computes the consumer, as facts."""
    setting = Setting(func)
    facts: list[Fact] = []
    for consumer in setting.generics():
        for place, value in enumerate(consumer.inputs):
            producer = _fusible(setting, consumer, place)
            if producer is None:
                continue
            fused = _fused(consumer, place, producer)
            if _is_better_apart(consumer, producer, fused, options):
                text = f"%{value.name} stays an operation of its own, so that a library computes"
                facts.append(Fact(FactKind.REWRITE, consumer.result.name, f"{text} this one"))
    return tuple(facts)


def _is_better_apart(
    consumer: Generic, producer: Generic, fused: Generic, options: StageOptions
) -> bool:
    """Whether a library has the consumer but not the fused form, which saves little memory."""
    intermediate, result = producer.result.type, consumer.result.type
    is_larger = intermediate.rank > result.rank
    is_denser = intermediate.is_dense and not result.is_dense
    return (
        not is_larger
        and not is_denser
        and isinstance(match_library_kernel(consumer, options), Match)
        and not isinstance(match_library_kernel(fused, options), Match)
    )


def _fusible(setting: Setting, consumer: Generic, place: int) -> Generic | None:
    value = consumer.inputs[place]
    if len(setting.uses[value.name]) != 1:
        return None
    read = consumer.indexing_maps[place]
    if not read.is_projected_permutation or len(read.results) != len(consumer.extents):
        return None  # an element would be computed for each iteration of the other loops
    producer = setting.producer(consumer, value)
    if producer is None or not is_elementwise(producer) or not producer.inputs:
        return None
    fresh = isinstance(setting.made.get(producer.init.name), Empty)
    if not fresh or not producer.indexing_maps[-1].is_projected_permutation:
        return None
    if len(producer.indexing_maps[-1].results) != len(producer.extents):
        return None
    if len(producer.inputs) in args_of(producer.body):
        return None
    fits = _occurrences(consumer.body, place) == 1 and _keeps_sparsity(consumer, place, producer)
    return producer if fits else None


def _occurrences(body: ScalarExpr, place: int) -> int:
    found = 0

    def note(leaf: ScalarExpr) -> ScalarExpr:
        nonlocal found
        found += leaf == Arg(place)
        found += 2 * (leaf == Stored(place))  # asks for the pattern of what is not formed
        return leaf

    map_leaves(body, note)
    return found


def _keeps_sparsity(consumer: Generic, place: int, producer: Generic) -> bool:
    """Whether what the producer stores is what its body says, so that it need not be stored.

    Its result has its fill where nothing is stored, and stores all its body gives elsewhere; a
    pattern that the body cannot tell (``Nothing``, a dense result of sparse operands) is kept.
    """
    size = 0
    tells = True

    def note(leaf: ScalarExpr) -> ScalarExpr:
        nonlocal size, tells
        size += 1
        tells = tells and not isinstance(leaf, Nothing | Stored)
        return leaf

    map_leaves(producer.body, note)
    map_leaves(consumer.body, lambda leaf: leaf if isinstance(leaf, Stored) else note(leaf))
    kind = producer.result.type
    if size > _LARGEST or not tells or kind.dtype.compute is not kind.dtype:
        return False
    sparse = [k for k, value in enumerate(producer.inputs) if not value.type.format.is_all_full]
    if kind.format.is_all_full:
        return not sparse
    dtypes = [value.type.dtype for value in (*producer.inputs, producer.init)]
    alone = simplify_absence(
        producer.body, dtypes, {k: producer.inputs[k].type.fill for k in sparse}
    )
    if not isinstance(alone, Missing) or not _is_exact(kind.format):
        return False
    if alone.const != kind.fill and alone.const.value != kind.fill.value:
        return False
    layout = kind.format.with_widths(0, 0)
    return all(
        producer.inputs[k].type.format.with_widths(0, 0) == layout
        and producer.indexing_maps[k] == producer.indexing_maps[-1]
        for k in sparse
    )


def _is_exact(fmt: Format) -> bool:
    """Whether a tensor in this format stores just what is put into it: it pads nothing."""
    kinds = [level.type.kind for level in fmt.levels]
    stored = [kind in _EXACT for kind in kinds]
    plain = all(isinstance(level.expr, Dim) for level in fmt.levels)
    first = stored.index(True) if True in stored else len(kinds)
    return plain and all(stored[first:]) and all(k is LevelKind.DENSE for k in kinds[:first])


def _fused(consumer: Generic, place: int, producer: Generic) -> Generic:
    """Return the consumer with the body of the producer in the place of its result."""
    read = consumer.indexing_maps[place].results
    written = producer.indexing_maps[-1].results
    loops = {
        d.index: e.index
        for d, e in zip(written, read, strict=True)
        if isinstance(d, Dim) and isinstance(e, Dim)
    }
    kept = [k for k in range(len(consumer.inputs)) if k != place]
    inputs = (*(consumer.inputs[k] for k in kept), *producer.inputs)
    count = len(consumer.extents)
    moved = {d: Dim(e) for d, e in loops.items()}
    maps = [consumer.indexing_maps[k] for k in kept]
    for index_map in producer.indexing_maps[:-1]:
        maps.append(AffineMap(count, tuple(substitute(e, moved) for e in index_map.results)))
    maps.append(consumer.indexing_maps[-1])
    shifted = {k: len(kept) + k for k in range(len(producer.inputs))}
    inner = map_leaves(producer.body, renumbering(shifted, loops))
    numbers = {k: n for n, k in enumerate(kept)}
    numbers[len(consumer.inputs)] = len(inputs)
    change = renumbering(numbers, {})

    def leaf(expr: ScalarExpr) -> ScalarExpr:
        return inner if expr == Arg(place) else change(expr)

    return Generic(
        consumer.result,
        inputs,
        consumer.init,
        tuple(maps),
        consumer.iterator_types,
        consumer.extents,
        map_leaves(consumer.body, leaf),
        consumer.location,
    )
