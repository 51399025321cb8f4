"""The operands of a library call as the library sees them: pointers, extents and orders.

In: a ``LibraryCall`` and its run-time arguments. Out: stored matrices, by rows wherever that is
possible (a matrix by columns is its transpose by rows), and dense ones with a leading dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.backends.cusparse._abi import ORDER_COLUMN, ORDER_ROW
from sparsejit.ir.device_code import DeviceArray, LibraryArguments
from sparsejit.ir.device_statements import DenseMatrix, LibraryCall, SparseLayout, SparseMatrix
from sparsejit.ir.types import DType

__all__ = ["Dense", "Stored", "dense_of", "index_type", "operands_of", "stored_of"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A sparse matrix in device memory; the operand is its transpose where ``is_transposed``.

    ``indices`` are positions and coordinates of compressed rows (columns, blocks), the coordinates
    of rows and columns in coordinate format, and the coordinates in their groups in 2:4. With
    ``batches`` there is one for each of them, or one and the same for all.
    """

    layout: SparseLayout
    rows: int
    columns: int
    indices: tuple[DeviceArray, ...]
    values: DeviceArray
    block: tuple[int, int]
    is_transposed: bool
    batches: int | None = None

    @property
    def is_shared(self) -> bool:
        """Whether all batches have the same matrix."""
        return len(self.indices[-1].shape) == 1

    @property
    def num_stored(self) -> int:
        """The number of stored values of one matrix."""
        if self.batches is None or self.is_shared:
            return self.values.shape[0]
        return self.indices[-1].shape[-1]

    @property
    def batch_strides(self) -> tuple[int, ...]:
        """How far behind each other the indices of two batches lie, and the values; 0 if shared."""
        if self.is_shared:
            return (0,) * (len(self.indices) + 1)
        return (*(array.strides[0] for array in self.indices), self.num_stored)

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
    row (column) to the next. ``is_contiguous`` says whether that describes the array at all. With
    ``batches`` there is one matrix behind the other at a distance of ``batch_stride``, or, if that
    is 0, the same for all.
    """

    rows: int
    columns: int
    leading: int
    order: int
    array: DeviceArray
    is_contiguous: bool
    is_vector: bool = False
    batches: int | None = None
    batch_stride: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the operand."""
        return self.rows, self.columns

    @property
    def lines(self) -> int:
        """How many rows (columns, by ``order``) there are, each ``leading`` behind the other."""
        return self.rows if self.order == ORDER_ROW else self.columns


def stored_of(
    operand: SparseMatrix, extents: tuple[int, ...], arguments: LibraryArguments
) -> Stored:
    """Return a sparse operand at run time; its buffers must exist."""
    *indices, values = (arguments.arrays[buffer.name] for buffer in operand.buffers)
    if operand.layout is SparseLayout.COO:
        indices = indices[1:]  # positions hold nothing but the number of entries
    rows, columns = extents[-2:]
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
    return _matrix(array, (rows, columns), (down, across), operand.is_transposed)


def _of_batch(operand: DenseMatrix, arguments: LibraryArguments, batches: int) -> Dense:
    """Return a dense operand of a batch; a vector is a matrix of one column."""
    array = arguments.arrays[operand.memref.name]
    axes = [axis for axis in range(len(array.shape)) if axis != operand.batch]
    shape = (*(array.shape[axis] for axis in axes), 1)[:2]
    strides = (*(array.strides[axis] for axis in axes), 1)[:2]
    rows, columns = shape
    down, across = strides
    found = _matrix(array, (rows, columns), (down, across), operand.is_transposed)
    if operand.batch is None:
        return replace(found, batches=batches)
    own, stride = array.shape[operand.batch], array.strides[operand.batch]
    if own == 1:  # the stride of an axis of one element says nothing
        stride = found.leading * found.lines
    return replace(found, batches=own, batch_stride=stride)


def _matrix(
    array: DeviceArray, shape: tuple[int, int], strides: tuple[int, int], is_transposed: bool
) -> Dense:
    rows, columns = shape
    down, across = strides
    if is_transposed:
        rows, columns, down, across = columns, rows, across, down
    if (across == 1 or columns <= 1) and (down >= columns or rows <= 1):
        return Dense(rows, columns, max(down, columns, 1), ORDER_ROW, array, True)
    fits = (down == 1 or rows <= 1) and (across >= rows or columns <= 1)
    return Dense(rows, columns, max(across, rows, 1), ORDER_COLUMN, array, fits)


def operands_of(call: LibraryCall, arguments: LibraryArguments) -> Iterator[Stored | Dense]:
    """Yield the inputs and, unless the call introduces it, the output."""
    targets = {target.name for target in call.targets}
    batches = _batches(call, arguments)
    for operand, extents in zip((*call.inputs, call.output), arguments.extents, strict=True):
        match operand:
            case DenseMatrix():
                if batches is None:
                    yield dense_of(operand, arguments)
                else:
                    yield _of_batch(operand, arguments, batches)
            case SparseMatrix():
                if operand.buffers[-1].name not in targets:
                    stored = stored_of(operand, extents, arguments)
                    if batches is not None:  # by columns there are no batches
                        own = extents[0] if len(extents) > 2 else batches
                        stored = replace(stored.by_rows(), batches=own)
                    yield stored
            case _:
                assert_never(operand)


def _batches(call: LibraryCall, arguments: LibraryArguments) -> int | None:
    """Return how many results a call has, None where it has no batch."""
    output = call.output
    if not isinstance(output, DenseMatrix) or output.batch is None:
        return None
    return arguments.arrays[output.memref.name].shape[output.batch]


def index_type(stored: Stored) -> DType:
    """Return the type of the indices of a matrix."""
    return stored.indices[0].dtype
