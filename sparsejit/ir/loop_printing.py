"""The text of the loop IR: deterministic, one statement a line, never read back.

    func @spmv(d0: index, A_pos1: memref<i32>, A_vals: memref<f64>, x: memref<f64>) {
      alloc b0: memref<f64>[d0] = 0.0
      parallel for i in 0 .. d0 {
        for p1 in index(A_pos1[i]) .. index(A_pos1[i + 1]) {
          b0[i] += A_vals[p1] * x[p1]
        }
      }
      return b0
    }

A memref of another rank than 1 is ``memref<f64, 2>``; ``var`` introduces a mutable variable and
``let`` any other; int64, the type of indices, is called ``index``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sparsejit.affine import expr_text
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
    Result,
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
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.printing import (
    ATOM,
    binary_text,
    const_text,
    constant_atom,
    fill_text,
    format_text,
    unary_text,
    wrap_header,
)
from sparsejit.ir.types import INDEX, DType

__all__ = ["library_text", "memref_text", "print_body", "print_expr", "print_loops"]


def _dtype(dtype: DType) -> str:
    return "index" if dtype is INDEX else dtype.short


def memref_text(memref: Memref) -> str:
    """Return the type of a memref; rank 1 and space 0 are not written.

    >>> memref_text(Memref("x", DType.FLOAT64, 2))
    'memref<f64, 2>'
    """
    rank = f", {memref.rank}" if memref.rank != 1 else ""
    space = f", space {memref.space}" if memref.space else ""
    return f"memref<{memref.dtype.short}{rank}{space}>"


def print_expr(expr: Expr) -> str:
    """Return the text of an expression.

    >>> print_expr(Binary(BinaryOp.ADD, Var("i", INDEX), Var("j", INDEX), INDEX))
    'i + j'
    """
    return _expr(expr)[0]


def _expr(expr: Expr) -> tuple[str, int]:  # noqa: C901 - one case for each kind
    """Return the text and how strongly it binds."""
    match expr:
        case Unary(op, operand):
            return unary_text(op, _expr(operand))
        case Binary(op, lhs, rhs):
            return binary_text(op, _expr(lhs), _expr(rhs))
        case Lit(const):
            return constant_atom(const)
        case Var(name):
            text = name
        case Select():
            sides = (expr.condition, expr.then, expr.orelse)
            text = f"select({', '.join(map(print_expr, sides))})"
        case Cast(operand, dtype):
            text = f"{_dtype(dtype)}({print_expr(operand)})"
        case Load(memref, indices):
            text = f"{memref.name}{_list(indices)}"
        case DimOf(memref, axis):
            text = f"dim({memref.name}, {axis})"
        case Search():
            text = _search(expr)
        case Call(function, operands):
            text = f"{function.text}({', '.join(map(print_expr, operands))})"
        case _:
            assert_never(expr)
    return text, ATOM


def _search(expr: Search) -> str:
    name = "search" if expr.ordered else "search_unordered"
    column = f"[:, {expr.column}]" if expr.column is not None else ""
    bounds = f"{print_expr(expr.lower)} .. {print_expr(expr.upper)}"
    return f"{name}({expr.coordinates.name}{column}, {bounds}, {print_expr(expr.key)})"


def _list(exprs: Sequence[Expr]) -> str:
    return f"[{', '.join(map(print_expr, exprs))}]"


def _symbol(op: BinaryOp) -> str:
    symbol = op.info.symbol
    return f" {symbol}" if symbol.isalpha() else symbol


def _simple(stmt: Stmt) -> str:
    """Return the line of a statement without blocks."""
    match stmt:
        case Let(var, value, mutable):
            return f"{'var' if mutable else 'let'} {var.name} = {print_expr(value)}"
        case Assign(var, value):
            return f"{var.name} = {print_expr(value)}"
        case Store(memref, indices, value, reduce):
            equals = " =" if reduce is None else f" {_symbol(reduce).strip()}="
            return f"{memref.name}{_list(indices)}{equals} {print_expr(value)}"
        case Push(memref, count, value):
            return f"push {memref.name}[{print_expr(count)}] = {print_expr(value)}"
        case ReadBack(var, memref, indices):
            return f"read back {var.name} = {memref.name}{_list(indices)}"
        case Require(condition, text):
            return f"require {print_expr(condition)} else {text!r}"
        case _:
            return _whole_array(stmt)


def _whole_array(stmt: Stmt) -> str:  # noqa: C901 - one case for each kind
    """Return the line of a statement about whole arrays."""
    match stmt:
        case Alloc(memref, extents, fill):
            space = f", space {memref.space}" if memref.space else ""
            value = f" = {const_text(fill)}" if fill is not None else ""
            kind = f"memref<{memref.dtype.short}{space}>"
            return f"alloc {memref.name}: {kind}{_list(extents)}{value}"
        case Dealloc(memref):
            return f"dealloc {memref.name}"
        case Copy(target, source):
            return f"copy {source.name} -> {target.name}"
        case View():
            strides = f"[{', '.join(map(str, stmt.strides))}]"
            dropped = f" drop [{', '.join(map(str, stmt.dropped))}]" if stmt.dropped else ""
            part = f"{_list(stmt.offsets)} {_list(stmt.sizes)} {strides}{dropped}"
            return f"view {stmt.memref.name} = {stmt.source.name}{part}"
        case SelectMemref(memref, condition, then, orelse):
            chosen = f"{then.name} if {print_expr(condition)} else {orelse.name}"
            return f"select {memref.name} = {chosen}"
        case Scan(memref, op):
            return f"scan {op.value} {memref.name}"
        case Resize(memref, count):
            return f"resize {memref.name}[{print_expr(count)}]"
        case SortPrefix(memref, count):
            return f"sort {memref.name}[{print_expr(count)}]"
        case Sort(order, coordinates, extents, count):
            keys = ", ".join(memref.name for memref in coordinates)
            return f"sort {order.name} by {keys} {_list(extents)} count {print_expr(count)}"
        case Assemble():
            targets = ", ".join(target.name for target in stmt.targets)
            sources = ", ".join(source.name for source in (*stmt.coordinates, stmt.values))
            kind = f"{format_text(stmt.format)} {_list(stmt.level_extents)}"
            rest = f"count {print_expr(stmt.count)} fill {const_text(stmt.fill)}"
            return f"assemble {targets} = {kind} from {sources} {rest}"
        case _:
            raise AssertionError(f"a statement without a text: {stmt!r}")


def print_body(body: Sequence[Stmt]) -> list[str]:
    """Return the lines of a block, not indented."""
    lines: list[str] = []
    for stmt in body:
        match stmt:
            case For():
                lines.extend(_block(_for_head(stmt), stmt.body))
            case While(condition, inner):
                lines.extend(_block(f"while {print_expr(condition)}", inner))
            case If(condition, then, orelse):
                lines.extend(_block(f"if {print_expr(condition)}", then))
                if orelse:
                    lines.pop()
                    lines.extend(_block("} else", orelse))
            case Launch(kernel, schedule, inner, atomics):
                how = [schedule.value, *(f"atomic {memref.name}" for memref in atomics)]
                lines.extend(_block(f"launch {kernel}, {', '.join(how)},", inner))
            case LibraryCall():
                lines.extend(_block(f"{_library_head(stmt)} otherwise", stmt.otherwise))
            case _:
                lines.append(_simple(stmt))
    return lines


def _block(head: str, body: Sequence[Stmt]) -> list[str]:
    return [f"{head} {{", *("  " + line for line in print_body(body)), "}"]


def _for_head(stmt: For) -> str:
    prefix = "parallel for" if stmt.parallel else "for"
    head = f"{prefix} {stmt.var.name} in {print_expr(stmt.lower)} .. {print_expr(stmt.upper)}"
    if stmt.reductions:
        reduced = ", ".join(f"{what.name}: {op.info.symbol}" for what, op in stmt.reductions)
        head = f"{head} reduce({reduced})"
    if stmt.private:
        head = f"{head} private({', '.join(what.name for what in stmt.private)})"
    return head


def _library_head(stmt: LibraryCall) -> str:
    return f"library {library_text(stmt)}"


def library_text(stmt: LibraryCall) -> str:
    """Return what a library call computes, from what."""
    inputs = ", ".join(map(_library_operand, stmt.inputs))
    scale = f"alpha {print_expr(stmt.alpha)} beta {print_expr(stmt.beta)}"
    return f"{stmt.op.value} {_library_operand(stmt.output)} from {inputs} {scale}"


def _library_operand(operand: SparseMatrix | DenseMatrix) -> str:
    turned = ".T" if operand.is_transposed else ""
    match operand:
        case DenseMatrix(memref, _, batch):
            each = "" if batch is None else f"(batch {batch})"
            return f"{memref.name}{turned}{each}"
        case SparseMatrix(layout, extents, buffers, block):
            size = f"({block[0]}, {block[1]})" if block != (1, 1) else ""
            arrays = ", ".join(buffer.name for buffer in buffers)
            return f"{layout.value}{size}{_list(extents)}({arrays}){turned}"
        case _:
            assert_never(operand)


def _parameter(param: Memref | Var) -> str:
    match param:
        case Memref():
            return f"{param.name}: {memref_text(param)}"
        case Var():
            return f"{param.name}: {_dtype(param.dtype)}"
        case _:
            assert_never(param)


def _result(result: Result, symbols: Sequence[str]) -> str:
    match result:
        case DenseResult(memref):
            return memref.name
        case SparseResult():
            shape = ", ".join(expr_text(extent, symbols) for extent in result.shape)
            buffers = ", ".join(buffer.name for buffer in result.buffers)
            return f"{format_text(result.format)}[{shape}]({buffers}){fill_text(result.fill)}"
        case ParamResult(index):
            return f"param {index}"
        case _:
            assert_never(result)


def print_loops(func: LoopFunc) -> str:
    """Return the text of a function.

    >>> x = Memref("x", DType.FLOAT64, 1)
    >>> print(print_loops(LoopFunc("f", (x,), (), (DenseResult(x),))), end="")
    func @f(x: memref<f64>) {
      return x
    }
    """
    symbols = [param.name for param in func.params if isinstance(param, Var)]
    parameters = [_parameter(param) for param in func.params]
    lines = wrap_header(f"func @{func.name}", parameters, " {")
    lines.extend("  " + line for line in print_body(func.body))
    returned = [_result(result, symbols) for result in func.results]
    line = f"  return {', '.join(returned)}".rstrip()
    lines.extend([line] if len(line) <= 100 else ["  return", *_one_a_line(returned)])
    return "\n".join([*lines, "}", ""])


def _one_a_line(items: Sequence[str]) -> list[str]:
    return [f"      {item}," for item in items[:-1]] + [f"      {items[-1]}"]
