"""Gathering sorted entries in parallel: which loops, and that the result is that of the loop."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import sparsejit as sj
from sparsejit.api import _target
from sparsejit.backends import BACKENDS
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_walk import all_statements
from sparsejit.ir.loop_writing import Names, binary, compare, int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    DenseResult,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Resize,
    Scan,
    Select,
    Stmt,
    Store,
    Var,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes._equal_runs import gather_in_parallel
from sparsejit.passes.outline_kernels import outline_kernels
from sparsejit.sparsify_and_bufferize import sparsify_and_bufferize
from tests.sparsify_and_bufferize.programs import PROGRAMS
from tests.support.kernel_replay import ReplayBackend

F64 = DType.FLOAT64
N, Q, E, KEPT = (Var(name, INDEX) for name in ("n", "q", "e", "kept"))
ORDER, AT, FOUND = (Memref(name, INDEX, 1) for name in ("order", "at", "found"))
X, SUMS = Memref("x", F64, 1), Memref("sums", F64, 1)
ENTRY = Let(E, Load(ORDER, (Q,)))
LAST = (binary(BinaryOp.SUB, KEPT, int_(1)),)
KEEP = (
    Store(FOUND, (KEPT,), Load(AT, (E,))),
    Store(SUMS, (KEPT,), Load(X, (E,))),
    Assign(KEPT, plus(KEPT, int_(1))),
)
SAME = compare(BinaryOp.EQ, Load(FOUND, LAST), Load(AT, (E,)))
REPEATED = Select(compare(BinaryOp.LT, int_(0), KEPT), SAME, Lit(Const(False, DType.BOOL)))


def gather(op: BinaryOp = BinaryOp.ADD) -> For:
    update = Store(SUMS, LAST, Load(X, (E,)), op)
    return For(Q, int_(0), N, (ENTRY, If(REPEATED, (update,), KEEP)))


def function(loop: For, start: int = 0) -> LoopFunc:
    body: tuple[Stmt, ...] = (
        Alloc(FOUND, (plus(N, int_(start)),), Const(7, INDEX)),
        Alloc(SUMS, (plus(N, int_(start)),), Const(0.5, F64)),
        Let(KEPT, int_(start), mutable=True),
        loop,
        Resize(FOUND, KEPT),
        Resize(SUMS, KEPT),
    )
    func = LoopFunc("f", (N, ORDER, AT, X), body, (DenseResult(FOUND), DenseResult(SUMS)))
    verify_loops(func)
    return func


def results(func: LoopFunc, at: list[int], seed: int) -> list[tuple[object, ...]]:
    """What the interpreter gives, and what kernels give."""
    rng = np.random.default_rng(seed)
    keys, x = np.array(at, np.int64), rng.random(len(at))
    order = np.argsort(keys, kind="stable")
    arguments = [len(at), order, keys, x]
    replay = ReplayBackend(blocks=1 + seed % 2, seed=seed)
    backends = (BACKENDS["interpreter"], replay)
    return [b.load(b.emit(func), cache=False)(arguments) for b in backends]


@settings(max_examples=30)
@given(
    at=st.lists(st.integers(0, 9), max_size=60),
    op=st.sampled_from([BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MAX]),
    seed=st.integers(0, 5),
)
def test_entries_alike_become_one(at: list[int], op: BinaryOp, seed: int) -> None:
    """Sums bit by bit: those of a run are added up in order."""
    wanted, found = results(function(gather(op)), at, seed)
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("start", [0, 2])
def test_every_entry_is_kept(start: int) -> None:
    func = function(For(Q, int_(0), N, (ENTRY, *KEEP)), start)
    wanted, found = results(func, [3, 3, 1], 0)
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one, other)


def test_no_thread_gathers_alone() -> None:
    for name in ("spgemm_outer", "multiply_coo_csr"):
        outlined = outline_kernels(sparsify_and_bufferize(PROGRAMS[name]()))
        launches = [s for s in all_statements(outlined.body) if isinstance(s, Launch)]
        alone = [launch for launch in launches if launch.schedule is Schedule.ONE_THREAD]
        gathering = [
            s.memref.name
            for launch in alone
            for s in all_statements(launch.body)
            if isinstance(s, Store)
        ]
        assert not any("sorted" in memref for memref in gathering)


UPDATE = Store(SUMS, LAST, Load(X, (E,)), BinaryOp.ADD)
LEFT: dict[str, tuple[Stmt, ...]] = {
    "a key that is not kept": (
        If(replace(REPEATED, then=compare(BinaryOp.EQ, Load(FOUND, LAST), E)), (UPDATE,), KEEP),
    ),
    "no entry is the first": (If(SAME, (UPDATE,), KEEP),),
    "a value that depends on the number": (
        If(REPEATED, (UPDATE,), (KEEP[0], replace(KEEP[1], value=Load(X, (KEPT,))), KEEP[2])),
    ),
    "reads what is kept": (replace(KEEP[0], value=Load(FOUND, (Q,))), *KEEP[1:]),
    "counts in front": (KEEP[2], *KEEP[:2]),
}


@pytest.mark.parametrize("name", LEFT)
def test_loops_that_are_left_alone(name: str) -> None:
    body = (Let(KEPT, int_(0), mutable=True), For(Q, int_(0), N, (ENTRY, *LEFT[name])))
    assert gather_in_parallel(body, Names({"q"})) == body


def test_runs_are_numbered_where_nothing_was_kept_before() -> None:
    start = Let(KEPT, int_(0), mutable=True)
    made = gather_in_parallel((start, gather()), Names({"q"}))
    assert any(isinstance(stmt, Scan) for stmt in made)
    later = (start, Assign(KEPT, N), gather())
    assert gather_in_parallel(later, Names({"q"})) == later


@pytest.mark.parametrize("seed", range(3))
def test_products_by_columns(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    A = sp.csc_array(sp.random_array((9, 14), density=0.3, rng=rng))
    B = sp.csr_array(sp.random_array((14, 11), density=0.3, rng=rng))
    jit = sj.sparse_jit(lambda A, B: A @ B, target="interpreter", output=sj.COO(2))
    wanted = jit(A, B)
    backend = ReplayBackend(ordered=seed == 1, blocks=2, seed=seed)
    monkeypatch.setattr(_target, "BACKENDS", {"interpreter": backend})
    found = sj.sparse_jit(lambda A, B: A @ B, target="interpreter", output=sj.COO(2))(A, B)
    assert_array_equal(found.toarray(), wanted.toarray())
