"""Sparse results: SpGEMM and sparse sums. The library counts first, then fills what we allocate.

SpGEMM multiplies in chunks where its products would take too much memory: the library's own
estimate (its algorithm 3) bounds the workspace. Both take matrices by rows; the recognizer sees to
that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sparsejit.backends.cusparse._abi import call
from sparsejit.backends.cusparse._descriptors import (
    Described,
    compute_type,
    sparse_descriptor,
)
from sparsejit.backends.cusparse._operands import Stored
from sparsejit.ir.device_code import DeviceArray, LibraryPhase, LibraryRefusal, LibraryRuntime
from sparsejit.ir.device_statements import LibraryCall, SparseLayout
from sparsejit.ir.types import DType

__all__ = ["make_sum", "make_unfilled_product", "product_phases", "sum_phases"]

Targets = Mapping[str, DeviceArray]

_ESTIMATED = 5  # CUSPARSE_SPGEMM_ALG3: estimates its memory and multiplies in chunks
_CHUNK = 0.2
_LETTERS = {
    DType.FLOAT32: "S",
    DType.FLOAT64: "D",
    DType.COMPLEX64: "C",
    DType.COMPLEX128: "Z",
}


def _rows(state: Described, number: int) -> Stored:
    operand = state.operands[number]
    assert isinstance(operand, Stored)
    return operand.by_rows()


# ------------------------------------------------------------ products


def make_unfilled_product(state: Described) -> None:
    """Make the descriptors of SpGEMM and of its result, which has no arrays yet."""
    left, right = _rows(state, 0), _rows(state, 1)
    _check_by_rows(left, right)
    nothing = DeviceArray(0, left.indices[0].dtype, (0,), (1,))
    values = DeviceArray(0, left.values.dtype, (0,), (1,))
    shape = (left.rows, right.columns)
    empty = Stored(SparseLayout.CSR, *shape, (nothing, nothing), values, (1, 1), False)
    state.made["left"] = sparse_descriptor(state, left)
    state.made["right"] = sparse_descriptor(state, right)
    state.made["result"] = sparse_descriptor(state, empty)
    made = ctypes.c_void_p()
    call(state.library, "cusparseSpGEMM_createDescr", made)
    state.ends.append(("cusparseSpGEMM_destroyDescr", made))
    state.made["product"] = made


def _check_by_rows(*matrices: Stored) -> None:
    assert not any(matrix.is_transposed for matrix in matrices), "the recognizer sees to it"


def product_phases(library_call: LibraryCall) -> tuple[LibraryPhase, ...]:
    """Return the phases of SpGEMM: estimate the work, the memory, compute, copy."""
    copy = partial(_copy, tuple(target.name for target in library_call.targets))
    return (
        LibraryPhase("estimate the work", _work_sizes, _work, ("work",)),
        LibraryPhase("estimate the memory", _memory_sizes, _memory, ("estimate",)),
        LibraryPhase("compute", _compute_sizes, _compute, ("products",)),
        LibraryPhase("copy", _copy_sizes, copy, (), library_call.targets),
    )


def _common(runtime: LibraryRuntime, state: Described) -> tuple[Any, ...]:
    """Return the arguments that all functions of SpGEMM begin with."""
    made = state.made
    return (
        *(runtime.handle("cusparse"), 0, 0, state.scalars["alpha"], made["left"]),
        *(made["right"], state.scalars["beta"], made["result"], compute_type(state)),
        *(_ESTIMATED, made["product"]),
    )


def _work_sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int] | LibraryRefusal:
    size = ctypes.c_size_t()
    query = (*_common(runtime, state), ctypes.byref(size), None)
    if not call(state.library, "cusparseSpGEMM_workEstimation", *query, may_refuse=True):
        return LibraryRefusal("cuSPARSE does not support this SpGEMM")
    state.sizes["work"] = size.value
    return (size.value,)


def _work(
    runtime: LibraryRuntime, state: Described, spaces: Sequence[int], targets: Targets
) -> None:
    size = ctypes.c_size_t(state.sizes["work"])
    query = (*_common(runtime, state), ctypes.byref(size), spaces[0])
    call(state.library, "cusparseSpGEMM_workEstimation", *query)


def _estimated(
    runtime: LibraryRuntime, state: Described, size: int, buffer: int | None
) -> tuple[int, int]:
    """Ask for the memory of the estimate (without a buffer) and of the products (with one)."""
    estimate, products = ctypes.c_size_t(size), ctypes.c_size_t()
    sizes = (_CHUNK, ctypes.byref(estimate), buffer, ctypes.byref(products))
    call(state.library, "cusparseSpGEMM_estimateMemory", *_common(runtime, state), *sizes)
    return estimate.value, products.value


def _memory_sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int]:
    state.sizes["estimate"], _ = _estimated(runtime, state, 0, None)
    return (state.sizes["estimate"],)


def _memory(
    runtime: LibraryRuntime, state: Described, spaces: Sequence[int], targets: Targets
) -> None:
    _, state.sizes["products"] = _estimated(runtime, state, state.sizes["estimate"], spaces[0])


def _compute_sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int]:
    return (state.sizes["products"],)


def _compute(
    runtime: LibraryRuntime, state: Described, spaces: Sequence[int], targets: Targets
) -> None:
    size = ctypes.c_size_t(state.sizes["products"])
    query = (*_common(runtime, state), ctypes.byref(size), spaces[0])
    call(state.library, "cusparseSpGEMM_compute", *query)


def _copy_sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int]:
    rows, columns, count = (ctypes.c_int64() for _ in range(3))
    sizes = map(ctypes.byref, (rows, columns, count))
    call(state.library, "cusparseSpMatGetSize", state.made["result"], *sizes)
    return (rows.value + 1, count.value, count.value)


def _copy(
    names: tuple[str, ...],
    runtime: LibraryRuntime,
    state: Described,
    spaces: Sequence[int],
    targets: Targets,
) -> None:
    pointers = (targets[name].pointer for name in names)
    call(state.library, "cusparseCsrSetPointers", state.made["result"], *pointers)
    call(state.library, "cusparseSpGEMM_copy", *_common(runtime, state))


# ------------------------------------------------------------ sums


def make_sum(state: Described) -> None:
    """Make the one descriptor that the matrices of a sum share: general, from 0."""
    _check_by_rows(_rows(state, 0), _rows(state, 1))
    made = ctypes.c_void_p()
    call(state.library, "cusparseCreateMatDescr", made)
    state.ends.append(("cusparseDestroyMatDescr", made))
    state.made["general"] = made


def sum_phases(library_call: LibraryCall) -> tuple[LibraryPhase, ...]:
    """Return the phases of a sum: count into positions, then fill coordinates and values."""
    positions, coordinates, values = library_call.targets

    def letter(state: Described) -> str:
        return _LETTERS[_rows(state, 0).values.dtype]

    def terms(state: Described) -> tuple[Any, ...]:
        """Both terms with their scalars, as the library wants them before the result."""
        found: list[Any] = [_rows(state, 0).rows, _rows(state, 0).columns]
        for number, scalar in enumerate(("alpha", "beta")):
            matrix = _rows(state, number)
            arrays = (matrix.values, *matrix.indices)
            found += [state.scalars[scalar], state.made["general"], matrix.num_stored]
            found += [array.pointer for array in arrays]
        return tuple(found)

    def result(state: Described, arrays: Sequence[Any]) -> tuple[Any, ...]:
        return (state.made["general"], *arrays)

    def count_sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int]:
        size = ctypes.c_size_t()
        name = f"cusparse{letter(state)}csrgeam2_bufferSizeExt"
        nothing = result(state, (None, None, None))
        handle = runtime.handle("cusparse")
        call(state.library, name, handle, *terms(state), *nothing, ctypes.byref(size))
        return (size.value, _rows(state, 0).rows + 1)

    def count(
        runtime: LibraryRuntime,
        state: Described,
        spaces: Sequence[int],
        targets: Targets,
    ) -> None:
        total = ctypes.c_int()
        general = state.made["general"]
        found: list[Any] = [_rows(state, 0).rows, _rows(state, 0).columns]
        for number in range(2):
            matrix = _rows(state, number)
            found += [general, matrix.num_stored, *(array.pointer for array in matrix.indices)]
        end = (general, targets[positions.name].pointer, ctypes.byref(total), spaces[0])
        handle = runtime.handle("cusparse")
        call(state.library, "cusparseXcsrgeam2Nnz", handle, *found, *end)
        state.sizes["count"] = total.value
        state.made["workspace"], state.made["positions"] = spaces[0], targets[positions.name]

    def fill_sizes(runtime: LibraryRuntime, state: Described) -> Sequence[int]:
        return (state.sizes["count"], state.sizes["count"])

    def fill(
        runtime: LibraryRuntime,
        state: Described,
        spaces: Sequence[int],
        targets: Targets,
    ) -> None:
        arrays = (targets[values.name], state.made["positions"], targets[coordinates.name])
        end = (*result(state, [array.pointer for array in arrays]), state.made["workspace"])
        handle = runtime.handle("cusparse")
        call(state.library, f"cusparse{letter(state)}csrgeam2", handle, *terms(state), *end)

    return (
        LibraryPhase("count", count_sizes, count, ("workspace",), (positions,)),
        LibraryPhase("fill", fill_sizes, fill, (), (coordinates, values)),
    )
