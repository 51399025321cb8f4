"""The source of the support library, and what its Python words are in LLVM IR.

Tables and pure functions that ``_support_functions`` reads: comparisons, arithmetic, NumPy's real
functions, the kinds of values that annotations name.
"""

from __future__ import annotations

import ast
import functools
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sparsejit._dataclasses import dataclass
from sparsejit.backends.llvm._text import Value

__all__ = [
    "FLOAT",
    "FLOAT_OPS",
    "INTEGER_OPS",
    "INTRINSIC",
    "KINDS",
    "LIBM",
    "SIGNED",
    "UNSIGNED",
    "Operand",
    "Typed",
    "of_numbers",
    "sources",
]

_HOME = "sparsejit.backends.support"
_MODULES = tuple(
    f"{_HOME}.{name}" for name in ("complex_functions", "complexes", "integers", "halves")
)
INTRINSIC = {"sqrt": "sqrt", "rint": "rint", "floor": "floor", "absolute": "fabs", "abs": "fabs"}
LIBM = {
    "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p",
    "sin": "sin", "sinh": "sinh", "tan": "tan", "arcsinh": "asinh", "arctan2": "atan2",
    "hypot": "hypot",
}  # fmt: skip
SIGNED = {
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
UNSIGNED = {**SIGNED, ast.Lt: "ult", ast.LtE: "ule", ast.Gt: "ugt", ast.GtE: "uge"}
FLOAT = {
    ast.Lt: "olt",
    ast.LtE: "ole",
    ast.Gt: "ogt",
    ast.GtE: "oge",
    ast.Eq: "oeq",
    ast.NotEq: "une",
}
FLOAT_OPS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
INTEGER_OPS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
KINDS = {
    "int": "i64", "int64": "i64", "uint64": "u64", "uint16": "i16", "bool": "i1",
    "float64": "double", "float32": "float",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Typed:
    """A value; ``kind`` is its LLVM type, or ``u64`` for an unsigned integer."""

    kind: str
    value: Value


Operand = Typed | int | float
"""A value, or a Python number that takes the type of what it meets."""


@functools.cache
def sources() -> dict[str, tuple[ast.FunctionDef, ModuleType]]:
    """Every function of the library with its module."""
    found: dict[str, tuple[ast.FunctionDef, ModuleType]] = {}
    for name in _MODULES:
        module = import_module(name)
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = (node, module)
    return found


def of_numbers(op: ast.operator, lhs: float, rhs: float) -> float:
    """Arithmetic on constants."""
    match op:
        case ast.Add():
            return lhs + rhs
        case ast.Sub():
            return lhs - rhs
        case ast.Mult():
            return lhs * rhs
        case ast.Div():
            return lhs / rhs
        case ast.Pow():
            power: float = lhs**rhs
            return power
        case ast.LShift():
            assert isinstance(lhs, int)
            assert isinstance(rhs, int)
            return lhs << rhs
        case _:
            raise AssertionError(ast.dump(op))
