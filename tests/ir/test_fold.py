"""Folding is what NumPy computes; where NumPy raises or shrugs, it is what the language says."""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsejit.ir.fold import (
    applies,
    constant,
    fold_binary,
    fold_cast,
    fold_unary,
    identity_const,
    integer_limits,
    numpy_dtype,
    numpy_unary,
    zero_of,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const, result_dtype
from sparsejit.ir.types import DType


def dtypes_of(op: UnaryOp | BinaryOp) -> list[DType]:
    """The dtypes that ``op`` is defined on."""
    return [dtype for dtype in DType if applies(op, dtype)]


def edges(dtype: DType) -> list[Const]:
    """The constants of a dtype that go wrong first."""
    if dtype is DType.BOOL:
        return [Const(False, dtype), Const(True, dtype)]
    if dtype.is_integer:
        least, largest = integer_limits(dtype)
        numbers = {0, 1, 2, 3, 7, dtype.bits, least, largest, *((-1, -2) if least else ())}
        return [Const(number, dtype) for number in sorted(numbers)]
    reals = [0.0, -0.0, 1.0, -1.5, 0.3, 77.7, 6e4, math.inf, -math.inf, math.nan]
    if dtype.is_float:
        return [constant(number, dtype) for number in reals]
    parts = (0.0, -1.5, 2.0, math.inf)
    return [constant(complex(re, im), dtype) for re in parts for im in parts]


def on_numpy(op: UnaryOp | BinaryOp, *operands: Const) -> Any:
    """What NumPy computes on arrays of the dtype itself, 16-bit floats on arrays of float32."""
    compute = numpy_dtype(operands[0].dtype.compute)
    arrays = [np.array([operand.value]).astype(compute) for operand in operands]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = numpy_unary(op) if isinstance(op, UnaryOp) else getattr(np, op.info.numpy)
        result = function(*arrays)
        return result.astype(numpy_dtype(result_dtype(op, operands[0].dtype)))[0]


def assert_is(const: Const, expected: Any, dtype: DType, *, signs: bool = True) -> None:
    """The constant has the bits that NumPy has, in Python's own type; nans are all alike."""
    assert const.dtype is dtype
    assert expected.dtype == numpy_dtype(dtype)
    assert type(const.value) is {
        "b": bool if dtype is DType.BOOL else float,
        "f": float,
        "c": complex,
    }.get(dtype.value[0], int)
    if dtype.is_float:
        expected = float(expected)
        if signs and const.value == 0:
            assert np.signbit(const.value) == np.signbit(expected)
    np.testing.assert_array_equal(const.value, expected)


@pytest.mark.parametrize("op", UnaryOp)
def test_unary(op: UnaryOp) -> None:
    for dtype in dtypes_of(op):
        for operand in edges(dtype):
            assert_is(fold_unary(op, operand), on_numpy(op, operand), result_dtype(op, dtype))


@pytest.mark.parametrize("op", BinaryOp)
def test_binary(op: BinaryOp) -> None:
    # Which of 0.0 and -0.0 is the smaller depends on the loop that NumPy picks.
    signs = op not in (BinaryOp.MIN, BinaryOp.MAX, BinaryOp.FMIN, BinaryOp.FMAX)
    for dtype in dtypes_of(op):
        for lhs, rhs in product(edges(dtype), edges(dtype)):
            if op is BinaryOp.POW and dtype.is_integer and rhs.value.real < 0:
                continue  # NumPy refuses; see below
            expected = on_numpy(op, lhs, rhs)
            found = fold_binary(op, lhs, rhs)
            assert_is(found, expected, result_dtype(op, dtype), signs=signs)


@given(st.floats(width=16), st.floats(width=16))
def test_half_precision_is_that_of_numpy(a: float, b: float) -> None:
    """Computing in float32 and rounding once is NumPy's own float16 arithmetic."""
    lhs, rhs = Const(a, DType.FLOAT16), Const(b, DType.FLOAT16)
    with np.errstate(all="ignore"):
        for op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV):
            expected = getattr(np, op.info.numpy)(np.float16(a), np.float16(b))
            assert_is(fold_binary(op, lhs, rhs), expected, DType.FLOAT16)


INT8 = DType.INT8


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "expected"),
    [
        (BinaryOp.ADD, 127, 1, -128),
        (BinaryOp.MUL, -128, -1, -128),
        (BinaryOp.FLOORDIV, 5, 0, 0),
        (BinaryOp.FLOORDIV, -128, -1, -128),
        (BinaryOp.FLOORDIV, -7, 2, -4),
        (BinaryOp.REM, 5, 0, 0),
        (BinaryOp.REM, -7, 2, 1),
        (BinaryOp.FMOD, 5, 0, 0),
        (BinaryOp.FMOD, -7, 2, -1),
        (BinaryOp.SHL, 3, 8, 0),
        (BinaryOp.SHL, 3, -1, 0),
        (BinaryOp.SHR, -3, 8, -1),
        (BinaryOp.SHR, -3, -1, -1),
        (BinaryOp.SHR, 3, 100, 0),
        (BinaryOp.POW, 2, 8, 0),
        (BinaryOp.POW, 1, -3, 1),
        (BinaryOp.POW, -1, -3, -1),
        (BinaryOp.POW, -1, -2, 1),
        (BinaryOp.POW, 0, -1, 0),
        (BinaryOp.POW, 5, -1, 0),
    ],
)
def test_integers_never_fail(op: BinaryOp, lhs: int, rhs: int, expected: int) -> None:
    assert fold_binary(op, Const(lhs, INT8), Const(rhs, INT8)) == Const(expected, INT8)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (math.nan, DType.INT32, 0),
        (math.nan, DType.UINT8, 0),
        (math.inf, DType.INT8, 127),
        (-math.inf, DType.INT8, -128),
        (-math.inf, DType.UINT64, 0),
        (1e30, DType.INT64, 2**63 - 1),
        (2.0**63, DType.INT64, 2**63 - 1),
        (-(2.0**63), DType.INT64, -(2**63)),
        (2.0**64, DType.UINT64, 2**64 - 1),
        (-0.9, DType.UINT8, 0),
        (-1.5, DType.UINT8, 0),
        (255.9, DType.UINT8, 255),
        (256.0, DType.UINT8, 255),
        (-128.9, DType.INT8, -128),
        (-1.9, DType.INT16, -1),
    ],
)
def test_floats_become_integers_by_one_table(value: float, dtype: DType, expected: int) -> None:
    assert fold_cast(Const(value, DType.FLOAT64), dtype) == Const(expected, dtype)
    assert fold_cast(Const(complex(value, 7.0), DType.COMPLEX128), dtype) == Const(expected, dtype)


@pytest.mark.parametrize("target", DType)
def test_casts_are_astype(target: DType) -> None:
    for source, const in ((dtype, const) for dtype in DType for const in edges(dtype)):
        array = np.array([const.value]).astype(numpy_dtype(source))
        narrows = target.is_integer and (source.is_float or source.is_complex)
        if narrows and not -1 < float(array.real[0]) < 128:
            continue  # undefined in NumPy; the table above says what it is here
        if source.is_complex and not target.is_complex and target is not DType.BOOL:
            array = array.real
        with np.errstate(all="ignore"):
            expected = array.astype(numpy_dtype(target))[0]
        assert_is(fold_cast(const, target), expected, target)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (0.1, DType.FLOAT32, 0.10000000149011612),
        (np.float64(0.1), DType.FLOAT64, 0.1),
        (70000, DType.FLOAT16, math.inf),
        pytest.param(10**400, DType.FLOAT64, math.inf, id="huge"),
        pytest.param(-(10**400), DType.FLOAT32, -math.inf, id="tiny"),
        pytest.param(10**400, DType.COMPLEX64, complex(math.inf, 0), id="huge complex"),
        (True, DType.FLOAT64, 1.0),
        (np.bool_(True), DType.INT8, 1),
        (-1, DType.UINT16, 65535),
        (2**64, DType.INT64, 0),
        (np.uint64(2**64 - 1), DType.INT64, -1),
        (3, DType.BOOL, True),
        (1, DType.COMPLEX64, 1 + 0j),
        (1.5 + 2j, DType.FLOAT32, 1.5),
        (1.00390625, DType.BFLOAT16, 1.0),
    ],
)
def test_constants_are_converted(value: object, dtype: DType, expected: object) -> None:
    made = constant(value, dtype)
    assert made.value == expected
    assert type(made.value) is type(expected)
    assert made.dtype is dtype


def test_nothing_is_no_constant() -> None:
    with pytest.raises(ValueError, match="could not convert string to float"):
        constant("three", DType.FLOAT64)


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        (BinaryOp.ADD, DType.BOOL, False),
        (BinaryOp.MUL, DType.BOOL, True),
        (BinaryOp.AND, DType.BOOL, True),
        (BinaryOp.AND, DType.INT16, -1),
        (BinaryOp.AND, DType.UINT64, 2**64 - 1),
        (BinaryOp.MIN, DType.UINT8, 255),
        (BinaryOp.MAX, DType.INT8, -128),
        (BinaryOp.MAX, DType.BFLOAT16, -math.inf),
        (BinaryOp.MIN, DType.COMPLEX64, complex(math.inf, math.inf)),
        (BinaryOp.MUL, DType.FLOAT16, 1.0),
    ],
)
def test_identities(op: BinaryOp, dtype: DType, expected: object) -> None:
    identity = identity_const(op, dtype)
    assert identity is not None
    assert identity.value == expected
    assert type(identity.value) is type(expected)


def test_zeros() -> None:
    assert [repr(zero_of(dtype).value) for dtype in (DType.BOOL, DType.INT8)] == ["False", "0"]
    assert repr(zero_of(DType.BFLOAT16).value) == "0.0"
    assert repr(zero_of(DType.COMPLEX64).value) == "0j"


def test_what_does_not_apply_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^UnaryOp\.SQRT is not defined on int64$"):
        fold_unary(UnaryOp.SQRT, Const(4, DType.INT64))
    with pytest.raises(ValueError, match=r"^BinaryOp\.DIV is not defined on int8$"):
        fold_binary(BinaryOp.DIV, Const(4, INT8), Const(4, INT8))
    with pytest.raises(ValueError, match=r"^BinaryOp\.ADD of int8 and bool$"):
        fold_binary(BinaryOp.ADD, Const(4, INT8), Const(True, DType.BOOL))
