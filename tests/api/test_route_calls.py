"""Routes: what a call depends on beside its operands, and what is kept between calls."""

import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api import _route, _routes
from sparsejit.api._function import CacheInfo
from sparsejit.errors import OutOfMemoryError, TensorTypeError, UnsupportedError
from tests.api.counted import Counted, matrix, product

FACTOR = 2.0
WEIGHTS = np.array([1.0, 2.0, 3.0])


def scaled(x: Any) -> Any:
    return helper(x) * FACTOR


def helper(x: Any) -> Any:
    return x + OFFSET


OFFSET = 1.0


def test_names_that_are_bound_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = Counted(scaled), np.ones(3)
    f.settle(x)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert f(x).tolist() == [10.0] * 3
    f.settle(x)
    monkeypatch.setitem(globals(), "OFFSET", 3.0)  # read by a function that it calls
    assert f(x).tolist() == [20.0] * 3
    f.settle(x)
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    assert f(x).tolist() == [5.0] * 3


def test_closures_that_are_bound_anew() -> None:
    factor = 2.0
    f, x = Counted(lambda x: x * factor), np.ones(2)
    f.settle(x)
    factor = 3.0
    assert f(x).tolist() == [3.0, 3.0]


def test_a_name_that_comes_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def choosing(x: Any) -> Any:
        try:
            return x * NOT_YET  # type: ignore[name-defined]
        except NameError:
            return x

    f, x = Counted(choosing), np.ones(2)
    f.settle(x)
    monkeypatch.setitem(globals(), "NOT_YET", 7.0)
    assert f(x).tolist() == [7.0, 7.0]


def test_captured_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = Counted(lambda x: x * WEIGHTS), np.ones(3)
    f.settle(x)
    monkeypatch.setitem(globals(), "WEIGHTS", np.array([4.0, 5.0, 6.0]))
    assert f(x).tolist() == [4.0, 5.0, 6.0]
    layer = SimpleNamespace(W=np.array([1.0, 2.0]), log=[1])
    g, y = Counted(lambda x: x * layer.W), np.ones(2)
    g.settle(y)
    layer.W = np.array([3.0, 4.0])
    assert g(y).tolist() == [3.0, 4.0]
    layer.W = np.array([3, 4])
    assert g(y.astype(int)).dtype == np.int64


class Layer:
    def __init__(self, weights: Any) -> None:
        self.weights = weights

    @sj.sparse_jit
    def __call__(self, x: Any) -> Any:
        return self.weights * x


def test_methods() -> None:
    one, two = Layer(np.array([1.0, 2.0])), Layer(np.array([3.0, 4.0]))
    for _ in range(4):
        assert one(np.ones(2)).tolist() == [1.0, 2.0]
        assert two(np.ones(2)).tolist() == [3.0, 4.0]
    one.weights = two.weights * 2
    assert one(np.ones(2)).tolist() == [6.0, 8.0]


def test_the_environment_chooses_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = Counted(lambda x: x * 2), np.ones(2)
    f.settle(x)
    monkeypatch.setenv("SPARSEJIT_TARGET", "interpreter")
    assert f.is_long(x)
    assert "interpreter" in f.function.explain()
    monkeypatch.setenv("SPARSEJIT_TARGET", "nowhere")
    with pytest.raises(ValueError, match="SPARSEJIT_TARGET"):
        f(x)
    monkeypatch.delenv("SPARSEJIT_TARGET")
    f.settle(x)
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "nothing")
    with pytest.raises(ValueError, match="SPARSEJIT_CPU_BACKEND"):
        f(x)


def increase(y: Any, x: Any) -> None:
    y += 2 * x[::-1]


def test_arguments_that_overlap() -> None:
    f = Counted(increase)
    buffer = np.arange(8.0)
    f.settle(np.zeros(4), buffer[:4])
    y, x = buffer[:4], buffer[2:6]
    expected = y + 2 * x[::-1]
    f(y, x)
    np.testing.assert_array_equal(y, expected)
    y = np.arange(4.0)
    expected = y + 2 * y[::-1]
    f(y, y)
    np.testing.assert_array_equal(y, expected)


def test_two_assigned_arguments_that_overlap() -> None:
    def both(x: Any, y: Any) -> None:
        x += 1
        y += 2

    f = Counted(both)
    f.settle(np.zeros(3), np.zeros(3))
    buffer = np.zeros(4)
    with pytest.raises(UnsupportedError, match="overlap"):
        f(buffer[:3], buffer[1:])
    once = np.zeros(3)
    f(once, once)
    assert once.tolist() == [3.0] * 3


def test_one_object_twice() -> None:
    f, x, y = Counted(lambda x, y: (x - y, x)), np.arange(3.0), np.ones(3)
    for _ in range(4):
        assert f(x, x)[0].tolist() == [0.0] * 3
    for _ in range(4):
        difference, returned = f(x, y)
        assert difference.tolist() == [-1.0, 0.0, 1.0]
        assert returned is x


def test_sparse_arguments_that_are_assigned() -> None:
    def double(S: Any) -> None:
        i, j = sj.indices("i j")
        S[i, j] = sj.where_stored(S, 2 * S)

    f, S = Counted(double), matrix()
    expected = S.toarray()
    for _ in range(5):
        f(S)
        expected *= 2
        np.testing.assert_array_equal(S.toarray(), expected)
    S.data.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        f(S)


def test_blocks_that_are_assigned() -> None:
    def double(S: Any) -> None:
        i, j = sj.indices("i j")
        S[i, j] = sj.where_stored(S, 2 * S)

    f, S = Counted(double), sp.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    for _ in range(3):
        f(S)
    assert (S.data == 8).all()
    S.data.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        f(S)


def test_a_kernel_that_fails_changes_nothing() -> None:
    def counted(y: Any, A: Any) -> Any:
        y += 1
        return A * 1.0

    f, y = Counted(counted, output=sj.ELL(1)), np.zeros(3)
    one = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2, 2])), (3, 3))
    two = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 2, 2, 2])), (3, 3))
    f.settle(y, one)
    with pytest.raises(ValueError):
        f(y, two)
    before = y.copy()
    with pytest.raises(ValueError):
        f(y, two)
    np.testing.assert_array_equal(y, before)


def test_memory_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> Any:
        raise MemoryError("no room")

    f, x = Counted(lambda x: x + 1), np.zeros(3)
    f.settle(x)
    routes = f.function._routes
    if routes._straight is not None:
        with monkeypatch.context() as patched:
            patched.setattr(routes, "_straight", replace(routes._straight, call=failing))
            with pytest.raises(OutOfMemoryError, match="no room"):
                f(x)
    routes._straight = None
    monkeypatch.setattr(_route, "np", SimpleNamespace(empty=failing))
    with pytest.raises(OutOfMemoryError, match="no room"):
        f(x)


def test_arguments_that_are_missing_or_too_many() -> None:
    f, A, x = Counted(product), matrix(), np.arange(4.0)
    f.settle(A, x)
    for wrong in ((A,), (A, x, x)):
        with pytest.raises(TypeError):
            f(*wrong)


def test_identities_that_are_used_again() -> None:
    f, x = Counted(product), np.arange(4.0)
    for _ in range(30):
        A = matrix()
        for _ in range(3):
            np.testing.assert_array_equal(f(A, x), A @ x)
        del A


def test_objects_of_one_kind_share_a_route() -> None:
    f, x = Counted(product), np.arange(4.0)
    A = matrix()
    B, C = A.copy(), A.copy()
    C.indices = np.sort((C.indices + 1) % 4)
    B.data[:] = 7
    for other in (A, B):
        f.settle(other, x)
    before = f.long
    for other in (A, B, A, B):
        np.testing.assert_array_equal(f(other, x), other @ x)
    assert f.long == before


def test_nothing_is_kept_alive() -> None:
    f, A, x = sj.sparse_jit(product), matrix(), np.arange(4.0)
    for _ in range(4):
        f(A, x)
    watched = [weakref.ref(A), weakref.ref(A.data), weakref.ref(A.indices), weakref.ref(x)]
    del A, x
    gc.collect()
    assert [reference() for reference in watched] == [None] * 4


def test_structure_checked_at_every_call_takes_no_route() -> None:
    f, A, x = Counted(product, check="always"), matrix(), np.arange(4.0)
    for _ in range(4):
        f(A, x)
    assert f.long == 4
    A.indices[0] = 99
    with pytest.raises(ValueError):
        f(A, x)


def test_results_of_every_kind() -> None:
    A, B, x = matrix(4, 4), matrix(4, 4), np.arange(4.0)
    programs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (lambda A, B: A + B, (A, B)),
        (lambda A, B: A @ B, (A, B)),
        (lambda A: A * 2, (A,)),
        (lambda A: A.sum(), (A,)),
        (lambda A, x: (A @ x, {"s": x.sum(), "x": x}), (A, x)),
        (lambda x: x[::2], (x,)),
        (lambda T: T * 2, (sj.asarray(A, format=sj.DCSR),)),
    ]
    for program, args in programs:
        f = Counted(program)
        first = f(*args)
        f.settle(*args)
        again = f(*args)
        assert repr_of(again) == repr_of(first)
        assert repr_of(f(*args)) == repr_of(again)


def repr_of(result: Any) -> str:
    if isinstance(result, sp.csr_array):
        return f"{type(result)} {result.dtype} {result.toarray().tolist()}"
    return f"{type(result)} {result!r}"


def test_results_are_fresh() -> None:
    f, A, x = Counted(product), matrix(), np.arange(4.0)
    f.settle(A, x)
    one, two = f(A, x), f(A, x)
    assert one is not two
    assert not np.shares_memory(one, two)


def test_keywords_defaults_and_containers() -> None:
    def with_default(A: Any, x: Any, scale: float = 2.0) -> Any:
        return scale * (A @ x)

    f, A, x = Counted(with_default), matrix(), np.arange(4.0)
    f.settle(A, x=x)
    f.settle(A, x)
    np.testing.assert_array_equal(f(A, x=x + 1), 2 * (A @ (x + 1)))
    np.testing.assert_array_equal(f(A, scale=3.0, x=x), 3 * (A @ x))
    g = Counted(lambda pair, flag: pair[0] @ pair[1] if flag else pair[1])
    g.settle((A, x), True)
    np.testing.assert_array_equal(g((A, x + 1), True), A @ (x + 1))
    assert g((A, x), False) is x


def test_a_call_inside_of_a_trace() -> None:
    inner, x = sj.sparse_jit(lambda x: x * 2), np.ones(3)
    for _ in range(3):
        inner(x)
    constant = np.arange(3.0)
    outer = sj.sparse_jit(lambda x: x + inner(x) + inner(constant))
    assert outer(x).tolist() == [3.0, 5.0, 7.0]


def test_more_kinds_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_routes, "_LARGEST", 3)
    f = Counted(lambda x: x + 1)
    for _ in range(3):
        for size in range(8):
            assert f(np.zeros(size)).shape == (size,)
    f.settle(np.zeros(3))


def test_plans() -> None:
    A, x = matrix(), np.arange(4.0)
    f = Counted(product)
    plan = f.function.bind(A=A)
    kept = A.copy()
    for _ in range(3):
        plan(x)
    before = f.long
    A.data[:] = 0
    np.testing.assert_array_equal(plan(x), kept @ x)
    assert f.long == before
    np.testing.assert_array_equal(plan(x.astype(np.float32)), kept @ x)
    np.testing.assert_array_equal(plan(x=x + 1), kept @ (x + 1))
    plan.update(A=A)
    assert plan(x).tolist() == [0.0] * 5
    with pytest.raises(TensorTypeError, match="extents"):
        plan(np.ones(5))
    other = f.function.bind(x=x)
    for _ in range(4):
        np.testing.assert_array_equal(other(kept), kept @ x)


def test_a_plan_keeps_what_is_fixed() -> None:
    plan = sj.sparse_jit(lambda a, x: (a, a * x)).bind(a=np.ones(2))
    for _ in range(4):
        fixed, _ = plan(np.ones(2))
        assert fixed.tolist() == [1.0, 1.0]
        fixed[:] = 9
    writing = sj.sparse_jit(increase).bind(y=np.zeros(2))
    for _ in range(4):
        with pytest.raises(ValueError, match="fixed in the plan"):
            writing(np.ones(2))


def test_what_is_said_of_the_last_call() -> None:
    f, x = Counted(lambda x: x + 1), np.ones(3)
    f.settle(x)
    assert f.function.cache_info() == CacheInfo(1, 1, 3)
    assert "x" in f.function.explain()


def test_threads_with_different_arguments() -> None:
    f = sj.sparse_jit(product)
    pairs = [(matrix(5 + n % 3, 4), np.arange(4.0) + n) for n in range(6)]
    wrong: list[int] = []

    def work(number: int) -> None:
        A, x = pairs[number]
        expected = A @ x
        for turn in range(300):
            other, vector = pairs[(number + turn) % 6] if turn % 5 == 0 else (A, x)
            wanted = other @ vector if turn % 5 == 0 else expected
            if not np.array_equal(f(other, vector), wanted):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert f.cache_info().hits > 1000
