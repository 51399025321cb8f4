"""The LLVM tier: loop functions printed as LLVM IR, optimized and run in the process.

Reading order: ``_expand`` (statements about whole arrays become loops), ``_types``, ``_functions``,
``_arithmetic``, ``_arrays``, ``_expressions``, ``_statements`` (the printer), ``_engine`` (compiling,
loading, the object cache), ``backend``.
"""

from sparsejit.backends.llvm.backend import LlvmBackend as LlvmBackend

__all__ = ["LlvmBackend"]
