"""The LLVM tier: loop functions printed as LLVM IR, optimized and run in the process.

Reading order: ``_expand`` (statements about whole arrays become loops), ``_text`` (LLVM IR as
text), ``_types``, ``_functions``, ``_arithmetic``, ``_arrays``, ``_expressions``, ``_statements``,
``_module`` (the printer), ``_engine`` (compiling, loading, the object cache), ``_calls``,
``backend``.
"""

from sparsejit.backends.llvm._options import LOWERINGS as LOWERINGS
from sparsejit.backends.llvm.backend import LlvmBackend as LlvmBackend

__all__ = ["LOWERINGS", "LlvmBackend"]
