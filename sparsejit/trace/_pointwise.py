"""``Pointwise``: an elementwise expression that is not computed yet.

A scalar body over *accesses*, each a value with one affine index a dimension over numbered
variables. In array expressions the variables are the dimensions of the result; in index notation
they are the user's indices. Data only: everything here is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Add, AffineExpr, Constant, Dim, FloorDiv, Mod, Mul, dims_of, substitute
from sparsejit.ir.fold import constant, fold_binary, fold_cast, fold_unary
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    UserFunction,
    args_of,
    dtype_of,
    map_leaves,
)
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import INDEX, DType

__all__ = [
    "Access",
    "Pointwise",
    "binary",
    "call",
    "cast",
    "constant_of",
    "join",
    "nodes",
    "of_value",
    "pruned",
    "renumbered",
    "select",
    "size_of",
    "substituted",
    "unary",
    "variable",
    "variables_of",
]


@dataclass(frozen=True, slots=True)
class Access:
    """The element of ``value`` at ``index``: one expression a dimension, over variables."""

    value: Value
    index: tuple[AffineExpr, ...]


@dataclass(frozen=True, slots=True)
class Pointwise:
    """``body`` with ``Arg(k)`` the element of ``accesses[k]`` and ``Coordinate(v)`` variable ``v``.

    ``weak`` marks a Python scalar, which adapts to the dtype of what it meets (NEP 50).
    """

    body: ScalarExpr
    accesses: tuple[Access, ...]
    dtype: DType
    weak: bool = False

    @property
    def view(self) -> Access | None:
        """The access that this expression is, when it computes nothing."""
        return self.accesses[0] if self.body == Arg(0) else None

    @property
    def const(self) -> Const | None:
        """The constant that this expression is, else None."""
        return self.body if isinstance(self.body, Const) else None


def of_value(value: Value, index: Sequence[AffineExpr] | None = None) -> Pointwise:
    """Return the element of ``value`` at ``index``, by default at its own dimensions."""
    at = tuple(Dim(d) for d in range(value.type.rank)) if index is None else tuple(index)
    return Pointwise(Arg(0), (Access(value, at),), value.type.dtype)


def constant_of(value: object, dtype: DType, weak: bool = False) -> Pointwise:
    """Return a constant, rounded to ``dtype``."""
    return Pointwise(constant(value, dtype), (), dtype, weak)


def variable(expr: AffineExpr) -> Pointwise:
    """Return the value of an affine expression over variables: an int64."""
    return Pointwise(_affine_body(expr), (), INDEX)


def _affine_body(expr: AffineExpr) -> ScalarExpr:
    def pair(op: BinaryOp, lhs: AffineExpr, rhs: AffineExpr) -> ScalarExpr:
        return Binary(op, _affine_body(lhs), _affine_body(rhs))

    match expr:
        case Dim(index):
            return Coordinate(index)
        case Constant(value):
            return Const(value, INDEX)
        case Add(lhs, rhs):
            return pair(BinaryOp.ADD, lhs, rhs)
        case Mul(lhs, rhs):
            return pair(BinaryOp.MUL, lhs, rhs)
        case FloorDiv(lhs, divisor):
            return pair(BinaryOp.FLOORDIV, lhs, Constant(divisor))
        case Mod(lhs, divisor):
            return pair(BinaryOp.REM, lhs, Constant(divisor))
        case _:
            assert_never(expr)


def join(parts: Sequence[Pointwise]) -> tuple[tuple[ScalarExpr, ...], tuple[Access, ...]]:
    """Return the bodies of ``parts`` over one list of accesses, in which none occurs twice."""
    numbers: dict[Access, int] = {}
    bodies: list[ScalarExpr] = []
    for part in parts:
        places = [numbers.setdefault(access, len(numbers)) for access in part.accesses]
        bodies.append(renumbered(part.body, places))
    return tuple(bodies), tuple(numbers)


def renumbered(body: ScalarExpr, places: Sequence[int]) -> ScalarExpr:
    """Return ``body`` with operand ``k`` being operand ``places[k]``."""

    def leaf(inner: ScalarExpr) -> ScalarExpr:
        match inner:
            case Arg(index):
                return Arg(places[index])
            case Stored(index):
                return Stored(places[index])
            case _:
                return inner

    return map_leaves(body, leaf)


def _made(body: ScalarExpr, accesses: tuple[Access, ...], weak: bool = False) -> Pointwise:
    dtypes = tuple(access.value.type.dtype for access in accesses)
    return Pointwise(body, accesses, dtype_of(body, dtypes), weak)


def cast(part: Pointwise, dtype: DType) -> Pointwise:
    """Return ``part`` converted to ``dtype``; it is not weak any more."""
    if part.dtype is dtype:
        return replace(part, weak=False) if part.weak else part
    if isinstance(part.body, Const):
        return Pointwise(fold_cast(part.body, dtype), (), dtype)
    return Pointwise(Cast(part.body, dtype), part.accesses, dtype)


def unary(op: UnaryOp, part: Pointwise) -> Pointwise:
    """Return ``op`` of an expression, computed when that is a constant."""
    if isinstance(part.body, Const):
        folded = fold_unary(op, part.body)
        return Pointwise(folded, (), folded.dtype)
    return _made(Unary(op, part.body), part.accesses)


def binary(op: BinaryOp, lhs: Pointwise, rhs: Pointwise) -> Pointwise:
    """Return ``lhs op rhs`` of two expressions of one dtype, computed when both are constants."""
    if isinstance(lhs.body, Const) and isinstance(rhs.body, Const):
        folded = fold_binary(op, lhs.body, rhs.body)
        return Pointwise(folded, (), folded.dtype)
    (left, right), accesses = join((lhs, rhs))
    return _made(Binary(op, left, right), accesses)


def select(condition: Pointwise, then: Pointwise, orelse: Pointwise) -> Pointwise:
    """Return ``then`` where ``condition`` (a bool) holds, else ``orelse`` of the same dtype."""
    if isinstance(condition.body, Const):
        return then if condition.body.value else orelse
    bodies, accesses = join((condition, then, orelse))
    return _made(Select(*bodies), accesses)


def call(function: UserFunction, operands: Sequence[Pointwise]) -> Pointwise:
    """Return what a user function gives for operands of the dtypes that it takes."""
    bodies, accesses = join(operands)
    return Pointwise(Call(function, bodies), accesses, function.result)


def substituted(part: Pointwise, values: Mapping[int, AffineExpr]) -> Pointwise:
    """Return ``part`` with variables replaced by affine expressions."""

    def leaf(inner: ScalarExpr) -> ScalarExpr:
        if isinstance(inner, Coordinate) and inner.loop in values:
            return _affine_body(values[inner.loop])
        return inner

    accesses = tuple(
        Access(access.value, tuple(substitute(index, values) for index in access.index))
        for access in part.accesses
    )
    moved = replace(part, body=map_leaves(part.body, leaf), accesses=accesses)
    (body,), unique = join((moved,))
    return replace(moved, body=body, accesses=unique)


def pruned(part: Pointwise) -> Pointwise:
    """Return ``part`` without the accesses that its body does not read."""
    used = args_of(part.body)
    if len(used) == len(part.accesses):
        return part
    places = [sum(k in used for k in range(number)) for number in range(len(part.accesses))]
    kept = tuple(access for k, access in enumerate(part.accesses) if k in used)
    return replace(part, body=renumbered(part.body, places), accesses=kept)


def nodes(expr: ScalarExpr) -> Iterator[ScalarExpr]:
    """Yield ``expr`` and everything inside it."""
    yield expr
    match expr:
        case Arg() | Const() | Coordinate() | Stored() | Nothing():
            pass
        case Cast(operand, _) | Unary(_, operand):
            yield from nodes(operand)
        case Binary(_, lhs, rhs):
            yield from nodes(lhs)
            yield from nodes(rhs)
        case Select(condition, then, orelse):
            yield from nodes(condition)
            yield from nodes(then)
            yield from nodes(orelse)
        case Call(_, operands):
            for operand in operands:
                yield from nodes(operand)
        case _:
            assert_never(expr)


def size_of(part: Pointwise) -> int:
    """Return the number of nodes of the body."""
    return sum(1 for _ in nodes(part.body))


def variables_of(part: Pointwise) -> tuple[int, ...]:
    """Return the variables that ``part`` depends on, in order of appearance."""
    found: dict[int, None] = {}
    for access in part.accesses:
        for index in access.index:
            found.update(dict.fromkeys(sorted(dims_of(index))))
    for inner in nodes(part.body):
        if isinstance(inner, Coordinate):
            found[inner.loop] = None
    return tuple(found)
