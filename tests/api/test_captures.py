"""Captured names: read at every call, rebinding seen, scalars static by value."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.api import CacheInfo

W = np.array([1.0, 2.0])
SCALE = 2.0
LAYERS: Any = [np.array([1.0, 1.0]), np.array([2.0, 2.0])]
MATRIX: Any = sp.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]]))


@pytest.fixture(autouse=True)
def restored_globals() -> Any:
    names = ("W", "SCALE", "LAYERS", "MATRIX", "rule")
    before = {name: globals()[name] for name in names}
    yield
    globals().update(before)


@sparse_jit(target="interpreter")
def with_globals(x: Any) -> Any:
    return x * W * SCALE


def test_values_and_rebinding_of_a_global() -> None:
    global W, SCALE
    x = np.ones(2)
    W = np.array([1.0, 2.0])
    assert with_globals(x).tolist() == [2.0, 4.0]
    W[:] = 5.0
    assert with_globals(x).tolist() == [10.0, 10.0]
    W = np.array([7.0, 8.0])
    assert with_globals(x).tolist() == [14.0, 16.0]
    traces = with_globals.cache_info().traces
    SCALE = 3.0
    assert with_globals(x).tolist() == [21.0, 24.0]
    assert with_globals.cache_info().traces == traces + 1
    W = np.array([1, 1])  # another dtype
    assert with_globals(x).tolist() == [3.0, 3.0]


def test_a_closure_is_read_at_each_call() -> None:
    bias, shift = np.array([1.0, 2.0]), 1

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return x + bias * 2 + shift  # an operation of captured values alone

    x = np.zeros(2)
    assert f(x).tolist() == [3.0, 5.0]
    bias += 1.0
    assert f(x).tolist() == [5.0, 7.0]
    bias = np.array([0.0, 0.0])
    assert f(x).tolist() == [1.0, 1.0]
    assert f.cache_info().traces == 1
    shift = 10
    assert f(x).tolist() == [10.0, 10.0]
    assert f.cache_info() == CacheInfo(traces=2, compiles=2, hits=2)


def test_slices_and_shapes_of_captured_arrays() -> None:
    table = np.arange(6.0)

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return x * table[1:3] + table.sum()

    assert f(np.ones(2)).tolist() == [16.0, 17.0]
    table = np.arange(10.0, 14.0)
    assert f(np.ones(2)).tolist() == [57.0, 58.0]


def test_a_captured_sparse_matrix() -> None:
    global MATRIX

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return MATRIX @ x

    x = np.array([1.0, 10.0])
    assert f(x).tolist() == [10.0, 2.0]
    MATRIX.data *= 3
    assert f(x).tolist() == [30.0, 6.0]
    MATRIX = sp.csc_array(np.eye(2))
    assert f(x).tolist() == [1.0, 10.0]


def test_containers_of_arrays() -> None:
    global LAYERS

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        for layer in LAYERS:
            x = x * layer
        return x

    LAYERS = [np.array([1.0, 1.0]), np.array([2.0, 2.0])]
    assert f(np.ones(2)).tolist() == [2.0, 2.0]
    LAYERS[0] = np.array([5.0, 6.0])
    assert f(np.ones(2)).tolist() == [10.0, 12.0]
    LAYERS.append(np.array([1.0, 0.5]))
    assert f(np.ones(2)).tolist() == [10.0, 6.0]


def scaled(x: Any) -> Any:
    return x * W


def rule(x: Any) -> Any:
    return x + 1


def test_arrays_of_called_functions() -> None:
    global W, rule

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return rule(scaled(x))

    W = np.array([1.0, 2.0])
    assert f(np.ones(2)).tolist() == [2.0, 3.0]
    W = np.array([3.0, 4.0])
    assert f(np.ones(2)).tolist() == [4.0, 5.0]
    rule = lambda x: x - 1  # noqa: E731 - a name that is rebound
    assert f(np.ones(2)).tolist() == [2.0, 3.0]


def test_arrays_of_a_called_decorated_function() -> None:
    global W

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return with_globals(x) + 1

    W = np.array([1.0, 2.0])
    assert f(np.ones(2)).tolist() == [SCALE + 1, 2 * SCALE + 1]
    W = np.array([3.0, 4.0])
    assert f(np.ones(2)).tolist() == [3 * SCALE + 1, 4 * SCALE + 1]
    assert f.cache_info().traces == 1


class Model:
    def __init__(self, weights: Any) -> None:
        self.weights = weights
        self.bias = 1.0

    @sparse_jit(target="interpreter")
    def forward(self, x: Any) -> Any:
        return self.scale(x) + self.bias

    def scale(self, x: Any) -> Any:
        return x * self.weights

    @sparse_jit(target="interpreter")
    def wrapped(self, x: Any) -> Any:
        return self.forward(x) * 2


def test_methods_see_the_attributes_of_their_object() -> None:
    one, two = Model(np.array([1.0, 2.0])), Model(np.array([10.0, 20.0]))
    x = np.ones(2)
    assert one.forward(x).tolist() == [2.0, 3.0]
    assert two.forward(x).tolist() == [11.0, 21.0]
    one.weights = np.array([5.0, 6.0])
    assert one.forward(x).tolist() == [6.0, 7.0]
    one.weights[0] = 0.0
    assert one.forward(x).tolist() == [1.0, 7.0]
    one.bias = 3.0
    assert one.forward(x).tolist() == [3.0, 9.0]
    assert one.wrapped(x).tolist() == [6.0, 18.0]
    assert Model.forward(two, x).tolist() == [11.0, 21.0]
    assert one.weights.tolist() == [0.0, 6.0]


def test_bound_methods_can_be_looked_at() -> None:
    model = Model(np.array([1.0, 2.0]))
    assert "self_weights" in model.forward.lower(np.ones(2)).text("tensor")
    assert "forward: runs on interpreter" in model.forward.explain(np.ones(2))
    assert model.forward.cache_info() == Model.forward.cache_info()


def test_methods_can_be_bound_and_compiled() -> None:
    model = Model(np.array([1.0, 2.0]))
    plan = model.forward.bind(x=np.ones(2))
    assert plan().tolist() == [2.0, 3.0]
    model.weights = np.array([3.0, 4.0])
    assert plan().tolist() == [4.0, 5.0]
    call = model.forward.lower(np.ones(2)).compile()
    assert call(np.ones(2)).tolist() == [4.0, 5.0]


def test_arrays_of_texts_are_no_operands() -> None:
    names = np.array(["first", "second"])

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return x * len(names[0]) + names.size

    assert f(np.ones(2)).tolist() == [7.0, 7.0]


def test_a_captured_argument_is_the_same_value() -> None:
    y = np.array([1.0, 2.0])

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return x * y

    assert f(y).tolist() == [1.0, 4.0]
    assert len(f.lower(y).text("tensor").splitlines()[0].split("%")) == 2
    assert f(np.array([3.0, 3.0])).tolist() == [3.0, 6.0]


def test_arrays_made_while_tracing_are_constants() -> None:
    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return x * np.array([1.0, 2.0])

    assert f(np.ones(2)).tolist() == [1.0, 2.0]
    assert f(np.ones(2) * 2).tolist() == [2.0, 4.0]
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=1)


class Hidden:
    value = np.array([1.0, 2.0])

    def fetch(self) -> Any:
        return type(self).value


def test_an_array_without_a_name_is_refused() -> None:
    hidden = Hidden()

    @sparse_jit(target="interpreter")
    def f(x: Any) -> Any:
        return x * hidden.fetch()

    with pytest.raises(sj.errors.UnsupportedError, match="neither through its arguments nor"):
        f(np.ones(2))


def test_an_assigned_capture_is_written() -> None:
    total = np.zeros(2)

    @sparse_jit(target="interpreter")
    def add(x: Any) -> None:
        total[:] = total + x

    add(np.array([1.0, 2.0]))
    add(np.array([1.0, 2.0]))
    assert total.tolist() == [2.0, 4.0]
