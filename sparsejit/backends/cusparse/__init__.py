"""Library kernels: calls of cuSPARSE and cuSPARSELt, as data for a device runtime.

Reading order: ``_abi`` (the table of functions), ``_operands`` (how a call's operands look to the
library), ``_rules`` (what the library refuses), ``_products``, ``_sparse_results`` and
``_structured`` (the calls), ``_replay`` (what they compute), ``_codes`` (from a call to its code).
"""

from sparsejit.backends.cusparse._codes import library_codes as library_codes

__all__ = ["library_codes"]
