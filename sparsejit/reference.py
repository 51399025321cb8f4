"""The reference evaluator: what a tensor function means, by brute force in NumPy.

In: a ``TensorFunc`` and, for each parameter, the dense values and the mask of what is stored. Out:
the same pair for each result. Every ``Generic`` is evaluated at all points of its loop space, so
time and memory are those of the dense computation. Nothing is shared with the sparsifier, which is
what makes it a second opinion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple, assert_never

import numpy as np

from sparsejit._reference_scalar import (
    NOTHING,
    STORED,
    UNSTORED,
    Array,
    Lanes,
    as_dtype,
    evaluate_scalar,
    widened,
)
from sparsejit.affine import Add, AffineExpr, Constant, Dim, FloorDiv, Mod, Mul, evaluate
from sparsejit.errors import VerificationError
from sparsejit.formats import Format
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.scalar import Const, args_of
from sparsejit.ir.tensor import (
    AllocTensor,
    Concat,
    Convert,
    Empty,
    ExtractSlice,
    For,
    Generic,
    If,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    Pad,
    PlainOp,
    Reshape,
    TensorFunc,
    Value,
    While,
)
from sparsejit.ir.types import IteratorType, TensorType

__all__ = ["Masked", "dense_masked", "evaluate_reference"]


class Masked(NamedTuple):
    """A tensor as dense ``values`` and the boolean mask of what is ``stored``, of one shape."""

    values: Array
    stored: Array


def dense_masked(values: Array) -> Masked:
    """Return a dense array as a pair: everything is stored."""
    return Masked(values, np.ones(values.shape, np.bool_))


def evaluate_reference(
    func: TensorFunc, params: Sequence[Masked], symbols: Sequence[int]
) -> tuple[Masked, ...]:
    """Return the results of ``func``; ``symbols`` are the values of its extent symbols.

    The final state of an assigned parameter is that of the value materialized in it; the arrays
    given are not changed.

    >>> from sparsejit.ir.build import TensorBuilder
    >>> from sparsejit.ir.scalar import Arg
    >>> from sparsejit.ir.types import DType
    >>> builder = TensorBuilder("sum")
    >>> x = builder.param("x", ("n",), DType.FLOAT64)
    >>> y = builder.full((), Const(0.0, DType.FLOAT64))
    >>> from sparsejit.ir.ops import BinaryOp
    >>> from sparsejit.ir.scalar import Binary
    >>> y = builder.generic([(x, (0,))], (y, ()), Binary(BinaryOp.ADD, Arg(1), Arg(0)))
    >>> evaluate_reference(builder.finish(y), [dense_masked(np.array([1.0, 2.0]))], [2])[0].values
    array(3.)
    """
    values = dict(zip((param.name for param in func.params), params, strict=True))
    with np.errstate(all="ignore"):
        _Run(values, dict(enumerate(symbols[: func.num_extents]))).block(func.ops)
    return tuple(values[result.name] for result in func.results)


class _Run:
    """The values and symbols of one evaluation; both grow as operations are met."""

    def __init__(self, values: dict[str, Masked], symbols: dict[int, int]) -> None:
        self.values = values
        self.symbols = symbols

    def block(self, ops: Sequence[Op]) -> None:
        for op in ops:
            match op:
                case For():
                    self.counted_loop(op)
                case While():
                    self.while_loop(op)
                case If():
                    holds = self.holds(op.condition)
                    self.block(op.then if holds else op.orelse)
                    self.rename(op.then_yields if holds else op.else_yields, op.results)
                case _:
                    self.values[op.result.name] = self.one(op)

    def rename(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """Let each value of ``new`` be that of ``old``, all at once."""
        taken = [self.values[value.name] for value in old]
        self.values.update(zip((value.name for value in new), taken, strict=True))

    def holds(self, condition: Value) -> bool:
        return bool(self.of(condition).values[()])

    def counted_loop(self, op: For) -> None:
        self.rename(op.inits, op.results)
        for number in range(self.number(op.lower), self.number(op.upper)):
            self.symbols[op.induction] = number
            self.rename(op.results, op.args)
            self.block(op.body)
            self.rename(op.yields, op.results)

    def while_loop(self, op: While) -> None:
        self.rename(op.inits, op.results)
        while True:
            self.rename(op.results, op.args)
            self.block(op.test)
            if not self.holds(op.condition):
                return
            self.rename(op.results, op.body_args)
            self.block(op.body)
            self.rename(op.yields, op.results)

    def one(self, op: PlainOp) -> Masked:  # noqa: C901 - one case for each kind
        match op:
            case Generic():
                return _generic(op, self)
            case Convert():
                return _converted(self.of(op.source), op.source.type, op.result.type)
            case Empty():
                return _empty(op.result.type, self.shape(op.result.type))
            case AllocTensor():
                kind = op.result.type
                return self.of(op.copy) if op.copy else _empty(kind, self.shape(kind))
            case Insert():
                at = tuple(np.array(self.number(index)) for index in op.indices)
                return _replaced(self.of(op.dest), at, self.of(op.scalar), op.result.type)
            case ExtractSlice():
                return self.slice(op)
            case InsertSlice():
                source = self.of(op.source)
                return _replaced(self.of(op.dest), self.places(op), source, op.result.type)
            case Reshape():
                source, shape = self.of(op.source), self.shape(op.result.type)
                moved = Masked(source.values.reshape(shape), source.stored.reshape(shape))
                return _converted(moved, op.source.type, op.result.type)
            case Concat():
                kind = op.result.type
                parts = [_entries(self.of(part), part.type, kind) for part in op.sources]
                values = np.concatenate([part.values for part in parts], op.axis)
                stored = np.concatenate([part.stored for part in parts], op.axis)
                return Masked(values, _slots(stored, kind.format))
            case Pad():
                return self.pad(op)
            case Materialize():
                return self.of(op.source)
            case _:
                assert_never(op)

    def pad(self, op: Pad) -> Masked:
        ends = zip(map(self.number, op.low), map(self.number, op.high), strict=True)
        widths = list(ends)
        kind = op.result.type
        source = _entries(self.of(op.source), op.source.type, kind)
        value = np.asarray(op.value.value).astype(source.values.dtype)
        if not widths:
            return source
        values = np.pad(source.values, widths, constant_values=value)
        stored = np.pad(source.stored, widths)
        return Masked(values, _slots(stored, kind.format))

    def of(self, value: Value) -> Masked:
        return self.values[value.name]

    def number(self, expr: AffineExpr) -> int:
        return evaluate(expr, self.symbols)

    def shape(self, kind: TensorType) -> tuple[int, ...]:
        return tuple(self.number(extent) for extent in kind.shape)

    def slice(self, op: ExtractSlice) -> Masked:
        place, kind = self.places(op), op.result.type
        source, shape = _entries(self.of(op.source), op.source.type, kind), self.shape(kind)
        stored = source.stored[place].reshape(shape)
        return Masked(source.values[place].reshape(shape), _slots(stored, kind.format))

    def places(self, op: ExtractSlice | InsertSlice) -> tuple[Array, ...]:
        whole = zip(op.offsets, op.sizes, op.strides, strict=True)
        return np.ix_(
            *(
                self.number(offset) + step * np.arange(self.number(size))
                for offset, size, step in whole
            )
        )


def _empty(kind: TensorType, shape: tuple[int, ...]) -> Masked:
    """No entries when sparse; a dense one is filled with what shows when it is read."""
    dtype = numpy_dtype(kind.dtype)
    if not kind.is_dense:
        return Masked(_filled(kind, shape), _slots(np.zeros(shape, np.bool_), kind.format))
    poison = np.nan if kind.dtype.is_float or kind.dtype.is_complex else 0x55
    return dense_masked(
        np.full(shape, poison, np.complex128 if kind.dtype.is_complex else None).astype(dtype)
    )


def _filled(kind: TensorType, shape: tuple[int, ...]) -> Array:
    return np.full(shape, kind.fill.value, numpy_dtype(kind.dtype))


def _replaced(dest: Masked, place: tuple[Array, ...], source: Masked, kind: TensorType) -> Masked:
    values, stored = dest.values.copy(), dest.stored.copy()
    values[place] = source.values.reshape(values[place].shape)
    stored[place] = source.stored.reshape(stored[place].shape)
    return Masked(values, _slots(stored, kind.format))


def _converted(source: Masked, old: TensorType, new: TensorType) -> Masked:
    return Masked(source.values, _slots(_entries(source, old, new).stored, new.format))


def _entries(source: Masked, old: TensorType, new: TensorType) -> Masked:
    """Return ``source`` with only those elements marked that another format stores too.

    What only fills a dense level is no entry of a sparse one.
    """
    stored = source.stored
    if old.format.levels and old.format.levels[-1].type.is_full:
        stored = stored & ~_is(source.values, new.fill)
    return Masked(source.values, stored)


def _is(values: Array, const: Const) -> Array:
    """Where values equal a constant; nan equals nan, and -0.0 is 0.0."""
    if const.value != const.value:
        return np.isnan(values)
    return np.asarray(values == np.asarray(const.value).astype(values.dtype))


def _slots(stored: Array, fmt: Format) -> Array:
    """Return the mask of all coordinates that own a slot when those in ``stored`` have entries.

    The full levels behind the last level that stores coordinates are filled up: all of a block,
    all of a diagonal.
    """
    kinds = [level.type for level in fmt.levels]
    last = max((n for n, kind in enumerate(kinds) if not kind.is_full), default=-1)
    if last < 0:
        return np.ones_like(stored)
    if last == len(kinds) - 1 or not stored.any():
        return stored
    grid = np.indices(stored.shape)
    owner = np.zeros(stored.shape, np.int64)
    for level in fmt.levels[: last + 1]:
        column = _over(level.expr, grid)
        column = column - column.min()
        owner = owner * (int(column.max()) + 1) + column
    return np.isin(owner, np.unique(owner[stored]))


def _over(expr: AffineExpr, arrays: Mapping[int, Array] | Sequence[Array] | Array) -> Array:
    """Return ``expr`` with dimension ``d`` being the array ``arrays[d]``."""
    match expr:
        case Dim(index):
            return arrays[index]
        case Constant(value):
            return np.array(value)
        case Add(lhs, rhs):
            return np.asarray(_over(lhs, arrays) + _over(rhs, arrays))
        case Mul(lhs, rhs):
            return np.asarray(_over(lhs, arrays) * _over(rhs, arrays))
        case FloorDiv(lhs, divisor):
            return np.asarray(_over(lhs, arrays) // divisor)
        case Mod(lhs, divisor):
            return np.asarray(_over(lhs, arrays) % divisor)
        case _:
            assert_never(expr)


def _generic(op: Generic, run: _Run) -> Masked:
    """Evaluate the body at all points: reduction loops one after another, the others at once."""
    extents = [run.number(extent) for extent in op.extents]
    parallel = [kind is IteratorType.PARALLEL for kind in op.iterator_types]
    grid = [np.arange(n) if wide else None for n, wide in zip(extents, parallel, strict=True)]
    open_grid = [_along(column, d, len(extents)) for d, column in enumerate(grid)]
    init, kind = run.of(op.init), op.init.type
    values = widened(init.values).copy()
    states = np.where(init.stored, STORED, UNSTORED)
    inputs = [run.of(value) for value in op.inputs]
    steps = [range(1) if wide else range(n) for n, wide in zip(extents, parallel, strict=True)]
    accumulates = len(op.inputs) in args_of(op.body)
    for point in product(*steps) if 0 not in extents else ():
        loops = [
            column if wide else np.full((1,) * len(extents), step)
            for column, wide, step in zip(open_grid, parallel, point, strict=True)
        ]
        places = [
            _place(map_.results, loops, operand.values.shape, op)
            for map_, operand in zip(op.indexing_maps, [*inputs, init], strict=True)
        ]
        operands = [
            _gathered(operand.values, np.where(operand.stored, STORED, UNSTORED), place, loops)
            for operand, place in zip(inputs, places[:-1], strict=True)
        ]
        out = places[-1]
        before = _gathered(values, states, out, loops)
        after = evaluate_scalar(op.body, [*operands, before], loops)
        merged = _merged(before, after, kind, accumulates)
        values[out] = merged.values if out else merged.values.item()
        states[out] = merged.states if out else merged.states.item()
    return _settled(values, states, kind)


def _gathered(
    values: Array, states: Array, place: tuple[Array, ...], loops: Sequence[Array]
) -> Lanes:
    """Return the elements at ``place``, arrays of the rank of the loop space."""
    if place:
        return Lanes(values[place], states[place])
    rank = (1,) * len(loops)
    return Lanes(values.reshape(rank), states.reshape(rank))


def _along(column: Array | None, dim: int, rank: int) -> Array:
    if column is None:
        return np.zeros((1,) * rank, np.int64)
    return column.reshape((1,) * dim + (-1,) + (1,) * (rank - dim - 1))


def _place(
    results: Sequence[AffineExpr], loops: Sequence[Array], shape: tuple[int, ...], op: Generic
) -> tuple[Array, ...]:
    """Return the indices of an operand; arrays of the rank of the loop space."""
    zero = np.zeros((1,) * len(loops), np.int64)
    place = tuple(_over(result, loops) + zero for result in results)
    for column, extent in zip(place, shape, strict=True):
        if column.size and not (column.min() >= 0 and column.max() < extent):
            raise VerificationError(
                "accesses stay inside", f"%{op.result.name} reads outside of an extent of {extent}"
            )
    return place


def _merged(before: Lanes, after: Lanes, kind: TensorType, accumulates: bool) -> Lanes:
    """Return what the destination holds next; no value leaves it alone, or at its fill value."""
    nothing = after.states == NOTHING
    kept = before.values if accumulates else np.asarray(kind.fill.value).astype(before.values.dtype)
    kept_states = before.states if accumulates else UNSTORED
    values = np.where(nothing, kept, after.values)
    states = np.where(nothing, kept_states, after.states)
    shape = before.values.shape
    return Lanes(np.broadcast_to(values, shape), np.broadcast_to(states, shape))


def _settled(values: Array, states: Array, kind: TensorType) -> Masked:
    """Return the result: a constant of the program is stored, and so is what is not the fill."""
    made = as_dtype(values, kind.dtype)
    stored = (states != UNSTORED) | ~_is(made, kind.fill)
    return Masked(made, _slots(stored, kind.format))
