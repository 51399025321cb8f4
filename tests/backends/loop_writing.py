"""Short spellings for loop IR written by hand in tests, and one way to run it on a backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.backends import BACKENDS
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loops import (
    Binary,
    Cast,
    DenseResult,
    Expr,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Stmt,
    Var,
)
from sparsejit.ir.ops import BinaryOp, ResultKind
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType

F64, F32, I32 = DType.FLOAT64, DType.FLOAT32, DType.INT32


def var(name: str, dtype: DType = INDEX) -> Var:
    return Var(name, dtype)


def index(value: int) -> Lit:
    return Lit(Const(value, INDEX))


def number(value: float, dtype: DType = F64) -> Lit:
    return Lit(Const(value, dtype))


def memref(name: str, dtype: DType = F64, rank: int = 1) -> Memref:
    return Memref(name, dtype, rank)


def load(array: Memref, *indices: Expr) -> Expr:
    """An element; of positions and coordinates, as an index."""
    element = Load(array, indices)
    return element if array.dtype is not I32 else Cast(element, INDEX)


def binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Binary:
    dtype = expr_dtype(lhs)
    return Binary(op, lhs, rhs, DType.BOOL if op.info.result is ResultKind.BOOL else dtype)


def add(lhs: Expr, rhs: Expr) -> Binary:
    return binary(BinaryOp.ADD, lhs, rhs)


def mul(lhs: Expr, rhs: Expr) -> Binary:
    return binary(BinaryOp.MUL, lhs, rhs)


def less(lhs: Expr, rhs: Expr) -> Binary:
    return binary(BinaryOp.LT, lhs, rhs)


def function(
    name: str,
    params: Sequence[Memref | Var],
    body: Sequence[Stmt],
    *results: Memref,
) -> LoopFunc:
    """A function whose results are dense."""
    return LoopFunc(name, tuple(params), tuple(body), tuple(map(DenseResult, results)))


def run(backend: str, func: LoopFunc, *arguments: object) -> tuple[NDArray[Any], ...]:
    """The results of ``func`` on a backend."""
    chosen = BACKENDS[backend]
    results = chosen.load(chosen.emit(func))(list(arguments))
    assert all(isinstance(array, np.ndarray) for array in results)
    return results  # type: ignore[return-value]  # checked the line before
