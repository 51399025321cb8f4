"""The decorator and what it makes of a function.

Reading order: ``_decorator`` and ``_options``; ``_function`` (a call from top to bottom); then what
a call needs in order: ``_signature``, ``_flatten``, ``_captures``, ``_cache_key``, ``_call``,
``_program``, ``_programs``, ``_run``; and what looks at it: ``_lowered``.
"""

from sparsejit.api._decorator import sparse_jit as sparse_jit
from sparsejit.api._function import CacheInfo as CacheInfo
from sparsejit.api._function import CompiledFunction as CompiledFunction
from sparsejit.api._options import Transfer as Transfer
from sparsejit.api._plan import Plan as Plan

__all__ = ["CacheInfo", "CompiledFunction", "Plan", "Transfer", "sparse_jit"]
