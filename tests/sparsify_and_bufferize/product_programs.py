"""Random chains of products: matrices and vectors, multiplied in any order, sampled and mapped.

In: a source of random numbers. Out: a tensor function, its extents, and for each parameter its
dense values. Formats, transposes, n-ary operations and what follows the product are all drawn.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsejit.formats import BSR, COO, CSC, CSR, DCSR, Dense, Format, SparseVector
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Binary, Const, ScalarExpr, Select, Stored, Unary
from sparsejit.ir.tensor import TensorFunc, Value
from sparsejit.ir.types import DType

__all__ = ["ProductProgram", "draw_products", "random_data"]

F64 = DType.FLOAT64
ZERO = Const(0.0, F64)
MATRICES = (CSR, CSC, COO(2), DCSR, Dense(2), Dense(2), CSR, BSR(2, 2))
SAMPLERS = (CSR, CSC, COO(2), DCSR, BSR(2, 2))
X, S = Arg(1), Arg(0)
AFTER: tuple[ScalarExpr, ...] = (
    Binary(BinaryOp.MUL, S, X),
    Select(Stored(0), X, ZERO),
    Select(Stored(0), Unary(UnaryOp.EXP, X), ZERO),
    Select(Stored(0), Binary(BinaryOp.DIV, X, Const(4.0, F64)), ZERO),
    Binary(BinaryOp.MUL, S, Unary(UnaryOp.TANH, Binary(BinaryOp.ADD, X, Const(0.5, F64)))),
    Unary(UnaryOp.NEG, Binary(BinaryOp.MUL, S, X)),
)
MAPS: tuple[ScalarExpr, ...] = (
    Binary(BinaryOp.MUL, Arg(0), Const(2.0, F64)),
    Unary(UnaryOp.ABS, Arg(0)),
)


@dataclass(frozen=True)
class ProductProgram:
    """A function with the value of each extent symbol and the elements of each parameter."""

    func: TensorFunc
    extents: tuple[int, ...]
    arrays: tuple[np.ndarray[Any, Any], ...]


@dataclass
class _Part:
    """A factor or product so far: its value and the numbers of its indices."""

    value: Value
    index: tuple[int, ...]


@dataclass
class _Drawing:
    rng: random.Random
    sizes: list[int]
    builder: TensorBuilder = field(default_factory=lambda: TensorBuilder("products"))
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def names(self, index: Sequence[int]) -> list[str]:
        return [f"e{i}" for i in index]

    def param(self, index: Sequence[int], fmt: Format) -> _Part:
        name = f"T{len(self.shapes)}"
        value = self.builder.param(name, self.names(index), F64, fmt)
        self.shapes.append(tuple(self.sizes[i] for i in index))
        return _Part(value, tuple(index))

    def into(
        self, parts: Sequence[_Part], out: Sequence[int], fmt: Format, body: ScalarExpr
    ) -> _Part:
        """Compute ``body`` of the parts, added to zeros where it reads the destination."""
        kind = self.builder.tensor_type(self.names(out), F64, fmt)
        sums = Arg(len(parts)) in (getattr(body, "lhs", None),)
        fresh = self.builder.full(kind.shape, ZERO) if fmt.is_dense and sums else None
        init = fresh if fresh is not None else self.builder.empty(kind)
        order = list(dict.fromkeys((*out, *(i for part in parts for i in part.index))))
        at = {i: n for n, i in enumerate(order)}
        accesses = [(part.value, tuple(at[i] for i in part.index)) for part in parts]
        extents = [self.builder.extent(f"e{i}") for i in order]
        made = self.builder.generic(
            accesses, (init, tuple(at[i] for i in out)), body, extents=extents
        )
        return _Part(made, tuple(out))

    def product(self, parts: Sequence[_Part], out: Sequence[int], fmt: Format) -> _Part:
        term: ScalarExpr = Arg(0)
        for k in range(1, len(parts)):
            term = Binary(BinaryOp.MUL, term, Arg(k))
        return self.into(parts, out, fmt, Binary(BinaryOp.ADD, Arg(len(parts)), term))


def draw_products(rng: random.Random) -> ProductProgram:
    """Return a random chain of two to four factors and what is done with the product."""
    count = rng.randint(2, 4)
    drawing = _Drawing(rng, [rng.choice([0, 1, 2, 3, 4, 5]) for _ in range(count + 1)])
    vector = rng.random() < 0.4
    factors = []
    for k in range(count):
        if vector and k == count - 1:
            factors.append(drawing.param([k], rng.choice([Dense(1), SparseVector])))
            continue
        index = [k, k + 1] if rng.random() < 0.75 else [k + 1, k]
        factors.append(drawing.param(index, rng.choice(MATRICES)))
    made = _multiplied(drawing, factors, 0 if vector else count)
    result = _followed(drawing, made)
    func = drawing.builder.finish(result.value)
    extents = tuple(drawing.sizes[int(name[1:])] for name in func.symbols)
    arrays = tuple(random_data(shape, rng) for shape in drawing.shapes)
    return ProductProgram(func, extents, arrays)


def _multiplied(drawing: _Drawing, factors: list[_Part], last: int) -> _Part:
    rng = drawing.rng
    if rng.random() < 0.25 and len(factors) > 2:
        ends: tuple[int, ...] = (0,) if last == 0 else (0, last)
        dense = len(ends) < 2 or any(part.value.type.is_dense for part in factors)
        return drawing.product(
            factors, ends, Dense(len(ends)) if dense else rng.choice([Dense(2), CSR])
        )
    parts = list(factors)
    while len(parts) > 1:
        k = rng.randrange(len(parts) - 1)
        pair = parts[k : k + 2]
        met = Counter(i for part in pair for i in part.index)
        out = tuple(sorted(i for i, times in met.items() if times == 1))
        is_last = len(parts) == 2
        if is_last and rng.random() < 0.2:
            out = out[::-1]
        parts[k : k + 2] = [drawing.product(pair, out, _format(rng, pair, len(out), is_last))]
    return parts[0]


def _format(rng: random.Random, pair: list[_Part], rank: int, is_last: bool) -> Format:
    if rank < 2:
        return Dense(rank)
    if any(part.value.type.is_dense for part in pair):
        return Dense(2) if not is_last or rng.random() < 0.8 else CSR
    return rng.choice([CSR, CSR, CSC, Dense(2)])


def _followed(drawing: _Drawing, made: _Part) -> _Part:
    """Sample the product by a sparse matrix, map it, or leave it."""
    rng, drawn = drawing.rng, drawing.rng.random()
    if len(made.index) == 2 and drawn < 0.5:
        fmt, swapped = rng.choice(SAMPLERS), rng.random() < 0.2
        sampler = drawing.param(made.index[::-1] if swapped else made.index, fmt)
        body = rng.choice(AFTER)
        if rng.random() < 0.2:
            added = Binary(BinaryOp.ADD, Arg(2), body)
            return drawing.into([sampler, made], made.index[:1], Dense(1), added)
        kept = fmt if not swapped and rng.random() < 0.8 else rng.choice([CSR, Dense(2)])
        return drawing.into([sampler, made], made.index, kept, body)
    if drawn < 0.75:
        return drawing.into([made], made.index, made.value.type.format, rng.choice(MAPS))
    return made


def random_data(shape: tuple[int, ...], rng: random.Random) -> np.ndarray[Any, Any]:
    """Return half-integers and zeros, from none to all of them zeros."""
    source = np.random.default_rng(rng.randrange(1 << 30))
    values = np.round(source.standard_normal(shape) * 2) + 0.5
    return np.where(source.random(shape) < rng.choice([0, 0.2, 0.5, 1]), values, 0.0)
