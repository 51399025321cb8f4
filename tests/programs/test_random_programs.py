"""Random programs equal plain NumPy in results and in the state of every array of the caller.

A run draws 240 programs. ``SPARSEJIT_FUZZ=5000 pytest tests/programs`` draws that many more, from
seeds of their own; ``python -m tests.programs.reducing SEED`` makes a failing one small.
"""

import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.programs.accesses import assigned_objects, has_aliases
from tests.programs.drawing import draw_program
from tests.programs.features import ALL_FEATURES, features_of
from tests.programs.plain import make_memory
from tests.programs.running import Verdict, run_program
from tests.programs.text import source

CHUNKS = 8
SEEDS = 240
COVERED = 600
TIMES = 2
MORE = int(os.environ.get("SPARSEJIT_FUZZ", "0"))


def run_with_notes(seed: int, target: str = "interpreter") -> Verdict:
    """Run the program of a seed; an error tells the program."""
    program = draw_program(seed)
    try:
        return run_program(program, target)
    except Exception as error:
        error.add_note(f"seed {seed}: python -m tests.programs.reducing {seed}")
        error.add_note(source(program))
        raise


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk: int, record_property: Callable[[str, object], None]) -> None:
    counts = dict.fromkeys(Verdict, 0)
    more = range(1_000_000 + chunk, 1_000_000 + MORE, CHUNKS)
    for seed in [*range(chunk, SEEDS, CHUNKS), *more]:
        counts[run_with_notes(seed)] += 1
    for verdict, number in counts.items():
        record_property("count of random programs", (verdict.value, number))
    # Assignments to sparse arrays are not all possible.
    assert counts[Verdict.UNSUPPORTED] <= 0.07 * sum(counts.values())
    assert not counts[Verdict.NEEDLESS]


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_random_programs_on_numba(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "numba")
    run_with_notes(seed, "cpu")


@pytest.mark.parametrize("start", range(4))
def test_random_programs_on_llvm(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "llvm")
    for seed in range(start, 40, 4):
        run_with_notes(seed, "cpu")


def test_the_programs_are_what_they_should_be() -> None:
    programs = [draw_program(seed) for seed in range(SEEDS)]
    assert sum(len(program.statements) >= 3 for program in programs) >= 0.98 * SEEDS
    assert sum(bool(assigned_objects(program)) for program in programs) >= SEEDS / 2
    assert sum(has_aliases(program, make_memory(program)) for program in programs) >= SEEDS / 3
    assert sum(len(program.returns) > 1 for program in programs) >= SEEDS / 3
    texts = list(map(source, programs))
    for part in ("+=", "-=", "*=", "[:-1]", "[::-1]", ".T", "sj.output()", "+ 1]", "over=", "s "):
        assert sum(part in text for text in texts) >= 5, part
    returned = [
        program
        for program in programs
        if {param.name for param in program.params} & set(program.returns)
    ]
    assert len(returned) >= SEEDS / 10


def test_no_feature_vanishes() -> None:
    """Each feature, by name, is in at least ``TIMES`` of as many programs as follow each other."""
    counts: Counter[str] = Counter()
    for seed in range(COVERED):
        counts.update(features_of(draw_program(seed)))
    missing = {feature: counts[feature] for feature in ALL_FEATURES if counts[feature] < TIMES}
    assert not missing, f"drawn less than {TIMES} times: {missing}"
    assert len(ALL_FEATURES) >= 170
