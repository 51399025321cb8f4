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
from scipy.sparse import csr_array

from sparsejit.errors import TraceError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.ops import UnaryOp
from sparsejit.trace import _functions as functions
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_value
from sparsejit.trace._context import Unassigned, check_alive
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
from sparsejit.trace._masks import MaskedElements, assign_masked, mask_of, updated
from sparsejit.trace._numpy import call_function, call_ufunc
from sparsejit.trace._numpy_arrays import refuse_numpy_use
from sparsejit.trace._operators import Operators, UpdateOperators
from sparsejit.trace._outputs import start_output
from sparsejit.trace._part_views import assign_part, imag, real, will_be_dense
from sparsejit.trace._parts import taken
from sparsejit.trace._pointwise import Pointwise
from sparsejit.trace._refusals import ATTRIBUTES, refused
from sparsejit.trace._scipy_calls import is_asked_by_user
from sparsejit.trace._scipy_methods import in_format, stored_count
from sparsejit.trace._statements import assign_indexed
from sparsejit.trace._symbolic import SymbolicInt, symbolic

__all__ = ["ArrayTracer"]

_SCIPY_OPERATORS = (
    *("_comparison", "_divide", "_matmul_dispatch", "_rmatmul_dispatch", "multiply"),
    "_multiply_2d_with_broadcasting",
)
"""Where SciPy's operators ask what the other operand is."""

_UNKNOWN = "the value of a traced array is not known while tracing"
_VALUE = "keep it an array, of rank 0 too; make it a number outside of the traced function"


class ArrayTracer(Operators, UpdateOperators, Array):
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
    def __class__(self) -> Any:
        """The class; for ``scipy.sparse.issparse`` that of a sparse array where this is one."""
        if is_asked_by_user() and not self._is_unassigned and not will_be_dense(self):
            return csr_array
        return type(self)

    @__class__.setter
    def __class__(self, value: Any) -> None:
        self._refuse("the class of a traced array cannot be changed")

    @property
    def _is_unassigned(self) -> bool:
        return isinstance(self._cell.content, Unassigned)

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
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """The bytes of all elements, were they stored."""
        return self.size * self.itemsize

    @property
    def nnz(self) -> Any:
        """How many elements are stored, as a value of the program."""
        return stored_count(self)

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
        """The real part: a view where the array is dense."""
        return real(self)

    @real.setter
    def real(self, value: Any) -> None:
        self._trace.count_step()
        assign_part(self, UnaryOp.REAL, value)

    @property
    def imag(self) -> Any:
        """The imaginary part: a view where the array is dense."""
        return imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._trace.count_step()
        assign_part(self, UnaryOp.IMAG, value)

    def __len__(self) -> int:
        check_alive(self._trace, "a traced array")
        if not self.extents:
            raise TraceError("len() of an array of rank 0", location=caller())
        return self._trace.pin(self.extents[0], "len()")

    def __format__(self, spec: str) -> str:
        return self._refuse(_UNKNOWN, _VALUE) if spec else repr(self)

    def __repr__(self) -> str:
        if self._is_unassigned:
            return "<traced output, unassigned>"
        return f"<traced array of rank {len(self.extents)}, {self.element_type.value}>"

    # ------------------------------------------------------------ subscripts

    def __getitem__(self, key: Any) -> Any:
        split = keys_of(key)
        if has_indices(split):
            return indexed_access(self._trace, self, split)
        if self._is_unassigned and split == ():
            return Indexed(self._trace, (), None, origin=(self, ()))
        mask = mask_of(self._trace, self, split)
        if mask is not None:
            return MaskedElements(self._trace, self, mask)
        if any(isinstance(item, list) for item in split):
            return taken(self, split)
        made = basic(self._trace, self, split)
        if made._cell is not self._cell:  # an element or a copy: an update of it may be one of self
            made._inplace = (self, split, _state(self))
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        self._trace.count_step()
        split = keys_of(key)
        if isinstance(value, Update) and value.target.origin is not None:
            array, read = value.target.origin
            if array is self and same_key(read, split):
                assign_indexed(self._trace, self, split, value.value, value.ufunc)
                return
        unassigned = self._is_unassigned
        if has_indices(split) or isinstance(value, Index | Indexed) or (unassigned and split == ()):
            assign_indexed(self._trace, self, split, value, None)
            return
        self._set_basic(split, value)

    def _set_basic(self, key: tuple[Any, ...], value: Any) -> None:
        if self._is_unassigned:
            start_output(self, value)
        mask = mask_of(self._trace, self, key)
        if mask is not None and isinstance(value, MaskedElements) and value.value is not None:
            updated(self._trace, self, value)
            return
        if mask is not None:
            assign_masked(self._trace, self, mask, value)
            return
        view = basic_view(self._trace, self, key)
        if isinstance(value, Array):
            if value._cell is self._cell and value.present_view == view:
                return  # `y[1:5] += e` has updated y through the view already
            match value._inplace:
                case (array, read, state, np.ufunc() as ufunc, operand) if (
                    array is self and read == key and state == _state(self)
                ):
                    target = self.viewed(view)
                    assign_value(self._trace, target, operand, ufunc, caller())
                    return
                case _:
                    pass
        whole = view == self.present_view and self._view is None
        target = self if whole else self.viewed(view)
        assign_value(self._trace, target, value, None, caller())

    def _updated(self, ufunc: np.ufunc, other: Any) -> Any:
        """Do ``self op= other``: in place for arrays; of a scalar Python makes a new one."""
        if isinstance(other, Index | Indexed):
            match self._inplace:
                case (
                    array,
                    key,
                    _,
                ):  # `x[0] += A[i, j]`: the element has no index, so all is summed
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
                case (array, key, state):
                    made._inplace = (array, key, state, ufunc, other)
                case _:
                    pass
            return made
        before, self._inplace = self._inplace, None
        operand = other if before is None else functions.copy(other)
        assign_value(self._trace, self, operand, ufunc, caller())
        if before is not None and len(before) == 3:
            self._inplace = (*before, ufunc, operand)
        return self

    # ------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self._trace.count_step()
        return call_ufunc(self._trace, ufunc, method, inputs, kwargs)

    def __sparsejit_asarray__(self, format: Any, fill_value: Any) -> Any:
        """Do ``sj.asarray`` of a traced array: a conversion of the program."""
        if fill_value is not None:
            self._refuse(
                "sj.asarray of a traced array with fill_value= is not known while tracing",
                "relabel the operand outside of the traced function",
            )
        return self if format is None else in_format(self, format)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        self._trace.count_step()
        return call_function(func, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        above = sys._getframe(1)
        if above.f_globals.get("__name__", "").startswith("scipy."):
            if above.f_code.co_name not in _SCIPY_OPERATORS:
                self._refuse(
                    "SciPy's functions take no traced arrays",
                    "use NumPy's, as np.vstack, np.kron, np.diag and np.linalg.norm, or call "
                    "SciPy's outside of the traced function",
                )
            # SciPy asks whether it knows the other operand; this says no, and our operator runs.
            held = np.empty((), dtype=object)
            held[()] = self
            return held
        refuse_numpy_use()
        return self._refuse(
            "a traced array cannot become a NumPy array",
            "leave out np.asarray and np.array: traced arrays take part in NumPy's functions as "
            "they are; np.copy copies",
        )

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
        self._refuse(_UNKNOWN, _VALUE)

    def __int__(self) -> int:
        self._refuse(_UNKNOWN, _VALUE)

    def __index__(self) -> int:
        self._refuse(_UNKNOWN, _VALUE)

    def __delitem__(self, key: Any) -> None:
        self._refuse("elements of a traced array cannot be deleted")

    def __copy__(self) -> Any:
        return functions.copy(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return functions.copy(self)

    def __reduce__(self) -> NoReturn:
        self._refuse("a traced array cannot be pickled")

    def __complex__(self) -> complex:
        self._refuse(_UNKNOWN, _VALUE)

    # ------------------------------------------------------------ methods

    def __getattr__(self, name: str) -> Any:
        method = functions.METHODS.get(name)
        if method is None and callable(getattr(np.ndarray, name, None)) and name[0] != "_":
            method = _not_built(name)
        if method is None:
            hint = f"; {ATTRIBUTES[name]}" if name in ATTRIBUTES else ""
            raise AttributeError(
                f"traced arrays have no attribute {name!r} (at {caller()}){hint}",
                name=name,
                obj=self,
            )

        def bound(*args: Any, **kwargs: Any) -> Any:
            return method(self, *args, **kwargs)

        bound.__name__ = name
        return bound


def _state(array: Array) -> object:
    """Return what tells whether an array has been assigned since: its value, if it has one."""
    content = array._cell.content
    if isinstance(content, Pointwise) and content.view is not None:
        return content.view.value
    return content


def _not_built(name: str) -> Callable[..., Any]:
    def method(array: ArrayTracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise refused(f"{name} of a traced array", name)

    return method
