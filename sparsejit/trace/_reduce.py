"""``sum``, ``min``, ``max``, ``prod``, ``any``, ``all`` and ``mean``: of arrays and over indices.

In: an array and axes, or an indexed expression and the indices to reduce ``over``. Out: an array,
or an indexed expression over the indices that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsejit.affine import AffineExpr, Dim
from sparsejit.errors import TensorTypeError, TraceError
from sparsejit.ir.ops import BinaryOp
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._elementwise import elementwise
from sparsejit.trace._index_extents import bounds_of, index_extents
from sparsejit.trace._indexed import (
    Index,
    Indexed,
    IndexedTerm,
    as_indexed,
    combined,
    computed,
    single,
)
from sparsejit.trace._locations import caller
from sparsejit.trace._operands import as_array
from sparsejit.trace._pointwise import Pointwise, binary, cast, variables_of
from sparsejit.trace._reductions import (
    OPERATIONS,
    check_not_empty,
    mean_dtype,
    no_identity,
    prepared,
    product_of,
    reduce_axes,
)
from sparsejit.trace._reductions import mean as mean_axes
from sparsejit.trace._ufuncs import as_bool

__all__ = ["all", "any", "max", "mean", "min", "over_variables", "prod", "reduction", "sum"]


def over_variables(over: Any) -> tuple[int, ...]:
    """Return the variables of ``over=``: an index variable or several."""
    given: Sequence[Any] = over if isinstance(over, tuple | list) else (over,)
    numbers = []
    for index in given:
        if not isinstance(index, Index) or not isinstance(index.expr, Dim):
            raise TensorTypeError("over= takes an index variable or several", location=caller())
        numbers.append(index.expr.index)
    return tuple(dict.fromkeys(numbers))


def _indexed(trace: Trace, name: str, expr: Any, over: Any) -> Any:
    numbers = over_variables(over)
    term = single(trace, as_indexed(trace, expr))
    for number in numbers:
        if number not in variables_of(term.part):
            raise TraceError(
                f"{name} over an index that the expression does not have: "
                f"{trace.index_names[number]}",
                location=caller(),
            )
    if name in ("min", "max"):
        sizes = extents_over(trace, term.part, numbers)
        check_not_empty(trace, sizes, no_identity(name))
    part = (
        as_bool(term.part)
        if name in ("any", "all")
        else prepared(name, term.part, term.part.dtype.value)
    )
    sums = tuple(tuple(g - set(numbers) for g in group) for group in term.sums)
    made = IndexedTerm(part, False, numbers, OPERATIONS[name], sums)
    if not made.variables:
        done = computed(trace, made)
        return trace.pointwise(done.part, ())
    return Indexed(trace, (made,), None)


def _indexed_mean(trace: Trace, expr: Any, over: Any, dtype: Any) -> Any:
    """Return the mean over indices: the sum in the type of the mean, over the extents."""
    part = single(trace, as_indexed(trace, expr)).part
    result = mean_dtype(part.dtype, dtype)

    def widen(parts: Sequence[Pointwise]) -> Pointwise:
        return cast(parts[0], result.compute)

    total = _indexed(trace, "sum", combined(trace, widen, (expr,)), over)
    sizes = extents_over(trace, part, over_variables(over))
    count = product_of(trace, sizes, result.compute)
    return elementwise(
        trace, lambda parts: cast(binary(BinaryOp.DIV, parts[0], count), result), (total,)
    )


def extents_over(trace: Trace, part: Pointwise, variables: Sequence[int]) -> tuple[AffineExpr, ...]:
    """Return the extents of index variables of an expression."""
    extents = index_extents(trace, bounds_of(trace, [part]), trace.index_names)
    return tuple(extents[v] for v in variables)


def reduction(name: str, a: Any, axis: Any, over: Any, keepdims: Any, dtype: Any) -> Any:
    """Return a reduction of an array over axes, or of an indexed expression over indices."""
    trace = require_trace(name)
    if isinstance(a, Indexed | Index):
        if over is None:
            raise TraceError(
                f"{name} of an indexed expression needs the indices to reduce",
                hint=f"write sj.{name}(expr, over=j)",
                location=caller(),
            )
        if name == "mean":
            return _indexed_mean(trace, a, over, dtype)
        return _indexed(trace, name, a, over)
    if over is not None:
        raise TraceError(
            f"{name} over indices needs an indexed expression, not a whole array",
            hint="index it, as in A[i, j], or use axis=",
            location=caller(),
        )
    array = as_array(trace, a)
    if name == "mean":
        return mean_axes(trace, array, axis, bool(keepdims), dtype)
    return reduce_axes(trace, name, array, axis, bool(keepdims), dtype)


def sum(
    a: Any, axis: Any = None, *, over: Any = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    """The sum over axes of an array (``np.sum``), or over indices of an indexed expression.

    ``sj.sum(A[i, k] * B[k, j], over=k)`` is an indexed expression over what is left; without free
    indices it is a scalar. Small integers widen to 64 bits over axes, not over indices. Unstored
    entries count with the fill value. Raises ``TraceError`` outside of a traced function.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def norm(x):
    ...     return sj.sum(x * x) ** 0.5
    """
    return reduction("sum", a, axis, over, keepdims, dtype)


def prod(
    a: Any, axis: Any = None, *, over: Any = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    """The product over axes or indices; see ``sum``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def product(x):
    ...     return sj.prod(x)
    >>> float(product(np.array([2.0, 3.0])))
    6.0
    """
    return reduction("prod", a, axis, over, keepdims, dtype)


def min(a: Any, axis: Any = None, *, over: Any = None, keepdims: bool = False) -> Any:
    """The minimum over axes or indices; what is not stored counts. See ``sum``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def least(A):
    ...     return sj.min(A, axis=1)
    >>> least(np.array([[3, 1], [4, 5]]))
    array([1, 4])
    """
    return reduction("min", a, axis, over, keepdims, None)


def max(a: Any, axis: Any = None, *, over: Any = None, keepdims: bool = False) -> Any:
    """The maximum over axes or indices; what is not stored counts. See ``sum``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def largest(A):
    ...     return sj.max(A, axis=0)
    >>> largest(np.array([[3, 1], [4, 5]]))
    array([4, 5])
    """
    return reduction("max", a, axis, over, keepdims, None)


def any(a: Any, axis: Any = None, *, over: Any = None, keepdims: bool = False) -> Any:
    """Whether any element is not zero, over axes or indices. See ``sum``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def occupied(A):
    ...     return sj.any(A, axis=1)
    >>> occupied(np.array([[0, 1], [0, 0]]))
    array([ True, False])
    """
    return reduction("any", a, axis, over, keepdims, None)


def all(a: Any, axis: Any = None, *, over: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements are not zero, over axes or indices. See ``sum``.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def full(A):
    ...     return sj.all(A, axis=1)
    >>> full(np.array([[2, 1], [0, 1]]))
    array([ True, False])
    """
    return reduction("all", a, axis, over, keepdims, None)


def mean(
    a: Any, axis: Any = None, *, over: Any = None, dtype: Any = None, keepdims: bool = False
) -> Any:
    """The mean over axes of an array (``np.mean``), or over indices; unstored entries count.

    >>> import numpy as np
    >>> import sparsejit as sj
    >>> @sj.sparse_jit(target="interpreter")
    ... def average(x):
    ...     return sj.mean(x)
    >>> float(average(np.array([1, 2])))
    1.5
    """
    return reduction("mean", a, axis, over, keepdims, dtype)
