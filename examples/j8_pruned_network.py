"""J8: layers of pruned networks: sparse weights and a dense batch, 2:4 weights, all sparse.

`python examples/j8_pruned_network.py [side]`. The images of the last part are those of the MIT
GraphChallenge where ../shared/data has them, else drawn. NumPy and SciPy check the numbers.
"""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "mtx"
IMAGES = FOLDER / "lagraph.sparse-images-1024_subset.mtx.gz"


@sparse_jit
def layer(W, X, b):
    return np.maximum(W @ X + b[:, None], 0)


@sparse_jit
def sparse_layer(Y, W, bias):
    """Images, weights and result sparse; the bias counts where the product has an entry."""
    Z = Y @ W
    Z = sj.where_stored(Z, np.minimum(Z + bias, 32))
    return sj.select(Z, lambda z: z > 0)  # the rectifier: what is not positive is not kept


def pruned_weights(width: int, source: np.random.Generator) -> np.ndarray:
    """A feed-forward layer after magnitude pruning: a tenth of the weights is left."""
    W = source.standard_normal((4 * width, width), np.float32)
    return np.where(np.abs(W) > np.quantile(np.abs(W), 0.9), W, 0)


def drawn_images(side: int, source: np.random.Generator) -> np.ndarray:
    """As many images as they have pixels; a rectangle in each."""
    corner, extent = source.integers(0, side, (2, 2, side * side))
    at = np.arange(side)[:, None]
    inside = (at >= corner[:, None]) & (at < (corner + extent // 2 + 1)[:, None])
    return np.einsum("yn,xn->nyx", *inside).reshape(side * side, -1).astype(np.float32)


def images_and_layers(side: int | None, count: int, source: np.random.Generator):
    """Images as rows of pixels, and layers as in RadiX-Net: neurons feed their row or column."""
    if side is None and IMAGES.exists():
        Y = sp.csr_array(sj.read(IMAGES), dtype=np.float32)
    else:
        Y = sp.csr_array(drawn_images(side or 32, source))
    neurons = Y.shape[1]
    side = int(np.sqrt(neurons))
    layers = []
    for stride in [1, side] * (count // 2):
        targets = (np.arange(neurons)[:, None] + stride * np.arange(side)) % neurons
        edges = (np.repeat(np.arange(neurons), side), targets.ravel())
        weights = np.full(neurons * side, 2 / side, np.float32)
        layers.append(sp.csr_array((weights, edges), Y.shape[1:] * 2))
    return Y, layers


def main(side: int | None = None, count: int = 8) -> None:
    source = np.random.default_rng(1)
    features = 256 if side is None else side**2
    dense = pruned_weights(features, source)
    W = sp.csr_array(dense)
    X = source.standard_normal((features, 64), np.float32)
    b = source.standard_normal(4 * features, np.float32)
    expected = np.maximum(dense @ X + b[:, None], 0)
    np.testing.assert_allclose(layer(W, X, b), expected, rtol=1e-4, atol=1e-4)
    chosen = layer.explain()

    half = sj.asarray(dense.astype(np.float16), format=sj.CSR)  # SciPy has no 16-bit floats
    in_half = layer(half, X.astype(np.float16), b.astype(np.float16))
    assert in_half.dtype == np.float16  # sums are held in 32 bits
    np.testing.assert_allclose(in_half, expected, rtol=1e-2, atol=0.1)

    W24 = sj.prune(source.standard_normal((4 * features, features), np.float32), sj.NV24)
    expected = np.maximum(W24.to_numpy() @ X + b[:, None], 0)
    np.testing.assert_allclose(layer(W24, X, b), expected, rtol=1e-4, atol=1e-4)

    Y, layers = images_and_layers(side, count, source)
    by_scipy, entries = Y, [Y.nnz]
    for weights in layers:
        Y = sparse_layer(Y, weights, np.float32(-0.3))
        by_scipy = by_scipy @ weights
        by_scipy.data = np.clip(by_scipy.data - np.float32(0.3), 0, 32)
        by_scipy.eliminate_zeros()
        entries.append(Y.nnz)
        assert Y.format == "csr"
        assert Y.nnz == by_scipy.nnz
        np.testing.assert_allclose(abs(Y - by_scipy).max(), 0, atol=1e-4)

    print(f"pruned layers of {dense.shape} weights, f32, f16 and 2:4, agree with NumPy")
    print(f"{count} sparse layers on {Y.shape[0]} images agree with SciPy; entries: {entries}")
    print(f"compiled once for all of them: {sparse_layer.cache_info()}")
    print(chosen)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
