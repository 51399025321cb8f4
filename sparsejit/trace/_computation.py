"""What the rules for result formats ask about a computation.

In: an elementwise expression, and the variables of its result. Out: facts: which operands are
sparse, what is left where they store nothing, and how an operand's format looks from the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from sparsejit.affine import AffineExpr, Dim, as_linear, dims_of, substitute
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.ir.fold import zero_of
from sparsejit.ir.scalar import Const
from sparsejit.ir.simplify import Known, Missing, NoValue, Partial, simplify_absence
from sparsejit.trace._pointwise import Access, Pointwise

__all__ = ["SLOTTED", "Computation", "is_plain", "is_sparse", "permuted", "without_batches"]

SLOTTED = (LevelKind.PADDED, LevelKind.STRUCTURED, LevelKind.BATCH)
"""Levels with a fixed number of slots: a union or a product need not fit."""


def permuted(fmt: Format, order: Sequence[int]) -> Format:
    """Return ``fmt`` of the tensor whose dimension ``order[d]`` is dimension ``d`` of the old one.

    >>> from sparsejit.formats import CSC, CSR
    >>> permuted(CSR, (1, 0)) == CSC
    True
    """
    moved: dict[int, AffineExpr] = {dim: Dim(new) for dim, new in enumerate(order)}
    levels = tuple(Level(substitute(level.expr, moved), level.type) for level in fmt.levels)
    return Format.of(fmt.ndim, levels)


def without_batches(fmt: Format) -> Format:
    """Return ``fmt`` with dense levels for its batches, which then may differ in their counts."""
    dense = LevelType(LevelKind.DENSE)
    levels = tuple(
        replace(level, type=dense) if level.type.kind is LevelKind.BATCH else level
        for level in fmt.levels
    )
    return (
        fmt if levels == fmt.levels else Format.of(fmt.ndim, levels, fmt.pos_width, fmt.crd_width)
    )


def is_sparse(access: Access) -> bool:
    """Return whether an access may find nothing stored."""
    return not access.value.type.format.is_all_full


class Computation:
    """The facts about one computation that the rules ask for."""

    def __init__(self, part: Pointwise, result: Sequence[int]) -> None:
        self.part = part
        self.result = tuple(result)
        self.sparse = [k for k, access in enumerate(part.accesses) if is_sparse(access)]

    def without(self, absent: Sequence[int], present: Sequence[int] = ()) -> Partial:
        """Return what is left of the body where these operands store nothing."""
        accesses = self.part.accesses
        fills = {k: accesses[k].value.type.fill for k in absent}
        dtypes = [access.value.type.dtype for access in accesses]
        return simplify_absence(self.part.body, dtypes, fills, frozenset(present))

    def is_missing(self, absent: Sequence[int]) -> bool:
        """Return whether nothing is to be computed where these operands store nothing."""
        return not isinstance(self.without(absent), Known)

    @cached_property
    def fill(self) -> Const | None:
        """The value where nothing sparse is stored; None where that is no constant."""
        match self.without(self.sparse):
            case Missing(const) if const.value == 0:
                return zero_of(const.dtype)  # the sign of what nobody stores is nobody's either
            case Missing(const):
                return const
            case NoValue():
                return zero_of(self.part.dtype)
            case _:
                return None

    def placed(self, k: int) -> Format | None:
        """Return the format of operand ``k`` as seen from the result; None if it is no such."""
        access = self.part.accesses[k]
        fmt = access.value.type.format
        dims = [dim for index in access.index for dim in dims_of(index)]
        if len(dims) != len(access.index) or sorted(dims) != sorted(self.result):
            return None
        if not all(isinstance(index, Dim) or _steps(index) for index in access.index):
            return None
        if not all(isinstance(index, Dim) for index in access.index) and not is_plain(fmt):
            return None  # a slice cuts through blocks, diagonals and slots
        return permuted(fmt, [self.result.index(dim) for dim in dims])


def _steps(index: AffineExpr) -> bool:
    """Whether an index moves forward, so that what it visits keeps its order."""
    linear = as_linear(index)
    return linear is not None and all(factor > 0 for factor in linear[0].values())


def is_plain(fmt: Format) -> bool:
    """Return whether each level is one dimension: no blocks, diagonals or slots."""
    return all(
        isinstance(level.expr, Dim) and level.type.kind not in SLOTTED for level in fmt.levels
    )
