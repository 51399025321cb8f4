"""Plain reductions: what is not stored counts with its fill value, as in NumPy on all elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from tests.semantics.masked import Masked, masked, run, same, shapes, stored_of

NAMES = ("sum", "prod", "min", "max", "any", "all", "mean")
DTYPES = (np.float64, np.float32, np.int64, np.int8, np.uint16, np.bool_, np.complex128)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=14, deadline=None)
@given(data=st.data())
def test_over_axes(name: str, data: Any) -> None:
    least = 1 if name in ("min", "max", "mean") else 0
    shape = tuple(data.draw(st.integers(least, 4)) for _ in range(2))
    A = data.draw(masked(shape, DTYPES, fills=(0, 1, 2)))
    axis = data.draw(st.sampled_from([None, 0, 1, -1, (0, 1), ()]))
    keepdims = data.draw(st.booleans())
    if name == "prod" and A.values.dtype == np.complex128:
        A = Masked(A.values.real.astype(complex), A.stored, A.format, A.fill)
    wanted = np.asarray(getattr(A.dense, name)(axis=axis, keepdims=keepdims))
    same(run(lambda A: getattr(A, name)(axis=axis, keepdims=keepdims), A), wanted)
    same(run(lambda A: getattr(np, name)(A, axis=axis, keepdims=keepdims), A), wanted)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all", "mean"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_over_indices(name: str, data: Any) -> None:
    A = data.draw(masked((3, 4), (np.float64, np.int64, np.bool_), fills=(0, 1, 3)))

    def rows(A: Any) -> Any:
        i, j = sj.indices("i j")
        y = sj.output()
        y[i] = getattr(sj, name)(A[i, j], over=j)
        return y

    def everything(A: Any) -> Any:
        i, j = sj.indices("i j")
        return getattr(sj, name)(A[i, j], over=(i, j))

    kind = {"sum": A.values.dtype, "prod": A.values.dtype}
    wanted = kind if name in kind else None
    options = {"dtype": wanted[name]} if wanted else {}
    if A.values.dtype == np.bool_ and name in kind:
        rule = np.any if name == "sum" else np.all  # sums and products of bool without widening
        same(run(rows, A), rule(A.dense, axis=1))
        same(run(everything, A), np.asarray(rule(A.dense)))
        return
    same(run(rows, A), getattr(A.dense, name)(axis=1, **options))
    same(run(everything, A), np.asarray(getattr(A.dense, name)(**options)))


EXPRESSIONS: dict[str, Any] = {
    "exp": lambda A, B: np.exp(A),
    "plus one": lambda A, B: A + 1,
    "sum of two": lambda A, B: A + B,
    "product plus one": lambda A, B: A * B + 1,
    "difference": lambda A, B: A - B - 2,
    "comparison": lambda A, B: A < B,
    "maximum": lambda A, B: np.maximum(A, B),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("name", ["sum", "min", "prod", "any"])
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_of_expressions(expression: str, name: str, data: Any) -> None:
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    A, B = (data.draw(masked(shape, fills=(0, 1))) for _ in range(2))
    made = EXPRESSIONS[expression]
    axis = data.draw(st.sampled_from([0, 1, None]))
    wanted = np.asarray(getattr(made(A.dense, B.dense), name)(axis=axis))
    same(run(lambda A, B: getattr(made(A, B), name)(axis=axis), A, B), wanted)


@pytest.mark.parametrize("fill", [np.nan, np.inf, 5.0])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod"])
def test_fill_values_enter_only_where_something_is_missing(fill: float, name: str) -> None:
    values = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    stored = np.array([[True, True], [True, False], [False, False]])
    A = Masked(values, stored, sj.COO(2), fill)
    same(run(lambda A: getattr(A, name)(axis=1), A), getattr(A.dense, name)(axis=1))


def test_reported_sums_of_other_libraries() -> None:
    values = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    stored = np.array([[True, True], [True, False], [False, False]])
    for fill, wanted in ((5.0, [3.0, 8.0, 10.0]), (np.nan, [3.0, np.nan, np.nan])):
        A = Masked(values, stored, sj.COO(2), fill)
        same(run(lambda A: A.sum(axis=1), A), np.array(wanted))


@pytest.mark.parametrize("name", ["min", "max"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_sparse_results_of_three_dimensions(name: str, data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes), data.draw(st.integers(1, 3)))
    A = data.draw(masked(shape, formats=("dense",)))
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=A.values.size, max_size=A.values.size))
    )
    fill = data.draw(st.sampled_from([0.0, 1.0]))
    B = Masked(A.values, mask.reshape(shape).astype(bool), sj.COO(3), fill)
    got = run(lambda A: getattr(A, name)(axis=2), B)
    same(got, getattr(B.dense, name)(axis=2))
    if not isinstance(got, np.ndarray):
        assert (stored_of(got) == B.stored.any(axis=2)).all()
        assert sj.asarray(got).fill_value == fill


@pytest.mark.parametrize("name", ["min", "max"])
def test_of_nothing_is_refused_as_numpy_does(name: str) -> None:
    A = Masked(np.zeros((3, 0)), np.zeros((3, 0), bool), sj.CSR)
    message = "zero-size array to reduction operation"

    def everything(A: Any) -> Any:
        i, j = sj.indices("i j")
        return getattr(sj, name)(A[i, j], over=(i, j))

    with pytest.raises(ValueError, match=message):
        run(lambda A: getattr(A, name)(axis=1), A)
    with pytest.raises(ValueError, match=message):
        run(everything, A)
    same(run(lambda A: getattr(A, name)(axis=0), A), np.zeros(0))


def test_large_shapes_cost_what_is_stored() -> None:
    A = sj.from_coo(([9998], [9998]), [-1.0], (10000, 10000), format=sj.CSC)
    total = sj.sparse_jit(lambda A: (A.max(), A.min(), A.sum(), A.mean()), target="interpreter")
    largest, least, whole, mean = total(A)
    assert (largest, least, whole) == (0.0, -1.0, -1.0)
    assert mean == pytest.approx(-1e-8)


@pytest.mark.parametrize("ufunc", [np.bitwise_or, np.bitwise_and, np.bitwise_xor])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_of_bits(ufunc: Any, data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A = data.draw(masked(shape, (np.int64, np.uint8, np.bool_), fills=(0, 1)))
    axis = data.draw(st.sampled_from([0, 1, None]))
    same(run(lambda A: ufunc.reduce(A, axis=axis), A), np.asarray(ufunc.reduce(A.dense, axis=axis)))
