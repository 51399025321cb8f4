"""``ArrayTracer``: the arrays that the user's function sees while it is traced.

Operators and methods of NumPy arrays, and NumPy's protocols: ``np.exp(A)`` arrives in
``__array_ufunc__``, ``np.sum(A)`` in ``__array_function__``. What cannot be known while tracing (a
truth value, an element as a Python number) is a ``TraceError`` with the user's line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from sparsejit.errors import TraceError, UnsupportedError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.trace import _functions as functions
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Unassigned, check_alive, require_trace
from sparsejit.trace._elementwise import operator
from sparsejit.trace._indexed import Index, Indexed, IndexedTerm, Update
from sparsejit.trace._indexing import (
    basic,
    basic_view,
    has_indices,
    indexed_access,
    keys_of,
    same_key,
)
from sparsejit.trace._locations import caller
from sparsejit.trace._numpy import call_function, call_ufunc
from sparsejit.trace._operators import Operators
from sparsejit.trace._promotion import dtype_of_numpy
from sparsejit.trace._statements import assign_indexed
from sparsejit.trace._symbolic import SymbolicInt, symbolic

__all__ = ["ArrayTracer", "output"]


class ArrayTracer(Operators, Array):
    """A traced array: used like a NumPy array, it records what is computed."""

    __slots__ = ()
    # SciPy's matrices on the left leave the operation to us.
    __array_priority__ = 1000

    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        self._trace.count_step()
        return operator(self._trace, ufunc, operands)

    def __matmul__(self, other: Any) -> Any:
        self._trace.count_step()
        return functions.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        self._trace.count_step()
        return functions.matmul(other, self)

    # ------------------------------------------------------------ what an array is

    @property
    def shape(self) -> tuple[SymbolicInt | int, ...]:
        """The extents; those that differ between calls are symbolic."""
        check_alive(self._trace, "a traced array")
        return tuple(symbolic(self._trace, extent) for extent in self.extents)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def size(self) -> Any:
        """The number of elements."""
        total: Any = 1
        for extent in self.shape:
            total = total * extent
        return total

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return numpy_dtype(self.element_type)

    @property
    def T(self) -> Any:
        """The transpose: a view where the array is dense."""
        return functions.transpose(self)

    @property
    def mT(self) -> Any:
        """The transpose of the last two dimensions."""
        return functions.swapaxes(self, -1, -2)

    @property
    def real(self) -> Any:
        """The real part."""
        return functions.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return functions.imag(self)

    def __len__(self) -> int:
        check_alive(self._trace, "a traced array")
        if not self.extents:
            raise TraceError("len() of an array of rank 0", location=caller())
        return self._trace.pin(self.extents[0], "len()")

    def __repr__(self) -> str:
        if isinstance(self._cell.content, Unassigned):
            return "<traced output, unassigned>"
        return f"<traced array of rank {len(self.extents)}, {self.element_type.value}>"

    # ------------------------------------------------------------ subscripts

    def __getitem__(self, key: Any) -> Any:
        split = keys_of(key)
        if has_indices(split):
            return indexed_access(self._trace, self, split)
        if isinstance(self._cell.content, Unassigned) and split == ():
            return Indexed(self._trace, (), None, origin=(self, ()))
        made = basic(self._trace, self, split)
        if made._cell.immutable:
            made._inplace = (self, split)
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        self._trace.count_step()
        split = keys_of(key)
        if isinstance(value, Update) and value.target.origin is not None:
            array, read = value.target.origin
            if array is self and same_key(read, split):
                assign_indexed(self._trace, self, split, value.value, value.ufunc)
                return
        unassigned = isinstance(self._cell.content, Unassigned)
        if has_indices(split) or isinstance(value, Index | Indexed) or (unassigned and split == ()):
            assign_indexed(self._trace, self, split, value, None)
            return
        self._set_basic(split, value)

    def _set_basic(self, key: tuple[Any, ...], value: Any) -> None:
        if isinstance(self._cell.content, Unassigned):
            functions.start_output(self, value)
        view = basic_view(self._trace, self, key)
        if isinstance(value, Array):
            if value._cell is self._cell and value.present_view == view:
                return  # `y[1:5] += e` has updated y through the view already
            match value._inplace:
                case (array, read, np.ufunc() as ufunc, operand) if array is self and read == key:
                    target = self.viewed(view)
                    assign_value(self._trace, target, operand, ufunc, caller())
                    return
                case _:
                    pass
        whole = view == self.present_view and self._view is None
        target = self if whole else self.viewed(view)
        assign_value(self._trace, target, value, None, caller())

    def _update(self, ufunc: np.ufunc, other: Any) -> Any:
        """Do ``self op= other``: in place for arrays; of a scalar Python makes a new one."""
        if isinstance(other, Index | Indexed):
            match self._inplace:
                case (array, key):  # `x[0] += A[i, j]`: the element has no index, so all is summed
                    part = self.read()
                    read = Indexed(self._trace, (IndexedTerm(part),), part, origin=(array, key))
                    return Update(read, ufunc, other)
                case _:
                    pass
            if self._cell.immutable:  # of a scalar Python makes a new one
                return operator(self._trace, ufunc, (self, other))
            if not self.extents:
                assign_indexed(self._trace, self, (), other, ufunc)
                return self
            raise TraceError(
                "a whole array is updated with an indexed expression",
                hint="index the left side too, as in y[i] += ...",
                location=caller(),
            )
        if self._cell.immutable and self._view is None:
            made = operator(self._trace, ufunc, (self, other))
            match self._inplace:
                case (array, key):
                    made._inplace = (array, key, ufunc, other)
                case _:
                    pass
            return made
        assign_value(self._trace, self, other, ufunc, caller())
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._update(np.add, other)

    def __isub__(self, other: Any) -> Any:
        return self._update(np.subtract, other)

    def __imul__(self, other: Any) -> Any:
        return self._update(np.multiply, other)

    def __itruediv__(self, other: Any) -> Any:
        return self._update(np.true_divide, other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._update(np.floor_divide, other)

    def __imod__(self, other: Any) -> Any:
        return self._update(np.remainder, other)

    def __ipow__(self, other: Any) -> Any:
        return self._update(np.power, other)

    def __iand__(self, other: Any) -> Any:
        return self._update(np.bitwise_and, other)

    def __ior__(self, other: Any) -> Any:
        return self._update(np.bitwise_or, other)

    def __ixor__(self, other: Any) -> Any:
        return self._update(np.bitwise_xor, other)

    def __ilshift__(self, other: Any) -> Any:
        return self._update(np.left_shift, other)

    def __irshift__(self, other: Any) -> Any:
        return self._update(np.right_shift, other)

    # ------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self._trace.count_step()
        return call_ufunc(self._trace, ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        self._trace.count_step()
        return call_function(func, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        above = sys._getframe(1).f_globals.get("__name__", "")
        if above.startswith("scipy.sparse"):
            # SciPy asks whether it knows the other operand; this says no, and our operator runs.
            held = np.empty((), dtype=object)
            held[()] = self
            return held
        return self._refuse("a traced array cannot become a NumPy array")

    # ------------------------------------------------------------ what is not known yet

    def _refuse(self, what: str, hint: str = "use operations that sparsejit traces") -> NoReturn:
        raise TraceError(what, hint=hint, location=caller())

    def __bool__(self) -> bool:
        self._refuse(
            "the truth value of a traced array is not known while tracing",
            "use sj.where to choose between values; branch on static arguments only",
        )

    def __iter__(self) -> Iterator[Any]:
        self._refuse("a traced array cannot be iterated over", "use array operations or indices")

    def __contains__(self, item: Any) -> bool:
        self._refuse("whether a traced array contains a value is not known while tracing")

    def __float__(self) -> float:
        self._refuse("the value of a traced array is not known while tracing")

    def __int__(self) -> int:
        self._refuse("the value of a traced array is not known while tracing")

    def __index__(self) -> int:
        self._refuse("the value of a traced array is not known while tracing")

    def __delitem__(self, key: Any) -> None:
        self._refuse("elements of a traced array cannot be deleted")

    def __copy__(self) -> Any:
        return functions.copy(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return functions.copy(self)

    def __reduce__(self) -> NoReturn:
        self._refuse("a traced array cannot be pickled")

    def __complex__(self) -> complex:
        self._refuse("the value of a traced array is not known while tracing")

    # ------------------------------------------------------------ methods

    def __getattr__(self, name: str) -> Any:
        method = functions.METHODS.get(name)
        if method is None and callable(getattr(np.ndarray, name, None)) and name[0] != "_":
            method = _not_built(name)
        if method is None:
            raise AttributeError(
                f"traced arrays have no attribute {name!r} (at {caller()})", name=name, obj=self
            )

        def bound(*args: Any, **kwargs: Any) -> Any:
            return method(self, *args, **kwargs)

        bound.__name__ = name
        return bound


def _not_built(name: str) -> Callable[..., Any]:
    def method(array: ArrayTracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(f"{name} of a traced array is not built", location=caller())

    return method


def output(shape: Any = None, dtype: Any = None, format: Any = None) -> Any:
    """A fresh result for index notation: ``M = sj.output(); M[i, r] = ...``.

    Shape, dtype and format follow from what is assigned unless given; elements that no assignment
    reaches are zero (for which the shape must be given). Raises ``TraceError`` outside of a traced
    function, ``TensorTypeError`` for a bad shape, dtype or format.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def matvec(A, x):
    ...     i, j = sj.indices("i j")
    ...     y = sj.output()
    ...     y[i] = A[i, j] * x[j]
    ...     return y
    """
    trace = require_trace("output")
    extents = None
    if shape is not None:
        extents = functions.checked_shape(trace, shape)
    kind = None if dtype is None else dtype_of_numpy(dtype)
    cell = functions.unassigned_cell(extents, kind, format)
    return trace.array(cell)
