"""Index notation: what a statement means, which indices are summed, how far they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit.trace as sj
from sparsejit.formats import COO, CSF, CSR, SparseVector
from tests.trace.harness import Operand, check

RNG = np.random.default_rng(11)


def sparse(shape: tuple[int, ...], density: float = 0.5) -> Any:
    values = RNG.integers(-4, 5, shape).astype(float)
    return np.where(RNG.random(shape) < density, values, 0.0)


A = Operand(sparse((3, 4)), CSR)
S = Operand(sparse((3, 5)), CSR)
X = Operand(sparse((3, 4, 2)), CSF(3))
K = Operand(sparse((3, 4)), COO(2))
B = RNG.standard_normal((4, 5))
D = RNG.standard_normal((3, 4))
G = RNG.standard_normal((3, 3))
R = RNG.standard_normal((4, 5))
Q = RNG.standard_normal((2, 5))
P = RNG.standard_normal((3, 6))
O = RNG.standard_normal((5, 6))
x = RNG.standard_normal(4)
y = RNG.standard_normal(3)
z = RNG.standard_normal(9)
w = RNG.standard_normal(3)
v = Operand(sparse((4,)), SparseVector)

Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {}


def case(*operands: Any, expected: Callable[..., Any]) -> Callable[[Callable[..., Any]], None]:
    def keep(fn: Callable[..., Any]) -> None:
        CASES[fn.__name__] = (fn, expected, operands)

    return keep


@case(X, R, Q, expected=lambda X, B, C: np.einsum("ijk,jr,kr->ir", X, B, C))
def mttkrp(X: Any, B: Any, C: Any) -> Any:
    i, j, k, r = sj.indices("i j k r")
    M = sj.output()
    M[i, r] = X[i, j, k] * B[j, r] * C[k, r]
    return M


@case(A, x, y, expected=lambda A, x, y: A @ x + y)
def affine_map(A: Any, x: Any, y: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = A[i, j] * x[j] + y[i]
    return r


@case(A, x, y, expected=lambda A, x, y: y - 2 * (A @ x) - A.sum(axis=1) + 1)
def split(A: Any, x: Any, y: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = y[i] - (2 * A[i, j] * x[j] + (A[i, j] - 1))
    return r


@case(A, expected=lambda A: -A.sum(axis=1))
def negated(A: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = -A[i, j]
    return r


@case(A, expected=lambda A: -A)
def negated_elementwise(A: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = -A[i, j]
    return r


@case(A, expected=lambda A: (A.sum(), (A * A).sum()))
def scalars(A: Any) -> Any:
    i, j = sj.indices("i j")
    s = sj.output()
    s[()] = A[i, j]
    return s, sj.sum(A[i, j] * A[i, j], over=(i, j))


@case(A, expected=lambda A: np.exp(A).sum(axis=1))
def sum_of_exp(A: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = np.exp(A[i, j])
    return r


@case(D, expected=lambda D: np.exp(D) / np.exp(D).sum(axis=1)[:, None])
def softmax(D: Any) -> Any:
    i, j, k = sj.indices("i, j, k")
    r = sj.output()
    r[i, j] = np.exp(D[i, j]) / sj.sum(np.exp(D[i, k]), over=k)
    return r


@case(A, D, expected=lambda A, D: (A.max(axis=1), D.min(axis=0), (A > 0).any(axis=1), D.prod()))
def reductions(A: Any, D: Any) -> Any:
    i, j = sj.indices("i j")
    a, b, c = sj.output(), sj.output(), sj.output()
    a[i] = sj.max(A[i, j], over=j)
    b[j] = sj.min(D[i, j], over=i)
    c[i] = sj.any(A[i, j] > 0, over=j)
    return a, b, c, sj.prod(D[i, j], over=[i, j])


@case(A, y, expected=lambda A, y: y - A.max(axis=1))
def difference_of_maximum(A: Any, y: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = y[i] - sj.max(A[i, j], over=j)
    return r


@case(A, x, expected=lambda A, x: ((A + x).sum(axis=1), (A * (x + 1)).sum(axis=1)))
def explicit_sum(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    r, t = sj.output(), sj.output()
    r[i] = sj.sum(A[i, j] + x[j], over=j)
    t[i] = A[i, j] * (x[j] + 1)
    return r, t


@case(A, B, S, expected=lambda A, B, S: np.where(S != 0, A @ B, 0))
def sampled(A: Any, B: Any, S: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = sj.where_stored(S[i, j], A[i, k] * B[k, j])
    return r


@case(A, B, S, expected=lambda A, B, S: np.where(S != 0, A @ B, 0))
def sampled_array(A: Any, B: Any, S: Any) -> Any:
    return sj.where_stored(S, A @ B)


@case(A, B, S, expected=lambda A, B, S: np.where(S != 0, A @ B, 7.0))
def sampled_fill(A: Any, B: Any, S: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = sj.where_stored(S[i, j], sj.sum(A[i, k] * B[k, j], over=k), fill_value=7)
    return r


@case(A, B, S, expected=lambda A, B, S: S * (A @ B))
def scaled_sample(A: Any, B: Any, S: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = S[i, j] * A[i, k] * B[k, j]
    return r


@case(z, w, expected=lambda z, w: np.convolve(z, w[::-1], "valid"))
def convolution(z: Any, w: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = z[i + j] * w[j]
    return r


@case(z, expected=lambda z: (z[1:] - z[:-1], z[1::2] - z[:-1:2]))
def stencils(z: Any) -> Any:
    (i,) = sj.indices("i")
    r, t = sj.output(), sj.output()
    r[i] = z[i + 1] - z[i]
    t[i] = z[2 * i + 1] - z[2 * i]
    return r, t


@case(z, expected=lambda z: z[4::-1])
def backward(z: Any) -> Any:
    (i,) = sj.indices("i")
    r = sj.output()
    r[i] = z[4 - i]
    return r


@case(A, D, expected=lambda A, D: (A[0] * D[2], A[-1], D[:, 1] + A[:, -1]))
def constants(A: Any, D: Any) -> Any:
    i, j = sj.indices("i j")
    r, t, u = sj.output(), sj.output(), sj.output()
    r[j] = A[0, j] * D[2, j]
    t[j] = A[-1, j]
    u[i] = D[i, 1] + A[i, -1]
    return r, t, u


@case(P, expected=lambda P: P[1::2, ::3])
def affine_matrix(P: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = P[2 * i + 1, 3 * j]
    return r


@case(G, expected=lambda G: (np.diagonal(G), np.trace(G)))
def diagonals(G: Any) -> Any:
    (i,) = sj.indices("i")
    r = sj.output()
    r[i] = G[i, i]
    return r, sj.sum(G[i, i], over=i)


@case(D, expected=lambda D: D * np.arange(3)[:, None] + np.arange(4) // 2)
def coordinates(D: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = D[i, j] * i + j // 2
    return r


@case(D, expected=lambda D: np.where(np.arange(3)[:, None] >= np.arange(4), D, 0.0))
def lower_triangle(D: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = sj.where(i >= j, D[i, j], 0)
    return r


@case(y, x, expected=lambda y, x: (np.outer(y, x), np.repeat(y[:, None], 4, axis=1)))
def broadcasts(y: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = y[i] * x[j]
    t = sj.output(shape=(y.shape[0], x.shape[0]))
    t[i, j] = y[i]
    return r, t


@case(A, x, expected=lambda A, x: ((A * 2) @ x, A.T @ (A @ x)))
def lazy_operands(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    twice, ax, r, t = A * 2, sj.output(), sj.output(), sj.output()
    r[i] = twice[i, j] * x[j]
    ax[i] = A[i, j] * x[j]
    t[j] = A.T[j, i] * ax[i]
    return r, t


@case(A, D, expected=lambda A, D: (A @ D.T, A + D, A * D, np.minimum(A, D)))
def pairs(A: Any, D: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r, t, u, m = sj.output(), sj.output(), sj.output(), sj.output()
    r[i, k] = A[i, j] * D[k, j]
    t[i, j] = A[i, j] + D[i, j]
    u[i, j] = A[i, j] * D[i, j]
    m[i, j] = sj.minimum(A[i, j], D[i, j])
    return r, t, u, m


@case(A, B, S, expected=lambda A, B, S: A @ B + S)
def product_plus_sparse(A: Any, B: Any, S: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = A[i, k] * B[k, j] + S[i, j]
    return r


@case(A, K, expected=lambda A, K: A @ K.T + K @ A.T)
def two_sparse_products(A: Any, K: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = A[i, k] * K[j, k] + K[i, k] * A[j, k]
    return r


@case(A, 3, np.float32(2), expected=lambda A, a, b: a * A + b)
def scalar_arguments(A: Any, a: Any, b: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i, j] = a * A[i, j] + b
    return r


@case(x, v, expected=lambda x, v: (x @ v) * x)
def scalar_factor(x: Any, v: Any) -> Any:
    i, j = sj.indices("i j")
    r = sj.output()
    r[i] = sj.sum(x[j] * v[j], over=j) * x[i]
    return r


@case(D, expected=lambda D: (D - D.mean(axis=0)) ** 2)
def nested(D: Any) -> Any:
    i, j, k = sj.indices("i j k")
    r = sj.output()
    r[i, j] = (D[i, j] - sj.sum(D[k, j], over=k) / D.shape[0]) ** 2
    return r


@case(D, y, expected=lambda D, y: 2 * D[:, 1:].sum(axis=0) * y)
def reduced_beyond_an_offset(D: Any, y: Any) -> Any:
    i, k = sj.indices("i k")
    r = sj.output()
    r[i] = 2 * sj.sum(D[k, i + 1], over=k) * y[i]
    return r


@case(D, expected=lambda D: 2 * np.r_[D[:, 1:].sum(axis=0), 0.0])
def reduced_into_part_of_an_output(D: Any) -> Any:
    i, k = sj.indices("i k")
    r = sj.output(shape=(4,))
    r[i] = 2 * sj.sum(D[k, i + 1], over=k)
    return r


@case(A, expected=lambda A: 2 * np.r_[A[:, 1:].max(axis=0), 0.0])
def sparse_reduced_into_part_of_an_output(A: Any) -> Any:
    i, k = sj.indices("i k")
    r = sj.output(shape=(4,))
    r[i] = 2 * sj.max(A[k, i + 1], over=k)
    return r


@case(x, 3, expected=lambda x, s: (s + x.sum(), s - x.sum(), s * s - 2 * x.sum()))
def scalars_beside_sums(x: Any, s: Any) -> Any:
    (k,) = sj.indices("k")
    r, t, u = sj.output(shape=()), sj.output(shape=()), s * s
    r[()] = s + x[k]
    s -= x[k]
    t[()] = s
    u -= 2 * x[k]
    v = sj.output()
    v[()] = u
    return r, t, v


@case(np.array(3.0), x, expected=lambda s, x: np.add(s, x.sum(), out=s))
def rank_0_array_updated_by_a_sum(s: Any, x: Any) -> Any:
    (k,) = sj.indices("k")
    s += x[k]
    return s


@pytest.mark.parametrize("name", CASES)
def test_statement(name: str) -> None:
    fn, expected, operands = CASES[name]
    check(fn, *operands, expected=expected, rtol=1e-9)
