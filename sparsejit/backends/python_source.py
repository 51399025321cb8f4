"""Loop functions as Python: one text that is the interpreter, and under Numba a compiled kernel.

In: a ``LoopFunc``. Out: a module with one function, over the parameters of the loop function, that
returns its result arrays. The text of ``y = A @ x`` for a CSR matrix::

    from numpy import float64, int64, zeros


    def spmv(d0, d1, A_pos1, A_crd1, A_vals, x):
        y = zeros(d0, float64)
        for i in range(d0):
            for p1 in range(int64(A_pos1[i]), int64(A_pos1[i + 1])):
                j = int64(A_crd1[p1])
                y[i] += A_vals[p1] * x[j]
        return (y,)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from sparsejit.backends import _spellings, support
from sparsejit.backends._assemble_source import assemble_statements
from sparsejit.backends._expressions import ExpressionWriter, constant
from sparsejit.backends._layout import WIDTH, Atom, Call, Index, Infix, Node, Slice, flat, layout
from sparsejit.backends._names import IMPORTED_FROM_NUMPY, fresh_name, python_names
from sparsejit.backends.base import KernelSource
from sparsejit.ir.device_statements import Launch, LibraryCall, ReadBack, Require
from sparsejit.ir.host_form import host_form
from sparsejit.ir.loop_walk import (
    all_statements,
    memrefs_defined,
    result_memrefs,
)
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Copy,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    Lit,
    LoopFunc,
    Push,
    Resize,
    Scan,
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
from sparsejit.ir.scalar import UserFunction
from sparsejit.ir.types import DType
from sparsejit.ir.user_functions import called_by_loops
from sparsejit.user_code import symbol_of

__all__ = ["SourceWriter", "emit_python", "import_lines", "signature_line"]

_AUGMENTED = {BinaryOp.ADD: "+=", BinaryOp.SUB: "-=", BinaryOp.MUL: "*="}


def emit_python(func: LoopFunc) -> KernelSource:
    """Return the Python text of ``func``: pure, deterministic, lines of at most 100 columns.

    Raises ``UnsupportedError`` for an operation that has no meaning on its dtype.

    >>> from sparsejit.ir.loops import DenseResult, DimOf, Memref
    >>> x, y = Memref("x", DType.FLOAT64, 1), Memref("y", DType.FLOAT64, 1)
    >>> fill = Alloc(y, (DimOf(x, 0),))
    >>> print(emit_python(LoopFunc("copied", (x,), (fill, Copy(y, x)), (DenseResult(y),))).text)
    from numpy import empty, float64
    from sparsejit.backends.support import copy1
    <BLANKLINE>
    <BLANKLINE>
    def copied(x):
        y = empty(x.shape[0], float64)
        copy1(y, x)
        return (y,)
    <BLANKLINE>
    """
    func = host_form(func)
    names = python_names(_all_names(func))
    functions: dict[str, UserFunction] = {}
    for function in called_by_loops(func.body):
        name = fresh_name(function.text, names.values())
        names[symbol_of(function)] = name
        functions[name] = function
    writer = SourceWriter(names, ExpressionWriter(names))
    writer.block(func.body)
    returned = tuple(Atom(writer.names[memref.name]) for memref in result_memrefs(func))
    writer.assign("return", Call("", returned), "")
    entry = fresh_name(func.name, writer.names.values())
    parameters = [writer.names[param.name] for param in func.params]
    head = signature_line(entry, parameters)
    body = "\n".join((head, *writer.lines)) + "\n"
    imports = import_lines(body)
    text = f"{imports}\n\n{body}" if imports else body
    return KernelSource(entry, text, func, functions)


def signature_line(entry: str, parameters: Sequence[str]) -> str:
    """Return the first line of a function, or its first lines where one is too long."""
    line = f"def {entry}({', '.join(parameters)}):"
    if len(line) <= WIDTH:
        return line
    return f"def {entry}(\n" + "".join(f"    {name},\n" for name in parameters) + "):"


_MODULES = (
    ("numpy", IMPORTED_FROM_NUMPY),
    ("sparsejit.backends.support", frozenset(support.__all__)),
)


def import_lines(body: str, modules: Sequence[tuple[str, frozenset[str]]] = _MODULES) -> str:
    """Return the imports that ``body`` needs of what each module offers.

    The names of the body itself are never names to be imported.
    """
    used = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", body))
    lines = []
    for module, names in modules:
        wanted = sorted(used & names)
        line = f"from {module} import {', '.join(wanted)}"
        if len(line) > WIDTH:
            line = f"from {module} import (\n" + "".join(f"    {n},\n" for n in wanted) + ")"
        lines += [line] if wanted else []
    return "\n".join(lines) + "\n" if lines else ""


def _all_names(func: LoopFunc) -> Iterable[str]:
    yield from (param.name for param in func.params)
    for stmt in all_statements(func.body):
        match stmt:
            case Let(var, _, _) | For(var, _, _, _, _, _):
                yield var.name
            case _:
                yield from (memref.name for memref in memrefs_defined(stmt))


class SourceWriter:
    """The lines of one function and where the next one is indented."""

    def __init__(self, names: dict[str, str], expressions: ExpressionWriter) -> None:
        self.names = names
        self.expressions = expressions
        self.lines: list[str] = []
        self._indent = 4

    def fresh(self, base: str) -> str:
        name = fresh_name(base, self.names.values())
        self.names[f"%{name}"] = name  # no name of the IR: identifiers map to themselves
        return name

    def line(self, text: str) -> None:
        self.lines.append(" " * self._indent + text)

    def assign(self, target: str, value: Node, op: str = "=") -> None:
        before = "".join(f"{part} " for part in (target, op) if part)
        column = len(before.rpartition("\n")[2]) + (0 if "\n" in before else self._indent)
        self.line(before + layout(value, self._indent, column))

    def block(self, body: Sequence[Stmt]) -> None:
        start = len(self.lines)
        for stmt in body:
            self.statement(stmt)
        if len(self.lines) == start and self._indent > 4:
            self.line("pass")

    def nested(self, keyword: str, head: Node, body: Sequence[Stmt]) -> None:
        column = self._indent + len(keyword) + 1
        self.line(f"{keyword} {layout(head, self._indent, column + 1)}:")
        self._inside(body)

    def _inside(self, body: Sequence[Stmt]) -> None:
        self._indent += 4
        self.block(body)
        self._indent -= 4

    # ------------------------------------------------------------ statements

    def statement(self, stmt: Stmt) -> None:  # noqa: C901 - one case for each kind
        match stmt:
            case Let() | Assign():
                self.assign(self.names[stmt.var.name], self.expressions.typed(stmt.value))
            case For() | While() | If() | Require():
                self.control(stmt)
            case Dealloc():
                pass  # Python and Numba free an array after its last use, and `del` would not
                # know a name that only one branch has bound
            case Store():
                self.store(stmt)
            case Alloc():
                self.alloc(stmt)
            case View():
                self.view(stmt)
            case SelectMemref(memref, condition, then, orelse):
                names = self.names
                test = flat(self.expressions.expression(condition))
                chosen = f"{names[then.name]} if {test} else {names[orelse.name]}"
                self.assign(names[memref.name], Atom(chosen))
            case Push():
                self.push(stmt)
            case Copy() | Scan() | Resize() | Sort() | SortPrefix() | Assemble():
                self.whole_arrays(stmt)
            case Launch() | ReadBack() | LibraryCall():
                raise AssertionError("the function is in host form")
            case _:
                assert_never(stmt)

    def require(self, stmt: Require) -> None:
        refused = Unary(UnaryOp.NOT, stmt.condition, DType.BOOL)
        head = layout(self.expressions.expression(refused), self._indent, self._indent + 4)
        self.line(f"if {head}:")
        self._indent += 4
        self.line(f"raise ValueError({stmt.text!r})")
        self._indent -= 4

    def control(self, stmt: For | While | If | Require) -> None:
        match stmt:
            case For(var, lower, upper, body, _, _):
                head = f"for {self.names[var.name]} in"
                self.nested(head, self.range_of(lower, upper), body)
            case While(condition, body):
                self.nested("while", self.expressions.expression(condition), body)
            case If():
                self.branch("if", stmt)
            case Require():
                self.require(stmt)
            case _:
                assert_never(stmt)

    def branch(self, keyword: str, stmt: If) -> None:
        self.nested(keyword, self.expressions.expression(stmt.condition), stmt.then)
        match stmt.orelse:
            case ():
                pass
            case (If() as other,):
                self.branch("elif", other)
            case orelse:
                self.line("else:")
                self._inside(orelse)

    def whole_arrays(self, stmt: Copy | Scan | Resize | Sort | SortPrefix | Assemble) -> None:
        names = self.names
        match stmt:
            case Copy(target, source):
                self.copy(names[target.name], names[source.name], target.rank)
            case Scan(memref, op):
                self.line(f"scan_{op.value}({names[memref.name]})")
            case Resize(memref, count):
                name = names[memref.name]
                self.assign(name, Call("resize", (Atom(name), self.expressions.typed(count))))
            case SortPrefix(memref, count):
                operands = (Atom(names[memref.name]), self.expressions.typed(count))
                self.assign("", Call("sort_prefix", operands), "")
            case Sort(order, coordinates, extents, count):
                keys = Call("", tuple(Atom(names[memref.name]) for memref in coordinates))
                sizes = Call("", tuple(self.expressions.typed(extent) for extent in extents))
                entries = Call("sort_entries", (keys, sizes, self.expressions.typed(count)))
                self.assign(names[order.name], entries)
            case Assemble():
                for defined, value in assemble_statements(stmt, names, self.fresh):
                    self.assign(defined, value, "=" if defined else "")
            case _:
                assert_never(stmt)

    def copy(self, target: str, source: str, rank: int) -> None:
        if rank == 0:
            self.line(f"{target}[()] = {source}[()]")
        elif rank <= 3:
            self.line(f"copy{rank}({target}, {source})")
        else:
            place = self.fresh(f"{target}_i")
            self.line(f"for {place} in range({source}.shape[0]):")
            self._indent += 4
            self.copy(f"{target}[{place}]", f"{source}[{place}]", rank - 1)
            self._indent -= 4

    def range_of(self, lower: Expr, upper: Expr) -> Node:
        bounds = (self.expressions.expression(lower), self.expressions.expression(upper))
        starts_at_zero = bounds[0] == Atom("0")
        return Call("range", bounds[1:] if starts_at_zero else bounds)

    def store(self, stmt: Store) -> None:
        target = self.expressions.place(stmt.memref, stmt.indices)
        dtype = stmt.memref.dtype
        text = layout(target, self._indent, self._indent + 40)  # leaves room for the value
        if stmt.reduce is None:
            self.assign(text, self.expressions.expression(stmt.value))
        elif stmt.reduce in _AUGMENTED and dtype is not DType.BOOL:
            self.assign(text, self.expressions.expression(stmt.value), _AUGMENTED[stmt.reduce])
        else:
            value = self.expressions.typed(stmt.value)
            self.assign(text, _spellings.binary(stmt.reduce, target, value, dtype))

    def alloc(self, stmt: Alloc) -> None:
        extents: list[Node] = [self.expressions.expression(extent) for extent in stmt.extents]
        shape: Node = extents[0] if len(extents) == 1 else Call("", tuple(extents))
        dtype = Atom(_spellings.constructor(stmt.memref.dtype))
        name = self.names[stmt.memref.name]
        if stmt.fill is None:
            self.assign(name, Call("empty", (shape, dtype)))
        elif repr(stmt.fill.value) in ("0", "0.0", "0j", "False"):  # not -0.0
            self.assign(name, Call("zeros", (shape, dtype)))
        else:
            self.assign(name, Call("full", (shape, constant(stmt.fill), dtype)))

    def push(self, stmt: Push) -> None:
        name = self.names[stmt.memref.name]
        count: Node = self.expressions.typed(stmt.count)
        if not isinstance(stmt.count, Var | Lit):
            place = self.fresh(f"{name}_count")
            self.assign(place, count)
            count = Atom(place)
        # The test stands here, since a call for each element would cost reference counts.
        self.line(f"if {flat(count)} >= {name}.size:")
        self._indent += 4
        self.assign(name, Call("grow", (Atom(name), count)))
        self._indent -= 4
        self.assign(flat(Index(name, (count,))), self.expressions.expression(stmt.value))

    def view(self, stmt: View) -> None:
        """Basic slices that run upward; a negative stride reverses one in a second step.

        A slice that runs down to element 0 would need the bound None.
        """
        slices, steps = [], []
        for axis, (offset, size, stride) in enumerate(
            zip(stmt.offsets, stmt.sizes, stmt.strides, strict=True)
        ):
            start = self.expressions.expression(offset)
            if axis in stmt.dropped and stmt.memref.rank:
                slices.append(start)
            else:
                slices.append(_slice(start, self.expressions.expression(size), stride))
                steps.append("::-1" if stride < 0 else ":")
        name = self.names[stmt.memref.name]
        value: Node = Index(self.names[stmt.source.name], tuple(slices))
        if not stmt.memref.rank:
            value = Call("scalar_view", (value,))
        elif "::-1" in steps:
            upward = self.fresh(f"{name}_upward")  # a second name: Numba gives it another type
            self.assign(upward, value)
            value = Atom(f"{upward}[{', '.join(steps)}]")
        self.assign(name, value)


def _slice(start: Node, size: Node, stride: int) -> Node:
    """The elements ``start + k * stride``, in upward order."""
    if stride > 0:
        return Slice(start, _plus(start, _times(size, stride)), stride)
    length = _times(_plus(size, Atom("-1")), -stride)
    match length:
        case Atom(text) if _is_literal(text):
            lower = _plus(start, Atom(str(-int(text))))
        case _:
            lower = Infix("-", start, length)
    return Slice(lower, _plus(start, Atom("1")), -stride)


def _plus(lhs: Node, rhs: Node) -> Node:
    """``lhs + rhs`` with literals folded."""
    match lhs, rhs:
        case Atom(a), Atom(b) if _is_literal(a) and _is_literal(b):
            return Atom(str(int(a) + int(b)))
        case (Atom("0"), other) | (other, Atom("0")):
            return other
        case Infix("+" | "-" as op, inner, Atom(a)), Atom(b) if _is_literal(a) and _is_literal(b):
            return _plus(inner, Atom(str((int(a) if op == "+" else -int(a)) + int(b))))
        case _, Atom(b) if b.startswith("-"):
            return Infix("-", lhs, Atom(b[1:]))
        case _:
            return Infix("+", lhs, rhs)


def _times(lhs: Node, factor: int) -> Node:
    """``lhs * factor`` with literals folded."""
    match lhs:
        case Atom(a) if _is_literal(a):
            return Atom(str(int(a) * factor))
        case _:
            return lhs if factor == 1 else Infix("*", lhs, Atom(str(factor)))


def _is_literal(text: str) -> bool:
    return text.removeprefix("-").isdigit()
