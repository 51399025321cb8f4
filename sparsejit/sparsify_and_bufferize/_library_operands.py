"""Operands as libraries know them: which storage a tensor has by a library's name, or none.

This is the one place that asks whether a format is CSR. The answer depends on levels and on index
types, never on the name of a format. A matrix in column order is the transpose of one in row order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, FloorDiv, substitute
from sparsejit.formats import BSR, COO, CSC, CSR, NV24, Format, Level, LevelKind, LevelType
from sparsejit.ir.device_statements import SparseLayout
from sparsejit.ir.printing import format_text
from sparsejit.ir.types import DType, IndexWidths, TensorType
from sparsejit.sparsify_and_bufferize._buffers import index_dtype

__all__ = ["Storage", "index_problem", "storage_of"]


@dataclass(frozen=True, slots=True)
class Storage:
    """A stored matrix: ``rows`` and ``columns`` are the numbers of its tensor's dimensions.

    ``batch`` is that of the dimension that counts the matrices of a batch.
    """

    layout: SparseLayout
    rows: int
    columns: int
    block: tuple[int, int] = (1, 1)
    batch: int | None = None


_PLAIN: Mapping[Format, Storage] = {
    CSR: Storage(SparseLayout.CSR, 0, 1),
    CSC: Storage(SparseLayout.CSC, 0, 1),
    COO(2): Storage(SparseLayout.COO, 0, 1),
    NV24: Storage(SparseLayout.NM, 0, 1),
}


def storage_of(tensor: TensorType) -> Storage | str:
    """Return what a library calls the storage of a sparse matrix, or why it has no name for it.

    >>> from sparsejit.ir.scalar import Const
    >>> zero = Const(0.0, DType.FLOAT64)
    >>> storage_of(TensorType((Dim(0), Dim(1)), DType.FLOAT64, CSR, zero)).layout
    SparseLayout.CSR
    """
    fmt = tensor.format.with_widths(0, 0)
    if tensor.fill.value != 0:
        return f"what is not stored is {tensor.fill.value!r}, not 0"
    found = _matrix(fmt) if fmt.ndim == 2 else _batch(fmt)
    if found is not None and found.block[0] != found.block[1]:
        return f"blocks of {found.block[0]} by {found.block[1]} are not square"
    if found is None and fmt.ndim != 2 and fmt.levels[0].type.kind is not LevelKind.BATCH:
        return f"rank {fmt.ndim} is no matrix, and no level is a batch"
    return found if found is not None else f"the library has no storage like {format_text(fmt)}"


def _matrix(fmt: Format) -> Storage | None:
    return _PLAIN.get(fmt) or _blocks(fmt) or _turned(fmt)


@lru_cache(maxsize=256)
def _batch(fmt: Format) -> Storage | None:
    """A batch of matrices: behind the level of the batch, the storage of one."""
    first, *rest = fmt.levels
    match first:
        case Level(Dim(batch), LevelType(LevelKind.BATCH)) if fmt.ndim == 3:
            kept = [dim for dim in range(fmt.ndim) if dim != batch]
            new = {dim: Dim(number) for number, dim in enumerate(kept)}
            levels = tuple(Level(substitute(level.expr, new), level.type) for level in rest)
            one = _matrix(Format.of(2, levels))
            if one is None:
                return None
            return replace(one, rows=kept[one.rows], columns=kept[one.columns], batch=batch)
        case _:
            return None


@lru_cache(maxsize=256)
def _blocks(fmt: Format) -> Storage | None:
    """Block rows, the elements of a block row by row."""
    match tuple(level.expr for level in fmt.levels):
        case (FloorDiv(Dim(0), rows), FloorDiv(Dim(1), columns), _, _):
            is_bsr = fmt == BSR(rows, columns)
            return Storage(SparseLayout.BSR, 0, 1, (rows, columns)) if is_bsr else None
        case _:
            return None


@lru_cache(maxsize=256)
def _turned(fmt: Format) -> Storage | None:
    """A storage of the transpose, where that is one without a name of its own."""
    swap = {0: Dim(1), 1: Dim(0)}
    levels = tuple(Level(substitute(level.expr, swap), level.type) for level in fmt.levels)
    turned = Format.of(2, levels)
    found = _PLAIN.get(turned) or _blocks(turned)
    return None if found is None else replace(found, rows=found.columns, columns=found.rows)


def index_problem(tensor: TensorType, automatic: IndexWidths) -> str | None:
    """Return why a library cannot read the positions and coordinates of a tensor, if it cannot."""
    fmt = tensor.format
    kinds = set()
    if any(level.type.has_positions for level in fmt.levels):
        kinds.add(index_dtype(fmt.pos_width, automatic.positions))
    kinds.add(index_dtype(fmt.crd_width, automatic.coordinates))
    if len(kinds) > 1:
        return "positions and coordinates have different widths"
    if not kinds <= {DType.INT32, DType.INT64}:
        (kind,) = kinds
        return f"indices of {kind.value} are neither int32 nor int64"
    return None
