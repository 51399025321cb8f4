"""The loop IR: statements over memrefs, fully typed, small enough to print in any language.

A sparse parameter is already its position, coordinate and value memrefs; extents are index
variables. ``Memref`` and ``Var`` are references by name, unique in a function. Arithmetic has
the dtype of its operands (never a 16-bit float: those are loaded and stored through ``Cast``);
indices are int64. A ``Let`` introduces a variable, ``Assign`` changes one introduced as mutable.
"""

from __future__ import annotations

from enum import Enum

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr
from sparsejit.formats import Format
from sparsejit.ir.device_statements import Launch, LibraryCall, ReadBack, Require
from sparsejit.ir.facts import Fact
from sparsejit.ir.loop_expressions import (
    Binary,
    Call,
    Cast,
    DimOf,
    Expr,
    Lit,
    Load,
    Memref,
    Search,
    Select,
    Unary,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const

__all__ = [
    "Alloc",
    "Assemble",
    "Assign",
    "Binary",
    "Call",
    "Cast",
    "Copy",
    "Dealloc",
    "DenseResult",
    "DimOf",
    "Expr",
    "For",
    "If",
    "Let",
    "Lit",
    "Load",
    "LoopFunc",
    "Memref",
    "ParamResult",
    "Push",
    "Resize",
    "Result",
    "Scan",
    "ScanOp",
    "Search",
    "Select",
    "SelectMemref",
    "Sort",
    "SortPrefix",
    "SparseResult",
    "Stmt",
    "Store",
    "Unary",
    "Var",
    "View",
    "While",
]


@dataclass(frozen=True, slots=True)
class Let:
    """Introduce ``var`` with a value; ``mutable`` variables may be assigned later."""

    var: Var
    value: Expr
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a mutable variable a new value."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Alloc:
    """A new array of ``extents``, filled with ``fill`` (undefined when None).

    A rank-1 array that is the target of ``Push`` or ``Resize`` is growable.
    """

    memref: Memref
    extents: tuple[Expr, ...]
    fill: Const | None = None


@dataclass(frozen=True, slots=True)
class Dealloc:
    """The end of an allocation that this function owns."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy all elements of ``source`` into ``target`` (same shape; they do not overlap)."""

    target: Memref
    source: Memref


@dataclass(frozen=True, slots=True)
class View:
    """``memref`` is the strided part of ``source`` (``ExtractSlice``); no element moves."""

    memref: Memref
    source: Memref
    offsets: tuple[Expr, ...]
    sizes: tuple[Expr, ...]
    strides: tuple[int, ...]
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectMemref:
    """``memref`` is the array ``then`` where ``condition`` holds, else ``orelse``; nothing moves.

    Both have its rank and dtype. It is only read.
    """

    memref: Memref
    condition: Expr
    then: Memref
    orelse: Memref


@dataclass(frozen=True, slots=True)
class Store:
    """``memref[indices] = value``, or ``op=`` with ``reduce``; value has the memref's dtype.

    With ``reduce`` the memref's dtype is never a 16-bit float.
    """

    memref: Memref
    indices: tuple[Expr, ...]
    value: Expr
    reduce: BinaryOp | None = None


@dataclass(frozen=True, slots=True)
class For:
    """``for var in lower .. upper - 1``. ``parallel`` is a fact: iterations are independent.

    ``reductions`` are what the body only updates, by an associative operation: mutable variables,
    arrays. ``private`` is room from before the loop, of which any iterations may have their own.
    """

    var: Var
    lower: Expr
    upper: Expr
    body: tuple[Stmt, ...]
    parallel: bool = False
    reductions: tuple[tuple[Var | Memref, BinaryOp], ...] = ()
    private: tuple[Var | Memref, ...] = ()


@dataclass(frozen=True, slots=True)
class While:
    """Repeat ``body`` while ``condition`` holds (co-iteration)."""

    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class If:
    """``then`` where ``condition`` holds, else ``orelse``."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Push:
    """``memref[count] = value`` after growing the array to hold ``count + 1`` elements."""

    memref: Memref
    count: Expr
    value: Expr


class ScanOp(Enum):
    """How ``Scan`` combines an element with the ones before it."""

    SUM = "sum"
    MAX = "max"

    def __repr__(self) -> str:
        return f"ScanOp.{self.name}"


@dataclass(frozen=True, slots=True)
class Scan:
    """Inclusive prefix scan of a rank-1 memref, in place."""

    memref: Memref
    op: ScanOp


@dataclass(frozen=True, slots=True)
class Resize:
    """Give a growable rank-1 memref ``count`` elements: its first ones, then undefined ones."""

    memref: Memref
    count: Expr


@dataclass(frozen=True, slots=True)
class Sort:
    """Define ``order``: the numbers ``0 .. count - 1`` sorted by their coordinates, stably.

    ``coordinates`` are rank-1 int64 memrefs, the most significant first, with values below
    ``extents``; ``order`` is a rank-1 int64 memref. The entries themselves do not move. Takes time
    linear in ``count`` for a given number of digits of the extents.
    """

    order: Memref
    coordinates: tuple[Memref, ...]
    extents: tuple[Expr, ...]
    count: Expr


@dataclass(frozen=True, slots=True)
class SortPrefix:
    """Sort the first ``count`` elements of a rank-1 int64 memref, in place, in increasing order."""

    memref: Memref
    count: Expr


@dataclass(frozen=True, slots=True)
class Assemble:
    """Build level storage from sorted level coordinates, by the support library.

    ``coordinates`` (one rank-1 int64 memref a level) and ``values`` hold ``count`` entries in
    lexicographic order of level coordinates without duplicates; ``level_extents`` the extent of
    each level. Defines the memrefs ``targets`` (positions and coordinates, level by level, then
    values) of a tensor in ``format`` with ``fill`` in slots that no entry owns.
    """

    targets: tuple[Memref, ...]
    format: Format
    level_extents: tuple[Expr, ...]
    coordinates: tuple[Memref, ...]
    values: Memref
    count: Expr
    fill: Const


Stmt = (
    Let
    | Assign
    | Alloc
    | Dealloc
    | Copy
    | View
    | SelectMemref
    | Store
    | For
    | While
    | If
    | Push
    | Scan
    | Resize
    | Sort
    | SortPrefix
    | Assemble
    | Launch
    | ReadBack
    | Require
    | LibraryCall
)


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True)
class DenseResult:
    """A dense result: the array ``memref``."""

    memref: Memref


@dataclass(frozen=True, slots=True)
class SparseResult:
    """A sparse result: its format, shape (over the extent symbols), fill value and buffers.

    ``buffers`` are positions and coordinates level by level (where the level has them), then
    values, as ``SparseTensor`` holds them.
    """

    format: Format
    shape: tuple[AffineExpr, ...]
    fill: Const
    buffers: tuple[Memref, ...]


@dataclass(frozen=True, slots=True)
class ParamResult:
    """The caller's object of parameter ``index`` (of the tensor function) is returned."""

    index: int


Result = DenseResult | SparseResult | ParamResult


@dataclass(frozen=True, slots=True)
class LoopFunc:
    """A function over memrefs.

    ``params`` are, in this order: the extent symbols (``Var`` of int64), then for each parameter of
    the tensor function its buffers (level arrays then values; one array when dense; a ``Var`` for a
    rank-0 parameter that is only read). The function returns the memrefs of its dense and sparse
    results, flat, in order. ``facts`` say what the stage decided, for ``explain``; ``deciding``
    names the arrays of positions of which the lengths of rows decide how kernels run.
    """

    name: str
    params: tuple[Memref | Var, ...]
    body: tuple[Stmt, ...]
    results: tuple[Result, ...]
    facts: tuple[Fact, ...] = ()
    deciding: tuple[str, ...] = ()
