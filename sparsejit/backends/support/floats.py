"""Real floating operations where Numba and NumPy differ, in NumPy's way, for float32 and float64.

A result may come wider than its operands under Numba; the printer narrows it.
"""

from __future__ import annotations

from typing import Any

from numpy import copysign, float32, float64, floor, fmod, uint32, uint64

__all__ = [
    "float32_bits",
    "float32_from_bits",
    "float64_bits",
    "float64_from_bits",
    "float_floordiv",
    "float_fmax",
    "float_fmin",
    "float_max",
    "float_min",
    "float_pow",
    "float_rem",
    "float_sign",
]

Real = Any
"""float32 or float64, the same for all operands."""


def float_sign(a: Real) -> Real:
    """Return -1.0, 0.0 or 1.0; nan for nan.

    >>> float_sign(-0.0), float_sign(-3.5)
    (0.0, -1.0)
    """
    if a > 0:
        return 1.0
    if a < 0:
        return -1.0
    return a * 0.0 + 0.0  # nan stays nan, and -0.0 becomes 0.0


def float32_bits(a: Real) -> Any:
    """Return the bits of a float32.

    >>> float32_bits(-0.0)
    np.uint32(2147483648)
    """
    return float32(a).view(uint32)


def float64_bits(a: Real) -> Any:
    """Return the bits of a float64."""
    return float64(a).view(uint64)


def float32_from_bits(bits: Any) -> Real:
    """Return the float32 of which these are the bits.

    >>> float32_from_bits(1)
    np.float32(1e-45)
    """
    return uint32(bits).view(float32)


def float64_from_bits(bits: Any) -> Real:
    """Return the float64 of which these are the bits."""
    return uint64(bits).view(float64)


def float_min(a: Real, b: Real) -> Real:
    """Return the smaller; nan if one of them is (NumPy's ``minimum``)."""
    return a if a <= b or a != a else b


def float_max(a: Real, b: Real) -> Real:
    """Return the larger; nan if one of them is (NumPy's ``maximum``)."""
    return a if a >= b or a != a else b


def float_fmin(a: Real, b: Real) -> Real:
    """Return the smaller; a nan loses against a number."""
    return a if a <= b or b != b else b


def float_fmax(a: Real, b: Real) -> Real:
    """Return the larger; a nan loses against a number."""
    return a if a >= b or b != b else b


def float_pow(a: Real, b: Real) -> Real:
    """Return the power, as C has it: NumPy's ``power`` takes a root for a scalar exponent 0.5."""
    return a**b


def float_rem(a: Real, b: Real) -> Real:
    """Return the remainder with the sign of the divisor, Python's ``%`` but nan for ``b == 0``.

    >>> import numpy as np
    >>> print(float_rem(np.float64(-1.0), np.float64(3.0)))
    2.0
    """
    remainder = fmod(a, b)
    if b == 0:
        return remainder
    if remainder == 0:
        return copysign(remainder, b)
    if (b < 0) != (remainder < 0):
        return remainder + b
    return remainder


def float_floordiv(a: Real, b: Real) -> Real:
    """Return the floor of the quotient, exactly as NumPy rounds it.

    >>> import numpy as np
    >>> print(float_floordiv(np.float64(-1.0), np.float64(3.0)))
    -1.0
    """
    if b == 0:
        return a / b
    remainder = fmod(a, b)
    quotient = (a - remainder) / b
    if remainder != 0 and (b < 0) != (remainder < 0):
        quotient = quotient - 1
    if quotient == 0:
        return copysign(quotient, a / b)
    rounded = floor(quotient)
    return rounded + 1 if quotient - rounded > 0.5 else rounded
