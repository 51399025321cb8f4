"""Backends: from loop functions to text, and from text to kernels that run.

Reading order: ``base`` (the protocol), ``python_source`` (one text for interpreter and Numba),
``interpreter``, ``numba_cpu``, ``llvm`` (a second printer, the default on the CPU), ``disk_cache``,
``support`` (the library that generated Python calls).
"""

from types import MappingProxyType

from sparsejit.backends.base import MISS as MISS
from sparsejit.backends.base import Backend as Backend
from sparsejit.backends.base import DirectCall as DirectCall
from sparsejit.backends.base import DirectKernel as DirectKernel
from sparsejit.backends.base import Kernel as Kernel
from sparsejit.backends.base import KernelSource as KernelSource
from sparsejit.backends.interpreter import InterpreterBackend
from sparsejit.backends.llvm import LlvmBackend as LlvmBackend
from sparsejit.backends.numba_cpu import NumbaBackend as NumbaBackend

__all__ = [
    "BACKENDS",
    "MISS",
    "Backend",
    "DirectCall",
    "DirectKernel",
    "Kernel",
    "KernelSource",
    "LlvmBackend",
    "NumbaBackend",
]

BACKENDS: MappingProxyType[str, Backend] = MappingProxyType(
    {"interpreter": InterpreterBackend(), "llvm": LlvmBackend(), "numba": NumbaBackend()}
)
"""The backends by name."""
