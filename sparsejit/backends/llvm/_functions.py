"""Small functions that generated code calls: searches, conversions, integer arithmetic, libm.

Each is added to a module when first asked for; all are internal but those of the C library, whose
names are in ``EXTERNAL``: nothing else may stay undefined, or loading would end the process.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from sparsejit.backends.llvm._types import I16, I64
from sparsejit.ir.types import DType

__all__ = ["EXTERNAL", "Functions"]

I8, I32 = ir.IntType(8), ir.IntType(32)
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()

_MATH = (
    "acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 log log10 log1p log2 sin sinh "
    "tan tanh pow fmod hypot atan2"
).split()

EXTERNAL = frozenset(
    ["malloc", "calloc", "realloc", "free", "memcpy", "memset", *_MATH, *(f"{n}f" for n in _MATH)]
)
"""Every external symbol that generated code may have: of the C library and its mathematics."""


class Functions:
    """The functions that a module has or declares, by name."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module

    def _get(self, name: str, kind: ir.FunctionType) -> ir.Function:
        found = self.module.globals.get(name)
        return found if found is not None else ir.Function(self.module, kind, name)

    def external(self, name: str, result: ir.Type, *operands: ir.Type) -> ir.Function:
        """Return the declaration of a function of the C library."""
        assert name in EXTERNAL
        return self._get(name, ir.FunctionType(result, operands))

    def math(self, name: str, real: ir.Type, operands: int = 1) -> ir.Function:
        """Return libm's function for ``real``: ``exp`` or ``expf``."""
        suffix = "f" if real == F32 else ""
        return self.external(name + suffix, real, *[real] * operands)

    def intrinsic(self, name: str, result: ir.Type, *operands: ir.Type) -> ir.Function:
        """Return an intrinsic by its full name, such as ``llvm.sqrt.f64``."""
        return self._get(name, ir.FunctionType(result, operands))

    def _define(
        self, name: str, kind: ir.FunctionType, body: Callable[[ir.IRBuilder, ir.Function], None]
    ) -> ir.Function:
        found = self.module.globals.get(name)
        if found is not None:
            return found
        made = ir.Function(self.module, kind, name)
        made.linkage = "internal"
        body(ir.IRBuilder(made.append_basic_block()), made)
        return made

    # ------------------------------------------------------------ 16-bit floats

    def widen(self, dtype: DType) -> ir.Function:
        """Return the function from the bits of a 16-bit float to float32."""
        body = _widen_bfloat if dtype is DType.BFLOAT16 else _widen_half
        return self._define(f"widen_{dtype.value}", ir.FunctionType(F32, [I16]), body)

    def narrow(self, dtype: DType) -> ir.Function:
        """Return the function from float32 to the bits of a 16-bit float, rounding to even."""
        body = _narrow_bfloat if dtype is DType.BFLOAT16 else _narrow_half
        return self._define(f"narrow_{dtype.value}", ir.FunctionType(I16, [F32]), body)

    # ------------------------------------------------------------ searches

    def search(self, element: ir.IntType, signed: bool, ordered: bool) -> ir.Function:
        """Return ``search(coordinates, stride, lower, upper, key)``: the position of key or -1."""
        name = f"search_{'i' if signed else 'u'}{element.width}{'' if ordered else '_unordered'}"
        kind = ir.FunctionType(I64, [POINTER, I64, I64, I64, I64])
        body = _binary_search if ordered else _linear_search

        def write(builder: ir.IRBuilder, function: ir.Function) -> None:
            body(builder, function, element, signed)

        return self._define(name, kind, write)


def _int(value: int, kind: ir.IntType = I64) -> ir.Constant:
    return ir.Constant(kind, value)


def _element(
    builder: ir.IRBuilder, function: ir.Function, at: ir.Value, element: ir.IntType, signed: bool
) -> ir.Value:
    address = builder.gep(function.args[0], [builder.mul(at, function.args[1])], source_etype=I8)
    loaded = builder.load(address, typ=element)
    if element.width == I64.width:
        return loaded
    return builder.sext(loaded, I64) if signed else builder.zext(loaded, I64)


def _binary_search(
    builder: ir.IRBuilder, function: ir.Function, element: ir.IntType, signed: bool
) -> None:
    _, _, lower, upper, key = function.args
    entry = builder.block
    test = function.append_basic_block("test")
    step = function.append_basic_block("step")
    done = function.append_basic_block("done")
    check = function.append_basic_block("check")
    end = function.append_basic_block("end")
    builder.branch(test)
    builder.position_at_end(test)
    low, high = builder.phi(I64), builder.phi(I64)
    low.add_incoming(lower, entry)
    high.add_incoming(upper, entry)
    builder.cbranch(builder.icmp_signed("<", low, high), step, done)
    builder.position_at_end(step)
    middle = builder.ashr(builder.add(low, high), _int(1))
    found = _element(builder, function, middle, element, signed)
    less = builder.icmp_signed("<", found, key)
    low.add_incoming(builder.select(less, builder.add(middle, _int(1)), low), step)
    high.add_incoming(builder.select(less, high, middle), step)
    builder.branch(test)
    builder.position_at_end(done)
    builder.cbranch(builder.icmp_signed("<", low, upper), check, end)
    builder.position_at_end(check)
    same = builder.icmp_signed("==", _element(builder, function, low, element, signed), key)
    result = builder.select(same, low, _int(-1))
    builder.branch(end)
    builder.position_at_end(end)
    answer = builder.phi(I64)
    answer.add_incoming(result, check)
    answer.add_incoming(_int(-1), done)
    builder.ret(answer)


def _linear_search(
    builder: ir.IRBuilder, function: ir.Function, element: ir.IntType, signed: bool
) -> None:
    _, _, lower, upper, key = function.args
    entry = builder.block
    test = function.append_basic_block("test")
    step = function.append_basic_block("step")
    after = function.append_basic_block("after")
    hit = function.append_basic_block("hit")
    miss = function.append_basic_block("miss")
    builder.branch(test)
    builder.position_at_end(test)
    at = builder.phi(I64)
    at.add_incoming(lower, entry)
    builder.cbranch(builder.icmp_signed("<", at, upper), step, miss)
    builder.position_at_end(step)
    found = _element(builder, function, at, element, signed)
    builder.cbranch(builder.icmp_signed("==", found, key), hit, after)
    builder.position_at_end(after)
    at.add_incoming(builder.add(at, _int(1)), after)
    builder.branch(test)
    builder.position_at_end(hit)
    builder.ret(at)
    builder.position_at_end(miss)
    builder.ret(_int(-1))


def _widen_bfloat(builder: ir.IRBuilder, function: ir.Function) -> None:
    wide = builder.shl(builder.zext(function.args[0], I32), _int(16, I32))
    builder.ret(builder.bitcast(wide, F32))


def _narrow_bfloat(builder: ir.IRBuilder, function: ir.Function) -> None:
    bits = builder.bitcast(function.args[0], I32)
    odd = builder.and_(builder.lshr(bits, _int(16, I32)), _int(1, I32))
    rounded = builder.add(bits, builder.add(odd, _int(0x7FFF, I32)))
    nan = builder.fcmp_unordered("uno", function.args[0], function.args[0])
    quiet = builder.or_(bits, _int(0x400000, I32))
    chosen = builder.select(nan, quiet, rounded)
    builder.ret(builder.trunc(builder.lshr(chosen, _int(16, I32)), I16))


def _widen_half(builder: ir.IRBuilder, function: ir.Function) -> None:
    """Shift exponent and fraction into place and scale by 2**112; infinities need all ones."""
    bits = builder.zext(function.args[0], I32)
    sign = builder.shl(builder.and_(bits, _int(0x8000, I32)), _int(16, I32))
    shifted = builder.shl(builder.and_(bits, _int(0x7FFF, I32)), _int(13, I32))
    scaled = builder.fmul(builder.bitcast(shifted, F32), ir.Constant(F32, 2.0**112))
    special = builder.icmp_unsigned(">=", shifted, _int(0x7C00 << 13, I32))
    all_ones = builder.or_(builder.bitcast(scaled, I32), _int(0x7F800000, I32))
    magnitude = builder.select(special, all_ones, builder.bitcast(scaled, I32))
    builder.ret(builder.bitcast(builder.or_(magnitude, sign), F32))


def _narrow_half(builder: ir.IRBuilder, function: ir.Function) -> None:
    """Normal numbers round by an integer addition, subnormal ones by adding 0.5."""
    bits = builder.bitcast(function.args[0], I32)
    sign = builder.and_(builder.lshr(bits, _int(16, I32)), _int(0x8000, I32))
    magnitude = builder.and_(bits, _int(0x7FFFFFFF, I32))
    odd = builder.and_(builder.lshr(magnitude, _int(13, I32)), _int(1, I32))
    bias = builder.add(magnitude, builder.add(_int(0xC8000FFF, I32), odd))
    normal = builder.lshr(bias, _int(13, I32))
    half = builder.fadd(builder.bitcast(magnitude, F32), ir.Constant(F32, 0.5))
    tiny = builder.sub(builder.bitcast(half, I32), _int(0x3F000000, I32))
    nan = builder.icmp_unsigned(">", magnitude, _int(0x7F800000, I32))
    large = builder.icmp_unsigned(">=", magnitude, _int(0x47800000, I32))
    payload = builder.or_(
        builder.and_(builder.lshr(magnitude, _int(13, I32)), _int(0x3FF, I32)), _int(0x7E00, I32)
    )
    special = builder.select(nan, payload, _int(0x7C00, I32))
    small = builder.icmp_unsigned("<", magnitude, _int(0x38800000, I32))
    finite = builder.select(small, tiny, normal)
    chosen = builder.select(large, special, finite)
    builder.ret(builder.trunc(builder.or_(chosen, sign), I16))
