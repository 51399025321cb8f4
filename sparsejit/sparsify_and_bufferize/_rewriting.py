"""What every enabling rewrite needs: names, replacing operations in blocks, dropping dead ones.

In: a function. Out: another one. Only operations that a rewrite made superfluous are dropped, so
that everything else stays as the passes before the stage left it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from sparsejit.ir.contraction import blocks_in
from sparsejit.ir.facts import Fact
from sparsejit.ir.moves import Moves
from sparsejit.ir.scalar import Arg, Coordinate, ScalarExpr, Stored
from sparsejit.ir.tensor import Empty, Generic, Op, TensorFunc, Value
from sparsejit.ir.types import IteratorType
from sparsejit.ir.walk import all_ops, all_values, definitions, map_ops, results_of, uses

__all__ = [
    "Rewritten",
    "Setting",
    "fresh_names",
    "is_elementwise",
    "renumbering",
    "replaced_in_blocks",
    "without_unused",
]

Rewritten = tuple[TensorFunc, tuple[Fact, ...]]
"""A function after a rewrite, and what was done."""


class Setting:
    """What a rewrite asks about a function: who makes and uses a value, and in which block."""

    def __init__(self, func: TensorFunc) -> None:
        self.made = definitions(func)
        self.uses = uses(func)
        self._moves: Moves | None = None
        self._func = func
        self._places = {
            value.name: (number, place, ops)
            for number, ops in enumerate(blocks_in(func))
            for place, op in enumerate(ops)
            for value in results_of(op)
        }

    def generics(self) -> Iterator[Generic]:
        """Yield the ``Generic`` operations in program order."""
        return (op for op in all_ops(self._func.ops) if isinstance(op, Generic))

    def producer(self, consumer: Generic, value: Value) -> Generic | None:
        """Return the ``Generic`` that makes ``value`` in the block of ``consumer``.

        None also where its operands could not be read at the consumer instead.
        """
        made = self.made.get(value.name)
        if not isinstance(made, Generic):
            return None
        block, start, ops = self._places[value.name]
        other, end, _ = self._places[consumer.result.name]
        if block != other:
            return None  # it would be computed anew in each iteration
        if self._moves is None:
            self._moves = Moves(self._func)
        return made if self._moves.may_move(made.inputs, ops[start + 1 : end]) else None


def is_elementwise(op: Generic) -> bool:
    """Whether every loop writes an element of its own."""
    return all(kind is IteratorType.PARALLEL for kind in op.iterator_types)


def renumbering(
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


def fresh_names(func: TensorFunc) -> Callable[[], str]:
    """Return a source of names that no value of ``func`` has."""
    taken = {value.name for value in all_values(func)}
    numbers = (str(number) for number in count(len(taken)))
    names = (name for name in numbers if name not in taken)
    return lambda: next(names)


def replaced_in_blocks(func: TensorFunc, made: Mapping[str, tuple[Op, ...]]) -> TensorFunc:
    """Return ``func`` with operations replaced, each named by its (single) result."""

    def change(op: Op) -> tuple[Op, ...]:
        results = results_of(op)
        return made.get(results[0].name, (op,)) if len(results) == 1 else (op,)

    return replace(func, ops=map_ops(func.ops, change))


def without_unused(func: TensorFunc, values: Iterable[Value]) -> TensorFunc:
    """Return ``func`` without what computes these values, where nothing uses them any more.

    What filled the destination of such a computation goes with it.
    """
    made = definitions(func)
    open_values = list(values)
    dead: set[str] = set()
    while open_values:
        value = open_values.pop()
        op = made.get(value.name)
        if value.name in dead or not isinstance(op, Generic | Empty):
            continue
        users = uses(func)[value.name]
        if any(user is None or results_of(user)[0].name not in dead for user in users):
            continue
        dead.add(value.name)
        if isinstance(op, Generic):
            open_values += [op.init, *op.inputs]
    if not dead:
        return func

    def change(op: Op) -> tuple[Op, ...]:
        results = results_of(op)
        return () if len(results) == 1 and results[0].name in dead else (op,)

    return replace(func, ops=map_ops(func.ops, change))
