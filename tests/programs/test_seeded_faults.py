"""The random programs prove themselves: each of these wrong compilers is caught within 200."""

import pytest

from tests.programs.drawing import draw_program
from tests.programs.faults import FAULTS, Fault
from tests.programs.running import run_program

PROGRAMS = 200


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_fault_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, name = fault.target()
    monkeypatch.setattr(holder, name, fault.wrong(getattr(holder, name)))
    for seed in range(PROGRAMS):
        try:
            run_program(draw_program(seed))
        except Exception:  # a wrong answer, or the verifier's word for it
            return
    pytest.fail(f"{PROGRAMS} programs are right although {fault.what}")
