"""What is written reads back as the same entries; what a kind of file would lose is refused."""

import gzip
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import BSR, COO, CSC, CSF, CSR, DCSR, Format
from sparsejit.io import read, write
from sparsejit.tensors import SparseTensor, from_coo

TEXT_DTYPES = [
    *("bool", "int8", "int64", "uint8", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]

SCIPY_DTYPES = [name for name in TEXT_DTYPES if name != "float16"]


def read_back(x: object, name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(path, x)
        return read(path)


def wide(dtype: np.dtype[Any]) -> str:
    """Return the dtype in which values of ``dtype`` come back from text."""
    match dtype.kind:
        case "b" | "i":
            return "int64"
        case "u":
            return "uint64" if dtype.itemsize == 8 else "int64"
        case "c":
            return "complex128"
        case _:
            return "float64"


@st.composite
def coo_arrays(draw: st.DrawFn, ranks: st.SearchStrategy[int], dtypes: list[str]) -> Any:
    """Draw SciPy COO arrays: unsorted, with duplicates, zeros, nan, infinities, extents 0 and 1."""
    shape = tuple(draw(st.integers(0, 5)) for _ in range(draw(ranks)))
    count = draw(st.integers(0, 8)) if 0 not in shape else 0
    coords = tuple(
        np.array(
            draw(st.lists(st.integers(0, max(n - 1, 0)), min_size=count, max_size=count)), np.int32
        )
        for n in shape
    )
    values = draw(hnp.arrays(draw(st.sampled_from(dtypes)), count))
    place: Any = coords
    return sp.coo_array((values, place), shape=shape)


@given(coo_arrays(st.integers(1, 2), SCIPY_DTYPES), st.sampled_from(["a.mtx", "a.mtx.gz"]))
def test_matrix_market(x: Any, name: str) -> None:
    back = read_back(x, name)
    assert (back.format, back.shape) == ("coo", x.shape)
    for left, right in zip(back.coords, x.coords, strict=True):
        np.testing.assert_array_equal(left, right)
    assert back.dtype == wide(x.dtype)
    assert_same_numbers(back.data, x.data)


def assert_same_numbers(back: Any, x: Any) -> None:
    """Compare bit by bit, but for the payload of a nan, after narrowing to what was written."""
    narrow = back.astype(x.dtype)
    np.testing.assert_array_equal(narrow, x)
    if x.dtype.kind in "fc":
        for part in ("real", "imag"):
            one, two = getattr(narrow, part), getattr(x, part)
            same = np.signbit(one) == np.signbit(two)
            assert (same | np.isnan(one)).all()


@given(
    hnp.arrays(
        st.sampled_from(TEXT_DTYPES),
        hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4),
    )
)
def test_dense_matrix_market(x: Any) -> None:
    back = read_back(x, "a.mtx")
    assert isinstance(back, np.ndarray)
    assert (back.shape, back.dtype) == (x.shape, wide(x.dtype))
    assert_same_numbers(back, x)


def finite(x: Any) -> Any:
    """Without duplicates, whose sum may round, and without nan, which compares as unequal."""
    return from_coo(x.coords, np.nan_to_num(x.data).astype(x.dtype), x.shape, format=COO(x.ndim))


@given(coo_arrays(st.integers(1, 5), ["int16", "int64", "uint64", "float32", "float64"]))
def test_frostt_and_npz(x: Any) -> None:
    tensor = finite(x)
    for name in ("a.tns", "a.tns.gz", "a.npz"):
        back = read_back(tensor, name)
        assert isinstance(back, SparseTensor)
        assert (back.format, back.shape) == (COO(x.ndim), x.shape)
        assert back.dtype == (x.dtype if name == "a.npz" else wide(x.dtype))
        for left, right in zip(back.coordinates, tensor.coordinates, strict=True):
            np.testing.assert_array_equal(left, right)
        assert_same_numbers(back.values, tensor.values)


@given(coo_arrays(st.integers(3, 5), ["int64", "float64", "complex128"]))
def test_tensors_in_matrix_market(x: Any) -> None:
    tensor = finite(x)
    back = read_back(tensor, "a.mtx")
    assert (back.format, back.shape, back.dtype) == (COO(x.ndim), x.shape, x.dtype)
    np.testing.assert_array_equal(back.values, tensor.values)


@given(coo_arrays(st.just(2), ["float64", "int8", "bool"]))
def test_smtx(x: Any) -> None:
    ones = sp.coo_array((np.ones(x.nnz, x.dtype), x.coords), shape=x.shape)
    back = read_back(ones, "a.smtx")
    assert (back.format, back.shape, back.dtype) == ("coo", x.shape, np.float64)
    assert sorted(zip(*back.coords, strict=True)) == sorted(zip(*x.coords, strict=True))


A = sp.coo_array(np.array([[0, 1.5, 0, 0], [2, 0, 0, -1], [0, 0, 0, 0], [0, 0, 3, 4]]))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("name", ["a.mtx", "a.tns", "a.npz"])
def test_scipy_formats(tmp_path: Path, kind: str, matrix: bool, name: str) -> None:
    coo: Any = sp.coo_matrix(A) if matrix else A
    x = coo.asformat(kind)
    write(tmp_path / name, x)
    back: Any = read(tmp_path / name)
    dense = back.to_numpy() if name == "a.tns" else back.toarray()
    np.testing.assert_array_equal(dense, A.toarray())
    assert name == "a.tns" or type(back) is sp.coo_array


@pytest.mark.parametrize("fmt", [CSR, CSC, DCSR, CSF(2), BSR(2, 2), COO(2).with_widths(64, 16)])
@pytest.mark.parametrize("name", ["a.mtx", "a.tns", "a.npz"])
def test_tensor_formats(tmp_path: Path, fmt: Format, name: str) -> None:
    x = from_coo(A.coords, A.data, A.shape, format=fmt)
    write(tmp_path / name, x)
    back: Any = read(tmp_path / name)
    dense = back.toarray() if name == "a.mtx" else back.to_numpy()
    np.testing.assert_array_equal(dense, A.toarray())
    if name == "a.npz":
        assert back.format == fmt
        buffers = (*x.positions, *x.coordinates)
        for ours, theirs in zip((*back.positions, *back.coordinates), buffers, strict=True):
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                np.testing.assert_array_equal(ours, theirs)
                assert ours.dtype == theirs.dtype


def test_npz_keeps_fill_values_and_every_dtype(tmp_path: Path) -> None:
    for dtype in (*TEXT_DTYPES, ml_dtypes.bfloat16):
        values = np.array([1, 0], dtype)
        x = from_coo([[0, 2], [1, 1]], values, (3, 2), format=COO(2))
        x = SparseTensor(x.format, x.shape, x.positions, x.coordinates, x.values, fill_value=1)
        write(tmp_path / "a.npz", x)
        back: Any = read(tmp_path / "a.npz")
        assert (back.dtype, back.fill_value) == (values.dtype, 1)
        np.testing.assert_array_equal(back.to_numpy(), x.to_numpy())


def test_npz_keeps_scipy_arrays_of_other_ranks(tmp_path: Path) -> None:
    for shape in ((4,), (2, 3, 4)):
        place: Any = tuple(np.array([n - 1, 0]) for n in shape)
        x = sp.coo_array((np.array([1.0, 2.0]), place), shape=shape)
        write(tmp_path / "a.npz", x)
        back: Any = read(tmp_path / "a.npz")
        assert (back.format, back.shape) == ("coo", shape)
        np.testing.assert_array_equal(back.toarray(), x.toarray())


def test_npz_is_scipy_s_for_scipy_s_arrays(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", A.tocsr())
    theirs: Any = sp.load_npz(tmp_path / "a.npz")
    assert (theirs.format, type(theirs)) == ("csr", sp.csr_array)
    sp.save_npz(tmp_path / "b.npz", sp.csc_matrix(A))
    back: Any = read(tmp_path / "b.npz")
    np.testing.assert_array_equal(back.toarray(), A.toarray())
    dense = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    write(tmp_path / "c.npz", dense)
    back = read(tmp_path / "c.npz")
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, dense)


def test_scipy_reads_what_is_written(tmp_path: Path) -> None:
    for x in (A, A.astype(np.int32), A.astype(np.uint64), A.astype(np.complex64)):
        write(tmp_path / "a.mtx", x)
        theirs: Any = scipy.io.mmread(tmp_path / "a.mtx")
        np.testing.assert_array_equal(theirs.toarray(), x.toarray())
    write(tmp_path / "a.mtx", A.toarray())
    np.testing.assert_array_equal(scipy.io.mmread(tmp_path / "a.mtx"), A.toarray())


def test_texts(tmp_path: Path) -> None:
    """The files themselves: shortest digits, narrow floats with the digits of their width."""
    x = sp.coo_array((np.array([0.1, 1e30], np.float32), ([1, 0], [0, 1])), shape=(2, 3))
    write(tmp_path / "a.mtx", x)
    head = "%%MatrixMarket matrix coordinate real general\n2 3 2\n"
    assert (tmp_path / "a.mtx").read_text() == head + "2 1 0.1\n1 2 1e+30\n"
    write(tmp_path / "a.tns", sp.coo_array((np.array([3, -4], np.int8), x.coords), shape=(2, 3)))
    head = "# sparsejit shape 2 3 dtype int64\n"
    assert (tmp_path / "a.tns").read_text() == head + "2 1 3\n1 2 -4\n"
    write(tmp_path / "a.smtx", sp.coo_array((np.ones(2), x.coords), shape=(2, 3)))
    assert (tmp_path / "a.smtx").read_text() == "2, 3, 2\n0 1 2\n1 0\n"
    write(tmp_path / "a.mtx", np.array([1 + 2j, -0.5]))
    head = "%%MatrixMarket vector array complex general\n2\n"
    assert (tmp_path / "a.mtx").read_text() == head + "1.0 2.0\n-0.5 0.0\n"


def test_equal_contents_give_equal_gzip_files(tmp_path: Path) -> None:
    for name in ("a.mtx.gz", "b.mtx.gz"):
        write(tmp_path / name, A)
    one, two = ((tmp_path / name).read_bytes() for name in ("a.mtx.gz", "b.mtx.gz"))
    assert one == two
    assert gzip.decompress(one).startswith(b"%%MatrixMarket")


_ONE = from_coo([[2]], np.array([5.0]), (3,), format=COO(1))
FILLED = SparseTensor(
    _ONE.format, _ONE.shape, _ONE.positions, _ONE.coordinates, _ONE.values, fill_value=1
)
REFUSED = [
    ("a.mtx", [[1.0]], TensorTypeError, "cannot write a list to a .mtx file"),
    ("a.mtx", np.array(1.0), TensorTypeError, "a .mtx file cannot hold an array of rank 0"),
    ("a.mtx", np.array(["x"]), TensorTypeError, "a .mtx file cannot hold values of dtype <U1"),
    ("a.mtx", np.ones(1, np.longdouble), TensorTypeError, "a .mtx file cannot hold values of"),
    ("a.tns", np.ones((2, 2)), TensorTypeError, "a .tns file holds sparse tensors, not a dense"),
    ("a.tns", A.astype(complex), TensorTypeError, "a .tns file cannot hold complex values"),
    ("a.tns", FILLED, UnsupportedError, "a .tns file cannot express a fill value of 1.0"),
    ("a.mtx", FILLED, UnsupportedError, "a .mtx file cannot express a fill value of 1.0"),
    ("a.smtx", A, ValueError, "an .smtx file holds a pattern; values other than 1 would be lost"),
    ("a.smtx", sp.coo_array(np.ones(2)), TensorTypeError, "an .smtx file holds matrices, not a"),
    ("a.npz", "text", TensorTypeError, "cannot write a str to an .npz file"),
    ("a.npz", np.array([None]), TensorTypeError, "an .npz file cannot hold an array of dtype obj"),
    ("a.txt", A, ValueError, "the suffix must be one of .mtx[.gz], .tns[.gz], .smtx[.gz], .npz"),
    ("a.npz.gz", A, ValueError, "the suffix must be one of .mtx[.gz], .tns[.gz], .smtx[.gz], .npz"),
]


@pytest.mark.parametrize(("name", "x", "error", "message"), REFUSED)
def test_refusals_write_nothing(
    tmp_path: Path, name: str, x: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        write(tmp_path / name, x)
    assert message in str(caught.value)
    assert not (tmp_path / name).exists()
