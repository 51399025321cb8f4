"""J9: single-cell counts: scale each cell, take log1p, find genes whose expression varies most.

`python examples/j9_single_cell.py [cells]`. The counts are of blood cells (10x Genomics PBMC 68k)
where ../shared/data has them, else drawn. SciPy and dense NumPy check the numbers.
"""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "mtx"
PBMC = FOLDER / "scanpy.pbmc68k_raw.mtx.gz"


@sparse_jit
def normalize(X, target):
    """Counts per cell to the same total, then log(1 + count): zeros stay zeros."""
    total = X.sum(axis=1)
    return np.log1p(X * (target / total)[:, None])


@sparse_jit
def moments(Y):
    """Mean and variance of each gene over all cells, those without an entry included."""
    mean = Y.mean(axis=0)
    return mean, (Y**2).mean(axis=0) - mean**2


@sparse_jit
def expressing(X):
    """In how many cells each gene was seen, and how strongly at most."""
    return (X > 0).sum(axis=0), X.max(axis=0)


@sparse_jit
def scaled_product(Y, mean, deviation, V):
    """((Y - mean) / deviation) @ V, as PCA needs it, without the dense Y - mean."""
    weights = V / deviation[:, None]
    return Y @ weights - mean @ weights


def counts(cells: int | None) -> sp.csr_array:
    if cells is None and PBMC.exists():
        return sp.csr_array(sj.read(PBMC))
    cells = 2000 if cells is None else cells
    source = np.random.default_rng(1)
    activity = source.lognormal(-3, 1, (cells, 1)) * source.lognormal(0, 1, (1, max(cells, 8)))
    X = source.poisson(activity).astype(float)
    X[:, 0] += 1  # no cell is empty
    return sp.csr_array(X)


def main(cells: int | None = None) -> None:
    X = counts(cells)
    Y = normalize(X, 1e4)
    by_scipy = sp.csr_array(sp.diags_array(1e4 / X.sum(axis=1)) @ X)
    by_scipy.sort_indices()
    by_scipy.data = np.log1p(by_scipy.data)
    assert Y.format == "csr"
    np.testing.assert_array_equal(Y.indices, by_scipy.indices)
    np.testing.assert_allclose(Y.data, by_scipy.data, rtol=1e-12)

    dense = by_scipy.toarray()
    mean, variance = moments(Y)
    np.testing.assert_allclose(mean, dense.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(variance, dense.var(axis=0), rtol=1e-8, atol=1e-10)

    seen, largest = expressing(X)
    np.testing.assert_array_equal(seen, (X.toarray() > 0).sum(axis=0))
    np.testing.assert_array_equal(largest, X.toarray().max(axis=0))

    V = np.random.default_rng(2).standard_normal((X.shape[1], 4))
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    projected = scaled_product(Y, mean, deviation, V)
    np.testing.assert_allclose(projected, (dense - mean) / deviation @ V, rtol=1e-6, atol=1e-6)

    variable = np.argsort(variance)[::-1][:5]
    print(f"{X.shape[0]} cells, {X.shape[1]} genes, {X.nnz} counts: agrees with SciPy and NumPy")
    print(f"most variable genes: {', '.join(map(str, variable))}")
    print(normalize.explain())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
