"""Kernels for the tests of launch plans: functions, operands, and what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.backends.cusparse import library_codes
from sparsejit.ir.device_code import KernelCode
from sparsejit.ir.device_statements import LibraryOp
from sparsejit.ir.loops import LoopFunc, Memref
from sparsejit.ir.types import IndexWidths
from sparsejit.passes.outline_kernels import outline_kernels
from sparsejit.pipeline import StageOptions
from sparsejit.runtime.plan import LaunchPlan, Strategy
from sparsejit.runtime.planning import plan_launch
from sparsejit.runtime.transfer_steps import Home, Layout, Placement
from sparsejit.tensors import stored_facts
from tests.support.hand_codes import hand_kernels, launched

__all__ = ["CASES", "Case", "Prepared", "prepare"]

ALL_KERNELS = frozenset(op.value for op in LibraryOp if op is not LibraryOp.GEMM)


@dataclass(frozen=True, slots=True)
class Case:
    """A function, its operands by a random generator, and whether a library does it.

    ``is_outlined``: its kernels are those of the outlining pass, since it has control flow.
    """

    name: str
    function: Callable[..., Any]
    operands: Callable[[np.random.Generator], tuple[Any, ...]]
    is_library: bool = True
    is_outlined: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The loops of a case with kernels, their codes, and the flat arguments of a call."""

    reference: LoopFunc
    func: LoopFunc
    kernels: Mapping[str, KernelCode]
    arguments: tuple[Any, ...]

    def plan(
        self,
        strategy: Strategy,
        home: Home = Home.HOST,
        *,
        is_large: bool = False,
        results: Home | None = None,
    ) -> LaunchPlan:
        """Return the plan for these arguments, all of them at home in one place."""
        placements = {
            param.name: replace(placement_of(argument), home=home, is_large=is_large)
            for param, argument in zip(self.func.params, self.arguments, strict=True)
            if isinstance(param, Memref)
        }
        return plan_launch(
            self.func, strategy, placements, self.kernels, library_codes(), results or home
        )

    def fresh_arguments(self) -> list[Any]:
        """Return the arguments with arrays of their own."""
        return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in self.arguments]


def placement_of(array: Any) -> Placement:
    """Return where a host array lies."""
    if array.flags.c_contiguous:
        return Placement()
    return Placement(layout=Layout.FORTRAN if array.flags.f_contiguous else Layout.STRIDED)


def prepare(case: Case, seed: int = 0) -> Prepared:
    """Trace and lower a case; its kernels are run by the interpreter."""
    operands = case.operands(np.random.default_rng(seed))
    function = sj.sparse_jit(case.function, target="interpreter")
    call, receiver = function._call(operands, {})
    lowered = function.lower(*operands)
    program, numbers, _ = function._program(call, receiver, lowered._target)
    full = [
        param.name
        for param, operand in zip(program.func.params, call.operands, strict=True)
        if stored_facts(operand).has_full_batches
    ]
    options = StageOptions(
        library_kernels=ALL_KERNELS if case.is_library else frozenset(),
        index_widths=IndexWidths(32, 32),
        full_batches=frozenset(full),
    )
    pipeline = replace(program.pipeline, stage_options=options)
    loops = pipeline.lower(program.func)
    func = outline_kernels(loops) if case.is_outlined else launched(loops)
    arguments = program.arguments(numbers, call.operands)
    return Prepared(loops, func, hand_kernels(func), tuple(arguments))


# ---------------------------------------------------------------- the functions


def spmv(A: Any, x: Any, y: Any) -> None:
    i, j = sj.indices("i j")
    y[i] += A[i, j] * x[j]


def fresh_spmv(A: Any, x: Any) -> Any:
    return A @ x


def scaled_spmv(A: Any, x: Any, y: Any, b: Any) -> None:
    i, j = sj.indices("i j")
    y[i] = 2.0 * b * y[i] + A[i, j] * x[j]


def spmm(A: Any, B: Any, C: Any) -> None:
    i, j, k = sj.indices("i j k")
    C[i, j] += A[i, k] * B[k, j]


def batched_spmm(A: Any, B: Any, C: Any) -> None:
    b, i, j, k = sj.indices("b i j k")
    C[b, i, j] += A[b, i, k] * B[b, k, j]


def batch_of_dense(A: Any, B: Any) -> Any:
    return A @ B


def sddmm(S: Any, A: Any, B: Any) -> None:
    i, j, k = sj.indices("i j k")
    S[i, j] += sj.where_stored(S[i, j], A[i, k] * B[k, j])


def spgemm(A: Any, B: Any) -> Any:
    return A @ B


def scaled(A: Any, s: Any, out: Any) -> None:
    i, j = sj.indices("i j")
    out[i, j] = A[i, j] * s[i]


def gcn(A: Any, X: Any, W: Any) -> Any:
    return sj.maximum(A @ (X @ W), 0.0)


def powers(A: Any) -> Any:
    """The arrays of the product take the place of those of the factor, in each pass."""
    return sj.fori_loop(0, 2, lambda k, C: C @ A, A)


def chosen(A: Any, B: Any) -> Any:
    """Only one branch runs, and each leaves as many entries as it has."""
    return sj.cond(A.sum() > 8, lambda: A + B, lambda: B * 2)


# ---------------------------------------------------------------- operands


def sparse(rng: np.random.Generator, m: int, n: int, format: Any = "csr") -> Any:
    """Return a sparse matrix with empty rows and 32-bit indices."""
    dense = rng.integers(1, 5, (m, n)) * (rng.random((m, n)) < 0.4)
    dense[0] = 0
    return sp.coo_array(dense.astype(np.float64)).asformat(format)


def ints(rng: np.random.Generator, *shape: int) -> Any:
    """Return a dense array of small whole numbers, so that sums are exact."""
    return rng.integers(-4, 5, shape).astype(np.float64)


def batch(rng: np.random.Generator, m: int, n: int, format: Any = sj.CSR) -> Any:
    """Return three sparse matrices with as many entries, in other places."""
    dense = np.zeros((3, m * n))
    for matrix in dense:
        matrix[rng.choice(m * n, m, replace=False)] = rng.integers(1, 5, m)
    fmt = sj.Batched(format).with_widths(32, 32)
    return sj.asarray(dense.reshape(3, m, n), format=fmt)


def pruned(rng: np.random.Generator, m: int, n: int) -> Any:
    """Return a 2:4 matrix of 16-bit floats."""
    dense = rng.integers(1, 4, (m, n)).astype(ml_dtypes.bfloat16)
    return sj.prune(dense, sj.NV24)


CASES = (
    Case("spmv", spmv, lambda r: (sparse(r, 7, 5), ints(r, 5), ints(r, 7))),
    Case("spmv_csc", spmv, lambda r: (sparse(r, 7, 5, "csc"), ints(r, 5), ints(r, 7))),
    Case("spmv_coo", spmv, lambda r: (sparse(r, 7, 5, "coo"), ints(r, 5), ints(r, 7))),
    Case("fresh_spmv", fresh_spmv, lambda r: (sparse(r, 7, 5), ints(r, 5))),
    Case("scaled_spmv", scaled_spmv, lambda r: (sparse(r, 7, 5), ints(r, 5), ints(r, 7), 0.5)),
    Case("spmm", spmm, lambda r: (sparse(r, 7, 5), ints(r, 5, 3), ints(r, 7, 3))),
    Case(
        "batched_spmm",
        batched_spmm,
        lambda r: (batch(r, 7, 5), ints(r, 3, 5, 2), ints(r, 3, 7, 2)),
    ),
    Case(
        "batched_coo",
        batched_spmm,
        lambda r: (batch(r, 7, 5, sj.COO(2)), ints(r, 3, 5, 2), ints(r, 3, 7, 2)),
    ),
    Case("batch_of_dense", batch_of_dense, lambda r: (sparse(r, 7, 5), ints(r, 3, 5, 2))),
    Case("sddmm", sddmm, lambda r: (sparse(r, 7, 5), ints(r, 7, 3), ints(r, 3, 5))),
    Case("spgemm", spgemm, lambda r: (sparse(r, 7, 5), sparse(r, 5, 6))),
    Case(
        "nm_spmm",
        spmm,
        lambda r: (
            pruned(r, 16, 16),
            r.integers(-2, 3, (16, 16)).astype(ml_dtypes.bfloat16),
            np.zeros((16, 16), ml_dtypes.bfloat16),
        ),
    ),
    Case("generated_spmv", spmv, lambda r: (sparse(r, 7, 5), ints(r, 5), ints(r, 7)), False),
    Case("generated_spmm", spmm, lambda r: (sparse(r, 7, 5), ints(r, 5, 3), ints(r, 7, 3)), False),
    Case(
        "generated_sddmm", sddmm, lambda r: (sparse(r, 7, 5), ints(r, 7, 3), ints(r, 3, 5)), False
    ),
    Case("generated_scaling", scaled, lambda r: (ints(r, 4, 3), ints(r, 4), ints(r, 4, 3)), False),
    Case("gcn", gcn, lambda r: (sparse(r, 6, 6), ints(r, 6, 4), ints(r, 4, 3))),
    # Entries are sorted and summed, and fewer are left.
    Case(
        "shrunk",
        spgemm,
        lambda r: (sparse(r, 3, 8, "csc"), sparse(r, 8, 3)),
        is_library=False,
        is_outlined=True,
    ),
    Case("powers", powers, lambda r: (sparse(r, 4, 4),), is_outlined=True),
    Case(
        "chosen",
        chosen,
        lambda r: (sparse(r, 4, 3), sparse(r, 4, 3)),
        is_library=False,
        is_outlined=True,
    ),
)
