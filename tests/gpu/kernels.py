"""Kernels for a device: a function, operands of any dtype and index width, and what SciPy gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse as sp

import sparsejit as sj

__all__ = ["HALVES", "KERNELS", "REAL", "Kernel", "dense", "dtype_of", "matrix"]

Operands = tuple[Any, ...]
Make = Callable[[Any, Any, int], Operands]

REAL = ("float32", "float64")
FLOATS = (*REAL, "complex64", "complex128")
HALVES = ("float16", "bfloat16")
INTEGERS = ("int32", "int64")
NUMBERS = (*FLOATS, *HALVES, *INTEGERS)


@dataclass(frozen=True)
class Kernel:
    """`make(dtype, index dtype, size)` gives operands; `expected` the results, updates last."""

    function: Callable[..., Any]
    make: Make
    expected: Callable[..., Any]
    dtypes: tuple[str, ...] = FLOATS
    updates: int | None = None


def dtype_of(name: str) -> Any:
    """Return a dtype, also one that NumPy does not know."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def values(rng: np.random.Generator, count: int, dtype: Any) -> Any:
    """Return small integers as values: most sums of them are exact in any order."""
    found = rng.integers(1, 4, count)
    if np.dtype(dtype).kind == "c":
        return (found + 1j * rng.integers(0, 3, count)).astype(dtype)
    return found.astype(dtype)


def matrix(rows: int, columns: int, dtype: Any, index: Any, seed: int = 1) -> Any:
    """Return a CSR matrix with long, short and empty rows; of bfloat16 it is one of our own."""
    rng = np.random.default_rng(seed)
    weights = rng.pareto(1.2, rows) + 0.05
    counts = np.minimum((weights * 3).astype(int), columns // 2)
    counts[:: max(rows // 7, 1)] = 0
    places = [np.sort(rng.choice(columns, count, replace=False)) for count in counts]
    indices = np.concatenate(places) if places else np.empty(0)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    entries = values(rng, indices.size, dtype)
    if np.dtype(dtype) == dtype_of("bfloat16"):
        width = np.dtype(index).itemsize * 8
        coordinates = np.repeat(np.arange(rows), counts), indices
        return sj.from_coo(coordinates, entries, (rows, columns), sj.CSR.with_widths(width, width))
    made = sp.csr_array((entries, indices.astype(index), pointers.astype(index)), (rows, columns))
    made.indices, made.indptr = indices.astype(index), pointers.astype(index)
    return made


def dense(*shape: int, dtype: Any, seed: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    return values(rng, int(np.prod(shape)), dtype).reshape(shape)


def batch(rows: int, columns: int, dtype: Any, index: Any, fmt: sj.Format = sj.CSR) -> Any:
    """Return three matrices with equally many entries, in rows of different lengths."""
    rng = np.random.default_rng(9)
    count = 2 * rows + 1
    places = np.concatenate(
        [k * rows * columns + rng.choice(rows * columns, count, replace=False) for k in range(3)]
    )
    shape = (3, rows, columns)
    width = 8 * np.dtype(index).itemsize
    coordinates = np.unravel_index(np.sort(places), shape)
    made = sj.Batched(fmt).with_widths(width, width)
    return sj.from_coo(coordinates, values(rng, places.size, dtype), shape, made)


def tensor(extent: int, dtype: Any, index: Any, seed: int = 3) -> Any:
    width = np.dtype(index).itemsize * 8
    rng = np.random.default_rng(seed)
    places = np.unique(rng.integers(0, extent**3, 20 * extent))
    coordinates = np.unravel_index(places, (extent,) * 3)
    entries = values(rng, places.size, dtype)
    return sj.from_coo(coordinates, entries, (extent,) * 3, sj.CSF(3).with_widths(width, width))


# ---------------------------------------------------------------- functions


def spmv(A: Any, x: Any) -> Any:
    return A @ x


def spmv_update(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] += A[i, j] * x[j]


def spmv_scaled_update(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] = -2.0 * y[i] + A[i, j] * x[j]


def spmv_of_transpose(A: Any, x: Any) -> Any:
    return A.T @ x


def each_vector(A: Any, X: Any) -> Any:
    return sj.einsum("bik,bk->bi", A, X)


def each_transposed(A: Any, X: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] += A[b, k, i] * X[b, k, j]


def each_updated(A: Any, X: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] += A[b, i, k] * X[b, k, j]


def sampled(S: Any, U: Any, V: Any) -> Any:
    return sj.where_stored(S, U @ V)


def sampled_in_place(S: Any, U: Any, V: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] += sj.where_stored(S[i, j], U[i, k] * V[k, j])


def added(A: Any, B: Any) -> Any:
    return A + B


def mttkrp(X: Any, B: Any, C: Any) -> Any:
    return sj.einsum("ijk,jr,kr->ir", X, B, C)


def times_vector(X: Any, v: Any) -> Any:
    return sj.einsum("ijk,k->ij", X, v)


def row_sums(A: Any) -> Any:
    return A.sum(axis=1)


def column_sums(A: Any) -> Any:
    return A.sum(axis=0)


def layer(A: Any, X: Any, W: Any) -> Any:
    return sj.maximum(A @ (X @ W), 0)


def attention(A: Any, Q: Any, K: Any) -> Any:
    return sj.softmax(sj.where_stored(A, Q @ K), axis=1) @ K.T


def attention_by_hand(A: Any, Q: Any, K: Any) -> Any:
    scores = np.where(A.toarray() != 0, Q @ K, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
    return np.nan_to_num(weights) @ K.T


def conjugate_gradients(A: Any, b: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        x, r, p = state
        q = A @ p
        rr = (r * r).sum()
        alpha = rr / (p * q).sum()
        after = r - alpha * q
        return x + alpha * p, after, after + (after * after).sum() / rr * p

    return sj.fori_loop(0, 12, step, (0 * b, b, b))[0]


def gradients_by_hand(A: Any, b: Any) -> Any:
    x, r, p = 0 * b, b, b
    for _ in range(12):
        q = A @ p
        rr = r @ r
        alpha = rr / (p @ q)
        x, after = x + alpha * p, r - alpha * q
        r, p = after, after + (after @ after) / rr * p
    return x


def laplacian(side: int, dtype: Any, index: Any) -> Any:
    one = sp.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    made = sp.csr_array(sp.kron(sp.eye_array(side), one) + sp.kron(one, sp.eye_array(side)))
    made = made.astype(dtype)
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


# ---------------------------------------------------------------- the table


def _spmv(dtype: Any, index: Any, size: int) -> Operands:
    return matrix(size, size + 9, dtype, index), dense(size + 9, dtype=dtype)


def _update(dtype: Any, index: Any, size: int) -> Operands:
    return (*_spmv(dtype, index, size), dense(size, dtype=dtype, seed=5))


def _of_transpose(dtype: Any, index: Any, size: int) -> Operands:
    return matrix(size, size + 9, dtype, index), dense(size, dtype=dtype)


def _spmm(dtype: Any, index: Any, size: int) -> Operands:
    return matrix(size, size + 9, dtype, index), dense(size + 9, 24, dtype=dtype)


def _batch(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 200)
    return batch(extent, extent + 9, dtype, index), dense(3, extent + 9, 12, dtype=dtype)


def _batch_update(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 200)
    A = batch(extent, extent + 9, dtype, index, sj.COO(2))
    return A, dense(3, extent + 9, 12, dtype=dtype), dense(3, extent, 12, dtype=dtype, seed=5)


def _batch_of_transposes(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 200)
    A = batch(extent, extent + 9, dtype, index)
    return A, dense(3, extent, 12, dtype=dtype), dense(3, extent + 9, 12, dtype=dtype, seed=5)


def _batch_with_one(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 200)
    return batch(extent, extent + 9, dtype, index), dense(extent + 9, 12, dtype=dtype)


def _batch_of_vectors(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 200)
    return batch(extent, extent + 9, dtype, index), dense(3, extent + 9, dtype=dtype)


def _batch_of_dense(dtype: Any, index: Any, size: int) -> Operands:
    return matrix(size, size + 9, dtype, index), dense(3, size + 9, 12, dtype=dtype)


def _sampled(dtype: Any, index: Any, size: int) -> Operands:
    left, right = dense(size, 16, dtype=dtype), dense(16, size + 9, dtype=dtype, seed=4)
    return matrix(size, size + 9, dtype, index), left, right


def _pair(dtype: Any, index: Any, size: int) -> Operands:
    return matrix(size, size, dtype, index), matrix(size, size, dtype, index, seed=6)


def _tensor(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 60)
    factors = dense(extent, 8, dtype=dtype), dense(extent, 8, dtype=dtype, seed=4)
    return (tensor(extent, dtype, index), *factors)


def _vector_of_tensor(dtype: Any, index: Any, size: int) -> Operands:
    extent = min(size, 60)
    return tensor(extent, dtype, index), dense(extent, dtype=dtype)


def _alone(dtype: Any, index: Any, size: int) -> Operands:
    return (matrix(size, size + 9, dtype, index),)


def _layer(dtype: Any, index: Any, size: int) -> Operands:
    inputs = dense(size, 20, dtype=dtype), dense(20, 6, dtype=dtype, seed=4)
    return (matrix(size, size, dtype, index), *inputs)


def _attention(dtype: Any, index: Any, size: int) -> Operands:
    queries = dense(size, 4, dtype=dtype) / 4, dense(4, size, dtype=dtype, seed=4) / 4
    return (matrix(size, size, dtype, index), *(part.astype(dtype) for part in queries))


def _system(dtype: Any, index: Any, size: int) -> Operands:
    side = max(int(size**0.5), 2)
    return laplacian(side, dtype, index), dense(side * side, dtype=dtype)


KERNELS: dict[str, Kernel] = {
    "spmv": Kernel(spmv, _spmv, spmv, (*NUMBERS, "bool")),
    "spmv update": Kernel(
        spmv_update, _update, lambda A, x, y: y + A @ x, (*FLOATS, "float16"), updates=2
    ),
    "spmv scaled update": Kernel(
        spmv_scaled_update, _update, lambda A, x, y: A @ x - y - y, FLOATS, updates=2
    ),
    "spmv of a transpose": Kernel(
        spmv_of_transpose, _of_transpose, spmv_of_transpose, (*FLOATS, "float16", "int32")
    ),
    "spmm": Kernel(spmv, _spmm, spmv, NUMBERS),
    "batch": Kernel(spmv, _batch, lambda A, X: A @ X),
    "batch update": Kernel(each_updated, _batch_update, lambda A, X, C: C + A @ X, updates=2),
    "batch of transposes": Kernel(
        each_transposed,
        _batch_of_transposes,
        lambda A, X, C: C + np.swapaxes(A, 1, 2) @ X,
        updates=2,
    ),
    "batch with one factor": Kernel(spmv, _batch_with_one, lambda A, X: A @ X),
    "batch of vectors": Kernel(
        each_vector, _batch_of_vectors, lambda A, X: (A @ X[..., None])[..., 0]
    ),
    "batch of dense matrices": Kernel(
        spmv, _batch_of_dense, lambda A, X: np.stack([A @ one for one in X])
    ),
    "sddmm": Kernel(sampled, _sampled, lambda S, U, V: (S != 0) * (U @ V), (*NUMBERS,)),
    "sddmm in place": Kernel(
        sampled_in_place, _sampled, lambda S, U, V: S + (S != 0) * (U @ V), updates=0
    ),
    "spgemm": Kernel(spmv, _pair, spmv, (*FLOATS, "float16", *INTEGERS)),
    "sparse add": Kernel(added, _pair, added, (*FLOATS, "float16", *INTEGERS)),
    "mttkrp": Kernel(mttkrp, _tensor, lambda X, B, C: np.einsum("ijk,jr,kr->ir", X, B, C), NUMBERS),
    "ttv": Kernel(
        times_vector, _vector_of_tensor, lambda X, v: np.einsum("ijk,k->ij", X, v), NUMBERS
    ),
    "row sums": Kernel(row_sums, _alone, lambda A: A.toarray().sum(axis=1), (*NUMBERS, "bool")),
    "column sums": Kernel(
        column_sums, _alone, lambda A: A.toarray().sum(axis=0), (*FLOATS, "float16", "int64")
    ),
    "graph layer": Kernel(layer, _layer, lambda A, X, W: np.maximum(A @ (X @ W), 0), REAL),
    "attention": Kernel(attention, _attention, attention_by_hand, REAL),
    "conjugate gradients": Kernel(conjugate_gradients, _system, gradients_by_hand, REAL),
}
