"""Walks over the loop IR see every statement and name, and rebuild what they are told to."""

from __future__ import annotations

from hypothesis import given, settings

from sparsejit.affine import Dim
from sparsejit.formats import CSR
from sparsejit.ir.loop_walk import (
    all_expressions,
    all_statements,
    expr_dtype,
    expressions,
    free_memrefs,
    free_vars,
    map_body,
    map_expr,
    memrefs,
    memrefs_defined,
    memrefs_written,
    result_memrefs,
)
from sparsejit.ir.loops import (
    Alloc,
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
    Stmt,
    Store,
    Unary,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from tests.ir.loop_functions import loop_functions

F64 = DType.FLOAT64
X, Y, C = Memref("x", F64, 1), Memref("y", F64, 1), Memref("c", INDEX, 1)
ORDER = Memref("o", INDEX, 1)
B, W = Memref("b", F64, 1), Memref("w", F64, 1)
N, P, Q, S = Var("n", INDEX), Var("p", INDEX), Var("q", INDEX), Var("s", F64)
TRUE = Lit(Const(True, DType.BOOL))


def lit(value: int) -> Lit:
    return Lit(Const(value, INDEX))


def test_dtypes_and_parts_of_expressions() -> None:
    load = Load(X, (P,))
    cases: list[tuple[Expr, DType, int]] = [
        (N, INDEX, 1),
        (lit(3), INDEX, 1),
        (load, F64, 2),
        (Unary(UnaryOp.ISNAN, load, DType.BOOL), DType.BOOL, 3),
        (Binary(BinaryOp.ADD, load, load, F64), F64, 5),
        (Select(TRUE, load, S), F64, 5),
        (Cast(load, INDEX), INDEX, 3),
        (DimOf(X, 0), INDEX, 1),
        (Search(C, N, P, Q), INDEX, 4),
    ]
    for expr, dtype, size in cases:
        assert expr_dtype(expr) is dtype
        assert len(list(all_expressions(expr))) == size


def test_memrefs_of_statements() -> None:
    cases: list[tuple[Stmt, list[str], list[str], list[str]]] = [
        (Let(S, Load(X, (lit(0),))), ["x"], [], []),
        (Store(Y, (Search(C, N, N, N),), Load(X, (DimOf(B, 0),))), ["c", "x", "b", "y"], ["y"], []),
        (Copy(Y, X), ["x", "y"], ["y"], []),
        (Push(Y, N, S), ["y"], ["y"], []),
        (Scan(C, ScanOp.SUM), ["c"], ["c"], []),
        (Resize(C, N), ["c"], ["c"], []),
        (Alloc(B, (N,)), [], [], ["b"]),
        (Sort(ORDER, (C, C), (N, N), N), ["c", "c"], [], ["o"]),
        (Dealloc(B), ["b"], [], []),
        (View(W, X, (N,), (N,), (1,)), ["x"], [], ["w"]),
    ]
    for stmt, used, written, defined in cases:
        assert [memref.name for memref in memrefs(stmt)] == used
        assert [memref.name for memref in memrefs_written(stmt)] == written
        assert [memref.name for memref in memrefs_defined(stmt)] == defined


BODY: tuple[Stmt, ...] = (
    Alloc(B, (N,)),
    Let(S, Load(X, (lit(0),)), True),
    For(P, lit(0), N, (If(TRUE, (Store(B, (P,), S),), (Assign(S, Load(Y, (P,))),)),)),
    While(TRUE, (Let(Q, DimOf(C, 0)), Store(B, (Q,), S))),
    Dealloc(B),
)


def test_free_names() -> None:
    assert free_memrefs(BODY) == (X, Y, C)
    assert free_memrefs(BODY[2:]) == (B, Y, C)
    assert free_vars(BODY) == (N,)
    assert free_vars(BODY[2:]) == (N, S)
    reduced = For(P, N, N, (), True, ((S, BinaryOp.ADD),))
    assert free_vars((reduced,)) == (N, S)
    assert free_vars((Assign(S, N),)) == (N, S)


def test_statements_come_in_program_order() -> None:
    kinds = [type(stmt).__name__ for stmt in all_statements(BODY)]
    assert kinds == [
        "Alloc",
        "Let",
        "For",
        "If",
        "Store",
        "Assign",
        "While",
        "Let",
        "Store",
        "Dealloc",
    ]


def test_mapping_an_expression_goes_inside_out() -> None:
    def grow(expr: Expr) -> Expr:
        return Binary(BinaryOp.ADD, expr, lit(1), INDEX) if expr == N else expr

    more = Binary(BinaryOp.ADD, N, lit(1), INDEX)
    assert map_expr(Load(C, (N,)), grow) == Load(C, (more,))
    assert map_expr(Search(C, N, P, Q), grow) == Search(C, more, P, Q)
    assert map_expr(Select(TRUE, N, Cast(N, F64)), grow) == Select(TRUE, more, Cast(more, F64))


def test_mapping_a_body() -> None:
    def drop(stmt: Stmt) -> tuple[Stmt, ...]:
        return () if isinstance(stmt, Store) else (stmt,)

    kinds = [type(stmt).__name__ for stmt in all_statements(map_body(BODY, change_stmt=drop))]
    assert kinds == ["Alloc", "Let", "For", "If", "Assign", "While", "Let", "Dealloc"]


@settings(max_examples=50)
@given(loop_functions())
def test_mapping_reaches_every_expression(func: LoopFunc) -> None:
    """Every index constant becomes 42: none is left, and as many are found as there were."""

    def constants(body: tuple[Stmt, ...]) -> list[Lit]:
        found = [
            e
            for s in all_statements(body)
            for outer in expressions(s)
            for e in all_expressions(outer)
        ]
        return [e for e in found if isinstance(e, Lit) and e.const.dtype is INDEX]

    def change(expr: Expr) -> Expr:
        return lit(42) if isinstance(expr, Lit) and expr.const.dtype is INDEX else expr

    changed = map_body(func.body, change)
    assert constants(changed) == [lit(42)] * len(constants(func.body))
    assert free_memrefs(changed) == free_memrefs(func.body)


def test_results() -> None:
    sparse = SparseResult(CSR, (Dim(0), Dim(0)), Const(0.0, F64), (C, C, Y))
    func = LoopFunc("f", (), (), (DenseResult(X), ParamResult(0), sparse))
    assert result_memrefs(func) == (X, C, C, Y)
