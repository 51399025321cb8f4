"""One call: its bound arguments, captured names and described operands, and the key they make.

In: the arguments. Out: a ``Call``, which knows its cache key and can be traced. What is computed
here at every call is kept small: a key is built and looked up, nothing else depends on the program.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any

from sparsejit._dataclasses import dataclass
from sparsejit.api._cache_key import argument_spec, operand_token
from sparsejit.api._captures import Captures
from sparsejit.api._checks import check_output_positions, refuse_device_operands
from sparsejit.api._options import JitOptions
from sparsejit.api._program import Program, make_program, shape_of
from sparsejit.api._signature import Bound
from sparsejit.api._substitute import substitute
from sparsejit.errors import UnsupportedError
from sparsejit.pipeline import Pipeline
from sparsejit.tensors import Check, Operand, concrete, operand_of
from sparsejit.trace import Slot, Traced, TraceOptions, trace

__all__ = [
    "Call",
    "Prepared",
    "described",
    "prepare_call",
    "trace_call",
    "with_constants",
]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call: ``objects`` are the caller's operands, ``operands`` their descriptions."""

    bound: Bound
    captures: Captures
    objects: tuple[object, ...]
    operands: tuple[Operand, ...]
    key: Hashable

    @property
    def names(self) -> list[str]:
        """What each operand is called in the function."""
        return self.bound.operands.names


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """An object of a plan that nobody changes, described once; it is kept, so is its identity."""

    value: object
    operand: Operand
    token: Hashable

    @staticmethod
    def of(value: object, check: Check) -> Prepared:
        """Describe an object."""
        operand = described(value, check)
        return Prepared(value, operand, operand_token(operand))


def described(value: Any, check: Check) -> Operand:
    """Return the operand of an object, as kernels take it."""
    return concrete(operand_of(value, check))


def prepare_call(
    bound: Bound,
    captures: Captures,
    options: JitOptions,
    prepared: Mapping[int, Prepared] = MappingProxyType({}),
) -> Call:
    """Describe every operand of a call but the ``prepared``, by ``id``."""
    objects = tuple(bound.operands.objects)
    operands: list[Operand] = []
    tokens: list[Hashable] = []
    for value in objects:
        known = prepared.get(id(value)) if prepared else None
        operand = described(value, options.check) if known is None else known.operand
        operands.append(operand)
        tokens.append(operand_token(operand) if known is None else known.token)
    key = (bound.token, captures.token, tuple(tokens))
    return Call(bound, captures, objects, tuple(operands), key)


def trace_call(
    fn: Callable[..., Any],
    name: str,
    call: Call,
    options: JitOptions,
    pipeline: Pipeline,
    receiver: object = None,
    on_device: bool = False,
) -> Program:
    """Trace the user's function for this call; ``on_device``: it may have operands there."""
    start = time.perf_counter()
    if not on_device:
        refuse_device_operands(call.operands, call.names)
    specs = [
        argument_spec(operand_name, operand)
        for operand_name, operand in zip(call.names, call.operands, strict=True)
    ]
    slots = tuple(Slot(number) for number in range(len(specs)))
    captures = call.captures

    def with_captures(
        args: tuple[Any, ...], kwargs: dict[str, Any], tracers: tuple[Any, ...]
    ) -> Any:
        function: Any = substitute(captures.function, tracers) if captures.function else fn
        if receiver is not None and captures.receiver is not None:
            args = (substitute(captures.receiver, tracers), *args[1:])
        return function(*args, **kwargs)

    arguments = (call.bound.args, call.bound.kwargs, slots)
    traced = trace(with_captures, arguments, {}, specs, TraceOptions(name, options.output))
    _refuse_lost_captures(traced)
    check_output_positions(options, name, traced.result)
    return make_program(traced, pipeline, start, call.operands)


def with_constants(
    call: Call, program: Program, check: Check
) -> tuple[list[Operand], list[object], list[str]]:
    """Return operands, objects and names, those of the trace's constants last."""
    constants = program.traced.captured
    if not constants:
        return list(call.operands), list(call.objects), call.names
    operands = [*call.operands, *(described(value, check) for value in constants)]
    names = [*call.names, *(f"constant {number}" for number in range(len(constants)))]
    return operands, [*call.objects, *constants], names


def _refuse_lost_captures(traced: Traced) -> None:
    """Refuse arrays that the body met, that somebody else holds and that have no name here.

    They could be rebound without a later call noticing. What the body made itself is a constant.
    """
    captured = traced.captured
    if not captured:
        return
    control = (object(),)
    held_once = sys.getrefcount(control[0])
    for is_last_try in (False, True):
        places = range(len(captured))
        lost = [place for place in places if sys.getrefcount(captured[place]) > held_once]
        if not lost:
            return
        if is_last_try:
            raise UnsupportedError(
                f"the function uses an array of shape {shape_of(captured[lost[0]])} that it "
                "reaches neither through its arguments nor through a global, closure or attribute "
                "name",
                hint="pass it as an argument, so that later calls read it again",
            )
        gc.collect()
