"""Descriptors of cuSPARSE: made for a call's operands, ended together.

``Described`` is the state of a call of cuSPARSE between its phases. Scalars live in host memory for
as long as the call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.backends.cusparse._abi import (
    COLUMNS_SINCE,
    DATA_TYPES,
    INDEX_TYPES,
    ORDER_ROW,
    call,
)
from sparsejit.backends.cusparse._operands import Dense, Stored, index_type, operands_of
from sparsejit.backends.cusparse._rules import broken_rules
from sparsejit.ir.device_code import LibraryArguments, LibraryRefusal, LibraryRuntime
from sparsejit.ir.device_statements import LibraryCall, SparseLayout
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.types import DType

__all__ = [
    "Described",
    "compute_type",
    "dense_descriptor",
    "describer",
    "destroy",
    "make_operands",
    "scalar_pointer",
    "sparse_descriptor",
    "takes_columns",
]


@dataclass(slots=True)
class Described:
    """A call under way: ``descriptors`` are those of ``operands``, in order.

    ``ends`` are the functions that end what was made, with what they get, the oldest first.
    """

    library: Any
    arguments: LibraryArguments
    operands: tuple[Stored | Dense, ...]
    data_type: int
    descriptors: list[ctypes.c_void_p] = field(default_factory=list)
    ends: list[tuple[str, ctypes.c_void_p]] = field(default_factory=list)
    scalars: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


def describer(
    library_call: LibraryCall, make: Callable[[Described], None]
) -> Callable[[LibraryRuntime, LibraryArguments], Described | LibraryRefusal]:
    """Return the ``describe`` of a call of cuSPARSE; ``make`` makes its descriptors."""

    def describe(
        runtime: LibraryRuntime, arguments: LibraryArguments
    ) -> Described | LibraryRefusal:
        broken = broken_rules(library_call, arguments)
        if broken:
            return LibraryRefusal(broken[0])
        operands = tuple(operands_of(library_call, arguments))
        dtype = _dtype(operands[0])
        library = runtime.library("cusparse")
        if library_call.is_batched and operands[-1].shape[1] == 1 and not takes_columns(library):
            return LibraryRefusal("this cuSPARSE may be wrong for a batch of single columns")
        state = Described(library, arguments, operands, DATA_TYPES[dtype])
        try:
            for name, value in (("alpha", arguments.alpha), ("beta", arguments.beta)):
                state.scalars[name] = scalar_pointer(value, dtype.compute)
            make(state)
        except BaseException:
            destroy(runtime, state)
            raise
        return state

    return describe


def takes_columns(library: Any) -> bool:
    """Whether a batch of matrices of one column each is computed right.

    [issue] CUDALibrarySamples 209 and 210: versions of 2024 gave wrong results, and by its
    documentation ``cusparseSpMM`` may run SpMV then, which has no batches. 12.6 came a year later.
    """
    found = []
    for kind in (0, 1):  # MAJOR_VERSION, MINOR_VERSION
        value = ctypes.c_int()
        call(library, "cusparseGetProperty", kind, ctypes.byref(value))
        found.append(value.value)
    return tuple(found) >= COLUMNS_SINCE


def make_operands(state: Described) -> None:
    """Make a descriptor for each operand."""
    for operand in state.operands:
        if isinstance(operand, Stored):
            state.descriptors.append(sparse_descriptor(state, operand))
        else:
            state.descriptors.append(dense_descriptor(state, operand))


def _dtype(operand: Stored | Dense) -> DType:
    return operand.values.dtype if isinstance(operand, Stored) else operand.array.dtype


def scalar_pointer(value: Any, dtype: DType) -> Any:
    """Return host memory that holds a scalar in the type that the library computes in."""
    return ctypes.create_string_buffer(np.asarray(value, numpy_dtype(dtype)).tobytes())


def compute_type(state: Described) -> int:
    """Return the type that the library computes in: 16-bit floats in 32 bits."""
    return DATA_TYPES[_dtype(state.operands[0]).compute]


def sparse_descriptor(state: Described, stored: Stored) -> ctypes.c_void_p:
    """Make the descriptor of a sparse matrix; it ends with the call."""
    made = ctypes.c_void_p()
    kind, base = INDEX_TYPES[index_type(stored)], 0
    pointers = [array.pointer for array in stored.indices] + [stored.values.pointer]
    value = DATA_TYPES[stored.values.dtype]
    count, shape = stored.num_stored, (stored.rows, stored.columns)
    size: tuple[object, ...]
    match stored.layout:
        case SparseLayout.COO:
            size = (*shape, count, *pointers, kind, base, value)
            call(state.library, "cusparseCreateCoo", made, *size)
        case SparseLayout.BSR:
            block = stored.block
            blocks = (shape[0] // block[0], shape[1] // block[1], count // (block[0] * block[1]))
            size = (*blocks, *block, *pointers, kind, kind, base, value, ORDER_ROW)
            call(state.library, "cusparseCreateBsr", made, *size)
        case _:
            name = "Csc" if stored.layout is SparseLayout.CSC else "Csr"
            size = (*shape, count, *pointers, kind, kind, base, value)
            call(state.library, f"cusparseCreate{name}", made, *size)
    state.ends.append(("cusparseDestroySpMat", made))
    if stored.batches is not None:
        *of_indices, of_values = stored.batch_strides
        strides = (of_values,) if stored.layout is SparseLayout.COO else (of_indices[0], of_values)
        name = "Coo" if stored.layout is SparseLayout.COO else "Csr"
        call(state.library, f"cusparse{name}SetStridedBatch", made, stored.batches, *strides)
    return made


def dense_descriptor(state: Described, dense: Dense) -> ctypes.c_void_p:
    """Make the descriptor of a dense vector or matrix; it ends with the call."""
    made = ctypes.c_void_p()
    pointer, value = dense.array.pointer, DATA_TYPES[dense.array.dtype]
    if dense.is_vector:
        call(state.library, "cusparseCreateDnVec", made, dense.rows, pointer, value)
        state.ends.append(("cusparseDestroyDnVec", made))
    else:
        size = (dense.rows, dense.columns, dense.leading)
        call(state.library, "cusparseCreateDnMat", made, *size, pointer, value, dense.order)
        state.ends.append(("cusparseDestroyDnMat", made))
    if dense.batches is not None:
        strides = (dense.batches, dense.batch_stride)
        call(state.library, "cusparseDnMatSetStridedBatch", made, *strides)
    return made


def destroy(runtime: LibraryRuntime, state: Described) -> None:
    """End what ``describe`` and the phases made, the newest first."""
    while state.ends:
        name, descriptor = state.ends.pop()
        call(state.library, name, descriptor)
