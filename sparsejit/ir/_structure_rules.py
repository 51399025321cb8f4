"""Rules of the tensor IR about loops, branches, and tensors that are put together or reshaped.

In: a function whose values are defined and typed. Out: sentences about what does not fit. Extents
that are different expressions may have one value: only what can never fit is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sparsejit.affine import AffineExpr, Constant, add, as_linear, mul
from sparsejit.ir.tensor import Concat, For, If, Op, Pad, Reshape, TensorFunc, Value, While
from sparsejit.ir.types import DType, TensorType
from sparsejit.ir.walk import all_ops, results_of

__all__ = [
    "alike",
    "branches_yield_the_results",
    "conditions_are_truth_values",
    "loops_carry_what_they_take",
    "padding_fits",
    "parts_fit_together",
    "reshapes_keep_the_elements",
    "where",
]


def where(op: Op) -> str:
    """Return how a message calls an operation: by its results."""
    return ", ".join(f"%{value.name}" for value in results_of(op)) or "a loop"


def alike(one: TensorType, other: TensorType) -> bool:
    """Equal but for the expressions in the shape, whose values may agree all the same."""
    return (one.rank, one.dtype, one.format, one.fill) == (
        other.rank,
        other.dtype,
        other.format,
        other.fill,
    )


def loops_carry_what_they_take(func: TensorFunc) -> Iterator[str]:
    """A loop's results, arguments and inits agree in type; what it yields may differ in shape."""
    for op in all_ops(func.ops):
        if not isinstance(op, For | While):
            continue
        args = (op.args,) if isinstance(op, For) else (op.args, op.body_args)
        if len({len(values) for values in (op.results, op.inits, *args, op.yields)}) > 1:
            yield f"{where(op)} carries a different number of values in, inside and out"
            continue
        for carried in zip(op.inits, *args, op.results, strict=True):
            if len({value.type for value in carried}) > 1:
                names = [f"%{value.name}" for value in carried]
                yield f"{where(op)}: {', '.join(names[:-1])} and {names[-1]} differ in type"
        for arg, yielded in zip(op.args, op.yields, strict=True):
            if not alike(yielded.type, arg.type):
                yield f"{where(op)}: %{yielded.name} cannot become %{arg.name}"


def conditions_are_truth_values(func: TensorFunc) -> Iterator[str]:
    """A condition is a dense tensor of bool and of rank 0."""
    for op in all_ops(func.ops):
        if isinstance(op, While | If):
            kind = op.condition.type
            if kind.rank or kind.dtype is not DType.BOOL or not kind.is_dense:
                yield f"{where(op)}: %{op.condition.name} is no truth value"


def branches_yield_the_results(func: TensorFunc) -> Iterator[str]:
    """Both branches yield as many values as there are results, of their types but for the shape."""
    for op in all_ops(func.ops):
        if not isinstance(op, If):
            continue
        if len({len(op.results), len(op.then_yields), len(op.else_yields)}) > 1:
            yield f"{where(op)}: the branches yield a different number of values"
            continue
        for result, *yields in zip(op.results, op.then_yields, op.else_yields, strict=True):
            for value in yields:
                if not alike(value.type, result.type):
                    yield f"{where(op)}: %{value.name} cannot become %{result.name}"


def _differ(one: AffineExpr, other: AffineExpr) -> bool:
    """Whether two extents differ whatever their symbols are."""
    rest = as_linear(add(one, mul(Constant(-1), other)))
    return rest is not None and not rest[0] and rest[1] != 0


def _count(shape: Sequence[AffineExpr]) -> int | None:
    """Return the number of elements where all extents are constants."""
    number = 1
    for extent in shape:
        if not isinstance(extent, Constant):
            return None
        number *= extent.value
    return number


def reshapes_keep_the_elements(func: TensorFunc) -> Iterator[str]:
    """A reshape keeps the number of elements, their dtype and the fill, and what is dense."""
    for op in all_ops(func.ops):
        if not isinstance(op, Reshape):
            continue
        old, new = op.source.type, op.result.type
        if (old.dtype, old.fill, old.is_dense) != (new.dtype, new.fill, new.is_dense):
            yield f"{where(op)} changes more than the shape of %{op.source.name}"
        counts = _count(old.shape), _count(new.shape)
        if None not in counts and counts[0] != counts[1]:
            yield f"{where(op)}: {counts[0]} elements in a shape of {counts[1]}"


def parts_fit_together(func: TensorFunc) -> Iterator[str]:
    """The parts of a concatenation have one rank, dtype and fill; their extents add up."""
    for op in all_ops(func.ops):
        if not isinstance(op, Concat):
            continue
        rank = op.result.type.rank
        if not op.sources or not 0 <= op.axis < rank:
            yield f"{where(op)} puts {len(op.sources)} tensors together along dimension {op.axis}"
            continue
        broken = [text for part in op.sources for text in _broken_part(op, part)]
        yield from broken
        if not broken:
            total: AffineExpr = Constant(0)
            for part in op.sources:
                total = add(total, part.type.shape[op.axis])
            if _differ(total, op.result.type.shape[op.axis]):
                yield f"{where(op)}: the extents along dimension {op.axis} do not add up"


def _broken_part(op: Concat, part: Value) -> Iterator[str]:
    old, new = part.type, op.result.type
    if (old.rank, old.dtype) != (new.rank, new.dtype):
        yield f"{where(op)}: %{part.name} of rank {old.rank} and {old.dtype.value} does not fit"
        return
    sparse = [kind.fill for kind in (old, new) if not kind.is_dense]
    if any(one != other for one, other in pairwise(sparse)):
        yield f"{where(op)}: %{part.name} has another fill value"
    for dim, (extent, wanted) in enumerate(zip(old.shape, new.shape, strict=True)):
        if dim != op.axis and _differ(extent, wanted):
            yield f"{where(op)}: %{part.name} has another extent along dimension {dim}"


def padding_fits(func: TensorFunc) -> Iterator[str]:
    """Padding has two widths a dimension, not negative, and a value of the dtype.

    A sparse result is padded with its fill value.
    """
    for op in all_ops(func.ops):
        if isinstance(op, Pad):
            yield from (f"{where(op)}{text}" for text in _broken_padding(op))


def _broken_padding(op: Pad) -> Iterator[str]:
    old, new = op.source.type, op.result.type
    if len({old.rank, new.rank, len(op.low), len(op.high)}) > 1:
        yield f": the widths do not fit the rank {old.rank} of %{op.source.name}"
        return
    if len({old.dtype, new.dtype, op.value.dtype}) > 1:
        yield f" pads {old.dtype.value} with {op.value.dtype.value}"
    if not new.is_dense and op.value != new.fill:
        yield ": a sparse tensor is padded with another value than its fill"
    if not old.is_dense and not new.is_dense and old.fill != new.fill:
        yield f" changes the fill value of %{op.source.name}"
    for width in (*op.low, *op.high):
        if isinstance(width, Constant) and width.value < 0:
            yield f" pads by {width.value}"
    for low, size, high, extent in zip(op.low, old.shape, op.high, new.shape, strict=True):
        if _differ(add(add(low, size), high), extent):
            yield ": the widths and extents do not add up"
