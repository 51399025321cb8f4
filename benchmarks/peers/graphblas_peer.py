"""SuiteSparse:GraphBLAS through python-graphblas, blocking, so that times are honest."""

import os

import graphblas as gb
import numpy as np

gb.init("suitesparse", blocking=True)

NAME, REQUIRES = "graphblas", "graphblas"
THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
gb.ss.config["nthreads"] = THREADS
pt = gb.semiring.plus_times


def _m(A):
    return gb.io.from_scipy_sparse(A)


def _sp(C):
    return gb.io.to_scipy_sparse(C, "csr")


def _dm(Y):
    return Y.to_dense(fill_value=0)


def spmv(a):
    A, x = _m(a.A), gb.Vector.from_dense(a.x)
    return (lambda: A.mxv(x, pt).new()), _dm


def spmm(a):
    A, X = _m(a.A), gb.Matrix.from_dense(a.X)
    return (lambda: A.mxm(X, pt).new()), _dm


def sddmm(a):
    S, U, V = _m(a.S), gb.Matrix.from_dense(a.U), gb.Matrix.from_dense(a.V)

    def run():
        D = U.mxm(V.T, pt).new(mask=S.S)
        return D.ewise_mult(S, gb.binary.times).new()

    return run, _sp


def fused_inner(a):
    S, U, V = _m(a.S), gb.Matrix.from_dense(a.U), gb.Matrix.from_dense(a.V)

    def run():
        Y = S.mxm(V, pt).new()
        return Y.ewise_mult(U, gb.binary.times).reduce_scalar(gb.monoid.plus).new().value

    return run


def fused_attn(a):
    S, Q, K, V = (
        _m(a.S),
        gb.Matrix.from_dense(a.Q),
        gb.Matrix.from_dense(a.K),
        gb.Matrix.from_dense(a.V),
    )

    def run():
        E = Q.mxm(K.T, pt).new(mask=S.S)
        E << E.ewise_mult(S, gb.binary.times)
        mx = E.reduce_rowwise(gb.monoid.max).new().diag()
        E << mx.mxm(E, gb.semiring.plus_rminus)
        E << gb.unary.exp(E)
        s = E.reduce_rowwise(gb.monoid.plus).new()
        s << gb.unary.minv(s)
        Y = E.mxm(V, pt).new()
        return s.diag().mxm(Y, pt).new()

    return run, _dm


def spgemm(a):
    A, B = _m(a.A), _m(a.B)
    return (lambda: A.mxm(B, pt).new()), _sp


def add(a):
    A, B = _m(a.A), _m(a.B)
    return (lambda: A.ewise_add(B, gb.binary.plus).new()), _sp


def mul(a):
    A, B = _m(a.A), _m(a.B)
    return (lambda: A.ewise_mult(B, gb.binary.times).new()), _sp


def masked(a):
    M, A, B = _m(a.M), _m(a.A), _m(a.B)

    def run():
        C = A.mxm(B, pt).new(mask=M.S)
        return C.ewise_mult(M, gb.binary.times).new()

    return run, _sp


def fused_aa(a):
    A, B, x, z = _m(a.A), _m(a.B), gb.Vector.from_dense(a.x), gb.Vector.from_dense(a.z)

    def run():
        y = A.mxv(B.mxv(x, pt).new(), pt).new()
        return y.ewise_add(z.apply(gb.binary.times, right=2.0).new(), gb.binary.plus).new()

    return run, _dm


def _unf(T):
    I, J, K = T.shape
    ptr = np.bincount(T.i.astype(np.int64) * J + T.j + 1, minlength=I * J + 1).cumsum()
    return gb.Matrix.from_csr(
        ptr.astype(np.int64), T.k.astype(np.int64), T.vals, nrows=I * J, ncols=K
    )


def ttv(a):
    M, v = _unf(a.T), gb.Vector.from_dense(a.v)
    I, J, _ = a.T.shape
    return (lambda: M.mxv(v, pt).new()), lambda y: _dm(y).reshape(I, J)


def ttm(a):
    M, W = _unf(a.T), gb.Matrix.from_dense(a.W)
    I, J, _ = a.T.shape
    return (lambda: M.mxm(W, pt).new()), lambda y: _dm(y).reshape(I, J, -1)
