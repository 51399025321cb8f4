"""Semirings of einsum, against sums over stored entries written in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from tests.semantics.masked import Array, Masked, masked, run, same, shapes, stored_of

TIMES: dict[str, Any] = {
    "plus_times": (np.add, np.multiply),
    "min_plus": (np.minimum, np.add),
    "max_plus": (np.maximum, np.add),
    "max_times": (np.maximum, np.multiply),
    "min_max": (np.minimum, np.maximum),
    "or_and": (np.logical_or, np.logical_and),
    "plus_pair": (np.add, None),
    "any_pair": (np.maximum, None),
}


def identity(name: str, dtype: Any) -> Any:
    kind = np.dtype(dtype).kind
    if name in ("plus_times", "or_and", "plus_pair", "any_pair"):
        return 0
    sign = 1 if name.startswith("min") else -1
    if kind == "f":
        return sign * np.inf
    if kind == "b":
        return sign > 0
    info = np.iinfo(dtype)
    return info.max if sign > 0 else info.min


def expected(name: str, A: Masked, B: Masked) -> tuple[Array, Array]:
    """Return the product of two matrices over a semiring, and where something contributes."""
    plus, times = TIMES[name]
    dtype = np.result_type(A.values, B.values)
    if name == "or_and" or (name == "plus_pair" and dtype.kind == "b"):
        dtype = np.dtype(bool if name == "or_and" else np.int64)
    rows, inner, columns = A.values.shape[0], A.values.shape[1], B.values.shape[1]
    values = np.full((rows, columns), identity(name, dtype), dtype)
    found = np.zeros((rows, columns), bool)
    for i in range(rows):
        for k in range(inner):
            for j in range(columns):
                if not (A.stored[i, k] and B.stored[k, j]):
                    continue
                a, b = A.values[i, k].astype(dtype), B.values[k, j].astype(dtype)
                product = dtype.type(1) if times is None else times(a, b)
                values[i, j] = plus(values[i, j], product)
                found[i, j] = True
    return values, found


@pytest.mark.parametrize("name", TIMES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_products_of_matrices(name: str, data: Any) -> None:
    rows, inner, columns = (data.draw(shapes) for _ in range(3))
    dtypes = (np.float64, np.float32, np.int64, np.int16, np.bool_)
    A = data.draw(masked((rows, inner), dtypes, fills=(0, 1)))
    B = data.draw(masked((inner, columns), dtypes, fills=(0, 1)))
    got = run(lambda A, B: sj.einsum("ij,jk->ik", A, B, semiring=name), A, B)
    wanted, found = expected(name, A, B)
    same(got, wanted)
    if not isinstance(got, np.ndarray):
        assert (stored_of(got) == found).all()
        assert sj.asarray(got).fill_value == identity(name, wanted.dtype)


@pytest.mark.parametrize("name", ["min_plus", "max_times", "plus_pair", "or_and", "any_pair"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_elementwise_products_and_sums(name: str, data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A, B = (data.draw(masked(shape, (np.float64, np.int32), fills=(0, 2))) for _ in range(2))
    plus, times = TIMES[name]
    dtype = np.dtype(bool) if name == "or_and" else np.result_type(A.values, B.values)
    start = identity(name, dtype)
    both = A.stored & B.stored
    product = np.ones(shape) if times is None else times(A.values, B.values)
    wanted = np.where(both, product, start).astype(dtype)
    same(run(lambda A, B: sj.einsum("ij,ij->ij", A, B, semiring=name), A, B), wanted)
    total = np.array(start, dtype)
    for value in wanted[both]:
        total = plus(total, value)
    same(run(lambda A, B: sj.einsum("ij,ij->", A, B, semiring=name), A, B), total.astype(dtype))


def test_fill_values_are_not_what_is_missing() -> None:
    A = Masked(
        np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[True, False], [True, True]]), sj.CSR, 7
    )
    got = run(lambda A: sj.einsum("ij->i", A, semiring="plus_times"), A)
    same(got, np.array([1.0, 5.0]))
    got = run(lambda A: sj.einsum("ij->i", A, semiring="min_plus"), A)
    same(got, np.array([1.0, 2.0]))


def test_shortest_paths_in_three_steps() -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, (6, 6)).astype(float)
    stored = rng.random((6, 6)) < 0.4
    A = Masked(weights, stored, sj.CSR)

    def step(A: Any) -> Any:
        two = sj.einsum("ij,jk->ik", A, A, semiring="min_plus")
        return sj.einsum("ij,jk->ik", two, A, semiring="min_plus")

    D = np.where(stored, weights, np.inf)
    two = (D[:, :, None] + D[None]).min(1)
    same(run(step, A), (two[:, :, None] + D[None]).min(1))


def test_an_unknown_semiring_is_a_value_error() -> None:
    A = Masked(np.eye(2), np.eye(2, dtype=bool), sj.CSR)
    with pytest.raises(ValueError, match="semiring='plus_min' is none of 'plus_times', 'min_plus'"):
        run(lambda A: sj.einsum("ij->i", A, semiring="plus_min"), A)
