"""Programs that random drawing once found wrong, made small; they stay right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit import sparse_jit


def scalar_beside_a_sum(x: Any, y: Any, s: Any) -> None:
    i, k = sj.indices("i k")
    x[i] = s * s - y[k + 1]


def scalars_compared(x: Any, y: Any, s: Any) -> None:
    x += np.where(s > 1, s, 0)


def plain_scalar_beside_a_sum(x: Any, y: Any, s: Any) -> None:
    x[:] = s * s - y[1:].sum()


CASES: list[tuple[Callable[..., None], Callable[..., None]]] = [
    (scalar_beside_a_sum, plain_scalar_beside_a_sum),
    (scalars_compared, scalars_compared),
]


@pytest.mark.parametrize(("function", "plain"), CASES, ids=lambda fn: fn.__name__)
def test_program(function: Callable[..., None], plain: Callable[..., None]) -> None:
    for s in (3, 0, 2.5):
        x, y = np.arange(3.0), np.array([2.0, -1.0, 4.0])
        expected = x.copy()
        plain(expected, y, s)
        sparse_jit(function, target="interpreter")(x, y, s)
        np.testing.assert_array_equal(x, expected)


def test_slice_of_a_diagonal_matrix() -> None:
    def function(B: Any, x: Any) -> None:
        x[1:] = (B[-1, 1:][:, None] * (-1)).sum(axis=1)

    dense = np.array([[1.0, 0.0], [2.0, 3.0]])
    x = np.zeros(2)
    sparse_jit(function, target="interpreter")(sj.asarray(dense, format=sj.DIA), x)
    assert x.tolist() == [0.0, -3.0]
