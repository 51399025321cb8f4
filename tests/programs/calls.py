"""How random programs are called: containers, keywords, requested formats, and the storage."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.programs.language import Call, Program
from tests.programs.plain import Memory

__all__ = ["OUTPUTS", "draw_call"]

OUTPUTS = {
    1: ("SparseVector", "Dense(1)", "COO(1)"),
    2: (
        "CSR", "CSC", "COO(2)", "DCSR", "DCSC", "BSR(2, 2)", "Dense(2)",
        "Format('(i, j) -> (i : dense, j : loose_compressed)')",
        "Format('(i, j) -> (i : compressed(nonunique), j : singleton)')",
        "Format('(i, j) -> (j : dense, i : dense)')",
    ),
    3: ("CSF(3)", "COO(3)", "Dense(3)"),
}  # fmt: skip


def draw_call(program: Program, names: dict[str, Any], memory: Memory, rng: random.Random) -> Call:
    """Return a way to call the program; formats are asked for where a result is a new array."""
    outputs = []
    for number, name in enumerate(program.returns):
        value = names[name]
        choices = OUTPUTS.get(np.ndim(value), ())
        if choices and rng.random() < 0.3 and not _is_held(value, memory):
            outputs.append((number, rng.choice(choices)))
    packed = rng.choice(["tuple", "list", "dict"]) if rng.random() < 0.2 else ""
    if len(program.params) < 2:
        packed = ""
    count = len(program.params) - (2 if packed else 0)
    return Call(
        rng.choice(["tuple", "tuple", "dict", "list"]),
        packed,
        rng.randint(0, count) if rng.random() < 0.3 else 0,
        tuple(outputs),
        rng.choice(["inline", "runtime"]),
    )


def _is_held(value: Any, memory: Memory) -> bool:
    """Whether a value is in the caller's memory, or may be, as all that is empty."""
    return not np.size(value) or any(
        np.shares_memory(value, held) for held in [*memory.bases, *memory.objects]
    )
