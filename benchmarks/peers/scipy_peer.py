"""SciPy, and the NumPy idioms that its users write where it has no function: one thread."""

import numpy as np
import scipy.sparse as sp

NAME, REQUIRES = "scipy", "scipy"


def spmv(a):
    A, x = a.A, a.x
    return lambda: A @ x


def spmm(a):
    A, X = a.A, a.X
    return lambda: A @ X


def _vals(S, row, U, V):
    out = np.empty(S.nnz, S.dtype)
    for s in range(0, S.nnz, 1 << 15):
        e = min(S.nnz, s + (1 << 15))
        out[s:e] = np.einsum("ij,ij->i", U[row[s:e]], V[S.indices[s:e]])
    return out * S.data


def _rows(S):
    return np.repeat(np.arange(S.shape[0], dtype=np.int32), np.diff(S.indptr))


def sddmm(a):
    S, U, V = a.S, a.U, a.V
    return lambda: sp.csr_matrix((_vals(S, _rows(S), U, V), S.indices, S.indptr), shape=S.shape)


def fused_inner(a):
    S, U, V = a.S, a.U, a.V
    return lambda: np.vdot(U, S @ V)  # algebraic rewrite: <U, S V>


def fused_attn(a):
    S, Q, K, V = a.S, a.Q, a.K, a.V

    def run():
        row = _rows(S)
        e = _vals(S, row, Q, K)
        ne = np.flatnonzero(np.diff(S.indptr))
        st = S.indptr[ne]
        mx = np.zeros(S.shape[0], S.dtype)
        mx[ne] = np.maximum.reduceat(e, st)
        p = np.exp(e - mx[row])
        s = np.ones(S.shape[0], S.dtype)
        s[ne] = np.add.reduceat(p, st)
        return sp.csr_matrix((p / s[row], S.indices, S.indptr), shape=S.shape) @ V

    return run


def spgemm(a):
    A, B = a.A, a.B
    return lambda: A @ B


def add(a):
    A, B = a.A, a.B
    return lambda: A + B


def mul(a):
    A, B = a.A, a.B
    return lambda: A.multiply(B)


def masked(a):
    M, A, B = a.M, a.A, a.B
    return lambda: M.multiply(A @ B).tocsr()


def fused_aa(a):
    A, B, x, z = a.A, a.B, a.x, a.z
    return lambda: A @ (B @ x) + 2 * z


def _unf(T):
    I, J, K = T.shape
    ptr = np.zeros(I * J + 1, np.int32)
    np.add.at(ptr, T.i.astype(np.int64) * J + T.j + 1, 1)
    return sp.csr_matrix((T.vals, T.k, np.cumsum(ptr, dtype=np.int32)), shape=(I * J, K))


def mttkrp(a):
    M, U, V = _unf(a.T), a.U, a.V
    I, J, _ = a.T.shape
    return lambda: np.einsum("ijr,jr->ir", (M @ V).reshape(I, J, -1), U)


def mttkrp_coo(a):
    T, U, V = a.T, a.U, a.V

    def run():
        P = T.vals[:, None] * U[T.j] * V[T.k]
        G = sp.csr_matrix(
            (np.ones(T.nnz, P.dtype), T.i, np.arange(T.nnz + 1, dtype=np.int32)),
            shape=(T.nnz, T.shape[0]),
        )
        return G.T @ P

    return run


def ttv(a):
    M, v = _unf(a.T), a.v
    I, J, _ = a.T.shape
    return lambda: (M @ v).reshape(I, J)


def ttm(a):
    M, W = _unf(a.T), a.W
    I, J, _ = a.T.shape
    return lambda: (M @ W).reshape(I, J, -1)
