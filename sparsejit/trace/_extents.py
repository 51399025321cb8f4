"""Extents: the symbols of a trace, which of them agree, and what was assumed about them.

In: the concrete shapes of the traced call. Every parameter dimension gets a symbol; extents that
must agree are unified, an extent that the user's Python code reads becomes a constant, and every
other assumption that could differ in a later call with the same key is a guard (``>= 0``).
Out: the final expression of each dimension over symbols numbered in order of appearance.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparsejit.affine import (
    Add,
    AffineExpr,
    Constant,
    Dim,
    Mul,
    add,
    as_linear,
    dims_of,
    evaluate,
    mul,
    substitute,
)
from sparsejit.errors import Location, TensorValueError, TraceError, UnsupportedError
from sparsejit.trace._locations import caller

__all__ = ["FIRST_COUNTER", "Extents", "counts", "difference", "tidy"]

FIRST_COUNTER = 1 << 20
"""The counters of loops are symbols from here on, extents those below."""


_LARGEST = 2**63 - 1


def counts(expr: AffineExpr) -> bool:
    """Return whether an expression depends on the counter of a loop."""
    return any(dim >= FIRST_COUNTER for dim in dims_of(expr))


def difference(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """Return ``lhs - rhs``, with like terms collected where both are linear.

    >>> difference(add(Dim(0), Constant(3)), Dim(0))
    Constant(value=3)
    """
    return tidy(add(lhs, mul(Constant(-1), rhs)))


def tidy(expr: AffineExpr) -> AffineExpr:
    """Return ``expr`` with like terms collected where it is linear."""
    linear = as_linear(expr)
    if linear is None:
        return expr
    made: AffineExpr = Constant(0)
    for dim, factor in sorted(linear[0].items(), key=lambda term: (term[1] < 0, term[0])):
        made = add(made, mul(Constant(factor), Dim(dim)))
    return add(made, Constant(linear[1]))


class Extents:
    """The extent symbols of one trace.

    Symbol ``s`` is dimension ``origins[s][1]`` of parameter ``origins[s][0]``.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.origins: list[tuple[int, int]] = []
        self.guards: list[AffineExpr] = []
        self.static: list[tuple[int, int]] = []
        self._solved: dict[int, AffineExpr] = {}
        self._counters: list[tuple[AffineExpr, AffineExpr]] = []

    def counter(self, first: AffineExpr, last: AffineExpr) -> Dim:
        """Return the symbol of a loop's counter, which runs from ``first`` to ``last``."""
        self._counters.append((first, last))
        return Dim(FIRST_COUNTER + len(self._counters) - 1)

    def _ends(self, expr: AffineExpr) -> tuple[AffineExpr, ...]:
        """Return ``expr`` at the ends of the loops that it counts with.

        Raises ``UnsupportedError`` where it is not linear in a counter.
        """
        inner = max(dims_of(expr), default=0)
        if inner < FIRST_COUNTER:
            return (expr,)
        if not _is_linear(expr, inner):
            raise UnsupportedError(
                "an index that is not linear in the counter of a loop", location=caller()
            )
        ends = self._counters[inner - FIRST_COUNTER]
        found = (self._ends(tidy(substitute(expr, {inner: end}))) for end in ends)
        return tuple(dict.fromkeys(end for pair in found for end in pair))

    def symbol(self, param: int, dim: int, number: int) -> AffineExpr:
        """Return the extent of a parameter's dimension: a new symbol, or the constant 1."""
        if number == 1:
            return Constant(1)
        self.numbers.append(number)
        self.origins.append((param, dim))
        return Dim(len(self.numbers) - 1)

    def resolve(self, expr: AffineExpr) -> AffineExpr:
        """Return ``expr`` over the symbols that are left."""
        solved = {dim: self._solved[dim] for dim in dims_of(expr) if dim in self._solved}
        return tidy(substitute(expr, solved)) if solved else expr

    def number(self, expr: AffineExpr) -> int:
        """Return the value of ``expr`` in the traced call; where a loop counts, when it starts."""
        return evaluate(self._ends(expr)[0] if counts(expr) else expr, self.numbers)

    def same(self, lhs: AffineExpr, rhs: AffineExpr) -> bool:
        """Return whether two extents are equal in every call."""
        left, right = self.resolve(lhs), self.resolve(rhs)
        return left == right or difference(left, right) == Constant(0)

    def _solve(self, symbol: int, value: AffineExpr) -> None:
        for known, expr in self._solved.items():
            self._solved[known] = tidy(substitute(expr, {symbol: value}))
        self._solved[symbol] = value
        if isinstance(value, Constant):
            self.static.append(self.origins[symbol])

    def unify(self, lhs: AffineExpr, rhs: AffineExpr) -> bool:
        """Make two extents one; False, and nothing done, when they differ in the traced call."""
        left, right = self.resolve(lhs), self.resolve(rhs)
        rest = difference(left, right)
        if counts(rest) or self.number(left) != self.number(right):
            return False
        if left == right or rest == Constant(0):
            return True
        linear = as_linear(rest)
        terms = linear[0] if linear is not None else {}
        # The later symbol is expressed by the earlier ones.
        for symbol in sorted(
            (dim for dim, factor in terms.items() if abs(factor) == 1), reverse=True
        ):
            others = difference(rest, mul(Constant(terms[symbol]), Dim(symbol)))
            self._solve(symbol, tidy(mul(Constant(-terms[symbol]), others)))
            return True
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Dim) and one.index not in dims_of(other):
                self._solve(one.index, other)
                return True
        self.guard(rest)
        self.guard(mul(Constant(-1), rest))
        return True

    def guard(self, expr: AffineExpr) -> None:
        """Assume ``expr >= 0``, true in the traced call, of all calls that share the trace."""
        rest = self.resolve(expr)
        if not isinstance(rest, Constant) and not _never_negative(rest) and rest not in self.guards:
            self.guards.append(rest)

    def holds(self, expr: AffineExpr) -> bool:
        """Return whether ``expr >= 0`` in the traced call, and assume the same of all others."""
        ends = [self.resolve(end) for end in self._ends(self.resolve(expr))]
        found = [self.number(end) >= 0 for end in ends]
        if len(set(found)) > 1:
            raise UnsupportedError(
                "an index of which only some rounds of a loop stay inside",
                hint="let the loop run over fewer rounds, or handle the others outside of it",
                location=caller(),
            )
        for end in ends:
            self.guard(end if found[0] else difference(Constant(-1), end))
        return found[0]

    def check_fits(self, extent: AffineExpr, what: str, location: Location | None = None) -> None:
        """Assume of an extent that it fits into 64 bits; ``TensorValueError`` where it does not."""
        resolved = self.resolve(extent)
        if counts(resolved) or self.holds(difference(Constant(_LARGEST), resolved)):
            return
        raise TensorValueError(
            f"{what} of {self.number(resolved)} is beyond 2**63 - 1",
            hint="shapes, positions and coordinates are integers of 64 bits",
            location=location or caller(),
        )

    def is_one(self, expr: AffineExpr) -> bool:
        """Return whether an extent is 1; of a computed one this is an assumption."""
        resolved = self.resolve(expr)
        if isinstance(resolved, Constant | Dim) or counts(resolved):
            return resolved == Constant(1)
        if self.number(resolved) == 1:
            return self.unify(resolved, Constant(1))
        self.holds(difference(resolved, Constant(2)))
        return False

    def pin(self, expr: AffineExpr) -> int:
        """Return the value of ``expr``, which becomes a constant of the trace.

        Raises ``TraceError`` for the counter of a loop.
        """
        resolved = self.resolve(expr)
        if counts(resolved):
            raise TraceError(
                "the counter of a loop is not known while tracing",
                hint="use it in arithmetic, as an index, or in sj.where and sj.cond",
                location=caller(),
            )
        for symbol in sorted(dims_of(resolved)):
            self._solve(symbol, Constant(self.numbers[symbol]))
        return self.number(resolved)

    def final(self, shapes: Sequence[Sequence[AffineExpr]]) -> tuple[dict[int, AffineExpr], int]:
        """Return what each symbol becomes, and how many are left, numbered as ``shapes`` need them.

        A symbol is kept when some parameter dimension is that symbol alone; there is always one.
        """
        kept: dict[int, AffineExpr] = {}
        for shape in shapes:
            for extent in shape:
                resolved = self.resolve(extent)
                if isinstance(resolved, Dim) and resolved.index not in kept:
                    kept[resolved.index] = Dim(len(kept))
        whole = {
            symbol: substitute(self.resolve(Dim(symbol)), kept)
            for symbol in range(len(self.numbers))
        }
        return whole, len(kept)


def _is_linear(expr: AffineExpr, symbol: int) -> bool:
    """Return whether an expression is linear in one symbol, whatever its others do."""
    if symbol not in dims_of(expr):
        return True
    match expr:
        case Dim():
            return True
        case Add(lhs, rhs):
            return _is_linear(lhs, symbol) and _is_linear(rhs, symbol)
        case Mul(lhs, rhs):
            free = symbol not in dims_of(lhs) or symbol not in dims_of(rhs)
            return free and _is_linear(lhs, symbol) and _is_linear(rhs, symbol)
        case _:
            return False


def _never_negative(expr: AffineExpr) -> bool:
    linear = as_linear(expr)
    return linear is not None and linear[1] >= 0 and all(f >= 0 for f in linear[0].values())
