"""Which format a fresh result has when the user names none, and its fill value.

In: the computation as a ``Pointwise`` over variables, the variables of the result and those that
are reduced. Out: a format without index widths and the fill value. A result that has the pattern of
one operand keeps that operand's format; matrices of one format keep it; otherwise a dimension is
compressed where the loop over it visits stored entries only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Dim, FloorDiv, dims_of
from sparsejit.formats import BSR, COO, CSC, CSR, DIA, Dense, Format, Level, LevelKind, LevelType
from sparsejit.ir.fold import identity_const, zero_of
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const, Nothing, ScalarExpr, Select, Stored
from sparsejit.ir.simplify import Known
from sparsejit.trace._computation import SLOTTED, Computation, is_plain, is_sparse, permuted
from sparsejit.trace._entries import has_nothing
from sparsejit.trace._pointwise import Access, Pointwise, nodes

__all__ = ["Layout", "absent_fill", "entries_layout", "result_layout"]

_COMPRESSED = LevelType(LevelKind.COMPRESSED)
_DENSE = LevelType(LevelKind.DENSE)


@dataclass(frozen=True, slots=True)
class Layout:
    """The format of a result and the value of what it does not store."""

    format: Format
    fill: Const


def absent_fill(part: Pointwise) -> Const | None:
    """Return the value of ``part`` where no sparse operand stores anything, if it is a constant."""
    return Computation(part, ()).fill if any(map(is_sparse, part.accesses)) else None


def result_layout(
    part: Pointwise, result: Sequence[int], reduction: BinaryOp | None = None
) -> Layout:
    """Return the format and fill of a fresh result over the variables ``result``.

    ``reduction`` is the operation over all other variables, None where there are none.
    """
    if reduction is None and has_nothing(part):
        return entries_layout(part, result, zero_of(part.dtype), reduces=False)
    rank = len(result)
    dense = Layout(Dense(rank), zero_of(part.dtype))
    facts = Computation(part, result)
    fill = facts.fill
    if rank == 0 or not facts.sparse or fill is None:
        return dense
    if reduction is not None and (rank == 1 or fill != identity_const(reduction, part.dtype)):
        return dense
    kept = _kept(facts, reduction)
    if kept is None and reduction is not None and rank == 2 and not _is_covered(facts):
        return dense  # a sparse matrix times a dense one, on either side
    if kept is None:
        kept = _by_levels(facts)
    return dense if kept.is_dense else Layout(kept, fill)


def entries_layout(part: Pointwise, result: Sequence[int], fill: Const, *, reduces: bool) -> Layout:
    """Return the format of a fresh result that stores what ``part`` gives, and fill elsewhere.

    ``part`` is ``Nothing`` where it has no entry. A result that ``reduces`` stores what receives
    one; without reduction it has the structure of ``part``, so that it is sparse whatever is read.
    """
    rank = len(result)
    dense = Layout(Dense(rank), fill)
    facts = Computation(part, result)
    if rank == 0 or not (has_nothing(part) or (reduces and facts.sparse)):
        return dense
    if not reduces:
        return Layout(_structure(facts), fill)
    if rank == 1 or isinstance(facts.without(facts.sparse), Known):
        return dense
    kept = _kept(facts, BinaryOp.ADD)
    if kept is None and rank == 2 and not _is_covered(facts):
        return dense
    if kept is None:
        kept = _by_levels(facts)
    return dense if kept.is_dense else Layout(kept, fill)


def _structure(facts: Computation) -> Format:
    """Return a format that stores just some elements: that of an operand if it can do so."""
    match facts.part.body:
        case Select(Stored(k), then, Nothing()) if k in facts.sparse and not _may_miss(then):
            placed = facts.placed(k)
            if placed is not None:
                return placed
        case _:
            pass
    formats = [facts.placed(k) for k in facts.sparse]
    first = formats[0] if formats else None
    if first is not None and all(fmt == first for fmt in formats) and _holds_any_pattern(first):
        return first
    mixed = _mixed(formats)
    if mixed is not None:
        return mixed
    found = _by_levels(facts) if facts.sparse else Dense(len(facts.result))
    if found.is_dense:
        levels = [Level(Dim(facts.result.index(dim)), _DENSE) for dim in _order(facts)]
    else:
        levels = list(found.levels)
    if levels[-1].type.is_full:
        levels[-1] = Level(levels[-1].expr, _COMPRESSED)
    return Format.of(len(levels), tuple(levels))


def _may_miss(body: ScalarExpr) -> bool:
    return any(isinstance(node, Nothing) for node in nodes(body))


def _holds_any_pattern(fmt: Format) -> bool:
    """Whether a format can store any set of elements and no others."""
    return is_plain(fmt) and not fmt.levels[-1].type.is_full


def _guard(body: ScalarExpr) -> int | None:
    """Return the operand whose stored entries alone are computed (``where_stored``)."""
    match body:
        case Select(Stored(k), _, Const()):
            return k
        case _:
            return None


def _kept(facts: Computation, reduction: BinaryOp | None) -> Format | None:
    """Return the format that the result takes over from its operands, if it does."""
    guard = _guard(facts.part.body)
    if guard is not None and guard in facts.sparse:
        placed = facts.placed(guard)
        if placed is not None:
            return placed
    for k in facts.sparse:
        placed = facts.placed(k)
        if placed is not None and facts.is_missing([k]) and _fills_pattern(facts, k, reduction):
            return placed
    formats = [facts.placed(k) for k in facts.sparse]
    first = formats[0]
    if first is not None and all(fmt == first for fmt in formats):
        slotted = any(level.type.kind in SLOTTED for level in first.levels)
        return None if slotted else first
    if reduction is not None:
        return _product_format(facts)
    return _mixed(formats)


def _fills_pattern(facts: Computation, k: int, reduction: BinaryOp | None) -> bool:
    """Whether each entry that operand ``k`` stores gives an entry of the result."""
    others = [other for other in facts.sparse if other != k]
    if reduction is not None:  # what is summed may be sparse, as in a sampled product
        return not others
    return isinstance(facts.without(others, [k]), Known)


def _product_format(facts: Computation) -> Format | None:
    """Return the format of a product of sparse matrices: theirs if it is one, BSR if blocks fit."""
    if len(facts.result) != 2 or not facts.is_missing(facts.sparse[:1]):
        return None
    accesses = [facts.part.accesses[k] for k in facts.sparse]
    indices = [[i.index for i in access.index if isinstance(i, Dim)] for access in accesses]
    if any(
        len(index) != 2 or access.value.type.rank != 2
        for index, access in zip(indices, accesses, strict=True)
    ):
        return None
    row, column = facts.result
    if not any(row in index for index in indices) or not any(column in i for i in indices):
        return None
    formats = []
    for index, access in zip(indices, accesses, strict=True):
        swapped = index[0] == column or index[1] == row
        formats.append(permuted(access.value.type.format, (1, 0) if swapped else (0, 1)))
    blocks = [_blocks(fmt) for fmt in formats]
    if any(blocks):
        return _block_product(formats, blocks)
    if all(fmt == formats[0] for fmt in formats):
        slotted = any(level.type.kind in SLOTTED for level in formats[0].levels)
        return None if slotted else formats[0]
    return _mixed(formats)


def _blocks(fmt: Format) -> tuple[int, int] | None:
    """Return the block of a format that is BSR, or the transpose of BSR."""
    sizes = [level.expr.divisor for level in fmt.levels if isinstance(level.expr, FloorDiv)]
    if len(sizes) != 2:
        return None
    if fmt == BSR(*sizes):
        return sizes[0], sizes[1]
    return (sizes[1], sizes[0]) if _transposed(fmt) == BSR(*sizes) else None


def _transposed(fmt: Format) -> Format:
    return permuted(fmt, (1, 0))


def _block_product(
    formats: Sequence[Format], blocks: Sequence[tuple[int, int] | None]
) -> Format | None:
    """Return BSR where the blocks fit, CSR where they do not."""
    found = [block for block in blocks if block is not None]
    fits = len(found) == len(formats) and all(a[1] == b[0] for a, b in pairwise(found))
    if not fits:
        return CSR if all(map(_is_scipy, formats)) else None
    rows, columns = found[0][0], found[-1][1]
    by_columns = all(fmt != BSR(*block) for fmt, block in zip(formats, found, strict=True))
    return _transposed(BSR(columns, rows)) if by_columns else BSR(rows, columns)


def _mixed(formats: Sequence[Format | None]) -> Format | None:
    """Return the format of a mixture of matrices that SciPy has classes for, as a user expects.

    It is CSR. COO goes with what it is mixed with: CSC, or COO in another order.
    """
    if not formats or any(fmt is None or not _is_scipy(fmt) for fmt in formats):
        return None
    others = {fmt for fmt in formats if fmt not in (COO(2), _transposed(COO(2)))}
    return COO(2) if not others else CSC if others == {CSC} else CSR


def _is_scipy(fmt: Format) -> bool:
    """Whether a SciPy class holds the format, or its transpose."""
    if fmt.ndim != 2:
        return False
    named = (CSR, CSC, DIA, COO(2))
    return fmt in named or _transposed(fmt) in named or _blocks(fmt) is not None


# ---------------------------------------------------------------- by the levels


def _dims_in_order(access: Access) -> list[int]:
    """Return the variables of an access in the order of the levels, outermost first."""
    found: dict[int, None] = {}
    for level in access.value.type.format.levels:
        for dim in sorted(dims_of(level.expr)):
            found.update(dict.fromkeys(sorted(dims_of(access.index[dim]))))
    return list(found)


def _full_dims(access: Access) -> set[int]:
    """Return the variables whose loop visits every coordinate of the access."""
    fmt = access.value.type.format
    full: set[int] = set()
    for dim, index in enumerate(access.index):
        levels = [level for level in fmt.levels if dim in dims_of(level.expr)]
        differences = [level for level in levels if len(dims_of(level.expr)) > 1]
        if differences:  # the first dimension of a band is walked whole
            is_full = dim == min(dims_of(differences[0].expr))
        else:
            is_full = all(level.type.is_full for level in levels)
        if is_full or len(dims_of(index)) > 1:
            full |= dims_of(index)
    return full


def _order(facts: Computation) -> list[int]:
    """Return the result's variables in the order of the loops: that of the operands' levels."""
    chains = [
        [dim for dim in _dims_in_order(facts.part.accesses[k]) if dim in facts.result]
        for k in facts.sparse
    ]
    left, order = list(facts.result), []
    while left:
        free = [
            dim
            for dim in left
            if not any(dim in chain and _blocked(dim, chain, left) for chain in chains)
        ]
        order.append((free or left)[0])
        left.remove(order[-1])
    return order


def _blocked(dim: int, chain: Sequence[int], left: Sequence[int]) -> bool:
    return any(before in left for before in chain[: chain.index(dim)])


def _by_levels(facts: Computation) -> Format:
    order = _order(facts)
    full: dict[int, set[int]] = {}
    dense = set[int]().union(*(_full_dims(facts.part.accesses[k]) for k in facts.sparse))
    for k in facts.sparse:
        access = facts.part.accesses[k]
        chain = [dim for dim in _dims_in_order(access) if dim in facts.result]
        inside = [dim for dim in order if dim in chain]
        whole = _full_dims(access)
        if chain == inside:
            full[k] = whole
        else:  # it will be converted to the order of the loops: dense levels come first
            full[k] = dense.intersection(inside[: sum(dim in whole for dim in chain)])
    kinds = []
    for dim in order:
        absent = [
            k
            for k in facts.sparse
            if dim in _dims_in_order(facts.part.accesses[k]) and dim not in full[k]
        ]
        kinds.append(_COMPRESSED if absent and facts.is_missing(absent) else _DENSE)
    if _DENSE in kinds and _COMPRESSED in kinds and len(order) == 2 and kinds[0] is _COMPRESSED:
        return Dense(2)
    if all(kind is _DENSE for kind in kinds):
        if not _all_sparse(facts):
            return Dense(len(order))
        kinds[-1] = _COMPRESSED  # nothing but sparse operands: a dense result would surprise
    places = [facts.result.index(dim) for dim in order]
    levels = tuple(Level(Dim(d), kind) for d, kind in zip(places, kinds, strict=True))
    return Format.of(len(order), levels)


def _is_covered(facts: Computation) -> bool:
    """Whether every dimension of the result is one of a sparse operand."""
    covered = {dim for k in facts.sparse for dim in _dims_in_order(facts.part.accesses[k])}
    return set(facts.result) <= covered


def _all_sparse(facts: Computation) -> bool:
    """Whether several operands are all sparse, and any of them absent leaves nothing to compute."""
    arrays = [k for k, access in enumerate(facts.part.accesses) if access.value.type.rank]
    return (
        len(facts.result) > 1
        and len(facts.sparse) > 1
        and _is_covered(facts)
        and arrays == facts.sparse
        and all(facts.is_missing([k]) for k in facts.sparse)
    )
