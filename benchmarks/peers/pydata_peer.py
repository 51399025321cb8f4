"""pydata/sparse with its Numba back end: one thread."""

import numpy as np
import scipy.sparse as sp
import sparse

NAME, REQUIRES = "pydata", "sparse"


def _g(A):
    return sparse.GCXS.from_scipy_sparse(A)


def _sp(r):
    return r.to_scipy_sparse().tocsr() if not sp.issparse(r) else r


def _d(r):
    return r.todense() if hasattr(r, "todense") else r


def spmv(a):
    A, x = _g(a.A), a.x
    return (lambda: A @ x), _d


def spmm(a):
    A, X = _g(a.A), a.X
    return (lambda: A @ X), _d


def spgemm(a):
    A, B = _g(a.A), _g(a.B)
    return (lambda: A @ B), _sp


def add(a):
    A, B = _g(a.A), _g(a.B)
    return (lambda: A + B), _sp


def mul(a):
    A, B = _g(a.A), _g(a.B)
    return (lambda: A * B), _sp


def masked(a):
    if a.A.nnz > 1_000_000:
        raise NotImplementedError(
            "left out of the run to save time: forms the whole product, about 10 s at 40 M entries"
        )
    M, A, B = _g(a.M), _g(a.A), _g(a.B)
    return (lambda: M * (A @ B)), _sp


def sddmm(a):
    if a.S.shape[0] > 5000:
        raise NotImplementedError("would build the dense product")
    S, U, V = sparse.COO.from_scipy_sparse(a.S), a.U, a.V
    return (lambda: S * (U @ V.T)), _sp


def fused_aa(a):
    A, B, x, z = _g(a.A), _g(a.B), a.x, a.z
    return (lambda: A @ (B @ x) + 2 * z), _d


def fused_inner(a):
    S, U, V = _g(a.S), a.U, a.V
    return lambda: np.vdot(U, S @ V)


def _coo(T):
    return sparse.COO(
        np.array([T.i, T.j, T.k]), T.vals, shape=T.shape, has_duplicates=False, sorted=True
    )


def mttkrp(a):
    T, U, V = _coo(a.T), a.U, a.V

    def run():
        Y = sparse.tensordot(T, V, axes=([2], [0]))
        return np.einsum("ijr,jr->ir", _d(Y), U)

    return run


def ttv(a):
    T, v = _coo(a.T), a.v
    return (lambda: sparse.tensordot(T, v, axes=([2], [0]))), _d


def ttm(a):
    T, W = _coo(a.T), a.W
    return (lambda: sparse.tensordot(T, W, axes=([2], [0]))), _d
