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


def numpy_array_by_parts(A: Any, x: Any) -> Any:
    r = np.zeros(4)
    r[1:3] = (A @ x)[1:3]
    return r


def numpy_array_by_indices(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    r = np.zeros(A.shape[0])
    r[i] = A[i, j] * x[j]
    return r


def numpy_array_updated(A: Any, x: Any) -> Any:
    r = np.full(4, 2.0)
    r += A @ x
    return r


def numpy_array_copied_to(A: Any, x: Any) -> Any:
    r = np.empty(4)
    np.copyto(r, A @ x)
    return r


def numpy_array_as_out(A: Any, x: Any) -> Any:
    r = np.empty(4)
    np.multiply(x, 2, out=r)
    return r


def numpy_array_flat(A: Any, x: Any) -> Any:
    r: Any = np.empty((2, 2))
    r.flat = x
    return r


def numpy_array_read_by_indices(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    w = np.array([1.0, 2.0, 3.0, 4.0])
    r = sj.output()
    r[i] = w[i] * A[i, j]
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


_LIKE = r"np\.zeros_like\(x, shape=n\), .* sj\.output\(\)"
HINTS: dict[Any, tuple[str, str]] = {
    **dict.fromkeys(
        (
            numpy_array,
            numpy_array_by_parts,
            numpy_array_by_indices,
            numpy_array_updated,
            numpy_array_copied_to,
            numpy_array_as_out,
            numpy_array_flat,
        ),
        (
            "is assigned to a NumPy array made inside of the function",
            _LIKE,
        ),
    ),
    numpy_array_read_by_indices: (
        "a NumPy array made inside of the function is indexed by something traced",
        _LIKE,
    ),
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


# ------------------------------------------------------------ functions that call themselves


def endless(A: Any, n: Any) -> Any:
    return sj.cond(n == 0, lambda: A * 1.0, lambda: decorated_endless(A, n - 1))


decorated_endless = _jit(endless)


def plainly_endless(A: Any, n: Any) -> Any:
    return plainly_endless(A @ A, n - 1)


def to_and_fro(A: Any, n: Any) -> Any:
    return and_fro(A, n) + 1


def and_fro(A: Any, n: Any) -> Any:
    return to_and_fro(A, n) * 2


@pytest.mark.parametrize("fn", [endless, plainly_endless, to_and_fro])
def test_a_recursion_without_end(fn: Any) -> None:
    compiled = decorated_endless if fn is endless else _jit(fn)
    with pytest.raises(TraceError, match="calls itself without end while it is traced") as caught:
        compiled(A.toarray(), 3)
    place = caught.value.location
    assert place is not None
    assert place.file == __file__
    first = fn.__code__.co_firstlineno
    assert 0 < place.line - first < 8
    assert "static_argnames" in str(caught.value)
    assert "sj.fori_loop" in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_recursion_that_ends() -> None:
    @sparse_jit(target="interpreter", static_argnames="n")
    def power(A: Any, n: Any) -> Any:
        if n == 0:
            return np.eye(4, like=A)
        half = power(A, n // 2)
        return half @ half @ A if n % 2 else half @ half

    D = A.toarray() / 2
    np.testing.assert_allclose(power(D, 13), np.linalg.matrix_power(D, 13))


def test_a_recursion_error_that_is_none_of_the_function() -> None:
    def fn(x: Any) -> Any:
        raise RecursionError("of something else")

    with pytest.raises(RecursionError, match="of something else"):
        _jit(fn)(x)


# ------------------------------------------------------------ lists, and arrays made by NumPy


def test_lists_are_operands() -> None:
    def fn(A: Any, x: Any) -> Any:
        counted = [1, 2, 3, 4]
        return A @ [1.0, 2, 3, 4], [1.0, 2, 3, 4] @ A, x + counted, tuple(counted) * x

    for _ in range(2):
        for got, wanted in zip(_jit(fn)(A, x), fn(A, x), strict=True):
            np.testing.assert_allclose(got, wanted)


def _assigned(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    n = A.shape[0]
    made = np.zeros_like(x, shape=n), np.full(n, 2, like=x), np.ones((n, 2), np.float32, like=x)
    made[0][i] = A[i, j] * x[j]
    made[1][1:] += 3
    made[2][0, 1] = x[2]
    return made


def test_arrays_made_inside_of_the_function() -> None:
    f = _jit(_assigned)
    for size in (4, 6):
        B, y = sp.csr_array(np.diag(np.arange(1.0, size + 1))), np.arange(1.0, size + 1)
        for _ in range(2):  # the second call starts anew
            first, second, third = f(B, y)
            np.testing.assert_allclose(first, B @ y)
            assert second.tolist() == [2, *[5] * (size - 1)]
            assert second.dtype == np.int64
            assert third.dtype == np.float32
            assert third.tolist() == [[1, 3], *[[1, 1]] * (size - 1)]
    assert f.cache_info().traces == 1


CREATED: dict[str, Any] = {
    "array": lambda x, **like: np.array([[1, 2], [3, 4]], np.float32, **like),
    "array of traced": lambda x, **like: np.array([[x[0], 1], [x[1] * 2, x[2]]], **like),
    "array, ndmin": lambda x, **like: np.array([1, 2], ndmin=3, **like),
    "array, copied": lambda x, **like: np.array(x, **like),
    "asarray": lambda x, **like: np.asarray([1, 2], **like),
    "asarray, dtype": lambda x, **like: np.asarray(x, np.float32, **like),
    "zeros": lambda x, **like: np.zeros((2, 3), **like),
    "zeros, dtype": lambda x, **like: np.zeros(4, bool, **like),
    "ones": lambda x, **like: np.ones(x.shape[0], **like),
    "ones, dtype": lambda x, **like: np.ones(2, np.int8, **like),
    "full": lambda x, **like: np.full((2, 2), 7, **like),
    "full of a float": lambda x, **like: np.full(2, 0.5, **like),
    "full, dtype": lambda x, **like: np.full(2, 7, np.complex64, **like),
    "arange": lambda x, **like: np.arange(x.shape[0], **like),
    "arange, dtype": lambda x, **like: np.arange(x.shape[0], dtype=np.float32, **like),
    "arange by steps": lambda x, **like: np.arange(7, 1, -2, **like),
    "eye": lambda x, **like: np.eye(x.shape[0], **like),
    "eye of a rectangle": lambda x, **like: np.eye(3, 5, 1, int, **like),
    "eye, below": lambda x, **like: np.eye(3, k=-1, **like),
    "identity": lambda x, **like: np.identity(3, **like),
    "identity, dtype": lambda x, **like: np.identity(3, np.int16, **like),
}


@pytest.mark.parametrize("what", CREATED)
def test_what_numpy_makes_like_a_traced_array(what: str) -> None:
    create, y = CREATED[what], np.arange(1.0, 6)
    wanted = np.asarray(create(y))
    f = _jit(lambda x: create(x, like=x))
    for _ in range(2):
        got = f(y)
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
    assert not np.shares_memory(got, f(y))


def test_what_is_made_inside_can_be_assigned() -> None:
    def fn(x: Any) -> Any:
        made = np.array([1, 2, 3], like=x)
        made[0] += 5
        counted = np.arange(x.shape[0], like=x)
        counted[1] = 7
        return made, counted

    f = _jit(fn)
    for _ in range(2):
        made, counted = f(x)
        assert (made.tolist(), counted.tolist()) == ([6, 2, 3], [0, 7, 2, 3])


# ------------------------------------------------------------ questions about the kind


def test_issparse_says_how_an_array_is_stored() -> None:
    def fn(A: Any, x: Any) -> Any:
        y = sj.output()
        told = [sp.issparse(v) for v in (A, x, A @ x, A * 2, A.T, A @ A, A.toarray(), A + 1, y)]
        return A @ x, told

    wanted = [True, False, False, True, True, True, False, True, False]
    assert _jit(fn)(A, x)[1] == wanted
    assert _jit(lambda A: sp.issparse(A))(A.toarray()) is False


def test_issparse_is_no_answer_to_scipy() -> None:
    other = sp.csr_array(np.eye(4) * 3)
    got = _jit(lambda A: (other @ A, other + A, other * A))(A)
    for one, wanted in zip(got, (other @ A, other + A, other * A), strict=True):
        np.testing.assert_allclose(one.toarray(), wanted.toarray())
    with pytest.raises(TraceError, match="SciPy's functions take no traced arrays"):
        _jit(scipy_function)(A, x)


@pytest.mark.parametrize("ask", [sp.isspmatrix, sp.isspmatrix_csr])
def test_whether_it_is_a_matrix_is_not_known(ask: Any) -> None:
    with pytest.raises(TraceError, match=f"{ask.__name__}.* is not known while tracing"):
        _jit(lambda A: ask(A))(A)


def test_the_class_of_a_traced_array_stays() -> None:
    def fn(A: Any) -> Any:
        with pytest.raises(TraceError, match="class of a traced array"):
            A.__class__ = np.ndarray
        return A.__class__ is type(A), isinstance(A, np.ndarray)

    assert _jit(fn)(A) == (True, False)
