"""Rows of new arrays that the loop over stored coordinates fills itself: the same bits, faster."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.backends.base import Kernel
from sparsejit.backends.llvm import LlvmBackend
from sparsejit.backends.llvm._lowerings import lower
from sparsejit.backends.llvm._options import CodeOptions
from sparsejit.formats import COO, CSF, CSR, DCSR, Format
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.types import DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize

UNORDERED = Format(
    "(i, j, k) -> (i : compressed(nonordered), j : compressed(nonordered), k : compressed)"
)


@functools.cache
def product(fmt: Format, op: BinaryOp = BinaryOp.ADD, fill: int = 0) -> LoopFunc:
    """C[..., r] = op over k of X[..., k] * W[k, r], from ``fill``."""
    builder = TensorBuilder("product")
    outer = ("i", "j")[: fmt.ndim - 1]
    X = builder.param("X", (*outer, "k"), DType.FLOAT64, fmt)
    W = builder.param("W", ("k", "r"), DType.FLOAT64)
    places = tuple(range(fmt.ndim - 1))
    k, r = fmt.ndim - 1, fmt.ndim
    extents = (*X.type.shape[:-1], W.type.shape[1])
    C = builder.full(extents, Const(float(fill), DType.FLOAT64))
    body = Binary(op, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
    made = builder.generic([(X, (*places, k)), (W, (k, r))], (C, (*places, r)), body)
    return sparsify_and_bufferize(builder.finish(made))


@functools.cache
def kernel(func: LoopFunc, *without: str) -> Kernel:
    backend = LlvmBackend(without=frozenset(without))
    return backend.load(backend.emit(func), cache=False)


def lowered(func: LoopFunc, *without: str) -> str:
    after = lower(func, CodeOptions(without=frozenset(without)))
    verify_loops(after)
    return print_loops(after)


@pytest.mark.parametrize("fmt", [CSF(3), DCSR, UNORDERED], ids=str)
def test_rows_are_filled_where_they_are_met(fmt: Format) -> None:
    text = lowered(product(fmt), "threads")
    first = text.index("for p0_X")
    assert "= 0.0" not in text[:first], "nothing is filled before"
    assert text.count(" alloc met") == fmt.ndim - 1
    assert text.count("if ~met") == fmt.ndim - 1


@pytest.mark.parametrize("fmt", [CSR, COO(2), COO(3)], ids=str)
def test_rows_that_are_all_met_or_met_twice_are_filled_as_before(fmt: Format) -> None:
    assert lowered(product(fmt)) == lowered(product(fmt), "fills")


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(*[st.sampled_from([1, 2, 5, 17])] * 4),
    count=st.sampled_from([0, 1, 3, 40]),
    seed=st.integers(0, 1000),
    form=st.sampled_from([(BinaryOp.ADD, 0), (BinaryOp.ADD, 2), (BinaryOp.MAX, -1)]),
)
def test_the_same_bits(
    shape: tuple[int, int, int, int], count: int, seed: int, form: tuple[BinaryOp, int]
) -> None:
    rng = np.random.default_rng(seed)
    places = tuple(rng.integers(0, extent, count) for extent in shape[:3])
    T: Any = sj.from_coo(places, rng.standard_normal(count), shape[:3], format=CSF(3))
    W = rng.standard_normal((shape[2], shape[3]))
    func = product(CSF(3), *form)
    arrays = [
        array
        for level in zip(T.positions, T.coordinates, strict=True)
        for array in (a.astype(np.int64) for a in level)
    ]
    arguments = (*shape, *arrays, T.values, W)
    found, wanted = (kernel(func, *without)(arguments)[0] for without in ((), ("fills",)))
    assert isinstance(found, np.ndarray)
    assert isinstance(wanted, np.ndarray)
    assert found.tobytes() == wanted.tobytes()
    if form == (BinaryOp.ADD, 0):
        np.testing.assert_allclose(found, np.einsum("ijk,kr->ijr", T.to_numpy(), W), atol=1e-12)


def test_explain_names_it() -> None:
    T = sj.from_coo(np.zeros((3, 1), int), np.ones(1), (3, 4, 5), format=CSF(3))
    f = sj.sparse_jit(lambda T, W: sj.einsum("ijk,kr->ijr", T, W), output=sj.Dense(3))
    text = "rows of a new array are filled by the loop that writes to them"
    assert text in f.explain(T, np.ones((5, 2)))
