"""J4: CP decomposition by alternating least squares; MTTKRP in every mode from one stored copy.

`python examples/j4_cp_decomposition.py [extent]`. The tensor is a real one of 12,031 entries where
../shared/data has it, else random. NumPy on coordinates and values checks the numbers.
"""

import sys
from pathlib import Path

import numpy as np

import sparsejit as sj
from sparsejit import sparse_jit

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "tns"
REAL = FOLDER / "hiparti.3D_12031.tns.gz"


@sparse_jit
def mode0(X, B, C):
    return sj.einsum("ijk,jr,kr->ir", X, B, C)


@sparse_jit
def mode1(X, A, C):
    return sj.einsum("ijk,ir,kr->jr", X, A, C)


@sparse_jit
def mode2(X, A, B):
    return sj.einsum("ijk,ir,jr->kr", X, A, B)


@sparse_jit
def squared_error(X, A, B, C):
    """|X - [A, B, C]|^2 over all of the dense shape, from sparse and small products alone."""
    overlap = sj.einsum("ijk,ir,jr,kr->", X, A, B, C)
    model = ((A.T @ A) * (B.T @ B) * (C.T @ C)).sum()
    return (X * X).sum() - 2 * overlap + model


@sparse_jit
def residual(X, A, B, C):
    """What the model misses at the entries of X, in the format of X."""
    return sj.where_stored(X, X - sj.einsum("ir,jr,kr->ijk", A, B, C))


def tensor(extent: int | None, format: sj.Format) -> sj.SparseTensor:
    if extent is None and REAL.exists():
        return sj.asarray(sj.read(REAL), format=format)
    extent = 60 if extent is None else extent
    source, shape = np.random.default_rng(1), (extent, extent + 3, extent + 5)
    count = extent**3 // 20
    coords = [source.integers(0, size, count) for size in shape]
    return sj.from_coo(coords, source.random(count), shape, format=format)


def mttkrp_by_numpy(coords, values, factors, mode: int, extent: int):
    """Row by row: entry times the rows of the other factors, added at the entry's row."""
    product = values[:, None]
    for other, factor in enumerate(factors):
        if other != mode:
            product = product * factor[coords[other]]
    result = np.zeros((extent, product.shape[1]))
    np.add.at(result, coords[mode], product)
    return result


def main(extent: int | None = None, rank: int = 8, sweeps: int = 5) -> None:
    X = tensor(extent, sj.CSF(3))
    entries = X.to_numpy()
    coords = np.nonzero(entries)
    values = entries[coords]
    source = np.random.default_rng(2)
    factors = [source.random((size, rank)) for size in X.shape]
    errors = []
    for _ in range(sweeps):
        for mode, mttkrp in enumerate((mode0, mode1, mode2)):
            others = [factor for n, factor in enumerate(factors) if n != mode]
            M = mttkrp(X, *others)
            expected = mttkrp_by_numpy(coords, values, factors, mode, X.shape[mode])
            np.testing.assert_allclose(M, expected, rtol=1e-9, atol=1e-9)
            gram = (others[0].T @ others[0]) * (others[1].T @ others[1])
            factors[mode] = np.linalg.solve(gram, M.T).T
        errors.append(squared_error(X, *factors))
    assert errors == sorted(errors, reverse=True)  # least squares can only improve

    model = np.einsum("ir,jr,kr->ijk", *factors)
    np.testing.assert_allclose(errors[-1], ((entries - model) ** 2).sum(), rtol=1e-9)
    missed = residual(X, *factors)
    np.testing.assert_allclose(missed.to_numpy()[coords], values - model[coords], atol=1e-9)

    others = factors[0], factors[2]
    by_coordinates = mode1(sj.asarray(X, format=sj.COO(3)), *others)  # another format, same code
    np.testing.assert_allclose(by_coordinates, mode1(X, *others), rtol=1e-9)

    print(f"CP of rank {rank} of {X.nse} entries of {X.shape}: three MTTKRP agree with NumPy")
    print(f"squared error {errors[0]:.2f} after one sweep, {errors[-1]:.2f} after {sweeps}")
    print(mode0.explain())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
