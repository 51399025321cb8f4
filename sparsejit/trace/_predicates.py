"""Functions of elements that are compositions of others: tests, roundings, angles, choices.

In: traced arrays, with NumPy's arguments. Out: traced arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsejit.affine import Constant
from sparsejit.errors import TensorValueError, UnsupportedError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._elementwise import elementwise, where
from sparsejit.trace._extents import difference
from sparsejit.trace._functions import METHODS, astype, zeros_like
from sparsejit.trace._locations import caller
from sparsejit.trace._numpy_arrays import into_numpy_array
from sparsejit.trace._operands import as_array
from sparsejit.trace._part_views import complex_of, imag, real

__all__ = ["FUNCTIONS"]


def _array(what: str, obj: Any) -> Any:
    return as_array(require_trace(what), obj)


# ---------------------------------------------------------------- comparisons


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """``np.isclose``."""
    left, right = _array("isclose", a), _array("isclose", b)
    dtype = np.result_type(right.dtype, np.float64 if right.dtype.kind in "biu" else right.dtype)
    right = astype(right, dtype)
    near = abs(left - right) <= atol + rtol * abs(right)
    made = np.logical_or(np.logical_and(near, np.isfinite(right)), left == right)
    if equal_nan:
        made = np.logical_or(made, np.logical_and(np.isnan(left), np.isnan(right)))
    return made


def allclose(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    """``np.allclose``: a truth value of the program."""
    return isclose(a, b, *args, **options).all()


def _same_shape(trace: Trace, left: Array, right: Array) -> bool:
    """Whether two arrays have one shape, in this call and all that share the trace."""
    pairs = tuple(zip(left.extents, right.extents, strict=False))
    if len(left.extents) != len(right.extents):
        return False
    for one, other in pairs:
        if not trace.extents.unify(one, other):
            more, less = (
                (one, other)
                if trace.extents.number(one) > trace.extents.number(other)
                else (other, one)
            )
            trace.extents.holds(difference(difference(more, less), Constant(1)))
            return False
    return True


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """``np.array_equal``: a truth value of the program."""
    trace = require_trace("array_equal")
    left: Any = as_array(trace, a1)
    right: Any = as_array(trace, a2)
    if not _same_shape(trace, left, right):
        return False
    same = left == right
    if equal_nan:
        same = np.logical_or(same, np.logical_and(np.isnan(left), np.isnan(right)))
    return same.all()


def array_equiv(a1: Any, a2: Any) -> Any:
    """``np.array_equiv``: equal after broadcasting, a truth value of the program."""
    try:
        same = _array("array_equiv", a1) == a2
    except TensorValueError:
        return False
    return same.all()


# ---------------------------------------------------------------- numbers


def _complex(re: Array, im: Array) -> Any:
    return elementwise(re._trace, lambda parts: complex_of(*parts), (re, im))


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """``np.nan_to_num``; in place where ``copy`` is false."""
    array = _array("nan_to_num", x)
    if not copy:
        made = nan_to_num(array, True, nan, posinf, neginf)
        assign_value(array._trace, array, made, None, caller())
        return array
    if array.element_type.is_complex:
        parts = (nan_to_num(part, True, nan, posinf, neginf) for part in (real(x), imag(x)))
        return _complex(*parts)
    if not array.element_type.is_float:
        return METHODS["copy"](array)
    limits = np.finfo(np.float32 if array.dtype.name == "bfloat16" else array.dtype)
    largest = limits.max if posinf is None else posinf
    least = limits.min if neginf is None else neginf
    number = array.dtype.type
    infinite = where(array > 0, number(largest), number(least))
    return where(np.isnan(array), number(nan), where(np.isinf(array), infinite, array))


def angle(z: Any, deg: bool = False) -> Any:
    """``np.angle``."""
    made = np.arctan2(imag(z), real(z))
    return made * (180 / np.pi) if deg else made


def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """``np.round``: half to even, at a decimal known while tracing."""
    if out is not None:
        raise UnsupportedError("round with out= is not built", location=caller())
    array = _array("round", a)
    if array.element_type.is_complex and decimals:
        return _complex(*(round_(part, decimals) for part in (real(a), imag(a))))
    if array.element_type.is_integer and decimals >= 0:
        return METHODS["copy"](array)
    if decimals == 0:
        return np.rint(array)
    scale = float(10 ** abs(decimals))
    if decimals > 0:
        return np.rint(array * scale) / scale
    return astype(np.rint(array / scale) * scale, array.dtype)


def modf(x: Any) -> Any:
    """``np.modf``: the fractional and the integral part."""
    whole = np.trunc(x)
    return np.copysign(where(np.isinf(x), 0.0, x - whole), x), whole


def logaddexp2(x1: Any, x2: Any) -> Any:
    """``np.logaddexp2``: in terms of the natural one."""
    factor = np.log(2.0)
    made = np.logaddexp(x1 * factor, x2 * factor) / factor
    return astype(made, np.result_type(*(_array("logaddexp2", x).dtype for x in (x1, x2)), "f4"))


def sinc(x: Any) -> Any:
    """``np.sinc``."""
    array = _array("sinc", x)
    y = where(array == 0, 1e-20, array) * np.pi
    return np.sin(y) / y


def polyval(p: Any, x: Any) -> Any:
    """``np.polyval``: coefficients from the highest power on, their number known while tracing."""
    array = _array("polyval", x)
    made = zeros_like(array)
    for k in range(len(p)):
        made = made * array + p[k]
    return made


# ---------------------------------------------------------------- choices


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """``np.select``: the choice of the first condition that holds."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise TensorValueError(
            "list of cases must be same length as list of conditions", location=caller()
        )
    made = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        made = where(condition, choice, made)
    return made


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """``np.copyto``: assigns, where a mask allows it."""
    if not isinstance(dst, Array):
        raise into_numpy_array(caller())
    if casting != "same_kind":
        raise UnsupportedError("np.copyto with casting= is not built", location=caller())
    trace = require_trace("copyto")
    value = src if where is True else _chosen(where, src, dst)
    assign_value(trace, dst, value, None, caller())


def _chosen(mask: Any, value: Any, otherwise: Array) -> Any:
    kind = numpy_dtype(otherwise.element_type)
    return where(mask, astype(value, kind), otherwise)


def _dtype(value: Any) -> Any:
    return numpy_dtype(value.element_type) if isinstance(value, Array) else value


METHODS["round"] = round_

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "allclose": allclose,
    "angle": angle,
    "array_equal": array_equal,
    "array_equiv": array_equiv,
    "astype": astype,
    "copyto": copyto,
    "fix": lambda x: np.trunc(x),
    "iscomplex": lambda x: imag(x) != 0,
    "iscomplexobj": lambda x: _array("iscomplexobj", x).element_type.is_complex,
    "isclose": isclose,
    "isneginf": lambda x: np.logical_and(np.isinf(x), _array("isneginf", x) < 0),
    "isposinf": lambda x: np.logical_and(np.isinf(x), _array("isposinf", x) > 0),
    "isreal": lambda x: imag(x) == 0,
    "isrealobj": lambda x: not _array("isrealobj", x).element_type.is_complex,
    "nan_to_num": nan_to_num,
    "polyval": polyval,
    "result_type": lambda *values: np.result_type(*map(_dtype, values)),
    "round": round_,
    "select": select,
    "sinc": sinc,
}
"""NumPy's functions that are built here, by name."""

UFUNCS: dict[str, Callable[..., Any]] = {"modf": modf, "logaddexp2": logaddexp2}
"""The ufuncs that are built here, by name."""
