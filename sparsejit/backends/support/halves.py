"""16-bit floats as bit patterns: float16 and bfloat16 to and from float32 by integer operations.

In and out: the bits as uint16. Rounding is to nearest, ties to even; nan stays nan; what is too
large becomes infinity. float64 rounds once to float16; bfloat16 is made from float32, as in
``ml_dtypes``.
"""

from __future__ import annotations

from numpy import absolute, float32, float64, int64, rint, signbit, uint16, uint32

__all__ = ["bf16_to_f32", "f16_to_f32", "f32_to_bf16", "f32_to_f16", "f64_to_f16"]


def f16_to_f32(bits: uint16) -> float32:
    """Return the value of a float16.

    >>> print(f16_to_f32(uint16(0x3E00)))
    1.5
    """
    word = int64(bits)
    sign = (word & 0x8000) << 16
    exponent = (word >> 10) & 0x1F
    fraction = word & 0x3FF
    if exponent == 0:  # zero and subnormal numbers
        magnitude = float32(float32(fraction) * float32(2.0**-24))
        return float32(-magnitude) if sign else magnitude
    exponent = exponent + 112 if exponent < 31 else int64(255)
    return uint32(sign | (exponent << 23) | (fraction << 13)).view(float32)


def f32_to_f16(value: float32) -> uint16:
    """Return the bits of the float16 nearest to a float32.

    >>> hex(f32_to_f16(float32(1.5)))
    '0x3e00'
    """
    word = int64(float32(value).view(uint32))
    sign = (word >> 16) & 0x8000
    magnitude = word & 0x7FFFFFFF
    if magnitude > 0x7F800000:  # nan
        half = 0x7E00 | ((magnitude >> 13) & 0x3FF)
    elif magnitude >= 0x477FF000:  # 65520 and more
        half = int64(0x7C00)
    elif magnitude >= 0x38800000:
        half = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - (112 << 23)) >> 13
    else:  # below the least normal number: whole multiples of 2 ** -24
        half = int64(rint(float64(absolute(value)) * 2.0**24))
    return uint16(sign | half)


def f64_to_f16(value: float64) -> uint16:
    """Return the bits of the float16 nearest to a float64, rounded once.

    >>> hex(f64_to_f16(float64(-2.0)))
    '0xc000'
    """
    sign = int64(0x8000) if signbit(value) else int64(0)
    size = absolute(float64(value))
    word = float64(size).view(int64)
    if size != size:
        half = 0x7E00 | ((word >> 42) & 0x3FF)
    elif size >= 65520.0:
        half = int64(0x7C00)
    elif size >= 2.0**-14:
        half = (word + ((1 << 41) - 1) + ((word >> 42) & 1) - (1008 << 52)) >> 42
    else:
        half = int64(rint(size * 2.0**24))
    return uint16(sign | half)


def bf16_to_f32(bits: uint16) -> float32:
    """Return the value of a bfloat16.

    >>> print(bf16_to_f32(uint16(0x3FC0)))
    1.5
    """
    return uint32(int64(bits) << 16).view(float32)


def f32_to_bf16(value: float32) -> uint16:
    """Return the bits of the bfloat16 nearest to a float32.

    >>> hex(f32_to_bf16(float32(1.5)))
    '0x3fc0'
    """
    word = int64(float32(value).view(uint32))
    if (word & 0x7FFFFFFF) > 0x7F800000:
        return uint16(((word >> 16) & 0x8000) | 0x7FC0)
    return uint16((word + 0x7FFF + ((word >> 16) & 1)) >> 16)
