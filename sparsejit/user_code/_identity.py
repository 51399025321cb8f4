"""The identity of a user function: a digest of its code and of all that it reads from outside.

In: a Python function. Out: a text that is the same in every process for functions that do the same.
What has no identity that lasts (an object of a class, an array that others may write) is refused.
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

__all__ = ["UnidentifiedError", "digest_of", "python_function_of", "values_read"]

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


class UnidentifiedError(Exception):
    """A function reads something that cannot be a constant of compiled code; the text says what."""


def python_function_of(value: object) -> types.FunctionType | None:
    """Return a Python function, also that of a decorated one; None for anything else."""
    inner = getattr(value, "py_func", value)
    return inner if isinstance(inner, types.FunctionType) else None


def values_read(fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names that a function, or one nested in it, reads from outside, and what they are.

    Builtins and names that are not bound are left out.

    >>> limit = 3
    >>> [name for name, _ in values_read(lambda x: min(x, limit))]
    ['limit']
    """
    for name in dict.fromkeys(_global_names(fn.__code__)):
        if name in fn.__globals__:
            yield name, fn.__globals__[name]
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # the name is not bound yet
            continue


def _global_names(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in _GLOBALS:
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def digest_of(fn: types.FunctionType) -> str:
    """Return the digest of a function; ``UnidentifiedError`` where it reads what has none.

    >>> digest_of(lambda x: x + 1) == digest_of(lambda x: x + 1)
    True
    >>> digest_of(lambda x: x + 1) == digest_of(lambda x: x + 1.0)
    False
    """
    return hashlib.sha256(_function(fn, {}).encode()).hexdigest()[:32]


def _function(fn: types.FunctionType, seen: dict[int, int]) -> str:
    if id(fn) in seen:
        return f"function {seen[id(fn)]}"
    seen[id(fn)] = len(seen)
    reads = [f"{name}={_value(name, value, seen)}" for name, value in values_read(fn)]
    defaults = _value("a default", (fn.__defaults__, _pairs(fn.__kwdefaults__)), seen)
    return f"({_code(fn.__code__)} {reads} {defaults})"


def _pairs(mapping: dict[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((mapping or {}).items()))


def _code(code: types.CodeType) -> str:
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    constants = [_constant(constant) for constant in code.co_consts]
    return f"{code.co_code.hex()} {names} {counts} {constants}"


def _constant(value: object) -> str:
    match value:
        case types.CodeType():
            return _code(value)
        case frozenset():
            return f"frozenset {sorted(map(_constant, value))}"
        case tuple():
            return f"({' '.join(map(_constant, value))})"
        case _:
            return f"{type(value).__name__} {value!r}"


def _value(name: str, value: Any, seen: dict[int, int]) -> str:
    """Return the text of something that is read under ``name``."""
    function = python_function_of(value)
    if function is not None:
        return _function(function, seen)
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | Enum():
            return _constant(value)
        case np.generic():
            return f"{value.dtype} {value.tobytes().hex()}"
        case tuple() | list():
            parts = (_value(f"{name}[{k}]", item, seen) for k, item in enumerate(value))
            return f"{type(value).__name__} ({' '.join(parts)})"
        case np.ndarray() if not value.flags.writeable and value.dtype.kind in "biufc":
            data = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return f"array {value.dtype} {value.shape} {data}"
        case types.ModuleType():
            return f"module {value.__name__}"
        case type() | types.BuiltinFunctionType() | np.ufunc():
            return f"{getattr(value, '__module__', '')} {value.__name__}"
        case _ if type(value).__module__.partition(".")[0] in ("numpy", "numba"):
            if not isinstance(value, np.ndarray):  # a function of NumPy, a type of Numba
                return f"{type(value).__name__} {value!s}"
    what = "an array that may change" if isinstance(value, np.ndarray) else _kind(value)
    raise UnidentifiedError(f"it reads {name}, {what}, which is no constant for compiled code")


def _kind(value: object) -> str:
    name = type(value).__qualname__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
