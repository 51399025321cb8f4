"""Extents: symbols, what makes them static, and the assumptions a trace states about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsejit.trace as sj
from sparsejit.affine import Constant, Dim, add, evaluate, floordiv, mul
from sparsejit.errors import TensorTypeError
from sparsejit.formats import CSR
from sparsejit.ir.printing import print_tensor
from sparsejit.trace import guards_hold
from sparsejit.trace._extents import Extents
from sparsejit.trace._views import pick
from tests.support.evaluate import Tensor, run
from tests.trace.harness import Operand, check, evaluated, text, traced

D = np.arange(12.0).reshape(3, 4)
x, y, z = np.arange(4.0), np.arange(3.0), np.arange(9.0)


def shapes(fn: Callable[..., Any], *operands: Any) -> list[str]:
    """Return the parameters of the printed function."""
    header = print_tensor(traced(fn, *operands).func).partition(") ->")[0]
    return [part.strip(" ,\n") for part in header.partition("(")[2].split("%") if part.strip()]


def test_extents_that_must_agree_are_one_symbol() -> None:
    assert shapes(lambda a, b, c: (a + b) @ c, D, D, x) == [
        "a: f64[d0, d1]",
        "b: f64[d0, d1]",
        "c: f64[d1]",
    ]


def test_extents_of_one_are_constants() -> None:
    assert shapes(lambda a, b: a + b, D, np.ones((1, 4))) == ["a: f64[d0, d1]", "b: f64[1, d1]"]


def test_extents_that_follow_from_others() -> None:
    assert shapes(lambda a, b: a[1:] - b, x, y) == ["a: f64[d0]", "b: f64[d0 - 1]"]
    assert shapes(lambda a, b: a - b[1:], y, x) == ["a: f64[d0]", "b: f64[d0 + 1]"]
    assert shapes(lambda a, b: a[::2] - b, z, np.ones(5)) == [
        "a: f64[d0]",
        "b: f64[(d0 + 1) floordiv 2]",
    ]


def test_symbolic_integers() -> None:
    def fn(a: Any) -> Any:
        n = a.shape[0]
        r = sj.output(shape=(n + 1, 2 * n - 1))
        r[0, 0] = n * 1.5 + n // 2 - (1 - n) + n**2
        return r

    def expected(a: Any) -> Any:
        n = a.shape[0]
        r = np.zeros((n + 1, 2 * n - 1))
        r[0, 0] = n * 1.5 + n // 2 - (1 - n) + n**2
        return r

    check(fn, x, expected=expected)
    assert traced(fn, x).static_extents == ()


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: a * int(a.shape[1]),
        lambda a: a * len(a.T),
        lambda a: sum(a[:, k] for k in range(a.shape[1])),
        lambda a: a if a.shape[1] > 2 else a * 2,
        lambda a: a + np.zeros(a.shape[1]),
        lambda a: a * {4: 2.0}[a.shape[1]],
    ],
)
def test_what_needs_the_number_makes_it_static(fn: Callable[..., Any]) -> None:
    result = traced(fn, D)
    assert (0, 1) in result.static_extents
    assert result.func.params[0].type.shape == (Dim(0), Constant(4))
    assert any("dimension 1 is 4 in this trace" in fact.text for fact in result.facts)
    check(fn, D)


def test_a_shape_is_a_tuple_of_numbers_where_it_is_known() -> None:
    assert traced(lambda a: (a[:1].shape[0], a.ndim, np.ones(3).shape), D).result == (1, 2, (3,))


def test_equal_symbols_compare_without_becoming_static() -> None:
    def fn(a: Any, b: Any) -> Any:
        c = a + b
        return c if c.shape == b.shape else a

    assert traced(fn, D, D).static_extents == ()


def test_guards_state_what_was_assumed() -> None:
    result = traced(lambda a: a[1:3] * 2, x)
    assert list(result.guards) == [add(Dim(0), Constant(-3))]
    assert guards_hold(result, [(3,)])
    assert guards_hold(result, [(40,)])
    assert not guards_hold(result, [(2,)])
    halves = traced(lambda a, b: a[::2] * b, z, np.ones(5))
    assert [guards_hold(halves, [(n,), ((n + 1) // 2,)]) for n in (2, 3, 8)] == [False, True, True]
    assert traced(lambda a: a * 2, x).guards == ()


def test_a_view_of_extent_one_repeats() -> None:
    def fn(a: Any, b: Any) -> Any:
        return a[2:] + b

    check(fn, y, x)
    assert not guards_hold(traced(fn, y, x), [(6,), (4,)])


def test_empty_slices_and_arrays() -> None:
    check(lambda a: (a[3:1], a[9:], a[:-9] * 2, a[5::-1], a[:0].sum()), x)
    check(lambda a: (a.sum(axis=0), a.sum(), a * 2, a.T @ a), np.ones((0, 3)))
    with pytest.raises(TensorTypeError, match="zero-size array to reduction operation max"):
        traced(lambda a: a.max(axis=0), np.ones((0, 3)))
    assert traced(lambda a: a.max(axis=0), D).guards == (add(Dim(0), Constant(-1)),)


def test_index_extents_are_the_largest_that_fit() -> None:
    def fn(a: Any, b: Any) -> Any:
        i, j = sj.indices("i j")
        r = sj.output()
        r[i] = a[2 * i + j] * b[j]
        return r

    def expected(a: Any, b: Any) -> Any:
        count = (len(a) - len(b)) // 2 + 1
        return np.array([a[2 * i : 2 * i + len(b)] @ b for i in range(count)])

    for size in (3, 4, 9, 10):
        check(fn, np.arange(float(size)), y, expected=expected)


def test_sparse_operands_are_read_up_to_where_the_loop_ends() -> None:
    A = Operand(np.eye(4) + np.eye(4, k=1), CSR)

    def fn(a: Any, b: Any) -> Any:
        i, j = sj.indices("i j")
        r = sj.output()
        r[i] = a[i, j] * b[i + 1]
        return r

    check(fn, A, x, expected=lambda a, b: a[:-1].sum(axis=1) * b[1:])
    assert "extract_slice" not in text(fn, A, x)


def extent_sizes() -> st.SearchStrategy[int]:
    return st.integers(0, 7)


bounds = st.none() | st.integers(-9, 9)


@given(extent_sizes(), bounds, bounds, st.sampled_from([1, 2, 3, -1, -2, -3]), extent_sizes())
def test_slices_are_pythons(
    size: int, first: int | None, last: int | None, step: int, other: int
) -> None:
    """The slice is right for every extent that the guards admit, the traced one among them."""
    extents = Extents()
    extent = extents.symbol(0, 0, size)
    start, stop = (None if b is None else Constant(b) for b in (first, last))
    picked = pick(extents, extent, start, stop, step)
    for number in (size, other) if size != 1 else (size,):
        if any(evaluate(guard, [number]) < 0 for guard in extents.guards):
            assert number != size
            continue
        wanted = list(range(number))[first:last:step]
        count = evaluate(picked.size, [number])
        begin = evaluate(picked.offset, [number])
        assert [begin + k * picked.stride for k in range(count)] == wanted


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_a_trace_serves_all_shapes_that_its_guards_admit(
    rows: int, inner: int, columns: int
) -> None:
    def fn(a: Any, b: Any) -> Any:
        return (a @ b)[1:, ::-1].T + a.sum() - b[:1].mean()

    result = traced(fn, np.ones((5, 4)), np.ones((4, 3)))
    a, b = np.random.default_rng(0).random((rows, inner)), np.ones((inner, columns))
    ones = [[n == 1 for n in array.shape] for array in (a, b)]
    assert result.func.params[0].type.shape[1] == result.func.params[1].type.shape[0]
    if any(map(any, ones)) or not guards_hold(result, [a.shape, b.shape]):
        return
    (got,), _ = run(result.func, [Tensor.of(a), Tensor.of(b)])
    np.testing.assert_allclose(got.values, fn(a, b))


def test_unification() -> None:
    extents = Extents()
    a, b, c, d = (extents.symbol(0, k, n) for k, n in enumerate((6, 5, 3, 6)))
    assert extents.unify(a, add(b, Constant(1)))
    assert extents.resolve(b) == add(Dim(0), Constant(-1))
    assert extents.unify(c, floordiv(a, 2))
    assert extents.resolve(mul(Constant(2), c)) == mul(Constant(2), floordiv(Dim(0), 2))
    assert extents.unify(d, a)
    assert not extents.unify(a, c)
    assert extents.guards == []
    assert extents.pin(add(b, Constant(2))) == 7
    assert extents.static == [(0, 0)]
    assert [extents.resolve(e) for e in (a, b, c, d)] == [Constant(n) for n in (6, 5, 3, 6)]


def test_extent_as_a_result_is_a_number() -> None:
    got, _ = evaluated(lambda a: (a.shape[0], a.size), D)
    assert got == (3, 12)
