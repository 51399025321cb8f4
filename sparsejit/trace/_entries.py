"""Entries: which elements of an expression are stored, said in the expression itself.

In: any elementwise expression. Out: the same with ``Nothing`` where it stores no entry, a tree of
selections over what its operands store. Everything that reads patterns (``unary``, ``binary``,
``select``, ``reduce``, semirings, reductions that count what is missing) works on such trees, so
that no intermediate tensor is needed for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsejit.ir.scalar import Nothing, ScalarExpr, Select, Stored
from sparsejit.ir.simplify import Known, simplify_absence
from sparsejit.ir.types import DType
from sparsejit.trace._pointwise import Pointwise, nodes, pruned, select

__all__ = [
    "MOST",
    "entries_of",
    "has_nothing",
    "nothing_of",
    "over_entries",
    "sparse_accesses",
    "stored_at",
]

MOST = 4
"""An expression of more sparse operands is computed before its entries are asked for."""


def nothing_of(dtype: DType) -> Pointwise:
    """Return an expression without a value."""
    return Pointwise(Nothing(dtype), (), dtype)


def has_nothing(part: Pointwise) -> bool:
    """Whether ``part`` may have no value somewhere."""
    return any(isinstance(node, Nothing) for node in nodes(part.body))


def sparse_accesses(part: Pointwise) -> tuple[int, ...]:
    """Return the numbers of the operands that do not store every element."""
    return tuple(
        k for k, access in enumerate(part.accesses) if not access.value.type.format.is_all_full
    )


def stored_at(part: Pointwise, operand: int) -> Pointwise:
    """Return whether operand ``operand`` of ``part`` stores an entry."""
    return Pointwise(Stored(operand), part.accesses, DType.BOOL)


def entries_of(part: Pointwise) -> Pointwise:
    """Return ``part`` at its entries and ``Nothing`` where it stores none.

    >>> from sparsejit.affine import Dim
    >>> from sparsejit.formats import SparseVector
    >>> from sparsejit.ir.fold import zero_of
    >>> from sparsejit.ir.tensor import Value
    >>> from sparsejit.ir.types import TensorType
    >>> from sparsejit.trace._pointwise import of_value
    >>> kind = TensorType((Dim(0),), DType.FLOAT64, SparseVector, zero_of(DType.FLOAT64))
    >>> entries_of(of_value(Value("x", kind))).body.condition
    Stored(index=0)
    """
    part = pruned(part)
    sparse = sparse_accesses(part)
    dense = frozenset(range(len(part.accesses))) - frozenset(sparse)
    dtypes = [access.value.type.dtype for access in part.accesses]
    fills = {k: part.accesses[k].value.type.fill for k in sparse}

    def left(absent: Sequence[int], present: frozenset[int]) -> ScalarExpr | None:
        chosen = {k: fills[k] for k in absent}
        match simplify_absence(part.body, dtypes, chosen, present | dense):
            case Known(expr):
                return expr
            case _:
                return None

    def walk(
        undecided: Sequence[int], absent: tuple[int, ...], present: frozenset[int]
    ) -> ScalarExpr:
        found = left(absent, present)
        if found is None:
            return Nothing(part.dtype)
        if not undecided:
            return found
        first, rest = undecided[0], undecided[1:]
        then = walk(rest, absent, present | {first})
        orelse = walk(rest, (*absent, first), present)
        return then if then == orelse else Select(Stored(first), then, orelse)

    if not sparse:
        return part
    return pruned(Pointwise(walk(sparse, (), frozenset()), part.accesses, part.dtype, part.weak))


def over_entries(
    part: Pointwise, change: Callable[[Pointwise], Pointwise], nothing: Pointwise
) -> Pointwise:
    """Return ``part`` with ``change`` of each entry, and ``nothing`` where it has no value."""

    def walk(body: ScalarExpr) -> Pointwise:
        match body:
            case Nothing():
                return nothing
            case Select(condition, then, orelse) if _has_nothing(then) or _has_nothing(orelse):
                sides = walk(then), walk(orelse)
                if sides[0] == sides[1]:
                    return sides[0]
                return select(Pointwise(condition, part.accesses, DType.BOOL), *sides)
            case _:
                return change(Pointwise(body, part.accesses, part.dtype, part.weak))

    return pruned(walk(part.body))


def _has_nothing(body: ScalarExpr) -> bool:
    return any(isinstance(node, Nothing) for node in nodes(body))
