"""The support library's scalar functions as LLVM functions, read from their Python source.

In: the name of a function of ``backends.support`` and the types of its operands. Out: an internal
LLVM function with its meaning. So complex arithmetic is written once and every backend has the
same. Understood is what these functions use: assignments, branches, ``while``, arithmetic,
comparisons, calls of one another and of NumPy's real functions. Numbers without a type take that
of the other operand, as Python's do beside NumPy's scalars; no operation traps, so that both sides
of a conditional expression and of ``and`` and ``or`` are computed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._support_source import (
    FLOAT,
    FLOAT_OPS,
    INTEGER_OPS,
    INTRINSIC,
    KINDS,
    LIBM,
    SIGNED,
    UNSIGNED,
    Operand,
    Typed,
    of_numbers,
    sources,
)
from sparsejit.backends.llvm._text import Builder, Callee, Value, integer
from sparsejit.backends.llvm._types import real

__all__ = ["SupportFunctions"]


class SupportFunctions:
    """The functions of the support library in a module, each added when first asked for."""

    def __init__(self, functions: Functions) -> None:
        self._functions: Final = functions

    def function(self, name: str, real_kind: str) -> Callee:
        """Return a function, where its reals are ``float`` or ``double``."""
        full = f"{name}_{'f32' if real_kind == 'float' else 'f64'}"
        found = self._functions.module.defined(full)
        if found is not None:
            return found
        self._functions.module.needs_optimizer = True
        node, module = sources()[name]
        operands = [_kind(argument.annotation, real_kind) for argument in node.args.args]
        result = _kind(node.returns, real_kind)
        function = self._functions.module.define(
            full, result.replace("u64", "i64"), [kind.replace("u64", "i64") for kind in operands]
        )
        builder = Builder(function)
        writer = _Writer(self, self._functions, builder, module, real_kind, result)
        for argument, kind, value in zip(node.args.args, operands, function.params, strict=True):
            writer.bind(argument.arg, Typed(kind, value))
        writer.block(node.body)
        builder.finish()
        return function.callee


def _kind(annotation: ast.expr | None, real_kind: str) -> str:
    assert isinstance(annotation, ast.Name)
    match annotation.id:
        case "complex" | "Complex":
            return f"{{{real_kind}, {real_kind}}}"
        case "float" | "Real":
            return real_kind
        case name:
            return KINDS[name]


class _Writer:
    """Writes one function; ``names`` are its variables: their kinds and stack slots."""

    def __init__(
        self,
        library: SupportFunctions,
        functions: Functions,
        builder: Builder,
        module: ModuleType,
        real_kind: str,
        result: str,
    ) -> None:
        self._library = library
        self._functions = functions
        self._b = builder
        self._module = module
        self._real = real_kind
        self._complex = f"{{{real_kind}, {real_kind}}}"
        self._result = result
        self._names: dict[str, tuple[str, Value]] = {}

    def bind(self, name: str, value: Typed) -> None:
        """Give a variable a value."""
        if name not in self._names:
            self._names[name] = (value.kind, self._b.slot(value.value.type))
        kind, slot = self._names[name]
        self._b.store(self._as(value, kind), slot, 8)

    # ------------------------------------------------------------ statements

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Write statements; return whether the end is reached."""
        return all(self._statement(stmt) for stmt in body)

    def _statement(self, stmt: ast.stmt) -> bool:
        match stmt:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                before = self._value(ast.Name(id=name))
                self.bind(name, self._typed(self._binary(op, before, self._value(value))))
            case ast.Return(value=value):
                assert value is not None
                self._b.ret(self._as(self._value(value), self._result))
                return False
            case ast.If():
                return self._if(stmt)
            case ast.While(test=test, body=body):
                self._while(test, body)
            case _:
                raise AssertionError(ast.dump(stmt))
        return True

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self.bind(name, self._typed(self._value(value)))
            case ast.Tuple(elts=names), ast.Tuple(elts=values):
                self._bind_all(names, [self._typed(self._value(part)) for part in values])
            case ast.Tuple(elts=names), ast.IfExp(
                test=test, body=ast.Tuple(elts=then), orelse=ast.Tuple(elts=orelse)
            ):
                condition = self._truth(test)
                pairs = zip(then, orelse, strict=True)
                self._bind_all(names, [self._choose(condition, a, b) for a, b in pairs])
            case _:
                raise AssertionError(ast.dump(target))

    def _bind_all(self, names: Sequence[ast.expr], values: Sequence[Typed]) -> None:
        for name, value in zip(names, values, strict=True):
            assert isinstance(name, ast.Name)
            self.bind(name.id, value)

    def _if(self, stmt: ast.If) -> bool:
        b = self._b
        condition = self._truth(stmt.test)
        then, orelse, end = b.new_block("then"), b.new_block("else"), b.new_block("end")
        b.branch_if(condition, then, orelse)
        reached = False
        for block, body in ((then, stmt.body), (orelse, stmt.orelse)):
            b.place(block)
            if self.block(body):
                b.branch(end)
                reached = True
        if reached:
            b.place(end)
        return reached

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        b = self._b
        head, inside, after = b.new_block("while"), b.new_block("do"), b.new_block("done")
        b.branch(head)
        b.place(head)
        b.branch_if(self._truth(test), inside, after)
        b.place(inside)
        if self.block(body):
            b.branch(head)
        b.place(after)

    # ------------------------------------------------------------ types

    def _typed(self, operand: Operand) -> Typed:
        match operand:
            case Typed():
                return operand
            case bool():
                return Typed("i1", integer(operand, "i1"))
            case int():
                return Typed("i64", integer(operand))
            case float():
                return Typed(self._real, real(operand, self._real))

    def _as(self, operand: Operand, kind: str) -> Value:
        """Return a value of a kind; numbers become it, values have it already."""
        if not isinstance(operand, Typed):
            if kind in ("float", "double"):
                return real(float(operand), kind)
            return integer(int(operand), kind.replace("u", "i"))
        assert operand.value.type == kind.replace("u64", "i64"), (operand, kind)
        return operand.value

    def _truth(self, node: ast.expr) -> Value:
        typed = self._typed(self._value(node))
        if typed.kind == "i1":
            return typed.value
        return self._b.compare("ne", typed.value, integer(0))

    def _choose(self, condition: Value, then: ast.expr, orelse: ast.expr) -> Typed:
        sides = self._value(then), self._value(orelse)
        kind = self._common(*sides)
        chosen = self._b.select(condition, *(self._as(side, kind) for side in sides))
        return Typed(kind, chosen)

    def _common(self, *operands: Operand) -> str:
        """Return the kind that operands have together."""
        kinds = {operand.kind for operand in operands if isinstance(operand, Typed)}
        if not kinds:
            is_real = any(isinstance(operand, float) for operand in operands)
            return self._real if is_real else "i64"
        (kind,) = kinds
        return kind

    # ------------------------------------------------------------ expressions

    def _value(self, node: ast.expr) -> Operand:  # noqa: C901 - one case for each kind
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                if name in self._names:
                    kind, slot = self._names[name]
                    return Typed(kind, self._b.load(slot, kind.replace("u64", "i64"), 8))
                number: float = getattr(self._module, name)
                return number
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left), self._value(right))
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp(op=op, values=values):
                name = "and" if isinstance(op, ast.And) else "or"
                truths = [self._truth(value) for value in values]
                joined = functools.reduce(functools.partial(self._b.op, name), truths)
                return Typed("i1", joined)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choose(self._truth(test), body, orelse)
            case ast.Attribute(value=value, attr="real" | "imag" as part):
                pair = self._typed(self._value(value)).value
                return Typed(self._real, self._b.part(pair, int(part == "imag")))
            case ast.Call():
                return self._call(node)
            case _:
                raise AssertionError(ast.dump(node))

    def _unary(self, op: ast.unaryop, node: ast.expr) -> Operand:
        if isinstance(op, ast.Not):
            return Typed("i1", self._b.op("xor", self._truth(node), integer(1, "i1")))
        assert isinstance(op, ast.USub)
        operand = self._value(node)
        if not isinstance(operand, Typed):
            return -operand
        if operand.kind == self._complex:
            parts = [self._b.negate(self._b.part(operand.value, place)) for place in (0, 1)]
            return Typed(operand.kind, self._b.pair(*parts))
        if operand.kind == self._real:
            return Typed(operand.kind, self._b.negate(operand.value))
        return Typed(operand.kind, self._b.op("sub", integer(0), operand.value))

    def _binary(self, op: ast.operator, lhs: Operand, rhs: Operand) -> Operand:
        if not isinstance(lhs, Typed) and not isinstance(rhs, Typed):
            return of_numbers(op, lhs, rhs)
        kind = self._common(lhs, rhs)
        left, right = self._as(lhs, kind), self._as(rhs, kind)
        if kind == self._complex:
            assert isinstance(op, ast.Mult)
            return Typed(kind, self._product(left, right))
        names: Any = FLOAT_OPS if kind == self._real else INTEGER_OPS
        name = "lshr" if kind == "u64" and isinstance(op, ast.RShift) else names[type(op)]
        return Typed(kind, self._b.op(name, left, right))

    def _product(self, left: Value, right: Value) -> Value:
        b = self._b
        (a, c), (d, e) = [(b.part(side, 0), b.part(side, 1)) for side in (left, right)]
        first = b.op("fsub", b.op("fmul", a, d), b.op("fmul", c, e))
        return b.pair(first, b.op("fadd", b.op("fmul", a, e), b.op("fmul", c, d)))

    def _compare(self, node: ast.Compare) -> Typed:
        sides = [self._value(part) for part in (node.left, *node.comparators)]
        found: Value | None = None
        for op, lhs, rhs in zip(node.ops, sides, sides[1:], strict=False):
            kind = self._common(lhs, rhs)
            table: Any = FLOAT if kind == self._real else UNSIGNED if kind == "u64" else SIGNED
            name = table[type(op)]
            if kind == "i1" and name == "ne":
                one = self._b.op("xor", self._as(lhs, kind), self._as(rhs, kind))
            else:
                one = self._b.compare(name, self._as(lhs, kind), self._as(rhs, kind))
            found = one if found is None else self._b.op("and", found, one)
        assert found is not None
        return Typed("i1", found)

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> Operand:
        if isinstance(node.func, ast.Attribute):
            return self._view(node.func, node.args)
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        operands = [self._value(argument) for argument in node.args]
        if name == "complex":
            parts = [self._as(operand, self._real) for operand in operands]
            return Typed(self._complex, self._b.pair(*parts))
        if name in ("min", "max"):
            kind = self._common(*operands)
            first, second = (self._as(operand, kind) for operand in operands)
            wins = self._b.compare("olt" if name == "min" else "ogt", second, first)
            return Typed(kind, self._b.select(wins, second, first))
        if name in sources():
            callee = self._library.function(name, self._real)
            node_of, _ = sources()[name]
            kinds = [_kind(part.annotation, self._real) for part in node_of.args.args]
            values = [self._as(part, kind) for part, kind in zip(operands, kinds, strict=True)]
            result = self._b.call(callee, values)
            return Typed(_kind(node_of.returns, self._real), result)
        (operand, *more) = operands
        return self._of_number(name, operand, more)

    def _of_number(self, name: str, operand: Operand, more: Sequence[Operand]) -> Operand:
        """NumPy's real functions, and conversions."""
        b = self._b
        if name in ("bool", "float", "int") or name in KINDS:
            return self._convert(name, operand)
        if isinstance(operand, Typed) and operand.kind == "i64" and name == "abs":
            negative = b.compare("slt", operand.value, integer(0))
            minus = b.op("sub", integer(0), operand.value)
            return Typed("i64", b.select(negative, minus, operand.value))
        values = [self._as(part, self._real) for part in (operand, *more)]
        value = values[0]
        match name:
            case "isnan":
                return Typed("i1", b.compare("uno", value, value))
            case "isinf" | "isfinite":
                size = b.call(self._functions.overloaded("fabs", self._real), [value])
                infinity = real(float("inf"), self._real)
                return Typed("i1", b.compare("oeq" if name == "isinf" else "olt", size, infinity))
            case "signbit":
                width = "i32" if self._real == "float" else "i64"
                return Typed(
                    "i1", b.compare("slt", b.cast("bitcast", value, width), integer(0, width))
                )
            case "copysign":
                return Typed(
                    self._real, b.call(self._functions.overloaded(name, self._real, 2), values)
                )
            case _ if name in INTRINSIC:
                callee = self._functions.overloaded(INTRINSIC[name], self._real)
                return Typed(self._real, b.call(callee, values))
            case _:
                callee = self._functions.math(LIBM[name], self._real, len(values))
                return Typed(self._real, b.call(callee, values))

    def _convert(self, name: str, operand: Operand) -> Operand:
        kind = self._real if name == "float" else KINDS[name]
        if not isinstance(operand, Typed):
            return Typed(kind, self._as(operand, kind))
        if operand.kind == kind:
            return operand
        value = operand.value
        if operand.kind == self._real and kind == "i64":
            suffix = "f32" if self._real == "float" else "f64"
            callee = self._functions.intrinsic(f"llvm.fptosi.sat.i64.{suffix}", "i64", self._real)
            return Typed(kind, self._b.call(callee, [value]))
        if kind == "i16":
            return Typed(kind, self._b.cast("trunc", value, kind))
        if operand.kind == "i1" and kind in ("i64", "u64"):
            return Typed(kind, self._b.cast("zext", value, "i64"))
        assert value.type == kind.replace("u64", "i64"), (operand, kind)
        return Typed(kind, value)

    def _view(self, function: ast.Attribute, arguments: Sequence[ast.expr]) -> Typed:
        """``value.view(int64)``: the same bits as another type."""
        (argument,) = arguments
        assert function.attr == "view"
        assert isinstance(argument, ast.Name)
        kind = KINDS[argument.id]
        return Typed(
            kind, self._b.cast("bitcast", self._typed(self._value(function.value)).value, kind)
        )
