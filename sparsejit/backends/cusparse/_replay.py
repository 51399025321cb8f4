"""What library calls compute, by NumPy and SciPy: for devices that are not there, and for tests.

Nothing here is used on a device. Sums are made in the type that the library computes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsejit.errors import VerificationError
from sparsejit.ir.device_code import LibraryArguments
from sparsejit.ir.device_statements import (
    DenseMatrix,
    LibraryCall,
    LibraryOp,
    SparseLayout,
    SparseMatrix,
)
from sparsejit.ir.fold import numpy_dtype

__all__ = ["replay"]

Arrays = Mapping[str, NDArray[Any]]
Results = dict[str, NDArray[Any]]


def replay(call: LibraryCall, arrays: Arrays, arguments: LibraryArguments) -> Results:
    """Return the new contents of what the call writes; ``arrays`` stay as they are."""
    compute: Callable[[LibraryCall, Arrays, LibraryArguments], Results]
    match call.op:
        case LibraryOp.SPMV | LibraryOp.SPMM | LibraryOp.NM_SPMM:
            compute = _dense_product
        case LibraryOp.SDDMM:
            compute = _sampled_product
        case LibraryOp.SPGEMM:
            compute = _sparse_product
        case LibraryOp.SPADD:
            compute = _sparse_sum
        case LibraryOp.GEMM:
            raise AssertionError("cuSPARSE has no product of dense matrices")
        case _:
            assert_never(call.op)
    return compute(call, arrays, arguments)


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the type that the library computes in: 16-bit floats are widened."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _dense(operand: DenseMatrix, arrays: Arrays) -> NDArray[Any]:
    """Return a vector or matrix, or a batch of them, its axis first."""
    return _turned(operand, _wide(arrays[operand.memref.name]))


def _turned(operand: DenseMatrix, array: NDArray[Any]) -> NDArray[Any]:
    if operand.batch is not None:
        array = np.moveaxis(array, operand.batch, 0)
    return np.swapaxes(array, -1, -2) if operand.is_transposed else array


def _turned_back(operand: DenseMatrix, array: NDArray[Any]) -> NDArray[Any]:
    if operand.is_transposed:
        array = np.swapaxes(array, -1, -2)
    return array if operand.batch is None else np.moveaxis(array, 0, operand.batch)


def _entries(
    matrix: SparseMatrix, extents: tuple[int, ...], arrays: Arrays
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return rows, columns and values of the stored elements, in storage order."""
    *indices, values = (arrays[buffer.name] for buffer in matrix.buffers)
    match matrix.layout:
        case SparseLayout.CSR | SparseLayout.CSC:
            positions, minor = indices
            major = np.repeat(np.arange(positions.size - 1), np.diff(positions))
            pair = (major, minor) if matrix.layout is SparseLayout.CSR else (minor, major)
            return (*pair, values)
        case SparseLayout.COO:
            return indices[1], indices[2], values
        case SparseLayout.BSR:
            positions, block_columns = indices
            block_rows = np.repeat(np.arange(positions.size - 1), np.diff(positions))
            inside = np.indices(matrix.block).reshape(2, 1, -1)
            rows = block_rows[:, None] * matrix.block[0] + inside[0]
            columns = block_columns[:, None] * matrix.block[1] + inside[1]
            return rows.reshape(-1), columns.reshape(-1), values
        case SparseLayout.NM:
            groups = -(-extents[1] // 4)
            slots = np.arange(values.size)
            return slots // (2 * groups), slots // 2 % groups * 4 + indices[0], values
        case _:
            assert_never(matrix.layout)


def _sparse(matrix: SparseMatrix, extents: tuple[int, ...], arrays: Arrays) -> sp.coo_array:
    rows, columns, values = _entries(matrix, extents, arrays)
    inside = (rows < extents[0]) & (columns < extents[1])
    entries = (_wide(values)[inside], (rows[inside], columns[inside]))
    made = sp.coo_array(entries, shape=extents)
    return made.T if matrix.is_transposed else made


def _dense_product(call: LibraryCall, arrays: Arrays, arguments: LibraryArguments) -> Results:
    matrix, factor = call.inputs
    assert isinstance(matrix, SparseMatrix)
    assert isinstance(factor, DenseMatrix)
    assert isinstance(call.output, DenseMatrix)
    before, right = _dense(call.output, arrays), _dense(factor, arrays)
    if call.is_batched:
        left = _batch(matrix, arguments.extents[0], arrays, len(before))
        rights = right if factor.batch is not None else [right] * len(before)
        products = [one @ other for one, other in zip(left, rights, strict=True)]
        product = np.array(products).reshape(before.shape)
    else:
        product = _sparse(matrix, arguments.extents[0], arrays).tocsr() @ right
    after = arguments.alpha * product
    if arguments.beta != 0:  # with beta 0 the output is written, not read: nan does not spread
        after = after + arguments.beta * before
    memref = call.output.memref
    return {memref.name: _turned_back(call.output, after).astype(arrays[memref.name].dtype)}


def _batch(
    matrix: SparseMatrix, extents: tuple[int, ...], arrays: Arrays, batches: int
) -> list[sp.csr_array]:
    """Return the sparse matrix of each batch.

    The library counts on full batches: what it makes of unused slots is not known.
    """
    if len(extents) == 2:
        return [_sparse(matrix, extents, arrays).tocsr()] * batches
    positions, *coordinates, values = (arrays[buffer.name] for buffer in matrix.buffers)
    capacity = coordinates[0].shape[1]
    if not (positions[:, 0] == 0).all() or not (positions[:, -1] == capacity).all():
        raise VerificationError("batches are full", f"{positions[:, -1]} of {capacity} entries")
    made = []
    for number in range(batches):
        own = [array[number] for array in (positions, *coordinates)]
        own.append(values[number * capacity : (number + 1) * capacity])
        names = (buffer.name for buffer in matrix.buffers)
        found = dict(zip(names, own, strict=True))
        made.append(_sparse(matrix, extents[1:], found).tocsr())
    return made


def _sampled_product(call: LibraryCall, arrays: Arrays, arguments: LibraryArguments) -> Results:
    left, right = call.inputs
    assert isinstance(left, DenseMatrix)
    assert isinstance(right, DenseMatrix)
    assert isinstance(call.output, SparseMatrix)
    rows, columns, values = _entries(call.output, arguments.extents[2], arrays)
    if call.output.is_transposed:
        rows, columns = columns, rows
    sums = np.einsum("ek,ke->e", _dense(left, arrays)[rows], _dense(right, arrays)[:, columns])
    after = arguments.alpha * sums
    if arguments.beta != 0:
        after = after + arguments.beta * values
    return {call.output.buffers[-1].name: after.astype(values.dtype)}


def _by_rows(matrix: SparseMatrix, extents: tuple[int, ...], arrays: Arrays) -> sp.csr_array:
    found = _sparse(matrix, extents, arrays).tocsr()
    found.sort_indices()
    return found


def _pattern(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)


def _sparse_product(call: LibraryCall, arrays: Arrays, arguments: LibraryArguments) -> Results:
    left, right = _inputs_by_rows(call, arrays, arguments)
    pattern = _pattern(left) @ _pattern(right)
    return _new(call, pattern, arguments.alpha * (left @ right))


def _sparse_sum(call: LibraryCall, arrays: Arrays, arguments: LibraryArguments) -> Results:
    left, right = _inputs_by_rows(call, arrays, arguments)
    pattern = _pattern(left) + _pattern(right)
    return _new(call, pattern, arguments.alpha * left + arguments.beta * right)


def _inputs_by_rows(
    call: LibraryCall, arrays: Arrays, arguments: LibraryArguments
) -> tuple[sp.csr_array, sp.csr_array]:
    left, right = call.inputs
    assert isinstance(left, SparseMatrix)
    assert isinstance(right, SparseMatrix)
    first = _by_rows(left, arguments.extents[0], arrays)
    return first, _by_rows(right, arguments.extents[1], arrays)


def _new(call: LibraryCall, pattern: sp.csr_array, values: sp.csr_array) -> Results:
    """Return the arrays of a sparse result by rows: SciPy drops what cancels, the library not."""
    assert isinstance(call.output, SparseMatrix)
    pattern.sort_indices()
    rows, columns = pattern.tocoo().coords
    found = np.asarray(values.tocsr()[rows, columns]).reshape(-1)
    arrays = (pattern.indptr, pattern.indices, found)
    return {
        target.name: array.astype(numpy_dtype(target.dtype))
        for target, array in zip(call.output.buffers, arrays, strict=True)
    }
