"""The scalar operations and conversions as LLVM IR, with NumPy's results on every dtype.

In: an operation, operands in registers, their dtype. Out: the result in a register. Complex
numbers are pairs of reals; what is more than their ring is a function of the support library.
"""

from __future__ import annotations

from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._integers import (
    binary_bool,
    binary_integer,
    refused,
    unary_bool,
    unary_integer,
)
from sparsejit.backends.llvm._reals import binary_real, unary_real
from sparsejit.backends.llvm._support_functions import SupportFunctions
from sparsejit.backends.llvm._text import Builder, Value, integer, lanes_of, scalar_of, vector_of
from sparsejit.backends.llvm._types import in_register, real, real_type
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType

__all__ = ["Arithmetic"]

_WIDE_UNARY = frozenset(
    (
        UnaryOp.SQRT, UnaryOp.EXP, UnaryOp.EXP2, UnaryOp.EXPM1, UnaryOp.LOG, UnaryOp.LOG2,
        UnaryOp.LOG10, UnaryOp.LOG1P, UnaryOp.SIN, UnaryOp.COS, UnaryOp.TAN, UnaryOp.ASIN,
        UnaryOp.ACOS, UnaryOp.ATAN, UnaryOp.SINH, UnaryOp.COSH, UnaryOp.TANH, UnaryOp.ASINH,
        UnaryOp.ACOSH, UnaryOp.ATANH, UnaryOp.RINT, UnaryOp.SIGN,
    )
)  # fmt: skip
"""The operations of one complex number that the library computes in complex128."""
_LIBRARY_BINARY = frozenset(
    (
        BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.FMIN, BinaryOp.FMAX, BinaryOp.LT,
        BinaryOp.LE, BinaryOp.GT, BinaryOp.GE,
    )
)  # fmt: skip
_SPELLED = {
    BinaryOp.DIV: "div", BinaryOp.MIN: "min", BinaryOp.MAX: "max", BinaryOp.FMIN: "fmin",
    BinaryOp.FMAX: "fmax", BinaryOp.LT: "less", BinaryOp.LE: "less_equal", BinaryOp.GT: "greater",
    BinaryOp.GE: "greater_equal",
}  # fmt: skip


class Arithmetic:
    """Writes operations through ``builder`` into a module with ``functions``."""

    def __init__(self, builder: Builder, functions: Functions) -> None:
        self._b = builder
        self._f = functions
        self._library = SupportFunctions(functions)

    # ------------------------------------------------------------ operations

    def unary(self, op: UnaryOp, value: Value, dtype: DType) -> Value:
        """Return ``op(value)``; ``dtype`` is that of the operand."""
        if dtype is DType.BOOL:
            return unary_bool(self._b, op, value)
        if dtype.is_complex:
            return self._unary_complex(op, value, dtype)
        if dtype.is_integer:
            return unary_integer(self._b, op, value, dtype)
        return unary_real(self._b, self._f, op, value, dtype)

    def binary(self, op: BinaryOp, lhs: Value, rhs: Value, dtype: DType, flags: str = "") -> Value:
        """Return ``lhs op rhs``; ``dtype`` is that of the operands."""
        if dtype is DType.BOOL:
            return binary_bool(self._b, op, lhs, rhs)
        if dtype.is_complex:
            return self._binary_complex(op, lhs, rhs, dtype, flags)
        if dtype.is_integer:
            return binary_integer(self._b, op, lhs, rhs, dtype, self._library)
        return binary_real(self._b, self._f, op, lhs, rhs, dtype, flags)

    def _parts(self, value: Value) -> tuple[Value, Value]:
        return self._b.part(value, 0), self._b.part(value, 1)

    def _unary_complex(self, op: UnaryOp, value: Value, dtype: DType) -> Value:
        b = self._b
        if op in _WIDE_UNARY:
            return self._wide(f"complex_{op.info.numpy}", [value], dtype)
        real_part, imag = self._parts(value)
        match op:
            case UnaryOp.NEG:
                return b.pair(b.negate(real_part), b.negate(imag))
            case UnaryOp.CONJ:
                return b.pair(real_part, b.negate(imag))
            case UnaryOp.REAL:
                return real_part
            case UnaryOp.IMAG:
                return imag
            case UnaryOp.ABS:
                return b.call(self._f.math("hypot", real_part.type, 2), [real_part, imag])
            case UnaryOp.ISNAN | UnaryOp.ISINF | UnaryOp.ISFINITE:
                first = unary_real(b, self._f, op, real_part, dtype.real)
                second = unary_real(b, self._f, op, imag, dtype.real)
                return b.op("and" if op is UnaryOp.ISFINITE else "or", first, second)
            case _:
                raise refused(op, dtype)

    def _binary_complex(
        self, op: BinaryOp, lhs: Value, rhs: Value, dtype: DType, flags: str
    ) -> Value:
        b = self._b
        if op in _LIBRARY_BINARY:
            name = f"complex_{_SPELLED[op]}"
            return b.call(self._library.function(name, real_type(dtype)), [lhs, rhs])
        if op is BinaryOp.POW:
            return self._wide("complex_pow", [lhs, rhs], dtype)
        (a, c), (d, e) = self._parts(lhs), self._parts(rhs)
        match op:
            case BinaryOp.ADD | BinaryOp.SUB:
                name = "fadd" if op is BinaryOp.ADD else "fsub"
                return b.pair(b.op(name, a, d, flags), b.op(name, c, e, flags))
            case BinaryOp.MUL:
                first = b.op("fsub", b.op("fmul", a, d), b.op("fmul", c, e))
                return b.pair(first, b.op("fadd", b.op("fmul", a, e), b.op("fmul", c, d)))
            case BinaryOp.EQ:
                return b.op("and", b.compare("oeq", a, d), b.compare("oeq", c, e))
            case BinaryOp.NE:
                return b.op("or", b.compare("une", a, d), b.compare("une", c, e))
            case _:
                raise refused(op, dtype)

    def _wide(self, name: str, operands: list[Value], dtype: DType) -> Value:
        """Call a function of the library in complex128."""
        wide = [self.cast(operand, dtype, DType.COMPLEX128) for operand in operands]
        result = self._b.call(self._library.function(name, "double"), wide)
        return self.cast(result, DType.COMPLEX128, dtype)

    # ------------------------------------------------------------ conversions

    def cast(self, value: Value, source: DType, target: DType) -> Value:
        """Return ``value`` converted; 16-bit floats are their bits on either side."""
        if source is target:
            return value
        if source is not source.compute:
            wide = self._b.call(self._f.widen(source), [value])
            return self.cast(wide, DType.FLOAT32, target)
        if source.is_complex and not target.is_complex:
            if target is DType.BOOL:
                zero = Value(value.type, "zeroinitializer")
                return self.binary(BinaryOp.NE, value, zero, source)
            return self.cast(self._b.part(value, 0), source.real, target)
        if target is not target.compute:
            return self._to_half(value, source, target)
        if target.is_complex:
            return self._to_complex(value, source, target)
        return self._cast_real(value, source, target)

    def _to_half(self, value: Value, source: DType, target: DType) -> Value:
        """float64 becomes float16 in one rounding, as in NumPy; all else goes by float32."""
        if source is DType.FLOAT64 and target is DType.FLOAT16:
            return self._b.call(self._library.function("f64_to_f16", "double"), [value])
        wide = self.cast(value, source, DType.FLOAT32)
        return self._b.call(self._f.narrow(target), [wide])

    def _to_complex(self, value: Value, source: DType, target: DType) -> Value:
        if source.is_complex:
            parts = [self.cast(part, source.real, target.real) for part in self._parts(value)]
            return self._b.pair(*parts)
        return self._b.pair(self.cast(value, source, target.real), real(0.0, real_type(target)))

    def _cast_real(self, value: Value, source: DType, target: DType) -> Value:
        """Between bool, integers and reals; also of vectors."""
        b, lanes = self._b, lanes_of(value.type)
        kind = vector_of(in_register(target), lanes)
        if target is DType.BOOL:
            element = scalar_of(value.type)
            zero = real(0.0, element) if source.is_float else integer(0, element)
            return b.compare("une" if source.is_float else "ne", value, b.splat(zero, lanes))
        if source is DType.BOOL:
            return b.cast("zext" if target.is_integer else "uitofp", value, kind)
        if source.is_integer and target.is_integer:
            if target.bits == source.bits:
                return value
            extend = "sext" if source.is_signed_integer else "zext"
            return b.cast("trunc" if target.bits < source.bits else extend, value, kind)
        if source.is_integer:
            return b.cast("sitofp" if source.is_signed_integer else "uitofp", value, kind)
        if target.is_float:
            return b.cast("fpext" if target.bits > source.bits else "fptrunc", value, kind)
        name = "fptosi" if target.is_signed_integer else "fptoui"
        element = "f32" if source is DType.FLOAT32 else "f64"
        vector = f"v{lanes}" if lanes > 1 else ""
        full = f"llvm.{name}.sat.{vector}i{target.bits}.{vector}{element}"
        return b.call(self._f.intrinsic(full, kind, value.type), [value])
