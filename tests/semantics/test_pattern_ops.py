"""``unary``, ``binary``, ``select`` and ``reduce`` against values and masks in NumPy."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.errors import TraceError
from tests.costs.cases import MATRICES
from tests.semantics.masked import Masked, dense_of, masked, run, same, shapes, stored_of

DTYPES = (np.float64, np.float32, np.int64, np.int16)
THRESHOLD = 1


def clipped(a: Any) -> Any:
    return min(2, max(-2, a))


def signed(a: Any, i: Any, j: Any) -> Any:
    if i > j:
        return -a
    shifted = a + j
    return shifted * 2 if shifted > 0 else shifted


UNARY: dict[str, tuple[Any, Any]] = {
    "clip": (clipped, clipped),
    "by place": (signed, np.vectorize(signed, otypes=[float])),
}


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_unary_of_present(name: str, data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A = data.draw(masked(shape, DTYPES, fills=(0, 5)))
    function = UNARY[name][0]
    got = run(lambda A: sj.unary(A, present=function), A)
    wanted = np.zeros(shape)
    for i, j in np.argwhere(A.stored):
        value = float(A.values[i, j])
        wanted[i, j] = function(value) if name == "clip" else function(value, i, j)
    np.testing.assert_allclose(dense_of(got).astype(float), wanted)
    assert (stored_of(got) == A.stored).all()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_unary_of_absent(data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A = data.draw(masked(shape, fills=(0, 5)))
    ones = run(lambda A: sj.unary(A, absent=lambda: 1), A)
    same(ones, np.where(A.stored, 0, 1))
    if A.format is not None:
        assert (stored_of(ones) == ~A.stored).all()
    same(
        run(lambda A: sj.unary(A, "identity", lambda i: i), A),
        np.where(A.stored, A.values, np.indices(shape)[0]),
    )
    same(run(lambda A: sj.unary(A, "identity", "identity"), A), A.dense)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_binary(data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A, B = (data.draw(masked(shape, (np.float64, np.int64), fills=(0, 2))) for _ in range(2))
    a, b = A.values, B.values
    both, left, right = A.stored & B.stored, A.stored & ~B.stored, B.stored & ~A.stored
    regions = {
        "overlap": (lambda a, b: a - b, both, a - b),
        "left": ("identity", left, a),
        "right": (lambda b: -b, right, -b),
    }
    chosen = data.draw(st.sets(st.sampled_from(sorted(regions)), min_size=1))
    functions = {name: regions[name][0] for name in chosen}
    got = run(lambda A, B: sj.binary(A, B, **functions), A, B)
    wanted, stored = np.zeros(shape), np.zeros(shape, bool)
    for name in chosen:
        wanted = np.where(regions[name][1], regions[name][2], wanted)
        stored |= regions[name][1]
    np.testing.assert_allclose(dense_of(got).astype(float), wanted)
    if not isinstance(got, np.ndarray):
        assert (stored_of(got) == stored).all()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_select(data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A = data.draw(masked(shape, DTYPES))
    got = run(lambda A: sj.select(A, lambda a, i, j: a > THRESHOLD or i == j), A)
    kept = A.stored & ((A.values > THRESHOLD) | np.equal(*np.indices(shape)))
    same(got, np.where(kept, A.values, 0).astype(A.values.dtype))
    assert (stored_of(got) == kept).all()


REDUCTIONS: dict[str, tuple[Any, Any, Any]] = {
    "min": (min, math.inf, np.minimum),
    "sum": (lambda x, y: x + y, 1.0, np.add),
    "product": (operator.mul, None, np.multiply),
    "largest size": (lambda x, y: max(x, abs(y)), 0.0, lambda x, y: np.maximum(x, abs(y))),
    "alternating": (lambda x, y: y - x, 0.0, lambda x, y: y - x),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_reduce(name: str, data: Any) -> None:
    shape = (data.draw(shapes), data.draw(shapes))
    A = data.draw(masked(shape, fills=(0, 3)))
    function, identity, step = REDUCTIONS[name]
    axis = data.draw(st.sampled_from([0, 1]))
    got = run(lambda A: sj.reduce(function, A, identity, axis=axis), A)
    lines = A.values if axis == 1 else A.values.T
    masks = A.stored if axis == 1 else A.stored.T
    wanted = []
    for line, mask in zip(lines, masks, strict=True):
        total = 1.0 if identity is None else identity
        for value in line[mask]:
            total = step(total, value)
        wanted.append(total)
    same(got, np.array(wanted, np.float64))


def two(a: Any) -> Any:
    return 2


def three() -> Any:
    return 3


@pytest.mark.parametrize(
    ("present", "absent", "wanted"),
    [(None, None, 1), (two, None, 5), (None, three, 10), (two, three, 14)],
)
def test_reduce_starts_once_and_sees_only_entries(present: Any, absent: Any, wanted: int) -> None:
    a = Masked(np.array([0, 0, 9, 0, 8]), np.array([0, 0, 1, 0, 1], bool), sj.SparseVector)

    def indexed(a: Any) -> Any:
        (i,) = sj.indices("i")
        chosen = sj.unary(a[i], present=present, absent=absent)
        return sj.reduce(lambda x, y: x + y, chosen, identity=1, over=i)

    def whole(a: Any) -> Any:
        return sj.reduce(operator.add, sj.unary(a, present, absent), identity=1)

    assert run(indexed, a) == wanted
    assert run(whole, a) == wanted


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_tropical_product_has_the_pattern_of_the_product(data: Any) -> None:
    rows, inner, columns = (data.draw(shapes) for _ in range(3))
    A = data.draw(masked((rows, inner), formats=("csr", "csc", "coo")))
    B = data.draw(masked((inner, columns), formats=("csr", "csc", "coo")))

    def product(A: Any, B: Any) -> Any:
        i, j, k = sj.indices("i j k")
        X = sj.output()
        sums = sj.binary(A[i, k], B[k, j], overlap=lambda a, b: a + b)
        X[i, j] = sj.reduce(min, sums, identity=math.inf, over=k)
        return X

    left = np.where(A.stored, A.values, np.inf)
    right = np.where(B.stored, B.values, np.inf)
    got = run(product, A, B)
    sums = left[:, :, None] + right[None]
    same(got, sums.min(axis=1, initial=np.inf))
    found = (A.stored.astype(int) @ B.stored.astype(int)) > 0
    assert (stored_of(got) == found).all()


def test_results_meet_ordinary_arithmetic() -> None:
    A = Masked(np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[1, 1], [0, 1]], bool), sj.CSR)
    same(run(lambda A: sj.select(A, lambda a: a > 0) + 1, A), np.array([[2.0, 1.0], [1.0, 5.0]]))

    def indexed(A: Any) -> Any:
        i, j = sj.indices("i j")
        y = sj.output()
        y[i] = sj.select(A[i, j], lambda a, j: a > 0 and j == 1) * 2 + 1
        return y

    same(run(indexed, A), np.array([1.0, 9.0]))


def test_wrong_regions_are_refused() -> None:
    A = Masked(np.ones((2, 2)), np.eye(2, dtype=bool), sj.CSR)
    with pytest.raises(TraceError, match="the parameter row of present names no index"):
        run(lambda A: sj.unary(A, lambda a, row: a), A)
    with pytest.raises(TraceError, match='present= is a function, "identity" or None'):
        run(lambda A: sj.unary(A, "nothing"), A)
    with pytest.raises(TraceError, match="reduce needs the value to start from"):
        run(lambda A: sj.reduce(lambda x, y: x - y, A), A)
    with pytest.raises(TraceError, match="is a plain Python function of scalars"):
        run(lambda A: sj.select(A, 3), A)


@pytest.mark.parametrize("first", MATRICES)
def test_where_stored_around_a_sum_keeps_entries_without_terms(first: str) -> None:
    """Whatever the formats are, and so whichever way the sum is computed."""
    rng = np.random.default_rng(1)
    a, b = (np.where(rng.random((8, 8)) < 0.25, rng.integers(1, 9, (8, 8)), 0.0) for _ in range(2))
    b[2] = 0
    A = sj.asarray(a, format=MATRICES[first])
    stored = slots_of(A)
    kernel = sj.sparse_jit(lambda A, B: sj.where_stored(A, A @ B), target="interpreter")
    for second in ("csr", "csc", "coo", "column coo", "dcsr", "bsr", "dia"):
        got = sj.asarray(kernel(A, sj.asarray(b, format=MATRICES[second])))
        assert (slots_of(got) == stored).all(), second
        np.testing.assert_allclose(got.to_numpy(), np.where(stored, a @ b, 0), err_msg=second)


def slots_of(tensor: sj.SparseTensor) -> np.ndarray[Any, Any]:
    """Return which elements have a slot, zeros of blocks and diagonals included."""
    ones = np.ones(tensor.values.shape)
    made = (tensor.format, tensor.shape, tensor.positions, tensor.coordinates, ones)
    slots: np.ndarray[Any, Any] = sj.SparseTensor(*made).to_numpy() != 0
    return slots


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2)])
def test_select_of_a_dense_array_stores_what_is_kept(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape) - 2
    got = sj.sparse_jit(lambda x: sj.select(x, lambda v: v > 0), target="interpreter")(x)
    assert isinstance(got, sj.SparseTensor)
    assert got.nse == np.count_nonzero(x > 0)
    np.testing.assert_array_equal(got.to_numpy(), np.where(x > 0, x, 0))
