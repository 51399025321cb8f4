"""Where zero-copy leaves each operand, beside what upstream's zero-copy did with it, and why.

Upstream left the dense inputs on the host and copied everything else (UPSTREAM, section B).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.ir.device_statements import DenseMatrix
from sparsejit.ir.loop_walk import library_memrefs
from sparsejit.runtime.plan import LaunchPlan, Strategy
from tests.runtime.cases import CASES, prepare

LIBRARY = (
    "spmv",
    "spmv_csc",
    "spmv_coo",
    "spmm",
    "batched_spmm",
    "batch_of_dense",
    "sddmm",
    "nm_spmm",
)
GENERATED = ("generated_spmv", "generated_spmm", "generated_sddmm", "generated_scaling")


def upstream(plan: LaunchPlan) -> dict[str, str]:
    """Return what upstream's zero-copy does with each operand of a library kernel alone."""
    (code,) = plan.calls.values()
    dense = [part for part in code.call.inputs if isinstance(part, DenseMatrix)]
    on_host = {memref.name for part in dense for memref in library_memrefs(part)}
    return {
        placed.memref.name: "mapped" if placed.memref.name in on_host else "copied"
        for placed in plan.placed
    }


def rows(plan: LaunchPlan, theirs: dict[str, str]) -> Iterator[str]:
    """Yield a line for each operand; ``!`` marks a difference."""
    for placed in plan.placed:
        name = placed.memref.name
        ours = "mapped" if placed.how == "mapped" else "copied"
        they = theirs.get(name, "no such kernel")
        mark = "!" if name in theirs and they != ours else " "
        yield f"{mark} {name:8} upstream {they:14} here {placed.how}: {placed.reason}"


def test_the_table(file_regression: FileRegressionFixture) -> None:
    lines: list[str] = []
    for name in (*LIBRARY, *GENERATED):
        plan = prepare(next(c for c in CASES if c.name == name)).plan(Strategy.ZERO_COPY)
        theirs = upstream(plan) if name in LIBRARY else {}
        lines += [name, *("  " + row for row in rows(plan, theirs)), ""]
    file_regression.check("\n".join(lines), extension=".txt")


@pytest.mark.parametrize("name", LIBRARY)
def test_each_difference_has_a_reason(name: str) -> None:
    plan = prepare(next(c for c in CASES if c.name == name)).plan(Strategy.ZERO_COPY)
    assert all(placed.reason for placed in plan.placed)
    dense = [placed for placed in plan.placed if placed.memref.name in ("x", "B", "y", "C")]
    assert all(placed.how != "mapped" for placed in dense)
