"""Bound plans: fixed values, updates, fresh results."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparsejit import sparse_jit
from sparsejit.api import CacheInfo


@pytest.fixture
def matrix() -> Any:
    return sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))


def spmv(A: Any, x: Any, scale: float = 1.0) -> Any:
    return (A @ x) * scale


def test_fixed_values_are_those_of_bind_time(matrix: Any) -> None:
    f = sparse_jit(spmv, target="interpreter")
    plan = f.bind(A=matrix)
    x = np.array([1.0, 10.0])
    matrix.data[:] = 0.0
    assert plan(x).tolist() == [21.0, 30.0]
    assert plan(x=x, scale=2.0).tolist() == [42.0, 60.0]
    matrix.data[:] = 1.0
    plan.update(A=matrix)
    matrix.data[:] = 0.0
    assert plan(x).tolist() == [11.0, 10.0]
    assert f.cache_info() == CacheInfo(traces=1, compiles=1, hits=2)


def test_results_are_fresh(matrix: Any) -> None:
    plan = sparse_jit(lambda A, x: (A @ x, A, x), target="interpreter").bind(A=matrix)
    x = np.ones(2)
    first, second = plan(x), plan(x)
    assert not np.shares_memory(first[0], second[0])
    assert not np.shares_memory(first[1].data, second[1].data)
    first[1].data[:] = 7.0
    assert plan(x)[0].tolist() == [3.0, 3.0]
    assert first[2] is x


def test_every_argument_may_be_fixed(matrix: Any) -> None:
    plan = sparse_jit(spmv, target="interpreter").bind(A=matrix, x=np.ones(2), scale=3.0)
    assert plan().tolist() == [9.0, 9.0]
    plan.update(scale=1.0)
    assert plan().tolist() == [3.0, 3.0]


def test_containers_and_shared_objects() -> None:
    f = sparse_jit(lambda p, x: p["a"] * p["b"][0] + x, target="interpreter")
    a = np.array([1.0, 2.0])
    plan = f.bind(p={"a": a, "b": (a,)})
    a[:] = 0.0
    assert plan(np.zeros(2)).tolist() == [1.0, 4.0]


def test_wrong_names(matrix: Any) -> None:
    f = sparse_jit(spmv, target="interpreter")
    with pytest.raises(TypeError, match="unexpected keyword argument 'B'"):
        f.bind(B=matrix)
    plan = f.bind(A=matrix)
    with pytest.raises(ValueError, match=r"update\(\) of 'x', which is not bound; bound are 'A'"):
        plan.update(x=np.ones(2))
    with pytest.raises(TypeError, match="argument 'A' has a value already"):
        plan(np.ones(2), A=matrix)
    with pytest.raises(TypeError, match="argument 'x' has a value already"):
        plan(np.ones(2), x=np.ones(2))
    with pytest.raises(TypeError, match="takes 2 positional arguments, 3 were given"):
        plan(1, 2, 3)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        plan()
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        plan(np.ones(2), y=1)


def test_a_fixed_argument_is_not_assigned() -> None:
    def f(y: Any, x: Any) -> None:
        y += x

    g = sparse_jit(f, target="interpreter")
    plan = g.bind(y=np.zeros(2))
    with pytest.raises(ValueError, match="assigns to argument 'y', which is fixed in the plan"):
        plan(np.ones(2))
    y = np.zeros(2)
    other = g.bind(x=np.ones(2))
    other(y)
    other(y)
    assert y.tolist() == [2.0, 2.0]
