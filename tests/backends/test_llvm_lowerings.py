"""What is done to loops before and while they are printed: it changes no result, and happens."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.backends import BACKENDS, Kernel
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.backends.llvm._lowerings import LOOP_LOWERINGS, lower
from sparsejit.backends.llvm._options import LOWERINGS, CodeOptions
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loops import (
    Alloc,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    Let,
    Lit,
    Load,
    LoopFunc,
    Store,
    View,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes import assemble_in_two_phases
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.backends.loop_writing import (
    F64,
    add,
    binary,
    function,
    index,
    load,
    memref,
    mul,
    number,
    run,
    var,
)
from tests.ir.loop_functions import loop_functions
from tests.sparsify_and_bufferize.programs import PROGRAMS

i, j, k, n, m = (var(name) for name in "ijknm")
RNG = np.random.default_rng(3)


@functools.cache
def kernel_without(func: LoopFunc, without: frozenset[str]) -> Kernel:
    backend = LlvmBackend(without=without)
    return backend.load(backend.emit(func), cache=False)


def every_way(func: LoopFunc, *arguments: Any) -> list[Any]:
    """The results of ``func`` with all lowerings, and with each left out, which must agree."""
    wanted: list[Any] | None = None
    for without in ((), *((name,) for name in LOWERINGS), LOWERINGS):
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        results: Any = kernel_without(func, frozenset(without))(given)
        found = [*results, *(a for a in given if isinstance(a, np.ndarray))]
        if wanted is None:
            wanted = found
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    assert wanted is not None
    return wanted


def test_each_can_be_left_out_by_its_name() -> None:
    assert set(LOOP_LOWERINGS) < set(LOWERINGS)


def loops_of(name: str) -> LoopFunc:
    return sparsify_and_bufferize(PROGRAMS[name]())


def lowered(func: LoopFunc, *without: str) -> LoopFunc:
    after = lower(func, CodeOptions(without=frozenset(without)))
    verify_loops(after)
    return after


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_lowered_programs_are_loop_functions(name: str) -> None:
    lowered(loops_of(name))


@given(loop_functions())
def test_any_loop_function_may_be_lowered(func: LoopFunc) -> None:
    verify_loops(func)
    lowered(func)


# ---------------------------------------------------------------- tiles

WIDTHS = st.one_of(st.integers(0, 40), st.sampled_from([63, 64, 65, 96, 127]))
DTYPES = (
    DType.FLOAT64, DType.FLOAT32, DType.INT64, DType.INT32, DType.UINT8, DType.INT16, DType.BOOL,
)  # fmt: skip


def spmm(dtype: DType, op: BinaryOp, value: Any = None) -> LoopFunc:
    """``C[i, j] op= A[i, k] * B[k, j]`` for a CSR matrix, on a C that is filled with ones."""
    pos, crd = memref("pos", INDEX), memref("crd", INDEX)
    vals, B, C = memref("vals", dtype), memref("B", dtype, 2), memref("C", dtype, 2)
    p = var("p")
    product = binary(BinaryOp.MUL, Load(vals, (p,)), Load(B, (k, j)))
    term = product if value is None else value
    leaf = For(j, index(0), m, (Store(C, (i, j), term, op),), parallel=True)
    nest = For(p, load(pos, i), load(pos, add(i, index(1))), (Let(k, load(crd, p)), leaf))
    fill = For(var("f"), index(0), m, (Store(C, (i, var("f")), _one(dtype)),), parallel=True)
    body = (Alloc(C, (n, m)), For(i, index(0), n, (fill, nest), parallel=True))
    return function("spmm", [n, m, pos, crd, vals, B], body, C)


def _one(dtype: DType) -> Expr:
    return Lit(Const(True if dtype is DType.BOOL else 1, dtype))


def csr(rows: int, columns: int, dtype: DType) -> tuple[Any, ...]:
    dense = RNG.random((rows, columns)) < 0.4
    matrix = sp.csr_array(dense.astype(np.int8))
    values = RNG.integers(0, 7, matrix.nnz).astype(dtype.value)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), values


@given(width=WIDTHS, dtype=st.sampled_from(DTYPES), rows=st.integers(0, 4))
def test_rows_of_any_width_in_tiles(width: int, dtype: DType, rows: int) -> None:
    func = spmm(dtype, BinaryOp.ADD)
    pos, crd, vals = csr(rows, 5, dtype)
    B = RNG.integers(0, 9, (5, width)).astype(dtype.value)
    (result, *_) = every_way(func, rows, width, pos, crd, vals, B)
    wanted = np.ones((rows, width), dtype.value)
    for row in range(rows):
        for place in range(pos[row], pos[row + 1]):
            wanted[row] += vals[place] * B[crd[place]]
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("op", [BinaryOp.MIN, BinaryOp.MAX, BinaryOp.MUL, BinaryOp.SUB])
@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.INT32])
def test_tiles_reduce_by_any_operation(op: BinaryOp, dtype: DType) -> None:
    pos, crd, vals = csr(3, 5, dtype)
    B = RNG.integers(-4, 5, (5, 43)).astype(dtype.value)
    if dtype is DType.FLOAT64:
        B[RNG.random(B.shape) < 0.1] = np.nan
    every_way(spmm(dtype, op), 3, 43, pos, crd, vals, B)


def test_the_text_of_a_tile_has_vectors() -> None:
    func = spmm(DType.FLOAT64, BinaryOp.ADD)
    assert "<4 x double>" in LlvmBackend().llvm_ir(func)
    assert "<4 x double>" not in LlvmBackend(without=frozenset({"tiles"})).llvm_ir(func)


def test_a_row_that_is_read_in_the_nest_has_no_tile() -> None:
    func = spmm(DType.FLOAT64, BinaryOp.ADD, load(memref("C", F64, 2), k, j))
    assert "<4 x double>" not in LlvmBackend().llvm_ir(func)


@given(width=WIDTHS, step=st.integers(1, 2))
def test_strided_operands(width: int, step: int) -> None:
    func = spmm(DType.FLOAT64, BinaryOp.ADD)
    pos, crd, vals = csr(3, 5, DType.FLOAT64)
    B = RNG.random((10, (width + 3) * step))[::2, 3 * step :: step]
    wanted = run("interpreter", func, 3, width, pos, crd, vals, B)
    for array in (B, np.asfortranarray(B)):
        kernel = BACKENDS["llvm"].load(BACKENDS["llvm"].emit(func))
        (result,) = kernel([3, width, pos, crd, vals, array])
        np.testing.assert_allclose(np.asarray(result), wanted[0], rtol=1e-14)


# ---------------------------------------------------------------- fusion and copies


def text(func: LoopFunc) -> str:
    return print_loops(func)


def test_a_fill_goes_into_the_loop_behind_it() -> None:
    func = loops_of("spmm") if "spmm" in PROGRAMS else loops_of("spmv_csr")
    before, after = text(func), text(lowered(func))
    assert before.count("parallel for i") > after.count("parallel for i")
    assert text(lowered(func, "fusion")) == before


def two_loops(first: Store, second: Store, *, between: tuple[Any, ...] = ()) -> LoopFunc:
    x, y, z = memref("x"), memref("y"), memref("z")
    body = (
        Alloc(y, (n,), Const(0.0, F64)),
        Alloc(z, (n,), Const(0.0, F64)),
        For(i, index(0), n, (first,), parallel=True),
        *between,
        For(k, index(0), n, (second,), parallel=True),
    )
    return function("two", [n, x], body, y, z)


def at(name: str, place: Expr) -> Expr:
    return load(memref(name), place)


def put(name: str, place: Expr, value: Expr) -> Store:
    return Store(memref(name), (place,), value)


NEXT = binary(BinaryOp.MIN, add(k, index(1)), add(n, index(-1)))
FUSED = {
    "the same element": (put("y", i, at("x", i)), put("z", k, at("y", k))),
    "written twice": (put("y", i, at("x", i)), put("y", k, number(2.0))),
    "apart": (put("y", i, at("x", i)), put("z", k, at("x", NEXT))),
}
KEPT = {
    "read of the next": (put("y", i, at("x", i)), put("z", k, at("y", NEXT))),
    "written where the next is read": (put("z", i, at("x", i)), put("y", NEXT, at("z", k))),
    "read before": (put("z", i, at("y", binary(BinaryOp.SUB, add(n, index(-1)), i))),
                    put("y", k, at("x", k))),
    "into an argument that is read": (put("y", i, at("x", NEXT_I := binary(
        BinaryOp.MIN, add(i, index(1)), add(n, index(-1))))), put("x", k, number(1.0))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_loops_that_meet_pass_by_pass_are_fused(name: str) -> None:
    func = two_loops(*FUSED[name])
    assert text(lowered(func, "threads")).count("parallel for") == 1
    every_way(func, 9, np.arange(9.0))


@pytest.mark.parametrize("name", KEPT)
def test_other_loops_are_not_fused(name: str) -> None:
    func = two_loops(*KEPT[name])
    if "next" in name and "written" in name:
        return  # `y` is written in one loop only, and read in none: nothing can meet
    assert text(lowered(func, "threads")).count("parallel for") == 2
    every_way(func, 9, np.arange(9.0))


def test_what_is_between_two_loops_goes_before_or_behind() -> None:
    w = memref("w")
    first, second = FUSED["the same element"]
    moved = (Alloc(w, (DimOf(memref("x"), 0),), Const(1.0, F64)), Dealloc(w))
    func = two_loops(first, second, between=moved)
    assert text(lowered(func, "threads")).count("parallel for") == 1
    every_way(func, 5, np.arange(5.0))
    depends = (Let(var("s", F64), at("y", index(0))), Alloc(w, (index(2),)), Dealloc(w))
    func = two_loops(first, second, between=depends)
    assert text(lowered(func, "threads")).count("parallel for") == 2
    every_way(func, 5, np.arange(5.0))


def test_views_of_one_array_are_one_array() -> None:
    y, v = memref("y"), memref("v")
    view = View(v, y, (index(1),), (add(n, index(-1)),), (1,))
    last = add(n, index(-2))
    body = (
        Alloc(y, (n,), Const(0.0, F64)),
        view,
        For(i, index(0), add(n, index(-1)), (put("y", i, at("x", i)),), parallel=True),
        For(
            k,
            index(0),
            add(n, index(-1)),
            (put("v", k, add(at("v", binary(BinaryOp.MIN, k, last)), number(1.0))),),
            parallel=True,
        ),
    )
    func = function("f", [n, memref("x")], body, y)
    assert text(lowered(func, "threads")).count("parallel for") == 2
    every_way(func, 6, np.arange(6.0))


def test_copies_of_structure_are_shared_unless_they_are_returned_or_changed() -> None:
    x, y, z, w = (memref(name) for name in "xyzw")
    body = (
        Alloc(y, (n,)),
        Copy(y, x),
        Alloc(z, (n,)),
        Copy(z, y),
        Alloc(w, (n,)),
        Copy(w, z),
        Store(w, (index(0),), mul(load(z, index(1)), load(y, index(0)))),
        Dealloc(y),
        Dealloc(z),
    )
    func = function("f", [n, x], body, w)
    after = text(lowered(func))
    assert after.count("copy") == 1
    assert "copy x -> w" in after
    (result, _) = every_way(func, 3, np.array([2.0, 3.0, 4.0]))
    assert result.tolist() == [6.0, 3.0, 4.0]
    changed = (*body[:-2], Store(x, (index(0),), number(9.0)), *body[-2:])
    assert text(lowered(function("f", [n, x], changed, w))).count("copy") == 3


def test_attention_becomes_one_loop_over_rows() -> None:
    @sj.sparse_jit(target="cpu")
    def attention(A: Any, Q: Any, K: Any, V: Any) -> Any:
        return sj.softmax(sj.where_stored(A, Q @ K.T), 1) @ V

    A = sp.csr_array((RNG.random((30, 40)) < 0.2) * 1.0)
    Q, K, V = RNG.random((30, 7)), RNG.random((40, 7)), RNG.random((40, 37))
    scores = np.where(A.toarray() != 0, Q @ K.T, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = np.nan_to_num(weights / weights.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(attention(A, Q, K, V), weights @ V, rtol=1e-12)


# ---------------------------------------------------------------- merges


def merged_text(name: str, *without: str) -> str:
    return print_loops(lowered(assemble_in_two_phases(loops_of(name)), *without))


@settings(max_examples=20)
@given(rows=st.integers(0, 5), columns=st.integers(1, 6), seed=st.integers(0, 1000))
def test_merged_segments(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    operands = []
    for _ in range(2):
        matrix = sp.csr_array((rng.random((rows, columns)) < 0.5) * rng.integers(1, 9, columns))
        matrix.sort_indices()
        operands += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)]
        operands.append(matrix.data.astype(np.float64))
    for split in (lambda func: func, assemble_in_two_phases):
        pos, crd, vals, *_ = every_way(split(loops_of("add_csr")), rows, columns, *operands)
        made = sp.csr_array((vals, crd, pos), (rows, columns)).toarray()
        dense = [
            sp.csr_array((v, c, p), (rows, columns)).toarray()
            for p, c, v in (operands[:3], operands[3:])
        ]
        np.testing.assert_array_equal(made, dense[0] + dense[1])


def test_counting_has_no_branches_and_filling_has_one() -> None:
    before, after = merged_text("add_csr", "merges"), merged_text("add_csr")
    assert before.count("if ") == 10
    assert after.count("if ") == 2
    assert " + index(" in after


# ---------------------------------------------------------------- prefetch


def test_gathered_rows_are_prefetched_and_elements_are_not() -> None:
    streams = frozenset({"streams"})
    backend, without = LlvmBackend(without=streams), LlvmBackend(without=streams | {"prefetch"})
    for name, wanted in (("spmm_csr", True), ("spgemm_rows", True), ("spmv_csr", False)):
        assert ("llvm.prefetch" in backend.llvm_ir(loops_of(name))) is wanted
        assert "llvm.prefetch" not in without.llvm_ir(loops_of(name))


def test_entries_of_later_rows_are_prefetched() -> None:
    """Coordinates and values: three lines of both once a row, or one of both with each entry."""
    backend = LlvmBackend(without=frozenset({"prefetch"}))
    strips = 5
    for name, wanted in (
        ("spmv_csr", 3 * 2), ("sddmm", 2), ("spmm_csr", strips * 2), ("add_csr_dense", 0)
    ):  # fmt: skip
        text = backend.llvm_ir(loops_of(name))
        assert text.count("call void @llvm.prefetch") == wanted


def test_copies_are_parallel_where_other_loops_are() -> None:
    x, y, z = memref("x", F64), memref("y", F64), memref("z", F64)
    start = (Alloc(y, (n,)), Copy(y, x), Alloc(z, (n,), Const(1.5, F64)))
    for is_parallel in (True, False):
        step = For(i, index(0), n, (Store(z, (i,), load(y, i), BinaryOp.ADD),), is_parallel)
        func = function("f", [n, x], (*start, step, Dealloc(y)), z)
        loops = [
            s for s in lowered(func, "copies", "fusion").body if isinstance(s, For) and s.parallel
        ]
        assert len(loops) == (3 if is_parallel else 0)
        every_way(func, 5, np.arange(5.0))
