"""User functions read from their syntax tree, and compiled where that cannot be, against Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsejit.trace as sj
from sparsejit.errors import TraceError
from sparsejit.formats import SparseVector
from sparsejit.ir.printing import print_tensor
from tests.trace.harness import Operand, evaluated, traced

STEP = 3
VALUES = np.array([-7.5, -2.0, -0.5, 0.25, 1.0, 2.5, 4.0])
LIMITS = (-1.0, 2.0)
TABLE = {"x": 2}


def double(a: Any) -> Any:
    return 2 * a


def assignments(a: Any) -> Any:
    """Docstrings are no statements."""
    b, c = a + 1, a * a
    b += c
    d: Any = b - 1
    return d


def branches(a: Any) -> Any:
    if a > 1:
        b = a
    elif a < -1:
        b = -a
    else:
        b = 0.5
    return b + 1


def early_returns(a: Any) -> Any:
    if a < 0:
        return a
    b = a * 2
    if b > 3:
        return b
    return a + 100


def loop(a: Any) -> Any:
    total = 0.0
    for power in range(3):
        total = total + a**power
    return total


def loop_over_a_tuple(a: Any) -> Any:
    for limit in LIMITS:
        if a < limit:
            return limit
    return a


def static_branch(a: Any) -> Any:
    if STEP > 2 and math.pi < 4:
        return a + STEP
    return undefined_name  # type: ignore[name-defined]  # noqa: F821 - never reached


def calls(a: Any) -> Any:
    return double(double(a)) + max(a, 0, -a)


def keyword_calls(a: Any) -> Any:
    return assignments(a=a)


def mathematics(a: Any) -> Any:
    positive = abs(a) + 1
    return (
        math.sqrt(positive) + math.log(positive, 2) + math.atan2(a, positive) + math.floor(a)
        + math.ceil(a) + math.trunc(a) + math.copysign(1, a) + math.hypot(a, 3)
        + math.exp(-positive) + float(math.isnan(a))
    )  # fmt: skip


def conversions(a: Any) -> Any:
    return int(a) + float(bool(a > 1)) + round(a)


def logic(a: Any) -> Any:
    return (1 if (a > 0 and a < 3) or a == 4 else 0) + (2 if not a < 1 else 0)


def values_of_logic(a: Any) -> Any:
    return (a > 0 and a) or 5.0


def chains(a: Any) -> Any:
    return a if -1 < a <= 2.5 != a + 1 else -a


def subscripts(a: Any) -> Any:
    return a * LIMITS[1] + TABLE["x"]


def arithmetic(a: Any) -> Any:
    return (a // 2) + (a % 3) - (-a) * +a / 4 + 2**a


FUNCTIONS: list[Callable[..., Any]] = [
    double,
    assignments,
    branches,
    early_returns,
    loop,
    loop_over_a_tuple,
    static_branch,
    calls,
    keyword_calls,
    mathematics,
    conversions,
    logic,
    values_of_logic,
    chains,
    subscripts,
    arithmetic,
    lambda a: a if a > 0 else STEP * a,
    lambda a, scale=4: a * scale,
    np.tanh,
    abs,
    math.sin,
]


def mapped(function: Any, values: Any = VALUES) -> Any:
    stored = Operand(values, SparseVector, fill=99)
    result, _ = evaluated(lambda x: sj.unary(x, present=function), stored)
    return result


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_python_computes(function: Callable[..., Any]) -> None:
    got = mapped(function)
    wanted = [float(function(float(value))) for value in VALUES]
    np.testing.assert_allclose(got.astype(float), wanted, rtol=1e-14)


def test_lambdas_on_one_line_are_told_apart() -> None:
    one, two = (lambda a: a + 1), (lambda a: a - 1)
    np.testing.assert_array_equal(mapped(one), VALUES + 1)
    np.testing.assert_array_equal(mapped(two), VALUES - 1)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int64, np.float32, np.float16, np.complex64, np.bool_]
)
def test_elements_keep_their_type(dtype: Any) -> None:
    values = np.array([1, 2, 3]).astype(dtype)
    assert mapped(lambda a: a, values).dtype == dtype
    assert mapped(lambda a: a * 1.5, values).dtype == (values[:1] * 1.5).dtype
    assert mapped(lambda a: a if a == 1 else 0, values).dtype == np.where(values, values, 0).dtype
    assert mapped(lambda a: 1, values).dtype == np.int64


def test_complex_numbers_and_captured_values() -> None:
    shift = 2.0
    values = np.array([1 + 2j, -3j, 2.0])
    got = mapped(lambda a: a.conjugate() * shift + a.real - a.imag * 1j, values)
    np.testing.assert_array_equal(got, values.conj() * 2 + values.real - values.imag * 1j)


def test_nothing_may_be_returned() -> None:
    def positive(a: Any) -> Any:
        if a > 0:
            return a
        return None

    np.testing.assert_array_equal(mapped(positive), np.maximum(VALUES, 0))
    np.testing.assert_array_equal(mapped(lambda a: None if a > 0 else a), np.minimum(VALUES, 0))


def test_traced_scalars_are_captured() -> None:
    def fn(x: Any, scale: Any) -> Any:
        return sj.unary(x, present=lambda a, i: a * scale + i + x.shape[0])

    got, _ = evaluated(fn, Operand(VALUES, SparseVector, fill=99), 2.0)
    np.testing.assert_allclose(got, VALUES * 2 + np.arange(7) + 7)


def with_while(a: Any) -> Any:
    while a > 1:
        a = a - 1
    return a


def with_a_list(a: Any) -> Any:
    return [b + 1 for b in (a,)]


def with_an_unknown_function(a: Any) -> Any:
    return math.erf(a)


def with_a_string(a: Any) -> Any:
    return a + "1"


def with_a_half_bound_name(a: Any) -> Any:
    if a > 0:
        b = a
    return b


def that_opens_a_file(a: Any) -> Any:
    return a + open("numbers")


REFUSED = {
    with_a_list: ("ListComp is no scalar expression", "it gives list(float64)<iv=None>", 1),
    with_a_half_bound_name: (
        "b is not bound on every path",
        "b is not bound on every path through with_a_half_bound_name",
        3,
    ),
    that_opens_a_file: (
        "open is no function of scalars that is known",
        "Untyped global name 'open'",
        1,
    ),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_can_neither_be_read_nor_compiled_names_the_line(
    function: Callable[..., Any],
) -> None:
    unread, refused, line = REFUSED[function]
    with pytest.raises(TraceError) as caught:
        traced(lambda x: sj.unary(x, present=function), Operand(VALUES, SparseVector, fill=99))
    name = function.__name__
    assert caught.value.what.startswith(
        f"the user function {name} cannot be read: {unread}; and Numba does not compile it: "
        f"{refused}"
    )
    location = caught.value.location
    assert location is not None
    assert location.file == __file__
    assert location.line == function.__code__.co_firstlineno + line


@pytest.mark.parametrize("function", [with_while, with_an_unknown_function])
def test_what_cannot_be_read_is_called(function: Callable[..., Any]) -> None:
    program = traced(
        lambda x: sj.unary(x, present=function), Operand(VALUES, SparseVector, fill=99)
    )
    assert f"{{ select(stored(in0), {function.__name__}(in0), nothing) }}" in print_tensor(
        program.func
    )
    wanted = [function(float(value)) for value in VALUES]
    np.testing.assert_allclose(mapped(function), wanted, rtol=1e-14)


def test_functions_without_source_are_called() -> None:
    np.testing.assert_array_equal(mapped(eval("lambda a: a + 1")), VALUES + 1)


def test_a_string_is_no_operand() -> None:
    with pytest.raises(TraceError, match="str is not an operand"):
        mapped(with_a_string)
