"""Which MLIR operation spells a scalar operation of ours, by the class of its dtype."""

from __future__ import annotations

from sparsejit._dataclasses import dataclass
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType

__all__ = ["COMPARISONS", "binary_spelling", "unary_spelling"]

COMPARISONS = {
    BinaryOp.LT: ("olt", "slt", "ult"),
    BinaryOp.LE: ("ole", "sle", "ule"),
    BinaryOp.GT: ("ogt", "sgt", "ugt"),
    BinaryOp.GE: ("oge", "sge", "uge"),
    BinaryOp.EQ: ("oeq", "eq", "eq"),
    BinaryOp.NE: ("une", "ne", "ne"),
}
"""The predicates for floats, signed integers, and unsigned integers and bool."""


@dataclass(frozen=True, slots=True)
class _Row:
    real: str | None = None
    signed: str | None = None
    unsigned: str | None = None
    boolean: str | None = None
    complex: str | None = None

    def spelling(self, dtype: DType) -> str | None:
        if dtype.is_complex:
            return self.complex
        if dtype.is_float:
            return self.real
        if dtype is DType.BOOL:
            return self.boolean
        return self.signed if dtype.is_signed_integer else self.unsigned


_UNARY = {
    UnaryOp.NEG: _Row("arith.negf", complex="complex.neg"),
    UnaryOp.ABS: _Row("math.absf", "math.absi", complex="complex.abs"),
    UnaryOp.SIGN: _Row(complex="complex.sign"),
    UnaryOp.SQRT: _Row("math.sqrt", complex="complex.sqrt"),
    UnaryOp.CBRT: _Row("math.cbrt"),
    UnaryOp.EXP: _Row("math.exp", complex="complex.exp"),
    UnaryOp.EXP2: _Row("math.exp2"),
    UnaryOp.EXPM1: _Row("math.expm1", complex="complex.expm1"),
    UnaryOp.LOG: _Row("math.log", complex="complex.log"),
    UnaryOp.LOG2: _Row("math.log2"),
    UnaryOp.LOG10: _Row("math.log10"),
    UnaryOp.LOG1P: _Row("math.log1p", complex="complex.log1p"),
    UnaryOp.SIN: _Row("math.sin", complex="complex.sin"),
    UnaryOp.COS: _Row("math.cos", complex="complex.cos"),
    UnaryOp.TAN: _Row("math.tan", complex="complex.tan"),
    UnaryOp.ASIN: _Row("math.asin"),
    UnaryOp.ACOS: _Row("math.acos"),
    UnaryOp.ATAN: _Row("math.atan"),
    UnaryOp.SINH: _Row("math.sinh"),
    UnaryOp.COSH: _Row("math.cosh"),
    UnaryOp.TANH: _Row("math.tanh", complex="complex.tanh"),
    UnaryOp.ASINH: _Row("math.asinh"),
    UnaryOp.ACOSH: _Row("math.acosh"),
    UnaryOp.ATANH: _Row("math.atanh"),
    UnaryOp.FLOOR: _Row("math.floor"),
    UnaryOp.CEIL: _Row("math.ceil"),
    UnaryOp.TRUNC: _Row("math.trunc"),
    UnaryOp.RINT: _Row("math.roundeven"),
    UnaryOp.CONJ: _Row(complex="complex.conj"),
    UnaryOp.REAL: _Row(complex="complex.re"),
    UnaryOp.IMAG: _Row(complex="complex.im"),
    UnaryOp.ISNAN: _Row("math.isnan"),
    UnaryOp.ISINF: _Row("math.isinf"),
    UnaryOp.ISFINITE: _Row("math.isfinite"),
}

_BINARY = {
    BinaryOp.ADD: _Row("arith.addf", "arith.addi", "arith.addi", "arith.ori", "complex.add"),
    BinaryOp.SUB: _Row("arith.subf", "arith.subi", "arith.subi", complex="complex.sub"),
    BinaryOp.MUL: _Row("arith.mulf", "arith.muli", "arith.muli", "arith.andi", "complex.mul"),
    BinaryOp.DIV: _Row("arith.divf", complex="complex.div"),
    BinaryOp.FLOORDIV: _Row(None, "arith.floordivsi", "arith.divui"),
    BinaryOp.REM: _Row(None, None, "arith.remui"),
    BinaryOp.FMOD: _Row("arith.remf", "arith.remsi", "arith.remui"),
    BinaryOp.POW: _Row("math.powf", "math.ipowi", "math.ipowi", complex="complex.pow"),
    BinaryOp.MIN: _Row("arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"),
    BinaryOp.MAX: _Row("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"),
    BinaryOp.FMIN: _Row("arith.minnumf", "arith.minsi", "arith.minui", "arith.andi"),
    BinaryOp.FMAX: _Row("arith.maxnumf", "arith.maxsi", "arith.maxui", "arith.ori"),
    BinaryOp.ATAN2: _Row("math.atan2"),
    BinaryOp.COPYSIGN: _Row("math.copysign"),
    BinaryOp.AND: _Row(None, "arith.andi", "arith.andi", "arith.andi"),
    BinaryOp.OR: _Row(None, "arith.ori", "arith.ori", "arith.ori"),
    BinaryOp.XOR: _Row(None, "arith.xori", "arith.xori", "arith.xori"),
    BinaryOp.SHL: _Row(None, "arith.shli", "arith.shli"),
    BinaryOp.SHR: _Row(None, "arith.shrsi", "arith.shrui"),
}


def unary_spelling(op: UnaryOp, dtype: DType) -> str | None:
    """Return the one MLIR operation for ``op`` on ``dtype``, or None.

    >>> unary_spelling(UnaryOp.ABS, DType.INT32)
    'math.absi'
    """
    return _UNARY.get(op, _Row()).spelling(dtype)


def binary_spelling(op: BinaryOp, dtype: DType) -> str | None:
    """Return the one MLIR operation for ``op`` on two operands of ``dtype``, or None.

    >>> binary_spelling(BinaryOp.MAX, DType.UINT8)
    'arith.maxui'
    """
    return _BINARY.get(op, _Row()).spelling(dtype)
