"""Plans run on the fake device: right results on every way, and nothing held after any failure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparsejit.errors import DeviceError
from sparsejit.runtime.fake import FakeRuntime, Injection
from sparsejit.runtime.plan import Strategy
from sparsejit.runtime.transfer_steps import Home
from tests.runtime.cases import CASES, Case, Prepared, prepare
from tests.runtime.fake_runs import Outcome, expected, run

PREPARED = cache(prepare)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_strategy = pytest.mark.parametrize("strategy", Strategy, ids=lambda strategy: strategy.value)


def assert_same(found: Outcome, wanted: Outcome) -> None:
    """All results and all arguments are equal, in value and dtype."""
    for one, other in zip(found.results, wanted.results, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(_plain(one), _plain(other))
    for one, other in zip(found.arguments, wanted.arguments, strict=True):
        np.testing.assert_array_equal(_plain(one), _plain(other))


def _plain(array: Any) -> Any:
    array = np.asarray(array)
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


@each_strategy
@each_case
@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_host_operands(case: Case, strategy: Strategy, is_large: bool) -> None:
    prepared = PREPARED(case)
    for seed in range(2):
        runtime = FakeRuntime(seed)
        found = run(prepared.plan(strategy, is_large=is_large), prepared, runtime)
        assert_same(found, expected(prepared))
        assert runtime.leaks() == []


@each_case
def test_device_operands(case: Case) -> None:
    prepared = PREPARED(case)
    for seed in range(2):
        runtime = FakeRuntime(seed)
        plan = prepared.plan(Strategy.REGULAR_DMA, Home.DEVICE)
        assert_same(run(plan, prepared, runtime, Home.DEVICE), expected(prepared))
        assert runtime.leaks() == []


@each_strategy
@pytest.mark.parametrize("name", ["spmv", "spmm", "sddmm", "nm_spmm", "gcn"])
def test_generated_code_runs_where_the_library_refuses(name: str, strategy: Strategy) -> None:
    prepared = by_name(name)
    runtime = FakeRuntime(refuses=frozenset({"SPMV", "SPMM", "SDDMM", "NM_SPMM"}))
    found = run(prepared.plan(strategy), prepared, runtime)
    assert_same(found, expected(prepared))
    assert "launch" in runtime.injection.calls
    assert "run_phase" not in runtime.injection.calls
    assert runtime.leaks() == []


@each_strategy
@pytest.mark.parametrize("order", ["F", "strided"])
def test_dense_operands_in_other_orders(order: str, strategy: Strategy) -> None:
    prepared = by_name("generated_spmm")
    other = strided(prepared, order)
    runtime = FakeRuntime()
    found = run(other.plan(strategy), other, runtime, arguments=list(other.arguments))
    assert_same(found, expected(prepared))
    assert runtime.leaks() == []


def strided(prepared: Prepared, order: str) -> Prepared:
    """Return the case with its matrices in Fortran order, or with gaps."""
    arguments = tuple(_ordered(a, order) for a in prepared.fresh_arguments())
    return replace(prepared, arguments=arguments)


def _ordered(argument: Any, order: str) -> Any:
    if not isinstance(argument, np.ndarray) or argument.ndim < 2:
        return argument
    if order == "F":
        return np.asfortranarray(argument)
    wide = np.zeros((2 * argument.shape[0], 3 * argument.shape[1]), argument.dtype)
    wide[::2, ::3] = argument
    return wide[::2, ::3]


def by_name(name: str) -> Prepared:
    """Return a case, traced once."""
    return PREPARED(next(case for case in CASES if case.name == name))


# ---------------------------------------------------------------- a fault at every call in turn


@each_strategy
@each_case
def test_a_fault_at_any_call(case: Case, strategy: Strategy) -> None:
    prepared = PREPARED(case)
    check_faults(prepared, prepared.plan(strategy), Home.HOST, is_late=False)


@pytest.mark.parametrize("name", ["spmv", "fresh_spmv", "generated_scaling", "gcn"])
def test_a_fault_at_any_call_with_registered_operands(name: str) -> None:
    prepared = by_name(name)
    plan = prepared.plan(Strategy.PINNED_DMA, is_large=True)
    check_faults(prepared, plan, Home.HOST, is_late=False)


@each_strategy
@pytest.mark.parametrize("name", ["spmv", "fresh_spmv", "generated_scaling", "spgemm", "gcn"])
def test_work_that_fails_late(name: str, strategy: Strategy) -> None:
    prepared = by_name(name)
    check_faults(prepared, prepared.plan(strategy), Home.HOST, is_late=True)


@each_case
def test_a_fault_with_device_operands(case: Case) -> None:
    prepared = PREPARED(case)
    check_faults(
        prepared, prepared.plan(Strategy.REGULAR_DMA, Home.DEVICE), Home.DEVICE, is_late=False
    )


def check_faults(prepared: Prepared, plan: Any, home: Home, *, is_late: bool) -> None:
    """Let each call fail: an error that names the step, nothing held, arguments as promised."""
    wanted = expected(prepared)
    clean = FakeRuntime(injection=Injection(is_late=is_late))
    run(plan, prepared, clean, home)
    names = [param.name for param in prepared.func.params]
    for at, called in enumerate(clean.injection.calls):
        if is_late and not called.startswith("late"):
            continue
        injection = Injection(at, is_late)
        runtime = FakeRuntime(at, injection)
        before = prepared.fresh_arguments()
        arguments = prepared.fresh_arguments()
        message = ""
        try:
            assert_same(run(plan, prepared, runtime, home, arguments), wanted)
        except DeviceError as error:
            message = str(error)
        assert message.startswith(f"{plan.name} "), (at, called)
        changed = [
            name
            for name, old, new in zip(names, before, arguments, strict=True)
            if not _equal(old, new)
        ]
        assert set(changed) <= plan.assigned, (at, called)
        assert all(repr(name) in message for name in changed), (at, called, message)
        assert "changed" in message or "start" in message, (at, called)
        assert runtime.leaks() == [], (at, called)


def _equal(one: Any, other: Any) -> bool:
    return bool(np.array_equal(_plain(one), _plain(other)))
