"""Runs tensor functions on NumPy arrays in two ways: by value, and in place.

By value every operation makes a new array: the meaning. In place every operation works in the
buffer of its destination, a slice is a view, and reads happen while writes do: what the loops do
after copy insertion. If the copies are right, both agree wherever the contents are defined;
undefined contents are nan by value and junk in place. Sparse tensors are dense arrays here, since
only the sharing of buffers is looked at; indices that run outside are moved inside, the same way
both times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsejit.affine import AffineExpr, evaluate
from sparsejit.ir import tensor
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr, Select, Stored
from sparsejit.ir.tensor import Value

__all__ = ["Array", "Evaluator", "UndefinedConditionError"]

Array = NDArray[np.float64]
_JUNK = -12345.0


class UndefinedConditionError(Exception):
    """What a program does depends on contents that it never defined."""


@dataclass
class Evaluator:
    """`extents` are the values of the symbols; `arrays` those of the values so far."""

    in_place: bool
    extents: dict[int, int]
    arrays: dict[str, Array] = field(default_factory=dict)

    def run(
        self, ops: Sequence[tensor.Op], results: Sequence[Value], params: Mapping[str, Array]
    ) -> list[Array]:
        """Run operations on `params`, which are written in place only."""
        self.arrays.update(params)
        for op in ops:
            self._op(op)
        return [self.arrays[value.name].copy() for value in results]

    def _int(self, expr: AffineExpr) -> int:
        return evaluate(expr, self.extents)

    def _shape(self, exprs: Sequence[AffineExpr]) -> tuple[int, ...]:
        return tuple(self._int(expr) for expr in exprs)

    def _destination(self, value: Value) -> Array:
        array = self.arrays[value.name]
        return array if self.in_place else array.copy()

    def _new(self, value: Value) -> Array:
        shape = self._shape(value.type.shape)
        return np.full(shape, _JUNK if self.in_place else np.nan)

    def _op(self, op: tensor.Op) -> None:  # noqa: C901 - one case for each kind
        match op:
            case tensor.Generic():
                self.arrays[op.result.name] = self._generic(op)
            case tensor.Empty(result):
                self.arrays[result.name] = self._new(result)
            case tensor.AllocTensor(result, copy):
                made = self._new(result) if copy is None else self.arrays[copy.name].copy()
                self.arrays[result.name] = made
            case tensor.Convert(result, source):
                self.arrays[result.name] = self.arrays[source.name].copy()
            case tensor.Insert(result, scalar, dest, indices):
                element = float(self.arrays[scalar.name][()])
                made = self._destination(dest)
                made[_inside(self._shape(indices), made.shape)] = element
                self.arrays[result.name] = made
            case tensor.ExtractSlice(result, source):
                view = self._part(self.arrays[source.name], op)
                shares = self.in_place and source.type.is_dense
                self.arrays[result.name] = view if shares else view.copy()
            case tensor.InsertSlice(result, source, dest):
                made = self._destination(dest)
                part = self._part(made, op)
                part[...] = self.arrays[source.name].copy()
                self.arrays[result.name] = made
            case tensor.Materialize(result, source, dest):
                made = self._destination(dest)
                made[...] = self.arrays[source.name]
                self.arrays[result.name] = made
            case tensor.Reshape(result, source):
                shape = self._shape(result.type.shape)
                self.arrays[result.name] = self.arrays[source.name].reshape(shape).copy()
            case tensor.Concat(result, sources, axis):
                parts = [self.arrays[source.name] for source in sources]
                self.arrays[result.name] = np.concatenate(parts, axis)
            case tensor.Pad(result, source):
                widths = list(zip(self._shape(op.low), self._shape(op.high), strict=True))
                value = float(op.value.value.real)
                self.arrays[result.name] = np.pad(
                    self.arrays[source.name], widths, constant_values=value
                )
            case tensor.For():
                self._for(op)
            case tensor.While():
                self._while(op)
            case tensor.If():
                self._if(op)

    def _part(self, whole: Array, op: tensor.ExtractSlice | tensor.InsertSlice) -> Array:
        sizes = self._shape(op.sizes)
        steps = zip(self._shape(op.offsets), sizes, op.strides, whole.shape, strict=True)
        where = []
        for offset, size, stride, extent in steps:
            start = min(offset, extent - (size - 1) * stride - 1)
            where.append(slice(start, start + size * stride, stride))
        return np.squeeze(whole[tuple(where)], axis=op.dropped)

    def _for(self, op: tensor.For) -> None:
        carried = [self.arrays[init.name] for init in op.inits]
        for number in range(self._int(op.lower), self._int(op.upper)):
            self.extents[op.induction] = number
            for arg, array in zip(op.args, carried, strict=True):
                self.arrays[arg.name] = array
            for inner in op.body:
                self._op(inner)
            carried = [self.arrays[value.name] for value in op.yields]
        for result, array in zip(op.results, carried, strict=True):
            self.arrays[result.name] = array

    def _while(self, op: tensor.While) -> None:
        """At most three rounds, so that every program ends; both ways of running stop alike."""
        carried = [self.arrays[init.name] for init in op.inits]
        for last in (False, False, False, True):
            for arg, array in zip(op.args, carried, strict=True):
                self.arrays[arg.name] = array
            for inner in op.test:
                self._op(inner)
            goes_on = self._holds(op.condition)
            carried = [self.arrays[arg.name] for arg in op.args]
            if last or not goes_on:
                break
            for arg, array in zip(op.body_args, carried, strict=True):
                self.arrays[arg.name] = array
            for inner in op.body:
                self._op(inner)
            carried = [self.arrays[value.name] for value in op.yields]
        for result, array in zip(op.results, carried, strict=True):
            self.arrays[result.name] = array

    def _if(self, op: tensor.If) -> None:
        holds = self._holds(op.condition)
        ops, yields = (op.then, op.then_yields) if holds else (op.orelse, op.else_yields)
        for inner in ops:
            self._op(inner)
        taken = [self.arrays[value.name] for value in yields]
        for result, array in zip(op.results, taken, strict=True):
            self.arrays[result.name] = array

    def _holds(self, condition: Value) -> bool:
        """Whether a condition holds; one that is undefined leaves the program without a meaning."""
        element = float(self.arrays[condition.name][()])
        if np.isnan(element):
            raise UndefinedConditionError
        return element > 0

    def _generic(self, op: tensor.Generic) -> Array:
        operands = [self.arrays[value.name] for value in op.inputs]
        made = self._destination(op.init)
        operands.append(made)
        for loops in np.ndindex(*self._shape(op.extents)):
            places = [
                _inside([evaluate(expr, loops) for expr in map_.results], array.shape)
                for map_, array in zip(op.indexing_maps, operands, strict=True)
            ]
            elements = [float(array[place]) for array, place in zip(operands, places, strict=True)]
            made[places[-1]] = _scalar(op.body, elements)
        return made


def _inside(indices: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(index % extent for index, extent in zip(indices, shape, strict=True))


def _scalar(expr: ScalarExpr, elements: Sequence[float]) -> float:
    match expr:
        case Arg(index):
            return elements[index]
        case Const(value):
            assert isinstance(value, float)
            return value
        case Binary(BinaryOp.ADD, lhs, rhs):
            return _scalar(lhs, elements) + _scalar(rhs, elements)
        case Binary(BinaryOp.LT, lhs, rhs):
            left, right = _scalar(lhs, elements), _scalar(rhs, elements)
            return np.nan if np.isnan(left) else float(left < right)
        case Binary(BinaryOp.MUL, lhs, rhs):
            return _scalar(lhs, elements) * _scalar(rhs, elements)
        case Select(Stored(), then, _):  # every element is stored here
            return _scalar(then, elements)
        case _:
            raise NotImplementedError(f"the drawn programs have no {expr}")
