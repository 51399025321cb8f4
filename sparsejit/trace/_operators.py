"""Python's operators, once for arrays, indices and indexed expressions.

Each operator is the NumPy ufunc that NumPy uses for it; what a ufunc means is decided by the class.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

__all__ = ["Operators", "UpdateOperators"]


class Operators:
    """All operators in terms of ``_operate``; ``==`` is elementwise, hashing is by identity."""

    __slots__ = ()
    __hash__ = object.__hash__

    @abstractmethod
    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        """Apply ``ufunc`` to the operands, one of which is ``self``."""

    def __add__(self, other: Any) -> Any:
        return self._operate(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self._operate(np.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return self._operate(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._operate(np.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._operate(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._operate(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._operate(np.true_divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._operate(np.true_divide, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._operate(np.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._operate(np.floor_divide, other, self)

    def __mod__(self, other: Any) -> Any:
        return self._operate(np.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._operate(np.remainder, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        is_scalar = getattr(self, "extents", None) == ()
        if type(other) is int and other == 2 and not is_scalar:  # of bools NumPy makes int8 here
            return self._operate(np.square, self)
        return self._operate(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._operate(np.power, other, self)

    def __and__(self, other: Any) -> Any:
        return self._operate(np.bitwise_and, self, other)

    def __rand__(self, other: Any) -> Any:
        return self._operate(np.bitwise_and, other, self)

    def __or__(self, other: Any) -> Any:
        return self._operate(np.bitwise_or, self, other)

    def __ror__(self, other: Any) -> Any:
        return self._operate(np.bitwise_or, other, self)

    def __xor__(self, other: Any) -> Any:
        return self._operate(np.bitwise_xor, self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._operate(np.bitwise_xor, other, self)

    def __lshift__(self, other: Any) -> Any:
        return self._operate(np.left_shift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self._operate(np.left_shift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return self._operate(np.right_shift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._operate(np.right_shift, other, self)

    def __neg__(self) -> Any:
        return self._operate(np.negative, self)

    def __pos__(self) -> Any:
        return self._operate(np.positive, self)

    def __abs__(self) -> Any:
        return self._operate(np.absolute, self)

    def __invert__(self) -> Any:
        return self._operate(np.invert, self)

    def __lt__(self, other: Any) -> Any:
        return self._operate(np.less, self, other)

    def __le__(self, other: Any) -> Any:
        return self._operate(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return self._operate(np.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return self._operate(np.greater_equal, self, other)

    def __eq__(self, other: object) -> Any:
        return self._operate(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return self._operate(np.not_equal, self, other)


class UpdateOperators:
    """Python's ``+=`` and its kin; ``_updated`` says what such an update does."""

    __slots__ = ()

    @abstractmethod
    def _updated(self, ufunc: np.ufunc, other: Any) -> Any:
        """Return what ``self op= other`` makes of the name on the left."""

    def __iadd__(self, other: Any) -> Any:
        return self._updated(np.add, other)

    def __isub__(self, other: Any) -> Any:
        return self._updated(np.subtract, other)

    def __imul__(self, other: Any) -> Any:
        return self._updated(np.multiply, other)

    def __itruediv__(self, other: Any) -> Any:
        return self._updated(np.true_divide, other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._updated(np.floor_divide, other)

    def __imod__(self, other: Any) -> Any:
        return self._updated(np.remainder, other)

    def __ipow__(self, other: Any) -> Any:
        return self._updated(np.power, other)

    def __iand__(self, other: Any) -> Any:
        return self._updated(np.bitwise_and, other)

    def __ior__(self, other: Any) -> Any:
        return self._updated(np.bitwise_or, other)

    def __ixor__(self, other: Any) -> Any:
        return self._updated(np.bitwise_xor, other)

    def __ilshift__(self, other: Any) -> Any:
        return self._updated(np.left_shift, other)

    def __irshift__(self, other: Any) -> Any:
        return self._updated(np.right_shift, other)
