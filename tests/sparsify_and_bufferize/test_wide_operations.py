"""Sums and products of very many sparse operands: in parts, right, and told."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj


def _matrices(count: int, fmt: str) -> list[Any]:
    rng = np.random.default_rng(count)
    draw: Any = sp.random_array
    return [draw((6, 7), density=0.3, format=fmt, rng=rng) for _ in range(count)]


@pytest.mark.parametrize("fmt", ["csr", "coo", "csc"])
@pytest.mark.parametrize("count", [5, 8, 14])
def test_sums(count: int, fmt: str) -> None:
    matrices = _matrices(count, fmt)

    @sj.sparse_jit(target="interpreter")
    def total(*terms: Any) -> Any:
        result = terms[0]
        for term in terms[1:]:
            result = result + term
        return result

    found = total(*matrices)
    expected = sum((matrix.toarray() for matrix in matrices), np.zeros((6, 7)))
    np.testing.assert_allclose(found.toarray(), expected)
    assert found.nnz == np.count_nonzero(sum(matrix.toarray() != 0 for matrix in matrices))
    assert "computed in parts" in total.explain()


def test_a_product_of_many_is_one_operation() -> None:
    """A product needs one lattice point, however many its factors are."""
    matrices = [matrix + sp.eye_array(6, 7) for matrix in _matrices(7, "csr")]

    @sj.sparse_jit(target="interpreter")
    def product(*factors: Any) -> Any:
        result = factors[0]
        for factor in factors[1:]:
            result = result * factor
        return result

    expected = np.prod([matrix.toarray() for matrix in matrices], axis=0)
    np.testing.assert_allclose(product(*matrices).toarray(), expected)
    assert "computed in parts" not in product.explain()


def test_a_product_of_more_than_a_lattice_holds() -> None:
    matrices = [matrix + sp.eye_array(6, 7) for matrix in _matrices(11, "csr")]

    @sj.sparse_jit(target="interpreter")
    def product(*factors: Any) -> Any:
        result = factors[0]
        for factor in factors[1:]:
            result = result * factor
        return result

    expected = np.prod([matrix.toarray() for matrix in matrices], axis=0)
    np.testing.assert_allclose(product(*matrices).toarray(), expected)
