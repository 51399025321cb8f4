"""Which order of a product is best, by extents and stored counts.

In: the chains of a function, and ``Estimates`` of its extents and of what its parameters store.
Out: the ``ContractionOrder`` of each chain that is not best as written. Pure: a caller puts the
answer, not the counts, into its cache key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from sparsejit._dataclasses import dataclass
from sparsejit.ir.contraction import Chain, Tree, chains_of
from sparsejit.ir.contraction_cost import Costs, Counts, Estimates, subtrees
from sparsejit.ir.tensor import TensorFunc

__all__ = ["ContractionOrder", "contraction_variant", "variant_cost"]

_MOST_LEAVES = 8
"""Longer products stay as written."""

_MOST_SHARED = 6
"""Up to so many leaves, operations of more than two operands are considered too."""

_MOST_OPERANDS = 4
"""An operation that the user did not write has at most so many."""


@dataclass(frozen=True, slots=True)
class ContractionOrder:
    """``tree`` is the order of the chain whose root defines the value ``result``."""

    result: str
    tree: Tree


def contraction_variant(
    func: TensorFunc, estimates: Estimates | None = None
) -> tuple[ContractionOrder, ...]:
    """Return the orders of the chains of ``func`` that are not best as written.

    Another order of two-operand operations is taken where it costs less; splitting an operation of
    several operands, or joining some, where it costs at most half, so that what gains nothing
    asymptotically (a sampled product, an MTTKRP) stays one operation, or becomes one.
    """
    numbers = (estimates or Estimates.typical(func)).bucketed
    chains = chains_of(func)
    if not chains:
        return ()
    counts = Counts(func, numbers)
    made: list[ContractionOrder] = []
    for chain in chains:
        costs = Costs(chain, counts)
        best = _best_order(costs)
        if best != chain.written:
            made.append(ContractionOrder(chain.root.result.name, best))
        counts.note(chain.root.result, costs.entries(frozenset(range(len(chain.leaves)))))
    return tuple(made)


def variant_cost(
    func: TensorFunc, variant: Sequence[ContractionOrder], estimates: Estimates
) -> float:
    """Return what the chains of ``func`` cost in the orders of ``variant``."""
    counts = Counts(func, estimates.bucketed)
    trees = {order.result: order.tree for order in variant}
    total = 0.0
    for chain in chains_of(func):
        costs = Costs(chain, counts)
        total += costs.of_tree(trees.get(chain.root.result.name, chain.written))
        counts.note(chain.root.result, costs.entries(frozenset(range(len(chain.leaves)))))
    return total


def _best_order(costs: Costs) -> Tree:
    """Return the order to take."""
    chain = costs.chain
    written = chain.written
    found = None
    if costs.is_open and len(chain.leaves) <= _MOST_LEAVES:
        found = _cheapest(costs)
    if found is None:
        return written
    cost, tree = found
    kept, price = written, costs.of_tree(written)
    joined = tuple(range(len(chain.leaves)))
    if _is_sampled(chain) and costs.of_tree(joined) < 0.5 * price:
        kept, price = joined, costs.of_tree(joined)
    same = len(list(subtrees(tree))) == len(list(subtrees(kept)))
    enough = 0.99 * price if same else 0.5 * price
    return tree if cost < enough else kept


def _is_sampled(chain: Chain) -> bool:
    """Whether one sparse operand alone decides what is computed with the others."""
    sparse = [leaf for leaf in chain.leaves if not leaf.value.type.format.is_all_full]
    return len(sparse) == 1 and len(chain.leaves) <= _MOST_OPERANDS


def _cheapest(costs: Costs) -> tuple[float, Tree] | None:
    """Return the cheapest order and its cost."""
    wide = len(costs.chain.leaves) <= _MOST_SHARED

    @cache
    def best(leaves: frozenset[int]) -> tuple[float, Tree] | None:
        if len(leaves) == 1:
            (leaf,) = leaves
            return 0.0, leaf
        if not costs.is_exact(leaves):
            return None
        found: tuple[float, Tree] | None = None
        for groups in _partitions(tuple(sorted(leaves)), wide):
            if not 2 <= len(groups) <= _MOST_OPERANDS:
                continue
            if leaves == costs.whole and not costs.chain.takes(groups):
                continue
            parts = sorted(groups, key=min)
            inner = [made for part in parts if (made := best(part)) is not None]
            if len(inner) < len(parts):
                continue
            cost = costs.step(parts) + sum(cost for cost, _ in inner)
            if found is None or cost < found[0]:
                found = cost, tuple(tree for _, tree in inner)
        return found

    return best(costs.whole)


def _partitions(items: tuple[int, ...], wide: bool) -> Iterator[tuple[frozenset[int], ...]]:
    """Yield the ways to put items into groups: any number of groups when ``wide``, else two."""
    if len(items) == 1:
        yield (frozenset(items),)
        return
    first = items[0]
    for rest in _partitions(items[1:], wide):
        if wide or len(rest) < 2:
            yield (frozenset({first}), *rest)
        for place, group in enumerate(rest):
            yield (*rest[:place], group | {first}, *rest[place + 1 :])
