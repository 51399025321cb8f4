"""How wide panels of a packed operand are: what gathers of rows cost, with and without them.

In: which operands are gathered, and by what. Out: statements that find the width before the loops
run, and the variable that has it: all columns where no panels pay.

The model: a line of the cache that is gathered takes 0.7 ns, 2.2 more where the rows do not fit
into the cache that a core has alone, in proportion to what does not, and 3 more where they do not
fit into the last one. Copying takes 15 ns a line, and reading the entries once more for another
panel 0.3 ns each. (Measured with SpMM of 5,000 to 100,000 rows, 64 and 256 columns; the 3 ns are of
a machine with less cache.) Where the entries of neighboring rows are neighbors too, rows are still
in the cache when they come again, however many there are: so a sample of the entries says how many
go far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._arrays import element_size
from sparsejit.backends.llvm._options import Caches
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loop_writing import Names, as_index, binary, compare, int_, plus, times
from sparsejit.ir.loops import (
    Assign,
    Binary,
    Cast,
    DimOf,
    Expr,
    If,
    Let,
    Lit,
    Memref,
    Select,
    Stmt,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

__all__ = ["Gathered", "panel_width"]

_REAL = DType.FLOAT64
_LINE = 64
_WIDEST, _NARROWEST = 512, 128
"""Bytes of a panel's rows: narrower ones leave less to do for each entry than reading it takes."""
_REUSE, _ENTRIES = 4, 4096
"""How often a row is gathered at least, and how many entries there are at least."""
_SAMPLES, _LAG, _LAG_ROWS = 64, 64, 8
"""How many entries are looked at, each with another one so many entries and rows later."""
_NEAR, _FAR, _MEMORY = 7, 22, 30
"""What a line takes in any case, and more from the last cache and from memory, in 0.1 ns."""
_COPY, _AGAIN = 150, 3
"""What a line of the copy takes, and an entry in one more panel, in 0.1 ns."""
_GAIN = 0.85
"""Panels are made where they cost less than this part of what it costs without."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """``operand``, of rank 2, is gathered by rows whose numbers are ``stored``."""

    operand: Memref
    stored: Memref


def panel_width(
    gathered: Sequence[Gathered], columns: Expr, caches: Caches, names: Names
) -> tuple[tuple[Stmt, ...], Var]:
    """Return what finds the width of panels, and the width; ``columns`` are how many there are."""
    return _Rule(gathered, columns, caches, names).written()


class _Rule:
    def __init__(
        self, gathered: Sequence[Gathered], columns: Expr, caches: Caches, names: Names
    ) -> None:
        self._gathered = gathered
        self._columns = columns
        self._own = caches.own * 7 // 8
        self._last = caches.last // 2
        self._size = max(element_size(one.operand) for one in gathered)
        self._names = names
        self._made: list[Stmt] = []

    def written(self) -> tuple[tuple[Stmt, ...], Var]:
        width = self._names.var("width")
        row = self._let("row_bytes", times(self._columns, int_(self._size)))
        rows = self._let("rows", self._sum(lambda one: DimOf(one.operand, 0)))
        entries = self._let("entries", self._sum(lambda one: DimOf(one.stored, 0)))
        sampled = self._gathered[-1].stored
        is_large = _all(
            compare(BinaryOp.GT, times(rows, row), int_(self._own)),
            compare(BinaryOp.GE, entries, times(rows, int_(_REUSE))),
            compare(BinaryOp.GE, DimOf(sampled, 0), int_(_ENTRIES)),
        )
        before, self._made = self._made, []
        length = Cast(_divided(entries, rows), INDEX)
        far = self._far(sampled, row, plus(times(length, int_(_LAG_ROWS)), int_(_LAG)))
        self._choose(width, row, rows, entries, far)
        chosen = If(is_large, tuple(self._made))
        return (*before, Let(width, self._columns, mutable=True), chosen), width

    def _sum(self, what: Callable[[Gathered], Expr]) -> Expr:
        first, *rest = self._gathered
        total = what(first)
        for one in rest:
            total = plus(total, what(one))
        return total

    def _let(self, name: str, value: Expr, *, mutable: bool = False) -> Var:
        var = self._names.var(name, expr_dtype(value))
        self._made.append(Let(var, value, mutable))
        return var

    def _far(self, stored: Memref, row: Var, lag: Expr) -> Var:
        """Of the entries that are looked at, how many go to rows far from those shortly before."""
        names = self._names
        far = self._let("far", int_(0), mutable=True)
        half = _quotient(DimOf(stored, 0), 2)
        later = self._let("later", binary(BinaryOp.MIN, lag, half))
        places = binary(BinaryOp.SUB, DimOf(stored, 0), later)
        step = self._let("step", _quotient(places, _SAMPLES))
        # Downward: how often the loop runs is not to be seen, and nothing unrolls it.
        at = self._let("sample", binary(BinaryOp.SUB, places, step), mutable=True)
        one, other = names.var("one"), names.var("other")
        ends = binary(BinaryOp.MAX, one, other), binary(BinaryOp.MIN, one, other)
        # What lies between two entries was gathered meanwhile, from about three places.
        between = times(binary(BinaryOp.SUB, *ends), times(row, int_(3)))
        is_far = compare(BinaryOp.GT, between, int_(self._own))
        body = (
            Let(one, as_index(stored, at)),
            Let(other, as_index(stored, plus(at, later))),
            Assign(far, plus(far, Select(is_far, int_(1), int_(0)))),
            Assign(at, binary(BinaryOp.SUB, at, step)),
        )
        self._made.append(While(compare(BinaryOp.GE, at, int_(0)), body))
        return far

    def _choose(self, width: Var, row: Var, rows: Var, entries: Var, far: Var) -> None:
        """Take the width that costs least, if that is clearly less than without panels."""
        lines, total = _real(_quotient(row, _LINE)), _real(entries)
        each = self._let("each", self._line(times(rows, row), far))
        whole = _product(_number(_GAIN), _product(_product(total, lines), each))
        least = self._let("least", whole, mutable=True)
        copied = _real(times(times(rows, _quotient(row, _LINE)), int_(_COPY * _SAMPLES)))
        before, self._made = self._made, []
        size = self._names.var("size")
        held = self._let("held", times(rows, size))
        panels = _product(_divided(row, size), _number(_AGAIN * _SAMPLES))
        in_panels = _sum(_product(lines, self._line(held, far)), panels)
        cost = self._let("cost", _sum(_product(total, in_panels), copied))
        is_less = _all(compare(BinaryOp.GT, row, size), compare(BinaryOp.LT, cost, least))
        columns = binary(BinaryOp.MAX, _quotient(size, self._size), int_(1))
        self._made.append(If(is_less, (Assign(width, columns), Assign(least, cost))))
        self._made.append(Assign(size, _quotient(size, 2)))
        is_wide = compare(BinaryOp.GE, size, int_(_NARROWEST))
        loop = While(is_wide, tuple(self._made))
        self._made = [*before, Let(size, int_(_WIDEST), mutable=True), loop]

    def _line(self, held: Expr, far: Var) -> Expr:
        """What a line costs where so many bytes are gathered from, for all samples together."""
        terms = (
            times(binary(BinaryOp.MAX, binary(BinaryOp.SUB, held, int_(limit)), int_(0)), int_(by))
            for limit, by in ((self._own, _FAR), (self._last, _MEMORY))
        )
        misses = _product(_real(far), _divided(plus(*terms), held))
        return _sum(_number(_NEAR * _SAMPLES), misses)


def _all(first: Expr, *rest: Expr) -> Expr:
    for condition in rest:
        first = compare(BinaryOp.AND, first, condition)
    return first


def _quotient(of: Expr, by: int) -> Expr:
    return binary(BinaryOp.FLOORDIV, of, int_(by))


def _number(value: float) -> Expr:
    return Lit(Const(float(value), _REAL))


def _real(of: Expr) -> Expr:
    return Cast(of, _REAL)


def _sum(lhs: Expr, rhs: Expr) -> Expr:
    return Binary(BinaryOp.ADD, lhs, rhs, _REAL)


def _product(lhs: Expr, rhs: Expr) -> Expr:
    return Binary(BinaryOp.MUL, lhs, rhs, _REAL)


def _divided(lhs: Expr, rhs: Expr) -> Expr:
    return Binary(BinaryOp.DIV, _real(lhs), _real(rhs), _REAL)
