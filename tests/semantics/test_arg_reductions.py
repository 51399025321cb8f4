"""Positions of extremes: the first one in NumPy's order, stored or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from tests.semantics.masked import FORMATS, Masked, masked, run, same, stored_of

DTYPES = (np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_of_matrices(name: str, data: Any) -> None:
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5)))
    A = data.draw(masked(shape, DTYPES, fills=(0, 1, 2)))
    axis = data.draw(st.sampled_from([None, 0, 1, -1]))
    keepdims = data.draw(st.booleans())
    wanted = np.asarray(getattr(np, name)(A.dense, axis=axis, keepdims=keepdims))
    same(run(lambda A: getattr(np, name)(A, axis=axis, keepdims=keepdims), A), wanted)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_with_nan(name: str, data: Any) -> None:
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4)))
    A = data.draw(masked(shape, fills=(0.0, np.nan, -np.inf, np.inf)))
    holes = np.array(
        data.draw(st.lists(st.booleans(), min_size=A.values.size, max_size=A.values.size))
    )
    A = Masked(np.where(holes.reshape(shape), np.nan, A.values), A.stored, A.format, A.fill)
    axis = data.draw(st.sampled_from([None, 0, 1]))
    wanted = np.asarray(getattr(np, name)(A.dense, axis=axis))
    same(run(lambda A: getattr(A, name)(axis=axis), A), wanted)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_over_indices(data: Any) -> None:
    A = data.draw(masked((3, 4), fills=(0, 1)))

    def rows(A: Any) -> Any:
        i, j = sj.indices("i j")
        y = sj.output()
        y[i] = sj.argmax(A[i, j] * 2, over=j)
        return y

    def columns(A: Any) -> Any:
        i, j = sj.indices("i j")
        y = sj.output()
        y[j] = sj.argmin(A[i, j], over=i) + j
        return y

    def everywhere(A: Any) -> Any:
        i, j = sj.indices("i j")
        return sj.argmax(A[i, j], over=(j, i))

    same(run(rows, A), A.dense.argmax(axis=1))
    same(run(columns, A), A.dense.argmin(axis=0) + np.arange(4))
    same(run(everywhere, A), np.asarray(A.dense.T.argmax()))


@pytest.mark.parametrize(
    "fmt",
    [
        sj.COO(3),
        sj.CSF(3),
        sj.Format("(i, j, k) -> (k : compressed, j : compressed, i : compressed)"),
        sj.Format("(i, j, k) -> (i : dense, j : compressed, k : dense)"),
    ],
)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_of_three_dimensions(fmt: Any, data: Any) -> None:
    shape = tuple(data.draw(st.integers(1, 3)) for _ in range(3))
    A = data.draw(masked(shape, formats=("dense",), fills=(0,)))
    fill = data.draw(st.sampled_from([0.0, 1.0, -5.0]))
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=A.values.size, max_size=A.values.size))
    )
    mask = mask.reshape(shape).astype(bool)
    if fmt.levels[-1].type.is_full:
        mask = np.broadcast_to(mask.any(axis=2, keepdims=True), shape).copy()
    B = Masked(A.values, mask, fmt, fill)
    axis = data.draw(st.sampled_from([None, 0, 1, 2]))
    got = run(lambda A: A.argmax(axis=axis), B)
    same(got, np.asarray(B.dense.argmax(axis=axis)))
    if not isinstance(got, np.ndarray | np.generic):
        assert (stored_of(got) == B.stored.any(axis=axis)).all()


@pytest.mark.parametrize("fmt", [sj.DIA, sj.BSR(2, 2), sj.ELL(4), sj.DCSC])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_of_other_formats(fmt: Any, data: Any) -> None:
    A = data.draw(masked((4, 4), formats=("csr",)))
    B = Masked(A.values, A.stored, fmt)
    axis = data.draw(st.sampled_from([None, 0, 1]))
    wanted = np.where(A.stored, A.values, 0)
    same(run(lambda A: A.argmax(axis=axis), B), np.asarray(wanted.argmax(axis=axis)))
    same(run(lambda A: A.argmin(axis=axis), B), np.asarray(wanted.argmin(axis=axis)))


def test_of_nothing() -> None:
    for fmt in FORMATS.values():
        A = Masked(np.zeros((2, 0)), np.zeros((2, 0), bool), fmt)
        with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
            run(lambda A: A.argmax(axis=1), A)
        same(run(lambda A: A.argmax(axis=0), A), np.zeros(0, np.int64))


def test_of_an_expression_and_a_scalar() -> None:
    A = Masked(np.array([[1.0, -2.0], [3.0, 0.0]]), np.array([[1, 1], [1, 0]], bool), sj.CSR)
    same(run(lambda A: sj.argmax(np.exp(-A), axis=1), A), np.array([1, 1]))
    same(run(lambda A: sj.argmax(A.sum()), A), np.asarray(0))


@pytest.mark.parametrize("fmt", [sj.CSF(3), sj.COO(3), sj.Batched(sj.CSR)], ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 1, 4), (2, 3, 2), (3, 2, 6)])
def test_where_no_fiber_is_empty(fmt: Any, axis: int | None, shape: tuple[int, ...]) -> None:
    # The number of a fiber that is missing, where none is, was multiplied: it wrapped around.
    dense = np.zeros(shape)
    dense[..., 0] = -1 - np.arange(dense[..., 0].size).reshape(shape[:2])
    A = sj.asarray(dense, format=fmt)
    f = sj.sparse_jit(lambda A: (A.argmax(axis=axis), (-A).argmin(axis=axis)), target="interpreter")
    for found in f(A):
        got = found.to_numpy() if isinstance(found, sj.SparseTensor) else found
        np.testing.assert_array_equal(got, dense.argmax(axis=axis))
