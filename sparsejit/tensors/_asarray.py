"""The public constructors that take any object: ``asarray``, ``prune``, ``to_device``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import Dense, Format
from sparsejit.tensors._create import from_dense, pruned
from sparsejit.tensors._device import array_on_device, cupyx_matrix, tensor_on_device
from sparsejit.tensors._dtypes import fill_scalar
from sparsejit.tensors._interop import describe
from sparsejit.tensors._sparse_tensor import SparseTensor, trusted_tensor
from sparsejit.tensors._storage import split_buffers

__all__ = ["asarray", "prune", "to_device"]


def asarray(obj: Any, format: Format | None = None, fill_value: Any = None) -> Any:
    """Return ``obj`` as sparsejit holds it, in ``format``, with the fill value relabelled.

    Dense objects stay NumPy (or CuPy) arrays when neither ``format`` nor ``fill_value`` is given;
    in a ``format``, entries equal to the fill value are dropped. Sparse objects become a
    ``SparseTensor`` that shares their buffers, unless these have to be sorted or converted. A
    ``fill_value`` changes what is not stored and touches no stored value.

    >>> import scipy.sparse as sp
    >>> from sparsejit.formats import CSR
    >>> distances = asarray(sp.csr_array([[0, 2.0], [3, 0]]), fill_value=np.inf)
    >>> distances.to_numpy().tolist()
    [[inf, 2.0], [3.0, inf]]
    >>> asarray(np.eye(2), CSR).nse
    2
    """
    traced = getattr(type(obj), "__sparsejit_asarray__", None)
    if traced is not None:  # inside a traced function
        return traced(obj, format, fill_value)
    operand = describe(np.asarray(obj) if isinstance(obj, list | tuple) else obj)
    if operand.is_dense and not isinstance(obj, SparseTensor):
        array = operand.buffers[0]
        if format is None and fill_value is None:
            return array
        if operand.on_device:
            raise UnsupportedError(
                "a device array is not converted to a sparse format on the device",
                hint="convert on the host, then use sj.to_device",
            )
        fill = 0 if fill_value is None else fill_value
        tensor = from_dense(array, Dense(array.ndim), fill)
        if format is None or format.is_dense:
            return tensor
        if array.ndim != format.ndim:
            raise TensorTypeError(
                f"({format}) has {format.ndim} dimensions, the array {array.ndim}"
            )
        return tensor.convert(format)
    tensor = _as_sparse_tensor(obj, operand)
    if fill_value is not None:
        fill = fill_scalar(fill_value, tensor.dtype)
        tensor = trusted_tensor(tensor.structure, tensor.values, fill)
    return tensor if format is None else tensor.convert(format)


def _as_sparse_tensor(obj: Any, operand: Any) -> SparseTensor:
    if isinstance(obj, SparseTensor):
        return obj
    structure, values = split_buffers(operand.format, operand.shape, operand.buffers)
    return trusted_tensor(structure, values.reshape(-1), operand.fill_value)


def prune(A: Any, format: Format) -> SparseTensor:
    """Return ``A`` in a structured format, with the ``n`` largest of each ``m`` kept.

    ``A`` is dense or sparse, with fill value 0; size is the absolute value, nan counts as largest,
    and of equals the first is kept. The formats are ``NV24`` and others with one
    ``structured[n, m]`` level.

    >>> from sparsejit.formats import NV24
    >>> prune(np.array([[1.0, -4.0, 3.0, 2.0]]), NV24).to_numpy().tolist()
    [[0.0, -4.0, 3.0, 0.0]]
    """
    found = asarray(A)
    if isinstance(found, SparseTensor):
        if found.fill_value != 0:
            raise TensorTypeError(f"prune needs fill value 0, not {found.fill_value}")
        found = found.to_numpy()
    return pruned(np.asarray(found), format)


def to_device(x: Any) -> Any:
    """Return ``x`` on the current CUDA device: a CuPy array, cupyx matrix or ``SparseTensor``.

    Raises ``DeviceError`` that names what is missing: CuPy, the driver or a device.
    """
    operand = describe(x)
    if operand.on_device:
        return x
    if operand.is_dense:
        return array_on_device(operand.buffers[0])
    tensor = _as_sparse_tensor(x, operand)
    if _fits_cupyx(x):
        return cupyx_matrix(tensor)
    return tensor_on_device(tensor)


def _fits_cupyx(x: Any) -> bool:
    """Whether ``x`` is a SciPy object that cupyx has a class for."""
    plain = sp.issparse(x) and getattr(x, "format", "") in ("csr", "csc", "coo")
    return plain and x.ndim == 2 and x.dtype.char in "?fdFD"
