"""Products that a sparse operand samples: what multiplies a sum does so once, when it is finished.

NumPy computes ``S * (U @ V.T)`` as a sum and one multiplication, so an infinity in ``S`` stays one
whatever the signs of the terms, and where there are no terms it meets 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from tests.semantics.masked import stored_of

Array = np.ndarray[Any, Any]

SHAPE = (6, 8)
SPECIAL = (np.inf, -np.inf, np.nan, -0.0, 0.0)
FORMATS = {
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "dcsr": sj.DCSR,
    "dcsc": sj.DCSC,
    "bsr": sj.BSR(2, 2),
    "ell": sj.ELL(8),
    "dia": sj.DIA,
}
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "product": (lambda S, U, V: S * (U @ V.T), lambda s, t: s * t),
    "scaled": (lambda S, U, V: -S * 2 * (U @ V.T), lambda s, t: -s * 2 * t),
    "difference": (
        lambda S, U, V: sj.where_stored(S, S - U @ V.T),
        lambda s, t: s - t,
    ),
}


def draw(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> Array:
    """Small numbers with signs; the whole range of an integer type, so that products wrap."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    values = rng.integers(-3, 4, shape) + 0.5
    made: Array = (values + 1j * values[::-1] if np.dtype(dtype).kind == "c" else values).astype(
        dtype
    )
    return made


def operand(stored: Array, dtype: Any, form: Any, rng: np.random.Generator) -> tuple[Any, Array]:
    """A sparse tensor, with all of ``SPECIAL`` where the dtype has them, and its dense values."""
    coords = np.nonzero(stored)
    values = draw((len(coords[0]),), dtype, rng)
    if np.dtype(dtype).kind in "fc":
        values[: 3 * len(SPECIAL)] = SPECIAL * 3
        values = rng.permutation(values)
    made = sj.from_coo(coords, values, stored.shape, format=form)
    dense = np.zeros(stored.shape, dtype)
    dense[coords] = values
    return made, dense


def slots(stored: Array, form: str) -> Array:
    """All elements that own a slot: whole blocks, and whole diagonals."""
    rows, columns = stored.shape
    if form == "bsr":
        blocks = stored.reshape(rows // 2, 2, columns // 2, 2).any(axis=(1, 3))
        return blocks.repeat(2, axis=0).repeat(2, axis=1)
    if form == "dia":
        found = np.zeros_like(stored)
        for offset in range(1 - rows, columns):
            if stored.diagonal(offset).any():
                found |= np.eye(rows, columns, offset, dtype=bool)
        return found
    return stored


def check(result: Any, wanted: Array) -> None:
    is_scipy: bool = sp.issparse(result)
    got = result.toarray() if is_scipy else result.to_numpy()
    if wanted.dtype.kind != "c":
        np.testing.assert_array_equal(got, wanted)
        return
    # Parts of a complex product with an infinity are inf or nan as the multiplication is written.
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(wanted))
    np.testing.assert_allclose(got[np.isfinite(got)], wanted[np.isfinite(wanted)])


@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint32, np.complex128])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_multiplies_a_sum_multiplies_it_once(
    name: str, form: str, dtype: Any, depth: int
) -> None:
    rng = np.random.default_rng(depth)
    S, dense = operand(rng.random(SHAPE) < 0.6, dtype, FORMATS[form], rng)
    U, V = (draw((extent, depth), dtype, rng) for extent in SHAPE)
    function, on_dense = FUNCTIONS[name]
    result = sparse_jit(function, target="interpreter")(S, U, V)
    stored = slots(stored_of(S), form)
    with np.errstate(all="ignore"):
        wanted = np.where(stored, on_dense(dense, U @ V.T), np.zeros((), dtype))
    check(result, wanted.astype(dtype))
    if form not in ("bsr", "dia"):
        assert (stored_of(result) == stored).all()


def test_compiled_code_does_the_same() -> None:
    rng = np.random.default_rng(1)
    S, dense = operand(rng.random(SHAPE) < 0.6, np.float64, sj.CSR, rng)
    for depth in (0, 1, 37):
        U, V = (draw((extent, depth), np.float64, rng) for extent in SHAPE)
        result = sparse_jit(lambda S, U, V: S * (U @ V.T), target="cpu")(S, U, V)
        with np.errstate(all="ignore"):
            check(result, np.where(stored_of(S), dense * (U @ V.T), 0))


def sum_of_stored(a: Array, b: Array) -> tuple[Array, Array]:
    """The product of two matrices, each its stored elements (nan elsewhere), and what it stores."""
    terms = a[:, :, None] * b[None, :, :]
    met = ~np.isnan(terms)
    return np.where(met, terms, 0).sum(axis=1), met.any(axis=1)


@pytest.mark.parametrize("reassociate", [True, False])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dcsr"])
def test_what_multiplies_a_sparse_product_multiplies_it_once(form: str, reassociate: bool) -> None:
    rng = np.random.default_rng(4)
    M, mask = operand(rng.random((9, 9)) < 0.5, np.float64, FORMATS[form], rng)
    d = draw((9,), np.float64, rng)
    d[:5] = SPECIAL
    factors = []
    for seed in (5, 6):
        entries = np.random.default_rng(seed).random((9, 9)) < 0.3
        factors.append(np.where(entries, draw((9, 9), np.float64, rng), np.nan))
    A, B = (
        sp.csr_array(sp.coo_array((x[c], c), shape=x.shape))
        for x in factors
        for c in [np.nonzero(~np.isnan(x))]
    )
    total, has_terms = sum_of_stored(*factors)
    in_mask = stored_of(M)
    with np.errstate(all="ignore"):
        product = np.where(in_mask & has_terms, mask * total, 0)
        by_rows = np.where(in_mask & has_terms, mask * d[:, None] * total, 0)
        scaled = np.where(has_terms, d[:, None] * total, 0)
        for function, wanted, stored in (
            (lambda M, d, A, B: M * (A @ B), product, in_mask & has_terms),
            (lambda M, d, A, B: M * d[:, None] * (A @ B), by_rows, in_mask & has_terms),
            (lambda M, d, A, B: M * (A @ B) - M, product - mask, in_mask),
            (lambda M, d, A, B: d[:, None] * (A @ B), scaled, has_terms),
        ):
            kernel = sparse_jit(function, target="interpreter", reassociate=reassociate)
            result = kernel(M, d, A, B)
            check(result, wanted)
            assert (stored_of(result) == stored).all()


def test_a_factor_of_rows_multiplies_their_sums() -> None:
    A = sp.csr_array(np.array([[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]]))
    d = np.array([np.inf, -np.inf, np.inf])
    X = np.array([[3.0, 1.0], [2.0, 1.0]])
    with np.errstate(all="ignore"):
        wanted = d[:, None] * (A.toarray() @ X)
        rows = A.toarray() * (A @ X[:, 0])[:, None]
    scaled = sparse_jit(lambda d, A, X: d[:, None] * (A @ X), target="interpreter")
    np.testing.assert_array_equal(scaled(d, A, X), wanted)
    by_sums = sparse_jit(lambda A, x: A * (A @ x)[:, None], target="interpreter")
    np.testing.assert_array_equal(by_sums(A, X[:, 0]).toarray(), rows)


def test_index_notation_with_a_sum_inside() -> None:
    S = sp.csr_array(np.array([[np.inf, 0.0], [-np.inf, 1.0]]))
    U, V = np.array([[2.0, -1.0], [1.0, -3.0]]), np.ones((2, 2))

    def sampled(S: Any, U: Any, V: Any) -> Any:
        i, j, k = sj.indices("i j k")
        R = sj.output()
        R[i, j] = S[i, j] * sj.sum(U[i, k] * V[j, k], over=k)
        return R

    result = sparse_jit(sampled, target="interpreter")(S, U, V)
    assert result.toarray().tolist() == [[np.inf, 0.0], [np.inf, -2.0]]


# ---------------------------------------------------------------- operands with the same entries


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dcsr"])
def test_operands_with_the_same_entries_are_walked_once(form: str) -> None:
    rng = np.random.default_rng(2)
    S, _ = operand(rng.random(SHAPE) < 0.6, np.float64, FORMATS[form], rng)
    U, V = (draw((extent, 3), np.float64, rng) for extent in SHAPE)
    f = sparse_jit(
        lambda S, U, V: S - sj.where_stored(S, U @ V.T),
        target="interpreter",
        parallelization="none",  # else entries are cut into parts first, by a search
    )
    lowered = f.lower(S, U, V)
    text = lowered.text("loops")
    assert "while" not in text
    assert "search" not in text


def test_entries_that_a_loop_replaces_are_no_longer_the_same() -> None:
    A = sp.csr_array(np.arange(1.0, 13.0).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 5 > 0))

    def thinned(A: Any) -> Any:
        start = A * 1

        def body(i: Any, X: Any) -> Any:
            ones = sj.where_stored(X, 1.0)
            fewer = sj.select(X, lambda x: x > 3)
            return fewer - sj.where_stored(fewer, ones * 2)

        last = sj.fori_loop(0, 3, body, start)
        return last * start, last

    product, last = sparse_jit(thinned, target="interpreter")(A)
    dense, stored = A.toarray(), A.toarray() != 0
    for _ in range(3):
        stored &= dense > 3
        dense = np.where(stored, dense - 2, 0)
    np.testing.assert_array_equal(last.toarray(), dense)
    assert (stored_of(last) == stored).all()
    np.testing.assert_array_equal(product.toarray(), dense * A.toarray())


def test_entries_of_branches_are_not_the_same() -> None:
    A = sp.csr_array(np.array([[1.0, 0.0, -2.0], [0.0, 3.0, 4.0]]))

    def either(A: Any, flag: Any) -> Any:
        kept = sj.cond(flag, lambda: A * 2, lambda: sj.select(A, lambda x: x > 1))
        return kept * A

    for flag in (True, False):
        wanted = A.toarray() * (
            A.toarray() * 2 if flag else np.maximum(A.toarray(), 1) * (A.toarray() > 1)
        )
        result = sparse_jit(either, target="interpreter")(A, np.bool_(flag))
        np.testing.assert_array_equal(result.toarray(), wanted)


def test_a_masked_product_is_not_gathered_twice() -> None:
    operands: list[Any] = [
        sp.random_array((64, 64), density=0.1, format="csr", rng=seed) for seed in range(3)
    ]
    M, A, B = operands
    f = sparse_jit(lambda M, A, B: M * (A @ B), target="interpreter")
    np.testing.assert_allclose(f(M, A, B).toarray(), M.toarray() * (A @ B).toarray(), rtol=1e-12)
    text = f.explain()
    assert "in its slots" in text
    assert "(M (A B)) is computed as (M A B)" in text
