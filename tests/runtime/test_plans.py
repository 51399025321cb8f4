"""Launch plans as text: every kernel with every strategy, operands on host and device."""

from __future__ import annotations

from functools import cache

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.ir.loops import Memref
from sparsejit.runtime.plan import LaunchPlan, Strategy, all_steps
from sparsejit.runtime.plan_printing import print_plan
from sparsejit.runtime.transfer_steps import (
    Allocate,
    CopyIn,
    Home,
    Release,
    Stage,
    Unstage,
    Wait,
)
from tests.runtime.cases import CASES, Case, Prepared, prepare
from tests.runtime.upstream_names import upstream_names

PREPARED = cache(prepare)
GOLDEN = (
    "spmv",
    "spmv_coo",
    "fresh_spmv",
    "spmm",
    "batched_spmm",
    "batch_of_dense",
    "sddmm",
    "spgemm",
    "nm_spmm",
    "generated_spmv",
    "generated_scaling",
    "gcn",
    "shrunk",
    "powers",
    "chosen",
)


def prepared(name: str) -> Prepared:
    """Return a case, traced once in this process."""
    return PREPARED(next(case for case in CASES if case.name == name))


@pytest.mark.parametrize("strategy", Strategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("name", GOLDEN)
def test_host_operands(
    name: str, strategy: Strategy, file_regression: FileRegressionFixture
) -> None:
    file_regression.check(print_plan(prepared(name).plan(strategy)), extension=".txt")


@pytest.mark.parametrize("name", GOLDEN)
def test_device_operands(name: str, file_regression: FileRegressionFixture) -> None:
    """Operands on the device move nothing, whatever the strategy."""
    plans = [prepared(name).plan(strategy, Home.DEVICE) for strategy in Strategy]
    assert len({plan.steps for plan in plans}) == 1
    file_regression.check(print_plan(plans[0]), extension=".txt")


def test_large_operands_are_registered(file_regression: FileRegressionFixture) -> None:
    plan = prepared("spmv").plan(Strategy.PINNED_DMA, is_large=True)
    file_regression.check(print_plan(plan), extension=".txt")


@pytest.mark.parametrize("strategy", Strategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_operand_moves_once(case: Case, strategy: Strategy) -> None:
    plan = PREPARED(case).plan(strategy)
    moved = [step.memref.name for step in all_steps(plan.steps) if isinstance(step, CopyIn)]
    assert len(moved) == len(set(moved))


# ---------------------------------------------------------------- upstream's order


@pytest.mark.parametrize("name", ["spmv", "spmm", "sddmm", "nm_spmm", "generated_spmv"])
def test_staged_operands_have_stage_and_release_where_others_are_registered(name: str) -> None:
    """What comes back is unstaged before its release, and behind the wait."""
    plan = prepared(name).plan(Strategy.PINNED_DMA)
    arrays = [placed.memref.name for placed in plan.placed]
    staged = [step.memref.name for step in plan.steps if isinstance(step, Stage)]
    assert staged == arrays
    last = next(n for n, step in enumerate(plan.steps) if isinstance(step, Wait))
    ends = plan.steps[last + 1 : -1]
    assert [step.memref.name for step in ends if isinstance(step, Release)] == arrays
    for array in plan.assigned:
        assert ends.index(Unstage(memref_of(plan, array))) + 1 == ends.index(
            Release(memref_of(plan, array))
        )
    rest = [step for step in ends if not isinstance(step, Release | Unstage)]
    assert rest == []


def memref_of(plan: LaunchPlan, name: str) -> Memref:
    """Return the memref of an array of a plan."""
    return next(placed.memref for placed in plan.placed if placed.memref.name == name)


_SPMV = """\
take host A_pos1 | take host A_crd1 | take host A_vals | take host x | take host y
allocate A_pos1 | copy A_pos1 | allocate A_crd1 | copy A_crd1 | allocate A_vals | copy A_vals
allocate x | copy x | allocate y | copy y
await
describe spmv0 | sizes of spmv0 | allocate spmv0_workspace | run spmv0
destroy spmv0 | free spmv0_workspace | free A_pos1 | free A_crd1 | free A_vals | free x
copy y out | free y | wait
"""


def test_spmv_follows_upstream_step_by_step() -> None:
    """UPSTREAM, section B: what each line of the text says is one or more steps, in its order."""
    regular = upstream_names(prepared("spmv").plan(Strategy.REGULAR_DMA))
    wanted = [part.strip() for line in _SPMV.splitlines() for part in line.split("|")]
    assert regular == wanted


@pytest.mark.parametrize(
    "name",
    [
        *("spmv", "spmv_csc", "spmv_coo", "spmm", "batched_spmm", "batched_coo", "sddmm"),
        *("nm_spmm", "generated_spmv"),
    ],
)
def test_every_kernel_alone_follows_upstream(name: str) -> None:
    """The same order of steps, whatever the kernel; each transfer has a token of its own."""
    plan = prepared(name).plan(Strategy.REGULAR_DMA)
    arrays = [placed.memref.name for placed in plan.placed]
    (output,) = plan.assigned
    moves = [step for array in arrays for step in (f"allocate {array}", f"copy {array}")]
    frees = [f"free {array}" for array in arrays if array != output]
    found = upstream_names(plan)
    before = [*(f"take host {array}" for array in arrays), *moves, "await"]
    behind = [*frees, f"copy {output} out", f"free {output}", "wait"]
    assert found[: len(before)] == before
    assert found[-len(behind) :] == behind
    work = [name.split()[0] for name in found[len(before) : -len(behind)]]
    if plan.calls:
        assert work[0] == "describe"
        assert work.index("sizes") < work.index("allocate") < work.index("run")
        last = work.index("destroy")
        assert set(work[1:last]) == {"sizes", "allocate", "run"}
        assert set(work[last + 1 :]) == {"free"}
    else:
        assert work == ["launch"]
    tokens = [
        token
        for step in plan.steps
        if isinstance(step, Allocate | CopyIn)
        for token in [step.token]
    ]
    assert len(set(tokens)) == len(tokens) == 2 * len(arrays)


def test_pinned_is_regular_between_pinning_and_unpinning() -> None:
    for name in ("spmv", "spmm", "sddmm", "nm_spmm", "generated_spmv"):
        regular = upstream_names(prepared(name).plan(Strategy.REGULAR_DMA))
        pinned = prepared(name).plan(Strategy.PINNED_DMA, is_large=True)
        names = upstream_names(pinned)
        arrays = [placed.memref.name for placed in pinned.placed]
        first = names.index(f"register {arrays[0]}")
        assert names[first : first + len(arrays)] == [f"register {a}" for a in arrays]
        assert names[-len(arrays) :] == [f"unregister {a}" for a in arrays]
        rest = [n for n in names if not n.startswith(("register", "unregister"))]
        assert rest == regular
