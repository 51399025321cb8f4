"""NumPy's functions of elements on indexed expressions: ``np.where(x[i] > 0, x[i], 0)``.

In: a function or method and its arguments, some of which are indexed. Out: an indexed expression.
An element is an array of rank 0 meanwhile, so that what the functions mean is said in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparsejit.errors import TraceError
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace
from sparsejit.trace._functions import METHODS
from sparsejit.trace._indexed import Index, Indexed, combined
from sparsejit.trace._locations import caller
from sparsejit.trace._numpy import call_function, call_ufunc
from sparsejit.trace._part_views import imag, real
from sparsejit.trace._pointwise import Pointwise

__all__ = ["of_elements", "of_elements_method", "of_elements_ufunc"]

_NAMES = (
    *("angle", "around", "astype", "clip", "copy", "fix", "imag", "iscomplex", "isclose", "isreal"),
    *("isneginf", "isposinf", "nan_to_num", "real", "round", "select", "sinc", "where"),
)
"""The functions that give one element for one element."""
_METHODS = {name: METHODS[name] for name in ("astype", "clip", "conj", "conjugate", "copy")}
_PARTS = {"real": real, "imag": imag}


def _mapped(item: Any, change: Callable[[Any], Any]) -> Any:
    """Return an argument with what is indexed changed, in lists and tuples too."""
    if isinstance(item, list | tuple):
        return type(item)([_mapped(part, change) for part in item])
    return change(item) if isinstance(item, Index | Indexed | Array) else item


def _on_elements(trace: Trace, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return ``call(*args, **kwargs)``, in which indexed expressions stand for their elements."""
    names, given = tuple(kwargs), (*args, *kwargs.values())
    found: list[Any] = []
    _mapped(given, found.append)
    others: list[int] = []

    def rule(number: int, parts: Sequence[Pointwise]) -> Pointwise:
        arrays = iter([trace.pointwise(part, ()) for part in parts])
        values = _mapped(given, lambda _: next(arrays))
        named = dict(zip(names, values[len(args) :], strict=True))
        with trace.of_elements():
            made = call(*values[: len(args)], **named)
            results = made if isinstance(made, tuple) else (made,)
            if number == 0:
                others.extend(range(1, len(results)))
            part: Pointwise = results[number].read()
        return part

    first = combined(trace, partial(rule, 0), found)
    if not others:
        return first
    return (first, *(combined(trace, partial(rule, number), found) for number in others))


def of_elements(trace: Trace, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what a NumPy function gives for elements.

    Raises ``TraceError`` for a function of arrays.
    """
    name = function.__name__
    if name not in _NAMES:
        raise TraceError(
            f"np.{name} of an indexed expression is not built",
            hint="use sj.sum, sj.min, ... with over=, or assign the expression to an output first",
            location=caller(),
        )
    return _on_elements(trace, lambda *a, **k: call_function(function, a, k), args, kwargs)


def of_elements_ufunc(
    trace: Trace, ufunc: np.ufunc, operands: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return a ufunc of elements that is a composition of others, or is given a dtype."""
    return _on_elements(
        trace, lambda *a, **k: call_ufunc(trace, ufunc, "__call__", a, k), operands, kwargs
    )


def of_elements_method(trace: Trace, indexed: Any, name: str) -> Any:
    """Return an attribute of an element, as ``x[i].real``; None for one that it does not have."""
    if name in _PARTS:
        return _on_elements(trace, _PARTS[name], (indexed,), {})
    method = _METHODS.get(name)
    if method is None:
        return None
    return lambda *args, **kwargs: _on_elements(trace, method, (indexed, *args), kwargs)
