"""Functions of scalars that drawn programs hand over: sparsejit reads them, NumPy's side runs them.

Each gives for every dtype that the programs have a value of that dtype.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "alternating",
    "clipped",
    "constant",
    "difference",
    "folded",
    "is_large",
    "is_off_first",
    "larger_size",
    "plus",
    "smaller",
]


def clipped(a: Any) -> Any:
    return min(3, max(1, a))


def alternating(a: Any, i: Any) -> Any:
    return a if i > 0 else -a


def folded(a: Any) -> Any:
    b = a * a
    if a > 1:
        return b - a
    return a + 2


def is_large(a: Any) -> Any:
    return a > 1


def is_off_first(a: Any, i: Any) -> Any:
    return a < 2 and i >= 1


def smaller(a: Any, b: Any) -> Any:
    return min(a, b)


def larger_size(a: Any, b: Any) -> Any:
    return max(a, abs(b))


def difference(a: Any, b: Any) -> Any:
    return a - b


def plus(a: Any, b: Any) -> Any:
    return a + b


def constant() -> Any:
    return 2
