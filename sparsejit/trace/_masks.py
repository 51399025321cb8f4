"""Boolean masks as subscripts: ``S[S > t] = 0`` and ``y[m] *= 2``, which assign where a mask holds.

In: an array and a mask of its shape. Out: for an assignment, the array has a new content; a mask
that is read has no value of its own, since its size is known only at run time.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from sparsejit.errors import SubscriptError, TensorTypeError, UnsupportedError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Trace
from sparsejit.trace._elementwise import operator, where
from sparsejit.trace._functions import astype
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import NoValue, as_array, shape_text
from sparsejit.trace._promotion import can_cast

__all__ = ["MaskedElements", "assign_masked", "mask_of", "updated"]


def mask_of(trace: Trace, array: Array, key: tuple[Any, ...]) -> Array | None:
    """Return the mask that a subscript is; None where it is none.

    Raises ``SubscriptError`` for a mask of another shape.
    """
    if len(key) != 1 or not isinstance(key[0], Array | np.ndarray):
        return None
    mask = as_array(trace, key[0])
    if mask.element_type is not DType.BOOL:
        return None
    same = len(mask.extents) == len(array.extents) and all(
        map(trace.extents.unify, array.extents, mask.extents)
    )
    if not same:
        raise SubscriptError(
            f"boolean index of shape {shape_text(trace, mask.extents)} for an array of shape "
            f"{shape_text(trace, array.extents)}",
            hint="a mask has the shape of the array",
            location=caller(),
        )
    return mask


class MaskedElements(NoValue):
    """What ``A[mask]`` is between Python's reading and its assignment; it has no value."""

    def __init__(self, trace: Trace, array: Array, mask: Array) -> None:
        self.trace, self.array, self.mask = trace, array, mask
        self.value: Any = None
        self.location = caller()

    def refusal(self) -> UnsupportedError:
        """Return the error for a use of the elements."""
        return UnsupportedError(
            "the elements of an array at a boolean mask are not built",
            hint="use np.where or sj.select, which keep the shape",
            location=self.location,
            reasons=("how many there are is known only at run time",),
        )

    def _update(self, ufunc: np.ufunc, other: Any) -> MaskedElements:
        self.value = operator(self.trace, ufunc, (self.array, _number(self.trace, other)))
        dtype = self.array.element_type
        if not can_cast(self.value.element_type, dtype):
            found, wanted = self.value.dtype.name, numpy_dtype(dtype).name
            self.value = None
            raise TensorTypeError(
                f"Cannot cast ufunc '{ufunc.__name__}' output from dtype('{found}') to "
                f"dtype('{wanted}') with casting rule 'same_kind'",
                hint=f"convert the value with .astype({wanted!r})",
                location=self.location,
            )
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name[:2] == "__":
            raise AttributeError(name)
        raise self.refusal()

    def _refuse(self, *args: Any) -> Any:
        raise self.refusal()

    def __iadd__(self, other: Any) -> MaskedElements:
        return self._update(np.add, other)

    def __isub__(self, other: Any) -> MaskedElements:
        return self._update(np.subtract, other)

    def __imul__(self, other: Any) -> MaskedElements:
        return self._update(np.multiply, other)

    def __itruediv__(self, other: Any) -> MaskedElements:
        return self._update(np.true_divide, other)

    def __ifloordiv__(self, other: Any) -> MaskedElements:
        return self._update(np.floor_divide, other)

    def __imod__(self, other: Any) -> MaskedElements:
        return self._update(np.remainder, other)

    def __ipow__(self, other: Any) -> MaskedElements:
        return self._update(np.power, other)


_VALUE_NEEDED = (
    *("add", "sub", "mul", "truediv", "pow", "matmul", "neg", "abs", "lt", "le", "gt", "ge"),
    *("radd", "rsub", "rmul", "rtruediv", "rpow", "rmatmul", "bool", "float", "int", "len"),
    *("iter", "getitem", "array", "array_ufunc", "array_function"),
)
for _operator in _VALUE_NEEDED:  # without the class knowing: the in-place operators are no such use
    setattr(MaskedElements, f"__{_operator}__", MaskedElements._refuse)


def _number(trace: Trace, value: Any) -> Array:
    """Return the value of a masked assignment, one number for all elements."""
    array = as_array(trace, value)
    if array.extents:
        raise UnsupportedError(
            "an array assigned through a boolean mask is not built",
            hint="use np.where(mask, new, old), with new of the shape of the mask",
            location=caller(),
            reasons=("how many elements it needs is known only at run time",),
        )
    return array


def assign_masked(trace: Trace, array: Array, mask: Array, value: Any) -> None:
    """Store one number where a mask holds."""
    dtype = numpy_dtype(array.element_type)
    new = where(mask, astype(_number(trace, value), dtype), array)
    assign_value(trace, array, new, None, caller())


def updated(trace: Trace, array: Array, value: MaskedElements) -> None:
    """Store what ``array[mask] op= number`` gives."""
    new = where(value.mask, astype(value.value, numpy_dtype(array.element_type)), array)
    assign_value(trace, array, new, None, caller())
