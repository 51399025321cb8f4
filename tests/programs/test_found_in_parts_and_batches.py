"""Programs that drawing found wrong: numbers, dtypes, batches and parts; they stay right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from tests.programs.test_found_faults import ENTRIES, FORMATS, _jit, _stored


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_loops_carry_a_number_that_is_an_argument(target: str) -> None:
    # The copy that the loop changes was asked of an array, which the number is not.
    def function(s: Any, x: Any) -> Any:
        same, twice = sj.fori_loop(0, 3, lambda i, c: (c[0], c[1] * 2), (s, s))
        _, last = sj.while_loop(lambda c: c[0] < x.sum(), lambda c: (c[0] + 1, c[1] + s), (s, s))
        return same, twice, last

    got = sparse_jit(function, target=target)(2, np.ones(4))
    assert tuple(map(int, got)) == (2, 16, 6)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("part", [slice(None), (slice(None), slice(2))])
def test_a_copy_of_what_changes_through_a_part(target: str, part: Any) -> None:
    # LLVM's copy was left out, since only a view of the argument is written.
    def function(y: Any, z: Any) -> Any:
        before = sj.fori_loop(0, 1, lambda i, c: c, y)
        y[part] = z
        return before

    y = np.arange(12.0).reshape(4, 3)
    before = sparse_jit(function, target=target, output=sj.CSR)(y, 7.0)
    np.testing.assert_array_equal(before.to_numpy(), np.arange(12.0).reshape(4, 3))
    assert (y[part] == 7).all()


BATCHED = sj.Format("(i, j, k) -> (i : batch, j : dense, k : compressed)")
STACKED = sj.Format("(i, j, k) -> (i : dense, j : dense, k : compressed)")
ON_BATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "maximum": lambda a, b: np.maximum(a, b),
    "select": lambda a, b: sj.select(a, lambda v: v > 1),
    "absent": lambda a, b: sj.unary(a, absent=lambda: 2),
    "concatenate": lambda a, b: np.concatenate([a, b], axis=1),
    "loop": lambda a, b: sj.fori_loop(0, 2, lambda i, c: c + b, a),
    "branch": lambda a, b: sj.cond(a.sum() > 0, lambda: a, lambda: b * 2),
}


@pytest.mark.parametrize("name", ON_BATCHES)
def test_computed_patterns_of_batches(name: str) -> None:
    # Batches have equally many entries each, so that results asked for could not be stored.
    rng = np.random.default_rng(3)
    dense = [rng.integers(0, 3, (2, 3, 4)).astype(float) for _ in range(2)]
    got, wanted = (
        _jit(ON_BATCHES[name])(*(sj.asarray(array, format=fmt) for array in dense))
        for fmt in (BATCHED, STACKED)
    )
    assert got.format.with_widths(0, 0) == STACKED
    np.testing.assert_array_equal(got.to_numpy(), wanted.to_numpy())
    assert got.nse == wanted.nse


def test_one_pattern_of_batches_stays_in_batches() -> None:
    batches = sj.asarray(np.arange(12.0).reshape(2, 2, 3) + 1, format=BATCHED)
    for function in (lambda a: a * 2, lambda a: a.copy(), lambda a: a[:]):
        assert _jit(function)(batches).format.with_widths(0, 0) == BATCHED
    parts = _jit(lambda a: (a[:, 1:], a[0]))(batches)
    for part, wanted in zip(parts, (batches.to_numpy()[:, 1:], batches.to_numpy()[0]), strict=True):
        np.testing.assert_array_equal(part.to_numpy(), wanted)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_an_update_at_what_a_dense_array_stores(fmt: sj.Format) -> None:
    # Whatever a dense array stores: nothing is written where the target stores nothing.
    def function(S: Any, y: Any, x: Any) -> None:
        S += sj.where_stored(S, sj.where_stored(y, S @ x))

    S, x = sj.asarray(ENTRIES, format=fmt), np.array([[1.0, 2.0], [3.0, 4.0]])
    mask = _stored(S)
    _jit(function)(S, np.ones((4, 2)), x)
    np.testing.assert_array_equal(S.to_numpy(), np.where(mask, ENTRIES + ENTRIES @ x, 0))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("other", [3, 2.5, True])
def test_outer_products_have_the_dtype_of_multiply(dtype: str, other: Any) -> None:
    x = np.array([0, 1, 1]).astype(dtype)
    got, wanted = _jit(lambda x: np.outer(x, other))(x), np.outer(x, other)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("scalar", [3, -1, 0.5])
def test_comparisons_of_python_scalars_are_numbers(scalar: Any) -> None:
    def function(s: Any) -> Any:
        return -(s > 1), (s > 1) + (s > 0), (s < 2) * (s == 3), abs(s > 1), (s > 1) - (s > 2)

    got, wanted = _jit(function)(scalar), function(scalar)
    assert [value.dtype.kind for value in got] == ["i"] * 5
    assert list(map(int, got)) == list(wanted)


@pytest.mark.parametrize("dtype", ["uint64", "uint8", "int8"])
@pytest.mark.parametrize("number", [-1, 300])
def test_where_casts_numbers_that_do_not_fit(dtype: str, number: int) -> None:
    x = np.array([1, 2]).astype(dtype)
    function: Callable[[Any], Any] = lambda x: np.where(x > 1, number, x)  # noqa: E731
    np.testing.assert_array_equal(_jit(function)(x), function(x))
    assert _jit(function)(x).dtype == x.dtype
    given = _jit(lambda x, n: np.where(x > 1, n, x))(x, number)
    np.testing.assert_array_equal(given, function(x))


@pytest.mark.parametrize("dtype", ["uint64", "uint32", "int8"])
@pytest.mark.parametrize("number", [-1, 2, 2**40])
def test_integers_of_the_call_are_compared_whatever_their_size(dtype: str, number: int) -> None:
    def function(x: Any, n: Any) -> Any:
        return x > n, n <= x, x == n, np.where(x > n, x, n)

    x = np.array([1, 2, 3]).astype(dtype)
    for got, wanted in zip(_jit(function)(x, number), function(x, number), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_bool_is_subtracted_beside_a_sum() -> None:
    def function(x: Any, y: Any) -> Any:
        i, j, k = sj.indices("i j k")
        t = sj.output()
        t[k] = x[k] * y[i] - sj.all(x[j], over=j)
        y[k] = x[i] - (x[k] > 2)
        return t

    x, y = np.array([2.0, 3.0]), np.array([1.0, -2.0])
    assert _jit(function)(x, y).tolist() == [-3.0, -4.0]
    assert y.tolist() == [5.0, 4.0]


@pytest.mark.parametrize("number", [3, 2.5])
def test_numbers_put_together_with_arrays_are_arrays(number: Any) -> None:
    functions: list[Callable[[Any], Any]] = [
        lambda x: np.vstack([number, x[:, None]]),
        lambda x: np.hstack([x, number]),
        lambda x: np.stack([x[0], number]),
    ]
    x = np.array([7, 8], "uint16")
    for function in functions:
        got, wanted = _jit(function)(x), function(x)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


def test_dtypes_that_have_nothing_in_common() -> None:
    x, y = np.ones(2, "bfloat16"), np.ones(2, "int64")
    with pytest.raises(sj.errors.TensorTypeError, match="bfloat16 and int64 have no common dtype"):
        _jit(lambda x, y: np.concatenate([x, y]))(x, y)


PARTS = [
    ((slice(None), slice(1, 4)), (slice(0, 6, 2),)),
    ((slice(None), slice(None, None, 2)), (slice(0, 3),)),
    ((slice(None), slice(1, 4)), (slice(5, None, -2),)),
    ((slice(1, None, 2), slice(None, None, -1)), (slice(None, 2), slice(6))),
    ((slice(None, None, -2), slice(None, None, -3)), (slice(5, 8), slice(1, 3))),
    ((slice(-2, None, -2), slice(None, -1, 2)), (slice(-1, -5, -2), slice(None, None, -3))),
    ((slice(4, 1), slice(None, None, 2)), (slice(None, 3),)),
]


@pytest.mark.parametrize("fmt", [sj.DIA, sj.CSR, sj.COO(2)], ids=str)
@pytest.mark.parametrize(("part", "taken"), PARTS)
def test_strided_parts_of_sparse_arguments(fmt: sj.Format, part: Any, taken: Any) -> None:
    def function(S: Any, Y: Any) -> None:
        S[part] += sj.where_stored(S[part], Y[taken])

    rng = np.random.default_rng(5)
    dense = np.where(rng.random((5, 6)) < 0.6, rng.integers(1, 5, (5, 6)), 0.0)
    Y = rng.integers(1, 9, (20, 7) if len(taken) == 2 else 20).astype(float)
    S = sj.asarray(dense, format=fmt)
    mask = _stored(S)
    _jit(function)(S, Y)
    dense[part] += np.where(mask[part], Y[taken], 0)
    np.testing.assert_array_equal(S.to_numpy(), dense)


def test_slices_of_new_axes() -> None:
    def function(x: Any) -> Any:
        x[:, None][::-1, :1] += 1
        return x[None, :, None][::-1, 1:, ::2]

    x = np.arange(4.0)
    assert _jit(function)(x).tolist() == [[[2.0], [3.0], [4.0]]]
    with pytest.raises(sj.errors.UnsupportedError, match="an empty slice of a new axis"):
        _jit(lambda x: x[None][:0])(x)


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_functions_of_the_entries_of_a_part(fmt: sj.Format) -> None:
    def function(S: Any) -> None:
        S[1:3] = sj.unary(S[1:3], present=lambda a, i, j: 2 * a + i + j)
        S[:, 1:] = sj.select(S[:, 1:], lambda a: a > 0)

    S = sj.asarray(ENTRIES, format=fmt)
    wanted = np.where(_stored(S), 2 * ENTRIES + [[0, 0], [0, 1], [1, 2], [0, 0]], 0)
    wanted[[0, 3]] = ENTRIES[[0, 3]]
    _jit(function)(S)
    wanted[:, 1] = np.maximum(wanted[:, 1], 0)
    np.testing.assert_array_equal(S.to_numpy(), wanted)


def test_coordinates_in_a_strided_part() -> None:
    def function(S: Any) -> None:
        i, j = sj.indices("i j")
        S[2 * i + 1, j] = sj.where_stored(S[2 * i + 1, j], 10 * i + j + 1)

    S = sj.asarray(ENTRIES, format=sj.CSR)
    _jit(function)(S)
    np.testing.assert_array_equal(S.to_numpy(), [[0, -4], [1, 0], [0, 1], [0, 0]])


def test_a_refused_pattern_says_where() -> None:
    fmt = sj.Format("(i, j) -> (i : batch, j : compressed)")
    f = _jit(lambda S: sj.unary(S, absent=lambda: 2), output=fmt)
    with pytest.raises(sj.errors.UnsupportedError, match=r"test_found_in_parts"):
        f(sj.asarray(ENTRIES, format=sj.CSR))


def test_an_index_over_a_new_axis_of_a_column() -> None:
    def fn(C: Any, y: Any) -> Any:
        i, j, k = sj.indices("i j k")
        t = C[:, 0][None, :, None]
        y[i, k] += sj.all(t[0, k, j], over=j)
        return y

    C = np.array([[1.0, 0], [0, 2], [3, 0]])
    y = np.zeros((2, 3))
    sj.sparse_jit(fn)(sp.csr_array(C), y)
    np.testing.assert_array_equal(y, np.broadcast_to(C[:, 0] != 0, (2, 3)))
