"""Checks that belong to no single operation: of a new trace, and of numbers at every call.

In: a trace, or the numbers of a call. Out: nothing, or the error that NumPy or common sense gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparsejit._dataclasses import dataclass
from sparsejit.api._options import JitOptions
from sparsejit.errors import UnsupportedError
from sparsejit.ir.fold import integer_limits
from sparsejit.ir.scalar import Arg, Binary, Call, Cast, ScalarExpr, Select, Unary
from sparsejit.ir.tensor import Generic, TensorFunc
from sparsejit.ir.types import DType
from sparsejit.ir.walk import all_ops
from sparsejit.tensors import Operand

__all__ = ["IntegerRange", "check_output_positions", "integer_ranges", "refuse_device_operands"]


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """The Python integer that is parameter ``number`` must fit ``dtype``."""

    number: int
    least: int
    largest: int
    dtype: DType

    def check(self, value: object) -> None:
        """Raise ``OverflowError``, as NumPy does, for an integer out of range."""
        if isinstance(value, int) and not self.least <= value <= self.largest:
            raise OverflowError(f"Python integer {value} out of bounds for {self.dtype.value}")


def integer_ranges(func: TensorFunc, operands: Sequence[Operand]) -> tuple[IntegerRange, ...]:
    """Return the ranges of the Python integers of a function: what they are converted to."""
    numbers = {
        param.name: number
        for number, (param, operand) in enumerate(zip(func.params, operands, strict=False))
        if operand.kind == "python-scalar" and param.type.dtype.is_integer
    }
    if not numbers:
        return ()
    found: dict[tuple[int, DType], IntegerRange] = {}
    for op in all_ops(func.ops):
        if not isinstance(op, Generic):
            continue
        for index, dtype in _conversions(op.body):
            inputs = op.inputs
            number = numbers.get(inputs[index].name) if index < len(inputs) else None
            if number is not None and dtype.is_integer:
                found[number, dtype] = IntegerRange(number, *integer_limits(dtype), dtype)
    return tuple(found.values())


def _conversions(expr: ScalarExpr) -> list[tuple[int, DType]]:
    """Return which operands are converted, as they are, to which dtypes."""
    match expr:
        case Cast(Arg(index), dtype):
            return [(index, dtype)]
        case Cast(operand, _) | Unary(_, operand):
            return _conversions(operand)
        case Binary(_, lhs, rhs):
            return [*_conversions(lhs), *_conversions(rhs)]
        case Select(condition, then, orelse):
            parts = (condition, then, orelse)
            return [found for part in parts for found in _conversions(part)]
        case Call(_, operands):
            return [found for part in operands for found in _conversions(part)]
        case _:
            return []


def check_output_positions(options: JitOptions, name: str, result: object) -> None:
    """Raise ``ValueError`` where ``output`` names a result that the function does not have.

    All that is returned counts, with or without a format: arrays, some of them twice, and numbers.
    """
    if not isinstance(options.output, Mapping):
        return
    count = _leaf_count(result)
    for position in options.output:
        if position >= count:
            raise ValueError(f"output names result {position}, but {name} has {count} results")


def _leaf_count(tree: object) -> int:
    match tree:
        case tuple() | list():
            return sum(map(_leaf_count, tree))
        case dict():
            return sum(map(_leaf_count, tree.values()))
        case _:
            return 1


def refuse_device_operands(operands: Sequence[Operand], names: Sequence[str]) -> None:
    """Raise ``UnsupportedError`` for an operand on a device: the target does not read it."""
    for name, operand in zip(names, operands, strict=True):
        if operand.on_device:
            raise UnsupportedError(
                f"argument {name!r} lies on the device",
                hint='pass a copy on the host (.get() of a CuPy array), or use target="cuda"',
                reasons=("the target runs on the host",),
            )
