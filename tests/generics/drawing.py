"""Random operations drawn as tensor functions: any rank, any body, any format, one ``Generic``.

In: a seed. Out: a ``Drawn``: the function and the extents and arrays to run it on.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import sparsejit as sj
from sparsejit.affine import Dim
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.fold import identity_const
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Cast,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    Unary,
    args_of,
)
from sparsejit.ir.simplify import Missing, simplify_absence
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType

__all__ = ["Drawn", "draw"]

F = DType.FLOAT64
Random = random.Random
Array = np.ndarray[Any, np.dtype[Any]]

_UNARY = (
    UnaryOp.NEG, UnaryOp.ABS, UnaryOp.SIN, UnaryOp.EXP, UnaryOp.SIGN, UnaryOp.FLOOR,
)  # fmt: skip
_BINARY = (
    BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MUL, BinaryOp.SUB, BinaryOp.MAX, BinaryOp.MIN,
)  # fmt: skip
_KINDS = (
    LevelKind.DENSE, LevelKind.COMPRESSED, LevelKind.COMPRESSED, LevelKind.LOOSE_COMPRESSED,
)  # fmt: skip
_MATRICES = (
    sj.BSR(2, 2), sj.BSR(2, 3), sj.DIA, sj.ELL(6), sj.NV24,
    Format("(i, j) -> (j floordiv 2 : compressed, i : dense, j mod 2 : dense)"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """A function of one operation, the values of its symbols and an array for each parameter."""

    func: TensorFunc
    symbols: tuple[int, ...]
    arrays: tuple[Array, ...]
    storage: str


@dataclass(frozen=True, slots=True)
class _Shape:
    """The loops, the operands' loops, the result's loops, and the body."""

    builder: TensorBuilder
    extents: tuple[int, ...]
    inputs: tuple[tuple[Value, tuple[int, ...]], ...]
    output: tuple[int, ...]
    format: Format
    body: ScalarExpr


def draw(seed: int) -> Drawn:
    """Return the function of a seed."""
    rng = Random(seed)
    shape = _shape(rng)
    func = _function(shape, rng)
    symbols = tuple(shape.extents[int(name[1:])] for name in func.symbols)
    arrays = tuple(
        _array([shape.extents[loop] for loop in loops], value.type.format, rng)
        for value, loops in shape.inputs
    )
    return Drawn(func, symbols, arrays, rng.choice(["inline", "runtime"]))


def _format(rank: int, rng: Random) -> Format:
    if rank == 0 or rng.random() < 0.2:
        return sj.Dense(rank)
    order = list(range(rank))
    rng.shuffle(order)
    kind = rng.random()
    if kind < 0.2:
        levels = sj.COO(rank).levels
        return Format.of(
            rank, tuple(Level(Dim(d), lv.type) for d, lv in zip(order, levels, strict=True))
        )
    if kind < 0.4 and rank == 2:
        return rng.choice(_MATRICES)
    return Format.of(rank, tuple(Level(Dim(d), LevelType(rng.choice(_KINDS))) for d in order))


def _expression(operands: int, loops: int, depth: int, rng: Random) -> ScalarExpr:
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return _leaf(operands, loops, rng)
    if kind < 0.35:
        return Unary(rng.choice(_UNARY), _expression(operands, loops, depth - 1, rng))
    if kind < 0.82:
        lhs = _expression(operands, loops, depth - 1, rng)
        return Binary(rng.choice(_BINARY), lhs, _expression(operands, loops, depth - 1, rng))
    conditions: list[ScalarExpr] = [
        Stored(rng.randrange(operands)),
        Binary(BinaryOp.GT, _expression(operands, loops, 0, rng), Const(0.5, F)),
    ]
    condition = rng.choice(conditions)
    then = _expression(operands, loops, depth - 1, rng)
    if rng.random() < 0.6:
        return Select(condition, then, Const(0.0, F))
    return Select(condition, then, _expression(operands, loops, depth - 1, rng))


def _leaf(operands: int, loops: int, rng: Random) -> ScalarExpr:
    kind = rng.random()
    if kind < 0.8:
        return Arg(rng.randrange(operands))
    if kind < 0.9:
        return Const(rng.choice([0.0, 1.0, -2.0, 0.5]), F)
    return Cast(Coordinate(rng.randrange(loops)), F)


def _shape(rng: Random) -> _Shape:
    loops = rng.randint(1, 4)
    builder = TensorBuilder("drawn")
    count = rng.randint(1, 3)
    inputs: list[tuple[Value, tuple[int, ...]]] = []
    used: set[int] = set()
    for number in range(count):
        rank = rng.randint(1, min(3, loops)) if rng.random() < 0.93 else 0
        own = (
            [rng.randrange(loops) for _ in range(rank)]  # may repeat a loop: a diagonal
            if rng.random() < 0.12
            else rng.sample(range(loops), rank)
        )
        if number == count - 1:  # every loop needs an operand to bound it
            missing = [loop for loop in range(loops) if loop not in used | set(own)]
            if len(own) + len(missing) > 4:
                own, missing = [], [loop for loop in range(loops) if loop not in used]
            own = own + missing
        used |= set(own)
        fmt = (
            _format(len(own), rng)
            if len(own) < 4
            else rng.choice([sj.Dense(4), sj.CSF(4), sj.COO(4)])
        )
        value = builder.param(f"T{number}", [f"e{loop}" for loop in own], F, fmt)
        inputs.append((value, tuple(own)))
    output = rng.sample(range(loops), rng.randint(0, min(3, loops)))
    body = _expression(count, loops, rng.randint(1, 3), rng)
    while not args_of(body):
        body = _expression(count, loops, rng.randint(1, 3), rng)
    extents = tuple(rng.choice([0, 1, 2, 3, 4, 5]) for _ in range(loops))
    return _Shape(builder, extents, tuple(inputs), tuple(output), _format(len(output), rng), body)


def _function(shape: _Shape, rng: Random) -> TensorFunc:
    reduces = len(shape.output) < len(shape.extents)
    made = _reduction(shape, rng) if reduces else _map(shape, rng)
    builder = shape.builder
    extents = [builder.extent(f"e{loop}") for loop in range(len(shape.extents))]
    body, init = made
    result = builder.generic(shape.inputs, (init, shape.output), body, extents=extents)
    return builder.finish(result)


def _reduction(shape: _Shape, rng: Random) -> tuple[ScalarExpr, Value]:
    builder, out = shape.builder, Arg(len(shape.inputs))
    op = rng.choice([BinaryOp.ADD, BinaryOp.ADD, BinaryOp.ADD, BinaryOp.MAX, BinaryOp.MUL])
    body: ScalarExpr = Binary(op, out, shape.body)
    masks = [k for k, (_, own) in enumerate(shape.inputs) if set(own) <= set(shape.output)]
    if masks and rng.random() < 0.15:
        body = Select(Stored(rng.choice(masks)), body, out)
    names = [f"e{loop}" for loop in shape.output]
    if shape.format.is_dense:
        start = identity_const(op, F)
        assert start is not None
        return body, builder.full(builder.tensor_type(names, F).shape, start)
    fill = identity_const(op, F)  # a reduction starts from what is not stored
    return body, builder.empty(builder.tensor_type(names, F, shape.format, fill))


def _map(shape: _Shape, rng: Random) -> tuple[ScalarExpr, Value]:
    body = shape.body
    if rng.random() < 0.35:
        body = Select(Binary(BinaryOp.GT, body, Const(0.25, F)), body, Nothing(F))
    absent = {
        number: Const(0.0, F)
        for number, (value, _) in enumerate(shape.inputs)
        if not value.type.format.is_all_full
    }
    nowhere = simplify_absence(body, [F] * (len(shape.inputs) + 1), absent)
    fill = nowhere.const if isinstance(nowhere, Missing) else Const(0.0, F)
    names = [f"e{loop}" for loop in shape.output]
    fmt = shape.format
    kind = shape.builder.tensor_type(names, F, fmt, None if fmt.is_dense else fill)
    return body, shape.builder.empty(kind)


def _array(shape: Sequence[int], fmt: Format, rng: Random) -> Array:
    source = np.random.default_rng(rng.randrange(10**9))
    values = np.round(source.standard_normal(shape) * 2) + 0.5
    array: Array = np.where(source.random(shape) < rng.choice([0, 0.2, 0.5, 1]), values, 0.0)
    return sj.prune(array, fmt).to_numpy() if fmt == sj.NV24 else array
