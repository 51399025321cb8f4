"""Fused statements: what is under one loop, what lives in one iteration, and the same results.

Every program runs fused and one nest after the other, and once in NumPy by the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.api import _pipeline
from sparsejit.pipeline import StageOptions
from tests.semantics.masked import FORMATS, Masked, dense_of, masked

RNG = np.random.default_rng(5)
ROWS, COLUMNS = 6, 6


def attention(A: Any, Q: Any, K: Any, V: Any) -> Any:
    scores = sj.where_stored(A, Q @ K.T)
    return sj.softmax(scores, axis=1) @ V


def heads(A: Any, Q: Any, K: Any, V: Any) -> Any:
    i, j, h, d = sj.indices("i j h d")
    E, out = sj.output(), sj.output()
    E[i, j, h] = sj.where_stored(A[i, j], sj.sum(Q[i, h, d] * K[j, h, d], over=d))
    P = sj.softmax(E, axis=1)
    out[i, h, d] = P[i, j, h] * V[j, h, d]
    return out


def sum_and_max(A: Any) -> Any:
    return A.sum(axis=1), A.max(axis=1)


def moments(A: Any) -> Any:
    mean = A.mean(axis=1)
    return mean, (A * A).mean(axis=1) - mean * mean


def scaled(A: Any) -> Any:
    totals = A.sum(axis=1, keepdims=True)
    return np.log1p(abs(A / (1 + abs(totals)))), totals


def layer(A: Any, X: Any) -> Any:
    return np.maximum(A @ X, 0) @ X.T


def columns(A: Any) -> Any:
    return A.sum(axis=0), (A * 2).max(axis=0)


def twice(A: Any, x: Any) -> Any:
    return A @ (A @ x)


def in_place(y: Any, A: Any, x: Any) -> Any:
    y[...] = A @ x + y
    total = A.sum(axis=1)
    y += total
    return total * y


def reversed_rows(A: Any, x: Any) -> Any:
    y = A @ x
    return y + y[::-1]


def iterated(A: Any, x: Any) -> Any:
    return sj.fori_loop(0, 3, lambda _, v: A @ v / (1 + abs(A).sum(axis=1)), x)


X = RNG.standard_normal((COLUMNS, 3))
VECTOR = RNG.standard_normal(COLUMNS)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "attention": (attention, (X, X[::-1] + 1, X * 2)),
    "heads": (heads, tuple(RNG.standard_normal((COLUMNS, 2, 3)) for _ in range(3))),
    "sum and max": (sum_and_max, ()),
    "moments": (moments, ()),
    "scaled": (scaled, ()),
    "layer": (layer, (X,)),
    "columns": (columns, ()),
    "twice": (twice, (VECTOR,)),
    "reversed": (reversed_rows, (VECTOR,)),
    "iterated": (iterated, (VECTOR,)),
}


@pytest.fixture
def unfused(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Decorate a function that is lowered one nest after the other."""

    def decorate(fn: Callable[..., Any], **options: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(_pipeline, "StageOptions", partial(StageOptions, fuse_generics=False))
            return sj.sparse_jit(fn, **options)

    return decorate


def flat(results: Any) -> list[Any]:
    return [dense_of(part) for part in (results if isinstance(results, tuple) else (results,))]


def matrix(name: str, dtype: Any = np.float64) -> Masked:
    stored = RNG.random((ROWS, COLUMNS)) < 0.4
    stored[2] = False
    values = RNG.standard_normal((ROWS, COLUMNS)) * 3
    mask = np.ones_like(stored) if name == "dense" else stored
    return Masked(values.astype(dtype), mask, FORMATS[name])


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_fused_or_not(unfused: Any, program: str, name: str, target: str) -> None:
    fn, others = PROGRAMS[program]
    if name == "dense" and program in ("attention", "heads"):
        pytest.skip("softmax of a dense operand is another program")
    A = matrix(name)
    fused = sj.sparse_jit(fn, target=target)
    got = flat(fused(A.operand, *others))
    wanted = flat(unfused(fn, target=target)(A.operand, *others))
    reference = fused.lower(A.operand, *others).reference(A.operand, *others)
    pairs = reference if isinstance(reference[0], tuple) else (reference,)
    for one, other, (values, _) in zip(got, wanted, pairs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one, values, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.complex64, np.bool_])
def test_other_dtypes(unfused: Any, dtype: Any) -> None:
    def fn(A: Any) -> Any:
        total = A.sum(axis=1)
        return A.prod(axis=1) + total, (A * A).sum(axis=1), total

    A = matrix("csr", dtype)
    for target in ("interpreter", "cpu"):
        got = flat(sj.sparse_jit(fn, target=target)(A.operand))
        for one, other in zip(got, flat(unfused(fn, target=target)(A.operand)), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_updates_in_place(unfused: Any, target: str) -> None:
    A = matrix("csr").operand
    one, other = VECTOR.copy(), VECTOR.copy()
    got = sj.sparse_jit(in_place, target=target)(one, A, VECTOR)
    wanted = unfused(in_place, target=target)(other, A, VECTOR)
    np.testing.assert_allclose(got, wanted)
    np.testing.assert_allclose(one, other)


# ---------------------------------------------------------------- what is fused


def lowered(fn: Callable[..., Any], name: str = "csr", *others: Any) -> Any:
    return sj.sparse_jit(fn).lower(matrix(name).operand, *others)


@pytest.mark.parametrize("program", ["attention", "sum and max", "scaled"])
def test_golden_loops(file_regression: Any, program: str) -> None:
    fn, others = PROGRAMS[program]
    file_regression.check(lowered(fn, "csr", *others).text("loops"), extension=".txt")


def test_attention_keeps_rows_only() -> None:
    fn, others = PROGRAMS["attention"]
    low = lowered(fn, "csr", *others)
    lines = low.text("loops").splitlines()
    outside = [line for line in lines if line.startswith("  alloc ")]
    assert len(outside) == 1, "the result, and no array of all entries or all rows"
    assert sum(line.startswith("  parallel for ") for line in lines) == 1
    assert "one nest over i of %4 with %4, %6, %7, %9, %11, %12, %14, %16, %17" in low.explain()
    assert "s4_vals (row)" in low.explain()
    assert "one nest over i with " in low.text("copies")


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_wide_indices_do_not_keep_nests_apart(width: Any) -> None:
    """SciPy gives 64-bit indices to what is made from 64-bit coordinates; results have 32."""
    fn, others = PROGRAMS["attention"]
    csr = matrix("csr").operand.to_scipy()
    A = sp.csr_array((csr.data, csr.indices.astype(width), csr.indptr.astype(width)), csr.shape)
    f = sj.sparse_jit(fn)
    np.testing.assert_allclose(f(A, *others), sj.sparse_jit(fn)(csr, *others))
    assert "one nest over i of %4 with %4, %6, %7, %9, %11, %12, %14, %16, %17" in f.explain()
    lines = f.lower(A, *others).text("loops").splitlines()
    assert sum(line.startswith("  alloc ") for line in lines) == 1
    sampled = sj.sparse_jit(lambda A, Q: sj.softmax(A * (Q @ Q.T), axis=1))
    made = sampled(A, others[0])
    assert made.indices.dtype == np.int32
    np.testing.assert_allclose(made.toarray(), sampled(csr, others[0]).toarray())


def test_reductions_of_one_operand_share_its_entries() -> None:
    low = lowered(sum_and_max)
    assert low.text("loops").count("A_pos1[") == 2, "one loop over the entries"
    assert "shared inside: level 1 of %A" in low.explain()


@pytest.mark.parametrize("fn", [twice, reversed_rows])
def test_what_needs_other_iterations_waits(fn: Callable[..., Any]) -> None:
    low = lowered(fn, "csr", VECTOR)
    assert low.text("loops").count("\n  parallel for ") >= 2
    assert "one nest" not in low.explain()


def test_operations_that_share_nothing_but_rows_stay_right(unfused: Any) -> None:
    A, B = sp.csr_array(matrix("csr").dense), sp.csc_array(matrix("csc").dense)

    def fn(A: Any, B: Any, x: Any) -> Any:
        return A @ x, B @ x, (A * 2).sum(axis=1), (A + A).max(axis=1)

    for one, other in zip(
        flat(sj.sparse_jit(fn)(A, B, VECTOR)), flat(unfused(fn)(A, B, VECTOR)), strict=True
    ):
        np.testing.assert_allclose(one, other)


# ---------------------------------------------------------------- random chains

STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "row sums": lambda A, v, M: (A, A.sum(axis=1), M),
    "row maxima": lambda A, v, M: (A, v + A.max(axis=1), M),
    "scale rows": lambda A, v, M: (A * v[:, None], v, M),
    "scale columns": lambda A, v, M: (A * v, v, M),
    "exponentials": lambda A, v, M: (sj.where_stored(A, np.exp(-abs(A))), v, M),
    "product": lambda A, v, M: (A, v, A @ M),
    "vector": lambda A, v, M: (A, A @ v, M),
    "columns": lambda A, v, M: (A, v - A.sum(axis=0), M),
    "rows of M": lambda A, v, M: (A, v * M.sum(axis=1), M),
    "scale M": lambda A, v, M: (A, v, M * v[:, None] + 1),
    "sampled": lambda A, v, M: (sj.where_stored(A, M @ M.T), v, M),
    "softmax": lambda A, v, M: (sj.softmax(A, axis=1), v, M),
    "backward": lambda A, v, M: (A, v[::-1], M),
}


@settings(max_examples=40, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=6),
    A=masked((4, 4), (np.float64, np.float32), [name for name in FORMATS if name != "dense"]),
)
def test_random_chains(names: list[str], A: Masked) -> None:
    def fn(A: Any, v: Any, M: Any) -> Any:
        for name in names:
            A, v, M = STEPS[name](A, v, M)
        return A, v, M

    others = (np.array([0.5, -1, 2, 0.25]), np.arange(12.0).reshape(4, 3) / 7)
    with np.errstate(all="ignore"):
        compiled = sj.sparse_jit(fn, target="interpreter")
        got = flat(compiled(A.operand, *others))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_pipeline, "StageOptions", partial(StageOptions, fuse_generics=False))
            apart = sj.sparse_jit(fn, target="interpreter")
        wanted = flat(apart(A.operand, *others))
        reference = compiled.lower(A.operand, *others).reference(A.operand, *others)
    for one, other, (values, _) in zip(got, wanted, reference, strict=True):
        np.testing.assert_array_equal(one, other)  # no element is computed in another way
        np.testing.assert_allclose(one, values, rtol=1e-4, atol=1e-5)
