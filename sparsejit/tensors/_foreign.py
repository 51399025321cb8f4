"""Objects of other libraries: pydata sparse, torch, and anything that speaks DLPack.

In: such an object; its library is used only through the object, or imported here because the
object is there. Out: adapters that describe it, or a NumPy or CuPy array over the same memory.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import BSR, CSC, CSR, Batched
from sparsejit.tensors._canonical import settle, with_dense_tail
from sparsejit.tensors._device import cupy_module
from sparsejit.tensors._dtypes import BFLOAT16
from sparsejit.tensors._operand import Kind
from sparsejit.tensors._records import Adapter, Settled
from sparsejit.tensors._scipy import settle_columns
from sparsejit.tensors._storage import Array, Structure

__all__ = ["array_through_dlpack", "pydata_adapter", "torch_adapter", "torch_dense"]


def _pydata_kind(obj: Any) -> Kind:
    return "pydata"


def _pydata_fill(obj: Any) -> Any:
    return obj.fill_value


def _pydata_values(obj: Any) -> Any:
    return obj.data


def _settle_pydata_coo(obj: Any, is_trusted: bool) -> Settled:
    coords = tuple(_index_array(row) for row in obj.coords)
    return settle_columns(coords, tuple(obj.shape), is_trusted)


def _index_array(array: Any) -> Array:
    """Return a contiguous index array in a type that formats allow (8 and 16 bits unsigned)."""
    found = np.ascontiguousarray(array)
    if found.dtype.kind == "i" and found.dtype.itemsize < 4:
        found = found.astype(np.int32)
    return found


def _settle_gcxs(obj: Any, is_trusted: bool) -> Settled:
    fmt = CSR if tuple(obj.compressed_axes) == (0,) else CSC
    structure = Structure(
        fmt,
        tuple(obj.shape),
        (None, _index_array(obj.indptr)),
        (None, _index_array(obj.indices)),
    )
    return Settled(*settle(structure, is_trusted=is_trusted), len(obj.indices))


_PYDATA_COO = Adapter(
    _pydata_kind,
    lambda a: (a.coords,),
    _pydata_values,
    lambda a: (a.shape,),
    _settle_pydata_coo,
    _pydata_fill,
)
_PYDATA_GCXS = Adapter(
    _pydata_kind,
    lambda a: (a.indptr, a.indices),
    _pydata_values,
    lambda a: (a.shape, a.compressed_axes),
    _settle_gcxs,
    _pydata_fill,
)


def pydata_adapter(obj: Any) -> tuple[Any, Adapter]:
    """Return the object to describe (converted where pydata's class has no counterpart)."""
    match type(obj).__name__:
        case "COO" if obj.ndim:
            return obj, _PYDATA_COO
        case "GCXS" if obj.ndim == 2:
            return obj, _PYDATA_GCXS
        case "GCXS":
            return obj.tocoo(), _PYDATA_COO
        case "DOK":
            return obj.to_coo(), _PYDATA_COO
        case name:
            raise UnsupportedError(
                f"a pydata sparse object of class {name} and rank {obj.ndim} is not read",
                hint="convert it to sparse.COO",
            )


def torch_dense(tensor: Any) -> Any:
    """Return the array over a dense torch tensor's memory: NumPy, or CuPy on a GPU."""
    if tensor.requires_grad:
        raise UnsupportedError(
            "a torch tensor that requires a gradient cannot be used",
            hint="pass tensor.detach()",
        )
    if str(tensor.dtype) == "torch.bfloat16" and not tensor.is_cuda:
        torch = importlib.import_module("torch")
        return tensor.view(torch.int16).numpy().view(BFLOAT16)
    return array_through_dlpack(tensor)


def _torch_host(tensor: Any) -> Any:
    if tensor.is_cuda:
        raise UnsupportedError(
            "a sparse torch tensor on a GPU is not read directly",
            hint="move it with .cpu(), or pass its parts as CuPy arrays",
        )
    return torch_dense(tensor.detach())


_TORCH_INDICES = {
    "torch.sparse_csr": ("crow_indices", "col_indices"),
    "torch.sparse_csc": ("ccol_indices", "row_indices"),
    "torch.sparse_bsr": ("crow_indices", "col_indices"),
}


def torch_adapter(tensor: Any) -> Adapter:
    """Return the adapter of a sparse torch tensor; ``UnsupportedError`` for other layouts."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return _TORCH_COO
    if layout in _TORCH_INDICES:
        return _TORCH_COMPRESSED
    raise UnsupportedError(
        f"torch tensors of layout {layout} are not read",
        hint="use sparse_csr, sparse_csc or sparse_coo",
    )


def _compressed_indices(tensor: Any) -> tuple[Any, ...]:
    names = _TORCH_INDICES[str(tensor.layout)]
    return tuple(_torch_host(getattr(tensor, name)()) for name in names)


def _settle_torch_compressed(tensor: Any, is_trusted: bool) -> Settled:
    positions, coordinates = map(np.ascontiguousarray, _compressed_indices(tensor))
    values = tensor.values()
    layout = str(tensor.layout)
    batch = positions.ndim - 1
    fmt = CSC if layout == "torch.sparse_csc" else CSR
    if layout == "torch.sparse_bsr":
        fmt = BSR(*map(int, values.shape[batch + 1 : batch + 3]))
    if batch:
        fmt = Batched(fmt, batch)
    fmt = with_dense_tail(fmt, len(tensor.shape) - fmt.ndim)
    level = batch + 1
    structure = Structure(
        fmt,
        tuple(map(int, tensor.shape)),
        tuple(positions if number == level else None for number in range(fmt.num_levels)),
        tuple(coordinates if number == level else None for number in range(fmt.num_levels)),
    )
    count = int(np.prod(values.shape))
    return Settled(*settle(structure, is_trusted=is_trusted), count)


def _settle_torch_coo(tensor: Any, is_trusted: bool) -> Settled:
    columns = tuple(map(np.ascontiguousarray, _torch_host(tensor._indices())))
    shape = tuple(map(int, tensor.shape))
    return settle_columns(columns, shape, is_trusted)


def _torch_kind(tensor: Any) -> Kind:
    return "torch"


def _torch_zero(tensor: Any) -> int:
    return 0


_TORCH_COMPRESSED = Adapter(
    _torch_kind,
    _compressed_indices,
    lambda t: _torch_host(t.values()),
    lambda t: (tuple(t.shape), tuple(t.values().shape)),
    _settle_torch_compressed,
    _torch_zero,
)
_TORCH_COO = Adapter(
    _torch_kind,
    lambda t: (_torch_host(t._indices()),),
    lambda t: _torch_host(t._values()),
    lambda t: (tuple(t.shape), tuple(t._values().shape), t.is_coalesced()),
    _settle_torch_coo,
    _torch_zero,
)

_HOST_DEVICES = (1, 3, 13)  # DLPack: CPU, CUDA pinned host memory, CUDA managed memory
_CUDA_DEVICE = 2


def array_through_dlpack(obj: Any) -> Any:
    """Return a NumPy or CuPy array over the memory of an object that speaks DLPack.

    Raises ``TensorTypeError`` when the object refuses, ``DeviceError`` without CuPy or a device.
    """
    device = int(obj.__dlpack_device__()[0])
    if device not in (*_HOST_DEVICES, _CUDA_DEVICE):
        raise UnsupportedError(f"DLPack device type {device} is not supported")
    library: Any = cupy_module() if device == _CUDA_DEVICE else np
    try:
        return library.from_dlpack(obj)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        name = type(obj).__name__
        raise TensorTypeError(f"{name} cannot be read through DLPack: {error}") from error
