"""How many entries a result stores, as far as it is known before the loops run.

In: a kernel. Out: an upper bound, or the number itself, as an expression over the operands'
memrefs; so a result gets its memory once instead of growing entry by entry.
"""

from __future__ import annotations

from itertools import combinations

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, dims_determined_by
from sparsejit.formats import LevelKind
from sparsejit.ir import loops
from sparsejit.ir.simplify import simplify_absence
from sparsejit.sparsify_and_bufferize._buffers import SparseBuffer
from sparsejit.sparsify_and_bufferize._kernel import Kernel
from sparsejit.sparsify_and_bufferize._level_space import Grid

__all__ = ["Bound", "always_stores", "count_bound"]

_EXACT = (LevelKind.DENSE, LevelKind.COMPRESSED, LevelKind.SINGLETON)


@dataclass(frozen=True, slots=True)
class Bound:
    """At most ``slots`` entries; just as many where ``is_exact``."""

    slots: loops.Expr
    is_exact: bool


def count_bound(kernel: Kernel) -> Bound | None:
    """Return a bound by the slots of one sparse input, None where there is none.

    The input must be needed for every entry, and its indices must tell all loops: then it has a
    slot of its own for each entry of the result.
    """
    every = set(range(len(kernel.op.extents)))
    start = kernel.start()
    sparse = frozenset(kernel.twins)
    for number in sorted(sparse):
        buffer, indices = kernel.inputs[number], kernel.op.indexing_maps[number].results
        if not isinstance(buffer, SparseBuffer) or dims_determined_by(indices) != every:
            continue
        if kernel.outcome(start.without(frozenset({number}))) is None:
            # Blocks may be padded, and other operands may decide what is stored.
            alone = kernel.space.grid == Grid({}, {}) and sparse == {number}
            exact = (
                alone
                and _has_no_padding(kernel, number)
                and always_stores(kernel, number, frozenset())
            )
            return Bound(loops.DimOf(buffer.values, 0), exact)
    return None


def always_stores(kernel: Kernel, number: int, others: frozenset[int]) -> bool:
    """Whether the body has a value where ``number`` is present, whichever ``others`` are too.

    Its twins are present with it, but for those that may be empty.
    """
    if kernel.guard == number:
        return True
    twins = kernel.twins[number]
    others |= {twin for twin in twins if kernel.may_be_empty(twin)}
    for count in range(len(others) + 1):
        for absent in combinations(sorted(others), count):
            fills = {k: kernel.op.inputs[k].type.fill for k in absent}
            present = (others | twins | {number}) - frozenset(absent)
            partial = simplify_absence(kernel.op.body, kernel.dtypes, fills, present)
            if kernel.outcome_of(partial) is None or kernel.may_be_nothing(partial):
                return False
    return True


def _has_no_padding(kernel: Kernel, number: int) -> bool:
    """Whether every slot of an input is an element inside the loops."""
    levels = kernel.space.inputs[number].levels
    whole = [level.expr.index for level in levels if isinstance(level.expr, Dim)]
    return (
        not kernel.may_be_empty(number)
        and all(level.type.kind in _EXACT and not level.is_diagonal for level in levels)
        and len(set(whole)) == len(levels)
        and all(
            kernel.space.loops[loop].extent == level.size
            for loop, level in zip(whole, levels, strict=True)
        )
    )
