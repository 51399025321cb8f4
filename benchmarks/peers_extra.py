"""sparsejit as one more contender in a benchmark whose contenders are files like this one.

A contender has a ``NAME``, says what it ``REQUIRES``, and has a function for each kernel that it
can do. The function gets the operands (SciPy's CSR arrays, NumPy arrays, tensors as coordinates
and fibers) and returns what is timed, or that and a function which makes an array of its result.
"""

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp

import sparsejit as sj

NAME, REQUIRES = "sparsejit", "sparsejit"

Run = Callable[[], Any]


@sj.sparse_jit
def product(A, x):
    return A @ x


@sj.sparse_jit
def sampled(S, U, V):
    return S * (U @ V.T)


@sj.sparse_jit
def attention(S, Q, K, V):
    return sj.softmax(S * (Q @ K.T), axis=1) @ V


@sj.sparse_jit
def total(A, B):
    return A + B


@sj.sparse_jit
def elementwise(A, B):
    return A * B


@sj.sparse_jit
def masked_product(M, A, B):
    return M * (A @ B)


@sj.sparse_jit
def two_steps(A, B, x, z):
    return A @ (B @ x) + 2 * z


@sj.sparse_jit
def weighted_inner(S, U, V):
    return sj.einsum("ij,ir,jr->", S, U, V)


@sj.sparse_jit
def mttkrp_formula(X, B, C):
    return sj.einsum("ijk,jr,kr->ir", X, B, C)


# Nearly every (i, j) of the tensors has an entry, so the results are dense, as those of the peers.
@sj.sparse_jit(output=sj.Dense(2))
def ttv_formula(X, v):
    return sj.einsum("ijk,k->ij", X, v)


@sj.sparse_jit(output=sj.Dense(3))
def ttm_formula(X, W):
    return sj.einsum("ijk,kr->ijr", X, W)


def fibers(T: Any) -> Any:
    """Return a tensor as ``CSF(3)`` over its own arrays."""
    positions, coordinates = (T.ipos, T.jpos, T.kpos), (T.iidx, T.jidx, T.kidx)
    return sj.SparseTensor(sj.CSF(3), T.shape, positions, coordinates, T.vals)


def entries(T: Any) -> Any:
    """Return a tensor as ``COO(3)``."""
    return sj.from_coo((T.i, T.j, T.k), T.vals, T.shape, format=sj.COO(3))


def dense(result: Any) -> Any:
    """Return a result as a NumPy array."""
    if isinstance(result, sj.SparseTensor):
        return result.to_numpy()
    return result.toarray() if sp.issparse(result) else result


def spmv(a: Any) -> Run:
    A, x = a.A, a.x
    return lambda: product(A, x)


def spmm(a: Any) -> Run:
    A, X = a.A, a.X
    return lambda: product(A, X)


def sddmm(a: Any) -> Run:
    S, U, V = a.S, a.U, a.V
    return lambda: sampled(S, U, V)


def fused_attn(a: Any) -> Run:
    S, Q, K, V = a.S, a.Q, a.K, a.V
    return lambda: attention(S, Q, K, V)


def fused_inner(a: Any) -> Run:
    S, U, V = a.S, a.U, a.V
    return lambda: weighted_inner(S, U, V)


def fused_aa(a: Any) -> Run:
    A, B, x, z = a.A, a.B, a.x, a.z
    return lambda: two_steps(A, B, x, z)


def spgemm(a: Any) -> Run:
    A, B = a.A, a.B
    return lambda: product(A, B)


def add(a: Any) -> Run:
    A, B = a.A, a.B
    return lambda: total(A, B)


def mul(a: Any) -> Run:
    A, B = a.A, a.B
    return lambda: elementwise(A, B)


def masked(a: Any) -> Run:
    M, A, B = a.M, a.A, a.B
    return lambda: masked_product(M, A, B)


def mttkrp(a: Any) -> tuple[Run, Callable[[Any], Any]]:
    T, U, V = fibers(a.T), a.U, a.V
    return lambda: mttkrp_formula(T, U, V), dense


def mttkrp_coo(a: Any) -> tuple[Run, Callable[[Any], Any]]:
    T, U, V = entries(a.T), a.U, a.V
    return lambda: mttkrp_formula(T, U, V), dense


def ttv(a: Any) -> tuple[Run, Callable[[Any], Any]]:
    T, v = fibers(a.T), a.v
    return lambda: ttv_formula(T, v), dense


def ttm(a: Any) -> tuple[Run, Callable[[Any], Any]]:
    T, W = fibers(a.T), a.W
    return lambda: ttm_formula(T, W), dense
