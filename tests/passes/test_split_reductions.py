"""The loop pass that finds loops whose iterations only add up."""

from __future__ import annotations

import pytest
from hypothesis import given

from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    For,
    Let,
    LoopFunc,
    Memref,
    Stmt,
    Store,
    Var,
    View,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes import order_reductions, split_reductions
from tests.backends.loop_writing import F64, add, function, index, load, memref, number, var
from tests.ir.loop_functions import loop_functions

i, j, n, s = var("i"), var("j"), var("n"), var("s", F64)
x, y = memref("x", F64), memref("y", F64)
ADD, MAX = BinaryOp.ADD, BinaryOp.MAX


def split(func: LoopFunc) -> LoopFunc:
    made = split_reductions(func)
    verify_loops(made)
    return made


def looping(*body: Stmt, before: tuple[Stmt, ...] = ()) -> LoopFunc:
    start = Let(s, number(0.0), mutable=True)
    end = Store(y, (index(0),), s)
    return function("f", [n, x, y], (start, *before, For(i, index(0), n, body), end))


def reductions(func: LoopFunc) -> list[tuple[Var | Memref, BinaryOp]]:
    return [
        found
        for stmt in all_statements(split(func).body)
        if isinstance(stmt, For) and stmt.parallel
        for found in stmt.reductions
    ]


def step(op: BinaryOp = ADD) -> Assign:
    return Assign(s, Binary(op, s, load(x, i), F64))


def test_sums_in_variables_and_arrays_are_found() -> None:
    assert reductions(looping(step())) == [(s, ADD)]
    assert reductions(looping(step(MAX))) == [(s, MAX)]
    scatter = Store(y, (i,), load(x, i), ADD)
    assert reductions(looping(scatter, step())) == [(y, ADD), (s, ADD)]
    inner = For(j, index(0), n, (Store(y, (j,), load(x, i), MAX),))
    assert reductions(looping(inner)) == [(y, MAX)]


@pytest.mark.parametrize(
    "func",
    [
        pytest.param(looping(step(), step(MAX)), id="two operations"),
        pytest.param(looping(step(), Store(y, (i,), s)), id="a sum is read on the way"),
        pytest.param(looping(step(BinaryOp.SUB)), id="no reduction"),
        pytest.param(
            looping(Store(y, (i,), load(y, add(i, index(1))), ADD)), id="an array is read"
        ),
        pytest.param(looping(Store(y, (i,), load(x, i)), step()), id="an array is overwritten"),
        pytest.param(looping(Assign(s, load(x, i))), id="a variable is overwritten"),
        pytest.param(
            looping(
                Store(memref("v", F64), (i,), load(x, i), ADD),
                Store(y, (i,), load(x, i), ADD),
                before=(View(memref("v", F64), y, (index(0),), (n,), (1,)),),
            ),
            id="two names for one array",
        ),
        pytest.param(looping(Store(x, (i,), number(1.0))), id="nothing is added up"),
    ],
)
def test_other_loops_stay(func: LoopFunc) -> None:
    verify_loops(func)
    assert split(func) == func


def test_an_inner_loop_without_loops_stays_sequential() -> None:
    inner = For(j, index(0), n, (Store(y, (j,), load(x, j), ADD),))
    outer = For(i, index(0), n, (inner, Store(x, (i,), number(2.0)), Store(x, (n,), load(y, i))))
    assert reductions(function("f", [n, x, y], (outer,))) == []


def test_arrays_of_an_iteration_are_no_concern() -> None:
    room = memref("room", DType.INT64)
    body = (Alloc(room, (n,)), Store(room, (i,), i), step())
    func = looping(*body[2:])
    assert reductions(func) == [(s, ADD)]


def test_order_reductions_undoes_it() -> None:
    func = looping(step())
    assert order_reductions(split(func)) == func


@given(loop_functions())
def test_any_loop_function_may_be_split(func: LoopFunc) -> None:
    split(func)
