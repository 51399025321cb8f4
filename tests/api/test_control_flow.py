"""Loops and branches that stay such: each program runs compiled, as reference, and as plain Python.

A program is written against ``L``, which is sparsejit for the compiled run and plain Python loops
for the expected values.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import sparsejit as sj
from sparsejit import sparse_jit
from sparsejit.errors import TensorTypeError, TraceError, UnsupportedError
from sparsejit.reference import Masked

RNG = np.random.default_rng(5)
N = 7
A = sp.csr_array(np.where(RNG.random((N, N)) < 0.4, RNG.standard_normal((N, N)), 0))
D = RNG.standard_normal((4, N))
x = RNG.standard_normal(N)
y = RNG.standard_normal(N)
z = RNG.standard_normal(3).astype(np.float32)
k = np.arange(5)


def _fori(lo: int, hi: int, body: Callable[[int, Any], Any], init: Any) -> Any:
    for i in range(lo, hi):
        init = body(i, init)
    return init


def _while(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    while cond(init):
        init = body(init)
    return init


def _cond(pred: Any, then: Callable[..., Any], orelse: Callable[..., Any], *operands: Any) -> Any:
    return then(*operands) if pred else orelse(*operands)


PLAIN = SimpleNamespace(fori_loop=_fori, while_loop=_while, cond=_cond, where=np.where)

Program = Callable[..., Any]
PROGRAMS: dict[str, tuple[Callable[[Any], Program], tuple[Any, ...]]] = {}


def program(*operands: Any) -> Callable[[Callable[[Any], Program]], None]:
    def keep(make: Callable[[Any], Program]) -> None:
        PROGRAMS[make.__name__] = (make, operands)

    return keep


# ------------------------------------------------------------ counted loops


@program(A, x)
def powers(L: Any) -> Program:
    return lambda A, x: L.fori_loop(0, 3, lambda i, x: A @ x, x)


@program(A, x)
def one_and_no_round(L: Any) -> Program:
    def f(A: Any, x: Any) -> Any:
        return L.fori_loop(2, 3, lambda i, x: A @ x, x), L.fori_loop(3, 3, lambda i, x: A @ x, x)

    return f


@program(x, y)
def swapped(L: Any) -> Program:
    return lambda x, y: L.fori_loop(0, 3, lambda i, c: (c[1], c[0] + 1), (x, y))


@program(x)
def three_in_a_ring(L: Any) -> Program:
    def body(i: Any, c: Any) -> Any:
        return c[1], c[2], c[0] + c[1]

    return lambda x: L.fori_loop(0, 5, body, (x, 2 * x, 3 * x))


@program(x)
def nested_containers(L: Any) -> Program:
    def body(i: Any, c: Any) -> Any:
        return {"b": [c["b"][0] + c["a"], c["b"][1]], "a": c["a"] * 0.5}

    return lambda x: L.fori_loop(0, 4, body, {"a": x, "b": [x, (x, None)]})


@program(x)
def python_scalars_adapt(L: Any) -> Program:
    return lambda x: L.fori_loop(0, 3, lambda i, s: s + x.sum(), 0)


@program(z)
def python_scalars_stay_weak(L: Any) -> Program:
    return lambda z: L.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * c[0]), (1, z))


@program(k)
def integers(L: Any) -> Program:
    return lambda k: L.fori_loop(0, 4, lambda i, c: (c * 3) % 7, k)


@program(x)
def counter_as_number(L: Any) -> Program:
    return lambda x: L.fori_loop(1, 5, lambda i, x: x + i / 2 + i * i, x)


@program(x)
def counter_as_index(L: Any) -> Program:
    def body(i: Any, c: Any) -> Any:
        c[i] = c[i] + c[i - 1]
        return c

    return lambda x: L.fori_loop(1, x.shape[0], body, 1 * x)


@program(D)
def counter_as_row(L: Any) -> Program:
    return lambda D: L.fori_loop(0, D.shape[0], lambda i, s: s + D[i] * i, 0 * D[0])


@program(x)
def counter_compared(L: Any) -> Program:
    return lambda x: L.fori_loop(0, 6, lambda i, s: s + L.where(i % 2 == 0, x, -2 * x), x)


@program(D)
def windows(L: Any) -> Program:
    return lambda D: L.fori_loop(
        0, D.shape[1] - 2, lambda i, s: s + D[:, i : i + 3].sum(axis=1), D[:, 0] * 0
    )


@program(A, x)
def run_time_bounds(L: Any) -> Program:
    def f(A: Any, x: Any) -> Any:
        rounds = (x > 0).sum()
        return L.fori_loop(0, rounds, lambda i, x: A @ x + i, x)

    return f


@program(D)
def loop_in_a_loop(L: Any) -> Program:
    def outer(i: Any, s: Any) -> Any:
        return L.fori_loop(0, 3, lambda j, s: s + D[i] * (i + j), s)

    return lambda D: L.fori_loop(0, 4, outer, 0 * D[0])


@program(x)
def triangular(L: Any) -> Program:
    return lambda x: L.fori_loop(0, 4, lambda i, s: L.fori_loop(0, i, lambda j, s: s + i - j, s), x)


@program(A, x)
def invariant_computed_before(L: Any) -> Program:
    def f(A: Any, x: Any) -> Any:
        B, shift = A * 0.5, np.exp(x)
        return L.fori_loop(0, 3, lambda i, x: B @ x + shift, x)

    return f


@program(x)
def assigned_inside(L: Any) -> Program:
    def body(i: Any, c: Any) -> Any:
        a, b = c
        a[1:] += b[:-1]
        a *= 0.5
        return a, b + a

    return lambda x: L.fori_loop(0, 3, body, (1 * x, 2 * x))


@program(D)
def transposed_inside(L: Any) -> Program:
    return lambda D: L.fori_loop(0, 3, lambda i, S: S.T + 1, D[:, :4] * 1)


@program(x)
def one_array_twice(L: Any) -> Program:
    return lambda x: L.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * 2), (x, x))


# ------------------------------------------------------------ loops without a count


@program(A, x)
def power_iteration(L: Any) -> Program:
    def f(A: Any, x: Any) -> Any:
        B = A + A.T

        def step(c: Any) -> Any:
            v, old, _, n = c
            w = B @ v
            size = np.sqrt((w * w).sum())
            return w / size, size, old, n + 1

        def goes_on(c: Any) -> Any:
            return (abs(c[1] - c[2]) > 1e-10) & (c[3] < 200)

        return L.while_loop(goes_on, step, (x, 1.0, 0.0, 0))

    return f


@program(x)
def condition_of_one_value(L: Any) -> Program:
    return lambda x: L.while_loop(lambda x: (x > 0.1).any(), lambda x: x * 0.7, x)


@program(x)
def never_runs(L: Any) -> Program:
    return lambda x: L.while_loop(lambda c: c[1] > 5, lambda c: (c[0] + 1, c[1] + 1), (x, 0))


@program(A)
def pagerank(L: Any) -> Program:
    def f(A: Any) -> Any:
        A, n = A * A, A.shape[0]
        out = A.sum(axis=1)
        start = 0 * out + 1 / n

        def step(c: Any) -> Any:
            r = c[0]
            share = np.where(out > 0, r / np.where(out > 0, out, 1), 0)
            new = 0.85 * (A.T @ share + np.where(out > 0, 0, r).sum() / n) + 0.15 / n
            return new, abs(new - r).sum()

        return L.while_loop(lambda c: c[1] > 1e-9, step, (start, 1.0))[0]

    return f


# ------------------------------------------------------------ branches


@program(x, y)
def chosen(L: Any) -> Program:
    return lambda x, y: L.cond(x.sum() > y.sum(), lambda: x, lambda: y)


@program(x, y)
def chosen_and_changed(L: Any) -> Program:
    def f(x: Any, y: Any) -> Any:
        made = L.cond(x[0] > 0, lambda: x + y, lambda: x - y)
        return made + 1, x

    return f


@program(x)
def with_operands(L: Any) -> Program:
    return lambda x: L.cond(x[0] > 0, lambda a, b: a + b, lambda a, b: a * b, x, 3)


@program(x)
def scalars_adapt(L: Any) -> Program:
    return lambda x: (L.cond(x[0] > 9, lambda: x.sum(), lambda: 0.0), x)


@program(x)
def statically_known(L: Any) -> Program:
    return lambda x: L.cond(True, lambda: x, lambda: x.nonsense)


@program(x)
def updates_in_a_loop(L: Any) -> Program:
    def body(i: Any, c: Any) -> Any:
        return L.cond(c[0] > 0, lambda: c - 1, lambda: c)

    return lambda x: L.fori_loop(0, 3, body, x)


@program(x)
def branches_in_branches(L: Any) -> Program:
    def f(x: Any) -> Any:
        return L.cond(
            x[0] > 0,
            lambda: L.cond(x[1] > 0, lambda: x + 1, lambda: x + 2),
            lambda: L.cond(x[1] > 0, lambda: (x + 3) * 2, lambda: x),
        )

    return f


@program(x)
def several_results(L: Any) -> Program:
    def f(x: Any) -> Any:
        return L.cond(x[0] < 0, lambda: {"a": x, "b": (x.sum(),)}, lambda: {"b": (1.5,), "a": -x})

    return f


@program(A, x)
def sparse_chosen(L: Any) -> Program:
    return lambda A, x: L.cond(x[0] > 0, lambda: (A, x), lambda: (A, -x))


@program(A, x, y)
def products_in_branches(L: Any) -> Program:
    def f(A: Any, x: Any, y: Any) -> Any:
        return L.cond(x[0] > 0, lambda: A @ x, lambda: A.T @ y) + 1

    return f


# ------------------------------------------------------------ sparse tensors that change


@program(A)
def powers_of_a_matrix(L: Any) -> Program:
    return lambda A: L.fori_loop(0, 3, lambda i, M: M @ A, A)


@program(A, x)
def sparse_and_dense_carried(L: Any) -> Program:
    def body(i: Any, c: Any) -> Any:
        return c[0] @ c[0], c[0] @ c[1]

    return lambda A, x: L.fori_loop(0, 2, body, (A, x))


@program(A)
def sparse_swapped(L: Any) -> Program:
    return lambda A: L.fori_loop(0, 3, lambda i, c: (c[1], c[0] + c[1]), (A, 2 * A))


@program(A)
def sparse_until_it_is_full(L: Any) -> Program:
    def f(A: Any) -> Any:
        return L.while_loop(lambda c: c[1] < 3, lambda c: (c[0] @ A, c[1] + 1), (A, 0))

    return f


@program(A, x)
def sparse_branches(L: Any) -> Program:
    return lambda A, x: L.cond(x[0] > 0, lambda: A @ A, lambda: A * 3)


@program(A, x)
def sparse_branch_keeps(L: Any) -> Program:
    return lambda A, x: L.cond(x[0] > 0, lambda: A, lambda: A.T @ A)


@program(A, x)
def sparse_loops_in_branches_in_loops(L: Any) -> Program:
    def f(A: Any, x: Any) -> Any:
        def body(i: Any, M: Any) -> Any:
            return L.cond(
                (M @ x)[0] > 0,
                lambda: L.fori_loop(0, 2, lambda j, B: B @ A, M),
                lambda: M + A,
            )

        return L.fori_loop(0, 3, body, A)

    return f


def _compare(got: Any, wanted: Any) -> None:
    if isinstance(got, Masked):
        got = got.values
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            _compare(one, other)
    elif isinstance(wanted, dict):
        assert got.keys() == wanted.keys()
        _compare([got[key] for key in wanted], list(wanted.values()))
    elif wanted is None:
        assert got is None
    elif hasattr(wanted, "toarray"):
        _compare(got.toarray() if hasattr(got, "toarray") else got, wanted.toarray())
    else:
        one, other = np.asarray(got), np.asarray(wanted)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def _copied(operands: tuple[Any, ...]) -> list[Any]:
    return [operand.copy() for operand in operands]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, sign: int) -> None:
    make, operands = PROGRAMS[name]
    given = [operand * sign for operand in operands]
    wanted = make(PLAIN)(*_copied(tuple(given)))
    fn = sparse_jit(target="interpreter")(make(sj))
    before = _copied(tuple(given))
    _compare(fn(*given), wanted)
    _compare(fn.lower(*given).reference(*given), wanted)
    _compare(given, before)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compiled(name: str) -> None:
    make, operands = PROGRAMS[name]
    _compare(sparse_jit(target="cpu")(make(sj))(*operands), make(PLAIN)(*_copied(operands)))


@pytest.mark.parametrize("name", ["power_iteration", "sparse_loops_in_branches_in_loops"])
def test_programs_compiled_by_numba(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSEJIT_CPU_BACKEND", "numba")
    test_programs_compiled(name)


def _cg(A: Any, b: Any, x: Any, rounds: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        x, r, p, old = c
        Ap = A @ p
        a = old / (p @ Ap)
        r_new = r - a * Ap
        new = r_new @ r_new
        return x + a * p, r_new, r_new + (new / old) * p, new

    r = b - A @ x
    return sj.fori_loop(0, rounds, step, (x, r, r, r @ r))[0]


def test_500_steps_of_conjugate_gradients_in_one_function() -> None:
    n = 1500
    L = sp.diags_array([2.001, -1, -1], offsets=[0, 1, -1], shape=(n, n)).tocsr()
    b = RNG.standard_normal(n)
    solve = sparse_jit(target="cpu")(_cg)
    mine = solve(L, b, np.zeros(n), 500)
    theirs, _ = scipy.sparse.linalg.cg(L, b, rtol=0, atol=0, maxiter=500)
    np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
    assert "for i" not in solve.lower(L, b, np.zeros(n), 500).text("tensor")  # a run-time count
    fixed = sparse_jit(target="cpu", static_argnames=("rounds",))(_cg)
    np.testing.assert_allclose(fixed(L, b, np.zeros(n), rounds=500), mine, rtol=1e-12)
    assert "for i in 0 .. 500" in fixed.lower(L, b, np.zeros(n), rounds=500).text("tensor")


# ------------------------------------------------------------ what does not go


def _raised(fn: Callable[..., Any], *operands: Any) -> str:
    with pytest.raises((TraceError, TensorTypeError, UnsupportedError)) as caught:
        sparse_jit(target="interpreter")(fn)(*operands)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return f"{type(caught.value).__name__}: {caught.value.what}"


def test_arguments_are_carried_to_be_changed() -> None:
    def assigns(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            x[0] = 1
            return s

        return sj.fori_loop(0, 3, body, x)

    def updates(x: Any, y: Any) -> Any:
        def branch() -> Any:
            nonlocal y
            y += 1
            return x

        return sj.cond(x[0] > 0, branch, lambda: x)

    wanted = "TraceError: assignment to an array from outside of a loop body or branch"
    assert _raised(assigns, x) == wanted
    assert _raised(updates, x, y) == wanted


def test_outputs_of_outside_are_not_assigned_inside() -> None:
    def f(x: Any) -> Any:
        made = sj.output()

        def body(i: Any, s: Any) -> Any:
            (j,) = sj.indices("j")
            made[j] = x[j]
            return s

        return sj.fori_loop(0, 3, body, x)

    assert _raised(f, x).startswith("TraceError: assignment to an array from outside")


def test_arrays_do_not_leave_their_block() -> None:
    def f(x: Any) -> Any:
        kept = []

        def body(i: Any, s: Any) -> Any:
            kept.append(s + 1)
            return s

        return sj.fori_loop(0, 3, body, x) + kept[0]

    assert _raised(f, x) == "TraceError: an array of a loop body or branch is used after it"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            lambda i, x: x[1:],
            "the loop carries float64 of shape (7,), not float64 of shape (6,)",
        ),
        (
            lambda i, x: x.sum(),
            "the loop carries float64 of shape (7,), not float64 of shape ()",
        ),
        (
            lambda i, x: x > 0,
            "the loop carries float64 of shape (7,), not bool of shape (7,)",
        ),
        (
            lambda i, x: x * 1j,
            "the loop carries float64 of shape (7,), not complex128 of shape (7,)",
        ),
        (lambda i, x: (x, x), "the loop carries *, not (*, *)"),
        (lambda i, x: None, "the loop carries *, not None"),
    ],
)
def test_types_stay_the_same(body: Callable[..., Any], what: str) -> None:
    assert _raised(lambda x: sj.fori_loop(0, 3, body, x), x) == f"TensorTypeError: {what}"
    error = _raised(lambda x: sj.while_loop(lambda x: x[0] > 0, lambda x: body(0, x), x), x)
    assert error == f"TensorTypeError: {what}"
    error = _raised(lambda x: sj.cond(x[0] > 0, lambda: x, lambda: body(0, x)), x)
    assert error == f"TensorTypeError: {what.replace('loop carries', 'first branch returns')}"


def test_sparse_tensors_keep_their_format_and_fill() -> None:
    error = _raised(lambda A, B: sj.fori_loop(0, 3, lambda i, B: A * 2, B), A, A.toarray())
    assert error == "TensorTypeError: the loop carries a dense array, not a sparse one"
    error = _raised(lambda A, D: sj.cond(D[0, 0] > 0, lambda: A, lambda: A @ D), A, A.toarray())
    assert error.endswith("not a dense one")
    error = _raised(lambda A, B: sj.fori_loop(0, 3, lambda i, A: B, A), A, sp.csc_array(A))
    assert error.startswith("TensorTypeError: the loop carries float64 in the format ((d0, d1) ->")
    filled = sj.asarray(A.toarray(), format=sj.CSR, fill_value=1)
    error = _raised(lambda A, B: sj.fori_loop(0, 3, lambda i, A: B, A), A, filled)
    assert error.endswith("with fill 1.0")


@pytest.mark.parametrize("make", [sp.csc_array, sp.coo_array, sp.bsr_array, sp.dia_array])
def test_sparse_tensors_change_in_every_format(make: Callable[..., Any]) -> None:
    def f(A: Any) -> Any:
        return sj.fori_loop(0, 2, lambda i, M: M * 2 + A, A)

    got = sparse_jit(target="interpreter")(f)(make(A))
    assert got.format == make(A).format
    np.testing.assert_allclose(got.toarray(), 7 * A.toarray())


def test_conditions_are_single_values() -> None:
    wanted = "is an array of rank 1, not one truth value"
    error = _raised(lambda x: sj.while_loop(lambda x: x > 0, lambda x: x, x), x)
    assert error == f"TensorTypeError: the condition of while_loop {wanted}"
    error = _raised(lambda x: sj.cond(x > 0, lambda: x, lambda: x), x)
    assert error == f"TensorTypeError: the condition of cond {wanted}"


def test_the_counter_is_not_known() -> None:
    assert _raised(lambda x: sj.fori_loop(0, 3, lambda i, x: x + float(i), x), x) == (
        "TraceError: the counter of a loop is not known while tracing"
    )
    assert _raised(lambda x: sj.fori_loop(0, 3, lambda i, s: s + x[i - 1], 0.0), x) == (
        "UnsupportedError: an index of which only some rounds of a loop stay inside"
    )
    error = _raised(lambda x: sj.fori_loop(0, 9, lambda i, s: s + x[i], 0.0), x)
    assert error.startswith("UnsupportedError: an index of which only some rounds")
    error = _raised(lambda x: sj.fori_loop(0, x[0], lambda i, s: s + x, x), x)
    assert error == "TensorTypeError: the bounds of fori_loop are integers"


def test_outside_of_a_traced_function() -> None:
    calls: tuple[Callable[[], Any], ...] = (
        lambda: sj.fori_loop(0, 3, lambda i, x: x, 0),
        lambda: sj.while_loop(lambda x: False, lambda x: x, 0),
        lambda: sj.cond(True, lambda: 0, lambda: 1),
    )
    for call in calls:
        with pytest.raises(TraceError, match="was called outside of a traced function"):
            call()


def test_a_loop_that_never_runs_is_traced_again_for_one_that_does() -> None:
    fn = sparse_jit(target="interpreter")(
        lambda x: sj.fori_loop(0, x.shape[0] - 2, lambda i, s: s + x[i + 2], 0.0)
    )
    for n in (2, 5, 2, 9):
        array = np.arange(float(n))
        assert fn(array) == array[2:].sum()


def test_a_carried_value_is_computed_in_its_place() -> None:
    def f(x: Any, y: Any) -> Any:
        return sj.fori_loop(0, 3, lambda i, c: (c[0] + c[1], c[1] - 0.5), (x, y))

    text = sparse_jit(target="interpreter")(f).lower(x, y).text("copies")
    inside = text[text.index("for i") : text.index("yield")]
    assert "alloc_tensor" not in inside
