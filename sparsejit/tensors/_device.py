"""CuPy, imported only when a device array comes in or is asked for.

In: host objects to be moved, device objects to be described. Out: CuPy arrays, cupyx matrices,
adapters. Every failure to reach a device is a ``DeviceError`` that names what is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsejit.errors import DeviceError, TensorTypeError, UnsupportedError
from sparsejit.formats import COO, CSC, CSR
from sparsejit.tensors._canonical import settle
from sparsejit.tensors._dtypes import BFLOAT16
from sparsejit.tensors._operand import Kind
from sparsejit.tensors._records import Adapter, Settled
from sparsejit.tensors._scipy import class_that_holds, settle_columns
from sparsejit.tensors._sparse_tensor import SparseTensor, on_host, trusted_tensor
from sparsejit.tensors._storage import Structure
from sparsejit.tensors._values import ValuePlan

__all__ = [
    "CUPYX_ADAPTERS",
    "array_on_device",
    "cupy_module",
    "cupyx_matrix",
    "settled_on_device",
    "structure_on_device",
    "tensor_on_device",
]


def cupy_module() -> Any:
    """Return CuPy when it and a device can be used; ``DeviceError`` says what is missing."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceError(
            f"CuPy cannot be imported: {error}",
            hint="install it with pip install 'sparsejit[cuda13]' (or cuda12)",
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"the CUDA driver gives no device: {error}",
            hint="install a driver for the GPU, or run on the CPU with target='cpu'",
        ) from error
    if not count:
        raise DeviceError("there is no CUDA device", hint="run on the CPU with target='cpu'")
    return cupy


def structure_on_device(structure: Structure) -> Structure:
    """Return the structure with its buffers copied to the current device."""
    cupy = cupy_module()
    return Structure(
        structure.format,
        structure.shape,
        tuple(None if array is None else cupy.asarray(array) for array in structure.positions),
        tuple(None if array is None else cupy.asarray(array) for array in structure.coordinates),
    )


def array_on_device(array: Any) -> Any:
    """Return a copy of a NumPy array on the current device."""
    cupy = cupy_module()
    _refuse_bfloat16(array.dtype)
    return cupy.asarray(array)


def tensor_on_device(tensor: SparseTensor) -> SparseTensor:
    """Return the tensor with its buffers on the current device."""
    cupy = cupy_module()
    _refuse_bfloat16(tensor.dtype)
    values = cupy.asarray(tensor.values)
    return trusted_tensor(structure_on_device(tensor.structure), values, tensor.fill_value)


def _refuse_bfloat16(dtype: np.dtype[Any]) -> None:
    if dtype == BFLOAT16:
        raise UnsupportedError(
            "CuPy has no arrays of bfloat16", hint="convert the values to float32 first"
        )


def cupyx_matrix(tensor: SparseTensor) -> Any:
    """Return a CuPy array (dense formats) or a cupyx csr, csc or coo matrix of ``tensor``.

    Raises ``TensorTypeError`` when cupyx has no class for it, ``DeviceError`` without a device.
    """
    cupy = cupy_module()
    structure, values = tensor.structure, tensor.values
    if tensor.format.is_dense:
        return cupy.asarray(values).reshape(tensor.shape)
    name, reason = class_that_holds(structure, values.dtype, tensor.fill_value)
    if name not in ("csr", "csc", "coo") or tensor.ndim != 2 or tensor.dtype.kind not in "bfc":
        reason = reason or "cupyx has csr, csc and coo matrices of floats, complex numbers and bool"
        what = f"({tensor.format}) cannot become a cupyx matrix: {reason}"
        raise TensorTypeError(what, hint="convert it first, or use sj.to_device")
    sparse = importlib.import_module("cupyx.scipy.sparse")
    moved = structure_on_device(structure)
    if name == "coo":
        pair = moved.coordinates
        return sparse.coo_matrix((cupy.asarray(values), pair), shape=tensor.shape)
    parts = (cupy.asarray(values), moved.coordinates[1], moved.positions[1])
    chosen = sparse.csr_matrix if name == "csr" else sparse.csc_matrix
    return chosen(parts, shape=tensor.shape)


def settled_on_device(host: Settled) -> Settled:
    """Return what was settled on the host for buffers on the device."""
    cupy = cupy_module()
    plan = host.plan
    if plan.first is not None or plan.target is not None:
        raise UnsupportedError(
            "a cupyx matrix with duplicate entries is not read directly",
            hint="call sum_duplicates() on it first",
        )
    source = None if plan.source is None else cupy.asarray(plan.source)
    moved = ValuePlan(source, None, None, plan.rows, plan.inner)
    return Settled(structure_on_device(host.structure), moved, host.value_count)


def _settle_compressed(obj: Any, is_trusted: bool) -> Settled:
    fmt = CSR if obj.format == "csr" else CSC
    device = Structure(fmt, tuple(obj.shape), (None, obj.indptr), (None, obj.indices))
    structure, plan = settle(on_host(device), is_trusted=is_trusted)
    if plan.is_shared:
        return Settled(device, plan, obj.indices.size)
    return settled_on_device(Settled(structure, plan, obj.indices.size))


def _settle_coordinates(obj: Any, is_trusted: bool) -> Settled:
    host = (obj.row.get(), obj.col.get())
    settled = settle_columns(host, tuple(obj.shape), is_trusted)
    if not settled.plan.is_shared:
        return settled_on_device(settled)
    positions = cupy_module().asarray(settled.structure.positions[0])
    structure = Structure(COO(2), tuple(obj.shape), (positions, None), (obj.row, obj.col))
    return Settled(structure, settled.plan, settled.value_count)


def _kind(obj: Any) -> Kind:
    return "cupyx"


def _data(obj: Any) -> Any:
    return obj.data


def _zero(obj: Any) -> int:
    return 0


_COMPRESSED = Adapter(
    _kind,
    lambda a: (a.indptr, a.indices),
    _data,
    lambda a: (
        a.shape,
        a.__dict__.get("_has_sorted_indices"),
        a.__dict__.get("_has_canonical_format"),
    ),
    _settle_compressed,
    _zero,
)
CUPYX_ADAPTERS: Mapping[str, Adapter] = {
    "csr": _COMPRESSED,
    "csc": _COMPRESSED,
    "coo": Adapter(
        _kind,
        lambda a: (a.row, a.col),
        _data,
        lambda a: (a.shape, a.__dict__.get("_has_canonical_format")),
        _settle_coordinates,
        _zero,
    ),
}
