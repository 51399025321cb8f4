"""The pipeline of a function: what its options mean for the stage and the passes.

In: the decorator's options. Out: the ``Pipeline`` for the host, or that for a device, which knows
the kernels of its libraries.
"""

from __future__ import annotations

from sparsejit.api._left_out import NESTS, left_out
from sparsejit.api._options import JitOptions
from sparsejit.ir.device_statements import LibraryOp
from sparsejit.pipeline import Pipeline, StageOptions, default_pipeline

__all__ = ["DEVICE_KERNELS", "pipeline_of"]

DEVICE_KERNELS = frozenset(op.value for op in LibraryOp if op is not LibraryOp.GEMM)
"""The kernels that libraries of devices may compute: all that have a sparse operand."""


def _host_libraries(options: JitOptions) -> frozenset[str]:
    """Return the kernels that libraries of the host may compute: sums in an order of their own."""
    ordered = options.deterministic or not options.reassociate
    is_wanted = options.library != "never" and options.target != "interpreter" and not ordered
    is_wanted = is_wanted and "blas" not in left_out()
    return frozenset({LibraryOp.GEMM.value}) if is_wanted else frozenset()


def pipeline_of(options: JitOptions, for_device: bool = False) -> Pipeline:
    """Return the pipeline for one function; that for a device knows the library's kernels."""
    libraries = _host_libraries(options)
    if for_device:
        libraries = DEVICE_KERNELS if options.library != "never" else frozenset()
    return default_pipeline(
        parallelization=options.parallelization,
        ordered_reductions=options.deterministic or not options.reassociate,
        stage_options=StageOptions(
            contractions=None if options.reassociate else (),
            library_kernels=libraries,
            fuse_generics=NESTS not in left_out(),
        ),
        for_device=for_device,
    )
