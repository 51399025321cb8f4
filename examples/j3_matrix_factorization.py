"""J3: matrix factorization of ratings; residual, loss and gradients at the observed entries only.

`python examples/j3_matrix_factorization.py [users]`. The ratings are drawn in the shape of
MovieLens-100k: a few films are popular and most are not. Dense NumPy with a mask checks.
"""

import sys

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit


@sparse_jit
def loss_and_gradients(R, U, V, decay):
    """Half the squared error at the ratings with weight decay, and its gradients."""
    E = sj.where_stored(R, U @ V.T - R)  # predicted minus observed, nowhere else
    loss = 0.5 * (E * E).sum() + 0.5 * decay * ((U * U).sum() + (V * V).sum())
    return loss, E @ V + decay * U, E.T @ U + decay * V


@sparse_jit
def predictions(R, U, V):
    """What the model says of the films that each user rated: the structure of R, values of UV."""
    u, f, k = sj.indices("u f k")
    P = sj.output()
    P[u, f] = sj.where_stored(R[u, f], sj.sum(U[u, k] * V[f, k], over=k))
    return P


def ratings(users: int) -> sp.csr_array:
    """1 to 5 stars, about a hundred a user; the chance of the n-th film falls as 1 / (n + 10)."""
    source = np.random.default_rng(1)
    films, count = 2 * users, 100 * users
    popularity = 1 / (np.arange(films) + 10)
    who = source.integers(0, users, count)
    what = source.choice(films, count, p=popularity / popularity.sum())
    who, what = np.unique([who, what], axis=1)
    stars = source.integers(1, 6, len(who)).astype(float)
    return sp.csr_array((stars, (who, what)), (users, films))


def by_numpy(R, U, V, decay):
    observed, difference = R.toarray() != 0, U @ V.T - R.toarray()
    E = np.where(observed, difference, 0)
    loss = (np.sum(E * E) + decay * (np.sum(U * U) + np.sum(V * V))) / 2
    return loss, E @ V + decay * U, E.T @ U + decay * V


def main(users: int = 943, rank: int = 32, steps: int = 20) -> None:
    R = ratings(users)
    source = np.random.default_rng(2)
    U, V = (source.standard_normal((extent, rank)) / rank for extent in R.shape)
    decay, rate, losses = 0.1, 0.5 / np.sqrt(R.nnz), []

    for step in range(steps):
        loss, dU, dV = loss_and_gradients(R, U, V, decay)
        if step in (0, steps - 1):
            for got, expected in zip((loss, dU, dV), by_numpy(R, U, V, decay), strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
        losses.append(loss)
        U, V = U - rate * dU, V - rate * dV
    assert losses[-1] < losses[0]

    P = predictions(R, U, V)
    assert (P.indptr == R.indptr).all()
    assert (P.indices == R.indices).all()
    np.testing.assert_allclose(P.toarray(), np.where(R.toarray() != 0, U @ V.T, 0), rtol=1e-10)

    print(f"factorization of {R.nnz} ratings of {R.shape}: loss and gradients agree with NumPy")
    print(f"{steps} steps took the loss from {losses[0]:.1f} to {losses[-1]:.1f}")
    text = loss_and_gradients.explain()
    print(text[text.index("copies:") :])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
