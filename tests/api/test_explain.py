"""The text of ``explain()``, pinned for typical programs: what a stranger reads, without times."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from pytest_regressions.file_regression import FileRegressionFixture

import sparsejit as sj
from sparsejit import sparse_jit

A = sp.csr_array(np.eye(4) + np.diag([1.0, 2, 3], 1))
x, X, W = np.ones(4), np.ones((4, 3)), np.ones((3, 2))


def spmv(A: Any, x: Any) -> Any:
    return A @ x


def gcn_layer(A: Any, X: Any, W: Any) -> Any:
    return np.maximum(A @ (X @ W), 0)


def attention(A: Any, Q: Any, K: Any) -> Any:
    E = sj.where_stored(A, Q @ K.T)
    return sj.softmax(E, axis=1) @ K


def mixed_product(A: Any, B: Any) -> Any:
    return A @ B


def mixed_sum(A: Any, B: Any) -> Any:
    return A + B


def power_iteration(A: Any, x: Any) -> Any:
    def step(k: Any, x: Any) -> Any:
        y = A @ x
        return y / np.linalg.norm(y)

    return sj.fori_loop(0, 10, step, x)


def in_place(A: Any, x: Any) -> None:
    A[1:] *= x


CASES: dict[Any, tuple[Any, ...]] = {
    spmv: (A, x),
    gcn_layer: (A, X, W),
    attention: (A, X, X + 1),
    mixed_product: (A, sp.csc_array(A)),
    mixed_sum: (A, sp.csc_array(A)),
    power_iteration: (A, x),
    in_place: (A, x),
}


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_text(fn: Any, file_regression: FileRegressionFixture) -> None:
    compiled = sparse_jit(fn, target="interpreter")
    operands = [operand.copy() for operand in CASES[fn]]
    compiled(*operands)
    text = re.sub(r"[\d.]+ m?s\b", "_", compiled.explain())
    text = re.sub(r"test_explain\.py:\d+", "test_explain.py", text)
    assert not re.search(r"\bin\d|generic", text)
    file_regression.check(text + "\n")


def test_deferred_results_are_placed_at_the_users_line() -> None:
    def program(S: Any, A: Any) -> Any:
        i, j = sj.indices("i j")
        P, Q = sj.output(), sj.output()
        P[i, j] = sj.unary(S[i, j] * A[i, j], present=lambda a: a + 1)
        Q[i, j] = sj.select(S[i, j] + A[i, j], lambda a, i: a > 1)
        return P, Q

    compiled = sj.sparse_jit(program, target="interpreter")
    S = sp.csr_array(np.eye(3))
    compiled(S, S * 2)
    line = program.__code__.co_firstlineno
    text = compiled.explain()
    places = {part.split()[0] for part in text.split("// ")[1:]}
    assert places == {f"test_explain.py:{line + k}" for k in (3, 4)}
