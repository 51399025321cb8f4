"""The statements for devices: their text, their rules, and their meaning, the host form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.backends import BACKENDS
from sparsejit.errors import VerificationError
from sparsejit.ir import device_statements, loops, ops, types
from sparsejit.ir.device_statements import (
    DenseMatrix,
    Launch,
    LibraryCall,
    LibraryOp,
    ReadBack,
    Require,
    Schedule,
    SparseLayout,
    SparseMatrix,
)
from sparsejit.ir.host_form import host_form
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_walk import all_statements, free_memrefs, map_body
from sparsejit.ir.loops import (
    Alloc,
    Binary,
    Cast,
    Dealloc,
    DenseResult,
    For,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops

F64, I32 = DType.FLOAT64, DType.INT32
D0, D1, I, P = (Var(name, INDEX) for name in ("d0", "d1", "i", "p1"))
POS, CRD = Memref("A_pos1", I32, 1), Memref("A_crd1", I32, 1)
VALS, X, Y, Z = (Memref(name, F64, 1) for name in ("A_vals", "x", "y", "z"))


def lit(value: int) -> Lit:
    return Lit(Const(value, INDEX))


def rows(target: Memref, row: Var, entry: Var) -> For:
    end = Load(POS, (Binary(BinaryOp.ADD, row, lit(1), INDEX),))
    column = Cast(Load(CRD, (entry,)), INDEX)
    product = Binary(BinaryOp.MUL, Load(VALS, (entry,)), Load(X, (column,)), F64)
    start = Cast(Load(POS, (row,)), INDEX)
    body = (Store(target, (row,), product, BinaryOp.ADD),)
    return For(row, lit(0), D0, (For(entry, start, Cast(end, INDEX), body),), parallel=True)


def program() -> LoopFunc:
    """``y = A @ x`` by a library and ``z = A @ x`` by a kernel, and the first element of z."""
    one, zero = (Lit(Const(value, F64)) for value in (1.0, 0.0))
    matrix = SparseMatrix(SparseLayout.CSR, (D0, D1), (POS, CRD, VALS))
    inner = (Alloc(Y, (D0,), Const(0.0, F64)), rows(Y, I, P))
    call = LibraryCall(
        LibraryOp.SPMV, (matrix, DenseMatrix(X)), DenseMatrix(Y), one, zero, inner, (Y,)
    )
    launch = Launch("k0", Schedule.THREAD, (rows(Z, Var("i1", INDEX), Var("p2", INDEX)),))
    total = Memref("total", F64, 0)
    first = Var("first", F64)
    body = (
        call,
        Alloc(Z, (D0,), Const(0.0, F64)),
        launch,
        ReadBack(first, Z, (lit(0),)),
        Alloc(total, ()),
        Store(total, (), first),
        Dealloc(Z),
    )
    results = (DenseResult(Y), DenseResult(total))
    return LoopFunc("both", (D0, D1, POS, CRD, VALS, X), body, results)


def test_text(file_regression: FileRegressionFixture) -> None:
    verify_loops(program())
    file_regression.check(print_loops(program()))


def test_repr_reads_back_as_the_same_function() -> None:
    names = {**vars(ops), **vars(types), **vars(device_statements), **vars(loops), "Const": Const}
    assert eval(repr(program()), names) == program()


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_host_backends_run_what_the_host_form_says(backend: str) -> None:
    func = program()
    kinds = {type(stmt) for stmt in all_statements(host_form(func).body)}
    assert kinds == {Alloc, For, Store, Let, Dealloc}
    verify_loops(host_form(func))
    arrays = (np.array([0, 2, 2, 3], np.int32), np.array([0, 1, 1], np.int32))
    values, x = np.array([1.0, 2.0, 3.0]), np.array([10.0, 100.0])
    kernel = BACKENDS[backend].load(BACKENDS[backend].emit(func), cache=False)
    y, total = kernel([3, 2, *arrays, values, x])
    assert_array_equal(y, [210.0, 0.0, 300.0])
    assert_array_equal(total, 210.0)


def test_walks_reach_what_is_inside() -> None:
    func = program()
    assert {memref.name for memref in free_memrefs(func.body)} == {
        "A_pos1",
        "A_crd1",
        "A_vals",
        "x",
    }
    seen: list[loops.Expr] = []

    def note(expr: loops.Expr) -> loops.Expr:
        seen.append(expr)
        return expr

    assert map_body(func.body, note) == func.body
    assert {D0, D1, I, lit(0)} <= set(seen)


def test_what_a_function_requires() -> None:
    is_small = Binary(BinaryOp.LE, D0, lit(3), DType.BOOL)
    func = LoopFunc("small", (D0,), (Require(is_small, "it is too large"),), ())
    verify_loops(func)
    assert "\n  require d0 <= 3 else 'it is too large'\n" in print_loops(func)
    backend = BACKENDS["interpreter"]
    kernel = backend.load(backend.emit(func))
    assert kernel([3]) == ()
    with pytest.raises(ValueError, match="it is too large"):
        kernel([4])


def broken(number: int, stmt: Stmt) -> LoopFunc:
    func = program()
    return replace(func, body=(*func.body[:number], stmt, *func.body[number + 1 :]))


def test_rules_refuse() -> None:
    func = program()
    call, launch = func.body[0], func.body[2]
    assert isinstance(call, LibraryCall)
    assert isinstance(launch, Launch)
    serial = replace(launch, body=(For(Var("i1", INDEX), lit(0), D0, ()),))
    rejected = {
        "k0 runs many threads and is not one parallel loop": broken(2, serial),
        "y is used where it is not known": broken(0, replace(call, targets=())),
        "first is float64, not int32": broken(3, ReadBack(Var("first", F64), POS, (lit(0),))),
        "a condition is bool, not float64": broken(5, Require(Lit(Const(1.0, F64)), "")),
        "w is not freed at the end of its block": broken(
            0, replace(call, otherwise=(*call.otherwise, Alloc(Memref("w", F64, 0), ())))
        ),
        "A_vals holds float64, no indices": broken(
            0,
            replace(
                call,
                inputs=(
                    SparseMatrix(SparseLayout.CSR, (D0, D1), (VALS, CRD, VALS)),
                    DenseMatrix(X),
                ),
            ),
        ),
    }
    for message, wrong in rejected.items():
        with pytest.raises(VerificationError) as caught:
            verify_loops(wrong)
        assert message in str(caught.value)
