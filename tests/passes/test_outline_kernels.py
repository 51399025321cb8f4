"""Outlining: what becomes a kernel, what the host keeps, and that the function means the same."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pytest_regressions.file_regression import FileRegressionFixture

import sparsejit as sj
import tests.matrix.combinations as combinations
from sparsejit.backends import BACKENDS
from sparsejit.errors import UnsupportedError
from sparsejit.formats import NV24
from sparsejit.ir.device_statements import Launch, ReadBack, Require, Schedule
from sparsejit.ir.host_form import host_form
from sparsejit.ir.loop_printing import print_loops
from sparsejit.ir.loop_uses import is_pure
from sparsejit.ir.loop_walk import all_statements, expressions
from sparsejit.ir.loop_writing import int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assemble,
    Assign,
    Binary,
    Cast,
    Copy,
    Dealloc,
    DenseResult,
    DimOf,
    Expr,
    For,
    If,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Push,
    Resize,
    Scan,
    Sort,
    Stmt,
    Store,
    Var,
    View,
    While,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes.outline_kernels import outline_kernels
from sparsejit.pipeline import Pipeline, default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from tests.cubin.programs import lowered_loops
from tests.matrix.combinations import Outcome, run_combination
from tests.matrix.test_matrix import combinations_of
from tests.sparsify_and_bufferize.programs import PROGRAMS
from tests.support.kernel_replay import ReplayBackend

F64 = DType.FLOAT64
ARRAYS = Alloc | Dealloc | Copy | View | Scan | Sort | Resize
ON_HOST = Let | Assign | ARRAYS | ReadBack | Launch | Require


def host_statements(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """What the host itself does."""
    for stmt in body:
        yield stmt
        match stmt:
            case For() | While():
                yield from host_statements(stmt.body)
            case If():
                yield from host_statements((*stmt.then, *stmt.orelse))
            case _:
                pass


def check_outlined(func: LoopFunc) -> None:
    verify_loops(func, "outline-kernels")
    verify_loops(host_form(func), "outline-kernels")
    for stmt in host_statements(func.body):
        assert isinstance(stmt, ON_HOST | For | While | If), stmt
        assert not (isinstance(stmt, For) and stmt.parallel)
        assert all(is_pure(part) for part in expressions(stmt)), stmt
    kernels = [stmt for stmt in host_statements(func.body) if isinstance(stmt, Launch)]
    assert len({kernel.kernel for kernel in kernels}) == len(kernels)
    for stmt in all_statements([inner for kernel in kernels for inner in kernel.body]):
        assert not isinstance(stmt, Push | Resize | Copy | Scan | Sort | Assemble)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_no_work_on_arrays_is_left_on_the_host(name: str, ordered: bool) -> None:
    loops = sparsify_and_bufferize(PROGRAMS[name](), StageOptions())
    check_outlined(outline_kernels(loops, ordered=ordered))


@pytest.mark.parametrize(
    "name", ["spmv_csr", "spmv_coo", "spmv_csc", "spmm_csr", "mttkrp", "add_csr", "transposed_csr"]
)
def test_text(name: str, file_regression: FileRegressionFixture) -> None:
    loops = sparsify_and_bufferize(PROGRAMS[name](), StageOptions())
    file_regression.check(print_loops(outline_kernels(loops)))


def with_outlining(ordered: bool) -> Pipeline:
    pipeline = default_pipeline()
    last = ("outline-kernels", partial(outline_kernels, ordered=ordered))
    return replace(pipeline, loop_passes=(*pipeline.loop_passes, last))


@pytest.mark.parametrize("ordered", [False, True])
def test_outlined_functions_mean_the_same(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = with_outlining(ordered)

    def chosen(*, stage_options: StageOptions) -> Pipeline:
        return replace(pipeline, stage_options=stage_options)

    monkeypatch.setattr(combinations, "default_pipeline", chosen)
    outcomes = [run_combination(row) for row in combinations_of(int(ordered))[::16]]
    assert outcomes.count(Outcome.RIGHT) == len(outcomes)


# ---------------------------------------------------------------- single rules

N, I, J = (Var(name, INDEX) for name in ("n", "i", "j"))
X, Y, G = (Memref(name, F64, 1) for name in "xyg")
IX = Memref("ix", INDEX, 1)


def loop(*body: Stmt, parallel: bool = False) -> For:
    return For(I, int_(0), N, body, parallel)


def launches(func: LoopFunc) -> list[Launch]:
    return [stmt for stmt in all_statements(func.body) if isinstance(stmt, Launch)]


def scatter(op: BinaryOp | None = BinaryOp.ADD, target: Memref = Y) -> Store:
    return Store(target, (Load(IX, (I,)),), Load(X, (I,)), op)


def test_reductions_race_where_they_may_be_reassociated() -> None:
    func = LoopFunc("f", (N, IX, X, Y), (loop(scatter()),), ())
    (kernel,) = launches(outline_kernels(func))
    assert kernel.schedule is Schedule.THREAD
    assert kernel.atomics == (Y,)
    (kernel,) = launches(outline_kernels(func, ordered=True))
    assert kernel.schedule is Schedule.ONE_THREAD
    assert kernel.atomics == ()


def test_reductions_of_integers_race_in_any_case() -> None:
    x, y = Memref("x", DType.INT32, 1), Memref("y", DType.INT32, 1)
    store = Store(y, (Load(IX, (I,)),), Load(x, (I,)), BinaryOp.ADD)
    func = LoopFunc("f", (N, IX, x, y), (loop(store),), ())
    (kernel,) = launches(outline_kernels(func, ordered=True))
    assert kernel.atomics == (y,)


@pytest.mark.parametrize(
    "store",
    [
        scatter(None),  # the last one wins
        scatter(BinaryOp.MUL),  # no atomic product
        Store(Y, (Load(IX, (I,)),), Load(Y, (I,)), BinaryOp.ADD),  # reads what it updates
    ],
)
def test_what_depends_on_the_order_stays_in_one_thread(store: Store) -> None:
    func = LoopFunc("f", (N, IX, X, Y), (loop(store),), ())
    (kernel,) = launches(outline_kernels(func))
    assert kernel.schedule is Schedule.ONE_THREAD


def test_a_view_of_what_is_read_does_not_race() -> None:
    view = Memref("v", F64, 1)
    make = View(view, Y, (int_(0),), (N,), (1,))
    store = Store(view, (Load(IX, (I,)),), Load(Y, (I,)), BinaryOp.ADD)
    func = LoopFunc("f", (N, IX, Y), (make, loop(store)), ())
    assert [kernel.schedule for kernel in launches(outline_kernels(func))] == [Schedule.ONE_THREAD]


def test_views_that_nothing_uses_are_left_out() -> None:
    """What they view may not be on the device: nothing else uses it."""
    row, part = Memref("v", F64, 1), Memref("w", F64, 1)
    views = (View(row, X, (int_(0),), (N,), (1,)), View(part, row, (int_(0),), (N,), (1,)))
    func = LoopFunc("f", (N, X, Y), (*views, loop(Store(Y, (I,), Load(Y, (I,))))), ())
    assert not any(isinstance(stmt, View) for stmt in outline_kernels(func).body)


def test_parallel_loops_in_one_order_share_one_warp() -> None:
    inner = For(J, Load(IX, (I,)), N, (Store(Y, (J,), Load(X, (I,))),), parallel=True)
    (kernel,) = launches(outline_kernels(LoopFunc("f", (N, IX, X, Y), (loop(inner),), ())))
    assert kernel.schedule is Schedule.WARP


def test_a_loop_around_loops_over_extents_stays_on_the_host() -> None:
    inner = For(J, int_(0), N, (Store(Y, (J,), Load(X, (J,))),), parallel=True)
    func = outline_kernels(LoopFunc("f", (N, X, Y), (loop(inner),), ()))
    (outer,) = func.body
    assert isinstance(outer, For)
    assert isinstance(outer.body[0], Launch)


def test_a_variable_goes_from_a_kernel_to_the_host() -> None:
    """The number of positive elements is the size of the next array."""
    count = Var("count", INDEX)
    zero = Lit(Const(0.0, F64))
    positive = Binary(BinaryOp.GT, Load(X, (I,)), zero, DType.BOOL)
    body = (
        Let(count, int_(0), mutable=True),
        loop(If(positive, (Assign(count, plus(count, int_(1))),))),
        Alloc(Y, (count,), Const(1.5, F64)),
    )
    func = LoopFunc("f", (N, X), body, (DenseResult(Y),))
    outlined = outline_kernels(func)
    check_outlined(outlined)
    assert any(isinstance(stmt, ReadBack) for stmt in outlined.body)
    assert_array_equal(run(outlined, 4, np.array([1.0, -1.0, 2.0, 0.0]))[0], [1.5, 1.5])


def run(func: LoopFunc, *arguments: object) -> tuple[object, ...]:
    backend = BACKENDS["interpreter"]
    return backend.load(backend.emit(func), cache=False)(arguments)


def grown(value: Var, count: Var) -> tuple[Stmt, ...]:
    return (Push(G, count, Load(X, (value,))), Assign(count, plus(count, int_(1))))


def test_an_array_that_grows_is_measured_and_filled() -> None:
    count = Var("count", INDEX)
    zero = Lit(Const(0.0, F64))
    positive = Binary(BinaryOp.GT, Load(X, (I,)), zero, DType.BOOL)
    body = (
        Alloc(G, (int_(0),)),
        Let(count, int_(0), mutable=True),
        loop(If(positive, grown(I, count))),
        Resize(G, count),
    )
    func = LoopFunc("f", (N, X), body, (DenseResult(G),))
    outlined = outline_kernels(func)
    check_outlined(outlined)
    assert not any(isinstance(stmt, Copy) for stmt in outlined.body)  # it has its size
    assert_array_equal(run(outlined, 4, np.array([1.0, -1.0, 2.0, 3.0]))[0], [1.0, 2.0, 3.0])


def replayed(func: LoopFunc, *arguments: object) -> tuple[object, ...]:
    """Run the outlined function as a device would."""
    outlined = outline_kernels(func)
    check_outlined(outlined)
    backend = ReplayBackend(blocks=2, seed=3)
    results: tuple[object, ...] = backend.load(backend.emit(func))(arguments)
    return results


def test_a_size_that_depends_on_what_was_pushed_is_known_push_by_push() -> None:
    """What is pushed as long as the last pushed element is small: room is made for each of them."""
    count = Var("count", INDEX)
    last = Load(G, (Binary(BinaryOp.SUB, count, int_(1), INDEX),))
    small = Binary(BinaryOp.LT, last, Lit(Const(3.0, F64)), DType.BOOL)
    body = (
        Alloc(G, (int_(0),)),
        Push(G, int_(0), Load(X, (int_(0),))),
        Let(count, int_(1), mutable=True),
        loop(If(small, grown(I, count))),
        Resize(G, count),
    )
    func = LoopFunc("f", (N, X), body, (DenseResult(G),))
    verify_loops(func)
    for values, wanted in (([1.0, 2, 5, 2, 1], [1.0, 1, 2, 5]), ([4.0, 1], [4.0]), ([1.0], [1, 1])):
        found = replayed(func, len(values), np.array(values))[0]
        assert_array_equal(found, np.array(wanted))


def test_an_array_that_changes_its_size_in_each_pass_is_measured_in_each_pass() -> None:
    """Pass i leaves the elements of x above i: each pass fills the array anew and cuts it."""
    count, total = Var("count", INDEX), Var("total", F64)
    k = Var("k", INDEX)
    large = Binary(BinaryOp.GT, Load(X, (J,)), Cast(I, F64), DType.BOOL)
    fill = For(J, int_(0), N, (If(large, grown(J, count)),))
    summed = Assign(total, Binary(BinaryOp.ADD, total, Load(G, (k,)), F64))
    body = (
        Alloc(G, (int_(0),)),
        Alloc(Y, (N,)),
        loop(
            Let(count, int_(0), mutable=True),
            fill,
            Resize(G, count),
            Let(total, Lit(Const(0.0, F64)), mutable=True),
            For(k, int_(0), DimOf(G, 0), (summed,)),
            Store(Y, (I,), total),
        ),
    )
    func = LoopFunc("f", (N, X), body, (DenseResult(G), DenseResult(Y)))
    verify_loops(func)
    left, sums = replayed(func, 4, np.array([5.0, 1.0, 3.0, 2.0]))
    assert_array_equal(left, [5.0])
    assert_array_equal(sums, [11.0, 10.0, 8.0, 5.0])


def test_an_array_that_takes_over_another_one_has_its_size() -> None:
    other = Memref("other", F64, 1)
    body = (
        Alloc(G, (N,), Const(1.0, F64)),
        loop(
            Alloc(other, (I,), Const(2.0, F64)),
            Resize(G, DimOf(other, 0)),
            Copy(G, other),
            Dealloc(other),
        ),
    )
    func = LoopFunc("f", (N,), body, (DenseResult(G),))
    verify_loops(func)
    outlined = outline_kernels(func)
    assert not launches(outlined)
    for size in range(4):
        assert_array_equal(replayed(func, size)[0], np.full(max(size - 1, 0), 2.0))


def test_entries_that_are_in_order_keep_it() -> None:
    """There is nothing to sort by, and a library sorts by something."""
    order = Memref("order", INDEX, 1)
    func = LoopFunc("f", (N,), (Sort(order, (), (), N),), (DenseResult(order),))
    verify_loops(func)
    assert not any(isinstance(stmt, Sort) for stmt in outline_kernels(func).body)
    assert_array_equal(replayed(func, 4)[0], [0, 1, 2, 3])


def assembled(fmt: sj.Format) -> LoopFunc:
    """Assemble entries in a format whose last level has a fixed number of slots."""
    crd, vals = Memref("crd", DType.INT32, 1), Memref("vals", F64, 1)
    keys = tuple(Memref(f"at{level}", INDEX, 1) for level in range(fmt.num_levels))
    extents: tuple[Expr, ...] = (N, *(N for _ in keys[2:]), int_(4))
    make = Assemble((crd, vals), fmt, extents, keys, X, DimOf(X, 0), Const(0.0, F64))
    return LoopFunc("f", (N, *keys, X), (make,), (DenseResult(crd), DenseResult(vals)))


@pytest.mark.parametrize(
    ("fmt", "keys", "crd", "vals"),
    [
        (sj.ELL(2), ([0, 0, 2], [1, 3, 0]), [1, 3, -1, -1, 0, -1], [1.0, 2, 0, 0, 3, 0]),
        (sj.ELL(2), ([], []), [-1] * 6, [0.0] * 6),
        (
            NV24,
            ([0, 0, 2], [1, 1, 0], [1, 3, 0]),
            [0, 1, 1, 3, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1],
            [0.0, 0, 1, 2, *[0] * 8, 3, *[0] * 5],
        ),
    ],
)
def test_levels_with_a_fixed_number_of_slots(
    fmt: sj.Format, keys: tuple[list[int], ...], crd: list[int], vals: list[float]
) -> None:
    values = np.arange(1.0, len(keys[0]) + 1)
    func = assembled(fmt)
    verify_loops(func)
    arguments = (3, *(np.array(key, np.int64) for key in keys), values)
    found = replayed(func, *arguments)
    assert_array_equal(found[0], crd)
    assert_array_equal(found[1], vals)
    for one, other in zip(run(func, *arguments), found, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("fmt", "message"),
    [
        (sj.ELL(1), "a row of a padded level has more entries than slots"),
        (NV24, "a block of a structured level has more entries than slots"),
    ],
)
def test_a_level_without_room_is_told(fmt: sj.Format, message: str) -> None:
    places = np.arange(3)
    keys = [np.zeros(3, np.int64)] * (fmt.num_levels - 1)
    func = assembled(fmt)
    outlined = outline_kernels(func)
    check_outlined(outlined)
    for attempt in (replayed, run):
        with pytest.raises(ValueError, match=message):
            attempt(func, 3, *keys, places, np.ones(3))
    with pytest.raises(ValueError, match=message):
        run(host_form(outlined), 3, *keys, places, np.ones(3))


def _halved_often(value: float) -> float:
    while value > 1:
        value /= 2
    return value


def test_functions_that_only_numba_compiles_are_refused() -> None:
    loops = lowered_loops(lambda x: sj.unary(x, present=_halved_often), np.ones(4))
    with pytest.raises(UnsupportedError, match="compiled by Numba for the CPU"):
        outline_kernels(loops)


def test_memory_of_an_iteration_is_sized_by_the_largest() -> None:
    """A row of entries of its own, for each row: the longest row says how much a warp needs."""
    row = Memref("row", F64, 1)
    start, acc = Var("start", INDEX), Var("acc", F64)
    length = Binary(BinaryOp.SUB, Load(IX, (plus(I, int_(1)),)), start, INDEX)
    fill = For(J, int_(0), length, (Store(row, (J,), Load(X, (plus(start, J),))),), parallel=True)
    total = Assign(acc, Binary(BinaryOp.ADD, acc, Load(row, (Var("k", INDEX),)), F64))
    body = (
        Let(start, Load(IX, (I,))),
        Alloc(row, (length,)),
        fill,
        Let(acc, Lit(Const(0.0, F64)), mutable=True),
        For(Var("k", INDEX), int_(0), length, (total,)),
        Store(Y, (I,), acc),
        Dealloc(row),
    )
    func = LoopFunc(
        "f", (N, IX, X), (Alloc(Y, (N,)), loop(*body, parallel=True)), (DenseResult(Y),)
    )
    verify_loops(func)
    outlined = outline_kernels(func)
    check_outlined(outlined)
    assert [kernel.schedule for kernel in launches(outlined)] == [Schedule.THREAD, Schedule.WARP]
    backend = ReplayBackend(blocks=1, seed=2)
    kernel = backend.load(backend.emit(func))
    (result,) = kernel([3, np.array([0, 2, 2, 7]), np.arange(1.0, 8.0)])
    assert_array_equal(result, [3.0, 0.0, 25.0])
