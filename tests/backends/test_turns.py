"""Loops that the lanes of a warp share in turns: which ones, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sparsejit as sj
from sparsejit.api import _target
from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.backends.numba_cuda._memory import memory_of
from sparsejit.backends.numba_cuda._replay import replayed
from sparsejit.backends.numba_cuda._turns import InTurns, in_turns
from sparsejit.ir.device_code import KernelCode
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Assign,
    For,
    If,
    Let,
    Load,
    LoopFunc,
    Memref,
    SortPrefix,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes._kernel_sorting import with_shared_sorts
from tests.support.kernel_replay import ReplayBackend

F64 = DType.FLOAT64
N, I, J, P, COUNT, PEAK, NOW = (
    Var(name, INDEX) for name in ("n", "i", "j", "p", "c", "m", "stamp")
)
CRD, SEEN, MET, OUT = (Memref(name, INDEX, 1) for name in ("crd", "seen", "met", "out"))
X, SUMS = Memref("x", F64, 1), Memref("sums", F64, 1)
KEY = Let(J, Load(CRD, (P,)))
ADD = Store(SUMS, (J,), Load(X, (P,)), BinaryOp.ADD)
STEP = Assign(COUNT, plus(COUNT, int_(1)))
NEW = (Store(SEEN, (J,), NOW), Store(SUMS, (J,), Load(X, (P,))), Store(MET, (COUNT,), J), STEP)
IS_SEEN = compare(BinaryOp.EQ, Load(SEEN, (J,)), NOW)
SCATTER = (KEY, If(IS_SEEN, (ADD,), NEW))


def loop(*body: Stmt, upper: Any = N) -> For:
    return For(P, int_(0), upper, body)


def in_a_warp(*body: Stmt) -> Launch:
    """Each warp has an iteration of its own."""
    return Launch("k0", Schedule.WARP, (For(I, int_(0), int_(1), body, parallel=True),))


def turns_of(one: For) -> InTurns | None:
    launch = in_a_warp(one)
    names = Names.of(LoopFunc("f", (), (launch,), ()))
    places = memory_of(launch, frozenset(), frozenset(), names).places
    return in_turns(one, places, frozenset())


# ---------------------------------------------------------------- which loops


def test_a_scattered_row() -> None:
    turns = turns_of(loop(*SCATTER))
    assert turns is not None
    assert (turns.ready, turns.keys) == ((KEY,), (J,))
    (counter,) = turns.counters
    assert (counter.var, counter.stores) == (COUNT, (NEW[2],))


def test_elements_of_its_own_need_no_turns() -> None:
    own = Store(SUMS, (plus(P, N),), Load(X, (P,)), BinaryOp.ADD)
    turns = turns_of(loop(own))
    assert turns is not None
    assert turns.keys == ()


def test_the_largest_number_is_known_too() -> None:
    peak = Assign(PEAK, binary(BinaryOp.MAX, PEAK, plus(COUNT, int_(1))))
    turns = turns_of(loop(KEY, If(IS_SEEN, (), (Store(SEEN, (J,), NOW), peak, STEP))))
    assert turns is not None
    assert turns.counters[0].peaks == (peak,)


OTHER_KEY = Let(I, Load(MET, (P,)))
REFUSED: dict[str, tuple[Stmt, ...]] = {
    "two elements of one array": (KEY, ADD, replace(ADD, indices=(plus(J, int_(1)),))),
    "one element for all": (replace(ADD, indices=(int_(3),)),),
    "reads another element": (KEY, replace(ADD, value=Load(SUMS, (P,)))),
    "a key that turns change": (Let(J, Load(CRD, (P,))), Store(CRD, (J,), P)),
    "a key behind a condition": (If(compare(BinaryOp.LT, P, NOW), (KEY, ADD)),),
    "two arrays with other keys": (KEY, OTHER_KEY, ADD, Store(SEEN, (I,), NOW)),
    "a sum in a variable": (Assign(PEAK, plus(PEAK, Load(CRD, (P,)))),),
    "counts by two": (Assign(COUNT, plus(COUNT, int_(2))),),
    "counts at two places": (STEP, STEP),
    "reads the number": (KEY, Store(SEEN, (J,), COUNT), STEP),
    "appends behind the step": (KEY, STEP, Store(MET, (COUNT,), J)),
    "reads what it appends": (Let(J, Load(MET, (P,))), Store(MET, (COUNT,), J), STEP),
    "appends and stores": (KEY, Store(MET, (J,), P), Store(MET, (COUNT,), J), STEP),
    "a loop inside": (KEY, For(I, int_(0), N, (ADD,))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_loops_that_need_more_than_turns(name: str) -> None:
    assert turns_of(loop(*REFUSED[name])) is None


def test_a_short_loop_is_left_to_one_lane() -> None:
    assert turns_of(loop(*SCATTER, upper=int_(4))) is None


# ---------------------------------------------------------------- what they compute


def kernel(*body: Stmt) -> KernelCode:
    params = (N, NOW, CRD, SEEN, MET, OUT, X, SUMS)
    func = LoopFunc("f", params, (in_a_warp(*body),), ())
    verify_loops(func)
    return kernel_codes(func)["k0"]


SCATTERED = (Let(COUNT, int_(0), mutable=True), loop(*SCATTER), Store(OUT, (int_(0),), COUNT))


def arrays(crd: Any, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.random(crd.size)
    seen, met = rng.integers(0, 2, 60), np.full(60, -1)
    return {"crd": crd, "x": x, "seen": seen, "met": met, "sums": rng.random(60)}


def in_order(given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The same, one pass after another."""
    found = {name: array.copy() for name, array in given.items()}
    count = 0
    for p, j in enumerate(found["crd"]):
        if found["seen"][j] == 1:
            found["sums"][j] += found["x"][p]
        else:
            found["seen"][j], found["sums"][j] = 1, found["x"][p]
            found["met"][count] = j
            count += 1
    return found, count


def run(text: str, entry: str, given: dict[str, Any], seed: int) -> int:
    out = np.zeros(1, np.int64)
    values = given | {"n": given["crd"].size, "stamp": 1, "out": out}
    names = (
        text[text.index("(", text.index("def ")) + 1 : text.index("):")].replace(",", " ").split()
    )
    replayed(text, entry, names, [values[name] for name in names], 256, seed)
    return int(out[0])


@settings(max_examples=60)
@given(
    crd=st.lists(st.integers(0, 59), max_size=150) | st.lists(st.integers(0, 3), max_size=70),
    seed=st.integers(0, 9),
)
def test_passes_seem_to_run_in_order(crd: list[int], seed: int) -> None:
    """Bit by bit: sums of floats, and the order of what is met first, for any keys."""
    given = arrays(np.array(crd, np.int64), seed)
    code = kernel(*SCATTERED)
    expected, count = in_order(given)
    assert run(code.text, code.entry, given, seed) == count
    for name, array in expected.items():
        assert_array_equal(given[name], array, name)


FAULTS: dict[str, Callable[[str], str]] = {
    "all in one turn": lambda text: text.replace("if turn == now", "if turn >= now"),
    "all lanes are peers": lambda text: text.replace("peers(key)", "vote(key != key)"),
    "appends at one place": lambda text: text.replace("c + lanes_below(c_votes, lane)", "c"),
    "counts lanes twice": lambda text: text.replace("c += count", "c += 2 * count"),
    "a pass too many": lambda text: text.replace("p < p_end", "p <= p_end"),
    "a turn too few": lambda text: text.replace("vote(turn >= now)", "int64(0)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_replay_sees_faults_in_turns(fault: str) -> None:
    code = kernel(*SCATTERED)
    wrong = FAULTS[fault](code.text)
    assert wrong != code.text
    given = arrays(np.random.default_rng(5).integers(0, 20, 80), 3)
    expected, count = in_order(given)
    try:
        found = run(wrong, code.entry, given, 3)
    except (IndexError, RuntimeError, UnboundLocalError):
        return
    same = all(np.array_equal(given[name], array) for name, array in expected.items())
    assert not (found == count and same)


# ---------------------------------------------------------------- sorting


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 31, 32, 33, 64, 100])
def test_lanes_sort(count: int) -> None:
    code = kernel(*with_shared_sorts((SortPrefix(MET, N),), Names({"p"})))
    rng = np.random.default_rng(count)
    for seed in range(3):
        met = rng.integers(0, 40, 120)
        given = {"met": met.copy(), "crd": np.zeros(count)}
        run(code.text, code.entry, given, seed)
        assert_array_equal(given["met"], [*np.sort(met[:count]), *met[count:]])


# ---------------------------------------------------------------- products


def masked(M: Any, A: Any, B: Any) -> Any:
    return M * (A @ B)


def chained(A: Any, B: Any, C: Any) -> Any:
    return (A @ B) * 2 + C


def drawn(rng: np.random.Generator, rows: int, columns: int, density: float) -> Any:
    return sp.csr_array(sp.random_array((rows, columns), density=density, rng=rng))


@pytest.mark.parametrize("seed", range(8))
def test_sparse_products_of_any_shape(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every order of warps and lanes the result of the interpreter, bit by bit."""
    rng = np.random.default_rng(seed)
    rows, inner, columns = rng.integers(1, 40, 3) if seed % 2 else (3, 12, 70)
    density = (0.0, 0.05, 0.3, 0.8)[seed % 4]
    A, B = drawn(rng, rows, inner, density), drawn(rng, inner, columns, 0.3)
    C = drawn(rng, rows, columns, 0.3)
    for function, operands in (
        (lambda A, B: A @ B, (A, B)),
        (masked, (C, A, B)),
        (chained, (A, B, C)),
    ):
        wanted = sj.sparse_jit(function, target="interpreter")(*operands)
        with monkeypatch.context() as patch:
            backend = ReplayBackend(ordered=seed % 3 == 1, blocks=1 + seed // 4, seed=seed)
            patch.setattr(_target, "BACKENDS", {"interpreter": backend})
            found = sj.sparse_jit(function, target="interpreter")(*operands)
        assert_array_equal(found.indptr, wanted.indptr)
        assert_array_equal(found.indices, wanted.indices)
        assert_array_equal(found.data, wanted.data)
        assert_allclose(found.toarray(), function(*operands).toarray(), rtol=1e-12)
