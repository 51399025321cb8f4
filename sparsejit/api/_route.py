"""Routes: a call like an earlier one, straight from its arguments to the kernel.

In: a call that has just run. Out: a ``Route``, which runs a call whose operands differ from those
in their values and addresses only, and says ``MISSED`` for any other, before anything is touched.
What has to be compared is compared once: whether the attributes of sparse objects are what they
were (``ready_of``), the types of scalars here, and everything about arrays in machine code.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.api._aliases import AliasRule
from sparsejit.api._checks import IntegerRange
from sparsejit.api._memory import out_of_memory
from sparsejit.api._program import Compiled, Program, Variant
from sparsejit.api._run import ResultRecipe
from sparsejit.api._target import Target
from sparsejit.backends import MISS, DirectCall, DirectKernel, straight
from sparsejit.explain import OperandNote
from sparsejit.tensors import Check, Operand, Ready, ready_of

__all__ = ["MISSED", "LastCall", "Route", "make_route", "sign"]

MISSED: Final = object()
"""What a route answers to a call that is not like its own."""

_FLAGS = 0x501
"""The flags of an array that decide what is done with it, as the machine code compares them."""

_C_CONTIGUOUS = 0x1
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_Place = tuple[int, Any]

_ARRAY, _SPARSE, _NUMBER, _FIXED = range(4)


def sign(value: Any, needs_check: bool) -> Hashable | None:
    """Return what a route depends on of an operand, None for one that no route takes."""
    if type(value) is np.ndarray:
        flags = value.flags.num & _FLAGS
        strides = () if flags & _C_CONTIGUOUS else value.strides
        return value.dtype, value.shape, flags, strides
    if isinstance(value, float | int | complex | np.generic):
        kind: Any = type(value)
        return kind if not isinstance(value, int) or _is_narrow(value) else None
    ready = ready_of(value, needs_check)
    return None if ready is None else ready.mark


def _is_narrow(value: int) -> bool:
    """Whether NumPy makes an int64 of a Python integer."""
    return _SMALLEST <= value <= _LARGEST


@dataclass(frozen=True, slots=True, eq=False)
class LastCall:
    """What ``explain`` says of the last call."""

    program: Program
    variant: Variant
    target: Target
    operands: tuple[OperandNote, ...]
    was_hit: bool


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """The kernel of a call and how to reach it.

    ``steps`` has, for each operand, what it is and what it must be: the mark of a sparse object,
    the type of a number; of an object that nobody changes, the buffers. ``written`` are pairs of
    places among the kernel's arguments, the first of which is written: these may share no memory.
    ``kept`` are arguments to be given back their values when the kernel fails.
    """

    call: LastCall
    direct: DirectCall
    recipe: ResultRecipe
    steps: tuple[_Place, ...]
    num_buffers: tuple[int, ...]
    needs_check: bool
    ranges: tuple[IntegerRange, ...]
    written: tuple[tuple[int, int], ...]
    kept: tuple[int, ...]
    is_plain: bool

    def run(self, objects: Sequence[Any]) -> Any:
        """Return the result of the call with these operands, or ``MISSED``."""
        arguments: list[Any] = []
        for value, (kind, wanted) in zip(objects, self.steps, strict=True):
            if kind == _ARRAY:
                arguments.append(value)
            elif kind == _SPARSE:
                ready = ready_of(value, self.needs_check)
                if ready is None or ready.mark != wanted:
                    return MISSED
                arguments += ready.all_buffers
            elif kind == _FIXED:
                arguments += wanted
            elif type(value) is wanted and (wanted is not int or _is_narrow(value)):
                arguments.append(value)
            else:
                return MISSED
        try:
            made = [np.empty(shape, dtype) for shape, dtype in self.direct.made]
            if self.is_plain:
                status = self.direct.call(*arguments, *made)
                return self._failed(status) if status else made[0]
            return self._run(objects, arguments, made)
        except MemoryError as error:
            raise self.out_of_memory(error) from error

    def out_of_memory(self, error: MemoryError) -> Exception:
        """Return what is raised where a result found no memory."""
        numbers = [int(extent) for extent in self.direct.extents]
        return out_of_memory(self.call.program.func, numbers, error)

    @property
    def operands(self) -> tuple[straight.Operand, ...]:
        """What each operand has to be, for machine code."""
        pairs = zip(self.steps, self.num_buffers, strict=True)
        return tuple(_straight_operand(kind, wanted, count) for (kind, wanted), count in pairs)

    @property
    def constants(self) -> frozenset[int]:
        """The numbers of the operands that are always the same."""
        return frozenset(n for n, (kind, _) in enumerate(self.steps) if kind == _FIXED)

    def _run(self, objects: Sequence[Any], arguments: list[Any], made: list[Any]) -> Any:
        for limit in self.ranges:
            limit.check(objects[limit.number])
        direct = self.direct
        for number, pack in enumerate(direct.pack):
            if pack is not None:
                arguments[number] = pack(arguments[number])
        if self.written and not self._is_apart(arguments):
            return MISSED
        words = [np.empty(direct.room, np.int64)] if direct.room else []
        before = [(arguments[k], arguments[k].copy()) for k in self.kept]
        answer = direct.call(*arguments, *made, *words)
        if answer and type(answer) is int:
            if answer != MISS:
                for array, values in before:
                    array[...] = values
            return self._failed(answer)
        flat = direct.wrapped(answer, words[0] if words else None, arguments, made)
        return self.recipe.results(flat, objects)

    def _is_apart(self, arguments: list[Any]) -> bool:
        """Whether no array that is written shares memory with another."""
        return not any(
            np.may_share_memory(arguments[one], arguments[other]) for one, other in self.written
        )

    def _failed(self, status: int) -> Any:
        if status == MISS:
            return MISSED
        raise self.direct.failure(status)


def make_route(
    call: LastCall,
    compiled: Compiled,
    numbers: Sequence[int],
    operands: Sequence[Operand],
    objects: Sequence[Any],
    check: Check,
    private: Container[int] = (),
) -> Route | None:
    """Return the route for calls like this one, None where there is none.

    ``private`` are the identities of objects that nobody changes.
    """
    program, kernel = call.program, compiled.kernel
    if check == "always" or not isinstance(kernel, DirectKernel) or program.traced.captured:
        return None
    needs_check = check == "once"
    steps: list[_Place] = []
    places: list[range] = []
    for is_scalar, operand, value in zip(program.scalars, operands, objects, strict=True):
        step = _step(is_scalar, operand, value, needs_check)
        if step is not None and step[0] != _NUMBER and id(value) in private:
            step = _FIXED, operand.buffers
        if step is None:
            return None
        steps.append(step)
        start = places[-1].stop if places else 0
        places.append(range(start, start + len(operand.buffers)))
    arguments = program.arguments(numbers, operands)
    direct = kernel.direct(arguments, len(numbers))
    if direct is None:
        return None
    assigned = program.aliases.assigned
    if any(steps[k][0] == _SPARSE and not _is_written_directly(operands[k]) for k in assigned):
        return None
    recipe = ResultRecipe.of(program, compiled, numbers, operands)
    has_packing = any(pack is not None for pack in direct.pack)
    has_results = direct.room or direct.makes_arrays
    is_plain = recipe.is_first_array and not (
        has_results or has_packing or assigned or program.ranges
    )
    return Route(
        replace(call, was_hit=True),
        direct,
        recipe,
        tuple(steps),
        tuple(map(len, places)),
        needs_check,
        program.ranges,
        _written(program.aliases, places),
        tuple(places[k][-1] for k in assigned) if direct.can_fail else (),
        is_plain,
    )


def _step(is_scalar: bool, operand: Operand, value: Any, needs_check: bool) -> _Place | None:
    if is_scalar:
        is_number = operand.kind in ("python-scalar", "numpy-scalar")
        return (_NUMBER, type(value)) if is_number else None
    if operand.kind == "numpy":
        is_itself = type(value) is np.ndarray and operand.buffers[0] is value
        return (_ARRAY, None) if is_itself else None
    ready: Ready | None = ready_of(value, needs_check)
    return (_SPARSE, ready.mark) if ready is not None and ready.is_of(operand) else None


def _straight_operand(kind: int, wanted: Any, num_buffers: int) -> straight.Operand:
    if kind == _ARRAY:
        return straight.Array()
    if kind == _SPARSE:
        return straight.Sparse(wanted, num_buffers)
    return straight.Number(wanted) if kind == _NUMBER else straight.Constant(wanted)


def _is_written_directly(operand: Operand) -> bool:
    """Whether the kernel writes into the caller's own array, whose flags are compared."""
    return operand.source is operand.buffers[-1]


def _written(rule: AliasRule, places: Sequence[range]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of arguments that may share no memory."""
    return tuple(
        (one, other)
        for written in rule.assigned
        for number, others in enumerate(places)
        if number != written and (number in rule.read or number in rule.assigned)
        for one in places[written]
        for other in others
    )
