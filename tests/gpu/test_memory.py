"""Host memory and devices: what is read after it was freed, and what overlaps."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sparsejit as sj
from tests.gpu.kernels import dense, matrix, spmv, spmv_update

STRATEGIES = ("regular-dma", "pinned-dma", "zero-copy")
LARGE = 1_500_000
each_strategy = pytest.mark.parametrize("transfer", STRATEGIES)


def scaled(x: Any) -> Any:
    return 2.0 * x


@each_strategy
def test_memory_that_was_freed_is_not_read(transfer: str) -> None:
    """A registration that outlives its memory would show old pages at the same address."""
    function = sj.sparse_jit(scaled, target="cuda", transfer=transfer)
    addresses = set()
    for factor in range(6):
        x = np.full(LARGE, float(factor))
        addresses.add(x.ctypes.data)
        assert_array_equal(function(x), np.full(LARGE, 2.0 * factor))
        del x
        gc.collect()
    assert len(addresses) < 6  # the same address came back, or nothing was tested


@each_strategy
def test_operands_that_overlap(transfer: str) -> None:
    def summed(x: Any, y: Any) -> Any:
        return x + y

    function = sj.sparse_jit(summed, target="cuda", transfer=transfer)
    whole = np.arange(float(LARGE))
    for left, right in (
        (whole[:-1], whole[1:]),
        (whole[: LARGE // 2], whole[LARGE // 2 :]),
        (whole, whole),
    ):
        assert_array_equal(function(left, right), left + right)


@each_strategy
def test_operands_in_one_page(transfer: str) -> None:
    page = np.arange(512.0)
    function = sj.sparse_jit(scaled, target="cuda", transfer=transfer)
    for start in range(0, 512, 32):
        part = page[start : start + 32]
        assert_array_equal(function(part), 2 * part)


@each_strategy
def test_new_results_are_overwritten_whatever_was_in_their_memory(transfer: str) -> None:
    """``beta`` is 0 for them, and ``0 * nan`` would be nan."""
    poison = sj.sparse_jit(scaled, target="cuda", transfer=transfer)
    function = sj.sparse_jit(spmv, target="cuda", transfer=transfer)
    for fmt in (sj.CSR, sj.CSC, sj.COO(2), sj.BSR(2, 2)):
        A = sj.asarray(matrix(300, 300, np.float64, np.int32).toarray(), format=fmt)
        for shape in ((300,), (300, 8)):
            x = dense(*shape, dtype=np.float64)
            right = A.to_numpy() @ x
            for _ in range(3):
                assert np.isnan(poison(np.full(shape, np.nan))).all()
                assert_allclose(function(A, x), right, rtol=1e-12)


@each_strategy
def test_what_the_host_changes_between_calls_is_seen(transfer: str) -> None:
    A, x = matrix(300, 300, np.float64, np.int32), dense(300, dtype=np.float64)
    function = sj.sparse_jit(spmv, target="cuda", transfer=transfer)
    for factor in (1.0, 3.0, -2.0):
        A.data[:] *= factor
        x[:] += factor
        assert_allclose(function(A, x), A @ x, rtol=1e-12)


@each_strategy
def test_read_only_and_strided_operands(transfer: str) -> None:
    A = matrix(200, 150, np.float64, np.int32)
    x = dense(450, dtype=np.float64)
    x.flags.writeable = False
    function = sj.sparse_jit(spmv, target="cuda", transfer=transfer)
    for part in (x[:150], x[::3], x[300:150:-1]):
        assert_allclose(function(A, part), A @ part, rtol=1e-12)


@each_strategy
def test_updates_reach_the_callers_array_and_nothing_else(transfer: str) -> None:
    A, x = matrix(200, 150, np.float64, np.int32), dense(150, dtype=np.float64)
    whole = np.zeros(600)
    function = sj.sparse_jit(spmv_update, target="cuda", transfer=transfer)
    function(A, x, whole[200:400])
    assert_allclose(whole[200:400], A @ x, rtol=1e-12)
    assert not whole[:200].any()
    assert not whole[400:].any()
