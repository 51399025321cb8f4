"""Slices, reshapes, concatenations and padding through the stage: every format, against reference.

A function of one operation is lowered, run by the interpreter on stored tensors, and compared with
the brute-force evaluator: values, and which elements are stored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.affine import AffineExpr, Constant, mul
from sparsejit.formats import Format
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.scalar import Const
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from tests.generics.drawing import Drawn
from tests.generics.running import Outcome, run_drawn

FLOAT = DType.FLOAT64

MATRICES: dict[str, Format] = {
    "dense": sj.Dense(2),
    "csr": sj.CSR,
    "csc": sj.CSC,
    "coo": sj.COO(2),
    "coo of structs": Format("(i, j) -> (i : compressed(nonunique), j : singleton)"),
    "dcsr": sj.DCSR,
    "dcsc": sj.DCSC,
    "bsr": sj.BSR(2, 2),
    "bsr of 2 x 3": sj.BSR(2, 3),
    "dia": sj.DIA,
    "ell": sj.ELL(7),
    "loose": Format("(i, j) -> (i : dense, j : loose_compressed)"),
    "dense by columns": Format("(i, j) -> (j : dense, i : dense)"),
    "compressed rows": Format("(i, j) -> (i : compressed, j : dense)"),
}
RESULTS = {name: fmt for name, fmt in MATRICES.items() if name != "dense by columns"}
SHAPES = [(5, 6), (4, 4), (1, 7), (7, 1), (0, 3), (3, 0)]

Build = Callable[[TensorBuilder, Value, random.Random, Sequence[int]], Value]


def _array(shape: Sequence[int], rng: random.Random) -> Any:
    count = int(np.prod(shape))
    values = [rng.choice([0.0, 0.0, 1.5, -2.0, 3.0]) for _ in range(count)]
    return np.array(values).reshape(shape)


def _run(
    fmt: Format,
    shape: Sequence[int],
    build: Build,
    seed: int,
    fill: float = 0.0,
) -> Outcome:
    rng = random.Random(seed)
    builder = TensorBuilder("moved")
    names = [f"n{d}" for d in range(len(shape))]
    const = None if fmt.is_dense else Const(fill, FLOAT)
    source = builder.param("A", names, FLOAT, fmt, const)
    func = builder.finish(build(builder, source, rng, shape))
    drawn = Drawn(func, tuple(shape), (_array(shape, rng),), rng.choice(["inline", "runtime"]))
    return run_drawn(drawn)


# ------------------------------------------------------------ the operations


def sliced(b: TensorBuilder, source: Value, rng: random.Random, shape: Sequence[int]) -> Value:
    offsets, sizes, strides = [], [], []
    for extent in shape:
        stride = rng.choice([1, 1, 2, 3, -1, -2])
        size = rng.randint(0, max(1, extent // abs(stride))) if extent else 0
        size = min(size, (extent - 1) // abs(stride) + 1) if extent else 0
        span = (size - 1) * abs(stride) + 1 if size else 0
        start = rng.randint(0, extent - span)
        offsets.append(start + (span - 1 if stride < 0 and size else 0))
        sizes.append(size)
        strides.append(stride)
    return b.extract_slice(source, offsets, sizes, strides)


def whole_rows(b: TensorBuilder, source: Value, rng: random.Random, shape: Sequence[int]) -> Value:
    first = rng.randint(0, shape[0])
    size = rng.randint(0, shape[0] - first)
    return b.extract_slice(source, [first, 0], [size, source.type.shape[1]])


def padded(b: TensorBuilder, source: Value, rng: random.Random, shape: Sequence[int]) -> Value:
    low, high = ([rng.randint(0, 2) for _ in shape] for _ in range(2))
    return b.pad(source, low, high, source.type.fill)


def twice(axis: int) -> Build:
    def build(b: TensorBuilder, source: Value, rng: random.Random, shape: Sequence[int]) -> Value:
        return b.concat([source] * rng.randint(1, 3), axis)

    return build


def flat(fmt: Format) -> Build:
    def build(b: TensorBuilder, source: Value, rng: random.Random, shape: Sequence[int]) -> Value:
        whole: AffineExpr = Constant(1)
        for extent in source.type.shape:
            whole = mul(whole, extent)
        return b.reshape(source, (whole,), None if source.type.is_dense else fmt)

    return build


def regrouped(b: TensorBuilder, source: Value, rng: random.Random, shape: Sequence[int]) -> Value:
    """Rows and columns change places as numbers, and extents of 1 come in."""
    m, n = source.type.shape
    rank = rng.choice([2, 3])
    if rank == 2:
        return b.reshape(source, (n, m))
    new = rng.choice([(n, 1, m), (1, m, n), (m, n, 1)])
    return b.reshape(
        source, new, None if source.type.is_dense else rng.choice([sj.COO(3), sj.CSF(3)])
    )


OPERATIONS: dict[str, Build] = {
    "sliced": sliced,
    "whole rows": whole_rows,
    "padded": padded,
    "twice along rows": twice(0),
    "twice along columns": twice(1),
    "flat": flat(sj.SparseVector),
    "flat coo": flat(sj.COO(1)),
    "regrouped": regrouped,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str, operation: str) -> None:
    outcomes = [
        _run(MATRICES[name], shape, OPERATIONS[operation], seed)
        for seed in range(2)
        for shape in SHAPES
    ]
    assert Outcome.RIGHT in outcomes
    assert Outcome.UNSUPPORTED not in outcomes
