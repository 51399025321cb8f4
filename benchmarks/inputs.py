"""Inputs of the benchmarks: random matrices and tensors from seeds, and real files.

Matrices are SciPy's CSR arrays with sorted 32-bit indices. Tensors have their entries sorted, and
the arrays of a CSF besides.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsejit as sj

FILES = Path(os.environ.get("SPARSEJIT_BENCHMARK_DATA", Path(__file__).parents[2] / "shared/data"))


def csr(rows: Any, columns: Any, values: Any, shape: tuple[int, int]) -> Any:
    """Return entries as CSR; those at one place add up."""
    made = sp.coo_array((values, (rows, columns)), shape).tocsr()
    made.sum_duplicates()
    made.indptr, made.indices = made.indptr.astype(np.int32), made.indices.astype(np.int32)
    return made


def uniform(size: int, stored: int, seed: int) -> Any:
    """Return a square matrix with entries at random places."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, size, stored), rng.integers(0, size, stored)
    return csr(*places, rng.random(stored) + 0.1, (size, size))


def power_law(scale: int, stored: int, seed: int) -> Any:
    """Return the adjacency matrix of an R-MAT graph with 2**scale nodes."""
    rng = np.random.default_rng(seed)
    rows, columns = np.zeros(stored, np.int64), np.zeros(stored, np.int64)
    for _ in range(scale):
        drawn = rng.random(stored)
        rows = 2 * rows + (drawn >= 0.76)
        columns = 2 * columns + (((drawn >= 0.57) & (drawn < 0.76)) | (drawn >= 0.95))
    order = rng.permutation(1 << scale)
    size = 1 << scale
    return csr(order[rows], order[columns], rng.random(stored) + 0.1, (size, size))


def laplacian(side: int) -> Any:
    """Return the five-point Laplacian of a square grid: a banded matrix."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    eye = sp.eye_array(side)
    made = (sp.kron(eye, line) + sp.kron(line, eye)).tocoo()
    return csr(*made.coords, made.data, made.shape)


def half_overlap(matrix: Any, seed: int) -> Any:
    """Return a matrix with half of the places of ``matrix`` and as many others."""
    rng = np.random.default_rng(seed)
    entries = matrix.tocoo()
    rows, columns = entries.coords
    keep = rng.random(matrix.nnz) < 0.5
    more = matrix.nnz - int(keep.sum())
    rows = np.concatenate([rows[keep], rng.permutation(rows)[:more]])
    columns = np.concatenate([columns[keep], rng.permutation(columns)[:more]])
    return csr(rows, columns, rng.random(len(rows)) + 0.1, matrix.shape)


def tensor(extent: int, stored: int, seed: int, *, skewed: bool) -> Any:
    """Return a tensor of rank 3; ``skewed`` puts most entries at few coordinates."""
    rng = np.random.default_rng(seed)
    shape = (extent,) * 3
    if skewed:
        weights = 1.0 / (np.arange(extent) + 5.0) ** 0.9
        weights /= weights.sum()
        drawn = [rng.choice(extent, int(stored * 1.6), p=weights) for _ in shape]
        drawn = [rng.permutation(extent)[axis] for axis in drawn]
    else:
        drawn = [rng.integers(0, extent, stored) for _ in shape]
    places = np.unique(np.ravel_multi_index(drawn, shape))[:stored]
    i, j, k = (axis.astype(np.int32) for axis in np.unravel_index(places, shape))
    return fibers(i, j, k, rng.random(len(i)) + 0.1, shape)


def fibers(i: Any, j: Any, k: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """Return sorted entries with the arrays of their CSF."""
    rows = i.astype(np.int64) * shape[1] + j
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    outer = i[starts]
    firsts = np.flatnonzero(np.r_[True, outer[1:] != outer[:-1]])
    return SimpleNamespace(
        shape=shape,
        nnz=len(values),
        i=i,
        j=j,
        k=k,
        vals=values,
        ipos=np.array([0, len(firsts)], np.int32),
        iidx=np.ascontiguousarray(outer[firsts]),
        jpos=np.r_[firsts, len(outer)].astype(np.int32),
        jidx=np.ascontiguousarray(j[starts]),
        kpos=np.r_[starts, len(i)].astype(np.int32),
        kidx=np.ascontiguousarray(k),
    )


def from_file(name: str) -> Any:
    """Return a matrix of the shared files; ``FileNotFoundError`` where they are not at hand."""
    made = sj.read(FILES / name).tocoo()
    return csr(*made.coords, made.data.astype(np.float64), made.shape)


INPUTS: dict[str, Callable[[], Any]] = {
    "uniform": lambda: uniform(100_000, 2_000_000, 1),
    "power law": lambda: power_law(17, 2_250_000, 2),
    "small power law": lambda: power_law(14, 220_000, 5),
    "banded": lambda: laplacian(1000),
    "tiny": lambda: uniform(1000, 10_000, 3),
    "uniform tensor": lambda: tensor(500, 1_000_000, 11, skewed=False),
    "skewed tensor": lambda: tensor(500, 1_000_000, 12, skewed=True),
    "tiny tensor": lambda: tensor(50, 2_000, 13, skewed=False),
}


@cache
def load(name: str) -> Any:
    """Return an input, made once; a name with a dot is that of a file."""
    return from_file(name) if "." in name else INPUTS[name]()
