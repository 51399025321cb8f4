"""Four sparse kernels from their formulas, checked against SciPy and NumPy; one of them opened up.

Run it with `python examples/quickstart.py`; with `--explain` it also shows all that is known of one
kernel. It needs no GPU and ends with an error if any number differs.
"""

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit

DATA = Path(__file__).resolve().parent / "data"


@sparse_jit
def spmv(A, x):
    return sj.einsum("ij,j->i", A, x)


@sparse_jit
def spmm(A, X):
    return A @ X


@sparse_jit
def sddmm(S, U, V):
    return S * (U @ V.T)


@sparse_jit
def mttkrp(T, B, C):
    i, j, k, r = sj.indices("i j k r")
    M = sj.output()
    M[i, r] = T[i, j, k] * B[j, r] * C[k, r]
    return M


def check(name: str, computed: object, expected: np.ndarray) -> None:
    """Compare with the numbers of another library; raises `AssertionError` where they differ."""
    values = computed.toarray() if sp.issparse(computed) else np.asarray(computed)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, err_msg=name)
    print(f"{name:7} {type(computed).__name__:10} {values.shape} agrees")


def show_everything(A: sp.csr_array, U: np.ndarray, V: np.ndarray) -> None:
    """Print what ran and why, and the program as it was traced and as it was lowered."""
    print(sddmm.explain())
    lowered = sddmm.lower(A, U, V)
    for level in ("tensor", "loops"):
        print(f"\nThe program as {level} IR:\n")
        print(lowered.text(level))


def main() -> None:
    options = argparse.ArgumentParser(description="Four sparse kernels from their formulas.")
    options.add_argument("--explain", action="store_true", help="show all that is known of SDDMM")
    is_asked = options.parse_args().explain

    source = np.random.default_rng(1)
    A = sp.csr_array(sj.read(DATA / "matrix.mtx"))
    x = source.standard_normal(A.shape[1])
    X = source.standard_normal((A.shape[1], 16))
    U, V = source.standard_normal((A.shape[0], 16)), X
    T = sj.read(DATA / "tensor.tns")
    B, C = (source.standard_normal((extent, 8)) for extent in T.shape[1:])

    check("SpMV", spmv(A, x), A @ x)
    check("SpMM", spmm(A, X), A @ X)
    check("SDDMM", sddmm(A, U, V), A.toarray() * (U @ V.T))
    check("MTTKRP", mttkrp(T, B, C), np.einsum("ijk,jr,kr->ir", T.to_numpy(), B, C))

    if is_asked:
        print("\nWhat ran for SDDMM, and why:\n")
        show_everything(A, U, V)
        return
    rows, columns = A.shape
    print(f"""
SDDMM is written `S * (U @ V.T)`. It became one compiled loop over the {A.nnz} entries of S: of the
{rows * columns} elements of U @ V.T the others are not computed, and the product is never stored.
sddmm.explain() says so (the product is %2 there), and how it ran:
""")
    told = sddmm.explain().splitlines()
    print("\n".join([told[0], *(line for line in told if line.lstrip().startswith("rewrite:"))]))
    print("\nAll of it, and the program at two levels: python examples/quickstart.py --explain")


if __name__ == "__main__":
    main()
