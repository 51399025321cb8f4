"""Binsparse files, where the package ``binsparse`` is installed (it is in no extra)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import COO, CSF
from sparsejit.io import read, write
from sparsejit.tensors import SparseTensor, from_coo

binsparse: Any = pytest.importorskip("binsparse")

DENSE = np.array([[0, 1.5, 0], [2, 0, -1]])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64", "complex128"])
def test_matrices(tmp_path: Path, dtype: str) -> None:
    x = sp.coo_array(DENSE.astype(dtype))
    write(tmp_path / "a.h5", x)
    back: Any = read(tmp_path / "a.h5")
    assert (type(back), back.dtype, back.shape) == (sp.coo_array, x.dtype, x.shape)
    np.testing.assert_array_equal(back.toarray(), x.toarray())


def test_tensors_vectors_and_dense_arrays(tmp_path: Path) -> None:
    tensor = from_coo([[1, 0], [0, 2], [1, 1]], [1.0, 2.0], (2, 3, 4), format=CSF(3))
    write(tmp_path / "a.hdf5", tensor)
    back: Any = read(tmp_path / "a.hdf5")
    assert back.format == COO(3)
    np.testing.assert_array_equal(back.to_numpy(), tensor.to_numpy())
    write(tmp_path / "a.h5", from_coo([[3]], [2.0], (5,), format=COO(1)))
    back = read(tmp_path / "a.h5")
    assert (back.format, back.toarray().tolist()) == ("coo", [0, 0, 0, 2, 0])
    for dense in (DENSE, np.arange(24).reshape(2, 3, 4), np.ones(3, np.float32)):
        write(tmp_path / "a.h5", dense)
        back = read(tmp_path / "a.h5")
        assert back.dtype == dense.dtype
        np.testing.assert_array_equal(back, dense)


def test_duplicates_add_up_and_fill_values_stay(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", sp.coo_array((np.ones(3), ([1, 0, 1], [2, 0, 2])), shape=(2, 3)))
    back: Any = read(tmp_path / "a.h5")
    assert back.toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    x = from_coo([[1]], [5.0], (3,), format=COO(1))
    x = SparseTensor(x.format, x.shape, x.positions, x.coordinates, x.values, fill_value=7)
    write(tmp_path / "a.h5", x)
    assert read(tmp_path / "a.h5").to_numpy().tolist() == [7, 5, 7]  # type: ignore[union-attr]


def stored(kind: str) -> Any:
    """Return a matrix as the package's own class of this kind."""
    i, j, pointers = np.array([0, 1, 1]), np.array([1, 0, 2]), np.array([0, 1, 3])
    values = np.array([1.5, 2, -1])
    columns = {"pointers_to_1": np.array([0, 1, 2, 3]), "indices_1": np.array([1, 0, 1])}
    match kind:
        case "CSR":
            return binsparse.CSRMatrix(
                (2, 3), 3, pointers_to_1=pointers, indices_1=j, values=values
            )
        case "CSC":
            return binsparse.CSCMatrix((2, 3), 3, values=np.array([2, 1.5, -1]), **columns)
        case "DCSR":
            return binsparse.DCSRMatrix(
                (2, 3), 3, indices_0=i[:2], pointers_to_1=pointers, indices_1=j, values=values
            )
        case "COOR":
            return binsparse.COORMatrix((2, 3), 3, indices_0=i, indices_1=j, values=values)
        case "DMATR":
            return binsparse.DMATRMatrix((2, 3), 6, values=DENSE.reshape(-1))
        case _:
            return binsparse.DMATCMatrix((2, 3), 6, values=DENSE.T.reshape(-1))


@pytest.mark.parametrize("kind", ["CSR", "CSC", "DCSR", "COOR", "DMATR", "DMATC"])
@pytest.mark.parametrize("name", ["a.h5", "a.npz"])
def test_formats_of_the_specification(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    binsparse.save_binsparse(stored(kind), path)
    back: Any = read(path, format="binsparse")
    np.testing.assert_array_equal(back if kind.startswith("DM") else back.toarray(), DENSE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices_1": np.array([1, 0, 3])}, "an index is outside 0..2"),
        ({"indices_1": np.array([1, 0])}, "the pointers do not split 2 entries into 2 parts"),
        ({"pointers_to_1": np.array([0, 5, 3])}, "the pointers do not split 3 entries into 2"),
        ({"pointers_to_1": np.array([0, 3])}, "the pointers do not split 3 entries into 2 parts"),
        ({"values": np.ones(2)}, "values"),
    ],
)
def test_damages(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    damaged = stored("CSR")
    for name, value in change.items():
        setattr(damaged, name, value)
    binsparse.save_binsparse(damaged, tmp_path / "a.h5")
    with pytest.raises(ValueError, match=f"a.h5: not a readable Binsparse file .*{message}"):
        read(tmp_path / "a.h5")


def test_no_binsparse_file(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\nbroken")
    with pytest.raises(ValueError, match=r"a\.h5: not a readable Binsparse file"):
        read(tmp_path / "a.h5")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.h5")


def test_what_is_not_built_or_cannot_be_held(tmp_path: Path) -> None:
    level = binsparse.DenseLevel(3, binsparse.ElementLevel(np.zeros(24)))
    turned = binsparse.CustomTensor((2, 3, 4), 24, level=level, transpose=(1, 2, 0))
    binsparse.save_binsparse(turned, tmp_path / "a.h5")
    with pytest.raises(UnsupportedError, match="their own inverse"):
        read(tmp_path / "a.h5")
    with pytest.raises(TensorTypeError, match="cannot hold values of dtype float16"):
        write(tmp_path / "b.h5", np.ones(2, np.float16))
    assert not (tmp_path / "b.h5").exists()
