"""J7: Krylov solvers for the equations of Poisson and Helmholtz, and a Galerkin coarse operator.

`python examples/j7_conjugate_gradients.py [points]`, the points along one side of a square grid.
SciPy's direct solver and its products check the numbers.
"""

import sys

import numpy as np
import scipy.sparse as sp
from scipy.sparse import linalg

import sparsejit as sj
from sparsejit import sparse_jit


@sparse_jit
def spmv(A, x):
    return A @ x


@sparse_jit
def conjugate_gradients(A, b, steps):
    """All steps in one compiled function, preconditioned by the diagonal (Jacobi)."""
    diagonal = np.diagonal(A)

    def step(_, state):
        x, r, p, rz = state
        q = A @ p
        alpha = rz / (p @ q)
        x = x + alpha * p
        r = r - alpha * q
        z = r / diagonal
        rz_next = r @ z
        return x, r, z + rz_next / rz * p, rz_next

    z = b / diagonal
    return sj.fori_loop(0, steps, step, (np.zeros_like(b), b, z, b @ z))[0]


@sparse_jit
def complex_conjugate_gradients(A, b, tolerance):
    """COCG, for complex symmetric A (van der Vorst and Melissen), until the residual is small."""

    def step(state):
        x, r, p, rr, count = state
        q = A @ p
        alpha = rr / (p @ q)  # no complex conjugate
        r = r - alpha * q
        rr_next = r @ r
        return x + alpha * p, r, r + rr_next / rr * p, rr_next, count + 1

    def is_large(state):
        r = state[1]
        return (r * np.conj(r)).real.sum() > tolerance**2

    state = sj.while_loop(is_large, step, (np.zeros_like(b), b, b, b @ b, 0))
    return state[0], state[4]


@sparse_jit
def galerkin(P, A):
    return P.T @ A @ P


def laplacian(points: int) -> sp.csr_array:
    """The five-point stencil on a square grid."""
    ones = np.ones(points)
    line = sp.diags_array([-ones[1:], 2 * ones, -ones[1:]], offsets=[-1, 0, 1])
    eye = sp.eye_array(points)
    return sp.csr_array(sp.kron(line, eye) + sp.kron(eye, line))


def interpolation(points: int) -> sp.csr_array:
    """Bilinear interpolation from every second grid point."""
    fine, coarse = np.arange(points), np.arange(0, points, 2)
    weight = np.maximum(0, 1 - np.abs(fine[:, None] - coarse) / 2)
    line = sp.csr_array(weight)
    return sp.csr_array(sp.kron(line, line))


def by_hand(multiply, diagonal, b, steps):
    """The same method in NumPy around a product that someone else computes."""
    x, r = np.zeros_like(b), b.copy()
    p = z = r / diagonal
    for _ in range(steps):
        q = multiply(p)
        rz = r @ z
        alpha = rz / (p @ q)
        x += alpha * p
        r -= alpha * q
        z = r / diagonal
        p = z + (r @ z) / rz * p
    return x


def main(points: int = 125) -> None:
    A, steps = laplacian(points), 4 * points
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    exact = linalg.spsolve(sp.csc_array(A), b)

    plan = spmv.bind(A=A)  # A is checked, prepared and (on a GPU) moved once
    np.testing.assert_allclose(by_hand(plan, A.diagonal(), b, steps), exact, rtol=1e-6)
    np.testing.assert_allclose(conjugate_gradients(A, b, steps), exact, rtol=1e-6)

    damped = A - (0.3 + 0.1j) * sp.eye_array(A.shape[0])  # waves of about 11 points, absorbed
    source = b.astype(complex)
    waves = linalg.spsolve(sp.csc_array(damped), source)
    counts = {}
    for format in ("csr", "coo", "dia"):
        x, count = complex_conjugate_gradients(damped.asformat(format), source, 1e-9)
        np.testing.assert_allclose(x, waves, rtol=1e-6, atol=1e-8)
        counts[format] = int(count)

    P = interpolation(points)
    coarse = galerkin(P, A)
    by_scipy = sp.csr_array(P.T @ A @ P)
    assert coarse.format == "csr"
    np.testing.assert_allclose((coarse - by_scipy).data, 0, atol=1e-12)

    print(
        f"{A.shape[0]} unknowns, {steps} steps on a bound plan and in one function agree with SciPy"
    )
    print(f"Helmholtz in {counts} steps; the coarse operator has {coarse.nnz} entries")
    print(conjugate_gradients.explain())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
