"""Packing of gathered operands in panels: the same bits, where the sizes of caches ask for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.backends.llvm import _caches, backend
from sparsejit.backends.llvm._lowerings import lower
from sparsejit.backends.llvm._options import Caches, CodeOptions
from sparsejit.backends.llvm._panel_width import Gathered, panel_width
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import Names
from sparsejit.ir.loops import Alloc, SelectMemref, Store
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.backends.loop_writing import function, index, memref, run, var
from tests.sparsify_and_bufferize.programs import PROGRAMS

RNG = np.random.default_rng(5)
MEGABYTE = 1 << 20
SMALL, LARGE = Caches(2048, 1 << 30), Caches(1 << 40, 1 << 41)
"""With the small caches every operand of this module is packed, with the large ones none is."""

# ---------------------------------------------------------------- the width


def width_of(columns: int, rows: int, crd: np.ndarray[Any, Any], caches: Caches) -> int:
    """The width that the rule finds for an operand of float64."""
    n, m, out = var("n"), var("m"), memref("out", INDEX)
    operand, stored = memref("B", DType.FLOAT64, 2), memref("crd", DType.INT32)
    func = function("rule", [n, m, operand, stored], (), out)
    finding, width = panel_width([Gathered(operand, stored)], n, caches, Names.of(func))
    body = (*finding, Alloc(out, (index(1),)), Store(out, (index(0),), width))
    func = function("rule", [n, m, operand, stored], body, out)
    verify_loops(func)
    B = np.broadcast_to(np.zeros(1), (rows, columns))
    found = {int(run(name, func, columns, 0, B, crd)[0][0]) for name in ("llvm", "interpreter")}
    (one,) = found
    return one


def scattered(rows: int, entries: int) -> np.ndarray[Any, Any]:
    return RNG.integers(0, rows, entries).astype(np.int32)


def test_panels_are_as_wide_as_the_own_cache_holds() -> None:
    caches = Caches(2 * MEGABYTE, 300 * MEGABYTE)
    for rows, width in ((5_000, 32), (10_000, 16), (20_000, 16)):
        for columns in (64, 256):
            assert width_of(columns, rows, scattered(rows, 2_000_000), caches) == width
        assert width_of(16, rows, scattered(rows, 2_000_000), caches) == 16  # all of them
    assert width_of(64, 1_000, scattered(1_000, 2_000_000), caches) == 64  # fit as they are


def test_panels_that_no_cache_holds_are_not_made() -> None:
    crd = scattered(100_000, 2_000_000)
    assert width_of(64, 100_000, crd, Caches(2 * MEGABYTE, 300 * MEGABYTE)) == 64
    assert width_of(64, 100_000, crd, Caches(MEGABYTE // 2, 32 * MEGABYTE)) == 16


def test_rows_that_come_seldom_are_not_copied() -> None:
    caches = Caches(2 * MEGABYTE, 300 * MEGABYTE)
    assert width_of(64, 10_000, scattered(10_000, 100_000), caches) == 64
    assert width_of(64, 10_000, scattered(10_000, 1_000_000), caches) == 16


def test_entries_near_those_before_need_no_panels() -> None:
    banded = np.sort(scattered(20_000, 2_000_000))
    assert width_of(64, 20_000, banded, Caches(2 * MEGABYTE, 300 * MEGABYTE)) == 64


def test_operands_without_rows_columns_or_entries() -> None:
    for columns, rows in ((0, 0), (0, 50), (64, 0), (1, 1)):
        assert width_of(columns, rows, scattered(1, 0), SMALL) == columns
        assert width_of(columns, rows, scattered(1, 5_000), SMALL) == columns


def test_the_sizes_of_caches_are_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _caches.machine_caches()
    assert 1 << 14 <= found.own <= found.last
    monkeypatch.setattr(os, "sysconf", lambda _: 0)
    monkeypatch.setattr(_caches, "_FOLDER", Path("nowhere"))
    assert _caches.machine_caches.__wrapped__() == Caches()


def test_the_sizes_of_caches_as_files_tell_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for number, (level, size) in enumerate((("1", "48K"), ("2", "2048K"), ("3", "300M"))):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    monkeypatch.setattr(os, "sysconf", lambda _: -1)
    monkeypatch.setattr(_caches, "_FOLDER", tmp_path)
    assert _caches.machine_caches.__wrapped__() == Caches(2 * MEGABYTE, 300 * MEGABYTE)


# ---------------------------------------------------------------- the loops


@pytest.mark.parametrize(
    ("name", "count"),
    [("spmm_csr", 1), ("mttkrp", 2), ("spmv_csr", 0), ("sddmm", 0), ("spgemm_rows", 0)],
)
def test_how_many_operands_of_programs_are_packed(name: str, count: int) -> None:
    after = lower(sparsify_and_bufferize(PROGRAMS[name]()), CodeOptions())
    verify_loops(after)
    assert sum(isinstance(stmt, SelectMemref) for stmt in all_statements(after.body)) == count


def test_the_text_of_a_packed_product() -> None:
    text = print_loops(lower(sparsify_and_bufferize(PROGRAMS["spmm_csr"]()), CodeOptions()))
    for part in ("select ", "_panel = ", "_room if packed else", "while begin < "):
        assert part in text


# ---------------------------------------------------------------- results


def product(A: Any, B: Any) -> Any:
    return A @ B


def updated(C: Any, A: Any, B: Any) -> Any:
    C += A @ B
    return C


def own_result(A: Any, B: Any) -> Any:
    B += A @ B
    return B


def two_factors(A: Any, B: Any, C: Any) -> Any:
    return sj.einsum("ij,jr,jr->ir", A, B, C)


def longest(A: Any, U: Any, B: Any, C: Any) -> Any:
    return sj.einsum("ij,ir,jr,jr->ir", A, U, B, C, semiring="max_times")


def again_and_again(A: Any, B: Any) -> Any:
    return sj.fori_loop(0, 3, lambda _, X: A @ X, B)


def both_ways(
    monkeypatch: pytest.MonkeyPatch, formula: Callable[..., Any], *operands: Any
) -> np.ndarray[Any, Any]:
    """The result with every operand packed, which has the bits of the one with none."""
    found = []
    for caches in (SMALL, LARGE):
        monkeypatch.setattr(backend, "machine_caches", lambda caches=caches: caches)
        given_ = [x.copy() for x in operands]
        kernel = sj.sparse_jit(formula, cache=False)
        found.append(np.asarray(kernel(*given_)))
        assert "packed in panels" in kernel.explain() or operands[-1].shape[-1] < 2
    with_panels, without = found
    np.testing.assert_array_equal(with_panels, without)
    return with_panels


def matrix(rows: int, columns: int, dtype: Any = np.float64) -> Any:
    dense = RNG.integers(-4, 5, (rows, columns)) * (RNG.random((rows, columns)) < 0.6)
    return sp.csr_array(dense.astype(dtype))


@pytest.fixture
def patch() -> Any:
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.mark.parametrize("width", [0, 1, 15, 16, 17, 33, 64, 100, 129, 200])
def test_any_width(width: int, patch: pytest.MonkeyPatch) -> None:
    A, B = matrix(120, 90), RNG.standard_normal((90, width))
    np.testing.assert_allclose(both_ways(patch, product, A, B), A @ B, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i1", "u2", "i4", "i8", "f2", "?"])
def test_any_dtype(dtype: str, patch: pytest.MonkeyPatch) -> None:
    A = matrix(120, 90, np.float32 if dtype == "f2" else dtype)
    B = RNG.integers(0, 3, (90, 300)).astype(dtype)
    wanted = A.toarray().astype("c16") @ B.astype("c16")
    found = both_ways(patch, product, A, B)
    if dtype == "?":
        np.testing.assert_array_equal(found, wanted != 0)
    elif found.dtype.itemsize > 2:
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_operands_of_any_strides(patch: pytest.MonkeyPatch) -> None:
    A, B = matrix(120, 90), RNG.standard_normal((90, 100))
    for other in (B[:, ::2], np.asfortranarray(B), B[::-1], B[:, 7:95]):
        np.testing.assert_allclose(both_ways(patch, product, A, other), A @ other, atol=1e-12)


def test_updates(patch: pytest.MonkeyPatch) -> None:
    A, B, C = matrix(120, 90), RNG.standard_normal((90, 100)), RNG.standard_normal((120, 100))
    np.testing.assert_allclose(both_ways(patch, updated, C, A, B), C + A @ B, atol=1e-12)


def test_an_operand_that_is_also_the_result(patch: pytest.MonkeyPatch) -> None:
    A, B = matrix(90, 90), RNG.standard_normal((90, 100))
    np.testing.assert_allclose(both_ways(patch, own_result, A, B), B + A @ B, atol=1e-12)


def test_products_in_a_loop(patch: pytest.MonkeyPatch) -> None:
    A, B = matrix(90, 90), RNG.standard_normal((90, 70))
    found = both_ways(patch, again_and_again, A, B)
    np.testing.assert_allclose(found, A @ (A @ (A @ B)), rtol=1e-9)


def test_several_operands(patch: pytest.MonkeyPatch) -> None:
    A, B, C = matrix(120, 90), *RNG.standard_normal((2, 90, 70))
    wanted = A @ (B * C)
    np.testing.assert_allclose(both_ways(patch, two_factors, A, B, C), wanted, atol=1e-12)


def test_a_contraction_of_four_operands_with_a_maximum(patch: pytest.MonkeyPatch) -> None:
    A, U = matrix(120, 90), RNG.standard_normal((120, 70))
    B, C = RNG.standard_normal((2, 90, 70))
    dense = A.toarray()
    terms = dense[:, :, None] * U[:, None, :] * B[None] * C[None]
    terms[dense == 0] = -np.inf
    np.testing.assert_allclose(both_ways(patch, longest, A, U, B, C), terms.max(1), rtol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 3), st.integers(2, 200), st.integers(0, 130))
def test_random_shapes(rows: int, inner: int, width: int) -> None:
    with pytest.MonkeyPatch.context() as context:
        A, B = matrix(rows * 60, inner), RNG.standard_normal((inner, width))
        np.testing.assert_allclose(both_ways(context, product, A, B), A @ B, atol=1e-12)
