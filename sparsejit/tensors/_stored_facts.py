"""``stored_facts``: how long the rows of an operand are, and whether its batches are full.

In: a described operand. Out: ``StoredFacts``. Positions on the host are looked through once and
what was found is remembered as long as the array lives (its contents do not change, or the caller
checks at every call). Of positions on a device only the extents are asked.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

import numpy as np

from sparsejit.formats import LevelKind
from sparsejit.ir.stored_facts import RowLengths, StoredFacts, lengths_of
from sparsejit.tensors._operand import Operand
from sparsejit.tensors._storage import buffer_names, is_aos_run

__all__ = ["stored_facts"]

_Found = tuple[RowLengths | None, bool]
"""The lengths of rows by an array of positions, and whether it fills its coordinates."""

_known: dict[int, tuple[weakref.ref[Any], int, _Found]] = {}


def stored_facts(operand: Operand, *, may_have_changed: bool = False) -> StoredFacts:
    """Return what is known of an operand without copying anything from a device.

    ``may_have_changed``: what is remembered of its positions does not count.

    >>> import scipy.sparse as sp
    >>> from sparsejit.tensors import operand_of
    >>> stored_facts(operand_of(sp.eye_array(3, format="csr"), "once")).rows
    (RowLengths.SHORT, None, None)
    """
    nothing: tuple[RowLengths | None, ...] = (None,) * len(operand.buffers)
    if operand.is_dense:
        return StoredFacts(nothing)
    fmt, rows, are_full = operand.format, list(nothing), []
    for place, (level, kind) in enumerate(buffer_names(fmt)):
        if kind == "positions":
            entries = operand.buffers[place + 1].shape
            room = prod(entries[:-1] if is_aos_run(fmt, level) else entries)
            loose = fmt.levels[level].type.kind is LevelKind.LOOSE_COMPRESSED
            positions = operand.buffers[place]
            if isinstance(positions, np.ndarray):
                rows[place], is_full = _found(positions, room, loose, may_have_changed)
            else:
                rows[place], is_full = _expected(positions.shape, room, loose), False
            are_full.append(is_full)
    has_batches = any(level.type.kind is LevelKind.BATCH for level in fmt.levels)
    return StoredFacts(tuple(rows), has_batches and bool(are_full) and all(are_full))


def _found(positions: Any, room: int, loose: bool, may_have_changed: bool) -> _Found:
    """Look through positions, or remember what was found in them."""
    key = id(positions)
    known = _known.get(key)
    if known is not None and known[0]() is positions and known[1] == room and not may_have_changed:
        return known[2]
    found = _looked_through(positions, room, loose)
    _known[key] = (weakref.ref(positions, lambda _: _known.pop(key, None)), room, found)
    return found


def _looked_through(positions: Any, room: int, loose: bool) -> _Found:
    if loose:
        lengths = positions[..., 1] - positions[..., 0]
        batches, ends = prod(positions.shape[:-2]), positions[..., -1:, 1]
    else:
        lengths = np.diff(positions, axis=-1)
        batches, ends = prod(positions.shape[:-1]), positions[..., -1]
    if lengths.size == 0:
        return None, False
    is_full = bool((ends * batches == room).all())
    return lengths_of(float(lengths.mean()), float(lengths.max())), is_full


def _expected(shape: tuple[int, ...], room: int, loose: bool) -> RowLengths | None:
    """Return the lengths of rows if the entries are spread evenly."""
    rows = prod(shape[:-1]) if loose else prod(shape[:-1]) * (shape[-1] - 1)
    return lengths_of(room / rows, room / rows) if rows > 0 else None
