"""Arrays that no memory holds: which array of a program is too large, and where it was asked for.

In: a program and the extents of a call that ran out of memory, or would do so after some work.
Out: an error that names the largest array of the program, with the place in the user's function,
and the argument whose extent it has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from math import prod

from sparsejit.affine import Dim, dims_of, evaluate
from sparsejit.errors import Location, OutOfMemoryError
from sparsejit.formats import LevelKind
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loop_uses import is_pure, variables
from sparsejit.ir.loops import Alloc, LoopFunc, Var
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import INDEX
from sparsejit.ir.walk import all_ops, results_of

__all__ = ["TOO_LARGE", "may_be_too_large", "out_of_memory", "refuse_too_large"]

TOO_LARGE = ("array is too big", "Maximum allowed", "maximum supported dimension")
"""How NumPy's ``ValueError`` for an array beyond its limits begins."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


def out_of_memory(func: TensorFunc, numbers: Sequence[int], error: Exception) -> OutOfMemoryError:
    """Return the error for a call with these extents that could not allocate its arrays."""
    sizes = [(_size(value, numbers), value, place) for value, place in _values(func)]
    size, value, place = max(sizes, key=lambda found: found[0], default=(0, None, None))
    if value is None or size < 1 << 20:  # no value of the program; a workspace may be
        return OutOfMemoryError(
            f"the call ran out of memory ({error})",
            hint="ask for a sparse result with output=, or work on parts of the operands",
        )
    shape = tuple(evaluate(extent, numbers) for extent in value.type.shape)
    kind, hint = "a dense array", "ask for a sparse result with output=, or keep it sparse"
    if not value.type.is_dense:
        kind = f"an array in the format {value.type.format}"
        hint = "ask with output= for a format without dense levels, for example DCSR or COO"
    return OutOfMemoryError(
        f"{kind} of shape {shape} and type {value.type.dtype.value} takes {_text(size)}, "
        f"more memory than there is{_whose(func, value, shape)}",
        hint=hint,
        location=place,
    )


def _whose(func: TensorFunc, value: Value, shape: Sequence[int]) -> str:
    """Return which argument has the largest extent of a value, if one does."""
    longest = max(shape, default=0)
    symbols = dims_of(value.type.shape[shape.index(longest)]) if shape else frozenset()
    for param in func.params:
        for axis, extent in enumerate(param.type.shape):
            if isinstance(extent, Dim) and extent.index in symbols:
                return f"; its extent comes from axis {axis} of argument {param.name!r}"
    return ""


def may_be_too_large(numbers: Sequence[int]) -> bool:
    """Whether an array of one of these extents, the longest, may take all the memory there is."""
    return max(numbers, default=0) > _memory() // 16


def refuse_too_large(func: TensorFunc, loops: LoopFunc, numbers: Sequence[int]) -> None:
    """Raise ``OutOfMemoryError`` before any work where an array to be made exceeds the memory.

    These are arrays that are made on every path, of extents that are known before.
    """
    from sparsejit.runtime.host_values import HostValues

    symbols = [param for param in loops.params if isinstance(param, Var)][: len(numbers)]
    values = HostValues(lambda name, axis: 0)
    for symbol, number in zip(symbols, numbers, strict=True):
        values.give(symbol, Const(number, INDEX))
    known = {symbol.name for symbol in symbols}
    for stmt in loops.body:
        if not isinstance(stmt, Alloc) or not all(
            is_pure(extent) and known.issuperset(variables(extent)) for extent in stmt.extents
        ):
            continue
        count = prod(max(values.index(extent), 0) for extent in stmt.extents)
        size = count * numpy_dtype(stmt.memref.dtype).itemsize
        if size > _memory():
            raise out_of_memory(func, numbers, MemoryError(f"an array takes {_text(size)}"))


@cache
def _memory() -> int:
    """Return the bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return 1 << 62


def _values(func: TensorFunc) -> Iterator[tuple[Value, Location | None]]:
    for op in all_ops(func.ops):
        for value in results_of(op):
            yield value, op.location


def _size(value: Value, numbers: Sequence[int]) -> int:
    """Return the bytes of what a value stores whatever its entries are: its outer dense levels."""
    kind = value.type
    shape = [evaluate(extent, numbers) for extent in kind.shape]
    item = numpy_dtype(kind.dtype).itemsize
    if kind.is_dense:
        return prod(shape) * item
    slots = 1
    for level in kind.format.levels:
        if level.type.kind not in (LevelKind.DENSE, LevelKind.BATCH):
            break
        slots *= max(evaluate(level.expr, shape), 1)
    return slots * item


def _text(size: int) -> str:
    unit = 0
    number = float(size)
    while number >= 1024 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    return f"{number:.3g} {_UNITS[unit]}"
