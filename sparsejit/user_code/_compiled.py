"""What backends call for a user function: Python, a Numba function, or the address of C code.

In: a ``UserFunction``. Out: a callable. Compiled code signals an exception by a status, since it
must neither lose one nor go on with a wrong number; ``failure`` is what a kernel then raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.errors import BackendError, Location
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.scalar import UserFunction
from sparsejit.ir.types import DType
from sparsejit.user_code._typing import jitted, numba_type, numba_types

__all__ = [
    "UserCodeError",
    "c_function",
    "checked_function",
    "failure",
    "python_function",
    "symbol_of",
]


class UserCodeError(Exception):
    """A user function raised an exception in a kernel that Numba compiled."""


def failure(function: UserFunction, error: BaseException | None = None) -> BackendError:
    """Return what is raised where a user function raises an exception."""
    said = "an exception" if error is None else f"{type(error).__name__}: {error}"
    code = getattr(function.function, "__code__", None)
    where = None if code is None else Location(code.co_filename, code.co_firstlineno, code.co_name)
    return BackendError(
        f"the user function {function.name} raised {said}",
        hint=f"call {function.name} with single numbers to see where it fails",
        location=where,
    )


def symbol_of(function: UserFunction) -> str:
    """Return the name of its C function in object files: the same in every process."""
    dtypes = "".join(f".{dtype.short}" for dtype in function.operands)
    asks = ".asks" if function.is_question else ""
    return f"sparsejit.user.{function.digest}{dtypes}{asks}"


def _made(text: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Return the function ``made`` of a text."""
    exec(text, namespace)
    made: Callable[..., Any] = namespace["made"]
    made.__module__ = __name__
    return made


def _names(function: UserFunction) -> list[str]:
    return [f"a{number}" for number in range(len(function.operands))]


@functools.lru_cache(maxsize=256)
def _value(function: UserFunction) -> Any:
    """Return a Numba function of the declared dtypes: the value, or whether there is one."""
    import numba

    names = ", ".join(_names(function))
    zero = numpy_dtype(function.result).type(0)
    body = f"    given = call({names})\n    return zero if given is None else given\n"
    if function.is_question:
        body = f"    return call({names}) is not None\n"
    made = _made(f"def made({names}):\n{body}", {"call": jitted(function), "zero": zero})
    made.__qualname__ = f"value_{symbol_of(function)}"
    signature = numba_type(function.result)(*numba_types(function.operands))
    return numba.njit(signature, error_model="numpy", nogil=True)(made)


@functools.lru_cache(maxsize=256)
def python_function(function: UserFunction) -> Callable[..., Any]:
    """Return what the interpreter calls: the compiled function, so that every target computes the
    same; what it raises is a ``BackendError``.
    """
    value, made = _value(function), numpy_dtype(function.result).type

    def call(*operands: Any) -> Any:
        try:
            return made(value(*operands))
        except Exception as error:  # users raise what they like; it becomes a BackendError
            raise failure(function, error) from error

    return call


@functools.lru_cache(maxsize=256)
def checked_function(function: UserFunction) -> Any:
    """Return the Numba function that raises ``UserCodeError`` where the user's code raises."""
    import numba

    names = ", ".join(_names(function))
    text = (
        f"def made({names}):\n"
        "    failed = False\n"
        "    given = zero\n"
        "    try:\n"
        f"        given = value({names})\n"
        "    except Exception:  # users raise what they like, and Numba catches no other class\n"
        "        failed = True\n"
        "    if failed:\n"
        "        raise UserCodeError(symbol)\n"
        "    return given\n"
    )
    zero = numpy_dtype(function.result).type(0)
    namespace = {
        "value": _value(function),
        "zero": zero,
        "symbol": symbol_of(function),
        "UserCodeError": UserCodeError,
    }
    made = _made(text, namespace)
    made.__qualname__ = f"checked_{symbol_of(function)}"
    signature = numba_type(function.result)(*numba_types(function.operands))
    return numba.njit(signature, error_model="numpy", nogil=True)(made)


@functools.lru_cache(maxsize=256)
def c_function(function: UserFunction) -> Any:
    """Return a C function, which lives as long as the object that is returned; see ``address``.

    It takes its operands and the address of the result, and returns 0, or 1 where the user's code
    raised. Integers and bools are passed in 64 bits, complex numbers as two reals; the result lies
    likewise.
    """
    import numba

    passed, taken = [], []
    for name, dtype in zip(_names(function), function.operands, strict=True):
        passed += [f"{name}r", f"{name}i"] if dtype.is_complex else [name]
        taken.append(_unpacked(name, dtype))
    result = function.result
    stores = ["out[0] = given.real", "out[1] = given.imag"]
    if not result.is_complex:
        stores = ["out[0] = 1 if given else 0" if result is DType.BOOL else "out[0] = given"]
    text = (
        f"def made({', '.join([*passed, 'out'])}):\n"
        "    try:\n"
        f"        given = value({', '.join(taken)})\n"
        "    except Exception:  # users raise what they like, and Numba catches no other class\n"
        "        return 1\n" + "".join(f"    {line}\n" for line in stores) + "    return 0\n"
    )
    made = _made(text, {"value": _value(function), "np": np})
    made.__qualname__ = f"entry_{symbol_of(function)}"
    kinds = [kind for dtype in function.operands for kind in [_carrier(dtype)] * _words(dtype)]
    pointer: Any = numba.types.CPointer
    return numba.cfunc(numba.types.int32(*kinds, pointer(_carrier(result))), error_model="numpy")(
        made
    )


def _words(dtype: DType) -> int:
    return 2 if dtype.is_complex else 1


def _carrier(dtype: DType) -> Any:
    """Return the type that carries a dtype, or a part of it, between LLVM's code and Numba's."""
    if dtype.is_complex or dtype.is_float:
        return numba_type(dtype.real)
    return numba_type(DType.UINT64 if dtype.is_unsigned_integer else DType.INT64)


def _unpacked(name: str, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return f"{name} != 0"
    if dtype.is_complex:
        return f"np.{dtype.value}(complex({name}r, {name}i))"
    return f"np.{dtype.value}({name})"
