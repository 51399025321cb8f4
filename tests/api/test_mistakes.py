"""What users get wrong or write as they would outside: it works, or the error says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import (
    AxisError,
    SubscriptError,
    TensorTypeError,
    TensorValueError,
    TraceError,
)

A = sp.csr_array(np.eye(4) + np.diag([1.0, 2, 3], 1))
x = np.ones(4)


def _jit(fn: Any) -> Any:
    return sparse_jit(fn, target="interpreter")


@pytest.mark.parametrize(
    "make",
    [
        lambda: sp.eye_array(4),
        lambda: sp.eye(4, format="csr"),
        lambda: sp.diags_array([1.0, 2, 3, 4]),
        lambda: sp.coo_array(np.eye(4)),
        lambda: sp.bsr_array(np.eye(4)),
    ],
)
def test_scipy_arrays_made_inside_of_the_function(make: Any) -> None:
    def fn(A: Any) -> Any:
        return make() @ A, make() + A, 2 * make() * A

    wanted = make().toarray()
    for got, one in zip(
        _jit(fn)(A), (wanted @ A, wanted + A, 2 * wanted * A.toarray()), strict=True
    ):
        np.testing.assert_allclose(got.toarray(), one)


def test_asarray_converts_inside_of_the_function() -> None:
    got = _jit(lambda A: sj.asarray(A, format=sj.CSC))(A)
    assert got.format == "csc"
    np.testing.assert_allclose(got.toarray(), A.toarray())
    with pytest.raises(TraceError, match="fill_value="):
        _jit(lambda A: sj.asarray(A, fill_value=1))(A)


def test_an_element_that_was_read_before_is_what_it_was() -> None:
    def fn(x: Any) -> None:
        before = x[0]
        before += 1
        x[0] = 5
        x[0] = before

    got = np.array([1.0, 2.0])
    _jit(fn)(got)
    assert got.tolist() == [2.0, 2.0]


# ------------------------------------------------------------ kinds of errors, as in NumPy

SHAPES: dict[str, type[Exception]] = {
    **{"A @ x[:3]": ValueError, "A + x[:3]": ValueError, "A.reshape(3, 5)": ValueError},
    **{"A.sum(axis=2)": ValueError, "A[7]": IndexError, "A[0, 0, 0]": IndexError},
    **{"np.concatenate([A, x])": ValueError, "np.einsum('ij,jk', A, x)": ValueError},
    **{"x[:0].max()": ValueError, "np.broadcast_to(x, (3, 3))": ValueError},
    **{"np.split(A, 3)": ValueError, "np.linalg.norm(A, 'x')": ValueError},
    **{"np.tensordot(A, x[:2], 1)": ValueError, "np.transpose(A, (0, 0))": ValueError},
    **{"np.average(A, axis=1, weights=x[:3])": ValueError, "x[::0]": ValueError},
}


@pytest.mark.parametrize("text", SHAPES)
def test_except_clauses_for_numpy_catch(text: str) -> None:
    fn = eval(f"lambda A, x: {text}", {"np": np})
    with pytest.raises(SHAPES[text]):
        fn(A.toarray(), x)
    with pytest.raises(SHAPES[text]) as caught:
        _jit(fn)(A, x)
    assert isinstance(caught.value, TensorTypeError)
    assert caught.value.location is not None


def test_the_kinds_of_errors() -> None:
    assert issubclass(TensorValueError, ValueError)
    assert issubclass(SubscriptError, IndexError)
    assert issubclass(AxisError, ValueError)
    assert issubclass(AxisError, IndexError)


# ------------------------------------------------------------ what the message says to do


def numpy_array(A: Any, x: Any) -> Any:
    r = np.zeros(2)
    r[0] = A[0, 0]
    return r


def scipy_function(A: Any, x: Any) -> Any:
    return sp.vstack([A, A])


def formatted(A: Any, x: Any) -> Any:
    return f"{A.sum():.2f}"


def branches_that_are_arrays(A: Any, x: Any) -> Any:
    return sj.cond(A.sum() > 1, A, A)


def a_gather(A: Any, x: Any) -> Any:
    return x[A[0].toarray()]


def a_semiring(A: Any, x: Any) -> Any:
    return sj.einsum("ij,j->i", A, x, semiring="maxplus")


def out_of_dot(A: Any, x: Any) -> Any:
    return np.dot(A, x, out=x)


HINTS: dict[Any, tuple[str, str]] = {
    numpy_array: ("a NumPy array made inside of the function", r"sj\.output\(\)"),
    scipy_function: ("SciPy's functions take no traced arrays", r"np\.vstack"),
    formatted: ("value of a traced array is not known", "keep it an array"),
    branches_that_are_arrays: ("cond takes functions", "write lambda"),
    a_gather: ("indexing with an array is not built", "sparse matrix with a one in each row"),
    a_semiring: ("semiring='maxplus' is none of", "max_plus"),
    out_of_dot: ("np.dot with these arguments", "it takes a, b"),
}


@pytest.mark.parametrize("fn", HINTS, ids=lambda fn: fn.__name__)
def test_what_to_do(fn: Any) -> None:
    what, hint = HINTS[fn]
    with pytest.raises(sj.errors.SparseJitError, match=what) as caught:
        _jit(fn)(A, x.copy())
    assert caught.value.location is not None
    assert caught.value.location.function == fn.__name__
    with pytest.raises(sj.errors.SparseJitError, match=hint):
        raise caught.value
