"""The cache: what compiles anew and what does not, and that results are right either way."""

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.api import CacheInfo, CompiledFunction

RNG = np.random.default_rng(0)


def jit(fn: Callable[..., Any], **options: Any) -> CompiledFunction:
    return sparse_jit(fn, target="interpreter", **options)


def csr(m: int, n: int) -> Any:
    return sp.random_array((m, n), density=0.4, format="csr", rng=RNG)


def spmv(A: Any, x: Any) -> Any:
    return A @ x


@given(shapes=st.lists(st.tuples(st.integers(2, 6), st.integers(2, 6)), min_size=2, max_size=5))
def test_shapes_do_not_compile_anew(shapes: list[tuple[int, int]]) -> None:
    f = jit(spmv)
    for m, n in shapes:
        A, x = csr(m, n), RNG.random(n)
        np.testing.assert_allclose(f(A, x), A @ x)
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=len(shapes) - 1)


def test_the_cpu_compiles_once_for_all_shapes() -> None:
    f = sparse_jit(spmv, target="cpu")
    for m, n in ((3, 4), (5, 2), (7, 7)):
        A, x = csr(m, n), RNG.random(n)
        np.testing.assert_allclose(f(A, x), A @ x)
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=2)


A34, X4 = csr(3, 4), np.ones(4)
MORE: dict[str, tuple[Any, Any]] = {
    "dtype": (A34.astype(np.float32), X4),
    "format": (A34.tocsc(), X4),
    "index dtype": (
        sp.csr_array((A34.data, A34.indices.astype(np.int64), A34.indptr.astype(np.int64)), (3, 4)),
        X4,
    ),
    "an extent of 1": (csr(1, 4), X4),
    "strides": (A34, np.ones(8)[::2]),
    "a SparseTensor of another fill": (
        sj.asarray(np.ones((3, 4)), format=sj.CSR, fill_value=1.0),
        X4,
    ),
    "dense": (np.ones((3, 4)), X4),
    "Fortran order": (np.asfortranarray(np.ones((3, 4))), X4),
}


@pytest.mark.parametrize("change", MORE)
def test_what_the_key_holds_compiles_anew(change: str) -> None:
    f = jit(spmv)
    np.testing.assert_allclose(f(A34, X4), A34 @ X4)
    A, x = MORE[change]
    dense = A.to_numpy() if isinstance(A, sj.SparseTensor) else A
    np.testing.assert_allclose(f(A, x), dense @ x)
    assert f.cache_info() == CacheInfo(traces=2, compiles=2, hits=0)
    f(A, x)
    f(A34, X4)
    assert f.cache_info() == CacheInfo(traces=2, compiles=2, hits=2)


def test_the_same_matrix_class_and_array_share_a_program() -> None:
    f = jit(spmv)
    f(A34, X4)
    f(sp.csr_matrix(A34), X4)
    assert f.cache_info().traces == 1


def test_the_same_object_twice_is_one_value() -> None:
    f = jit(lambda x, y: x * y)
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert f(x, x).tolist() == [1.0, 4.0]
    assert f(x, y).tolist() == [3.0, 8.0]
    assert f(y, y).tolist() == [9.0, 16.0]
    assert f.cache_info() == CacheInfo(traces=2, compiles=2, hits=1)


def test_equal_numbers_are_not_one_value() -> None:
    f = jit(lambda x, a, b: a * x + b)
    x = np.ones(2)
    assert f(x, 2.0, 2.0).tolist() == [4.0, 4.0]
    assert f(x, 2.0, 3.0).tolist() == [5.0, 5.0]
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=1)


def test_python_and_numpy_scalars_promote_differently() -> None:
    f = jit(lambda x, a: x * a)
    x = np.ones(2, np.float32)
    assert f(x, 2.5).dtype == np.float32
    assert f(x, np.float64(2.5)).dtype == np.float64
    assert f(x, np.float32(2.5)).dtype == np.float32
    assert f.cache_info().traces == 3
    f(x, 7.5)
    assert f.cache_info().hits == 1


def test_fill_values_are_compared_by_bits() -> None:
    f = jit(lambda A: A + A)
    fills = [0.0, -0.0, np.nan, np.nan, 2.0, 2.0]
    for fill in fills:
        A = sj.SparseTensor(
            sj.SparseVector, (3,), (np.array([0, 1]),), (np.array([1]),), np.array([5.0]), fill
        )
        np.testing.assert_array_equal(f(A).to_numpy(), A.to_numpy() * 2)
    assert f.cache_info().traces == 4


class Mode(enum.Enum):
    ADD = 1
    SUB = 2


def test_static_values_are_part_of_the_key() -> None:
    def f(x: Any, mode: Mode, scale: Any, twice: bool, name: str | None) -> Any:
        y = x + scale if mode is Mode.ADD else x - scale
        y = y * 2 if twice else y
        return y if name is None else y + len(name)

    g = jit(f, static_argnames="scale")
    x = np.ones(2)
    cases = [
        (Mode.ADD, 1, False, None),
        (Mode.SUB, 1, False, None),
        (Mode.ADD, 1.0, False, None),
        (Mode.ADD, 2, False, None),
        (Mode.ADD, True, False, None),
        (Mode.ADD, 1, True, None),
        (Mode.ADD, 1, True, "abc"),
        (Mode.ADD, 1, True, "abcd"),
        (Mode.ADD, 0.0, False, None),
        (Mode.ADD, -0.0, False, None),
    ]
    for count, case in enumerate(cases, 1):
        np.testing.assert_array_equal(g(x, *case), f(x, *case))
        assert g.cache_info().traces == count
    for case in cases:
        np.testing.assert_array_equal(g(x, *case), f(x, *case))
    assert g.cache_info() == CacheInfo(len(cases), len(cases), len(cases))


def test_an_extent_that_was_read_is_part_of_the_key() -> None:
    f = jit(lambda x: x * int(x.shape[0]))
    for n in (2, 3, 2, 4, 3):
        assert f(np.ones(n)).tolist() == [float(n)] * n
    assert f.cache_info() == CacheInfo(traces=3, compiles=3, hits=2)
    assert "needs the number" in f.explain()


def test_other_extents_than_the_read_one_stay_free() -> None:
    f = jit(lambda A: A * int(A.shape[0]))
    for m, n in ((2, 3), (2, 5), (4, 5)):
        assert f(np.ones((m, n))).tolist() == [[float(m)] * n] * m
    assert f.cache_info() == CacheInfo(traces=2, compiles=2, hits=1)


def test_a_symbolic_extent_is_not_part_of_the_key() -> None:
    f = jit(lambda x: x * (2 * x.shape[0] + 1))
    for n in (2, 3, 5):
        assert f(np.ones(n)).tolist() == [2.0 * n + 1] * n
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=2)


def test_a_guard_that_fails_traces_again() -> None:
    f = jit(lambda x: x[1:5] * 2)
    for n in (8, 6, 3, 4, 9, 2):
        x = np.arange(n, dtype=float)
        assert f(x).tolist() == (x[1:5] * 2).tolist()
    before = f.cache_info()
    for n in (8, 6, 3, 4, 9, 2):
        f(np.arange(n, dtype=float))
    assert f.cache_info().traces == before.traces


def test_shapes_that_misfit_raise_the_located_error() -> None:
    f = jit(spmv)
    f(A34, X4)
    with pytest.raises(sj.errors.TensorTypeError) as caught:
        f(A34, np.ones(5))
    assert "test_cache.py" in str(caught.value)
    assert "in spmv" in str(caught.value)
    with pytest.raises(sj.errors.TensorTypeError):
        f(A34, np.ones(5))
    np.testing.assert_allclose(f(A34, X4), A34 @ X4)
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=1)


def test_a_failed_trace_leaves_nothing_behind() -> None:
    def branch(x: Any, fail: bool) -> Any:
        return -x if x.sum() > 0 and fail else x

    f = jit(branch)
    for _ in range(2):
        with pytest.raises(sj.errors.TraceError):
            f(np.ones(3), True)
    assert f.cache_info() == CacheInfo(0, 0, 0)


# ---------------------------------------------------------------- one object, changing


def test_new_values_in_the_same_object_are_seen() -> None:
    f = jit(spmv)
    A, x = csr(4, 4), np.ones(4)
    for factor in (1.0, 2.0, -3.0):
        A.data *= factor
        x += 1
        np.testing.assert_allclose(f(A, x), A @ x)
    A.data = RNG.random(A.nnz)
    np.testing.assert_allclose(f(A, x), A @ x)
    assert f.cache_info().compiles == 1


def test_a_rebound_index_buffer_is_seen() -> None:
    f = jit(spmv)
    A, x = csr(4, 5), RNG.random(5)
    f(A, x)
    A.indices = (4 - A.indices).astype(A.indices.dtype)
    A.has_sorted_indices = False
    np.testing.assert_allclose(f(A, x), A.toarray() @ x)


def test_sorting_and_summing_in_place_is_seen() -> None:
    f = jit(spmv)
    A = sp.csr_array(
        (np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), (2, 3)
    )
    x, expected = np.array([1.0, 10.0, 100.0]), [106.0, 80.0]
    assert f(A, x).tolist() == expected
    A.sort_indices()
    assert f(A, x).tolist() == expected
    A.sum_duplicates()
    assert f(A, x).tolist() == expected
    A.data[:] = 1
    assert f(A, x).tolist() == [101.0, 10.0]


def test_a_recycled_identity_is_another_object() -> None:
    f = jit(spmv)
    x = np.ones(6)
    for _ in range(20):
        A = csr(6, 6)
        np.testing.assert_allclose(f(A, x), A @ x)
        del A


def test_check_never_and_always_reach_the_checks() -> None:
    def damaged() -> sp.csr_array:
        A = sp.csr_array(np.eye(3))
        A.indices[1] = 7
        return A

    for check in ("once", "always"):
        with pytest.raises(ValueError, match="7"):
            jit(spmv, check=check)(damaged(), np.ones(3))
    A, x = sp.csr_array(np.eye(3)), np.ones(3)
    f = jit(spmv, check="always")
    f(A, x)
    A.indices[1] = 9
    with pytest.raises(ValueError, match="9"):
        f(A, x)
    assert jit(spmv, check="never")(sp.csr_array(np.eye(3)), x).tolist() == [1.0, 1.0, 1.0]
