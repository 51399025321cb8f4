"""How much work a loop does, as expressions of the loop IR that are evaluated before it runs.

In: a loop. Out: what one iteration costs, and what each stored entry costs of the segments
``pos[i] .. pos[i + 1]`` that iterations run over, in about nanoseconds of one thread; ``pos`` may
lead on, level by level, to the entries ``pos1[pos[i]] .. pos1[pos[i + 1]]``. So the work of
``lower .. upper`` is known from two elements of each such array, and where to cut the loop into
equal parts by a search in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparsejit._dataclasses import dataclass
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, memrefs_defined
from sparsejit.ir.loop_writing import as_index, binary, int_, plus, times
from sparsejit.ir.loops import (
    Assign,
    Binary,
    Cast,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Search,
    Stmt,
    Unary,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp

__all__ = ["Chain", "Work", "place_of", "segment_of", "work_of"]

Chain = tuple[Memref, ...]
"""Position arrays, each of which holds places in the next one."""

_UNKNOWN = 4
"""How often a loop is thought to run of which nothing is known."""
_CHEAP = frozenset((UnaryOp.NEG, UnaryOp.ABS, UnaryOp.SIGN, UnaryOp.NOT, UnaryOp.SQRT))


@dataclass(frozen=True, slots=True)
class Work:
    """``each`` is what an iteration costs, ``stored`` what an entry of each segment costs."""

    each: Expr
    stored: tuple[tuple[Chain, Expr], ...]

    @property
    def leaves(self) -> tuple[Memref, ...]:
        """The position arrays of the entries at the ends of all chains."""
        chains = [chain for chain, _ in self.stored]
        above = {chain[:depth] for chain in chains for depth in range(len(chain))}
        return tuple(chain[-1] for chain in chains if chain not in above)


def place_of(chain: Chain, at: Expr) -> Expr:
    """Return the first entry of the segment ``at``."""
    for pos in chain:
        at = as_index(pos, at)
    return at


def work_of(loop: For) -> Work:
    """Return what the iterations of ``loop`` cost."""
    counted = _Counter(loop).block(loop.body)
    return Work(counted.each, tuple(counted.stored.items()))


def segment_of(loop: For) -> tuple[Memref, Expr] | None:
    """Return ``pos`` and ``i`` of a loop over ``pos[i] .. pos[i + 1]``, None for another one."""
    match _plain(loop.lower), _plain(loop.upper):
        case Load(low, (at,)), Load(high, (after,)) if low == high and _is_next(after, at):
            return low, at
        case _:
            return None


def _plain(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) else expr


def _is_next(after: Expr, at: Expr) -> bool:
    match after, at:
        case Binary(BinaryOp.ADD, by, Lit(const), _), _ if by == at:
            return const.value == 1
        case Lit(later), Lit(const):
            return later.value == const.value + 1
        case _:
            return False


class _Counter:
    """Adds up costs; names that the loop introduces cannot be used before it."""

    def __init__(self, loop: For) -> None:
        statements = (loop, *all_statements(loop.body))
        private = {what.name for what in loop.private}
        changed = {s.var.name for s in statements if isinstance(s, Let | For | Assign)}
        self._variables = changed | private
        made = {memref.name for s in statements for memref in memrefs_defined(s)}
        self._arrays = made | private
        self._chains: dict[str, Chain] = {loop.var.name: ()}
        self._starts = _starts(statements)
        for stmt in statements[1:]:
            self._chains |= dict(self._followed(stmt))
        walks = (self._walked(stmt) for stmt in statements if isinstance(stmt, While))
        self._all_walked = dict.fromkeys(chain for walk in walks for chain in walk)

    def _followed(self, stmt: Stmt) -> Iterator[tuple[str, Chain]]:
        """The variable whose values are the entries of a chain, with the chain."""
        match stmt:
            case For(var):
                segment = segment_of(stmt)
                chain = None if segment is None else self._chain(*segment)
                if chain is not None:
                    yield var.name, chain
            case While():
                for name, pos, at in self._walks(stmt):
                    chain = self._chain(pos, at)
                    if chain is not None:
                        yield name, chain
            case _:
                pass

    def _chain(self, pos: Memref, at: Expr) -> Chain | None:
        """How the segments ``pos[at] .. pos[at + 1]`` follow from the loop's variable."""
        above = self._chains.get(at.name) if isinstance(at, Var) else None
        return None if above is None or pos.name in self._arrays else (*above, pos)

    def _walks(self, stmt: While) -> Iterator[tuple[str, Memref, Expr]]:
        """The walks ``while p < end`` from ``pos[at]`` to ``pos[at + 1]``."""
        starts = self._starts
        for part in all_expressions(stmt.condition):
            match part:
                case Binary(BinaryOp.LT, Var(low), Var(high)) if low in starts and high in starts:
                    (first, at), (second, after) = starts[low], starts[high]
                    if first == second and _is_next(after, at):
                        yield low, first, at
                case _:
                    pass

    def _walked(self, stmt: While) -> tuple[Chain, ...]:
        found = (self._chain(pos, at) for _, pos, at in self._walks(stmt))
        return tuple(chain for chain in found if chain is not None)

    def block(self, body: Iterable[Stmt]) -> _Cost:
        total = _Cost(int_(0), {})
        for stmt in body:
            total = total.plus(self._statement(stmt))
        return total

    def _statement(self, stmt: Stmt) -> _Cost:
        own = _Cost(int_(1 + sum(map(_nodes, expressions(stmt))) // 4), {})
        match stmt:
            case For():
                return self._loop(stmt, self.block(stmt.body))
            case While():
                return own.plus(self._while(stmt, self.block(stmt.body)))
            case If():
                return own.plus(self.block(stmt.then)).plus(self.block(stmt.orelse))
            case _:
                return own

    def _loop(self, loop: For, inner: _Cost) -> _Cost:
        segment = segment_of(loop)
        if segment is not None and segment[0].name not in self._arrays:
            chain = self._chain(*segment)
            if chain is not None:
                return inner.for_entries((chain,))
            return inner.times(_average(segment[0]))
        if self._is_known(loop.lower) and self._is_known(loop.upper):
            return inner.times(_distance(loop.lower, loop.upper))
        return inner.times(int_(_UNKNOWN))

    def _while(self, stmt: While, inner: _Cost) -> _Cost:
        """Walks over segments advance in at least one of them each time."""
        chains = self._walked(stmt) or tuple(self._all_walked)
        return inner.for_entries(chains) if chains else inner.times(int_(_UNKNOWN))

    def _is_known(self, expr: Expr) -> bool:
        """Whether an expression has the same value before the loop."""
        for part in all_expressions(expr):
            match part:
                case Var(name, _) if name in self._variables:
                    return False
                case Load(memref, _) | DimOf(memref, _) | Search(memref) if (
                    memref.name in self._arrays
                ):
                    return False
                case _:
                    pass
        return True


@dataclass(frozen=True, slots=True)
class _Cost:
    each: Expr
    stored: dict[Chain, Expr]

    def plus(self, other: _Cost) -> _Cost:
        stored = dict(self.stored)
        for chain, cost in other.stored.items():
            stored[chain] = _sum(stored[chain], cost) if chain in stored else cost
        return _Cost(_sum(self.each, other.each), stored)

    def times(self, count: Expr) -> _Cost:
        stored = {chain: _product(cost, count) for chain, cost in self.stored.items()}
        return _Cost(_product(self.each, count), stored)

    def for_entries(self, chains: tuple[Chain, ...]) -> _Cost:
        """The cost of what is done for each entry; that of segments below is known as a whole."""
        below = {
            chain: cost
            for chain, cost in self.stored.items()
            if any(chain[: len(above)] == above != chain for above in chains)
        }
        anew = {chain: cost for chain, cost in self.stored.items() if chain not in below}
        entries = _Cost(int_(1), below | dict.fromkeys(chains, self.each))
        return entries.plus(_Cost(int_(0), anew).times(int_(_UNKNOWN)))


def _starts(statements: Iterable[Stmt]) -> dict[str, tuple[Memref, Expr]]:
    """The variables that begin as elements ``memref[index]``."""
    starts: dict[str, tuple[Memref, Expr]] = {}
    for stmt in statements:
        if isinstance(stmt, Let):
            match _plain(stmt.value):
                case Load(memref, (index,)):
                    starts[stmt.var.name] = memref, index
                case _:
                    pass
    return starts


def _nodes(expr: Expr) -> int:
    return sum(
        40 if isinstance(part, Unary) and part.op not in _CHEAP else 1
        for part in all_expressions(expr)
    )


def _average(pos: Memref) -> Expr:
    """The mean length of a segment, rounded up."""
    last = binary(BinaryOp.SUB, DimOf(pos, 0), int_(1))
    stored = binary(BinaryOp.SUB, as_index(pos, last), as_index(pos, int_(0)))
    count = binary(BinaryOp.MAX, last, int_(1))
    return plus(binary(BinaryOp.FLOORDIV, stored, count), int_(1))


def _distance(lower: Expr, upper: Expr) -> Expr:
    return binary(BinaryOp.MAX, binary(BinaryOp.SUB, upper, lower), int_(0))


def _number(expr: Expr) -> int | None:
    return expr.const.value if isinstance(expr, Lit) and type(expr.const.value) is int else None


def _sum(lhs: Expr, rhs: Expr) -> Expr:
    left, right = _number(lhs), _number(rhs)
    if left is not None and right is not None:
        return int_(left + right)
    return rhs if left == 0 else lhs if right == 0 else plus(lhs, rhs)


def _product(lhs: Expr, rhs: Expr) -> Expr:
    left, right = _number(lhs), _number(rhs)
    if left is not None and right is not None:
        return int_(left * right)
    return rhs if left == 1 else lhs if right == 1 else times(lhs, rhs)
