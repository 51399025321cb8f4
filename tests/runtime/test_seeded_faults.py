"""The fake device proves itself: each of these wrong planners and runners is caught."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from sparsejit.errors import DeviceError
from sparsejit.runtime.fake import FakeRuntime, Injection
from sparsejit.runtime.plan import Strategy
from sparsejit.runtime.transfer_steps import Home
from tests.runtime.cases import CASES, Prepared, prepare
from tests.runtime.fake_runs import expected, run, run_twice
from tests.runtime.faults import FAULTS, Fault
from tests.runtime.test_execution import assert_same, by_name, check_faults, strided

Check = Callable[[], None]
NAMES = ("spmv", "fresh_spmv", "generated_spmm", "gcn", "spgemm", "shrunk", "chosen")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_fault_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = {name: (by_name(name), expected(by_name(name))) for name in NAMES}
    fault.seed(monkeypatch)
    for check in checks(ready):
        try:
            check()
        except Exception:  # a wrong answer, misuse, or a leak
            return
    pytest.fail(f"everything looks right although {fault.what}")


def test_nothing_is_caught_without_a_fault() -> None:
    for check in checks({name: (by_name(name), expected(by_name(name))) for name in NAMES}):
        check()


def test_there_are_faults_of_all_kinds() -> None:
    assert len(FAULTS) >= 20
    assert len({fault.kind for fault in FAULTS}) == 8


def checks(ready: dict[str, tuple[Prepared, Any]]) -> list[Check]:
    """Return what is looked at, the cheapest first."""
    found: list[Check] = []
    for name, (prepared, wanted) in ready.items():
        for strategy in Strategy:
            found.append(partial(_runs, prepared, wanted, strategy))
        found.append(partial(_runs, prepared, wanted, Strategy.ZERO_COPY, is_large=True))
        found.append(partial(_on_device, prepared, wanted))
        if name != "spgemm":
            found.append(partial(_refused, prepared, wanted))
    spmm = ready["generated_spmm"]
    found += [lambda: _in_order(*spmm, "F"), lambda: _in_order(*spmm, "strided")]
    found += [lambda: _views_of_one_buffer(), lambda: _device_results(ready["gcn"][0])]
    spmv = ready["spmv"][0]
    for strategy in Strategy:
        plan = spmv.plan(strategy)
        found.append(partial(check_faults, spmv, plan, Home.HOST, is_late=False))
    found.append(_mapped_stores_that_fail)
    return found


def _runs(prepared: Prepared, wanted: Any, strategy: Strategy, is_large: bool = False) -> None:
    for seed in range(3):
        runtime = FakeRuntime(seed)
        plan = prepared.plan(strategy, is_large=is_large)
        for outcome in run_twice(plan, prepared, runtime):
            assert_same(outcome, wanted)
        assert runtime.leaks() == []


def _on_device(prepared: Prepared, wanted: Any) -> None:
    runtime = FakeRuntime()
    plan = prepared.plan(Strategy.REGULAR_DMA, Home.DEVICE)
    assert_same(run(plan, prepared, runtime, Home.DEVICE), wanted)
    assert runtime.leaks() == []


def _refused(prepared: Prepared, wanted: Any) -> None:
    runtime = FakeRuntime(refuses=frozenset({"SPMV", "SPMM"}))
    assert_same(run(prepared.plan(Strategy.REGULAR_DMA), prepared, runtime), wanted)
    assert runtime.leaks() == []


def _in_order(prepared: Prepared, wanted: Any, order: str) -> None:
    for strategy in Strategy:
        other = strided(prepared, order)
        runtime = FakeRuntime()
        arguments = list(other.arguments)
        assert_same(run(other.plan(strategy), other, runtime, arguments=arguments), wanted)
        assert runtime.leaks() == []


def _views_of_one_buffer() -> None:
    """Two operands of one allocation have one registration, as long as the last of them."""
    prepared = by_name("generated_scaling")
    buffer = np.arange(40.0)
    out = np.zeros((4, 3))
    arguments = [*prepared.arguments[:-3], buffer[:12].reshape(4, 3), buffer[10:14], out]
    other = Prepared(prepared.reference, prepared.func, prepared.kernels, tuple(arguments))
    runtime = FakeRuntime()
    plan = other.plan(Strategy.PINNED_DMA, is_large=True)
    run(plan, other, runtime, arguments=arguments)
    np.testing.assert_array_equal(out, buffer[:12].reshape(4, 3) * buffer[10:14, None])
    assert runtime.leaks() == []


def _device_results(prepared: Prepared) -> None:
    """Results stay on the device, so that nothing waits: staging is guarded by its event."""
    case = next(case for case in CASES if case.name == "gcn")
    other = prepare(case, seed=1)
    wanted = [expected(prepared), expected(other)]
    for is_large in (False, True):
        for seed in range(6):
            runtime = FakeRuntime(seed)
            plan = prepared.plan(Strategy.PINNED_DMA, is_large=is_large, results=Home.DEVICE)
            for outcome, right in zip(
                run_twice(plan, prepared, runtime, other), wanted, strict=True
            ):
                assert_same(outcome, right)
            assert runtime.leaks() == []


def _mapped_stores_that_fail() -> None:
    """Late failures of a kernel that stores to the caller's mapped memory name the array."""
    prepared = by_name("generated_scaling")
    plan = prepared.plan(Strategy.ZERO_COPY)
    assert "out" in plan.assigned
    late = Injection(is_late=True)
    run(plan, prepared, FakeRuntime(injection=late))
    at = late.calls.index("late k0")
    with pytest.raises(DeviceError, match="'out' may have changed"):
        run(plan, prepared, FakeRuntime(injection=Injection(at, is_late=True)))
