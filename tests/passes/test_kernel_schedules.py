"""Schedules: which one is chosen by what, and that each of them computes the same."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import For, LoopFunc
from sparsejit.ir.stored_facts import RowLengths, lengths_of
from sparsejit.passes._kernel_schedules import (
    ChooseSchedule,
    KernelShape,
    schedule_by_rows,
    schedule_by_structure,
    shape_of,
)
from sparsejit.passes.outline_kernels import outline_kernels
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.cubin.programs import lowered_loops
from tests.sparsify_and_bufferize.programs import PROGRAMS
from tests.support.kernel_replay import ReplayBackend


def loops_of(name: str) -> LoopFunc:
    return sparsify_and_bufferize(PROGRAMS[name]())


def schedules(name: str, choose: ChooseSchedule, *, ordered: bool = False) -> list[Schedule]:
    outlined = outline_kernels(loops_of(name), choose=choose, ordered=ordered)
    return [stmt.schedule for stmt in all_statements(outlined.body) if isinstance(stmt, Launch)]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("spmv_csr", KernelShape(False, True, True, walks=("A_pos1",))),
        ("spmm_csr", KernelShape(True, False, True, walks=("A_pos1",))),
        ("half_sum", KernelShape(False, False, False)),
    ],
)
def test_shapes(name: str, shape: KernelShape) -> None:
    loop = [stmt for stmt in loops_of(name).body if isinstance(stmt, For) and stmt.parallel][-1]
    found = shape_of(loop)
    assert found == shape


T, W, B = Schedule.THREAD, Schedule.WARP, Schedule.BALANCED


def by_rows(**rows: RowLengths) -> ChooseSchedule:
    return schedule_by_rows(rows)


@pytest.mark.parametrize(
    ("name", "choose", "expected"),
    [
        ("spmv_csr", schedule_by_structure, [T, W]),
        ("spmv_csr", by_rows(A_pos1=lengths_of(2.0, 9.0)), [T, T]),
        ("spmv_csr", by_rows(A_pos1=lengths_of(90.0, 99.0)), [T, W]),
        ("spmv_csr", by_rows(A_pos1=lengths_of(9.0, 1e5)), [T, B]),
        ("spmv_csr", by_rows(B_pos1=lengths_of(9.0, 1e5)), [T, W]),  # nothing known of A
        ("spmm_csr", by_rows(A_pos1=lengths_of(9.0, 1e5)), [W, W]),  # rows of results
        ("mttkrp", schedule_by_structure, [W, W]),
    ],
)
def test_choices(name: str, choose: ChooseSchedule, expected: list[Schedule]) -> None:
    assert schedules(name, choose) == expected


def test_what_must_keep_its_order_is_not_dealt_out_by_entries() -> None:
    assert schedules("spmv_csr", lambda shape: Schedule.BALANCED, ordered=True) == [W, W]


def always(schedule: Schedule) -> Callable[..., LoopFunc]:
    return partial(outline_kernels, choose=lambda shape: schedule)


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=2, max_size=12),
    schedule=st.sampled_from([T, W, B]),
    seed=st.integers(0, 5),
)
def test_rows_of_any_lengths(lengths: list[int], schedule: Schedule, seed: int) -> None:
    """Empty rows in front, in between and behind; rows over many chunks, and many in one."""
    rng = np.random.default_rng(seed)
    pos = np.cumsum([0, *lengths]).astype(np.int32)
    crd = np.concatenate([np.sort(rng.permutation(50)[:n]) for n in lengths])
    parts = rng.integers(1, 9, pos[-1]).astype(float), crd.astype(np.int32), pos
    matrix = sp.csr_array(parts, shape=(len(lengths), 50))
    x = rng.integers(-3, 4, 50).astype(float)
    backend = ReplayBackend(outline=always(schedule), blocks=1 + seed % 2, seed=seed)
    loops = lowered_loops(lambda A, x: A @ x, matrix, x)
    kernel = backend.load(backend.emit(loops))
    (result,) = kernel([*matrix.shape, pos, parts[1], parts[0], x])
    assert_allclose(result, matrix.toarray() @ x)


def test_elements_that_are_added_to_again_and_again_stay_in_a_register() -> None:
    texts = [code.text for code in kernel_codes(outline_kernels(loops_of("mttkrp"))).values()]
    lines = [line.strip() for line in texts[1].splitlines()]
    shared = lines.index("for l in range(lane, r, 32):")
    assert lines[shared + 1].startswith("acc = b0[")
    assert lines[shared + 2].startswith("for p1_X in range(")
    assert not any("+= X_vals" in line for line in lines)


def test_the_order_of_sums_is_kept_where_it_is_asked_for() -> None:
    """No lane has a part of a sum, and no sum is split over threads."""
    for name in ("spmv_csr", "spmv_coo", "spmv_csc", "mttkrp"):
        outlined = outline_kernels(loops_of(name), ordered=True)
        for stmt in all_statements(outlined.body):
            assert not (isinstance(stmt, For) and stmt.reductions)
            assert not (isinstance(stmt, Launch) and stmt.atomics)


def test_a_product_is_right_in_each_schedule() -> None:
    matrix = sp.csr_array(sp.random_array((9, 12), density=0.5, rng=np.random.default_rng(2)))
    dense = np.arange(60.0).reshape(12, 5)
    for schedule in (T, W):
        backend = ReplayBackend(outline=always(schedule))
        kernel = backend.load(backend.emit(lowered_loops(lambda A, B: A @ B, matrix, dense)))
        arrays = matrix.indptr, matrix.indices, matrix.data
        (result,) = kernel([9, 12, 5, *arrays, dense])
        assert_allclose(result, matrix.toarray() @ dense)
