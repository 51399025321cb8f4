"""Affine expressions and maps over numbered dimensions.

One small language serves the formats (dimension -> level: ``j floordiv 2``, ``j - i``), the
indexing maps of tensor operations (loop -> dimension: ``2 * i + 1``) and the symbolic extents of
shapes (over numbered extent symbols). Expressions are frozen data in a closed union; the smart
constructors ``add``, ``mul``, ``floordiv``, ``mod`` fold constants, so that equal expressions
written alike compare equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from sparsejit._dataclasses import dataclass

__all__ = [
    "Add",
    "AffineExpr",
    "AffineMap",
    "Constant",
    "Dim",
    "FloorDiv",
    "Mod",
    "Mul",
    "add",
    "as_linear",
    "dims_determined_by",
    "dims_of",
    "evaluate",
    "expr_text",
    "floordiv",
    "identity_map",
    "mod",
    "mul",
    "substitute",
]


@dataclass(frozen=True, slots=True)
class Dim:
    """The value of dimension (loop, extent symbol) ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer constant."""

    value: int


@dataclass(frozen=True, slots=True)
class Add:
    """``lhs + rhs``."""

    lhs: AffineExpr
    rhs: AffineExpr


@dataclass(frozen=True, slots=True)
class Mul:
    """``lhs * rhs``; in formats and indexing maps at least one side is a constant."""

    lhs: AffineExpr
    rhs: AffineExpr


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """``lhs floordiv divisor``, rounding toward minus infinity; ``divisor > 0``."""

    lhs: AffineExpr
    divisor: int


@dataclass(frozen=True, slots=True)
class Mod:
    """``lhs mod divisor``, in ``0 .. divisor - 1``; ``divisor > 0``."""

    lhs: AffineExpr
    divisor: int


AffineExpr = Dim | Constant | Add | Mul | FloorDiv | Mod


def add(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """Return ``lhs + rhs`` with constants folded and moved to the right.

    >>> expr_text(add(Constant(1), Dim(0)), ("i",))
    'i + 1'
    """
    match lhs, rhs:
        case Constant(a), Constant(b):
            return Constant(a + b)
        case Constant(0), other:
            return other
        case other, Constant(0):
            return other
        case Add(inner, Constant(a)), Constant(b):
            return add(inner, Constant(a + b))
        case Constant(), other:
            return add(other, lhs)
        case _:
            return Add(lhs, rhs)


def mul(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """Return ``lhs * rhs`` with constants folded and moved to the left.

    >>> expr_text(mul(Dim(0), Constant(2)), ("i",))
    '2 * i'
    """
    match lhs, rhs:
        case Constant(a), Constant(b):
            return Constant(a * b)
        case (Constant(0), _) | (_, Constant(0)):
            return Constant(0)
        case (Constant(1), other) | (other, Constant(1)):
            return other
        case Constant(a), Mul(Constant(b), inner):
            return mul(Constant(a * b), inner)
        case other, Constant():
            return mul(rhs, other)
        case _:
            return Mul(lhs, rhs)


def floordiv(lhs: AffineExpr, divisor: int) -> AffineExpr:
    """Return ``lhs floordiv divisor``; ``ValueError`` unless ``divisor`` is positive."""
    if divisor <= 0:
        raise ValueError(f"floordiv needs a positive divisor, not {divisor}")
    match lhs:
        case _ if divisor == 1:
            return lhs
        case Constant(a):
            return Constant(a // divisor)
        case _:
            return FloorDiv(lhs, divisor)


def mod(lhs: AffineExpr, divisor: int) -> AffineExpr:
    """Return ``lhs mod divisor``; ``ValueError`` unless ``divisor`` is positive."""
    if divisor <= 0:
        raise ValueError(f"mod needs a positive divisor, not {divisor}")
    match lhs:
        case _ if divisor == 1:
            return Constant(0)
        case Constant(a):
            return Constant(a % divisor)
        case _:
            return Mod(lhs, divisor)


def dims_of(expr: AffineExpr) -> frozenset[int]:
    """Return the numbers of the dimensions that ``expr`` reads.

    >>> sorted(dims_of(Add(Dim(2), Mul(Constant(2), Dim(0)))))
    [0, 2]
    """
    match expr:
        case Dim(index):
            return frozenset({index})
        case Constant():
            return frozenset()
        case Add(lhs, rhs) | Mul(lhs, rhs):
            return dims_of(lhs) | dims_of(rhs)
        case FloorDiv(lhs, _) | Mod(lhs, _):
            return dims_of(lhs)
        case _:
            assert_never(expr)


def substitute(expr: AffineExpr, values: Mapping[int, AffineExpr]) -> AffineExpr:
    """Return ``expr`` with each dimension in ``values`` replaced, folding constants.

    >>> expr_text(substitute(FloorDiv(Dim(0), 2), {0: Dim(3)}))
    'd3 floordiv 2'
    """
    match expr:
        case Dim(index):
            return values.get(index, expr)
        case Constant():
            return expr
        case Add(lhs, rhs):
            return add(substitute(lhs, values), substitute(rhs, values))
        case Mul(lhs, rhs):
            return mul(substitute(lhs, values), substitute(rhs, values))
        case FloorDiv(lhs, divisor):
            return floordiv(substitute(lhs, values), divisor)
        case Mod(lhs, divisor):
            return mod(substitute(lhs, values), divisor)
        case _:
            assert_never(expr)


def evaluate(expr: AffineExpr, values: Sequence[int] | Mapping[int, int]) -> int:
    """Return the integer that ``expr`` has when dimension ``d`` is ``values[d]``.

    >>> evaluate(Add(FloorDiv(Dim(0), 2), Constant(1)), [5])
    3
    """
    match expr:
        case Dim(index):
            return values[index]
        case Constant(value):
            return value
        case Add(lhs, rhs):
            return evaluate(lhs, values) + evaluate(rhs, values)
        case Mul(lhs, rhs):
            return evaluate(lhs, values) * evaluate(rhs, values)
        case FloorDiv(lhs, divisor):
            return evaluate(lhs, values) // divisor
        case Mod(lhs, divisor):
            return evaluate(lhs, values) % divisor
        case _:
            assert_never(expr)


def as_linear(expr: AffineExpr) -> tuple[dict[int, int], int] | None:
    """Return ``({dimension: coefficient}, constant)`` of a linear expression, else None.

    Coefficients that cancel are left out; ``floordiv``, ``mod`` and products of two dimensions
    are not linear.

    >>> as_linear(Add(Mul(Constant(2), Dim(1)), Constant(3)))
    ({1: 2}, 3)
    """
    match expr:
        case Dim(index):
            return {index: 1}, 0
        case Constant(value):
            return {}, value
        case Add(lhs, rhs):
            left, right = as_linear(lhs), as_linear(rhs)
            if left is None or right is None:
                return None
            total = dict(left[0])
            for dim, factor in right[0].items():
                total[dim] = total.get(dim, 0) + factor
            return {dim: factor for dim, factor in total.items() if factor}, left[1] + right[1]
        case Mul(Constant(factor), other) | Mul(other, Constant(factor)):
            inner = as_linear(other)
            if inner is None:
                return None
            scaled = {dim: factor * value for dim, value in inner[0].items() if factor * value}
            return scaled, factor * inner[1]
        case Mul() | FloorDiv() | Mod():
            return None
        case _:
            assert_never(expr)


def dims_determined_by(exprs: Iterable[AffineExpr]) -> frozenset[int]:
    """Return the dimensions whose values follow from the values of all ``exprs``.

    Each linear expression determines the last of its dimensions that is unknown, and a quotient
    with its remainder is the whole.

    >>> sorted(dims_determined_by([Dim(2), Add(Dim(2), Mul(Constant(-1), Dim(0)))]))
    [0, 2]
    >>> sorted(dims_determined_by([Add(Dim(0), Dim(1))]))
    []
    """
    known = set(exprs)
    wholes = {e.lhs for e in known if isinstance(e, FloorDiv) and Mod(e.lhs, e.divisor) in known}
    linear = [part[0].keys() for part in map(as_linear, known | wholes) if part is not None]
    found: set[int] = set()
    while solved := {next(iter(dims - found)) for dims in linear if len(dims - found) == 1}:
        found |= solved
    return frozenset(found)


def expr_text(expr: AffineExpr, names: Sequence[str] | None = None) -> str:
    """Return the text of ``expr`` in MLIR's notation; ``names[d]`` or ``d<number>`` for dimensions.

    >>> expr_text(Add(Dim(1), Mul(Constant(-1), Dim(0))), ("i", "j"))
    'j - i'
    """

    def atom(inner: AffineExpr) -> str:
        text = expr_text(inner, names)
        return text if isinstance(inner, Dim | Constant) else f"({text})"

    match expr:
        case Dim(index):
            return names[index] if names is not None else f"d{index}"
        case Constant(value):
            return str(value)
        case Add(lhs, Constant(value)) if value < 0:
            return f"{expr_text(lhs, names)} - {-value}"
        case Add(lhs, Mul(Constant(-1), rhs)):
            return f"{expr_text(lhs, names)} - {atom(rhs)}"
        case Add(lhs, rhs):
            return f"{expr_text(lhs, names)} + {expr_text(rhs, names)}"
        case Mul(lhs, rhs):
            return f"{atom(lhs)} * {atom(rhs)}"
        case FloorDiv(lhs, divisor):
            return f"{atom(lhs)} floordiv {divisor}"
        case Mod(lhs, divisor):
            return f"{atom(lhs)} mod {divisor}"
        case _:
            assert_never(expr)


@dataclass(frozen=True, slots=True)
class AffineMap:
    """A map from ``num_dims`` dimensions to a tuple of expressions over them.

    >>> print(AffineMap(2, (Dim(1), Dim(0))))
    (d0, d1) -> (d1, d0)
    """

    num_dims: int
    results: tuple[AffineExpr, ...]

    def __str__(self) -> str:
        return self.text(tuple(f"d{d}" for d in range(self.num_dims)))

    def text(self, names: Sequence[str]) -> str:
        """Return the map's text with the given names of its dimensions."""
        results = ", ".join(expr_text(result, names) for result in self.results)
        return f"({', '.join(names[: self.num_dims])}) -> ({results})"

    @property
    def is_identity(self) -> bool:
        """Whether result ``d`` is dimension ``d``, for all dimensions."""
        return self.results == tuple(Dim(d) for d in range(self.num_dims))

    @property
    def is_projected_permutation(self) -> bool:
        """Whether the results are distinct plain dimensions."""
        plain = [result.index for result in self.results if isinstance(result, Dim)]
        return len(plain) == len(self.results) == len(set(plain))


def identity_map(num_dims: int) -> AffineMap:
    """Return the map that sends every dimension to itself.

    >>> identity_map(2).is_identity
    True
    """
    return AffineMap(num_dims, tuple(Dim(d) for d in range(num_dims)))
