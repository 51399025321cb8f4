"""The absence algebra: a table of cases, and on random expressions the value it must keep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsejit.ir.fold import constant, numpy_dtype, numpy_unary
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
)
from sparsejit.ir.simplify import (
    Known,
    Missing,
    NoValue,
    Partial,
    reduction_form,
    simplify_absence,
)
from sparsejit.ir.types import DType

F64, I64, BOOL = DType.FLOAT64, DType.INT64, DType.BOOL
A, B, OUT = Arg(0), Arg(1), Arg(2)
DTYPES = (F64, F64, F64)
TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


def f64(value: float) -> Const:
    return Const(value, F64)


def add(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.ADD, lhs, rhs)


def mul(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.MUL, lhs, rhs)


def both(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.AND, lhs, rhs)


def either(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.OR, lhs, rhs)


ZERO, ONE, TWO = f64(0.0), f64(1.0), f64(2.0)
INF, NAN = f64(math.inf), f64(math.nan)
POSITIVE = Binary(BinaryOp.GT, B, ZERO)
SUB, DIV = BinaryOp.SUB, BinaryOp.DIV

# (expression, fill of A, what remains where A is absent and B is stored)
CASES: list[tuple[ScalarExpr, Const, Partial]] = [
    (A, ZERO, Missing(ZERO)),
    (A, TWO, Missing(TWO)),
    (B, ZERO, Known(B)),
    (ONE, ZERO, Known(ONE)),
    (Coordinate(0), ZERO, Known(Coordinate(0))),
    # annihilators, also against literals, nan, zero divisors and coordinates
    (mul(A, B), ZERO, Missing(ZERO)),
    (mul(B, A), ZERO, Missing(ZERO)),
    (mul(A, B), f64(-0.0), Missing(f64(-0.0))),
    (mul(A, INF), ZERO, Missing(ZERO)),
    (mul(NAN, A), ZERO, Missing(ZERO)),
    (Binary(DIV, A, B), ZERO, Missing(ZERO)),
    (Binary(DIV, A, ZERO), ZERO, Missing(ZERO)),
    (mul(A, Cast(Coordinate(0), F64)), ZERO, Missing(ZERO)),
    (mul(A, A), ZERO, Missing(ZERO)),
    (mul(add(A, A), B), ZERO, Missing(ZERO)),
    (mul(A, add(B, ONE)), ZERO, Missing(ZERO)),
    # identities
    (add(A, B), ZERO, Known(B)),
    (add(B, A), f64(-0.0), Known(B)),
    (mul(A, B), ONE, Known(B)),
    (Binary(SUB, B, A), ZERO, Known(B)),
    (Binary(DIV, B, A), ONE, Known(B)),
    (Binary(BinaryOp.MIN, A, B), INF, Known(B)),
    (Binary(BinaryOp.MAX, B, A), f64(-math.inf), Known(B)),
    (add(add(A, B), A), ZERO, Known(B)),
    # no rule: the fill value is an operand like any other
    (Binary(SUB, A, B), ZERO, Known(Binary(SUB, ZERO, B))),
    (Binary(DIV, B, A), ZERO, Known(Binary(DIV, B, ZERO))),
    (mul(A, B), TWO, Known(mul(TWO, B))),
    (mul(A, B), NAN, Known(mul(NAN, B))),
    (Binary(BinaryOp.MAX, A, B), ZERO, Known(Binary(BinaryOp.MAX, ZERO, B))),
    # folding what is missing, alone and with constants of the program
    (Unary(UnaryOp.EXP, A), ZERO, Missing(ONE)),
    (Unary(UnaryOp.NEG, add(A, ONE)), ZERO, Missing(f64(-1.0))),
    (Cast(A, I64), TWO, Missing(Const(2, I64))),
    (add(A, ONE), ZERO, Missing(ONE)),
    (add(A, A), ONE, Missing(TWO)),
    (Binary(BinaryOp.POW, A, TWO), ZERO, Missing(ZERO)),
    (Binary(BinaryOp.GT, A, ONE), ZERO, Missing(FALSE)),
    # constants of the program are folded and stay entries
    (add(ONE, ONE), ZERO, Known(TWO)),
    (Unary(UnaryOp.NEG, ONE), ZERO, Known(f64(-1.0))),
    (Cast(ONE, I64), ZERO, Known(Const(1, I64))),
    # what is stored stays, whatever it is multiplied by
    (mul(B, ZERO), ZERO, Known(mul(B, ZERO))),
    (add(B, ZERO), ZERO, Known(add(B, ZERO))),
    # patterns
    (Stored(0), ZERO, Missing(FALSE)),
    (Stored(1), ZERO, Known(TRUE)),
    (Unary(UnaryOp.NOT, Stored(0)), ZERO, Missing(TRUE)),
    (Unary(UnaryOp.NOT, Stored(1)), ZERO, Known(FALSE)),
    (both(Stored(0), Stored(1)), ZERO, Missing(FALSE)),
    (either(Stored(0), Stored(1)), ZERO, Known(TRUE)),
    (both(Stored(1), POSITIVE), ZERO, Known(POSITIVE)),
    (both(POSITIVE, Unary(UnaryOp.NOT, Stored(1))), ZERO, Known(FALSE)),
    (either(Stored(1), POSITIVE), ZERO, Known(TRUE)),
    (either(Unary(UnaryOp.NOT, Stored(1)), POSITIVE), ZERO, Known(POSITIVE)),
    # selects that are decided
    (Select(Stored(0), B, Nothing(F64)), ZERO, NoValue()),
    (Select(Stored(1), A, Nothing(F64)), ZERO, Known(ZERO)),
    (Select(Stored(1), B, Nothing(F64)), ZERO, Known(B)),
    (Select(Stored(0), B, ONE), ZERO, Missing(ONE)),
    (Select(Stored(1), ONE, Nothing(F64)), ZERO, Known(ONE)),
    (Select(either(Stored(0), Stored(1)), ONE, Nothing(F64)), ZERO, Known(ONE)),
    (add(Select(Stored(1), ONE, Nothing(F64)), A), ZERO, Known(ONE)),
    (add(Select(Stored(1), ONE, Nothing(F64)), A), TWO, Known(f64(3.0))),
    (Select(Binary(BinaryOp.GT, A, ONE), A, ZERO), ZERO, Missing(ZERO)),
    (Select(Binary(BinaryOp.GT, A, ONE), A, B), ZERO, Known(B)),
    (Select(TRUE, A, B), ZERO, Missing(ZERO)),
    (Select(FALSE, A, B), ZERO, Known(B)),
    (Select(TRUE, ONE, B), ZERO, Known(ONE)),
    # selects that are not
    (Select(POSITIVE, A, A), ZERO, Missing(ZERO)),
    (Select(POSITIVE, A, ZERO), ZERO, Missing(ZERO)),
    (Select(POSITIVE, ZERO, A), ZERO, Missing(ZERO)),
    (Select(POSITIVE, A, ONE), ZERO, Known(Select(POSITIVE, ZERO, ONE))),
    (Select(POSITIVE, ONE, ONE), ZERO, Known(Select(POSITIVE, ONE, ONE))),
    (Select(POSITIVE, B, A), ZERO, Known(Select(POSITIVE, B, ZERO))),
    (Select(POSITIVE, Nothing(F64), Nothing(F64)), ZERO, NoValue()),
    (Select(POSITIVE, B, Nothing(F64)), ZERO, Known(Select(POSITIVE, B, Nothing(F64)))),
    (
        Select(POSITIVE, Select(Stored(0), A, Nothing(F64)), B),
        ZERO,
        Known(Select(POSITIVE, Nothing(F64), B)),
    ),
    # no value spreads
    (Nothing(F64), ZERO, NoValue()),
    (add(Nothing(F64), B), ZERO, NoValue()),
    (mul(A, Nothing(F64)), ZERO, NoValue()),
    (Unary(UnaryOp.EXP, Nothing(F64)), ZERO, NoValue()),
    (Cast(Nothing(F64), I64), ZERO, NoValue()),
    (Select(Nothing(BOOL), A, B), ZERO, NoValue()),
]


@pytest.mark.parametrize(("expr", "fill", "expected"), CASES)
def test_what_remains_where_a_is_absent(expr: ScalarExpr, fill: Const, expected: Partial) -> None:
    assert simplify_absence(expr, DTYPES, {0: fill}, frozenset({1})) == expected


@pytest.mark.parametrize(
    ("dtype", "op", "fill", "expected"),
    [
        (BOOL, BinaryOp.MUL, False, Missing(FALSE)),
        (BOOL, BinaryOp.ADD, False, Known(B)),
        (BOOL, BinaryOp.AND, False, Missing(FALSE)),
        (BOOL, BinaryOp.AND, True, Known(B)),
        (BOOL, BinaryOp.OR, False, Known(B)),
        (BOOL, BinaryOp.MIN, True, Known(B)),
        (BOOL, BinaryOp.MAX, False, Known(B)),
        (DType.UINT8, BinaryOp.AND, 255, Known(B)),
        (DType.UINT8, BinaryOp.MIN, 255, Known(B)),
        (DType.UINT8, BinaryOp.MAX, 0, Known(B)),
        (DType.INT8, BinaryOp.AND, -1, Known(B)),
        (DType.INT8, BinaryOp.FLOORDIV, 0, Missing(Const(0, DType.INT8))),
        (DType.INT8, BinaryOp.REM, 0, Missing(Const(0, DType.INT8))),
        (DType.INT8, BinaryOp.SHL, 0, Missing(Const(0, DType.INT8))),
        (DType.COMPLEX64, BinaryOp.MUL, complex(0, -0.0), Missing(Const(-0j, DType.COMPLEX64))),
        (DType.COMPLEX64, BinaryOp.MUL, 1, Known(B)),
        (DType.FLOAT16, BinaryOp.MIN, math.inf, Known(B)),
    ],
)
def test_rules_hold_at_every_dtype(
    dtype: DType, op: BinaryOp, fill: object, expected: Partial
) -> None:
    found = simplify_absence(Binary(op, A, B), (dtype,) * 3, {0: constant(fill, dtype)})
    match expected:
        case Missing(const):
            assert found == Missing(constant(fill, dtype))
            assert const.value == constant(fill, dtype).value
        case _:
            assert found == expected


def test_both_absent() -> None:
    absent = {0: ZERO, 1: TWO}
    assert simplify_absence(add(A, B), DTYPES, absent) == Missing(TWO)
    assert simplify_absence(mul(A, B), DTYPES, absent) == Missing(ZERO)
    assert simplify_absence(mul(A, B), DTYPES, {0: ZERO, 1: INF}) == Missing(ZERO)
    pattern = either(Stored(0), Stored(1))
    assert simplify_absence(pattern, DTYPES, absent) == Missing(FALSE)
    union = Select(pattern, ONE, Nothing(F64))
    assert simplify_absence(union, DTYPES, absent) == NoValue()


def test_what_is_unknown_stays() -> None:
    expr = Select(Stored(1), mul(A, B), Nothing(F64))
    assert simplify_absence(expr, DTYPES, {}) == Known(expr)
    present = simplify_absence(expr, DTYPES, {}, frozenset({0, 1}))
    assert present == Known(mul(A, B))


# ---------------------------------------------------------------- random expressions on integers

INTEGER_OPS = [
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.AND,
    BinaryOp.OR,
    BinaryOp.XOR,
    BinaryOp.FLOORDIV,
    BinaryOp.REM,
    BinaryOp.FMOD,
    BinaryOp.SHL,
    BinaryOp.SHR,
]
small = st.integers(-2, 3)


def wrap(inner: st.SearchStrategy[ScalarExpr]) -> st.SearchStrategy[ScalarExpr]:
    compare = st.builds(Binary, st.sampled_from((BinaryOp.LT, BinaryOp.EQ)), inner, inner)
    stored = st.builds(Stored, st.integers(0, 2))
    return st.one_of(
        st.builds(Binary, st.sampled_from(INTEGER_OPS), inner, inner),
        st.builds(Unary, st.sampled_from((UnaryOp.NEG, UnaryOp.ABS, UnaryOp.NOT)), inner),
        st.builds(Select, st.one_of(compare, stored), inner, inner),
    )


argument: st.SearchStrategy[ScalarExpr] = st.builds(Arg, st.integers(0, 2))
literal: st.SearchStrategy[ScalarExpr] = st.builds(lambda value: Const(value, I64), small)
coordinate: st.SearchStrategy[ScalarExpr] = st.just(Coordinate(0))
integer_exprs = st.recursive(st.one_of(argument, literal, coordinate), wrap, max_leaves=8)


def value_of(expr: ScalarExpr, values: Mapping[int, int], stored: frozenset[int], loop: int) -> Any:
    """The value of an expression as NumPy computes it, operation by operation."""

    def walk(inner: ScalarExpr) -> Any:
        return value_of(inner, values, stored, loop)

    with np.errstate(all="ignore"):
        match expr:
            case Arg(index):
                return np.int64(values[index])
            case Const(value, dtype):
                return numpy_dtype(dtype).type(value)
            case Coordinate():
                return np.int64(loop)
            case Stored(index):
                return np.bool_(index in stored)
            case Unary(op, operand):
                return numpy_unary(op)(walk(operand))
            case Binary(op, lhs, rhs):
                return getattr(np, op.info.numpy)(walk(lhs), walk(rhs))
            case Select(condition, then, orelse):
                return walk(then) if walk(condition) else walk(orelse)
            case _:
                raise AssertionError(expr)


@given(
    integer_exprs,
    st.dictionaries(st.integers(0, 2), small),
    st.lists(small, min_size=3, max_size=3),
    small,
)
def test_the_value_is_kept(
    expr: ScalarExpr, fills: dict[int, int], stored: list[int], loop: int
) -> None:
    """On integers the algebra and NumPy agree everywhere, so what remains has NumPy's value."""
    values = {**dict(enumerate(stored)), **fills}
    present = frozenset(range(3)) - fills.keys()
    absent = {index: Const(fill, I64) for index, fill in fills.items()}
    found = simplify_absence(expr, (I64, I64, I64), absent, present)
    expected = value_of(expr, values, present, loop)
    match found:
        case Missing(const):
            assert fills, "where nothing is absent nothing is missing"
            assert const == Const(int(expected), I64)
        case Known(rest):
            assert value_of(rest, values, present, loop) == expected
        case NoValue():
            raise AssertionError("there is no Nothing in the expression")


@given(st.recursive(st.one_of(argument, literal), wrap, max_leaves=8))
def test_no_entry_comes_from_nowhere(expr: ScalarExpr) -> None:
    """Where every operand is absent, what reads operands and constants only is missing."""
    absent = {index: Const(index + 1, I64) for index in range(3)}
    found = simplify_absence(add(expr, Arg(1)), (I64, I64, I64), absent)
    values = {index: index + 1 for index in range(3)}
    expected = value_of(add(expr, Arg(1)), values, frozenset(), 0)
    assert found == Missing(Const(int(expected), I64))


# ---------------------------------------------------------------- reductions

NOTHING = Nothing(F64)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (add(OUT, A), (BinaryOp.ADD, A)),
        (add(mul(A, B), OUT), (BinaryOp.ADD, mul(A, B))),
        (Binary(BinaryOp.MIN, OUT, A), (BinaryOp.MIN, A)),
        (mul(A, OUT), (BinaryOp.MUL, A)),
        (Binary(SUB, OUT, A), (BinaryOp.ADD, Unary(UnaryOp.NEG, A))),
        (Select(POSITIVE, add(OUT, A), OUT), (BinaryOp.ADD, Select(POSITIVE, A, NOTHING))),
        (Select(POSITIVE, OUT, add(A, OUT)), (BinaryOp.ADD, Select(POSITIVE, NOTHING, A))),
        (
            Select(Stored(0), Select(POSITIVE, add(OUT, A), OUT), OUT),
            (BinaryOp.ADD, Select(Stored(0), Select(POSITIVE, A, NOTHING), NOTHING)),
        ),
        (A, None),
        (OUT, None),
        (add(A, B), None),
        (add(OUT, OUT), None),
        (add(OUT, mul(A, OUT)), None),
        (Binary(SUB, A, OUT), None),
        (Binary(SUB, OUT, OUT), None),
        (Binary(DIV, OUT, A), None),
        (Binary(BinaryOp.HYPOT, OUT, A), None),
        (Select(POSITIVE, A, OUT), None),
        (Select(POSITIVE, OUT, OUT), None),
        (Select(Binary(BinaryOp.GT, OUT, ZERO), add(OUT, A), OUT), None),
        (Select(Stored(2), add(OUT, A), OUT), None),
        (Select(POSITIVE, add(OUT, A), add(OUT, B)), None),
    ],
)
def test_reduction_form(body: ScalarExpr, expected: tuple[BinaryOp, ScalarExpr] | None) -> None:
    assert reduction_form(body, 2, DTYPES) == expected


def test_a_conditional_contribution_has_the_dtype_of_the_result() -> None:
    body = Select(Stored(0), Binary(BinaryOp.ADD, Arg(1), Arg(0)), Arg(1))
    expected = Select(Stored(0), Arg(0), Nothing(DType.INT8))
    assert reduction_form(body, 1, (DType.INT8, DType.INT8)) == (BinaryOp.ADD, expected)
