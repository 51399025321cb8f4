"""`target="cuda"` from end to end, on the fake device: results, plans, residency, failures."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.errors import DeviceError
from sparsejit.runtime.fake import FakeArray, FakeRuntime, Injection, to_fake
from sparsejit.runtime.opening import Device, use_runtime
from sparsejit.tensors import wrap_result

STRATEGIES = ("regular-dma", "pinned-dma", "zero-copy")
each_strategy = pytest.mark.parametrize("transfer", STRATEGIES)


@contextmanager
def fake_device(
    seed: int = 0, injection: Injection | None = None
) -> Iterator[tuple[FakeRuntime, Device]]:
    """A fake device for the calls inside; nothing may be left on it."""
    runtime = FakeRuntime(seed, injection)
    with use_runtime(runtime) as device:
        yield runtime, device
        runtime.injection.is_over = True
        device.transfers.pool.close()
    assert runtime.leaks() == []


# ---------------------------------------------------------------- programs


def spmv(A: Any, x: Any) -> Any:
    return A @ x


def updated(A: Any, x: Any, y: Any) -> Any:
    i, j = sj.indices("i j")
    y[i] += A[i, j] * x[j]
    return y


def scaled_update(A: Any, x: Any, y: Any, b: Any) -> Any:
    i, j = sj.indices("i j")
    y[i] = b * y[i] + A[i, j] * x[j]
    return y


def spmm(A: Any, B: Any) -> Any:
    return A @ B


def sampled(A: Any, P: Any, Q: Any) -> Any:
    return A * (P @ Q)


def summed(A: Any, B: Any) -> Any:
    return A + B


def relu_of_product(A: Any, X: Any, W: Any) -> Any:
    return sj.maximum(A @ (X @ W), 0.0)


def attention(A: Any, Q: Any, K: Any) -> Any:
    return sj.softmax(sj.where_stored(A, Q @ K), axis=1) @ K.T


def mttkrp(T: Any, B: Any, C: Any) -> Any:
    i, j, k, r = sj.indices("i j k r")
    M = sj.output()
    M[i, r] = T[i, j, k] * B[j, r] * C[k, r]
    return M


def reduced(A: Any) -> Any:
    return A.sum(), A.max(axis=1), A.sum(axis=0)


def iterated(A: Any, b: Any) -> Any:
    def step(number: Any, state: Any) -> Any:
        x, r = state
        return x + 0.1 * r, r - 0.1 * (A @ r)

    return sj.fori_loop(0, 3, step, (b * 0, b))


def powers(A: Any) -> Any:
    """What is carried has more entries in each pass."""
    return sj.fori_loop(0, 2, lambda number, C: C @ A, A)


def doubled(A: Any, y: Any) -> Any:
    """The device decides how often, and which entries are left."""
    B = sj.while_loop(lambda C: C.sum() < 60, lambda C: C * 2, A)
    y += B.sum(axis=1)
    return sj.cond(B.max() > 9, lambda: sj.where_stored(A > 1, B), lambda: A)


def padded_sum(A: Any, B: Any) -> Any:
    return (A + B).asformat(sj.ELL(5))


def scaled_rows(A: Any, s: Any) -> Any:
    return A * s[:, None]


def each_vector(A: Any, X: Any) -> Any:
    return sj.einsum("bik,bk->bi", A, X)


def each_vector_of(A: Any, X: Any) -> Any:
    return sj.einsum("ik,bk->bi", A, X)


def each_updated(A: Any, X: Any, y: Any) -> Any:
    b, i, j, k = sj.indices("b i j k")
    y[b, i, j] += 2.0 * A[b, i, k] * X[b, k, j]
    return y


def batches(format: Any = sj.CSR, *, is_ragged: bool = False) -> Any:
    """Return three sparse matrices, that store equally many entries unless they are ragged."""
    rng = np.random.default_rng(4)
    dense = np.zeros((3, 35))
    for number, one in enumerate(dense):
        one[rng.choice(35, 6 + number * is_ragged, replace=False)] = rng.integers(1, 5)
    return sj.asarray(dense.reshape(3, 7, 5), format=sj.Batched(format))


def matrix(format: Any, m: int = 7, n: int = 5, seed: int = 0) -> Any:
    """Return a sparse matrix with whole numbers and an empty row."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 5, (m, n)) * (rng.random((m, n)) < 0.4)
    dense[:1] = 0
    made = sp.coo_array(dense.astype(np.float64))
    if isinstance(format, sj.Format):
        return sj.asarray(made, format=format)
    return made.asformat(format)


def ints(*shape: int) -> Any:
    """Return a dense array of small whole numbers."""
    return np.random.default_rng(1).integers(-4, 5, shape).astype(np.float64)


def nans() -> Any:
    """Return a vector with two elements that stay nan whatever they are multiplied by."""
    found = ints(7)
    found[[2, 5]] = np.nan, np.inf
    return found


def tensor() -> Any:
    """Return a tensor of three dimensions."""
    rng = np.random.default_rng(2)
    coords = rng.integers(0, 4, (3, 20))
    return sj.from_coo(coords, rng.integers(1, 5, 20).astype(float), (4, 4, 4), format=sj.CSF(3))


@dataclass(frozen=True, slots=True)
class Program:
    """A function and its operands."""

    name: str
    function: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]]


def _fixed(*operands: Any) -> Callable[[], tuple[Any, ...]]:
    return lambda: operands


def difference_by_rows(A: Any, B: Any) -> Any:
    """Two lists of rows are merged; a loop behind the merging starts where it stopped."""
    return (A - B).sum(axis=1)


def _programs() -> Iterator[Program]:
    formats: dict[str, Any] = {name: name for name in ("csr", "csc", "coo", "bsr", "dia")}
    formats |= {"dcsr": sj.DCSR, "dense": None}
    for name, format in formats.items():
        A = np.asarray(matrix("csr").todense()) if format is None else matrix(format)
        yield Program(f"spmv {name}", spmv, _fixed(A, ints(5)))
        yield Program(f"spmm {name}", spmm, _fixed(A, ints(5, 3)))
    for name in ("csr", "csc"):
        A = matrix(name)
        yield Program(f"spgemm {name}", spmm, _fixed(A, matrix(name, 5, 6)))
        yield Program(f"add {name}", summed, _fixed(A, matrix(name, seed=3)))
        yield Program(f"sddmm {name}", sampled, _fixed(A, ints(7, 3), ints(3, 5)))
    # Rows come from a list that is walked in parts, and each part has a workspace.
    yield Program("spgemm coo", spmm, _fixed(matrix("coo"), matrix("csr", 5, 6)))
    full, ragged = batches(), batches(is_ragged=True)
    for name, A in (("full", full), ("ragged", ragged)):
        yield Program(f"batch {name}", spmm, _fixed(A, ints(3, 5, 2)))
        yield Program(f"batch {name}, one factor", spmm, _fixed(A, ints(5, 2)))
        yield Program(f"batch {name}, one vector", spmm, _fixed(A, ints(5)))
    yield Program("batch of vectors", each_vector, _fixed(full, ints(3, 5)))
    yield Program("batch of dense", spmm, _fixed(matrix("csr"), ints(3, 5, 2)))
    yield Program("batch of vectors, one matrix", each_vector_of, _fixed(matrix("csr"), ints(3, 5)))
    coo = batches(sj.COO(2))
    yield Program("batch update", each_updated, lambda: (coo, ints(3, 5, 2), ints(3, 7, 2)))
    yield Program("update", updated, lambda: (matrix("csr"), ints(5), ints(7)))
    yield Program("scaled update", scaled_update, lambda: (matrix("csr"), ints(5), ints(7), 2.0))
    yield Program("update times 0", scaled_update, lambda: (matrix("csr"), ints(5), nans(), 0.0))
    yield Program("gcn", relu_of_product, lambda: (matrix("csr", 6, 6), ints(6, 4), ints(4, 3)))
    yield Program("attention", attention, lambda: (matrix("csr", 6, 6), ints(6, 2), ints(2, 6)))
    yield Program("mttkrp", mttkrp, lambda: (tensor(), ints(4, 3), ints(4, 3)))
    yield Program("reductions", reduced, lambda: (matrix("csr"),))
    yield Program("iteration", iterated, lambda: (matrix("csr", 5, 5), ints(5)))
    yield Program("padded sum", padded_sum, _fixed(matrix("csr"), matrix("csc", seed=3)))
    yield Program("powers", powers, _fixed(matrix("csr", 5, 5)))
    yield Program("doubled", doubled, lambda: (matrix("csr"), ints(7)))
    yield Program("scaled rows", scaled_rows, lambda: (matrix("csr"), ints(7)))
    rows = (matrix(sj.DCSR), matrix(sj.DCSR, seed=3))
    yield Program("merged rows", difference_by_rows, _fixed(*rows))
    yield Program("no rows", spmv, lambda: (matrix("csr", 0, 5), ints(5)))
    yield Program("no entries", spmm, lambda: (sp.csr_array((3, 4)), ints(4, 2)))
    yield Program("float32", spmv, lambda: (matrix("csr").astype("f4"), ints(5).astype("f4")))
    yield Program("complex", spmv, lambda: (matrix("csr") * (1 + 2j), ints(5)))
    yield Program("integers", spmv, lambda: (matrix("csr").astype("i8"), ints(5).astype("i4")))


PROGRAMS = {program.name: program for program in _programs()}
each_program = pytest.mark.parametrize("name", PROGRAMS)


def plain(result: Any) -> list[Any]:
    """Return results as dense NumPy arrays."""
    if isinstance(result, tuple):
        return [array for item in result for array in plain(item)]
    if isinstance(result, FakeArray):
        return [result.get()]
    if hasattr(result, "toarray"):
        return [result.toarray()]
    return [result.to_numpy() if hasattr(result, "to_numpy") else np.asarray(result)]


@cache
def wanted(name: str) -> list[Any]:
    """Return what the interpreter makes of a program."""
    program = PROGRAMS[name]
    return plain(sj.sparse_jit(program.function, target="interpreter")(*program.operands()))


def assert_same(found: Any, name: str) -> None:
    """All results are what the interpreter gives, up to the order of sums."""
    for one, other in zip(plain(found), wanted(name), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


@each_strategy
@each_program
def test_results(name: str, transfer: Any) -> None:
    program = PROGRAMS[name]
    for library in ("auto", "never"):
        with fake_device():
            made = sj.sparse_jit(
                program.function, target="cuda", transfer=transfer, library=library
            )
            assert_same(made(*program.operands()), name)


@each_program
@each_strategy
def test_a_fault_at_any_call(name: str, transfer: Any) -> None:
    program = PROGRAMS[name]
    made = sj.sparse_jit(program.function, target="cuda", transfer=transfer)
    clean = Injection()
    with fake_device(injection=clean):
        assert_same(made(*program.operands()), name)
    for at in range(len(clean.calls)):
        operands = program.operands()
        with fake_device(at, Injection(at)), pytest.raises(DeviceError) as caught:
            made(*operands)
        assert "changed" in str(caught.value) or "start" in str(caught.value)
        names = made.parameters
        for argument, one, other in zip(names, operands, program.operands(), strict=True):
            if f"'{argument}' may have changed" not in str(caught.value):
                np.testing.assert_array_equal(plain(one)[0], plain(other)[0])
            else:
                assert argument == "y"


# ---------------------------------------------------------------- batches by the library


def test_which_batches_the_library_computes() -> None:
    def calls(name: str) -> int:
        program = PROGRAMS[name]
        with fake_device() as (runtime, _):
            made = sj.sparse_jit(program.function, target="cuda")
            assert_same(made(*program.operands()), name)
            ran = runtime.injection.calls
            assert ("run_phase" in ran) != ("launch" in ran)
            return ran.count("run_phase")

    taken = {name: calls(name) for name in PROGRAMS if name.startswith("batch")}
    assert taken == {name: int("ragged" not in name) for name in taken}


@each_strategy
def test_batches_beside_numpy(transfer: Any) -> None:
    A, X, B = batches(), ints(3, 5, 2), matrix("csr")
    dense = A.to_numpy()
    product = sj.sparse_jit(spmm, target="cuda", transfer=transfer, library="only")
    vectors = sj.sparse_jit(each_vector, target="cuda", transfer=transfer, library="only")
    update = sj.sparse_jit(each_updated, target="cuda", transfer=transfer, library="only")
    with fake_device():
        np.testing.assert_array_equal(product(A, X), dense @ X)
        np.testing.assert_array_equal(product(A, X[1]), dense @ X[1])
        np.testing.assert_array_equal(product(A, X[2, :, 0]), dense @ X[2, :, 0])
        np.testing.assert_array_equal(product(B, X), B.toarray() @ X)
        np.testing.assert_array_equal(vectors(A, X[:, :, 1]), (dense @ X[:, :, 1:])[..., 0])
        y = ints(3, 7, 2)
        assert update(A, X, y) is y
        np.testing.assert_array_equal(y, ints(3, 7, 2) + 2 * dense @ X)


def test_explain_tells_why_a_batch_is_no_call_of_a_library() -> None:
    made = sj.sparse_jit(spmm, target="cuda")
    assert "library call: SpMM" in made.explain(batches(), ints(3, 5, 2))
    told = made.explain(batches(is_ragged=True), ints(3, 5, 2))
    assert "not known that each batch of its sparse factor is full" in told
    only = sj.sparse_jit(spmm, target="cuda", library="only")
    with pytest.raises(sj.errors.UnsupportedError, match="no library kernel"):
        only.lower(batches(is_ragged=True), ints(3, 5, 2)).compile()


# ---------------------------------------------------------------- schedules by lengths of rows


def by_rows(*lengths: int) -> Any:
    """Return a matrix whose rows store so many entries."""
    columns = np.concatenate([np.arange(n) for n in lengths])
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    entries = 1.0 + columns % 3
    return sp.csr_array((entries, columns, pointers), (len(lengths), 1000))


LENGTHS = {
    "a thread an iteration: rows by A_pos1 are short": [3] * 30,
    "a warp an iteration: rows by A_pos1 are long": [40] * 30,
    "balanced by stored entries: rows by A_pos1 are uneven": [0, 2] * 50 + [900],
}


@each_strategy
def test_schedules_follow_the_lengths_of_rows(transfer: Any) -> None:
    x = ints(1000)
    made = sj.sparse_jit(spmv, target="cuda", transfer=transfer, library="never")
    with fake_device():
        for number, (told, lengths) in enumerate(LENGTHS.items()):
            for A in (by_rows(*lengths), by_rows(*lengths[::-1])):
                np.testing.assert_array_equal(made(A, x), A @ x)
                assert told in made.explain()
                assert told in made.explain(A, x)
                assert made.cache_info().compiles == number + 1
        assert made.cache_info().traces == 1
    assert "schedule" not in sj.sparse_jit(spmv, target="cpu").explain(by_rows(3, 3), x)


def test_lengths_of_rows_that_decide_nothing_compile_nothing() -> None:
    """Each row of a product has its columns in parallel, and a merge walks two rows at once."""
    X = np.ones((1000, 3))
    product = sj.sparse_jit(lambda A, X: A @ X, target="cuda", library="never")
    total = sj.sparse_jit(lambda A, B: A + B, target="cuda", library="never")
    scaled = sj.sparse_jit(lambda A, B, x: A @ x + (A * B) @ x, target="cuda", library="never")
    with fake_device():
        for lengths in LENGTHS.values():
            A = by_rows(*lengths)
            np.testing.assert_array_equal(product(A, X), A @ X)
            np.testing.assert_array_equal(total(A, A.copy()).toarray(), (A + A).toarray())
        assert product.cache_info().compiles == total.cache_info().compiles == 1
        short, long = (by_rows(*LENGTHS[told]) for told in list(LENGTHS)[:2])
        for B in (short.copy(), long):
            scaled(short, B, X[:, 0])
        assert scaled.cache_info().compiles == 1
        scaled(long, short, X[:, 0])
        assert scaled.cache_info().compiles == 2


def test_schedules_of_operands_on_the_device_follow_the_mean() -> None:
    """Nothing is copied back for them."""
    x = ints(1000)
    made = sj.sparse_jit(spmv, target="cuda", library="never")
    for told, lengths in LENGTHS.items():
        A = by_rows(*lengths)
        with fake_device() as (runtime, _):
            on_device = sj.SparseTensor(
                sj.CSR,
                A.shape,
                (None, to_fake(runtime, A.indptr)),
                (None, to_fake(runtime, A.indices)),
                to_fake(runtime, A.data),
            )
            y = made(on_device, to_fake(runtime, x))
            np.testing.assert_array_equal(y.get(), A @ x)
            expected = "rows by A_pos1 are short" if "uneven" in told else told
            assert expected in made.explain()
            assert "copy_to_host" not in runtime.injection.calls
            del y, on_device


def test_positions_that_changed_are_looked_through_again_where_all_is_checked() -> None:
    A, x = by_rows(*[9] * 100), ints(1000)
    made = sj.sparse_jit(spmv, target="cuda", library="never", check="always")
    with fake_device():
        made(A, x)
        assert "rows by A_pos1 are short" in made.explain()
        A.indptr[1:-1] = 2  # all other entries are in the last row now
        A.indices[2:] = np.arange(898)
        np.testing.assert_array_equal(made(A, x), A @ x)
        assert "rows by A_pos1 are uneven" in made.explain()


def messages_of_failures(function: Any, operands: Callable[[], tuple[Any, ...]]) -> list[str]:
    """Let each call of the device fail in turn, and return what the errors say."""
    made = sj.sparse_jit(function, target="cuda")
    clean = Injection()
    with fake_device(injection=clean):
        made(*operands())
    found: list[str] = []
    for at in range(len(clean.calls)):
        with fake_device(at, Injection(at)), pytest.raises(DeviceError) as caught:
            made(*operands())
        found.append(str(caught.value))
    return found


def test_errors_name_arguments_and_which_of_their_arrays() -> None:
    def sampled_into(S: Any, factors: Any) -> None:
        i, j, k = sj.indices("i j k")
        S[i, j] += sj.where_stored(S[i, j], factors["P"][i, k] * factors["Q"][k, j])

    found = messages_of_failures(
        sampled_into, lambda: (matrix("csr"), {"P": ints(7, 3), "Q": ints(3, 5)})
    )
    text = "\n".join(found)
    for array in ("the positions of 'S'", "the coordinates of 'S'", "the values of 'S'"):
        assert f"', which is for {array}: " in text
    assert "', which is for \"factors['P']\": " in text
    assert "of the arguments, the values of 'S' may have changed, no other" in text
    assert "'S_vals' may" not in text

    found = messages_of_failures(lambda T: T.sum(), lambda: (tensor(),))
    assert any("the coordinates in level 2 of 'T'" in message for message in found)


def test_nothing_keeps_the_callers_arrays() -> None:
    A, x = matrix("csr"), ints(5)
    with fake_device():
        sj.sparse_jit(spmv, target="cuda")(A, x)
        last = weakref.ref(x)
        gc.disable()
        try:
            del x
            assert last() is None
        finally:
            gc.enable()


def test_a_view_of_what_no_kernel_needs_any_more() -> None:
    """The view is left behind by what was written into another format: only its extents count."""

    def stored(x: Any, u: Any) -> Any:
        total = x.sum()
        k = sj.indices("k")[0]
        left = sj.output()
        left[()] = sj.where_stored(x[1], u[k])
        return total, left

    for operands in ((ints(3), ints(3)), (ints(3), ints(0))):
        wanted = plain(sj.sparse_jit(stored, target="interpreter")(*operands))
        with fake_device():
            found = plain(sj.sparse_jit(stored, target="cuda")(*operands))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- operands on the device


@each_strategy
def test_device_operands_give_device_results_and_move_nothing(transfer: Any) -> None:
    A, x = matrix("csr"), ints(5)
    with fake_device() as (runtime, _):
        on_device = sj.SparseTensor(
            sj.CSR,
            A.shape,
            (None, to_fake(runtime, A.indptr)),
            (None, to_fake(runtime, A.indices)),
            to_fake(runtime, A.data),
        )
        made = sj.sparse_jit(spmv, target="cuda", transfer=transfer)
        y = made(on_device, to_fake(runtime, x))
        assert isinstance(y, FakeArray)
        np.testing.assert_array_equal(y.get(), A @ x)
        assert not {"copy_to_device", "copy_to_host"} & set(runtime.injection.calls)
        mixed = made(on_device, x)
        np.testing.assert_array_equal(mixed.get(), A @ x)
        assert runtime.injection.calls.count("copy_to_device") == 1
        scaled = sj.sparse_jit(lambda A: A * 2.0)(on_device)  # "auto" goes where operands lie
        assert isinstance(scaled.values, FakeArray)
        np.testing.assert_array_equal(scaled.values.get(), A.data * 2)
        del y, mixed, scaled, on_device


@each_strategy
def test_an_assigned_device_operand_changes_in_place(transfer: Any) -> None:
    A, x, y = matrix("csr"), ints(5), ints(7)
    with fake_device() as (runtime, _):
        on_device = to_fake(runtime, y)
        result = sj.sparse_jit(updated, target="cuda", transfer=transfer)(A, x, on_device)
        assert result is on_device
        np.testing.assert_array_equal(on_device.get(), y + A @ x)
        del result, on_device


def test_overlapping_device_operands_are_copied_or_refused() -> None:
    def shifted(x: Any, y: Any) -> Any:
        i = sj.indices("i")[0]
        y[i] = x[i] + 1.0

    with fake_device() as (runtime, _):
        x = to_fake(runtime, ints(6))
        made = sj.sparse_jit(shifted, target="cuda")
        before = x.get()
        view = x.reshape(6)
        made(x, view)
        np.testing.assert_array_equal(x.get(), before + 1)
        del x, view


# ---------------------------------------------------------------- bound plans


@each_strategy
def test_a_bound_plan_moves_fixed_operands_once(transfer: Any) -> None:
    A, x = matrix("csr"), ints(5)
    with fake_device() as (runtime, _):
        plan = sj.sparse_jit(spmv, target="cuda", transfer=transfer).bind(A=A)
        moved = []
        for number in range(3):
            before = len(runtime.injection.calls)
            np.testing.assert_array_equal(plan(x + number), A @ (x + number))
            moved.append(runtime.injection.calls[before:].count("copy_to_device"))
        assert moved == [4, 1, 1]
        plan.update(A=A * 2)
        np.testing.assert_array_equal(plan(x), 2 * (A @ x))
        del plan
        gc.collect()


@each_strategy
def test_fixed_operands_on_the_device_are_copied_there(transfer: Any) -> None:
    A, x = matrix("csr"), ints(5)
    with fake_device() as (runtime, _):
        on_device = sj.SparseTensor(
            sj.CSR,
            A.shape,
            (None, to_fake(runtime, A.indptr)),
            (None, to_fake(runtime, A.indices)),
            values := to_fake(runtime, A.data),
        )
        plan = sj.sparse_jit(spmv, target="cuda", transfer=transfer).bind(A=on_device)
        values[...] = 0.0
        for number in range(2):
            np.testing.assert_array_equal(plan(x + number).get(), A @ (x + number))
        assert runtime.injection.calls.count("copy_to_device") == 2
        plan.update(A=on_device)
        np.testing.assert_array_equal(plan(x).get(), 0 * (A @ x))
        del plan, on_device, values
        gc.collect()


def test_fixed_operands_keep_the_values_of_the_moment() -> None:
    A, x = matrix("csr"), ints(5)
    with fake_device():
        plan = sj.sparse_jit(spmv, target="cuda").bind(A=A)
        right = A @ x
        A.data[...] = 0
        np.testing.assert_array_equal(plan(x), right)
        np.testing.assert_array_equal(plan(x), right)
        del plan
        gc.collect()


# ---------------------------------------------------------------- what is told


def test_texts_and_explanations_need_no_device() -> None:
    A, x = matrix("csr"), ints(5)
    made = sj.sparse_jit(spmv, target="cuda", transfer="zero-copy")
    lowered = made.lower(A, x)
    assert "library SpMV" in lowered.text("loops")
    plan = lowered.text("plan")
    assert "A_vals is mapped: it is read once, in order" in plan
    assert "spmv0 may read it in any order" in plan
    text = made.explain(A, x)
    assert "library calls as told, else generated kernels on cuda" in text
    assert "library call: SpMV" in text
    assert "transfers: zero-copy, 40 B to the device" in text
    assert "A_vals: mapped (it is read once, in order)" in text


def test_explain_tells_of_a_call_that_the_library_refused() -> None:
    runtime = FakeRuntime(refuses=frozenset({"SPMV"}))
    with use_runtime(runtime):
        made = sj.sparse_jit(spmv, target="cuda")
        made(matrix("csr"), ints(5))
        assert "no library for spmv0: the fake library refuses it" in made.explain()
        only = sj.sparse_jit(spmv, target="cuda", library="only")
        with pytest.raises(sj.errors.UnsupportedError, match="the library refuses a call of spmv"):
            only(matrix("csr"), ints(5))
    assert runtime.leaks() == []


def test_library_only_runs_what_the_library_does() -> None:
    with fake_device():
        made = sj.sparse_jit(spmv, target="cuda", library="only")
        np.testing.assert_array_equal(made(matrix("csr"), ints(5)), matrix("csr") @ ints(5))


def test_operands_on_the_device_are_refused_by_other_targets() -> None:
    with fake_device() as (runtime, _):
        x = to_fake(runtime, ints(5))
        with pytest.raises(sj.errors.UnsupportedError, match="'x' lies on the device"):
            sj.sparse_jit(lambda x: x + 1.0, target="cpu")(x)
        del x


def test_auto_goes_where_the_estimate_is_lower() -> None:
    """Many products for few bytes go to the device; a sum that reads everything once does not."""
    A, B = ints(300, 300), ints(300, 300)
    with fake_device() as (runtime, _):
        made = sj.sparse_jit(lambda A, B: A @ B)
        text = made.explain(A, B)
        assert 'runs on cuda (target="auto", and it is estimated at 27.1 ms on the cpu' in text
        assert "on the device, transfers included" in text
        summed_up = sj.sparse_jit(lambda A: A.sum())
        assert summed_up(A) == A.sum()
        assert "runs on cpu" in summed_up.explain()
        assert runtime.injection.calls == []


VECTOR = sj.Format("(i) -> (i : compressed)")


def test_sparse_vectors_are_no_library_products() -> None:
    A, v = np.asarray(matrix("csr").todense()), ints(7)
    x = sj.asarray(ints(5), format=VECTOR)
    stored = sj.asarray(v, format=VECTOR)
    with fake_device():
        product = sj.sparse_jit(spmv, target="cuda", output=VECTOR)
        found = product(sj.asarray(A, format=sj.CSR), x).to_numpy()
        np.testing.assert_array_equal(found, A @ ints(5))
        sampled_by = sj.sparse_jit(lambda v, A, x: sj.where_stored(v, A @ x), target="cuda")
        found = sampled_by(stored, A, ints(5)).to_numpy()
        np.testing.assert_array_equal(found, np.where(v != 0, A @ ints(5), 0))


# ---------------------------------------------------------------- memory of callers


def copied_how(array: Any, transfer: Any = "pinned-dma") -> str:
    """Return how a plan moves an array."""
    text = sj.sparse_jit(lambda x: x * 2.0, target="cuda", transfer=transfer).explain(array)
    return next(line.strip() for line in text.splitlines() if line.startswith("  x: c"))


def test_large_arrays_are_registered_where_their_memory_can_be() -> None:
    large = np.ones(1 << 19)
    assert copied_how(large) == "x: copied from registered pages (pinned-dma)"
    assert copied_how(large[:100]) == "x: copied through pinned staging (pinned-dma)"
    large.flags.writeable = False
    assert copied_how(large) == "x: copied through pinned staging (pinned-dma)"
    assert "its memory is read-only" in copied_how(large, "zero-copy")


def test_a_small_part_of_an_allocation_is_not_registered_for_zero_copy() -> None:
    part = np.ones(1000)[10:20]
    assert "it is a small part of its allocation" in copied_how(part, "zero-copy")


def test_large_arrays_in_all_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsejit.api._cuda.LARGE_BYTES", 1 << 12)
    x = np.arange(1 << 9, dtype=np.float64)
    for transfer in STRATEGIES:
        with fake_device() as (runtime, device):
            made = sj.sparse_jit(lambda x: x * 2.0, target="cuda", transfer=transfer)
            np.testing.assert_array_equal(made(x), x * 2)
            assert len(device.transfers.registrations) == 0
            assert ("register" in runtime.injection.calls) == (transfer != "regular-dma")


def test_threads_take_turns() -> None:
    A, x = matrix("csr"), ints(5)
    runtime = FakeRuntime()
    made = sj.sparse_jit(spmv, target="cuda", transfer="pinned-dma")

    def call(number: int) -> Any:
        with use_runtime(runtime):
            return made(A, x + number)

    with ThreadPoolExecutor(4) as pool:
        for number, y in enumerate(pool.map(call, range(20))):
            np.testing.assert_array_equal(y, A @ (x + number))


def test_compile_loads_what_a_library_does_not_do() -> None:
    with fake_device() as (runtime, _):
        made = sj.sparse_jit(relu_of_product, target="cuda")
        operands = PROGRAMS["gcn"].operands()
        assert_same(made.lower(*operands).compile()(*operands), "gcn")
        loaded = runtime.injection.calls.count("load")
        made(*operands)
        assert runtime.injection.calls.count("load") == loaded > 0


@each_strategy
def test_entries_without_a_slot_are_told(transfer: Any) -> None:
    """As on the CPU: a ``ValueError``, with the arguments as they were."""

    def packed(A: Any, y: Any) -> Any:
        y += 1.0
        return A.asformat(sj.ELL(1))

    A, y = matrix("csr"), ints(7)
    before = y.copy()
    with fake_device():
        made = sj.sparse_jit(packed, target="cuda", transfer=transfer)
        with pytest.raises(ValueError, match="a row of a padded level has more entries") as caught:
            made(A, y)
    if "'y' may have changed" not in str(caught.value):
        np.testing.assert_array_equal(y, before)


def test_a_kernel_that_cannot_be_loaded_beforehand() -> None:
    clean = Injection()
    A, x = matrix("csr"), ints(5)
    made = sj.sparse_jit(spmv, target="cuda", library="never")
    with fake_device(injection=clean):
        made.lower(A, x).compile()
    with fake_device(injection=Injection(clean.calls.index("load"))):
        with pytest.raises(DeviceError, match="kernel k0 of spmv cannot be loaded"):
            made.lower(A, x).compile()
        np.testing.assert_array_equal(made(A, x), A @ x)


def test_results_that_no_array_can_have_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy has no bfloat16, so a result may not be handed over: the others end too."""
    handed: list[Any] = []

    def as_array(self: FakeRuntime, result: Any) -> FakeArray:
        if handed:
            raise sj.errors.UnsupportedError("no such array")
        handed.append(result)
        return FakeArray(self, result.array, result.release)

    monkeypatch.setattr(FakeRuntime, "as_array", as_array)
    with fake_device() as (runtime, _):
        x = to_fake(runtime, ints(5))
        with pytest.raises(sj.errors.UnsupportedError, match="no such array"):
            sj.sparse_jit(lambda x: (x + 1.0, x + 2.0, x + 3.0), target="cuda")(x)
        handed.clear()
        del x
        gc.collect()


# ---------------------------------------------------------------- results like the operands


def test_results_on_the_device_are_like_cupyx_where_it_has_a_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``cupyx_matrix`` itself needs CuPy; which results it is asked for does not."""
    asked: list[Any] = []
    monkeypatch.setattr("sparsejit.tensors._results.cupyx_matrix", asked.append)
    A = matrix("csr")
    with fake_device() as (runtime, _):
        buffers = [to_fake(runtime, array) for array in (A.indptr, A.indices, A.data)]
        wrap_result(sj.CSR, A.shape, buffers, 0.0, "cupyx")
        assert [tensor.shape for tensor in asked] == [A.shape]
        assert isinstance(wrap_result(sj.CSR, A.shape, buffers, 1.0, "cupyx"), sj.SparseTensor)
        assert isinstance(wrap_result(sj.CSR, A.shape, buffers, 0.0), sj.SparseTensor)
        counts = to_fake(runtime, A.data.astype(np.int64))
        found = wrap_result(sj.CSR, A.shape, [*buffers[:-1], counts], 0, "cupyx")
        assert isinstance(found, sj.SparseTensor)
        asked.clear()
        del buffers, counts, found
