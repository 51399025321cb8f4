"""Loops written by hand for Numba: parallel over chunks of equal entries."""

import numpy as np
import scipy.sparse as sp

from benchmarks.peers import numba_loops as loops

NAME, REQUIRES = "numba", "numba"


def _c(A):
    return A.indptr, A.indices, A.data


def spmv(a):
    c, x = _c(a.A), a.x
    return lambda: loops.spmv_loops(*c, x, loops.CH)


def spmm(a):
    c, X = _c(a.A), a.X
    return lambda: loops.spmm_loops(*c, X, loops.CH)


def sddmm(a):
    S, U, V = a.S, a.U, a.V
    c = _c(S)
    return lambda: loops.sddmm_loops(*c, U, V, loops.CH), lambda v: sp.csr_matrix(
        (v, S.indices, S.indptr), shape=S.shape
    )


def fused_inner(a):
    c, U, V = _c(a.S), a.U, a.V
    return lambda: loops.inner_loops(*c, U, V, loops.CH)


def fused_attn(a):
    c = _c(a.S)
    return lambda: loops.attn_loops(*c, a.Q, a.K, a.V, loops.CH)


def spgemm(a):
    A, B = _c(a.A), _c(a.B)
    n, sh = a.B.shape[1], (a.A.shape[0], a.B.shape[1])

    def run():
        cp = np.cumsum(loops.spgemm_count_loops(A[0], A[1], B[0], B[1], n, loops.THREADS))
        return (cp, *loops.spgemm_num_loops(*A, *B, n, cp, loops.THREADS))

    return run, lambda r: sp.csr_matrix((r[2], r[1], r[0]), shape=sh)


def masked(a):
    M, A, B, n = _c(a.M), _c(a.A), _c(a.B), a.B.shape[1]
    return (lambda: loops.masked_loops(*M, *A, *B, n, loops.THREADS)), lambda v: sp.csr_matrix(
        (v, a.M.indices, a.M.indptr), shape=a.M.shape
    )


def _merge(a, inter):
    A, B = _c(a.A), _c(a.B)

    def run():
        cp = np.cumsum(loops.union_count_loops(A[0], A[1], B[0], B[1], inter, loops.CH))
        return (cp, *(loops.mul_loops if inter else loops.add_loops)(*A, *B, cp, loops.CH))

    return run, lambda r: sp.csr_matrix((r[2], r[1], r[0]), shape=a.A.shape)


def add(a):
    return _merge(a, False)


def mul(a):
    return _merge(a, True)


def fused_aa(a):
    A, B, x, z = _c(a.A), _c(a.B), a.x, a.z
    return lambda: loops.aa_tail_loops(*A, loops.spmv_loops(*B, x, loops.CH), z, loops.CH)


def _t(T):
    return T.iidx, T.jpos, T.jidx, T.kpos, T.kidx, T.vals


def mttkrp(a):
    T = _t(a.T)
    return lambda: loops.mttkrp_loops(*T, a.U, a.V, a.T.shape[0], loops.CH)


def mttkrp_coo(a):
    T = a.T
    return lambda: loops.mttkrp_coo_loops(
        T.i, T.j, T.k, T.vals, a.U, a.V, T.shape[0], loops.THREADS
    )


def ttv(a):
    T = _t(a.T)
    return lambda: loops.ttv_loops(*T, a.v, a.T.shape[0], a.T.shape[1], loops.CH)


def ttm(a):
    T = _t(a.T)
    return lambda: loops.ttm_loops(*T, a.W, a.T.shape[0], a.T.shape[1], loops.CH)
