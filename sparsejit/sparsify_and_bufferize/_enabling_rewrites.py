"""Enabling rewrites: what must change before the analysis, so that sparsity is not lost.

In order: chains of products in the order that was chosen (``_contraction_order``); elementwise
producers fused into their consumers (``_elementwise_fusion``); what is sampled by a sparse operand
is computed at its stored entries only (``_sampled_product``); filling a fresh sparse tensor with
its own fill value is the fresh tensor; parts of sparse operands that could only be searched are
copied (``_sliced_operands``); operations over very many sparse operands are computed in
parts (``_wide_operations``); intermediates keep the index widths of what has their pattern
(``_pattern_widths``). They are the first step of the stage because none of them may run after copy
insertion.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit.ir.contraction_order import contraction_variant
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.walk import all_ops, definitions, map_ops, replace_values
from sparsejit.sparsify_and_bufferize._contraction_order import reorder_contractions
from sparsejit.sparsify_and_bufferize._elementwise_fusion import fuse_elementwise, kept_apart
from sparsejit.sparsify_and_bufferize._options import StageOptions
from sparsejit.sparsify_and_bufferize._pattern_widths import keep_pattern_widths
from sparsejit.sparsify_and_bufferize._rewriting import Rewritten, fresh_names
from sparsejit.sparsify_and_bufferize._sampled_product import fuse_sampled_product
from sparsejit.sparsify_and_bufferize._sliced_operands import slice_operands
from sparsejit.sparsify_and_bufferize._wide_operations import split_wide_operations

__all__ = ["rewrite_before_analysis"]


def rewrite_before_analysis(
    func: TensorFunc, options: StageOptions
) -> tuple[TensorFunc, tuple[Fact, ...]]:
    """Return ``func`` with the enabling rewrites applied until none applies, and what was done."""
    fresh = fresh_names(func)
    chosen = options.contractions
    orders = contraction_variant(func) if chosen is None else chosen
    func, done = reorder_contractions(func, orders, fresh)
    facts = list(done)
    made: Rewritten | None
    while True:
        made = _drop_invariant_yield(func) or fuse_elementwise(func, options)
        made = made or fuse_sampled_product(func, fresh)
        if made is None:
            facts.extend(kept_apart(func, options))
            func, sliced = slice_operands(func, fresh)
            facts.extend(sliced)
            func, split = split_wide_operations(func, fresh)
            return keep_pattern_widths(func, options), (*facts, *split)
        func, told = made
        facts.extend(told)


def _drop_invariant_yield(func: TensorFunc) -> Rewritten | None:
    made = definitions(func)
    for op in all_ops(func.ops):
        match op:
            case Generic(result, (), init, body=Const() as value):
                fresh = isinstance(made.get(init.name), Empty)
                if fresh and not init.type.is_dense and value == init.type.fill:
                    text = "filling a fresh sparse tensor with its fill value was dropped"
                    fact = Fact(FactKind.REWRITE, result.name, text)
                    return _without(func, op, init), (fact,)
            case _:
                pass
    return None


def _without(func: TensorFunc, op: Generic, instead: Value) -> TensorFunc:
    """Return ``func`` without ``op``, its result replaced by another value."""

    def change(value: Value) -> Value:
        return instead if value.name == op.result.name else value

    def dropped(other: Op) -> tuple[Op, ...]:
        is_it = isinstance(other, Generic) and other.result.name == op.result.name
        return () if is_it else (other,)

    ops = tuple(replace_values(other, change) for other in map_ops(func.ops, dropped))
    return replace(func, ops=ops, results=tuple(change(value) for value in func.results))
