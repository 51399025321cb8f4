"""User functions that cannot be read: calls of what Numba compiles.

In: a plain Python function, what its parameters are bound to, and why it could not be read. Out:
the expression of what it returns. Its dtype is what Numba infers for the dtypes of the operands,
where 16-bit floats take part as float32; their own type comes back where float32 does. Traced
scalars that the function reads from outside become operands, too.
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparsejit.errors import TraceError
from sparsejit.ir.facts import Fact, FactKind
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace
from sparsejit.trace._entries import has_nothing, nothing_of
from sparsejit.trace._function_source import UnreadableError, node_of
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import Pointwise, call, cast, select
from sparsejit.trace._symbolic import SymbolicInt
from sparsejit.user_code import (
    NotCompilableError,
    UnidentifiedError,
    typed_function,
    values_read,
)

__all__ = ["compiled_call"]


def compiled_call(
    trace: Trace, function: types.FunctionType, bound: Mapping[str, Any], unread: UnreadableError
) -> Pointwise | None:
    """Return what ``function`` gives; None where that is always nothing.

    Raises ``TraceError`` with both reasons where Numba does not compile it.
    """
    reason = unread.reasons[0]
    try:
        called, read = _with_scalars_as_parameters(trace, function)
        _refuse_tracers(called)
        operands = [*read, *_operands(trace, function, bound)]
        taken = [part.dtype.compute for part in operands]
        found = typed_function(called, taken)
    except (NotCompilableError, UnidentifiedError) as error:
        raise TraceError(
            f"{unread.what}: {reason}; and Numba does not compile it: {error}",
            hint=unread.hint,
            location=unread.location,
        ) from error
    _remember(trace, function, reason)
    if found is None:
        return None
    value, question = found
    passed = [cast(part, dtype) for part, dtype in zip(operands, taken, strict=True)]
    result = _narrowed(call(value, passed), operands)
    if question is None:
        return result
    return select(call(question, passed), result, nothing_of(result.dtype))


def _remember(trace: Trace, function: types.FunctionType, reason: str) -> None:
    """Note for ``explain`` that Numba compiles a function, and why."""
    text = f"compiled by Numba, CPU only: it cannot be read, because {reason}"
    fact = Fact(FactKind.USER_FUNCTION, function.__name__, text)
    if fact not in trace.facts:
        trace.facts.append(fact)


def _with_scalars_as_parameters(
    trace: Trace, function: types.FunctionType
) -> tuple[types.FunctionType, list[Pointwise]]:
    """Return a function that takes the traced scalars that ``function`` reads from outside as its
    first parameters, and what these are; the function itself where it reads none."""
    found = {
        name: as_array(trace, value).read()
        for name, value in values_read(function)
        if isinstance(value, SymbolicInt) or (isinstance(value, Array) and not value.extents)
    }
    if not found:
        return function, []
    try:
        node = copy.deepcopy(node_of(function))
    except UnreadableError as error:
        raise UnidentifiedError(
            f"it reads {', '.join(found)}, known at run time only, and {error.reasons[0]}"
        ) from error
    places = [ast.copy_location(ast.arg(name), node) for name in found]
    node.args.posonlyargs[:0] = places
    node.args.defaults.clear()  # they are values by now
    for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        parameter.annotation = None
    statement: ast.stmt
    if isinstance(node, ast.FunctionDef):
        node.decorator_list.clear()
        node.returns = None
        statement = node
    else:
        name = ast.copy_location(ast.Name("made", ast.Store()), node)
        statement = ast.copy_location(ast.Assign([name], node), node)
    module = ast.fix_missing_locations(ast.Module([statement], []))
    namespace = {**function.__globals__, **dict(values_read(function))}
    local: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec"), namespace, local)
    made: types.FunctionType = local.popitem()[1]
    made.__name__ = function.__name__
    made.__defaults__ = function.__defaults__
    return made, list(found.values())


def _refuse_tracers(function: types.FunctionType) -> None:
    """Refuse what is known at run time only: it can be an operand, and no constant."""
    for name, value in values_read(function):
        if isinstance(value, Array):
            raise UnidentifiedError(
                f"it reads {name}, an operand of the traced function, which is no constant; take "
                "its element as a parameter, or numbers that stay as a tuple"
            )


def _operands(
    trace: Trace, function: types.FunctionType, bound: Mapping[str, Any]
) -> Sequence[Pointwise]:
    """Return the operands: all parameters but the last ones that keep their defaults."""
    parameters = list(inspect.signature(function).parameters.values())
    given = [bound[parameter.name] for parameter in parameters]
    while given and given[-1] is parameters[len(given) - 1].default:
        given.pop()
    found = []
    for parameter, value in zip(parameters, given, strict=False):
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise UnidentifiedError(f"its parameter {parameter.name} is given by name only")
        found.append(_operand(trace, parameter.name, value))
    return found


def _operand(trace: Trace, name: str, value: Any) -> Pointwise:
    if isinstance(value, bool | int | float | complex | np.generic | SymbolicInt):
        value = as_array(trace, value).read()
    if not isinstance(value, Pointwise):
        raise UnidentifiedError(f"its parameter {name} is bound to {type(value).__name__}")
    if has_nothing(value):
        raise UnidentifiedError(f"its parameter {name} may be None, which is nothing")
    return value


def _narrowed(result: Pointwise, operands: Sequence[Pointwise]) -> Pointwise:
    """Return a float32 in the 16-bit type of the operands, where they are of one."""
    narrow = {part.dtype for part in operands if part.dtype.is_float or part.dtype.is_complex}
    if result.dtype is not DType.FLOAT32 or len(narrow) != 1:
        return result
    return cast(result, narrow.pop())
