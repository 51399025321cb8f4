"""Read and write matrices and tensors: Matrix Market, FROSTT, DLMC, NumPy archives, Binsparse.

What enters is a path; what leaves is a SciPy COO array, a NumPy array or a ``SparseTensor``.
A damaged file is a ``ValueError`` that names file and line, never a wrong number.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import scipy.sparse as sp
from numpy.typing import NDArray

from sparsejit.io._binsparse import read_binsparse, write_binsparse
from sparsejit.io._frostt import read_frostt
from sparsejit.io._matrix_market import read_matrix_market
from sparsejit.io._npz import npz_bytes, read_npz
from sparsejit.io._recognize import (
    FileKind,
    kind_by_content,
    kind_by_name,
    kind_by_word,
    suffixes,
)
from sparsejit.io._smtx import read_smtx
from sparsejit.io._text import load_bytes, load_text
from sparsejit.io._write import frostt_text, matrix_market_text, smtx_text
from sparsejit.tensors import SparseTensor

__all__ = ["read", "write"]

Operand: TypeAlias = "sp.coo_array[Any, Any] | NDArray[Any] | SparseTensor"


def read(path: str | os.PathLike[str], format: str | None = None) -> Operand:
    """Return the matrix or tensor in the file at ``path``.

    The suffix tells the kind of file: ``.mtx``, ``.tns``, ``.smtx`` (each also with ``.gz``),
    ``.npz``, and ``.h5`` or ``.hdf5`` (Binsparse, if the package ``binsparse`` is installed); for
    other suffixes the content does, where it is unmistakable. ``format`` ("mtx", "tns", "smtx",
    "npz", "binsparse") overrides both. Gzip is recognized by content.

    - Matrix Market: ``coordinate`` files give a SciPy COO array with entries as stored (duplicates,
      zeros, order) and the other half of symmetric, skew-symmetric and Hermitian files filled in;
      ``array`` files give NumPy arrays. Values are float64, int64, uint64 or complex128; patterns
      are ones in float64. ``vector`` files and taco's ``tensor`` files have rank 1 and any rank; a
      sparse tensor of rank 3 and more is a ``SparseTensor``.
    - FROSTT (``.tns``): a ``SparseTensor`` in ``COO(n)`` of any rank, sorted, duplicates added;
      float64. Coordinates count from 1. Without a size line the extents are the largest
      coordinates. The size lines of MLIR (``rank count`` and extents), HiParTI (``rank`` and
      extents) and Genten or Tensor Toolbox (``sptensor``) are recognized. A first line that may be
      a size line of another kind, and a coordinate 0 outside ``sptensor`` files, are refused.
    - DLMC (``.smtx``): a SciPy COO array of ones.
    - ``.npz``: what ``write``, ``scipy.sparse.save_npz`` or ``numpy.savez`` (one array) wrote.

    Raises ``ValueError`` for a damaged file (naming file and line), an unknown ``format`` and a
    file whose kind cannot be told; ``OSError`` for a file that cannot be opened;
    ``UnsupportedError`` for Binsparse without its package and for more than 64 dimensions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.mtx")
    ...     _ = Path(path).write_text(
    ...         "%%MatrixMarket matrix coordinate real symmetric\\n2 2 2\\n1 1 5\\n2 1 7\\n"
    ...     )
    ...     read(path).toarray()
    array([[5., 7.],
           [7., 0.]])
    """
    place = Path(os.fspath(path))
    kind = kind_by_name(place) if format is None else kind_by_word(format)
    if kind is FileKind.NPZ:
        return read_npz(place)
    if kind is FileKind.BINSPARSE:
        return read_binsparse(place)
    raw = load_bytes(place)
    kind = kind or kind_by_content(place, raw)
    match kind:
        case FileKind.MATRIX_MARKET:
            return read_matrix_market(load_text(str(place), raw))
        case FileKind.FROSTT:
            return read_frostt(load_text(str(place), raw))
        case FileKind.SMTX:
            return read_smtx(load_text(str(place), raw))
        case FileKind.NPZ:
            return read_npz(place)
        case FileKind.BINSPARSE:
            return read_binsparse(place)
        case _:
            assert_never(kind)


def write(path: str | os.PathLike[str], x: object) -> None:
    """Write ``x`` to ``path``, in the kind of file that its suffix names (those of ``read``).

    ``x`` is a SciPy sparse array or matrix, a ``SparseTensor`` or a NumPy array. What is written
    reads back as the same entries: numbers get the shortest digits that read back as themselves,
    duplicates and stored zeros stay (but for those that pad blocks and diagonals). ``.mtx`` takes
    all ranks (symmetry ``general``) and brings values back as float64, int64, uint64 or complex128;
    ``.tns`` takes sparse real tensors and keeps the shape in a comment; ``.smtx`` takes matrices of
    ones; ``.npz`` keeps everything, dtypes, formats and fill values included.

    Raises ``ValueError`` for another suffix and for values that the file would lose,
    ``TensorTypeError`` for an ``x``, rank or dtype that the file cannot hold, and
    ``UnsupportedError`` for a fill value it cannot express and for Binsparse without its package.
    Nothing is written then.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.mtx")
    ...     write(path, sp.coo_array([[0.0, 2.5]]))
    ...     print(Path(path).read_text(), end="")
    %%MatrixMarket matrix coordinate real general
    1 2 1
    1 2 2.5
    """
    place = Path(os.fspath(path))
    kind = kind_by_name(place)
    match kind:
        case FileKind.MATRIX_MARKET:
            _store(place, matrix_market_text(x))
        case FileKind.FROSTT:
            _store(place, frostt_text(x))
        case FileKind.SMTX:
            _store(place, smtx_text(x))
        case FileKind.NPZ:
            _store(place, npz_bytes(x))
        case FileKind.BINSPARSE:
            write_binsparse(place, x)
        case None:
            raise ValueError(f"{place}: the suffix must be one of {suffixes()}")
        case _:
            assert_never(kind)


def _store(path: Path, content: bytes) -> None:
    # Without a time stamp equal content gives equal files.
    gz = path.suffix.lower() == ".gz"
    path.write_bytes(gzip.compress(content, mtime=0) if gz else content)
