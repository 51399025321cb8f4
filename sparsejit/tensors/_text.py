"""The readable text of a stored tensor: one line of facts, then one line a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsejit.tensors._storage import Array, Structure, buffer_names, join_buffers

__all__ = ["tensor_text"]


def tensor_text(structure: Structure, values: Array, fill: Any, nse: int) -> str:
    """Return the ``repr`` of a ``SparseTensor``; long buffers are shortened as NumPy does.

    >>> from sparsejit.formats import SparseVector
    >>> parts = Structure(SparseVector, (5,), (np.array([0, 1]),), (np.array([3]),))
    >>> print(tensor_text(parts, np.array([7.0]), np.float64(0), 1))
    SparseTensor(shape=(5,), dtype=float64, nse=1, fill_value=0.0)
      format: (d0) -> (d0 : compressed)
      positions[0]:   [0 1]
      coordinates[0]: [3]
      values:         [7.]
    """
    facts = f"shape={structure.shape}, dtype={values.dtype}, nse={nse}, fill_value={fill}"
    names = [f"{name}[{level}]:" for level, name in buffer_names(structure.format)]
    labels = [*names, "values:"]
    width = max(map(len, labels))
    lines = [f"SparseTensor({facts})", f"  format: {structure.format}"]
    for label, array in zip(labels, join_buffers(structure, values), strict=True):
        text = np.array2string(array, max_line_width=72, threshold=12, edgeitems=4)
        lines.append(f"  {label:{width}} " + text.replace("\n", "\n  " + " " * (width + 1)))
    return "\n".join(lines)
