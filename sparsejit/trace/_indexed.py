"""Index notation: indices, indexed expressions and their terms.

``A[i, j]`` with indices is an ``Indexed``: a sum of signed terms over index variables, which an
assignment sums over what the left side lacks. An index stands for its coordinate where a value is
wanted. Affine combinations (``2 * i + 1``, ``i + j``) are indices too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim, add, mul
from sparsejit.errors import TraceError
from sparsejit.ir.ops import BinaryOp
from sparsejit.trace._array import Array
from sparsejit.trace._context import Trace, require_trace
from sparsejit.trace._einsum import reduced
from sparsejit.trace._emit import Term
from sparsejit.trace._extents import difference, tidy
from sparsejit.trace._index_extents import (
    bounds_of,
    check_bounded,
    index_extents,
    remember_bounds,
)
from sparsejit.trace._locations import caller
from sparsejit.trace._numpy_arrays import refuse_numpy_use
from sparsejit.trace._operands import as_array
from sparsejit.trace._operators import Operators, UpdateOperators
from sparsejit.trace._pointwise import Pointwise, substituted, variable, variables_of
from sparsejit.trace._sums import signed_sum
from sparsejit.trace._ufuncs import apply, is_elementwise

__all__ = ["Index", "Indexed", "IndexedTerm", "Update", "as_indexed", "combined", "computed"]

Rule = Callable[[Sequence[Pointwise]], Pointwise]


@dataclass(frozen=True, slots=True)
class IndexedTerm:
    """One term: ``part`` over index variables, and what must hold when it is summed.

    ``over`` are the variables of an explicit reduction by ``op``. ``sums`` has, for each sum inside
    a product or function, the variables of each of its parts.
    """

    part: Pointwise
    negated: bool = False
    over: tuple[int, ...] = ()
    op: BinaryOp = BinaryOp.ADD
    sums: tuple[tuple[frozenset[int], ...], ...] = ()

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables that are free: all but those reduced explicitly."""
        return tuple(v for v in variables_of(self.part) if v not in self.over)


def _elements() -> Any:
    """Return the functions of elements: they are built on those of arrays, which know indices."""
    return import_module("sparsejit.trace._element_functions")


class _IndexOperators(Operators):
    __slots__ = ()
    _trace: Trace

    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        return indexed_operator(self._trace, ufunc, operands)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or not kwargs.keys() <= {"dtype", "casting"}:
            words = "".join(f" with {key}=" for key in kwargs)
            call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise TraceError(
                f"np.{call}{words} of an indexed expression is not built",
                hint="use sj.sum, sj.min, ... with over=",
                location=caller(),
            )
        if kwargs or not is_elementwise(ufunc):
            return _elements().of_elements_ufunc(self._trace, ufunc, inputs, kwargs)
        return indexed_operator(self._trace, ufunc, inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return _elements().of_elements(self._trace, func, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        refuse_numpy_use()
        raise TraceError(
            "an indexed expression cannot become a NumPy array",
            hint="assign it to an output first, as in y[i] = ...",
            location=caller(),
        )

    def __getattr__(self, name: str) -> Any:
        is_public = name[0] != "_"
        found = _elements().of_elements_method(self._trace, self, name) if is_public else None
        if found is not None:
            return found
        if is_public and hasattr(np.ndarray, name):
            raise TraceError(
                f"an indexed expression has no attribute {name!r}",
                hint="use functions such as sj.sum(expr, over=), or assign it to an output first",
                location=caller(),
            )
        raise AttributeError(
            f"an indexed expression has no attribute {name!r}", name=name, obj=self
        )

    def __iter__(self) -> Iterator[Any]:
        raise TraceError("an indexed expression cannot be iterated over", location=caller())

    def __bool__(self) -> bool:
        raise TraceError(
            "the truth value of an indexed expression is not known while tracing",
            hint="use sj.where to choose between values",
            location=caller(),
        )


class Index(_IndexOperators):
    """An index variable, or an affine combination of some; a value: its coordinate (int64)."""

    __slots__ = ("_trace", "expr")

    def __init__(self, trace: Trace, expr: AffineExpr) -> None:
        self._trace = trace
        self.expr = expr

    def __repr__(self) -> str:
        return f"<index {self.expr}>"

    def _operate(self, ufunc: np.ufunc, *operands: Any) -> Any:
        exprs = [_affine(operand) for operand in operands]
        known = [expr for expr in exprs if expr is not None]
        if len(known) == len(exprs):
            match ufunc, known:
                case np.add, [lhs, rhs]:
                    return Index(self._trace, tidy(add(lhs, rhs)))
                case np.subtract, [lhs, rhs]:
                    return Index(self._trace, difference(lhs, rhs))
                case np.multiply, [Constant() as lhs, rhs] | [rhs, Constant() as lhs]:
                    return Index(self._trace, tidy(mul(lhs, rhs)))
                case np.negative, [inner]:
                    return Index(self._trace, tidy(mul(Constant(-1), inner)))
                case _:
                    pass
        return super()._operate(ufunc, *operands)


def _affine(operand: object) -> AffineExpr | None:
    if isinstance(operand, Index):
        return operand.expr
    if isinstance(operand, int) and not isinstance(operand, bool):
        return Constant(operand)
    return None


class Indexed(_IndexOperators, UpdateOperators):
    """An expression over index variables: a sum of terms.

    ``tree`` is the same expression in one piece, as the user grouped it; None where a term reduces.
    ``origin`` is the array and key of ``A[i, j]`` itself, for an update in place.
    """

    __slots__ = ("_terms", "_trace", "_tree", "origin")

    def __init__(
        self,
        trace: Trace,
        terms: tuple[IndexedTerm, ...],
        tree: Pointwise | None,
        origin: tuple[Array, tuple[Any, ...]] | None = None,
    ) -> None:
        self._trace = trace
        self._terms = terms
        self._tree = tree
        self.origin = origin

    @property
    def terms(self) -> tuple[IndexedTerm, ...]:
        """What is summed."""
        return self._terms

    @property
    def tree(self) -> Pointwise | None:
        """The sum in one piece."""
        return self._tree

    def __repr__(self) -> str:
        return f"<indexed expression of {len(self.terms)} terms>"

    def _updated(self, ufunc: np.ufunc, other: Any) -> Any:
        if self.origin is None:
            return indexed_operator(self._trace, ufunc, (self, other))
        return Update(self, ufunc, other)


class Update(Indexed):
    """``y[i] += value`` between Python's reading and its assignment."""

    __slots__ = ("target", "ufunc", "value")

    def __init__(self, target: Indexed, ufunc: np.ufunc, value: Any) -> None:
        # An element of an output that has no content yet has no value besides the one added.
        plain = indexed_operator(target._trace, ufunc, (target, value)) if target.terms else None
        terms, tree = (plain.terms, plain.tree) if plain is not None else ((), None)
        super().__init__(target._trace, terms, tree)
        self.target = target
        self.ufunc = ufunc
        self.value = value


def as_indexed(trace: Trace, obj: object) -> Indexed:
    """Return an operand of index notation; scalars and arrays of rank 0 have no index.

    Raises ``TraceError`` for a whole array.
    """
    match obj:
        case Indexed():
            if not obj.terms:
                raise TraceError("an output is read before it is assigned", location=caller())
            return obj
        case Index():
            part = variable(obj.expr)
        case _:
            array = as_array(trace, obj)
            if array.extents:
                raise TraceError(
                    "a whole array is mixed with an indexed expression",
                    hint="index it too, as in A[i, j]",
                    location=caller(),
                )
            part = array.read()
    return Indexed(trace, (IndexedTerm(part),), part)


def computed(trace: Trace, term: IndexedTerm) -> IndexedTerm:
    """Return a term without explicit reduction: the reduction is computed over its free indices."""
    if not term.over:
        return term
    free = term.variables
    bounds = bounds_of(trace, [term.part])
    extents = index_extents(trace, bounds, trace.index_names)
    check_bounded(trace, (*free, *term.over), extents)
    numbers: dict[int, AffineExpr] = {v: Dim(n) for n, v in enumerate((*free, *term.over))}
    part = substituted(term.part, numbers)
    sizes = {n: extents[v] for n, v in enumerate((*free, *term.over))}
    over = tuple(range(len(free), len(free) + len(term.over)))
    array = reduced(trace, Term(part, over, term.op), len(free), sizes)
    remember_bounds(trace, array.force(), bounds, {v: extents[v] for v in free})
    back: dict[int, AffineExpr] = {n: Dim(v) for n, v in enumerate(free)}
    sums = tuple(tuple(g - set(term.over) for g in group) for group in term.sums)
    return IndexedTerm(substituted(array.read(), back), term.negated, sums=sums)


def single(trace: Trace, indexed: Indexed) -> IndexedTerm:
    """Return an expression as one term, remembering the sum that it may be."""
    terms = [computed(trace, term) for term in indexed.terms]
    sums = tuple(group for term in terms for group in term.sums)
    tree = indexed.tree
    if tree is None:
        tree = signed_sum([(term.negated, term.part) for term in terms])
    if len(terms) > 1:
        parts = [frozenset(term.variables) for term in terms]
        sums += (tuple(group for group in parts if group),)
    return IndexedTerm(tree, sums=sums)


def combined(trace: Trace, rule: Rule, operands: Sequence[Any]) -> Indexed:
    """Return ``rule`` of indexed expressions and scalars, as one term."""
    terms = [single(trace, as_indexed(trace, operand)) for operand in operands]
    part = rule([term.part for term in terms])
    whole = IndexedTerm(part, sums=tuple(group for term in terms for group in term.sums))
    return Indexed(trace, (whole,), part)


def indexed_operator(trace: Trace, ufunc: np.ufunc, operands: Sequence[Any]) -> Indexed:
    """Return a ufunc of indexed expressions; sums and differences keep their terms apart."""
    if ufunc is np.negative:
        (inner,) = (as_indexed(trace, operand) for operand in operands)
        flipped = tuple(replace(term, negated=not term.negated) for term in inner.terms)
        tree = None if inner.tree is None else apply(np.negative, (inner.tree,))
        return Indexed(trace, flipped, tree)
    if ufunc is np.positive:
        return as_indexed(trace, operands[0])
    if ufunc not in (np.add, np.subtract):
        return combined(trace, lambda parts: apply(ufunc, parts), operands)
    lhs, rhs = (as_indexed(trace, operand) for operand in operands)
    negated = ufunc is np.subtract
    others = tuple(
        replace(term, negated=not term.negated) if negated else term for term in rhs.terms
    )
    tree = None
    if lhs.tree is not None and rhs.tree is not None:
        tree = apply(ufunc, (lhs.tree, rhs.tree))
    return Indexed(trace, lhs.terms + others, tree)


def indices(names: str) -> tuple[Index, ...]:
    """Index variables for index notation, always a tuple: ``i, j = sj.indices("i j")``.

    ``names`` are identifiers separated by spaces or commas. An index used as a value is its
    coordinate, an int64. Raises ``TraceError`` for what is no identifier, for a name given twice
    and outside of a traced function.

    >>> import sparsejit as sj
    >>> @sj.sparse_jit
    ... def rows(A):
    ...     i, j = sj.indices("i j")
    ...     y = sj.output()
    ...     y[i] = A[i, j]
    ...     return y
    """
    trace = require_trace("indices")
    if not isinstance(names, str):
        raise TraceError(
            f"indices takes names as one string, not {type(names).__name__}",
            hint='write i, j = sj.indices("i j")',
            location=caller(),
        )
    split = names.replace(",", " ").split()
    bad = [name for name in split if not name.isidentifier()]
    if bad or len(set(split)) != len(split) or not split:
        raise TraceError(
            f"indices({names!r}) does not name indices, each once",
            hint='write i, j = sj.indices("i j")',
            location=caller(),
        )
    made = []
    for name in split:
        number = trace.index_number()
        trace.index_names[number] = name
        made.append(Index(trace, Dim(number)))
    return tuple(made)
