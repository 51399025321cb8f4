"""Walks over the tensor IR: operands, results, definitions, uses, and rebuilding.

Functions of one operation look at it alone; ``all_ops`` and what builds on it descend into the
bodies of ``For``. Nothing here changes an operation: rebuilding returns new ones. The walks over
the loop IR are in ``loop_walk``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from sparsejit.affine import AffineExpr, substitute
from sparsejit.ir.tensor import (
    AllocTensor,
    Convert,
    Empty,
    ExtractSlice,
    For,
    Generic,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    TensorFunc,
    Value,
)
from sparsejit.ir.types import TensorType

__all__ = [
    "affine_of",
    "all_ops",
    "all_values",
    "definitions",
    "map_ops",
    "operands_of",
    "replace_values",
    "results_of",
    "substitute_symbols",
    "uses",
]


def operands_of(op: Op) -> tuple[Value, ...]:
    """Return the values that ``op`` itself takes, destinations last; for ``For``, its inits."""
    match op:
        case Generic():
            return (*op.inputs, op.init)
        case Convert() | ExtractSlice():
            return (op.source,)
        case Empty():
            return ()
        case AllocTensor():
            return () if op.copy is None else (op.copy,)
        case Insert():
            return (op.scalar, op.dest)
        case InsertSlice() | Materialize():
            return (op.source, op.dest)
        case For():
            return op.inits
        case _:
            assert_never(op)


def results_of(op: Op) -> tuple[Value, ...]:
    """Return the values that ``op`` defines for the operations after it."""
    return op.results if isinstance(op, For) else (op.result,)


def affine_of(op: Op) -> tuple[AffineExpr, ...]:
    """Return the expressions over the function's symbols that ``op`` itself holds."""
    match op:
        case Generic():
            return op.extents
        case Convert() | Empty() | AllocTensor() | Materialize():
            return ()
        case Insert():
            return op.indices
        case ExtractSlice() | InsertSlice():
            return (*op.offsets, *op.sizes)
        case For():
            return (op.lower, op.upper)
        case _:
            assert_never(op)


def all_ops(ops: Iterable[Op]) -> Iterator[Op]:
    """Yield every operation in program order; a loop comes before the operations of its body."""
    for op in ops:
        yield op
        if isinstance(op, For):
            yield from all_ops(op.body)


def all_values(func: TensorFunc) -> Iterator[Value]:
    """Yield every value once, where it is defined: parameters, loop arguments, results."""
    yield from func.params
    for op in all_ops(func.ops):
        if isinstance(op, For):
            yield from op.args
        yield from results_of(op)


def definitions(func: TensorFunc) -> dict[str, Op]:
    """Return, by name, the operation that defines a value; parameters and args have none."""
    return {value.name: op for op in all_ops(func.ops) for value in results_of(op)}


def uses(func: TensorFunc) -> dict[str, tuple[Op | None, ...]]:
    """Return, by name, the operations that take a value; one entry a use.

    A loop that yields a value uses it; a use as a result of the function is None, and comes last.
    Values without use are in the dictionary too.
    """
    found: dict[str, list[Op | None]] = {value.name: [] for value in all_values(func)}
    for op in all_ops(func.ops):
        taken = operands_of(op) + (op.yields if isinstance(op, For) else ())
        for value in taken:
            found.setdefault(value.name, []).append(op)
    for value in func.results:
        found.setdefault(value.name, []).append(None)
    return {name: tuple(users) for name, users in found.items()}


def replace_values(op: Op, change: Callable[[Value], Value]) -> Op:
    """Return ``op`` with every value in it replaced, results and the body of a loop included."""

    def all_of(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(change(value) for value in values)

    match op:
        case Generic():
            result, inputs, init = change(op.result), all_of(op.inputs), change(op.init)
            return replace(op, result=result, inputs=inputs, init=init)
        case Convert() | ExtractSlice():
            return replace(op, result=change(op.result), source=change(op.source))
        case Empty():
            return replace(op, result=change(op.result))
        case AllocTensor():
            copy = None if op.copy is None else change(op.copy)
            return replace(op, result=change(op.result), copy=copy)
        case Insert():
            scalar, dest = change(op.scalar), change(op.dest)
            return replace(op, result=change(op.result), scalar=scalar, dest=dest)
        case InsertSlice() | Materialize():
            source, dest = change(op.source), change(op.dest)
            return replace(op, result=change(op.result), source=source, dest=dest)
        case For():
            return replace(
                op,
                results=all_of(op.results),
                inits=all_of(op.inits),
                args=all_of(op.args),
                body=tuple(replace_values(inner, change) for inner in op.body),
                yields=all_of(op.yields),
            )
        case _:
            assert_never(op)


def map_ops(ops: Iterable[Op], change: Callable[[Op], Iterable[Op]]) -> tuple[Op, ...]:
    """Return ``ops`` with each replaced by the operations ``change`` gives, bodies first."""
    made: list[Op] = []
    for op in ops:
        whole = replace(op, body=map_ops(op.body, change)) if isinstance(op, For) else op
        made.extend(change(whole))
    return tuple(made)


def _substitute_in(op: Op, values: Mapping[int, AffineExpr]) -> Op:
    def all_of(exprs: tuple[AffineExpr, ...]) -> tuple[AffineExpr, ...]:
        return tuple(substitute(expr, values) for expr in exprs)

    match op:
        case Generic():
            return replace(op, extents=all_of(op.extents))
        case Convert() | Empty() | AllocTensor() | Materialize():
            return op
        case Insert():
            return replace(op, indices=all_of(op.indices))
        case ExtractSlice() | InsertSlice():
            return replace(op, offsets=all_of(op.offsets), sizes=all_of(op.sizes))
        case For():
            return replace(
                op,
                lower=substitute(op.lower, values),
                upper=substitute(op.upper, values),
                body=tuple(_substitute_in(inner, values) for inner in op.body),
            )
        case _:
            assert_never(op)


def substitute_symbols(op: Op, values: Mapping[int, AffineExpr]) -> Op:
    """Return ``op`` with symbols replaced in its expressions and in the types of its values.

    The number of an induction variable stays; a caller that renumbers it replaces it too.
    """

    def retype(value: Value) -> Value:
        shape = tuple(substitute(extent, values) for extent in value.type.shape)
        kind = value.type
        return Value(value.name, TensorType(shape, kind.dtype, kind.format, kind.fill))

    return replace_values(_substitute_in(op, values), retype)
