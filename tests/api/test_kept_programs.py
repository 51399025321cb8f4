"""Functions that are traced anew again and again: what they keep of it is bounded."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api import _programs
from sparsejit.api._function import CompiledFunction

FACTOR = 1.0


class Model:
    """An object with a compiled method, which is traced for each object."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    @sj.sparse_jit(target="interpreter")
    def scaled(self, A: Any, x: Any) -> Any:
        y = A @ x
        return y * self.weight if x.shape[0] > 3 else y * self.weight + 1


def by_factor(x: Any) -> Any:
    return x * FACTOR


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_programs, "MOST", 8)


def kept(function: Any) -> int:
    assert isinstance(function, CompiledFunction)
    return len(function._programs._order)


def test_methods_of_many_objects() -> None:
    function, seen = Model.__dict__["scaled"], []
    for k in range(30):
        model = Model(float(k))
        seen.append(weakref.ref(model))
        for size in (3, 5):  # two programs of one key: forgotten when its object is gone
            A, x = sp.eye_array(size, format="csr"), np.arange(1.0, size + 1)
            wanted = x * k if size > 3 else x * k + 1
            for _ in range(3):
                np.testing.assert_array_equal(model.scaled(A, x), wanted)
    assert 0 < kept(function) <= 8
    assert function.cache_info().traces >= 60
    del model
    gc.collect()
    assert all(reference() is None for reference in seen)


def test_numbers_that_change_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = sj.sparse_jit(by_factor, target="interpreter"), np.arange(3.0)
    for factor in (*range(20), 0, 1, 19):
        monkeypatch.setitem(globals(), "FACTOR", float(factor))
        for _ in range(3):
            np.testing.assert_array_equal(f(x), x * factor)
    assert kept(f) == 8
    traces = f.cache_info().traces
    f(x)
    assert f.cache_info().traces == traces


def test_programs_of_other_keys_stay() -> None:
    f = sj.sparse_jit(lambda x: x + 1, target="interpreter")
    kinds = [np.arange(3, dtype=kind) for kind in ("f4", "f8", "i4", "i8", "c16")]
    for x in kinds:
        f(x)
    traces = f.cache_info().traces
    for x in kinds:
        np.testing.assert_array_equal(f(x), x + 1)
    assert f.cache_info().traces == traces == kept(f) == 5
