"""Library recognition: is this ``Generic`` a kernel that a library has? A pure question.

It is asked inside the stage, where level types and indexing maps are visible and the copies are
decided, once for each operation and each kernel in ``StageOptions.library_kernels``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsejit.ir.tensor import Generic
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["Mismatch", "match_library_kernel"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an operation is lowered to generated loops rather than to a library call."""

    reason: str


def match_library_kernel(op: Generic, options: StageOptions) -> Mismatch:
    """Return why ``op`` is no library kernel.

    No target of this version offers any: the CPU runs generated loops only.
    """
    if not options.library_kernels:
        return Mismatch("the target offers no library kernels")
    offered = ", ".join(sorted(options.library_kernels))
    return Mismatch(f"no recognizer for {offered} is built")
