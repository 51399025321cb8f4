"""Which kind a file is: by suffix, content or ``format=``; damaged gzip files and archives."""

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sparsejit.errors import UnsupportedError
from sparsejit.formats import COO
from sparsejit.io import read, write
from sparsejit.tensors import SparseTensor, from_coo

MTX = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n"
SMTX = b"% a pattern\n2, 2, 1\n0 1 1\n1\n"
TNS = b"1 2 3\n2 2 4\n"


@pytest.mark.parametrize("name", ["a.mtx", "a.MTX", "a.mm", "noname", "a.txt", "a.rua"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_matrix_market_is_recognized(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / (name + suffix)
    path.write_bytes(gzip.compress(MTX) if suffix else MTX)
    assert read(path).shape == (2, 2)
    assert read(str(path)).shape == (2, 2)


def test_other_unmistakable_contents(tmp_path: Path) -> None:
    path = tmp_path / "a.dat"
    path.write_bytes(SMTX)
    assert read(path).nnz == 1  # type: ignore[union-attr]  # not dense
    path.write_bytes(b"sptensor\n2\n3 3\n1\n0 0 5\n")
    assert isinstance(read(path), SparseTensor)
    write(tmp_path / "a.tns", from_coo([[1], [1]], [2.0], (3, 3), format=COO(2)))
    (tmp_path / "a.tns").rename(path)
    assert read(path).shape == (3, 3)
    write(tmp_path / "a.npz", sp.coo_array(np.eye(2)))
    (tmp_path / "a.npz").rename(path)
    assert read(path).shape == (2, 2)


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_bytes(gzip.compress(MTX))
    assert read(path).shape == (2, 2)
    path = tmp_path / "b.mtx.gz"
    path.write_bytes(MTX)
    with pytest.raises(ValueError, match=r"b\.mtx\.gz: the name says gzip, but the content is not"):
        read(path)


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damaged_gzip(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(MTX)
    broken = whole[:-9] if damage == "cut" else whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    path = tmp_path / "a.mtx.gz"
    path.write_bytes(broken)
    with pytest.raises(ValueError, match=r"a\.mtx\.gz: damaged gzip data \("):
        read(path)


@pytest.mark.parametrize("content", [b"", TNS, b"# edges\n1 2\n", b"3 3 1\n1 1 1\n", b"\x93NUMPY"])
def test_contents_that_are_not_guessed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    message = (
        f"{path}: neither name nor content tells the kind of this file; "
        "pass format= with one of 'mtx', 'tns', 'smtx', 'npz', 'binsparse'"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read(path)


def test_format_overrides_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_bytes(TNS)
    assert isinstance(read(path, format="tns"), SparseTensor)
    path.write_bytes(SMTX)
    assert read(path, "smtx").nnz == 1  # type: ignore[union-attr]  # not dense
    path.write_bytes(MTX)
    with pytest.raises(ValueError, match=r"a\.mtx: not a readable \.npz archive"):
        read(path, format="npz")
    with pytest.raises(
        ValueError,
        match=r"^format must be one of 'mtx', 'tns', 'smtx', 'npz', 'binsparse', not 'csv'$",
    ):
        read(path, format="csv")


def test_names_promise_their_content(tmp_path: Path) -> None:
    path = tmp_path / "a.tns"
    path.write_bytes(MTX)
    with pytest.raises(ValueError, match=r"a\.tns, line"):
        read(path)


@pytest.mark.parametrize("name", ["a.h5", "a.hdf5"])
def test_binsparse_without_its_package(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "binsparse", None)
    (tmp_path / name).write_bytes(b"\x89HDF\r\n\x1a\n")
    for attempt in (lambda: read(tmp_path / name), lambda: write(tmp_path / name, np.eye(2))):
        with pytest.raises(
            UnsupportedError, match=r"need the package 'binsparse', which is not installed\n.*pip"
        ):
            attempt()


def archive(tmp_path: Path, **members: Any) -> Path:
    path = tmp_path / "a.npz"
    np.savez(path, **members)
    return path


TENSOR: dict[str, Any] = {
    "sparsejit": 1,
    "format": "(i, j) -> (i : dense, j : compressed)",
    "widths": [0, 0],
    "shape": [2, 3],
    "dtype": "float64",
    "values": np.ones(2),
    "fill_value": np.zeros(1),
    "positions_1": [0, 1, 2],
    "coordinates_1": [2, 0],
}


def test_a_tensor_archive_by_hand(tmp_path: Path) -> None:
    back: Any = read(archive(tmp_path, **TENSOR))
    assert back.to_numpy().tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    "change",
    [
        {"sparsejit": 2},
        {"format": "(i) -> nonsense"},
        {"shape": [2, 2]},
        {"positions_1": [0, 5, 2]},
        {"positions_1": [0, 2]},
        {"coordinates_1": [2, 7]},
        {"coordinates_1": [2.0, 0.5]},
        {"values": np.ones(3)},
        {"values": np.ones(2, np.float32)},
        {"dtype": "no such type"},
        {"fill_value": np.zeros(0)},
        {"widths": [0]},
        {"widths": [0, 7]},
        {"positions_1": None},
    ],
)
def test_damaged_tensor_archives(tmp_path: Path, change: dict[str, Any]) -> None:
    members = {**TENSOR, **change}
    path = archive(tmp_path, **{name: x for name, x in members.items() if x is not None})
    with pytest.raises(ValueError, match=r"a\.npz: not a readable \.npz archive \("):
        read(path)


def test_damaged_scipy_archives(tmp_path: Path) -> None:
    sound = {"format": b"csr", "shape": (2, 3), "data": np.ones(2), "_is_array": True}
    path = archive(tmp_path, **sound, indices=[2, 0], indptr=[0, 1, 2])
    assert read(path).toarray().tolist() == [[0, 0, 1], [1, 0, 0]]  # type: ignore[union-attr]
    # SciPy's own reader follows the last four of these out of its arrays.
    damages = (
        ([2, 9], [0, 1, 2]),
        ([2, -1], [0, 1, 2]),
        ([2, 0], [0, 10**6, 2]),
        ([2, 0], [0, 2, 0]),
        ([2, 0], [0, 2, -5]),
        ([2, 0], [0, 2, -(2**31)]),
    )
    for indices, indptr in damages:
        path = archive(tmp_path, **sound, indices=indices, indptr=indptr)
        with pytest.raises(ValueError, match=r"a\.npz: not a readable \.npz archive \("):
            read(path)


def test_archives_of_something_else(tmp_path: Path) -> None:
    for members in ({"a": np.ones(1), "b": np.ones(1)}, {"a": np.array([None])}, {}):
        with pytest.raises(ValueError, match=r"a\.npz: not a readable \.npz archive \("):
            read(archive(tmp_path, **members))
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.npz")


@given(st.data())
def test_flipped_bytes_never_end_worse_than_in_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("flips")
    write(folder / "a.npz", from_coo([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), format=COO(2)))
    raw = bytearray((folder / "a.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / "a.npz").write_bytes(bytes(raw))
    message = ""
    try:
        read(folder / "a.npz")
    except ValueError as error:
        message = str(error)
    assert not message or message.startswith(f"{folder / 'a.npz'}: not a readable .npz archive (")
