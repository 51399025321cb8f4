"""Random programs, and rows of the big matrix, on the fake device: generated kernels and libraries.

The programs say nothing of devices, so they meet what no hand-written test of plans thinks of.
"""

from __future__ import annotations

import pytest

from sparsejit.runtime.fake import FakeRuntime
from sparsejit.runtime.opening import use_runtime
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
        verdict = run_program(draw_program(seed), "cuda", transfer=transfer, library=library)
        device.transfers.pool.close()
    assert verdict is not Verdict.NEEDLESS
    assert runtime.leaks() == []


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
