"""Arrays that no memory holds: which array of a program is too large, and where it was asked for.

In: a program and the extents of a call that ran out of memory. Out: an error that names the
largest array of the program, with the place in the user's function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from sparsejit.affine import evaluate
from sparsejit.errors import Location, OutOfMemoryError
from sparsejit.formats import LevelKind
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.walk import all_ops, results_of

__all__ = ["TOO_LARGE", "out_of_memory"]

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
    kind = "a dense array" if value.type.is_dense else f"an array in the format {value.type.format}"
    return OutOfMemoryError(
        f"{kind} of shape {shape} and type {value.type.dtype.value} takes {_text(size)}, "
        "more memory than there is",
        hint="ask for a sparse result with output=, or keep what is computed sparse",
        location=place,
    )


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
