"""Intermediates with the pattern of an operand keep its index widths.

In: a function behind the other rewrites. Out: the same with wider formats named for such
intermediates, so that their structure is a copy of the operand's, which nobody needs to make, and
not another array: what reads them can share rows with what makes them. Results that leave the
function have the width that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparsejit.formats import Format
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import TensorType
from sparsejit.ir.walk import all_ops, map_ops, replace_values, uses
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["keep_pattern_widths"]


def keep_pattern_widths(func: TensorFunc, options: StageOptions) -> TensorFunc:
    """Return ``func`` with the widths of its intermediates."""
    users = uses(func)
    empty = {op.result.name for op in all_ops(func.ops) if isinstance(op, Empty)}
    kinds: dict[str, TensorType] = {}
    for op in all_ops(func.ops):
        if not isinstance(op, Generic) or op.init.name not in empty:
            continue
        if len(users[op.init.name]) == 1 and all(map(_is_read, users[op.result.name])):
            kind = _wider(op, kinds, options)
            if kind is not None:
                kinds[op.init.name] = kinds[op.result.name] = kind
    if not kinds:
        return func

    def change(value: Value) -> Value:
        return replace(value, type=kinds.get(value.name, value.type))

    return replace(func, ops=map_ops(func.ops, _changing(change)))


def _changing(change: Callable[[Value], Value]) -> Callable[[Op], tuple[Op, ...]]:
    return lambda op: (replace_values(op, change),)


def _is_read(user: Op | None) -> bool:
    return isinstance(user, Generic)


def _wider(op: Generic, kinds: dict[str, TensorType], options: StageOptions) -> TensorType | None:
    """Return the type with the widths of the only sparse operand, if it is stored alike."""
    kind = op.result.type
    sparse = [k for k, value in enumerate(op.inputs) if not value.type.format.is_all_full]
    if len(sparse) != 1 or kind.format != _open(kind.format):
        return None
    (k,) = sparse
    source = kinds.get(op.inputs[k].name, op.inputs[k].type).format
    # What the call needs at least is sure to fit, whatever the operation stores.
    least = options.index_widths
    is_enough = source.pos_width >= least.positions and source.crd_width >= least.coordinates
    alike = _open(source) == kind.format and op.indexing_maps[k] == op.indexing_maps[-1]
    return replace(kind, format=source) if alike and is_enough else None


def _open(fmt: Format) -> Format:
    return fmt.with_widths(0, 0)
