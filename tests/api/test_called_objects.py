"""What is decorated and no function: bound methods, partials, objects that are called."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import sparsejit as sj


class Scale:
    """A layer: its factor may change between calls."""

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def apply(self, x: Any) -> Any:
        return x * self.factor


X = np.ones(3)


@pytest.mark.parametrize("is_method", [False, True])
@pytest.mark.parametrize("is_captured", [False, True])
def test_attributes_are_read_at_every_call(is_method: bool, is_captured: bool) -> None:
    layer = Scale(2.0)
    fn: Any = layer.apply if is_method else layer
    f = sj.sparse_jit(lambda x: fn(x)) if is_captured else sj.sparse_jit(fn)
    for _ in range(4):
        assert f(X).tolist() == [2.0] * 3
    layer.factor = 3.0
    assert f(X).tolist() == [3.0] * 3
    layer.factor = np.arange(3.0)
    assert f(X).tolist() == [0.0, 1.0, 2.0]
    layer.factor[0] = 9
    assert f(X).tolist() == [9.0, 1.0, 2.0]
    layer.factor = np.full(3, 4.0)
    assert f(X).tolist() == [4.0] * 3
    assert f.cache_info().traces == 3


@pytest.mark.parametrize("is_captured", [False, True])
def test_arguments_of_a_partial(is_captured: bool) -> None:
    weights = np.ones(3)
    fn = partial(lambda w, x, b: x * w * b, weights, b=2)
    f = sj.sparse_jit(lambda x: fn(x)) if is_captured else sj.sparse_jit(fn)
    for _ in range(4):
        assert f(X).tolist() == [2.0] * 3
    weights[:] = [1, 2, 3]
    assert f(X).tolist() == [2.0, 4.0, 6.0]
    assert f.cache_info().traces == 1
    assert sj.sparse_jit(partial(pow, exp=2))(X * 3).tolist() == [9.0] * 3


def test_functions_without_python_code() -> None:
    f = sj.sparse_jit(np.exp)
    for _ in range(3):
        np.testing.assert_allclose(f(X), np.exp(X))


def test_an_array_made_inside_is_a_fresh_result() -> None:
    f = sj.sparse_jit(lambda x: (np.arange(3), x + 1, "name"))
    for _ in range(3):
        made, _, name = f(X)
        assert (made.tolist(), made.dtype, name) == ([0, 1, 2], np.int64, "name")
        made[:] = 7
    assert sj.sparse_jit(lambda x: np.zeros(2))(X).tolist() == [0.0, 0.0]
    names = sj.sparse_jit(lambda x: (x, np.array(["a", "b"])))(X)[1]
    assert names.tolist() == ["a", "b"]
    assert sj.sparse_jit(lambda x: np.array(["a"]))(X).tolist() == ["a"]


def test_a_container_that_holds_itself() -> None:
    held: list[Any] = [X]
    held.append(held)
    with pytest.raises(TypeError, match="'xs' is nested more than 100 deep, or holds itself"):
        sj.sparse_jit(lambda xs: xs[0])(held)
