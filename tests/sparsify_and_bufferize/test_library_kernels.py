"""Library recognition: what is accepted and what is refused, and that a call means its loops."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

import sparsejit.trace as sj
from sparsejit.formats import CSR
from sparsejit.ir.device_statements import LibraryCall, LibraryOp
from sparsejit.ir.facts import FactKind
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import LoopFunc
from sparsejit.ir.types import IndexWidths
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from sparsejit.tensors import Operand as Stored
from sparsejit.tensors import asarray, operand_of, stored_facts
from tests.sparsify_and_bufferize.library_programs import (
    ACCEPTED,
    REFUSED,
    Case,
    dense,
    sparse,
)
from tests.trace.harness import Operand, traced

ALL = frozenset(op.value for op in LibraryOp)


def loops_of(case: Case, kernels: frozenset[str] = ALL) -> LoopFunc:
    fn, operands = case
    func = traced(fn, *operands).func
    full = {
        param.name
        for param, value in zip(func.params, operands, strict=True)
        if isinstance(value, Operand) and has_full_batches(value)
    }
    options = StageOptions(
        index_widths=IndexWidths(32, 32), library_kernels=kernels, full_batches=frozenset(full)
    )
    made = sparsify_and_bufferize(func, options)
    verify_loops(made)
    return made


def has_full_batches(value: Operand) -> bool:
    return value.format is not None and stored_facts(stored_operand(value)).has_full_batches


def stored_operand(value: Operand) -> Stored:
    """Return an argument as kernels take it."""
    return operand_of(asarray(value.array, format=value.format))


def calls_of(func: LoopFunc) -> list[LibraryCall]:
    return [stmt for stmt in all_statements(func.body) if isinstance(stmt, LibraryCall)]


def test_the_table(file_regression: FileRegressionFixture) -> None:
    lines: list[str] = []
    for name, case in {**ACCEPTED, **REFUSED}.items():
        func = loops_of(case)
        calls = calls_of(func)
        if calls:
            (head,) = [
                line.strip().removesuffix(" otherwise {")
                for line in print_loops(func).splitlines()
                if line.strip().startswith("library ")
            ]
            lines.append(f"{name}: {head}")
        else:
            reasons = [fact.text for fact in func.facts if fact.kind is FactKind.LIBRARY]
            lines.append(f"{name}: {reasons[-1]}")
    file_regression.check("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_accepted(name: str) -> None:
    assert len(calls_of(loops_of(ACCEPTED[name]))) == 1


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused(name: str) -> None:
    assert calls_of(loops_of(REFUSED[name])) == []


def test_only_what_the_options_list_is_matched() -> None:
    func = loops_of(ACCEPTED["spmv csr"], frozenset({LibraryOp.SPMM.value}))
    assert calls_of(func) == []
    assert "the target has no library for SpMV" in [f.text for f in func.facts]
    assert calls_of(loops_of(ACCEPTED["spmv csr"], frozenset())) == []


def of_moduli(A: Any, B: Any) -> Any:
    i, j = sj.indices("i j")
    C = sj.output()
    C[i, j] = abs(A[i, j])
    return C + B


def of_sum(A: Any, B: Any, x: Any) -> Any:
    return (A + B) @ x


def rewrites(func: LoopFunc) -> list[str]:
    return [fact.text for fact in func.facts if fact.kind is FactKind.REWRITE]


def test_what_a_library_computes_is_not_fused_away() -> None:
    case = (of_moduli, (sparse(4, 6), sparse(4, 6, CSR)))
    apart = loops_of(case)
    assert [call.op for call in calls_of(apart)] == [LibraryOp.SPADD]
    assert any("stays an operation of its own" in text for text in rewrites(apart))
    fused = loops_of(case, frozenset())
    assert any("is computed where it is used" in text for text in rewrites(fused))


def test_fusion_that_saves_a_larger_intermediate_wins() -> None:
    func = loops_of((of_sum, (sparse(4, 6), sparse(4, 6, CSR), dense(6))))
    assert calls_of(func) == []
    assert any("is computed where it is used" in text for text in rewrites(func))
