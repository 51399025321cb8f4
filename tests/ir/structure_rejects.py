"""Programs with loops, branches, reshapes, concatenations and padding that break one rule each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparsejit.affine import Constant, Dim, add
from sparsejit.formats import CSR, Dense
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Arg, Binary, Const
from sparsejit.ir.tensor import Concat, If, Op, Pad, Reshape, TensorFunc, Value, While
from sparsejit.ir.types import DType, TensorType

__all__ = ["ARRANGED", "BRANCHED", "STRUCTURE_REJECTS"]

F64 = DType.FLOAT64
ZERO = Const(0.0, F64)


def branched() -> TensorFunc:
    """``while x[0] < 1: x = x`` and ``x if p else y``."""
    builder = TensorBuilder("branched")
    x = builder.param("x", ("n",), F64)
    y = builder.param("y", ("n",), F64)
    p = builder.param("p", (), DType.BOOL)

    def condition(carried: tuple[Value, ...]) -> Value:
        first = builder.extract_slice(carried[0], [0], [1], dropped=(0,))
        start = builder.empty(p.type)
        return builder.generic([(first, ())], (start, ()), Binary(BinaryOp.LT, Arg(0), ZERO))

    (z,) = builder.while_loop([x], condition, lambda carried: carried)
    (w,) = builder.branch(p, lambda: (x,), lambda: (y,))
    return builder.finish(z, w)


def arranged() -> TensorFunc:
    """A reshape, two concatenations and two paddings."""
    builder = TensorBuilder("arranged")
    x = builder.param("x", (6,), F64)
    A = builder.param("A", ("m", "n"), F64, CSR)
    builder.reshape(x, (2, 3))
    builder.concat([x, x], 0)
    builder.concat([A, A], 1)
    builder.pad(x, [1], [2])
    builder.pad(A, [1, 0], [2, 0])
    return builder.finish(A)


BRANCHED, ARRANGED = branched(), arranged()
X, Y, P = BRANCHED.params
VECTOR = X.type
INT = Value("int", TensorType((Dim(0),), DType.INT64, Dense(1), Const(0, DType.INT64)))
SHORT = TensorType((Constant(4),), F64, Dense(1), ZERO)
A = ARRANGED.params[1]
ONE = Const(1.0, F64)


def change(func: TensorFunc, number: int, **fields: Any) -> TensorFunc:
    """The function with fields of one operation replaced."""
    ops = list(func.ops)
    ops[number] = replace(ops[number], **fields)
    return replace(func, ops=tuple(ops))


def with_int(func: TensorFunc) -> TensorFunc:
    return replace(func, params=(*func.params, INT))


def new(kind: TensorType) -> Value:
    return Value("new", kind)


def alone(op: Op, *params: Value) -> TensorFunc:
    """A function of just one operation on parameters."""
    given = (*ARRANGED.params, *params)
    return replace(ARRANGED, params=given, ops=(op,), results=())


def vector(*shape: int, dtype: DType = F64) -> TensorType:
    fill = Const(0.0, dtype) if dtype is F64 else Const(0, dtype)
    return TensorType(tuple(map(Constant, shape)), dtype, Dense(len(shape)), fill)


LOOP, BRANCH = BRANCHED.ops
assert isinstance(LOOP, While)
assert isinstance(BRANCH, If)
UNDEFINED = replace(BRANCH, else_yields=LOOP.results)
SIX = ARRANGED.params[0]
FILLED = Value("filled", replace(A.type, fill=ONE))
WIDER = replace(A.type, shape=(add(A.type.shape[0], Constant(1)), A.type.shape[1]))

STRUCTURE_REJECTS: list[tuple[str, str, TensorFunc]] = [
    (
        "values are defined before use",
        "the end of %5 uses %new, which is not defined there",
        change(BRANCHED, 0, condition=new(P.type)),
    ),
    (
        "values are defined before use",
        "the end of %6 uses %5, which is not defined there",
        replace(change(BRANCHED, 1, else_yields=LOOP.results), ops=(UNDEFINED,), results=()),
    ),
    (
        "loops carry what they take",
        "%5 carries a different number of values in, inside and out",
        change(BRANCHED, 0, body_args=(), yields=(Y,)),
    ),
    (
        "loops carry what they take",
        "%5: %x, %0, %4 and %5 differ in type",
        change(BRANCHED, 0, body_args=(Value("4", SHORT),), yields=(Y,)),
    ),
    (
        "loops carry what they take",
        "%5: %int cannot become %0",
        change(with_int(BRANCHED), 0, yields=(INT,)),
    ),
    (
        "conditions are truth values",
        "%5: %x is no truth value",
        change(BRANCHED, 0, condition=X),
    ),
    (
        "conditions are truth values",
        "%6: %x is no truth value",
        change(BRANCHED, 1, condition=X),
    ),
    (
        "branches yield the results",
        "%6: the branches yield a different number of values",
        change(BRANCHED, 1, then_yields=()),
    ),
    (
        "branches yield the results",
        "%6: %int cannot become %6",
        change(with_int(BRANCHED), 1, else_yields=(INT,)),
    ),
    (
        "reshapes keep the elements",
        "%new changes more than the shape of %x",
        alone(Reshape(new(vector(6, dtype=DType.INT64)), SIX)),
    ),
    (
        "reshapes keep the elements",
        "%new: 6 elements in a shape of 8",
        alone(Reshape(new(vector(2, 4)), SIX)),
    ),
    (
        "parts fit together",
        "%new puts 0 tensors together along dimension 0",
        alone(Concat(new(vector(6)), (), 0)),
    ),
    (
        "parts fit together",
        "%new puts 1 tensors together along dimension 1",
        alone(Concat(new(vector(6)), (SIX,), 1)),
    ),
    (
        "parts fit together",
        "%new: %x of rank 1 and float64 does not fit",
        alone(Concat(new(vector(6, 1)), (SIX,), 0)),
    ),
    (
        "parts fit together",
        "%new: %A has another fill value",
        alone(Concat(new(FILLED.type), (A,), 0)),
    ),
    (
        "parts fit together",
        "%new: %A has another extent along dimension 0",
        alone(Concat(new(WIDER), (A,), 1)),
    ),
    (
        "parts fit together",
        "%new: the extents along dimension 0 do not add up",
        alone(Concat(new(vector(13)), (SIX, SIX), 0)),
    ),
    (
        "padding fits",
        "%new: the widths do not fit the rank 1 of %x",
        alone(Pad(new(vector(6)), SIX, (), (), ZERO)),
    ),
    (
        "padding fits",
        "%new pads float64 with int64",
        alone(Pad(new(vector(6)), SIX, (Constant(0),), (Constant(0),), INT.type.fill)),
    ),
    (
        "padding fits",
        "%new: a sparse tensor is padded with another value than its fill",
        alone(Pad(new(A.type), A, (Constant(0),) * 2, (Constant(0),) * 2, ONE)),
    ),
    (
        "padding fits",
        "%new changes the fill value of %A",
        alone(Pad(new(FILLED.type), A, (Constant(0),) * 2, (Constant(0),) * 2, ONE)),
    ),
    (
        "padding fits",
        "%new pads by -1",
        alone(Pad(new(vector(5)), SIX, (Constant(-1),), (Constant(0),), ZERO)),
    ),
    (
        "padding fits",
        "%new: the widths and extents do not add up",
        alone(Pad(new(vector(8)), SIX, (Constant(1),), (Constant(0),), ZERO)),
    ),
]
