"""The operands of a library call as the library sees them: pointers, extents and orders.

In: a ``LibraryCall`` and its run-time arguments. Out: stored matrices, by rows wherever that is
possible (a matrix by columns is its transpose by rows), and dense ones with a leading dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from sparsejit.backends.cusparse._abi import ORDER_COLUMN, ORDER_ROW
from sparsejit.ir.device_code import DeviceArray, LibraryArguments
from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, SparseLayout, SparseMatrix
from sparsejit.ir.types import DType

__all__ = ["Dense", "Stored", "dense_of", "index_type", "operands_of", "stored_of"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A sparse matrix in device memory; the operand is its transpose where ``is_transposed``.

    ``indices`` are positions and coordinates of compressed rows (columns, blocks), the coordinates
    of rows and columns in coordinate format, and the coordinates in their groups in 2:4.
    """

    layout: SparseLayout
    rows: int
    columns: int
    indices: tuple[DeviceArray, ...]
    values: DeviceArray
    block: tuple[int, int]
    is_transposed: bool

    @property
    def num_stored(self) -> int:
        """The number of stored values."""
        return self.values.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the operand."""
        straight = (self.rows, self.columns)
        return straight[::-1] if self.is_transposed else straight

    def by_rows(self) -> Stored:
        """Return the same operand without columns: compressed columns are rows of a transpose."""
        if self.layout is not SparseLayout.CSC:
            return self
        turned = not self.is_transposed
        return replace(
            self,
            layout=SparseLayout.CSR,
            rows=self.columns,
            columns=self.rows,
            is_transposed=turned,
        )


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense vector (``columns`` is 1, ``order`` does not matter) or matrix in device memory.

    Elements of a row (a column, by ``order``) are neighbors; ``leading`` is the distance from one
    row (column) to the next. ``is_contiguous`` says whether that describes the array at all.
    """

    rows: int
    columns: int
    leading: int
    order: int
    array: DeviceArray
    is_contiguous: bool
    is_vector: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the operand."""
        return self.rows, self.columns


def stored_of(
    operand: SparseMatrix, extents: tuple[int, ...], arguments: LibraryArguments
) -> Stored:
    """Return a sparse operand at run time; its buffers must exist."""
    *indices, values = (arguments.arrays[buffer.name] for buffer in operand.buffers)
    if operand.layout is SparseLayout.COO:
        indices = indices[1:]  # positions hold nothing but the number of entries
    rows, columns = extents
    return Stored(
        operand.layout,
        rows,
        columns,
        tuple(indices),
        values,
        operand.block,
        operand.is_transposed,
    )


def dense_of(operand: DenseMatrix, arguments: LibraryArguments) -> Dense:
    """Return a dense operand at run time, its transposition taken in."""
    array = arguments.arrays[operand.memref.name]
    if len(array.shape) == 1:
        (count,), (stride,) = array.shape, array.strides
        whole = stride == 1 or count <= 1
        return Dense(count, 1, max(count, 1), ORDER_COLUMN, array, whole, is_vector=True)
    rows, columns = array.shape
    down, across = array.strides
    if operand.is_transposed:
        rows, columns, down, across = columns, rows, across, down
    if (across == 1 or columns <= 1) and (down >= columns or rows <= 1):
        return Dense(rows, columns, max(down, columns, 1), ORDER_ROW, array, True)
    fits = (down == 1 or rows <= 1) and (across >= rows or columns <= 1)
    return Dense(rows, columns, max(across, rows, 1), ORDER_COLUMN, array, fits)


def operands_of(call: LibraryCall, arguments: LibraryArguments) -> Iterator[Stored | Dense]:
    """Yield the inputs and, unless the call introduces it, the output."""
    targets = {target.name for target in call.targets}
    for operand, extents in zip((*call.inputs, call.output), arguments.extents, strict=True):
        match operand:
            case DenseMatrix():
                yield dense_of(operand, arguments)
            case SparseMatrix():
                if operand.buffers[-1].name not in targets:
                    yield stored_of(operand, extents, arguments)
            case _:
                assert_never(operand)


def index_type(stored: Stored) -> DType:
    """Return the type of the indices of a matrix."""
    return stored.indices[0].dtype
