"""The loop passes: index arithmetic, and which loops stay parallel."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import (
    Assign,
    Binary,
    Cast,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.passes import keep_parallel, order_reductions, simplify_loops

F64 = DType.FLOAT64
N, I, J, P = (Var(name, INDEX) for name in "nijp")
POS, Y = Memref("pos", DType.INT32, 1), Memref("y", F64, 1)


def lit(value: int) -> Lit:
    return Lit(Const(value, INDEX))


def index(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(op, lhs, rhs, INDEX)


def func(*body: Stmt) -> LoopFunc:
    return LoopFunc("f", (N, POS, Y), body, ())


def store(value: Expr) -> Store:
    return Store(Y, (lit(0),), value)


@pytest.mark.parametrize(
    ("expr", "simple"),
    [
        (index(BinaryOp.ADD, lit(2), lit(3)), lit(5)),
        (index(BinaryOp.FLOORDIV, lit(-7), lit(2)), lit(-4)),
        (index(BinaryOp.ADD, N, lit(0)), N),
        (index(BinaryOp.ADD, lit(0), N), N),
        (index(BinaryOp.SUB, N, lit(0)), N),
        (index(BinaryOp.MUL, lit(1), N), N),
        (index(BinaryOp.MUL, N, lit(1)), N),
        (index(BinaryOp.FLOORDIV, N, lit(1)), N),
        (
            index(
                BinaryOp.ADD, index(BinaryOp.MUL, N, lit(1)), index(BinaryOp.SUB, lit(1), lit(1))
            ),
            N,
        ),
        (Select(Lit(Const(False, DType.BOOL)), N, lit(4)), lit(4)),
        (index(BinaryOp.SUB, lit(0), N), index(BinaryOp.SUB, lit(0), N)),
        (index(BinaryOp.MUL, N, lit(0)), index(BinaryOp.MUL, N, lit(0))),
    ],
)
def test_index_arithmetic(expr: Expr, simple: Expr) -> None:
    made = simplify_loops(func(Let(I, expr)))
    assert made.body == (Let(I, simple),)


def test_floats_are_left_alone() -> None:
    element = Load(Y, (lit(0),))
    body = func(store(Binary(BinaryOp.ADD, element, Lit(Const(0.0, F64)), F64)))
    assert simplify_loops(body) == body


def test_what_does_nothing_goes() -> None:
    yes, one = Lit(Const(True, DType.BOOL)), Lit(Const(1.0, F64))
    body = func(
        For(I, lit(0), N, (If(yes, (), (store(one),)),), parallel=True),
        If(Binary(BinaryOp.LT, N, lit(3), DType.BOOL), (), ()),
        If(yes, (store(one),)),
    )
    assert simplify_loops(body).body == (store(one),)


def nest() -> LoopFunc:
    """A dense loop, a loop over storage in it, a dense loop in that, and a dense one behind."""
    one = Lit(Const(1.0, F64))
    inner = For(J, lit(0), N, (store(one),), parallel=True)
    start = Cast(Load(POS, (I,)), INDEX)
    stored = For(P, start, N, (inner,), parallel=True)
    last = Var("k", INDEX)
    end = Var("end", INDEX)
    counted = Let(end, Cast(Load(POS, (lit(0),)), INDEX))
    by_count = For(last, lit(0), end, (store(one),), parallel=True)
    return func(For(I, lit(0), N, (stored,), parallel=True), counted, by_count)


def parallel(body: Iterable[Stmt]) -> list[str]:
    return [s.var.name for s in all_statements(body) if isinstance(s, For) and s.parallel]


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        ("none", []),
        ("dense-outer-loop", ["i"]),
        ("any-storage-outer-loop", ["i", "k"]),
        ("dense-any-loop", ["i", "j"]),
        ("any-storage-any-loop", ["i", "p", "j", "k"]),
    ],
)
def test_strategies(strategy: str, names: list[str]) -> None:
    made = keep_parallel(nest(), strategy)
    assert parallel(made.body) == names
    assert keep_parallel(made, strategy) == made


def test_loops_in_while_and_if_are_inner_or_outer() -> None:
    less = Binary(BinaryOp.LT, N, lit(3), DType.BOOL)
    loop = For(I, lit(0), N, (store(Lit(Const(1.0, F64))),), parallel=True)
    assert parallel(keep_parallel(func(If(less, (loop,))), "dense-outer-loop").body) == ["i"]
    assert parallel(keep_parallel(func(While(less, (loop,))), "dense-outer-loop").body) == []


def test_reductions_are_ordered() -> None:
    total = Var("total", F64)
    start = Let(total, Lit(Const(0.0, F64)), mutable=True)
    reducing = For(I, lit(0), N, (), parallel=True, reductions=((total, BinaryOp.ADD),))
    plain = For(J, lit(0), N, (store(total),), parallel=True)
    made = order_reductions(func(start, reducing, plain))
    assert parallel(made.body) == ["j"]
    assert all(not s.reductions for s in made.body if isinstance(s, For))
    without = keep_parallel(func(start, reducing), "none")
    assert parallel(without.body) == []


def test_a_loop_that_only_counts_is_its_number_of_rounds() -> None:
    step = Assign(P, index(BinaryOp.ADD, P, lit(1)))
    rounds = index(BinaryOp.MAX, index(BinaryOp.SUB, N, lit(2)), lit(0))
    counted = Assign(P, index(BinaryOp.ADD, P, rounds))
    assert simplify_loops(func(For(I, lit(2), N, (step,)))).body == (counted,)
    whole = Assign(P, index(BinaryOp.ADD, P, index(BinaryOp.MAX, N, lit(0))))
    assert simplify_loops(func(For(I, lit(0), N, (step,)))).body == (whole,)
    twice = For(I, lit(0), N, (Assign(P, index(BinaryOp.ADD, P, lit(2))),))
    assert simplify_loops(func(twice)).body == (twice,)
    other = For(I, lit(0), N, (Assign(P, index(BinaryOp.ADD, J, lit(1))),))
    assert simplify_loops(func(other)).body == (other,)


HIT = Var("hit", DType.BOOL)
SET = Assign(HIT, Lit(Const(True, DType.BOOL)))
ONE = Lit(Const(1.0, F64))


def flagged(*body: Stmt) -> LoopFunc:
    start = Let(HIT, Lit(Const(False, DType.BOOL)), mutable=True)
    return func(start, For(P, lit(2), N, body), If(HIT, (store(ONE),)))


def test_a_flag_that_each_round_sets_is_set_behind() -> None:
    some = If(Binary(BinaryOp.LT, lit(2), N, DType.BOOL), (SET,))
    assert simplify_loops(flagged(SET)).body[1:-1] == (some,)
    loop = For(P, lit(2), N, (store(ONE),))
    assert simplify_loops(flagged(store(ONE), SET)).body[1:-1] == (loop, some)
    within = flagged(For(J, lit(0), lit(3), (store(ONE), SET)))
    around, behind = simplify_loops(within).body[1:-1]
    assert around == For(P, lit(2), N, (For(J, lit(0), lit(3), (store(ONE),)),))
    inner = If(Binary(BinaryOp.LT, lit(0), lit(3), DType.BOOL), (SET,))
    assert behind == replace(some, then=(inner,))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((If(HIT, (store(ONE),)), SET), id="read"),
        pytest.param((SET, Assign(HIT, Lit(Const(False, DType.BOOL)))), id="set again"),
        pytest.param((If(Binary(BinaryOp.LT, P, lit(7), DType.BOOL), (SET,)),), id="of the round"),
        pytest.param(
            (
                Store(POS, (P,), Lit(Const(1, POS.dtype))),
                If(Binary(BinaryOp.LT, Cast(Load(POS, (lit(0),)), INDEX), N, DType.BOOL), (SET,)),
            ),
            id="of what the loop writes",
        ),
    ],
)
def test_other_flags_stay(body: tuple[Stmt, ...]) -> None:
    assert simplify_loops(flagged(*body)) == flagged(*body)
