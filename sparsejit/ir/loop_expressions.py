"""The expressions of the loop IR: what a statement computes from variables and arrays.

Arithmetic has the dtype of its operands (never a 16-bit float: those are loaded and stored through
``Cast``); indices are int64. ``Memref`` and ``Var`` are references by name, unique in a function.
"""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const, UserFunction
from sparsejit.ir.types import DType

__all__ = [
    "Binary",
    "Call",
    "Cast",
    "DimOf",
    "Expr",
    "Lit",
    "Load",
    "Memref",
    "Search",
    "Select",
    "Unary",
    "Var",
]


@dataclass(frozen=True, slots=True)
class Memref:
    """A strided array of ``rank`` dimensions in memory space ``space`` (0 is the default)."""

    name: str
    dtype: DType
    rank: int
    space: int = 0


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar variable."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant."""

    const: Const


@dataclass(frozen=True, slots=True)
class Unary:
    """An operation of one operand; its result has ``dtype``."""

    op: UnaryOp
    operand: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation of two operands of one dtype; its result has ``dtype``.

    On bool operands ``AND``, ``OR``, ``XOR`` are logical and evaluate both sides. Index
    expressions use ``ADD``, ``SUB``, ``MUL``, ``FLOORDIV``, ``REM``, ``MIN``, ``MAX`` on int64.
    """

    op: BinaryOp
    lhs: Expr
    rhs: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Select:
    """``then`` if ``condition`` else ``orelse``; only the chosen side is evaluated."""

    condition: Expr
    then: Expr
    orelse: Expr


@dataclass(frozen=True, slots=True)
class Cast:
    """``operand`` converted to ``dtype`` (NumPy's ``astype``; to and from 16-bit floats too)."""

    operand: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Load:
    """``memref[indices]``; an element of the memref's dtype."""

    memref: Memref
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class DimOf:
    """The extent of ``memref`` along ``axis``: an int64."""

    memref: Memref
    axis: int


@dataclass(frozen=True, slots=True)
class Search:
    """The position ``p`` in ``lower .. upper - 1`` with ``coordinates[p] == key``, or -1: an int64.

    ``coordinates`` is a rank-1 memref (rank 2 with ``column`` for an array of structs). Binary
    search where ``ordered``, linear search otherwise. ``extent`` is known to be more than any key
    and coordinate, where it is given; it is an expression over the function's parameters.
    """

    coordinates: Memref
    lower: Expr
    upper: Expr
    key: Expr
    ordered: bool = True
    column: int | None = None
    extent: Expr | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """What a function of the user gives for operands of the dtypes that it declares.

    It is called only where this is evaluated, and where it fails the whole function does.
    """

    function: UserFunction
    operands: tuple[Expr, ...]


Expr = Var | Lit | Unary | Binary | Select | Cast | Load | DimOf | Search | Call
