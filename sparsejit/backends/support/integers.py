"""Integer operations that neither trap nor raise, in int64 (``int_``) and uint64 (``uint_``).

Division by zero gives 0, overflow wraps, a shift by the width of the type or more (or by a negative
count) gives 0 or the sign. Narrower types are widened before and narrowed after the call, which
gives the same numbers. Also the one table of conversions from floating point: toward zero, nan
becomes 0, and what does not fit becomes the nearest value that does.
"""

from __future__ import annotations

from numpy import float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

__all__ = [
    "float_to_int8",
    "float_to_int16",
    "float_to_int32",
    "float_to_int64",
    "float_to_uint8",
    "float_to_uint16",
    "float_to_uint32",
    "float_to_uint64",
    "int_abs",
    "int_floordiv",
    "int_fmod",
    "int_pow",
    "int_rem",
    "int_shl",
    "int_shr",
    "int_sign",
    "uint_floordiv",
    "uint_fmod",
    "uint_neg",
    "uint_not",
    "uint_pow",
    "uint_rem",
    "uint_shl",
    "uint_shr",
    "uint_sign",
]


def int_abs(a: int64) -> int64:
    """Return ``abs(a)``; the least value is its own absolute value, as in NumPy."""
    return -a if a < 0 else a


def int_sign(a: int64) -> int64:
    """Return -1, 0 or 1."""
    return int64(a > 0) - int64(a < 0)


def int_floordiv(a: int64, b: int64) -> int64:
    """Return ``floor(a / b)``, 0 for a divisor of 0.

    >>> print(int_floordiv(int64(-7), int64(2)), int_floordiv(int64(1), int64(0)))
    -4 0
    """
    if b == 0:
        return int64(0)
    if b == -1:  # the least value over -1 traps on x86
        return -a
    return a // b


def int_rem(a: int64, b: int64) -> int64:
    """Return the remainder with the sign of the divisor, 0 for a divisor of 0."""
    if b == 0 or b == -1:
        return int64(0)
    return a % b


def int_fmod(a: int64, b: int64) -> int64:
    """Return the remainder with the sign of the dividend, 0 for a divisor of 0."""
    remainder = int_rem(a, b)
    if remainder != 0 and (a < 0) != (b < 0):
        return remainder - b
    return remainder


def int_pow(base: int64, exponent: int64) -> int64:
    """Return the power; of a negative exponent the integer part: 0, but for bases 1 and -1.

    >>> print(int_pow(int64(-3), int64(3)), int_pow(int64(2), int64(-1)))
    -27 0
    """
    if exponent < 0:
        if base == 1 or (base == -1 and exponent & 1 == 0):
            return int64(1)
        return int64(-1) if base == -1 else int64(0)
    power = int64(1)
    while exponent > 0:
        if exponent & 1:
            power = power * base
        base = base * base
        exponent = exponent >> 1
    return power


def int_shl(a: int64, count: int64, width: int) -> int64:
    """Return ``a << count`` for a type of ``width`` bits."""
    return a << count if 0 <= count < width else int64(0)


def int_shr(a: int64, count: int64, width: int) -> int64:
    """Return ``a >> count`` for a type of ``width`` bits."""
    if 0 <= count < width:
        return a >> count
    return int64(-1) if a < 0 else int64(0)


def uint_neg(a: uint64) -> uint64:
    """Return ``-a`` modulo 2 ** 64."""
    return uint64(0) - a


def uint_not(a: uint64) -> uint64:
    """Return ``a`` with all bits flipped."""
    return a ^ uint64(0xFFFFFFFFFFFFFFFF)


def uint_sign(a: uint64) -> uint64:
    """Return 0 or 1."""
    return uint64(a != uint64(0))


def uint_floordiv(a: uint64, b: uint64) -> uint64:
    """Return ``a // b``, 0 for a divisor of 0."""
    return a // b if b != uint64(0) else uint64(0)


def uint_rem(a: uint64, b: uint64) -> uint64:
    """Return ``a % b``, 0 for a divisor of 0."""
    return a % b if b != uint64(0) else uint64(0)


def uint_fmod(a: uint64, b: uint64) -> uint64:
    """Return ``a % b``, 0 for a divisor of 0."""
    return a % b if b != uint64(0) else uint64(0)


def uint_pow(base: uint64, exponent: uint64) -> uint64:
    """Return the power modulo 2 ** 64."""
    power = uint64(1)
    while exponent > uint64(0):
        if exponent & uint64(1) != uint64(0):
            power = power * base
        base = base * base
        exponent = exponent >> uint64(1)
    return power


def uint_shl(a: uint64, count: uint64, width: int) -> uint64:
    """Return ``a << count`` for a type of ``width`` bits."""
    return a << count if count < uint64(width) else uint64(0)


def uint_shr(a: uint64, count: uint64, width: int) -> uint64:
    """Return ``a >> count`` for a type of ``width`` bits."""
    return a >> count if count < uint64(width) else uint64(0)


# ---------------------------------------------------------------- from floating point


def float_to_int64(value: float64) -> int64:
    """Return a float as int64.

    >>> print(float_to_int64(float64(-2.9)), float_to_int64(float64("nan")))
    -2 0
    """
    number = float64(value)
    if number != number:
        return int64(0)
    if number >= 9223372036854775808.0:
        return int64(9223372036854775807)
    if number <= -9223372036854775808.0:
        return int64(-9223372036854775808)
    return int64(number)


def float_to_uint64(value: float64) -> uint64:
    """Return a float as uint64."""
    number = float64(value)
    if number >= 18446744073709551616.0:
        return uint64(18446744073709551615)
    return uint64(number) if number > 0.0 else uint64(0)


def float_to_int32(value: float64) -> int32:
    """Return a float as int32."""
    return int32(min(max(float_to_int64(value), int64(-2147483648)), int64(2147483647)))


def float_to_int16(value: float64) -> int16:
    """Return a float as int16."""
    return int16(min(max(float_to_int64(value), int64(-32768)), int64(32767)))


def float_to_int8(value: float64) -> int8:
    """Return a float as int8."""
    return int8(min(max(float_to_int64(value), int64(-128)), int64(127)))


def float_to_uint32(value: float64) -> uint32:
    """Return a float as uint32."""
    return uint32(min(max(float_to_int64(value), int64(0)), int64(4294967295)))


def float_to_uint16(value: float64) -> uint16:
    """Return a float as uint16."""
    return uint16(min(max(float_to_int64(value), int64(0)), int64(65535)))


def float_to_uint8(value: float64) -> uint8:
    """Return a float as uint8."""
    return uint8(min(max(float_to_int64(value), int64(0)), int64(255)))
