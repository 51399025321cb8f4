"""The absence algebra: what remains of a scalar expression where some operands store nothing.

What enters is the body of a ``Generic`` and which operands are absent at a coordinate (with their
fill values) or known to be stored; what leaves is ``Missing`` (a constant that nobody stores),
``NoValue`` (no value at all) or ``Known`` (the expression that is left to compute). The sparsifier
asks this at every lattice point: ``a * b`` without ``a`` is ``Missing(0)``, ``a + b`` without ``a``
is ``Known(b)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.ir.fold import algebra_const, fold_binary, fold_cast, fold_unary
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
    args_of,
    dtype_of,
    map_leaves,
)
from sparsejit.ir.types import DType

__all__ = ["Known", "Missing", "NoValue", "Partial", "reduction_form", "simplify_absence"]


@dataclass(frozen=True, slots=True)
class Missing:
    """The expression is ``const`` because operands are absent; it is not a stored entry."""

    const: Const


@dataclass(frozen=True, slots=True)
class Known:
    """``expr`` is left to compute and, where the result is sparse, to store."""

    expr: ScalarExpr


@dataclass(frozen=True, slots=True)
class NoValue:
    """The expression has no value here: no entry, no contribution."""


Partial = Missing | Known | NoValue


@dataclass(frozen=True, slots=True)
class _Literal:
    """A constant of the program: present everywhere, so it makes no entry and is not missing."""

    const: Const


_State = Partial | _Literal


def simplify_absence(  # noqa: C901 - one case for each kind
    expr: ScalarExpr,
    dtypes: Sequence[DType],
    absent: Mapping[int, Const],
    present: frozenset[int] = frozenset(),
) -> Partial:
    """Return what ``expr`` is where the operands in ``absent`` store nothing.

    ``dtypes`` are those of all operands, the destination's last; ``absent`` gives the fill values
    of the absent ones; for those in ``present`` ``Stored`` is true. Constants of the program are
    not missing by themselves; an operation of missing operands and such constants is. What is
    ``Known`` is never dropped because of a constant factor: a stored entry times 0 stays.

    >>> zero = Const(0.0, DType.FLOAT64)
    >>> types = (DType.FLOAT64, DType.FLOAT64)
    >>> simplify_absence(Binary(BinaryOp.MUL, Arg(0), Arg(1)), types, {0: zero})
    Missing(const=Const(0.0, DType.FLOAT64))
    >>> simplify_absence(Binary(BinaryOp.ADD, Arg(0), Arg(1)), types, {0: zero})
    Known(expr=Arg(index=1))
    """

    def walk(inner: ScalarExpr) -> _State:  # noqa: C901 - one case for each kind
        match inner:
            case Const():
                return _Literal(inner)
            case Arg(index):
                return Missing(absent[index]) if index in absent else Known(inner)
            case Stored(index):
                return _stored(inner, index in absent, index in present)
            case Nothing():
                return NoValue()
            case Coordinate():
                return Known(inner)
            case Cast(operand, dtype):
                return _map(walk(operand), lambda c: fold_cast(c, dtype), lambda e: Cast(e, dtype))
            case Unary(op, operand):
                return _map(walk(operand), lambda c: fold_unary(op, c), lambda e: Unary(op, e))
            case Binary(combine, lhs, rhs):
                return _binary(combine, walk(lhs), walk(rhs))
            case Select(condition, then, orelse):
                return _select(walk(condition), walk(then), walk(orelse), dtype_of(then, dtypes))
            case Call(function, operands):
                return _call(function, [walk(operand) for operand in operands])
            case _:
                assert_never(inner)

    return _settle(walk(expr))


def _settle(state: _State) -> Partial:
    return Known(state.const) if isinstance(state, _Literal) else state


def _stored(expr: Stored, is_absent: bool, is_present: bool) -> _State:
    if is_absent:
        return Missing(Const(False, DType.BOOL))
    return Known(Const(True, DType.BOOL) if is_present else expr)


def _map(
    operand: _State, fold: Callable[[Const], Const], wrap: Callable[[ScalarExpr], ScalarExpr]
) -> _State:
    match operand:
        case NoValue():
            return operand
        case Missing(const):
            return Missing(fold(const))
        case _Literal(const):
            return _Literal(fold(const))
        case Known(Const() as const):
            return Known(fold(const))
        case Known(expr):
            return Known(wrap(expr))
        case _:
            assert_never(operand)


def _equal(const: Const, number: int | float | str | None) -> bool:
    """Whether ``const`` has the value of an entry of the table; -0.0 is 0, nan is nothing."""
    wanted = algebra_const(number, const.dtype)
    return wanted is not None and const.value == wanted.value


def _binary(op: BinaryOp, lhs: _State, rhs: _State) -> _State:
    info = op.info
    match lhs, rhs:
        case (NoValue(), _) | (_, NoValue()):
            return NoValue()
        # Annihilators come first: what is missing wins also against inf, nan and a zero divisor.
        case Missing(a), _ if _equal(a, info.left_annihilator):
            return lhs
        case _, Missing(b) if _equal(b, info.right_annihilator):
            return rhs
        case _Literal(a), _Literal(b):
            return _Literal(fold_binary(op, a, b))
        case ((Missing(a) | _Literal(a)), (Missing(b) | _Literal(b))):
            return Missing(fold_binary(op, a, b))
        case Missing(a), _ if _equal(a, info.left_identity):
            return rhs
        case _, Missing(b) if _equal(b, info.right_identity):
            return lhs
        case ((Missing(a) | _Literal(a) | Known(a)), (Missing(b) | _Literal(b) | Known(b))):
            return Known(_combine(op, a, b))
        case _:
            assert_never(lhs)


def _combine(op: BinaryOp, lhs: ScalarExpr, rhs: ScalarExpr) -> ScalarExpr:
    """Compute on constants and decide conditions; a bool cannot be nan, so that is exact."""
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        return fold_binary(op, lhs, rhs)
    if op in (BinaryOp.AND, BinaryOp.OR):
        for one, other in ((lhs, rhs), (rhs, lhs)):
            if isinstance(one, Const) and one.dtype is DType.BOOL:
                return one if one.value is (op is BinaryOp.OR) else other
    return Binary(op, lhs, rhs)


def _expr(state: _State, dtype: DType) -> ScalarExpr:
    match state:
        case Missing(expr) | _Literal(expr) | Known(expr):
            return expr
        case NoValue():
            return Nothing(dtype)
        case _:
            assert_never(state)


def _asks_for_pattern(condition: ScalarExpr) -> bool:
    """Whether a condition still depends on what is stored."""
    found = False

    def note(leaf: ScalarExpr) -> ScalarExpr:
        nonlocal found
        found = found or isinstance(leaf, Stored)
        return leaf

    map_leaves(condition, note)
    return found


def _select(condition: _State, then: _State, orelse: _State, dtype: DType) -> _State:
    match condition:
        case NoValue():
            return condition
        case Missing(const):
            # A constant that is chosen because something is absent is nobody's entry either.
            chosen = then if const.value else orelse
            return Missing(chosen.const) if isinstance(chosen, _Literal) else chosen
        case _Literal(const):
            return then if const.value else orelse
        case Known(Const(value)):
            chosen = then if value else orelse
            # What a stored operand asks for is an entry, also where all others are absent.
            return Known(chosen.const) if isinstance(chosen, Missing) else _settle(chosen)
        case Known(expr):
            return _undecided(expr, then, orelse, dtype)
        case _:
            assert_never(condition)


def _call(function: UserFunction, operands: Sequence[_State]) -> _State:
    """Nothing is known of what a user function gives, so it gives an entry wherever it is asked."""
    if any(isinstance(operand, NoValue) for operand in operands):
        return NoValue()
    pairs = zip(operands, function.operands, strict=True)
    return Known(Call(function, tuple(_expr(operand, dtype) for operand, dtype in pairs)))


def _undecided(condition: ScalarExpr, then: _State, orelse: _State, dtype: DType) -> _State:
    match then, orelse:
        case NoValue(), NoValue():
            return then
        case (Missing(a), Missing(b) | _Literal(b)) | (_Literal(a), Missing(b)) if (
            a == b and not _asks_for_pattern(condition)
        ):
            return Missing(a)  # and where the pattern decides, one side may be an entry
        case Known(a), Known(b) if a == b:
            return then
        case _:
            return Known(Select(condition, _expr(then, dtype), _expr(orelse, dtype)))


def reduction_form(
    body: ScalarExpr, out_index: int, dtypes: Sequence[DType]
) -> tuple[BinaryOp, ScalarExpr] | None:
    """Return ``(op, e)`` when ``body`` is ``out op e`` for a reduction ``op``, else None.

    ``op`` is associative and commutative, and ``e`` does not read the destination, which is
    operand ``out_index``. ``out - e`` is ``out + (-e)``. A conditional contribution
    ``Select(c, out op e, out)`` gives ``e`` where ``c`` holds and ``Nothing`` elsewhere.

    >>> types = (DType.INT64, DType.INT64)
    >>> reduction_form(Binary(BinaryOp.MAX, Arg(0), Arg(1)), 1, types)
    (BinaryOp.MAX, Arg(index=0))
    """
    out = Arg(out_index)
    op: BinaryOp
    term: ScalarExpr
    match body:
        case Binary(BinaryOp.SUB, lhs, rhs) if lhs == out:
            op, term = BinaryOp.ADD, Unary(UnaryOp.NEG, rhs)
        case Binary(op, lhs, rhs) if lhs == out and _reduces(op):
            term = rhs
        case Binary(op, lhs, rhs) if rhs == out and _reduces(op):
            term = lhs
        case Select(condition, then, orelse) if then == out or orelse == out:
            inner = reduction_form(orelse if then == out else then, out_index, dtypes)
            if inner is None:
                return None
            op, value = inner
            nothing = Nothing(dtype_of(value, dtypes))
            sides = (nothing, value) if then == out else (value, nothing)
            term = Select(condition, *sides)
        case _:
            return None
    return None if out_index in args_of(term) else (op, term)


def _reduces(op: BinaryOp) -> bool:
    return op.info.associative and op.info.commutative
