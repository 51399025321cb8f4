"""Walks over the tensor IR: operands, results, definitions, uses, and rebuilding.

Functions of one operation look at it alone; ``all_ops`` and what builds on it descend into the
blocks of ``For``, ``While`` and ``If``. Nothing here changes an operation: rebuilding returns new
ones. The walks over the loop IR are in ``loop_walk``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, assert_never

from sparsejit.affine import AffineExpr, substitute
from sparsejit.ir.tensor import (
    AllocTensor,
    Concat,
    Convert,
    Empty,
    ExtractSlice,
    For,
    Generic,
    If,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    Pad,
    Reshape,
    TensorFunc,
    Value,
    While,
)
from sparsejit.ir.types import TensorType

__all__ = [
    "Block",
    "affine_of",
    "all_ops",
    "all_values",
    "blocks_of",
    "defined_by",
    "definitions",
    "map_blocks",
    "map_ops",
    "only_readers",
    "operands_of",
    "replace_values",
    "results_of",
    "substitute_symbols",
    "uses",
    "without_locations",
    "yields_of",
]


class Block(NamedTuple):
    """A block inside an operation: its arguments, its operations, and what its end takes."""

    args: tuple[Value, ...]
    ops: tuple[Op, ...]
    taken: tuple[Value, ...]


def blocks_of(op: Op) -> tuple[Block, ...]:
    """Return the blocks of ``op``, none for most; the end of a ``While``'s test takes the condition
    and hands on the carried values."""
    match op:
        case For():
            return (Block(op.args, op.body, op.yields),)
        case While():
            test = Block(op.args, op.test, (op.condition, *op.args))
            return (test, Block(op.body_args, op.body, op.yields))
        case If():
            return (Block((), op.then, op.then_yields), Block((), op.orelse, op.else_yields))
        case _:
            return ()


def operands_of(op: Op) -> tuple[Value, ...]:
    """Return the values that ``op`` itself takes, destinations last; for loops, their inits."""
    match op:
        case Generic():
            return (*op.inputs, op.init)
        case Convert() | ExtractSlice() | Reshape() | Pad():
            return (op.source,)
        case Concat():
            return op.sources
        case Empty():
            return ()
        case AllocTensor():
            return () if op.copy is None else (op.copy,)
        case Insert():
            return (op.scalar, op.dest)
        case InsertSlice() | Materialize():
            return (op.source, op.dest)
        case For() | While():
            return op.inits
        case If():
            return (op.condition,)
        case _:
            assert_never(op)


def results_of(op: Op) -> tuple[Value, ...]:
    """Return the values that ``op`` defines for the operations after it."""
    return op.results if isinstance(op, For | While | If) else (op.result,)


def yields_of(op: Op) -> tuple[Value, ...]:
    """Return the values that the ends of the blocks of ``op`` take."""
    return tuple(value for block in blocks_of(op) for value in block.taken)


def affine_of(op: Op) -> tuple[AffineExpr, ...]:
    """Return the expressions over the function's symbols that ``op`` itself holds."""
    match op:
        case Generic():
            return op.extents
        case Convert() | Empty() | AllocTensor() | Materialize() | Reshape() | Concat():
            return ()
        case While() | If():
            return ()
        case Insert():
            return op.indices
        case ExtractSlice() | InsertSlice():
            return (*op.offsets, *op.sizes)
        case Pad():
            return (*op.low, *op.high)
        case For():
            return (op.lower, op.upper)
        case _:
            assert_never(op)


def all_ops(ops: Iterable[Op]) -> Iterator[Op]:
    """Yield every operation in program order; a loop comes before the operations of its blocks."""
    for op in ops:
        yield op
        for block in blocks_of(op):
            yield from all_ops(block.ops)


def defined_by(op: Op) -> tuple[Value, ...]:
    """Return the arguments of the blocks of ``op``, and its results."""
    return (*(arg for block in blocks_of(op) for arg in block.args), *results_of(op))


def all_values(func: TensorFunc) -> Iterator[Value]:
    """Yield every value once, where it is defined: parameters, arguments of blocks, results."""
    yield from func.params
    for op in all_ops(func.ops):
        yield from defined_by(op)


def definitions(func: TensorFunc) -> dict[str, Op]:
    """Return, by name, the operation that defines a value; parameters and args have none."""
    return {value.name: op for op in all_ops(func.ops) for value in results_of(op)}


def uses(func: TensorFunc) -> dict[str, tuple[Op | None, ...]]:
    """Return, by name, the operations that take a value; one entry a use.

    A loop or branch that yields a value uses it; a use as a result of the function is None, and
    comes last.
    Values without use are in the dictionary too.
    """
    found: dict[str, list[Op | None]] = {value.name: [] for value in all_values(func)}
    for op in all_ops(func.ops):
        for value in (*operands_of(op), *yields_of(op)):
            found.setdefault(value.name, []).append(op)
    for value in func.results:
        found.setdefault(value.name, []).append(None)
    return {name: tuple(users) for name, users in found.items()}


def only_readers(ops: Iterable[Op], results: Iterable[Value]) -> dict[str, Generic]:
    """Return, by name, the only use of a value, where that is as an input of a ``Generic``.

    The value is used once, nowhere as a destination, and is none of ``results``.
    """
    found: dict[str, Generic | None] = {value.name: None for value in results}
    for op in all_ops(ops):
        for value in (*operands_of(op), *yields_of(op)):
            only = isinstance(op, Generic) and value != op.init and value.name not in found
            found[value.name] = op if isinstance(op, Generic) and only else None
    return {name: op for name, op in found.items() if op is not None}


def replace_values(  # noqa: C901 - one case for each kind
    op: Op, change: Callable[[Value], Value]
) -> Op:
    """Return ``op`` with every value in it replaced, results and the blocks of a loop included."""

    def all_of(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(change(value) for value in values)

    def inside(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(replace_values(inner, change) for inner in ops)

    match op:
        case Generic():
            result, inputs, init = change(op.result), all_of(op.inputs), change(op.init)
            return replace(op, result=result, inputs=inputs, init=init)
        case Convert() | ExtractSlice() | Reshape() | Pad():
            return replace(op, result=change(op.result), source=change(op.source))
        case Concat():
            return replace(op, result=change(op.result), sources=all_of(op.sources))
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
                body=inside(op.body),
                yields=all_of(op.yields),
            )
        case While():
            return replace(
                op,
                results=all_of(op.results),
                inits=all_of(op.inits),
                args=all_of(op.args),
                test=inside(op.test),
                condition=change(op.condition),
                body_args=all_of(op.body_args),
                body=inside(op.body),
                yields=all_of(op.yields),
            )
        case If():
            return replace(
                op,
                results=all_of(op.results),
                condition=change(op.condition),
                then=inside(op.then),
                then_yields=all_of(op.then_yields),
                orelse=inside(op.orelse),
                else_yields=all_of(op.else_yields),
            )
        case _:
            assert_never(op)


def map_blocks(op: Op, change: Callable[[tuple[Op, ...]], tuple[Op, ...]]) -> Op:
    """Return ``op`` with the operations of each of its blocks replaced by what ``change`` gives."""
    match op:
        case For():
            return replace(op, body=change(op.body))
        case While():
            return replace(op, test=change(op.test), body=change(op.body))
        case If():
            return replace(op, then=change(op.then), orelse=change(op.orelse))
        case _:
            return op


def map_ops(ops: Iterable[Op], change: Callable[[Op], Iterable[Op]]) -> tuple[Op, ...]:
    """Return ``ops`` with each replaced by the operations ``change`` gives, bodies first."""
    made: list[Op] = []
    for op in ops:
        made.extend(change(map_blocks(op, lambda inner: map_ops(inner, change))))
    return tuple(made)


def without_locations(func: TensorFunc) -> TensorFunc:
    """Return ``func`` without the lines that its operations stand in."""
    return replace(func, ops=map_ops(func.ops, lambda op: (replace(op, location=None),)))


def _substitute_in(op: Op, values: Mapping[int, AffineExpr]) -> Op:
    def all_of(exprs: tuple[AffineExpr, ...]) -> tuple[AffineExpr, ...]:
        return tuple(substitute(expr, values) for expr in exprs)

    def inside(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(_substitute_in(inner, values) for inner in ops)

    match op:
        case Generic():
            return replace(op, extents=all_of(op.extents))
        case Convert() | Empty() | AllocTensor() | Materialize() | Reshape() | Concat():
            return op
        case Insert():
            return replace(op, indices=all_of(op.indices))
        case ExtractSlice() | InsertSlice():
            return replace(op, offsets=all_of(op.offsets), sizes=all_of(op.sizes))
        case Pad():
            return replace(op, low=all_of(op.low), high=all_of(op.high))
        case For():
            lower, upper = substitute(op.lower, values), substitute(op.upper, values)
            return map_blocks(replace(op, lower=lower, upper=upper), inside)
        case While() | If():
            return map_blocks(op, inside)
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
