"""Each rule of the tensor IR refuses a program, with its exact message."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sparsejit.affine import AffineMap, Constant, Dim, Mul
from sparsejit.errors import VerificationError
from sparsejit.formats import CSC, CSR, Dense
from sparsejit.ir import verify
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Arg, Binary, Cast, Const, Coordinate, Select, Stored, Unary
from sparsejit.ir.tensor import (
    AllocTensor,
    Convert,
    ExtractSlice,
    For,
    Generic,
    Insert,
    InsertSlice,
    Materialize,
    Op,
    TensorFunc,
    Value,
)
from sparsejit.ir.types import DType, IteratorType, TensorType
from sparsejit.ir.verify import TENSOR_RULES, verify_tensor
from tests.ir.structure_rejects import ARRANGED, BRANCHED, STRUCTURE_REJECTS

F64 = DType.FLOAT64
ZERO = Const(0.0, F64)
VECTOR = TensorType((Dim(0),), F64, Dense(1), ZERO)


def spmv() -> TensorFunc:
    """``%2 = A @ x`` and nothing else."""
    builder = TensorBuilder("spmv")
    A = builder.param("A", ("m", "n"), F64, CSR)
    x = builder.param("x", ("n",), F64)
    y = builder.full(A.type.shape[:1], ZERO)
    body = Binary(BinaryOp.ADD, Arg(2), Binary(BinaryOp.MUL, Arg(0), Arg(1)))
    return builder.finish(builder.generic([(A, (0, 1)), (x, (1,))], (y, (0,)), body))


def loop() -> TensorFunc:
    """``for i: x[i] = y[i]``, and the result written into x."""
    builder = TensorBuilder("loop")
    x = builder.param("x", ("n",), F64, assigned=True)
    y = builder.param("y", ("n",), F64)

    def body(i: Dim, carried: tuple[Value, ...]) -> list[Value]:
        part = builder.extract_slice(y, [i], [1], dropped=(0,))
        return [builder.insert(part, carried[0], [i])]

    (z,) = builder.for_loop(Constant(0), Dim(0), [x], body, name="i")
    part = builder.extract_slice(y, [0], [3])
    z = builder.insert_slice(part, z, [2], [3])
    builder.materialize(z, x)
    return builder.finish(builder.convert(z, Dense(1)))


def change(func: TensorFunc, number: int, **fields: Any) -> TensorFunc:
    """The function with fields of one operation replaced."""
    ops = list(func.ops)
    ops[number] = replace(ops[number], **fields)
    return replace(func, ops=tuple(ops))


def in_loop(func: TensorFunc, **fields: Any) -> TensorFunc:
    """The function with fields of the loop replaced."""
    return change(func, 0, **fields)


def body_of(func: TensorFunc) -> tuple[Op, ...]:
    assert isinstance(func.ops[0], For)
    return func.ops[0].body


def twice(op: Op) -> Op:
    """The insert with each index two times."""
    assert isinstance(op, Insert)
    return replace(op, indices=op.indices * 2)


def append(func: TensorFunc, *ops: Op) -> TensorFunc:
    return replace(func, ops=(*func.ops, *ops))


SPMV, LOOP = spmv(), loop()
A, X = SPMV.params
Y = LOOP.params[1]
assert isinstance(SPMV.ops[2], Generic)
PRODUCT = SPMV.ops[2]
assert isinstance(LOOP.ops[1], ExtractSlice)
PART = LOOP.ops[1].result
NEW = Value("new", VECTOR)
INT = Value("int", TensorType((Dim(0),), DType.INT64, Dense(1), Const(0, DType.INT64)))
INT_SCALAR = Value("s", TensorType((), DType.INT64, Dense(0), Const(0, DType.INT64)))
ARG = Value("arg", VECTOR)
SHORT = Value("0", replace(VECTOR, shape=(Constant(4),)))


def with_type(value: Value, **fields: Any) -> Value:
    return Value(value.name, replace(value.type, **fields))


def with_param(func: TensorFunc, **fields: Any) -> TensorFunc:
    """The function with another parameter, made of NEW with fields of its type replaced."""
    return replace(func, params=(*func.params, with_type(NEW, **fields)))


def with_body(body: object) -> TensorFunc:
    return change(SPMV, 2, body=body)


REJECTS: list[tuple[str, str, TensorFunc]] = [
    *STRUCTURE_REJECTS,
    (
        "symbols have their own names",
        "two symbols are called n",
        replace(SPMV, symbols=("n", "n")),
    ),
    (
        "symbols have their own names",
        "3 of 2 symbols are extents",
        replace(SPMV, num_extents=3),
    ),
    (
        "values are defined once",
        "%0 is defined twice",
        replace(SPMV, ops=(SPMV.ops[0], *SPMV.ops)),
    ),
    (
        "values are defined once",
        "%A is defined twice",
        replace(SPMV, params=(*SPMV.params, A)),
    ),
    (
        "values are defined before use",
        "%1 uses %0, which is not defined there",
        replace(SPMV, ops=SPMV.ops[1:]),
    ),
    (
        "values are defined before use",
        "return uses %new, which is not defined there",
        replace(SPMV, results=(NEW,)),
    ),
    (
        "values are defined before use",
        "return uses %x with another type than it has",
        replace(SPMV, results=(with_type(X, shape=(Dim(0),)),)),
    ),
    (
        "values are defined before use",
        "the end of %3 uses %new, which is not defined there",
        in_loop(LOOP, yields=(NEW,)),
    ),
    (
        "values are defined before use",
        "return uses %2, which is not defined there",
        replace(LOOP, results=(replace(NEW, name="2"),)),
    ),
    (
        "assigned values are parameters",
        "%new is assigned and no parameter",
        replace(SPMV, assigned=(NEW,)),
    ),
    (
        "symbols are in scope",
        "%new reads symbol 1, which has no value there",
        replace(LOOP, params=(*LOOP.params, with_type(NEW, shape=(Dim(1),)))),
    ),
    (
        "symbols are in scope",
        "%3 reads symbol 1, which has no value there",
        in_loop(LOOP, upper=Dim(1)),
    ),
    (
        "symbols are in scope",
        "%5 reads symbol 1, which has no value there",
        change(LOOP, 2, offsets=(Dim(1),)),
    ),
    (
        "symbols are in scope",
        "%new reads symbol 7, which has no value there",
        append(SPMV, AllocTensor(with_type(NEW, shape=(Dim(7),)))),
    ),
    (
        "symbols are in scope",
        "%1 reads symbol 7, which has no value there",
        change(SPMV, 1, extents=(Mul(Constant(2), Dim(7)),)),
    ),
    (
        "loops count with a symbol of their own",
        "%3 counts with symbol 0, no induction variable",
        in_loop(LOOP, induction=0, body=(), yields=(replace(NEW, name="0"),)),
    ),
    (
        "loops count with a symbol of their own",
        "%new counts with symbol 1, as another loop does",
        append(LOOP, For((NEW,), 1, Constant(0), Dim(0), (Y,), (ARG,), (), (ARG,))),
    ),
    (
        "extents have a source",
        "no parameter has the extent n",
        replace(SPMV, params=(with_type(A, shape=(Dim(0), Constant(3))),), ops=(), results=()),
    ),
    (
        "types fit together",
        "%new has rank 1 and a format of rank 2",
        with_param(SPMV, format=CSR),
    ),
    (
        "types fit together",
        "%new of float64 has a fill of int64",
        with_param(SPMV, fill=Const(0, DType.INT64)),
    ),
    (
        "types fit together",
        "%new has the extent -1",
        with_param(SPMV, shape=(Constant(-1),)),
    ),
    (
        "maps fit operands and loops",
        "%2 has 2 maps for 3 operands",
        change(SPMV, 2, indexing_maps=PRODUCT.indexing_maps[:2]),
    ),
    (
        "maps fit operands and loops",
        "%2 has 1 extents for 2 loops",
        change(SPMV, 2, extents=(Dim(0),)),
    ),
    (
        "maps fit operands and loops",
        "%1: the map of operand 0 is over 2 loops of 1",
        change(SPMV, 1, indexing_maps=(AffineMap(2, (Dim(0),)),)),
    ),
    (
        "maps fit operands and loops",
        "%1: the map of operand 0 has 0 results for rank 1",
        change(SPMV, 1, indexing_maps=(AffineMap(1, ()),)),
    ),
    (
        "maps fit operands and loops",
        "%1: the map of operand 0 reads a loop that is not there",
        change(SPMV, 1, indexing_maps=(AffineMap(1, (Dim(1),)),)),
    ),
    (
        "destinations are written once",
        "%1: the destination's map (d0) -> (2 * d0) repeats or computes an index",
        change(SPMV, 1, indexing_maps=(AffineMap(1, (Mul(Constant(2), Dim(0)),)),)),
    ),
    (
        "destinations are written once",
        "%2: reduction loop 0 indexes the destination",
        change(SPMV, 2, iterator_types=(IteratorType.REDUCTION,) * 2),
    ),
    (
        "destinations are written once",
        "%2: parallel loop 1 does not index the destination",
        change(SPMV, 2, iterator_types=(IteratorType.PARALLEL,) * 2),
    ),
    ("bodies are typed", "%2: the body reads operand 3 of 3", with_body(Arg(3))),
    (
        "bodies are typed",
        "%2: the body reads operand -1 of 3",
        with_body(Select(Stored(-1), Arg(0), Arg(1))),
    ),
    (
        "bodies are typed",
        "%2: the body reads the coordinate of loop 2 of 2",
        with_body(Cast(Coordinate(2), F64)),
    ),
    (
        "bodies are typed",
        "%2: BinaryOp.ADD of float64 and int64",
        with_body(Binary(BinaryOp.ADD, Arg(0), Coordinate(0))),
    ),
    (
        "bodies are typed",
        "%2: BinaryOp.AND is not defined on float64",
        with_body(Binary(BinaryOp.AND, Arg(0), Arg(1))),
    ),
    (
        "bodies are typed",
        "%2: UnaryOp.SQRT is not defined on int64",
        with_body(Cast(Unary(UnaryOp.SQRT, Coordinate(0)), F64)),
    ),
    (
        "bodies are typed",
        "%2: a condition is bool, not float64",
        with_body(Select(Arg(0), Arg(0), Arg(1))),
    ),
    (
        "bodies are typed",
        "%2: a select of float64 and int64",
        with_body(Select(Stored(0), Arg(0), Coordinate(0))),
    ),
    (
        "bodies are typed",
        "%2: a body of int64 for a result of float64",
        with_body(Coordinate(0)),
    ),
    (
        "results have the type of their destination",
        "%2 has another type than its destination %1",
        replace(change(SPMV, 2, result=Value("2", X.type)), results=()),
    ),
    (
        "results have the type of their destination",
        "%new has another type than its destination %x",
        append(LOOP, Materialize(with_type(NEW, shape=(Constant(2),)), Y, LOOP.params[0])),
    ),
    (
        "conversions keep all but the format",
        "%new changes more than the format of %A",
        append(SPMV, Convert(with_type(Value("new", A.type), format=CSC, shape=(Dim(0),) * 2), A)),
    ),
    (
        "conversions keep all but the format",
        "%new changes more than the format of %x",
        append(SPMV, AllocTensor(NEW, X)),
    ),
    (
        "inserts fit",
        "%new inserts %x of rank 1",
        append(LOOP, Insert(NEW, LOOP.params[0], Y, (Dim(0),))),
    ),
    (
        "inserts fit",
        "%new inserts int64 into float64",
        replace(
            append(LOOP, Insert(NEW, INT_SCALAR, Y, (Constant(0),))),
            params=(*LOOP.params, INT_SCALAR),
        ),
    ),
    (
        "inserts fit",
        "%2 has 2 indices for rank 1",
        in_loop(LOOP, body=(body_of(LOOP)[0], twice(body_of(LOOP)[1]))),
    ),
    ("slices fit", "%4: 2 offsets for rank 1", change(LOOP, 1, offsets=(Constant(0),) * 2)),
    ("slices fit", "%4: 0 sizes for rank 1", change(LOOP, 1, sizes=())),
    ("slices fit", "%5: 2 strides for rank 1", change(LOOP, 2, strides=(1, 1))),
    ("slices fit", "%4: a stride of 0", change(LOOP, 1, strides=(0,))),
    ("slices fit", "%4: drops the dimensions [1] of rank 1", change(LOOP, 1, dropped=(1,))),
    ("slices fit", "%4: drops the dimensions [0, 0] of rank 1", change(LOOP, 1, dropped=(0, 0))),
    ("slices fit", "%5: drops a dimension whose size is not 1", change(LOOP, 2, dropped=(0,))),
    (
        "slices fit",
        "%5: the shape of %4 is not that of the slice",
        change(LOOP, 2, sizes=(Constant(2),)),
    ),
    (
        "slices fit",
        "%new: a slice of int64 in float64",
        append(LOOP, ExtractSlice(replace(INT, name="new"), Y, (Constant(0),), (Dim(0),), (1,))),
    ),
    (
        "slices fit",
        "%new: a slice of int64 in float64",
        append(
            replace(LOOP, params=(*LOOP.params, INT)),
            InsertSlice(NEW, INT, Y, (Constant(0),), (Dim(0),), (1,)),
        ),
    ),
    (
        "only assigned parameters are written",
        "%6 writes %x, which is read only",
        replace(LOOP, assigned=()),
    ),
    (
        "only assigned parameters are written",
        "%new writes %4, which is read only",
        append(LOOP, Materialize(Value("new", PART.type), PART, PART)),
    ),
    (
        "only assigned parameters are written",
        "%new: %int cannot be the contents of %x",
        append(replace(LOOP, params=(*LOOP.params, INT)), Materialize(NEW, INT, LOOP.params[0])),
    ),
    (
        "loops carry what they take",
        "%3 carries a different number of values in, inside and out",
        in_loop(LOOP, inits=(*LOOP.params,)),
    ),
    (
        "loops carry what they take",
        "%3: %x, %0 and %3 differ in type",
        in_loop(LOOP, args=(SHORT,), body=(), yields=(Y,)),
    ),
    (
        "loops carry what they take",
        "%3: %int cannot become %0",
        in_loop(replace(LOOP, params=(*LOOP.params, INT)), body=(), yields=(INT,)),
    ),
    (
        "copies belong to the stage",
        "%new copies %y",
        append(LOOP, AllocTensor(NEW, Y)),
    ),
]


@pytest.mark.parametrize(("rule", "what", "func"), REJECTS, ids=[what for _, what, _ in REJECTS])
def test_reject(rule: str, what: str, func: TensorFunc) -> None:
    with pytest.raises(VerificationError) as caught:
        verify_tensor(func, after="a pass")
    assert str(caught.value) == (
        f"broken invariant '{rule}' after a pass: {what}\n"
        "  this is a bug of sparsejit; please report it with the program"
    )
    assert f"@{func.name}" in caught.value.ir_text or repr(func) == caught.value.ir_text


def test_every_rule_refuses_a_program() -> None:
    assert {rule for rule, _, _ in REJECTS} == {named(rule) for rule in TENSOR_RULES}


def named(rule: Callable[..., object]) -> str:
    assert rule.__doc__
    assert re.fullmatch(r"[A-Z].*\.", rule.__doc__.splitlines()[0])
    return rule.__name__.replace("_", " ").strip()


@pytest.mark.parametrize("func", [SPMV, LOOP, BRANCHED, ARRANGED], ids=lambda func: func.name)
def test_accept(func: TensorFunc) -> None:
    verify_tensor(func)


def test_copies_are_legal_inside_the_stage() -> None:
    verify_tensor(append(LOOP, AllocTensor(NEW, Y)), inside_stage=True)


def test_the_text_of_a_program_without_text_is_its_repr() -> None:
    broken = replace(SPMV, symbols=())
    with pytest.raises(VerificationError) as caught:
        verify_tensor(broken)
    assert caught.value.ir_text == repr(broken)
    assert caught.value.rule == "symbols have their own names"


def test_what_was_found_right_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[TensorFunc] = []

    def rule(func: TensorFunc) -> tuple[str, ...]:
        looked.append(func)
        return ()

    monkeypatch.setattr(verify, "TENSOR_RULES", (rule,))
    same = replace(SPMV)
    for func in (SPMV, SPMV, same, SPMV):
        verify_tensor(func)
    assert list(map(id, looked)) == list(map(id, (SPMV, same, SPMV)))
    verify_tensor(same, inside_stage=True)
    verify_tensor(SPMV)  # inside the stage more is legal: that says nothing
    assert len(looked) == 4
