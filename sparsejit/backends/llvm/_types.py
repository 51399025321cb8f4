"""Element types as LLVM types: in registers, and as they lie in memory.

In registers bool is ``i1``, a complex number a pair of reals in a struct; in memory bool is a byte,
a 16-bit float its bits. 16-bit floats exist in memory only: loads widen, stores narrow.
"""

from __future__ import annotations

import struct

from llvmlite import ir

from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["I1", "I64", "constant", "in_memory", "in_register", "real_type"]

I1, I8, I16, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(16), ir.IntType(64)
_REALS = {DType.FLOAT32: ir.FloatType(), DType.FLOAT64: ir.DoubleType()}


def real_type(dtype: DType) -> ir.Type:
    """Return the type of a real float, or of the parts of a complex number."""
    return _REALS[dtype.real]


def in_register(dtype: DType) -> ir.Type:
    """Return the type of a value of ``dtype`` in a register.

    >>> print(in_register(DType.COMPLEX64), in_register(DType.BOOL))
    {float, float} i1
    """
    if dtype is DType.BOOL:
        return I1
    if dtype.is_integer:
        return ir.IntType(dtype.bits)
    if dtype.is_complex:
        return ir.LiteralStructType([real_type(dtype)] * 2)
    if dtype in _REALS:
        return _REALS[dtype]
    return I16  # the bits of a 16-bit float on their way from or to memory


def in_memory(dtype: DType) -> ir.Type:
    """Return the type of an element of ``dtype`` in memory."""
    return I8 if dtype is DType.BOOL else in_register(dtype)


def _real(value: float, dtype: DType) -> ir.Constant:
    """A constant of exactly these bits: text of a float may round, hexadecimal does not."""
    kind = _REALS[dtype.real]
    if dtype.real is DType.FLOAT32:
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return ir.Constant(kind, value)


def constant(const: Const) -> ir.Constant:
    """Return a constant in a register.

    >>> print(constant(Const(2, DType.INT32)))
    i32 2
    """
    dtype = const.dtype
    match const.value:
        case complex() as value:
            parts = [_real(value.real, dtype), _real(value.imag, dtype)]
            return ir.Constant.literal_struct(parts)
        case value if dtype.is_complex:
            return ir.Constant.literal_struct([_real(float(value), dtype), _real(0.0, dtype)])
        case value if dtype.is_float:
            return _real(float(value), dtype)
        case value:
            return ir.Constant(in_register(dtype), int(value))
