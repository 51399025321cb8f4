"""How the values of canonical storage are read from, and written to, what a caller stores.

In: a caller's flat values. Out: the values in the order of the canonical structure, read anew at
each call: as they lie, permuted, or with duplicates added up; and the way back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsejit._dataclasses import dataclass
from sparsejit.errors import UnsupportedError
from sparsejit.tensors._dtypes import BFLOAT16
from sparsejit.tensors._storage import Array

__all__ = ["ValuePlan", "add_duplicates"]

_HALF = (np.dtype(np.float16), BFLOAT16)


def add_duplicates(values: Array, first: Array) -> Array:
    """Return the sums of the rows from each ``first`` to the next; ``or`` for bool.

    Integers wrap; 16-bit floats are accumulated in 32 bits.

    >>> add_duplicates(np.array([1.0, 2.0, 3.0]), np.array([0, 2])).tolist()
    [3.0, 3.0]
    """
    if values.dtype == np.bool_:
        return np.asarray(np.logical_or.reduceat(values, first, axis=0))
    if values.dtype in _HALF:
        wide = np.add.reduceat(values.astype(np.float32), first, axis=0)
        return np.asarray(wide.astype(values.dtype))
    return np.asarray(np.add.reduceat(values, first, axis=0, dtype=values.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class ValuePlan:
    """Which of the caller's values go where.

    The caller's flat values are rows of ``inner`` (the slots of a block, else 1). Row
    ``source[e]`` belongs to entry ``e``; rows from one ``first`` to the next add up to one row
    of the result. ``target`` tells where rows go in the ``rows`` of the canonical values, whose
    other slots hold the fill value. None means "as they lie"; a plan of three Nones shares.
    """

    source: Array | None = None
    first: Array | None = None
    target: Array | None = None
    rows: int = 0
    inner: int = 1

    @property
    def is_shared(self) -> bool:
        """Whether the canonical values are the caller's, not copied."""
        return self.source is None and self.first is None and self.target is None

    def read(self, values: Array, fill: Any) -> Array:
        """Return the canonical values for the caller's flat ``values``."""
        if self.is_shared:
            return values
        rows = values.reshape(-1, self.inner) if self.inner != 1 else values
        if self.source is not None:
            rows = rows[self.source]
        if self.first is not None:
            rows = add_duplicates(rows, self.first)
        if self.target is not None:
            shape = (self.rows, self.inner) if self.inner != 1 else (self.rows,)
            everything = np.full(shape, fill, values.dtype)
            everything[self.target] = rows
            rows = everything
        return rows if rows.ndim == 1 else rows.reshape(-1)

    def write(self, values: Array, canonical: Array) -> None:
        """Write ``canonical`` values back into the caller's flat ``values``.

        Raises ``UnsupportedError`` when several entries of the caller add up to one.
        """
        if self.first is not None:
            raise UnsupportedError(
                "cannot assign to a sparse argument with duplicate entries",
                hint="call sum_duplicates() on it first",
            )
        if self.is_shared:
            if not np.may_share_memory(values, canonical):
                values[...] = canonical
            return
        rows, own = canonical.reshape(-1, self.inner), values.reshape(-1, self.inner)
        if self.target is not None:
            rows = rows[self.target]
        own[slice(None) if self.source is None else self.source] = rows
