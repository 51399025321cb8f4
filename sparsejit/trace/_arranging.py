"""Functions that put arrays together or arrange their elements anew.

In: traced arrays, with NumPy's arguments for ``concatenate``, ``stack`` and ``pad``. Out: traced
arrays. Parts of a dense result are computed where they belong; entries of sparse arrays move, and
what is not stored is never visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim, add
from sparsejit.errors import Location, TensorValueError, UnsupportedError
from sparsejit.formats import COO, CSC, CSR, DIA, Dense, Format
from sparsejit.ir.fold import zero_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Concat, ExtractSlice, InsertSlice, Pad, Value
from sparsejit.ir.types import DType, TensorType
from sparsejit.trace._array import Array
from sparsejit.trace._computation import without_batches
from sparsejit.trace._context import Deferred, Trace, require_trace
from sparsejit.trace._emit import elementwise_into, fill_with
from sparsejit.trace._extents import tidy
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array, shape_text
from sparsejit.trace._pointwise import Pointwise, cast, constant_of, of_value, substituted
from sparsejit.trace._promotion import dtype_of_numpy, result_dtype
from sparsejit.trace._reductions import checked_axes
from sparsejit.trace._reshaped import given_extent, ravel, reshape, reshape_value
from sparsejit.trace._result_formats import result_layout
from sparsejit.trace._slices import coordinate_format

__all__ = ["FUNCTIONS", "concatenate", "hstack", "pad", "stack", "vstack"]

_SCIPY = (CSR, CSC, COO(2), DIA)


# ---------------------------------------------------------------- parts of a result


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a result: its elements over its own dimensions, and how it is stored."""

    content: Pointwise
    shape: tuple[AffineExpr, ...]

    @property
    def format(self) -> Format:
        """The format that the part has, or would have as a tensor of its own."""
        view, rank = self.content.view, len(self.shape)
        if view is not None and view.index == tuple(Dim(d) for d in range(rank)):
            return view.value.type.format.with_widths(0, 0)
        return result_layout(self.content, range(rank)).format

    def value(self, trace: Trace) -> Value:
        """Return the part as a value."""
        return trace.pointwise(self.content, self.shape).force()


def _parts(trace: Trace, arrays: Any) -> list[_Part]:
    """Return the present contents of arrays, in their common dtype."""
    found = [as_array(trace, array) for array in arrays]
    contents = [replace(array.read(), weak=False) for array in found]  # NumPy makes arrays first
    dtype = result_dtype(contents)
    return [
        _Part(cast(content, dtype), array.extents)
        for content, array in zip(contents, found, strict=True)
    ]


def _placed(
    trace: Trace,
    parts: Sequence[tuple[_Part, Sequence[AffineExpr]]],
    shape: tuple[AffineExpr, ...],
    background: Const | None,
    location: Location | None,
) -> Value:
    """Return a new dense value of which each part is computed at its offsets."""
    dtype = parts[0][0].content.dtype
    rank = len(shape)
    at = tuple(Dim(d) for d in range(rank))
    dest = trace.empty(TensorType(shape, dtype, Dense(rank), zero_of(dtype)), location)
    if background is not None:
        dest = fill_with(trace, background, dict(enumerate(shape)), dest, at, location)
    ones = (1,) * rank
    for part, offsets in parts:
        kind = TensorType(part.shape, dtype, Dense(rank), zero_of(dtype))
        place, whole = trace.value(kind), trace.value(dest.type)
        begin = tuple(offsets)
        trace.ops.append(ExtractSlice(place, dest, begin, part.shape, ones, (), location))
        extents = dict(enumerate(part.shape))
        made = elementwise_into(trace, part.content, extents, place, at, location)
        trace.ops.append(InsertSlice(whole, made, dest, begin, part.shape, ones, (), location))
        dest = whole
    return dest


def _common_fill(parts: Sequence[Value], dtype: DType, location: Location | None) -> Const:
    """Return the fill value of sparse parts."""
    fills = [value.type.fill for value in parts if not value.type.is_dense]
    for one, other in pairwise(fills):
        if one != other:
            raise UnsupportedError(
                f"putting together sparse arrays with the fill values {one.value!r} and "
                f"{other.value!r}",
                hint="give them one fill value, or ask for a dense result with output=",
                location=location,
                reasons=("a sparse array has one fill value",),
            )
    return fills[0] if fills else zero_of(dtype)


def _common_format(formats: Sequence[Format], rank: int) -> Format:
    """Return the format of sparse parts put together: theirs, if it is one and has room."""
    slotted = any(level.type.size for fmt in formats for level in fmt.levels)
    formats = [without_batches(fmt) for fmt in formats]
    if all(fmt == formats[0] for fmt in formats) and not slotted:
        return formats[0]
    blocks = [fmt for fmt in formats if fmt.num_levels == 4]
    if rank == 2 and all(fmt in _SCIPY or fmt in blocks for fmt in formats):
        return CSR
    return CSR if rank == 2 and slotted else coordinate_format(rank)


def _joined(
    trace: Trace,
    parts: Sequence[_Part],
    axis: int,
    shape: tuple[AffineExpr, ...],
    location: Location | None,
) -> Array:
    """Return the parts one after the other along ``axis``."""
    formats = [part.format for part in parts]
    inferred = (
        Dense(len(shape))
        if any(fmt.is_dense for fmt in formats)
        else _common_format(formats, len(shape))
    )
    dtype = parts[0].content.dtype

    def emit(format: Format | None) -> Value:
        wanted = format or inferred
        if wanted.is_dense:
            return _placed(trace, _in_a_row(parts, axis), shape, None, location)
        values = tuple(part.value(trace) for part in parts)
        fill = _common_fill(values, dtype, location)
        result = trace.value(TensorType(shape, dtype, wanted, fill))
        trace.ops.append(Concat(result, values, axis, location))
        return result

    return trace.pointwise(Deferred(emit, dtype), shape)


def _in_a_row(parts: Sequence[_Part], axis: int) -> list[tuple[_Part, tuple[AffineExpr, ...]]]:
    placed: list[tuple[_Part, tuple[AffineExpr, ...]]] = []
    start: AffineExpr = Constant(0)
    for part in parts:
        rank = len(part.shape)
        placed.append((part, tuple(start if d == axis else Constant(0) for d in range(rank))))
        start = tidy(add(start, part.shape[axis]))
    return placed


# ---------------------------------------------------------------- concatenate and stack


def concatenate(arrays: Any, /, axis: Any = 0, dtype: Any = None, **options: Any) -> Any:
    """``np.concatenate``: arrays one after the other along an axis that they have.

    Dense where one of them is; sparse arrays give a sparse one, in their format where they share
    it. Raises ``TensorTypeError`` where the other extents differ.
    """
    trace, location = require_trace("concatenate"), caller()
    _refuse_options("concatenate", options, location)
    if axis is None:
        arrays, axis = [ravel(array) for array in arrays], 0
    parts = _checked(trace, arrays, dtype, location)
    rank = len(parts[0].shape)
    if rank == 0:
        raise TensorValueError("zero-dimensional arrays cannot be concatenated", location=location)
    place = checked_axes(axis, rank)[0]
    _unify(trace, parts, place, location)
    total: AffineExpr = Constant(0)
    for part in parts:
        total = add(total, part.shape[place])
    first = parts[0].shape
    shape = (*first[:place], tidy(total), *first[place + 1 :])
    return _joined(trace, parts, place, shape, location)


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None, **options: Any) -> Any:
    """``np.stack``: arrays of one shape along a new axis."""
    trace, location = require_trace("stack"), caller()
    _refuse_options("stack", options, location)
    parts = _checked(trace, arrays, dtype, location)
    _unify(trace, parts, None, location)
    shape = parts[0].shape
    place = checked_axes(axis, len(shape) + 1)[0]
    wide = [_with_axis(trace, part, place, location) for part in parts]
    whole = (*shape[:place], Constant(len(parts)), *shape[place:])
    return _joined(trace, wide, place, whole, location)


def _refuse_options(what: str, options: dict[str, Any], location: Location | None) -> None:
    if options.pop("out", None) is not None or options.pop("casting", "same_kind") != "same_kind":
        raise UnsupportedError(f"{what} with out= or casting= is not built", location=location)
    if options:
        raise TypeError(f"{what}() got an unexpected keyword argument {next(iter(options))!r}")


def _checked(trace: Trace, arrays: Any, dtype: Any, location: Location | None) -> list[_Part]:
    given = list(arrays) if isinstance(arrays, tuple | list) else [*arrays]
    if not given:
        raise TensorValueError("need at least one array to concatenate", location=location)
    parts = _parts(trace, given)
    if dtype is not None:
        wanted = dtype_of_numpy(dtype)
        parts = [_Part(cast(part.content, wanted), part.shape) for part in parts]
    return parts


def _unify(
    trace: Trace, parts: Sequence[_Part], axis: int | None, location: Location | None
) -> None:
    """Make the extents of all parts one, but those along ``axis``."""
    first = parts[0].shape
    for part in parts[1:]:
        same = len(part.shape) == len(first) and all(
            d == axis or trace.extents.unify(one, other)
            for d, (one, other) in enumerate(zip(first, part.shape, strict=True))
        )
        if not same:
            shapes = " and ".join(shape_text(trace, shape) for shape in (first, part.shape))
            what = (
                "all input arrays must have the same shape"
                if axis is None
                else "all the input array dimensions except for the concatenation axis must match"
            )
            raise TensorValueError(f"{what}: {shapes}", location=location)


def _with_axis(trace: Trace, part: _Part, axis: int, location: Location | None) -> _Part:
    """Return a part with a new dimension of extent 1."""
    shape = (*part.shape[:axis], Constant(1), *part.shape[axis:])
    if not part.format.is_dense:
        rank = len(shape)
        value = reshape_value(trace, part.value(trace), shape, coordinate_format(rank), location)
        return _Part(of_value(value), shape)
    moved: dict[int, AffineExpr] = {d: Dim(d + 1) for d in range(axis, len(part.shape))}
    return _Part(substituted(part.content, moved), shape)


def vstack(tup: Any, *, dtype: Any = None, **options: Any) -> Any:
    """``np.vstack``: one below the other; a vector is a row."""
    trace = require_trace("vstack")
    arrays = [as_array(trace, array) for array in tup]
    rows = [reshape(array, 1, -1) if len(array.extents) < 2 else array for array in arrays]
    return concatenate(rows, axis=0, dtype=dtype, **options)


def hstack(tup: Any, *, dtype: Any = None, **options: Any) -> Any:
    """``np.hstack``: one beside the other; vectors make a longer one."""
    trace = require_trace("hstack")
    arrays = [as_array(trace, array) for array in tup]
    flat = [ravel(array) if not array.extents else array for array in arrays]
    axis = 0 if all(len(array.extents) == 1 for array in flat) else 1
    return concatenate(flat, axis=axis, dtype=dtype, **options)


# ---------------------------------------------------------------- pad


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """``np.pad`` with a constant: elements before and after those of each dimension.

    A sparse array is padded with its fill value. Raises ``UnsupportedError`` for other modes, and
    for another value around a sparse array unless the result is asked for as a dense one.
    """
    trace, location = require_trace("pad"), caller()
    source = as_array(trace, array)
    value = options.pop("constant_values", 0)
    if mode != "constant" or options:
        raise UnsupportedError(
            f"pad with mode {mode!r} is not built",
            hint="use mode='constant' with constant_values=",
            location=location,
        )
    widths = _widths(trace, pad_width, len(source.extents), location)
    part = _Part(cast(source.read(), source.element_type), source.extents)
    const = _padding(value, part.content.dtype, location)
    low = tuple(before for before, _ in widths)
    high = tuple(after for _, after in widths)
    shape = tuple(
        tidy(add(add(before, extent), after))
        for (before, after), extent in zip(widths, part.shape, strict=True)
    )

    def emit(format: Format | None) -> Value:
        if (format or part.format).is_dense:
            return _placed(trace, [(part, low)], shape, const, location)
        value = part.value(trace)
        if not _same(value.type.fill, const):
            raise UnsupportedError(
                f"padding a sparse array with {const.value!r}, which is not its fill value",
                hint="pad with the fill value, or ask for a dense result with output=",
                location=location,
                reasons=("the new elements would all be stored",),
            )
        wanted = format or _common_format([part.format], len(shape))
        result = trace.value(replace(value.type, shape=shape, format=wanted))
        trace.ops.append(Pad(result, value, low, high, value.type.fill, location))
        return result

    return trace.pointwise(Deferred(emit, const.dtype), shape)


def _same(one: Const, other: Const) -> bool:
    return one.value == other.value or (one.value != one.value and other.value != other.value)


def _padding(value: Any, dtype: DType, location: Location | None) -> Const:
    if not isinstance(value, bool | int | float | complex | np.generic):
        raise UnsupportedError(
            "pad with constant_values= that is not one number known while tracing",
            location=location,
        )
    const = constant_of(value, dtype).const
    assert const is not None
    return const


def _widths(
    trace: Trace, given: Any, rank: int, location: Location | None
) -> list[tuple[AffineExpr, AffineExpr]]:
    """Return the widths before and after each dimension, spread as NumPy does."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, tuple | list):
        rows: list[tuple[Any, ...]] = [(given,)] * rank
    elif all(isinstance(item, tuple | list) for item in given):
        rows = [tuple(item) for item in given]
        rows = rows * rank if len(rows) == 1 else rows
    else:
        rows = [tuple(given)] * rank
    pairs = [row * 2 if len(row) == 1 else row for row in rows]
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise TensorValueError(
            f"pad_width {given!r} does not fit an array of rank {rank}", location=location
        )
    widths = [tuple(given_extent(trace, width, "pad_width") for width in pair) for pair in pairs]
    for before, after in widths:
        if not (trace.extents.holds(before) and trace.extents.holds(after)):
            raise TensorValueError("pad_width is not negative", location=location)
    return [(before, after) for before, after in widths]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "concatenate": concatenate,
    "hstack": hstack,
    "pad": pad,
    "ravel": ravel,
    "reshape": lambda a, shape, order="C", **options: reshape(a, shape, order=order, **options),
    "stack": stack,
    "vstack": vstack,
}
"""NumPy's functions that are built here, by name."""
