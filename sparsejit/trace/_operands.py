"""What may stand in an expression: traced arrays, extents, scalars, and objects from outside.

In: any Python object that the user's code puts into an operation. Out: an ``Array`` of the trace.
Python and NumPy scalars are constants of the trace; array objects that are no arguments (closures,
globals) are captured: they become parameters after the arguments, read anew at each call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from sparsejit.affine import AffineExpr, Constant, Dim
from sparsejit.errors import TensorValueError, TraceError, UnsupportedError
from sparsejit.ir.fold import constant
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType
from sparsejit.tensors import SparseTensor, concrete
from sparsejit.tensors import describe as describe_tensor
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace
from sparsejit.trace._interface import ArgumentSpec
from sparsejit.trace._locations import caller
from sparsejit.trace._pointwise import Pointwise, constant_of, substituted
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._symbolic import SymbolicInt, extent_value

__all__ = ["NoValue", "as_array", "broadcast", "broadcast_to", "shape_text"]


class NoValue(ABC):
    """What a subscript gives that has no value of its own until something is assigned to it."""

    @abstractmethod
    def refusal(self) -> UnsupportedError:
        """Return the error for any use of the value."""


def _python_scalar(value: bool | int | float | complex) -> Pointwise:
    match value:
        case bool():
            return Pointwise(Const(value, DType.BOOL), (), DType.BOOL, weak=True)
        case int():
            # Not wrapped: it may be meant for uint64, and what does not fit is refused there.
            return Pointwise(Const(value, DType.INT64), (), DType.INT64, weak=True)
        case float():
            return Pointwise(Const(value, DType.FLOAT64), (), DType.FLOAT64, weak=True)
        case complex():
            return Pointwise(Const(value, DType.COMPLEX128), (), DType.COMPLEX128, weak=True)


def _is_tensor(obj: object) -> bool:
    """Whether ``obj`` is an array or sparse array from outside."""
    if isinstance(obj, np.ndarray | SparseTensor) or scipy.sparse.issparse(obj):
        return True
    protocols = ("__dlpack__", "__cuda_array_interface__")
    foreign = ("cupyx", "sparse", "torch")
    root = type(obj).__module__.split(".")[0]
    return root in foreign or any(hasattr(type(obj), protocol) for protocol in protocols)


def as_array(trace: Trace, obj: object) -> Array:
    """Return ``obj`` as an array of the trace.

    Raises ``TraceError`` for an array of another trace and for what is no operand.
    """
    match obj:
        case Array():
            return obj
        case NoValue():
            raise obj.refusal()
        case SymbolicInt():
            return trace.pointwise(extent_value(trace, obj.expr), ())
        case np.generic():
            dtype = dtype_of_numpy(obj.dtype)
            return trace.pointwise(constant_of(obj, dtype), ())
        case bool() | int() | float() | complex():
            return trace.pointwise(_python_scalar(obj), ())
        case _ if _is_tensor(obj):
            return trace.array(trace.capture(obj, lambda name: describe(name, obj)))
        case list() | tuple():
            return as_array(trace, np.asarray(obj))
        case _:
            raise TraceError(
                f"{type(obj).__name__} is not an operand",
                hint="operands are arrays, sparse arrays and scalars",
                location=caller(),
            )


def describe(name: str, obj: object) -> ArgumentSpec:
    """Return the specification of a captured array or sparse array."""
    operand = concrete(describe_tensor(obj))  # the widths of its arrays, as at a call
    dtype = dtype_of_numpy(operand.dtype)
    fill = constant(operand.fill_value, dtype)
    return ArgumentSpec(name, tuple(operand.shape), dtype, operand.format, fill)


def shape_text(trace: Trace, shape: Sequence[AffineExpr]) -> str:
    """Return the shape of the traced call, as NumPy prints it.

    A shape of one dimension keeps its comma: ``(3,)``.
    """
    return str(tuple(trace.extents.number(trace.extents.resolve(extent)) for extent in shape))


def broadcast(
    trace: Trace, arrays: Sequence[Array]
) -> tuple[list[Pointwise], tuple[AffineExpr, ...]]:
    """Return the contents of ``arrays`` over common dimensions, and the common shape.

    Raises ``TensorTypeError`` where the shapes do not broadcast.
    """
    shapes = [array.extents for array in arrays]
    rank = max(map(len, shapes), default=0)
    common: list[AffineExpr] = [Constant(1)] * rank
    for shape in shapes:
        for d, extent in enumerate(shape, rank - len(shape)):
            if trace.extents.is_one(extent):
                continue
            if common[d] == Constant(1):
                common[d] = extent
            elif not trace.extents.unify(common[d], extent):
                texts = " ".join(shape_text(trace, other) for other in shapes)
                raise TensorValueError(
                    f"operands could not be broadcast together with shapes {texts}",
                    hint="shapes meet at their last axes: new ones are put in with x[:, None]",
                    location=caller(),
                )
    resolved = tuple(trace.extents.resolve(extent) for extent in common)
    parts = [_spread(trace, array.read(), array.extents, resolved) for array in arrays]
    return parts, resolved


def broadcast_to(trace: Trace, array: Array, shape: Sequence[AffineExpr]) -> Pointwise:
    """Return the content of ``array`` over the dimensions of a result of ``shape``.

    Raises ``TensorTypeError`` where it does not broadcast to that shape.
    """
    own = array.extents
    fits = len(own) <= len(shape)
    for extent, wanted in zip(reversed(own), reversed(shape), strict=False):
        fits = fits and (trace.extents.is_one(extent) or trace.extents.unify(wanted, extent))
    if not fits:
        texts = f"{shape_text(trace, own)} into shape {shape_text(trace, shape)}"
        raise TensorValueError(f"could not broadcast input from shape {texts}", location=caller())
    return _spread(trace, array.read(), array.extents, shape)


def _spread(
    trace: Trace, part: Pointwise, own: Sequence[AffineExpr], shape: Sequence[AffineExpr]
) -> Pointwise:
    """Move the dimensions of ``part`` to the last ones of ``shape``; extents of 1 repeat."""
    moved: dict[int, AffineExpr] = {}
    for d, extent in enumerate(own):
        place = d + len(shape) - len(own)
        repeats = trace.extents.is_one(extent) and shape[place] != Constant(1)
        moved[d] = Constant(0) if repeats else Dim(place)
    if all(index == Dim(d) for d, index in moved.items()):
        return part
    return substituted(part, moved)
