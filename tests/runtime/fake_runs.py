"""Running plans on the fake device, for tests: operands on either side, results on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsejit.backends.interpreter import InterpreterBackend
from sparsejit.ir.device_code import DeviceArray
from sparsejit.ir.loops import Memref
from sparsejit.ir.types import DType
from sparsejit.runtime.device import DeviceResult, ResidentArray
from sparsejit.runtime.execute import execute
from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.plan import LaunchPlan
from sparsejit.runtime.transfer import Transfers
from sparsejit.runtime.transfer_steps import Home
from tests.runtime.cases import Prepared

__all__ = ["Outcome", "expected", "run", "run_twice"]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The results of a run, and the arguments behind it."""

    results: list[Any]
    arguments: list[Any]


def expected(prepared: Prepared) -> Outcome:
    """Return what the interpreter makes of a case."""
    arguments = prepared.fresh_arguments()
    backend = InterpreterBackend()
    kernel = backend.load(backend.emit(prepared.reference))
    return Outcome(list(kernel(arguments)), arguments)


def run(
    plan: LaunchPlan,
    prepared: Prepared,
    runtime: FakeRuntime,
    home: Home = Home.HOST,
    arguments: list[Any] | None = None,
) -> Outcome:
    """Run a plan and return what it left, copied to the host; the pool of staging is closed."""
    transfers = Transfers(runtime)
    given = prepared.fresh_arguments() if arguments is None else arguments
    try:
        return _run(plan, runtime, transfers, home, given)
    finally:
        transfers.pool.close()


def run_twice(
    plan: LaunchPlan, prepared: Prepared, runtime: FakeRuntime, other: Prepared | None = None
) -> list[Outcome]:
    """Run a plan twice, the second run with what the first one gave back, on ``other``."""
    transfers = Transfers(runtime)
    try:
        calls = [prepared.fresh_arguments(), (other or prepared).fresh_arguments()]
        passed = [execute(plan, runtime, transfers, call).results for call in calls]
        return [
            Outcome([_downloaded(runtime, result) for result in results], call)
            for results, call in zip(passed, calls, strict=True)
        ]
    finally:
        transfers.pool.close()


def _run(
    plan: LaunchPlan, runtime: FakeRuntime, transfers: Transfers, home: Home, given: list[Any]
) -> Outcome:
    passed = list(given)
    if home is Home.DEVICE:
        passed = [_uploaded(runtime, a) if isinstance(a, np.ndarray) else a for a in given]
    try:
        try:
            done = execute(plan, runtime, transfers, passed)
        finally:
            runtime.injection.is_over = True  # What follows is the test's own.
        results = [_downloaded(runtime, result) for result in done.results]
        if home is Home.DEVICE:
            runtime.synchronize(runtime.current_stream())
            for place, argument in enumerate(passed):
                if isinstance(argument, ResidentArray):
                    given[place][...] = runtime.memory.view(argument.array)
    finally:
        for argument in passed:
            if isinstance(argument, ResidentArray):
                runtime.memory.free(argument.array.pointer)
    return Outcome(results, given)


def _uploaded(runtime: FakeRuntime, array: Any) -> ResidentArray:
    memref = Memref("x", DType(array.dtype.name), array.ndim)
    block = runtime.memory.allocate(max(array.nbytes, 1))
    strides = tuple(stride // array.itemsize for stride in array.strides)
    where = DeviceArray(block.start, memref.dtype, array.shape, strides)
    runtime.memory.view(where)[...] = array
    return ResidentArray(where, block)


def _downloaded(runtime: FakeRuntime, result: Any) -> Any:
    if not isinstance(result, DeviceResult):
        return result
    runtime.streams.synchronize(result.stream)
    host = np.array(runtime.memory.view(result.array))
    result.release()
    return host
