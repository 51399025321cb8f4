"""J5: Coulomb and exchange matrices of Hartree-Fock from screened two-electron integrals.

`python examples/j5_coulomb_exchange.py [atoms]`. A zigzag chain of atoms with one s-type Gaussian
each, for which the integrals (pq|rs) have a closed form; integrals below a threshold are dropped.
Dense NumPy on all integrals checks the numbers.
"""

import sys

import numpy as np
from scipy.special import erf

import sparsejit as sj
from sparsejit import sparse_jit


@sparse_jit(output={0: sj.Dense(2), 1: sj.Dense(2)})
def coulomb_exchange(I, D):
    """J, K and the two-electron energy, as the textbook has them."""
    J = sj.einsum("pqrs,rs->pq", I, D)
    K = sj.einsum("prqs,rs->pq", I, D)
    return J, K, 0.5 * (J * D).sum() - 0.25 * (K * D).sum()


@sparse_jit
def unique(I):
    """One of the eight equal (pq|rs), (qp|rs), (rs|pq), ...; divided by its number of copies."""
    p, q, r, s = sj.indices("p q r s")

    def is_first(value, p, q, r, s):
        return p >= q and r >= s and p * (p + 1) // 2 + q >= r * (r + 1) // 2 + s

    def shared(value, p, q, r, s):
        own = (2 if p == q else 1) * (2 if r == s else 1) * (2 if p == r and q == s else 1)
        return value / own

    U = sj.output()
    U[p, q, r, s] = sj.unary(sj.select(I[p, q, r, s], is_first), present=shared)
    return U


@sparse_jit
def symmetric_coulomb_exchange(U, D):
    """The same from unique integrals: each goes to all the places its copies would."""
    p, q, r, s = sj.indices("p q r s")
    J = np.zeros_like(D)
    J[p, q] += 2 * U[p, q, r, s] * D[r, s]
    J[r, s] += 2 * U[p, q, r, s] * D[p, q]
    K = np.zeros_like(D)
    K[p, r] += U[p, q, r, s] * D[q, s]
    K[q, r] += U[p, q, r, s] * D[p, s]
    K[p, s] += U[p, q, r, s] * D[q, r]
    K[q, s] += U[p, q, r, s] * D[p, r]
    return J + J.T, K + K.T


def integrals(atoms: int, exponent: float = 0.4, distance: float = 2.0) -> np.ndarray:
    """All (pq|rs) over normalized s-type Gaussians, by the formula of Boys (1950)."""
    place = np.zeros((atoms, 3))
    place[:, 0] = distance * np.arange(atoms)
    place[:, 1] = np.arange(atoms) % 2
    apart = ((place[:, None] - place) ** 2).sum(axis=-1)
    overlap = np.exp(-exponent / 2 * apart).ravel()  # of each pair (p, q)
    middle = ((place[:, None] + place) / 2).reshape(-1, 3)
    t = np.sqrt(exponent * ((middle[:, None] - middle) ** 2).sum(axis=-1))
    boys = np.where(t < 1e-6, 1, np.sqrt(np.pi) / 2 * erf(t) / np.maximum(t, 1e-6))
    values = 2 * np.sqrt(exponent / np.pi) * overlap[:, None] * overlap * boys
    return values.reshape((atoms,) * 4)


def main(atoms: int = 24, threshold: float = 1e-3) -> None:
    dense = integrals(atoms)
    dense[np.abs(dense) < threshold] = 0
    I = sj.asarray(dense, format=sj.CSF(4))
    orbitals, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((atoms, atoms // 2)))
    D = 2 * orbitals @ orbitals.T

    J, K, energy = coulomb_exchange(I, D)
    J_dense = np.einsum("pqrs,rs->pq", dense, D)
    K_dense = np.einsum("prqs,rs->pq", dense, D)
    np.testing.assert_allclose(J, J_dense, rtol=1e-10)
    np.testing.assert_allclose(K, K_dense, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(energy, (J_dense * D).sum() / 2 - (K_dense * D).sum() / 4)

    U = unique(I)
    J, K = symmetric_coulomb_exchange(U, D)
    np.testing.assert_allclose(J, J_dense, rtol=1e-10)
    np.testing.assert_allclose(K, K_dense, rtol=1e-10, atol=1e-12)

    print(f"J and K of {atoms} atoms from {I.nse} integrals of {dense.size} agree with NumPy")
    print(f"also from the {U.nse} unique integrals; energy {energy:.6f}")
    print(coulomb_exchange.explain())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
