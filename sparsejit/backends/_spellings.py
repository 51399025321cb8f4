"""The Python spelling of each scalar operation on each kind of dtype: one table row an operation.

In: an operation, its operands as nodes, their dtype. Out: a node whose value has exactly the
result's dtype both in plain Python on NumPy scalars and under Numba, which widens integer
arithmetic to 64 bits; hence ``int32(a + b)``. Names that are not Python's are NumPy's functions or
those of ``sparsejit.backends.support``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparsejit.backends._layout import Atom, Attribute, Call, Infix, Node, Prefix
from sparsejit.errors import UnsupportedError
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType

__all__ = [
    "binary",
    "cast",
    "constructor",
    "is_infix",
    "is_legal_binary",
    "is_legal_unary",
    "is_positive_literal",
    "unary",
]

_U, _B = UnaryOp, BinaryOp
UnarySpelling = Callable[[Node, DType], Node]
BinarySpelling = Callable[[Node, Node, DType], Node]


def constructor(dtype: DType) -> str:
    """Return the name that makes a scalar of ``dtype``; 16-bit floats are kept as their bits.

    >>> constructor(DType.FLOAT16), constructor(DType.BOOL)
    ('uint16', 'bool_')
    """
    match dtype:
        case DType.FLOAT16 | DType.BFLOAT16:
            return "uint16"
        case DType.BOOL:
            return "bool_"
        case _:
            return str(dtype.value)


def _narrow(node: Node, dtype: DType) -> Node:
    """``node`` as ``dtype``, where Numba would have widened it."""
    keeps = dtype.bits == 64 if dtype.is_integer else dtype is not DType.COMPLEX64
    return node if keeps else Call(dtype.value, (node,))


def _widen(node: Node, dtype: DType) -> Node:
    """``node`` in the 64-bit type of its signedness, or in complex128."""
    wide = "complex128" if dtype.is_complex else "int64" if dtype.is_signed_integer else "uint64"
    return node if dtype.value == wide else Call(wide, (node,))


# ---------------------------------------------------------------- patterns of spellings


def _same(a: Node, dtype: DType) -> Node:
    return a


def _constant(text: str) -> UnarySpelling:
    return lambda a, dtype: Atom(text)


def _zero(a: Node, dtype: DType) -> Node:
    return Atom("False") if dtype is DType.BOOL else Call(dtype.value, (Atom("0"),))


def _prefix(op: str) -> UnarySpelling:
    return lambda a, dtype: _narrow(Prefix(op, a), dtype) if dtype.is_integer else Prefix(op, a)


def _call(name: str) -> UnarySpelling:
    return lambda a, dtype: Call(name, (a,))


def _wide_call(name: str) -> UnarySpelling:
    return lambda a, dtype: _narrow(Call(name, (_widen(a, dtype),)), dtype)


def _attribute(name: str) -> UnarySpelling:
    return lambda a, dtype: Attribute(a, name)


def _infix(op: str) -> BinarySpelling:
    def spell(a: Node, b: Node, dtype: DType) -> Node:
        node = Infix(op, a, b)
        return _narrow(node, dtype) if dtype.is_integer else node

    return spell


def _compare(op: str) -> BinarySpelling:
    return lambda a, b, dtype: Infix(op, a, b)


def _call2(name: str) -> BinarySpelling:
    return lambda a, b, dtype: Call(name, (a, b))


def _narrow_call2(name: str) -> BinarySpelling:
    return lambda a, b, dtype: _narrow(Call(name, (a, b)), dtype)


def _as_float32(node: Node, dtype: DType) -> Node:
    """``node`` narrowed to float32 where the support library computes in float64."""
    return Call("float32", (node,)) if dtype is DType.FLOAT32 else node


def _float_call2(name: str) -> BinarySpelling:
    return lambda a, b, dtype: _as_float32(Call(name, (a, b)), dtype)


def _wide_call2(name: str) -> BinarySpelling:
    return lambda a, b, dtype: _narrow(Call(name, (_widen(a, dtype), _widen(b, dtype))), dtype)


def is_positive_literal(node: Node) -> bool:
    """Whether ``node`` is a plain positive number: a divisor that needs no guard."""
    return isinstance(node, Atom) and node.text.isdigit() and int(node.text) > 0


def _division(op: str, name: str) -> BinarySpelling:
    """The infix operator where the divisor is a positive literal: it can neither trap nor wrap."""
    plain, guarded = _infix(op), _wide_call2(name)
    return lambda a, b, dtype: (plain if is_positive_literal(b) else guarded)(a, b, dtype)


def _shift(name: str) -> BinarySpelling:
    def spell(a: Node, b: Node, dtype: DType) -> Node:
        operands = (_widen(a, dtype), _widen(b, dtype), Atom(str(dtype.bits)))
        return _narrow(Call(name, operands), dtype)

    return spell


def _not_less(op: str) -> BinarySpelling:
    """A comparison of bools, which neither Python nor Numba counts as numbers."""
    match op:
        case "<":
            return lambda a, b, dtype: Infix("&", Prefix("not ", a), b)
        case _:
            return lambda a, b, dtype: Infix("|", Prefix("not ", a), b)


def _swapped(spell: BinarySpelling) -> BinarySpelling:
    return lambda a, b, dtype: spell(b, a, dtype)


# ---------------------------------------------------------------- the tables

_ORDER = {_B.LT: "<", _B.LE: "<=", _B.GT: ">", _B.GE: ">="}
_EQUALITY = {_B.EQ: _compare("=="), _B.NE: _compare("!=")}
_FLOAT_FUNCTIONS = (
    _U.SQRT, _U.CBRT, _U.EXP, _U.EXP2, _U.EXPM1, _U.LOG, _U.LOG2, _U.LOG10, _U.LOG1P, _U.SIN,
    _U.COS, _U.TAN, _U.ASIN, _U.ACOS, _U.ATAN, _U.SINH, _U.COSH, _U.TANH, _U.ASINH, _U.ACOSH,
    _U.ATANH, _U.FLOOR, _U.CEIL, _U.TRUNC, _U.RINT, _U.ISNAN, _U.ISINF, _U.ISFINITE, _U.SIGNBIT,
)  # fmt: skip
_COMPLEX_FUNCTIONS = (
    _U.SQRT, _U.EXP, _U.EXP2, _U.EXPM1, _U.LOG, _U.LOG2, _U.LOG10, _U.LOG1P, _U.SIN, _U.COS,
    _U.TAN, _U.ASIN, _U.ACOS, _U.ATAN, _U.SINH, _U.COSH, _U.TANH, _U.ASINH, _U.ACOSH, _U.ATANH,
    _U.RINT, _U.SIGN,
)  # fmt: skip

_REAL: Mapping[UnaryOp, UnarySpelling] = {_U.REAL: _same, _U.IMAG: _zero}
_EXACT: Mapping[UnaryOp, UnarySpelling] = {
    **_REAL,
    **dict.fromkeys((_U.FLOOR, _U.CEIL, _U.TRUNC), _same),
    **dict.fromkeys((_U.ISNAN, _U.ISINF), _constant("False")),
    _U.ISFINITE: _constant("True"),
}

_UNARY: Mapping[str, Mapping[UnaryOp, UnarySpelling]] = {
    "bool": {**_EXACT, _U.ABS: _same, _U.NOT: _prefix("not ")},
    "signed": {
        **_EXACT,
        _U.NEG: _prefix("-"),
        _U.NOT: _prefix("~"),
        _U.CONJ: _same,
        _U.ABS: _wide_call("int_abs"),
        _U.SIGN: _wide_call("int_sign"),
    },
    "unsigned": {
        **_EXACT,
        _U.NEG: _wide_call("uint_neg"),
        _U.NOT: _wide_call("uint_not"),
        _U.CONJ: _same,
        _U.ABS: _same,
        _U.SIGN: _wide_call("uint_sign"),
        _U.FROM_BITS: lambda a, dtype: Call(f"float{dtype.bits}_from_bits", (a,)),
    },
    "float": {
        **_REAL,
        **{op: _call(op.info.numpy) for op in _FLOAT_FUNCTIONS},
        _U.NEG: _prefix("-"),
        _U.CONJ: _same,
        _U.ABS: _call("absolute"),
        _U.SIGN: lambda a, dtype: _as_float32(Call("float_sign", (a,)), dtype),
        _U.BITS: lambda a, dtype: Call(f"float{dtype.bits}_bits", (a,)),
    },
    "complex": {
        **{op: _wide_call(f"complex_{op.info.numpy}") for op in _COMPLEX_FUNCTIONS},
        _U.NEG: _prefix("-"),
        _U.ABS: _call("absolute"),
        _U.CONJ: _call("conjugate"),
        _U.REAL: _attribute("real"),
        _U.IMAG: _attribute("imag"),
        _U.ISNAN: _call("isnan"),
        _U.ISINF: _call("isinf"),
        _U.ISFINITE: _call("isfinite"),
    },
}

_RING = {_B.ADD: _infix("+"), _B.SUB: _infix("-"), _B.MUL: _infix("*")}
_BITS = {_B.AND: _infix("&"), _B.OR: _infix("|"), _B.XOR: _infix("^")}
_INFIX = frozenset((*_RING, *_BITS, *_EQUALITY, *_ORDER, _B.DIV))
_PLAIN_ORDER = {op: _compare(symbol) for op, symbol in _ORDER.items()}


def _integer(kind: str) -> Mapping[BinaryOp, BinarySpelling]:
    return {
        **_RING,
        **_BITS,
        **_EQUALITY,
        **_PLAIN_ORDER,
        **dict.fromkeys((_B.MIN, _B.FMIN), _call2("min")),
        **dict.fromkeys((_B.MAX, _B.FMAX), _call2("max")),
        _B.FLOORDIV: _division("//", f"{kind}_floordiv"),
        _B.REM: _division("%", f"{kind}_rem"),
        _B.FMOD: _wide_call2(f"{kind}_fmod"),
        _B.POW: _wide_call2(f"{kind}_pow"),
        _B.SHL: _shift(f"{kind}_shl"),
        _B.SHR: _shift(f"{kind}_shr"),
    }


_BINARY: Mapping[str, Mapping[BinaryOp, BinarySpelling]] = {
    "bool": {
        **_BITS,
        **_EQUALITY,
        **dict.fromkeys((_B.ADD, _B.MAX, _B.FMAX), _infix("|")),
        **dict.fromkeys((_B.MUL, _B.MIN, _B.FMIN), _infix("&")),
        _B.LT: _not_less("<"),
        _B.LE: _not_less("<="),
        _B.GT: _swapped(_not_less("<")),
        _B.GE: _swapped(_not_less("<=")),
    },
    "signed": _integer("int"),
    "unsigned": _integer("uint"),
    "float": {
        **_RING,
        **_EQUALITY,
        **_PLAIN_ORDER,
        _B.DIV: _infix("/"),
        _B.FLOORDIV: _float_call2("float_floordiv"),
        _B.REM: _float_call2("float_rem"),
        _B.FMOD: _call2("fmod"),
        _B.POW: _call2("float_pow"),
        _B.MIN: _call2("float_min"),
        _B.MAX: _call2("float_max"),
        _B.FMIN: _call2("float_fmin"),
        _B.FMAX: _call2("float_fmax"),
        _B.ATAN2: _call2("arctan2"),
        _B.HYPOT: _call2("hypot"),
        _B.COPYSIGN: _call2("copysign"),
        _B.LOGADDEXP: _call2("logaddexp"),
    },
    "complex": {
        **_RING,
        **_EQUALITY,
        **{op: _call2(f"complex_{op.info.numpy}") for op in _ORDER},
        _B.DIV: _narrow_call2("complex_div"),
        _B.POW: _wide_call2("complex_pow"),
        _B.MIN: _call2("complex_min"),
        _B.MAX: _call2("complex_max"),
        _B.FMIN: _call2("complex_fmin"),
        _B.FMAX: _call2("complex_fmax"),
    },
}


def _kind(dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "bool"
    if dtype.is_integer:
        return "signed" if dtype.is_signed_integer else "unsigned"
    if dtype is not dtype.compute:
        return "storage"
    return "complex" if dtype.is_complex else "float"


def is_legal_unary(op: UnaryOp, dtype: DType) -> bool:
    """Whether the loop IR may apply ``op`` to ``dtype``.

    >>> is_legal_unary(UnaryOp.SQRT, DType.INT64), is_legal_unary(UnaryOp.ABS, DType.INT64)
    (False, True)
    """
    has_bits = op is not UnaryOp.FROM_BITS or dtype.bits >= 32
    return has_bits and op in _UNARY.get(_kind(dtype), {})


def is_legal_binary(op: BinaryOp, dtype: DType) -> bool:
    """Whether the loop IR may apply ``op`` to two operands of ``dtype``.

    >>> is_legal_binary(BinaryOp.DIV, DType.INT64), is_legal_binary(BinaryOp.DIV, DType.FLOAT64)
    (False, True)
    """
    return op in _BINARY.get(_kind(dtype), {})


def is_infix(op: BinaryOp) -> bool:
    """Whether ``op`` of numbers is a Python operator, so that one operand gives the dtype."""
    return op in _INFIX


def unary(op: UnaryOp, operand: Node, dtype: DType) -> Node:
    """Return ``op`` of an operand of ``dtype``; ``UnsupportedError`` where it has no meaning."""
    if not is_legal_unary(op, dtype):
        raise UnsupportedError(f"'{op.info.numpy}' of {dtype.value} is not an operation of loops")
    return _UNARY[_kind(dtype)][op](operand, dtype)


def binary(op: BinaryOp, lhs: Node, rhs: Node, dtype: DType) -> Node:
    """Return ``op`` of two operands of ``dtype``; ``UnsupportedError`` without a meaning."""
    if not is_legal_binary(op, dtype):
        raise UnsupportedError(f"'{op.info.numpy}' of {dtype.value} is not an operation of loops")
    return _BINARY[_kind(dtype)][op](lhs, rhs, dtype)


# ---------------------------------------------------------------- casts

_HALF = {DType.FLOAT16: "f16", DType.BFLOAT16: "bf16"}


def cast(node: Node, source: DType, target: DType) -> Node:
    """Return ``node`` of dtype ``source`` converted to ``target`` by the table of casts.

    >>> cast(Atom("x"), DType.FLOAT32, DType.FLOAT16)
    Call(function='f32_to_f16', items=(Atom(text='x'),))
    """
    if source is target:
        return node
    if source in _HALF:
        return cast(Call(f"{_HALF[source]}_to_f32", (node,)), DType.FLOAT32, target)
    if target in _HALF:
        return _to_half(node, source, target)
    if target is DType.BOOL:
        zero = "0" if source.is_integer else "0.0"
        return Infix("!=", node, Call(source.value, (Atom(zero),)))
    if source.is_complex and not target.is_complex:
        return cast(Attribute(node, "real"), source.real, target)
    if source.is_float and target.is_integer:
        return Call(f"float_to_{target.value}", (node,))
    if source is DType.BOOL and target.is_complex:
        node = Call("float64", (node,))  # Numba has no complex number of a bool
    return Call(target.value, (node,))


def _to_half(node: Node, source: DType, target: DType) -> Node:
    """From float64 to float16 in one rounding, as NumPy; all else by float32, as ``ml_dtypes``."""
    if source.is_complex:
        node, source = Attribute(node, "real"), source.real
    if source is DType.FLOAT64 and target is DType.FLOAT16:
        return Call("f64_to_f16", (node,))
    return Call(f"f32_to_{_HALF[target]}", (cast(node, source, DType.FLOAT32),))
