"""Assignments update the caller's arrays, through views too; names follow Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit.trace as sj
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import CSR
from tests.trace.harness import Operand, check, evaluated, text, traced

RNG = np.random.default_rng(3)
A = Operand(np.where(RNG.random((3, 4)) < 0.5, RNG.standard_normal((3, 4)), 0), CSR)
D = RNG.standard_normal((3, 4))
x = RNG.standard_normal(4)
y = RNG.standard_normal(3)
z = RNG.standard_normal(9)
n = np.arange(4)

# Functions that NumPy runs as they are.
SAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def same(*operands: Any) -> Callable[[Callable[..., Any]], None]:
    def keep(fn: Callable[..., Any]) -> None:
        SAME[fn.__name__] = (fn, operands)

    return keep


@same(y, A, x)
def add_product(y: Any, A: Any, x: Any) -> Any:
    y += A @ x
    return y


@same(y, A, x)
def rebinding(y: Any, A: Any, x: Any) -> Any:
    y = y + A @ x
    y += 1
    return y


@same(y)
def slices(y: Any) -> Any:
    y[1:] = 2 * y[:-1]
    y[::2] -= 1
    y[0] += 5
    y[-1] = y[0]


@same(D, x, y)
def rows_and_columns(D: Any, x: Any, y: Any) -> Any:
    D[0] = x
    D[:, 1] = y
    D[1:, 2:] *= 3
    D[2, 3] /= 2


@same(D, y)
def through_views(D: Any, y: Any) -> Any:
    t = D.T
    v = t[1:3]
    v += 1
    w = D[1]
    w[:] = w[::-1]
    D[0, 0] = 9
    return t.sum(axis=0), v, w * 1


@same(D)
def views_of_views(D: Any) -> Any:
    v = D[1:][:, 1:][::-1]
    v[0] = 7
    v[:, None, :][1, 0, 1:] = 8
    return v


@same(x)
def snapshot(x: Any) -> Any:
    before = x * 1
    lazy = x + 1
    view = x[1:3]
    element = x[0]
    x[:] = 0
    return before, lazy, view, element


@same(x, D)
def intermediate(x: Any, D: Any) -> Any:
    t = D @ x
    u = t
    t += 1
    t[0] = 3
    return t, u


@same(x)
def scalar_names(x: Any) -> Any:
    s = x.sum()
    t = s
    s += 1
    e = x[0]
    e += 1
    return s, t, e


@same(D)
def transposed_into_itself(D: Any) -> Any:
    G = D[:, :3]
    G[:] = G.T + 1


@same(x)
def in_order(x: Any) -> Any:
    x[1:] += x[:-1]
    x[:] = x[::-1]
    x *= x


@same(x, y)
def several(x: Any, y: Any) -> Any:
    x += 1
    y += x[:3]
    x[1:] += y
    return {"x": x, "both": (y, x)}


@same(n)
def integers(n: Any) -> Any:
    n += 2
    n *= n
    n //= 3
    n[1:3] = 2.9
    n <<= 1
    return n


@same(x)
def out_argument(x: Any) -> Any:
    return np.add(x, 1, out=x)


@same(np.array(2.0), x)
def rank_zero(s: Any, x: Any) -> Any:
    s[()] += x[0]
    s += 1
    return s


@same(x, 3.0, np.float64(4))
def scalar_arguments(x: Any, a: Any, b: Any) -> Any:
    a += 1
    b += a
    x += a + b
    return a, b


@same(D)
def broadcast_axis(D: Any) -> Any:
    D[:, :, None][...] = D.sum(axis=1)[:, None, None]


@pytest.mark.parametrize("name", SAME)
def test_as_numpy(name: str) -> None:
    fn, operands = SAME[name]
    check(fn, *operands)


# Index notation, with the same in NumPy.


def test_update_by_a_sum() -> None:
    def fn(y: Any, A: Any, x: Any) -> Any:
        i, j = sj.indices("i j")
        y[i] += A[i, j] * x[j]
        y[i] -= 2 * A[i, j] * x[j] + y[i]
        return y

    def expected(y: Any, A: Any, x: Any) -> Any:
        y += A @ x
        y -= 2 * (A @ x) + y
        return y

    check(fn, y, A, x, expected=expected)


def test_assign_a_sum_that_reads_the_target() -> None:
    def fn(x: Any) -> Any:
        i, j = sj.indices("i j")
        x[i] = x[i] * x[j]

    def expected(x: Any) -> Any:
        x[:] = x * x.sum()

    check(fn, x, expected=expected)


def test_other_updates_use_the_whole_sum() -> None:
    def fn(y: Any, A: Any) -> Any:
        i, j = sj.indices("i j")
        y[i] *= A[i, j]

    def expected(y: Any, A: Any) -> Any:
        y *= A.sum(axis=1)

    check(fn, y, A, expected=expected)


def test_parts_of_the_target() -> None:
    def fn(z: Any, D: Any, x: Any) -> Any:
        i, j = sj.indices("i j")
        z[2 * i + 1] = x[i]
        D[0, j] += x[j]
        D[i, 1] = D[i, 2]
        z[i] += z[i + 1]

    def expected(z: Any, D: Any, x: Any) -> Any:
        z[1:8:2] = x
        D[0] += x
        D[:, 1] = D[:, 2]
        z[:-1] += z[1:].copy()

    check(fn, z, D, x, expected=expected)


def test_element_updates() -> None:
    def fn(s: Any, x: Any) -> Any:
        (i,) = sj.indices("i")
        s[()] += x[i] * x[i]
        x[0] += sj.sum(x[i], over=i)

    def expected(s: Any, x: Any) -> Any:
        s[()] += (x * x).sum()
        x[0] += x.sum()

    check(fn, np.array(1.0), x, expected=expected)


def test_outputs_piece_by_piece() -> None:
    def fn(x: Any, A: Any) -> Any:
        i, j = sj.indices("i j")
        r = sj.output(shape=(2, x.shape[0]))
        r[0, j] = x[j]
        r[1, j] += A[i, j]
        t = sj.output(shape=5)
        t[1:3] = 1.5
        u = sj.output()
        u[i] += A[i, j]
        u[i] += A[i, j]
        return r, t, u

    def expected(x: Any, A: Any) -> Any:
        t = np.zeros(5)
        t[1:3] = 1.5
        return np.stack([x, A.sum(axis=0)]), t, 2 * A.sum(axis=1)

    check(fn, x, A, expected=expected)


def test_sum_in_its_own_precision() -> None:
    single = D.astype(np.float32)

    def fn(y: Any, D: Any, x: Any) -> Any:
        i, j = sj.indices("i j")
        y[i] += D[i, j] * x[j]

    def expected(y: Any, D: Any, x: Any) -> Any:
        y += D @ x

    check(fn, y, single, x.astype(np.float32), expected=expected, rtol=1e-6)
    assert "f64(in1)" in text(fn, y, single, x.astype(np.float32))
    check(fn, y.astype(np.float32), D, x, expected=expected, rtol=1e-6)


def test_only_assigned_arguments_are_written() -> None:
    def fn(x: Any, y: Any, z: Any) -> Any:
        x[0] = 1.0
        return y

    func = traced(fn, x, y, z).func
    assert [value.name for value in func.assigned] == ["x"]
    assert func.results == (func.params[1],)


def test_returned_argument_is_its_parameter() -> None:
    def fn(x: Any) -> Any:
        x += 1
        return x, x[1:]

    got, after = evaluated(fn, x)
    np.testing.assert_array_equal(got[0], after[0])
    np.testing.assert_array_equal(got[1], after[0][1:])


def test_same_kind_rule() -> None:
    def fn(n: Any, x: Any) -> Any:
        n += x

    with pytest.raises(TensorTypeError, match="Cannot cast ufunc 'add' output from") as caught:
        traced(fn, n, x)
    assert caught.value.location is not None
    assert caught.value.location.line == fn.__code__.co_firstlineno + 1

    def element(n: Any) -> Any:
        n[0] += 1.5

    with pytest.raises(TensorTypeError, match="same_kind"):
        traced(element, n)


def test_a_sparse_argument_gets_no_new_entry() -> None:
    def fn(A: Any) -> Any:
        A[0, 0] = 1.0

    with pytest.raises(UnsupportedError, match="sparse argument 'A' would store new entries"):
        traced(fn, A)


def test_sparse_intermediates_take_a_new_value() -> None:
    def fn(A: Any) -> Any:
        C = A * 2
        C += A
        return C

    check(fn, A)
    assert "csr" in text(fn, A)
