"""Complex arithmetic and order the way NumPy does it, on pairs of reals.

The scalars are complex64 or complex128 alike where a function does plain arithmetic; the printer
narrows what comes wider. Elementary functions are in ``complex_functions``.
"""

from __future__ import annotations

from typing import Any

from numpy import copysign, hypot, isinf, isnan, rint

from sparsejit.backends.support.complex_functions import complex_exp, complex_log

__all__ = [
    "complex_div",
    "complex_fmax",
    "complex_fmin",
    "complex_greater",
    "complex_greater_equal",
    "complex_less",
    "complex_less_equal",
    "complex_max",
    "complex_min",
    "complex_pow",
    "complex_rint",
    "complex_sign",
]

_INF = float("inf")
_NAN = float("nan")
Complex = Any
"""complex64 or complex128, the same for all operands."""
Real = Any
"""float64."""


def complex_div(a: Complex, b: Complex) -> Complex:
    """Return the quotient by Smith's method, as NumPy has it: over zero, inf or nan.

    >>> complex_div(4 + 2j, 1 + 1j)
    (3-1j)
    """
    size_real = abs(b.real)
    size_imag = abs(b.imag)
    if size_real >= size_imag:
        if size_real == 0:
            return complex(a.real / size_real, a.imag / size_real)
        ratio = b.imag / b.real
        scale = 1 / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = 1 / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


def complex_less(a: Complex, b: Complex) -> bool:
    """Whether ``a`` comes before ``b``: by real part, then by imaginary part."""
    if a.real == b.real:
        return bool(a.imag < b.imag)
    return bool(a.real < b.real) and not isnan(a.imag) and not isnan(b.imag)


def complex_less_equal(a: Complex, b: Complex) -> bool:
    """Whether ``a`` comes before ``b`` or equals it."""
    if a.real == b.real:
        return bool(a.imag <= b.imag)
    return bool(a.real < b.real) and not isnan(a.imag) and not isnan(b.imag)


def complex_greater(a: Complex, b: Complex) -> bool:
    """Whether ``a`` comes after ``b``."""
    return complex_less(b, a)


def complex_greater_equal(a: Complex, b: Complex) -> bool:
    """Whether ``a`` comes after ``b`` or equals it."""
    return complex_less_equal(b, a)


def complex_min(a: Complex, b: Complex) -> Complex:
    """Return the smaller; the first nan if there is one."""
    return a if complex_less_equal(a, b) or isnan(a.real) or isnan(a.imag) else b


def complex_max(a: Complex, b: Complex) -> Complex:
    """Return the larger; the first nan if there is one."""
    return a if complex_less_equal(b, a) or isnan(a.real) or isnan(a.imag) else b


def complex_fmin(a: Complex, b: Complex) -> Complex:
    """Return the smaller; a nan loses against a number."""
    return a if complex_less_equal(a, b) or isnan(b.real) or isnan(b.imag) else b


def complex_fmax(a: Complex, b: Complex) -> Complex:
    """Return the larger; a nan loses against a number."""
    return a if complex_less_equal(b, a) or isnan(b.real) or isnan(b.imag) else b


def complex_rint(a: Complex) -> Complex:
    """Return both parts rounded to the nearest integer, ties to even."""
    return complex(rint(a.real), rint(a.imag))


def complex_sign(a: Complex) -> Complex:
    """Return ``a / abs(a)``, 0 for 0.

    >>> complex_sign(-3j)
    (-0-1j)
    """
    size = hypot(a.real, a.imag)
    if isnan(size):
        return complex(size, size)
    if isinf(size):
        if isinf(a.real) and isinf(a.imag):
            return complex(size - size, size - size)
        real = 0.0 if not isinf(a.real) else 1.0 if a.real > 0 else -1.0
        imag = 0.0 if not isinf(a.imag) else 1.0 if a.imag > 0 else -1.0
        return complex(real, imag)
    if size == 0:
        return complex(0.0, 0.0)
    return complex(a.real / size, a.imag / size)


def complex_pow(a: Complex, b: Complex) -> Complex:
    """Return the power; small integer powers by multiplication.

    >>> complex_pow(1 + 1j, 2 + 0j)
    2j
    """
    if b.real == 0 and b.imag == 0:
        return complex(1.0, 0.0)
    if a.real == 0 and a.imag == 0:
        if b.real > 0:
            return complex(0.0, 0.0)
        return complex(_NAN, _NAN)
    if b.imag == 0 and abs(b.real) < 100 and b.real == rint(b.real):
        return _integer_power(complex(a.real, a.imag), int(b.real))
    logarithm = complex_log(complex(a.real, a.imag))
    return complex_exp(_c99_product(b.real, b.imag, logarithm.real, logarithm.imag))


def _c99_product(a: Real, b: Real, c: Real, d: Real) -> Complex:
    """``(a + b i) (c + d i)`` where infinity times anything but 0 is infinite, as C has it."""
    real = a * c - b * d
    imag = a * d + b * c
    if not (isnan(real) and isnan(imag)):
        return complex(real, imag)
    infinite = False
    if isinf(a) or isinf(b):
        infinite = True
        a, b = _unit(a), _unit(b)
        c, d = _zero_for_nan(c), _zero_for_nan(d)
    if isinf(c) or isinf(d):
        infinite = True
        c, d = _unit(c), _unit(d)
        a, b = _zero_for_nan(a), _zero_for_nan(b)
    if not infinite and (isinf(a * c) or isinf(b * d) or isinf(a * d) or isinf(b * c)):
        infinite = True
        a, b, c, d = _zero_for_nan(a), _zero_for_nan(b), _zero_for_nan(c), _zero_for_nan(d)
    if not infinite:
        return complex(real, imag)
    return complex(_INF * (a * c - b * d), _INF * (a * d + b * c))


def _unit(a: Real) -> Real:
    return copysign(1.0 if isinf(a) else 0.0, a)


def _zero_for_nan(a: Real) -> Real:
    return copysign(0.0, a) if isnan(a) else a


def _integer_power(a: Complex, exponent: int) -> Complex:
    count = abs(exponent)
    power = complex(1.0, 0.0)
    started = False
    factor = a
    while count:
        if count & 1:
            power = power * factor if started else factor
            started = True
        factor = factor * factor
        count >>= 1
    return power if exponent > 0 else complex_div(complex(1.0, 0.0), power)
