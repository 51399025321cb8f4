"""Functions that change between calls: defaults, code, builtins, attributes of modules and classes.

Each change is seen at the next call, also by calls that take a route.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sparsejit.api._straight import StraightRoute
from sparsejit.errors import UnsupportedError
from tests.api.counted import Counted, matrix

SETTINGS: Any = types.ModuleType("settings_of_somebody_else")


class Constants:
    FACTOR = 2.0


def scaled(y: Any, factor: Any = 2.0) -> Any:
    return y * factor


KEYWORDS: dict[str, Any] = {"factor": 2.0}


def scaled_by_name(y: Any, *, factor: Any = 2.0) -> Any:
    return y * factor


scaled_by_name.__kwdefaults__ = KEYWORDS


def tripled(y: Any, factor: Any = 2.0) -> Any:
    return y * 3.0


def calls_scaled(A: Any, x: Any) -> Any:
    return scaled(A @ x)


def calls_scaled_by_name(A: Any, x: Any) -> Any:
    return scaled_by_name(A @ x)


def reads_a_module(A: Any, x: Any) -> Any:
    return (A @ x) * SETTINGS.factor


def calls_of_a_module(A: Any, x: Any) -> Any:
    return SETTINGS.change(A @ x)


def reads_a_class(A: Any, x: Any) -> Any:
    return (A @ x) * Constants.FACTOR


def calls_a_builtin(A: Any, x: Any) -> Any:
    return (A @ x) * abs(-2.0)


Change = Callable[[pytest.MonkeyPatch], None]

CHANGES: dict[str, tuple[Callable[..., Any], Change]] = {
    "defaults": (calls_scaled, lambda m: m.setattr(scaled, "__defaults__", (5.0,))),
    "keyword defaults": (
        calls_scaled_by_name,
        lambda m: m.setattr(scaled_by_name, "__kwdefaults__", {"factor": 5.0}),
    ),
    "a keyword default in place": (
        calls_scaled_by_name,
        lambda m: m.setitem(KEYWORDS, "factor", 5.0),
    ),
    "code": (calls_scaled, lambda m: m.setattr(scaled, "__code__", tripled.__code__)),
    "own code": (calls_scaled, lambda m: m.setattr(calls_scaled, "__code__", with_five.__code__)),
    "a number of a module": (reads_a_module, lambda m: m.setattr(SETTINGS, "factor", 5.0)),
    "a function of a module": (
        calls_of_a_module,
        lambda m: m.setattr(SETTINGS, "change", lambda y: y * 5.0),
    ),
    "an attribute of a class": (reads_a_class, lambda m: m.setattr(Constants, "FACTOR", 5.0)),
    "a builtin": (calls_a_builtin, lambda m: m.setattr(builtins, "abs", lambda x: 5.0)),
    "a name before a builtin": (
        calls_a_builtin,
        lambda m: m.setitem(globals(), "abs", lambda x: 5.0),
    ),
}


def with_five(A: Any, x: Any) -> Any:
    return (A @ x) * 5.0


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "factor", 2.0, raising=False)
    monkeypatch.setattr(SETTINGS, "change", lambda y: y * 2.0, raising=False)


@pytest.mark.parametrize("way", ["straight", "through Python", "without routes"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_a_function_calls_changes(
    what: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fn, change = CHANGES[what]
    f = Counted(fn, target="interpreter" if way == "without routes" else "cpu")
    A, x = matrix(), np.ones(4)
    if way == "through Python":
        monkeypatch.setattr(StraightRoute, "of", staticmethod(lambda *_: None))
    if way == "without routes" or what == "an attribute of a class":
        f(A, x)
    else:
        f.settle(A, x)
        assert (f.function._routes._straight is not None) == (way == "straight")
    np.testing.assert_array_equal(f(A, x), (A @ x) * 2.0)
    with monkeypatch.context() as changed:
        change(changed)
        wanted = fn(A, x)
        found = [f(A, x) for _ in range(4)]
    assert not np.array_equal(wanted, (A @ x) * 2.0)
    for y in found:
        np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(f(A, x), (A @ x) * 2.0)  # as it was before


def test_the_defaults_of_the_function_itself() -> None:
    def f(x: Any, a: Any = 2.0, *, b: Any = 1.0) -> Any:
        return x * a + b

    made, x = Counted(f), np.ones(3)
    made.settle(x)
    for defaults, keywords in (((3.0,), {"b": 4.0}), ((np.arange(3.0),), {"b": 5})):
        f.__defaults__, f.__kwdefaults__ = defaults, keywords
        for _ in range(4):
            np.testing.assert_array_equal(made(x), f(x))
    f.__kwdefaults__ = keywords = {"b": 6.0}
    np.testing.assert_array_equal(made(x), f(x))
    keywords["b"] = -1.0
    np.testing.assert_array_equal(made(x), f(x))
    plan = made.function.bind(x=x)
    np.testing.assert_array_equal(plan(), f(x))
    f.__kwdefaults__ = None
    with pytest.raises(TypeError):
        made(x)


def test_an_array_as_default_of_a_called_function(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    monkeypatch.setattr(scaled, "__defaults__", (factors,))
    monkeypatch.setattr(scaled_by_name, "__kwdefaults__", {"factor": factors})
    A, x = matrix(), np.ones(4)
    for fn in (calls_scaled, calls_scaled_by_name):
        f = Counted(fn)
        for _ in range(4):
            np.testing.assert_array_equal(f(A, x), fn(A, x))
            factors += 1.0


def test_other_parameters_than_when_it_was_decorated() -> None:
    def f(x: Any, a: Any = 2.0) -> Any:
        return x * a

    def g(x: Any, b: Any = 2.0) -> Any:
        return x * b

    made, x = Counted(f), np.ones(3)
    made.settle(x)
    f.__code__ = g.__code__
    with pytest.raises(UnsupportedError, match="parameters"):
        made(x)
