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
    patterns: dict[str, str] = {}
    for op in all_ops(func.ops):
        if not isinstance(op, Generic) or op.init.name not in empty:
            continue
        if len(users[op.init.name]) == 1 and all(map(_is_read, users[op.result.name])):
            source = _source(op, patterns)
            kind = None if source is None else _wider(op, source, kinds, options)
            if source is not None and kind is not None:
                kinds[op.init.name] = kinds[op.result.name] = kind
                patterns[op.result.name] = patterns.get(source.name, source.name)
    if not kinds:
        return func

    def change(value: Value) -> Value:
        return replace(value, type=kinds.get(value.name, value.type))

    return replace(func, ops=map_ops(func.ops, _changing(change)))


def _changing(change: Callable[[Value], Value]) -> Callable[[Op], tuple[Op, ...]]:
    return lambda op: (replace_values(op, change),)


def _is_read(user: Op | None) -> bool:
    return isinstance(user, Generic)


def _source(op: Generic, patterns: dict[str, str]) -> Value | None:
    """Return the first sparse operand, if all of them have its pattern and the result's place."""
    operands = [
        (value, place)
        for value, place in zip(op.inputs, op.indexing_maps, strict=False)
        if not value.type.format.is_all_full
    ]
    names = {patterns.get(value.name, value.name) for value, _ in operands}
    alike = len(names) == 1 and all(place == op.indexing_maps[-1] for _, place in operands)
    return operands[0][0] if alike else None


def _wider(
    op: Generic, source: Value, kinds: dict[str, TensorType], options: StageOptions
) -> TensorType | None:
    """Return the type of the result with the widths of its source, if it is stored alike."""
    kind = op.result.type
    fmt = kinds.get(source.name, source.type).format
    # What the call needs at least is sure to fit, whatever the operation stores.
    least = options.index_widths
    is_enough = fmt.pos_width >= least.positions and fmt.crd_width >= least.coordinates
    is_alike = kind.format == _open(kind.format) == _open(fmt)
    return replace(kind, format=fmt) if is_alike and is_enough else None


def _open(fmt: Format) -> Format:
    return fmt.with_widths(0, 0)
