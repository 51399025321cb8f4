"""Random programs, and rows of the big matrix, on the fake device: generated kernels and libraries.

The programs say nothing of devices, so they meet what no hand-written test of plans thinks of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loops import For
from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.opening import use_runtime
from tests.cubin.programs import CONVERSIONS
from tests.matrix.combinations import Outcome, run_combination
from tests.matrix.test_matrix import combinations_of
from tests.programs.drawing import draw_program
from tests.programs.running import Verdict, run_program

STRATEGIES = ("regular-dma", "pinned-dma", "zero-copy")


@pytest.mark.parametrize("seed", range(24))
def test_programs(seed: int) -> None:
    runtime = FakeRuntime(seed)
    with use_runtime(runtime) as device:
        transfer = STRATEGIES[seed % 3]
        library = "never" if seed % 2 else "auto"
        program = draw_program(seed)
        verdict = run_program(program, "cuda", transfer=transfer, library=library)
        device.transfers.pool.close()
    assert verdict is not Verdict.NEEDLESS
    if verdict is Verdict.UNSUPPORTED:  # as anywhere: a device refuses nothing of its own
        assert run_program(program, "interpreter") is Verdict.UNSUPPORTED
    assert runtime.leaks() == []


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name: str) -> None:
    """By as many threads as there are entries: no loop is left to one."""
    source, target = CONVERSIONS[name]
    dense = np.arange(48.0).reshape(6, 8) % 5 % 3
    matrix = sj.asarray(dense, format=source)
    convert = sj.sparse_jit(lambda A: A.astype(A.dtype), target="cuda", output=target)
    runtime = FakeRuntime(3)
    with use_runtime(runtime) as device:
        found = convert(matrix)
        device.transfers.pool.close()
    assert runtime.leaks() == []
    array = found if isinstance(found, np.ndarray) else sj.asarray(found).to_numpy()
    np.testing.assert_array_equal(array, dense)
    lowered: Any = convert.lower(matrix)
    loops = lowered._program.lower(lowered._variant)
    for stmt in all_statements(loops.body):
        if isinstance(stmt, Launch) and stmt.schedule is Schedule.ONE_THREAD:
            assert not any(isinstance(inner, For) for inner in all_statements(stmt.body))


@pytest.mark.parametrize("part", range(4))
def test_rows_of_the_matrix(part: int) -> None:
    rows = combinations_of(0)[part::60]
    assert len(rows) >= 10
    for number, combination in enumerate(rows):
        runtime = FakeRuntime(number)
        with use_runtime(runtime) as device:
            outcome = run_combination(combination, "cuda")
            device.transfers.pool.close()
        assert outcome in (Outcome.RIGHT, Outcome.FULL), combination
        assert runtime.leaks() == []
