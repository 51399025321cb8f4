"""Array functions and methods, with NumPy's meaning and arguments.

In: traced arrays and what combines with them. Out: traced arrays. Rearrangements of dense arrays
are views; everything else is a new array that is computed when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsejit.affine import AffineExpr, Constant
from sparsejit.errors import TensorTypeError, TensorValueError, UnsupportedError
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._einsum import contract
from sparsejit.trace._elementwise import elementwise, on_arrays
from sparsejit.trace._extents import difference
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, shape_text
from sparsejit.trace._operands import broadcast_to as spread
from sparsejit.trace._part_views import has_bits, itself, viewed_as
from sparsejit.trace._pointwise import cast
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._reductions import checked_axes
from sparsejit.trace._refusals import refused
from sparsejit.trace._sealed import READ_ONLY
from sparsejit.trace._subscripts import Subscripts, matmul_subscripts
from sparsejit.trace._symbolic import as_extent
from sparsejit.trace._ufuncs import apply
from sparsejit.trace._views import Picked, View, pick


def _array(what: str, obj: Any) -> tuple[Trace, Array]:
    trace = require_trace(what)
    return trace, as_array(trace, obj)


def _factor(trace: Trace, obj: Any) -> Array:
    """Return an operand of a product: NumPy makes arrays of Python's scalars before."""
    array = as_array(trace, obj)
    if array.extents:
        return array
    return trace.pointwise(replace(array.read(), weak=False), ())


# ---------------------------------------------------------------- products


def _letters(count: int, start: int = 0) -> tuple[str, ...]:
    return tuple(f"x{n}" for n in range(start, start + count))


def matmul(a: Any, b: Any) -> Any:
    """``a @ b``: vectors, matrices and batches of them."""
    trace, left = _array("matmul", a)
    right = as_array(trace, b)
    ranks = len(left.extents), len(right.extents)
    if 0 in ranks:
        raise TensorValueError(
            "matmul: an operand has rank 0", hint="use * to scale", location=caller()
        )
    inner = left.extents[-1], right.extents[-2 if ranks[1] > 1 else -1]
    if not trace.extents.unify(*inner):
        shapes = f"{shape_text(trace, left.extents)} and {shape_text(trace, right.extents)}"
        raise TensorValueError(
            f"matmul: the inner extents of shapes {shapes} differ",
            hint="the last axis of the left operand meets the last but one of the right one",
            location=caller(),
        )
    return contract(trace, (left, right), matmul_subscripts(*ranks))


def dot(a: Any, b: Any) -> Any:
    """``np.dot``: the last axis of ``a`` with the second to last of ``b``."""
    trace = require_trace("dot")
    left, right = _factor(trace, a), _factor(trace, b)
    if not left.extents or not right.extents:
        return elementwise(trace, lambda parts: apply(np.multiply, parts), (left, right))
    axis = max(len(right.extents) - 2, 0)
    return tensordot(left, right, axes=((len(left.extents) - 1,), (axis,)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """``np.tensordot``: sums over pairs of axes (or the last and first ``axes`` ones)."""
    trace = require_trace("tensordot")
    left, right = _factor(trace, a), _factor(trace, b)
    ranks = len(left.extents), len(right.extents)
    if isinstance(axes, int):
        firsts: Any = tuple(range(ranks[0] - axes, ranks[0]))
        seconds: Any = tuple(range(axes))
    else:
        firsts, seconds = axes
    firsts = firsts if isinstance(firsts, tuple | list) else (firsts,)
    seconds = seconds if isinstance(seconds, tuple | list) else (seconds,)
    pairs = [
        (checked_axes(f, ranks[0])[0], checked_axes(s, ranks[1])[0])
        for f, s in zip(firsts, seconds, strict=True)
    ]
    one, two = list(_letters(ranks[0])), list(_letters(ranks[1], ranks[0]))
    for first, second in pairs:
        if not trace.extents.unify(left.extents[first], right.extents[second]):
            raise TensorValueError("shape-mismatch for sum in tensordot", location=caller())
        two[second] = one[first]
    gone = {one[first] for first, _ in pairs}
    result = tuple(c for c in (*one, *two) if c not in gone)
    return contract(trace, (left, right), Subscripts((tuple(one), tuple(two)), result, "tensordot"))


def outer(a: Any, b: Any) -> Any:
    """``np.linalg.outer``: the products of all pairs of elements of two vectors."""
    trace, left = _array("outer", a)
    pair = (left, as_array(trace, b))
    for array in pair:
        if len(array.extents) != 1:
            raise TensorValueError(
                "Input arrays must be one-dimensional, but they are of rank "
                f"{len(pair[0].extents)} and {len(pair[1].extents)}",
                location=caller(),
            )
    return contract(trace, pair, Subscripts((("i",), ("j",)), ("i", "j"), "outer"))


def inner(a: Any, b: Any) -> Any:
    """``np.inner``: sums over the last axes."""
    trace = require_trace("inner")
    left, right = _factor(trace, a), _factor(trace, b)
    if not left.extents or not right.extents:
        return dot(left, right)
    return tensordot(left, right, axes=((len(left.extents) - 1,), (len(right.extents) - 1,)))


# ---------------------------------------------------------------- rearrangement


def transpose(a: Any, axes: Any = None) -> Any:
    """``np.transpose``: a view where the array is dense."""
    _, array = _array("transpose", a)
    rank = len(array.extents)
    order = tuple(reversed(range(rank)))
    if axes is not None:
        order = tuple(checked_axes(axis, rank)[0] for axis in axes)
        if sorted(order) != list(range(rank)):
            raise TensorValueError("axes don't match array", location=caller())
    return array.viewed(array.present_view.permuted(order))


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """``np.swapaxes``."""
    _, array = _array("swapaxes", a)
    rank = len(array.extents)
    first, second = checked_axes(axis1, rank)[0], checked_axes(axis2, rank)[0]
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]
    return array.viewed(array.present_view.permuted(order))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """``np.moveaxis``."""
    _, array = _array("moveaxis", a)
    rank = len(array.extents)
    many = isinstance(source, tuple | list)
    sources = [checked_axes(s, rank)[0] for s in (source if many else (source,))]
    places = [checked_axes(d, rank)[0] for d in (destination if many else (destination,))]
    order = [d for d in range(rank) if d not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return array.viewed(array.present_view.permuted(order))


def expand_dims(a: Any, axis: Any) -> Any:
    """``np.expand_dims``: new axes of extent 1."""
    _, array = _array("expand_dims", a)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    view = array.present_view
    for place in checked_axes(axis, len(array.extents) + count):
        view = view.expanded(place)
    return array.viewed(view)


def squeeze(a: Any, axis: Any = None) -> Any:
    """``np.squeeze``: without axes of extent 1."""
    trace, array = _array("squeeze", a)
    extents = array.extents
    ones = tuple(d for d, extent in enumerate(extents) if trace.extents.is_one(extent))
    axes = ones if axis is None else checked_axes(axis, len(extents))
    if not set(axes) <= set(ones):
        raise TensorValueError(
            "cannot select an axis to squeeze out which has size not equal to one",
            location=caller(),
        )
    return array.viewed(array.present_view.without(axes))


def checked_shape(trace: Trace, shape: Any) -> tuple[AffineExpr, ...]:
    """Return a shape of integers and extents as expressions; ``TensorTypeError`` for others."""
    given = shape if isinstance(shape, tuple | list) else (shape,)
    made = [as_extent(int(e) if isinstance(e, np.integer) else e) for e in given]
    found = tuple(extent for extent in made if extent is not None)
    if len(found) != len(made) or any(trace.extents.number(e) < 0 for e in found):
        raise TensorTypeError(
            f"a shape has integers and extents such as A.shape[0], not {shape!r}", location=caller()
        )
    return found


def broadcast_to(array: Any, shape: Any) -> Any:
    """``np.broadcast_to``: cannot be assigned where it is dense."""
    trace, source = _array("broadcast_to", array)
    wanted = checked_shape(trace, shape)
    made = trace.pointwise(spread(trace, source, wanted), wanted)
    made._cell.sealed = READ_ONLY
    return made


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """``np.diagonal``: a view that cannot be assigned where the array is dense."""
    trace, array = _array("diagonal", a)
    rank = len(array.extents)
    if rank < 2:
        raise TensorValueError(
            "diag requires an array of at least two dimensions", location=caller()
        )
    first, second = checked_axes(axis1, rank)[0], checked_axes(axis2, rank)[0]
    view = array.present_view
    if not view.axes[first] or not view.axes[second]:
        raise UnsupportedError("the diagonal of a new axis is not built", location=caller())
    shift = second if offset > 0 else first
    if offset:
        view = _cut(
            trace, view, shift, pick(trace.extents, view.shape[shift], Constant(abs(offset)))
        )
    rows, columns = view.shape[first], view.shape[second]
    shorter = rows
    if not trace.extents.unify(rows, columns):  # a square matrix is taken for one in later calls
        shorter = rows if trace.extents.holds(difference(columns, rows)) else columns
    for axis in (first, second):
        view = _cut(trace, view, axis, Picked(Constant(0), trace.extents.resolve(shorter)))
    return array.viewed(view.diagonal(first, second))


def _cut(trace: Trace, view: View, axis: int, part: Picked) -> View:
    extent = view.shape[axis]
    is_whole = part.offset == Constant(0) and trace.extents.same(part.size, extent)
    return view if is_whole else view.sliced(axis, part)


def trace_of(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """``np.trace``: the sum of a diagonal."""
    return METHODS["sum"](diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


# ---------------------------------------------------------------- elementwise


def _elementwise(what: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
        trace = require_trace(what)
        return elementwise(trace, lambda parts: apply(ufunc, parts), operands)

    function.__name__ = what
    return function


conj = _elementwise("conj", np.conjugate)


def _conj_method(a: Any) -> Any:
    """``ndarray.conj``: the array itself where its numbers are real."""
    _, array = _array("conj", a)
    return conj(a) if array.element_type.is_complex else itself(array)


def astype(a: Any, dtype: Any, **options: Any) -> Any:
    """``ndarray.astype``: a new array, unless ``copy=False`` and it is a dense one of that type."""
    wanted = dtype_of_numpy(dtype)
    trace, array = _array("astype", a)
    if options.get("copy") is False and array.element_type is wanted:
        return itself(array)
    return elementwise(trace, lambda parts: cast(parts[0], wanted), (a,))


def view(a: Any, dtype: Any = None) -> Any:
    """``ndarray.view`` as another type of as many bits: integers and floats."""
    _, array = _array("view", a)
    own = array.element_type
    wanted = own if dtype is None else dtype_of_numpy(dtype)
    if wanted is not own and has_bits(own, wanted):
        return viewed_as(array, wanted)
    if wanted is not own:
        raise refused(f"view of {own.value} as {wanted.value}", "view")
    return array.viewed(array.present_view)


def copy(a: Any, **options: Any) -> Any:
    """A new array with the present content."""
    return elementwise(require_trace("copy"), lambda parts: parts[0], (a,))


def clip(a: Any, a_min: Any = None, a_max: Any = None, **options: Any) -> Any:
    """``np.clip``: the maximum with ``a_min``, then the minimum with ``a_max``."""
    lower, upper = options.pop("min", a_min), options.pop("max", a_max)
    if options:
        raise UnsupportedError(f"clip with {', '.join(options)}= is not built", location=caller())
    made = copy(a)
    if lower is not None:
        made = _elementwise("clip", np.maximum)(made, lower)
    if upper is not None:
        made = _elementwise("clip", np.minimum)(made, upper)
    return made


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    *,
    shape: Any = None,
    device: Any = None,
) -> Any:
    """``np.full_like``: a dense array of one value; ``order`` and ``subok`` change nothing."""
    trace, array = _array("full_like", a)
    wanted = array.element_type if dtype is None else dtype_of_numpy(dtype)
    extents = array.extents if shape is None else checked_shape(trace, shape)
    return constant_array(trace, fill_value, wanted, extents)


def constant_array(trace: Trace, value: Any, dtype: DType, shape: tuple[AffineExpr, ...]) -> Any:
    """Return a dense array of one value, or of what broadcasts to ``shape``."""
    made = on_arrays(trace, lambda parts: cast(parts[0], dtype), (value,))
    return trace.pointwise(spread(trace, made, shape), shape)


def zeros_like(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """``np.zeros_like``, dense."""
    return full_like(a, 0, dtype, *args, **options)


def ones_like(a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """``np.ones_like``, dense."""
    return full_like(a, 1, dtype, *args, **options)


METHODS: dict[str, Callable[..., Any]] = {
    "astype": astype,
    "clip": clip,
    "conj": _conj_method,
    "conjugate": _conj_method,
    "copy": copy,
    "diagonal": diagonal,
    "dot": dot,
    "multiply": _elementwise("multiply", np.multiply),
    "squeeze": squeeze,
    "swapaxes": swapaxes,
    "trace": trace_of,
    "view": view,
    "transpose": lambda a, *axes: transpose(
        a, None if not axes or axes == (None,) else (axes[0] if len(axes) == 1 else axes)
    ),
}
"""The methods of traced arrays; other modules add theirs."""
