"""Bitmaps and stamps of the workspaces of rows, tables in the place of searches: the same bits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.backends.base import Kernel
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.backends.llvm._lowerings import lower
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.formats import CSR
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.types import DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes import assemble_in_two_phases
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.sparsify_and_bufferize.programs import PROGRAMS

SHAPES = st.tuples(
    st.integers(0, 6), st.integers(1, 40), st.sampled_from([1, 63, 64, 65, 700, 5000, 70_000])
)


@functools.cache
def loops_of(name: str) -> LoopFunc:
    return assemble_in_two_phases(sparsify_and_bufferize(PROGRAMS[name]()))


@functools.cache
def reduced(dtype: DType, op: BinaryOp, fill: int) -> LoopFunc:
    """C[i, j] = op over k of A[i, k] * B[k, j], from ``fill``."""
    builder = TensorBuilder("reduced")
    A = builder.param("A", ("m", "k"), dtype, CSR)
    B = builder.param("B", ("k", "n"), dtype, CSR)
    C = builder.empty(builder.tensor_type(("m", "n"), dtype, CSR, Const(fill, dtype)))
    body = Binary(op, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
    made = builder.generic([(A, (0, 2)), (B, (2, 1))], (C, (0, 1)), body)
    return assemble_in_two_phases(sparsify_and_bufferize(builder.finish(made)))


@functools.cache
def kernel(func: LoopFunc, *without: str) -> Kernel:
    backend = LlvmBackend(without=frozenset(without))
    return backend.load(backend.emit(func), cache=False)


def both_ways(func: LoopFunc, lowering: str, *arguments: Any) -> tuple[Any, ...]:
    """The results, which are the same bits without a lowering."""
    found, wanted = (kernel(func, *without)(arguments) for without in ((), (lowering,)))
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one, np.ndarray)
        assert isinstance(other, np.ndarray)
        assert one.tobytes() == other.tobytes()
    return found


def lowered(func: LoopFunc, *without: str) -> str:
    after = lower(func, CodeOptions(without=frozenset(without)))
    verify_loops(after)
    return print_loops(after)


def matrix(
    rng: np.random.Generator, rows: int, columns: int, density: float, dtype: str = "float64"
) -> tuple[Any, list[Any]]:
    made: Any = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    made.data = np.round(rng.standard_normal(made.nnz) * 3).astype(dtype)
    arrays = [made.indptr.astype(np.int64), made.indices.astype(np.int64), made.data]
    return made, arrays


@settings(max_examples=40)
@given(shape=SHAPES, seed=st.integers(0, 1000), density=st.sampled_from([0.0, 0.01, 0.3]))
def test_rows_come_in_order(shape: tuple[int, int, int], seed: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    rows, inner, columns = shape
    A, left = matrix(rng, rows, inner, 0.5)
    B, right = matrix(rng, inner, columns, density)
    func = loops_of("spgemm_rows")
    pos, crd, vals = both_ways(func, "bitmaps", *shape, *left, *right)
    both_ways(func, "stamps", *shape, *left, *right)
    made = sp.csr_array((vals, crd, pos), (rows, columns))
    assert made.has_canonical_format
    np.testing.assert_array_equal(made.toarray(), (A @ B).toarray())
    assert made.nnz == (_pattern(A) @ _pattern(B)).nnz


def _pattern(matrix: Any) -> Any:
    return sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)


@pytest.mark.parametrize("op", [BinaryOp.ADD, BinaryOp.MAX, BinaryOp.MIN, BinaryOp.MUL])
@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.INT32, DType.COMPLEX128])
def test_any_reduction_starts_alike(op: BinaryOp, dtype: DType) -> None:
    if dtype.is_complex and op in (BinaryOp.MAX, BinaryOp.MIN):
        pytest.skip("not of complex numbers")
    rng = np.random.default_rng(5)
    _, left = matrix(rng, 6, 9, 0.5, dtype.value)
    _, right = matrix(rng, 9, 300, 0.2, dtype.value)
    for fill in (0, 1):
        func = reduced(dtype, op, fill)
        pos, *_ = both_ways(func, "bitmaps", 6, 9, 300, *left, *right)
        assert pos[-1] > 300


def test_negative_zeros_stay() -> None:
    pos, crd = np.array([0, 1]), np.array([0])
    func = loops_of("spgemm_rows")
    _, _, vals = both_ways(func, "bitmaps", 1, 1, 1, pos, crd, np.array([-0.0]), pos, crd,
                           np.array([1.0]))  # fmt: skip
    assert np.signbit(vals).all()


@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.INT8])
def test_sums_of_many_terms_are_added_behind_coordinates(dtype: DType) -> None:
    rng = np.random.default_rng(8)
    _, left = matrix(rng, 20, 50, 0.7, dtype.value)
    _, right = matrix(rng, 50, 90, 0.5, dtype.value)
    if dtype.is_float:
        special = [-0.0, 0.0, np.inf, -np.inf, np.nan, 1e-7]
        for values in (left[2], right[2]):
            values[::5] = rng.choice(special, values[::5].size)
    func = reduced(dtype, BinaryOp.ADD, 0)
    with np.errstate(all="ignore"):
        both_ways(func, "bitmaps", 20, 50, 90, *left, *right)
    by_bits = lowered(func).split("if terms")[1].split("} else {")[0]
    assert by_bits.count("s1_sums[") == 3, "forgotten, added to and read"
    assert by_bits.count("if ") == 0, "without a branch"


@pytest.mark.parametrize(
    ("dtype", "op"), [(DType.COMPLEX128, BinaryOp.ADD), (DType.FLOAT64, BinaryOp.MAX)]
)
def test_what_has_no_zero_to_add_to_asks_what_is_new(dtype: DType, op: BinaryOp) -> None:
    by_bits = lowered(reduced(dtype, op, 0)).split("if terms")[1].split("} else {\n      for")[0]
    assert " & bit" in by_bits
    assert "begin" not in by_bits


def test_negative_zeros_of_many_terms_stay() -> None:
    A = sp.csr_array((np.full(180, -0.0), np.tile(np.arange(60), 3), np.arange(0, 181, 60)))
    B = sp.csr_array((np.full(60 * 5, 1.0), np.tile(np.arange(5), 60), np.arange(0, 301, 5)))
    operands = [array.astype(np.int64) for array in (A.indptr, A.indices)] + [A.data]
    others = [array.astype(np.int64) for array in (B.indptr, B.indices)] + [B.data]
    _, _, vals = both_ways(loops_of("spgemm_rows"), "bitmaps", 3, 60, 5, *operands, *others)
    assert vals.size == 15
    assert np.signbit(vals).all()


def test_rows_of_few_and_of_many_terms_go_their_own_ways() -> None:
    text, before = lowered(loops_of("spgemm_rows")), lowered(loops_of("spgemm_rows"), "bitmaps")
    assert "sort " in before
    assert "_bits" not in before
    by_bits, by_sort = text.split("if terms << 1 > s1_met_length + 32")[1].split(
        "} else {\n      for"
    )
    assert "s1_met_bits[" in by_bits
    assert "stamps" not in by_bits
    assert "sort " in by_sort
    assert "_bits[" not in by_sort


def test_counting_has_no_branch_on_what_is_new() -> None:
    """The only branch is that of used up stamps, once a row."""
    text, before = (lowered(loops_of("spgemm_rows"), *without) for without in ((), ("stamps",)))
    for one, inner in ((text, 0), (before, 1)):
        counting = one.split("parallel for")[1].split("scan")[0].split("for p1_A")[1]
        assert counting.count("if ") == inner
    assert "memref<u16>" in text
    assert "memref<u16>" not in before


def test_rows_of_both_kinds_stand_side_by_side() -> None:
    """Many columns, of which some rows meet few and others many, in any order of rows of B."""
    rng = np.random.default_rng(8)
    n = 300_000  # 74 words of a summary: from 54 terms on a row is read from bits
    lengths = np.array([0, 3, 200, 53, 54, 1, 0, 1500, 7])
    rows = [np.sort(rng.choice(n, length, replace=False)) for length in [1] * 20 + [60] * 20]
    pos, crd = np.cumsum([0, *map(len, rows)]), np.concatenate(rows)
    right = [pos, crd, np.round(rng.standard_normal(len(crd)) * 3)]
    B = sp.csr_array((right[2], crd, pos), (40, n))
    left_rows = [np.sort(rng.choice(40, min(length, 40), replace=False)) for length in lengths]
    left = [np.cumsum([0, *map(len, left_rows)]), np.concatenate(left_rows)]
    left.append(np.round(rng.standard_normal(len(left[1])) * 3))
    A = sp.csr_array((left[2], left[1], left[0]), (len(lengths), 40))
    func = loops_of("spgemm_rows")
    for lowering in ("bitmaps", "stamps"):
        pos, crd, vals = both_ways(func, lowering, len(lengths), 40, n, *left, *right)
    made = sp.csr_array((vals, crd, pos), (len(lengths), n))
    assert made.has_canonical_format
    assert abs(made - A @ B).max() == 0


def test_stamps_start_again_after_the_last_one() -> None:
    """More rows than stamps: what a row met 65535 rows ago is not taken for what this one meets."""
    rows = 2**16 + 5
    pos, crd = np.arange(rows + 1), np.zeros(rows, np.int64)
    crd[1 : 2**16 - 1] = 1
    right = [np.array([0, 2, 3]), np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0])]
    one_thread = kernel(loops_of("spgemm_rows"), "threads")
    made = one_thread((rows, 2, 3, pos, crd, np.ones(rows), *right))
    lengths = np.where(crd == 0, 2, 1)
    np.testing.assert_array_equal(made[0], [0, *np.cumsum(lengths)])
    two, one = [1.0, 2.0], [3.0]
    np.testing.assert_array_equal(made[2], [x for k in crd.tolist() for x in (one if k else two)])


def test_a_workspace_that_is_read_in_another_way_stays() -> None:
    text = lowered(loops_of("add_csr"))
    assert text == lowered(loops_of("add_csr"), "bitmaps")


@settings(max_examples=30)
@given(shape=SHAPES, seed=st.integers(0, 1000))
def test_sampled_rows(shape: tuple[int, int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, inner, columns = shape
    S, sampler = matrix(rng, rows, columns, 0.05)
    A, left = matrix(rng, rows, inner, 0.5)
    B, right = matrix(rng, inner, columns, 0.05)
    func = loops_of("sampled_rows")
    arguments = (rows, columns, inner, *sampler, *left, *right)
    pos, crd, vals = both_ways(func, "tables", *arguments)
    made = sp.csr_array((vals, crd, pos), (rows, columns))
    np.testing.assert_array_equal(made.toarray(), (S * (A @ B)).toarray())
    assert made.nnz == (_pattern(S) * (_pattern(A) @ _pattern(B))).nnz


def test_what_is_searched_in_every_round_is_in_a_table() -> None:
    text, before = lowered(loops_of("sampled_rows")), lowered(loops_of("sampled_rows"), "tables")
    assert "_table[" in text
    assert "_table" not in before
    inner = lowered(loops_of("multiply_csr_csc"))
    assert "_table" not in inner


@pytest.mark.parametrize("step", [1, 2, -3])
def test_a_table_of_a_loop_that_stays_on_one_thread(step: int) -> None:
    # Sums into a strided array are not taken apart; what each thread would have had was missing.
    def update(y: Any, C: Any) -> None:
        i, j, k = sj.indices("i j k")
        y[i] = C[j + 1, i, k + 1] * C[k, j, i] * C[k, j, i]

    rng = np.random.default_rng(4)
    C = (rng.random((5, 5, 5)) < 0.6) * rng.integers(1, 5, (5, 5, 5))
    wanted = np.einsum("jik,kji->i", C[1:, :, 1:], C[:4, :4] ** 2)
    y = np.full(15, 7, np.int64)
    fmt = sj.Format("(i, j, k) -> (k : compressed, i : dense, j : compressed)")
    f = sj.sparse_jit(update, target="cpu")
    for _ in range(2):
        f(y[: 5 * step : step] if step > 0 else y[::step], sj.asarray(C, format=fmt))
    np.testing.assert_array_equal(y[: 5 * step : step] if step > 0 else y[::step], wanted)
    assert (y == 7).sum() >= 10


def test_explain_says_so() -> None:
    A = sp.random_array((30, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    product = sj.sparse_jit(lambda A, B: A @ B, target="cpu")
    assert "noted in a bitmap" in product.lower(A, A).explain()
    sampled = sj.sparse_jit(lambda S, A, B: S * (A @ B), target="cpu")
    text = sampled.lower(A, A, A).explain()
    assert "looked up in a table of its row" in text
    assert "moved together in the end" in text
