"""The loop pass that assembles results in two phases: count, then fill."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.backends import BACKENDS
from sparsejit.ir.loop_printing import print_body, print_loops
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    For,
    If,
    Let,
    LoopFunc,
    Push,
    Resize,
    Scan,
    Stmt,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes import assemble_in_two_phases
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.backends.loop_writing import (
    add,
    binary,
    function,
    index,
    less,
    load,
    memref,
    number,
    run,
    var,
)
from tests.ir.loop_functions import loop_functions
from tests.sparsify_and_bufferize.programs import PROGRAMS

i, n, count = var("i"), var("n"), var("count")
x, y = memref("x", INDEX), memref("y", INDEX)
STEP = Assign(count, add(count, index(1)))


def split(func: LoopFunc) -> LoopFunc:
    made = assemble_in_two_phases(func)
    verify_loops(made)
    return made


def chosen(*inside: Stmt, before: tuple[Stmt, ...] = (), after: tuple[Stmt, ...] = ()) -> LoopFunc:
    """Append the elements of ``x`` that are less than 5."""
    body = inside or (If(less(load(x, i), index(5)), (Push(y, count, load(x, i)), STEP)),)
    return function(
        "chosen",
        [n, x],
        (
            Alloc(y, (index(0),)),
            Let(count, index(0), mutable=True),
            *before,
            For(i, index(0), n, body),
            *after,
            Resize(y, count),
        ),
        y,
    )


def is_split(func: LoopFunc) -> bool:
    return any(isinstance(stmt, Scan) for stmt in all_statements(split(func).body))


@functools.cache
def loops_of(name: str) -> LoopFunc:
    return sparsify_and_bufferize(PROGRAMS[name]())


@pytest.mark.parametrize("name", ["add_csr", "spgemm_rows", "ttv", "ttm"])
def test_text(name: str, file_regression: FileRegressionFixture) -> None:
    file_regression.check(print_loops(split(loops_of(name))), extension=".txt")


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_stay_loop_functions(name: str) -> None:
    split(loops_of(name))


@given(loop_functions())
def test_any_loop_function_may_be_split(func: LoopFunc) -> None:
    split(func)


def test_counting_computes_no_values() -> None:
    made = split(loops_of("add_csr"))
    counting, filling = (s for s in made.body if isinstance(s, For))
    assert "vals" not in "\n".join(print_body((counting,)))
    assert "push" not in print_loops(made)
    assert counting.parallel
    assert filling.parallel


def test_a_loop_that_appends_and_nothing_else_is_split() -> None:
    assert is_split(chosen())
    assert is_split(chosen(Push(y, count, count), STEP))


@pytest.mark.parametrize(("start", "stop"), [(2, 5), (0, 6), (4, 4), (5, 3)])
def test_a_loop_from_anywhere_is_split(start: int, stop: int) -> None:
    func = chosen()
    moved = tuple(
        replace(stmt, lower=index(start), upper=index(stop)) if isinstance(stmt, For) else stmt
        for stmt in func.body
    )
    func = replace(func, body=moved)
    made = assemble_in_two_phases(func)
    verify_loops(made)
    assert any(isinstance(stmt, Scan) for stmt in made.body)
    numbers = np.array([7, 1, 9, 3, 4, 2])
    backend = BACKENDS["interpreter"]
    (found,) = backend.load(backend.emit(made), cache=False)([6, numbers])
    part = numbers[start:stop]
    np.testing.assert_array_equal(found, part[part < 5])


@pytest.mark.parametrize(
    "func",
    [
        pytest.param(
            chosen(Push(y, add(count, index(0)), load(x, i)), STEP), id="appended elsewhere"
        ),
        pytest.param(chosen(Push(y, count, load(y, index(0))), STEP), id="reads what it appends"),
        pytest.param(
            chosen(Push(y, count, load(x, i)), Assign(count, add(count, index(2)))),
            id="leaves a gap",
        ),
        pytest.param(
            chosen(before=(Push(y, count, index(7)), STEP)), id="appended to before the loop"
        ),
        pytest.param(
            chosen(after=(Push(y, count, index(7)), STEP)), id="appended to after the loop"
        ),
        pytest.param(
            chosen(
                Push(y, count, load(x, i)),
                STEP,
                Assign(var("s", DType.FLOAT64), number(1.0)),
                before=(Let(var("s", DType.FLOAT64), number(0.0), mutable=True),),
            ),
            id="changes another variable",
        ),
    ],
)
def test_other_loops_stay(func: LoopFunc) -> None:
    verify_loops(func)
    assert not is_split(func)
    assert split(func) == func


def nested(*, mark: Stmt | None = None) -> LoopFunc:
    """Append the elements ``x[i] .. x[i + 1]`` that are odd, and the ``i`` that have some."""
    p, before, outer, filled = var("p"), var("before"), var("outer"), var("filled")
    rows, pos = memref("rows", INDEX), memref("pos", INDEX)
    behind = Binary(BinaryOp.LE, filled, outer, DType.BOOL)
    caught = While(behind, (Push(pos, filled, count), Assign(filled, add(filled, index(1)))))
    odd = binary(BinaryOp.EQ, binary(BinaryOp.REM, p, index(2)), index(1))
    body = (
        Let(before, count),
        caught,
        For(p, load(x, i), load(x, add(i, index(1))), (If(odd, (Push(y, count, p), STEP)),)),
        *(() if mark is None else (mark,)),
        If(
            less(before, count),
            (Push(rows, outer, i), Assign(outer, add(outer, index(1)))),
        ),
    )
    return function(
        "nested",
        [n, x],
        (
            *(Alloc(memref, (index(0),)) for memref in (y, rows, pos)),
            *(Let(v, index(0), mutable=True) for v in (count, outer, filled)),
            For(i, index(1), n, body),
            caught,
            Resize(y, count),
            Resize(rows, outer),
            Resize(pos, add(outer, index(1))),
        ),
        pos,
        rows,
        y,
    )


@given(st.lists(st.integers(0, 4), max_size=6))
def test_levels_below_each_other(lengths: list[int]) -> None:
    func = nested()
    assert is_split(func)
    ends = np.cumsum([3, *lengths])
    rounds = len(ends) - 1
    wanted = run("interpreter", func, rounds, ends)
    rows = [[p for p in range(ends[r], ends[r + 1]) if p % 2] for r in range(1, rounds)]
    assert list(wanted[1]) == [r for r, row in enumerate(rows, 1) if row]
    assert list(wanted[2]) == [p for row in rows for p in row]
    for one, other in zip(run("interpreter", split(func), rounds, ends), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_mark_of_a_count_is_only_compared_with_it() -> None:
    stored = Push(y, var("before"), index(3))
    assert not is_split(nested(mark=stored))


def test_two_loops_that_append_to_one_array_stay() -> None:
    first = chosen()
    k = var("k")
    second = For(k, index(0), n, (Push(y, count, load(x, k)), STEP))
    func = replace(first, body=(*first.body[:3], second, *first.body[3:]))
    verify_loops(func)
    assert split(func) == func
