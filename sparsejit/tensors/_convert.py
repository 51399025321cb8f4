"""Conversion between formats through coordinates, in NumPy.

In: storage and a format. Out: the same entries in that format. Compiled conversions
(``sparsejit.convert``) do the same where it pays; ``fitted`` gives their results final widths.
"""

from __future__ import annotations

from typing import Any

from sparsejit.affine import dims_of
from sparsejit.formats import Format
from sparsejit.tensors._assemble import with_index_types
from sparsejit.tensors._coordinates import entries_of
from sparsejit.tensors._dense import plain_dense_view, stored_entries, stored_from_dense
from sparsejit.tensors._dtypes import is_fill
from sparsejit.tensors._storage import Array, Structure, last_stored

__all__ = ["converted", "drops_fill", "fitted"]


def converted(
    structure: Structure, values: Array, fill: Any, fmt: Format
) -> tuple[Structure, Array]:
    """Return structure and values of the same tensor in ``fmt``.

    Zeros (fill values) that only fill a dense level are dropped where a level of ``fmt`` that
    stores the same dimension is sparse; all other stored entries stay.
    """
    view = plain_dense_view(structure, values)
    if view is not None:
        return stored_from_dense(view, fmt, fill)
    entries = entries_of(structure)
    coords, found = entries.coords, values[entries.slots]
    if drops_fill(structure.format, fmt):
        kept = ~is_fill(found, fill)
        coords, found = tuple(column[kept] for column in coords), found[kept]
    return stored_entries(fmt, structure.shape, coords, found, fill)


def fitted(structure: Structure, values: Array, fmt: Format) -> tuple[Structure, Array]:
    """Return storage made with wide indices as ``fmt`` has it, which differs in widths only.

    Raises ``ValueError`` where a width that ``fmt`` names is too small.
    """
    named = Structure(fmt, structure.shape, structure.positions, structure.coordinates)
    return with_index_types(named), values


def drops_fill(source: Format, target: Format) -> bool:
    """Whether a dimension of the innermost dense levels of ``source`` is sparse in ``target``."""
    filled = source.levels[last_stored(source) + 1 :]
    filled_dims = {dim for level in filled for dim in dims_of(level.expr)}
    sparse = [level for level in target.levels if level.type.has_coordinates]
    return any(filled_dims & dims_of(level.expr) for level in sparse)
