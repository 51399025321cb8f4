"""Random operations give what the reference evaluator gives, through the stage and the interpreter.

A run draws a few hundred; ``SPARSEJIT_FUZZ=20000 pytest tests/generics`` draws that many more, from
seeds of their own.
"""

import os
from collections.abc import Callable

import pytest

from sparsejit.ir.printing import print_tensor
from tests.generics.drawing import draw
from tests.generics.running import Outcome, run_drawn

CHUNKS = 8
SEEDS = 480
MORE = int(os.environ.get("SPARSEJIT_FUZZ", "0"))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_operations(chunk: int, record_property: Callable[[str, object], None]) -> None:
    counts = dict.fromkeys(Outcome, 0)
    more = range(1_000_000 + chunk, 1_000_000 + MORE, CHUNKS)
    for seed in [*range(chunk, SEEDS, CHUNKS), *more]:
        drawn = draw(seed)
        try:
            counts[run_drawn(drawn)] += 1
        except Exception as error:
            error.add_note(f"seed {seed}, {drawn.symbols}, {drawn.storage}")
            error.add_note(print_tensor(drawn.func))
            error.add_note("\n".join(map(repr, drawn.arrays)))
            raise
    for outcome, number in counts.items():
        record_property("count of random operations", (outcome.value, number))
    assert counts[Outcome.UNSUPPORTED] <= 0.02 * sum(counts.values())


PARTS = ("reduction", "stored(", "nothing", "max(out", "out *", "dia", "bsr", "loose", "T2")


def test_the_drawing_is_varied() -> None:
    texts = [print_tensor(draw(seed).func) for seed in range(SEEDS)]
    assert len(set(texts)) > 0.95 * SEEDS
    for part in PARTS:
        assert sum(part in text for text in texts) >= 5, part


@pytest.mark.parametrize("seed", range(0, 24, 4))
def test_random_operations_on_numba(seed: int) -> None:
    assert run_drawn(draw(seed), "numba") is Outcome.RIGHT
