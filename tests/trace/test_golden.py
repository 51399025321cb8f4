"""The tensor IR of named programs, pinned; one formula gives one text, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

import sparsejit.trace as sj
from sparsejit.formats import BSR, COO, CSF, CSR
from sparsejit.ir.printing import print_tensor
from tests.trace.harness import Operand, text, traced

A, B, S = Operand(np.eye(4, 3), CSR), Operand(np.eye(3, 5), CSR), Operand(np.eye(4, 5), CSR)
P, Q = np.ones((4, 2)), np.ones((2, 5))
D, E = np.ones((4, 3)), np.ones((3, 5))
x, y, z = np.ones(3), np.ones(4), np.ones(9)
X = Operand(np.ones((4, 3, 2)), CSF(3))


def spmv_einsum(A: Any, x: Any) -> Any:
    return sj.einsum("ij,j->i", A, x)


def spmv_array(A: Any, x: Any) -> Any:
    return A @ x


def spmv_index(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = A[i, j] * x[j]
    return y


def spgemm_einsum(A: Any, B: Any) -> Any:
    return np.einsum("ij,jk->ik", A, B)


def spgemm_array(A: Any, B: Any) -> Any:
    return A @ B


def spgemm_index(A: Any, B: Any) -> Any:
    i, j, k = sj.indices("i j k")
    C = sj.output()
    C[i, k] = A[i, j] * B[j, k]
    return C


def multiply_einsum(A: Any, D: Any) -> Any:
    return sj.einsum("ij,ij->ij", A, D)


def multiply_array(A: Any, D: Any) -> Any:
    return A * D


def multiply_index(A: Any, D: Any) -> Any:
    i, j = sj.indices("i j")
    C = sj.output()
    C[i, j] = A[i, j] * D[i, j]
    return C


def sddmm_einsum(S: Any, P: Any, Q: Any) -> Any:
    return sj.einsum("ij,ik,kj->ij", S, P, Q)


def sddmm_index(S: Any, P: Any, Q: Any) -> Any:
    i, j, k = sj.indices("i j k")
    C = sj.output()
    C[i, j] = S[i, j] * P[i, k] * Q[k, j]
    return C


def sum_array(A: Any) -> Any:
    return A.sum()


def sum_einsum(A: Any) -> Any:
    return sj.einsum("ij->", A)


def sum_index(A: Any) -> Any:
    i, j = sj.indices("i j")
    return sj.sum(A[i, j], over=(i, j))


def mttkrp_einsum(X: Any, B: Any, C: Any) -> Any:
    return sj.einsum("ijk,jr,kr->ir", X, B, C)


def mttkrp_index(X: Any, B: Any, C: Any) -> Any:
    i, j, k, r = sj.indices("i j k r")
    M = sj.output()
    M[i, r] = X[i, j, k] * B[j, r] * C[k, r]
    return M


SAME: dict[str, tuple[tuple[Callable[..., Any], ...], tuple[Any, ...]]] = {
    "spmv": ((spmv_einsum, spmv_array, spmv_index), (A, x)),
    "spmm": ((spgemm_einsum, spgemm_array, spgemm_index), (A, E)),
    "spgemm": ((spgemm_einsum, spgemm_array, spgemm_index), (A, B)),
    "multiply": ((multiply_einsum, multiply_array, multiply_index), (A, D)),
    "sddmm": ((sddmm_einsum, sddmm_index), (S, P, Q)),
    "sum": ((sum_array, sum_einsum, sum_index), (A,)),
    "mttkrp": ((mttkrp_einsum, mttkrp_index), (X, np.ones((3, 6)), np.ones((2, 6)))),
}


@pytest.mark.parametrize("name", SAME)
def test_same_formula(name: str, file_regression: FileRegressionFixture) -> None:
    functions, operands = SAME[name]
    texts = {text(fn, *operands).replace(f"@{fn.__name__}(", f"@{name}(") for fn in functions}
    assert len(texts) == 1
    file_regression.check(texts.pop(), extension=".txt")


# Programs with one spelling.


def relu_layer(A: Any, x: Any, b: Any) -> Any:
    return np.maximum(A @ x * 2 + b, 0)


def sampled(S: Any, P: Any, Q: Any) -> Any:
    i, j, k = sj.indices("i j k")
    C = sj.output()
    C[i, j] = sj.where_stored(S[i, j], P[i, k] * Q[k, j])
    return C


def sampled_array(S: Any, P: Any, Q: Any) -> Any:
    return S * (P @ Q), sj.where_stored(S, P @ Q, fill_value=-1)


def split_terms(A: Any, x: Any, y: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = y[i] - (A[i, j] * x[j] - 2 * A[i, j]) + 1
    return r


def sparse_terms(A: Any, B: Any, S: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = A[i, k] * B[k, j] + S[i, j]
    return r


def updates(y: Any, A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y[i] += A[i, j] * x[j]
    y[1:3] *= 2
    y[0] = x[1]
    return y


def views(D: Any, x: Any) -> None:
    t = D.T
    t[1] += 1
    D[0, :] = x


def convolution(z: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = z[i + j] * x[j] + z[2 * i + 1]
    return r


def softmax(D: Any) -> Any:
    e = np.exp(D - D.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def galerkin(P: Any, A: Any) -> Any:
    return P.T @ A @ P


def mean(A: Any) -> Any:
    return A.mean(axis=0)


def coordinate(D: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = sj.where(i >= j, D[i, j] * i, 0)
    return r


def slices(A: Any, z: Any) -> Any:
    return A[1:, ::2] * 2, z[::-1], A[0], z[-3:-1] - z[:2]


PROGRAMS: dict[Callable[..., Any], tuple[Any, ...]] = {
    relu_layer: (A, x, y),
    sampled: (S, P, Q),
    sampled_array: (S, P, Q),
    split_terms: (A, x, y),
    sparse_terms: (A, B, S),
    updates: (y, A, x),
    views: (D, x),
    convolution: (z, x),
    softmax: (D,),
    galerkin: (Operand(np.eye(4), BSR(2, 2)), Operand(np.eye(4), BSR(2, 2))),
    mean: (Operand(np.eye(4), COO(2)),),
    coordinate: (D,),
    slices: (A, z),
}


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_program(fn: Callable[..., Any], file_regression: FileRegressionFixture) -> None:
    func = traced(fn, *PROGRAMS[fn]).func
    first = fn.__code__.co_firstlineno
    assert all(
        op.location is None or first < op.location.line < first + 12
        for op in func.ops
        if op.location is None or op.location.file == __file__
    )
    file_regression.check(print_tensor(func), extension=".txt")
