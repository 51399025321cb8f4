"""Every kernel x strategy x dtype x index width on the device, beside SciPy and NumPy."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import sparsejit as sj
from tests.gpu.kernels import HALVES, KERNELS, Kernel, dtype_of

STRATEGIES = ("regular-dma", "pinned-dma", "zero-copy")
IS_FAKE = os.environ.get("SPARSEJIT_DEVICE") == "fake"
SIZES = (1, 9, 40) if IS_FAKE else (1, 70, 1500)
TOLERANCES = {"float16": 2e-2, "bfloat16": 2e-2, "float32": 1e-4, "complex64": 1e-4}


def as_dense(result: Any) -> Any:
    if hasattr(result, "toarray"):
        return result.toarray()
    if isinstance(result, sj.SparseTensor):
        return result.to_numpy()
    return np.asarray(result)


def wide(operand: Any) -> Any:
    """Return the operand as SciPy and NumPy compute with it: they have no sums of 16-bit floats."""
    kind = np.float32 if operand.dtype.name in HALVES else operand.dtype
    if isinstance(operand, sj.SparseTensor):
        array = operand.to_numpy().astype(kind)
        return sp.csr_array(array) if array.ndim == 2 else array
    return operand.astype(kind)


def check(kernel: Kernel, function: Any, dtype: str, index: type, size: int, where: str) -> None:
    operands = kernel.make(dtype_of(dtype), index, size)
    expected = as_dense(kernel.expected(*map(wide, operands)))
    before = [as_dense(wide(operand)).copy() for operand in operands]
    result = function(*operands)
    got = as_dense(operands[kernel.updates] if kernel.updates is not None else result)
    assert got.dtype == (dtype_of(dtype) if dtype in HALVES else expected.dtype), where
    kind = np.result_type(expected, np.float32)
    tolerance = TOLERANCES.get(dtype, 1e-10)
    assert_allclose(
        got.astype(kind), expected.astype(kind), rtol=tolerance, atol=tolerance, err_msg=where
    )
    for number, (operand, old) in enumerate(zip(operands, before, strict=True)):
        if number != kernel.updates:
            assert_array_equal(as_dense(wide(operand)), old, where)


@pytest.mark.parametrize("index", [np.int32, np.int64], ids=["index32", "index64"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name, kernel in sorted(KERNELS.items()) for dtype in kernel.dtypes],
)
def test_results(name: str, dtype: str, index: type) -> None:
    """Strategies are inside, so that one process has compiled the kernels for all of them."""
    kernel = KERNELS[name]
    for library in ("auto", "never"):
        for transfer in STRATEGIES:
            function = sj.sparse_jit(
                kernel.function, target="cuda", transfer=transfer, library=library
            )
            for size in SIZES if dtype == "float64" else SIZES[1:2]:
                check(kernel, function, dtype, index, size, f"{library}, {transfer}, {size}")


@pytest.mark.parametrize("transfer", STRATEGIES)
@pytest.mark.parametrize("library", ["auto", "never"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_two_of_four(dtype: str, library: str, transfer: str) -> None:
    """Products that cuSPARSELt has, and with types and extents that it does not take."""
    rng = np.random.default_rng(4)
    function = sj.sparse_jit(
        KERNELS["spmm"].function, target="cuda", transfer=transfer, library=library
    )
    for rows, columns, width in ((64, 64, 32), (6, 12, 5)):
        array = rng.integers(-3, 4, (rows, columns)).astype(dtype_of(dtype))
        A, X = sj.prune(array, sj.NV24), np.ones((columns, width), dtype_of(dtype))
        assert_array_equal(wide(function(A, X)), A.to_numpy().astype(np.float32) @ wide(X))


@pytest.mark.parametrize("transfer", STRATEGIES)
@pytest.mark.parametrize(
    "fmt", [sj.CSR, sj.CSC, sj.COO(2), sj.BSR(2, 2), sj.DCSR, sj.DIA, sj.ELL(6)], ids=str
)
def test_formats(fmt: sj.Format, transfer: str) -> None:
    rng = np.random.default_rng(8)
    array = np.where(rng.random((36, 30)) < 0.15, rng.integers(1, 5, (36, 30)), 0.0)
    array[:, 6:] = 0
    A, x, X = sj.asarray(array, format=fmt), rng.random(30), rng.random((30, 5))
    function = sj.sparse_jit(KERNELS["spmv"].function, target="cuda", transfer=transfer)
    assert_allclose(function(A, x), array @ x, rtol=1e-12)
    assert_allclose(function(A, X), array @ X, rtol=1e-12)


@pytest.mark.parametrize("transfer", STRATEGIES)
def test_the_same_bits_in_every_run(transfer: str) -> None:
    kernel = KERNELS["column sums"]
    function = sj.sparse_jit(kernel.function, target="cuda", transfer=transfer, deterministic=True)
    (A,) = kernel.make(np.float32, np.int32, 1500)
    A.data = np.random.default_rng(3).random(A.nnz).astype(np.float32)
    results = {function(A).tobytes() for _ in range(5)}
    assert len(results) == 1


@pytest.mark.parametrize(
    "name", ["batch", "batch update", "batch with one factor", "batch of dense matrices"]
)
def test_the_library_computes_batches(name: str) -> None:
    """Results of generated kernels are right too: what is asked is that they were not needed.

    Batches of vectors are left out: not every version of the library gets them right.
    """
    kernel = KERNELS[name]
    function = sj.sparse_jit(kernel.function, target="cuda", library="only")
    for dtype in kernel.dtypes:
        check(kernel, function, dtype, np.int32, 70, dtype)


def test_a_bound_plan() -> None:
    kernel = KERNELS["spmv"]
    A, x = kernel.make(np.float64, np.int32, 500)
    plan = sj.sparse_jit(kernel.function, target="cuda").bind(A=A)
    for factor in (1.0, 2.0, -3.0):
        assert_allclose(plan(x=factor * x), A @ (factor * x), rtol=1e-12)
    B = A.copy()
    B.data *= 2
    plan.update(A=B)
    assert_allclose(plan(x=x), B @ x, rtol=1e-12)
