"""Dtypes: every pair of types and every operation promotes as NumPy does, weak scalars included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sparsejit as sj
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import Dense
from sparsejit.ir.fold import numpy_dtype, zero_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._pointwise import Pointwise, of_value
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._ufuncs import apply, is_elementwise
from tests.trace.harness import Operand, check, traced

DTYPES = [numpy_dtype(dtype) for dtype in DType]
BINARY = [
    np.add,
    np.subtract,
    np.multiply,
    np.true_divide,
    np.floor_divide,
    np.remainder,
    np.fmod,
    np.power,
    np.float_power,
    np.minimum,
    np.maximum,
    np.fmin,
    np.fmax,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.equal,
    np.not_equal,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.left_shift,
    np.right_shift,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.arctan2,
    np.hypot,
    np.copysign,
    np.logaddexp,
    np.heaviside,
]
UNARY = [
    getattr(np, name)
    for name in sorted(dir(np))
    if isinstance(getattr(np, name), np.ufunc)
    and getattr(np, name).nin == 1
    and is_elementwise(getattr(np, name))
]


def numpy_result(ufunc: np.ufunc, *operands: Any) -> Any:
    """Return NumPy's result, or None where it has no loop."""
    with np.errstate(all="ignore"):
        try:
            return ufunc(*operands)
        except (TypeError, OverflowError, ValueError):
            return None


def sample(dtype: Any) -> Any:
    return np.array([1, 3, 2]).astype(dtype)


def element(value: Any) -> Pointwise:
    """Return an operand as an expression: an array's element, or a run-time Python scalar."""
    weak = not isinstance(value, np.ndarray)
    dtype = dtype_of_numpy(np.asarray(value).dtype)
    kind = TensorType((), dtype, Dense(0), zero_of(dtype))
    return replace(of_value(Value("a", kind)), weak=weak)


def static(value: Any) -> Pointwise:
    """Return an operand as a constant of the trace."""
    return Pointwise(
        Const(value, dtype_of_numpy(np.asarray(value).dtype)), (), element(value).dtype, True
    )


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda ufunc: ufunc.__name__)
def test_every_pair_of_dtypes(ufunc: np.ufunc) -> None:
    for left in DTYPES:
        for right in DTYPES:
            wanted = numpy_result(ufunc, sample(left), sample(right))
            operands = element(sample(left)), element(sample(right))
            if wanted is None:
                with pytest.raises(TensorTypeError):
                    apply(ufunc, operands)
            else:
                assert numpy_dtype(apply(ufunc, operands).dtype) == wanted.dtype, (left, right)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1j], ids=repr)
def test_weak_scalars(ufunc: np.ufunc, scalar: Any) -> None:
    for dtype in DTYPES:
        for is_left in (False, True):
            operands = (scalar, sample(dtype)) if is_left else (sample(dtype), scalar)
            wanted = numpy_result(ufunc, *operands)
            for weak in (element(scalar), static(scalar)):
                array = element(sample(dtype))
                given = (weak, array) if is_left else (array, weak)
                if wanted is None:
                    with pytest.raises(TensorTypeError):
                        apply(ufunc, given)
                else:
                    assert numpy_dtype(apply(ufunc, given).dtype) == wanted.dtype, operands


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda ufunc: ufunc.__name__)
def test_every_unary_operation(ufunc: np.ufunc) -> None:
    for dtype in DTYPES:
        values = sample(dtype)
        wanted = numpy_result(ufunc, values)
        if wanted is None:
            with pytest.raises(TensorTypeError):
                apply(ufunc, (element(values),))
            continue
        loose = dtype.itemsize < 4 or dtype == ml_dtypes.bfloat16
        check(lambda a: ufunc(a), values, rtol=2e-2 if loose else 1e-5)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex128"])
def test_values_of_binary_operations(ufunc: np.ufunc, dtype: str) -> None:
    left, right = sample(dtype), sample(dtype)[::-1].copy()
    if numpy_result(ufunc, left, right) is not None:
        check(lambda a, b: ufunc(a, b), left, right, rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all", "mean"])
def test_reductions_widen_as_numpy(name: str) -> None:
    for dtype in DTYPES:
        if name in ("any", "all") and dtype == ml_dtypes.bfloat16:
            continue  # NumPy has no loop for it, we do
        check(lambda a: getattr(a, name)(axis=0), np.ones((2, 3), dtype), rtol=1e-2)


def test_reductions_in_a_given_dtype() -> None:
    check(lambda a: (a.sum(dtype=np.float64), np.sum(a, axis=0, dtype="int32")), np.ones(3, "f4"))


def test_integers_out_of_bounds() -> None:
    values = np.array([0, 200, 255], np.uint8)

    def add(a: Any) -> Any:
        return a + 300

    with pytest.raises(TensorTypeError, match="Python integer 300 out of bounds for uint8"):
        traced(add, values)
    check(lambda a: (a < 300, a > -1, a == 256, np.greater(300, a), a != -5), values)
    check(lambda a: a + 2**63, np.array([1], np.uint64))


def test_signed_and_unsigned_compare_exactly() -> None:
    signed = np.array([-1, 0, 2**62, -(2**62)])
    unsigned = np.array([2**64 - 1, 0, 2**62, 1], np.uint64)
    check(lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a != b), signed, unsigned)
    check(lambda a, b: (b < a, b <= a, b > a, b >= a, b == a, b != a), signed, unsigned)


def test_python_scalars_stay_weak_among_themselves() -> None:
    single = np.ones(3, np.float32)
    check(lambda a, s, t: a * (2 * s + t), single, 1.5, 2)
    check(lambda a, s: a * np.sin(s), single, 1.5)  # a ufunc's result is not weak
    check(lambda a, s: a + s, single, np.float64(2))


def test_where_and_clip() -> None:
    single = np.array([1, 2], np.float32)
    check(
        lambda a, n: (np.where(a > 1, a, 0.5), np.where(n, n, 1), np.clip(n, 0, 1)),
        single,
        sample("i1"),
    )


def test_unsupported_ufuncs_say_so() -> None:
    def fn(a: Any) -> Any:
        return np.spacing(a)

    with pytest.raises(UnsupportedError) as caught:
        traced(fn, np.ones(3))
    assert caught.value.what == "np.spacing is not built"
    assert caught.value.location is not None
    assert caught.value.location.line == fn.__code__.co_firstlineno + 1


def test_foreign_dtypes_are_refused() -> None:
    def fn(a: Any) -> Any:
        return a.astype("U3")

    with pytest.raises(TensorTypeError, match="dtype <U3 is not supported"):
        traced(fn, Operand(np.ones(3)))


HALVES = [
    (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)),
    (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)),
]


@pytest.mark.parametrize("dtypes", HALVES)
@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_products_of_both_16_bit_floats_are_float32(dtypes: Any, target: str) -> None:
    """As in ``np.matmul``; what NumPy has no dtype for (``einsum``, ``dot``) gives float32 too."""
    a, b = (np.arange(-4.0, 5).reshape(3, 3) / 2).astype(dtypes[0]), np.ones((3, 3), dtypes[1])
    expected = a @ b
    assert expected.dtype == np.float32

    def program(a: Any, b: Any) -> Any:
        i, j, k = sj.indices("i j k")
        y = sj.output()
        y[i, k] = a[i, j] * b[j, k]
        return a @ b, sj.einsum("ij,jk->ik", a, b), np.dot(a, b), np.tensordot(a, b, 1), y, a + b

    compiled = sj.sparse_jit(program, target=target, cache=False)
    for operand in (a, sj.asarray(a, format=sj.CSR)):
        *products, total = compiled(operand, b)
        for found in products:
            dense = found if isinstance(found, np.ndarray) else found.to_numpy()
            assert dense.dtype == np.float32
            np.testing.assert_array_equal(dense, expected)
        assert total.dtype == np.float32
        np.testing.assert_array_equal(total, a + b)


@pytest.mark.parametrize("dtypes", HALVES)
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.where(a > 0, a, b),
        lambda a, b: np.concatenate([a, b]),
        lambda a, b: np.stack([a, b]),
        lambda a, b: np.select([a > 0], [a], b),
    ],
)
def test_16_bit_floats_have_no_common_dtype(dtypes: Any, function: Any) -> None:
    a, b = (np.ones(3, dtype) for dtype in dtypes)
    with pytest.raises(TypeError):
        function(a, b)
    with pytest.raises(TensorTypeError, match=r"and .* have no common dtype\n.*test_promotion"):
        sj.sparse_jit(function, target="interpreter")(a, b)
