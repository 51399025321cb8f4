"""Operations on float32 and float64 as LLVM IR, with NumPy's results.

Operands may be vectors where no function of libm is needed; ``flags`` are fast-math flags of sums
and products that may be reassociated or contracted.
"""

from __future__ import annotations

from sparsejit.backends.llvm._exponential import exponential
from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._integers import refused
from sparsejit.backends.llvm._text import Builder, Value, integer, lanes_of, scalar_of, vector_of
from sparsejit.backends.llvm._types import real
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType

__all__ = ["ORDERED", "VECTOR_BINARY", "VECTOR_UNARY", "binary_real", "number", "unary_real"]

ORDERED = {
    BinaryOp.LT: "olt", BinaryOp.LE: "ole", BinaryOp.GT: "ogt", BinaryOp.GE: "oge",
    BinaryOp.EQ: "oeq", BinaryOp.NE: "une",
}  # fmt: skip
"""How floats compare; only "not equal" holds for nan."""
_LIBM = {
    UnaryOp.CBRT: "cbrt", UnaryOp.EXP2: "exp2", UnaryOp.EXPM1: "expm1",
    UnaryOp.LOG: "log", UnaryOp.LOG2: "log2", UnaryOp.LOG10: "log10", UnaryOp.LOG1P: "log1p",
    UnaryOp.SIN: "sin", UnaryOp.COS: "cos", UnaryOp.TAN: "tan", UnaryOp.ASIN: "asin",
    UnaryOp.ACOS: "acos", UnaryOp.ATAN: "atan", UnaryOp.SINH: "sinh", UnaryOp.COSH: "cosh",
    UnaryOp.TANH: "tanh", UnaryOp.ASINH: "asinh", UnaryOp.ACOSH: "acosh", UnaryOp.ATANH: "atanh",
}  # fmt: skip
_LIBM_2 = {
    BinaryOp.POW: "pow", BinaryOp.FMOD: "fmod", BinaryOp.HYPOT: "hypot", BinaryOp.ATAN2: "atan2",
}  # fmt: skip
_INTRINSIC = {
    UnaryOp.SQRT: "sqrt", UnaryOp.FLOOR: "floor", UnaryOp.CEIL: "ceil", UnaryOp.TRUNC: "trunc",
    UnaryOp.RINT: "rint", UnaryOp.ABS: "fabs",
}  # fmt: skip
_PLAIN = {BinaryOp.ADD: "fadd", BinaryOp.SUB: "fsub", BinaryOp.MUL: "fmul"}
_EXTREMA = (BinaryOp.MIN, BinaryOp.MAX, BinaryOp.FMIN, BinaryOp.FMAX)

VECTOR_UNARY = frozenset(UnaryOp) - {*_LIBM, UnaryOp.BITS, UnaryOp.FROM_BITS}
"""The operations of one real that vectors have too."""
VECTOR_BINARY = frozenset((*_PLAIN, *_EXTREMA, *ORDERED, BinaryOp.DIV, BinaryOp.COPYSIGN))
"""The operations of two reals that vectors have too."""


def number(value: float, like: Value) -> Value:
    """Return a constant of the type of ``like``: a real or a vector of reals."""
    one = real(value, scalar_of(like.type))
    return one if lanes_of(like.type) == 1 else Value(like.type, f"splat ({one})")


def unary_real(  # noqa: C901 - one case for each kind
    b: Builder, functions: Functions, op: UnaryOp, value: Value, dtype: DType
) -> Value:
    """Return ``op(value)``."""
    if op in _LIBM:
        if lanes_of(value.type) > 1:
            raise refused(op, dtype)
        return b.call(functions.math(_LIBM[op], value.type), [value])
    if op in _INTRINSIC:
        return b.call(functions.overloaded(_INTRINSIC[op], value.type), [value])
    match op:
        case UnaryOp.EXP:
            return exponential(b, value)
        case UnaryOp.NEG:
            return b.negate(value)
        case UnaryOp.SIGN:
            zero = number(0.0, value)
            below = b.select(b.compare("olt", value, zero), number(-1.0, value), zero)
            sign = b.select(b.compare("ogt", value, zero), number(1.0, value), below)
            return b.select(b.compare("uno", value, value), value, sign)
        case UnaryOp.CONJ | UnaryOp.REAL:
            return value
        case UnaryOp.IMAG:
            return number(0.0, value)
        case UnaryOp.ISNAN:
            return b.compare("uno", value, value)
        case UnaryOp.ISINF | UnaryOp.ISFINITE:
            size = b.call(functions.overloaded("fabs", value.type), [value])
            predicate = "oeq" if op is UnaryOp.ISINF else "olt"
            return b.compare(predicate, size, number(float("inf"), value))
        case UnaryOp.BITS:
            return b.cast("bitcast", value, vector_of(f"i{dtype.bits}", lanes_of(value.type)))
        case UnaryOp.SIGNBIT:
            lanes, width = lanes_of(value.type), f"i{dtype.bits}"
            bits = b.cast("bitcast", value, vector_of(width, lanes))
            return b.compare("slt", bits, b.splat(integer(0, width), lanes))
        case _:
            raise refused(op, dtype)


def binary_real(  # noqa: C901 - one case for each kind
    b: Builder,
    functions: Functions,
    op: BinaryOp,
    lhs: Value,
    rhs: Value,
    dtype: DType,
    flags: str = "",
) -> Value:
    """Return ``lhs op rhs``."""
    if op in _PLAIN:
        return b.op(_PLAIN[op], lhs, rhs, flags)
    if op in ORDERED:
        return b.compare(ORDERED[op], lhs, rhs)
    if op in _EXTREMA:
        return _extremum(b, op, lhs, rhs)
    if op is BinaryOp.DIV:
        return b.op("fdiv", lhs, rhs)
    if op is BinaryOp.COPYSIGN:
        return b.call(functions.overloaded("copysign", lhs.type, 2), [lhs, rhs])
    if lanes_of(lhs.type) > 1:
        raise refused(op, dtype)
    if op in _LIBM_2:
        return b.call(functions.math(_LIBM_2[op], lhs.type, 2), [lhs, rhs])
    match op:
        case BinaryOp.REM:
            return _floor_divide(b, functions, lhs, rhs)[1]
        case BinaryOp.FLOORDIV:
            return _floor_divide(b, functions, lhs, rhs)[0]
        case BinaryOp.LOGADDEXP:
            return _log_add_exp(b, functions, lhs, rhs)
        case _:
            raise refused(op, dtype)


def _extremum(b: Builder, op: BinaryOp, lhs: Value, rhs: Value) -> Value:
    """min and max hand nan on, fmin and fmax the other operand."""
    sign = "ole" if op in (BinaryOp.MIN, BinaryOp.FMIN) else "oge"
    decisive = lhs if op in (BinaryOp.MIN, BinaryOp.MAX) else rhs
    left = b.op("or", b.compare(sign, lhs, rhs), b.compare("uno", decisive, decisive))
    return b.select(left, lhs, rhs)


def _floor_divide(b: Builder, functions: Functions, lhs: Value, rhs: Value) -> tuple[Value, Value]:
    """Return quotient and remainder as NumPy's ``divmod`` of floats computes them."""
    zero, one = number(0.0, lhs), number(1.0, lhs)
    copysign = functions.overloaded("copysign", lhs.type, 2)
    rest = b.call(functions.math("fmod", lhs.type, 2), [lhs, rhs])
    by_zero = b.compare("oeq", rhs, zero)
    exact = b.op("fdiv", b.op("fsub", lhs, rest), rhs)
    nonzero = b.compare("une", rest, zero)
    opposite = b.op("xor", b.compare("olt", rhs, zero), b.compare("olt", rest, zero))
    adjust = b.op("and", nonzero, opposite)
    modulo = b.select(adjust, b.op("fadd", rest, rhs), rest)
    modulo = b.select(nonzero, modulo, b.call(copysign, [zero, rhs]))
    quotient = b.select(adjust, b.op("fsub", exact, one), exact)
    down = b.call(functions.overloaded("floor", lhs.type), [quotient])
    far = b.compare("ogt", b.op("fsub", quotient, down), number(0.5, lhs))
    rounded = b.select(far, b.op("fadd", down, one), down)
    signed_zero = b.call(copysign, [zero, b.op("fdiv", lhs, rhs)])
    whole = b.select(b.compare("oeq", quotient, zero), signed_zero, rounded)
    by = b.op("fdiv", lhs, rhs)
    return b.select(by_zero, by, whole), b.select(by_zero, rest, modulo)


def _log_add_exp(b: Builder, functions: Functions, lhs: Value, rhs: Value) -> Value:
    """max + log1p(exp(-|difference|)); equal operands (also infinite) add log(2)."""
    same = b.op("fadd", lhs, number(0.6931471805599453, lhs))
    difference = b.op("fsub", lhs, rhs)
    larger = b.select(b.compare("ogt", difference, number(0.0, lhs)), lhs, rhs)
    size = b.call(functions.overloaded("fabs", lhs.type), [difference])
    exp = exponential(b, b.negate(size))
    total = b.op("fadd", larger, b.call(functions.math("log1p", lhs.type), [exp]))
    total = b.select(b.compare("uno", difference, difference), difference, total)
    return b.select(b.compare("oeq", lhs, rhs), same, total)
