"""Loop pass: loops whose iterations only add up become parallel loops with reductions.

In: a loop function. Out: the same function in which an outermost loop is parallel if all that its
iterations share are variables and arrays which they update by one associative and commutative
operation each, and read nowhere else. What a target makes of it (parts of sums, copies of arrays)
is its business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from sparsejit._dataclasses import dataclass
from sparsejit.ir.fold import identity_const
from sparsejit.ir.loop_walk import all_expressions, all_statements, expressions, memrefs_defined
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopFunc,
    Memref,
    Search,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = ["split_reductions"]

_Shared = tuple[Var | Memref, BinaryOp]


def split_reductions(func: LoopFunc) -> LoopFunc:
    """Return ``func`` with outermost loops parallel that only reduce.

    >>> split_reductions(LoopFunc("f", (), (), ())).body
    ()
    """
    roots: dict[str, str] = {}
    for stmt in all_statements(func.body):
        if isinstance(stmt, View):
            roots[stmt.memref.name] = roots.get(stmt.source.name, stmt.source.name)
    shown = frozenset(roots) | set(roots.values())
    return replace(func, body=tuple(_split(func.body, shown, is_outermost=True)))


def _split(body: Sequence[Stmt], shown: frozenset[str], *, is_outermost: bool) -> Iterator[Stmt]:
    """``shown`` are arrays of which there are views: two names may mean one element."""

    def inner(block: Sequence[Stmt], *, outermost: bool = False) -> tuple[Stmt, ...]:
        return tuple(_split(block, shown, is_outermost=outermost))

    for stmt in body:
        match stmt:
            case For(parallel=False):
                is_long = is_outermost or _has_loops(stmt)
                found = _Sharing(stmt, shown).reductions() if is_long else None
                if found is None:
                    yield replace(stmt, body=inner(stmt.body))
                else:
                    yield replace(stmt, parallel=True, reductions=found)
            case While():
                yield replace(stmt, body=inner(stmt.body))
            case If():
                then = inner(stmt.then, outermost=is_outermost)
                orelse = inner(stmt.orelse, outermost=is_outermost)
                yield replace(stmt, then=then, orelse=orelse)
            case _:
                yield stmt


def _has_loops(loop: For) -> bool:
    """Whether there are loops inside; inside of other loops, those without are short."""
    return any(isinstance(stmt, For | While) for stmt in all_statements(loop.body))


@dataclass(slots=True)
class _Uses:
    """Updates by name, with what is updated and by what; other uses are in ``others``."""

    updates: dict[str, tuple[Var | Memref, set[BinaryOp]]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    def update(self, what: Var | Memref, op: BinaryOp) -> None:
        self.updates.setdefault(what.name, (what, set()))[1].add(op)


class _Sharing:
    """What the iterations of one loop share."""

    def __init__(self, loop: For, shown: frozenset[str]) -> None:
        self._loop = loop
        self._shown = shown
        self._own = {loop.var.name}
        self._uses = _Uses()
        self._is_plain = True
        for stmt in all_statements(loop.body):
            if isinstance(stmt, Let | For):
                self._own.add(stmt.var.name)
            self._own.update(memref.name for memref in memrefs_defined(stmt))
            self._statement(stmt)

    def reductions(self) -> tuple[_Shared, ...] | None:
        """Return the reductions, None where iterations share anything else, or nothing."""
        if not self._is_plain:
            return None
        found: list[_Shared] = []
        for name, (what, ops) in self._uses.updates.items():
            if name in self._own:
                continue
            if name in self._uses.others or name in self._shown or len(ops) != 1:
                return None
            (op,) = ops
            if not _may_split(op, what.dtype):
                return None
            found.append((what, op))
        return tuple(found) or None

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Assign(var, Binary(op, lhs, term, _)) if lhs == var:
                self._uses.update(var, op)
                self._read(term)
            case Assign(var, value):
                self._uses.update(var, BinaryOp.SUB)  # no reduction
                self._read(value)
            case Store(memref, indices, value, reduce):
                self._uses.update(memref, reduce or BinaryOp.SUB)
                for expr in (*indices, value):
                    self._read(expr)
            case Let() | If() | For() | While() | Alloc() | Dealloc():
                for expr in expressions(stmt):
                    self._read(expr)
            case _:
                self._is_plain = False

    def _read(self, expr: Expr) -> None:
        for part in all_expressions(expr):
            match part:
                case Var(name, _):
                    self._uses.others.add(name)
                case Load(memref, _) | DimOf(memref, _) | Search(memref):
                    self._uses.others.add(memref.name)
                case _:
                    pass


def _may_split(op: BinaryOp, dtype: DType) -> bool:
    is_reduction = op.info.associative and op.info.commutative
    has_start = dtype is dtype.compute and identity_const(op, dtype) is not None
    return is_reduction and has_start
