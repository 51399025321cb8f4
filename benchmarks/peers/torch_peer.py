"""PyTorch on the CPU: sparse CSR and COO tensors."""

import os
import warnings

import numpy as np
import scipy.sparse as sp
import torch

warnings.filterwarnings("ignore")
NAME, REQUIRES = "torch", "torch"
THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
torch.set_num_threads(THREADS)
t = torch.from_numpy


def _csr(A):
    return torch.sparse_csr_tensor(t(A.indptr), t(A.indices), t(A.data), size=A.shape)


def _np(y):
    return y.numpy()


def _sp(c):
    if c.layout == torch.sparse_coo:
        c = c.coalesce()
        i = c.indices().numpy()
        return sp.csr_matrix((c.values().numpy(), (i[0], i[1])), shape=tuple(c.shape))
    return sp.csr_matrix(
        (c.values().numpy(), c.col_indices().numpy(), c.crow_indices().numpy()),
        shape=tuple(c.shape),
    )


def spmv(a):
    A, x = _csr(a.A), t(a.x)
    return (lambda: A @ x), _np


def spmm(a):
    A, X = _csr(a.A), t(a.X)
    return (lambda: A @ X), _np


def _rows(S):
    return torch.repeat_interleave(torch.arange(S.shape[0]), t(np.diff(S.indptr)).long())


def sddmm(a):
    S, U, Vt = _csr(a.S), t(a.U), t(a.V).t()
    Z = torch.sparse_csr_tensor(
        S.crow_indices(), S.col_indices(), torch.zeros_like(S.values()), size=S.shape
    )

    def run():
        D = torch.sparse.sampled_addmm(Z, U, Vt, beta=0.0)
        return torch.sparse_csr_tensor(
            D.crow_indices(), D.col_indices(), D.values() * S.values(), size=S.shape
        )

    return run, _sp


def fused_inner(a):
    S, U, V = _csr(a.S), t(a.U), t(a.V)
    return (lambda: torch.sum(U * (S @ V))), lambda s: s.item()


def fused_attn(a):
    S, Q, Kt, V = _csr(a.S), t(a.Q), t(a.K).t(), t(a.V)
    Z = torch.sparse_csr_tensor(
        S.crow_indices(), S.col_indices(), torch.zeros_like(S.values()), size=S.shape
    )
    m = S.shape[0]
    row = _rows(a.S)

    def run():
        e = torch.sparse.sampled_addmm(Z, Q, Kt, beta=0.0).values() * S.values()
        mx = torch.full((m,), -torch.inf, dtype=e.dtype).scatter_reduce_(0, row, e, "amax")
        p = torch.exp(e - mx[row])
        s = torch.zeros(m, dtype=e.dtype).index_add_(0, row, p)
        P = torch.sparse_csr_tensor(S.crow_indices(), S.col_indices(), p / s[row], size=S.shape)
        return P @ V

    return run, _np


def spgemm(a):
    A, B = _csr(a.A), _csr(a.B)
    return (lambda: A @ B), _sp


def add(a):
    A, B = _csr(a.A), _csr(a.B)
    return (lambda: A + B), _sp


def mul(a):
    A, B = _csr(a.A).to_sparse_coo().coalesce(), _csr(a.B).to_sparse_coo().coalesce()
    return (lambda: A * B), _sp


def masked(a):
    M, A, B = _csr(a.M).to_sparse_coo().coalesce(), _csr(a.A), _csr(a.B)

    def run():
        # A @ B has unsorted columns, and to_sparse_coo() still calls it coalesced: sort first, or
        # the product with M is wrong.
        C = (A @ B).to_sparse_coo()
        return M * torch.sparse_coo_tensor(C.indices(), C.values(), C.shape).coalesce()

    return run, _sp


def fused_aa(a):
    A, B, x, z = _csr(a.A), _csr(a.B), t(a.x), t(a.z)
    return (lambda: A @ (B @ x) + 2 * z), _np


def _unf(T):
    I, J, K = T.shape
    ptr = (
        np.bincount(T.i.astype(np.int64) * J + T.j + 1, minlength=I * J + 1)
        .cumsum()
        .astype(np.int32)
    )
    return torch.sparse_csr_tensor(t(ptr), t(T.k), t(T.vals), size=(I * J, K))


def mttkrp(a):
    M, U, V = _unf(a.T), t(a.U), t(a.V)
    I, J, _ = a.T.shape
    return (lambda: ((M @ V).view(I, J, -1) * U).sum(1)), _np


def mttkrp_coo(a):
    T, U, V = a.T, t(a.U), t(a.V)
    i, j, k, v = t(T.i), t(T.j), t(T.k), t(T.vals)
    I, R = T.shape[0], a.U.shape[1]
    return (
        lambda: torch.zeros(I, R, dtype=v.dtype).index_add_(0, i, v[:, None] * U[j] * V[k])
    ), _np


def ttv(a):
    M, v = _unf(a.T), t(a.v)
    I, J, _ = a.T.shape
    return (lambda: (M @ v).view(I, J)), _np


def ttm(a):
    M, W = _unf(a.T), t(a.W)
    I, J, _ = a.T.shape
    return (lambda: (M @ W).view(I, J, -1)), _np
