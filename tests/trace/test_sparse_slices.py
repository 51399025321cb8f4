"""Slices of sparse operands in every format: read through maps, and what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit as sj

RNG = np.random.default_rng(3)
MATRIX = np.where(RNG.random((5, 4)) < 0.6, RNG.integers(1, 9, (5, 4)), 0).astype(float)
TENSOR = np.where(RNG.random((3, 4, 5)) < 0.4, RNG.integers(1, 9, (3, 4, 5)), 0).astype(float)
X = np.arange(1.0, 5.0)

MATRICES = {
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "dcsr": sj.DCSR,
    "bsr": sj.BSR(2, 3),
    "dia": sj.DIA,
    "ell": sj.ELL(4),
    "csf": sj.CSF(2),
}

SLICES: list[Callable[[Any], Any]] = [
    lambda A: A[:2] * 2,
    lambda A: A[:-1] * 2,
    lambda A: A[1:3, ::2] * 2,
    lambda A: A[::-1, 1:].sum(axis=1),
    lambda A: A[:0].sum(axis=0),
    lambda A: A[-2:, -1].sum(),
    lambda A: (A[1:] + A[:-1])[:, :2].T,
    lambda A: np.exp(A[:3, 1]),
    lambda A: (A[:, 1:] @ X[:3], X @ A[1:]),
    lambda A: A[1:4][:, ::-2][1:] * 1.0,
    lambda A: A[:4, 1:3] @ A[1:3, :3],
]


def elements(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(elements, result))
    return result.to_numpy() if isinstance(result, sj.SparseTensor) else np.asarray(result)


def jit(fn: Callable[..., Any]) -> Any:
    return sj.sparse_jit(fn, target="interpreter")


@pytest.mark.parametrize("number", range(len(SLICES)))
@pytest.mark.parametrize("name", MATRICES)
def test_slices_of_matrices(name: str, number: int) -> None:
    fn, A = SLICES[number], sj.asarray(MATRIX, format=MATRICES[name])
    got, wanted = elements(jit(fn)(A)), fn(MATRIX)
    for one, other in zip(
        *(r if isinstance(r, tuple) else (r,) for r in (got, wanted)), strict=True
    ):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(one, other)
    assert "extract_slice" not in jit(lambda A: A[1:3, ::2].sum()).lower(A).text("tensor")


@pytest.mark.parametrize("name", ["csf", "coo"])
def test_slices_of_tensors(name: str) -> None:
    def fn(T: Any) -> Any:
        return T[1, :-1, ::2] * 2, T[:2, 1:3].sum(axis=2), T[:, ::-1, 1].T + 1

    T = sj.asarray(TENSOR, format=sj.CSF(3) if name == "csf" else sj.COO(3))
    for one, other in zip(elements(jit(fn)(T)), fn(TENSOR), strict=True):
        np.testing.assert_allclose(one, other)


def shifted_vector(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i] = A[i, j] * x[j + 1]
    return y


def shifted_scale(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[i, j] = A[i + 1, j] * x[j + 1]
    return y


def neighbors(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output(shape=A.shape)
    y[i, j] = A[i, j] + A[i + 1, j + 1] * x[j]
    return y


def every_other(A: Any, x: Any) -> Any:
    i, j = sj.indices("i j")
    y = sj.output()
    y[j] = A[2 * i + 1, j] * x[i]
    return y


STATEMENTS: dict[Callable[..., Any], Callable[[Any, Any], Any]] = {
    shifted_vector: lambda A, x: A[:, :3] @ x[1:],
    shifted_scale: lambda A, x: A[1:, :3] * x[1:],
    neighbors: lambda A, x: np.pad(A[:4, :3] + A[1:, 1:] * x[:3], ((0, 1), (0, 1))),
    every_other: lambda A, x: x[:2] @ A[1::2],
}


@pytest.mark.parametrize("fn", STATEMENTS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("name", MATRICES)
def test_indices_that_end_early(name: str, fn: Callable[..., Any]) -> None:
    A = sj.asarray(MATRIX, format=MATRICES[name])
    got, wanted = elements(jit(fn)(A, X)), STATEMENTS[fn](MATRIX, X)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted)
