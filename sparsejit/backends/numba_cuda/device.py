"""Functions that generated kernels call beside those of the support library.

Plain functions: on the host, a kernel that is replayed calls them as they stand; for a device Numba
inlines them into the kernel, which is one flat function. A ``pointer`` is indexed by one number of
elements. The steps that several threads take together (``atomic_*``, ``shuffle``, ``vote``,
``peers``) are here for their meaning in one thread; on a device they are instructions, and the
replay runs warps in step. Lanes of a warp are the bits of a number, lane 0 the lowest.
"""

from __future__ import annotations

from typing import Any

from numpy import copysign, exp, int64, isfinite, isinf, isnan, log1p

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "complex_absolute",
    "complex_conjugate",
    "complex_isfinite",
    "complex_isinf",
    "complex_isnan",
    "count_lanes",
    "lanes_below",
    "logaddexp",
    "peers",
    "search_column",
    "search_column_unordered",
    "shuffle",
    "shuffle_complex",
    "signbit",
    "sort_range",
    "vote",
]

Pointer = Any
Real = Any
Complex = Any

_LOG_2 = 0.6931471805599453


def search_column(
    pointer: Pointer, start: int64, stride: int64, lower: int64, upper: int64, key: int64
) -> int64:
    """Return the first position in ``lower .. upper - 1`` that holds ``key``, or -1.

    Element ``p`` is ``pointer[start + p * stride]``; elements are in increasing order there.

    >>> import numpy as np
    >>> pairs = np.array([0, 5, 1, 7, 2, 9])
    >>> print(search_column(pairs, np.int64(1), np.int64(2), np.int64(0), np.int64(3), np.int64(7)))
    1
    """
    low = lower
    end = upper
    while low < end:
        middle = (low + end) >> 1
        if int64(pointer[start + middle * stride]) < key:
            low = middle + 1
        else:
            end = middle
    if low < upper and int64(pointer[start + low * stride]) == key:
        return low
    return int64(-1)


def search_column_unordered(
    pointer: Pointer, start: int64, stride: int64, lower: int64, upper: int64, key: int64
) -> int64:
    """Return what ``search_column`` does, for elements in any order."""
    for position in range(lower, upper):
        if int64(pointer[start + position * stride]) == key:
            return int64(position)
    return int64(-1)


def sort_range(pointer: Pointer, start: int64, count: int64) -> None:
    """Sort ``count`` elements from ``start`` on: Shell's method, whose gaps shrink by about 2.2."""
    gap = int64(1)
    while gap < count:
        gap = int64(gap * 11 // 5 + 1)
    while gap > 0:
        for first in range(gap, count):
            value = pointer[start + first]
            place = int64(first)
            while place >= gap and pointer[start + place - gap] > value:
                pointer[start + place] = pointer[start + place - gap]
                place = int64(place - gap)
            pointer[start + place] = value
        gap = int64(gap * 5 // 11)


# ---------------------------------------------------------------- numbers


def signbit(a: Real) -> bool:
    """Whether the sign bit is set, that of a zero or a nan too."""
    return bool(copysign(1.0, a) < 0.0)


def logaddexp(a: Real, b: Real) -> Real:
    """Return ``log(exp(a) + exp(b))``.

    >>> print(logaddexp(float("-inf"), 2.0))
    2.0
    """
    if a == b:
        return a + _LOG_2
    difference = a - b
    if difference > 0:
        return a + log1p(exp(-difference))
    if difference <= 0:
        return b + log1p(exp(difference))
    return difference


def complex_absolute(a: Complex) -> Real:
    """Return the absolute value."""
    return abs(a)


def complex_conjugate(a: Complex) -> Complex:
    """Return the conjugate."""
    return complex(a.real, -a.imag)


def complex_isnan(a: Complex) -> bool:
    """Whether a part is nan."""
    return bool(isnan(a.real)) or bool(isnan(a.imag))


def complex_isinf(a: Complex) -> bool:
    """Whether a part is infinite."""
    return bool(isinf(a.real)) or bool(isinf(a.imag))


def complex_isfinite(a: Complex) -> bool:
    """Whether both parts are finite."""
    return bool(isfinite(a.real)) and bool(isfinite(a.imag))


# ---------------------------------------------------------------- steps of several threads


def shuffle(value: Any, distance: int) -> Any:
    """Return what the lane has whose number differs by ``distance`` (xor); alone, one has its own.

    All lanes of a warp call it together.
    """
    return value


def shuffle_complex(value: Complex, distance: int) -> Complex:
    """Return what ``shuffle`` does, of a complex number."""
    return value


def vote(flag: bool) -> int64:
    """Return the lanes that have ``flag``.

    All lanes of a warp call it together.
    """
    return int64(1) if flag else int64(0)


def peers(key: int64) -> int64:
    """Return the lanes that have the same ``key``; a lane is one of its own peers.

    All lanes of a warp call it together.
    """
    return int64(1)


def count_lanes(lanes: int64) -> int64:
    """Return how many lanes there are among ``lanes``.

    >>> print(count_lanes(int64(0b10110)))
    3
    """
    return int64(int(lanes).bit_count())


def lanes_below(lanes: int64, lane: int64) -> int64:
    """Return how many of ``lanes`` are lower ones than ``lane``.

    >>> print(lanes_below(int64(0b10110), int64(2)))
    1
    """
    return count_lanes(lanes & ((int64(1) << lane) - 1))


def atomic_add(pointer: Pointer, index: int64, value: Any) -> None:
    """``pointer[index] += value`` as one step."""
    pointer[index] = pointer[index] + value


def atomic_sub(pointer: Pointer, index: int64, value: Any) -> None:
    """``pointer[index] -= value`` as one step."""
    pointer[index] = pointer[index] - value


def atomic_min(pointer: Pointer, index: int64, value: Any) -> None:
    """Put the smaller one there, as one step."""
    pointer[index] = min(pointer[index], value)


def atomic_max(pointer: Pointer, index: int64, value: Any) -> None:
    """Put the larger one there, as one step."""
    pointer[index] = max(pointer[index], value)


def atomic_and(pointer: Pointer, index: int64, value: Any) -> None:
    """``pointer[index] &= value`` as one step."""
    pointer[index] = pointer[index] & value


def atomic_or(pointer: Pointer, index: int64, value: Any) -> None:
    """``pointer[index] |= value`` as one step."""
    pointer[index] = pointer[index] | value


def atomic_xor(pointer: Pointer, index: int64, value: Any) -> None:
    """``pointer[index] ^= value`` as one step."""
    pointer[index] = pointer[index] ^ value
