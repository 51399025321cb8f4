"""Guards of routes, each alone: without it a call gives a wrong number, or a table grows for ever.

``test_routes`` and ``test_route_calls`` change what users change; here is what only one of the
comparisons notices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api import _routes
from tests.api.counted import Counted, matrix, product

FACTOR = 2.0


def test_constants_of_the_trace_take_no_route() -> None:
    f = Counted(lambda x: x * np.array([1.0, 2.0, 3.0]))
    for value in (1.0, 2.0, 3.0, 4.0):
        assert f(np.full(3, value)).tolist() == [value, 2 * value, 3 * value]
    assert f.long == 4


def test_a_route_belongs_to_the_names_of_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = Counted(lambda x: x * FACTOR), np.ones(2)
    two, five = FACTOR, 5.0
    f.settle(x)
    for factor in (five, two, five, two):
        monkeypatch.setitem(globals(), "FACTOR", factor)  # the very object that was there before
        for _ in range(2):
            assert f(x).tolist() == [factor] * 2


@pytest.mark.parametrize("kind", ["unsorted", "duplicates", "narrow", "integers", "strided"])
def test_values_that_reach_the_kernel_in_another_place(kind: str) -> None:
    A: Any
    match kind:
        case "unsorted":
            A = sp.csr_array((np.arange(1.0, 5), [3, 1, 2, 0], [0, 3, 4]), (2, 4))
        case "duplicates":
            A = sp.coo_array((np.arange(1.0, 5), ([0, 0, 1, 1], [2, 2, 0, 3])), (2, 4))
        case "narrow":
            A = sp.dia_array((np.ones((1, 2)), [0]), (2, 4))
        case "strided":
            A = sp.csr_array(np.array([[1.0, 0, 2, 0], [0, 3, 0, 4]]))
            A.data = np.repeat(A.data, 2)[::2]
        case _:
            A = sp.csr_array(np.array([[1, 0, 2, 0], [0, 3, 0, 4]]))
    f, x = Counted(product), np.arange(1.0, 5)
    for factor in (1, 2, 3, 4):
        A.data *= factor
        np.testing.assert_array_equal(f(A, x), A.toarray() @ x)
    assert not f.is_long(A, x)
    A.data = A.data + 1  # another array
    for factor in (1, 2, 3, 4):
        A.data *= factor
        np.testing.assert_array_equal(f(A, x), A.toarray() @ x)
    assert not f.is_long(A, x)
    if A.format == "csr":
        A.sort_indices()
        for _ in range(4):
            np.testing.assert_array_equal(f(A, x), A.toarray() @ x)


@pytest.mark.parametrize("is_sorted", [True, False])
def test_values_that_are_written_in_another_order(is_sorted: bool) -> None:
    def double(S: Any) -> None:
        i, j = sj.indices("i j")
        S[i, j] = sj.where_stored(S, 2 * S)

    columns = [1, 2, 3, 0] if is_sorted else [3, 1, 2, 0]
    S = sp.csr_array((np.arange(1.0, 5), np.array(columns), np.array([0, 3, 4])), (2, 4))
    f, expected = Counted(double), S.toarray()
    for _ in range(4):
        f(S)
        expected *= 2
        np.testing.assert_array_equal(S.toarray(), expected)


def test_arrays_of_rank_0_are_no_numbers() -> None:
    f, x = Counted(lambda a, x: a * x), np.ones(2)
    for value in (2.0, 3.0, 4.0, 5.0):
        assert f(np.array(value), x).tolist() == [value, value]
        assert f(value, x).tolist() == [value, value]


def test_integers_beyond_64_bits() -> None:
    f, x = Counted(lambda n, x: n * x), np.ones(2)
    f.settle(3, x)
    for number in (2**63 - 1, 2**63, -(2**63)):
        assert f(number, x).tolist() == [float(number)] * 2
    for number in (2**64, -(2**63) - 1):
        with pytest.raises((OverflowError, TypeError)):
            f(number, x)


def test_an_assigned_argument_beside_a_fresh_result() -> None:
    def step(y: Any, x: Any) -> Any:
        y += 2 * x[::-1]
        return y * 1

    f, buffer = Counted(step), np.arange(8.0)
    f.settle(np.zeros(4), buffer[:4])
    y, x = buffer[:4], buffer[2:6]
    expected = y + 2 * x[::-1]
    np.testing.assert_array_equal(f(y, x), expected)
    np.testing.assert_array_equal(y, expected)


def test_integers_that_the_arrays_cannot_hold() -> None:
    f, x = Counted(lambda n, x: x + n), np.ones(3, np.int8)
    f.settle(5, x)
    assert f(100, x).tolist() == [101] * 3
    with pytest.raises(OverflowError):
        f(300, x)


def test_how_many_routes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_routes, "_LARGEST", 3)
    f = Counted(lambda x, **more: x + 1)
    g = Counted(lambda x: x + 1)
    for size in range(8):
        f(np.zeros(size))
        g(np.zeros(size))
        for made in (f, g):
            routes = made.function._routes
            assert len(routes._by_key) <= 3
            assert routes._era is None or len(routes._era.routes) <= 3


@pytest.mark.parametrize("kind", ["csr", "coo", "bsr", "dia"])
def test_a_shape_alone_that_changes(kind: str) -> None:
    f, A = Counted(lambda A: A * 2.0), matrix(4, 4, kind)
    if kind == "bsr":  # SciPy would choose blocks by the values, perhaps some that 6 columns lack
        A = sp.bsr_array(A.toarray(), blocksize=(2, 2))
    f.settle(A)
    A._shape = (4, 6) if kind != "dia" else (6, 4)
    found = f(A)
    assert found.shape == A.shape
    np.testing.assert_array_equal(found.toarray(), 2 * A.toarray())


def test_a_flag_alone_that_changes() -> None:
    f, other = Counted(lambda A, B: A * B), sp.csr_array(np.ones((2, 4)))
    A = sp.csr_array((np.arange(1.0, 4), np.array([0, 1, 3]), np.array([0, 2, 3])), (2, 4))
    assert A.has_sorted_indices
    f.settle(A, other)
    A.indices[:2] = [3, 0]
    A.has_sorted_indices = False
    np.testing.assert_array_equal(f(A, other).toarray(), A.toarray())
    B = sp.coo_array((np.arange(1.0, 4), ([0, 0, 1], [0, 1, 3])), (2, 4))
    B.sum_duplicates()
    C = sp.csr_array((np.arange(1.0, 4), np.array([0, 1, 3]), np.array([0, 2, 3])), (2, 4))
    assert C.has_canonical_format
    for S, columns in ((B, B.coords[1]), (C, C.indices)):
        g = Counted(lambda S: sj.where_stored(S, 1.0))
        for _ in range(3):
            assert g(S).nnz == 3
        columns[1] = 0
        S.has_canonical_format = False
        assert g(S).nnz == 2
