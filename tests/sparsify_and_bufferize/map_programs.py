"""Random chains of elementwise operations, each used once, which elementwise fusion may join.

In: a source of random numbers. Out: a ``ProductProgram``. Formats, other operands, transposes of
square results and a final sum over rows are drawn.
"""

from __future__ import annotations

import random

from sparsejit.formats import BSR, COO, CSR, DCSR, Dense, Format, SparseVector
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Binary, Cast, Const, Coordinate, ScalarExpr, Select, Unary
from sparsejit.ir.simplify import Missing, simplify_absence
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from tests.sparsify_and_bufferize.product_programs import ProductProgram, random_data

__all__ = ["draw_maps"]

F64 = DType.FLOAT64
ZERO = Const(0.0, F64)
FORMATS: dict[int, tuple[Format, ...]] = {
    1: (Dense(1), Dense(1), SparseVector, SparseVector, COO(1)),
    2: (Dense(2), Dense(2), CSR, CSR, DCSR, COO(2), BSR(2, 2)),
}
UNARY = (UnaryOp.NEG, UnaryOp.ABS, UnaryOp.SIN, UnaryOp.EXP, UnaryOp.SIGN)
BINARY = (BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MUL, BinaryOp.SUB, BinaryOp.MAX, BinaryOp.MIN)


def _expression(rng: random.Random, operands: int, rank: int, depth: int) -> ScalarExpr:
    """Return an expression over some operands."""
    drawn = rng.random()
    if depth == 0 or drawn < 0.2:
        leaf = rng.random()
        if leaf < 0.8:
            return Arg(rng.randrange(operands))
        if leaf < 0.9:
            return Const(rng.choice([0.0, 1.0, -2.0, 0.5]), F64)
        return Cast(Coordinate(rng.randrange(rank)), F64)
    inner = [_expression(rng, operands, rank, depth - 1) for _ in range(3)]
    if drawn < 0.4:
        return Unary(rng.choice(UNARY), inner[0])
    if drawn < 0.9:
        return Binary(rng.choice(BINARY), inner[0], inner[1])
    return Select(Binary(BinaryOp.GT, inner[0], Const(0.5, F64)), inner[1], inner[2])


def draw_maps(rng: random.Random) -> ProductProgram:
    """Return two or three elementwise operations, one after the other."""
    builder = TensorBuilder("maps")
    rank = rng.randint(1, 2)
    sizes = [rng.choice([0, 1, 2, 3, 4]) for _ in range(rank)]
    names, at = ["e0", "e1"][:rank], tuple(range(rank))
    params: list[Value] = []

    def param() -> Value:
        params.append(builder.param(f"T{len(params)}", names, F64, rng.choice(FORMATS[rank])))
        return params[-1]

    made = param()
    for _ in range(rng.randint(2, 3)):
        operands = [made, *(param() for _ in range(rng.randint(0, 1)))]
        body: ScalarExpr = _expression(rng, len(operands), rank, rng.randint(1, 2))
        for k in range(len(operands)):  # every operand is read
            body = Binary(rng.choice([BinaryOp.MUL, BinaryOp.ADD]), Arg(k), body)
        fills = {k: v.type.fill for k, v in enumerate(operands) if not v.type.format.is_all_full}
        alone = simplify_absence(body, [F64] * (len(operands) + 1), fills)
        is_sparse = isinstance(alone, Missing)
        layout = rng.choice(FORMATS[rank]) if is_sparse else Dense(rank)
        fill = alone.const if isinstance(alone, Missing) and not layout.is_dense else None
        init = builder.empty(builder.tensor_type(names, F64, layout, fill))
        extents = [builder.extent(name) for name in names]
        made = builder.generic([(v, at) for v in operands], (init, at), body, extents=extents)
    if rank == 2 and rng.random() < 0.3:
        total = builder.full(made.type.shape[:1], ZERO)
        body = Binary(BinaryOp.ADD, Arg(1), Arg(0))
        made = builder.generic([(made, at)], (total, (0,)), body)
    func = builder.finish(made)
    extents_of_symbols = tuple(sizes[int(name[1:])] for name in func.symbols)
    arrays = tuple(random_data(tuple(sizes), rng) for _ in params)
    return ProductProgram(func, extents_of_symbols, arrays)
