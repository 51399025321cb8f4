"""NumPy's protocols: which of NumPy's functions work on traced arrays.

In: a call that NumPy dispatched, ``np.exp(A)`` or ``np.sum(A, axis=1)``. Out: a traced array, or an
``UnsupportedError`` that names the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from string import ascii_letters
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.trace import _arg_reductions, _scipy_methods
from sparsejit.trace import _functions as functions
from sparsejit.trace._arranging import FUNCTIONS as ARRANGING
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Trace
from sparsejit.trace._creation import FUNCTIONS as CREATION
from sparsejit.trace._cumulative import FUNCTIONS as CUMULATIVE
from sparsejit.trace._elementwise import elementwise, where
from sparsejit.trace._indexed import Index, Indexed, indexed_operator
from sparsejit.trace._linear_algebra import FUNCTIONS as LINEAR
from sparsejit.trace._linear_algebra import UFUNCS as LINEAR_UFUNCS
from sparsejit.trace._locations import caller
from sparsejit.trace._numpy_arrays import into_numpy_array
from sparsejit.trace._numpy_reductions import REDUCTIONS
from sparsejit.trace._operands import as_array
from sparsejit.trace._part_views import imag, real
from sparsejit.trace._parts import FUNCTIONS as PARTS
from sparsejit.trace._predicates import FUNCTIONS as PREDICATES
from sparsejit.trace._predicates import UFUNCS as PREDICATE_UFUNCS
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._rearranged import FUNCTIONS as REARRANGED
from sparsejit.trace._reductions import BITWISE, reduce_bits
from sparsejit.trace._refusals import refused
from sparsejit.trace._semirings import einsum
from sparsejit.trace._statistics import FUNCTIONS as STATISTICS
from sparsejit.trace._triangles import FUNCTIONS as TRIANGLES
from sparsejit.trace._ufuncs import apply, is_elementwise

__all__ = ["call_function", "call_ufunc"]

_REDUCE = {
    np.add: "sum",
    np.multiply: "prod",
    np.minimum: "min",
    np.maximum: "max",
    np.logical_or: "any",
    np.logical_and: "all",
}


def call_ufunc(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return what a ufunc call on traced arrays gives."""
    out = kwargs.pop("out", None)
    out = None if out is not None and out[0] is None else out
    if method == "reduce" and out is None:
        made = _reduced(trace, ufunc, *inputs, **kwargs)
        if made is not None:
            return made
    if method == "outer" and not kwargs and out is None:
        left, right = (functions.copy(operand) for operand in inputs)
        rank = len(right.extents)
        wide = left[(..., *(None,) * rank)]
        return call_ufunc(trace, ufunc, "__call__", (wide, right), {})
    if method != "__call__":
        name = f"{ufunc.__name__}.{method}"
        raise refused(f"np.{name}", name)
    return _stored(trace, ufunc, _called(trace, ufunc, inputs, kwargs), out, kwargs)


def _reduced(
    trace: Trace, ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, **options: Any
) -> Any:
    """Return ``ufunc.reduce``; None for one that has no such reduction."""
    if ufunc in _REDUCE:
        name = _REDUCE[ufunc]
        if dtype is not None and name not in ("sum", "prod"):
            a = functions.astype(a, dtype)
        elif name in ("sum", "prod"):
            options["dtype"] = dtype
        if name in ("any", "all") and options.pop("initial", None) is not None:
            return None
        return functions.METHODS[name](a, axis=axis, **options)
    keepdims = bool(options.pop("keepdims", False))
    if options or dtype is not None:
        return None
    if ufunc in BITWISE:
        return reduce_bits(trace, ufunc, as_array(trace, a), axis, keepdims)
    if ufunc is np.logical_xor:
        array: Any = as_array(trace, a)
        return reduce_bits(trace, np.bitwise_xor, array != 0, axis, keepdims)
    if ufunc is np.fmax or ufunc is np.fmin:
        name = "nanmax" if ufunc is np.fmax else "nanmin"
        return STATISTICS[name](a, axis, None, keepdims)
    if ufunc is np.logaddexp:
        return _log_sum_exp(as_array(trace, a), axis, keepdims)
    return None


def _log_sum_exp(array: Any, axis: Any, keepdims: bool) -> Any:
    """Return ``np.logaddexp.reduce``: nothing overflows, the largest exponent is taken out."""
    most = array.max(axis, keepdims=True)
    offset = where(np.isfinite(most), most, array.dtype.type(0))
    total = np.log(np.exp(array - offset).sum(axis, keepdims=True)) + offset
    return total if keepdims else functions.squeeze(total, axis)


def _stored(trace: Trace, ufunc: np.ufunc, result: Any, out: Any, kwargs: dict[str, Any]) -> Any:
    """Return the result of a call of a ufunc, stored in ``out`` where that is given."""
    mask = kwargs.get("where", True)
    if out is None:
        if mask is not True:
            raise refused(f"np.{ufunc.__name__} with where= and no out=", "ufunc.where")
        return result
    (target,) = out
    if not isinstance(target, Array):
        raise into_numpy_array(caller())
    if mask is not True:
        PREDICATES["copyto"](target, result, where=mask)
        return target
    assign_value(trace, target, result, None, caller())
    return target


def _called(trace: Trace, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dtype = kwargs.get("dtype")
    given = [key for key in kwargs if key not in ("dtype", "where", "order", "subok")]
    if given and not (given == ["casting"] and kwargs["casting"] == "same_kind"):
        words = ", ".join(f"{key}=" for key in given)
        raise UnsupportedError(
            f"np.{ufunc.__name__} with {words} is not built",
            hint="convert the operands with .astype",
            location=caller(),
        )
    if dtype is not None:
        inputs = _in_loop_of(trace, ufunc, inputs, dtype)
    if ufunc is np.matmul:
        return functions.matmul(*inputs)
    if ufunc is np.divmod:
        return tuple(_called(trace, one, inputs, {}) for one in (np.floor_divide, np.remainder))
    if ufunc.__name__ in _UFUNCS:
        return _UFUNCS[ufunc.__name__](*inputs)
    if not is_elementwise(ufunc):
        module = "np" if hasattr(np, ufunc.__name__) else "scipy.special"
        name = f"{module}.{ufunc.__name__}"
        raise refused(name, ufunc.__name__, "the IR has no scalar operation for it")
    if any(isinstance(operand, Index | Indexed) for operand in inputs):
        return indexed_operator(trace, ufunc, inputs)
    return elementwise(trace, lambda parts: apply(ufunc, parts), inputs)


def _in_loop_of(
    trace: Trace, ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: Any
) -> tuple[Any, ...]:
    """Return the operands in the dtypes of the loop that gives results of ``dtype``."""
    arrays = [as_array(trace, operand) for operand in inputs]
    given = tuple(numpy_dtype(array.element_type) for array in arrays)
    wanted = numpy_dtype(dtype_of_numpy(dtype))
    outs = (None,) * ufunc.nout
    try:
        found = ufunc.resolve_dtypes(
            (*given, *outs), signature=(*(None,) * ufunc.nin, *(wanted,) * ufunc.nout)
        )
    except TypeError as error:
        raise TensorTypeError(f"np.{ufunc.__name__}: {error}", location=caller()) from None
    return tuple(map(functions.astype, arrays, found))


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what a NumPy function gives; ``UnsupportedError`` for one that is not built."""
    known = _FUNCTIONS.get(func)
    if known is None:
        module = func.__module__.replace("numpy", "np", 1)
        name = f"{module}.{func.__name__}"
        raise refused(name, name.removeprefix("np."), "tracing has no rule for this function")
    if not _fits(known, args, kwargs):  # np.dot(a, b, None) spells out that there is no out=
        args = args[: max((n for n, arg in enumerate(args, 1) if arg is not None), default=0)]
        kwargs = {k: arg for k, arg in kwargs.items() if arg is not np._NoValue}
    if not _fits(known, args, kwargs):
        raise UnsupportedError(
            f"np.{func.__name__} with these arguments is not built",
            hint=f"it takes {', '.join(inspect.signature(known).parameters)}",
            location=caller(),
        )
    return known(*args, **kwargs)


def _fits(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether a function takes these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **rest: Any) -> Any:
    dtype = rest.pop("dtype", None)
    if out is not None or rest:
        raise UnsupportedError("np.einsum with out=, order= or casting=", location=caller())
    subscripts, *given = operands
    if not isinstance(subscripts, str):
        subscripts, given = _spelled(operands)
    if dtype is not None:
        given = [functions.astype(operand, dtype) for operand in given]
    return einsum(subscripts, *given)


def _spelled(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Return NumPy's other spelling, ``A, [0, 1], x, [1], [0]``, as a string and operands."""

    def letters(numbers: Any) -> str:
        if not isinstance(numbers, list | tuple):
            raise TensorValueError(
                "einsum without a string takes operands and lists of labels in turn",
                hint='write einsum("ij,j->i", A, x)',
                location=caller(),
            )
        return "".join("..." if n is Ellipsis else ascii_letters[n] for n in numbers)

    count = len(operands) // 2
    text = ",".join(letters(operands[2 * k + 1]) for k in range(count))
    if len(operands) % 2:
        text += "->" + letters(operands[-1])
    return text, [operands[2 * k] for k in range(count)]


def _where(condition: Any, *sides: Any) -> Any:
    if len(sides) != 2:
        raise UnsupportedError(
            "np.where with one argument is not built",
            hint="use sj.select, which keeps the entries for which a condition holds",
            location=caller(),
            reasons=("the size of its result is known only at run time",),
        )
    return where(condition, *sides)


def _named(name: str) -> Any:
    """Return the function of NumPy with a dotted name; None in a version that lacks it."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


_OWN: dict[str, Callable[..., Any]] = {
    **REDUCTIONS,
    "amax": REDUCTIONS["max"],
    "amin": REDUCTIONS["min"],
    "argmax": functions.METHODS["argmax"],
    "argmin": functions.METHODS["argmin"],
    "around": PREDICATES["round"],
    "broadcast_to": functions.broadcast_to,
    "clip": functions.clip,
    "copy": functions.copy,
    "diagonal": functions.diagonal,
    "dot": functions.dot,
    "einsum": _einsum,
    "empty_like": functions.zeros_like,
    "expand_dims": functions.expand_dims,
    "full_like": functions.full_like,
    "imag": imag,
    "inner": functions.inner,
    "may_share_memory": lambda a, b, max_work=None: a is b,
    "moveaxis": functions.moveaxis,
    "ndim": lambda a: a.ndim,
    "ones_like": functions.ones_like,
    "real": real,
    "shape": lambda a: a.shape,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "squeeze": functions.squeeze,
    "swapaxes": functions.swapaxes,
    "tensordot": functions.tensordot,
    "trace": functions.trace_of,
    "transpose": functions.transpose,
    "where": _where,
    "zeros_like": functions.zeros_like,
}

_BY_NAME = {**_OWN, **ARRANGING, **CREATION, **CUMULATIVE, **LINEAR, **PARTS}
_BY_NAME |= {**PREDICATES, **REARRANGED, **STATISTICS, **TRIANGLES}

_FUNCTIONS = {_named(name): function for name, function in _BY_NAME.items() if _named(name)}
_UFUNCS = {**LINEAR_UFUNCS, **PREDICATE_UFUNCS}
_ = _arg_reductions, _scipy_methods  # they add methods
