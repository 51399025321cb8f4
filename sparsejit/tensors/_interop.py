"""``describe``: every kind of object that a caller may hand over, as one kind of description.

In: NumPy, SciPy, CuPy, pydata and torch objects, ``SparseTensor``s, scalars, anything that speaks
DLPack or has a CUDA array interface. Out: an ``Operand`` over the same memory. Structure is checked
and remembered per object, values are read anew.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from sparsejit.errors import TensorTypeError
from sparsejit.formats import Dense
from sparsejit.tensors._canonical import (
    canonical_format,
    canonicalized,
    relaxed_format,
    with_format,
)
from sparsejit.tensors._checks import check_structure
from sparsejit.tensors._device import CUPYX_ADAPTERS, cupy_module, settled_on_device
from sparsejit.tensors._dtypes import checked_value_dtype, zero_of
from sparsejit.tensors._foreign import (
    array_through_dlpack,
    pydata_adapter,
    torch_adapter,
    torch_dense,
)
from sparsejit.tensors._operand import Kind, Operand
from sparsejit.tensors._records import Adapter, Settled, build_record, operand_from, recall
from sparsejit.tensors._scipy import SCIPY_ADAPTERS, kind_of
from sparsejit.tensors._sparse_tensor import SparseTensor, is_device_array, on_host
from sparsejit.tensors._values import ValuePlan

__all__ = ["Check", "describe", "operand_of"]

Check = Literal["once", "always", "never"]
_CHECKS = ("once", "always", "never")
_dense = lru_cache(maxsize=None)(Dense)
_SCALAR = Dense(0)


def describe(obj: Any, check: Check = "once") -> Operand:
    """Return the ``Operand`` of any object that may be an argument of a call.

    ``check`` says when structure that comes from outside is checked: ``"once"`` per structure,
    at every call, or never (the caller's promise). Order and duplicates are looked for in any
    case. Raises ``ValueError`` for damaged storage, ``TensorTypeError`` for objects and dtypes
    that are no tensors, ``DeviceError`` when a device is needed and missing.

    >>> import scipy.sparse as sp
    >>> operand = describe(sp.csr_array([[0, 2.0], [3, 0]]))
    >>> operand.kind, [buffer.tolist() for buffer in operand.buffers]
    ('scipy-array', [[0, 1, 2], [1, 0], [2.0, 3.0]])
    """
    if check not in _CHECKS:
        raise ValueError(f"check must be one of {_CHECKS}, not {check!r}")
    if type(obj) is np.ndarray:
        return _of_array(obj, "numpy")
    if check != "always":
        if type(obj) is SparseTensor and obj.operand is not None and obj.is_as_seen():
            return obj.operand
        remembered = recall(obj, needs_check=check == "once")
        if remembered is not None:
            return remembered
    return _describe_anew(obj, check)


operand_of = describe


def _of_array(array: Any, kind: Kind) -> Operand:
    dtype = checked_value_dtype(array.dtype, "the array")
    on_device = not isinstance(array, np.ndarray)
    fmt = _dense(array.ndim)
    zero = zero_of(dtype)
    return Operand(fmt, array.shape, dtype, zero, (array,), kind, on_device, array)


def _describe_anew(obj: Any, check: Check) -> Operand:
    if isinstance(obj, SparseTensor):
        return _of_sparse_tensor(obj, check)
    if sp.issparse(obj):
        return _of_scipy(obj, check)
    if isinstance(obj, np.ndarray):
        if isinstance(obj, np.ma.MaskedArray):
            hint = "fill it with .filled(value) first"
            raise TensorTypeError("a masked array is no tensor", hint=hint)
        return _of_array(np.asarray(obj), "numpy")
    if isinstance(obj, np.generic | bool | int | float | complex):
        return _of_scalar(obj)
    return _of_foreign(obj, check)


def _of_scalar(obj: Any) -> Operand:
    if isinstance(obj, np.generic):
        dtype = checked_value_dtype(obj.dtype, "the scalar")
        array = np.asarray(obj)
        return Operand(_SCALAR, (), dtype, zero_of(dtype), (array,), "numpy-scalar")
    array = np.asarray(obj)
    if array.dtype == np.object_:
        raise TensorTypeError(f"{obj} does not fit 64 bits")
    zero = zero_of(array.dtype)
    return Operand(_SCALAR, (), array.dtype, zero, (array,), "python-scalar")


def _of_scipy(obj: Any, check: Check) -> Operand:
    adapter = SCIPY_ADAPTERS.get(obj.format)
    if adapter is not None:
        return _of_adapted(obj, adapter, check)
    # lil and dok have no buffers to share; the converted matrix lives for this call only.
    converted = obj.tocsr() if obj.format == "lil" else obj.tocoo()
    return _of_converted(converted, SCIPY_ADAPTERS[converted.format], kind_of(obj))


def _of_adapted(obj: Any, adapter: Adapter, check: Check) -> Operand:
    return build_record(obj, adapter, is_trusted=check == "never")


def _of_converted(obj: Any, adapter: Adapter, kind: Kind) -> Operand:
    """Describe a temporary object: nothing is remembered, nothing can be written back."""
    found = operand_from(
        adapter.settle(obj, False), adapter.values(obj), adapter.fill_value(obj), kind
    )
    return Operand(found.format, found.shape, found.dtype, found.fill_value, found.buffers, kind)


def _of_sparse_tensor(tensor: SparseTensor, check: Check) -> Operand:
    settled = tensor.settled
    is_as_seen = tensor.is_as_seen()
    if settled is None or check == "always" or not is_as_seen:
        settled = _settle_tensor(tensor, check if is_as_seen else "always")
        tensor.settled = settled
        tensor.look()
    operand = operand_from(settled, tensor.values, tensor.fill_value, "sparse-tensor")
    tensor.operand = operand if operand.is_shared else None
    return operand


def _settle_tensor(tensor: SparseTensor, check: Check) -> Settled:
    structure, fmt = tensor.structure, tensor.format
    host = on_host(structure)
    if check == "always":
        check_structure(host)
    canonical = canonical_format(fmt)
    count = len(tensor.values)
    if fmt == canonical:
        return Settled(structure, ValuePlan(), count)
    try:
        check_structure(with_format(host, canonical))
    except ValueError:  # sound, as it was checked before: unordered, or with duplicates
        sorted_structure, plan = canonicalized(with_format(host, relaxed_format(fmt)))
        found = Settled(sorted_structure, plan, count)
        return found if host is structure else settled_on_device(found)
    return Settled(with_format(structure, canonical), ValuePlan(), count)


def _of_foreign(obj: Any, check: Check) -> Operand:
    if getattr(type(obj), "lies_on_device", False):
        return _of_array(obj, "cupy")
    match type(obj).__module__.split(".")[0]:
        case "cupy" if is_device_array(obj) and hasattr(obj, "__cuda_array_interface__"):
            return _of_array(obj, "cupy")
        case "cupyx":
            return _of_cupyx(obj, check)
        case "sparse":
            plain, adapter = pydata_adapter(obj)
            if plain is obj:
                return _of_adapted(obj, adapter, check)
            return _of_converted(plain, adapter, "pydata")
        case "torch" if hasattr(obj, "layout"):
            if str(obj.layout) == "torch.strided":
                return _of_array(torch_dense(obj), "torch")
            return _of_adapted(obj, torch_adapter(obj), check)
        case _:
            return _of_array_protocols(obj)


def _of_cupyx(obj: Any, check: Check) -> Operand:
    adapter = CUPYX_ADAPTERS.get(getattr(obj, "format", ""))
    if adapter is not None:
        return _of_adapted(obj, adapter, check)
    if not hasattr(obj, "tocsr"):
        raise TensorTypeError(f"{type(obj).__name__} of cupyx is no tensor")
    return _of_converted(obj.tocsr(), CUPYX_ADAPTERS["csr"], "cupyx")


def _of_array_protocols(obj: Any) -> Operand:
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        return _of_array(array_through_dlpack(obj), "dlpack")
    if hasattr(obj, "__cuda_array_interface__"):
        return _of_array(cupy_module().asarray(obj), "dlpack")
    raise TensorTypeError(
        f"an object of type {type(obj).__name__} is no tensor",
        hint="pass NumPy, SciPy or CuPy arrays, or sj.asarray(...) of it",
    )
