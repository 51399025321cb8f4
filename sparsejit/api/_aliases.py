"""Aliases at run time: what to do when a read argument overlaps an assigned one.

In: a tensor function; at a call, the memory of its arguments. Out: which arguments to copy before
the call, or ``UnsupportedError``. The rule is decided on the program: an argument whose last read
is not behind the first assignment to the other may be copied, as NumPy would have read it all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.ir.tensor import (
    ExtractSlice,
    For,
    Generic,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    Reshape,
    TensorFunc,
    Value,
    While,
)
from sparsejit.ir.walk import all_ops, blocks_of, defined_by, operands_of, results_of, yields_of
from sparsejit.tensors import Operand

__all__ = ["AliasRule", "check_assignable", "copies_needed"]


@dataclass(frozen=True, slots=True)
class AliasRule:
    """``assigned`` parameters, and the (read, assigned) pairs where a copy would not be right."""

    assigned: tuple[int, ...]
    read: frozenset[int]
    late: frozenset[tuple[int, int]]

    @staticmethod
    def of(func: TensorFunc, late: frozenset[tuple[int, int]] | None = None) -> AliasRule:
        """Return the rule of a tensor function.

        ``late`` is known where the user's code says it; else it follows from the operations, whose
        order need not be the user's: what is computed when it is needed was read before.
        """
        numbers = {param.name: number for number, param in enumerate(func.params)}
        assigned = tuple(sorted(numbers[param.name] for param in func.assigned))
        first = {number: _first_assignment(func, func.params[number]) for number in assigned}
        last = {
            number: _last_read(func, func.params[number])
            for number in range(len(func.params))
            if number not in first
        }
        read = frozenset(number for number, (at, _) in last.items() if at >= 0)
        if late is not None:
            return AliasRule(assigned, read, late)
        found = frozenset(
            (reader, written)
            for reader, (at, in_loop) in last.items()
            for written, start in first.items()
            if at > start or (at == start and in_loop)
        )
        return AliasRule(assigned, read, found)


def _first_assignment(func: TensorFunc, param: Value) -> int:
    """Return the number of the first operation that may make a new state of ``param``."""
    states = {param.name}
    numbers = [number for number, op in enumerate(func.ops) if _changes(op, states)]
    # What is materialized in the parameter may be computed in its buffer from the start.
    wanted = {
        op.source.name
        for op in all_ops(func.ops)
        if isinstance(op, Materialize) and op.dest.name in states
    }
    for number, op in reversed(list(enumerate(func.ops))):
        if wanted & {value.name for value in results_of(op)}:
            numbers.append(number)
            for inner in all_ops((op,)):
                wanted.update(value.name for value in _places(inner))
    return min(numbers, default=len(func.ops))


def _changes(op: Op, states: set[str]) -> bool:
    """Whether ``op`` makes a new state from one in ``states``, which grows by what it makes."""
    found = False
    known = 0
    while known != len(states):  # what a block yields may be a state that it makes itself
        known = len(states)
        for inner in all_ops((op,)):
            if any(value.name in states for value in (*_destinations(inner), *yields_of(inner))):
                states.update(value.name for value in defined_by(inner))
                found = True
    return found


def _destinations(op: Op) -> tuple[Value, ...]:
    match op:
        case Generic():
            return (op.init,)
        case Insert() | InsertSlice() | Materialize():
            return (op.dest,)
        case For() | While():
            return op.inits
        case _:
            return ()


def _places(op: Op) -> tuple[Value, ...]:
    """Return the values in whose memory a result of ``op`` may lie."""
    sources = (op.source,) if isinstance(op, ExtractSlice | Reshape) else ()
    return (*_destinations(op), *yields_of(op), *sources)


def _last_read(func: TensorFunc, param: Value) -> tuple[int, bool]:
    """Return the number of the last operation that reads ``param``, and whether it has blocks.

    A view of it is read where the view is; (-1, False) when nothing reads it.
    """
    views = {param.name}
    last, has_blocks = -1, False
    for number, op in enumerate(func.ops):
        for inner in all_ops((op,)):
            if not any(value.name in views for value in (*operands_of(inner), *yields_of(inner))):
                continue
            if isinstance(inner, ExtractSlice | Reshape) or blocks_of(inner):
                views.update(value.name for value in defined_by(inner))
            last, has_blocks = number, bool(blocks_of(op))
    if any(value.name in views and value != param for value in func.results):
        return len(func.ops), False
    return last, has_blocks


def check_assignable(operand: Operand, name: str) -> None:
    """Refuse an operand that the function assigns to and that cannot be written.

    ``TensorTypeError`` for what is no array, ``ValueError`` for a read-only array, and
    ``UnsupportedError`` where elements of the array share memory with each other.
    """
    if operand.kind in ("python-scalar", "numpy-scalar"):
        raise TensorTypeError(
            f"the function assigns to argument {name!r}, which is a number",
            hint="pass an array of rank 0: np.array(value)",
        )
    if operand.source is None:
        raise TensorTypeError(
            f"the function assigns to argument {name!r}, whose values had to be converted",
            hint="pass a NumPy array, or a csr, csc, coo, bsr or dia array",
        )
    if operand.plan.first is not None:
        raise UnsupportedError(
            f"the function assigns to argument {name!r}, which has duplicate entries",
            hint="call sum_duplicates() on it first",
        )
    if not operand.writable:
        raise ValueError(f"assignment destination is read-only: argument {name!r}")
    if operand.is_dense and not operand.is_shared:
        raise UnsupportedError(
            f"the function assigns to argument {name!r}, whose memory compiled code cannot reach",
            hint="pass an aligned array of native byte order",
        )
    if operand.is_dense and _overlaps_itself(operand.values):
        raise UnsupportedError(
            f"the function assigns to argument {name!r}, whose elements overlap in memory",
            hint="pass a copy of it",
        )


def _overlaps_itself(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    """Whether two elements of a strided array may share memory."""
    reach = array.itemsize
    steps = sorted(
        (abs(stride), extent)
        for stride, extent in zip(array.strides, array.shape, strict=True)
        if extent > 1
    )
    for stride, extent in steps:
        if stride < reach:
            return array.size > 0
        reach = stride * (extent - 1) + reach
    return False


def copies_needed(
    rule: AliasRule, operands: Sequence[Operand], names: Sequence[str]
) -> tuple[int, ...]:
    """Return the parameters to copy before the call.

    ``UnsupportedError`` for two assigned arguments that overlap, and where a copy would not do.
    """
    found: set[int] = set()
    for written in rule.assigned:
        target = tuple(_memory(operands[written]))
        for other, operand in enumerate(operands):
            if other == written or not (other in rule.read or other in rule.assigned):
                continue
            if not any(_overlap(one, two) for one in target for two in _memory(operand)):
                continue
            pair = f"arguments {names[other]!r} and {names[written]!r} overlap in memory"
            if other in rule.assigned:
                raise UnsupportedError(
                    f"{pair}, and the function assigns to both",
                    hint="pass the same object twice, or copy one of them",
                )
            if (other, written) in rule.late:
                raise UnsupportedError(
                    f"{pair}, and {names[other]!r} is read after {names[written]!r} is assigned",
                    hint=f"pass a copy of {names[other]!r}",
                )
            found.add(other)
    return tuple(sorted(found))


def _memory(operand: Operand) -> Iterator[Any]:
    yield from operand.buffers
    if operand.source is not None and operand.source is not operand.buffers[-1]:
        yield operand.source


def _overlap(one: Any, two: Any) -> bool:
    on_host = [isinstance(array, np.ndarray) for array in (one, two)]
    if not all(on_host):
        return not any(on_host) and _spans_meet(one, two)
    if not np.may_share_memory(one, two):
        return False
    # NumPy's stub has the bounds 0 and -1 only; any count of candidates is allowed.
    shares_memory: Callable[..., bool] = np.shares_memory
    try:
        return bool(shares_memory(one, two, max_work=1000))
    except np.exceptions.TooHardError:
        return True


def _spans_meet(one: Any, two: Any) -> bool:
    """Return whether the memory between the ends of two device arrays has a byte in common."""
    (first, behind_first), (second, behind_second) = _span(one), _span(two)
    return first < behind_second and second < behind_first


def _span(array: Any) -> tuple[int, int]:
    start = int(array.data.ptr)
    if not array.size:
        return start, start
    steps = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    first = start + sum(step for step in steps if step < 0)
    return first, start + sum(step for step in steps if step > 0) + array.dtype.itemsize
