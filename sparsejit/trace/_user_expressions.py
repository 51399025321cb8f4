"""The expressions of a user function: from Python's syntax tree to scalar expressions.

In: an expression node and what the names stand for. Out: a ``Pointwise`` where it depends on a
traced value, else the Python value itself. ``and``, ``or`` and conditional expressions select, as
Python does; comparisons chain; plain Python functions that are called are read in turn.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace
from sparsejit.trace._entries import has_nothing, nothing_of, over_entries
from sparsejit.trace._function_source import UnreadableError, location_of
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import Pointwise, select, size_of
from sparsejit.trace._promotion import converted, result_dtype
from sparsejit.trace._scalar_functions import is_pure, part_of, rule_of
from sparsejit.trace._symbolic import SymbolicInt
from sparsejit.trace._ufuncs import apply, as_bool, weakened

__all__ = ["Names", "Scope", "bounded", "evaluate", "lifted", "merged", "plain_function", "truth"]

Names = dict[str, Any]
"""What the local names stand for: expressions, or Python values."""

_DEEPEST = 16
_LARGEST = 2048

_BINARY: dict[type[ast.operator], tuple[np.ufunc, Callable[[Any, Any], Any]]] = {
    ast.Add: (np.add, operator.add),
    ast.Sub: (np.subtract, operator.sub),
    ast.Mult: (np.multiply, operator.mul),
    ast.Div: (np.true_divide, operator.truediv),
    ast.FloorDiv: (np.floor_divide, operator.floordiv),
    ast.Mod: (np.remainder, operator.mod),
    ast.Pow: (np.power, operator.pow),
    ast.BitAnd: (np.bitwise_and, operator.and_),
    ast.BitOr: (np.bitwise_or, operator.or_),
    ast.BitXor: (np.bitwise_xor, operator.xor),
    ast.LShift: (np.left_shift, operator.lshift),
    ast.RShift: (np.right_shift, operator.rshift),
}
_COMPARE: dict[type[ast.cmpop], tuple[np.ufunc, Callable[[Any, Any], Any]]] = {
    ast.Eq: (np.equal, operator.eq),
    ast.NotEq: (np.not_equal, operator.ne),
    ast.Lt: (np.less, operator.lt),
    ast.LtE: (np.less_equal, operator.le),
    ast.Gt: (np.greater, operator.gt),
    ast.GtE: (np.greater_equal, operator.ge),
}
_STATIC_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_UNARY: dict[type[ast.unaryop], tuple[np.ufunc, Callable[[Any], Any]]] = {
    ast.USub: (np.negative, operator.neg),
    ast.UAdd: (np.positive, operator.pos),
    ast.Invert: (np.invert, operator.inv),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The function that is being read; ``call`` reads another one that it calls."""

    trace: Trace
    function: types.FunctionType
    depth: int
    call: Callable[[Scope, Names], Any]

    def refuse(self, node: ast.AST, reason: str) -> NoReturn:
        """Raise ``UnreadableError`` at the line of ``node``."""
        raise UnreadableError(
            f"the user function {self.function.__name__} cannot be read",
            hint="use assignments, if and else, arithmetic, comparisons, min, max, abs and math",
            reasons=(reason,),
            location=location_of(self.function, node),
        )


def plain_function(function: Any) -> types.FunctionType | None:
    """Return the Python function that is called, also that of a decorated one; None for others."""
    inner = getattr(function, "py_func", function)
    return inner if isinstance(inner, types.FunctionType) else None


def lifted(trace: Trace, value: Any) -> Pointwise:
    """Return a value as an expression; ``TraceError`` for what is no number."""
    return value if isinstance(value, Pointwise) else as_array(trace, value).read()


def truth(scope: Scope, node: ast.expr, names: Names) -> Pointwise | bool:
    """Return a condition: known while reading, or an expression."""
    value = _traced(scope, node, evaluate(scope, node, names))
    if not isinstance(value, Pointwise):
        return bool(value)
    condition = as_bool(value)
    return condition if condition.const is None else bool(condition.const.value)


def merged(scope: Scope, node: ast.AST, condition: Pointwise, then: Any, orelse: Any) -> Any:
    """Return ``then`` where ``condition`` holds, else ``orelse``; None is nothing there."""
    if then is orelse or (not isinstance(then, Pointwise) and _same(then, orelse)):
        return then
    if isinstance(then, tuple) and isinstance(orelse, tuple) and len(then) == len(orelse):
        pairs = zip(then, orelse, strict=True)
        return tuple(merged(scope, node, condition, one, other) for one, other in pairs)
    for side in (then, orelse):
        if not isinstance(side, Pointwise | bool | int | float | complex | np.generic | None):
            scope.refuse(node, f"a branch gives {type(side).__name__}, which is no number")
    if then is None or orelse is None:
        part = lifted(scope.trace, orelse if then is None else then)
        nothing = nothing_of(part.dtype)
        sides = (nothing, part) if then is None else (part, nothing)
        return replace(select(condition, *sides), weak=part.weak)
    parts = lifted(scope.trace, then), lifted(scope.trace, orelse)
    dtype = result_dtype(parts)
    chosen = select(condition, *(tree_cast(part, dtype) for part in parts))
    return weakened(chosen, parts)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and not isinstance(other, Pointwise) and one == other


def tree_cast(part: Pointwise, dtype: DType) -> Pointwise:
    """Return ``part`` in ``dtype``; what is nothing stays nothing."""
    return over_entries(part, lambda entry: converted(entry, dtype), nothing_of(dtype))


def evaluate(scope: Scope, node: ast.expr, names: Names) -> Any:  # noqa: C901 - one case for each kind
    """Return the value of an expression.

    Raises ``UnreadableError`` at the line of what cannot be read.
    """

    def walk(inner: ast.expr) -> Any:
        return evaluate(scope, inner, names)

    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return _name(scope, node, name, names)
        case ast.Attribute(inner, attribute):
            return _attribute(scope, node, walk(inner), attribute)
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _operated(scope, node, _BINARY[type(op)], (walk(left), walk(right)))
        case ast.UnaryOp(ast.Not(), operand):
            condition = truth(scope, operand, names)
            if isinstance(condition, bool):
                return not condition
            return apply(np.logical_not, (condition,))
        case ast.UnaryOp(op, operand):
            return _operated(scope, node, _UNARY[type(op)], (walk(operand),))
        case ast.Compare(left, ops, comparators):
            return _compared(scope, node, walk(left), ops, [walk(c) for c in comparators])
        case ast.BoolOp(op, parts):
            return _boolean(scope, node, isinstance(op, ast.And), parts, names)
        case ast.IfExp(test, then, orelse):
            condition = truth(scope, test, names)
            if isinstance(condition, bool):
                return walk(then if condition else orelse)
            return merged(scope, node, condition, walk(then), walk(orelse))
        case ast.Call():
            return _called(scope, node, names)
        case ast.Tuple(parts) | ast.List(parts):
            return tuple(walk(part) for part in parts)
        case ast.Subscript(inner, index):
            base, at = walk(inner), walk(index)
            if isinstance(base, tuple | list | dict) and not isinstance(at, Pointwise):
                return base[at]
            return scope.refuse(node, "only tuples, lists and dicts of constants are subscripted")
        case _:
            return scope.refuse(node, f"{type(node).__name__} is no scalar expression")


def _traced(scope: Scope, node: ast.AST, value: Any) -> Any:
    """Return an operand: constants of the trace as they are, traced values as expressions."""
    if value is None:
        scope.refuse(node, "None, which is nothing, is an operand here")
    if isinstance(value, SymbolicInt | Array):
        value = as_array(scope.trace, value)
        if value.extents:
            scope.refuse(node, "an array is an operand here; take it as an operand of its own")
        value = value.read()
    if isinstance(value, Pointwise) and has_nothing(value):
        scope.refuse(node, "what may be None, which is nothing, is an operand here")
    return value


def _operated(
    scope: Scope,
    node: ast.AST,
    operation: tuple[np.ufunc, Callable[..., Any]],
    operands: Sequence[Any],
) -> Any:
    """Return an operator of traced values, or of constants."""
    values = [_traced(scope, node, operand) for operand in operands]
    ufunc, static = operation
    if not any(isinstance(value, Pointwise) for value in values):
        return static(*values)
    parts = [lifted(scope.trace, value) for value in values]
    return bounded(scope, node, weakened(apply(ufunc, parts), parts))


def bounded(scope: Scope, node: ast.AST, value: Any) -> Any:
    """Return ``value``, refused where it is too large.

    Expressions are trees: a value that is used three times in each turn of a loop triples.
    """
    if isinstance(value, Pointwise) and size_of(value) > _LARGEST:
        scope.refuse(node, f"the expression has more than {_LARGEST} operations")
    return value


def _compared(
    scope: Scope, node: ast.AST, left: Any, ops: Sequence[ast.cmpop], rights: Sequence[Any]
) -> Any:
    """Return a chain of comparisons."""
    results = []
    for op, right in zip(ops, rights, strict=True):
        if type(op) in _STATIC_COMPARE:
            if isinstance(left, Pointwise) or isinstance(right, Pointwise):
                scope.refuse(node, "is and in compare constants only")
            results.append(_STATIC_COMPARE[type(op)](left, right))
        else:
            results.append(_operated(scope, node, _COMPARE[type(op)], (left, right)))
        left = right
    traced = [as_bool(result) for result in results if isinstance(result, Pointwise)]
    if not all(result for result in results if not isinstance(result, Pointwise)):
        return False
    if not traced:
        return True
    return reduce(lambda one, other: apply(np.logical_and, (one, other)), traced)


def _boolean(
    scope: Scope, node: ast.AST, is_and: bool, parts: Sequence[ast.expr], names: Names
) -> Any:
    """Return ``and`` or ``or``: the first operand that decides, as Python gives it."""
    first = _traced(scope, node, evaluate(scope, parts[0], names))
    if len(parts) == 1:
        return first
    if not isinstance(first, Pointwise):
        decided = bool(first) is not is_and
        return first if decided else _boolean(scope, node, is_and, parts[1:], names)
    rest = _traced(scope, node, _boolean(scope, node, is_and, parts[1:], names))
    condition = as_bool(first)
    if first.dtype is DType.BOOL and lifted(scope.trace, rest).dtype is DType.BOOL:
        ufunc = np.logical_and if is_and else np.logical_or
        return apply(ufunc, (first, lifted(scope.trace, rest)))
    sides = (rest, first) if is_and else (first, rest)
    return merged(scope, node, condition, *sides)


def _name(scope: Scope, node: ast.AST, name: str, names: Names) -> Any:
    """Return what a name stands for: a local, a captured or a global one, a builtin."""
    if name in names:
        return names[name]
    function = scope.function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in function.__code__.co_varnames:
        scope.refuse(node, f"{name} is not bound on every path")
    if name in cells:
        return cells[name].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    return scope.refuse(node, f"the name {name} is not defined")


def _attribute(scope: Scope, node: ast.AST, value: Any, name: str) -> Any:
    if isinstance(value, Pointwise):
        if name in ("real", "imag"):
            return part_of(value, name)
        return scope.refuse(node, f"a scalar has no attribute {name} that is read")
    if not hasattr(value, name):
        scope.refuse(node, f"{name} is no attribute of {type(value).__name__}")
    return getattr(value, name)


def _called(scope: Scope, node: ast.Call, names: Names) -> Any:
    """Return a call: of a function of the table, of a plain Python function, or of constants."""
    match node.func:
        case ast.Attribute(inner, "conj" | "conjugate") if not node.args:
            value = _traced(scope, node, evaluate(scope, inner, names))
            return apply(np.conjugate, (lifted(scope.trace, value),))
        case _:
            function = evaluate(scope, node.func, names)
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        scope.refuse(node, "starred arguments are not read")
    args = [evaluate(scope, argument, names) for argument in node.args]
    named = {str(k.arg): evaluate(scope, k.value, names) for k in node.keywords if k.arg}
    plain = plain_function(function)
    if plain is not None and not is_pure(function):
        return _inlined(scope, node, plain, args, named)
    values = [_traced(scope, node, argument) for argument in args]
    if not any(isinstance(value, Pointwise) for value in (*values, *named.values())):
        if not is_pure(function):
            scope.refuse(node, f"{_text(function)} is no function of scalars that is known")
        return function(*values, **named)
    rule = rule_of(function)
    if rule is None or named:
        return scope.refuse(node, f"{_text(function)} has no scalar expression")
    return rule([lifted(scope.trace, value) for value in values])


def _inlined(
    scope: Scope,
    node: ast.AST,
    function: types.FunctionType,
    args: Sequence[Any],
    named: dict[str, Any],
) -> Any:
    """Return what a plain Python function gives, read in turn."""
    if scope.depth >= _DEEPEST:
        scope.refuse(node, f"functions call each other more than {_DEEPEST} deep")
    try:
        bound = inspect.signature(function).bind(*args, **named)
    except TypeError as error:
        scope.refuse(node, str(error))
    bound.apply_defaults()
    return scope.call(Scope(scope.trace, function, scope.depth + 1, scope.call), bound.arguments)


def _text(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)
