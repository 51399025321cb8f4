"""Each rule of the loop IR refuses a program, with its exact message."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sparsejit.affine import Dim
from sparsejit.errors import VerificationError
from sparsejit.formats import COO, CSR, Format
from sparsejit.ir._loop_types import num_buffers
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
    Result,
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
from sparsejit.ir.verify_loops import LOOP_RULES, verify_loops

F64, F16, I32, BOOL = DType.FLOAT64, DType.FLOAT16, DType.INT32, DType.BOOL


def lit(value: float | bool, dtype: DType = INDEX) -> Lit:
    return Lit(Const(value, dtype))


N, P, Q = Var("n", INDEX), Var("p", INDEX), Var("q", INDEX)
S = Var("s", F64)
X, Y = Memref("x", F64, 1), Memref("y", F64, 1)
M, H, C = Memref("m", F64, 2), Memref("h", F16, 1), Memref("c", INDEX, 1)
B, W = Memref("b", F64, 1), Memref("w", F64, 1)
PARAMS = (N, X, Y, M, H, C)
TRUE, ONE, ONE_F = lit(True, BOOL), lit(1), lit(1.0, F64)
ALLOC, FREE = Alloc(B, (N,)), Dealloc(B)
EMPTY = LoopFunc("f", PARAMS, (), ())


def f(*body: Stmt, results: tuple[Result, ...] = ()) -> LoopFunc:
    return replace(EMPTY, body=body, results=results)


def loop(*body: Stmt, var: Var = P, parallel: bool = False) -> For:
    return For(var, lit(0), N, body, parallel)


def value(expr: Expr, dtype: DType = INDEX) -> LoopFunc:
    return f(Let(Var("v", dtype), expr))


def add(lhs: Expr, rhs: Expr, dtype: DType = INDEX) -> Binary:
    return Binary(BinaryOp.ADD, lhs, rhs, dtype)


SEARCH = Search(C, ONE, N, N)
ASSEMBLE = Assemble(
    targets=(Memref("t_pos1", INDEX, 1), Memref("t_crd1", INDEX, 1), Memref("t_vals", F64, 1)),
    format=CSR,
    level_extents=(N, N),
    coordinates=(C, C),
    values=X,
    count=N,
    fill=Const(0.0, F64),
)
SORT = Sort(Memref("order", INDEX, 1), (C, C), (N, N), N)
FREED = tuple(map(Dealloc, ASSEMBLE.targets))
VIEW_OF_B = View(W, B, (ONE,), (ONE,), (1,))
VIEW = View(W, M, (ONE, ONE), (ONE, N), (1, 1), (0,))
SPARSE = SparseResult(CSR, (Dim(0), Dim(0)), Const(0.0, F64), (C, C, X))

ONCE = "names are introduced once"
KNOWN = "names are known where used"
MUTABLE = "only mutable variables change"
TYPES = "types fit"
WHOLE = "results are whole"
OWNER = "arrays have one owner"

REJECTS: list[tuple[str, str, LoopFunc]] = [
    (ONCE, "n is introduced twice", f(Let(N, ONE))),
    (ONCE, "p is introduced twice", f(loop(), loop())),
    (ONCE, "x is introduced twice", replace(EMPTY, params=(X, X))),
    (ONCE, "b is introduced twice", f(loop(ALLOC, FREE), ALLOC, FREE)),
    (ONCE, "t_crd1 is introduced twice", f(ASSEMBLE, Alloc(ASSEMBLE.targets[1], (N,)))),
    (ONCE, "w is introduced twice", f(VIEW, VIEW)),
    (KNOWN, "p is used where it is not known", f(Store(X, (P,), ONE_F))),
    (KNOWN, "p is used where it is not known", f(loop(), Store(X, (P,), ONE_F))),
    (KNOWN, "p is used where it is not known", f(For(P, lit(0), P, ()))),
    (KNOWN, "q is used where it is not known", f(If(TRUE, (Let(Q, N),), (Let(P, Q),)))),
    (KNOWN, "q is used where it is not known", f(Let(Q, Q))),
    (KNOWN, "s is used where it is not known", f(Assign(S, ONE_F))),
    (
        KNOWN,
        "s is used where it is not known",
        f(replace(loop(parallel=True), reductions=((S, BinaryOp.ADD),))),
    ),
    (KNOWN, "s is used where it is not known", f(replace(loop(), private=(S,)))),
    (KNOWN, "b is used where it is not known", f(replace(loop(), private=(B,)))),
    (
        KNOWN,
        "b is used where it is not known",
        f(replace(loop(parallel=True), reductions=((B, BinaryOp.ADD),))),
    ),
    (KNOWN, "b is used where it is not known", f(FREE)),
    (KNOWN, "b is used where it is not known", f(loop(ALLOC, FREE), Copy(X, B))),
    (KNOWN, "b is used where it is not known", f(results=(DenseResult(B),))),
    (KNOWN, "b is used where it is not known", value(DimOf(B, 0))),
    (KNOWN, "b is used where it is not known", value(replace(SEARCH, coordinates=B))),
    (
        KNOWN,
        "n is Var(name='n', dtype=DType.INT64), used as Var(name='n', dtype=DType.INT32)",
        f(Assign(Var("n", I32), lit(1, I32))),
    ),
    (MUTABLE, "s is assigned and not mutable", f(Let(S, ONE_F), Assign(S, ONE_F))),
    (MUTABLE, "n is assigned and not mutable", f(Assign(N, ONE))),
    (
        MUTABLE,
        "s is reduced and not mutable",
        f(Let(S, ONE_F), replace(loop(parallel=True), reductions=((S, BinaryOp.ADD),))),
    ),
    (
        MUTABLE,
        "s is private and not mutable",
        f(Let(S, ONE_F), replace(loop(parallel=True), private=(S,))),
    ),
    (
        MUTABLE,
        "s is reduced by BinaryOp.SUB, which is no reduction",
        f(Let(S, ONE_F, True), replace(loop(parallel=True), reductions=((S, BinaryOp.SUB),))),
    ),
    (TYPES, "v is int64, not float64", value(ONE_F)),
    (TYPES, "s is float64, not int64", f(Let(S, ONE_F, True), Assign(S, ONE))),
    (TYPES, "BinaryOp.ADD of int64 and float64", value(add(ONE, ONE_F))),
    (TYPES, "BinaryOp.ADD of int64 does not give float64", value(add(ONE, ONE, F64), F64)),
    (
        TYPES,
        "BinaryOp.AND is not defined on float64",
        value(Binary(BinaryOp.AND, ONE_F, ONE_F, F64), F64),
    ),
    (
        TYPES,
        "BinaryOp.LT of int64 does not give int64",
        value(Binary(BinaryOp.LT, ONE, ONE, INDEX)),
    ),
    (
        TYPES,
        "BinaryOp.ADD computes in float16, which only stores",
        value(add(Load(H, (N,)), Load(H, (N,)), F16), F16),
    ),
    (
        TYPES,
        "UnaryOp.NEG computes in float16, which only stores",
        value(Unary(UnaryOp.NEG, Load(H, (N,)), F16), F16),
    ),
    (TYPES, "UnaryOp.SQRT is not defined on int64", value(Unary(UnaryOp.SQRT, ONE, INDEX))),
    (
        TYPES,
        "UnaryOp.ABS of complex64 does not give complex64",
        value(
            Unary(UnaryOp.ABS, Lit(Const(1j, DType.COMPLEX64)), DType.COMPLEX64), DType.COMPLEX64
        ),
    ),
    (TYPES, "a condition is bool, not int64", value(Select(N, ONE, ONE))),
    (TYPES, "the other side of a select is int64, not float64", value(Select(TRUE, ONE, ONE_F))),
    (TYPES, "m of rank 2 has 1 indices", value(Load(M, (N,)), F64)),
    (TYPES, "an index of x is int64, not float64", value(Load(X, (ONE_F,)), F64)),
    (TYPES, "m of rank 2 has no dimension 2", value(DimOf(M, 2))),
    (TYPES, "the coordinates m has rank 2, not 1", value(replace(SEARCH, coordinates=M))),
    (TYPES, "the coordinates c has rank 1, not 2", value(replace(SEARCH, column=0))),
    (TYPES, "x holds float64, no coordinates", value(replace(SEARCH, coordinates=X))),
    (TYPES, "a bound or key of a search is int64, not float64", value(replace(SEARCH, key=ONE_F))),
    (TYPES, "b of rank 1 has 2 indices", f(Alloc(B, (N, N)), FREE)),
    (TYPES, "an index of b is int64, not bool", f(Alloc(B, (TRUE,)), FREE)),
    (TYPES, "b is filled with int64", f(Alloc(B, (N,), Const(0, INDEX)), FREE)),
    (TYPES, "the source x has rank 1, not 2", f(Copy(M, X))),
    (TYPES, "h holds float16, x float64", f(Copy(X, H))),
    (TYPES, "w has 1 offsets for rank 2", f(replace(VIEW, offsets=(ONE,)))),
    (TYPES, "w has 3 sizes for rank 2", f(replace(VIEW, sizes=(ONE, N, N)))),
    (TYPES, "one of the sizes of w is int64, not float64", f(replace(VIEW, sizes=(ONE_F, N)))),
    (TYPES, "w has 1 strides for rank 2", f(replace(VIEW, strides=(1,)))),
    (TYPES, "w drops [2] of rank 2", f(replace(VIEW, dropped=(2,)))),
    (TYPES, "the view w has rank 1, not 2", f(replace(VIEW, dropped=()))),
    (TYPES, "w holds float32, m float64", f(replace(VIEW, memref=Memref("w", DType.FLOAT32, 1)))),
    (TYPES, "w is in another space than m", f(replace(VIEW, memref=replace(W, space=1)))),
    (TYPES, "m of rank 2 has 0 indices", f(Store(M, (), ONE_F))),
    (TYPES, "an element of x is float64, not int64", f(Store(X, (N,), ONE))),
    (
        TYPES,
        "BinaryOp.ADD computes in float16, which only stores",
        f(Store(H, (N,), Load(H, (N,)), BinaryOp.ADD)),
    ),
    (
        TYPES,
        "BinaryOp.LT of float64 does not give float64",
        f(Store(X, (N,), ONE_F, BinaryOp.LT)),
    ),
    (TYPES, "a bound of p is int64, not float64", f(For(P, ONE_F, N, ()))),
    (TYPES, "a bound of p is int64, not int32", f(loop(var=Var("p", I32)))),
    (TYPES, "a condition is bool, not int64", f(While(N, ()))),
    (TYPES, "a condition is bool, not float64", f(loop(If(Load(X, (P,)), ())))),
    (TYPES, "the growable m has rank 2, not 1", f(Push(M, N, ONE_F))),
    (TYPES, "a count is int64, not float64", f(Push(X, ONE_F, ONE_F))),
    (TYPES, "an element of x is float64, not int64", f(Push(X, N, N))),
    (TYPES, "the scanned m has rank 2, not 1", f(Scan(M, ScanOp.SUM))),
    (TYPES, "the resized m has rank 2, not 1", f(Resize(M, N))),
    (TYPES, "a count is int64, not bool", f(Resize(X, TRUE))),
    (
        TYPES,
        "an assembled tensor has 3 arrays, not 1",
        f(replace(ASSEMBLE, targets=ASSEMBLE.targets[:1])),
    ),
    (
        TYPES,
        "t_vals is filled with int64",
        f(replace(ASSEMBLE, fill=Const(0, INDEX))),
    ),
    (
        TYPES,
        "an assembled tensor of 2 levels has 1 coordinates",
        f(replace(ASSEMBLE, coordinates=(C,))),
    ),
    (
        TYPES,
        "an assembled tensor of 2 levels has 3 extents",
        f(replace(ASSEMBLE, level_extents=(N, N, N))),
    ),
    (TYPES, "the entries m has rank 2, not 1", f(replace(ASSEMBLE, values=M))),
    (
        TYPES,
        "level coordinates are int64, x is float64",
        f(replace(ASSEMBLE, coordinates=(C, X))),
    ),
    (TYPES, "an extent or count is int64, not float64", f(replace(ASSEMBLE, count=ONE_F))),
    (TYPES, "a sort by 2 coordinates has 1 extents", f(replace(SORT, extents=(N,)))),
    (TYPES, "the sorted m has rank 2, not 1", f(replace(SORT, coordinates=(C, M)))),
    (TYPES, "a sort is over int64, x is float64", f(replace(SORT, coordinates=(C, X)))),
    (TYPES, "an extent or count is int64, not bool", f(replace(SORT, count=TRUE))),
    (ONCE, "order is introduced twice", f(SORT, SORT)),
    (OWNER, "order is neither freed nor returned", f(SORT)),
    (
        WHOLE,
        "a sparse result has 3 arrays, not 2",
        f(results=(replace(SPARSE, buffers=(C, X)),)),
    ),
    (
        WHOLE,
        "x has a fill of int64",
        f(results=(replace(SPARSE, fill=Const(0, INDEX)),)),
    ),
    (
        WHOLE,
        "a sparse result of rank 2 has 1 extents",
        f(results=(replace(SPARSE, shape=(Dim(0),)),)),
    ),
    (
        WHOLE,
        "the shape of a sparse result reads an extent that is not there",
        f(results=(replace(SPARSE, shape=(Dim(0), Dim(1))),)),
    ),
    (OWNER, "b is neither freed nor returned", f(ALLOC)),
    (OWNER, "t_crd1 is neither freed nor returned", f(ASSEMBLE, FREED[0], FREED[2])),
    (OWNER, "b is freed twice", f(ALLOC, FREE, FREE)),
    (OWNER, "x is freed and not owned", f(Dealloc(X))),
    (OWNER, "w is freed and not owned", f(VIEW, Dealloc(W))),
    (OWNER, "b is used after it was freed", f(ALLOC, FREE, Copy(X, B))),
    (OWNER, "b is used after it was freed", f(ALLOC, FREE, loop(Store(B, (P,), ONE_F)))),
    (
        OWNER,
        "w is used after it was freed",
        f(ALLOC, VIEW_OF_B, FREE, Store(W, (ONE,), ONE_F)),
    ),
    (OWNER, "b is returned after it was freed", f(ALLOC, FREE, results=(DenseResult(B),))),
    (
        OWNER,
        "w is used after its array changed its length",
        f(ALLOC, VIEW_OF_B, Resize(B, N), Store(W, (ONE,), ONE_F), FREE),
    ),
    (
        OWNER,
        "w is used after its array changed its length",
        f(ALLOC, VIEW_OF_B, loop(Store(W, (ONE,), ONE_F), Push(B, ONE, ONE_F)), FREE),
    ),
    (
        OWNER,
        "w is used after its array changed its length",
        f(ALLOC, VIEW_OF_B, If(TRUE, (), (Resize(B, N),)), Store(W, (ONE,), ONE_F), FREE),
    ),
    (OWNER, "b is not freed at the end of its block", f(loop(ALLOC))),
    (OWNER, "b is not freed at the end of its block", f(If(TRUE, (), (ALLOC,)))),
    (OWNER, "b is freed in a loop that did not allocate it", f(ALLOC, loop(FREE))),
    (OWNER, "b is freed in a loop that did not allocate it", f(ALLOC, While(TRUE, (FREE,)))),
    (OWNER, "b is freed in one branch only", f(ALLOC, If(TRUE, (FREE,)))),
    (OWNER, "b is freed in one branch only", f(ALLOC, If(TRUE, (), (FREE,)))),
    (OWNER, "b is freed twice", f(ALLOC, If(TRUE, (FREE,), (FREE,)), FREE)),
]


@pytest.mark.parametrize(("rule", "what", "func"), REJECTS, ids=[what for _, what, _ in REJECTS])
def test_reject(rule: str, what: str, func: LoopFunc) -> None:
    with pytest.raises(VerificationError) as caught:
        verify_loops(func, after="a pass")
    assert str(caught.value) == (
        f"broken invariant '{rule}' after a pass: {what}\n"
        "  this is a bug of sparsejit; please report it with the program"
    )
    assert caught.value.ir_text.startswith("func @f(") or caught.value.ir_text == repr(func)


ACCEPTS = [
    f(ALLOC, FREE),
    f(ALLOC, results=(DenseResult(B), DenseResult(B))),
    f(ALLOC, View(W, B, (ONE,), (ONE,), (1,)), results=(DenseResult(W),)),
    f(loop(ALLOC, FREE)),
    f(ALLOC, If(TRUE, (FREE,), (FREE,))),
    f(ALLOC, If(TRUE, (Store(B, (ONE,), ONE_F), FREE), (FREE,))),
    f(ASSEMBLE, results=(replace(SPARSE, buffers=ASSEMBLE.targets),)),
    f(Let(S, ONE_F, True), replace(loop(parallel=True), reductions=((S, BinaryOp.ADD),))),
    f(replace(loop(parallel=True), reductions=((X, BinaryOp.ADD),))),
    f(ALLOC, replace(loop(), private=(B,)), FREE),
    f(If(TRUE, (Let(Q, N), Store(X, (Q,), ONE_F)))),
    f(Store(H, (N,), Cast(add(Cast(Load(H, (N,)), F64), ONE_F, F64), F16))),
    f(Store(X, (N,), ONE_F, BinaryOp.SUB)),
    f(results=(ParamResult(0), SPARSE)),
    f(SORT, Copy(C, SORT.order), Dealloc(SORT.order)),
]


@pytest.mark.parametrize("number", range(len(ACCEPTS)))
def test_accept(number: int) -> None:
    verify_loops(ACCEPTS[number])


def test_every_rule_refuses_a_program() -> None:
    assert {rule for rule, _, _ in REJECTS} == {
        rule.__name__.replace("_", " ").strip() for rule in LOOP_RULES
    }
    for rule in LOOP_RULES:
        assert rule.__doc__
        assert re.fullmatch(r"[A-Z].*\.", rule.__doc__)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("(i) -> (i : dense)", 1),
        ("(i) -> (i : compressed)", 3),
        ("(i, j) -> (i : compressed(nonunique), j : singleton)", 3),
        ("(i, j) -> (i : compressed(nonunique), j : singleton(soa))", 4),
        ("(i, j) -> (i : dense, j : padded[3])", 2),
        ("(i, j) -> (j - i : compressed, j : range)", 3),
        ("(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])", 2),
    ],
)
def test_buffers_of_a_format(text: str, count: int) -> None:
    assert num_buffers(Format(text)) == count


def test_buffers_of_coordinates() -> None:
    assert [num_buffers(COO(rank)) for rank in (1, 2, 3)] == [3, 4, 5]
