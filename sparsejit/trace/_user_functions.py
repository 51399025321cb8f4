"""User functions: a plain Python function of scalars, read into a scalar expression.

In: the function and the expressions of its parameters. Out: the expression of what it returns,
None where it returns None ("nothing there"). It is read from its syntax tree, or else called as it
is (``_compiled_functions``): statements by
``_Reader``, expressions by ``_user_expressions``. A branch on a traced value computes both sides
and selects; what does not depend on a traced value (captured numbers, ``range`` of a constant) is
computed while reading.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sparsejit.errors import TraceError, UnsupportedError
from sparsejit.trace._compiled_functions import compiled_call
from sparsejit.trace._context import Trace
from sparsejit.trace._function_source import UnreadableError, location_of, node_of
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise
from sparsejit.trace._scalar_functions import rule_of
from sparsejit.trace._user_expressions import (
    Names,
    Scope,
    bounded,
    evaluate,
    lifted,
    merged,
    plain_function,
    truth,
)

__all__ = ["read_function"]

_UNROLLED = 64


def read_function(
    trace: Trace,
    what: str,
    function: Any,
    values: Sequence[Pointwise],
    coordinates: Mapping[str, Pointwise],
) -> Pointwise | None:
    """Return what ``function`` gives for ``values``; None where that is nothing.

    Parameters after the values are bound by name to ``coordinates``; those with a default that
    name none keep it. What cannot be read is compiled by Numba. Raises ``TraceError`` for a wrong
    signature and for what Numba does not compile either, with the line.
    """
    rule = rule_of(function)
    if rule is not None:
        return rule(values)
    plain = plain_function(function)
    if plain is None:
        raise TraceError(
            f"{what} is a plain Python function of scalars, not {function!r}",
            hint='give a function, "identity" or None',
            location=caller(),
        )
    bound = _bound(what, plain, values, coordinates)
    try:
        result = _call(Scope(trace, plain, 0, _call), dict(bound))
    except UnreadableError as unread:
        return compiled_call(trace, plain, bound, unread)
    return None if result is None else lifted(trace, result)


def _bound(
    what: str,
    fn: types.FunctionType,
    values: Sequence[Pointwise],
    coordinates: Mapping[str, Pointwise],
) -> dict[str, Any]:
    """Return the value of each parameter."""
    parameters = list(inspect.signature(fn).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise UnsupportedError(
            f"{what} with *args or **kwargs is not built", location=location_of(fn)
        )
    if len(parameters) < len(values):
        raise TraceError(
            f"{what} is called with {len(values)} values, but {fn.__name__} takes "
            f"{len(parameters)}",
            location=location_of(fn),
        )
    bound: dict[str, Any] = {p.name: value for p, value in zip(parameters, values, strict=False)}
    for parameter in parameters[len(values) :]:
        if parameter.name in coordinates:
            bound[parameter.name] = coordinates[parameter.name]
        elif parameter.default is not parameter.empty:
            bound[parameter.name] = parameter.default
        else:
            known = ", ".join(coordinates) or "none"
            raise TraceError(
                f"the parameter {parameter.name} of {what} names no index",
                hint=f"after the values come indices by name; here: {known}",
                location=location_of(fn),
            )
    return bound


def _call(scope: Scope, bound: dict[str, Any]) -> Any:
    """Return what the function of ``scope`` gives for its parameters."""
    node = node_of(scope.function)
    if isinstance(node, ast.Lambda):
        return evaluate(scope, node.body, bound)
    return _Reader(scope).block(node.body, bound)


class _Reader:
    """Reads the statements of one function."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def block(self, statements: Sequence[ast.stmt], names: Names) -> Any:
        """Return what a function body returns; None where it ends without ``return``."""
        for number, statement in enumerate(statements):
            match statement:
                case ast.Return(value):
                    return None if value is None else evaluate(self.scope, value, names)
                case ast.If(test, body, orelse) if _returns(statement):
                    rest = list(statements[number + 1 :])
                    condition = truth(self.scope, test, names)
                    if isinstance(condition, bool):
                        return self.block([*(body if condition else orelse), *rest], names)
                    then = self.block([*body, *rest], dict(names))
                    other = self.block([*orelse, *rest], dict(names))
                    return merged(self.scope, statement, condition, then, other)
                case ast.For() if _returns(statement):
                    unrolled = self.unrolled(statement, names)
                    return self.block([*unrolled, *statements[number + 1 :]], names)
                case _:
                    self.statement(statement, names)
        return None

    def statement(self, statement: ast.stmt, names: Names) -> None:
        """Do one statement that does not return; it changes ``names``."""
        match statement:
            case ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case ast.Assign(targets, value):
                result = evaluate(self.scope, value, names)
                for target in targets:
                    self.bind(target, result, names)
            case ast.AnnAssign(target, _, value) if value is not None:
                self.bind(target, evaluate(self.scope, value, names), names)
            case ast.AugAssign(ast.Name(name) as target, op, value):
                read = ast.copy_location(ast.Name(name, ast.Load()), target)
                whole = ast.copy_location(ast.BinOp(read, op, value), statement)
                names[name] = evaluate(self.scope, whole, names)
            case ast.If():
                self.branch(statement, names)
            case ast.For():
                for inner in self.unrolled(statement, names):
                    self.statement(inner, names)
            case _:
                self.refuse(statement, f"{type(statement).__name__} is no scalar expression")

    def branch(self, statement: ast.If, names: Names) -> None:
        condition = truth(self.scope, statement.test, names)
        if isinstance(condition, bool):
            for inner in statement.body if condition else statement.orelse:
                self.statement(inner, names)
            return
        sides = dict(names), dict(names)
        for side, block in zip(sides, (statement.body, statement.orelse), strict=True):
            for inner in block:
                self.statement(inner, side)
        then, other = sides
        names.clear()
        for name in then.keys() & other.keys():  # what only one side binds is bound on neither
            whole = merged(self.scope, statement, condition, then[name], other[name])
            names[name] = bounded(self.scope, statement, whole)

    def unrolled(self, statement: ast.For, names: Names) -> list[ast.stmt]:
        """Return the statements of a loop over constants, one turn after the other."""
        values = evaluate(self.scope, statement.iter, names)
        nested = [node for inner in statement.body for node in ast.walk(inner)]
        if isinstance(values, Pointwise) or statement.orelse:
            self.refuse(statement, "a loop runs over constants")
        if any(isinstance(node, ast.Break | ast.Continue) for node in nested):
            self.refuse(statement, "break and continue are not read")
        items = list(values)
        if len(items) > _UNROLLED:
            self.refuse(statement, f"a loop is unrolled at most {_UNROLLED} times")
        made: list[ast.stmt] = []
        for item in items:
            constant = ast.copy_location(ast.Constant(item), statement)
            bind = ast.copy_location(ast.Assign([statement.target], constant), statement)
            made += [bind, *statement.body]
        return made

    def bind(self, target: ast.expr, value: Any, names: Names) -> None:
        match target:
            case ast.Name(name):
                names[name] = bounded(self.scope, target, value)
            case ast.Tuple(parts) | ast.List(parts) if isinstance(value, tuple | list):
                if len(parts) != len(value):
                    self.refuse(target, f"{len(value)} values for {len(parts)} names")
                for part, item in zip(parts, value, strict=True):
                    self.bind(part, item, names)
            case _:
                self.refuse(target, "only names are assigned")

    def refuse(self, node: ast.AST, reason: str) -> NoReturn:
        self.scope.refuse(node, reason)


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))
