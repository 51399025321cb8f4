"""Small functions that generated code calls: searches, growth, 16-bit floats, libm.

Each is added to a module when first asked for; all are internal but those of the C library, whose
names are in ``EXTERNAL``: nothing else may stay undefined, or loading would end the process.
"""

from __future__ import annotations

from collections.abc import Callable

from sparsejit.backends.llvm._control import first_place
from sparsejit.backends.llvm._pool import GIVE, GROW, TAKE, TAKE_LINES, has_threads
from sparsejit.backends.llvm._text import (
    Builder,
    Callee,
    Module,
    Value,
    integer,
    lanes_of,
    scalar_of,
)
from sparsejit.backends.llvm._types import real
from sparsejit.ir.types import DType

__all__ = ["EXTERNAL", "Functions"]

_MATH = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "sin",
    "sinh",
    "tan",
    "tanh",
    "pow",
    "fmod",
    "hypot",
    "atan2",
]
_MEMORY = ("malloc", "realloc", "free")

EXTERNAL = frozenset([*_MEMORY, *_MATH, *(f"{name}f" for name in _MATH)])
"""Every external symbol that generated code may have: of the C library and its mathematics."""

# What LLVM itself makes calls of, for loops that copy or fill.
EXTERNAL |= {"memcpy", "memmove", "memset"}

_PURE = "nounwind willreturn memory(none)"


class Functions:
    """The functions that a module has or declares, by name."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def malloc(self, *, is_aligned: bool = False) -> Callee:
        """Return ``malloc(size)``, which hands out large blocks kept before (see ``_memory_text``).

        ``is_aligned``: memory begins with a line of the cache, so that rows lie in few lines.
        """
        if not has_threads():
            return self.module.declare("malloc", "ptr", ["i64"])
        return self.module.declare(TAKE_LINES if is_aligned else TAKE, "ptr", ["i64"])

    def realloc(self) -> Callee:
        """Return ``realloc(memory, size)``."""
        return self.module.declare("realloc", "ptr", ["ptr", "i64"])

    def free(self) -> Callee:
        """Return ``free(memory)``, which keeps large blocks."""
        return self.module.declare(GIVE if has_threads() else "free", "void", ["ptr"])

    def math(self, name: str, kind: str, operands: int = 1) -> Callee:
        """Return libm's function for ``float`` or ``double``: ``expf`` or ``exp``."""
        suffix = "f" if kind == "float" else ""
        assert name + suffix in EXTERNAL
        return self.module.declare(name + suffix, kind, [kind] * operands, _PURE)

    def intrinsic(self, name: str, result: str, *operands: str) -> Callee:
        """Return an intrinsic by its full name, such as ``llvm.sqrt.f64``."""
        return self.module.declare(name, result, operands)

    def overloaded(self, name: str, kind: str, operands: int = 1) -> Callee:
        """Return an intrinsic of real floats or vectors of them: ``sqrt`` gives its function."""
        element = "f32" if scalar_of(kind) == "float" else "f64"
        lanes = lanes_of(kind)
        suffix = element if lanes == 1 else f"v{lanes}{element}"
        return self.module.declare(f"llvm.{name}.{suffix}", kind, [kind] * operands)

    def define(
        self,
        name: str,
        result: str,
        operands: list[str],
        body: Callable[[Builder], None],
        suffix: str = "",
    ) -> Callee:
        """Return an internal function; ``body`` writes it when it is first asked for."""
        found = self.module.defined(name)
        if found is not None:
            return found
        if "noinline" not in suffix:
            self.module.needs_optimizer = True
        function = self.module.define(name, result, operands, suffix=suffix)
        builder = Builder(function)
        body(builder)
        builder.finish()
        return function.callee

    # ------------------------------------------------------------ memory

    def grow(self) -> Callee:
        """Return ``grow(memory, room, count, size)``: memory (null if none) and its new room.

        The room doubles, and holds more than ``count`` elements of ``size`` bytes.
        """
        return self.define(
            "grow", "{ptr, i64}", ["ptr", "i64", "i64", "i64"], self._grow, "cold noinline nounwind"
        )

    def _grow(self, b: Builder) -> None:
        memory, room, count, size = b.function.params
        twice, least = b.add(room, room), b.add(count, 16)
        larger = b.select(b.compare("sgt", twice, least), twice, least)
        wanted = b.mul(larger, size)
        if has_threads():
            grown = self.module.declare(GROW, "ptr", ["ptr", "i64", "i64"])
            made = b.call(grown, [memory, b.mul(room, size), wanted])
        else:
            made = b.call(self.realloc(), [memory, wanted])
        b.ret(b.pair(made, larger))

    # ------------------------------------------------------------ 16-bit floats

    def widen(self, dtype: DType) -> Callee:
        """Return the function from the bits of a 16-bit float to float32."""
        body = _widen_bfloat if dtype is DType.BFLOAT16 else _widen_half
        return self.define(f"widen_{dtype.value}", "float", ["i16"], body, "alwaysinline")

    def narrow(self, dtype: DType) -> Callee:
        """Return the function from float32 to the bits of a 16-bit float, rounding to even."""
        body = _narrow_bfloat if dtype is DType.BFLOAT16 else _narrow_half
        return self.define(f"narrow_{dtype.value}", "i16", ["float"], body, "alwaysinline")

    # ------------------------------------------------------------ searches

    def search(self, element: str, *, is_signed: bool, ordered: bool) -> Callee:
        """Return ``search(coordinates, stride, lower, upper, key)``: the position of key or -1."""
        sign = "s" if is_signed else "u"
        name = f"search_{sign}{element[1:]}{'' if ordered else '_unordered'}"
        body = _binary_search if ordered else _linear_search
        extend = "sext" if is_signed else "zext"
        operands = ["ptr", "i64", "i64", "i64", "i64"]
        return self.define(name, "i64", operands, lambda b: body(b, element, extend))


def _element(b: Builder, at: Value, element: str, extend: str) -> Value:
    coordinates, stride = b.function.params[:2]
    address = b.offset(coordinates, b.mul(at, stride))
    loaded = b.load(address, element, 1)
    return loaded if element == "i64" else b.cast(extend, loaded, "i64")


def _binary_search(b: Builder, element: str, extend: str) -> None:
    _, _, lower, upper, key = b.function.params

    def is_before(at: Value) -> Value:
        return b.compare("slt", _element(b, at, element, extend), key)

    place = first_place(b, lower, upper, is_before)
    check, miss = b.new_block("check"), b.new_block("miss")
    b.branch_if(b.compare("slt", place, upper), check, miss)
    b.place(check)
    same = b.compare("eq", _element(b, place, element, extend), key)
    b.ret(b.select(same, place, integer(-1)))
    b.place(miss)
    b.ret(integer(-1))


def _linear_search(b: Builder, element: str, extend: str) -> None:
    _, _, lower, upper, key = b.function.params
    test, step, after = b.new_block("test"), b.new_block("step"), b.new_block("after")
    hit, miss = b.new_block("hit"), b.new_block("miss")
    entry = b.block
    b.branch(test)
    b.place(test)
    at = b.phi("i64")
    at.add(lower, entry)
    b.branch_if(b.compare("slt", at.value, upper), step, miss)
    b.place(step)
    found = _element(b, at.value, element, extend)
    b.branch_if(b.compare("eq", found, key), hit, after)
    b.place(after)
    at.add(b.add(at.value, 1), after)
    b.branch(test)
    b.place(hit)
    b.ret(at.value)
    b.place(miss)
    b.ret(integer(-1))


def _i32(value: int) -> Value:
    return integer(value, "i32")


def _widen_bfloat(b: Builder) -> None:
    wide = b.op("shl", b.cast("zext", b.function.params[0], "i32"), _i32(16))
    b.ret(b.cast("bitcast", wide, "float"))


def _narrow_bfloat(b: Builder) -> None:
    (value,) = b.function.params
    bits = b.cast("bitcast", value, "i32")
    odd = b.op("and", b.op("lshr", bits, _i32(16)), _i32(1))
    rounded = b.op("lshr", b.op("add", bits, b.op("add", odd, _i32(0x7FFF))), _i32(16))
    sign = b.op("and", b.op("lshr", bits, _i32(16)), _i32(0x8000))
    chosen = b.select(b.compare("uno", value, value), b.op("or", sign, _i32(0x7FC0)), rounded)
    b.ret(b.cast("trunc", chosen, "i16"))


def _widen_half(b: Builder) -> None:
    """Shift exponent and fraction into place and scale by 2**112; infinities need all ones."""
    bits = b.cast("zext", b.function.params[0], "i32")
    sign = b.op("shl", b.op("and", bits, _i32(0x8000)), _i32(16))
    shifted = b.op("shl", b.op("and", bits, _i32(0x7FFF)), _i32(13))
    scaled = b.op("fmul", b.cast("bitcast", shifted, "float"), real(2.0**112, "float"))
    scaled = b.cast("bitcast", scaled, "i32")
    special = b.compare("uge", shifted, _i32(0x7C00 << 13))
    magnitude = b.select(special, b.op("or", shifted, _i32(0x7F800000)), scaled)
    b.ret(b.cast("bitcast", b.op("or", magnitude, sign), "float"))


def _narrow_half(b: Builder) -> None:
    """Normal numbers round by an integer addition, subnormal ones by adding 0.5."""
    bits = b.cast("bitcast", b.function.params[0], "i32")
    sign = b.op("and", b.op("lshr", bits, _i32(16)), _i32(0x8000))
    magnitude = b.op("and", bits, _i32(0x7FFFFFFF))
    odd = b.op("and", b.op("lshr", magnitude, _i32(13)), _i32(1))
    bias = b.op("add", magnitude, b.op("add", odd, _i32(0xC8000FFF)))
    normal = b.op("lshr", bias, _i32(13))
    half = b.op("fadd", b.cast("bitcast", magnitude, "float"), real(0.5, "float"))
    tiny = b.op("sub", b.cast("bitcast", half, "i32"), _i32(0x3F000000))
    payload = b.op("and", b.op("lshr", magnitude, _i32(13)), _i32(0x3FF))
    nan = b.compare("ugt", magnitude, _i32(0x7F800000))
    special = b.select(nan, b.op("or", payload, _i32(0x7E00)), _i32(0x7C00))
    small = b.compare("ult", magnitude, _i32(0x38800000))
    finite = b.select(small, tiny, normal)
    large = b.compare("uge", magnitude, _i32(0x47800000))
    chosen = b.select(large, special, finite)
    b.ret(b.cast("trunc", b.op("or", chosen, sign), "i16"))
