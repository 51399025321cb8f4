"""What libraries take: dtypes, storage, widths of indices, and what of all that in batches.

What a library has is the union over versions and devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparsejit.ir.device_statements import LibraryOp, SparseLayout
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import DType
from sparsejit.sparsify_and_bufferize._library_match import Match
from sparsejit.sparsify_and_bufferize._library_operands import index_problem
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["why_not_taken"]

_FLOATS = (DType.FLOAT32, DType.FLOAT64, DType.COMPLEX64, DType.COMPLEX128)
_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_DTYPES = {
    LibraryOp.SPMV: (*_FLOATS, *_HALVES),
    LibraryOp.SPMM: (*_FLOATS, *_HALVES),
    LibraryOp.SDDMM: _FLOATS,
    LibraryOp.SPGEMM: _FLOATS,
    LibraryOp.SPADD: _FLOATS,
    LibraryOp.NM_SPMM: _HALVES,
    LibraryOp.GEMM: (DType.FLOAT32, DType.FLOAT64),
}
_LAYOUTS = {
    LibraryOp.SPMV: (SparseLayout.CSR, SparseLayout.CSC, SparseLayout.COO, SparseLayout.BSR),
    LibraryOp.SPMM: (SparseLayout.CSR, SparseLayout.CSC, SparseLayout.COO, SparseLayout.BSR),
    LibraryOp.SDDMM: (SparseLayout.CSR, SparseLayout.CSC),
    LibraryOp.SPGEMM: (SparseLayout.CSR, SparseLayout.CSC),
    LibraryOp.SPADD: (SparseLayout.CSR, SparseLayout.CSC),
    LibraryOp.NM_SPMM: (SparseLayout.NM,),
    LibraryOp.GEMM: (),
}
_BATCHED_DTYPES = _FLOATS
"""16-bit floats are computed by CSR_ALG3, which takes no batches."""
_BATCHED_LAYOUTS = (SparseLayout.CSR, SparseLayout.CSC, SparseLayout.COO)
"""What ``cusparseSpMM`` takes batches of, by its documentation."""


def why_not_taken(match: Match, op: Generic, options: StageOptions) -> str | None:
    """Return why no version of the library takes the operands of a match, None where one does."""
    for problem in _problems(match, op, options):
        return problem
    return None


def _problems(match: Match, op: Generic, options: StageOptions) -> Iterator[str]:
    roles = (*match.inputs, match.output)
    values = (*op.inputs, op.init)
    numbers = {role.number for role in roles}
    numbers |= set() if match.sample is None else {match.sample}
    dtypes = sorted({values[number].type.dtype.value for number in numbers})
    if len(dtypes) > 1:
        yield f"operands of {' and '.join(dtypes)}"
    if DType(dtypes[0]) not in _DTYPES[match.op]:
        yield f"{match.op.value} of {dtypes[0]}"
    if match.output.batch is not None:
        yield from _problems_of_batch(match, values[match.inputs[0].number], options)
    for role in roles:
        if role.storage is not None:
            if role.storage.layout not in _LAYOUTS[match.op]:
                yield f"{match.op.value} of {role.storage.layout.value}"
            problem = index_problem(values[role.number].type, options.index_widths)
            yield from () if problem is None else (problem,)
    if _index_widths(match, op, options) > 1:
        yield "its sparse operands have indices of different widths"


def _problems_of_batch(match: Match, matrix: Value, options: StageOptions) -> Iterator[str]:
    role = match.inputs[0]
    assert role.storage is not None
    layout, dtype = role.storage.layout, matrix.type.dtype
    if match.op is not LibraryOp.SPMM or layout not in _BATCHED_LAYOUTS:
        yield f"a batch of {match.op.value} of {layout.value}"
    if dtype not in _BATCHED_DTYPES:
        yield f"a batch of {match.op.value} of {dtype.value}"
    if role.batch is not None and matrix.name not in options.full_batches:
        yield "it is not known that each batch of its sparse factor is full, without unused slots"


def _index_widths(match: Match, op: Generic, options: StageOptions) -> int:
    """Return how many widths the indices of its sparse operands have."""
    numbers = {role.number for role in (*match.inputs, match.output) if role.storage is not None}
    numbers |= set() if match.sample is None else {match.sample}
    formats = [(*op.inputs, op.init)[number].type.format for number in numbers]
    return len({fmt.crd_width or options.index_widths.coordinates for fmt in formats})
