"""Each row of the table of operations against NumPy: what it claims is true, on samples.

Identities hold on all values, nan and infinities included. Annihilators are part of the meaning of
absence, so they win against inf, nan and zero divisors; NumPy agrees on all other values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sparsejit.ir.fold import algebra_const, applies, identity_const, numpy_dtype
from sparsejit.ir.ops import BinaryOp, ResultKind, UnaryOp, identity_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

Array = npt.NDArray[Any]

each_op = pytest.mark.parametrize("op", BinaryOp)


def dtypes_of(op: BinaryOp) -> list[DType]:
    """The dtypes that ``op`` is defined on."""
    return [dtype for dtype in DType if applies(op, dtype)]


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def samples(dtype: DType, *, finite: bool = False) -> Array:
    """Values of a dtype, among them its limits."""
    kind = numpy_dtype(dtype.compute)
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(kind)
        numbers = [0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.min, info.min + 1]
        return np.array(numbers + ([-1, -2, -7] if info.min else []), kind)
    reals = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e30, -1e-30]
    if not finite:
        reals += [np.inf, -np.inf, np.nan]
    if dtype.is_float:
        return np.array(reals, kind)
    return np.array([complex(re, im) for re in (0.0, 1.0, -2.5) for im in (0.0, 2.0, -0.5)], kind)


def powers(op: BinaryOp, values: Array) -> Array:
    """Small natural numbers: NumPy refuses negative powers of integers, and results wrap."""
    refuses = op is BinaryOp.POW and values.dtype.kind == "i"
    return values[(values >= 0) & (values < 4)] if refuses else values


def run(op: BinaryOp, lhs: Array, rhs: Array) -> Array:
    result: Array = getattr(np, op.info.numpy)(lhs, rhs)
    return result


def raw(const: Const) -> Array:
    return np.array(const.value, numpy_dtype(const.dtype.compute))


def equal(one: Array, other: Array) -> bool:
    exact = one.dtype.kind in "biu"
    return bool(np.array_equal(one, other, equal_nan=not exact))


@each_op
def test_identities(op: BinaryOp) -> None:
    for dtype in dtypes_of(op):
        values = samples(dtype)
        left = algebra_const(op.info.left_identity, dtype)
        if left is not None:
            assert equal(run(op, raw(left), values), values)
        right = algebra_const(op.info.right_identity, dtype)
        if right is not None:
            assert equal(run(op, values, raw(right)), values)


@each_op
def test_annihilators(op: BinaryOp) -> None:
    for dtype in dtypes_of(op):
        values = samples(dtype, finite=True)
        values = values[values != 0]
        if op in (BinaryOp.SHL, BinaryOp.SHR):
            values = values[(values > 0) & (values < dtype.bits)]
        left = algebra_const(op.info.left_annihilator, dtype)
        if left is not None:
            assert equal(run(op, raw(left), values), np.full_like(values, raw(left)))
        right = algebra_const(op.info.right_annihilator, dtype)
        if right is not None:
            assert equal(run(op, values, raw(right)), np.full_like(values, raw(right)))


@each_op
def test_commutativity_is_claimed_just_where_it_holds(op: BinaryOp) -> None:
    for dtype in dtypes_of(op):
        values = powers(op, samples(dtype))
        lhs, rhs = values[:, None], values[None, :]
        holds = equal(run(op, lhs, rhs), run(op, rhs, lhs))
        if dtype is not DType.BOOL or op.info.commutative:
            assert holds == op.info.commutative


@pytest.mark.parametrize("op", [op for op in BinaryOp if op.info.result is ResultKind.SAME])
def test_associativity_is_claimed_just_where_it_holds_on_integers(op: BinaryOp) -> None:
    for dtype in dtypes_of(op):
        if not dtype.is_integer:
            continue
        values = powers(op, samples(dtype))
        a, b, c = values[:, None, None], values[None, :, None], values[None, None, :]
        holds = equal(run(op, run(op, a, b), c), run(op, a, run(op, b, c)))
        assert holds == op.info.associative


@pytest.mark.parametrize("dtype", DType)
def test_a_reduction_of_nothing_is_the_identity(dtype: DType) -> None:
    values = samples(dtype)
    for op in BinaryOp:
        identity = identity_const(op, dtype) if applies(op, dtype) else None
        if identity is not None:
            assert op.info.associative
            assert identity.dtype is dtype
            assert equal(run(op, values, raw(identity)), values)


def test_a_two_sided_identity_is_two_equal_ones() -> None:
    assert identity_of(BinaryOp.SUB) is None
    assert identity_of(BinaryOp.MIN) == "max"
    assert identity_of(BinaryOp.FMIN) is None


@pytest.mark.parametrize("op", [*UnaryOp, *BinaryOp])
def test_every_row_names_a_function_of_numpy(op: UnaryOp | BinaryOp) -> None:
    if op in (UnaryOp.BITS, UnaryOp.FROM_BITS):
        assert callable(getattr(np.ndarray, op.info.numpy))
    elif op not in (UnaryOp.REAL, UnaryOp.IMAG):
        function = getattr(np, op.info.numpy)
        assert isinstance(function, np.ufunc)
        assert function.nin == (1 if isinstance(op, UnaryOp) else 2)
    assert any(applies(op, dtype) for dtype in DType)
    assert repr(op) == f"{type(op).__name__}.{op.name}"


def test_rows_are_not_aliases_of_each_other() -> None:
    """Enum members with equal values would be one member."""
    assert len(UnaryOp.__members__) == len(UnaryOp)
    assert len(BinaryOp.__members__) == len(BinaryOp)
