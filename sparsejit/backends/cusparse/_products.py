"""Products with a result that is there: SpMV, SpMM, SDDMM. One workspace, one call.

Matrices by columns are handed over as they are where the library knows them, and as transposes by
rows to SDDMM, which does not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparsejit.backends.cusparse._abi import ALGORITHMS, BATCH_ALGORITHMS, TRANSPOSE, call
from sparsejit.backends.cusparse._descriptors import Described, compute_type
from sparsejit.backends.cusparse._operands import Dense, Stored
from sparsejit.ir.device_code import DeviceArray, LibraryPhase, LibraryRefusal, LibraryRuntime
from sparsejit.ir.device_statements import (
    DenseMatrix,
    LibraryCall,
    LibraryOp,
    SparseLayout,
    SparseMatrix,
)

__all__ = ["product_phases", "rows_of_sample", "why_not_deterministic"]


def why_not_deterministic(library_call: LibraryCall) -> str | None:
    """Return why a product of this kind may differ from run to run, or None."""
    if library_call.op is LibraryOp.SDDMM:
        return None
    (matrix, _) = library_call.inputs
    assert isinstance(matrix, SparseMatrix)
    _, fixed = ALGORITHMS[library_call.op.value, matrix.layout]
    what = f"{library_call.op.value} of {matrix.layout.value}"
    if library_call.is_batched:
        return f"a batch of {what} may differ from run to run"
    if matrix.is_transposed:
        return f"{what}, transposed, may differ from run to run"
    return f"{what} may differ from run to run" if fixed is None else None


def rows_of_sample(library_call: LibraryCall) -> LibraryCall:
    """Return a sampled product as one by rows: ``C = A @ B`` is ``C.T = B.T @ A.T``."""
    output = library_call.output
    assert isinstance(output, SparseMatrix)
    is_csc = output.layout is SparseLayout.CSC
    if output.is_transposed == is_csc:
        turned = library_call
    else:
        left, right = library_call.inputs
        assert isinstance(left, DenseMatrix)
        assert isinstance(right, DenseMatrix)
        inputs = tuple(replace(k, is_transposed=not k.is_transposed) for k in (right, left))
        turned = replace(
            library_call,
            inputs=inputs,
            output=replace(output, is_transposed=not output.is_transposed),
        )
    if not is_csc:
        return turned
    rows = replace(
        output, layout=SparseLayout.CSR, extents=output.extents[::-1], is_transposed=False
    )
    return replace(turned, output=rows)


def product_phases(library_call: LibraryCall, deterministic: bool) -> tuple[LibraryPhase, ...]:
    """Return the one phase of SpMV, SpMM or SDDMM."""
    name = f"cusparse{library_call.op.value}"

    def arguments(runtime: LibraryRuntime, state: Described) -> tuple[Any, ...]:
        left, right, output = state.descriptors
        stored = state.operands[0]
        turned = TRANSPOSE if isinstance(stored, Stored) and stored.is_transposed else 0
        operations = (turned,) if library_call.op is LibraryOp.SPMV else (turned, 0)
        alpha, beta = state.scalars["alpha"], state.scalars["beta"]
        algorithm = _algorithm(library_call, stored, deterministic)
        return (
            *(runtime.handle("cusparse"), *operations, alpha, left, right, beta, output),
            *(compute_type(state), algorithm),
        )

    def sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int] | LibraryRefusal:
        size = ctypes.c_size_t()
        query = (*arguments(runtime, state), ctypes.byref(size))
        if not call(state.library, f"{name}_bufferSize", *query, may_refuse=True):
            return LibraryRefusal(f"cuSPARSE does not support this {library_call.op.value}")
        return (size.value,)

    def run(
        runtime: LibraryRuntime,
        state: Described,
        workspaces: Sequence[int],
        targets: Mapping[str, DeviceArray],
    ) -> None:
        call(state.library, name, *arguments(runtime, state), workspaces[0])

    return (LibraryPhase(library_call.op.value, sizes, run, ("workspace",)),)


def _algorithm(library_call: LibraryCall, stored: Stored | Dense, deterministic: bool) -> int:
    if library_call.op is LibraryOp.SDDMM:
        return 0
    if isinstance(stored, Stored) and stored.batches is not None:
        return BATCH_ALGORITHMS[stored.layout]
    matrix = library_call.inputs[0]
    assert isinstance(matrix, SparseMatrix)
    default, fixed = ALGORITHMS[library_call.op.value, matrix.layout]
    return fixed if deterministic and fixed is not None else default
