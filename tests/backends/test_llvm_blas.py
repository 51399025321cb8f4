"""Products of dense matrices by BLAS: every order, view and extent, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import sparsejit as sj
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.ir.device_statements import LibraryCall, LibraryOp
from sparsejit.ir.loop_walk import all_statements
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from tests.trace.harness import traced

Array = NDArray[Any]

RNG = np.random.default_rng(20)


def laid(rows: int, columns: int, how: str, dtype: Any = np.float64) -> Array:
    """Return a matrix of small integers, so that sums are exact in any order."""
    values = RNG.integers(-4, 5, (rows, columns)).astype(dtype)
    match how:
        case "rows":
            return values
        case "columns":
            return np.asfortranarray(values)
        case "part":
            whole = np.zeros((rows + 3, columns + 5), dtype)
            whole[2 : 2 + rows, 1 : 1 + columns] = values
            return whole[2 : 2 + rows, 1 : 1 + columns]
        case "part of columns":
            return laid(columns, rows, "part", dtype).T
        case "every other":
            whole = np.zeros((2 * rows, 3 * columns), dtype)
            whole[::2, ::3] = values
            return whole[::2, ::3]
        case "backward":
            return values[::-1, ::-1]
        case "broadcast":
            return np.asarray(np.broadcast_to(values[:1], (rows, columns)))
        case "misaligned":
            buffer = np.zeros(values.nbytes + 1, np.uint8)
            found: Array = buffer[1:].view(dtype).reshape(rows, columns)
            found[...] = values
            return found
        case _:
            raise AssertionError(how)


LAYOUTS = (
    "rows",
    "columns",
    "part",
    "part of columns",
    "every other",
    "backward",
    "broadcast",
    "misaligned",
)


def product(A: Any, B: Any) -> Any:
    return A @ B


def turned(A: Any, B: Any) -> Any:
    return (A @ B).T


def scaled(A: Any, B: Any, a: Any) -> Any:
    return sj.einsum(",ik,kj->ij", a, A, B)


def updated(A: Any, B: Any, C: Any) -> None:
    i, j, k = sj.indices("i j k")
    C[i, j] -= 2.0 * A[i, k] * B[k, j]


jitted = {fn: sj.sparse_jit(fn) for fn in (product, turned, scaled, updated)}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_layouts(left: str, right: str) -> None:
    A, B = laid(40, 33, left), laid(33, 50, right)
    assert_array_equal(jitted[product](A, B), A @ B)
    assert_array_equal(jitted[turned](A, B), (A @ B).T)


@pytest.mark.parametrize("how", LAYOUTS[:6])
def test_updates_of_an_argument(how: str) -> None:
    A, B, C = laid(40, 33, "rows"), laid(33, 50, "columns"), laid(40, 50, how)
    expected = C - 2 * (A @ B)
    jitted[updated](A, B, C)
    assert_array_equal(C, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int64, np.float16])
def test_types(dtype: Any) -> None:
    A, B = laid(40, 40, "rows", dtype), laid(40, 40, "rows", dtype)
    got = jitted[product](A, B)
    assert got.dtype == dtype
    assert_allclose(got.astype(complex), (A @ B).astype(complex), rtol=1e-2)


def test_a_factor_that_is_a_number() -> None:
    A, B = laid(40, 40, "rows"), laid(40, 40, "rows")
    assert_array_equal(jitted[scaled](A, B, 3.0), 3 * (A @ B))


sizes = st.one_of(st.sampled_from([0, 1, 2, 31, 32, 33]), st.integers(0, 70))


@given(sizes, sizes, sizes, st.sampled_from(LAYOUTS[:6]), st.sampled_from(LAYOUTS[:6]))
def test_extents(rows: int, inner: int, columns: int, left: str, right: str) -> None:
    A, B = laid(rows, inner, left), laid(inner, columns, right)
    assert_array_equal(jitted[product](A, B), A @ B)


def test_special_values() -> None:
    A, B = np.ones((40, 40)), np.ones((40, 40))
    A[0, 0], A[1, 1], B[2, 2] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        assert_array_equal(jitted[product](A, B), A @ B)


def test_who_computes() -> None:
    square = np.ones((4, 4))
    func = traced(product, square, square).func

    def calls(options: StageOptions) -> list[LibraryOp]:
        body = sparsify_and_bufferize(func, options).body
        return [stmt.op for stmt in all_statements(body) if isinstance(stmt, LibraryCall)]

    assert calls(StageOptions(library_kernels=frozenset({"dense product"}))) == [LibraryOp.GEMM]
    assert calls(StageOptions()) == []
    assert "library dense product" in jitted[product].lower(square, square).text("loops")
    for options in ({"library": "never"}, {"deterministic": True}, {"reassociate": False}):
        text = sj.sparse_jit(product, **options).lower(square, square).text("loops")
        assert "library" not in text


def test_the_code_with_and_without_blas() -> None:
    func = sparsify_and_bufferize(
        traced(product, np.ones((40, 40)), np.ones((40, 40))).func,
        StageOptions(library_kernels=frozenset({"dense product"})),
    )
    assert "@sparsejit_blas_dgemm" in LlvmBackend().llvm_ir(func)
    assert "blas" not in LlvmBackend(without=frozenset({"blas"})).llvm_ir(func)
