"""J1: one layer of a graph convolutional network (Kipf and Welling), forward and backward.

`python examples/j1_gcn_layer.py [nodes]`. The graph is Cora's citations where ../shared/data has
them, else random. SciPy checks the numbers, finite differences the gradients.
"""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

CORA = Path(__file__).resolve().parents[2] / "shared" / "data" / "edges" / "pygcn.cora.cites.gz"


@sparse_jit
def normalized(A):
    """D^-1/2 A D^-1/2, where D holds the degrees; the entries stay where they are."""
    scale = 1 / np.sqrt(A.sum(axis=1))
    return A * scale[:, None] * scale


@sparse_jit
def gcn_layer(A, X, W):
    return np.maximum(A @ (X @ W), 0)


@sparse_jit
def gcn_layer_gradients(A, X, W, G):
    """The gradients of sum(G * layer) with respect to X and W."""
    through_relu = np.where(A @ (X @ W) > 0, G, 0)
    through_graph = A.T @ through_relu
    return through_graph @ W.T, X.T @ through_graph


@sparse_jit
def max_layer(A, X, W):
    """The largest message of a neighbor in place of their sum, as in GraphSAGE."""
    return sj.einsum("ij,jk->ik", A, X @ W, semiring="max_times")


def citation_graph(nodes: int | None) -> sp.csr_array:
    """Who cites whom, mirrored, with unit diagonal: Cora, or random with Cora's mean degree."""
    if nodes is None and CORA.exists():
        pairs = np.loadtxt(CORA, dtype=np.int64)
        papers, ends = np.unique(pairs, return_inverse=True)
        ends, nodes = ends.reshape(pairs.shape), len(papers)
    else:
        nodes = 2708 if nodes is None else nodes
        ends = np.random.default_rng(1).integers(0, nodes, (2 * nodes, 2))
    A = sp.coo_array((np.ones(len(ends), np.float32), tuple(ends.T)), (nodes, nodes))
    A = sp.csr_array(A + A.T + sp.eye_array(nodes, dtype=np.float32))
    A.data[:] = 1
    return A


def check_gradients(A, X, W, G, dX, dW, count: int = 32) -> None:
    """Central differences of the float64 layer, computed by SciPy, at a few entries."""
    source = np.random.default_rng(2)
    A, X, W, G, step = A.astype(float), X.astype(float), W.astype(float), G.astype(float), 1e-6

    def loss() -> float:
        return float((G * np.maximum(A @ (X @ W), 0)).sum())

    for array, gradient in ((X, dX), (W, dW)):
        for place in source.integers(0, array.size, count):
            kept = array.flat[place]
            array.flat[place] = kept + step
            above = loss()
            array.flat[place] = kept - step
            slope = (above - loss()) / (2 * step)
            array.flat[place] = kept
            np.testing.assert_allclose(gradient.flat[place], slope, rtol=1e-3, atol=1e-3)


def main(nodes: int | None = None, features: int = 64, classes: int = 8) -> None:
    A = citation_graph(nodes)
    source = np.random.default_rng(3)
    X = source.random((A.shape[0], features), np.float32)
    W = source.standard_normal((features, classes), np.float32)
    G = source.standard_normal((A.shape[0], classes), np.float32)

    Ahat = normalized(A)
    degree = A.sum(axis=1)
    by_scipy = sp.diags_array(degree**-0.5) @ A @ sp.diags_array(degree**-0.5)
    np.testing.assert_allclose(Ahat.toarray(), by_scipy.toarray(), rtol=1e-5)

    H = gcn_layer(Ahat, X, W)
    np.testing.assert_allclose(H, np.maximum(by_scipy @ (X @ W), 0), rtol=1e-4, atol=1e-4)

    dX, dW = gcn_layer_gradients(Ahat, X, W, G)
    check_gradients(Ahat, X, W, G, dX, dW)

    largest = max_layer(Ahat, X, W)
    messages = X @ W
    for node in range(0, A.shape[0], max(1, A.shape[0] // 50)):
        row = by_scipy[[node]]
        expected = (row.data[:, None] * messages[row.indices]).max(axis=0)
        np.testing.assert_allclose(largest[node], expected, rtol=1e-4, atol=1e-4)

    print(
        f"GCN layer on {A.shape[0]} nodes with {A.nnz} edges, and its gradients: agree with SciPy"
    )
    print(gcn_layer.explain())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
