"""What cuSPARSE and cuSPARSELt ask of a call's arguments: one table of rules, each with its source.

A broken rule is a reason not to hand a call to the library; the generated loops run instead. The
rules are the library's, not ours, so that a fake device that checks them does not merely repeat
what we believe. Sources: [doc] cuSPARSE's and cuSPARSELt's documentation; [lib] what the descriptor
functions of libcusparse 12.9 answer without a driver; [cupy] the guards in ``cupyx.cusparse``;
[issue] what cuSPARSE's maintainers answer in the tracker of their samples, by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparsejit.backends.cusparse._abi import INDEX_TYPES
from sparsejit.backends.cusparse._operands import Dense, Stored, index_type, operands_of
from sparsejit.ir.device_code import DeviceArray, LibraryArguments
from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, LibraryOp, SparseLayout
from sparsejit.ir.loops import Lit

__all__ = ["RULES", "broken_rules"]

Rule = Callable[[LibraryCall, tuple[Stored | Dense, ...]], Iterator[str]]

_WIDEST_PRODUCT = 65535 * 16
_INT32_LIMIT = 2**31 - 1
_NM_MULTIPLE = 16
_MOST_BATCHES = 65535


def _something_is_stored(call: LibraryCall, operands: tuple[Stored | Dense, ...]) -> Iterator[str]:
    """[cupy] With nothing stored, versions differ in whether ``beta * y`` is computed at all."""
    for operand in operands:
        if 0 in operand.shape or operand.batches == 0:
            yield "an operand has no elements"
        elif isinstance(operand, Stored) and operand.num_stored == 0:
            yield "a sparse operand stores nothing"


def _elements_are_neighbors(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[doc] A dense vector has no stride, a dense matrix a leading dimension in one order."""
    for operand in operands:
        if isinstance(operand, Dense) and not operand.is_contiguous:
            yield f"a dense {'vector' if operand.is_vector else 'matrix'} has gaps"


def _leading_dimensions_cover_rows(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[lib] ``cusparseCreateDnMat`` refuses a leading dimension smaller than a row."""
    for operand in operands:
        if isinstance(operand, Dense) and operand.is_contiguous and not operand.is_vector:
            least = operand.columns if operand.order == 2 else operand.rows
            if operand.leading < least:
                yield f"a leading dimension of {operand.leading} is below {least}"


def _pointers_are_aligned(call: LibraryCall, operands: tuple[Stored | Dense, ...]) -> Iterator[str]:
    """[lib] ``cusparseCreateCsr`` refuses pointers that no element may have."""
    for array in _arrays(operands):
        size = array.dtype.bits // 8
        if array.pointer % size:
            yield f"an array of {array.dtype.value} is not aligned to {size} bytes"


def _arrays(operands: tuple[Stored | Dense, ...]) -> Iterator[DeviceArray]:
    for operand in operands:
        if isinstance(operand, Dense):
            yield operand.array
        else:
            yield from (*operand.indices, operand.values)


def _entries_fit_the_shape(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[lib] ``cusparseCreateCsr`` refuses more entries than elements."""
    for operand in operands:
        if not isinstance(operand, Stored) or operand.layout is SparseLayout.BSR:
            continue
        if operand.num_stored > operand.rows * operand.columns:
            yield f"{operand.num_stored} entries in {operand.rows} by {operand.columns}"


def _indices_are_signed(call: LibraryCall, operands: tuple[Stored | Dense, ...]) -> Iterator[str]:
    """[doc] Index types are 32 and 64 bits, the same for positions and coordinates."""
    for operand in operands:
        if isinstance(operand, Stored):
            kinds = {array.dtype for array in operand.indices}
            if len(kinds) > 1 or not kinds <= set(INDEX_TYPES):
                names = " and ".join(sorted(kind.value for kind in kinds))
                yield f"indices of {names}"


def _blocks_are_square_and_divide_extents(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[doc] A BSR matrix has as many rows as its block rows; a vector must be as long.

    [lib] ``cusparseCreateBsr`` refuses blocks that are not square.
    """
    for operand in operands:
        if isinstance(operand, Stored) and operand.layout is SparseLayout.BSR:
            rows, columns = operand.block
            if rows != columns:
                yield f"blocks of {rows} by {columns} are not square"
            if operand.rows % rows or operand.columns % columns:
                yield f"blocks of {rows} by {columns} do not divide the matrix"
            if call.op is LibraryOp.SPMM and operand.is_transposed:
                yield "the transpose of a matrix in blocks"


def _products_are_not_too_wide(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[cupy] Before 12.7.20, SpMM with more than 65535 * 16 columns overflows its grid."""
    if call.op is LibraryOp.SPMM:
        columns = operands[-1].shape[1]
        if columns > _WIDEST_PRODUCT:
            yield f"{columns} columns are more than {_WIDEST_PRODUCT}"


def _sums_have_32_bit_indices(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[doc] ``csrgeam2`` takes ``int`` extents, counts and indices."""
    if call.op is not LibraryOp.SPADD:
        return
    total = 0
    for operand in operands:
        assert isinstance(operand, Stored)
        if INDEX_TYPES.get(index_type(operand)) != 2:
            yield "sparse sums have 32-bit indices"
        total += operand.num_stored
        if max(operand.shape) > _INT32_LIMIT:
            yield "sparse sums have 32-bit extents"
    if total > _INT32_LIMIT:
        yield "sparse sums have 32-bit counts"


def _structured_extents_are_multiples(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[doc] cuSPARSELt: rows, columns and leading dimensions are multiples of 16 elements."""
    if call.op is not LibraryOp.NM_SPMM:
        return
    for operand in operands:
        sizes = [*operand.shape]
        if isinstance(operand, Dense):
            sizes.append(operand.leading)
        if any(size % _NM_MULTIPLE for size in sizes):
            yield f"extents of a 2:4 product are not multiples of {_NM_MULTIPLE}"
        if any(array.pointer % 16 for array in _arrays((operand,))):
            yield "an operand of a 2:4 product is not aligned to 16 bytes"


def _batches_are_alike(call: LibraryCall, operands: tuple[Stored | Dense, ...]) -> Iterator[str]:
    """[issue] 81: all operands have the same number of batches; a stride of 0 broadcasts one.

    [doc] SpMM takes at most 65535.
    """
    counts = {operand.batches for operand in operands}
    if len(counts) > 1:
        yield f"batches of {' and '.join(map(str, sorted(map(str, counts))))}"
    if any(count is not None and count > _MOST_BATCHES for count in counts):
        yield f"more than {_MOST_BATCHES} batches"


def _batches_do_not_overlap(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[doc] [lib] ``cusparseDnMatSetStridedBatch``: a stride is at least ``ld * rows``, or 0.

    By columns it is at least ``ld * columns``. What is written may not be the same for all.
    """
    for operand in operands:
        if not isinstance(operand, Dense) or operand.batches is None:
            continue
        is_shared = operand.batch_stride == 0 and operand is not operands[-1]
        if operand.batch_stride < operand.leading * operand.lines and not is_shared:
            yield f"matrices of a batch are {operand.batch_stride} elements apart"


def _batches_of_entries_lie_alike(
    call: LibraryCall, operands: tuple[Stored | Dense, ...]
) -> Iterator[str]:
    """[doc] One stride for columns and values of CSR, one for all three arrays of COO."""
    for operand in operands:
        if not isinstance(operand, Stored) or operand.batches is None or operand.is_shared:
            continue
        whole = operand.batches * operand.num_stored
        first = 0 if operand.layout is SparseLayout.COO else 1
        if len(set(operand.batch_strides[first:])) > 1 or operand.values.shape[0] != whole:
            yield "the entries of its batches do not lie behind each other"


RULES: tuple[Rule, ...] = (
    _something_is_stored,
    _elements_are_neighbors,
    _leading_dimensions_cover_rows,
    _pointers_are_aligned,
    _entries_fit_the_shape,
    _indices_are_signed,
    _blocks_are_square_and_divide_extents,
    _products_are_not_too_wide,
    _sums_have_32_bit_indices,
    _structured_extents_are_multiples,
    _batches_are_alike,
    _batches_do_not_overlap,
    _batches_of_entries_lie_alike,
)


def broken_rules(call: LibraryCall, arguments: LibraryArguments) -> list[str]:
    """Return a sentence for each rule that the arguments break."""
    operands = tuple(operands_of(call, arguments))
    found = [sentence for rule in RULES for sentence in rule(call, operands)]
    return [*found, *_beta_is_not_zero_by_chance(call, arguments)]


def _beta_is_not_zero_by_chance(call: LibraryCall, arguments: LibraryArguments) -> Iterator[str]:
    """[doc] With ``beta`` 0 the output is not read: what is nan there would not stay nan."""
    reads = isinstance(call.output, DenseMatrix) and not isinstance(call.beta, Lit)
    if reads and arguments.beta == 0:
        yield "the output is multiplied by 0"
