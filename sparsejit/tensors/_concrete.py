"""Operands as kernels take them: a format with concrete index widths, and buffers of just these.

In: a described operand, whose format may leave the widths open. Out: the same with the widths of
its arrays in the format. Unsigned or mixed index types, which no width names, are converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.affine import Add
from sparsejit.formats import Format, LevelKind
from sparsejit.tensors._operand import Operand
from sparsejit.tensors._storage import buffer_names

__all__ = ["concrete"]

_USUAL = (np.dtype(np.int32), np.dtype(np.int64))


def concrete(operand: Operand) -> Operand:
    """Return the operand with the widths of its indices in its format, as kernels take it.

    >>> import scipy.sparse as sp
    >>> from sparsejit.tensors import describe
    >>> concrete(describe(sp.csr_array([[0.0, 1.0]]))).format.crd_width
    32
    """
    if operand.is_dense:
        return operand
    layout = _layout(operand.format)
    indices = operand.buffers[:-1]
    positions = _common([indices[place].dtype for place in layout.positions], False)
    coordinates = _common([indices[place].dtype for place in layout.coordinates], layout.is_signed)
    converted = list(indices)
    for places, dtype in ((layout.positions, positions), (layout.coordinates, coordinates)):
        for place in places:
            if indices[place].dtype != dtype:
                converted[place] = indices[place].astype(dtype)
    return Operand(
        _with_widths(operand.format, positions.itemsize * 8, coordinates.itemsize * 8),
        operand.shape,
        operand.dtype,
        operand.fill_value,
        (*converted, operand.values),
        operand.kind,
        operand.on_device,
        operand.source,
        operand.plan,
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which index buffers are positions and which coordinates; facts about the levels."""

    positions: tuple[int, ...]
    coordinates: tuple[int, ...]
    is_signed: bool


@lru_cache(maxsize=1024)
def _layout(fmt: Format) -> _Layout:
    kinds = [kind for _, kind in buffer_names(fmt)]
    padded = any(level.type.kind is LevelKind.PADDED for level in fmt.levels)
    return _Layout(
        tuple(place for place, kind in enumerate(kinds) if kind == "positions"),
        tuple(place for place, kind in enumerate(kinds) if kind == "coordinates"),
        padded or any(isinstance(level.expr, Add) for level in fmt.levels),
    )


@lru_cache(maxsize=1024)
def _with_widths(fmt: Format, pos_width: int, crd_width: int) -> Format:
    return fmt.with_widths(pos_width, crd_width)


def _common(dtypes: Sequence[np.dtype[Any]], is_signed: bool) -> np.dtype[Any]:
    """Return the one dtype that all these arrays are given in: one that a width names."""
    if len(dtypes) == 1 and dtypes[0] in _USUAL:
        return dtypes[0]
    names = {dtype.name for dtype in dtypes}
    if len(names) == 1:
        (name,) = names
        if name in ("int32", "int64") or (name in ("uint8", "uint16") and not is_signed):
            return dtypes[0]
    if names <= {"int8", "int16", "int32", "uint8", "uint16"}:
        return np.dtype(np.int32)
    return np.dtype(np.int64)
