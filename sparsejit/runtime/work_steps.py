"""Steps of a launch plan that compute, on the device or on the host, and what controls them."""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loops import Expr, Memref, ScanOp, Var
from sparsejit.ir.scalar import Const
from sparsejit.runtime.transfer_steps import Home, TransferStep

__all__ = [
    "AskSizes",
    "Branch",
    "Check",
    "Compute",
    "CopyDevice",
    "Describe",
    "Destroy",
    "Fill",
    "Grid",
    "LaunchKernel",
    "Library",
    "Loop",
    "ReadScalar",
    "Repeat",
    "ResizeArray",
    "Return",
    "RunPhase",
    "ScanArray",
    "SortArray",
    "SortEntries",
    "Step",
    "ViewOf",
]


# ---------------------------------------------------------------- work


@dataclass(frozen=True, slots=True)
class Fill:
    """Give every element of a device array a value."""

    memref: Memref
    value: Const


@dataclass(frozen=True, slots=True)
class CopyDevice:
    """Copy a device array into another one of its shape."""

    target: Memref
    source: Memref


@dataclass(frozen=True, slots=True)
class ViewOf:
    """Name a strided part of a device array, as ``View`` of the loop IR does."""

    memref: Memref
    source: Memref
    offsets: tuple[Expr, ...]
    sizes: tuple[Expr, ...]
    strides: tuple[int, ...]
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ResizeArray:
    """Give a rank-1 device array ``count`` elements, its first ones and then undefined ones.

    It gets other memory, and the memory that it had is freed.
    """

    memref: Memref
    count: Expr


@dataclass(frozen=True, slots=True)
class Grid:
    """Choose how many blocks of threads run a kernel: enough for its work, no more than fit."""

    blocks: Var
    kernel: str


@dataclass(frozen=True, slots=True)
class LaunchKernel:
    """Start a kernel on a number of blocks; ``workspaces`` are the kernel's, in its order."""

    kernel: str
    blocks: Var
    workspaces: tuple[Memref, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanArray:
    """Inclusive prefix scan of a device array, by a library."""

    memref: Memref
    op: ScanOp


@dataclass(frozen=True, slots=True)
class SortArray:
    """Sort the first ``count`` elements of a device array, by a library."""

    memref: Memref
    count: Expr


@dataclass(frozen=True, slots=True)
class SortEntries:
    """Fill ``order`` with the numbers below ``count`` in the stable order of their coordinates."""

    order: Memref
    coordinates: tuple[Memref, ...]
    count: Expr


@dataclass(frozen=True, slots=True)
class Compute:
    """Give a variable of the host a value."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class ReadScalar:
    """Read one element of a device array back into a variable of the host, which waits for it."""

    var: Var
    memref: Memref
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """End the run with the ``ValueError`` ``text`` unless ``condition`` holds."""

    condition: Expr
    text: str


# ---------------------------------------------------------------- library calls


@dataclass(frozen=True, slots=True)
class Describe:
    """Make the descriptors of library call ``call``."""

    call: str


@dataclass(frozen=True, slots=True)
class AskSizes:
    """Ask for the sizes of a phase: one variable for each workspace and each target."""

    call: str
    phase: int
    sizes: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class RunPhase:
    """Start a phase of a library call on its workspaces and targets."""

    call: str
    phase: int
    workspaces: tuple[Memref, ...] = ()


@dataclass(frozen=True, slots=True)
class Destroy:
    """End the descriptors of a library call."""

    call: str


@dataclass(frozen=True, slots=True)
class Library:
    """Run ``steps``; where the library refuses before it computed anything, ``otherwise``."""

    call: str
    steps: tuple[Step, ...]
    otherwise: tuple[Step, ...]


# ---------------------------------------------------------------- control of the host


@dataclass(frozen=True, slots=True)
class Loop:
    """``for var in lower .. upper - 1`` on the host."""

    var: Var
    lower: Expr
    upper: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repeat ``body`` while ``condition`` holds."""

    condition: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """``then`` where ``condition`` holds, else ``orelse``."""

    condition: Expr
    then: tuple[Step, ...]
    orelse: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Return:
    """The arrays of the results: host arrays, or device arrays that the caller owns from now."""

    memrefs: tuple[Memref, ...]
    home: Home


Step = (
    TransferStep
    | Fill
    | CopyDevice
    | ViewOf
    | ResizeArray
    | Grid
    | LaunchKernel
    | ScanArray
    | SortArray
    | SortEntries
    | Compute
    | ReadScalar
    | Check
    | Describe
    | AskSizes
    | RunPhase
    | Destroy
    | Library
    | Loop
    | Repeat
    | Branch
    | Return
)
