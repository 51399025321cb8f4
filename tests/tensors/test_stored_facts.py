"""What is known of stored operands: lengths of rows, full batches, and that it is asked once."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.ir.stored_facts import RowLengths, StoredFacts, lengths_of
from sparsejit.tensors import _stored_facts, operand_of, stored_facts
from tests.tensors.fake_cupy import ndarray

SHORT, LONG, UNEVEN = RowLengths.SHORT, RowLengths.LONG, RowLengths.UNEVEN


def by_rows(*lengths: int) -> sp.csr_array:
    """Return a matrix whose rows store so many entries."""
    columns = np.concatenate([np.arange(n) for n in lengths])
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    shape = len(lengths), max(lengths, default=0) + 1
    return sp.csr_array((np.ones(columns.size), columns, pointers), shape)


def facts(value: Any) -> StoredFacts:
    return stored_facts(operand_of(value))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([3, 0, 5], SHORT),
        ([11] * 9, SHORT),
        ([12] * 9, LONG),
        ([0] * 99 + [768], SHORT),  # 64 times as many as pay for a warp, and not one more
        ([0] * 99 + [769], UNEVEN),
        ([40] * 299 + [5000], UNEVEN),
        ([40] * 299 + [3000], LONG),
    ],
)
def test_lengths_of_rows(lengths: list[int], expected: RowLengths) -> None:
    assert facts(by_rows(*lengths)).rows == (expected, None, None)


def test_formats() -> None:
    array = np.eye(30)
    array[0] = 1
    expected = {
        sj.CSC: (SHORT, None, None),
        sj.COO(2): (LONG, None, None, None),
        sj.DCSR: (LONG, None, SHORT, None, None),
        sj.ELL(30): (None, None),
        sj.BSR(2, 2): (SHORT, None, None),
    }
    for fmt, rows in expected.items():
        assert facts(sj.asarray(array, format=fmt)).rows == rows, fmt
    assert facts(array).rows == (None,)
    assert facts(np.float64(3)).rows == (None,)
    loose = sj.Format("(i, j) -> (i : dense, j : loose_compressed)")
    assert facts(sj.asarray(array, format=loose)).rows == (SHORT, None, None)


def test_no_rows() -> None:
    assert facts(sp.csr_array((0, 5))).rows == (None, None, None)
    assert lengths_of(0.0, 0.0) is SHORT


@pytest.mark.parametrize("inner", [sj.CSR, sj.CSC, sj.COO(2)], ids=str)
def test_full_batches(inner: sj.Format) -> None:
    array = np.zeros((2, 3, 4))
    array[0, 0, :2] = array[1, 2, 1:3] = 1
    fmt = sj.Batched(inner)
    assert facts(sj.asarray(array, format=fmt)).has_full_batches
    assert facts(sj.asarray(array[None], format=sj.Batched(inner, 2))).has_full_batches
    array[0, 2, 2] = 1
    assert not facts(sj.asarray(array, format=fmt)).has_full_batches
    assert not facts(sj.asarray(array[0], format=inner)).has_full_batches  # there are no batches


def test_positions_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    right = _stored_facts._looked_through

    def noted(*arguments: Any) -> Any:
        looked.append(arguments[0])
        return right(*arguments)

    monkeypatch.setattr(_stored_facts, "_looked_through", noted)
    matrix = by_rows(3, 4, 5)
    operand = operand_of(matrix)
    for _ in range(3):
        assert stored_facts(operand) == stored_facts(operand_of(matrix))
    assert len(looked) == 1
    stored_facts(operand, may_have_changed=True)
    assert len(looked) == 2
    looked.clear()
    known = len(_stored_facts._known)
    del matrix, operand
    gc.collect()
    assert len(_stored_facts._known) < known


@pytest.mark.parametrize(
    ("lengths", "expected"), [([3, 0, 5], SHORT), ([40] * 9, LONG), ([0] * 99 + [5000], LONG)]
)
def test_of_positions_on_a_device_only_the_extents_are_asked(
    lengths: list[int], expected: RowLengths
) -> None:
    host = operand_of(by_rows(*lengths))
    buffers = tuple(map(ndarray, host.buffers))
    operand = replace(host, buffers=buffers, on_device=True)
    assert stored_facts(operand).rows == (expected, None, None)


def test_batches_on_a_device_are_not_known_to_be_full() -> None:
    host = operand_of(sj.asarray(np.ones((2, 3, 4)), format=sj.Batched(sj.CSR)))
    buffers = tuple(map(ndarray, host.buffers))
    assert stored_facts(host).has_full_batches
    assert not stored_facts(replace(host, buffers=buffers, on_device=True)).has_full_batches
