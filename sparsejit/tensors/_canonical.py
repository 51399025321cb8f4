"""Canonical storage: sorted and without duplicates, whatever the caller's object has.

In: a structure as it lies in a caller's object. Out: the structure that compiled code sees, which
shares the caller's buffers where these are canonical already, and the plan that reads values for
it. Compiled code thus never meets disorder or duplicates, and the caller's arrays stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sparsejit.affine import Dim
from sparsejit.formats import Format, Level, LevelKind, LevelType
from sparsejit.tensors._assemble import assemble, order_entries
from sparsejit.tensors._checks import check_structure
from sparsejit.tensors._coordinates import owned_nodes
from sparsejit.tensors._storage import Structure, inner_size, last_stored
from sparsejit.tensors._values import ValuePlan

__all__ = [
    "canonical_format",
    "canonicalized",
    "relaxed_format",
    "settle",
    "with_dense_tail",
    "with_format",
]


@lru_cache(maxsize=1024)
def canonical_format(fmt: Format) -> Format:
    """Return the format with order and uniqueness promised.

    >>> print(canonical_format(Format("(i) -> (i : compressed(nonunique, nonordered))")))
    (d0) -> (d0 : compressed)
    """
    return _with_properties(fmt, nonunique=False, nonordered=False)


@lru_cache(maxsize=1024)
def relaxed_format(fmt: Format) -> Format:
    """Return the format without promises of order and uniqueness.

    >>> from sparsejit.formats import CSR
    >>> print(relaxed_format(CSR))
    (d0, d1) -> (d0 : dense, d1 : compressed(nonunique, nonordered))
    """
    return _with_properties(fmt, nonunique=True, nonordered=True)


def _with_properties(fmt: Format, nonunique: bool, nonordered: bool) -> Format:
    levels: list[Level] = []
    for number, level in enumerate(fmt.levels):
        if level.type.is_full:
            levels.append(level)
            continue
        next_levels = fmt.levels[number + 1 : number + 2]
        in_run = any(lvl.type.kind is LevelKind.SINGLETON for lvl in next_levels)
        chosen = replace(level.type, nonunique=nonunique or in_run, nonordered=nonordered)
        levels.append(Level(level.expr, chosen))
    return Format.of(fmt.ndim, tuple(levels), fmt.pos_width, fmt.crd_width)


def with_format(structure: Structure, fmt: Format) -> Structure:
    """Return the same buffers under another format."""
    return Structure(fmt, structure.shape, structure.positions, structure.coordinates)


def with_dense_tail(fmt: Format, count: int) -> Format:
    """Return the format with ``count`` dense dimensions behind its own.

    >>> from sparsejit.formats import SparseVector
    >>> print(with_dense_tail(SparseVector, 1))
    (d0, d1) -> (d0 : compressed, d1 : dense)
    """
    dense = LevelType(LevelKind.DENSE)
    tail = tuple(Level(Dim(fmt.ndim + number), dense) for number in range(count))
    return Format.of(fmt.ndim + count, fmt.levels + tail, fmt.pos_width, fmt.crd_width)


def settle(structure: Structure, *, is_trusted: bool = False) -> tuple[Structure, ValuePlan]:
    """Check a caller's structure; return the canonical structure and the plan for its values.

    ``is_trusted`` says that the caller promises sound buffers: only order and duplicates matter
    then. Raises ``ValueError`` for damaged storage.
    """
    canonical = with_format(structure, canonical_format(structure.format))
    try:
        slots = check_structure(canonical)
    except ValueError:
        # Disorder and duplicates are no damage; anything else is, and is said by this check.
        relaxed = with_format(structure, relaxed_format(structure.format))
        if not is_trusted:
            check_structure(relaxed)
        return canonicalized(relaxed)
    return canonical, ValuePlan(rows=slots)


def canonicalized(structure: Structure) -> tuple[Structure, ValuePlan]:
    """Return a sound structure sorted and without duplicates, and the plan for its values."""
    fmt = canonical_format(structure.format)
    last = last_stored(fmt)
    nodes, columns = owned_nodes(structure, last)
    order = order_entries(columns, len(nodes))
    entries = len(nodes) if order.first is None else len(order.first)
    made = assemble(fmt, structure.shape, order.columns, entries)
    source = nodes if order.permutation is None else nodes[order.permutation]
    inner = inner_size(fmt, fmt.level_sizes(structure.shape))
    target = None if made.num_slots == entries else made.slots
    return made.structure, ValuePlan(source, order.first, target, made.num_slots, inner)
