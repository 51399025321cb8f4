"""The formulas of the handed cases, written as a user writes them.

``FUNCTIONS`` holds them by the text of the formula, ``BY_ID`` those of single cases: operations
that upstream's text only names. Parameters are the operands in the order of the case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import sparsejit as sj

__all__ = ["BY_ID", "FUNCTIONS", "function_of"]

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}
BY_ID: dict[str, Function] = {}


def function_of(case_id: str, formula: str) -> Function | None:
    """Return the function of a case, if there is one."""
    return BY_ID.get(case_id) or FUNCTIONS.get(formula)


def formula(*texts: str) -> Callable[[Function], Function]:
    def keep(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(texts, function))
        return function

    return keep


def of_case(*ids: str) -> Callable[[Function], Function]:
    def keep(function: Function) -> Function:
        BY_ID.update(dict.fromkeys(ids, function))
        return function

    return keep


# ---------------------------------------------------------------- maps


@formula("X(i,j) = 3*X(i,j) (in place)")
def three_times(X: Any) -> Any:
    X *= 3
    return X


@formula("X(i,j) = 2*X(i,j) (in place)")
def twice_in_place(X: Any) -> Any:
    i, j = sj.indices("i j")
    X[i, j] *= 2
    return X


@formula("X(i,j) = X(i,j)*X(i,j) (in place)")
def squared_in_place(X: Any) -> Any:
    i, j = sj.indices("i j")
    X[i, j] = X[i, j] * X[i, j]
    return X


@formula("x(i) = tanh(x(i)) (in place)")
def tanh_in_place(x: Any) -> Any:
    x[:] = np.tanh(x)
    return x


@formula("x(i) = |a(i)|", "x(i) = |a(i)| (i32; INT_MIN stays INT_MIN)")
def absolute(a: Any) -> Any:
    return np.abs(a)


FUNCTIONS["X(i,j) = 2*A(i,j)"] = lambda A: 2 * A
FUNCTIONS["x(i) = sin(a(i))"] = lambda a: np.sin(a)
FUNCTIONS["x(i) = sqrt(a(i))"] = lambda a: np.sqrt(a)
FUNCTIONS["x(i) = log1p_expm1(a(i))"] = lambda a: np.log1p(np.expm1(a))
FUNCTIONS["x(i) = div(a(i))"] = lambda a: a / 2
FUNCTIONS["x(i) = tanh(b(i))"] = lambda b: np.tanh(b)
FUNCTIONS["x(i) = sign(a(i))"] = lambda a: np.sign(a)
FUNCTIONS["X(i,j,k) = A(i,j,k)-1 (dense ones)"] = lambda A: A - np.ones((2, 3, 4))
FUNCTIONS["X(i,j,k) = A(i,j,k)+1 (dense ones)"] = lambda A: A + np.ones((2, 3, 4))


@formula("x(i) = a(i)*i")
def times_coordinate(a: Any) -> Any:
    (i,) = sj.indices("i")
    x = sj.output()
    x[i] = a[i] * i
    return x


@formula("x(i) = a(i)+i")
def plus_coordinate(a: Any) -> Any:
    (i,) = sj.indices("i")
    x = sj.output()
    x[i] = a[i] + i
    return x


@formula("X(i,j) = i*j*A(i,j)")
def times_coordinates(A: Any) -> Any:
    i, j = sj.indices("i j")
    X = sj.output()
    X[i, j] = i * j * A[i, j]
    return X


@formula("X(i,j) = A(i,j)+i+j")
def plus_coordinates(A: Any) -> Any:
    i, j = sj.indices("i j")
    X = sj.output()
    X[i, j] = A[i, j] + i + j
    return X


@formula("X(i,j) = A(i,j)+i")
def plus_row(A: Any) -> Any:
    i, j = sj.indices("i j")
    X = sj.output(dtype=np.float32)
    X[i, j] = A[i, j] + i
    return X


# ---------------------------------------------------------------- two operands


FUNCTIONS["x(i) = a(i)*b(i)"] = lambda a, b: a * b
FUNCTIONS["X(i,j) = A(i,j)*B(i,j)"] = lambda A, B: A * B
FUNCTIONS["X(i,j,k) = A(i,j,k)*B(i,j,k)"] = lambda A, B: A * B
FUNCTIONS["x(i) = a(i)+b(i)"] = lambda a, b: a + b
FUNCTIONS["X(i,j) = A(i,j)+B(i,j)"] = lambda A, B: A + B
FUNCTIONS["x(i) = a(i) - (-b(i))"] = lambda a, b: a - (-b)


@formula("X(i,j) = (A(i,j) < B(i,j)) as i8")
def less(A: Any, B: Any) -> Any:
    return (A < B).astype(np.int8)


@formula("X(i,j) = A(i,j) if C(i,j) else B(i,j)")
def chosen(C: Any, A: Any, B: Any) -> Any:
    return np.where(C, A, B)


# ---------------------------------------------------------------- sums


FUNCTIONS["x = sum_i a(i)*b(i)"] = lambda a, b: np.dot(a, b)
FUNCTIONS["x = sum_{i,j} A(i,j)"] = lambda A: sj.einsum("ij->", A)
FUNCTIONS["x = sum_{i,j} A(i,j) (complex)"] = lambda A: A.sum()
FUNCTIONS["x = sum_{i,j,k,l} A(i,j,k,l)^2"] = lambda A: sj.einsum("ijkl,ijkl->", A, A)
FUNCTIONS["X(i,j) = sum_k A(i,j,k)*B(i,j,k)"] = lambda A, B: sj.einsum("ijk,ijk->ij", A, B)
FUNCTIONS["X(i,j) = sum_{k..p} A(i,j,k,l,m,n,o,p)"] = lambda A: A.sum(axis=(2, 3, 4, 5, 6, 7))
FUNCTIONS["X(i,j) = sum_k A(i,k)*B(k,j)"] = lambda A, B: A @ B
FUNCTIONS["X(i,j) += A(i,k)*B(k,j)"] = lambda A, B: A @ B
FUNCTIONS["X(i,j) += S(i,j) * sum_k A(i,k)*B(k,j)"] = lambda S, A, B: S * (A @ B)
FUNCTIONS["y(i) = sum_j A(i,j)*x(j)"] = lambda A, x: (A @ x)[:64]
FUNCTIONS["y(i) = 0 + sum_j A(i,j)*x(j)"] = lambda A, x: 0 + A @ x
FUNCTIONS["C = prune24(A) @ B, A(i,k)=4 for even k else 1, B identity"] = lambda A, B: A @ B
FUNCTIONS["X(i,j) = A(j,i)"] = lambda A: A.T


@formula("y(i) = 1 + sum_j A(i,j)*x(j)")
def one_and_product(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = 1 + A[i, j] * x[j]
    return y


@formula("X(i,j,k) = A(i,j,k) (sparse in any level order to dense)")
def copied(A: Any) -> Any:
    return sj.einsum("ijk->ijk", A)


@formula("X(i,j) = sum_k (A(i,k)-2)*(B(k,j)-0)")
def quantized(A: Any, B: Any) -> Any:
    return (A.astype(np.int32) - 2) @ B.astype(np.int32)


@formula("x = x0 sum reduce_i a(i)")
def sum_from(a: Any) -> Any:
    (i,) = sj.indices("i")
    x = sj.output()
    x[()] = (7 if a.dtype == np.int32 else 2) + a[i]
    return x


FUNCTIONS["x = x0 or reduce_i a(i)"] = lambda a: np.bitwise_or.reduce(a) | 7
FUNCTIONS["x = x0 xor reduce_i a(i)"] = lambda a: np.bitwise_xor.reduce(a) ^ 7


@formula("S(i,j) += spy(S)(i,j) * sum_k A(i,k)*B(k,j)")
def sampled_in_place(S: Any, A: Any, B: Any) -> Any:
    S += sj.where_stored(S, A @ B)
    return S


# ---------------------------------------------------------------- convolutions


@formula("X(i,j) = sum_{k,l} A(i+k,j+l)*W(k,l)", "X(i,l) = sum_{j,k} A(i+j,l+k)*W(j,k)")
def convolution(A: Any, W: Any) -> Any:
    i, j, k, l = sj.indices("i j k l")
    X = sj.output()
    X[i, j] = A[i + k, j + l] * W[k, l]
    return X


@formula("X(n,h,w,f) = sum_{p,q,c} A(n,h+p,w+q,c)*W(p,q,c,f)")
def convolution_nhwc(A: Any, W: Any) -> Any:
    n, h, w, c, p, q, f = sj.indices("n h w c p q f")
    X = sj.output()
    X[n, h, w, f] = A[n, h + p, w + q, c] * W[p, q, c, f]
    return X


@formula("X(n,h,w,f) = sum_{p,q,c} A(n,2h+p,2w+q,c)*W(p,q,c,f)")
def strided_convolution(A: Any, W: Any) -> Any:
    n, h, w, c, p, q, f = sj.indices("n h w c p q f")
    X = sj.output(shape=(3, 3, 3, 1))
    X[n, h, w, f] = A[n, 2 * h + p, 2 * w + q, c] * W[p, q, c, f]
    return X


@formula("X(i,j,k) = sum_{p,q,r} A(i+p,j+q,k+r)*W(p,q,r)")
def convolution_3d(A: Any, W: Any) -> Any:
    i, j, k, p, q, r = sj.indices("i j k p q r")
    X = sj.output()
    X[i, j, k] = A[i + p, j + q, k + r] * W[p, q, r]
    return X


WINDOW: Any = np.ones((2, 2), np.float32)


@formula("X(n,h,w,c) = sum_{p,q in 2x2} A(n,h+p,w+q,c)")
def pooling(A: Any) -> Any:
    n, h, w, c, p, q = sj.indices("n h w c p q")
    X = sj.output()
    X[n, h, w, c] = A[n, h + p, w + q, c] * WINDOW[p, q]
    return X


# ---------------------------------------------------------------- user functions


def smaller(a: Any, b: Any) -> Any:
    return min(a, b)


def added(a: Any, b: Any) -> Any:
    return a + b


def multiplied(a: Any, b: Any) -> Any:
    return a * b


def negated(b: Any) -> Any:
    return -b


@formula("x(i) = binary(a(i), b(i))")
def smaller_of_stored(a: Any, b: Any) -> Any:
    return sj.binary(a, b, overlap=smaller, left="identity", right="identity")


@of_case("sparse_binary__vector_mul")
def product_of_stored(a: Any, b: Any) -> Any:
    return sj.binary(a, b, overlap=multiplied)


@formula("x(i) = a(i) where b(i) absent")
def difference_of_patterns(a: Any, b: Any) -> Any:
    return sj.binary(a, b, left="identity")


@formula("x(i) = i where a(i) present")
def coordinates_of_stored(a: Any) -> Any:
    return sj.unary(a, present=lambda a, i: i).astype(np.int32)


@formula("X(i,j) = binary(A,B)")
def intersected(A: Any, B: Any) -> Any:
    return sj.binary(A, B, overlap=added, right=negated)


@of_case("sparse_binary__add")
def added_as_semiring(A: Any, B: Any) -> Any:
    return sj.binary(A, B, overlap=added, left="identity", right="identity")


@formula("X(i,j) = A+B on and above the diagonal, A-B below")
def triangular(A: Any, B: Any) -> Any:
    def both(a: Any, b: Any, i: Any, j: Any) -> Any:
        return a + b if j >= i else a - b

    def only_right(b: Any, i: Any, j: Any) -> Any:
        return b if j >= i else -b

    return sj.binary(A, B, overlap=both, left="identity", right=only_right)


@formula("X(i,j) = clipped A-B")
def clipped_difference(A: Any, B: Any) -> Any:
    def both(a: Any, b: Any) -> Any:
        return max(-1.0, min(1.0, a - b))

    def only_left(a: Any) -> Any:
        return max(-2.0, min(2.0, a))

    def only_right(b: Any) -> Any:
        return max(-2.0, min(2.0, -b))

    return sj.binary(A, B, overlap=both, left=only_left, right=only_right)


@formula("X(i,j) = 1 if A==B else 0, where both stored")
def equal_where_both(A: Any, B: Any) -> Any:
    return sj.binary(A, B, overlap=lambda a, b: 1 if a == b else 0).astype(np.int8)


@formula("X(i,j) = A where only A stored, -B where only B stored")
def symmetric_difference(A: Any, B: Any) -> Any:
    return sj.binary(A, B, left="identity", right=negated)


@formula("X(i,j) = min_k (A(i,k)+B(k,j))")
def min_plus(A: Any, B: Any) -> Any:
    return sj.einsum("ik,kj->ij", A, B, semiring="min_plus")


@formula("x(i) = prod_j A(i,j) over stored entries")
def product_of_row(A: Any) -> Any:
    return sj.reduce(multiplied, A, identity=1.0, axis=1)


@of_case("sparse_reduce_custom_sum__red0")
def reduced_nothing(a: Any) -> Any:
    (i,) = sj.indices("i")
    return sj.reduce(added, sj.unary(a[i]), identity=1, over=i).astype(np.int32)


@of_case("sparse_reduce_custom_sum__red1")
def reduced_present(a: Any) -> Any:
    (i,) = sj.indices("i")
    return sj.reduce(added, sj.unary(a[i], present=lambda a: 2), identity=1, over=i).astype(
        np.int32
    )


@of_case("sparse_reduce_custom_sum__red2")
def reduced_absent(a: Any) -> Any:
    (i,) = sj.indices("i")
    return sj.reduce(added, sj.unary(a[i], absent=lambda: 3), identity=1, over=i).astype(np.int32)


@of_case("sparse_reduce_custom_sum__red3")
def reduced_everything(a: Any) -> Any:
    (i,) = sj.indices("i")
    mapped = sj.unary(a[i], present=lambda a: 2, absent=lambda: 3)
    return sj.reduce(added, mapped, identity=1, over=i).astype(np.int32)


@of_case("sparse_sign__sign")
def sign_of_stored(a: Any) -> Any:
    def sign(a: Any) -> Any:
        return a if a != a else math.copysign(0.0 if a == 0 else 1.0, a)

    return sj.unary(a, present=sign)


@formula("x(i) = 1 where a(i) absent")
def complement(a: Any) -> Any:
    return sj.unary(a, absent=lambda: 1).astype(np.int32)


@formula("x(i) = -a(i) where present, else 1")
def negated_or_one(a: Any) -> Any:
    return sj.unary(a, present=negated, absent=lambda: 1.0)


@of_case("sparse_unary__magnify")
def magnified(a: Any) -> Any:
    return sj.unary(a, present=lambda a, i: a * i)


@formula("X(i,j) = clip(A(i,j),3,7) on stored entries")
def clipped_where_stored(A: Any) -> Any:
    return sj.where_stored(A, np.clip(A, 3, 7))


@formula("X(i,j) = 99 in the upper-left half region, else A")
def overwritten(A: Any) -> Any:
    rows, columns = int(A.shape[0]), int(A.shape[1])

    def present(a: Any, i: Any, j: Any) -> Any:
        return 99.0 if (2 * i < rows or 2 * j < columns) else a

    return sj.unary(A, present=present)


# ---------------------------------------------------------------- reshaping


FUNCTIONS["X = concat(A,B,C; dim=0)"] = lambda A, B, C: np.concatenate([A, B, C], axis=0)
FUNCTIONS["X = concat(A,B,C; dim=1)"] = lambda A, B, C: np.concatenate([A, B, C], axis=1)
FUNCTIONS["X = reshape(A,(12,))"] = lambda A: A.reshape(12)
FUNCTIONS["X = reshape(A,(6,10))"] = lambda A: A.reshape(6, 10)
FUNCTIONS["X = reshape(a,(3,4))"] = lambda a: a.reshape(3, 4)
FUNCTIONS["X = reshape(A,(3,2,2))"] = lambda A: A.reshape(3, 2, 2)
