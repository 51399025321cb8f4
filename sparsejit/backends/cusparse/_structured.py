"""The 2:4 product, by cuSPARSELt: expand, check, compress, multiply.

Our 2:4 storage has two values and their places for each group of four. As rows of four elements,
each with two entries, it is a matrix by rows that cuSPARSE makes dense; cuSPARSELt compresses that
into a storage of its own. Opaque structures get more room than any version has asked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.backends.cusparse._abi import COMPUTE_TYPES, DATA_TYPES, ORDER_ROW, call
from sparsejit.backends.cusparse._descriptors import (
    Described,
    dense_descriptor,
    destroy,
    scalar_pointer,
    sparse_descriptor,
)
from sparsejit.backends.cusparse._operands import Dense, Stored, operands_of
from sparsejit.backends.cusparse._rules import broken_rules
from sparsejit.errors import BackendError
from sparsejit.ir.device_code import (
    DeviceArray,
    LibraryArguments,
    LibraryPhase,
    LibraryRefusal,
    LibraryRuntime,
)
from sparsejit.ir.device_statements import LibraryCall, SparseLayout
from sparsejit.ir.types import DType

__all__ = ["StructuredCall", "describe_structured", "destroy_structured", "structured_phases"]

_ROOM, _ALIGNMENT = 65536, 16
_GROUP, _KEPT = 4, 2


@dataclass(slots=True)
class StructuredCall:
    """A 2:4 product under way: ``places`` are opaque structures by name, ``ends`` end them."""

    library: Any
    matrix: Stored
    factor: Dense
    output: Dense
    expansion: Described
    places: dict[str, int] = field(default_factory=dict)
    room: list[Any] = field(default_factory=list)
    ends: list[tuple[str, int]] = field(default_factory=list)
    scalars: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    pointers: dict[str, int] = field(default_factory=dict)

    def place(self, name: str) -> int:
        """Return the address of a new opaque structure."""
        room = ctypes.create_string_buffer(_ROOM + _ALIGNMENT)
        self.room.append(room)
        address = -(-ctypes.addressof(room) // _ALIGNMENT) * _ALIGNMENT
        self.places[name] = address
        return address


def describe_structured(
    library_call: LibraryCall, runtime: LibraryRuntime, arguments: LibraryArguments
) -> StructuredCall | LibraryRefusal:
    """Make the descriptors and the plan of a 2:4 product."""
    broken = broken_rules(library_call, arguments)
    if broken:
        return LibraryRefusal(broken[0])
    matrix, factor, output = operands_of(library_call, arguments)
    assert isinstance(matrix, Stored)
    assert isinstance(factor, Dense)
    assert isinstance(output, Dense)
    data_type = DATA_TYPES[matrix.values.dtype]
    expansion = Described(runtime.library("cusparse"), arguments, (matrix,), data_type)
    library = runtime.library("cusparseLt")
    state = StructuredCall(library, matrix, factor, output, expansion)
    try:
        for name, value in (("alpha", arguments.alpha), ("beta", arguments.beta)):
            state.scalars[name] = scalar_pointer(value, DType.FLOAT32)
        taken = _plan(state, runtime.handle("cusparseLt"), data_type)
    except BaseException:
        destroy_structured(runtime, state)
        raise
    if taken:
        return state
    destroy_structured(runtime, state)
    return LibraryRefusal("cuSPARSELt does not support this product on this device")


def _plan(state: StructuredCall, handle: int, data_type: int) -> bool:
    """Make descriptors, algorithm and plan; whether the library takes them."""

    def made(name: str, function: str, *arguments: object, end: str = "") -> bool:
        place = state.place(name)
        taken = call(state.library, function, handle, place, *arguments, may_refuse=True)
        if taken and end:
            state.ends.append((end, place))
        return taken

    matrix, ends = state.matrix, "cusparseLtMatDescriptorDestroy"
    size = (matrix.rows, matrix.columns, matrix.columns)
    layout = (_ALIGNMENT, data_type, ORDER_ROW, 0)
    if not made("matrix", "cusparseLtStructuredDescriptorInit", *size, *layout, end=ends):
        return False
    for name, dense in (("factor", state.factor), ("output", state.output)):
        size = (dense.rows, dense.columns, dense.leading)
        kind = (_ALIGNMENT, data_type, dense.order)
        if not made(name, "cusparseLtDenseDescriptorInit", *size, *kind, end=ends):
            return False
    places = state.places
    operands = (places["matrix"], places["factor"], places["output"], places["output"])
    computed = COMPUTE_TYPES[matrix.values.dtype]
    return (
        made("product", "cusparseLtMatmulDescriptorInit", 0, 0, *operands, computed)
        and made(
            "algorithm",
            "cusparseLtMatmulAlgSelectionInit",
            *(places["product"], 0),
            end="cusparseLtMatmulAlgSelectionDestroy",
        )
        and made(
            "plan",
            "cusparseLtMatmulPlanInit",
            *(places["product"], places["algorithm"]),
            end="cusparseLtMatmulPlanDestroy",
        )
    )


def destroy_structured(runtime: LibraryRuntime, state: StructuredCall) -> None:
    """End what was made, the newest first."""
    while state.ends:
        name, place = state.ends.pop()
        call(state.library, name, place)
    destroy(runtime, state.expansion)


def structured_phases() -> tuple[LibraryPhase, ...]:
    """Return the phases: expand to a dense matrix, check and compress it, multiply."""
    return (
        LibraryPhase("expand", _expand_sizes, _expand, ("dense", "offsets", "expansion")),
        LibraryPhase(
            "compress", _compress_sizes, _compress, ("compressed", "compression", "valid")
        ),
        LibraryPhase("multiply", _multiply_sizes, _multiply, ("workspace",)),
    )


def _groups(state: StructuredCall) -> int:
    return state.matrix.num_stored // _KEPT


def _as_rows(state: StructuredCall, offsets: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Return descriptors of the groups as rows, and of the dense matrix that they become."""
    groups, (places,) = _groups(state), state.matrix.indices
    rows = Stored(
        SparseLayout.CSR,
        groups,
        _GROUP,
        (DeviceArray(offsets, places.dtype, (groups + 1,), (1,)), places),
        state.matrix.values,
        (1, 1),
        False,
    )
    dtype = state.matrix.values.dtype
    whole = DeviceArray(state.pointers.get("dense", 0), dtype, (groups, _GROUP), (_GROUP, 1))
    dense = Dense(groups, _GROUP, _GROUP, ORDER_ROW, whole, True)
    return sparse_descriptor(state.expansion, rows), dense_descriptor(state.expansion, dense)


def _expand_sizes(runtime: LibraryRuntime, state: StructuredCall) -> Sequence[int]:
    # The buffer's size depends on extents only, and is asked before there is memory to point at.
    size = ctypes.c_size_t()
    rows, dense = _as_rows(state, 0)
    query = (runtime.handle("cusparse"), rows, dense, 0, ctypes.byref(size))
    call(state.expansion.library, "cusparseSparseToDense_bufferSize", *query)
    element = state.matrix.values.dtype.bits // 8
    index = state.matrix.indices[0].dtype.bits // 8
    return (_groups(state) * _GROUP * element, (_groups(state) + 1) * index, size.value)


def _expand(
    runtime: LibraryRuntime,
    state: StructuredCall,
    spaces: Sequence[int],
    targets: Mapping[str, DeviceArray],
) -> None:
    state.pointers["dense"], offsets, buffer = spaces
    kind = np.int32 if state.matrix.indices[0].dtype is DType.INT32 else np.int64
    runtime.write(offsets, np.arange(0, _KEPT * _groups(state) + 1, _KEPT, dtype=kind).tobytes())
    rows, dense = _as_rows(state, offsets)
    handle = runtime.handle("cusparse")
    call(state.expansion.library, "cusparseSparseToDense", handle, rows, dense, 0, buffer)


def _compress_sizes(runtime: LibraryRuntime, state: StructuredCall) -> Sequence[int]:
    compressed, buffer = ctypes.c_size_t(), ctypes.c_size_t()
    handle = runtime.handle("cusparseLt")
    sizes = (ctypes.byref(compressed), ctypes.byref(buffer))
    call(state.library, "cusparseLtSpMMACompressedSize", handle, state.places["plan"], *sizes)
    return (compressed.value, buffer.value, ctypes.sizeof(ctypes.c_int))


def _compress(
    runtime: LibraryRuntime,
    state: StructuredCall,
    spaces: Sequence[int],
    targets: Mapping[str, DeviceArray],
) -> None:
    compressed, buffer, valid = spaces
    handle, stream, dense = runtime.handle("cusparseLt"), runtime.stream, state.pointers["dense"]
    product, plan = state.places["product"], state.places["plan"]
    call(state.library, "cusparseLtSpMMAPruneCheck", handle, product, dense, valid, stream)
    if any(runtime.read(valid, ctypes.sizeof(ctypes.c_int))):  # 0 says that it is 2:4
        raise BackendError("a 2:4 matrix stores more than 2 of 4 elements")
    arrays = (dense, compressed, buffer, stream)
    call(state.library, "cusparseLtSpMMACompress", handle, plan, *arrays)
    state.pointers["compressed"] = compressed


def _multiply_sizes(runtime: LibraryRuntime, state: StructuredCall) -> Sequence[int]:
    size = ctypes.c_size_t()
    query = (runtime.handle("cusparseLt"), state.places["plan"], ctypes.byref(size))
    call(state.library, "cusparseLtMatmulGetWorkspace", *query)
    return (size.value,)


def _multiply(
    runtime: LibraryRuntime,
    state: StructuredCall,
    spaces: Sequence[int],
    targets: Mapping[str, DeviceArray],
) -> None:
    streams = (ctypes.c_void_p * 1)(runtime.stream)
    output = state.output.array.pointer
    operands = (
        *(state.scalars["alpha"], state.pointers["compressed"], state.factor.array.pointer),
        *(state.scalars["beta"], output, output, spaces[0]),
    )
    plan = (runtime.handle("cusparseLt"), state.places["plan"])
    call(state.library, "cusparseLtMatmul", *plan, *operands, streams, 1)
