"""The tensor pass: dead operations and constants."""

import pytest

from sparsejit.affine import Constant, Dim
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.printing import print_tensor
from sparsejit.ir.scalar import Arg, Binary, Cast, Const, Nothing, ScalarExpr, Select, Stored, Unary
from sparsejit.ir.tensor import For, Value
from sparsejit.ir.types import DType
from sparsejit.passes import canonicalize
from sparsejit.passes.canonicalize import fold_constants

F64 = DType.FLOAT64
ONE, TWO, ZERO = (Const(float(value), F64) for value in (1, 2, 0))


@pytest.mark.parametrize(
    ("expr", "folded"),
    [
        (Binary(BinaryOp.ADD, ONE, TWO), Const(3.0, F64)),
        (Binary(BinaryOp.MUL, Arg(0), Binary(BinaryOp.ADD, ONE, ONE)),
         Binary(BinaryOp.MUL, Arg(0), TWO)),
        (Unary(UnaryOp.NEG, ONE), Const(-1.0, F64)),
        (Cast(TWO, DType.INT8), Const(2, DType.INT8)),
        (Select(Const(True, DType.BOOL), Arg(0), Arg(1)), Arg(0)),
        (Select(Binary(BinaryOp.LT, TWO, ONE), Arg(0), Arg(1)), Arg(1)),
        # Nothing of an operand is assumed: x + 0 is not x for -0, x * 0 not 0 for nan.
        (Binary(BinaryOp.ADD, Arg(0), ZERO), Binary(BinaryOp.ADD, Arg(0), ZERO)),
        (Binary(BinaryOp.MUL, Arg(0), ZERO), Binary(BinaryOp.MUL, Arg(0), ZERO)),
        (Select(Stored(0), Arg(0), Nothing(F64)), Select(Stored(0), Arg(0), Nothing(F64))),
        (Binary(BinaryOp.ADD, ONE, Nothing(F64)), Binary(BinaryOp.ADD, ONE, Nothing(F64))),
    ],
)  # fmt: skip
def test_constants_are_folded(expr: ScalarExpr, folded: ScalarExpr) -> None:
    assert fold_constants(expr) == folded
    assert fold_constants(folded) == folded


def test_what_nobody_needs_is_dropped() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    unused = builder.full(x.type.shape, ONE)
    builder.generic([(unused, (0,)), (x, (0,))], (unused, (0,)), Arg(1))
    body = Binary(BinaryOp.ADD, ONE, ONE)
    y = builder.generic([], (builder.empty(x.type), (0,)), body)
    func = canonicalize(builder.finish(y))
    assert [type(op).__name__ for op in func.ops] == ["Empty", "Generic"]
    assert "{ 2.0 }" in print_tensor(func)
    assert canonicalize(func) == func


def test_writes_into_arguments_stay() -> None:
    builder = TensorBuilder("f")
    y = builder.param("y", ("n",), F64)
    ones = builder.full(y.type.shape, ONE)
    builder.materialize(ones, y)
    func = builder.finish()
    assert canonicalize(func) is func


def test_loops_keep_what_they_carry() -> None:
    builder = TensorBuilder("f")
    x = builder.param("x", ("n",), F64)
    start = builder.generic([], (builder.empty(x.type), (0,)), ONE)

    def body(_: Dim, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        builder.full(x.type.shape, TWO)  # dead, inside the loop
        added = Binary(BinaryOp.ADD, Arg(0), Arg(1))
        return (builder.generic([(x, (0,))], (carried[0], (0,)), added),)

    n = builder.extent("n")
    carried = builder.for_loop(Constant(0), n, (start,), body)
    dead = builder.for_loop(Constant(0), n, (start,), body)
    assert dead != carried
    func = canonicalize(builder.finish(*carried))
    loops = [op for op in func.ops if isinstance(op, For)]
    assert len(loops) == 1
    assert [type(op).__name__ for op in loops[0].body] == ["Generic"]
