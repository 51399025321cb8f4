"""Index widths of results: 32 bits where everything is sure to fit, 64 where it may not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.affine import Add, Dim
from sparsejit.api._widths import index_widths, leaves_width_open, orders_widths
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.contraction import chains_of
from sparsejit.ir.contraction_order import ContractionOrder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr, Select, Stored
from sparsejit.ir.tensor import TensorFunc
from sparsejit.ir.types import DType, IndexWidths

F64 = DType.FLOAT64
MUL, ADD = Binary(BinaryOp.MUL, Arg(0), Arg(1)), Binary(BinaryOp.ADD, Arg(0), Arg(1))
BIG = 2**31
NARROW, MANY, FAR = IndexWidths(32, 32), IndexWidths(64, 32), IndexWidths(32, 64)


def elementwise(body: ScalarExpr, *formats: sj.Format, out: sj.Format = sj.CSR) -> TensorFunc:
    builder = TensorBuilder("f")
    params = [builder.param(f"p{k}", ("m", "n"), F64, fmt) for k, fmt in enumerate(formats)]
    kind = builder.tensor_type(("m", "n"), F64, out)
    destination = (builder.empty(kind), (0, 1))
    inputs = [(param, (0, 1)) for param in params]
    return builder.finish(builder.generic(inputs, destination, body))


def matmul(out: sj.Format = sj.CSR) -> TensorFunc:
    builder = TensorBuilder("f")
    a, b = builder.param("A", ("m", "k"), F64, sj.CSR), builder.param("B", ("k", "n"), F64, sj.CSR)
    kind = builder.tensor_type(("m", "n"), F64, out)
    body = Binary(BinaryOp.ADD, Arg(2), MUL)
    destination = (builder.empty(kind), (0, 2))
    return builder.finish(builder.generic([(a, (0, 1)), (b, (1, 2))], destination, body))


def spread() -> TensorFunc:
    """Each entry of a vector on a whole diagonal: ``C[i, j] = x[i + j] * D[i, j]``."""
    builder = TensorBuilder("f")
    x = builder.param("x", ("p",), F64, sj.SparseVector)
    d = builder.param("D", ("m", "n"), F64, sj.Dense(2))
    destination = (builder.empty(builder.tensor_type(("m", "n"), F64, sj.CSR)), (0, 1))
    inputs = [(x, (Add(Dim(0), Dim(1)),)), (d, (0, 1))]
    return builder.finish(builder.generic(inputs, destination, MUL))


CSR = sj.CSR
WHERE = Select(Stored(0), Arg(1), Const(0.0, F64))


@pytest.mark.parametrize(
    ("func", "numbers", "stored", "widths"),
    [
        # (m, n) and the stored counts of the operands
        (elementwise(MUL, CSR, CSR), (9, 9), (5, 5), NARROW),
        (elementwise(MUL, CSR, CSR), (9, BIG), (5, 5), FAR),
        (elementwise(MUL, CSR, CSR), (BIG - 1, BIG - 1), (5, 5), NARROW),
        (elementwise(ADD, CSR, CSR), (10**6, 10**6), (2**30, 2**30 - 1), NARROW),
        (elementwise(ADD, CSR, CSR), (10**6, 10**6), (2**30, 2**30), MANY),
        # the count is never above the number of coordinates
        (elementwise(ADD, CSR, CSR), (10**4, 10**4), (2**30, 2**30), NARROW),
        # what is dense stores everything where nothing annihilates it
        (elementwise(MUL, CSR, sj.Dense(2)), (10**6, 10**6), (5, 10**12), NARROW),
        (elementwise(ADD, CSR, sj.Dense(2)), (10**6, 10**6), (5, 10**12), MANY),
        (elementwise(WHERE, CSR, sj.Dense(2)), (10**6, 10**6), (5, 10**12), NARROW),
        # an entry of a block format brings its block along
        (elementwise(MUL, CSR, CSR, out=sj.BSR(8, 8)), (10**6, 10**6), (2**24, 1), NARROW),
        (elementwise(MUL, CSR, CSR, out=sj.BSR(8, 8)), (10**6, 10**6), (2**26, 2**26), MANY),
        # named widths are not chosen
        (elementwise(MUL, CSR, CSR, out=CSR.with_widths(32, 32)), (9, BIG), (5, 5), NARROW),
        # (m, k, n): each entry of A meets at most n columns, each of B at most m rows
        (matmul(), (10, 10, 10), (50, 50), NARROW),
        (matmul(), (10**6, 10**6, 10**6), (1000, 1000), NARROW),
        (matmul(), (10**6, 10**6, 10**6), (10**9, 1000), NARROW),
        (matmul(), (10**6, 10**6, 10**6), (2200, 2200), MANY),
        # (p, m, n): an entry is met once for each row or column
        (spread(), (6 * 10**4, 3 * 10**4, 3 * 10**4), (2200, 9 * 10**8), NARROW),
        (spread(), (2 * 10**6, 10**6, 10**6), (2200, 10**12), MANY),
    ],
)
def test_the_bound(
    func: TensorFunc, numbers: Sequence[int], stored: Sequence[int], widths: IndexWidths
) -> None:
    assert index_widths(func, numbers, stored) == widths


def test_intermediates_of_another_order_count() -> None:
    builder = TensorBuilder("f")
    a, b, c = (builder.param(name, ("n", "n"), F64, CSR) for name in "ABC")
    body = Binary(BinaryOp.ADD, Arg(2), MUL)
    ab = builder.generic([(a, (0, 1)), (b, (1, 2))], (builder.empty(a.type), (0, 2)), body)
    abc = builder.generic([(ab, (0, 1)), (c, (1, 2))], (builder.empty(a.type), (0, 2)), body)
    func = builder.finish(abc)
    (chain,) = chains_of(func)
    other = ContractionOrder(chain.root.result.name, (0, (1, 2)))
    n = 10**6
    assert orders_widths(func, (other,), (n,), (1, 10**7, 10**7)) == MANY
    assert orders_widths(func, (other,), (n,), (1, 1000, 10**7)) == NARROW
    assert orders_widths(func, (), (n,), (1, 10**7, 10**7)) == NARROW
    assert orders_widths(func, (other,), (BIG,), (1, 1, 1)).coordinates == 64


def test_dense_functions_leave_nothing_open() -> None:
    assert not leaves_width_open(elementwise(ADD, CSR, CSR, out=sj.Dense(2)))
    assert not leaves_width_open(elementwise(ADD, CSR, CSR, out=CSR.with_widths(64, 32)))
    assert leaves_width_open(elementwise(ADD, CSR, CSR))


def vector(extent: int, at: Sequence[int]) -> Any:
    coordinates = np.array(at, np.int64)
    positions = np.array([0, len(at)], np.int64)
    values = np.arange(1.0, len(at) + 1)
    return sj.SparseTensor(sj.SparseVector, (extent,), (positions,), (coordinates,), values)


def test_a_large_extent_needs_64_bits() -> None:
    f = sparse_jit(lambda x: x * 2, target="interpreter")
    result = f(vector(2**40, [5, 2**39]))
    assert result.shape == (2**40,)
    assert result.coordinates[0].tolist() == [5, 2**39]
    assert result.coordinates[0].dtype == np.int64
    small = f(vector(100, [5, 7]))
    assert small.coordinates[0].dtype == np.int32
    assert f.cache_info().traces == 1
    assert f.cache_info().compiles == 2
    assert "index width of results: 32 bits" in f.explain()


def test_only_positions_are_wide_where_many_may_be_stored() -> None:
    """So many entries of one row times so many columns do not fit, what comes out does."""
    m, n = 2**15, 2**17
    at = np.sort(np.random.default_rng(5).choice(n, m, replace=False))
    A = sp.csr_array((np.ones(m), at, [0] * 6 + [m] * (m - 5)), (m, n))
    B = sp.csr_array((np.arange(1.0, n + 1), np.arange(n) // 3, np.arange(n + 1)), (n, n))
    f = sparse_jit(lambda A, B: A @ B)
    result = f(A, B)
    assert (result.indptr.dtype, result.indices.dtype) == (np.int32, np.int32)
    assert result.has_canonical_format
    assert abs(result - A @ B).max() == 0
    assert "64 bits for positions and 32 for coordinates, then the least that fits" in f.explain()


def test_widths_asked_for_are_kept() -> None:
    x = vector(100, [5, 7])
    for pos, crd in ((8, 16), (32, 64), (64, 8)):
        f = sparse_jit(
            lambda x: x * 2, output=sj.SparseVector.with_widths(pos, crd), target="interpreter"
        )
        try:
            result = f(x)
        except sj.errors.UnsupportedError:
            continue
        assert result.positions[0].dtype.itemsize * 8 == pos
        assert result.coordinates[0].dtype.itemsize * 8 == crd
        np.testing.assert_array_equal(result.to_numpy(), x.to_numpy() * 2)
