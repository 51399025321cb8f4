"""oneMKL through sparse_dot_mkl."""

import numpy as np
import scipy.sparse as sp
from sparse_dot_mkl import dot_product_mkl as dot

NAME, REQUIRES = "mkl", "sparse_dot_mkl"


def spmv(a):
    A, x = a.A, a.x
    return lambda: dot(A, x)


def spmm(a):
    A, X = a.A, a.X
    return lambda: dot(A, X)


def spgemm(a):
    A, B = a.A, a.B
    return lambda: dot(A, B)


def masked(a):
    M, A, B = a.M, a.A, a.B
    return lambda: M.multiply(dot(A, B)).tocsr()


def fused_aa(a):
    A, B, x, z = a.A, a.B, a.x, a.z
    return lambda: dot(A, dot(B, x)) + 2 * z


def fused_inner(a):
    S, U, V = a.S, a.U, a.V
    return lambda: np.vdot(U, dot(S, V))


def _unf(T):
    I, J, K = T.shape
    ptr = (
        np.bincount(T.i.astype(np.int64) * J + T.j + 1, minlength=I * J + 1)
        .cumsum()
        .astype(np.int32)
    )
    return sp.csr_matrix((T.vals, T.k, ptr), shape=(I * J, K))


def mttkrp(a):
    M, U, V = _unf(a.T), a.U, a.V
    I, J, _ = a.T.shape
    return lambda: np.einsum("ijr,jr->ir", dot(M, V).reshape(I, J, -1), U)


def ttv(a):
    M, v = _unf(a.T), a.v
    I, J, _ = a.T.shape
    return lambda: dot(M, v).reshape(I, J)


def ttm(a):
    M, W = _unf(a.T), a.W
    I, J, _ = a.T.shape
    return lambda: dot(M, W).reshape(I, J, -1)
