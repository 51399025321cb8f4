"""Element types as LLVM types: in registers, and as they lie in memory.

In registers bool is ``i1``, a complex number a pair of reals in a struct; in memory bool is a byte,
a 16-bit float its bits. 16-bit floats exist in memory only: loads widen, stores narrow.
"""

from __future__ import annotations

import struct

from sparsejit.backends.llvm._text import Value, integer
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = [
    "alignment",
    "constant",
    "half_constant",
    "in_memory",
    "in_register",
    "real",
    "real_type",
]

_REALS = {DType.FLOAT32: "float", DType.FLOAT64: "double"}


def real_type(dtype: DType) -> str:
    """Return the type of a real float, or of the parts of a complex number."""
    return _REALS[dtype.real]


def in_register(dtype: DType) -> str:
    """Return the type of a value of ``dtype`` in a register.

    >>> in_register(DType.COMPLEX64), in_register(DType.BOOL), in_register(DType.UINT16)
    ('{float, float}', 'i1', 'i16')
    """
    if dtype is DType.BOOL:
        return "i1"
    if dtype.is_complex:
        return f"{{{real_type(dtype)}, {real_type(dtype)}}}"
    if dtype in _REALS:
        return _REALS[dtype]
    return f"i{dtype.bits}"  # of a 16-bit float the bits, on their way from or to memory


def in_memory(dtype: DType) -> str:
    """Return the type of an element of ``dtype`` in memory."""
    return "i8" if dtype is DType.BOOL else in_register(dtype)


def alignment(dtype: DType) -> int:
    """Return the alignment of an element in an aligned array, in bytes."""
    return dtype.real.bits // 8


def real(value: float, kind: str) -> Value:
    """Return a constant of type ``float`` or ``double``, of exactly these bits.

    LLVM reads a float32 as the bits of the float64 of the same value.

    >>> print(real(1.5, "float"), real(-0.0, "double"))
    float 0x3FF8000000000000 double 0x8000000000000000
    """
    if kind == "float":
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return Value(kind, f"0x{struct.pack('>d', value).hex().upper()}")


def constant(const: Const) -> Value:
    """Return a constant in a register.

    >>> print(constant(Const(2, DType.INT32)), constant(Const(True, DType.BOOL)))
    i32 2 i1 true
    """
    dtype = const.dtype
    if dtype.is_complex:
        number = complex(const.value)
        parts = real(number.real, real_type(dtype)), real(number.imag, real_type(dtype))
        return Value(in_register(dtype), f"{{{parts[0]}, {parts[1]}}}")
    assert not isinstance(const.value, complex)
    if dtype in _REALS:
        return real(float(const.value), _REALS[dtype])
    return integer(int(const.value), in_register(dtype))


def half_constant(const: Const) -> Value:
    """Return the bits of a constant that is a 16-bit float."""
    import numpy as np

    from sparsejit.ir.fold import numpy_dtype

    bits = np.asarray(const.value).astype(numpy_dtype(const.dtype)).view(np.uint16)
    return integer(int(bits), "i16")
