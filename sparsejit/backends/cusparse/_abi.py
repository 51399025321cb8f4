"""The functions of cuSPARSE's generic API and of cuSPARSELt that sparsejit calls: one table.

Each row gives the types of a function's arguments, as the headers ``cusparse.h`` (12.0 and later)
and ``cusparseLt.h`` (0.6 and later) declare them. All functions return a status. A test calls the
descriptor functions of the library itself, which check their arguments without a driver.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sparsejit.errors import BackendError, DeviceError
from sparsejit.ir.device_statements import SparseLayout
from sparsejit.ir.types import DType

__all__ = [
    "ALGORITHMS",
    "BATCH_ALGORITHMS",
    "COLUMNS_SINCE",
    "COMPUTE_TYPES",
    "CUSPARSE",
    "CUSPARSELT",
    "DATA_TYPES",
    "INDEX_TYPES",
    "NOT_SUPPORTED",
    "ORDER_COLUMN",
    "ORDER_ROW",
    "TRANSPOSE",
    "call",
    "status_text",
]

P, PP = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
I32, I64, PI64 = ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
SIZE, PSIZE, PI32 = ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_int)
F32 = ctypes.c_float
E = ctypes.c_int  # an enumeration

_COMPRESSED = (PP, I64, I64, I64, P, P, P, E, E, E, E)
_MV = (P, E, P, P, P, P, P, E, E)
_MM = (P, E, E, P, P, P, P, P, E, E)
_GEMM = (*_MM, P)
_GEAM_A = (P, I32, P, P, P)  # descriptor, entries, values, positions, coordinates
_GEAM = (P, I32, I32, P, *_GEAM_A, P, *_GEAM_A, P, P, P, P)

CUSPARSE: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "cusparseCreateCsr": _COMPRESSED,
        "cusparseCreateCsc": _COMPRESSED,
        "cusparseCreateCoo": (PP, I64, I64, I64, P, P, P, E, E, E),
        "cusparseCreateBsr": (PP, I64, I64, I64, I64, I64, P, P, P, E, E, E, E, E),
        "cusparseCsrSetPointers": (P, P, P, P),
        "cusparseSpMatGetSize": (P, PI64, PI64, PI64),
        "cusparseDestroySpMat": (P,),
        "cusparseCreateDnVec": (PP, I64, P, E),
        "cusparseDestroyDnVec": (P,),
        "cusparseCreateDnMat": (PP, I64, I64, I64, P, E, E),
        "cusparseDestroyDnMat": (P,),
        "cusparseCsrSetStridedBatch": (P, I32, I64, I64),
        "cusparseCooSetStridedBatch": (P, I32, I64),
        "cusparseDnMatSetStridedBatch": (P, I32, I64),
        "cusparseGetProperty": (E, PI32),
        "cusparseSpMV_bufferSize": (*_MV, PSIZE),
        "cusparseSpMV": (*_MV, P),
        "cusparseSpMM_bufferSize": (*_MM, PSIZE),
        "cusparseSpMM": (*_MM, P),
        "cusparseSDDMM_bufferSize": (*_MM, PSIZE),
        "cusparseSDDMM": (*_MM, P),
        "cusparseSpGEMM_createDescr": (PP,),
        "cusparseSpGEMM_destroyDescr": (P,),
        "cusparseSpGEMM_workEstimation": (*_GEMM, PSIZE, P),
        "cusparseSpGEMM_estimateMemory": (*_GEMM, F32, PSIZE, P, PSIZE),
        "cusparseSpGEMM_compute": (*_GEMM, PSIZE, P),
        "cusparseSpGEMM_copy": _GEMM,
        "cusparseSparseToDense_bufferSize": (P, P, P, E, PSIZE),
        "cusparseSparseToDense": (P, P, P, E, P),
        "cusparseCreateMatDescr": (PP,),
        "cusparseDestroyMatDescr": (P,),
        **{f"cusparse{t}csrgeam2_bufferSizeExt": (*_GEAM, PSIZE) for t in "SDCZ"},
        "cusparseXcsrgeam2Nnz": (*(P, I32, I32, P, I32, P, P, P, I32, P, P, P, P, PI32, P),),
        **{f"cusparse{t}csrgeam2": (*_GEAM, P) for t in "SDCZ"},
    }
)

CUSPARSELT: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "cusparseLtStructuredDescriptorInit": (P, P, I64, I64, I64, ctypes.c_uint32, E, E, E),
        "cusparseLtDenseDescriptorInit": (P, P, I64, I64, I64, ctypes.c_uint32, E, E),
        "cusparseLtMatDescriptorDestroy": (P,),
        "cusparseLtMatmulDescriptorInit": (P, P, E, E, P, P, P, P, E),
        "cusparseLtMatmulAlgSelectionInit": (P, P, P, E),
        "cusparseLtMatmulAlgSelectionDestroy": (P,),
        "cusparseLtMatmulPlanInit": (P, P, P, P),
        "cusparseLtMatmulPlanDestroy": (P,),
        "cusparseLtMatmulGetWorkspace": (P, P, PSIZE),
        "cusparseLtSpMMAPruneCheck": (P, P, P, P, P),
        "cusparseLtSpMMACompressedSize": (P, P, PSIZE, PSIZE),
        "cusparseLtSpMMACompress": (P, P, P, P, P, P),
        "cusparseLtMatmul": (P, P, P, P, P, P, P, P, P, PP, ctypes.c_int32),
    }
)

NOT_SUPPORTED = 10
TRANSPOSE = 1
ORDER_COLUMN, ORDER_ROW = 1, 2
INDEX_TYPES = MappingProxyType({DType.INT32: 2, DType.INT64: 3})
DATA_TYPES = MappingProxyType(
    {
        DType.FLOAT32: 0,
        DType.FLOAT64: 1,
        DType.FLOAT16: 2,
        DType.COMPLEX64: 4,
        DType.COMPLEX128: 5,
        DType.BFLOAT16: 14,
    }
)
"""``cudaDataType`` (library_types.h)."""
COMPUTE_TYPES = MappingProxyType({DType.FLOAT16: 2, DType.BFLOAT16: 2})
"""``cusparseComputeType`` of cuSPARSELt: 2 is ``CUSPARSE_COMPUTE_32F``."""

_Algorithms = Mapping[tuple[str, SparseLayout], tuple[int, int | None]]
ALGORITHMS: _Algorithms = MappingProxyType(
    {
        ("SpMV", SparseLayout.CSR): (0, 3),  # CSR_ALG2
        ("SpMV", SparseLayout.CSC): (0, None),
        ("SpMV", SparseLayout.COO): (0, 4),  # COO_ALG2
        ("SpMV", SparseLayout.BSR): (0, None),
        ("SpMM", SparseLayout.CSR): (0, 12),  # CSR_ALG3
        ("SpMM", SparseLayout.CSC): (0, None),
        ("SpMM", SparseLayout.COO): (0, 2),  # COO_ALG2
        ("SpMM", SparseLayout.BSR): (0, None),
    }
)
"""The default algorithm and the one with the same bits in every run, if the documentation has one.

Source: cuSPARSE's documentation of ``cusparseSpMV`` and ``cusparseSpMM``, "deterministic (bit-wise)
results"; it holds for untransposed matrices only.
"""

BATCH_ALGORITHMS = MappingProxyType({SparseLayout.CSR: 6, SparseLayout.COO: 5})
"""CSR_ALG2 and COO_ALG4, which take batches, as NVIDIA's own samples call them.

Source: cuSPARSE's documentation of ``cusparseSpMM``, "supports batched computation". None of them
gives the same bits in every run; CSR_ALG3, which does, takes no batches, and COO_ALG2 left rows of
zeros in batches ([issue] CUDALibrarySamples 112).
"""

COLUMNS_SINCE = (12, 6)
"""The version of cuSPARSE from which on batches of single columns are trusted."""

_STATUS = (
    "success",
    "not initialized",
    "allocation failed",
    "invalid value",
    "architecture mismatch",
    "mapping error",
    "execution failed",
    "internal error",
    "matrix type not supported",
    "zero pivot",
    "not supported",
    "insufficient resources",
)
_DEVICE_TROUBLE = (2, 5, 6, 11)


def status_text(status: int) -> str:
    """Return what a status of cuSPARSE or cuSPARSELt says.

    >>> status_text(10)
    'not supported'
    """
    return _STATUS[status] if 0 <= status < len(_STATUS) else f"status {status}"


def call(library: Any, name: str, *arguments: object, may_refuse: bool = False) -> bool:
    """Call a function of the table; whether the library took the call.

    A refusal (``NOT_SUPPORTED``) is an answer where ``may_refuse``. Out of memory and failed
    launches are a ``DeviceError``, every other status is a ``BackendError``.
    """
    function = getattr(library, name)
    function.argtypes = CUSPARSE.get(name) or CUSPARSELT[name]
    function.restype = ctypes.c_int
    status = int(function(*arguments))
    if status == NOT_SUPPORTED and may_refuse:
        return False
    if status in _DEVICE_TROUBLE:
        raise DeviceError(f"{name}: {status_text(status)}")
    if status != 0:
        raise BackendError(f"{name}: {status_text(status)}", hint='use library="never"')
    return True
