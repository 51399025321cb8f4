"""``CompiledFunction``: what ``sparse_jit`` makes of a function.

In: calls. Out: results. A call is described and its key looked up; the kernel that is found there
runs. Only a new key is traced and compiled, under a lock, so that threads do it once.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Mapping
from textwrap import indent
from typing import TYPE_CHECKING, Any

from sparsejit._dataclasses import dataclass
from sparsejit._locks import OpenLock
from sparsejit.api._bound_method import BoundMethod
from sparsejit.api._call import (
    Call,
    Prepared,
    prepare_call,
    trace_call,
    with_constants,
)
from sparsejit.api._captures import Captures, read_captures
from sparsejit.api._estimates import Estimate, estimate
from sparsejit.api._flatten import is_operand
from sparsejit.api._options import JitOptions
from sparsejit.api._pipeline import pipeline_of
from sparsejit.api._plan import Plan, copied
from sparsejit.api._program import Compiled, Program, Variant
from sparsejit.api._programs import Programs, fitting
from sparsejit.api._route import MISSED, LastCall, Route, make_route
from sparsejit.api._routes import Failure, Routes, Tally
from sparsejit.api._run import run_compiled
from sparsejit.api._signature import Bound, Signature
from sparsejit.api._target import (
    Target,
    backend_of,
    check_kept_memory,
    check_num_threads,
    choose_target,
    decided,
    refuse_cuda,
    why_not_cuda,
)
from sparsejit.backends import OnDevice
from sparsejit.debug import logger
from sparsejit.errors import TensorTypeError, VerificationError
from sparsejit.explain import OperandNote, explain_text
from sparsejit.runtime.residents import FIXED
from sparsejit.trace import is_tracing

if TYPE_CHECKING:
    from sparsejit.api._lowered import Lowered

__all__ = ["CacheInfo", "CompiledFunction"]


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """``traces`` of the function, ``compiles`` of kernels, and ``hits``: calls without either."""

    traces: int
    compiles: int
    hits: int


class CompiledFunction:
    """A function compiled for each kind of operands it meets; ``py_func`` is the original.

    Made by ``sparse_jit``, whose documentation says what calling it means.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> double = sj.sparse_jit(lambda x: x + x, target="interpreter")
    >>> double(np.arange(3)).tolist(), double(np.arange(5)).tolist()
    ([0, 2, 4], [0, 2, 4, 6, 8])
    >>> double.cache_info()
    CacheInfo(traces=1, compiles=1, hits=1)
    """

    def __init__(self, fn: Callable[..., Any], options: JitOptions) -> None:
        if not callable(fn):
            raise ValueError(f"sparse_jit decorates a function, not {fn!r}")
        functools.update_wrapper(self, fn)
        self.__name__: str = getattr(fn, "__name__", type(fn).__name__)
        self.py_func = fn
        self.options = options
        self._signature = Signature(fn, options.static_argnames)
        self._pipeline = pipeline_of(options)
        self._device_pipeline = pipeline_of(options, for_device=True)
        self._is_method = False
        self._programs = Programs()
        self._lock = OpenLock()
        self._traces = self._compiles = 0
        self._tally = Tally()
        self._routes = self.routes(self._tally)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self._signature.names

    # ------------------------------------------------------------ calling

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                found = self._routes.straight_answer(args)
                if found is not MISSED:
                    return found
            if not is_tracing():
                if not kwargs:
                    found = self._routes.answer(args)
                    if found is not MISSED:
                        return found
                return self._called(args, kwargs)
        except Exception as error:  # raised again, whatever it is: explain() tells why
            self._tally.failed(error)
            raise
        return self.py_func(*args, **kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the result of a call that is not answered by its positional arguments."""
        bound, captures, receiver = self._bound(args, kwargs)
        tokens, objects = (bound.token, captures.token), bound.operands.objects
        key = self._routes.key(tokens, objects)
        found = self._routes.answer_to(key, objects)
        if found is not MISSED:
            return found
        call = prepare_call(bound, captures, self.options)
        described = self._routes.key(tokens, objects)
        if key is None and described is not None:  # new objects, maybe like others before
            found = MISSED if kwargs else self._routes.straight_answer(args)
            if found is MISSED:
                found = self._routes.answer_to(described, objects)
            if found is not MISSED:
                return found
        wants_route = self._routes.comes_again(described)
        result, route = self._run(call, receiver, self._tally, wants_route=wants_route)
        if route is not None:
            self._routes.add(self._routes.key(tokens, objects), route)
            if not kwargs:
                self._routes.note(args, route)
        return result

    def call_named(
        self, named: Mapping[str, Any], prepared: Mapping[int, Prepared], tally: Tally
    ) -> tuple[Any, Route | None]:
        """Call with arguments by name; the objects that are ``prepared`` stay as they are.

        Returns the result, and the route for further calls like this one.
        """
        call, receiver = self._call_named(named, prepared)
        return self._run(call, receiver, tally, prepared)

    def _call_named(
        self, named: Mapping[str, Any], prepared: Mapping[int, Prepared]
    ) -> tuple[Call, object]:
        first = named.get(self.parameters[0]) if self._is_method and self.parameters else None
        receiver = None if is_operand(first) else first
        bound = self._signature.bind_named(named, is_method=receiver is not None)
        captures = read_captures(self.py_func, bound.operands, receiver)
        return prepare_call(bound, captures, self.options, prepared), receiver

    def plan_tally(self) -> Tally:
        """Return a tally for a plan, whose calls count as calls of this function."""
        return Tally(self._tally)

    def routes(self, tally: Tally, fixed: frozenset[int] = frozenset()) -> Routes:
        """Return new, empty routes; calls by them are counted in ``tally``.

        The parameters that are ``fixed``, by number, are always the same.
        """
        needs_check = self.options.check == "once"
        return Routes(self.py_func, self._signature.arity, needs_check, tally, fixed)

    def _bound(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Bound, Captures, object]:
        """Return the bound arguments, what is captured, and the object a method is called on."""
        receiver = args[0] if self._is_method and args and not is_operand(args[0]) else None
        bound = self._signature.bind(args, kwargs, is_method=receiver is not None)
        return bound, read_captures(self.py_func, bound.operands, receiver), receiver

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Call, object]:
        """Return the call and the object that a method is called on."""
        bound, captures, receiver = self._bound(args, kwargs)
        return prepare_call(bound, captures, self.options), receiver

    def _run(
        self,
        call: Call,
        receiver: object,
        tally: Tally,
        private: Mapping[int, Prepared] | None = None,
        *,
        wants_route: bool = True,
    ) -> tuple[Any, Route | None]:
        """Return the result of a call, and the route for calls like it, where that is wanted."""
        target, program, numbers, is_known = self._placed(call, receiver, is_run=True)
        operands, objects, names = with_constants(call, program, self.options.check)
        for limit in program.ranges:
            limit.check(objects[limit.number])
        variant = program.variant(numbers, operands, self.options.check)
        compiled = program.compiled.get(variant)
        was_hit = is_known and compiled is not None
        if compiled is None:
            compiled = self._compiled(program, variant, target)
        if private:
            _keep_private(program, objects, names, private)
            for number in compiled.returned_params:
                if id(objects[number]) in private:
                    objects[number] = copied(objects[number])
        start = time.perf_counter()
        result = run_compiled(program, compiled, numbers, operands, objects, names)
        notes = tuple(map(OperandNote.of, names, operands))
        seconds = time.perf_counter() - start
        last = LastCall(program, variant, target, notes, was_hit)
        tally.last = tally.whole.last = last, seconds
        if was_hit:
            tally.one_more()
        if not (was_hit and wants_route):  # a call that compiles may be the only one
            return result, None
        if target.name == "cuda" or target.is_open:  # plans and estimates look at each call
            return result, None
        check = self.options.check
        route = make_route(last, compiled, numbers, operands, objects, check, private or ())
        return result, route

    def _placed(
        self, call: Call, receiver: object, *, is_run: bool
    ) -> tuple[Target, Program, list[int], bool]:
        """Return the target of a call, and what ``_program`` gives for it.

        A call that is run on a device opens it first: ``DeviceError`` says what is missing.
        """
        target = choose_target(self.options, call.operands)
        found = self._program(call, receiver, target)
        if target.is_open and not why_not_cuda(found[0].func):
            target = decided(target, self._estimate(call, found[0], found[1]))
            if target.name == "cuda":
                found = self._program(call, receiver, target)
        if is_run and target.name == "cuda":
            from sparsejit.runtime.opening import open_device

            refuse_cuda(found[0].func)
            open_device()
        return target, *found

    def _estimate(self, call: Call, program: Program, numbers: list[int]) -> Estimate:
        buffers = [buffer for operand in call.operands for buffer in operand.buffers]
        moved = sum(buffer.nbytes for buffer in buffers if not FIXED.is_fixed(buffer))
        stored = [operand.values.size for operand in call.operands]
        return estimate(program.func, numbers, stored, moved, self.options.transfer.value)

    def _program(
        self, call: Call, receiver: object, target: Target
    ) -> tuple[Program, list[int], bool]:
        """Return the program for a call, the values of its symbols, and whether it was known."""
        key = (target.name, target.engine, call.key)
        found = self._programs.find(key, call)
        if found is not None:
            return *found, True
        with self._lock:
            found = self._programs.find(key, call)
            if found is not None:
                return *found, True
            on_device = target.name == "cuda"
            pipeline = self._device_pipeline if on_device else self._pipeline
            program = trace_call(
                self.py_func, self.__name__, call, self.options, pipeline, receiver, on_device
            )
            found = fitting((program,), call)
            if found is None:
                raise VerificationError(
                    "a trace fits its own call", f"{self.__name__} does not fit its operands"
                )
            self._programs.add(key, program)
            self._traces += 1
            logger.debug("traced %s in %.1f ms", self.__name__, program.seconds * 1e3)
            return *found, False

    def _compiled(self, program: Program, variant: Variant, target: Target) -> Compiled:
        """Return the kernel of a program, compiling it when no other thread has."""
        with self._lock:
            known = program.known(variant)
            if known is not None:
                return known
            check_num_threads()
            check_kept_memory()
            made = program.compile(variant, backend_of(target, self.options), self.options)
            self._compiles += 1
            logger.debug("compiled %s in %.1f ms", self.__name__, made.seconds * 1e3)
            return made

    # ------------------------------------------------------------ looking

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for the kinds of these arguments, without running anything."""
        return self._lowered(*self._call(args, kwargs))

    def _lowered(self, call: Call, receiver: object) -> Lowered:
        from sparsejit.api._lowered import Lowered

        target, program, numbers, _ = self._placed(call, receiver, is_run=False)
        operands, _, names = with_constants(call, program, self.options.check)
        variant = program.variant(numbers, operands, self.options.check)
        notes = tuple(map(OperandNote.of, names, operands))
        caller = self if receiver is None else BoundMethod(self, receiver)
        flat = program.arguments(numbers, operands)
        return Lowered(self, program, variant, target, notes, caller, flat)

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """Say what is done for these arguments and why; without arguments, for the last call.

        Of a call that failed it says why. Raises ``ValueError`` when there was no call.
        """
        if args or kwargs or (self._tally.last is None and not self.parameters):
            return self.lower(*args, **kwargs).explain()
        return self.explain_last(self._tally)

    def explain_last(self, tally: Tally) -> str:
        """Say what was done in the last call of a tally; see ``explain``."""
        match tally.last:
            case None:
                raise ValueError(
                    f"{self.__name__} has not been called yet: call it, or use explain(*args)"
                )
            case Failure(text):
                return f"{self.__name__}: the last call failed\n{indent(text, '  ')}"
            case last, seconds:
                from sparsejit.api._lowered import make_report

                report = make_report(
                    self, last.program, last.variant, last.target, last.operands, seconds,
                    last.was_hit,
                )  # fmt: skip
                return explain_text(report)

    def explain_named(self, named: Mapping[str, Any], prepared: Mapping[int, Prepared]) -> str:
        """``explain`` of arguments by name, of which some are ``prepared``."""
        return self._lowered(*self._call_named(named, prepared)).explain()

    def cache_info(self) -> CacheInfo:
        """Return how often the function was traced and compiled, and how many calls did neither."""
        return CacheInfo(self._traces, self._compiles, self._tally.hits)

    def bind(self, /, **fixed: Any) -> Plan:
        """Return a plan: this function with some arguments fixed at their present values.

        ``TypeError`` for a name that is no parameter.
        """
        return Plan(self, fixed)

    def evaluate(self, program: Program, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Evaluate a program in NumPy; see ``Lowered.reference``."""
        from sparsejit.api._reference_call import reference_of

        call, _ = self._call(args, kwargs)
        found = fitting((program,), call)
        if found is None:
            raise TensorTypeError("the arguments do not fit the program that was lowered")
        operands, _, _ = with_constants(call, program, self.options.check)
        return reference_of(program, found[1], operands)

    def compile_now(self, program: Program, variant: Variant, target: Target) -> None:
        """Make the kernel of a program; see ``Lowered.compile``."""
        kernel = self._compiled(program, variant, target).kernel
        if isinstance(kernel, OnDevice):
            kernel.compile()

    # ------------------------------------------------------------ as an object of Python

    def __set_name__(self, owner: type, name: str) -> None:
        self._is_method = True

    def __get__(self, obj: object, owner: type | None = None) -> CompiledFunction | BoundMethod:
        return self if obj is None else BoundMethod(self, obj)

    def __repr__(self) -> str:
        return f"<sparse_jit function {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by reference to the source: as a global, or as its function and options."""
        name = getattr(self.py_func, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self.py_func, "__module__", None) or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return CompiledFunction, (self.py_func, self.options)


def _keep_private(
    program: Program, objects: list[object], names: list[str], private: Mapping[int, Prepared]
) -> None:
    """Refuse to assign to the fixed arguments of a plan."""
    for number in program.aliases.assigned:
        if id(objects[number]) in private:
            raise ValueError(
                f"the function assigns to argument {names[number]!r}, which is fixed in the plan"
            )
