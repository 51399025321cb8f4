"""The statements of the loop IR that a device needs: kernels, library calls, numbers read back.

A function that has them is still a loop function: ``host_form`` gives the same program without
them, which is what they mean. A phase of a function ends where the host needs a number that a
device computed (``ReadBack``).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparsejit.ir.loops import Expr, Memref, Stmt, Var

from sparsejit._dataclasses import dataclass

__all__ = [
    "DenseMatrix",
    "Launch",
    "LibraryCall",
    "LibraryOp",
    "ReadBack",
    "Require",
    "Schedule",
    "SparseLayout",
    "SparseMatrix",
]


class Schedule(Enum):
    """How the iterations of a kernel's outer loop are spread over threads."""

    THREAD = "a thread an iteration"
    WARP = "a warp an iteration"
    BALANCED = "balanced by stored entries"
    ONE_THREAD = "one thread"

    def __repr__(self) -> str:
        return f"Schedule.{self.name}"


@dataclass(frozen=True, slots=True)
class Launch:
    """Run ``body`` on a device as the kernel ``kernel``, a name of its own in the function.

    Unless the schedule is ``ONE_THREAD``, ``body`` is one parallel ``For``, behind ``Let`` that
    compute what it needs. It allocates nothing that outlives an iteration.

    ``atomics`` are the arrays of which several iterations update one element: each ``Store`` with
    ``reduce`` into them is one atomic step.
    """

    kernel: str
    schedule: Schedule
    body: tuple[Stmt, ...]
    atomics: tuple[Memref, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Introduce ``var``: the element ``memref[indices]``, which the host waits for."""

    var: Var
    memref: Memref
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Require:
    """End the call with the ``ValueError`` ``text`` unless ``condition``, a bool, holds.

    Assembling on a device is statements, and this one of them; on a host it tells that itself.
    """

    condition: Expr
    text: str


class LibraryOp(Enum):
    """What a library computes; ``alpha``, ``beta`` and all operands belong to the call."""

    SPMV = "SpMV"
    SPMM = "SpMM"
    SDDMM = "SDDMM"
    SPGEMM = "SpGEMM"
    SPADD = "sparse add"
    NM_SPMM = "2:4 SpMM"
    GEMM = "dense product"

    def __repr__(self) -> str:
        return f"LibraryOp.{self.name}"


class SparseLayout(Enum):
    """The storage of a matrix as libraries name it."""

    CSR = "CSR"
    CSC = "CSC"
    COO = "COO"
    BSR = "BSR"
    NM = "2:4"

    def __repr__(self) -> str:
        return f"SparseLayout.{self.name}"


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """A sparse operand of a library call.

    ``extents`` are those of the stored matrix, rows and columns, behind an extent of the batch if
    there is one: then positions and coordinates have a row for each matrix, and the values of one
    lie behind those of the other. ``buffers`` are its memrefs in storage order, values last.
    ``block`` is the block of BSR. The operand is the transpose of what is stored where
    ``is_transposed``.
    """

    layout: SparseLayout
    extents: tuple[Expr, ...]
    buffers: tuple[Memref, ...]
    block: tuple[int, int] = (1, 1)
    is_transposed: bool = False


@dataclass(frozen=True, slots=True)
class DenseMatrix:
    """A dense operand of a library call: a vector, a matrix, or a batch of one of them.

    ``batch`` is the axis of ``memref`` that counts the batch; the others are those of the vector or
    matrix. The operand is the transpose of that matrix where ``is_transposed``.
    """

    memref: Memref
    is_transposed: bool = False
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """``output = alpha * inputs + beta * output`` by a library, where it takes the call.

    What it computes is what ``otherwise`` computes; that is what runs where there is no library or
    where it refuses the call. ``alpha`` and ``beta`` have the dtype that is computed in. With a
    batch the output has one, and each input that has none is the same for all of it; a vector of a
    batch counts as a matrix of one column.
    ``targets`` are the memrefs that the call introduces (the arrays of a sparse result):
    ``otherwise`` introduces them too, and they are known behind the call.
    """

    op: LibraryOp
    inputs: tuple[SparseMatrix | DenseMatrix, ...]
    output: SparseMatrix | DenseMatrix
    alpha: Expr
    beta: Expr
    otherwise: tuple[Stmt, ...]
    targets: tuple[Memref, ...] = ()

    @property
    def is_batched(self) -> bool:
        """Whether the call computes a batch."""
        return isinstance(self.output, DenseMatrix) and self.output.batch is not None
