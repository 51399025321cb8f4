"""The decorated function as an object of Python: pickling, threads, recursion, metadata."""

import copy
import inspect
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.api import CompiledFunction


@sparse_jit(target="interpreter")
def double(x: Any) -> Any:
    """Twice x."""
    return x + x


def triple(x: Any) -> Any:
    return x * 3


renamed = sparse_jit(triple, target="interpreter", check="always")


class Space:
    @sparse_jit(target="interpreter")
    def method(self, x: Any) -> Any:
        return x * 2

    @staticmethod
    @sparse_jit(target="interpreter")
    def static(x: Any) -> Any:
        return x * 3

    @classmethod
    def build(cls, x: Any) -> Any:
        return cls().method(x)


def test_metadata() -> None:
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice x."
    assert inspect.signature(double) == inspect.signature(double.py_func)
    assert repr(double) == "<sparse_jit function double>"
    assert double.__wrapped__ is double.py_func  # type: ignore[attr-defined]  # set by functools


def test_pickling_by_reference() -> None:
    assert pickle.loads(pickle.dumps(double)) is double
    assert pickle.loads(pickle.dumps(Space.method)) is Space.method
    assert copy.deepcopy(double) is double
    again = pickle.loads(pickle.dumps(renamed))
    assert isinstance(again, CompiledFunction)
    assert again.options == renamed.options
    assert again.py_func is triple
    assert again(np.ones(2)).tolist() == [3.0, 3.0]
    local = sparse_jit(lambda x: x)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)


def test_a_pickle_works_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "f.pickle"
    file.write_bytes(pickle.dumps((double, renamed)))
    program = (
        "import pickle, sys, numpy; two, three = pickle.load(open(sys.argv[1], 'rb')); "
        "print(two(numpy.ones(2)).tolist(), three(numpy.ones(2)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[2.0, 2.0] [3.0, 3.0]"


def test_methods_and_static_methods() -> None:
    space = Space()
    x = np.ones(2)
    assert space.method(x).tolist() == [2.0, 2.0]
    assert Space.method(space, x).tolist() == [2.0, 2.0]
    assert space.method(x=x).tolist() == [2.0, 2.0]
    assert Space.static(x).tolist() == space.static(x).tolist() == [3.0, 3.0]
    assert Space.build(x).tolist() == [2.0, 2.0]
    assert repr(space.method).startswith("<bound <sparse_jit function method> of ")


def test_decorated_functions_are_inlined() -> None:
    inner = sparse_jit(lambda x, n: x * n, target="cpu", static_argnames="n")
    outer = sparse_jit(lambda x: inner(x, 2) + inner(x, n=3), target="interpreter")
    assert outer(np.ones(2)).tolist() == [5.0, 5.0]
    assert inner.cache_info().traces == 0


@sparse_jit(target="interpreter", static_argnames="n")
def power(x: Any, n: int) -> Any:
    return x if n == 1 else x * power(x, n - 1)


def test_recursion() -> None:
    assert power(np.array([2.0, 3.0]), 4).tolist() == [16.0, 81.0]


def test_threads_trace_and_compile_once() -> None:
    calls: list[Any] = []
    ready = threading.Barrier(8)

    def traced(x: Any) -> Any:
        calls.append(threading.get_ident())
        return x * 2 + 1

    f = sparse_jit(traced, target="interpreter")
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        ready.wait()
        for n in range(1, 6):
            results[number * 10 + n] = f(np.full(n + 1, float(number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    info = f.cache_info()
    assert (info.traces, info.compiles) == (1, 1)
    assert len(results) == 40
    for key, value in results.items():
        assert value.tolist() == [2.0 * (key // 10) + 1] * (key % 10 + 1)


def test_threads_trace_different_functions_at_once() -> None:
    functions = [sparse_jit(lambda x, k=k: x * k, target="interpreter") for k in range(8)]
    results: list[Any] = [None] * 8

    def work(k: int) -> None:
        results[k] = functions[k](np.ones(3))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.tolist() for result in results] == [[float(k)] * 3 for k in range(8)]


def test_a_lost_tracer_is_refused() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    sparse_jit(keep, target="interpreter")(np.ones(2))
    with pytest.raises(sj.errors.TraceError):
        kept[0] + 1
