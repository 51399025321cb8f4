"""Golden texts of the loop IR."""

from __future__ import annotations

from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.affine import Constant as AffineConstant
from sparsejit.affine import Dim, Mul
from sparsejit.formats import CSR
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Cast,
    Copy,
    Dealloc,
    DenseResult,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    ParamResult,
    Push,
    Resize,
    Scan,
    ScanOp,
    Search,
    Select,
    Sort,
    SparseResult,
    Store,
    Unary,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops

F64, I32, BOOL = DType.FLOAT64, DType.INT32, DType.BOOL
D0, D1 = Var("d0", INDEX), Var("d1", INDEX)
POS, CRD = Memref("A_pos1", I32, 1), Memref("A_crd1", I32, 1)
VALS, X, B0 = Memref("A_vals", F64, 1), Memref("x", F64, 1), Memref("b0", F64, 1)
I, J, P = Var("i", INDEX), Var("j", INDEX), Var("p1", INDEX)


def lit(value: int) -> Lit:
    return Lit(Const(value, INDEX))


def binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Binary:
    return Binary(op, lhs, rhs, INDEX)


def test_spmv(file_regression: FileRegressionFixture) -> None:
    first = Cast(Load(POS, (I,)), INDEX)
    last = Cast(Load(POS, (binary(BinaryOp.ADD, I, lit(1)),)), INDEX)
    product = Binary(BinaryOp.MUL, Load(VALS, (P,)), Load(X, (J,)), F64)
    row = (
        Let(J, Cast(Load(CRD, (P,)), INDEX)),
        Store(B0, (I,), product, BinaryOp.ADD),
    )
    body = (
        Alloc(B0, (D0,), Const(0.0, F64)),
        For(I, lit(0), D0, (For(P, first, last, row),), parallel=True),
    )
    func = LoopFunc("spmv", (D0, D1, POS, CRD, VALS, X), body, (DenseResult(B0),))
    verify_loops(func)
    file_regression.check(print_loops(func))


def test_every_statement(file_regression: FileRegressionFixture) -> None:
    m, grid = Memref("m", F64, 2), Memref("grid", F64, 2, space=1)
    total, seen = Var("total", F64), Var("seen", BOOL)
    row, part = Memref("row", F64, 1), Memref("part", F64, 2)
    c0, flag = Memref("c0", INDEX, 1), Memref("flag", BOOL, 0)
    pairs = Memref("pairs", DType.UINT8, 2)
    targets = (Memref("t_pos1", INDEX, 1), Memref("t_crd1", INDEX, 1), Memref("t_vals", F64, 1))
    order = Memref("order", INDEX, 1)
    zero, half = Const(0.0, F64), Lit(Const(0.5, F64))
    true = Lit(Const(True, BOOL))
    where = Search(c0, lit(0), DimOf(c0, 0), J)
    found = binary(BinaryOp.SUB, P, lit(1))
    body = (
        Alloc(c0, (binary(BinaryOp.MUL, D0, binary(BinaryOp.ADD, D1, lit(1))),)),
        Alloc(grid, (D0, D1), zero),
        Alloc(flag, (), Const(False, BOOL)),
        Let(total, half, mutable=True),
        For(
            I,
            lit(0),
            D0,
            (Assign(total, Binary(BinaryOp.MIN, total, Load(m, (I, lit(0))), F64)),),
            parallel=True,
            reductions=((total, BinaryOp.MIN), (total, BinaryOp.ADD)),
        ),
        Let(seen, Load(flag, ()), mutable=True),
        While(
            Binary(BinaryOp.AND, Unary(UnaryOp.NOT, seen, BOOL), Load(flag, ()), BOOL),
            (
                Let(J, Select(seen, DimOf(m, 1), Search(pairs, D0, D1, D0, False, 1))),
                If(
                    Binary(BinaryOp.LT, J, D0, BOOL),
                    (Let(P, where), Push(c0, found, J)),
                    (If(seen, (Store(flag, (), true),)), Assign(seen, true)),
                ),
            ),
        ),
        Store(grid, (lit(0), lit(1)), half, BinaryOp.MAX),
        Store(grid, (lit(0), lit(1)), half, BinaryOp.MUL),
        View(row, m, (D0, lit(0)), (lit(1), D1), (1, -2), (0,)),
        View(part, m, (lit(0), lit(0)), (D0, D1), (1, 1)),
        Copy(grid, part),
        Scan(c0, ScanOp.SUM),
        Scan(c0, ScanOp.MAX),
        Resize(c0, D0),
        Assemble(targets, CSR.with_widths(64, 64), (D0, D1), (c0, c0), row, D0, zero),
        Sort(order, (c0, c0), (D0, binary(BinaryOp.MUL, D1, lit(2))), D0),
        Dealloc(order),
        Dealloc(flag),
        Dealloc(c0),
    )
    shape = (Dim(0), Mul(AffineConstant(2), Dim(1)))
    results = (
        DenseResult(grid),
        ParamResult(3),
        SparseResult(CSR, shape, zero, targets),
        SparseResult(CSR, shape, Const(1.0, F64), targets),
    )
    scalar = Var("alpha", DType.COMPLEX64)
    func = LoopFunc("every", (D0, D1, m, pairs, scalar), body, results)
    verify_loops(func)
    file_regression.check(print_loops(func))


def test_long_headers_are_split(file_regression: FileRegressionFixture) -> None:
    params = tuple(Memref(f"operand_{k}_vals", F64, k % 3, k % 2) for k in range(4))
    func = LoopFunc("a_function_of_many_operands", params, (), ())
    file_regression.check(print_loops(func))
