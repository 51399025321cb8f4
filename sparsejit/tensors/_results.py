"""Results: buffers that sparsejit made, as the kind of object that the caller works with.

In: format, shape, buffers in canonical order, fill value. Out: a NumPy array, a SciPy sparse array,
a cupyx matrix or a ``SparseTensor`` over these buffers; nothing is copied or checked. What is made
again and again has a function of its own, which has decided once what does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from sparsejit.formats import Format
from sparsejit.tensors._device import cupyx_matrix
from sparsejit.tensors._scipy import build_scipy, class_that_holds, scipy_builder
from sparsejit.tensors._sparse_tensor import is_device_array, trusted_tensor
from sparsejit.tensors._storage import split_buffers

__all__ = ["Like", "result_maker", "wrap_result"]

Like = Literal["scipy", "cupyx", "native"]

_CUPYX = ("csr", "csc", "coo")
"""The classes of cupyx; they hold floats, complex numbers and bools."""


def wrap_result(
    format: Format,
    shape: tuple[int, ...],
    buffers: Sequence[Any],
    fill_value: Any = 0,
    like: Like = "native",
) -> Any:
    """Return the object for a result whose buffers, in canonical order, sparsejit has made.

    A dense format gives the array itself. ``like="scipy"`` gives a SciPy sparse array when the
    fill value is 0 and a SciPy class can hold format and dtype, ``like="cupyx"`` a cupyx matrix
    of buffers on the device likewise; everything else is a ``SparseTensor``. Raises
    ``ValueError`` for a wrong number of buffers.

    >>> import numpy as np
    >>> from sparsejit.formats import CSR
    >>> parts = (np.array([0, 1, 1]), np.array([2]), np.array([5.0]))
    >>> wrap_result(CSR, (2, 3), parts, like="scipy").toarray().tolist()
    [[0.0, 0.0, 5.0], [0.0, 0.0, 0.0]]
    """
    structure, values = split_buffers(format, shape, buffers)
    if format.is_dense:
        return values.reshape(shape)
    if like == "scipy" and not is_device_array(values):
        name, _ = class_that_holds(structure, values.dtype, fill_value)
        if name:
            return build_scipy(name, structure, values)
    tensor = trusted_tensor(structure, values.reshape(-1), fill_value)
    if like == "cupyx" and is_device_array(values) and len(shape) == 2:
        name, _ = class_that_holds(structure, values.dtype, fill_value)
        if name in _CUPYX and values.dtype.kind in "bfc":
            return cupyx_matrix(tensor)
    return tensor


def result_maker(
    format: Format,
    shape: tuple[int, ...],
    dtypes: Sequence[np.dtype[Any]],
    fill_value: Any = 0,
    like: Like = "native",
) -> Callable[[Sequence[Any]], Any]:
    """Return ``wrap_result`` for buffers of these dtypes; SciPy's two for indices are as good.

    >>> from sparsejit.formats import CSR
    >>> parts = (np.array([0, 1, 1]), np.array([2]), np.array([5.0]))
    >>> result_maker(CSR, (2, 3), [part.dtype for part in parts], like="scipy")(parts).nnz
    1
    """
    build: Callable[[Sequence[Any]], Any] | None = None
    if like == "scipy" and not format.is_dense:
        structure, _ = split_buffers(format, shape, [np.empty(0, dtype) for dtype in dtypes])
        name, _ = class_that_holds(structure, dtypes[-1], fill_value)
        build = scipy_builder(name, format, shape) if name else None

    def make(buffers: Sequence[Any]) -> Any:
        if build is not None and type(buffers[-1]) is np.ndarray:
            return build(buffers)
        return wrap_result(format, shape, buffers, fill_value, like)

    return make
