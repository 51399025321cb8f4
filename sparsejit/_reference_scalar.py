"""Scalar expressions over arrays, with the algebra of what is not stored.

A ``Lanes`` is an array of values and, for each, where it comes from: a constant of the program, an
operand that stores nothing there, a stored entry, or nowhere (no value). An operation of something
missing that equals the operation's annihilator is the annihilator, also against inf and nan; any
other operation of something stored is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.ir.fold import constant, integer_limits, numpy_dtype, numpy_unary
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    UserFunction,
)
from sparsejit.ir.types import DType

__all__ = [
    "LITERAL",
    "NOTHING",
    "STORED",
    "UNSTORED",
    "Array",
    "Lanes",
    "as_dtype",
    "evaluate_scalar",
    "widened",
]

Array = np.ndarray[Any, np.dtype[Any]]

LITERAL, UNSTORED, STORED, NOTHING = range(4)
"""The states of a value, each overriding those before it when values are combined."""


_EVERYWHERE = np.array(True)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Values and their states, two arrays that broadcast against each other."""

    values: Array
    states: Array


def evaluate_scalar(  # noqa: C901 - one case for each kind
    expr: ScalarExpr,
    operands: Sequence[Lanes],
    loops: Sequence[Array],
    asked: Array = _EVERYWHERE,
) -> Lanes:
    """Return ``expr`` with operand ``k`` being ``operands[k]``, at the coordinates ``loops``.

    The values matter where ``asked`` holds only; user functions are not called elsewhere.
    """

    def walk(inner: ScalarExpr) -> Lanes:  # noqa: C901 - one case for each kind
        match inner:
            case Arg(index):
                return operands[index]
            case Const(value, dtype):
                return _constant(value, dtype, LITERAL)
            case Coordinate(loop):
                return Lanes(loops[loop], np.array(STORED))
            case Stored(index):
                states = operands[index].states
                return Lanes(states == STORED, states)
            case Nothing(dtype):
                return _constant(0, dtype, NOTHING)
            case Cast(operand, dtype):
                whole = walk(operand)
                return Lanes(as_dtype(whole.values, dtype), whole.states)
            case Unary(op, operand):
                whole = walk(operand)
                return Lanes(_unary(op, whole.values), whole.states)
            case Binary(op, lhs, rhs):
                return _binary(op, walk(lhs), walk(rhs))
            case Select(condition, then, orelse):
                chosen = walk(condition)
                holds = chosen.values.astype(np.bool_)
                sides = (
                    evaluate_scalar(then, operands, loops, asked & holds),
                    evaluate_scalar(orelse, operands, loops, asked & ~holds),
                )
                return _select(condition, chosen, *sides)
            case Call(function, inputs):
                return _called(function, [walk(part) for part in inputs], asked)
            case _:
                assert_never(inner)

    return walk(expr)


def _constant(value: bool | int | float | complex, dtype: DType, state: int) -> Lanes:
    return Lanes(np.asarray(value).astype(numpy_dtype(dtype)), np.array(state))


def widened(values: Array) -> Array:
    """Return the values in the type that arithmetic runs in: 16-bit floats as float32."""
    if values.dtype.itemsize == 2 and values.dtype.kind not in "iu":
        return values.astype(np.float32)
    return values


def _unary(op: UnaryOp, values: Array) -> Array:
    return np.asarray(numpy_unary(op)(widened(values)))


def _binary(op: BinaryOp, lhs: Lanes, rhs: Lanes) -> Lanes:
    left, right = widened(lhs.values), widened(rhs.values)
    computed = (
        _power(left, right) if op is BinaryOp.POW else getattr(np, op.info.numpy)(left, right)
    )
    states = np.maximum(lhs.states, rhs.states)
    for side, values, annihilator in (
        (rhs, right, op.info.right_annihilator),
        (lhs, left, op.info.left_annihilator),
    ):
        if annihilator is None:
            continue
        wins = (side.states == UNSTORED) & (values == annihilator) & (states != NOTHING)
        computed = np.where(wins, values, computed)
        states = np.where(wins, UNSTORED, states)
    return Lanes(np.asarray(computed), states)


def _called(function: UserFunction, inputs: Sequence[Lanes], asked: Array) -> Lanes:
    """Call the Python function itself with Python's numbers, element by element, where asked.

    What is computed of anything but nothing is an entry.
    """
    parts = [part for lanes in inputs for part in (lanes.values, lanes.states)]
    asked, *lanes = np.broadcast_arrays(asked, *parts)
    nothing = np.zeros(asked.shape, np.bool_)
    for states in lanes[1::2]:
        nothing |= states == NOTHING
    dtype = function.result
    values = np.zeros(asked.shape, numpy_dtype(dtype))
    python = function.function
    assert python is not None
    for place in zip(*np.nonzero(np.atleast_1d(asked & ~nothing)), strict=True):
        at = place if asked.ndim else ()
        given = python(*(lane[at].item() for lane in lanes[::2]))
        if function.is_question:
            given = given is not None
        values[at] = constant(0 if given is None else given, dtype).value
    return Lanes(values, np.where(nothing, NOTHING, STORED))


def _power(base: Array, exponent: Array) -> Array:
    if base.dtype.kind != "i":
        return np.asarray(np.power(base, exponent))
    negative = exponent < 0
    powers = np.power(base, np.where(negative, 0, exponent))
    odd = np.where(exponent % 2 == 1, base, 1).astype(base.dtype)
    inverse = np.where(abs(base) == 1, odd, 0)
    return np.where(negative, inverse, powers).astype(base.dtype)


def _select(condition: ScalarExpr, chosen: Lanes, then: Lanes, orelse: Lanes) -> Lanes:
    values = np.where(chosen.values, then.values, orelse.values)
    states = np.where(chosen.values, then.states, orelse.states)
    # What is chosen because something is missing is nobody's entry.
    by_absence = np.where(states == LITERAL, UNSTORED, states)
    by_presence = np.where(states == NOTHING, NOTHING, STORED)
    if not _asks_for_patterns_only(condition):
        same = (then.values == orelse.values) & (np.maximum(then.states, orelse.states) == UNSTORED)
        by_presence = np.where(same, UNSTORED, by_presence)
    picked = np.select(
        [chosen.states == LITERAL, chosen.states == UNSTORED, chosen.states == STORED],
        [states, by_absence, by_presence],
        NOTHING,
    )
    return Lanes(values, picked)


def _asks_for_patterns_only(condition: ScalarExpr) -> bool:
    match condition:
        case Stored() | Const():
            return True
        case Unary(_, operand):
            return _asks_for_patterns_only(operand)
        case Binary(_, lhs, rhs):
            return _asks_for_patterns_only(lhs) and _asks_for_patterns_only(rhs)
        case _:
            return False


def as_dtype(values: Array, dtype: DType) -> Array:
    """Return ``values`` converted as the language does it, which is total: nan becomes 0, a float
    that does not fit an integer type its nearest limit, complex its real part.

    >>> as_dtype(np.array([np.nan, 1e9, -3.7]), DType.INT8).tolist()
    [0, 127, -3]
    """
    wanted = numpy_dtype(dtype)
    if values.dtype.kind == "c" and not dtype.is_complex and dtype is not DType.BOOL:
        values = values.real
    is_integer = values.dtype.kind in "biu"
    if is_integer or not dtype.is_integer:
        return values.astype(wanted)
    least, largest = integer_limits(dtype)
    whole = np.trunc(values.astype(np.float64))
    above, below = whole >= float(largest + 1), whole < least
    fits = ~(above | below | np.isnan(whole))
    limits = np.where(above, largest, np.where(below, least, 0)).astype(wanted)
    return np.where(fits, np.where(fits, whole, 0).astype(wanted), limits)
