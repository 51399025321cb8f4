"""J6: shortest paths over the min-plus semiring, PageRank, and triangles under a mask.

`python examples/j6_graph_analytics.py [nodes]`. The graph tells who wrote papers with whom in
network science (2006) where ../shared/data has it, else it is random. SciPy checks the numbers.
"""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import sparsejit as sj
from sparsejit import sparse_jit

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "mtx"
NETSCIENCE = FOLDER / "cugraph.netscience.mtx.gz"


@sparse_jit
def shortest_paths(A, start):
    """Bellman and Ford's rounds until nothing changes: one loop, in the compiled function."""
    i = sj.indices("i")[0]
    distance = sj.output(shape=(A.shape[0],))
    distance[i] = sj.where(i == start, 0.0, np.inf)

    def relax(state):
        d, _ = state
        shorter = np.minimum(d, sj.einsum("i,ij->j", d, A, semiring="min_plus"))
        return shorter, (shorter < d).any()

    return sj.while_loop(lambda state: state[1], relax, (distance, True))[0]


@sparse_jit
def pagerank(A, damping, rounds):
    """The random surfer's power iteration; who has no link jumps anywhere."""
    nodes = A.shape[0]
    links = A.sum(axis=1)

    def surf(_, rank):
        share = np.where(links > 0, rank / links, 0)
        lost = np.where(links > 0, 0, rank).sum()
        return (1 - damping) / nodes + damping * (share @ A + lost / nodes)

    return sj.fori_loop(0, rounds, surf, np.ones(nodes) / nodes)


@sparse_jit
def triangles(L):
    """L is the strictly lower half of the adjacency; L @ L is only needed where L has edges."""
    return (L * (L @ L)).sum()


@sparse_jit
def triangles_of_each_node(A):
    """Pairs of neighbors that are neighbors: the pattern alone decides, whatever the values."""
    pairs = sj.where_stored(A, sj.einsum("ik,kj->ij", A, A, semiring="plus_pair"))
    return pairs.sum(axis=1) // 2


def coauthors(nodes: int | None) -> sp.csr_array:
    """A symmetric graph without loops; the weight of an edge is how strong the tie is."""
    if nodes is None and NETSCIENCE.exists():
        return sp.csr_array(sj.read(NETSCIENCE))
    nodes = 2000 if nodes is None else nodes
    source = np.random.default_rng(1)
    half = sp.random_array(
        (nodes, nodes), density=4 / nodes, rng=source, data_sampler=source.random
    )
    half = sp.tril(half, -1)
    return sp.csr_array(half + half.T)


def one_more_round(A: sp.csr_array, damping: float, rank: np.ndarray) -> np.ndarray:
    """By SciPy; PageRank is the one distribution that this leaves as it is."""
    nodes, links = A.shape[0], A.sum(axis=1)
    follow = sp.diags_array(1 / np.where(links > 0, links, np.inf)) @ A
    lost = rank[links == 0].sum()
    return (1 - damping) / nodes + damping * (follow.T @ rank + lost / nodes)


def main(nodes: int | None = None, rounds: int = 100) -> None:
    A = coauthors(nodes)
    edge_lengths = A.copy()
    edge_lengths.data = 1 / A.data
    start = int(np.argmax(np.diff(A.indptr)))

    distance = shortest_paths(edge_lengths, start)
    np.testing.assert_allclose(distance, csgraph.dijkstra(edge_lengths, indices=start))

    rank = pagerank(A, 0.85, rounds)
    np.testing.assert_allclose(rank, one_more_round(A, 0.85, rank), rtol=1e-6)
    np.testing.assert_allclose(rank.sum(), 1)

    pattern = sp.csr_array((np.ones(A.nnz, np.int64), A.indices, A.indptr), A.shape)
    L = sp.csr_array(sp.tril(pattern, -1))
    squared = pattern @ pattern
    by_scipy = (squared * pattern).sum(axis=1) // 2
    assert triangles(L) == by_scipy.sum() // 3
    np.testing.assert_array_equal(triangles_of_each_node(A), by_scipy)

    reached = np.isfinite(distance).sum()
    print(f"{A.shape[0]} nodes, {A.nnz} edges: paths, PageRank and triangles agree with SciPy")
    print(f"from node {start} {reached} nodes are reached; its rank is {rank[start]:.4f},")
    print(f"there are {triangles(L)} triangles; L @ L would hold {(L @ L).nnz} entries")
    text = triangles.explain()
    print(text[text.index("copies") :])
    text = shortest_paths.explain()
    print(text[text.index("copies") :])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
