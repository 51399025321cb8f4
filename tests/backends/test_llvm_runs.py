"""Sorted entries whose coordinates repeat: rows stay in registers, and no two threads share one."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.backends.base import Kernel
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.backends.llvm._engine import thread_pool
from sparsejit.backends.llvm._runs import find_runs
from sparsejit.formats import COO
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_uses import loaded
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import int_
from sparsejit.ir.loops import For, LoopFunc, Memref, Store, While
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.types import DType
from sparsejit.pipeline import default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize

RNG = np.random.default_rng(5)
UNITS = frozenset({"X_vals", "W", "b0"})


@functools.cache
def times_matrix(rank: int, op: BinaryOp = BinaryOp.ADD) -> LoopFunc:
    """``C[.., r] = op over k of X[.., k] * W[k, r]`` of a ``COO(rank)``, without parts."""
    builder = TensorBuilder("times_matrix")
    outer = "ijl"[: rank - 1]
    X = builder.param("X", (*outer, "k"), DType.FLOAT64, COO(rank))
    W = builder.param("W", ("k", "r"), DType.FLOAT64)
    places = tuple(range(rank - 1))
    k, r = rank - 1, rank
    C = builder.full((*X.type.shape[:-1], W.type.shape[1]), Const(0.0, DType.FLOAT64))
    body = Binary(op, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
    made = builder.generic([(X, (*places, k)), (W, (k, r))], (C, (*places, r)), body)
    return sparsify_and_bufferize(builder.finish(made))


@functools.cache
def kernel(func: LoopFunc, *without: str) -> Kernel:
    backend = LlvmBackend(without=frozenset(without))
    return backend.load(backend.emit(func), cache=False)


def level_arrays(X: Any) -> list[Any]:
    levels = zip(X.positions, X.coordinates, strict=True)
    arrays = [a.astype(np.int64) for level in levels for a in level if a is not None]
    return [*arrays, X.values]


def entries(shape: tuple[int, ...], count: int, seed: int) -> tuple[Any, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    chosen = np.sort(rng.choice(size, min(count, size), replace=False))
    return np.unravel_index(chosen, shape), rng.integers(1, 9, len(chosen)).astype(float)


def test_loops_over_repeated_coordinates_are_found() -> None:
    (run,) = find_runs(times_matrix(2).body, {}, UNITS).values()
    assert [set(loaded(let.value)) for let in run.coordinates] == [{"X_crd0"}]
    (run,) = find_runs(times_matrix(3).body, {}, UNITS).values()
    both = [{"X_crd0"}, {"X_crd1"}]
    assert [set(loaded(let.value)) for let in run.coordinates] == both, "equal in a run"


def test_runs_are_of_the_same_loop() -> None:
    func = times_matrix(3)
    ((name, run),) = find_runs(func.body, {}, UNITS).items()
    (loop,) = (s for s in all_statements(func.body) if isinstance(s, For) and s.var.name == name)
    made = run.by_runs(loop)
    (inner,) = (s for s in all_statements(made) if isinstance(s, For) and s.var.name == name)
    assert run.is_in(loop)
    assert not run.is_in(inner), "which is the loop to print, with its tile"
    assert sum(isinstance(stmt, While) for stmt in all_statements(made)) == 2


def test_coordinates_that_the_loop_writes_make_no_runs() -> None:
    func = times_matrix(2)
    (loop,) = (s for s in all_statements(func.body) if isinstance(s, For) and s.var.name == "p0_X")
    (memref,) = (m for m in func.params if isinstance(m, Memref) and m.name == "X_crd0")
    written = replace(loop, body=(*loop.body, Store(memref, (loop.var,), int_(0))))
    assert find_runs((loop,), {}, UNITS)
    assert not find_runs((written,), {}, UNITS)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*[st.sampled_from([1, 2, 5, 17])] * 3),
    count=st.sampled_from([0, 1, 3, 40, 300]),
    width=st.sampled_from([0, 1, 3, 8, 31, 64, 70]),
    seed=st.integers(0, 1000),
    op=st.sampled_from([BinaryOp.ADD, BinaryOp.MAX, BinaryOp.SUB]),
    rank=st.sampled_from([2, 3]),
)
def test_the_same_bits_run_by_run(
    shape: tuple[int, ...], count: int, width: int, seed: int, op: BinaryOp, rank: int
) -> None:
    shape = shape[:rank]
    places, values = entries(shape, count, seed)
    X = sj.from_coo(places, values, shape, format=COO(rank))
    W = np.random.default_rng(seed).random((shape[-1], width))
    found = []
    for without in ((), ("runs",), ("tiles",)):
        (result,) = kernel(times_matrix(rank, op), *without)((*shape, width, *level_arrays(X), W))
        assert isinstance(result, np.ndarray)
        found.append(result.tobytes())
    assert found[0] == found[1] == found[2]


# ---------------------------------------------------------------- parts


@sj.sparse_jit(deterministic=True)
def product(A: Any, x: Any) -> Any:
    return A @ x


def skewed(rows: int, count: int) -> Any:
    """A matrix in which one row has half of the entries."""
    row = np.where(RNG.random(count) < 0.5, rows // 3, RNG.integers(0, rows, count))
    column = RNG.integers(0, 500, count)
    return sj.from_coo((row, column), RNG.random(count), (rows, 500), format=COO(2))


@pytest.mark.parametrize("rows", [1, 2, 70, 30_000])
@pytest.mark.parametrize("width", [None, 1, 19, 64])
def test_products_of_sorted_entries(rows: int, width: int | None) -> None:
    A = skewed(rows, 20_000)
    x = RNG.random(500) if width is None else RNG.random((500, width))
    np.testing.assert_allclose(product(A, x), A.to_numpy() @ x, rtol=1e-12)


def test_the_same_bits_with_any_number_of_threads() -> None:
    A, X = skewed(2000, 60_000), RNG.random((500, 16))
    pool = thread_pool()
    before = pool.limits
    try:
        found = set()
        for threads in (1, 2, 5):
            pool.set_limits(threads, 1)
            found.add(product(A, X).tobytes())
    finally:
        pool.set_limits(*before)
    assert len(found) == 1


def test_rows_are_in_one_part_each() -> None:
    A, X = skewed(300, 900), RNG.random((500, 3))
    told = product.explain(A, X)
    assert "loop over level 0 of %A: threads: in parallel" not in told
    assert "part: threads: in parallel" in told
    text = product.lower(A, X).text("loops")
    assert "reduce(" not in text, "nothing is added up across threads"
    assert "parallel for part" in text


def test_a_device_takes_entries_one_by_one() -> None:
    options = default_pipeline(for_device=True).stage_options
    assert not options.rows_apart
    assert StageOptions().rows_apart
    assert "p0_X_seg" not in print_loops(times_matrix(2)), "nor does a stage without parts"
