"""The functions that a user function may call on traced scalars, as scalar expressions.

In: a Python callable (a builtin, one of ``math``, ``cmath`` or ``operator``, a NumPy ufunc) and its
operands. Out: the expression. ``min`` and ``max`` are NumPy's, so nan wins; functions of ``math``
compute in the type of a floating operand and in float64 of integers.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from sparsejit.ir.ops import UnaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.trace._pointwise import Pointwise, cast, constant_of, unary
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._ufuncs import apply, as_bool, choose, is_elementwise

__all__ = ["Rule", "is_pure", "part_of", "rule_of"]

Rule = Callable[[Sequence[Pointwise]], Pointwise]


def _to_int(part: Pointwise) -> Pointwise:
    """Return ``int(x)``, an int64 that adapts to what it meets as Python's integers do."""
    return replace(cast(part, INDEX), weak=True)


def _to_float(part: Pointwise) -> Pointwise:
    """Return ``float(x)``, a float64 that adapts to what it meets as Python's floats do."""
    return replace(cast(part, DType.FLOAT64), weak=True)


def _ufunc(ufunc: np.ufunc) -> Rule:
    return lambda parts: apply(ufunc, parts)


def _floating(part: Pointwise) -> Pointwise:
    """Return an operand of ``math``: integers and bool become float64."""
    if part.dtype.is_float or part.dtype.is_complex:
        return part
    return replace(cast(part, DType.FLOAT64), weak=part.weak)


def _math(ufunc: np.ufunc) -> Rule:
    return lambda parts: apply(ufunc, [_floating(part) for part in parts])


def _folded(ufunc: np.ufunc) -> Rule:
    return lambda parts: reduce(lambda one, other: apply(ufunc, (one, other)), parts)


def _whole(ufunc: np.ufunc) -> Rule:
    return lambda parts: _to_int(apply(ufunc, [_floating(part) for part in parts]))


def _log(parts: Sequence[Pointwise]) -> Pointwise:
    logs = [apply(np.log, (_floating(part),)) for part in parts]
    return logs[0] if len(logs) == 1 else apply(np.true_divide, logs)


def _round(parts: Sequence[Pointwise]) -> Pointwise:
    (part,) = parts
    return _to_int(apply(np.rint, (_floating(part),)))


_MATH = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "degrees": np.degrees,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fabs": np.fabs,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "pow": np.power,
    "radians": np.radians,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}

_OPERATORS = {
    "add": np.add,
    "and_": np.bitwise_and,
    "eq": np.equal,
    "floordiv": np.floor_divide,
    "ge": np.greater_equal,
    "gt": np.greater,
    "inv": np.invert,
    "invert": np.invert,
    "le": np.less_equal,
    "lshift": np.left_shift,
    "lt": np.less,
    "mod": np.remainder,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "or_": np.bitwise_or,
    "pos": np.positive,
    "pow": np.power,
    "rshift": np.right_shift,
    "sub": np.subtract,
    "truediv": np.true_divide,
    "xor": np.bitwise_xor,
}


def _table() -> dict[Any, Rule]:
    made: dict[Any, Rule] = {
        builtins.abs: _ufunc(np.absolute),
        builtins.bool: lambda parts: as_bool(*parts),
        builtins.float: lambda parts: _to_float(*parts),
        builtins.int: lambda parts: _to_int(*parts),
        builtins.max: _folded(np.maximum),
        builtins.min: _folded(np.minimum),
        builtins.pow: _ufunc(np.power),
        builtins.round: _round,
        math.ceil: _whole(np.ceil),
        math.floor: _whole(np.floor),
        math.trunc: _whole(np.trunc),
        math.log: _log,
        cmath.log: _log,
        operator.abs: _ufunc(np.absolute),
        np.where: lambda parts: choose(*parts),
        np.real: lambda parts: part_of(parts[0], "real"),
        np.imag: lambda parts: part_of(parts[0], "imag"),
    }
    for name, ufunc in _MATH.items():
        for module in (math, cmath):
            if hasattr(module, name):
                made[getattr(module, name)] = _math(ufunc)
    made.update({getattr(operator, name): _ufunc(u) for name, u in _OPERATORS.items()})
    return made


def part_of(part: Pointwise, name: str) -> Pointwise:
    """Return ``x.real`` or ``x.imag``."""
    if part.dtype.is_complex:
        return unary(UnaryOp.REAL if name == "real" else UnaryOp.IMAG, part)
    return part if name == "real" else constant_of(0, part.dtype)


_RULES = _table()

_STATIC = (complex, divmod, enumerate, len, list, range, reversed, sorted, sum, tuple, zip)
_PURE = ("cmath", "math", "numpy", "operator")


def rule_of(function: Any) -> Rule | None:
    """Return what a callable means on traced scalars, None where it has no scalar expression.

    >>> rule_of(math.erf) is None
    True
    """
    if isinstance(function, np.ufunc):
        return _ufunc(function) if is_elementwise(function) else None
    if isinstance(function, type) and issubclass(function, np.generic):
        dtype = dtype_of_numpy(function)
        return lambda parts: cast(parts[0], dtype)
    try:
        return _RULES.get(function)
    except TypeError:  # what cannot be hashed is no function of the table
        return None


def is_pure(function: Any) -> bool:
    """Return whether a function may be called while reading, where all operands are constants."""
    known = any(function is one for one in _STATIC) or rule_of(function) is not None
    return known or getattr(function, "__module__", None) in _PURE
