"""Golden texts of the tensor IR, and the table of its spellings."""

from __future__ import annotations

import math

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.affine import Constant, Dim, Mul, add, floordiv
from sparsejit.errors import Location
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
    CSF,
    CSR,
    DCSC,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Dense,
    Format,
    SparseVector,
)
from sparsejit.ir.build import TensorBuilder
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.printing import format_text, loop_names, print_scalar, print_tensor
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
)
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType

F64, I64 = DType.FLOAT64, DType.INT64
ZERO, ONE = Const(0.0, F64), Const(1.0, F64)
A, B, OUT = Arg(0), Arg(1), Arg(2)


def add_(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.ADD, lhs, rhs)


def mul(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.MUL, lhs, rhs)


def sub(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.SUB, lhs, rhs)


def power(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.POW, lhs, rhs)


def less(lhs: ScalarExpr, rhs: ScalarExpr) -> Binary:
    return Binary(BinaryOp.LT, lhs, rhs)


def neg(operand: ScalarExpr) -> Unary:
    return Unary(UnaryOp.NEG, operand)


def test_spmv(file_regression: FileRegressionFixture) -> None:
    builder = TensorBuilder("spmv")
    matrix = builder.param("A", (builder.extent(), builder.extent()), F64, CSR)
    x = builder.param("x", (Dim(1),), F64)
    y = builder.full(matrix.type.shape[:1], ZERO)
    y = builder.generic([(matrix, (0, 1)), (x, (1,))], (y, (0,)), add_(OUT, mul(A, B)))
    file_regression.check(print_tensor(builder.finish(y)))


def test_every_operation(file_regression: FileRegressionFixture) -> None:
    builder = TensorBuilder("update")
    matrix = builder.param("A", ("m", "n"), F64, CSR.with_widths(32, 32), ONE)
    x = builder.param("x", ("n",), F64, assigned=True)
    builder.alloc_tensor(x.type)
    sparse = builder.empty(matrix.type)
    builder.convert(sparse, BSR(2, 3))

    def body(i: Dim, carried: tuple[Value, ...]) -> list[Value]:
        part = builder.extract_slice(carried[0], [i], [1], dropped=(0,))
        every = builder.extract_slice(matrix, [0, i], [Dim(0), 1])
        builder.extract_slice(builder.convert(every, Dense(2)), [1, 0], [2, 1], [2, 1], (1,))
        whole = builder.insert_slice(part, carried[0], [i], [1], dropped=(0,))
        return [builder.insert(part, whole, [add(i, Constant(-1))]), carried[1]]

    twice = Mul(Constant(2), Dim(1))
    result = builder.for_loop(Constant(1), twice, [x, x], body)
    builder.materialize(result[0], x)
    builder.for_loop(Constant(0), Dim(0), [], lambda i, carried: [])
    file_regression.check(print_tensor(builder.finish(*result, matrix)))


def test_loops_and_branches(file_regression: FileRegressionFixture) -> None:
    builder = TensorBuilder("control")
    x = builder.param("x", ("n",), F64)
    p = builder.param("p", (), DType.BOOL)
    here = Location("model.py", 3, "control")

    def condition(carried: tuple[Value, ...]) -> Value:
        start = builder.empty(p.type)
        first = builder.extract_slice(carried[0], [0], [1], dropped=(0,))
        return builder.generic([(first, ())], (start, ()), less(A, ONE))

    def body(carried: tuple[Value, ...]) -> list[Value]:
        return [builder.generic([], (carried[0], (0,)), add_(A, ONE)), carried[1]]

    loop = builder.while_loop([x, x], condition, body, location=here)
    made = builder.branch(p, lambda: loop, lambda: (x, x))
    builder.while_loop([], lambda carried: p, lambda carried: carried)
    builder.branch(p, lambda: (), lambda: (), location=here)
    func = builder.finish(*made)
    file_regression.check(print_tensor(func) + "\n" + print_tensor(func, locations=True))


def test_arrangements(file_regression: FileRegressionFixture) -> None:
    builder = TensorBuilder("arranged")
    matrix = builder.param("A", ("m", "n"), F64, CSR)
    x = builder.param("x", ("n",), F64)
    rows, columns = matrix.type.shape
    flat = builder.reshape(matrix, (Mul(rows, columns),), SparseVector)
    wide = builder.concat([matrix, matrix, matrix], 1)
    padded = builder.pad(matrix, [1, columns], [0, 2])
    column = builder.pad(builder.reshape(x, (columns, 1)), [1, 0], [0, 0], ONE)
    file_regression.check(print_tensor(builder.finish(flat, wide, padded, column)))


def test_loops_with_extents_of_their_own(file_regression: FileRegressionFixture) -> None:
    builder = TensorBuilder("i")
    x = builder.param("x", ("i",), F64)
    one = builder.param("one", (), F64, assigned=True)
    half = (floordiv(Dim(0), 2),)
    twice = Mul(Constant(2), Dim(0))
    pairs = builder.generic([(x, (twice,)), (one, ())], (one, ()), add_(OUT, A), extents=half)
    file_regression.check(print_tensor(builder.finish(pairs)))


def test_long_lines_are_split(file_regression: FileRegressionFixture) -> None:
    builder = TensorBuilder("the_matricized_tensor_times_khatri_rao_product")
    X = builder.param("X", ("rows", "columns", "tubes"), F64, CSF(3))
    left = builder.param("left_factor", ("columns", "rank"), F64)
    right = builder.param("right_factor", ("tubes", "rank"), F64)
    out = builder.full((Dim(0), builder.extent("rank")), ZERO)
    here = Location("somewhere/cp.py", 12, "mttkrp")
    accesses = [(X, (0, 1, 2)), (left, (1, 3)), (right, (2, 3))]
    body = add_(Arg(3), mul(mul(A, B), Arg(2)))
    result = builder.generic(accesses, (out, (0, 3)), body, location=here)
    func = builder.finish(result)
    file_regression.check(print_tensor(func) + "\n" + print_tensor(func, locations=True))
    assert max(map(len, print_tensor(func).splitlines())) <= 100


def test_formats(file_regression: FileRegressionFixture) -> None:
    formats = [
        *(Dense(0), Dense(3), SparseVector, CSR, CSC, DCSR, DCSC, DIA, NV24, ELL(7), BSR(1, 4)),
        *(COO(1), COO(2), COO(3), CSF(1), CSF(2), CSF(3)),
        *(Batched(CSR), Batched(CSC, 2), CSR.with_widths(8, 0), COO(2).with_widths(64, 32)),
        Format("(i, j) -> (j : compressed, i floordiv 2 : compressed, i mod 2 : dense)"),
        Format("(i, j) -> (i : compressed(nonunique), j : singleton(nonordered))", 16, 16),
        Batched(DIA),
    ]
    file_regression.check("".join(f"{format_text(fmt)}\n" for fmt in formats))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (add_(add_(A, B), OUT), "in0 + in1 + out"),
        (add_(A, add_(B, OUT)), "in0 + (in1 + out)"),
        (sub(A, sub(B, OUT)), "in0 - (in1 - out)"),
        (sub(sub(A, B), OUT), "in0 - in1 - out"),
        (mul(add_(A, B), OUT), "(in0 + in1) * out"),
        (add_(mul(A, B), OUT), "in0 * in1 + out"),
        (power(power(A, B), OUT), "(in0 ** in1) ** out"),
        (power(A, power(B, OUT)), "in0 ** (in1 ** out)"),
        (power(neg(A), B), "(-in0) ** in1"),
        (neg(power(A, B)), "-in0 ** in1"),
        (neg(neg(A)), "-(-in0)"),
        (neg(add_(A, B)), "-(in0 + in1)"),
        (sub(A, neg(B)), "in0 - -in1"),
        (mul(A, Const(-1.0, F64)), "in0 * -1.0"),
        (power(Const(-1.0, F64), A), "(-1.0) ** in0"),
        (less(less(A, B), less(A, B)), "(in0 < in1) < (in0 < in1)"),
        (Binary(BinaryOp.AND, less(A, B), Stored(0)), "(in0 < in1) & stored(in0)"),
        (Binary(BinaryOp.MIN, A, Binary(BinaryOp.MAX, B, OUT)), "min(in0, max(in1, out))"),
        (Binary(BinaryOp.SHL, A, add_(B, B)), "in0 << in1 + in1"),
        (Unary(UnaryOp.NOT, Stored(2)), "~stored(out)"),
        (Unary(UnaryOp.SQRT, A), "sqrt(in0)"),
        (Cast(add_(Coordinate(0), Coordinate(1)), DType.COMPLEX64), "c64(i + j)"),
        (Select(Stored(0), A, Nothing(F64)), "select(stored(in0), in0, nothing)"),
        (Const(math.nan, F64), "nan"),
        (Const(-math.inf, F64), "-inf"),
        (Const(-0.0, F64), "-0.0"),
        (Const(True, DType.BOOL), "True"),
        (Const(1 - 2j, DType.COMPLEX64), "(1-2j)"),
    ],
)
def test_scalar_expressions(expr: ScalarExpr, text: str) -> None:
    assert print_scalar(expr, 2, ("i", "j")) == text


def test_loop_names() -> None:
    names = loop_names(16, taken=("j", "i1"))
    assert names == (*"iklmnpqrstuvw", "j1", "k1", "l1")
    assert len(set(loop_names(100))) == 100


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (DType.BOOL, "bool"),
        (DType.INT8, "i8"),
        (DType.INT64, "i64"),
        (DType.UINT16, "u16"),
        (DType.FLOAT16, "f16"),
        (DType.BFLOAT16, "bf16"),
        (DType.FLOAT32, "f32"),
        (DType.COMPLEX128, "c128"),
    ],
)
def test_dtypes(dtype: DType, text: str) -> None:
    assert dtype.short == text
    builder = TensorBuilder("f")
    x = builder.param("x", (2,), dtype)
    assert f"%x: {text}[2])" in print_tensor(builder.finish(x))
