"""Every scalar operation on every dtype it is defined for, against NumPy, on each backend.

One kernel a dtype applies all operations to all pairs of edge values. Deliberate differences from
NumPy: an integer power with a negative exponent, which NumPy refuses, is the integer part of the
power; nothing else. NumPy's own vector code may round the last bits of a function in another way
and may pick either zero as the minimum of -0.0 and 0.0; both are allowed here.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparsejit as sj
from sparsejit.backends import BACKENDS
from sparsejit.backends._spellings import is_legal_binary, is_legal_unary
from sparsejit.errors import UnsupportedError
from sparsejit.ir.fold import applies, numpy_dtype, numpy_unary
from sparsejit.ir.loops import Binary, DimOf, Expr, For, Let, Load, LoopFunc, Memref, Store, Unary
from sparsejit.ir.ops import BinaryOp, ResultKind, UnaryOp
from sparsejit.ir.types import INDEX, DType
from tests.backends.loop_writing import function, index, memref, run, var

ARITHMETIC = [dtype for dtype in DType if dtype.compute is dtype]
Op = UnaryOp | BinaryOp


def _result_dtype(op: Op, dtype: DType) -> DType:
    match op.info.result:
        case ResultKind.BOOL:
            return DType.BOOL
        case ResultKind.BITS:
            return dtype.as_bits
        case ResultKind.FLOAT:
            return dtype.as_float
        case ResultKind.REAL:
            return dtype.real
        case ResultKind.SAME:
            return dtype


def _legal(dtype: DType) -> list[Op]:
    unary = [op for op in UnaryOp if is_legal_unary(op, dtype)]
    return [*unary, *(op for op in BinaryOp if is_legal_binary(op, dtype))]


def _edges(dtype: DType) -> NDArray[Any]:
    kind = numpy_dtype(dtype)
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(kind)
        small = [0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100]
        signed = [-1, -2, -3, -7, -64] if dtype.is_signed_integer else []
        wide = [info.min, info.min + 1, info.max, info.max - 1, info.max // 3]
        return np.array([*small, *signed, *wide], kind)
    reals = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -1e-3, np.inf, -np.inf, np.nan]
    if dtype.is_complex:
        parts = [0.0, -0.0, 1.0, -1.5, 3.0, np.inf, -np.inf, np.nan]
        return np.array([complex(x, y) for x in parts for y in parts], kind)
    tiny, huge = np.finfo(kind).tiny, np.finfo(kind).max
    return np.array([*reals, tiny, tiny / 4, huge, -huge, 88.0, -700.0, 1e10], kind)


def _all_operations(dtype: DType) -> LoopFunc:
    """``results[k][i] = op_k(a[i], b[i])`` for all legal operations."""
    a, b = memref("a", dtype), memref("b", dtype)
    x, y, i = var("x", dtype), var("y", dtype), var("i", INDEX)
    outs: list[Memref] = []
    stores: list[Store] = []
    for op in _legal(dtype):
        result = _result_dtype(op, dtype)
        out = memref(f"out_{op.name.lower()}_{len(outs)}", result)
        value: Expr
        if isinstance(op, UnaryOp):
            value = Unary(op, x, result)
        else:
            value = Binary(op, x, y, result)
        outs.append(out)
        stores.append(Store(out, (i,), value))
    reads = (Let(x, Load(a, (i,))), Let(y, Load(b, (i,))))
    loop = For(i, index(0), DimOf(a, 0), (*reads, *stores))
    return function(f"operations_{dtype.short}", [a, b, *outs], [loop])


def _reference(op: Op, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    if isinstance(op, UnaryOp):
        return np.asarray(numpy_unary(op)(a))
    ufunc = getattr(np, op.info.numpy)
    if op is BinaryOp.POW and a.dtype.kind in "iu":
        return np.array([_integer_power(x, y) for x, y in zip(a, b, strict=True)], a.dtype)
    return np.asarray(ufunc(a, b))


def _integer_power(base: Any, exponent: Any) -> Any:
    if exponent >= 0:
        return np.power(base, exponent)
    return {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(int(base), 0)


_ANY_ZERO: set[Op] = {BinaryOp.MIN, BinaryOp.MAX, BinaryOp.FMIN, BinaryOp.FMAX}
_EXACT: set[Op] = {UnaryOp.NEG, UnaryOp.ABS, UnaryOp.SIGN, UnaryOp.SQRT, UnaryOp.FLOOR}
_EXACT |= {UnaryOp.CEIL, UnaryOp.TRUNC, UnaryOp.RINT, UnaryOp.CONJ, UnaryOp.REAL, UnaryOp.IMAG}
_EXACT |= {UnaryOp.BITS, UnaryOp.FROM_BITS}
_EXACT |= set(BinaryOp) - {BinaryOp.POW, BinaryOp.ATAN2, BinaryOp.HYPOT, BinaryOp.LOGADDEXP}
_COMPLEX_ROUNDED: set[Op] = {UnaryOp.ABS, UnaryOp.SIGN, UnaryOp.SQRT, BinaryOp.DIV}


def _agree(actual: NDArray[Any], expected: NDArray[Any], op: Op, dtype: DType) -> NDArray[Any]:
    """Where the values agree: to the bit, but for rounding of inexact functions."""
    rounded = op not in _EXACT or (dtype.is_complex and op in _COMPLEX_ROUNDED)
    if expected.dtype.kind == "c":
        # a rounding error is relative to the number, not to its smaller part
        size = np.hypot(expected.real, expected.imag)
        parts = ((actual.real, expected.real), (actual.imag, expected.imag))
        both, imag = (_agree_real(a, e, size, op, rounded) for a, e in parts)
        both &= imag
        return both
    if expected.dtype.kind != "f":
        same: NDArray[Any] = actual == expected
        return same
    return _agree_real(actual, expected, np.abs(expected), op, rounded)


def _agree_real(
    actual: NDArray[Any], expected: NDArray[Any], size: NDArray[Any], op: Op, rounded: bool
) -> NDArray[Any]:
    same: NDArray[Any] = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    if op not in _ANY_ZERO:
        same &= np.isnan(expected) | (np.signbit(actual) == np.signbit(expected))
    info = np.finfo(expected.dtype)
    scale = np.where(np.isfinite(size), size, np.abs(expected))
    close = np.abs(actual - expected) <= 16 * info.eps * scale + 4 * info.smallest_subnormal
    same |= close & rounded & ((actual != 0) | (expected != 0))
    return same


def _pairs(dtype: DType) -> tuple[NDArray[Any], NDArray[Any]]:
    values = _edges(dtype)
    pairs = list(itertools.product(values, values))
    return np.array([x for x, _ in pairs], values.dtype), np.array(
        [y for _, y in pairs], values.dtype
    )


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=lambda dtype: dtype.short)
def test_operations_are_numpys(backend: str, dtype: DType) -> None:
    a, b = _pairs(dtype)
    legal = _legal(dtype)
    outs = [np.zeros(a.size, numpy_dtype(_result_dtype(op, dtype))) for op in legal]
    run(backend, _all_operations(dtype), a, b, *outs)
    wrong = []
    with np.errstate(all="ignore"):
        for op, actual in zip(legal, outs, strict=True):
            expected = _reference(op, a, b)
            assert actual.dtype == expected.dtype, op
            for k in np.flatnonzero(~_agree(actual, expected, op, dtype)):
                wrong.append((op, a[k], b[k], "gives", actual[k], "not", expected[k]))
    assert not wrong, f"{len(wrong)} of them: {wrong[:20]}"


@pytest.mark.parametrize("dtype", ARITHMETIC, ids=lambda dtype: dtype.short)
def test_what_numpy_defines_is_legal(dtype: DType) -> None:
    assert set(_legal(dtype)) == {op for op in (*UnaryOp, *BinaryOp) if applies(op, dtype)}


def test_an_operation_without_a_meaning_is_refused() -> None:
    x = memref("x", DType.INT32)
    i = index(0)
    body = [Store(x, (i,), Unary(UnaryOp.SQRT, Load(x, (i,)), DType.INT32))]
    with pytest.raises(UnsupportedError, match="'sqrt' of int32 is not an operation of loops"):
        run("interpreter", function("f", [x], body))


@pytest.mark.parametrize("by", [1, 2, 64, 3, -4])
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8"])
def test_floor_division_by_a_constant(by: int, dtype: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([least, least + 1, -65, -64, -63, -1, 0, 1, 63, 64, 65, most], dtype)
    found = sj.sparse_jit(lambda x: x // by, cache=False)(x)
    np.testing.assert_array_equal(found, x // by)
