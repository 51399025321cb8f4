"""Backends: from loop functions to text, and from text to kernels that run.

Reading order: ``base`` (the protocol), ``python_source`` (one text for interpreter and Numba),
``interpreter``, ``numba_cpu``, ``llvm`` (a second printer, the default on the CPU), ``disk_cache``,
``support`` (the library that generated Python calls).
"""

from collections.abc import Iterator, Mapping

from sparsejit.backends.base import MISS as MISS
from sparsejit.backends.base import Backend as Backend
from sparsejit.backends.base import DirectCall as DirectCall
from sparsejit.backends.base import DirectKernel as DirectKernel
from sparsejit.backends.base import Kernel as Kernel
from sparsejit.backends.base import KernelSource as KernelSource
from sparsejit.backends.base import OnDevice as OnDevice
from sparsejit.backends.base import Recalling as Recalling

__all__ = [
    "BACKENDS",
    "MISS",
    "Backend",
    "DirectCall",
    "DirectKernel",
    "Kernel",
    "KernelSource",
    "OnDevice",
    "Recalling",
]

_NAMES = ("interpreter", "llvm", "numba")


class _Backends(Mapping[str, Backend]):
    """The backends by name; a module is imported when its backend is first asked for."""

    def __getitem__(self, name: str) -> Backend:
        match name:
            case "interpreter":
                from sparsejit.backends.interpreter import InterpreterBackend

                return InterpreterBackend()
            case "llvm":
                from sparsejit.backends.llvm import LlvmBackend

                return LlvmBackend()
            case "numba":
                from sparsejit.backends.numba_cpu import NumbaBackend

                return NumbaBackend()
            case _:
                raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


BACKENDS: Mapping[str, Backend] = _Backends()
"""The backends by name."""
