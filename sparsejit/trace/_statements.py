"""Statements of index notation: ``M[i, r] = X[i, j, k] * B[j, r] * C[k, r]``.

In: the target, its indices, and the right-hand side as terms. Each term is summed, outermost, over
the indices that it has and the left side lacks. Out: the content of the target; that of a fresh
output is computed when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, Constant, Dim, as_linear
from sparsejit.errors import Location, TensorTypeError, TraceError, UnsupportedError
from sparsejit.formats import Format
from sparsejit.ir.fold import zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.tensor import Value
from sparsejit.ir.types import DType
from sparsejit.trace._array import Array
from sparsejit.trace._assignment import assign_terms, assign_value, refuse
from sparsejit.trace._context import Deferred, Trace, Unassigned
from sparsejit.trace._emit import Term
from sparsejit.trace._index_extents import (
    Bound,
    bounds_of,
    check_bounded,
    index_extents,
)
from sparsejit.trace._indexed import Index, Indexed, IndexedTerm, as_indexed, computed
from sparsejit.trace._locations import caller
from sparsejit.trace._pattern_operands import LazyIndexed
from sparsejit.trace._pointwise import Pointwise, cast, substituted
from sparsejit.trace._promotion import loop_dtypes
from sparsejit.trace._sparse_assignment import is_sparse_argument
from sparsejit.trace._sums import fresh_sum
from sparsejit.trace._views import Picked, View, element

__all__ = ["assign_indexed"]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement ready to be emitted: terms over dimensions, and the extent of each variable."""

    terms: tuple[Term, ...]
    extents: dict[int, AffineExpr]
    dtype: DType


def assign_indexed(
    trace: Trace, target: Array, key: Sequence[Any], value: Any, update: np.ufunc | None
) -> None:
    """Store ``value``, an indexed expression or scalar, at ``target[key]``.

    Raises ``TraceError`` for an index on the left that nothing bounds and for a sum whose parts
    differ in the indices to be summed; ``UnsupportedError`` for a left side such as ``y[i, i]``.
    """
    location = caller()
    trace.check_assignable(target._cell)
    left = _left(trace, key, location)
    if isinstance(value, Array) and len(value.extents) == len(left) > 0 and update is None:
        plain = all(isinstance(expr, Dim) for expr in left)
        if plain and is_sparse_argument(target):  # S[i, j] = where_stored(S, A @ B)
            assign_value(trace, target, value, update, location)
            return
    indexed = as_indexed(trace, value)
    content = target._cell.content
    if update is None and _define_lazily(target, left, indexed, location):
        return
    given = content.shape if isinstance(content, Unassigned) else target.extents
    if given is not None and len(given) != len(left):
        raise TensorTypeError(
            f"{len(left)} indices for a target of rank {len(given)}", location=location
        )
    terms = _terms(trace, indexed, [v for expr in left for v in _variables(expr)], location)
    bounds = bounds_of(trace, [term.part for term in terms])
    if given is not None:
        bounds += [Bound(*pair) for pair in zip(left, given, strict=True)]
    extents = index_extents(trace, bounds, trace.index_names)
    order = [v for expr in left for v in _variables(expr)]
    right = [v for term in terms for v in (*term.variables, *term.over)]
    check_bounded(trace, (*order, *right), extents)
    statement = _renumbered(trace, terms, order, extents)
    fills = update is None or update in (np.add, np.subtract)
    plain = all(isinstance(expr, Dim) for expr in left)
    if isinstance(content, Unassigned):
        if plain and fills and _covers(trace, order, extents, given):
            _define(trace, target, content, statement, update, len(left), location)
            return
        _zero(trace, target, content, statement.dtype, location)
    view = _target_view(trace, target, left, extents, location)
    assign_terms(trace, target.viewed(view), statement.terms, statement.extents, update, location)


def _left(trace: Trace, key: Sequence[Any], location: Location | None) -> tuple[AffineExpr, ...]:
    """Return the index expressions of a left side; each index occurs once, alone or affinely."""
    exprs: list[AffineExpr] = []
    for item in key:
        match item:
            case Index():
                exprs.append(item.expr)
            case bool():
                raise TraceError("an index is an integer or an index variable", location=location)
            case int() | np.integer():
                exprs.append(Constant(int(item)))
            case _:
                raise refuse(
                    f"a left side that mixes indices with {type(item).__name__}",
                    "every dimension needs an index variable or an integer",
                    location,
                )
    seen: list[int] = []
    for expr in exprs:
        found = _variables(expr)
        if len(found) > 1 or set(found) & set(seen):
            raise refuse(
                "this left side",
                "each index stands once on the left, and only one in each dimension",
                location,
            )
        seen.extend(found)
    return tuple(exprs)


def _variables(expr: AffineExpr) -> list[int]:
    read = as_linear(expr)
    return sorted(read[0]) if read is not None else []


def _terms(
    trace: Trace, indexed: Indexed, left: Sequence[int], location: Location | None
) -> list[IndexedTerm]:
    """Return the terms, each reduced over all it has and the left lacks."""
    made = []
    for term in indexed.terms:
        rest = tuple(v for v in term.variables if v not in left)
        lone = len(indexed.terms) == 1 and not term.negated and not rest
        if term.over and not (term.op is BinaryOp.ADD or lone):
            term = computed(trace, term)
            rest = tuple(v for v in term.variables if v not in left)
        _check_sums(trace, term, rest, location)
        over = term.over + rest
        made.append(IndexedTerm(term.part, term.negated, over, term.op))
    tree = indexed.tree
    if tree is not None and not any(term.over for term in made):
        return [IndexedTerm(tree)]
    return made


def _check_sums(
    trace: Trace, term: IndexedTerm, rest: Sequence[int], location: Location | None
) -> None:
    for group in term.sums:
        summed = [frozenset(rest) & part for part in group]
        if len(set(summed)) > 1:
            names = [
                "{" + ", ".join(sorted(trace.index_names[v] for v in part)) + "}" for part in summed
            ]
            raise TraceError(
                "the parts of a sum inside a product or function are summed over "
                f"{' and '.join(names)}",
                hint="say which sum is meant with sj.sum(..., over=)",
                location=location,
            )


def _renumbered(
    trace: Trace,
    terms: Sequence[IndexedTerm],
    order: Sequence[int],
    extents: dict[int, AffineExpr],
) -> _Statement:
    """Move index variables to the dimensions of the target, reduced ones after them."""
    sizes = {n: extents[v] for n, v in enumerate(order)}
    numbers = {v: n for n, v in enumerate(order)}
    for term in terms:
        for variable in term.over:
            if variable not in numbers:
                numbers[variable] = len(numbers)
                sizes[numbers[variable]] = extents[variable]
    moved: dict[int, AffineExpr] = {v: Dim(n) for v, n in numbers.items()}
    made = []
    for term in terms:
        part = substituted(term.part, moved)
        made.append(Term(part, tuple(numbers[v] for v in term.over), term.op, term.negated))
    dtype = made[0].part.dtype
    total = made[0].part
    for other in made[1:]:
        dtype = loop_dtypes(np.subtract if other.negated else np.add, (total, other.part))[-1]
        total = Pointwise(zero_of(dtype), (), dtype)
    return _Statement(tuple(made), sizes, dtype)


def _covers(
    trace: Trace,
    order: Sequence[int],
    extents: dict[int, AffineExpr],
    given: Sequence[AffineExpr] | None,
) -> bool:
    """Whether the statement defines every element of an output."""
    if given is None:
        return True
    return all(trace.extents.same(extents[v], e) for v, e in zip(order, given, strict=True))


def _define(
    trace: Trace,
    target: Array,
    output: Unassigned,
    statement: _Statement,
    update: np.ufunc | None,
    rank: int,
    location: Location | None,
) -> None:
    """Give a fresh output its content, computed when it is needed."""
    shape = tuple(statement.extents[n] for n in range(rank))
    dtype = output.dtype if output.dtype is not None else statement.dtype
    terms = list(statement.terms)
    if update is np.subtract:
        terms = [Term(t.part, t.reduced, t.op, not t.negated) for t in terms]
    if len(terms) == 1 and not terms[0].reduced:
        terms = [Term(cast(terms[0].part, dtype), (), terms[0].op, terms[0].negated)]
    wanted = output.format

    def emit(format: Format | None) -> Value:
        chosen = wanted if wanted is not None else format
        return fresh_sum(trace, terms, shape, statement.extents, dtype, chosen, location)

    target._cell.shape = shape
    target._cell.content = Deferred(emit, dtype)


def _define_lazily(
    target: Array, left: Sequence[AffineExpr], value: Indexed, location: Location | None
) -> bool:
    """Let a fresh output be what an operation on patterns gives, if just its indices are there."""
    output = target._cell.content
    if not isinstance(value, LazyIndexed) or not isinstance(output, Unassigned):
        return False
    order = tuple(expr.index for expr in left if isinstance(expr, Dim))
    is_free = output.shape is None and output.dtype is None
    if not is_free or len(order) != len(left) or sorted(order) != sorted(value.variables):
        return False
    wanted = output.format
    target._cell.shape = value.shape(order)
    target._cell.content = Deferred(
        lambda format: value.emit(order, wanted if wanted is not None else format), value.dtype
    )
    target._cell.location = location
    return True


def _zero(
    trace: Trace, target: Array, output: Unassigned, dtype: DType, location: Location | None
) -> None:
    """Make an output that is assigned piece by piece a tensor of zeros."""
    if output.shape is None:
        raise TraceError(
            "the first assignment to an output does not define its shape",
            hint="give the shape: sj.output(shape=...)",
            location=location,
        )
    if output.format is not None and not output.format.is_dense:
        raise UnsupportedError(
            "an output in a sparse format that is assigned piece by piece is not built",
            location=location,
        )
    wanted = output.dtype if output.dtype is not None else dtype
    target._cell.shape = output.shape
    target._cell.content = Pointwise(zero_of(wanted), (), wanted)


def _target_view(
    trace: Trace,
    target: Array,
    left: Sequence[AffineExpr],
    extents: dict[int, AffineExpr],
    location: Location | None,
) -> View:
    """Return the part of the target that the left side names, its dimensions in that order."""
    view = target.present_view
    single: list[int] = []
    for axis, (expr, extent) in enumerate(zip(left, target.extents, strict=True)):
        if isinstance(expr, Constant):
            offset = element(trace.extents, extent, expr, axis)
            picked = Picked(offset, Constant(1))
            single.append(axis)
        else:
            read = as_linear(expr)
            assert read is not None
            ((variable, stride),) = read[0].items()
            if stride < 0:
                raise refuse("this left side", "an index runs backward", location)
            picked = Picked(Constant(read[1]), extents[variable], stride)
        if view.axes[axis]:
            view = view.sliced(axis, picked)
    return view.without(single)
