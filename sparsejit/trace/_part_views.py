"""Views of parts of numbers: ``.real`` and ``.imag`` of dense arrays, through which one assigns.

In: an array. Out: the array of its real or imaginary parts, or of its bits as another type; reading
sees the present content of the base, assigning changes the base, as in NumPy. Of sparse arrays they
are copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsejit.errors import UnsupportedError
from sparsejit.ir.ops import BinaryOp, UnaryOp
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Cell, Trace, require_trace
from sparsejit.trace._elementwise import elementwise
from sparsejit.trace._emit import Term
from sparsejit.trace._indexed import Index, Indexed
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import Pointwise, binary, cast, constant_of, select, unary
from sparsejit.trace._result_formats import result_layout
from sparsejit.trace._sealed import READ_ONLY

__all__ = [
    "assign_part",
    "complex_of",
    "has_bits",
    "imag",
    "is_strided",
    "itself",
    "real",
    "viewed_as",
    "will_be_dense",
]


def complex_of(re: Pointwise, im: Pointwise) -> Pointwise:
    """Return the complex number of two reals of one dtype; infinities, nan and -0.0 are kept.

    ``im * 1j`` alone would not do: with an infinite ``im`` its real part is nan.
    """
    dtype = DType.COMPLEX64 if re.dtype is DType.FLOAT32 else DType.COMPLEX128
    unit = constant_of(1j, dtype)
    # (im - 0j) * 1j is 0 + im * 1j for every finite number, either zero included.
    finite = binary(BinaryOp.MUL, unary(UnaryOp.CONJ, cast(im, dtype)), unit)
    above, below, none = (
        constant_of(complex(0.0, value), dtype) for value in (np.inf, -np.inf, np.nan)
    )
    is_above = binary(BinaryOp.GT, im, constant_of(0, im.dtype))
    infinite = select(unary(UnaryOp.ISNAN, im), none, select(is_above, above, below))
    high = select(unary(UnaryOp.ISFINITE, im), finite, infinite)
    # Both summands have a -0.0 where the other has the part, which leaves each part as it is.
    high = unary(UnaryOp.CONJ, unary(UnaryOp.NEG, high))
    return binary(BinaryOp.ADD, unary(UnaryOp.CONJ, cast(re, dtype)), high)


class _PartCell(Cell):
    """What ``x.real`` or ``x.imag`` of a complex array stands for: that part of the base, now.

    ``op`` may also be the type of as many bits that the base is viewed as.
    """

    __slots__ = ("_made", "_of", "base", "op")

    def __init__(self, base: Array, op: UnaryOp | DType) -> None:
        self.base = base
        self.op = op
        self._of: Pointwise | None = None
        self._made: Pointwise | None = None
        self.shape = base.extents
        self.param = None
        self.assigned = False
        self.immutable = False
        self.location = caller()
        self.block = base._trace.block_of(base._cell)
        self.sealed = None

    @property
    def content(self) -> Pointwise:
        part = self._seen()
        return self._made if self._made is not None and part == self._of else part

    @content.setter
    def content(self, new: Pointwise) -> None:
        """Store a new part, beside the other one, in the base."""
        base = self.base
        match self.op:
            case DType():
                whole = with_bits(new, base.element_type)
            case UnaryOp.REAL:
                whole = complex_of(new, unary(UnaryOp.IMAG, base.read()))
            case _:
                whole = complex_of(unary(UnaryOp.REAL, base.read()), new)
        base.store([Term(whole)], dict(enumerate(base.extents)), True, caller())
        self.computed(new)

    def computed(self, content: Pointwise) -> None:
        """Keep what has been computed, for as long as the base is what it is now."""
        self._of, self._made = self._seen(), content

    def _seen(self) -> Pointwise:
        part = self.base.read()
        return with_bits(part, self.op) if isinstance(self.op, DType) else unary(self.op, part)


def will_be_dense(array: Array) -> bool:
    """Whether an array is dense, or will be when it is computed."""
    content = array._cell.content
    if not isinstance(content, Pointwise) or content.view is not None:
        return array.is_dense
    return result_layout(content, range(len(array._cell.shape))).format.is_dense


def is_strided(array: Array) -> bool:
    """Whether the elements of a dense array are parts of larger ones."""
    return isinstance(array._cell, _PartCell) and isinstance(array._cell.op, UnaryOp)


def itself(array: Array) -> Any:
    """Return a dense array as a view of itself, a sparse one or a scalar as a new array."""
    if not array._cell.immutable and will_be_dense(array):
        return array.viewed(array.present_view)
    return elementwise(array._trace, lambda parts: parts[0], (array,))


def has_bits(own: DType, wanted: DType) -> bool:
    """Whether the bits of an element can be read as those of another type of its size.

    16-bit floats are computed in 32 bits, and a bool has one bit only.
    """
    one, other = ((kind.is_integer, kind.is_float and kind.bits >= 32) for kind in (own, wanted))
    return own.bits == wanted.bits and any(one) and any(other)


def with_bits(part: Pointwise, dtype: DType) -> Pointwise:
    """Return the number of ``dtype`` that has the bits of ``part``."""
    if part.dtype is dtype:
        return part
    if part.dtype.is_float:
        part = unary(UnaryOp.BITS, cast(part, part.dtype))
    if dtype.is_float:
        return unary(UnaryOp.FROM_BITS, cast(part, part.dtype.as_bits))
    return cast(part, dtype)


def viewed_as(array: Array, dtype: DType) -> Any:
    """Return the bits of elements as those of another type: a view of a dense array."""
    if not array._cell.immutable and will_be_dense(array):
        return array._trace.array(_PartCell(array, dtype))
    return elementwise(array._trace, lambda parts: with_bits(parts[0], dtype), (array,))


def _part(trace: Trace, a: Any, op: UnaryOp) -> Any:
    array = a if isinstance(a, Index | Indexed) else as_array(trace, a)
    if not isinstance(array, Array):
        return elementwise(trace, lambda parts: _of_number(op, parts[0]), (array,))
    if array.element_type.is_complex:
        if not array._cell.immutable and will_be_dense(array):
            return trace.array(_PartCell(array, op))
        return elementwise(trace, lambda parts: unary(op, parts[0]), (array,))
    if op is UnaryOp.REAL:
        return itself(array)
    made = elementwise(trace, lambda parts: _of_number(op, parts[0]), (array,))
    made._cell.sealed = READ_ONLY
    return made


def _of_number(op: UnaryOp, part: Pointwise) -> Pointwise:
    if part.dtype.is_complex:
        return unary(op, part)
    return part if op is UnaryOp.REAL else constant_of(0, part.dtype)


def real(val: Any) -> Any:
    """``np.real``: a view of a dense array."""
    return _part(require_trace("real"), val, UnaryOp.REAL)


def imag(val: Any) -> Any:
    """``np.imag``: a view of a dense complex array; zeros that cannot be assigned of a real one."""
    return _part(require_trace("imag"), val, UnaryOp.IMAG)


def assign_part(array: Array, op: UnaryOp, value: Any) -> None:
    """Do ``x.real = value`` and ``x.imag = value``, which also end ``x.real += value``."""
    made = _part(array._trace, array, op)
    seen = value._cell if isinstance(value, Array) else None
    if isinstance(seen, _PartCell) and seen.op is op and _is_same(seen.base, array):
        return  # the update has been stored through the view
    if seen is array._cell and value.present_view == array.present_view:
        return
    if array._cell.immutable or not array.is_dense:
        raise UnsupportedError(
            "assignment to a part of the numbers of a sparse array or scalar is not built",
            hint="make a new one, as in A.real + 1j * imaginary",
            location=caller(),
        )
    assign_value(array._trace, made, value, None, caller())


def _is_same(one: Array, other: Array) -> bool:
    return one._cell is other._cell and one.present_view == other.present_view
