"""``stored_facts``: how long the rows of an operand are, and whether its batches are full.

In: a described operand. Out: ``StoredFacts``. Positions on the host are looked through once and
what was found is remembered as long as the array lives (its contents do not change, or the caller
checks at every call). Of positions on a device only the extents are asked.
"""

from __future__ import annotations

import weakref
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.formats import Format, LevelKind
from sparsejit.ir.stored_facts import RowLengths, StoredFacts, lengths_of
from sparsejit.tensors._operand import Operand
from sparsejit.tensors._storage import buffer_names, is_aos_run

__all__ = ["stored_facts"]


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What was found in index buffers, which are alive as long as this is of use."""

    format: Format
    buffers: tuple[weakref.ref[Any], ...]
    facts: StoredFacts

    def is_of(self, operand: Operand) -> bool:
        if operand.format is not self.format:
            return False
        return all(
            seen() is buffer for seen, buffer in zip(self.buffers, operand.buffers, strict=False)
        )


_known: dict[int, _Known] = {}


def stored_facts(operand: Operand, *, may_have_changed: bool = False) -> StoredFacts:
    """Return what is known of an operand without copying anything from a device.

    ``may_have_changed``: what is remembered of its positions does not count.

    >>> import scipy.sparse as sp
    >>> from sparsejit.tensors import operand_of
    >>> stored_facts(operand_of(sp.eye_array(3, format="csr"), "once")).rows
    (RowLengths.SHORT, None, None)
    """
    if operand.is_dense:
        return StoredFacts((None,) * len(operand.buffers))
    key = id(operand.buffers[0])
    known = _known.get(key)
    if known is not None and known.is_of(operand) and not may_have_changed:
        return known.facts
    facts = _facts(operand)
    indices = operand.buffers[:-1]
    if indices and all(type(buffer) is np.ndarray for buffer in indices):
        first = weakref.ref(indices[0], lambda _: _known.pop(key, None))
        refs = (first, *map(weakref.ref, indices[1:]))
        _known[key] = _Known(operand.format, refs, facts)
    return facts


@lru_cache(maxsize=256)
def _positions_of(fmt: Format) -> tuple[tuple[int, bool, bool], ...]:
    """Return which buffers are positions, whether of array-of-structs, and of loose rows."""
    return tuple(
        (
            place,
            is_aos_run(fmt, level),
            fmt.levels[level].type.kind is LevelKind.LOOSE_COMPRESSED,
        )
        for place, (level, kind) in enumerate(buffer_names(fmt))
        if kind == "positions"
    )


def _facts(operand: Operand) -> StoredFacts:
    rows: list[RowLengths | None] = [None] * len(operand.buffers)
    are_full: list[bool] = []
    for place, is_aos, is_loose in _positions_of(operand.format):
        positions, entries = operand.buffers[place], operand.buffers[place + 1].shape
        room = prod(entries[:-1] if is_aos else entries)
        if isinstance(positions, np.ndarray):
            rows[place], is_full = _looked_through(positions, room, is_loose)
            are_full.append(is_full)
        else:
            rows[place] = _expected(positions.shape, room, is_loose)
            are_full.append(False)
    has_batches = any(level.type.kind is LevelKind.BATCH for level in operand.format.levels)
    return StoredFacts(tuple(rows), has_batches and bool(are_full) and all(are_full))


def _looked_through(positions: Any, room: int, is_loose: bool) -> tuple[RowLengths | None, bool]:
    """Return how long rows are, and whether each batch fills its part of the room."""
    if is_loose:
        lengths = positions[..., 1] - positions[..., 0]
        batches, ends = prod(positions.shape[:-2]), positions[..., -1:, 1]
    else:
        lengths = np.diff(positions, axis=-1)
        batches, ends = prod(positions.shape[:-1]), positions[..., -1]
    if lengths.size == 0:
        return None, False
    is_full = bool((ends * batches == room).all())
    return lengths_of(float(lengths.mean()), float(lengths.max())), is_full


def _expected(shape: tuple[int, ...], room: int, is_loose: bool) -> RowLengths | None:
    """Return the lengths of rows if the entries are spread evenly."""
    rows = prod(shape[:-1]) if is_loose else prod(shape[:-1]) * (shape[-1] - 1)
    return lengths_of(room / rows, room / rows) if rows > 0 else None
