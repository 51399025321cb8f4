"""Walks over the loop IR: parts of expressions and statements, free names, and rebuilding.

``children``, ``expressions``, ``blocks`` and ``memrefs`` look at one node; ``all_expressions`` and
``all_statements`` descend. ``map_expr`` and ``map_body`` rebuild: they return new nodes, and change
what is inside first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from sparsejit.ir._rebuilt_statements import with_expressions, with_operands
from sparsejit.ir.device_statements import (
    DenseMatrix,
    Launch,
    LibraryCall,
    ReadBack,
    Require,
    SparseMatrix,
)
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Call,
    Cast,
    Copy,
    Dealloc,
    DenseResult,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    ParamResult,
    Push,
    Resize,
    Scan,
    Search,
    Select,
    SelectMemref,
    Sort,
    SortPrefix,
    SparseResult,
    Stmt,
    Store,
    Unary,
    Var,
    View,
    While,
)
from sparsejit.ir.types import INDEX, DType

__all__ = [
    "all_expressions",
    "all_statements",
    "blocks",
    "children",
    "exported",
    "expr_dtype",
    "expressions",
    "free_memrefs",
    "free_vars",
    "library_memrefs",
    "map_body",
    "map_expr",
    "memrefs",
    "memrefs_defined",
    "memrefs_written",
    "result_memrefs",
]


def expr_dtype(expr: Expr) -> DType:
    """Return the dtype of an expression."""
    match expr:
        case Var(_, dtype) | Cast(_, dtype) | Unary(_, _, dtype) | Binary(_, _, _, dtype):
            return dtype
        case Lit(const):
            return const.dtype
        case Load(memref, _):
            return memref.dtype
        case DimOf() | Search():
            return INDEX
        case Select(_, then, _):
            return expr_dtype(then)
        case Call(function):
            return function.result
        case _:
            assert_never(expr)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions directly inside ``expr``."""
    match expr:
        case Var() | Lit() | DimOf():
            return ()
        case Unary(_, operand, _) | Cast(operand, _):
            return (operand,)
        case Binary(_, lhs, rhs, _):
            return lhs, rhs
        case Select(condition, then, orelse):
            return condition, then, orelse
        case Load(_, indices):
            return indices
        case Search(_, lower, upper, key):
            return lower, upper, key
        case Call(_, operands):
            return operands
        case _:
            assert_never(expr)


def all_expressions(expr: Expr) -> Iterator[Expr]:
    """Yield ``expr`` and every expression inside it, outermost first."""
    yield expr
    for child in children(expr):
        yield from all_expressions(child)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:  # noqa: C901 - one case for each kind
    """Return the expressions of ``stmt`` itself, without those in its blocks."""
    match stmt:
        case Let() | Assign():
            return (stmt.value,)
        case Alloc():
            return stmt.extents
        case Dealloc() | Copy() | Scan():
            return ()
        case View():
            return (*stmt.offsets, *stmt.sizes)
        case Store():
            return (*stmt.indices, stmt.value)
        case For():
            return stmt.lower, stmt.upper
        case While() | If() | Require() | SelectMemref():
            return (stmt.condition,)
        case Push():
            return stmt.count, stmt.value
        case Resize() | SortPrefix():
            return (stmt.count,)
        case Sort():
            return (*stmt.extents, stmt.count)
        case Assemble():
            return (*stmt.level_extents, stmt.count)
        case Launch():
            return ()
        case ReadBack():
            return stmt.indices
        case LibraryCall():
            return (*_library_extents(stmt), stmt.alpha, stmt.beta)
        case _:
            assert_never(stmt)


def _library_extents(stmt: LibraryCall) -> tuple[Expr, ...]:
    operands = (*stmt.inputs, stmt.output)
    found = (operand.extents for operand in operands if isinstance(operand, SparseMatrix))
    return tuple(extent for extents in found for extent in extents)


def library_memrefs(operand: SparseMatrix | DenseMatrix) -> tuple[Memref, ...]:
    """Return the memrefs of an operand of a library call."""
    match operand:
        case SparseMatrix():
            return operand.buffers
        case DenseMatrix(memref):
            return (memref,)
        case _:
            assert_never(operand)


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the blocks of statements directly in ``stmt``."""
    match stmt:
        case For() | While() | Launch():
            return (stmt.body,)
        case If():
            return stmt.then, stmt.orelse
        case LibraryCall():
            return (stmt.otherwise,)
        case _:
            return ()


def exported(stmt: Stmt) -> tuple[Memref, ...]:
    """Return the memrefs that a block of ``stmt`` introduces and that are known behind it."""
    return stmt.targets if isinstance(stmt, LibraryCall) else ()


def all_statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield every statement in program order, a loop before the statements of its body."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from all_statements(block)


def memrefs_defined(stmt: Stmt) -> tuple[Memref, ...]:
    """Return the memrefs that ``stmt`` itself introduces."""
    match stmt:
        case Alloc() | View() | SelectMemref():
            return (stmt.memref,)
        case Sort():
            return (stmt.order,)
        case Assemble():
            return stmt.targets
        case _:
            return ()


def memrefs_written(stmt: Stmt) -> tuple[Memref, ...]:
    """Return the existing memrefs whose elements or length ``stmt`` itself changes."""
    match stmt:
        case Store() | Push() | Scan() | Resize() | SortPrefix():
            return (stmt.memref,)
        case Copy():
            return (stmt.target,)
        case LibraryCall():
            new = {target.name for target in stmt.targets}
            return tuple(m for m in library_memrefs(stmt.output) if m.name not in new)
        case _:
            return ()


def _memrefs_read(stmt: Stmt) -> Iterator[Memref]:  # noqa: C901 - one case for each kind
    match stmt:
        case Copy() | View():
            yield stmt.source
        case SelectMemref(_, _, then, orelse):
            yield from (then, orelse)
        case Sort():
            yield from stmt.coordinates
        case Assemble():
            yield from stmt.coordinates
            yield stmt.values
        case Dealloc() | ReadBack():
            yield stmt.memref
        case LibraryCall():
            for operand in stmt.inputs:
                yield from library_memrefs(operand)
        case For():
            shared = (*(what for what, _ in stmt.reductions), *stmt.private)
            yield from (what for what in shared if isinstance(what, Memref))
        case _:
            pass
    for outer in expressions(stmt):
        for expr in all_expressions(outer):
            match expr:
                case Load() | DimOf():
                    yield expr.memref
                case Search():
                    yield expr.coordinates
                case _:
                    pass


def memrefs(stmt: Stmt) -> tuple[Memref, ...]:
    """Return the existing memrefs that ``stmt`` itself reads, writes, views or frees."""
    return (*_memrefs_read(stmt), *memrefs_written(stmt))


def free_memrefs(body: Iterable[Stmt]) -> tuple[Memref, ...]:
    """Return, in order of first use, the memrefs that ``body`` uses and does not introduce."""
    defined: set[str] = set()
    found: dict[str, Memref] = {}
    for stmt in all_statements(body):
        for memref in memrefs(stmt):
            if memref.name not in defined:
                found.setdefault(memref.name, memref)
        defined.update(memref.name for memref in memrefs_defined(stmt))
    return tuple(found.values())


def free_vars(body: Iterable[Stmt]) -> tuple[Var, ...]:
    """Return, in order of first use, the variables that ``body`` uses and does not introduce."""
    defined: set[str] = set()
    found: dict[str, Var] = {}
    for stmt in all_statements(body):
        used = [expr for outer in expressions(stmt) for expr in all_expressions(outer)]
        if isinstance(stmt, Assign):
            used.append(stmt.var)
        if isinstance(stmt, For):
            shared = (*(what for what, _ in stmt.reductions), *stmt.private)
            used.extend(what for what in shared if isinstance(what, Var))
        for expr in used:
            if isinstance(expr, Var) and expr.name not in defined:
                found.setdefault(expr.name, expr)
        if isinstance(stmt, Let | For | ReadBack):
            defined.add(stmt.var.name)
    return tuple(found.values())


def result_memrefs(func: LoopFunc) -> tuple[Memref, ...]:
    """Return the memrefs that the function returns, flat and in order."""
    found: list[Memref] = []
    for result in func.results:
        match result:
            case DenseResult(memref):
                found.append(memref)
            case SparseResult():
                found.extend(result.buffers)
            case ParamResult():
                pass
            case _:
                assert_never(result)
    return tuple(found)


def map_expr(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return ``expr`` with every expression in it replaced by what ``change`` gives, inside out."""

    def walk(inner: Expr) -> Expr:
        return map_expr(inner, change)

    match expr:
        case Var() | Lit() | DimOf():
            return change(expr)
        case Unary() | Cast():
            return change(replace(expr, operand=walk(expr.operand)))
        case Binary():
            return change(replace(expr, lhs=walk(expr.lhs), rhs=walk(expr.rhs)))
        case Select(condition, then, orelse):
            return change(Select(walk(condition), walk(then), walk(orelse)))
        case Load(memref, indices):
            return change(Load(memref, tuple(map(walk, indices))))
        case Search():
            bounds = walk(expr.lower), walk(expr.upper)
            return change(replace(expr, lower=bounds[0], upper=bounds[1], key=walk(expr.key)))
        case Call(function, operands):
            return change(Call(function, tuple(map(walk, operands))))
        case _:
            assert_never(expr)


def map_body(
    body: Iterable[Stmt],
    change_expr: Callable[[Expr], Expr] = lambda expr: expr,
    change_stmt: Callable[[Stmt], Iterable[Stmt]] = lambda stmt: (stmt,),
) -> tuple[Stmt, ...]:
    """Return ``body`` with expressions and then statements replaced, blocks first.

    ``change_expr`` gets every expression inside out, ``change_stmt`` every rebuilt statement; it
    gives the statements that stand in its place.
    """

    def walk(expr: Expr) -> Expr:
        return map_expr(expr, change_expr)

    def block(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_body(inner, change_expr, change_stmt)

    made: list[Stmt] = []
    for stmt in body:
        rebuilt: Stmt
        match stmt:
            case For():
                bounds = walk(stmt.lower), walk(stmt.upper)
                rebuilt = replace(stmt, lower=bounds[0], upper=bounds[1], body=block(stmt.body))
            case While():
                rebuilt = While(walk(stmt.condition), block(stmt.body))
            case If():
                rebuilt = If(walk(stmt.condition), block(stmt.then), block(stmt.orelse))
            case Launch():
                rebuilt = replace(stmt, body=block(stmt.body))
            case LibraryCall():
                rebuilt = with_operands(stmt, walk, block(stmt.otherwise))
            case _:
                rebuilt = with_expressions(stmt, walk)
        made.extend(change_stmt(rebuilt))
    return tuple(made)
