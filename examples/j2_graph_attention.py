"""J2: multi-head attention over the edges of a graph, without a dense nodes x nodes array.

`python examples/j2_graph_attention.py [nodes]`. The graph is a map of the Internet (2000) where
../shared/data has it, else random. NumPy checks the numbers, node by node.
"""

import resource
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

AS20 = Path(__file__).resolve().parents[2] / "shared" / "data" / "edges" / "snap.as20graph.txt.gz"


@sparse_jit
def attention(A, Q, K, V):
    """Scores at the edges of `A`, a softmax over each node's edges, and the weighted values."""
    i, j, h, d = sj.indices("i j h d")
    E = sj.output()  # node, neighbor, head: sparse as A in the first two, dense in the third
    E[i, j, h] = A[i, j] * Q[i, h, d] * K[j, h, d]
    P = sj.softmax(E, axis=1)
    return sj.einsum("ijh,jhd->ihd", P, V)


@sparse_jit
def one_head(A, Q, K, V):
    """A single head, as array expressions."""
    return sj.softmax(A * (Q @ K.T), axis=1) @ V


def internet(nodes: int | None) -> sp.csr_array:
    """Which of the Internet's networks were neighbors; or a random graph of `nodes` nodes."""
    if nodes is None and AS20.exists():
        pairs = np.loadtxt(AS20, dtype=np.int64)
        names, ends = np.unique(pairs, return_inverse=True)
        ends, nodes = ends.reshape(pairs.shape), len(names)
    else:
        nodes = 6474 if nodes is None else nodes
        ends = np.random.default_rng(1).integers(0, nodes, (2 * nodes, 2))
    edges = sp.coo_array((np.ones(len(ends), np.float32), tuple(ends.T)), (nodes, nodes))
    A = sp.csr_array(edges + edges.T + sp.eye_array(nodes, dtype=np.float32))
    A.data[:] = 1
    return A


def attention_by_numpy(A, Q, K, V):
    """The same for one node after the other; each sees its neighbors alone."""
    result = np.zeros_like(Q)
    for node in range(A.shape[0]):
        seen = slice(A.indptr[node], A.indptr[node + 1])
        neighbors = A.indices[seen]
        scores = A.data[seen, None] * np.einsum("hd,nhd->nh", Q[node], K[neighbors])
        weights = np.exp(scores - scores.max(axis=0))
        weights /= weights.sum(axis=0)
        result[node] = np.einsum("nh,nhd->hd", weights, V[neighbors])
    return result


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(nodes: int | None = None, heads: int = 8, width: int = 8) -> None:
    A = internet(nodes)
    source = np.random.default_rng(2)
    shape = (A.shape[0], heads, width)
    Q, K, V = (source.standard_normal(shape, np.float32) for _ in range(3))

    before = peak_memory()
    O = attention(A, Q, K, V)
    grown, dense = peak_memory() - before, heads * A.shape[0] ** 2 * 4
    if grown > dense / 2 > 5e8:  # below that, what compiling needs would hide it
        raise MemoryError(f"{grown / 1e6:.0f} MB for {A.nnz} edges")
    np.testing.assert_allclose(O, attention_by_numpy(A, Q, K, V), rtol=1e-3, atol=1e-4)

    one = one_head(A, Q[:, 0], K[:, 0], V[:, 0])
    np.testing.assert_allclose(one, O[:, 0], rtol=1e-3, atol=1e-4)

    print(f"attention over {A.nnz} edges of {A.shape[0]} nodes, {heads} heads: agrees with NumPy")
    print(f"peak memory grew by {grown / 1e6:.0f} MB, compiling included;", end=" ")
    print(f"dense scores would take {dense / 1e6:.2f} MB")
    print(one_head.explain())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
