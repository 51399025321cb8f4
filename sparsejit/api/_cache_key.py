"""The cache key of a call, and the specification of each operand for the trace.

In: the description of each operand. Out: a hashable token that holds what DESIGN's section 2 lists
and nothing else (so other shapes do not compile anew), and the ``ArgumentSpec``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from sparsejit.ir.fold import constant
from sparsejit.ir.types import DType
from sparsejit.tensors import Operand
from sparsejit.trace import ArgumentKind, ArgumentSpec

__all__ = ["argument_spec", "operand_token"]

_KINDS = {
    "python-scalar": ArgumentKind.PYTHON_SCALAR,
    "numpy-scalar": ArgumentKind.NUMPY_SCALAR,
}


def operand_token(operand: Operand) -> Hashable:
    """Return what of an operand decides the generated code.

    The format with its index widths, the dtype, the kind of a scalar, the bits of the fill value,
    which extents are 1, the stride class of a dense array, and where the operand lives.
    """
    if operand.is_dense:
        fill, strides = b"", _stride_class(operand.buffers[0])
    else:
        fill, strides = operand.fill_value.tobytes(), ""
    ones = tuple(extent == 1 for extent in operand.shape)
    kind = operand.kind if operand.kind in _KINDS else ""
    return operand.format, operand.dtype, kind, fill, ones, strides, operand.on_device


def _stride_class(array: Any) -> str:
    """Return ``"C"``, ``"F"`` or ``"other"``; what is both counts as C."""
    flags = array.flags
    if flags.c_contiguous:
        return "C"
    return "F" if flags.f_contiguous else "other"


def argument_spec(name: str, operand: Operand) -> ArgumentSpec:
    """Return the operand as tracing wants to know it; ``name`` becomes an identifier.

    >>> import numpy as np
    >>> from sparsejit.tensors import operand_of
    >>> argument_spec("params['W']", operand_of(np.ones(3))).name
    'params_W'
    """
    dtype = DType(operand.dtype.name)
    return ArgumentSpec(
        name=re.sub(r"\W+", "_", name).strip("_") or "argument",
        shape=operand.shape,
        dtype=dtype,
        format=operand.format,
        fill=constant(operand.fill_value, dtype),
        kind=_KINDS.get(operand.kind, ArgumentKind.ARRAY),
    )
