"""Softmax over stored entries, against NumPy row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from tests.semantics.masked import Array, Masked, dense_of, masked, run, same, shapes, stored_of


def expected(A: Masked, axis: Any, dtype: Any = np.float64) -> Array:
    """Return the softmax of what is stored, 0 elsewhere."""
    values = A.values.astype(np.float64)
    with np.errstate(all="ignore"):
        shifted = np.where(A.stored, values, -np.inf)
        most = shifted.max(axis=axis, keepdims=True, initial=-np.inf)
        powers = np.where(A.stored, np.exp(values - most), 0.0)
        quotient = powers / powers.sum(axis=axis, keepdims=True)
    return np.where(A.stored, quotient, 0.0).astype(dtype)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_of_matrices(data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A = data.draw(masked(shape, (np.float64, np.float32, np.int64, np.bool_), fills=(0, 3)))
    axis = data.draw(st.sampled_from([0, 1, -1, (0, 1)]))
    got = run(lambda A: sj.softmax(A, axis=axis), A)
    dtype = A.values.dtype if A.values.dtype.kind == "f" else np.float64
    same(got, expected(A, axis, dtype), 1e-5)
    assert (stored_of(got) == A.stored).all()


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_of_indexed_expressions(data: Any) -> None:
    A = data.draw(masked((3, 4)))

    def rows(A: Any) -> Any:
        i, j = sj.indices("i j")
        P = sj.output()
        P[i, j] = sj.softmax(A[i, j] * 2, j)
        return P

    def columns(A: Any) -> Any:
        i, j = sj.indices("i j")
        P = sj.output()
        P[j, i] = sj.softmax(A[i, j], axis=i)
        return P

    double = Masked(A.values * 2, A.stored, A.format)
    same(run(rows, A), expected(double, 1))
    same(run(columns, A), expected(A, 0).T)


def test_infinities_and_nan() -> None:
    inf = np.inf
    values = np.array([[-inf, -inf, 0], [-inf, 1, 0], [inf, 1, 0], [np.nan, 1, 0], [0, 0, 0]])
    stored = np.array([[1, 1, 0]] * 4 + [[0, 0, 0]], bool)
    A = Masked(values, stored, sj.CSR)
    got = dense_of(run(lambda A: sj.softmax(A, axis=1), A))
    nan = np.nan
    np.testing.assert_array_equal(
        got, [[nan, nan, 0], [0, 1, 0], [nan, nan, 0], [nan, nan, 0], [0, 0, 0]]
    )


def test_large_numbers_do_not_overflow() -> None:
    A = Masked(np.array([[1000.0, 1001.0]]), np.ones((1, 2), bool), sj.CSR)
    same(run(lambda A: sj.softmax(A, 1), A), expected(A, 1))
    half = Masked(np.array([[60000.0, 60000.0]], np.float16), np.ones((1, 2), bool), sj.CSR)
    same(run(lambda A: sj.softmax(A, 1), half), np.full((1, 2), 0.5, np.float16))


def test_heads_in_a_dense_dimension() -> None:
    fmt = sj.Format("(i, j, h) -> (i : dense, j : compressed, h : dense)")
    rng = np.random.default_rng(0)
    stored = np.repeat((rng.random((4, 5)) < 0.5)[:, :, None], 3, axis=2)
    A = Masked(rng.standard_normal((4, 5, 3)), stored, fmt)
    got = run(lambda A: sj.softmax(A, axis=1), A)
    same(got, expected(A, 1))
    assert sj.asarray(got).format.with_widths(0, 0) == fmt


def test_attention_against_numpy() -> None:
    rng = np.random.default_rng(1)
    stored = rng.random((5, 6)) < 0.5
    S = Masked(np.ones((5, 6)), stored, sj.CSR)
    Q, K, V = (
        Masked(rng.standard_normal(s), np.ones(s, bool), None) for s in ((5, 3), (6, 3), (6, 2))
    )

    def attention(S: Any, Q: Any, K: Any, V: Any) -> Any:
        return sj.softmax(sj.where_stored(S, Q @ K.T), axis=1) @ V

    scores = Masked(Q.values @ K.values.T, stored, None)
    same(run(attention, S, Q, K, V), expected(scores, 1) @ V.values)


def test_what_is_refused() -> None:
    A = Masked(np.ones((2, 2), complex), np.ones((2, 2), bool), sj.CSR)
    with pytest.raises(TypeError, match="softmax of complex numbers"):
        run(lambda A: sj.softmax(A, 1), A)
    with pytest.raises(TypeError, match="axis 2 is out of bounds"):
        run(lambda A: sj.softmax(A.real, 2), A)
