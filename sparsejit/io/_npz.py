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
from typing import Any, TypeAlias

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
    NotImplementedError,
)


def read_npz(path: Path) -> Archived:
    """Return the content of an archive written by ``write``, SciPy or ``numpy.savez``.

    SciPy's matrices come as COO arrays. Raises ``ValueError`` for anything else and for damage.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            members = {name: archive[name] for name in getattr(archive, "files", ())}
        return _content(path, members)
    except _DAMAGE as damage:
        raise ValueError(f"{path}: not a readable .npz archive ({damage})") from damage


def _content(path: Path, members: Mapping[str, Array]) -> Archived:
    if "sparsejit" in members:
        return _tensor(members)
    if "format" in members:
        return _scipy_matrix(path)
    if len(members) == 1:
        return next(iter(members.values()))
    found = ", ".join(members) or "none"
    raise ValueError(f"expected a SparseTensor, a SciPy matrix or one array, found {found}")


def _scipy_matrix(path: Path) -> sp.coo_array[Any, Any]:
    matrix: Any = sp.load_npz(path)
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy itself looks at the ends of the positions only, and then follows them anywhere.
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
