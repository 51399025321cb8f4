"""The bodies of ``Generic`` operations as MLIR operations on scalars.

In goes a scalar expression and the names of the block arguments, out come the lines of the body.
The semi-ring expressions (``Stored``, ``Nothing``) become ``sparse_tensor.unary`` and ``select``
regions. MLIR leaves open what ours define: integer division by zero, shifts by the width or more,
and conversions of floats that do not fit an integer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import assert_never

from sparsejit.errors import UnsupportedError
from sparsejit.ir._mlir_spellings import COMPARISONS, binary_spelling, unary_spelling
from sparsejit.ir._mlir_types import element_type
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Call,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    dtype_of,
    result_dtype,
)
from sparsejit.ir.types import INDEX, DType

__all__ = ["BodyWriter", "constant"]

_FLOAT_CODES = {
    DType.FLOAT16: ("<e", "<H"),
    DType.FLOAT32: ("<f", "<I"),
    DType.FLOAT64: ("<d", "<Q"),
}


def constant(value: bool | float | complex, dtype: DType) -> str:
    """Return the operation that makes a constant; floats in hexadecimal, so that no bit is lost.

    >>> constant(1.5, DType.FLOAT32)
    'arith.constant 0x3FC00000 : f32'
    >>> constant(True, DType.BOOL)
    'arith.constant true'
    """
    if dtype is DType.BOOL:
        return f"arith.constant {'true' if value else 'false'}"
    if dtype.is_complex:
        number = complex(value)
        real = element_type(dtype.real)
        bits = [_bits(part, dtype.real) for part in (number.real, number.imag)]
        parts = f"{bits[0]} : {real}, {bits[1]} : {real}"
        return f"complex.constant [{parts}] : {element_type(dtype)}"
    if isinstance(value, complex):
        raise UnsupportedError(f"a complex constant cannot be a {dtype.value}")
    literal = _bits(value, dtype) if dtype.is_float else str(int(value))
    return f"arith.constant {literal} : {element_type(dtype)}"


def _bits(value: float, dtype: DType) -> str:
    if dtype is DType.BFLOAT16:  # the upper half of the float32, rounded to nearest even
        (word,) = struct.unpack("<I", struct.pack("<f", value))
        rounded = word if value != value else word + 0x7FFF + (word >> 16 & 1)
        return f"0x{rounded >> 16:04X}"
    as_float, as_word = _FLOAT_CODES[dtype]
    (word,) = struct.unpack(as_word, struct.pack(as_float, value))
    return f"0x{word:0{dtype.bits // 4}X}"


_NOTHING_TO_DO_ON_REALS = {UnaryOp.CONJ, UnaryOp.REAL}
_NOTHING_TO_DO = _NOTHING_TO_DO_ON_REALS | {
    UnaryOp.ABS,
    UnaryOp.FLOOR,
    UnaryOp.CEIL,
    UnaryOp.TRUNC,
    UnaryOp.RINT,
}
"""The operations that leave integers and bool, or all real numbers, as they are."""


class BodyWriter:
    """Writes one body. ``names[k]`` is the block argument of operand ``k``, of ``dtypes[k]``.

    ``is_sparse[k]``: the operand stores only some entries. ``fresh`` hands out new names;
    ``nothing`` is what a missing value is in a dense result.
    """

    def __init__(
        self,
        names: Sequence[str],
        dtypes: Sequence[DType],
        is_sparse: Sequence[bool],
        nothing: Const | None,
        fresh: Callable[[], str],
    ) -> None:
        self._names = names
        self._dtypes = dtypes
        self._is_sparse = is_sparse
        self._nothing = nothing
        self._fresh = fresh
        self._known: dict[str, str] = {}  # texts of operations that are in scope, and their names
        self._given: dict[ScalarExpr, str] = {}  # what the regions around have as arguments
        self._indent = "  "
        self.lines: list[str] = []

    def result(self, expr: ScalarExpr) -> None:
        """Write the whole body, with its yield."""
        name = self.value(expr)
        self._line(f"linalg.yield {name} : {element_type(self._dtype(expr))}")

    def _dtype(self, expr: ScalarExpr) -> DType:
        return dtype_of(expr, self._dtypes)

    def _line(self, text: str) -> None:
        self.lines.append(self._indent + text)

    def emit(self, text: str) -> str:
        """Write ``%new = text``, once for equal texts, and return the new name."""
        if text not in self._known:
            name = self._fresh()
            self._line(f"{name} = {text}")
            self._known[text] = name
        return self._known[text]

    def constant(self, value: bool | float | complex, dtype: DType) -> str:
        """Write a constant of ``dtype`` and return its name."""
        return self.emit(constant(value, dtype))

    def value(self, expr: ScalarExpr) -> str:  # noqa: C901 - one case for each kind
        """Write what computes ``expr`` and return the name of its value."""
        if expr in self._given:
            return self._given[expr]
        match expr:
            case Arg(index):
                return self._names[index]
            case Const(value, dtype):
                return self.constant(value, dtype)
            case Coordinate(loop):
                place = self.emit(f"linalg.index {loop} : index")
                return self.emit(f"arith.index_cast {place} : index to {element_type(INDEX)}")
            case Stored(index):
                if not self._is_sparse[index]:
                    return self.constant(True, DType.BOOL)
                yes, no = Const(True, DType.BOOL), Const(False, DType.BOOL)
                return self._by_storedness(index, yes, no, DType.BOOL)
            case Nothing():
                if self._nothing is None:
                    raise UnsupportedError("MLIR cannot say 'nothing' here, only in a selection")
                return self.constant(self._nothing.value, self._nothing.dtype)
            case Cast(operand, dtype):
                return self._cast(self.value(operand), self._dtype(operand), dtype)
            case Unary(op, operand):
                return self._unary(op, operand)
            case Binary(op, lhs, rhs):
                return self._binary(op, lhs, rhs)
            case Select():
                return self._select(expr)
            case Call(function):
                raise UnsupportedError(
                    f"MLIR cannot call {function.name}: it cannot express functions that only "
                    "Numba can compile"
                )
            case _:
                assert_never(expr)

    # ------------------------------------------------------------ semi-ring regions

    def _select(self, expr: Select) -> str:
        dtype = self._dtype(expr)
        match expr:
            case Select(Stored(index), then, orelse) if self._is_sparse[index] and (
                isinstance(orelse, Const) or (isinstance(orelse, Nothing) and self._nothing is None)
            ):
                return self._by_storedness(index, then, orelse, dtype)
            case Select(condition, then, Nothing()) if self._nothing is None:
                name, type_ = self._fresh(), element_type(dtype)
                self._line(f"{name} = sparse_tensor.select {self.value(then)} : {type_} {{")
                self._region(condition, then, dtype)
                return name
            case Select(condition, then, orelse):
                names = (self.value(condition), self.value(then), self.value(orelse))
                return self.emit(f"arith.select {', '.join(names)} : {element_type(dtype)}")

    def _by_storedness(
        self, index: int, present: ScalarExpr, absent: Const | Nothing, dtype: DType
    ) -> str:
        """A ``sparse_tensor.unary`` on operand ``index`` with the two regions."""
        name = self._fresh()
        source, target = element_type(self._dtypes[index]), element_type(dtype)
        self._line(f"{name} = sparse_tensor.unary {self._names[index]} : {source} to {target}")
        self._line("present = {")
        self._region(present, Arg(index), self._dtypes[index])
        if isinstance(absent, Nothing):
            self._line("absent = {}")
        else:
            self._line("absent = {")
            self._region(absent)
        return name

    def _region(
        self, expr: ScalarExpr, given: ScalarExpr | None = None, dtype: DType | None = None
    ) -> None:
        """The rest of a region that yields ``expr``; ``given`` is what it gets as its argument."""
        outer = dict(self._known), dict(self._given)
        if given is not None and dtype is not None:
            argument = self._fresh()
            self._line(f"^bb0({argument}: {element_type(dtype)}):")
            self._given[given] = argument
        self._indent += "  "
        value = self.value(expr)
        self._line(f"sparse_tensor.yield {value} : {element_type(self._dtype(expr))}")
        self._indent = self._indent[:-2]
        self._known, self._given = outer
        self._line("}")

    # ------------------------------------------------------------ arithmetic

    def _unary(self, op: UnaryOp, operand: ScalarExpr) -> str:
        name, dtype = self.value(operand), self._dtype(operand)
        spelled = unary_spelling(op, dtype)
        if spelled is not None:
            return self.emit(f"{spelled} {name} : {element_type(dtype)}")
        return self._long_unary(op, name, dtype)

    def _long_unary(self, op: UnaryOp, name: str, dtype: DType) -> str:
        """The operations that are several in MLIR, or none at all."""
        type_, zero = element_type(dtype), Const(0, dtype)
        real = dtype.is_float or dtype.is_complex
        match op:
            case UnaryOp.NEG if dtype.is_integer:
                return self.emit(f"arith.subi {self.value(zero)}, {name} : {type_}")
            case UnaryOp.NOT if not real:
                ones = 1 if dtype is DType.BOOL else -1
                return self.emit(f"arith.xori {name}, {self.constant(ones, dtype)} : {type_}")
            case UnaryOp.SIGN if not dtype.is_complex and dtype is not DType.BOOL:
                return self._sign(name, dtype)
            case _ if op in _NOTHING_TO_DO and (not real or op in _NOTHING_TO_DO_ON_REALS):
                return name
            case UnaryOp.IMAG if not dtype.is_complex:
                return self.value(zero)
            case UnaryOp.ISNAN | UnaryOp.ISINF if not real:
                return self.constant(False, DType.BOOL)
            case UnaryOp.ISFINITE if not real:
                return self.constant(True, DType.BOOL)
            case UnaryOp.BITS | UnaryOp.FROM_BITS:
                target = element_type(result_dtype(op, dtype))
                return self.emit(f"arith.bitcast {name} : {type_} to {target}")
            case UnaryOp.SIGNBIT if dtype.is_float:
                bits = f"i{dtype.bits}"
                word = self.emit(f"arith.bitcast {name} : {type_} to {bits}")
                zero_bits = self.emit(f"arith.constant 0 : {bits}")
                return self.emit(f"arith.cmpi slt, {word}, {zero_bits} : {bits}")
            case _:
                raise UnsupportedError(f"MLIR has no {op.info.numpy} of {dtype.value}")

    def _sign(self, name: str, dtype: DType) -> str:
        type_ = element_type(dtype)
        zero, one = self.constant(0, dtype), self.constant(1, dtype)
        result = name if dtype.is_float else zero  # a nan stays one
        if dtype.is_float:
            is_zero = self._compare(BinaryOp.EQ, name, zero, dtype)
            result = self.emit(f"arith.select {is_zero}, {zero}, {result} : {type_}")
        if not dtype.is_unsigned_integer:
            minus = self.constant(-1, dtype)
            negative = self._compare(BinaryOp.LT, name, zero, dtype)
            result = self.emit(f"arith.select {negative}, {minus}, {result} : {type_}")
        positive = self._compare(BinaryOp.GT, name, zero, dtype)
        return self.emit(f"arith.select {positive}, {one}, {result} : {type_}")

    def _compare(self, op: BinaryOp, lhs: str, rhs: str, dtype: DType) -> str:
        ordered, signed, unsigned = COMPARISONS[op]
        type_ = element_type(dtype)
        if dtype.is_complex:
            spelled = {BinaryOp.EQ: "complex.eq", BinaryOp.NE: "complex.neq"}.get(op)
            if spelled is None:
                raise UnsupportedError(f"MLIR does not order complex numbers ({op.info.symbol})")
            return self.emit(f"{spelled} {lhs}, {rhs} : {type_}")
        if dtype.is_float:
            return self.emit(f"arith.cmpf {ordered}, {lhs}, {rhs} : {type_}")
        predicate = signed if dtype.is_signed_integer else unsigned
        return self.emit(f"arith.cmpi {predicate}, {lhs}, {rhs} : {type_}")

    def _binary(self, op: BinaryOp, lhs: ScalarExpr, rhs: ScalarExpr) -> str:
        left, right, dtype = self.value(lhs), self.value(rhs), self._dtype(lhs)
        if op in COMPARISONS:
            return self._compare(op, left, right, dtype)
        spelled = binary_spelling(op, dtype)
        if spelled is not None:
            return self.emit(f"{spelled} {left}, {right} : {element_type(dtype)}")
        return self._long_binary(op, left, right, dtype)

    def _long_binary(self, op: BinaryOp, left: str, right: str, dtype: DType) -> str:
        type_ = element_type(dtype)

        def two(spelled: str, one: str, other: str) -> str:
            return self.emit(f"{spelled} {one}, {other} : {type_}")

        match op:
            case BinaryOp.REM if dtype.is_signed_integer or dtype.is_float:
                return self._remainder(left, right, dtype)
            case BinaryOp.FLOORDIV if dtype.is_float:
                return self.emit(f"math.floor {two('arith.divf', left, right)} : {type_}")
            case BinaryOp.HYPOT if dtype.is_float:
                squares = two("arith.mulf", left, left), two("arith.mulf", right, right)
                return self.emit(f"math.sqrt {two('arith.addf', *squares)} : {type_}")
            case BinaryOp.LOGADDEXP if dtype.is_float:
                apart = self.emit(f"math.absf {two('arith.subf', left, right)} : {type_}")
                tail = self.emit(f"math.exp {self.emit(f'arith.negf {apart} : {type_}')} : {type_}")
                tail = self.emit(f"math.log1p {tail} : {type_}")
                return two("arith.addf", two("arith.maximumf", left, right), tail)
            case _:
                raise UnsupportedError(f"MLIR has no {op.info.numpy} of {dtype.value}")

    def _remainder(self, left: str, right: str, dtype: DType) -> str:
        """The remainder with the sign of the divisor, from the one with that of the dividend."""
        type_, letter = element_type(dtype), "f" if dtype.is_float else "i"
        zero = self.constant(0, dtype)
        plain = self.emit(f"arith.rem{'f' if letter == 'f' else 'si'} {left}, {right} : {type_}")
        inexact = self._compare(BinaryOp.NE, plain, zero, dtype)
        signs = (
            self._compare(BinaryOp.LT, plain, zero, dtype),
            self._compare(BinaryOp.LT, right, zero, dtype),
        )
        differ = self.emit(f"arith.xori {signs[0]}, {signs[1]} : i1")
        wrong = self.emit(f"arith.andi {inexact}, {differ} : i1")
        moved = self.emit(f"arith.add{letter} {plain}, {right} : {type_}")
        return self.emit(f"arith.select {wrong}, {moved}, {plain} : {type_}")

    # ------------------------------------------------------------ conversions

    def _cast(self, name: str, source: DType, target: DType) -> str:
        if source is target:
            return name
        if target is DType.BOOL:
            return self._compare(BinaryOp.NE, name, self.constant(0, source), source)
        if target.is_complex:
            return self._to_complex(name, source, target)
        if source.is_complex:
            part = self.emit(f"complex.re {name} : {element_type(source)}")
            return self._cast(part, source.real, target)
        spelled = _real_cast(source, target)
        if spelled is None:
            return name
        if spelled == "through f32":
            return self._cast(self._cast(name, source, DType.FLOAT32), DType.FLOAT32, target)
        return self.emit(f"{spelled} {name} : {element_type(source)} to {element_type(target)}")

    def _to_complex(self, name: str, source: DType, target: DType) -> str:
        if source.is_complex:
            type_ = element_type(source)
            parts = [self.emit(f"complex.{part} {name} : {type_}") for part in ("re", "im")]
            real, imaginary = (self._cast(part, source.real, target.real) for part in parts)
        else:
            real = self._cast(name, source, target.real)
            imaginary = self.constant(0, target.real)
        return self.emit(f"complex.create {real}, {imaginary} : {element_type(target)}")


def _real_cast(source: DType, target: DType) -> str | None:
    """The operation that converts real numbers; None where the bits stay as they are."""
    signed = source.is_signed_integer
    if source.is_float and target.is_float:
        if source.bits == target.bits:
            return "through f32"
        return "arith.extf" if source.bits < target.bits else "arith.truncf"
    if source.is_float:
        return "arith.fptosi" if target.is_signed_integer else "arith.fptoui"
    if target.is_float:
        return "arith.sitofp" if signed else "arith.uitofp"
    if source is DType.BOOL or source.bits < target.bits:
        return "arith.extsi" if signed else "arith.extui"
    return "arith.trunci" if source.bits > target.bits else None
