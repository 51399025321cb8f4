"""Tensor pass: drop operations that nobody uses, and compute constants in bodies.

In: any tensor function. Out: the same function without operations whose results no other operation,
no loop and no result takes (writing into an argument counts as use), and with each operation of
constants in a scalar expression replaced by its value.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from sparsejit.ir.fold import applies, fold_binary, fold_cast, fold_unary
from sparsejit.ir.scalar import Binary, Call, Cast, Const, ScalarExpr, Select, Unary
from sparsejit.ir.tensor import Generic, Materialize, Op, TensorFunc
from sparsejit.ir.walk import (
    all_ops,
    blocks_of,
    map_blocks,
    map_ops,
    operands_of,
    results_of,
    yields_of,
)

__all__ = ["canonicalize", "fold_constants"]


def canonicalize(func: TensorFunc) -> TensorFunc:
    """Return ``func`` without dead operations and with constants folded; itself if all is well.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> from sparsejit.ir.types import DType
    >>> builder = TensorBuilder("f")
    >>> x = builder.param("x", ("n",), DType.FLOAT64)
    >>> unused = builder.full(x.type.shape, Const(1.0, DType.FLOAT64))
    >>> canonicalize(builder.finish(x)).ops
    ()
    """
    folded = map_ops(func.ops, lambda op: (_fold_body(op),))
    live = {value.name for value in func.results}
    ops = _without_dead(folded, live)
    is_same = len(ops) == len(func.ops) and all(map(operator.is_, ops, func.ops))
    return func if is_same else replace(func, ops=ops)


def _fold_body(op: Op) -> Op:
    if not isinstance(op, Generic):
        return op
    body = fold_constants(op.body)
    return op if body == op.body else replace(op, body=body)


def _without_dead(ops: tuple[Op, ...], live: set[str]) -> tuple[Op, ...]:
    """Return the operations that are needed for ``live``, which grows by what they take."""
    kept: list[Op] = []
    for op in reversed(ops):
        if not _writes((op,)) and not any(result.name in live for result in results_of(op)):
            continue
        if blocks_of(op):
            # What a block takes from outside is live before the operation.
            inner = {value.name for value in yields_of(op)}
            op = map_blocks(op, lambda ops: _without_dead(ops, inner))  # noqa: B023 - used at once
            live |= inner
        live.update(value.name for value in operands_of(op))
        kept.append(op)
    return tuple(reversed(kept))


def _writes(ops: tuple[Op, ...]) -> bool:
    return any(isinstance(op, Materialize) for op in all_ops(ops))


def fold_constants(expr: ScalarExpr) -> ScalarExpr:
    """Return ``expr`` with the operations of constants computed, as NumPy computes them.

    >>> from sparsejit.ir.ops import BinaryOp
    >>> from sparsejit.ir.types import DType
    >>> fold_constants(Binary(BinaryOp.ADD, Const(1, DType.INT64), Const(2, DType.INT64)))
    Const(3, DType.INT64)
    """
    match expr:
        case Cast(operand, dtype):
            inner = fold_constants(operand)
            return fold_cast(inner, dtype) if isinstance(inner, Const) else Cast(inner, dtype)
        case Unary(op, operand):
            inner = fold_constants(operand)
            if isinstance(inner, Const) and applies(op, inner.dtype):
                return fold_unary(op, inner)
            return Unary(op, inner)
        case Binary(combine, lhs, rhs):
            left, right = fold_constants(lhs), fold_constants(rhs)
            if (
                isinstance(left, Const)
                and isinstance(right, Const)
                and applies(combine, left.dtype)
            ):
                return fold_binary(combine, left, right)
            return Binary(combine, left, right)
        case Select(condition, then, orelse):
            chosen = fold_constants(condition)
            sides = fold_constants(then), fold_constants(orelse)
            if isinstance(chosen, Const):
                return sides[0] if chosen.value else sides[1]
            return Select(chosen, *sides)
        case Call(function, operands):
            return Call(function, tuple(fold_constants(operand) for operand in operands))
        case _:
            return expr
