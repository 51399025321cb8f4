"""Assigned arguments: what is written, what overlaps, and that errors change nothing."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TensorTypeError, UnsupportedError


def jit(fn: Any, **options: Any) -> Any:
    return sparse_jit(fn, target="interpreter", **options)


@jit
def axpy(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] += A[i, j] * x[j]


def test_an_assigned_argument_is_updated() -> None:
    A = sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    x, y = np.array([1.0, 10.0]), np.array([100.0, 200.0])
    assert axpy(A, x, y) is None
    assert y.tolist() == [121.0, 230.0]
    assert x.tolist() == [1.0, 10.0]


def test_reads_before_the_assignment_are_copied() -> None:
    A = np.array([[0.0, 1.0], [1.0, 1.0]])
    memory = np.array([1.0, 10.0, 100.0])
    axpy(sp.csr_array(A), memory[:2], memory[1:])
    assert memory.tolist() == [1.0, 20.0, 111.0]
    y = np.array([1.0, 10.0])
    axpy(sp.csr_array(A), y[:], y)
    assert y.tolist() == [11.0, 21.0]


def test_the_same_object_needs_no_copy_of_ours() -> None:
    y = np.array([1.0, 10.0])
    axpy(sp.csr_array(np.array([[0.0, 1.0], [1.0, 1.0]])), y, y)
    assert y.tolist() == [11.0, 21.0]


def test_the_values_of_a_sparse_operand_may_overlap() -> None:
    A = sp.csr_array(np.array([[0.0, 1.0], [2.0, 3.0]]))
    y = A.data[:2]
    axpy(A, np.ones(2), y)
    assert A.data.tolist() == [2.0, 7.0, 3.0]


def test_a_read_behind_the_assignment_is_refused() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        y[:] = x * 2
        return x + 1

    memory = np.arange(4.0)
    assert f(memory.copy(), memory).tolist() == [1.0, 2.0, 3.0, 4.0]
    memory = np.arange(4.0)
    with pytest.raises(UnsupportedError) as caught:
        f(memory[:3], memory[1:])
    assert "arguments 'x' and 'y' overlap in memory" in str(caught.value)
    assert "pass a copy of 'x'" in str(caught.value)
    assert memory.tolist() == [0.0, 1.0, 2.0, 3.0]


def before(x: Any, y: Any) -> Any:
    t = x + 1
    y += 1
    return t


def before_at_the_end_of_a_chain(x: Any, y: Any) -> Any:
    t = x[::-1]
    t = (t * 2 - x.sum()).T
    u = sj.output()
    i, j = sj.indices("i j")
    u[i] = x[i] * y[j]
    y[:] = 7.0
    y *= 2
    return t, u


def in_a_statement_of_two_sums(x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] += y[i] * x[j] + x[i] * x[j] - x[j]


def stored_into_what_was_computed_before(x: Any, y: Any) -> Any:
    t, u = y * 2, x - y
    y[:] = t
    return u


EARLY = [
    before,
    before_at_the_end_of_a_chain,
    in_a_statement_of_two_sums,
    stored_into_what_was_computed_before,
]


def plain_two_sums(x: Any, y: Any) -> None:
    y += y * x.sum() + x * x.sum() - x.sum()


def plain_chain(x: Any, y: Any) -> Any:
    t, u = (x[::-1] * 2 - x.sum()).T, x * y.sum()
    y[:] = 14.0
    return t, u


PLAIN = {before_at_the_end_of_a_chain: plain_chain, in_a_statement_of_two_sums: plain_two_sums}


@pytest.mark.parametrize("fn", EARLY, ids=lambda fn: fn.__name__)
def test_what_is_read_before_in_the_users_code_is_copied(fn: Any) -> None:
    """Also where it is computed behind the assignment, because only then it is needed."""
    memory, expected = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
    got = jit(fn)(memory[:3], memory[1:])
    x, y = expected[:3].copy(), expected[1:]
    wanted = PLAIN.get(fn, fn)(x, y)
    if wanted is not None:
        np.testing.assert_array_equal(np.array(got), np.array(wanted))
    assert memory.tolist() == expected.tolist()


def read_again(x: Any, y: Any) -> Any:
    t = x + 1
    y += 1
    return t, x + 1


def view_read_behind(x: Any, y: Any) -> Any:
    t = x[1:]
    y += 1
    return t * 1


@pytest.mark.parametrize("fn", [read_again, view_read_behind])
def test_what_is_read_again_behind_is_refused(fn: Any) -> None:
    """Also where the same was computed before, and nothing of it is computed again."""
    memory = np.arange(4.0)
    with pytest.raises(UnsupportedError, match="'x' is read after 'y' is assigned"):
        jit(fn)(memory[:3], memory[1:])
    assert memory.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_two_assigned_arguments_that_overlap_are_refused() -> None:
    @jit
    def f(x: Any, y: Any) -> None:
        x += 1
        y += 2

    memory = np.zeros(4)
    with pytest.raises(UnsupportedError, match="the function assigns to both"):
        f(memory[:3], memory[1:])
    assert memory.tolist() == [0.0] * 4
    f(memory[:2], memory[2:])
    assert memory.tolist() == [1.0, 1.0, 2.0, 2.0]
    f(memory, memory)
    assert memory.tolist() == [4.0, 4.0, 5.0, 5.0]


def test_interleaved_arrays_do_not_overlap() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        y += x
        return x * 1

    memory = np.arange(6.0)
    assert f(memory[::2], memory[1::2]).tolist() == [0.0, 2.0, 4.0]
    assert memory.tolist() == [0.0, 1.0, 2.0, 5.0, 4.0, 9.0]


@jit
def bump(y: Any) -> None:
    y += 1


def read_only() -> Any:
    y = np.zeros(3)
    y.flags.writeable = False
    return y


def misaligned() -> Any:
    return np.zeros(25, np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (read_only, ValueError, "assignment destination is read-only: argument 'y'"),
        (lambda: np.broadcast_to(np.zeros(1), (3,)), ValueError, "read-only"),
        (
            lambda: np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8)),
            UnsupportedError,
            "whose elements overlap in memory",
        ),
    ],
)
def test_what_cannot_be_assigned(make: Any, kind: type[Exception], message: str) -> None:
    y = make()
    before = np.array(y)
    with pytest.raises(kind, match=message):
        bump(y)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("number", [1.0, 2, np.float64(1.0)])
def test_numbers_are_rebound_and_not_assigned(number: Any) -> None:
    @jit
    def rebind(y: Any) -> Any:
        y += 1
        return y

    assert rebind(number) == number + 1
    f = jit(lambda y: y.__setitem__((), 3.0))
    with pytest.raises(TensorTypeError):
        f(number)


def test_strided_and_misaligned_arrays_are_assigned() -> None:
    for y in (
        np.zeros((3, 4))[::2, ::-1],
        np.zeros((2, 3), order="F"),
        np.array(0.0),
        misaligned(),
    ):
        try:
            bump(y)
        except UnsupportedError:
            assert not y.flags.aligned
            continue
        assert (y == 1).all()


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_an_error_while_running_changes_nothing(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = sparse_jit(lambda y: y.__iadd__(1), target=target)
    y = np.zeros(3)
    f(y)
    ((_, program),) = f._programs._order
    (compiled,) = program.compiled.values()

    class Failing:
        def __call__(self, arguments: Any) -> Any:
            compiled.kernel(arguments)
            raise MemoryError

    failing = type(compiled)(compiled.results, compiled.lowered, Failing(), 0.0)
    monkeypatch.setitem(program.compiled, next(iter(program.compiled)), failing)
    monkeypatch.setattr(f, "_routes", f.routes(f.plan_tally()))  # which remember the kernel
    with pytest.raises(MemoryError):
        f(y)
    assert y.tolist() == [1.0, 1.0, 1.0]


@given(
    x=st.sampled_from(range(5)),
    y=st.sampled_from(range(5)),
    z=st.sampled_from(range(5)),
    order=st.permutations(["y", "z"]),
)
def test_overlaps_mean_what_numpy_does_or_are_refused(
    x: int, y: int, z: int, order: list[str]
) -> None:
    def program(x: Any, y: Any, z: Any) -> Any:
        for name in order:
            if name == "y":
                y += x * 2
            else:
                z[:] = x + 1
        return y * 1

    ours, numpy = np.arange(8.0), np.arange(8.0)
    try:
        got = jit(program)(*(ours[at : at + 4] for at in (x, y, z)))
    except UnsupportedError:
        assert ours.tolist() == list(range(8))
        return
    expected = program(*(numpy[at : at + 4] for at in (x, y, z)))
    np.testing.assert_array_equal(ours, numpy)
    np.testing.assert_array_equal(got, expected)
