"""Calls that are answered by machine code alone: that they are, and what must not be.

``test_routes`` and its kin change what users change, and see the right numbers; here is seen that
machine code answered before, and that it does not where it must not.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api import _function
from sparsejit.api._function import CompiledFunction
from sparsejit.api._route import MISSED, Route, make_route
from sparsejit.api._straight import StraightRoute
from sparsejit.backends.llvm._guarded_call import is_supported, takes_operands
from sparsejit.tensors import LOOKS
from tests.api.counted import matrix, product

pytestmark = pytest.mark.skipif(
    not (is_supported() and takes_operands()), reason="another layout of objects"
)

FACTOR = 2.0


def made(fn: Callable[..., Any], **options: Any) -> CompiledFunction:
    found = sj.sparse_jit(fn, **options)
    assert isinstance(found, CompiledFunction)
    return found


def is_straight(f: CompiledFunction, *args: Any) -> bool:
    """Whether machine code answers this call."""
    return f._routes.straight_answer(args) is not MISSED


def settled(fn: Callable[..., Any], *args: Any, **options: Any) -> CompiledFunction:
    f = made(fn, **options)
    for _ in range(4):
        f(*args)
    assert is_straight(f, *args)
    return f


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_products(kind: str) -> None:
    A, x = matrix(4, 4, kind), np.arange(4.0)
    f = settled(product, A, x)
    A.data *= 3
    np.testing.assert_array_equal(f(A, x), A.toarray() @ x)
    T = sj.asarray(A, format=sj.DCSR)
    g = settled(product, T, x)
    np.testing.assert_array_equal(g(T, x), A.toarray() @ x)


def increase(y: Any, x: Any) -> Any:
    y += 2 * x[::-1]
    return y


def test_results_of_many_kinds() -> None:
    A, B, x = matrix(4, 4), matrix(4, 4), np.arange(4.0)
    total = settled(lambda A, B: A + B, A, B)(A, B)
    np.testing.assert_array_equal(total.toarray(), A.toarray() + B.toarray())
    both = settled(lambda A, x: {"y": A @ x, "x": x, "s": (x + 1, A * 2)}, A, x)(A, x)
    assert both["x"] is x
    np.testing.assert_array_equal(both["y"], A @ x)
    np.testing.assert_array_equal(both["s"][0], x + 1)
    np.testing.assert_array_equal(both["s"][1].toarray(), A.toarray() * 2)
    assert settled(lambda x: x.sum(), x)(x) == x.sum()
    y = np.zeros(4)
    f = settled(increase, y, x)
    before = y.copy()
    assert f(y, x) is y
    np.testing.assert_array_equal(y, before + 2 * x[::-1])


def test_numbers_of_one_type() -> None:
    x = np.arange(3.0)
    f = settled(lambda a, x: a * x, 2.0, x)
    np.testing.assert_array_equal(f(float("-0.5"), x), -0.5 * x)
    for other in (2, np.float64(2), np.float32(2), True, 2j):
        assert not is_straight(f, other, x)
        np.testing.assert_array_equal(f(other, x), other * x)


def test_arguments_that_share_memory_or_are_too_few() -> None:
    buffer = np.arange(8.0)
    f = settled(increase, np.zeros(4), buffer[:4])
    assert is_straight(f, buffer[:4].copy(), buffer[4:])
    for y, x in ((buffer[:4], buffer[2:6]), (buffer[2:6], buffer[:4]), (buffer[:4], buffer[:4])):
        kept = buffer.copy()
        assert not is_straight(f, y, x)
        np.testing.assert_array_equal(buffer, kept)
    assert is_straight(f, buffer[:4], buffer[4:])  # side by side
    assert not is_straight(f, buffer[:4])
    assert not is_straight(f)
    assert not is_straight(f, buffer[:4], buffer[4:], buffer[4:])


def test_strided_arguments_that_share_memory() -> None:
    buffer = np.arange(16.0)
    f = settled(increase, buffer[:8:2].copy()[::-1], np.zeros(8)[::2])
    assert not is_straight(f, buffer[:4][::-1], buffer[2:10:2])
    assert not is_straight(f, buffer[6:10][::-1], buffer[:8:2])
    assert is_straight(f, buffer[7:11][::-1], buffer[:8:2])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_attributes_in_the_place_of_others(kind: str) -> None:
    x = np.arange(4.0)
    names = [name for name in vars(matrix(4, 4, kind)) if name != "maxprint"]
    assert len(names) >= 3
    for name in names:
        A = matrix(4, 4, kind)
        f = settled(product, A, x)
        held = vars(A)[name]
        vars(A)[name] = held.copy() if isinstance(held, np.ndarray) else object()
        assert not is_straight(f, A, x), name
        del vars(A)[name]
        assert not is_straight(f, A, x), name
        vars(A)[name] = held
        assert is_straight(f, A, x)


def test_objects_of_one_kind() -> None:
    A, x = matrix(), np.arange(4.0)
    f, B, wider = settled(product, A, x), A.copy(), matrix(5, 6)
    B.data *= 2
    f(B, x)
    f(B, x)
    for _ in range(2):
        for S in (A, B):
            assert is_straight(f, S, x)
            np.testing.assert_array_equal(f(S, x), S @ x)
    np.testing.assert_array_equal(f(wider, np.ones(6)), wider @ np.ones(6))


def test_names_cells_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    factor, x = 3.0, np.ones(2)
    f = settled(lambda x: x * FACTOR * factor, x)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert not is_straight(f, x)
    assert f(x).tolist() == [15.0] * 2
    f(x)
    f(x)
    assert is_straight(f, x)
    factor = 4.0
    assert not is_straight(f, x)
    assert f(x).tolist() == [20.0] * 2
    f(x)
    f(x)
    for name in ("SPARSEJIT_TARGET", "SPARSEJIT_CPU_BACKEND"):
        assert is_straight(f, x)
        monkeypatch.setenv(name, "interpreter")
        assert not is_straight(f, x)
        monkeypatch.delenv(name)


def test_new_objects_like_others_take_their_route(monkeypatch: pytest.MonkeyPatch) -> None:
    first, x = matrix(4, 4), np.arange(4.0)
    f = settled(product, first, x)
    g = made(lambda A, *, x: A @ x)
    for _ in range(3):
        g(first * 2, x=x)

    def unexpected(*_: Any, **__: Any) -> Any:
        raise AssertionError("a route is there")

    for function in (f, g):
        monkeypatch.setattr(function, "_run", unexpected)
    for k in range(3):
        A = first * (k + 2)
        np.testing.assert_array_equal(f(A, x), A.toarray() @ x)
        np.testing.assert_array_equal(g(A * 2, x=x), 2 * A.toarray() @ x)
    with pytest.raises(AssertionError, match="a route is there"):
        f(matrix(5, 4), x)
    bad = first * 2
    bad.indices[0] = 7
    with pytest.raises(ValueError, match="7"):
        f(bad, x)


def test_objects_of_another_size_each_time_make_no_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    count = [0]

    def counted(*args: Any) -> Any:
        count[0] += 1
        return make_route(*args)

    monkeypatch.setattr(_function, "make_route", counted)
    f, x = made(product), np.arange(40.0)
    batches = [sp.random_array((20 + k, 40), density=0.1 + k / 100, rng=k) for k in range(30)]
    for batch in map(sp.csr_array, batches):
        np.testing.assert_allclose(f(batch, x), batch.toarray() @ x)
    assert count == [0]
    assert f.cache_info().compiles == 1
    for _ in range(2):  # the second time, one is worth its making
        np.testing.assert_allclose(f(batch, x), batch.toarray() @ x)
    assert count == [1]
    assert is_straight(f, batch, x)


def test_functions_whose_parts_are_replaced() -> None:
    def inner(x: Any, factor: float = 2.0, *, more: float = 0.0) -> Any:
        return x * factor + more

    def outer(x: Any) -> Any:
        return inner(x) + 1

    x = np.arange(3.0)
    f = settled(outer, x)
    changes: list[tuple[Callable[[], object], Any]] = [
        (lambda: setattr(inner, "__defaults__", (3.0,)), 3 * x + 1),
        (lambda: setattr(inner, "__kwdefaults__", {"more": 4.0}), 3 * x + 5),
        (lambda: (inner.__kwdefaults__ or {}).update(more=5.0), 3 * x + 6),
        (lambda: setattr(inner, "__code__", (lambda x, factor, *, more: x + more).__code__), x + 6),
        (lambda: setattr(outer, "__code__", other(inner).__code__), x + 4),
    ]
    for change, wanted in changes:
        change()
        assert not is_straight(f, x)
        for _ in range(4):
            np.testing.assert_array_equal(f(x), wanted)
        assert is_straight(f, x)


def other(inner: Any) -> Callable[[Any], Any]:
    return lambda x: inner(x) - 1


def test_defaults_are_those_of_the_call() -> None:
    def f(x: Any, factor: float = 2.0, *, more: float = 0.0) -> Any:
        return x * factor + more

    x = np.arange(3.0)
    called = made(f)
    np.testing.assert_array_equal(called(x), 2 * x)
    f.__defaults__ = (3.0,)
    np.testing.assert_array_equal(called(x), 3 * x)
    assert f.__kwdefaults__ is not None
    f.__kwdefaults__["more"] = 1.0
    np.testing.assert_array_equal(called(x), 3 * x + 1)
    f.__kwdefaults__ = {"more": 2.0}
    np.testing.assert_array_equal(called(x, 1.0), x + 2)
    f.__defaults__ = None
    with pytest.raises(TypeError, match="missing a required argument: 'factor'"):
        called(x)


def test_a_trace_takes_the_function_itself() -> None:
    x = np.ones(2)
    inner = settled(lambda x: x * 2, x)
    outer = sj.sparse_jit(lambda y: y + inner(x))
    for value in (1.0, 5.0):
        x[:] = value
        assert outer(np.zeros(2)).tolist() == [2 * value] * 2
        assert is_straight(inner, x)


def test_calls_are_counted_and_explained() -> None:
    A, x = matrix(), np.arange(4.0)
    f = settled(product, A, x)
    before = f.cache_info().hits
    for _ in range(7):
        f(A, x)
    assert f.cache_info().hits == before + 7
    g = f.bind(A=A)
    for _ in range(5):
        g(x)
    assert f.cache_info().hits > before + 10
    with pytest.raises(TypeError):
        f(A)
    assert "failed" in f.explain()
    assert "failed" not in g.explain()
    f(A, x)
    for explained in (f.explain(), g.explain()):
        assert "run " in explained
    last = f._tally.last
    assert isinstance(last, tuple)
    assert 0 < last[1] < 1


def test_fixed_arguments_are_no_arguments_of_the_call() -> None:
    A, x, y = matrix(), np.arange(4.0), np.ones(5)
    f = made(lambda A, x, y: A @ x + y)
    for fixed, rest in (({"A": A}, (x, y)), ({"x": x, "y": y}, (A,)), ({"A": A, "y": y}, (x,))):
        plan = f.bind(**fixed)
        for _ in range(4):
            np.testing.assert_array_equal(plan(*rest), A @ x + y)
        assert plan._state.routes.straight_answer(rest) is not MISSED
    plan.update(A=A * 2)
    for _ in range(4):
        np.testing.assert_array_equal(plan(x), 2 * A @ x + y)


def test_nothing_is_kept_and_no_reference_is_lost() -> None:
    A, x = matrix(), np.arange(4.0)
    f = settled(product, A, x)
    g = settled(lambda A: A + A, A)
    watched = (A, A.data, A.indices, A.indptr, x, x.dtype, A.indptr.dtype, LOOKS[id(A)])
    gc.collect()  # what others left may have these types, too
    before = list(map(sys.getrefcount, watched))
    for _ in range(2000):
        f(A, x)
        g(A)
        f._routes.straight_answer((x, A))
    gc.collect()
    after = list(map(sys.getrefcount, watched))
    changed = [other - one for one, other in zip(before, after, strict=True)]
    assert max(map(abs, changed)) < 100, changed
    key = id(A)
    assert key in LOOKS
    del A, watched
    gc.collect()
    assert key not in LOOKS


def test_arrays_that_other_threads_replace() -> None:
    """Arrays that a kernel reads live until it ends, whatever becomes of their owner."""
    A: Any = sp.random_array((3000, 3000), density=0.02, format="csr")
    x = np.ones(3000)
    f, stop = settled(product, A, x), threading.Event()
    A.data[:] = 1
    expected = A @ x

    def replace() -> None:
        while not stop.is_set():
            for name in ("data", "indices", "indptr"):
                setattr(A, name, getattr(A, name).copy())
            f(A, x)
            f(A, x)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(300):
            np.testing.assert_array_equal(f(A, x), expected)
    finally:
        stop.set()
        thread.join()


def test_a_kernel_that_fails() -> None:
    one = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2, 2])), (3, 3))
    two = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 2, 2, 2])), (3, 3))
    f = settled(lambda A: A * 1.0, one, output=sj.ELL(1))
    for _ in range(4):
        with pytest.raises(ValueError, match=r"padded"):
            f(two)
        assert f(one).nse == 2


def test_new_objects_leave_nothing_behind() -> None:
    # Each object that had not been seen got a route of its own, which was kept for ever.
    def call() -> None:
        np.testing.assert_array_equal(f(A.copy(), x), A.toarray() @ x)

    def number() -> int:
        gc.collect()
        routes = [held for held in gc.get_objects() if isinstance(held, Route | StraightRoute)]
        programs = [program for _, program in f._programs._order]
        of = [route.call if isinstance(route, Route) else route.route.call for route in routes]
        return sum(call.program in programs for call in of)

    A, x, f = matrix(4, 4, "csr"), np.arange(4.0), made(product)
    for _ in range(5):
        call()
    before = number()
    for _ in range(30):
        call()
    assert number() <= before
