"""Programs that random drawing once found wrong, made small; they stay right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.pipeline import default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions


def scalar_beside_a_sum(x: Any, y: Any, s: Any) -> None:
    i, k = sj.indices("i k")
    x[i] = s * s - y[k + 1]


def scalars_compared(x: Any, y: Any, s: Any) -> None:
    x += np.where(s > 1, s, 0)


def plain_scalar_beside_a_sum(x: Any, y: Any, s: Any) -> None:
    x[:] = s * s - y[1:].sum()


CASES: list[tuple[Callable[..., None], Callable[..., None]]] = [
    (scalar_beside_a_sum, plain_scalar_beside_a_sum),
    (scalars_compared, scalars_compared),
]


@pytest.mark.parametrize(("function", "plain"), CASES, ids=lambda fn: fn.__name__)
def test_program(function: Callable[..., None], plain: Callable[..., None]) -> None:
    for s in (3, 0, 2.5):
        x, y = np.arange(3.0), np.array([2.0, -1.0, 4.0])
        expected = x.copy()
        plain(expected, y, s)
        sparse_jit(function, target="interpreter")(x, y, s)
        np.testing.assert_array_equal(x, expected)


def test_slice_of_a_diagonal_matrix() -> None:
    def function(B: Any, x: Any) -> None:
        x[1:] = (B[-1, 1:][:, None] * (-1)).sum(axis=1)

    dense = np.array([[1.0, 0.0], [2.0, 3.0]])
    x = np.zeros(2)
    sparse_jit(function, target="interpreter")(sj.asarray(dense, format=sj.DIA), x)
    assert x.tolist() == [0.0, -3.0]


# ---------------------------------------------------------------- found with the whole language


def _jit(function: Callable[..., Any], **options: Any) -> Any:
    return sparse_jit(function, target="interpreter", **options)


ENTRIES = np.array([[0.0, -4.0], [3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
FORMATS = [sj.DIA, sj.BSR(2, 2), sj.CSR, sj.CSC, sj.COO(2), sj.ELL(2)]


def _stored(tensor: sj.SparseTensor) -> np.ndarray[Any, Any]:
    ones = np.ones_like(tensor.values)
    made = sj.SparseTensor(tensor.format, tensor.shape, tensor.positions, tensor.coordinates, ones)
    return np.asarray(made.to_numpy() != 0)


@pytest.mark.parametrize(
    ("fmt", "target"), [*((fmt, "interpreter") for fmt in FORMATS), (sj.BSR(2, 2), "cpu")], ids=str
)
def test_update_of_entries_that_no_loop_order_reaches(fmt: sj.Format, target: str) -> None:
    # It wrote at the places that the entries have in a converted copy: beyond the end.
    def function(D: Any, C: Any) -> None:
        D[:] = sj.where_stored(D, np.minimum(D, C[:, ::-1, 1]))

    C = np.zeros((4, 2, 2))
    C[1, 0, 1], C[0, 1, 1], C[2, 0, 1] = 2.0, 1.0, -1.0
    D = sj.asarray(ENTRIES, format=fmt)
    mask = _stored(D)
    sparse_jit(function, target=target)(D, sj.asarray(C, format=sj.COO(3)))
    wanted = np.where(mask, np.minimum(ENTRIES, C[:, ::-1, 1]), 0)
    np.testing.assert_array_equal(D.to_numpy(), wanted)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_row_of_diagonals_beside_a_dense_loop(fmt: sj.Format) -> None:
    # The walk never came past the diagonals below the first one that it could meet.
    def function(F: Any) -> Any:
        i, j, k = sj.indices("i j k")
        t = sj.output()
        t[j, k] = sj.where_stored(F[i, j], F[0, k])
        return t

    F = sj.asarray(ENTRIES, format=fmt)
    wanted = np.einsum("ij,k->jk", _stored(F).astype(float), ENTRIES[0])
    np.testing.assert_array_equal(_jit(function)(F), wanted)


@pytest.mark.parametrize("key", [(slice(None),), (...,), (None,)], ids=str)
def test_slices_of_sparse_arguments_are_copies(key: Any) -> None:
    def function(S: Any) -> Any:
        before = S[key]
        S[:] *= 2
        own = S[:]
        own *= 5
        return before, own

    S = sj.asarray(ENTRIES, format=sj.CSR)
    before, own = _jit(function)(S)
    np.testing.assert_array_equal(before.to_numpy(), ENTRIES[key])
    np.testing.assert_array_equal(S.to_numpy(), 2 * ENTRIES)
    np.testing.assert_array_equal(own.to_numpy(), 10 * ENTRIES)


def test_an_element_that_was_read_before_another_assignment() -> None:
    def function(x: Any) -> None:
        t = x[0]
        t += 1
        x[0] = 5
        x[0] = t
        x[1] += 3

    x = np.ones(2)
    _jit(function)(x)
    assert x.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_nothing_at_all_in_a_dense_result(target: str) -> None:
    # The array was left as it was allocated.
    f = sparse_jit(lambda y, z: sj.binary(y, z, left="identity"), target=target, output=sj.Dense(1))
    for _ in range(3):
        assert f(np.arange(2.0, 9.0), np.ones(7)).tolist() == [0.0] * 7


def test_results_are_counted_as_they_are_returned() -> None:
    f = _jit(lambda A: (1, A, A, A @ A), output={3: sj.CSC})
    one, first, second, product = f(sj.asarray(np.eye(2), format=sj.CSR))
    assert one == 1
    assert first is second
    assert product.format.with_widths(0, 0) == sj.CSC


def test_branches_that_return_what_was_computed_before_them() -> None:
    def function(A: Any, x: Any) -> Any:
        twice = A * 2
        _, chosen = sj.cond(x.sum() > 0, lambda: (twice, twice), lambda: (twice, twice))
        return chosen

    A = sj.asarray(ENTRIES, format=sj.CSR)
    np.testing.assert_array_equal(_jit(function)(A, np.ones(2)).to_numpy(), 2 * ENTRIES)


def test_no_round_of_a_loop_gives_a_value_of_its_own() -> None:
    def function(x: Any) -> Any:
        y = sj.fori_loop(0, 0, lambda i, c: c, x)
        x += 1
        return y

    x = np.zeros(2)
    assert _jit(function)(x).tolist() == [0.0, 0.0]
    assert x.tolist() == [1.0, 1.0]


def test_a_bool_is_subtracted_from_a_number() -> None:
    def function(y: Any, b: Any, a: Any) -> None:
        i, j = sj.indices("i j")
        y[i] -= b[i, j] - a[i, j]

    y, b = np.ones(2), np.array([[True, False], [True, True]])
    _jit(function)(y, b, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert y.tolist() == [3.0, 7.0]


@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.float32])
def test_products_with_python_scalars_are_in_their_dtypes(dtype: Any) -> None:
    x = np.arange(3).astype(dtype)
    products: list[Callable[[Any], Any]] = [
        lambda x: np.dot(x, 2.0),
        lambda x: np.inner(2, x),
        lambda x: np.dot(3, x),
    ]
    for function in products:
        got, wanted = _jit(function)(x), function(x)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "float32", "complex64"])
def test_the_square_of_an_array(dtype: str) -> None:
    x = np.array([0, 1, 3, 100]).astype(dtype)
    got, wanted = _jit(lambda x: x**2)(x), x**2
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("storage", ["inline", "runtime"])
def test_entries_with_levels_of_their_own_below_them(storage: Any) -> None:
    # Assembled one by one, each entry of the coordinate list got a row for each of its elements.
    def function(A: Any, x: Any, y: Any) -> Any:
        t = sj.einsum("ab,bcd->bca", y, x)
        return np.logical_or(t, t) * A

    fmt = sj.Format("(i, j) -> (j : compressed(nonunique), i : singleton(soa))")
    f = _jit(function)
    f._pipeline = default_pipeline(stage_options=StageOptions(storage=storage))
    x, y = np.arange(24.0).reshape(3, 4, 2) % 3, np.ones((2, 3))
    got = f(sj.asarray(ENTRIES, format=fmt), x, y)
    wanted = (np.einsum("ab,bcd->bca", y, x) != 0) * ENTRIES
    np.testing.assert_array_equal(got.to_numpy(), wanted)


def test_parents_without_kept_entries_above_a_dense_level() -> None:
    # The next parent took over positions that had been set for the one that was left out.
    fmt = sj.Format("(i, j, k) -> (k : compressed, i : dense, j : compressed)")
    B = np.array([[[-3, 3, -3, 0], [0, 0, -1, -2]], [[0, 0, 0, 0], [0, 0, 4, 0]]], float)
    f = _jit(lambda B: sj.select(B, lambda b: b > 1))
    got = f(sj.asarray(B, format=fmt))
    np.testing.assert_array_equal(got.to_numpy(), np.where(B > 1, B, 0))
    assert got.nse == 2


def test_an_index_over_a_new_axis() -> None:
    def function(C: Any) -> Any:
        i, j, k = sj.indices("i j k")
        t = sj.output()
        t[j, k, i] = C[None][i, j, k]
        return t

    C = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(_jit(function)(C), C[:, :, None])


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_a_sum_over_the_entry_that_it_changes(fmt: sj.Format) -> None:
    # Each round of the sum read what the one before had written.
    def function(B: Any, y: Any) -> None:
        i, j, k = sj.indices("i j k")
        B[i, j] -= y[k] * B[i, j]

    B = sj.asarray(ENTRIES, format=fmt)
    _jit(function)(B, np.array([-1.0, 4.0, -1.0]))
    np.testing.assert_array_equal(B.to_numpy(), -ENTRIES)


def test_a_reshaped_argument_that_another_one_overlaps() -> None:
    def function(x: Any, y: Any) -> Any:
        t = np.reshape(y, (-1,))
        x[:] = 7
        return t

    y = np.arange(9.0).reshape(3, 3)
    with pytest.raises(sj.errors.UnsupportedError, match="overlap in memory"):
        _jit(function)(y.T, y)
    assert y.sum() == 36


@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 1, 2), (1, 2, 2), (1, 1, 1), (2, 3, 4)])
def test_extents_that_are_1_after_a_step(shape: tuple[int, ...]) -> None:
    # (n + 1) // 2 is 1 for n = 2 only: a reshape left out a dimension whose size was that.
    def function(z: Any) -> Any:
        part = z[0, ::-1, ::2]
        return np.reshape(part, (part.shape[1], part.shape[0])), part.reshape(-1)

    f = _jit(function)
    for wider in (0, 2, 1):
        z = np.arange(100)[: np.prod(shape) + wider * shape[0] * shape[1]].reshape(*shape[:2], -1)
        for got, wanted in zip(f(z), function(z), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_assigning_where_a_step_leaves_one(length: int) -> None:
    def function(z: Any) -> None:
        z[0, :, ::2].reshape(-1)[...] += 5

    z, wanted = np.arange(2.0 * length).reshape(2, 1, length), np.arange(2.0 * length)
    wanted[:length:2] += 5
    _jit(function)(z)
    np.testing.assert_array_equal(z.reshape(-1), wanted)
