"""Programs whose kernels are compiled to cubins, and how they are lowered and measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.backends.numba_cuda.kernels import kernel_words
from sparsejit.ir.device_statements import Schedule
from sparsejit.ir.loops import LoopFunc, Memref, Var
from sparsejit.passes.outline_kernels import outline_kernels

__all__ = [
    "CONVERSIONS",
    "PROGRAMS",
    "REAL",
    "REST",
    "SCHEDULED",
    "Kernel",
    "kernels_of",
    "lowered_loops",
]

Array = Any

REAL = ("float64", "float32", "float16", "bfloat16", "int32", "int64")


@dataclass(frozen=True)
class Kernel:
    """A kernel's text and what it is compiled with."""

    name: str
    text: str
    entry: str
    words: tuple[Memref | Var, ...]


def _dtype(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _matrix(dtype: str, format: Any, shape: tuple[int, int] = (6, 8)) -> Any:
    drawn = sp.random_array(shape, density=0.5, rng=np.random.default_rng(1))
    return sj.asarray(np.ceil(drawn.toarray()).astype(_dtype(dtype)), format=format)


def _dense(dtype: str, *shape: int) -> Any:
    return np.ones(shape, _dtype(dtype))


def _tensor(dtype: str, format: Any) -> Any:
    return sj.asarray(np.ones((4, 5, 6), _dtype(dtype)), format=format)


def _pruned(dtype: str) -> Any:
    return sj.prune(_dense(dtype, 6, 8), sj.NV24)


def _mttkrp(X: Array, B: Array, C: Array) -> Array:
    return sj.einsum("ijk,jr,kr->ir", X, B, C)


def _ttv(X: Array, v: Array) -> Array:
    return sj.einsum("ijk,k->ij", X, v)


def _sampled(S: Array, A: Array, B: Array) -> Array:
    return sj.where_stored(S, A @ B)


def _sddmm(S: Array, A: Array, B: Array) -> Array:
    return S * (A @ B)


def _product(A: Array, B: Array) -> Array:
    return A @ B


def _of_columns(A: Array, x: Array) -> Array:
    return sj.einsum("ij,i->j", A, x)


def _sum(A: Array, B: Array) -> Array:
    return A + B


Program = tuple[Callable[..., Any], Callable[[str], tuple[Any, ...]]]

FORMATS = {
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "dcsr": sj.DCSR,
    "bsr": sj.BSR(2, 2),
    "dia": sj.DIA,
    "ell": sj.ELL(8),
}
TENSORS = {"csf": sj.CSF(3), "coo": sj.COO(3)}


def _with_vector(format: Any) -> Program:
    return _product, lambda t: (_matrix(t, format), _dense(t, 8))


def _with_matrix(format: Any) -> Program:
    return _product, lambda t: (_matrix(t, format), _dense(t, 8, 4))


def _with_factors(function: Callable[..., Any], format: Any) -> Program:
    return function, lambda t: (_matrix(t, format), _dense(t, 6, 3), _dense(t, 3, 8))


def _of_factors(format: Any) -> Program:
    return _mttkrp, lambda t: (_tensor(t, format), _dense(t, 5, 3), _dense(t, 6, 3))


def _of_vector(format: Any) -> Program:
    return _ttv, lambda t: (_tensor(t, format), _dense(t, 6))


PROGRAMS: dict[str, Program] = {
    **{f"spmv {name}": _with_vector(format) for name, format in FORMATS.items()},
    "spmv nv24": (_product, lambda t: (_pruned(t), _dense(t, 8))),
    "spmv of columns": (_of_columns, lambda t: (_matrix(t, sj.CSR), _dense(t, 6))),
    "spmv batch": (
        lambda A, x: sj.einsum("bij,bj->bi", A, x),
        lambda t: (
            sj.asarray(_dense(t, 2, 6, 8), format=sj.Batched(sj.CSR)),
            _dense(t, 2, 8),
        ),
    ),
    **{f"spmm {name}": _with_matrix(format) for name, format in FORMATS.items()},
    "spmm nv24": (_product, lambda t: (_pruned(t), _dense(t, 8, 4))),
    **{
        f"sddmm {name}": _with_factors(_sddmm, FORMATS[name])
        for name in ("csr", "csc", "coo", "dcsr", "bsr")
    },
    "sddmm sampled": _with_factors(_sampled, sj.CSR),
    **{f"mttkrp {name}": _of_factors(format) for name, format in TENSORS.items()},
    **{f"ttv {name}": _of_vector(format) for name, format in TENSORS.items()},
    "map": (lambda A: np.exp(A) * 2, lambda t: (_matrix(t, sj.CSR),)),
    "dense elementwise": (lambda x, y: x * y + 1, lambda t: (_dense(t, 6, 8), _dense(t, 6, 8))),
    "sparse and dense": (_sum, lambda t: (_matrix(t, sj.CSR), _dense(t, 6, 8))),
    "sparse by dense": (
        lambda A, B: A * B,
        lambda t: (_matrix(t, sj.CSR), _dense(t, 6, 8)),
    ),
    "add csr": (_sum, lambda t: (_matrix(t, sj.CSR), _matrix(t, sj.CSR))),
    "multiply csr": (lambda A, B: A * B, lambda t: (_matrix(t, sj.CSR), _matrix(t, sj.CSR))),
    "total": (lambda A: A.sum(), lambda t: (_matrix(t, sj.CSR),)),
    "row sums": (lambda A: A.sum(axis=1), lambda t: (_matrix(t, sj.CSR),)),
}
"""None of their kernels spills or has local memory, in real dtypes."""

REST: dict[str, Program] = {
    "spgemm csr": (_product, lambda t: (_matrix(t, sj.CSR), _matrix(t, sj.CSR, (8, 5)))),
    "masked product": (
        lambda M, A, B: M * (A @ B),
        lambda t: (
            _matrix(t, sj.CSR, (6, 5)),
            _matrix(t, sj.CSR),
            _matrix(t, sj.CSR, (8, 5)),
        ),
    ),
    "row softmax": (lambda A: sj.softmax(A, 1), lambda t: (_matrix(t, sj.CSR),)),
}

CONVERSIONS: dict[str, tuple[Any, Any]] = {
    "csr to csc": (sj.CSR, sj.CSC),
    "csr to coo": (sj.CSR, sj.COO(2)),
    "csr to dcsr": (sj.CSR, sj.DCSR),
    "csr to dense": (sj.CSR, sj.Dense(2)),
    "csr to bsr": (sj.CSR, sj.BSR(2, 2)),
    "coo to csr": (sj.COO(2), sj.CSR),
    "csc to bsr": (sj.CSC, sj.BSR(2, 2)),
    "bsr to csr": (sj.BSR(2, 2), sj.CSR),
    "dense to csr": (sj.Dense(2), sj.CSR),
}

SCHEDULED = ("spmv csr", "spmv dcsr", "row sums")
"""Loops over rows of entries, which every schedule fits."""


def lowered_loops(function: Callable[..., Any], *operands: Any, output: Any = None) -> LoopFunc:
    """Return the loops of a function for operands of these kinds."""
    lowered: Any = sj.sparse_jit(function, target="interpreter", output=output).lower(*operands)
    loops: LoopFunc = lowered._program.lower(lowered._variant)
    return loops


def _on_a_device(function: Callable[..., Any], *operands: Any, output: Any = None) -> LoopFunc:
    jit = sj.sparse_jit(function, target="cuda", library="never", output=output)
    lowered: Any = jit.lower(*operands)
    outlined: LoopFunc = lowered._program.lower(lowered._variant)
    return outlined


def kernels_of(name: str, dtype: str, schedule: Schedule | None = None) -> Iterator[Kernel]:
    """Return the kernels of a program; with a ``schedule`` for all that it fits."""
    if name in CONVERSIONS:
        source, target = CONVERSIONS[name]
        matrix = _matrix(dtype, source)
        outlined = _on_a_device(lambda A: A.astype(A.dtype), matrix, output=target)
    else:
        function, operands = (PROGRAMS | REST)[name]
        if schedule is None:
            outlined = _on_a_device(function, *operands(dtype))
        else:
            loops = lowered_loops(function, *operands(dtype))
            outlined = outline_kernels(loops, choose=lambda shape: schedule)
    for kernel, code in kernel_codes(outlined).items():
        yield Kernel(f"{name} {kernel}", code.text, code.entry, kernel_words(code))
