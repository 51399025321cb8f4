"""The rules of the loop IR, each a named function.

What enters is a function and the name of the stage or pass that made it; nothing leaves, or a
``VerificationError`` that names the broken rule. Rules are checked in order, and a rule may rely on
those before it. ``verify_loops`` runs behind the atomic stage and around every loop pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from sparsejit._dataclasses import dataclass
from sparsejit.affine import dims_of
from sparsejit.errors import VerificationError
from sparsejit.ir._loop_types import broken_expr, broken_stmt, num_buffers
from sparsejit.ir._ownership import broken_ownership
from sparsejit.ir.device_statements import ReadBack
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    blocks,
    exported,
    expressions,
    memrefs,
    memrefs_defined,
    result_memrefs,
)
from sparsejit.ir.loops import (
    Assign,
    Expr,
    For,
    Let,
    LoopFunc,
    Memref,
    SparseResult,
    Stmt,
    Var,
)

__all__ = ["LOOP_RULES", "verify_loops"]

Rule = Callable[[LoopFunc], Iterator[str]]


def _names_are_introduced_once(func: LoopFunc) -> Iterator[str]:
    """A parameter, variable or memref has a name of its own in the whole function."""
    seen: set[str] = set()
    introduced = [param.name for param in func.params]
    for stmt in all_statements(func.body):
        introduced.extend(name.name for name in _introduced(stmt))
    for name in introduced:
        if name in seen:
            yield f"{name} is introduced twice"
        seen.add(name)


def _introduced(stmt: Stmt) -> tuple[Memref | Var, ...]:
    """The names that are known after ``stmt`` (of a loop: inside it)."""
    return (stmt.var,) if isinstance(stmt, Let | For | ReadBack) else memrefs_defined(stmt)


@dataclass(slots=True)
class _Scope:
    """What is known at a place, and which variables may be assigned there."""

    known: dict[str, Memref | Var] = field(default_factory=dict)
    mutable: set[str] = field(default_factory=set)

    def copy(self) -> _Scope:
        return _Scope(dict(self.known), set(self.mutable))

    def take(self, used: Memref | Var) -> Iterator[str]:
        if used.name not in self.known:
            yield f"{used.name} is used where it is not known"
        elif self.known[used.name] != used:
            yield f"{used.name} is {self.known[used.name]!r}, used as {used!r}"


def _names_are_known_where_used(func: LoopFunc) -> Iterator[str]:
    """A name is used after it was introduced, in its block or a block inside, as what it is."""
    scope = _Scope({param.name: param for param in func.params})
    yield from _check_block(func.body, scope)
    for memref in result_memrefs(func):
        yield from scope.take(memref)


def _check_block(body: Sequence[Stmt], scope: _Scope) -> Iterator[str]:
    for stmt in body:
        for memref in memrefs(stmt):
            yield from scope.take(memref)
        for var in _variables(stmt):
            yield from scope.take(var)
        for inner in blocks(stmt):
            inside = scope.copy()
            if isinstance(stmt, For):
                inside.known[stmt.var.name] = stmt.var
            yield from _check_block(inner, inside)
            for memref in exported(stmt):
                yield from inside.take(memref)
                scope.known[memref.name] = memref
        if not isinstance(stmt, For):
            scope.known.update((name.name, name) for name in _introduced(stmt))


def _variables(stmt: Stmt) -> Iterator[Var]:
    """The variables that ``stmt`` itself reads or assigns."""
    for outer in expressions(stmt):
        yield from (expr for expr in all_expressions(outer) if isinstance(expr, Var))
    if isinstance(stmt, Assign):
        yield stmt.var
    if isinstance(stmt, For):
        shared = (*(what for what, _ in stmt.reductions), *stmt.private)
        yield from (what for what in shared if isinstance(what, Var))


def _only_mutable_variables_change(func: LoopFunc) -> Iterator[str]:
    """A variable that is assigned, or reduced by a parallel loop, was introduced as mutable."""
    mutable: set[str] = set()
    for stmt in all_statements(func.body):
        match stmt:
            case Let(var, _, True):
                mutable.add(var.name)
            case Assign(var):
                if var.name not in mutable:
                    yield f"{var.name} is assigned and not mutable"
            case For():
                yield from _broken_sharing(stmt, mutable)
            case _:
                pass


def _broken_sharing(loop: For, mutable: set[str]) -> Iterator[str]:
    for what in loop.private:
        if isinstance(what, Var) and what.name not in mutable:
            yield f"{what.name} is private and not mutable"
    for what, op in loop.reductions:
        if isinstance(what, Var) and what.name not in mutable:
            yield f"{what.name} is reduced and not mutable"
        if not (op.info.associative and op.info.commutative):
            yield f"{what.name} is reduced by {op!r}, which is no reduction"


def _types_fit(func: LoopFunc) -> Iterator[str]:
    """Ranks and dtypes fit; 16-bit floats are stored and never computed with."""

    def check(expr: Expr) -> Iterator[str]:
        for inner in all_expressions(expr):
            yield from broken_expr(inner)

    for stmt in all_statements(func.body):
        for expr in expressions(stmt):
            yield from check(expr)
        yield from broken_stmt(stmt)


def _results_are_whole(func: LoopFunc) -> Iterator[str]:
    """A sparse result has all arrays of its format, over the extents of the function."""
    extents = sum(isinstance(param, Var) for param in func.params)
    for result in func.results:
        if not isinstance(result, SparseResult):
            continue
        wanted = num_buffers(result.format)
        if len(result.buffers) != wanted:
            yield f"a sparse result has {wanted} arrays, not {len(result.buffers)}"
        elif result.buffers[-1].dtype is not result.fill.dtype:
            yield f"{result.buffers[-1].name} has a fill of {result.fill.dtype.value}"
        if len(result.shape) != result.format.ndim:
            yield f"a sparse result of rank {result.format.ndim} has {len(result.shape)} extents"
        for extent in result.shape:
            if any(dim >= extents for dim in dims_of(extent)):
                yield "the shape of a sparse result reads an extent that is not there"


def _arrays_have_one_owner(func: LoopFunc) -> Iterator[str]:
    """Every allocation is freed or returned once on each path, and not used afterwards."""
    yield from broken_ownership(func)


LOOP_RULES: tuple[Rule, ...] = (
    _names_are_introduced_once,
    _names_are_known_where_used,
    _only_mutable_variables_change,
    _types_fit,
    _results_are_whole,
    _arrays_have_one_owner,
)


def verify_loops(func: LoopFunc, after: str = "") -> None:
    """Raise ``VerificationError`` for the first rule that ``func`` breaks.

    ``after`` names the stage or pass that made ``func``.

    >>> verify_loops(LoopFunc("nothing", (), (), ()))
    """
    for rule in LOOP_RULES:
        for what in rule(func):
            name = rule.__name__.replace("_", " ").strip()
            raise VerificationError(name, what, ir_text=_text(func), after=after)


def _text(func: LoopFunc) -> str:
    try:
        return print_loops(func)
    except IndexError:  # the shape of a result reads an extent that is not there
        return repr(func)
