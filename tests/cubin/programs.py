"""Programs whose kernels are compiled to cubins, and how they are lowered and measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.backends.numba_cuda.kernels import kernel_words
from sparsejit.ir.loops import LoopFunc, Memref, Var
from sparsejit.passes.outline_kernels import outline_kernels

__all__ = ["PROGRAMS", "REST", "Kernel", "kernels_of", "lowered_loops"]

Array = Any


@dataclass(frozen=True)
class Kernel:
    """A kernel's text and what it is compiled with."""

    name: str
    text: str
    entry: str
    words: tuple[Memref | Var, ...]


def _matrix(dtype: str, format: Any, shape: tuple[int, int] = (6, 8)) -> Any:
    drawn = sp.random_array(shape, density=0.5, rng=np.random.default_rng(1))
    return sj.asarray(drawn.toarray().astype(dtype), format=format)


def _dense(dtype: str, *shape: int) -> Any:
    return np.ones(shape, dtype)


def _tensor(dtype: str) -> Any:
    return sj.asarray(np.ones((4, 5, 6), dtype), format=sj.CSF(3))


def _mttkrp(X: Array, B: Array, C: Array) -> Array:
    return sj.einsum("ijk,jr,kr->ir", X, B, C)


def _ttv(X: Array, v: Array) -> Array:
    return sj.einsum("ijk,k->ij", X, v)


def _sddmm(S: Array, A: Array, B: Array) -> Array:
    return S * (A @ B)


def _product(A: Array, B: Array) -> Array:
    return A @ B


Program = tuple[Callable[..., Any], Callable[[str], tuple[Any, ...]]]


def _spmv(format: Any) -> Program:
    return _product, lambda t: (_matrix(t, format), _dense(t, 8))


PROGRAMS: dict[str, Program] = {
    "spmv csr": _spmv(sj.CSR),
    "spmv csc": _spmv(sj.CSC),
    "spmv coo": _spmv(sj.COO(2)),
    "spmv dcsr": _spmv(sj.DCSR),
    "spmv bsr": _spmv(sj.BSR(2, 2)),
    "spmv dia": _spmv(sj.DIA),
    "spmv ell": _spmv(sj.ELL(8)),
    "spmm csr": (_product, lambda t: (_matrix(t, sj.CSR), _dense(t, 8, 4))),
    "spmm coo": (_product, lambda t: (_matrix(t, sj.COO(2)), _dense(t, 8, 4))),
    "sddmm csr": (_sddmm, lambda t: (_matrix(t, sj.CSR), _dense(t, 6, 3), _dense(t, 3, 8))),
    "sddmm coo": (_sddmm, lambda t: (_matrix(t, sj.COO(2)), _dense(t, 6, 3), _dense(t, 3, 8))),
    "mttkrp": (_mttkrp, lambda t: (_tensor(t), _dense(t, 5, 3), _dense(t, 6, 3))),
    "ttv": (_ttv, lambda t: (_tensor(t), _dense(t, 6))),
    "map": (lambda A: np.exp(A) * 2, lambda t: (_matrix(t, sj.CSR),)),
    "dense elementwise": (lambda x, y: x * y + 1, lambda t: (_dense(t, 6, 8), _dense(t, 6, 8))),
    "sparse and dense": (lambda A, B: A + B, lambda t: (_matrix(t, sj.CSR), _dense(t, 6, 8))),
    "total": (lambda A: A.sum(), lambda t: (_matrix(t, sj.CSR),)),
}
"""None of their kernels spills or has local memory, in real dtypes."""

REST: dict[str, Program] = {
    "add csr": (lambda A, B: A + B, lambda t: (_matrix(t, sj.CSR), _matrix(t, sj.CSR))),
    "spgemm csr": (_product, lambda t: (_matrix(t, sj.CSR), _matrix(t, sj.CSR, (8, 5)))),
    "row softmax": (lambda A: sj.softmax(A, 1), lambda t: (_matrix(t, sj.CSR),)),
    "spmv nv24": (
        _product,
        lambda t: (sj.prune(_dense(t, 6, 8), sj.NV24), _dense(t, 8)),
    ),
}

CONVERSIONS: dict[str, tuple[Any, Any]] = {
    "csr to csc": (sj.CSR, sj.CSC),
    "coo to csr": (sj.COO(2), sj.CSR),
    "csr to dense": (sj.CSR, sj.Dense(2)),
    "csc to bsr": (sj.CSC, sj.BSR(2, 2)),
}


def lowered_loops(function: Callable[..., Any], *operands: Any, output: Any = None) -> LoopFunc:
    """Return the loops of a function for operands of these kinds."""
    lowered: Any = sj.sparse_jit(function, target="interpreter", output=output).lower(*operands)
    loops: LoopFunc = lowered._program.lower(lowered._variant)
    return loops


def kernels_of(name: str, dtype: str) -> Iterator[Kernel]:
    """Return the kernels of a program."""
    if name in CONVERSIONS:
        source, target = CONVERSIONS[name]
        loops = lowered_loops(lambda A: A.astype(A.dtype), _matrix(dtype, source), output=target)
    else:
        function, operands = (PROGRAMS | REST)[name]
        loops = lowered_loops(function, *operands(dtype))
    outlined = outline_kernels(loops)
    for kernel, code in kernel_codes(outlined).items():
        yield Kernel(f"{name} {kernel}", code.text, code.entry, kernel_words(code))
