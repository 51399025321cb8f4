"""Kernels for CUDA: their text, their parameters, and what they compute when replayed."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pytest_regressions.file_regression import FileRegressionFixture

import sparsejit as sj
from sparsejit.api import _target
from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.backends.numba_cuda._replay import replayed
from sparsejit.ir.device_code import ExtentParam, PointerParam, ScalarParam, StrideParam
from sparsejit.ir.device_statements import Launch, ReadBack, Schedule
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loop_writing import int_, plus
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Binary,
    Cast,
    Dealloc,
    DimOf,
    Expr,
    For,
    Let,
    Lit,
    Load,
    LoopFunc,
    Memref,
    Scan,
    SortPrefix,
    Stmt,
    Store,
    Var,
    View,
)
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import INDEX, DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes.outline_kernels import outline_kernels
from sparsejit.pipeline import default_pipeline
from sparsejit.sparsify_and_bufferize import StageOptions, sparsify_and_bufferize
from tests.matrix.combinations import Outcome, run_combination
from tests.matrix.test_matrix import combinations_of
from tests.sparsify_and_bufferize.programs import PROGRAMS
from tests.support.kernel_replay import ReplayBackend

F64 = DType.FLOAT64
N, I, J, K = (Var(name, INDEX) for name in ("n", "i", "j", "k"))
X, Y = Memref("x", F64, 1), Memref("y", F64, 1)
TWO_D = Memref("t", F64, 2)


@pytest.mark.parametrize("name", ["spmv_csr", "spmv_coo", "spmm_csr", "mttkrp", "half_sum"])
def test_text(name: str, file_regression: FileRegressionFixture) -> None:
    loops = sparsify_and_bufferize(PROGRAMS[name](), StageOptions())
    texts = [code.text for code in kernel_codes(outline_kernels(loops)).values()]
    file_regression.check("\n\n".join(texts), extension=".txt")


@pytest.mark.parametrize(
    "backend",
    [ReplayBackend(seed=1), ReplayBackend(ordered=True, blocks=2, seed=2)],
    ids=["raced", "ordered"],
)
def test_replayed_kernels_compute_what_numpy_does(
    backend: ReplayBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_target, "BACKENDS", {"interpreter": backend})
    outcomes = [run_combination(row) for row in combinations_of(2)[backend.blocks :: 24]]
    assert outcomes.count(Outcome.RIGHT) == len(outcomes)


DTYPES = [dtype for dtype in DType if dtype is not DType.BOOL]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.value)
def test_every_dtype(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product over rows (reductions), over columns (atomics), and a map."""
    monkeypatch.setattr(_target, "BACKENDS", {"interpreter": ReplayBackend(blocks=2)})
    rng = np.random.default_rng(3)
    dense = (rng.integers(1, 3, (40, 6)) * (rng.random((40, 6)) < 0.4)).astype(numpy_dtype(dtype))
    x, y = np.ones(6, dense.dtype), np.ones(40, dense.dtype)
    matrix = sj.asarray(dense, format=sj.CSR)
    function = sj.sparse_jit(
        lambda A, x, y: (A @ x, sj.einsum("ij,i->j", A, y), A * A), target="interpreter"
    )
    rows, columns, squares = function(matrix, x, y)
    wide = dense.astype(np.float64) if dtype in (DType.FLOAT16, DType.BFLOAT16) else dense
    assert rows.dtype == dense.dtype
    assert_array_equal(rows.astype(wide.dtype), wide.sum(axis=1).astype(wide.dtype))
    assert_array_equal(columns.astype(wide.dtype), wide.sum(axis=0).astype(wide.dtype))
    assert_array_equal(squares.to_numpy(), dense * dense)


def test_sums_over_a_whole_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_target, "BACKENDS", {"interpreter": ReplayBackend(blocks=3, seed=7)})
    drawn = sp.random_array((300, 50), density=0.1, rng=np.random.default_rng(1))
    matrix = sp.csr_array(drawn)
    total = sj.sparse_jit(lambda A: (A.sum(), A.any(), (A * A).sum()), target="interpreter")
    assert_allclose(total(matrix), (matrix.sum(), True, (matrix * matrix).sum()))


# ---------------------------------------------------------------- the contract of a kernel


def one_kernel(*body: Stmt, schedule: Schedule = Schedule.THREAD, params: Any = ()) -> Any:
    func = LoopFunc("f", (N, *params), (Launch("k0", schedule, body),), ())
    verify_loops(func)
    return kernel_codes(func)["k0"]


def loop(*body: Stmt, upper: Expr = N) -> For:
    return For(I, int_(0), upper, body, parallel=True)


def test_parameters_are_pointers_strides_and_scalars() -> None:
    factor = Var("factor", DType.COMPLEX128)
    z = Memref("z", DType.COMPLEX128, 2)
    scaled = Binary(BinaryOp.MUL, factor, Load(z, (I, int_(0))), DType.COMPLEX128)
    code = one_kernel(loop(Store(z, (I, int_(1)), scaled)), params=(factor, z))
    assert set(code.params) == {
        ScalarParam(N),
        ScalarParam(factor, "real"),
        ScalarParam(factor, "imag"),
        PointerParam(z),
        StrideParam(z, 0),
        StrideParam(z, 1),
    }
    array = np.arange(6.0).reshape(3, 2).astype(complex)
    given = {"n": 3, "z": array, "z_s0": 2, "z_s1": 1, "factor_real": 0.0, "factor_imag": 2.0}
    head = code.text[code.text.index("(") + 1 : code.text.index(")")]
    code.replay([given[name] for name in head.split(", ")], 1, 0)
    assert_array_equal(array[:, 1], 2j * array[:, 0])
    assert code.reads == code.writes == code.updates == {"z"}


def test_an_extent_needs_no_memory() -> None:
    """The array may have been given back: nothing but its extent is used any more."""
    code = one_kernel(loop(Store(Y, (I,), Cast(DimOf(TWO_D, 1), F64))), params=(TWO_D, Y))
    assert ExtentParam(TWO_D, 1) in code.params
    assert not any(isinstance(p, PointerParam) and p.memref == TWO_D for p in code.params)
    assert not any(isinstance(p, StrideParam) for p in code.params)


def test_an_access_outside_of_an_array_is_an_error() -> None:
    code = one_kernel(loop(Store(Y, (I,), Load(X, (plus(I, int_(1)),)))), params=(X, Y))
    x, y = np.arange(5.0), np.zeros(4)
    code.replay([4, x, y], 1, 0)
    assert_array_equal(y, [1, 2, 3, 4])
    with pytest.raises(IndexError, match=r"x\[4\] is outside of its 4 elements"):
        code.replay([4, x[:4], y], 1, 0)


def test_the_order_of_threads_is_the_seeds() -> None:
    """A kernel that is no parallel loop shows it: the last thread wins."""
    code = one_kernel(loop(Store(Y, (int_(0),), Load(X, (I,)))), params=(X, Y))
    winners = set()
    for seed in range(6):
        y = np.zeros(1)
        code.replay([200, np.arange(200.0), y], 1, seed)
        winners.add(y[0])
    assert len(winners) > 1


def test_lanes_exchange_in_step() -> None:
    text = (
        "def k(y):\n"
        "    mine = float64(cuda.laneid)\n"
        "    mine = mine + shuffle(mine, 16)\n"
        "    cuda.syncwarp()\n"
        "    y[cuda.grid(1)] = mine\n"
    )
    y = np.zeros(64)
    replayed(text, "k", ("y",), (y,), 64, 0)
    lane = np.arange(64) % 32
    assert_array_equal(y, lane + (lane ^ 16))


def test_an_exchange_that_a_lane_misses_is_an_error() -> None:
    text = "def k(y):\n    if cuda.laneid < 3:\n        cuda.syncwarp()\n"
    with pytest.raises(RuntimeError, match="3 of 32 lanes came to an exchange"):
        replayed(text, "k", ("y",), (np.zeros(1),), 32, 0)


@pytest.mark.parametrize("schedule", [Schedule.THREAD, Schedule.WARP])
def test_workspaces_belong_to_groups_of_threads(schedule: Schedule) -> None:
    """Each iteration fills a workspace of its own and sums it up."""
    work, acc = Memref("work", F64, 1), Var("acc", F64)
    fill = For(J, int_(0), N, (Store(work, (J,), Cast(plus(I, J), F64)),), parallel=True)
    added = Binary(BinaryOp.ADD, acc, Load(work, (K,)), F64)
    code = one_kernel(
        loop(
            Alloc(work, (N,)),
            fill,
            Let(acc, Lit(Const(0.0, F64)), mutable=True),
            For(K, int_(0), N, (Assign(acc, added),)),
            Store(Y, (I,), acc),
            Dealloc(work),
        ),
        schedule=schedule,
        params=(Y,),
    )
    ((memref, extents, group),) = code.workspaces
    assert (memref, extents) == (work, (N,))
    assert group == (32 if schedule is Schedule.WARP else 1)
    y, space = np.zeros(50), np.full((2 * code.block // group, 50), np.nan)
    names = [getattr(p, "memref", N).name for p in code.params]
    code.replay([{"n": 50, "y": y, "work": space}[name] for name in names], 2, 1)
    assert_array_equal(y, np.arange(50) * 50 + 50 * 49 / 2)
    if schedule is Schedule.WARP:
        assert "cuda.syncwarp()" in code.text


def test_views_inside_a_kernel_are_arithmetic() -> None:
    row = Memref("row", F64, 1)
    make = View(row, TWO_D, (I, N), (int_(1), N), (1, -1), (0,))
    code = one_kernel(loop(make, Store(Y, (I,), Load(row, (I,)))), params=(TWO_D, Y))
    t, y = np.arange(20.0).reshape(4, 5), np.zeros(4)
    arguments = {"n": 4, "t": t, "t_s0": 5, "t_s1": 1, "y": y}
    head = code.text[code.text.index("(") + 1 : code.text.index(")")]
    code.replay([arguments[name] for name in head.split(", ")], 1, 0)
    assert_array_equal(y, [t[i, 4 - i] for i in range(4)])


def test_a_prefix_is_sorted_where_it_starts() -> None:
    numbers = Memref("numbers", INDEX, 1)
    code = one_kernel(SortPrefix(numbers, N), schedule=Schedule.ONE_THREAD, params=(numbers,))
    values = np.array([5, 3, 9, 1, 0])
    code.replay([4, values], 2, 0)
    assert_array_equal(values, [1, 3, 5, 9, 0])


def test_names_that_a_kernel_needs_are_not_those_of_arrays() -> None:
    cuda, add = Memref("cuda", F64, 1), Memref("atomic_add", F64, 1)
    code = one_kernel(loop(Store(cuda, (I,), Load(add, (I,)))), params=(cuda, add))
    x, y = np.arange(3.0), np.zeros(3)
    names = [getattr(p, "memref", N).name for p in code.params]
    code.replay([{"n": 3, "cuda": y, "atomic_add": x}[name] for name in names], 1, 0)
    assert_array_equal(y, x)


SEEDED: dict[str, tuple[str, Callable[[str], str]]] = {
    "no shuffle at a distance": ("spmv_csr", lambda text: text.replace(", 4)", ", 8)")),
    "lanes take the same": ("spmv_csr", lambda text: text.replace("+ lane", "+ 0")),
    "a group too many": ("spmv_csr", lambda text: text.replace("i_2 += groups", "i_2 += 1")),
}


@pytest.mark.parametrize("fault", SEEDED)
def test_replay_sees_faults_in_texts(fault: str) -> None:
    """What the lanes of a warp do wrong shows in the result."""
    name, change = SEEDED[fault]
    code = kernel_codes(outline_kernels(sparsify_and_bufferize(PROGRAMS[name](), StageOptions())))
    matrix = sp.csr_array(sp.random_array((40, 90), density=0.6, rng=np.random.default_rng(0)))
    wrong = change(code["k1"].text)
    assert wrong != code["k1"].text
    x, y = np.arange(1.0, 91.0), np.zeros(40)
    pointers = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
    arguments = dict(zip(("A_pos1", "A_crd1", "A_vals"), pointers, strict=True))
    arguments |= {"b0": y, "x": x}
    head = wrong[wrong.index("(") + 1 : wrong.index(")")].split(", ")
    replayed(wrong, "k1", head, [arguments[word] if word != "m" else 40 for word in head], 256, 0)
    assert not np.allclose(y, matrix.toarray() @ x)


def test_bfloat16_travels_as_its_bits() -> None:
    half, wide = Memref("h", DType.BFLOAT16, 1), Memref("w", DType.FLOAT32, 1)
    code = one_kernel(
        loop(Store(wide, (I,), Cast(Load(half, (I,)), DType.FLOAT32))), params=(half, wide)
    )
    given, result = np.array([1.5, -2.0], ml_dtypes.bfloat16), np.zeros(2, np.float32)
    names = [getattr(p, "memref", N).name for p in code.params]
    code.replay([{"n": 2, "h": given, "w": result}[name] for name in names], 1, 0)
    assert_array_equal(result, [1.5, -2.0])


# ---------------------------------------------------------------- sparse results in two phases


def two_phases(name: str) -> LoopFunc:
    pipeline = default_pipeline()
    return outline_kernels(pipeline.lower(pipeline.prepare(PROGRAMS[name]())))


def test_rows_that_are_appended_are_counted_scanned_and_filled() -> None:
    func = two_phases("add_csr")
    kinds = [
        stmt.schedule if isinstance(stmt, Launch) else type(stmt)
        for stmt in func.body
        if isinstance(stmt, Launch | Scan | ReadBack)
    ]
    count = fill = Schedule.THREAD
    assert kinds == [Schedule.ONE_THREAD, count, Scan, ReadBack, fill, Schedule.ONE_THREAD]


def test_scattered_rows_have_room_of_their_own() -> None:
    """A group of threads starts from a copy of what is in the room, and the original stays."""
    func = two_phases("spgemm_rows")
    codes = kernel_codes(func)
    rooms = [code for code in codes.values() if code.workspaces]
    assert len(rooms) == 3  # counting entries, measuring a list, filling
    spaces = [space for code in rooms for space in code.workspaces]
    assert len({memref.name for memref, _, _ in spaces}) == len(spaces)
    for code in rooms:
        for _, (extent,), group in code.workspaces:
            assert group == 32
            assert isinstance(extent, DimOf)
            original = extent.memref.name
            assert (original in code.reads) == ("stamps" in original)  # nothing is in the others
            assert original not in code.writes


@pytest.mark.parametrize("seed", range(3))
def test_products_of_sparse_matrices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More warps than rows, and fewer; the room of a warp is used for several rows."""
    monkeypatch.setattr(_target, "BACKENDS", {"interpreter": ReplayBackend(blocks=2, seed=seed)})
    rng = np.random.default_rng(seed)
    rows = (3, 17, 60)[seed]
    one = sp.csr_array(sp.random_array((rows, 20), density=0.3, rng=rng))
    two = sp.csr_array(sp.random_array((20, 9), density=0.3, rng=rng))
    product = sj.sparse_jit(lambda A, B: A @ B, target="interpreter")(one, two)
    assert product.has_canonical_format
    assert_allclose(product.toarray(), one.toarray() @ two.toarray())
