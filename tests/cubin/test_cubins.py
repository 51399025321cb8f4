"""Kernels compiled to cubins, without a device: what they use, and the instructions they have."""

from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from sparsejit.backends._spellings import is_legal_binary, is_legal_unary
from sparsejit.backends.numba_cuda import _compile, kernel_codes
from sparsejit.backends.numba_cuda._compile import Usage, ptx_of, usage_of
from sparsejit.backends.numba_cuda.kernels import kernel_words
from sparsejit.ir.device_code import ExtentParam, ScalarParam, StrideParam
from sparsejit.ir.device_statements import Launch, Schedule
from sparsejit.ir.loop_walk import expr_dtype
from sparsejit.ir.loop_writing import int_
from sparsejit.ir.loops import (
    Binary,
    Cast,
    Expr,
    For,
    Load,
    LoopFunc,
    Memref,
    Stmt,
    Store,
    Unary,
    Var,
)
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.scalar import result_dtype
from sparsejit.ir.types import INDEX, DType
from sparsejit.passes.outline_kernels import outline_kernels
from tests.cubin.programs import (
    CONVERSIONS,
    PROGRAMS,
    REAL,
    REST,
    SCHEDULED,
    Kernel,
    kernels_of,
    lowered_loops,
)

pytestmark = pytest.mark.cubin

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
TOOLS = ("numba-cuda", "numba", "nvidia-nvvm", "nvidia-nvjitlink")
MOST_REGISTERS = 128
"""With more of them, fewer than half of a multiprocessor's threads can be resident."""


@cache
def usage(text: str, entry: str, words: tuple[Memref | Var, ...], arch: str) -> Usage:
    """Programs share kernels, such as those that fill an array."""
    return usage_of(text, entry, words, arch)


def check_registers_only(kernels: Iterable[Kernel]) -> None:
    for kernel in kernels:
        for arch in ARCHITECTURES:
            found = usage(kernel.text, kernel.entry, kernel.words, arch)
            assert (found.spills, found.local, found.stack) == (0, 0, 0), f"{kernel.name}, {arch}"
            assert 0 < found.registers <= MOST_REGISTERS, f"{kernel.name}, {arch}"


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", [*PROGRAMS, *CONVERSIONS])
def test_nothing_spills_on_any_architecture(name: str, dtype: str) -> None:
    check_registers_only(kernels_of(name, dtype))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("schedule", [Schedule.THREAD, Schedule.BALANCED])
@pytest.mark.parametrize("name", SCHEDULED)
def test_nothing_spills_in_any_schedule(name: str, schedule: Schedule, dtype: str) -> None:
    """A warp an iteration is what all the others have that have loops inside."""
    check_registers_only(kernels_of(name, dtype, schedule))


def test_registers(file_regression: FileRegressionFixture, original_datadir: Path) -> None:
    """A table of what may spill; made with other versions of the tools, it says nothing."""
    made = ", ".join(f"{tool} {metadata.version(tool)}" for tool in TOOLS)
    golden = original_datadir / "test_registers.txt"
    if golden.exists() and golden.read_text("utf-8").splitlines()[0] != made:
        pytest.skip(f"the table was made with {golden.read_text('utf-8').splitlines()[0]}")
    lines = [
        made,
        f"kernel: registers, bytes of spills, of local memory ({'; '.join(ARCHITECTURES)})",
    ]
    for name, dtype in TABLE:
        for kernel in kernels_of(name, dtype):
            found = [usage(kernel.text, kernel.entry, kernel.words, a) for a in ARCHITECTURES]
            told = "; ".join(f"{u.registers}, {u.spills}, {u.local}" for u in found)
            lines.append(f"{kernel.name} {dtype}: {told}")
    file_regression.check("\n".join(lines) + "\n", extension=".txt")


TABLE = [
    *((name, dtype) for name in REST for dtype in REAL),
    *((name, "complex128") for name in ("spmv csr", "spmm csr", "sddmm csr", "spgemm csr")),
]


N, I = Var("n", INDEX), Var("i", INDEX)


def ptx_of_loop(*body: Stmt, atomics: tuple[Memref, ...] = ()) -> str:
    loop = For(I, int_(0), N, body, parallel=True)
    func = LoopFunc("f", (N,), (Launch("k0", Schedule.THREAD, (loop,), atomics),), ())
    code = kernel_codes(func)["k0"]
    return ptx_of(code.text, code.entry, kernel_words(code), "sm_90")


@pytest.mark.parametrize(
    ("dtype", "op", "instruction"),
    [
        (DType.FLOAT32, BinaryOp.ADD, "red.add.f32"),
        (DType.FLOAT64, BinaryOp.ADD, "red.add.f64"),
        (DType.FLOAT64, BinaryOp.SUB, "red.add.f64"),
        (DType.COMPLEX64, BinaryOp.ADD, "red.add.f32"),
        (DType.COMPLEX128, BinaryOp.ADD, "red.add.f64"),
        (DType.INT32, BinaryOp.ADD, "red.add.s32"),
        (DType.INT64, BinaryOp.ADD, "red.add.u64"),
        (DType.UINT32, BinaryOp.MAX, "red.max.u32"),
        (DType.INT64, BinaryOp.MIN, "red.min.s64"),
        (DType.UINT64, BinaryOp.OR, "red.or.b64"),
        (DType.INT32, BinaryOp.AND, "red.and.b32"),
        (DType.INT32, BinaryOp.XOR, "red.xor.b32"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_racing_updates_are_one_instruction(dtype: DType, op: BinaryOp, instruction: str) -> None:
    at, x, y = Memref("at", INDEX, 1), Memref("x", dtype, 1), Memref("y", dtype, 1)
    store = Store(y, (Load(at, (I,)),), Load(x, (I,)), op)
    text = ptx_of_loop(store, atomics=(y,))
    assert text.count(instruction) == (2 if dtype.is_complex else 1)


def test_the_entry_and_its_parameters_are_as_told() -> None:
    loops = lowered_loops(*_spmv_csr())
    code = kernel_codes(outline_kernels(loops))["k1"]
    text = ptx_of(code.text, code.entry, kernel_words(code), "sm_90")
    assert f".visible .entry {code.entry}(" in text
    kinds = [line.split()[1] for line in text.splitlines() if line.strip().startswith(".param")]
    assert kinds == [".u64"] * len(code.params)
    numbers = [p for p in code.params if isinstance(p, ExtentParam | StrideParam | ScalarParam)]
    assert numbers
    assert "shfl.sync" in text


def _spmv_csr() -> tuple[Any, ...]:
    function, operands = PROGRAMS["spmv csr"]
    return function, *operands("float64")


def test_cubins_are_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    code = kernel_codes(outline_kernels(lowered_loops(*_spmv_csr())))["k1"]
    cubin = code.cubin("sm_90")
    assert cubin[:4] == b"\x7fELF"
    monkeypatch.setattr(_compile, "ptx_of", None)  # a second compilation would call it
    assert code.cubin("sm_90") == cubin
    with pytest.raises(TypeError):
        code.cubin("sm_80")


def operations(dtype: DType) -> list[Expr]:
    """Every operation and conversion of elements of a dtype."""
    one, two = (Load(Memref(name, dtype, 1), (I,)) for name in "ab")
    found: list[Expr] = [Cast(one, other) for other in DType if other is not dtype]
    if dtype is not dtype.compute:
        return found
    wide_only = dtype is DType.COMPLEX64  # its functions are those of complex128, narrowed
    unary = [op for op in UnaryOp if is_legal_unary(op, dtype)]
    found += [Unary(op, one, result_dtype(op, dtype)) for op in unary[:: 8 if wide_only else 1]]
    found += [
        Binary(op, one, two, result_dtype(op, dtype))
        for op in BinaryOp
        if is_legal_binary(op, dtype)
    ]
    return found


@pytest.mark.parametrize("dtype", list(DType), ids=lambda dtype: dtype.value)
def test_every_operation_compiles(dtype: DType) -> None:
    """All in few kernels, since a kernel takes longer than an operation (but for complex ones)."""
    found = operations(dtype)
    size = 6 if dtype.is_complex else 24
    for first in range(0, len(found), size):
        stores = [
            Store(Memref(f"r{number}", expr_dtype(expr), 1), (I,), expr)
            for number, expr in enumerate(found[first : first + size])
        ]
        assert ".visible .entry k0(" in ptx_of_loop(*stores)
