"""Arguments and results: containers, keywords, defaults, kinds of objects, identity."""

from collections import namedtuple
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

Pair = namedtuple("Pair", ["left", "right"])


def jit(fn: Any, **options: Any) -> Any:
    return sparse_jit(fn, target="interpreter", **options)


def test_nested_containers_of_arguments() -> None:
    @jit
    def f(params: Any, pair: Any, *rest: Any) -> Any:
        return params["W"][0] * pair.left + pair.right + params["b"] * len(rest) + rest[1]

    x = np.array([1.0, 2.0])
    params = {"W": [x + 1, None], "b": 3.0}
    expected = (x + 1) * x + 2 * x + 3.0 * 2 + 5.0
    got = f(params, Pair(x, 2 * x), x, 5.0)
    np.testing.assert_array_equal(got, expected)
    assert list(params) == ["W", "b"]
    assert "%params_W_0: f64[d0]" in f.lower(params, Pair(x, 2 * x), x, 5.0).text("tensor")


def test_the_structure_of_containers_is_part_of_the_key() -> None:
    f = jit(lambda xs: sum(xs[1:], xs[0]))
    x = np.ones(2)
    assert f([x, x + 1]).tolist() == [3.0, 3.0]
    assert f([x, x + 1, x + 2]).tolist() == [6.0, 6.0]
    assert f((x, x + 1)).tolist() == [3.0, 3.0]
    assert f.cache_info().traces == 3


def test_keywords_defaults_and_their_order() -> None:
    default = np.array([10.0, 20.0])

    @jit
    def f(x: Any, /, y: Any = default, *, scale: float = 2.0, **more: Any) -> Any:
        return (x - y) * scale + sum(more.values())

    x = np.ones(2)
    assert f(x).tolist() == [-18.0, -38.0]
    assert f(x, scale=1.0).tolist() == [-9.0, -19.0]
    assert f(x, y=x).tolist() == [0.0, 0.0]
    assert f(x, x, scale=1.0, b=1.0, a=x).tolist() == [2.0, 2.0]
    assert f(x, x, scale=1.0, a=x, b=1.0).tolist() == [2.0, 2.0]
    default[:] = 1.0
    assert f(x).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1.0, 2.0, 3.0), {}, "too many positional arguments"),
        ((1.0,), {"z": 1}, "got an unexpected keyword argument 'z'"),
    ],
)
def test_python_errors_of_calls(args: Any, kwargs: Any, message: str) -> None:
    f = jit(lambda x, y=1: x + y)
    with pytest.raises(TypeError, match=message):
        f(*args, **kwargs)


def test_what_is_no_operand_is_named() -> None:
    f = jit(lambda x, fn: fn(x))
    with pytest.raises(sj.errors.TensorTypeError) as caught:
        f(np.ones(2), np.exp)
    assert "argument 'fn' is of type ufunc, which is neither an array" in str(caught.value)
    assert "static_argnames='fn'" in str(caught.value)
    with pytest.raises(
        sj.errors.TensorTypeError, match=r"""argument "x\['k'\]\[1\]" is of type set"""
    ):
        f({"k": [1.0, {1}]}, None)
    g = jit(lambda x, fn: fn(x), static_argnames=["fn"])
    assert g(np.zeros(2), np.exp).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="the static argument 'fn' must be hashable, not"):
        g(np.zeros(2), np.ones(3))


def test_wrong_dtypes_are_type_errors() -> None:
    f = jit(lambda x: x + x)
    for bad in (np.array(["a"]), np.array([object()]), np.ones(2, np.longdouble)):
        with pytest.raises(sj.errors.TensorTypeError, match="not supported"):
            f(bad)


def test_results_keep_their_structure() -> None:
    @jit
    def f(x: Any) -> Any:
        return {"a": [x + 1, (x * 2, "name")], "b": Pair(x.sum(), None), "c": 7}

    result = f(np.array([1.0, 2.0]))
    assert list(result) == ["a", "b", "c"]
    assert result["a"][0].tolist() == [2.0, 3.0]
    assert isinstance(result["a"][1], tuple)
    assert result["a"][1][1] == "name"
    assert isinstance(result["b"], Pair)
    assert result["b"].left == 3.0
    assert result["c"] == 7


def test_a_function_may_return_nothing() -> None:
    assert jit(lambda x: None)(np.ones(2)) is None
    assert jit(lambda x: ())(np.ones(2)) == ()


def test_results_of_rank_0_are_numpy_scalars() -> None:
    f = jit(lambda x: x.sum())
    assert type(f(np.ones(3))) is np.float64
    assert type(f(np.ones(3, np.float32))) is np.float32
    assert type(f(np.ones(3, bool))) is np.int64


def test_returned_arguments_are_the_callers_objects() -> None:
    f = jit(lambda x, A, s: (x, A, s, x + 1))
    x, A, s = np.ones(2), sp.csr_array(np.eye(2)), 2.5
    first, second, third, fourth = f(x, A, s)
    assert first is x
    assert second is A
    assert third is s
    assert not np.shares_memory(fourth, x)


def test_views_of_arguments_are_not_handed_out() -> None:
    x = np.arange(4.0)
    views: list[Any] = [lambda x: x[1:], lambda x: x.T, lambda x: x[::-1]]
    for fn in views:
        y = jit(fn)(x)
        np.testing.assert_array_equal(y, fn(x))
        assert not np.shares_memory(x, y)


def test_updates_return_the_callers_object() -> None:
    @jit
    def f(y: Any, x: Any) -> Any:
        y += x
        return y

    y = np.zeros(2)
    assert f(y, np.ones(2)) is y
    assert y.tolist() == [1.0, 1.0]


KINDS: dict[str, Any] = {
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "coo_array": sp.coo_array,
    "dia_array": sp.dia_array,
    "bsr_array": lambda A: sp.bsr_array(A, blocksize=(2, 2)),
    "lil_array": sp.lil_array,
    "dok_array": sp.dok_array,
    "SparseTensor": lambda A: sj.asarray(A, format=sj.CSR),
    "ndarray": np.asarray,
    "Fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix(kind: str) -> None:
    dense = np.array([[1.0, 0, 2, 0], [0, 0, 3, 4]])
    A, x = KINDS[kind](dense), np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(jit(lambda A, x: A @ x)(A, x), dense @ x)


def test_sparse_results_are_like_the_operands() -> None:
    dense = np.array([[1.0, 0, 2, 0], [0, 0, 3, 4]])
    double = jit(lambda A: A * 2)
    assert isinstance(double(sp.csr_array(dense)), sp.csr_array)
    assert isinstance(double(sp.csr_matrix(dense)), sp.csr_array)
    assert isinstance(double(sp.csc_array(dense)), sp.csc_array)
    assert isinstance(double(sj.asarray(dense, format=sj.CSR)), sj.SparseTensor)
    filled = jit(lambda A: np.exp(A))(sp.csr_array(dense))
    assert isinstance(filled, sj.SparseTensor)
    assert filled.fill_value == 1.0
    half = jit(lambda A: A * 2)(sj.asarray(dense.astype(np.float16), format=sj.CSR))
    assert half.dtype == np.float16


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_widths_of_results_are_the_least(index: Any) -> None:
    A = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0]]))
    A = sp.csr_array((A.data, A.indices.astype(index), A.indptr.astype(index)), A.shape)
    result = jit(lambda A: A * 2)(A)
    assert result.indices.dtype == np.int32
    assert result.indptr.dtype == np.int32


def test_bfloat16() -> None:
    x = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    result = jit(lambda x: x + x)(x)
    assert result.dtype == ml_dtypes.bfloat16
    assert result.astype(float).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("width", [np.uint8, np.uint16, np.uint32, np.int32, np.uint64, np.int64])
def test_every_index_type_of_a_sparse_tensor(width: Any) -> None:
    A = sj.SparseTensor(
        sj.CSR,
        (2, 3),
        (None, np.array([0, 1, 3], width)),
        (None, np.array([2, 0, 1], width)),
        np.array([5.0, 7.0, 9.0]),
    )
    np.testing.assert_array_equal(jit(lambda A, x: A @ x)(A, np.ones(3)), [5.0, 16.0])


def test_a_read_only_operand_is_read() -> None:
    x = np.ones(3)
    x.flags.writeable = False
    assert jit(lambda x: x * 2)(x).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
@pytest.mark.parametrize("number", [-1, 100, 127, 128, 255, 300, -129, 2**31, 2**40])
def test_python_integers_out_of_range_are_refused_as_in_numpy(dtype: Any, number: int) -> None:
    f = jit(lambda x, k: x + k)
    x = np.zeros(2, dtype)
    f(x, 1)
    try:
        expected = x + number
    except OverflowError as error:
        with pytest.raises(OverflowError, match=str(error)):
            f(x, number)
        return
    np.testing.assert_array_equal(f(x, number), expected)
    assert f.cache_info().traces == 1


def test_floats_take_any_integer() -> None:
    assert jit(lambda x, k: x + k)(np.zeros(1, np.float32), 2**40).tolist() == [2.0**40]


def test_output_names_results_that_exist() -> None:
    f = jit(lambda x: x * 2, output={1: sj.SparseVector})
    with pytest.raises(ValueError, match="output names result 1, but <lambda> has 1 results"):
        f(np.ones(2))


def test_output_has_the_rank_of_the_result() -> None:
    with pytest.raises(sj.errors.TensorTypeError, match="has rank 2, the result rank 1"):
        jit(lambda x: x * 2, output=sj.CSR)(np.ones(2))


def test_operands_on_a_device_are_refused() -> None:
    from dataclasses import replace

    from sparsejit.api._checks import refuse_device_operands
    from sparsejit.tensors import operand_of

    operand = operand_of(np.ones(2))
    refuse_device_operands([operand], ["x"])
    with pytest.raises(sj.errors.UnsupportedError, match="argument 'x' lies on the device"):
        refuse_device_operands([replace(operand, on_device=True)], ["x"])
