"""The text of generated Python: golden files, line length, names, determinism, legality."""

from __future__ import annotations

import ast

import pytest
from hypothesis import Phase, given, settings
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.backends._layout import WIDTH
from sparsejit.backends.python_source import emit_python
from sparsejit.formats import BSR, COO, CSR, NV24, Format
from sparsejit.ir.loops import (
    Assemble,
    Binary,
    Expr,
    For,
    If,
    Let,
    LoopFunc,
    Memref,
    Select,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from tests.backends.loop_programs import PROGRAMS
from tests.backends.loop_writing import (
    F64,
    add,
    function,
    index,
    less,
    load,
    memref,
    mul,
    number,
    var,
)
from tests.ir.loop_functions import loop_functions


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program_text(name: str, file_regression: FileRegressionFixture) -> None:
    file_regression.check(emit_python(PROGRAMS[name]().func).text, extension=".py")


FORMATS = {
    "csr": CSR,
    "coo_soa": COO(3),
    "coo_aos": Format("(i, j) -> (i : compressed(nonunique), j : singleton)"),
    "bsr": BSR(2, 2),
    "nv24": NV24,
    "loose": Format("(i, j) -> (i : dense, j : loose_compressed)"),
}


def assemble(fmt: Format, targets: tuple[Memref, ...], dtype: DType = F64) -> LoopFunc:
    """A function that does nothing but assemble the storage of a tensor."""
    levels = range(fmt.num_levels)
    crds = tuple(memref(f"crd{level}", INDEX) for level in levels)
    extents = tuple(var(f"n{level}") for level in levels)
    values, count = memref("values", dtype), var("count")
    fill = Const(-1, dtype)
    stmt = Assemble(targets, fmt, extents, crds, values, count, fill)
    return function("assembled", [*extents, count, *crds, values], [stmt], *targets)


def targets_of(fmt: Format, dtype: DType = F64) -> tuple[Memref, ...]:
    """The memrefs of a tensor ``A`` in ``fmt``, as its storage is made."""
    made: list[Memref] = []
    for number_, level in enumerate(fmt.levels):
        in_struct = fmt.is_aos and fmt.coo_start is not None and number_ > fmt.coo_start
        if level.type.has_positions:
            loose = level.type.kind.value == "loose_compressed"
            made.append(memref(f"A_pos{number_}", DType.INT32, 2 if loose else 1))
        if level.type.has_coordinates and not in_struct:
            head = fmt.is_aos and number_ == fmt.coo_start
            made.append(memref(f"A_crd{number_}", INDEX, 2 if head else 1))
    return (*made, memref("A_vals", dtype))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_assembly_text(name: str, file_regression: FileRegressionFixture) -> None:
    func = assemble(FORMATS[name], targets_of(FORMATS[name]))
    file_regression.check(emit_python(func).text, extension=".py")


def test_names_that_python_or_the_text_needs_are_changed() -> None:
    names = ["lambda", "range", "int64", "%0", "x.y", "x_y", "f", "grow", "self", "1st"]
    params = [memref(name) for name in names]
    stores = [Store(param, (index(0),), number(1.0)) for param in params]
    source = emit_python(function("f", params, stores))
    (defined,) = (node for node in ast.parse(source.text).body if isinstance(node, ast.FunctionDef))
    given = [argument.arg for argument in defined.args.args]
    assert given == [
        "lambda_",
        "range_",
        "int64_",
        "_0",
        "x_y_1",
        "x_y",
        "f",
        "grow_",
        "self",
        "_1st",
    ]
    assert source.entry == defined.name == "f_1"


def test_long_expressions_are_broken_inside_their_brackets(
    file_regression: FileRegressionFixture,
) -> None:
    long = [memref(f"a_rather_long_name_{letter}", F64) for letter in "abcdef"]
    i = var("i")
    total: Expr = load(long[0], i)
    for array in long[1:]:
        total = add(total, mul(load(array, add(i, index(12345))), load(array, i)))
    chosen = Select(less(total, number(0.5)), total, Binary(BinaryOp.MAX, total, number(1.0), F64))
    condition = less(add(total, total), mul(total, number(3.0)))
    body: list[Stmt] = [
        Let(var("s", F64), chosen),
        If(condition, (Store(long[0], (i,), Var("s", F64)),)),
    ]
    loop = For(i, index(0), index(9), tuple(body))
    file_regression.check(emit_python(function("long", long, [loop])).text, extension=".py")


@settings(max_examples=60, phases=[Phase.generate])
@given(loop_functions())
def test_any_loop_function_has_one_text_that_is_python(func: LoopFunc) -> None:
    source = emit_python(func)
    assert emit_python(func).text == source.text
    compile(source.text, "<text>", "exec")
    assert max(map(len, source.text.splitlines())) <= WIDTH
