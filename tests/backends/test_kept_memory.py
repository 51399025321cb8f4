"""Large blocks of memory are kept for the next who asks, and never given to two."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.backends.llvm._control_groups import ControlGroups
from sparsejit.backends.llvm._engine import thread_pool
from sparsejit.backends.llvm._kept_limit import kept_limit
from sparsejit.backends.llvm._memory import array_memory, new_array
from sparsejit.backends.llvm._memory_text import LARGE
from sparsejit.backends.llvm._pool import Pool, has_threads

pytestmark = pytest.mark.skipif(not has_threads(), reason="memory is kept on Linux")

SLOTS = 16
FLOATS = LARGE // 8
"""So many numbers are a large block."""


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = thread_pool()
    gc.collect()
    pool.keep_at_most(1 << 30)
    yield pool
    gc.collect()
    pool.keep_at_most(kept_limit())


@sj.sparse_jit
def doubled(x: Any) -> Any:
    return x + x


@sj.sparse_jit
def summed(A: Any, B: Any) -> Any:
    return A + B


def address(array: Any) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def allocator(pool: Pool) -> tuple[Any, Any]:
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(pool.addresses["take_memory"])
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pool.addresses["give_memory"])
    return take, give


# ---------------------------------------------------------------- blocks


def test_a_block_is_kept_for_who_asks_for_about_as_much(pool: Pool) -> None:
    take, give = allocator(pool)
    block = take(2 * LARGE)
    assert pool.kept == 0
    give(block)
    assert 2 * LARGE <= pool.kept < 2 * LARGE + 8192
    for size in (3 * LARGE, LARGE, 1 << 20):
        other = take(size)
        assert other != block, "too large, less by far, small"
        ctypes.memset(other, 1, size)
        libc_free(other)
    assert take(2 * LARGE - 1000) == block
    assert pool.kept == 0
    libc_free(block)


def libc_free(block: int) -> None:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(block)


def test_the_best_fit_is_taken(pool: Pool) -> None:
    take, give = allocator(pool)
    blocks = [take(LARGE + extra) for extra in (600_000, 200_000, 400_000)]
    for block in blocks:
        give(block)
    assert [take(LARGE + extra) for extra in (150_000, 150_000, 150_000)] == [
        blocks[1],
        blocks[2],
        blocks[0],
    ]
    for block in blocks:
        libc_free(block)


def test_the_oldest_leave_where_there_are_many(pool: Pool) -> None:
    take, give = allocator(pool)
    blocks = [take(LARGE) for _ in range(SLOTS + 3)]
    for block in blocks:
        give(block)
    assert SLOTS * LARGE <= pool.kept < SLOTS * (LARGE + 8192)
    assert {take(LARGE) for _ in range(SLOTS)} == set(blocks[3:])
    for block in blocks[3:]:
        libc_free(block)


def test_no_more_is_kept_than_the_limit(pool: Pool) -> None:
    take, give = allocator(pool)
    pool.keep_at_most(5 * LARGE)
    for count in (1, 2, 3, 4, 6, 2, 5):
        give(take(count * LARGE))
        assert pool.kept <= 5 * LARGE
    pool.keep_at_most(0)
    assert pool.kept == 0
    give(take(LARGE))
    assert pool.kept == 0


def test_memory_that_is_not_there(pool: Pool) -> None:
    take, give = allocator(pool)
    give(take(LARGE))
    assert take((1 << 62) + 3) is None
    assert pool.kept == 0, "all that was kept was freed for it"
    give(None)


def test_blocks_begin_with_a_line_of_the_cache(pool: Pool) -> None:
    take, _ = allocator(pool)
    block = take(LARGE + 8)
    assert block % 64 == 0
    libc_free(block)


# ---------------------------------------------------------------- results


def test_the_memory_of_a_result_that_is_gone_is_taken_again(pool: Pool) -> None:
    x = np.arange(float(FLOATS))
    doubled(x)
    doubled(x)  # from now on calls are made in machine code
    gc.collect()
    places = set()
    for _ in range(5):
        result = doubled(x)
        places.add(address(result))
        assert result.flags.owndata
        assert result.flags.writeable
        np.testing.assert_array_equal(result, 2 * x)
        del result
    assert len(places) == 1


def test_a_result_that_is_there_stays_as_it_is(pool: Pool) -> None:
    x = np.arange(float(FLOATS))
    kept = [doubled(x + k) for k in range(6)]
    assert len({address(result) for result in kept}) == 6
    views = [result[100:] for result in kept]
    del kept
    more = [doubled(-x - k) for k in range(6)]
    for k in range(6):
        np.testing.assert_array_equal(views[k], 2 * (x[100:] + k))
        np.testing.assert_array_equal(more[k], -2 * (x + k))


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([9, FLOATS, FLOATS + 7, 2 * FLOATS])),
        max_size=25,
    )
)
def test_results_come_and_go(steps: list[tuple[int, int]]) -> None:
    held: dict[int, Any] = {}
    for number, (slot, size) in enumerate(steps):
        x = np.full(size, float(number))
        held.pop(slot, None)
        held[slot] = doubled(x), number
        other = held.get((slot + 1) % 6)
        if other is not None and other[0].size == size:
            both = summed(held[slot][0], other[0])  # results are operands
            assert (both == 2 * (number + other[1])).all()
        for result, made in held.values():
            assert result[0] == result[-1] == result[result.size // 2] == 2 * made


def test_sparse_results_come_and_go(pool: Pool) -> None:
    n = FLOATS
    places = np.arange(n + 1)
    one, two = (sp.csr_array((np.full(n, v), places[:n], places), (n, n)) for v in (1.0, 2.0))
    for _ in range(4):
        first = summed(one, two)
        second = summed(two, two)
        assert (first.data == 3).all()
        assert (second.data == 4).all()
        np.testing.assert_array_equal(second.indices, first.indices)
        del first
        third = summed(one, one)
        assert (second.data == 4).all()
        assert (third.data == 2).all()
    assert pool.kept > 0


def test_a_result_may_be_resized(pool: Pool) -> None:
    result = doubled(np.ones(FLOATS))
    result = doubled(np.ones(FLOATS))
    result.resize(3 * FLOATS, refcheck=False)
    assert (result[:FLOATS] == 2).all()
    assert (result[FLOATS:] == 0).all()
    result.resize(5, refcheck=False)
    assert result.tolist() == [2.0] * 5
    del result


def test_memory_is_traced_and_untraced(pool: Pool) -> None:
    tracemalloc.start()
    try:
        for _ in range(3):
            result = doubled(np.ones(FLOATS))
            del result
        array = new_array((FLOATS,), np.dtype(np.float64))
        assert tracemalloc.get_traced_memory()[0] >= LARGE
        del array
        assert tracemalloc.get_traced_memory()[0] < LARGE
    finally:
        tracemalloc.stop()


def test_new_arrays_are_numpys(pool: Pool) -> None:
    memory = array_memory()
    assert memory is not None
    large, small = (new_array((n,), np.dtype(np.float64)) for n in (FLOATS, 5))
    name = np._core.multiarray.get_handler_name  # type: ignore[attr-defined]
    assert name(large) == "sparsejit"
    assert name(small) == name(np.ones(3)) == name(), "arrays of others have their own memory"
    for kind in (np.dtype(bool), np.dtype(np.complex128)):
        made = new_array((3, LARGE), kind)
        assert (made.shape, made.dtype, made.flags.owndata) == ((3, LARGE), kind, True)
    place = address(large)
    del large
    assert address(new_array((FLOATS,), np.dtype(np.int64))) == place


def test_threads_share_what_is_kept(pool: Pool) -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        x = np.full(FLOATS, float(number))
        for _ in range(12):
            first, second = doubled(x), doubled(x)
            if not ((first == 2 * number).all() and (second == 2 * number).all()):
                wrong.append(f"thread {number}")
            del first

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def in_child(queue: Any) -> None:
    x = np.arange(float(FLOATS))
    results = [doubled(x + k) for k in range(3)]
    queue.put([float(result[1]) for result in results])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_starts_with_nothing_kept(pool: Pool) -> None:
    x = np.arange(float(FLOATS))
    before = doubled(x)
    stop = threading.Event()

    def busy() -> None:
        take, give = allocator(pool)
        while not stop.is_set():
            give(take(LARGE))

    others = [threading.Thread(target=busy) for _ in range(2)]
    for other in others:
        other.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            queue = context.Queue()
            child = context.Process(target=in_child, args=(queue,))
            child.start()
            assert queue.get(timeout=60) == [2.0, 4.0, 6.0]
            child.join(60)
            assert child.exitcode == 0
    finally:
        stop.set()
        for other in others:
            other.join()
    np.testing.assert_array_equal(before, 2 * x)


def test_results_that_are_there_at_exit() -> None:
    program = (
        "import numpy as np, sparsejit as sj\n"
        "f = sj.sparse_jit(lambda x: x + x)\n"
        f"x = np.ones({FLOATS})\n"
        "class Late:\n"
        "    def __init__(self): self.kept = [f(x) for _ in range(5)]\n"
        "    def __del__(self): print(sum(r[-1] for r in self.kept)); del self.kept\n"
        "late = Late(); late.itself = late\n"
        "import builtins; builtins.late = late\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.stdout.split() in (["10.0"], []), "objects may outlive Python, no process crashes"
    assert not done.stderr


# ---------------------------------------------------------------- limits


def test_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARSEJIT_KEPT_MEMORY", raising=False)
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    (tmp_path / "own").write_text("0::/a\n")
    (tmp_path / "a").mkdir()
    groups = ControlGroups(tmp_path, tmp_path / "own")
    assert kept_limit(groups) == whole // 8
    (tmp_path / "a" / "memory.max").write_text("max\n")
    assert kept_limit(groups) == whole // 8
    (tmp_path / "memory.max").write_text(f"{1 << 28}\n")
    assert kept_limit(groups) == 1 << 25
    (tmp_path / "own").write_text("7:memory:/x\n")
    (tmp_path / "memory" / "x").mkdir(parents=True)
    (tmp_path / "memory" / "x" / "memory.limit_in_bytes").write_text(f"{1 << 27}\n")
    assert kept_limit(groups) == 1 << 24
    monkeypatch.setenv("SPARSEJIT_KEPT_MEMORY", "5")
    assert kept_limit(groups) == 5 << 20
    monkeypatch.setenv("SPARSEJIT_KEPT_MEMORY", "0")
    assert kept_limit(groups) == 0
