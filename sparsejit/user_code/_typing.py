"""What a user function gives, as Numba infers it, and its copy that Numba can compile.

In: a Python function and the dtypes of its operands. Out: ``UserFunction``s, or the reason why
Numba does not compile it. Plain Python functions that it calls are compiled with it, and lists of
constants become tuples: Numba takes neither as it is.
"""

from __future__ import annotations

import functools
import keyword
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsejit.ir.scalar import UserFunction
from sparsejit.ir.types import DType
from sparsejit.user_code._bound_names import unbound_names
from sparsejit.user_code._identity import digest_of, python_function_of, values_read

__all__ = ["NotCompilableError", "jitted", "numba_type", "numba_types", "typed_function"]

_KNOWN_TO_NUMBA = ("numpy", "numba", "math", "cmath", "operator", "builtins")


class NotCompilableError(Exception):
    """Numba does not compile a function; the text says why."""


def typed_function(
    function: types.FunctionType, operands: Sequence[DType]
) -> tuple[UserFunction, UserFunction | None] | None:
    """Return what calls ``function`` with operands of these dtypes, and what asks whether it gives
    a value, which is None where it always does. None where it never gives one.

    The dtypes must be ones to compute in. Raises ``NotCompilableError`` where Numba refuses it or
    it gives no number, and ``UnidentifiedError`` where it reads what is no constant.

    >>> value, question = typed_function(lambda n: n / 2 if n > 0 else None, [DType.INT64])
    >>> value.result, question.result
    (DType.FLOAT64, DType.BOOL)
    """
    digest = digest_of(function)
    found = _result(digest, tuple(operands), _Held(function))
    if found is None:
        return None
    dtype, may_be_nothing = found
    name, taken = _name_of(function), tuple(operands)
    value = UserFunction(name, digest, taken, dtype, function=function)
    if not may_be_nothing:
        return value, None
    return value, UserFunction(name, digest, taken, DType.BOOL, True, function)


class _Held:
    """A function that is no part of the key of a cache: its digest is."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


def _name_of(function: types.FunctionType) -> str:
    name = function.__name__
    return name if name.isidentifier() and not keyword.iskeyword(name) else "anonymous"


@functools.lru_cache(maxsize=256)
def _result(digest: str, operands: tuple[DType, ...], held: _Held) -> tuple[DType, bool] | None:
    import numba
    from numba import types as nb

    dispatcher = _jitted(digest, held)
    try:
        # A caller leaves parameters with defaults out, which a list of types does not.
        names = ", ".join(f"a{number}" for number in range(len(operands)))
        namespace: dict[str, Any] = {"call": dispatcher}
        exec(f"def caller({names}):\n    return call({names})\n", namespace)
        dispatcher = numba.njit(error_model="numpy")(namespace["caller"])
        dispatcher.compile(numba_types(operands))
        compiled: Any = dispatcher.overloads[numba_types(operands)]
    except Exception as error:  # Numba raises its own errors and Python's: it refuses the function
        raise NotCompilableError(_reason(error)) from error
    unliteral: Any = nb.unliteral
    given = unliteral(compiled.signature.return_type)
    may_be_nothing = isinstance(given, nb.Optional)
    if isinstance(given, nb.NoneType):
        return None
    dtype = _dtype_of(unliteral(given.type) if may_be_nothing else given)
    if dtype is None:
        raise NotCompilableError(f"it gives {given}, which is no number")
    return dtype, may_be_nothing


def _dtype_of(given: Any) -> DType | None:
    try:
        return DType(str(given))
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    """Return what Numba says, without its head lines and the places inside of Numba."""
    lines = [line.strip().partition(' File "')[0] for line in str(error).splitlines()]
    skipped = (
        "Failed in",
        "During:",
        "There ",
        "- Of which",
        ">>>",
        "Overload",
        "File ",
        "<source",
    )
    said = [line for line in lines if line and not line.startswith(skipped)]
    is_split = len(said) > 1 and said[1].startswith("With argument")
    text = " ".join(said[: 1 + is_split]) or type(error).__name__
    return text if len(text) <= 240 else f"{text[:237]}..."


def numba_type(dtype: DType) -> Any:
    """Return Numba's type of a dtype."""
    import numba

    return getattr(numba.types, "boolean" if dtype is DType.BOOL else dtype.value)


def numba_types(dtypes: Sequence[DType]) -> tuple[Any, ...]:
    """Return Numba's types of dtypes."""
    return tuple(map(numba_type, dtypes))


def jitted(function: UserFunction) -> Any:
    """Return the Numba dispatcher of the Python function itself."""
    assert isinstance(function.function, types.FunctionType)
    return _jitted(function.digest, _Held(function.function))


@functools.lru_cache(maxsize=256)
def _jitted(digest: str, held: _Held) -> Any:
    return _copy(held.function, digest, {})


def _copy(fn: types.FunctionType, digest: str, made: dict[int, Any]) -> Any:
    """Return the dispatcher of a copy of ``fn`` that reads what Numba can compile.

    Division by zero and the like give what they give in NumPy. A function may call itself: its
    dispatcher is known before what it reads is.
    """
    import numba

    if id(fn) in made:
        return made[id(fn)]
    unbound = unbound_names(fn.__code__)
    if unbound:
        raise NotCompilableError(f"{unbound[0]} is not bound on every path through {fn.__name__}")
    namespace = {"__name__": fn.__module__, "__builtins__": fn.__globals__.get("__builtins__")}
    free = fn.__code__.co_freevars
    cells = {name: types.CellType() for name in free}
    copy = types.FunctionType(
        fn.__code__, namespace, fn.__name__, fn.__defaults__, tuple(cells.values())
    )
    copy.__kwdefaults__ = fn.__kwdefaults__
    copy.__qualname__ = f"{_name_of(fn)}_{digest[:16]}_{len(made)}"
    dispatcher = made[id(fn)] = numba.njit(error_model="numpy", nogil=True)(copy)
    for name, value in values_read(fn):
        taken = _taken(value, digest, made)
        if name in cells:
            cells[name].cell_contents = taken
        else:
            namespace[name] = taken
    return dispatcher


def _taken(value: Any, digest: str, made: dict[int, Any]) -> Any:
    """Return what stands for something that is read."""
    if isinstance(value, list):
        return tuple(_taken(item, digest, made) for item in value)
    function = python_function_of(value)
    if function is None or isinstance(value, np.ufunc):
        return value
    home = (getattr(function, "__module__", None) or "").partition(".")[0]
    return value if home in _KNOWN_TO_NUMBA else _copy(function, digest, made)
