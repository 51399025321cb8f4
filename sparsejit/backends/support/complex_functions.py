"""Elementary functions of complex128, with the values of C99 (and so NumPy) at zeros, inf and nan.

Each is computed from real functions, so that any target with those has these.
"""

from __future__ import annotations

from numpy import (
    arcsinh,
    arctan2,
    copysign,
    cos,
    cosh,
    exp,
    expm1,
    hypot,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    signbit,
    sin,
    sinh,
    sqrt,
    tan,
)

__all__ = [
    "complex_arccos",
    "complex_arccosh",
    "complex_arcsin",
    "complex_arcsinh",
    "complex_arctan",
    "complex_arctanh",
    "complex_cos",
    "complex_cosh",
    "complex_exp",
    "complex_exp2",
    "complex_expm1",
    "complex_log",
    "complex_log1p",
    "complex_log2",
    "complex_log10",
    "complex_sin",
    "complex_sinh",
    "complex_sqrt",
    "complex_tan",
    "complex_tanh",
]

_LN2 = 0.6931471805599453
_LOG2E = 1.4426950408889634
_LOG10E = 0.4342944819032518
_PI = 3.141592653589793
_INF = float("inf")
_NAN = float("nan")
_LARGE = 709.0
"""exp does not overflow up to here."""


def complex_exp(z: complex) -> complex:
    """Return e to the power z.

    >>> complex_exp(0j)
    (1+0j)
    """
    x, y = z.real, z.imag
    if y == 0:
        return complex(exp(x), y)
    if not isfinite(y):
        if x == -_INF:
            return complex(0.0, copysign(0.0, y))
        return complex(_INF if x == _INF else _NAN, _NAN)
    if isnan(x):
        return complex(x, x)
    return _scaled_exp(x, y, 1.0)


def _scaled_exp(x: float, y: float, scale: float) -> complex:
    """``scale * exp(x) * (cos y, sin y)`` for finite y, where exp alone may overflow."""
    real, imag = scale * cos(y), scale * sin(y)
    if isfinite(x) and x > _LARGE:
        step = exp(_LARGE)
        x, real, imag = x - _LARGE, real * step, imag * step
        if x > _LARGE:
            x, real, imag = min(x - _LARGE, _LARGE), real * step, imag * step
    size = exp(x)
    return complex(size * real, size * imag)


def complex_exp2(z: complex) -> complex:
    """Return 2 to the power z."""
    return complex_exp(complex(z.real * _LN2, z.imag * _LN2))


def complex_expm1(z: complex) -> complex:
    """Return ``exp(z) - 1``, accurate near 0."""
    half = sin(z.imag / 2)
    real = expm1(z.real) * cos(z.imag) - 2 * half * half
    return complex(real, exp(z.real) * sin(z.imag))


def complex_log(z: complex) -> complex:
    """Return the natural logarithm, cut along the negative real axis.

    >>> complex_log(1j)
    1.5707963267948966j
    """
    x, y = abs(z.real), abs(z.imag)
    large, small = (x, y) if x > y else (y, x)
    if isnan(x) or isnan(y):
        real = _INF if isinf(x) or isinf(y) else _NAN
    elif 0.5 <= large <= 2.0 and small <= 2.0:  # near the unit circle, where the sum cancels
        real = 0.5 * log1p((large - 1) * (large + 1) + small * small)
        if large * large + small * small < 0.4:
            real = log(hypot(x, y))
    elif 1e300 < large < _INF:
        real = log(hypot(x * 0.25, y * 0.25)) + 2 * _LN2
    elif 0.0 < large < 1e-290:
        real = log(hypot(x * 2.0**100, y * 2.0**100)) - 100 * _LN2
    else:
        real = log(hypot(x, y))
    return complex(real, arctan2(z.imag, z.real))


def complex_log2(z: complex) -> complex:
    """Return the logarithm to base 2."""
    w = complex_log(z)
    return complex(w.real * _LOG2E, w.imag * _LOG2E)


def complex_log10(z: complex) -> complex:
    """Return the logarithm to base 10."""
    w = complex_log(z)
    return complex(w.real * _LOG10E, w.imag * _LOG10E)


def complex_log1p(z: complex) -> complex:
    """Return ``log(1 + z)``."""
    shifted = z.real + 1
    return complex(log(hypot(shifted, z.imag)), arctan2(z.imag, shifted))


def complex_sqrt(z: complex) -> complex:
    """Return the square root, cut along the negative real axis.

    >>> complex_sqrt(-4 + 0j)
    2j
    """
    x, y = z.real, z.imag
    size = max(abs(x), abs(y))
    if x == 0 and y == 0:
        return complex(0.0, y)
    if isinf(y):
        return complex(_INF, y)
    if isnan(x):
        return complex(x, x)
    if isinf(x):
        rest = y - y
        if x < 0:
            return complex(abs(rest), copysign(x, y))
        return complex(x, rest if isnan(rest) else copysign(rest, y))
    scale = 1.0
    if size > 1e300:
        x, y, scale = x * 0.25, y * 0.25, 2.0
    elif size < 1e-290:
        x, y, scale = x * 2.0**100, y * 2.0**100, 2.0**-50
    root = sqrt((abs(x) + hypot(x, y)) * 0.5)
    if x >= 0:
        return complex(scale * root, scale * (y / (2 * root)))
    return complex(scale * (abs(y) / (2 * root)), copysign(scale * root, y))


# ---------------------------------------------------------------- hyperbolic and circular


def complex_sinh(z: complex) -> complex:
    """Return the hyperbolic sine."""
    x, y = z.real, z.imag
    if y == 0:
        return complex(sinh(x), y)
    if not isfinite(y):
        return complex(x if x == 0 else abs(x) if isinf(x) else _NAN, _NAN)
    if abs(x) > _LARGE:
        w = _scaled_exp(abs(x), y, 0.5)
        return complex(copysign(1.0, x) * w.real, w.imag)
    if isnan(x):
        return complex(x, x)
    return complex(sinh(x) * cos(y), cosh(x) * sin(y))


def complex_cosh(z: complex) -> complex:
    """Return the hyperbolic cosine."""
    x, y = z.real, z.imag
    if y == 0:
        return complex(cosh(x), y if isnan(x) else copysign(0.0, x) * copysign(1.0, y))
    if not isfinite(y):
        if x == 0:
            return complex(_NAN, 0.0)
        return complex(_INF if isinf(x) else _NAN, _NAN)
    if abs(x) > _LARGE:
        w = _scaled_exp(abs(x), y, 0.5)
        return complex(w.real, copysign(1.0, x) * w.imag)
    if isnan(x):
        return complex(x, x)
    return complex(cosh(x) * cos(y), sinh(x) * sin(y))


def complex_tanh(z: complex) -> complex:
    """Return the hyperbolic tangent, by Kahan's method."""
    x, y = z.real, z.imag
    if isnan(x):
        return complex(x, y if y == 0 else _NAN)
    if isinf(x):
        return complex(copysign(1.0, x), copysign(0.0, sin(2 * y) if isfinite(y) else y))
    if not isfinite(y):
        return complex(x if x == 0 else _NAN, _NAN)
    if abs(x) >= 22:
        decay = exp(-abs(x))
        return complex(copysign(1.0, x), 4 * sin(y) * cos(y) * decay * decay)
    t, s = tan(y), sinh(x)
    beta = 1 + t * t
    rho = sqrt(1 + s * s)
    if isinf(t):
        return complex(rho / s, 1 / t)
    denominator = 1 + beta * s * s
    return complex(beta * rho * s / denominator, t / denominator)


def complex_sin(z: complex) -> complex:
    """Return the sine."""
    if isinf(z.imag) and not isfinite(z.real):
        return complex(_NAN, _INF)
    w = complex_sinh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


def complex_cos(z: complex) -> complex:
    """Return the cosine."""
    return complex_cosh(complex(-z.imag, z.real))


def complex_tan(z: complex) -> complex:
    """Return the tangent."""
    w = complex_tanh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


# ---------------------------------------------------------------- inverse functions


def complex_arcsinh(z: complex) -> complex:
    """Return the inverse hyperbolic sine."""
    x, y = z.real, z.imag
    if isnan(x) or isnan(y):
        if isinf(x):
            return complex(x, y)
        if y == 0:
            return complex(x, y)
        return complex(_INF if isinf(y) else _NAN, _NAN)
    if max(abs(x), abs(y)) > 1e150:  # inf too
        size = _log_of_large(x, y) + _LN2
        return complex(copysign(size, x), arctan2(y, abs(x)))
    s = complex_sqrt(complex(1 + y, -x))
    t = complex_sqrt(complex(1 - y, x))
    real = arcsinh(s.real * t.imag - t.real * s.imag)
    return complex(real, arctan2(y, s.real * t.real - s.imag * t.imag))


def _log_of_large(x: float, y: float) -> float:
    """``log(hypot(x, y))`` where the sum of squares may overflow."""
    return float(log(hypot(x / 2, y / 2)) + _LN2)


def complex_arcsin(z: complex) -> complex:
    """Return the inverse sine."""
    if isinf(z.real) and isnan(z.imag):
        return complex(_NAN, _INF)
    w = complex_arcsinh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


def complex_arccos(z: complex) -> complex:
    """Return the inverse cosine."""
    x, y = z.real, z.imag
    if isnan(x) or isnan(y):
        if isinf(x):
            return complex(_NAN, -_INF)
        if isinf(y):
            return complex(_NAN, -y)
        return complex(_PI / 2 if x == 0 else _NAN, _NAN)
    if max(abs(x), abs(y)) > 1e150:
        size = _log_of_large(x, y) + _LN2
        return complex(arctan2(abs(y), x), -copysign(size, y))
    s = complex_sqrt(complex(1 - x, -y))
    t = complex_sqrt(complex(1 + x, y))
    real = 2 * arctan2(s.real, t.real)
    return complex(real, arcsinh(t.real * s.imag - t.imag * s.real))


def complex_arccosh(z: complex) -> complex:
    """Return the inverse hyperbolic cosine."""
    x, y = z.real, z.imag
    if isnan(x) or isnan(y):
        if isinf(x) or isinf(y):
            return complex(_INF, _NAN)
        return complex(_NAN, _PI / 2 if x == 0 else _NAN)
    if max(abs(x), abs(y)) > 1e150:
        return complex(_log_of_large(x, y) + _LN2, arctan2(y, x))
    s = complex_sqrt(complex(x - 1, y))
    t = complex_sqrt(complex(x + 1, y))
    return complex(arcsinh(s.real * t.real + s.imag * t.imag), 2 * arctan2(s.imag, t.real))


def complex_arctanh(z: complex) -> complex:
    """Return the inverse hyperbolic tangent."""
    x, y = abs(z.real), z.imag
    size = abs(y)
    if isnan(x) or isnan(y):
        if isinf(x):
            real, imag = 0.0, y
        else:
            real = 0.0 if isinf(y) or x == 0 else _NAN
            imag = copysign(_PI / 2, y) if isinf(y) else _NAN
    elif x > 1e150 or size > 1e150:
        half = hypot(x / 2, y / 2)
        real = 0.0 if isinf(half) else x / 4 / half / half
        imag = copysign(_PI / 2, y)
    elif x == 1 and size < 1e-150:
        real = _INF if size == 0 else -log(sqrt(size) / sqrt(hypot(size, 2.0)))
        imag = y if size == 0 else copysign(arctan2(2.0, -size) / 2, y)
    else:
        real = log1p(4 * x / ((1 - x) * (1 - x) + size * size)) / 4
        imag = arctan2(2 * y, (1 - x) * (1 + x) - size * size) / 2
    negative = signbit(z.real)
    return complex(-real if negative else real, imag)


def complex_arctan(z: complex) -> complex:
    """Return the inverse tangent."""
    w = complex_arctanh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)
