"""Programs that libraries have kernels for, and programs that look alike and are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import sparsejit.trace as sj
from sparsejit.formats import BSR, COO, CSC, CSR, DCSR, NV24, Batched, Format
from tests.trace.harness import Operand

__all__ = ["ACCEPTED", "REFUSED", "Case"]

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def sparse(
    rows: int, columns: int, fmt: Format = CSR, dtype: Any = np.float64, width: int = 32
) -> Operand:
    """Return a matrix of which every third element is stored."""
    rng = np.random.default_rng(7 * rows + columns)
    values = np.where(rng.random((rows, columns)) < 0.4, rng.integers(1, 9, (rows, columns)), 0)
    return Operand(values.astype(dtype), fmt.with_widths(width, width))


def dense(*shape: int, dtype: Any = np.float64) -> Any:
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def pruned(rows: int, columns: int, dtype: Any) -> Operand:
    values = np.zeros((rows, columns))
    values[:, 0::4], values[:, 3::4] = 2, 3
    return Operand(values.astype(dtype), NV24.with_widths(32, 32))


def product(A: Any, x: Any) -> Any:
    return A @ x


def update(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] += A[i, j] * x[j]


def downdate(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] -= 3.0 * A[i, j] * x[j]


def scaled_update(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] = -0.5 * y[i] + 2.0 * A[i, j] * x[j]


def update_scaled_by(A: Any, x: Any, y: Any, b: Any) -> None:
    i, j = sj.indices("i j")
    y *= b
    y[i] += A[i, j] * x[j]


def update_of_nothing(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y *= 0.0
    y[i] += A[i, j] * x[j]


def update_of_zeros(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[:] = 0.0
    y[i] += A[i, j] * x[j]


def update_by_itself(A: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] = 0.5 * y[i] + A[i, j] * y[j]


def update_read_between(A: Any, x: Any, y: Any) -> Any:
    i, j = sj.indices("i j")
    y *= 0.5
    total = y.sum()
    y[i] += A[i, j] * x[j]
    return total


def scaled(A: Any, x: Any, a: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = a * A[i, j] * x[j] * 2.0
    return y


def of_transpose(A: Any, x: Any) -> Any:
    return A.T @ x


def from_the_right(X: Any, A: Any) -> Any:
    return X @ A


def loops_in_another_order(A: Any, X: Any) -> Any:
    return sj.einsum("kj,ik->ij", X, A)


def result_in_columns(A: Any, X: Any) -> Any:
    return sj.einsum("ik,kj->ji", A, X)


def dense_in_rows(A: Any, X: Any) -> Any:
    return sj.einsum("ik,jk->ij", A, X)


def sampled(S: Any, U: Any, V: Any) -> Any:
    return sj.where_stored(S, U @ V)


def sampled_and_scaled(S: Any, U: Any, V: Any) -> Any:
    return S * (U @ V)


def sampled_in_place(S: Any, U: Any, V: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] += sj.where_stored(S[i, j], 2.0 * U[i, k] * V[k, j])


def sampled_by_rows(S: Any, U: Any, V: Any) -> Any:
    return sj.where_stored(S, sj.einsum("ik,jk->ij", U, V))


def added(A: Any, B: Any) -> Any:
    return A + B


def subtracted(A: Any, B: Any) -> Any:
    return 2.0 * A - B * 3.0


def of_batch(fmt: Format = CSR, dtype: Any = np.float64) -> Operand:
    """Return two matrices that store equally many elements."""
    values = np.zeros((2, 4, 6))
    values[0, [0, 0, 2, 3], [1, 4, 0, 5]] = 1, 2, 3, 4
    values[1, [0, 1, 2, 2], [0, 3, 2, 3]] = 5, 6, 7, 8
    return Operand(values.astype(dtype), Batched(fmt).with_widths(32, 32))


def each_transposed(A: Any, X: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] += A[b, k, i] * X[b, k, j]


def batch_in_the_middle(A: Any, X: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[j, b, i] += A[b, i, k] * X[k, b, j]


def one_updated(A: Any, X: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] += A[i, k] * X[b, k, j]


def each_updated(A: Any, X: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] -= 2.0 * A[b, i, k] * X[b, k, j]


def each_scaled(A: Any, X: Any, C: Any, c: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] = c * C[b, i, j] + A[b, i, k] * X[b, k, j]


def each_vector(A: Any, X: Any) -> Any:
    return sj.einsum("bik,bk->bi", A, X)


def vectors_of_one(A: Any, X: Any) -> Any:
    return sj.einsum("ik,bk->bi", A, X)


HALF, BRAIN = np.float16, ml_dtypes.bfloat16
ROWS, COLUMNS = sparse(4, 6), sparse(4, 6, CSC)

ACCEPTED: dict[str, Case] = {
    "spmv csr": (product, (ROWS, dense(6))),
    "spmv csc": (product, (COLUMNS, dense(6))),
    "spmv coo": (product, (sparse(4, 6, COO(2)), dense(6))),
    "spmv bsr": (product, (sparse(4, 6, BSR(2, 2)), dense(6))),
    "spmv of 64-bit indices": (product, (sparse(4, 6, width=64), dense(6))),
    "spmv of a transpose": (of_transpose, (ROWS, dense(4))),
    "spmv update": (update, (ROWS, dense(6), dense(4))),
    "spmv downdate": (downdate, (ROWS, dense(6), dense(4))),
    "spmv scaled update": (scaled_update, (ROWS, dense(6), dense(4))),
    "spmv update scaled by": (update_scaled_by, (ROWS, dense(6), dense(4), 3.0)),
    "spmv update of zeros": (update_of_zeros, (ROWS, dense(6), dense(4))),
    "spmv update of nothing": (update_of_nothing, (ROWS, dense(6), dense(4))),
    "spmv update by itself": (update_by_itself, (sparse(6, 6), dense(6))),
    "spmv update read between": (update_read_between, (ROWS, dense(6), dense(4))),
    "spmv update float16": (
        scaled_update,
        (sparse(4, 6, dtype=HALF), dense(6, dtype=HALF), dense(4, dtype=HALF)),
    ),
    "spmv scaled": (scaled, (ROWS, dense(6), 3.0)),
    "spmv float16": (product, (sparse(4, 6, dtype=HALF), dense(6, dtype=HALF))),
    "spmv complex64": (product, (sparse(4, 6, dtype=np.complex64), dense(6, dtype=np.complex64))),
    "spmm csr": (product, (ROWS, dense(6, 3))),
    "spmm csc": (product, (COLUMNS, dense(6, 3))),
    "spmm coo": (product, (sparse(4, 6, COO(2)), dense(6, 3))),
    "spmm bsr": (product, (sparse(4, 6, BSR(2, 2)), dense(6, 3))),
    "spmm of a transpose": (of_transpose, (ROWS, dense(4, 3))),
    "spmm from the right": (from_the_right, (dense(3, 4), ROWS)),
    "spmm in another order": (loops_in_another_order, (ROWS, dense(6, 3))),
    "spmm into columns": (result_in_columns, (ROWS, dense(6, 3))),
    "spmm of rows": (dense_in_rows, (ROWS, dense(3, 6))),
    "sddmm csr": (sampled, (ROWS, dense(4, 3), dense(3, 6))),
    "sddmm csc": (sampled, (COLUMNS, dense(4, 3), dense(3, 6))),
    "sddmm scaled": (sampled_and_scaled, (ROWS, dense(4, 3), dense(3, 6))),
    "sddmm in place": (sampled_in_place, (ROWS, dense(4, 3), dense(3, 6))),
    "sddmm of rows": (sampled_by_rows, (ROWS, dense(4, 3), dense(6, 3))),
    "spgemm csr": (product, (ROWS, sparse(6, 5))),
    "spgemm csc": (product, (COLUMNS, sparse(6, 5, CSC))),
    "add csr": (added, (ROWS, sparse(4, 6, CSR))),
    "subtract csc": (subtracted, (COLUMNS, sparse(4, 6, CSC))),
    "2:4 spmm float16": (product, (pruned(4, 8, HALF), dense(8, 3, dtype=HALF))),
    "gemm": (product, (dense(4, 6), dense(6, 3))),
    "gemm of a transpose": (of_transpose, (dense(6, 4), dense(6, 3))),
    "2:4 spmm bfloat16": (product, (pruned(4, 8, BRAIN), dense(8, 3, dtype=BRAIN))),
    "batch csr": (product, (of_batch(), dense(2, 6, 3))),
    "batch csc": (each_updated, (of_batch(CSC), dense(2, 6, 3), dense(2, 4, 3))),
    "batch coo": (each_updated, (of_batch(COO(2)), dense(2, 6, 3), dense(2, 4, 3))),
    "batch csr with one factor": (product, (of_batch(), dense(6, 3))),
    "batch of transposes": (each_transposed, (of_batch(), dense(2, 4, 3), dense(2, 6, 3))),
    "interleaved batch": (
        batch_in_the_middle,
        (of_batch(), dense(6, 2, 3), dense(3, 2, 4)),
    ),
    "batch update": (each_updated, (of_batch(), dense(2, 6, 3), dense(2, 4, 3))),
    "batch scaled": (each_scaled, (of_batch(), dense(2, 6, 3), dense(2, 4, 3), 0.25)),
    "batch complex64": (
        product,
        (of_batch(dtype=np.complex64), dense(2, 6, 3, dtype=np.complex64)),
    ),
    "batch of vectors": (each_vector, (of_batch(), dense(2, 6))),
    "batch with one vector": (product, (of_batch(), dense(6))),
    "batch of dense matrices": (product, (ROWS, dense(2, 6, 3))),
    "batch of dense matrices coo": (
        one_updated,
        (sparse(4, 6, COO(2)), dense(2, 6, 3), dense(2, 4, 3)),
    ),
    "batch of dense matrices by rows": (of_transpose, (COLUMNS, dense(2, 4, 3))),
    "vectors of one matrix are columns": (vectors_of_one, (ROWS, dense(2, 6))),
}


def semiring(A: Any, x: Any) -> Any:
    return sj.einsum("ij,j->i", A, x, semiring="min_plus")


def squared(A: Any, x: Any) -> Any:
    return sj.einsum("ij,ij,j->i", A, A, x)


def diagonal(A: Any, x: Any) -> Any:
    return sj.einsum("ii,i->i", A, x)


def of_exponentials(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = A[i, j] * np.exp(x[j])
    return y


def convolution(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = A[i, j] * x[i + j]
    return y


def times_three(A: Any, X: Any, Y: Any) -> Any:
    return sj.einsum("ij,jk,jk->ik", A, X, Y)


def mttkrp(A: Any, X: Any, Y: Any) -> Any:
    return sj.einsum("ij,jk,ik->ik", A, X, Y)


def multiplied(A: Any, B: Any) -> Any:
    return A * B


def summed_batch(A: Any, X: Any) -> Any:
    return sj.einsum("bik,bkj->ij", A, X)


def ragged_batch() -> Operand:
    """Return two matrices of which one stores more than the other."""
    values = np.zeros((2, 4, 6))
    values[0, 0, 1] = values[1, 2, 3] = values[1, 3, 0] = 2.0
    return Operand(values, Batched(CSR).with_widths(32, 32))


def by_dense_levels() -> Operand:
    """Return a batch whose matrices have positions in common."""
    levels = Format("(b, i, j) -> (b : dense, i : dense, j : compressed)")
    return Operand(of_batch().array, levels.with_widths(32, 32))


def of_batches() -> Operand:
    return Operand(of_batch().array[None], Batched(CSR, 2).with_widths(32, 32))


def of_sparse_factors() -> Operand:
    return Operand(np.swapaxes(of_batch().array, 1, 2), Batched(CSR).with_widths(32, 32))


REFUSED: dict[str, Case] = {
    "a format without a name": (product, (sparse(4, 6, DCSR), dense(6))),
    "oblong blocks": (product, (sparse(4, 6, BSR(2, 3)), dense(6))),
    "a batch with unused slots": (product, (ragged_batch(), dense(6))),
    "a batch by dense levels": (product, (by_dense_levels(), dense(6, 3))),
    "a batch of batches": (product, (of_batches(), dense(6, 3))),
    "a batch of blocks": (product, (of_batch(BSR(2, 2)), dense(2, 6, 3))),
    "a batch of 16-bit floats": (product, (of_batch(dtype=HALF), dense(2, 6, 3, dtype=HALF))),
    "a batch over two loops": (product, (ROWS, dense(2, 2, 6, 3))),
    "a batch of dense products": (product, (dense(2, 4, 6), dense(2, 6, 3))),
    "a sum over the batch": (summed_batch, (of_batch(), dense(2, 6, 3))),
    "a batch of sparse products": (product, (of_batch(), of_sparse_factors())),
    "another fill value": (product, (Operand(np.eye(4, 6), CSR, fill=1), dense(6))),
    "16-bit indices": (product, (sparse(4, 6, width=16), dense(6))),
    "integers": (product, (sparse(4, 6, dtype=np.int64), dense(6, dtype=np.int64))),
    "mixed types": (product, (sparse(4, 6, dtype=np.float32), dense(6))),
    "a semiring": (semiring, (ROWS, dense(6))),
    "an operand twice": (squared, (ROWS, dense(6))),
    "a diagonal": (diagonal, (sparse(4, 4), dense(4))),
    "a computed factor": (of_exponentials, (ROWS, dense(6))),
    "affine indices": (convolution, (ROWS, dense(9))),
    "three factors": (times_three, (ROWS, dense(6, 3), dense(6, 3))),
    "a factor over the result": (mttkrp, (ROWS, dense(6, 3), dense(4, 3))),
    "mixed formats": (product, (ROWS, sparse(6, 5, CSC))),
    "mixed index widths": (product, (ROWS, sparse(6, 5, width=64))),
    "sampled coo": (sampled, (sparse(4, 6, COO(2)), dense(4, 3), dense(3, 6))),
    "a sparse product of blocks": (
        product,
        (sparse(4, 6, BSR(2, 2)), sparse(6, 4, BSR(2, 2))),
    ),
    "a product of elements": (multiplied, (ROWS, sparse(4, 6))),
    "2:4 in float32": (product, (pruned(4, 8, np.float32), dense(8, 3, dtype=np.float32))),
    "2:4 times a vector": (product, (pruned(4, 8, HALF), dense(8, dtype=HALF))),
    "a dense product of integers": (
        product,
        (dense(4, 6, dtype=np.int64), dense(6, 3, dtype=np.int64)),
    ),
    "a dense matrix times a vector": (product, (dense(4, 6), dense(6))),
}
