"""The kernels of the benchmarks: their operands, what is right, and the bytes they have to move."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.inputs import half_overlap, load

__all__ = ["Cell", "cells", "error", "operands", "reference", "traffic"]

RANK, WIDTH = 32, 64
_FILES = (
    "mtx/suitesparse.adder_dcop_05.mtx.gz",
    "mtx/lagraph.bcsstk13.mtx.gz",
    "mtx/gcn.cora_allx.mtx.gz",
)
_MATRICES = ("uniform", "power law", "banded", "tiny")
_SPGEMM = ("uniform", "small power law", "banded", "tiny")
_TENSORS = ("uniform tensor", "skewed tensor", "tiny tensor")
_INPUTS: dict[str, tuple[str, ...]] = {
    "spmv": (*_MATRICES, *_FILES),
    "spmm8": _MATRICES,
    "spmm64": (*_MATRICES, *_FILES),
    "sddmm": ("uniform", "power law", "tiny"),
    "spgemm": _SPGEMM,
    "add": (*_MATRICES, _FILES[0]),
    "mul": _MATRICES,
    "masked": _SPGEMM,
    "mttkrp": _TENSORS,
    "mttkrp_coo": _TENSORS[:2],
    "ttv": _TENSORS,
    "ttm": _TENSORS,
    "fused_aa": _MATRICES,
    "fused_inner": ("uniform", "power law", "tiny"),
    "fused_attn": ("uniform", "power law", "tiny"),
}
_QUICK = ("tiny", "tiny tensor", "banded")


@dataclass(frozen=True)
class Cell:
    """One kernel on one input in one type."""

    kernel: str
    data: str
    dtype: str = "float64"


def cells(*, quick: bool) -> list[Cell]:
    """Return all cells; the quick ones have small inputs, and for SpMV and add the banded one."""
    made = [Cell(kernel, data) for kernel, names in _INPUTS.items() for data in names]
    if quick:
        heavy = ("spmv", "add")
        return [c for c in made if c.data in (_QUICK if c.kernel in heavy else _QUICK[:2])]
    return [*made, *(Cell("spmv", data, "float32") for data in _MATRICES)]


def operands(cell: Cell) -> Any:
    """Return the operands of a cell, by name."""
    rng = np.random.default_rng(77)
    data = load(cell.data)

    def dense(*shape: int) -> Any:
        return (rng.random(shape) - 0.5).astype(cell.dtype)

    kernel = cell.kernel
    if "tensor" in cell.data:
        _, second, third = data.shape
        factors = {"U": dense(second, RANK), "V": dense(third, RANK)}
        return SimpleNamespace(T=data, v=dense(third), W=dense(third, RANK), **factors)
    rows, columns = data.shape
    A = data.astype(cell.dtype)
    found: dict[str, Any] = {"A": A, "S": A, "M": A}
    if kernel in ("spgemm", "add", "mul", "masked", "fused_aa"):
        found["B"] = half_overlap(A, 21).astype(cell.dtype)
    if kernel in ("spmv", "fused_aa"):
        found |= {"x": dense(columns), "z": dense(rows)}
    if kernel.startswith("spmm"):
        found["X"] = dense(columns, int(kernel[4:]))
    if kernel in ("sddmm", "fused_inner"):
        found |= {"U": dense(rows, WIDTH), "V": dense(columns, WIDTH)}
    if kernel == "fused_attn":
        found |= {"Q": dense(rows, WIDTH), "K": dense(columns, WIDTH), "V": dense(columns, WIDTH)}
    return SimpleNamespace(**found)


def _sampled(S: Any, U: Any, V: Any) -> tuple[Any, Any]:
    """Return the row of each entry, and its value times the product of its rows."""
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    found = np.empty(S.nnz)
    for start in range(0, S.nnz, 1 << 16):
        part = slice(start, start + (1 << 16))
        left, right = U[rows[part]].astype(float), V[S.indices[part]].astype(float)
        found[part] = np.einsum("ij,ij->i", left, right)
    return rows, found * S.data


def _attention(a: Any) -> Any:
    rows, scores = _sampled(a.S, a.Q, a.K)
    filled = np.flatnonzero(np.diff(a.S.indptr))
    largest, sums = np.zeros(a.S.shape[0]), np.ones(a.S.shape[0])
    largest[filled] = np.maximum.reduceat(scores, a.S.indptr[filled])
    weights = np.exp(scores - largest[rows])
    sums[filled] = np.add.reduceat(weights, a.S.indptr[filled])
    return sp.csr_array((weights / sums[rows], a.S.indices, a.S.indptr), a.S.shape) @ a.V


def _of_two(kernel: str, a: Any) -> Any:
    match kernel:
        case "add":
            return a.A + a.B
        case "mul":
            return a.A * a.B
        case _:
            return a.M * (a.A @ a.B)


def _of_tensor(kernel: str, a: Any) -> Any:
    I, J, K = a.T.shape
    places = a.T.i.astype(np.int64) * J + a.T.j, a.T.k
    matrix = sp.csr_array((a.T.vals, places), (I * J, K))
    match kernel:
        case "ttv":
            return (matrix @ a.v).reshape(I, J)
        case "ttm":
            return (matrix @ a.W).reshape(I, J, -1)
        case _:
            return np.einsum("ijr,jr->ir", (matrix @ a.V).reshape(I, J, -1), a.U)


def reference(cell: Cell, a: Any) -> Any:
    """Return what a kernel computes, by SciPy and NumPy."""
    match cell.kernel:
        case "spmv":
            return a.A @ a.x
        case "spmm8" | "spmm64":
            return a.A @ a.X
        case "sddmm":
            _, values = _sampled(a.S, a.U, a.V)
            return sp.csr_array((values, a.S.indices, a.S.indptr), a.S.shape)
        case "fused_inner":
            return _sampled(a.S, a.U, a.V)[1].sum()
        case "fused_attn":
            return _attention(a)
        case "spgemm":
            return a.A @ a.B
        case "fused_aa":
            return a.A @ (a.B @ a.x) + 2 * a.z
        case "add" | "mul" | "masked" as kernel:
            return _of_two(kernel, a)
        case kernel:
            return _of_tensor(kernel, a)


def error(found: Any, expected: Any) -> float:
    """Return the relative error of a result in the Frobenius norm."""
    if not sp.issparse(expected):
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        if found.shape != expected.shape:
            return float("inf")
        scale = max(float(np.linalg.norm(expected.ravel())), 1e-300)
        return float(np.linalg.norm((found - expected).ravel())) / scale
    if not sp.issparse(found) or found.shape != expected.shape:
        return float("inf")
    # Products with a random vector: the difference of large matrices takes longer than kernels.
    probe = np.random.default_rng(4).random(expected.shape[1])
    wanted = expected @ probe
    return float(np.linalg.norm(found @ probe - wanted) / max(np.linalg.norm(wanted), 1e-300))


def traffic(cell: Cell, a: Any) -> int | None:
    """Return the bytes that have to be moved at least, None where they depend on the result."""
    if not cell.kernel.startswith("spm"):
        return None
    A, size = a.A, a.A.data.itemsize
    width = a.X.shape[1] if cell.kernel != "spmv" else 1
    matrix = A.nnz * (size + 4) + (A.shape[0] + 1) * 4
    return int(matrix + (A.shape[0] + A.shape[1]) * width * size)
