"""Random programs with loops and branches: compiled, as reference, and as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import sparsejit as sj
from sparsejit import sparse_jit
from tests.api.control_programs import draw, run

A = sp.csr_array(np.where(np.arange(36).reshape(6, 6) % 4 == 1, 0.7, 0.0))
VECTORS = np.linspace(-0.9, 0.8, 12).reshape(2, 6)


def _copied(values: Any) -> Any:
    return tuple(np.array(value) if np.ndim(value) else value for value in values)


def _fori(lo: int, hi: int, body: Callable[..., Any], init: Any) -> Any:
    for i in range(lo, hi):
        init = body(i, _copied(init))
    return _copied(init)


def _while(cond: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
    while cond(_copied(init)):
        init = body(_copied(init))
    return _copied(init)


def _cond(pred: Any, then: Callable[..., Any], orelse: Callable[..., Any], *operands: Any) -> Any:
    return _copied(then(*operands) if pred else orelse(*operands))


PLAIN = SimpleNamespace(fori_loop=_fori, while_loop=_while, cond=_cond)


def _differs(seed: int, target: str = "interpreter") -> bool:
    program = draw(seed)
    a, b = VECTORS.copy()
    s = 0.3 * (seed % 5) - 0.6
    wanted = run(program, PLAIN, A, a.copy(), b.copy(), s)

    def compiled(A: Any, a: Any, b: Any, s: Any) -> Any:
        return run(program, sj, A, a, b, s)

    fn = sparse_jit(target=target)(compiled)
    got = fn(A, a, b, s)
    reference = [pair.values for pair in fn.lower(A, a, b, s).reference(A, a, b, s)]
    for result in (got, reference):
        for one, other in zip(result, wanted, strict=True):
            if not np.allclose(one, other, rtol=1e-10, atol=1e-12):
                return True
    return not (np.array_equal(a, VECTORS[0]) and np.array_equal(b, VECTORS[1]))


@pytest.mark.parametrize("part", range(4))
def test_seeded_programs(part: int) -> None:
    assert [seed for seed in range(part * 15, part * 15 + 15) if _differs(seed)] == []


@settings(max_examples=20)
@given(st.integers(1000, 10**6))
def test_drawn_programs(seed: int) -> None:
    assert not _differs(seed)


@pytest.mark.parametrize("seed", range(8))
def test_compiled_programs(seed: int) -> None:
    assert not _differs(seed, "cpu")


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("_copy_insertion._Inserter._aliases_of", lambda *_: set()),
        ("_raw_conflicts._is_redefined", lambda *_: True),
    ],
)
def test_seeded_faults_are_seen(place: str, fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"sparsejit.sparsify_and_bufferize.{place}", fault)
    assert any(_differs(seed) for seed in range(60))
