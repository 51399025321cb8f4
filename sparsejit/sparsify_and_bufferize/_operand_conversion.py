"""Conversions that the loop order asks for: operands stored in an order no loop order has.

Enters an operation, a loop order, and the operands to convert; leaves the operation over converted
operands, with the loops that convert them. A conversion keeps every stored entry, zeros inside
blocks included, so that operations that read patterns see the same one.
"""

from __future__ import annotations

from dataclasses import replace

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, dims_of, identity_map
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.scalar import Arg
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import IteratorType, TensorType
from sparsejit.sparsify_and_bufferize._iteration_graph import LoopOrder
from sparsejit.sparsify_and_bufferize._level_space import LevelSpace
from sparsejit.sparsify_and_bufferize._options import StageOptions

__all__ = ["Conversion", "conversions_for"]


@dataclass(frozen=True, slots=True)
class Conversion:
    """Operand ``number`` is replaced by the result of ``op``, which copies it in another format."""

    number: int
    op: Generic


def conversions_for(
    op: Generic, space: LevelSpace, order: LoopOrder, options: StageOptions
) -> tuple[tuple[Conversion, ...], Generic]:
    """Return the conversions of the located operands of ``order``, and ``op`` over the results."""
    made: list[Conversion] = []
    inputs = list(op.inputs)
    for number in sorted(order.located):
        source = op.inputs[number]
        target = _format_in_order(source.type, space, number, order, options)
        result = Value(
            f"{source.name}_as_{op.result.name}_{number}", replace(source.type, format=target)
        )
        made.append(Conversion(number, copy_op(result, source)))
        inputs[number] = result
    return tuple(made), replace(op, inputs=tuple(inputs))


def copy_op(result: Value, source: Value) -> Generic:
    """Return the operation that copies every stored entry of ``source`` into a fresh ``result``."""
    rank = source.type.rank
    return Generic(
        result,
        (source,),
        result,
        (identity_map(rank), identity_map(rank)),
        (IteratorType.PARALLEL,) * rank,
        source.type.shape,
        Arg(0),
    )


def _format_in_order(
    tensor: TensorType, space: LevelSpace, number: int, order: LoopOrder, options: StageOptions
) -> Format:
    """Return a format whose levels come in the order of the loops, without padding.

    Its first level is dense where the operand's is, unless the extent dwarfs what is stored.
    """
    place = {loop: depth for depth, loop in enumerate(order.loops)}
    indices = space.inputs[number].indices

    def depth(dim: int) -> int:
        return max((place[loop] for loop in dims_of(indices[dim])), default=-1)

    dims = sorted(range(tensor.rank), key=lambda dim: (depth(dim), dim))
    starts_full = tensor.format.levels[0].type.is_full and tensor.rank > 1
    kinds = [LevelKind.COMPRESSED] * tensor.rank
    if starts_full and not options.is_long(tensor.shape[dims[0]]):
        kinds[0] = LevelKind.DENSE
    levels = tuple(Level(Dim(dim), LevelType(kind)) for dim, kind in zip(dims, kinds, strict=True))
    return Format.of(tensor.rank, levels, tensor.format.pos_width, tensor.format.crd_width)
