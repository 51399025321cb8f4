"""Bitmaps in the workspaces of rows, and tables in the place of searches: the same bits, faster."""

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
    pos, crd, vals = both_ways(loops_of("spgemm_rows"), "bitmaps", *shape, *left, *right)
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


def test_no_stamps_are_left() -> None:
    text, before = lowered(loops_of("spgemm_rows")), lowered(loops_of("spgemm_rows"), "bitmaps")
    assert "stamps" in before
    assert "stamps" not in text
    counting = text.split("parallel for")[1].split("scan")[0]
    assert "if " not in counting


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


def test_explain_says_so() -> None:
    A = sp.random_array((30, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    product = sj.sparse_jit(lambda A, B: A @ B, target="cpu")
    assert "noted in a bitmap" in product.lower(A, A).explain()
    sampled = sj.sparse_jit(lambda S, A, B: S * (A @ B), target="cpu")
    text = sampled.lower(A, A, A).explain()
    assert "looked up in a table of its row" in text
    assert "moved together in the end" in text
