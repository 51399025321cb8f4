"""The scalar operations as LLVM IR, with NumPy's results on every dtype.

In: an operation, operands in registers, their dtype. Out: the result in a register. Integer
division by zero gives 0 and overflow wraps; shifts by the width or more give 0 or the sign; floats
that do not fit an integer saturate and nan gives 0. What is not built here raises
``UnsupportedError``; the caller then runs the function on Numba, and says so.
"""

from __future__ import annotations


from llvmlite import ir

from sparsejit.backends.llvm._functions import Functions
from sparsejit.backends.llvm._types import I1, constant, in_register, real_type
from sparsejit.errors import UnsupportedError
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["Arithmetic"]

_ORDERED = {
    BinaryOp.LT: "<",
    BinaryOp.LE: "<=",
    BinaryOp.GT: ">",
    BinaryOp.GE: ">=",
    BinaryOp.EQ: "==",
    BinaryOp.NE: "!=",
}
_LIBM = {
    UnaryOp.CBRT: "cbrt",
    UnaryOp.EXP: "exp",
    UnaryOp.EXP2: "exp2",
    UnaryOp.EXPM1: "expm1",
    UnaryOp.LOG: "log",
    UnaryOp.LOG2: "log2",
    UnaryOp.LOG10: "log10",
    UnaryOp.LOG1P: "log1p",
    UnaryOp.SIN: "sin",
    UnaryOp.COS: "cos",
    UnaryOp.TAN: "tan",
    UnaryOp.ASIN: "asin",
    UnaryOp.ACOS: "acos",
    UnaryOp.ATAN: "atan",
    UnaryOp.SINH: "sinh",
    UnaryOp.COSH: "cosh",
    UnaryOp.TANH: "tanh",
    UnaryOp.ASINH: "asinh",
    UnaryOp.ACOSH: "acosh",
    UnaryOp.ATANH: "atanh",
}
_INTRINSIC = {
    UnaryOp.SQRT: "sqrt",
    UnaryOp.FLOOR: "floor",
    UnaryOp.CEIL: "ceil",
    UnaryOp.TRUNC: "trunc",
    UnaryOp.RINT: "rint",
    UnaryOp.ABS: "fabs",
}


def _refuse(op: UnaryOp | BinaryOp, dtype: DType) -> UnsupportedError:
    return UnsupportedError(f"{op.name.lower()} of {dtype.value} in LLVM code")


class Arithmetic:
    """Writes operations through ``builder`` into a module with ``functions``.

    ``flags`` are the fast-math flags of sums and products that may be reassociated.
    """

    def __init__(self, builder: ir.IRBuilder, functions: Functions) -> None:
        self._b = builder
        self._f = functions

    def _suffix(self, dtype: DType) -> str:
        return "f32" if dtype.real is DType.FLOAT32 else "f64"

    def _call(self, name: str, dtype: DType, *operands: ir.Value) -> ir.Value:
        kind = real_type(dtype)
        function = self._f.intrinsic(
            f"llvm.{name}.{self._suffix(dtype)}", kind, *[kind] * len(operands)
        )
        return self._b.call(function, operands)

    def _real(self, value: float, dtype: DType) -> ir.Constant:
        return constant(Const(value, dtype.real))

    def _parts(self, value: ir.Value) -> tuple[ir.Value, ir.Value]:
        return self._b.extract_value(value, 0), self._b.extract_value(value, 1)

    def _complex(self, real: ir.Value, imag: ir.Value) -> ir.Value:
        pair = ir.Constant(ir.LiteralStructType([real.type, imag.type]), ir.Undefined)
        return self._b.insert_value(self._b.insert_value(pair, real, 0), imag, 1)

    # ------------------------------------------------------------ one operand

    def unary(self, op: UnaryOp, value: ir.Value, dtype: DType) -> ir.Value:
        """Return ``op(value)``; ``dtype`` is that of the operand."""
        if dtype is DType.BOOL:
            return self._unary_bool(op, value)
        if dtype.is_complex:
            return self._unary_complex(op, value, dtype)
        if dtype.is_integer:
            return self._unary_integer(op, value, dtype)
        return self._unary_real(op, value, dtype)

    def _unary_bool(self, op: UnaryOp, value: ir.Value) -> ir.Value:
        match op:
            case UnaryOp.NOT:
                return self._b.not_(value)
            case UnaryOp.ABS | UnaryOp.CONJ | UnaryOp.REAL | UnaryOp.FLOOR | UnaryOp.CEIL:
                return value
            case UnaryOp.TRUNC | UnaryOp.RINT:
                return value
            case UnaryOp.ISNAN | UnaryOp.ISINF | UnaryOp.IMAG:
                return ir.Constant(I1, 0)
            case UnaryOp.ISFINITE:
                return ir.Constant(I1, 1)
            case _:
                raise _refuse(op, DType.BOOL)

    def _unary_integer(self, op: UnaryOp, value: ir.Value, dtype: DType) -> ir.Value:
        b, zero, one = self._b, ir.Constant(value.type, 0), ir.Constant(value.type, 1)
        match op:
            case UnaryOp.NEG:
                return b.neg(value)
            case UnaryOp.NOT:
                return b.not_(value)
            case UnaryOp.ABS if dtype.is_signed_integer:
                return b.select(b.icmp_signed("<", value, zero), b.neg(value), value)
            case UnaryOp.SIGN:
                positive = b.select(b.icmp_signed("!=", value, zero), one, zero)
                if dtype.is_unsigned_integer:
                    return positive
                return b.select(b.icmp_signed("<", value, zero), b.neg(one), positive)
            case UnaryOp.ABS | UnaryOp.CONJ | UnaryOp.REAL | UnaryOp.FLOOR | UnaryOp.CEIL:
                return value
            case UnaryOp.TRUNC | UnaryOp.RINT:
                return value
            case UnaryOp.IMAG:
                return zero
            case UnaryOp.ISNAN | UnaryOp.ISINF:
                return ir.Constant(I1, 0)
            case UnaryOp.ISFINITE:
                return ir.Constant(I1, 1)
            case _:
                raise _refuse(op, dtype)

    def _unary_real(self, op: UnaryOp, value: ir.Value, dtype: DType) -> ir.Value:
        b = self._b
        if op in _LIBM:
            return b.call(self._f.math(_LIBM[op], value.type), [value])
        if op in _INTRINSIC:
            return self._call(_INTRINSIC[op], dtype, value)
        match op:
            case UnaryOp.NEG:
                return b.fneg(value)
            case UnaryOp.SIGN:
                zero, one = self._real(0.0, dtype), self._real(1.0, dtype)
                below = b.select(b.fcmp_ordered("<", value, zero), self._real(-1.0, dtype), zero)
                sign = b.select(b.fcmp_ordered(">", value, zero), one, below)
                return b.select(b.fcmp_unordered("uno", value, value), value, sign)
            case UnaryOp.CONJ | UnaryOp.REAL:
                return value
            case UnaryOp.IMAG:
                return self._real(0.0, dtype)
            case UnaryOp.ISNAN:
                return b.fcmp_unordered("uno", value, value)
            case UnaryOp.ISINF:
                infinity = self._real(float("inf"), dtype)
                return b.fcmp_ordered("==", self._call("fabs", dtype, value), infinity)
            case UnaryOp.ISFINITE:
                infinity = self._real(float("inf"), dtype)
                return b.fcmp_ordered("<", self._call("fabs", dtype, value), infinity)
            case UnaryOp.SIGNBIT:
                width = ir.IntType(dtype.bits)
                return b.icmp_signed("<", b.bitcast(value, width), ir.Constant(width, 0))
            case _:
                raise _refuse(op, dtype)

    def _unary_complex(self, op: UnaryOp, value: ir.Value, dtype: DType) -> ir.Value:
        b = self._b
        real, imag = self._parts(value)
        match op:
            case UnaryOp.NEG:
                return self._complex(b.fneg(real), b.fneg(imag))
            case UnaryOp.CONJ:
                return self._complex(real, b.fneg(imag))
            case UnaryOp.REAL:
                return real
            case UnaryOp.IMAG:
                return imag
            case UnaryOp.ABS:
                return b.call(self._f.math("hypot", real.type, 2), [real, imag])
            case UnaryOp.ISNAN | UnaryOp.ISINF:
                either = [self._unary_real(op, part, dtype.real) for part in (real, imag)]
                return b.or_(*either)
            case UnaryOp.ISFINITE:
                both = [self._unary_real(op, part, dtype.real) for part in (real, imag)]
                return b.and_(*both)
            case _:
                raise _refuse(op, dtype)

    # ------------------------------------------------------------ two operands

    def binary(
        self,
        op: BinaryOp,
        lhs: ir.Value,
        rhs: ir.Value,
        dtype: DType,
        flags: tuple[str, ...] = (),
    ) -> ir.Value:
        """Return ``lhs op rhs``; ``dtype`` is that of the operands."""
        if dtype is DType.BOOL:
            return self._binary_bool(op, lhs, rhs)
        if dtype.is_complex:
            return self._binary_complex(op, lhs, rhs, dtype, flags)
        if dtype.is_integer:
            return self._binary_integer(op, lhs, rhs, dtype)
        return self._binary_real(op, lhs, rhs, dtype, flags)

    def _binary_bool(self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        b = self._b
        match op:
            case BinaryOp.ADD | BinaryOp.OR | BinaryOp.MAX | BinaryOp.FMAX:
                return b.or_(lhs, rhs)
            case BinaryOp.MUL | BinaryOp.AND | BinaryOp.MIN | BinaryOp.FMIN:
                return b.and_(lhs, rhs)
            case BinaryOp.XOR:
                return b.xor(lhs, rhs)
            case _ if op in _ORDERED:
                return b.icmp_unsigned(_ORDERED[op], lhs, rhs)
            case _:
                raise _refuse(op, DType.BOOL)

    def _binary_integer(self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value, dtype: DType) -> ir.Value:
        b, signed = self._b, dtype.is_signed_integer
        compare = b.icmp_signed if signed else b.icmp_unsigned
        match op:
            case BinaryOp.ADD:
                return b.add(lhs, rhs)
            case BinaryOp.SUB:
                return b.sub(lhs, rhs)
            case BinaryOp.MUL:
                return b.mul(lhs, rhs)
            case BinaryOp.AND:
                return b.and_(lhs, rhs)
            case BinaryOp.OR:
                return b.or_(lhs, rhs)
            case BinaryOp.XOR:
                return b.xor(lhs, rhs)
            case BinaryOp.MIN | BinaryOp.FMIN:
                return b.select(compare("<", lhs, rhs), lhs, rhs)
            case BinaryOp.MAX | BinaryOp.FMAX:
                return b.select(compare(">", lhs, rhs), lhs, rhs)
            case BinaryOp.SHL | BinaryOp.SHR:
                return self._shift(op, lhs, rhs, dtype)
            case BinaryOp.FLOORDIV | BinaryOp.REM | BinaryOp.FMOD:
                return self._divide(op, lhs, rhs, dtype)
            case _ if op in _ORDERED:
                return compare(_ORDERED[op], lhs, rhs)
            case _:
                raise _refuse(op, dtype)

    def _shift(self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value, dtype: DType) -> ir.Value:
        """Shift; an amount outside of the width gives 0, or the sign of a signed number."""
        b, width = self._b, ir.Constant(lhs.type, dtype.bits)
        fits = b.icmp_unsigned("<", rhs, width)
        amount = b.select(fits, rhs, ir.Constant(lhs.type, 0))
        zero = ir.Constant(lhs.type, 0)
        if op is BinaryOp.SHL:
            return b.select(fits, b.shl(lhs, amount), zero)
        if dtype.is_unsigned_integer:
            return b.select(fits, b.lshr(lhs, amount), zero)
        last = ir.Constant(lhs.type, dtype.bits - 1)
        return b.ashr(lhs, b.select(fits, rhs, last))

    def _divide(self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value, dtype: DType) -> ir.Value:
        """Divide with a divisor that cannot trap, then choose: by 0 is 0, by -1 is negation."""
        b, kind = self._b, lhs.type
        zero, one = ir.Constant(kind, 0), ir.Constant(kind, 1)
        by_zero = b.icmp_signed("==", rhs, zero)
        if dtype.is_unsigned_integer:
            safe = b.select(by_zero, one, rhs)
            result = b.udiv(lhs, safe) if op is BinaryOp.FLOORDIV else b.urem(lhs, safe)
            return b.select(by_zero, zero, result)
        by_minus_one = b.icmp_signed("==", rhs, ir.Constant(kind, -1))
        safe = b.select(b.or_(by_zero, by_minus_one), one, rhs)
        quotient, rest = b.sdiv(lhs, safe), b.srem(lhs, safe)
        if op is BinaryOp.FMOD:
            return b.select(b.or_(by_zero, by_minus_one), zero, rest)
        opposite = b.icmp_signed("<", b.xor(rest, safe), zero)
        adjust = b.and_(b.icmp_signed("!=", rest, zero), opposite)
        if op is BinaryOp.FLOORDIV:
            floor = b.sub(quotient, b.zext(adjust, kind))
            return b.select(by_zero, zero, b.select(by_minus_one, b.neg(lhs), floor))
        modulo = b.add(rest, b.select(adjust, safe, zero))
        return b.select(b.or_(by_zero, by_minus_one), zero, modulo)

    def _binary_real(
        self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value, dtype: DType, flags: tuple[str, ...]
    ) -> ir.Value:
        b = self._b
        match op:
            case BinaryOp.ADD:
                return b.fadd(lhs, rhs, flags=flags)
            case BinaryOp.SUB:
                return b.fsub(lhs, rhs, flags=flags)
            case BinaryOp.MUL:
                return b.fmul(lhs, rhs, flags=flags)
            case BinaryOp.DIV:
                return b.fdiv(lhs, rhs)
            case BinaryOp.MIN | BinaryOp.MAX | BinaryOp.FMIN | BinaryOp.FMAX:
                return self._extremum(op, lhs, rhs)
            case BinaryOp.NE:
                return b.fcmp_unordered("!=", lhs, rhs)
            case _ if op in _ORDERED:
                return b.fcmp_ordered(_ORDERED[op], lhs, rhs)
            case BinaryOp.POW | BinaryOp.FMOD | BinaryOp.HYPOT | BinaryOp.ATAN2:
                names = {BinaryOp.POW: "pow", BinaryOp.FMOD: "fmod", BinaryOp.HYPOT: "hypot"}
                function = self._f.math(names.get(op, "atan2"), lhs.type, 2)
                return b.call(function, [lhs, rhs])
            case BinaryOp.COPYSIGN:
                return self._call("copysign", dtype, lhs, rhs)
            case BinaryOp.REM:
                return self._floor_divide(lhs, rhs, dtype)[1]
            case BinaryOp.FLOORDIV:
                return self._floor_divide(lhs, rhs, dtype)[0]
            case BinaryOp.LOGADDEXP:
                return self._log_add_exp(lhs, rhs, dtype)
            case _:
                raise _refuse(op, dtype)

    def _extremum(self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """min and max hand nan on, fmin and fmax the other operand."""
        b = self._b
        sign = "<" if op in (BinaryOp.MIN, BinaryOp.FMIN) else ">"
        if op in (BinaryOp.MIN, BinaryOp.MAX):
            left = b.or_(b.fcmp_ordered(sign + "=", lhs, rhs), b.fcmp_unordered("uno", lhs, lhs))
            return b.select(left, lhs, rhs)
        left = b.or_(b.fcmp_ordered(sign + "=", lhs, rhs), b.fcmp_unordered("uno", rhs, rhs))
        return b.select(left, lhs, rhs)

    def _floor_divide(
        self, lhs: ir.Value, rhs: ir.Value, dtype: DType
    ) -> tuple[ir.Value, ir.Value]:
        """Return quotient and remainder as NumPy's ``divmod`` of floats computes them."""
        b, zero = self._b, self._real(0.0, dtype)
        rest = b.call(self._f.math("fmod", lhs.type, 2), [lhs, rhs])
        by_zero = b.fcmp_ordered("==", rhs, zero)
        exact = b.fdiv(b.fsub(lhs, rest), rhs)
        nonzero = b.fcmp_unordered("!=", rest, zero)
        opposite = b.xor(b.fcmp_ordered("<", rhs, zero), b.fcmp_ordered("<", rest, zero))
        adjust = b.and_(nonzero, opposite)
        modulo = b.select(adjust, b.fadd(rest, rhs), rest)
        modulo = b.select(nonzero, modulo, self._call("copysign", dtype, zero, rhs))
        quotient = b.select(adjust, b.fsub(exact, self._real(1.0, dtype)), exact)
        down = self._call("floor", dtype, quotient)
        far = b.fcmp_ordered(">", b.fsub(quotient, down), self._real(0.5, dtype))
        rounded = b.select(far, b.fadd(down, self._real(1.0, dtype)), down)
        signed_zero = self._call("copysign", dtype, zero, b.fdiv(lhs, rhs))
        is_zero = b.fcmp_ordered("==", quotient, zero)
        whole = b.select(is_zero, signed_zero, rounded)
        return b.select(by_zero, b.fdiv(lhs, rhs), whole), b.select(by_zero, rest, modulo)

    def _log_add_exp(self, lhs: ir.Value, rhs: ir.Value, dtype: DType) -> ir.Value:
        """max + log1p(exp(-|difference|)); equal operands (also infinite) add log(2)."""
        b, kind = self._b, lhs.type
        same = b.fadd(lhs, self._real(0.6931471805599453, dtype))
        difference = b.fsub(lhs, rhs)
        larger = b.select(b.fcmp_ordered(">", difference, self._real(0.0, dtype)), lhs, rhs)
        below = b.fneg(self._call("fabs", dtype, difference))
        exp = b.call(self._f.math("exp", kind), [below])
        total = b.fadd(larger, b.call(self._f.math("log1p", kind), [exp]))
        nan = b.fcmp_unordered("uno", difference, difference)
        total = b.select(nan, difference, total)
        return b.select(b.fcmp_ordered("==", lhs, rhs), same, total)

    def _binary_complex(
        self, op: BinaryOp, lhs: ir.Value, rhs: ir.Value, dtype: DType, flags: tuple[str, ...]
    ) -> ir.Value:
        b = self._b
        (a, c), (d, e) = self._parts(lhs), self._parts(rhs)
        match op:
            case BinaryOp.ADD:
                return self._complex(b.fadd(a, d, flags=flags), b.fadd(c, e, flags=flags))
            case BinaryOp.SUB:
                return self._complex(b.fsub(a, d, flags=flags), b.fsub(c, e, flags=flags))
            case BinaryOp.MUL:
                real = b.fsub(b.fmul(a, d), b.fmul(c, e), flags=flags)
                imag = b.fadd(b.fmul(a, e), b.fmul(c, d), flags=flags)
                return self._complex(real, imag)
            case BinaryOp.EQ:
                return b.and_(b.fcmp_ordered("==", a, d), b.fcmp_ordered("==", c, e))
            case BinaryOp.NE:
                return b.or_(b.fcmp_unordered("!=", a, d), b.fcmp_unordered("!=", c, e))
            case _:
                raise _refuse(op, dtype)

    # ------------------------------------------------------------ conversions

    def cast(self, value: ir.Value, source: DType, target: DType) -> ir.Value:
        """Return ``value`` converted; 16-bit floats are their bits on either side."""
        if source is target:
            return value
        if source is not source.compute:
            wide = self._b.call(self._f.widen(source), [value])
            return self.cast(wide, DType.FLOAT32, target)
        if target is not target.compute:
            wide = self.cast(value, source, DType.FLOAT32)
            return self._b.call(self._f.narrow(target), [wide])
        if target.is_complex:
            return self._to_complex(value, source, target)
        if source.is_complex:
            if target is DType.BOOL:
                zero = constant(Const(0.0, source))
                return self.binary(BinaryOp.NE, value, zero, source)
            return self.cast(self._parts(value)[0], source.real, target)
        return self._cast_real(value, source, target)

    def _to_complex(self, value: ir.Value, source: DType, target: DType) -> ir.Value:
        if source.is_complex:
            parts = [self.cast(part, source.real, target.real) for part in self._parts(value)]
            return self._complex(*parts)
        return self._complex(self.cast(value, source, target.real), self._real(0.0, target))

    def _cast_real(self, value: ir.Value, source: DType, target: DType) -> ir.Value:
        b, kind = self._b, in_register(target)
        if target is DType.BOOL:
            zero = constant(Const(0.0 if source.is_float else 0, source))
            if source.is_float:
                return b.fcmp_unordered("!=", value, zero)
            return b.icmp_signed("!=", value, zero)
        if source is DType.BOOL:
            return b.zext(value, kind) if target.is_integer else b.uitofp(value, kind)
        if source.is_integer and target.is_integer:
            if target.bits <= source.bits:
                return b.trunc(value, kind) if target.bits < source.bits else value
            return b.sext(value, kind) if source.is_signed_integer else b.zext(value, kind)
        if source.is_integer:
            signed = source.is_signed_integer
            return b.sitofp(value, kind) if signed else b.uitofp(value, kind)
        if target.is_float:
            return b.fpext(value, kind) if target.bits > source.bits else b.fptrunc(value, kind)
        name = "fptosi" if target.is_signed_integer else "fptoui"
        full = f"llvm.{name}.sat.i{target.bits}.{self._suffix(source)}"
        return b.call(self._f.intrinsic(full, kind, value.type), [value])
