"""Assignment to sparse arguments: their entries change in place, their pattern never.

In: the present value of a sparse parameter, and terms over the target's dimensions. Out: the value
with other entries, as operations whose destination is the parameter. An assignment that would
store an entry where none is, or lose one, is refused: it could not be done in the caller's object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sparsejit._dataclasses import dataclass
from sparsejit.affine import AffineExpr, AffineMap, Dim, substitute
from sparsejit.errors import Location, UnsupportedError
from sparsejit.ir.fold import identity_const
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import (
    Arg,
    Binary,
    Const,
    Coordinate,
    Nothing,
    ScalarExpr,
    Select,
    Stored,
    map_leaves,
)
from sparsejit.ir.simplify import Known, Missing, NoValue, simplify_absence
from sparsejit.ir.tensor import Generic, Value
from sparsejit.ir.types import DType, IteratorType
from sparsejit.trace._context import Trace
from sparsejit.trace._emit import Term, fresh
from sparsejit.trace._entries import has_nothing
from sparsejit.trace._patterns import places_within
from sparsejit.trace._pointwise import Access, Pointwise, cast, of_value, pruned, select
from sparsejit.trace._sums import signed_sum, summed

if TYPE_CHECKING:
    from sparsejit.trace._array import Array

__all__ = ["entries_stored", "is_sparse_argument"]


@dataclass(frozen=True, slots=True)
class _Target:
    """The parameter's value before the statement, and where an element of it is written."""

    value: Value
    at: tuple[AffineExpr, ...]
    shape: tuple[AffineExpr, ...]
    states: frozenset[str]
    location: Location | None

    def is_own(self, access: Access) -> bool:
        """Whether ``access`` is the element that is written, of the parameter as it is or was."""
        return access.value.name in self.states and access.index == self.at


def is_sparse_argument(array: Array) -> bool:
    """Whether ``array`` is an argument of the function that is sparse, whole or transposed."""
    return array._cell.param is not None and not array.is_dense


def entries_stored(
    array: Array,
    value: Value,
    terms: Sequence[Term],
    extents: Mapping[int, AffineExpr],
    overwrite: bool,
    location: Location | None,
) -> Pointwise:
    """Return the content of a sparse ``array``, now ``value``, after an assignment.

    Its entries are replaced by the sum of ``terms`` (``overwrite``), or increased by it. An
    intermediate is replaced as a whole. Raises ``UnsupportedError`` where entries of an argument
    would come or go, or where only a part of it is assigned.
    """
    trace, view = array._trace, array.present_view
    is_whole = view.is_whole(array._cell.shape, trace.extents) and not view.dropped
    if not is_whole or any(len(dims) != 1 for dims in view.axes):
        raise UnsupportedError(
            f"assigning a part of the sparse tensor{_called(value.name)} is not built",
            hint="assign to the whole of it at its entries, or return a new tensor",
            location=location,
        )
    places = {dims[0]: Dim(r) for r, dims in enumerate(view.axes)}
    at = tuple(places[d] for d in range(value.type.rank))
    target = _Target(value, at, array.extents, _states(trace, value), location)
    if array._cell.param is not None:
        return of_value(_updated_entries(trace, target, terms, extents, overwrite))
    if not overwrite or at != tuple(Dim(d) for d in range(len(at))):
        raise UnsupportedError("updating a sparse intermediate is not built", location=location)
    return cast(_total(trace, terms, extents, target), value.type.dtype)


def _updated_entries(
    trace: Trace,
    target: _Target,
    terms: Sequence[Term],
    extents: Mapping[int, AffineExpr],
    overwrite: bool,
) -> Value:
    """Return the parameter with its entries replaced by the sum of the terms, or increased."""
    value = target.value
    dtype = value.type.dtype
    if overwrite and terms[0].part.const is not None and len(terms) > 1:
        terms = [_first(terms[0], target), *terms[1:]]
    if overwrite and has_nothing(terms[0].part):
        terms = [replace(terms[0], part=_filled(terms[0].part, target)), *terms[1:]]
    for number, term in enumerate(terms):
        _check_pattern(trace, term, target, overwrite and number == 0)
    # What is written after the first term, or in the first round of a sum, must not be read.
    several = len(terms) > 1
    late = any((several or term.reduced) and _reads_values(term.part, target) for term in terms)
    if late or any(_reads_elsewhere(term.part, target) for term in terms):
        terms = [_computed(trace, terms, extents, target)]
    for number, term in enumerate(terms):
        replaces = overwrite and number == 0
        part = cast(term.part, dtype)
        value = _emitted(trace, value, replace(term, part=part), extents, target, replaces)
    return value


def _filled(part: Pointwise, target: _Target) -> Pointwise:
    """Return ``part`` with the fill value where it has no value: entries stay, as stored zeros."""
    fill = cast(Pointwise(target.value.type.fill, (), target.value.type.dtype), part.dtype)

    def walk(expr: ScalarExpr) -> ScalarExpr:
        match expr:
            case Nothing():
                return fill.body
            case Select(condition, then, orelse):
                return Select(condition, walk(then), walk(orelse))
            case _:
                return expr

    made = replace(part, body=walk(part.body))
    if has_nothing(made):
        raise _refused(target, "would remove entries")
    return made


def _first(term: Term, target: _Target) -> Term:
    """Return the constant that the entries start from, as a term at the entries only."""
    const = term.part.const
    assert const is not None
    guard = Pointwise(Stored(0), (Access(target.value, target.at),), DType.BOOL)
    fill = Pointwise(target.value.type.fill, (), target.value.type.dtype)
    return Term(select(guard, cast(term.part, fill.dtype), fill))


def _states(trace: Trace, value: Value) -> frozenset[str]:
    """Return the names of ``value`` and of what it was before, back to the parameter."""
    made = {op.result.name: op.init for op in trace.ops if isinstance(op, Generic)}
    names = [value.name]
    while names[-1] in made and names[-1] not in {param.name for param in trace.params}:
        names.append(made[names[-1]].name)
    return frozenset(names)


def _reads_values(part: Pointwise, target: _Target) -> bool:
    """Whether ``part`` reads elements of the target, not only where there are entries."""
    found = False

    def note(leaf: ScalarExpr) -> ScalarExpr:
        nonlocal found
        if isinstance(leaf, Arg):
            found = found or part.accesses[leaf.index].value.name in target.states
        return leaf

    map_leaves(part.body, note)
    return found


def _reads_elsewhere(part: Pointwise, target: _Target) -> bool:
    """Whether ``part`` reads the target at another place, or as it was before."""
    return any(
        access.value.name in target.states
        and (access.index != target.at or access.value.name != target.value.name)
        for access in pruned(part).accesses
    )


def _computed(
    trace: Trace, terms: Sequence[Term], extents: Mapping[int, AffineExpr], target: _Target
) -> Term:
    """Return the sum of the terms at the entries, computed before anything is written."""
    total = _total(trace, terms, extents, target)
    guard = Pointwise(Stored(0), (Access(target.value, target.at),), DType.BOOL)
    fill = Pointwise(target.value.type.fill, (), target.value.type.dtype)
    total = cast(total, fill.dtype)
    term = Term(select(guard, total, fill))
    value = fresh(trace, term, target.shape, extents, None, target.location)
    return Term(select(guard, of_value(value), fill))


def _total(
    trace: Trace, terms: Sequence[Term], extents: Mapping[int, AffineExpr], target: _Target
) -> Pointwise:
    """Return the sum of the terms, reductions computed."""
    done = [summed(trace, term, target.shape, extents, target.location) for term in terms]
    return signed_sum([(term.negated, term.part) for term in done])


def _emitted(
    trace: Trace,
    dest: Value,
    term: Term,
    extents: Mapping[int, AffineExpr],
    target: _Target,
    overwrite: bool,
) -> Value:
    """Append the operation that changes the entries of ``dest`` by one term."""
    part = pruned(term.part)
    inputs = [access for access in part.accesses if not target.is_own(access)]
    out = len(inputs)
    places = [out if target.is_own(access) else inputs.index(access) for access in part.accesses]
    order = (*range(len(target.shape)), *term.reduced)
    element = _inside(_moved(part.body, places, order), out)
    if not overwrite:
        combine = BinaryOp.SUB if term.negated and term.op is BinaryOp.ADD else term.op
        element = Binary(combine, Arg(out), element)
    count = len(order)
    over: dict[int, AffineExpr] = {variable: Dim(n) for n, variable in enumerate(order)}
    maps = tuple(
        AffineMap(count, tuple(substitute(expr, over) for expr in index))
        for index in (*(access.index for access in inputs), target.at)
    )
    kinds = (IteratorType.PARALLEL,) * len(target.shape)
    kinds += (IteratorType.REDUCTION,) * len(term.reduced)
    result = trace.value(dest.type)
    trace.ops.append(
        Generic(
            result,
            tuple(access.value for access in inputs),
            dest,
            maps,
            kinds,
            tuple(extents[variable] for variable in order),
            Select(Stored(out), element, Arg(out)),
            target.location,
        )
    )
    return result


def _moved(body: ScalarExpr, places: Sequence[int], order: Sequence[int]) -> ScalarExpr:
    def leaf(inner: ScalarExpr) -> ScalarExpr:
        match inner:
            case Arg(index):
                return Arg(places[index])
            case Stored(index):
                return Stored(places[index])
            case Coordinate(variable):
                return Coordinate(order.index(variable))
            case _:
                return inner

    return map_leaves(body, leaf)


def _inside(element: ScalarExpr, out: int) -> ScalarExpr:
    """Return what ``element`` is at the entries of the destination, where it says so itself."""
    match element:
        case Select(Stored(index), then, Const()) if index == out:
            return then
        case _:
            return element


def _check_pattern(trace: Trace, term: Term, target: _Target, overwrite: bool) -> None:
    """Refuse a term that says something where the target stores nothing."""
    part, kind = pruned(term.part), target.value.type
    neutral = kind.fill if overwrite else identity_const(term.op, part.dtype)
    own = {
        k: access.value.type.fill
        for k, access in enumerate(part.accesses)
        if target.is_own(access) or _keeps_pattern(trace, access, target)
    }
    dtypes = [access.value.type.dtype for access in part.accesses]
    match simplify_absence(part.body, dtypes, own):
        case NoValue():
            return
        case Missing(const) | Known(Const() as const) if neutral is not None and (
            const == neutral or const.value == neutral.value
        ):
            return
        case _:
            raise _refused(target, "would store new entries")


def _keeps_pattern(trace: Trace, access: Access, target: _Target) -> bool:
    """Whether an operand stores nothing where the target stores nothing."""
    if access.value.type.format.is_all_full:
        return False
    read = dict(enumerate(access.index))
    places = places_within(access.value, target.states, trace.ops)
    return any(tuple(substitute(e, read) for e in place) == target.at for place in places)


def _called(*names: str) -> str:
    """Return how a message names a tensor: by the user's name, which is no number."""
    known = sorted(name for name in names if not name.isdigit())
    return f" {known[0]!r}" if known else ""


def _refused(target: _Target, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"the assignment to the sparse argument{_called(*target.states)} {why}",
        hint="keep to its pattern, as sj.where_stored(S, ...) does, or return a new tensor",
        location=target.location,
        reasons=("the caller's object keeps the entries that it has",),
    )
