"""The same four kernels in each of the three notations: einsum strings, array expressions, indices.

Run it with `python examples/three_front_ends.py`. All notations give the same numbers; the script
ends with an error if they do not.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

Kernel = Callable[..., object]


@sparse_jit
def spmv_einsum(A, x):
    return sj.einsum("ij,j->i", A, x)


@sparse_jit
def spmv_array(A, x):
    return A @ x


@sparse_jit
def spmv_index(A, x):
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = A[i, j] * x[j]
    return y


@sparse_jit
def spmm_einsum(A, X):
    return sj.einsum("ik,kj->ij", A, X)


@sparse_jit
def spmm_array(A, X):
    return A @ X


@sparse_jit
def spmm_index(A, X):
    i, j, k = sj.indices("i j k")
    Y = sj.output()
    Y[i, j] = A[i, k] * X[k, j]
    return Y


@sparse_jit
def sddmm_einsum(S, U, V):
    return sj.einsum("ij,ik,jk->ij", S, U, V)


@sparse_jit
def sddmm_array(S, U, V):
    return S * (U @ V.T)


@sparse_jit
def sddmm_index(S, U, V):
    i, j, k = sj.indices("i j k")
    R = sj.output()
    R[i, j] = S[i, j] * U[i, k] * V[j, k]
    return R


@sparse_jit
def mttkrp_einsum(T, B, C):
    return sj.einsum("ijk,jr,kr->ir", T, B, C)


@sparse_jit
def mttkrp_array(T, B, C):
    return (T[:, :, :, None] * B[:, None, :] * C).sum(axis=(1, 2))


@sparse_jit
def mttkrp_index(T, B, C):
    i, j, k, r = sj.indices("i j k r")
    M = sj.output()
    M[i, r] = T[i, j, k] * B[j, r] * C[k, r]
    return M


def dense(value: object) -> np.ndarray:
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def compare(
    name: str, kernels: tuple[Kernel, ...], operands: tuple[object, ...], expected: np.ndarray
) -> None:
    """Run each notation and compare; raises `AssertionError` where a number differs."""
    for kernel in kernels:
        np.testing.assert_allclose(dense(kernel(*operands)), expected, rtol=1e-12, atol=1e-12)
    print(f"{name:7} {len(kernels)} notations agree with NumPy, shape {expected.shape}")


def main() -> None:
    source = np.random.default_rng(2)
    A = sp.random_array((200, 150), density=0.02, format="csr", rng=source)
    x, X = source.standard_normal(150), source.standard_normal((150, 12))
    U, V = source.standard_normal((200, 5)), source.standard_normal((150, 5))
    dense_T = np.where(source.random((30, 20, 10)) < 0.05, source.standard_normal((30, 20, 10)), 0)
    T = sj.asarray(dense_T, format=sj.CSF(3))
    B, C = source.standard_normal((20, 6)), source.standard_normal((10, 6))

    compare("SpMV", (spmv_einsum, spmv_array, spmv_index), (A, x), A @ x)
    compare("SpMM", (spmm_einsum, spmm_array, spmm_index), (A, X), A @ X)
    sampled = A.toarray() * (U @ V.T)
    compare("SDDMM", (sddmm_einsum, sddmm_array, sddmm_index), (A, U, V), sampled)
    contracted = np.einsum("ijk,jr,kr->ir", dense_T, B, C)
    compare("MTTKRP", (mttkrp_einsum, mttkrp_array, mttkrp_index), (T, B, C), contracted)


if __name__ == "__main__":
    main()
