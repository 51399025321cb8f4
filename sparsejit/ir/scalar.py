"""Scalar expressions: the bodies of ``Generic`` operations, as frozen data in a closed union.

``Arg(k)`` is the element of operand ``k`` (the destination's element comes last); ``Stored(k)``
says whether operand ``k`` stores an entry there, which is how ``where_stored`` and MLIR's semi-ring
regions (``unary``, ``binary``, ``select``, ``reduce``) are expressed; ``Nothing`` is a value that
is not there. Operands of a binary operation have one dtype; conversions are explicit ``Cast``s.
``Call`` is a function of the user that could not be read into such expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.ir.ops import BinaryOp, ResultKind, UnaryOp
from sparsejit.ir.types import INDEX, DType

__all__ = [
    "Arg",
    "Binary",
    "Call",
    "Cast",
    "Const",
    "Coordinate",
    "Nothing",
    "ScalarExpr",
    "Select",
    "Stored",
    "Unary",
    "UserFunction",
    "args_of",
    "calls_of",
    "dtype_of",
    "map_leaves",
    "result_dtype",
]


@dataclass(frozen=True, slots=True)
class Arg:
    """The element of operand ``index``; the destination is the operand after the last input."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant of a dtype. Two are equal when their bits are: nan equals nan, -0.0 is not 0.0.

    >>> Const(float("nan"), DType.FLOAT64) == Const(float("nan"), DType.FLOAT64)
    True
    """

    value: bool | int | float | complex
    dtype: DType

    def _key(self) -> tuple[str, DType]:
        return repr(self.value), self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        def part(number: float) -> str:
            return repr(number) if number - number == 0 else f'float("{number!r}")'

        match self.value:
            case complex() as value:
                text = f"complex({part(value.real)}, {part(value.imag)})"
            case float() as value:
                text = part(value)
            case value:
                text = repr(value)
        return f"Const({text}, {self.dtype!r})"


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The value of loop ``loop`` of the operation: an int64."""

    loop: int


@dataclass(frozen=True, slots=True)
class Stored:
    """Whether operand ``index`` stores an entry here: a bool; always true for a dense operand."""

    index: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """No value: a sparse result stores no entry here, a dense one keeps its fill value."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Cast:
    """``operand`` converted to ``dtype`` (NumPy's ``astype``)."""

    operand: ScalarExpr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Unary:
    """An operation of one operand."""

    op: UnaryOp
    operand: ScalarExpr


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation of two operands of one dtype."""

    op: BinaryOp
    lhs: ScalarExpr
    rhs: ScalarExpr


@dataclass(frozen=True, slots=True)
class Select:
    """``then`` where ``condition`` (a bool) holds, else ``orelse``; both of one dtype."""

    condition: ScalarExpr
    then: ScalarExpr
    orelse: ScalarExpr


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of scalars that the user wrote and that is called as it is.

    ``digest`` stands for its code and everything that it reads from outside: two functions of one
    digest are the same function, whatever they are called. ``is_question`` asks whether it gives a
    value at all (None is "nothing there") in place of the value. ``function`` is the Python
    function itself, which is no part of the data: neither compared nor printed.
    """

    name: str
    digest: str
    operands: tuple[DType, ...]
    result: DType
    is_question: bool = False
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """What the texts of both IRs call it."""
        return f"gives.{self.name}" if self.is_question else self.name


@dataclass(frozen=True, slots=True)
class Call:
    """What a user function gives for its operands, which have the dtypes that it declares.

    Nothing is known of it but that it gives the same for the same operands: it may run for long or
    fail, so it is called only where its value is asked for.
    """

    function: UserFunction
    operands: tuple[ScalarExpr, ...]


ScalarExpr = Arg | Const | Coordinate | Stored | Nothing | Cast | Unary | Binary | Select | Call


def result_dtype(op: UnaryOp | BinaryOp, operand: DType) -> DType:
    """Return the dtype of the result of ``op`` on operands of dtype ``operand``.

    >>> result_dtype(UnaryOp.ABS, DType.COMPLEX64)
    DType.FLOAT32
    """
    match op.info.result:
        case ResultKind.SAME:
            return operand
        case ResultKind.BOOL:
            return DType.BOOL
        case ResultKind.REAL:
            return operand.real
        case ResultKind.BITS:
            return operand.as_bits
        case ResultKind.FLOAT:
            return operand.as_float
        case _:
            assert_never(op.info.result)


def dtype_of(expr: ScalarExpr, args: Sequence[DType]) -> DType:
    """Return the dtype of ``expr`` when operand ``k`` has dtype ``args[k]``.

    >>> dtype_of(Unary(UnaryOp.ABS, Arg(0)), (DType.COMPLEX128,))
    DType.FLOAT64
    """
    match expr:
        case Arg(index):
            return args[index]
        case Const(_, dtype) | Nothing(dtype) | Cast(_, dtype):
            return dtype
        case Coordinate():
            return INDEX
        case Stored():
            return DType.BOOL
        case Unary(op, operand):
            return result_dtype(op, dtype_of(operand, args))
        case Binary(op, lhs, _):
            return result_dtype(op, dtype_of(lhs, args))
        case Select(_, then, _):
            return dtype_of(then, args)
        case Call(function):
            return function.result
        case _:
            assert_never(expr)


def map_leaves(expr: ScalarExpr, change: Callable[[ScalarExpr], ScalarExpr]) -> ScalarExpr:
    """Return ``expr`` with each leaf replaced by ``change(leaf)``.

    >>> map_leaves(Unary(UnaryOp.NEG, Arg(0)), lambda leaf: Arg(3))
    Unary(op=UnaryOp.NEG, operand=Arg(index=3))
    """
    match expr:
        case Arg() | Const() | Coordinate() | Stored() | Nothing():
            return change(expr)
        case Cast(operand, dtype):
            return Cast(map_leaves(operand, change), dtype)
        case Unary(op, operand):
            return Unary(op, map_leaves(operand, change))
        case Binary(op, lhs, rhs):
            return Binary(op, map_leaves(lhs, change), map_leaves(rhs, change))
        case Select(condition, then, orelse):
            return Select(
                map_leaves(condition, change), map_leaves(then, change), map_leaves(orelse, change)
            )
        case Call(function, operands):
            return Call(function, tuple(map_leaves(operand, change) for operand in operands))
        case _:
            assert_never(expr)


def args_of(expr: ScalarExpr) -> frozenset[int]:
    """Return the numbers of the operands whose element or storedness ``expr`` reads.

    >>> sorted(args_of(Select(Stored(1), Arg(0), Const(0, DType.INT64))))
    [0, 1]
    """
    found: set[int] = set()

    def note(leaf: ScalarExpr) -> ScalarExpr:
        if isinstance(leaf, Arg | Stored):
            found.add(leaf.index)
        return leaf

    map_leaves(expr, note)
    return frozenset(found)


def calls_of(expr: ScalarExpr) -> tuple[Call, ...]:
    """Return the calls of user functions in ``expr``, outermost first."""
    match expr:
        case Arg() | Const() | Coordinate() | Stored() | Nothing():
            return ()
        case Cast(operand, _) | Unary(_, operand):
            return calls_of(operand)
        case Binary(_, lhs, rhs):
            return calls_of(lhs) + calls_of(rhs)
        case Select(condition, then, orelse):
            return calls_of(condition) + calls_of(then) + calls_of(orelse)
        case Call(_, operands):
            return (expr, *(call for operand in operands for call in calls_of(operand)))
        case _:
            assert_never(expr)
