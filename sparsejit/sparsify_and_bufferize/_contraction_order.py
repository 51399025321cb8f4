"""Contraction order: chains of products computed in the order that was chosen.

In: a function and the orders of its chains. Out: the function with the operations of each such
chain replaced by those of its order, and facts. Nothing is chosen here; see ``contraction_order``
in the IR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineMap, Dim
from sparsejit.ir.contraction import (
    Chain,
    Leaf,
    Tree,
    accumulates,
    chains_of,
    leaves_of,
    tree_text,
)
from sparsejit.ir.contraction_cost import intermediate_format, kept_indices
from sparsejit.ir.contraction_order import ContractionOrder
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.fold import zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Nothing, ScalarExpr, Select, Stored, map_leaves
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IteratorType, TensorType
from sparsejit.ir.walk import all_ops
from sparsejit.sparsify_and_bufferize._rewriting import replaced_in_blocks, without_unused

__all__ = ["reorder_contractions"]


def reorder_contractions(
    func: TensorFunc, orders: Iterable[ContractionOrder], fresh: Callable[[], str]
) -> tuple[TensorFunc, tuple[Fact, ...]]:
    """Return ``func`` with these orders; ``fresh`` gives names that are not in use."""
    wanted = {order.result: order.tree for order in orders}
    if not wanted:
        return func, ()
    chains = [chain for chain in chains_of(func) if chain.root.result.name in wanted]
    facts: list[Fact] = []
    made: dict[str, tuple[Op, ...]] = {}
    empty = frozenset(
        op.result.name
        for op in all_ops(func.ops)
        if isinstance(op, Empty) and not op.result.type.is_dense
    )
    for chain in chains:
        name = chain.root.result.name
        made[name] = _operations(chain, wanted[name], fresh, empty)
        text = f"{tree_text(chain.written, chain)} is computed as {tree_text(wanted[name], chain)}"
        facts.append(Fact(FactKind.REWRITE, name, text))
    if not made:
        return func, ()
    changed = replaced_in_blocks(func, made)
    inner = [op.result for chain in chains for op in chain.inner]
    return without_unused(changed, inner), tuple(facts)


@dataclass(frozen=True, slots=True)
class _Part:
    """An operand of an operation: a leaf with its factor, or an intermediate."""

    value: Value
    index: tuple[int, ...]
    factor: ScalarExpr


def _operations(
    chain: Chain, tree: Tree, fresh: Callable[[], str], empty: frozenset[str]
) -> tuple[Op, ...]:
    """Return the operations that compute ``chain`` in an order, the root's last.

    ``empty`` names the sparse tensors without entries.
    """
    ops: list[Op] = []

    def formed(part: Tree) -> _Part:
        if isinstance(part, int):
            leaf = chain.leaves[part]
            return _Part(leaf.value, leaf.index, leaf.factor)
        operands = [formed(inner) for inner in part]
        kept = kept_indices(chain, frozenset(leaves_of(part)))
        layouts = [(o.index, o.value.type.format) for o in operands]
        shape = tuple(chain.extents[i] for i in kept)
        dtype = chain.root.init.type.dtype
        format = intermediate_format(layouts, kept)
        init = _zeros(ops, TensorType(shape, dtype, format, zero_of(dtype)), chain, fresh)
        result = Value(fresh(), init.type)
        sparse = not format.is_dense
        ops.append(_product(chain, operands, kept, init, result, BinaryOp.ADD, adds_nothing=sparse))
        return _Part(result, kept, Arg(0))

    assert not isinstance(tree, int)
    if chain.own:
        operands = [formed(part) for part in tree if part not in chain.own]
        found = operands[0] if len(operands) == 1 else _sampled(ops, chain, operands, fresh)
        ops.append(_with_sum(chain, found))
        return tuple(ops)
    operands = [formed(part) for part in tree]
    root, added = chain.root, accumulates(chain.root)
    combine = BinaryOp.ADD if added is None else added.op
    is_new = root.init.name in empty and combine is BinaryOp.ADD
    ops.append(
        _product(
            chain, operands, chain.output, root.init, root.result, combine, adds_nothing=is_new
        )
    )
    return tuple(ops)


def _sampled(ops: list[Op], chain: Chain, operands: list[_Part], fresh: Callable[[], str]) -> _Part:
    """Append the sum of the product of ``operands`` where the root needs it, and has terms."""
    guard = chain.guard
    assert guard is not None
    kind = guard.value.type
    dtype = chain.root.init.type.dtype
    init = _zeros(ops, TensorType(kind.shape, dtype, kind.format, zero_of(dtype)), chain, fresh)
    result = Value(fresh(), init.type)
    total = _product(chain, operands, guard.index, init, result, BinaryOp.ADD, adds_nothing=False)
    ops.append(_where_all_store(total, guard))
    return _Part(result, guard.index, Arg(0))


def _where_all_store(total: Generic, guard: Leaf) -> Generic:
    """Return a sum with the terms where ``guard`` and all sparse factors have an entry, no others.

    The result has the dimensions of ``guard``, and is in the slots of it.
    """
    out = len(total.inputs)
    assert isinstance(total.body, Binary)
    sparse = [k for k, value in enumerate(total.inputs) if not value.type.format.is_all_full]
    condition: ScalarExpr = Stored(out)
    for number in sparse:
        condition = Binary(BinaryOp.AND, condition, Stored(number))
    term = Select(condition, total.body.rhs, Nothing(total.init.type.dtype))
    *maps, written = total.indexing_maps
    return replace(
        total,
        inputs=(*total.inputs, guard.value),
        indexing_maps=(*maps, written, written),
        body=Binary(total.body.op, Arg(out + 1), term),
    )


def _with_sum(chain: Chain, total: _Part) -> Generic:
    """Return the root of a chain with another way to its sum."""
    root = chain.root
    inner = {op.result for op in chain.inner}
    place = next(k for k, value in enumerate(root.inputs) if value in inner)
    inputs, maps = list(root.inputs), list(root.indexing_maps)
    inputs[place] = total.value
    maps[place] = AffineMap(len(root.extents), tuple(Dim(index) for index in total.index))
    return replace(root, inputs=tuple(inputs), indexing_maps=tuple(maps))


def _zeros(ops: list[Op], kind: TensorType, chain: Chain, fresh: Callable[[], str]) -> Value:
    """Append a fresh tensor to sum into: zeros when dense, no entries when sparse."""
    where = chain.root.location
    empty = Value(fresh(), kind)
    ops.append(Empty(empty, where))
    if not kind.is_dense:
        return empty
    identity = AffineMap(kind.rank, tuple(Dim(d) for d in range(kind.rank)))
    filled = Value(fresh(), kind)
    loops = (IteratorType.PARALLEL,) * kind.rank
    ops.append(Generic(filled, (), empty, (identity,), loops, kind.shape, kind.fill, where))
    return filled


def _product(
    chain: Chain,
    operands: list[_Part],
    output: tuple[int, ...],
    init: Value,
    result: Value,
    combine: BinaryOp,
    *,
    adds_nothing: bool,
) -> Generic:
    """Return the operation that sums the product of some operands over what ``output`` lacks.

    ``adds_nothing``: ``init`` is a sparse tensor without entries.
    """
    used = dict.fromkeys((*output, *(i for part in operands for i in part.index)))
    loops: Mapping[int, int] = {index: loop for loop, index in enumerate(used)}
    count = len(loops)
    maps = [AffineMap(count, tuple(Dim(loops[i]) for i in part.index)) for part in operands]
    maps.append(AffineMap(count, tuple(Dim(loops[i]) for i in output)))
    term: ScalarExpr | None = None
    for number, part in enumerate(operands):
        factor = _of_operand(part.factor, number)
        term = factor if term is None else Binary(BinaryOp.MUL, term, factor)
    assert term is not None
    body: ScalarExpr = Binary(combine, Arg(len(operands)), term)
    if adds_nothing and count == len(output):
        body = term
    kinds = tuple(
        IteratorType.PARALLEL if index in output else IteratorType.REDUCTION for index in loops
    )
    extents = tuple(chain.extents[index] for index in loops)
    inputs = tuple(part.value for part in operands)
    return Generic(result, inputs, init, tuple(maps), kinds, extents, body, chain.root.location)


def _of_operand(factor: ScalarExpr, number: int) -> ScalarExpr:
    return map_leaves(factor, lambda leaf: Arg(number) if isinstance(leaf, Arg) else leaf)
