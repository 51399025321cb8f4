"""NumPy archives (``.npz``): SciPy's layout for SciPy's arrays, our own for a ``SparseTensor``.

Ours holds the members ``sparsejit`` (the version of the layout, 1), ``format`` (MLIR's notation),
``widths`` (of positions and coordinates), ``shape``, ``values``, ``fill_value``, ``dtype`` (the
name of their type; NumPy keeps those it does not know as plain integers), and
``positions_<level>`` and ``coordinates_<level>`` where the level stores them. A dense array is the
only member of its archive. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import ml_dtypes
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsejit.errors import TensorTypeError
from sparsejit.formats import Format
from sparsejit.io._table import Array
from sparsejit.tensors import SparseTensor

__all__ = ["Archived", "npz_bytes", "read_npz"]

Archived: TypeAlias = "sp.coo_array[Any, Any] | NDArray[Any] | SparseTensor"

_VERSION = 1
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    KeyError,
    EOFError,
    ValueError,
    TypeError,
    OverflowError,
    MemoryError,
    OSError,  # a position before the begin of the file
    NotImplementedError,  # a compression or a version of the archive that zipfile does not know
    RuntimeError,  # a member marked as encrypted
)


def read_npz(path: Path) -> Archived:
    """Return the content of an archive written by ``write``, SciPy or ``numpy.savez``.

    SciPy's matrices come as COO arrays. Raises ``ValueError`` for anything else and for damage.
    """
    # Our own handle: NumPy leaves one open when an archive is damaged.
    with path.open("rb") as file:
        try:
            return _content(file)
        except _DAMAGE as damage:
            raise ValueError(f"{path}: not a readable .npz archive ({damage})") from damage


def _content(file: IO[bytes]) -> Archived:
    archive = np.load(file, allow_pickle=False)
    if isinstance(archive, np.ndarray):
        raise ValueError("a single .npy array")
    with archive:
        members: dict[str, Array] = {name: archive[name] for name in archive.files}
    if "sparsejit" in members:
        return _tensor(members)
    if "format" in members:
        file.seek(0)
        return _scipy_matrix(file)
    if len(members) == 1:
        return next(iter(members.values()))
    found = ", ".join(members) or "none"
    raise ValueError(f"expected a SparseTensor, a SciPy matrix or one array, found {found}")


def _scipy_matrix(file: IO[bytes]) -> sp.coo_array[Any, Any]:
    matrix: Any = sp.load_npz(file)
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy itself looks at the ends of the positions only, and then follows them anywhere; its
        # full check skips them as well where the last one is not positive.
        positions = matrix.indptr
        if positions[0] != 0 or (positions[1:] < positions[:-1]).any():
            raise ValueError("the positions fall, or do not begin at 0")
        matrix.check_format(full_check=True)
    return sp.coo_array(matrix)


def _tensor(members: Mapping[str, Array]) -> SparseTensor:
    version = int(members["sparsejit"])
    if version != _VERSION:
        raise ValueError(f"layout {version} is newer than this version reads ({_VERSION})")
    pos_width, crd_width = members["widths"].tolist()
    fmt = Format(str(members["format"]), pos_width, crd_width)
    shape = tuple(int(extent) for extent in members["shape"])
    dtype = np.dtype(_BFLOAT16 if members["dtype"] == "bfloat16" else str(members["dtype"]))
    levels = range(fmt.num_levels)
    return SparseTensor(
        fmt,
        shape,
        tuple(members.get(f"positions_{level}") for level in levels),
        tuple(members.get(f"coordinates_{level}") for level in levels),
        members["values"].view(dtype),
        fill_value=members["fill_value"].view(dtype).reshape(())[()],
    )


def npz_bytes(x: object) -> bytes:
    """Return an archive of ``x``: a SciPy sparse matrix or array, NumPy array or ``SparseTensor``.

    Raises ``TensorTypeError`` for anything else and for a dtype that an archive cannot hold.
    """
    file = io.BytesIO()
    match x:
        case SparseTensor():
            savez: Any = np.savez  # its stubs take members for the flag `allow_pickle`
            savez(file, **_members(x))
        case np.ndarray():
            if x.dtype.kind not in "biufc":
                raise TensorTypeError(f"an .npz file cannot hold an array of dtype {x.dtype}")
            np.savez(file, x)
        case _ if sp.issparse(x):
            matrix: Any = x
            kept = matrix.format in ("csr", "csc", "bsr", "dia", "coo")
            sp.save_npz(file, matrix if kept else matrix.tocoo())
        case _:
            raise TensorTypeError(f"cannot write a {type(x).__name__} to an .npz file")
    return file.getvalue()


def _members(x: SparseTensor) -> dict[str, Array]:
    fill = np.array([x.fill_value], x.dtype)
    plain = np.dtype(np.uint16) if x.dtype == _BFLOAT16 else x.dtype
    members = {
        "sparsejit": np.array(_VERSION),
        "format": np.array(str(x.format)),
        "widths": np.array([x.format.pos_width, x.format.crd_width]),
        "shape": np.array(x.shape, np.int64),
        "dtype": np.array(x.dtype.name),
        "values": np.asarray(x.values).view(plain),
        "fill_value": fill.view(plain),
    }
    for kind, buffers in (("positions", x.positions), ("coordinates", x.coordinates)):
        for level, buffer in enumerate(buffers):
            if buffer is not None:
                members[f"{kind}_{level}"] = np.asarray(buffer)
    return members
