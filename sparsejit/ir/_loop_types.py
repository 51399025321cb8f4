"""The types of the loop IR: ranks and dtypes of one expression or statement.

What enters is a node whose names are known to be defined; what leaves are sentences about what does
not fit in the node itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from sparsejit.formats import Format
from sparsejit.ir._scalar_rules import broken_call
from sparsejit.ir.device_statements import (
    DenseMatrix,
    Launch,
    LibraryCall,
    ReadBack,
    Require,
    Schedule,
    SparseMatrix,
)
from sparsejit.ir.fold import applies
from sparsejit.ir.loop_walk import all_statements, expr_dtype
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Call,
    Cast,
    Copy,
    Dealloc,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    Memref,
    Push,
    Resize,
    Scan,
    Search,
    Select,
    SelectMemref,
    Sort,
    SortPrefix,
    Stmt,
    Store,
    Unary,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import result_dtype
from sparsejit.ir.types import INDEX, DType

__all__ = ["broken_expr", "broken_stmt", "num_buffers"]


def num_buffers(fmt: Format) -> int:
    """Return how many arrays store a tensor: positions, coordinates and values.

    >>> from sparsejit.formats import COO, CSR
    >>> num_buffers(CSR), num_buffers(COO(3))
    (3, 5)
    """
    tail = fmt.num_levels
    if fmt.is_aos and fmt.coo_start is not None:
        tail = fmt.coo_start + 1
    positions = sum(level.type.has_positions for level in fmt.levels)
    coordinates = sum(level.type.has_coordinates for level in fmt.levels[:tail])
    return positions + coordinates + 1


def _is(expr: Expr, wanted: DType, what: str) -> Iterator[str]:
    found = expr_dtype(expr)
    if found is not wanted:
        yield f"{what} is {wanted.value}, not {found.value}"


def _indices(memref: Memref, indices: Sequence[Expr]) -> Iterator[str]:
    if len(indices) != memref.rank:
        yield f"{memref.name} of rank {memref.rank} has {len(indices)} indices"
    for index in indices:
        yield from _is(index, INDEX, f"an index of {memref.name}")


def _rank(memref: Memref, rank: int, what: str) -> Iterator[str]:
    if memref.rank != rank:
        yield f"{what} {memref.name} has rank {memref.rank}, not {rank}"


def _operation(op: UnaryOp | BinaryOp, operand: DType, result: DType) -> Iterator[str]:
    if operand.compute is not operand:
        yield f"{op!r} computes in {operand.value}, which only stores"
    elif not applies(op, operand):
        yield f"{op!r} is not defined on {operand.value}"
    elif result is not result_dtype(op, operand):
        yield f"{op!r} of {operand.value} does not give {result.value}"


def broken_expr(expr: Expr) -> Iterator[str]:  # noqa: C901 - one case for each kind
    """Yield what does not fit in ``expr`` itself; what is inside is checked on its own."""
    match expr:
        case Var() | Lit() | Cast():
            return
        case Unary(op, operand, dtype):
            yield from _operation(op, expr_dtype(operand), dtype)
        case Binary(op, lhs, rhs, dtype):
            left, right = expr_dtype(lhs), expr_dtype(rhs)
            if left is not right:
                yield f"{op!r} of {left.value} and {right.value}"
            yield from _operation(op, left, dtype)
        case Select(condition, then, orelse):
            yield from _is(condition, DType.BOOL, "a condition")
            yield from _is(orelse, expr_dtype(then), "the other side of a select")
        case Load(memref, indices):
            yield from _indices(memref, indices)
        case DimOf(memref, axis):
            if not 0 <= axis < memref.rank:
                yield f"{memref.name} of rank {memref.rank} has no dimension {axis}"
        case Search():
            yield from _search(expr)
        case Call(function, operands):
            yield from broken_call(function, [expr_dtype(operand) for operand in operands])
        case _:
            assert_never(expr)


def _search(expr: Search) -> Iterator[str]:
    yield from _rank(expr.coordinates, 1 if expr.column is None else 2, "the coordinates")
    if not expr.coordinates.dtype.is_integer:
        yield f"{expr.coordinates.name} holds {expr.coordinates.dtype.value}, no coordinates"
    for part in (expr.lower, expr.upper, expr.key):
        yield from _is(part, INDEX, "a bound or key of a search")


def broken_stmt(stmt: Stmt) -> Iterator[str]:  # noqa: C901 - one case for each kind
    """Yield what does not fit in ``stmt`` itself; what is inside is checked on its own."""
    match stmt:
        case Let(var, value) | Assign(var, value):
            yield from _is(value, var.dtype, var.name)
        case Alloc():
            yield from _indices(stmt.memref, stmt.extents)
            if stmt.fill is not None and stmt.fill.dtype is not stmt.memref.dtype:
                yield f"{stmt.memref.name} is filled with {stmt.fill.dtype.value}"
        case Dealloc():
            return
        case Copy(target, source):
            yield from _rank(source, target.rank, "the source")
            yield from _same_dtype(source, target)
        case View():
            yield from _view(stmt)
        case SelectMemref(memref, condition, then, orelse):
            yield from _is(condition, DType.BOOL, "a condition")
            for source in (then, orelse):
                yield from _rank(source, memref.rank, "what is selected")
                yield from _same_dtype(memref, source)
        case Store():
            yield from _indices(stmt.memref, stmt.indices)
            yield from _is(stmt.value, stmt.memref.dtype, f"an element of {stmt.memref.name}")
            yield from _update(stmt)
        case For():
            for bound in (stmt.lower, stmt.upper, stmt.var):
                yield from _is(bound, INDEX, f"a bound of {stmt.var.name}")
        case While(condition) | If(condition) | Require(condition):
            yield from _is(condition, DType.BOOL, "a condition")
        case Push(memref, count, value):
            yield from _rank(memref, 1, "the growable")
            yield from _is(count, INDEX, "a count")
            yield from _is(value, memref.dtype, f"an element of {memref.name}")
        case Scan(memref, _):
            yield from _rank(memref, 1, "the scanned")
        case Resize(memref, count):
            yield from _rank(memref, 1, "the resized")
            yield from _is(count, INDEX, "a count")
        case Sort():
            yield from _sort(stmt)
        case SortPrefix(memref, count):
            yield from _rank(memref, 1, "the sorted")
            if memref.dtype is not INDEX:
                yield f"a sort is over {INDEX.value}, {memref.name} is {memref.dtype.value}"
            yield from _is(count, INDEX, "a count")
        case Assemble():
            yield from _assemble(stmt)
        case Launch() | ReadBack() | LibraryCall():
            yield from _device_statement(stmt)
        case _:
            assert_never(stmt)


def _device_statement(stmt: Launch | ReadBack | LibraryCall) -> Iterator[str]:
    match stmt:
        case Launch(kernel, schedule, body, atomics):
            if schedule is not Schedule.ONE_THREAD and not _is_one_parallel_loop(body):
                yield f"{kernel} runs many threads and is not one parallel loop"
            for memref in atomics:
                if not _is_updated(memref, body):
                    yield f"{kernel} does more with the atomic {memref.name} than to reduce into it"
        case ReadBack(var, memref, indices):
            yield from _indices(memref, indices)
            if memref.dtype is not var.dtype:
                yield f"{var.name} is {var.dtype.value}, not {memref.dtype.value}"
        case LibraryCall():
            for operand in (*stmt.inputs, stmt.output):
                yield from _library_operand(operand)
        case _:
            assert_never(stmt)


def _is_one_parallel_loop(body: Sequence[Stmt]) -> bool:
    *before, last = body or (None,)
    return (
        isinstance(last, For)
        and last.parallel
        and all(isinstance(stmt, Let) and not stmt.mutable for stmt in before)
    )


def _is_updated(memref: Memref, body: Sequence[Stmt]) -> bool:
    stores = [stmt for stmt in all_statements(body) if isinstance(stmt, Store)]
    into = [stmt for stmt in stores if stmt.memref == memref]
    return bool(into) and all(stmt.reduce is not None for stmt in into)


def _library_operand(operand: SparseMatrix | DenseMatrix) -> Iterator[str]:
    match operand:
        case SparseMatrix(layout, extents, buffers):
            if len(extents) not in (2, 3):
                yield f"a {layout.value} matrix has {len(extents)} extents"
            for extent in extents:
                yield from _is(extent, INDEX, f"an extent of a {layout.value} matrix")
            for buffer in buffers[:-1]:
                if not buffer.dtype.is_integer:
                    yield f"{buffer.name} holds {buffer.dtype.value}, no indices"
        case DenseMatrix(memref):
            if memref.rank not in (1, 2, 3):
                yield f"{memref.name} of rank {memref.rank} is no matrix"
        case _:
            assert_never(operand)


def _same_dtype(one: Memref, other: Memref) -> Iterator[str]:
    if one.dtype is not other.dtype:
        yield f"{one.name} holds {one.dtype.value}, {other.name} {other.dtype.value}"


def _view(stmt: View) -> Iterator[str]:
    source = stmt.source
    for what, parts in (("offsets", stmt.offsets), ("sizes", stmt.sizes)):
        if len(parts) != source.rank:
            yield f"{stmt.memref.name} has {len(parts)} {what} for rank {source.rank}"
        for part in parts:
            yield from _is(part, INDEX, f"one of the {what} of {stmt.memref.name}")
    if len(stmt.strides) != source.rank:
        yield f"{stmt.memref.name} has {len(stmt.strides)} strides for rank {source.rank}"
    if list(stmt.dropped) != sorted(set(stmt.dropped) & set(range(source.rank))):
        yield f"{stmt.memref.name} drops {list(stmt.dropped)} of rank {source.rank}"
    yield from _rank(stmt.memref, source.rank - len(stmt.dropped), "the view")
    yield from _same_dtype(stmt.memref, source)
    if stmt.memref.space != source.space:
        yield f"{stmt.memref.name} is in another space than {source.name}"


def _update(stmt: Store) -> Iterator[str]:
    if stmt.reduce is not None:
        yield from _operation(stmt.reduce, stmt.memref.dtype, stmt.memref.dtype)


def _sort(stmt: Sort) -> Iterator[str]:
    if len(stmt.coordinates) != len(stmt.extents):
        yield f"a sort by {len(stmt.coordinates)} coordinates has {len(stmt.extents)} extents"
    for memref in (stmt.order, *stmt.coordinates):
        yield from _rank(memref, 1, "the sorted")
        if memref.dtype is not INDEX:
            yield f"a sort is over {INDEX.value}, {memref.name} is {memref.dtype.value}"
    for part in (*stmt.extents, stmt.count):
        yield from _is(part, INDEX, "an extent or count")


def _assemble(stmt: Assemble) -> Iterator[str]:
    wanted = num_buffers(stmt.format)
    if len(stmt.targets) != wanted:
        yield f"an assembled tensor has {wanted} arrays, not {len(stmt.targets)}"
    elif stmt.targets[-1].dtype is not stmt.fill.dtype:
        yield f"{stmt.targets[-1].name} is filled with {stmt.fill.dtype.value}"
    levels = stmt.format.num_levels
    for what, count in (("coordinates", stmt.coordinates), ("extents", stmt.level_extents)):
        if len(count) != levels:
            yield f"an assembled tensor of {levels} levels has {len(count)} {what}"
    for memref in (*stmt.coordinates, stmt.values):
        yield from _rank(memref, 1, "the entries")
    for memref in stmt.coordinates:
        if memref.dtype is not INDEX:
            yield f"level coordinates are {INDEX.value}, {memref.name} is {memref.dtype.value}"
    for part in (*stmt.level_extents, stmt.count):
        yield from _is(part, INDEX, "an extent or count")
