"""Orders of products and sampled products, as users see them: numbers, ``explain``, memory."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

ROOT = Path(__file__).resolve().parents[2]


def jit(fn: Any, **options: Any) -> Any:
    return sparse_jit(fn, target="interpreter", **options)


def orders(text: str) -> list[str]:
    """The orders that ``explain`` tells."""
    return re.findall(r"is computed as (.*)", text)


def random_sparse(rows: int, columns: int, density: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return sp.random_array((rows, columns), density=density, format="csr", rng=rng)


@pytest.mark.parametrize(
    "fn",
    [
        lambda A, B, x: A @ B @ x,
        lambda A, B, x: sj.einsum("ij,jk,k->i", A, B, x),
        lambda A, B, x: x @ B.T @ A.T,
    ],
    ids=["operators", "einsum", "transposed"],
)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_chain_with_a_vector_multiplies_the_vector_first(fn: Any, form: str) -> None:
    A, B = (random_sparse(40, 40, 0.2, seed).asformat(form) for seed in (0, 1))
    x = np.linspace(-1, 1, 40)
    f = jit(fn)
    np.testing.assert_allclose(f(A, B, x), A @ (B @ x))
    assert orders(f.explain()) in (["(A (B x))"], [])  # the last one is written like this
    loops = f.lower(A, B, x).text("loops")
    assert "push" not in loops.lower()  # no sparse product is assembled


def test_a_chain_of_four_is_ordered_by_its_extents() -> None:
    f = jit(lambda A, B, C, D: A @ B @ C @ D)
    rng = np.random.default_rng(0)
    for extents, wanted in [
        ((4, 100, 4, 100, 4), "((A B) (C D))"),
        ((100, 4, 100, 4, 100), "((A (B C)) D)"),
        ((30, 30, 30, 30, 1), "(A (B (C D)))"),
    ]:
        shapes = pairwise(extents)
        matrices = [rng.standard_normal(shape) for shape in shapes]
        np.testing.assert_allclose(f(*matrices), np.linalg.multi_dot(matrices))
        assert orders(f.explain()) == [wanted]


def test_a_chain_of_four_is_ordered_by_its_stored_counts() -> None:
    f = jit(lambda A, B, C, D: A @ B @ C @ D)
    chosen = set()
    for thin in (3, 0, 1):
        # Four objects each time: the same object twice would be another program.
        matrices = [random_sparse(200, 200, 1e-4 if k == thin else 0.03, k) for k in range(4)]
        made = f(*matrices)
        want = np.linalg.multi_dot([m.toarray() for m in matrices])
        np.testing.assert_allclose(made.toarray(), want, atol=1e-12)
        chosen.add(tuple(orders(f.explain())))
    assert len(chosen) > 1
    assert f.cache_info().traces == 1
    assert f.cache_info().compiles == len(chosen)


def test_there_are_five_variants_at_most() -> None:
    f = jit(lambda A, B, C, D, E: A @ B @ C @ D @ E)
    rng = np.random.default_rng(5)
    for _ in range(40):
        extents = [int(2 ** rng.integers(1, 7)) for _ in range(6)]
        matrices = [rng.standard_normal(s) for s in pairwise(extents)]
        np.testing.assert_allclose(f(*matrices), np.linalg.multi_dot(matrices))
    info = f.cache_info()
    assert info.traces == 1
    assert 2 <= info.compiles <= 5
    assert info.hits == 40 - info.compiles


def test_calls_of_one_size_class_share_a_kernel() -> None:
    f = jit(lambda A, B, x: A @ B @ x)
    for size in (33, 34, 40):
        f(random_sparse(size, size, 0.2, 0), random_sparse(size, size, 0.2, 1), np.ones(size))
    assert f.cache_info().compiles == 1


def test_functions_without_chains_have_one_variant() -> None:
    f = jit(lambda A, x: A @ x)
    for size in (3, 300):
        f(random_sparse(size, size, 0.2, 0), np.ones(size))
    assert f.cache_info().compiles == 1


def test_reassociate_false_computes_as_written() -> None:
    A, B = (random_sparse(30, 30, 0.2, seed) for seed in (0, 1))
    f = jit(lambda A, B, x: A @ B @ x, reassociate=False)
    f(A, B, np.ones(30))
    assert orders(f.explain()) == []


def test_a_plan_and_a_loop_of_calls_choose_alike() -> None:
    A, B = (random_sparse(30, 30, 0.2, seed) for seed in (0, 1))
    f = jit(lambda A, B, x: A @ B @ x)
    plan = f.bind(A=A, B=B)
    np.testing.assert_allclose(plan(x=np.ones(30)), A @ (B @ np.ones(30)))
    assert orders(f.explain()) == ["(A (B x))"]


def test_integers_and_truth_values_may_be_reordered_exactly() -> None:
    rng = np.random.default_rng(1)
    for dtype in (np.int8, np.uint16, np.bool_):
        A, B = (sp.csr_array(rng.integers(0, 2, (9, 9)).astype(dtype)) for _ in range(2))
        x = rng.integers(0, 9, 9).astype(dtype)
        want = A.toarray() @ B.toarray() @ x
        made = jit(lambda A, B, x: A @ B @ x)(A, B, x)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, want)


def test_narrow_floats_stay_as_written() -> None:
    A, B = (random_sparse(20, 20, 0.4, seed).astype(np.float32) for seed in (0, 1))
    halves = [sj.asarray(m.toarray().astype(np.float16), format=sj.CSR) for m in (A, B)]
    f = jit(lambda A, B, x: A @ B @ x)
    f(*halves, np.ones(20, np.float16))
    assert orders(f.explain()) == []
    f(A, B, np.ones(20, np.float32))
    assert orders(f.explain()) == ["(A (B x))"]


# ---------------------------------------------------------------- sampled products


def attention(S: Any, Q: Any, K: Any, V: Any) -> Any:
    scores = sj.where_stored(S, np.exp(Q @ K.T / 2))
    return (scores / scores.sum(axis=1, keepdims=True)) @ V


def test_attention_scores_are_computed_at_the_entries() -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((7, 7)) < 0.5, 1.0, 0.0)
    dense[:, 0] = 1.0
    Q, K, V = (rng.standard_normal((7, 3)) for _ in range(3))
    f = jit(attention)
    scores = np.where(dense != 0, np.exp(Q @ K.T / 2), 0)
    want = scores / scores.sum(axis=1, keepdims=True) @ V
    np.testing.assert_allclose(f(sp.csr_array(dense), Q, K, V), want)
    assert "summed at the stored entries only (sampled product)" in f.explain()


@pytest.mark.parametrize(
    "fn",
    [
        lambda S, U, V: (S * (U @ V.T)).sum(),
        lambda S, U, V: ((U @ V.T) * S).sum(),
        lambda S, U, V: sj.einsum("ij,ik,jk->", S, U, V),
        lambda S, U, V: (S * (U @ V.T)).sum(axis=1),
    ],
    ids=["operators", "turned", "einsum", "rows"],
)
def test_a_sampled_sum_is_one_operation_in_every_spelling(fn: Any) -> None:
    """Splitting it saves less than half of the products, and forms as much as a factor holds."""
    S = random_sparse(60, 50, 0.2, 4)
    rng = np.random.default_rng(4)
    U, V = rng.standard_normal((60, 8)), rng.standard_normal((50, 8))
    f = jit(fn)
    dense = S.toarray() * (U @ V.T)
    np.testing.assert_allclose(np.sum(f(S, U, V)), dense.sum())
    assert orders(f.explain()) in (["(S U V)"], ["(U V S)"], [])
    arrays = [line for line in f.lower(S, U, V).text("loops").splitlines() if "alloc" in line]
    assert len(arrays) == 1, "the result"


def test_rows_of_one_entry_do_not_join_a_chain() -> None:
    """Joined operations visit about as much here, yet in nests that no vector takes."""
    P = sp.csr_array((np.ones(64), np.arange(64) // 4, np.arange(65)), (64, 16))
    A, y = random_sparse(64, 64, 0.05, 1), np.ones(16)
    f = jit(lambda P, A, y: P.T @ A @ P @ y)
    np.testing.assert_allclose(f(P, A, y), P.T @ (A @ (P @ y)))
    assert orders(f.explain()) == ["(P (A (P y)))"]


def test_several_sparse_factors_sample_a_product() -> None:
    S, T, U = (random_sparse(12, 12, 0.4, seed) for seed in (1, 2, 3))
    f = jit(lambda S, T, U: S * T * (U @ U.T))
    np.testing.assert_allclose(
        f(S, T, U).toarray(), (S * T).toarray() * (U @ U.T).toarray(), atol=1e-12
    )


def test_mlir_shows_the_rewritten_function() -> None:
    A, B = (random_sparse(40, 40, 0.2, seed) for seed in (0, 1))
    text = jit(lambda A, B, x: A @ B @ x).lower(A, B, np.ones(40)).text("mlir")
    assert text.count("linalg.generic") == 4  # two products and two fills; no sparse product
    assert "tensor.empty(%" in text


MEMORY = """
import resource
import numpy as np, scipy.sparse as sp
import sparsejit as sj

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def in_place(S, A, B):
    S[:] = sj.where_stored(S, A @ B)
    return S

rng = np.random.default_rng(0)
n, k = 20_000, 2
S = sp.random_array((n, n), density=1e5 / n**2, format="csr", rng=rng)
A, B = rng.standard_normal((n, k)), rng.standard_normal((k, n))
rows, columns = S.tocoo().coords
want, scale = np.einsum("ek,ke->e", A[rows], B[:, columns]), S.data.copy()
before = peak()
for fn, expected in [
    (lambda S, A, B: sj.where_stored(S, A @ B), want),
    (lambda S, A, B: S * (A @ B), want * scale),
    (lambda S, A, B: sj.where_stored(S, np.exp(A @ B)), np.exp(want)),
    (in_place, want),
]:
    made = sj.sparse_jit(fn, target="interpreter")(S, A, B)
    assert np.allclose(made.data, expected), "wrong numbers"
print(peak() - before)
"""


def test_a_sampled_product_needs_no_memory_for_the_whole() -> None:
    """The whole, 20000 x 20000 in 64 bits, would be 3.2 GB."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 200, "megabytes"
