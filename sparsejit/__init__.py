"""Sparse kernels from formulas: traced Python functions, lowered as MLIR's sparse compiler does."""

import gc as _gc

# What is imported stays; looking for garbage among it would take a sixth of the time.
_is_collecting = _gc.isenabled()
_gc.disable()
try:
    from sparsejit import errors as errors
    from sparsejit.api import Transfer as Transfer
    from sparsejit.api import sparse_jit as sparse_jit
    from sparsejit.convert import converted as _converted
    from sparsejit.formats import BSR as BSR
    from sparsejit.formats import COO as COO
    from sparsejit.formats import CSC as CSC
    from sparsejit.formats import CSF as CSF
    from sparsejit.formats import CSR as CSR
    from sparsejit.formats import DCSC as DCSC
    from sparsejit.formats import DCSR as DCSR
    from sparsejit.formats import DIA as DIA
    from sparsejit.formats import ELL as ELL
    from sparsejit.formats import NV24 as NV24
    from sparsejit.formats import Batched as Batched
    from sparsejit.formats import Dense as Dense
    from sparsejit.formats import Format as Format
    from sparsejit.formats import SparseVector as SparseVector
    from sparsejit.io import read as read
    from sparsejit.io import write as write
    from sparsejit.tensors import SparseTensor as SparseTensor
    from sparsejit.tensors import asarray as asarray
    from sparsejit.tensors import from_coo as from_coo
    from sparsejit.tensors import install_convert as _install_convert
    from sparsejit.tensors import prune as prune
    from sparsejit.tensors import to_device as to_device
    from sparsejit.trace import all as all
    from sparsejit.trace import any as any
    from sparsejit.trace import argmax as argmax
    from sparsejit.trace import argmin as argmin
    from sparsejit.trace import binary as binary
    from sparsejit.trace import cond as cond
    from sparsejit.trace import einsum as einsum
    from sparsejit.trace import fori_loop as fori_loop
    from sparsejit.trace import indices as indices
    from sparsejit.trace import max as max
    from sparsejit.trace import maximum as maximum
    from sparsejit.trace import mean as mean
    from sparsejit.trace import min as min
    from sparsejit.trace import minimum as minimum
    from sparsejit.trace import output as output
    from sparsejit.trace import prod as prod
    from sparsejit.trace import reduce as reduce
    from sparsejit.trace import select as select
    from sparsejit.trace import softmax as softmax
    from sparsejit.trace import sum as sum
    from sparsejit.trace import unary as unary
    from sparsejit.trace import update as update
    from sparsejit.trace import where as where
    from sparsejit.trace import where_stored as where_stored
    from sparsejit.trace import while_loop as while_loop
finally:
    if _is_collecting:
        _gc.enable()
        _gc.collect(1)  # at the next object it would begin anyway, and again in the first call

__all__ = [
    "BSR",
    "COO",
    "CSC",
    "CSF",
    "CSR",
    "DCSC",
    "DCSR",
    "DIA",
    "ELL",
    "NV24",
    "Batched",
    "Dense",
    "Format",
    "SparseTensor",
    "SparseVector",
    "Transfer",
    "__version__",
    "all",
    "any",
    "argmax",
    "argmin",
    "asarray",
    "binary",
    "cond",
    "einsum",
    "errors",
    "fori_loop",
    "from_coo",
    "indices",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "output",
    "prod",
    "prune",
    "read",
    "reduce",
    "select",
    "softmax",
    "sparse_jit",
    "sum",
    "to_device",
    "unary",
    "update",
    "where",
    "where_stored",
    "while_loop",
    "write",
]

__version__ = "0.1.0"

_install_convert(_converted)
