"""Matrix Market files written here: every field, symmetry and form, and each kind of damage."""

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsejit.errors import UnsupportedError
from sparsejit.formats import COO
from sparsejit.io import read


def read_text(folder: Path, text: str | bytes, name: str = "a.mtx") -> Any:
    path = folder / name
    raw = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return read(path)


def refused(folder: Path, text: str | bytes, message: str, name: str = "a.mtx") -> None:
    """Check the whole message behind the path."""
    whole = f"{folder / name}, {message}"
    with pytest.raises(ValueError, match=f"^{re.escape(whole)}$"):
        read_text(folder, text, name)


FIELDS: dict[str, tuple[list[str], list[complex], type]] = {
    "real": (["1.5", "-2e3", "+.25"], [1.5, -2000, 0.25], np.float64),
    "double": (["1.5", "-2E+3", "4."], [1.5, -2000, 4], np.float64),
    "integer": (["3", "-9007199254740993", "+7"], [3, -9007199254740993, 7], np.int64),
    "unsigned-integer": (["0", "18446744073709551615", "7"], [0, 2**64 - 1, 7], np.uint64),
    "complex": (["1 2", "-.5 0", "0 1e-3"], [1 + 2j, -0.5, 1e-3j], np.complex128),
    "pattern": (["", "", ""], [1, 1, 1], np.float64),
}
MIRROR = {
    "symmetric": lambda value: value,
    "hermitian": lambda value: value.conjugate(),
    "skew-symmetric": lambda value: -value,
}


def supported(field: str, symmetry: str) -> bool:
    refusals = {("pattern", "hermitian"), ("pattern", "skew-symmetric")}
    return (field, symmetry) not in refusals | {("unsigned-integer", "skew-symmetric")}


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.txt", "a"])
@pytest.mark.parametrize("field", FIELDS)
def test_coordinate_general(tmp_path: Path, field: str, name: str) -> None:
    words, values, dtype = FIELDS[field]
    places = ["3 1", "1 2", "3 1"]  # unsorted, a duplicate
    body = "\n".join(f"{at} {word}".strip() for at, word in zip(places, words, strict=True))
    matrix = read_text(
        tmp_path, f"%%MatrixMarket matrix coordinate {field} general\n3 4 3\n{body}\n", name
    )
    assert (matrix.format, matrix.shape, matrix.dtype) == ("coo", (3, 4), dtype)
    assert matrix.row.dtype == np.int32
    assert list(zip(matrix.row, matrix.col, matrix.data.tolist(), strict=True)) == [
        (2, 0, values[0]),
        (0, 1, values[1]),
        (2, 0, values[2]),
    ]


@pytest.mark.parametrize("symmetry", MIRROR)
@pytest.mark.parametrize("field", list(FIELDS))
def test_coordinate_halves_are_filled_in(tmp_path: Path, field: str, symmetry: str) -> None:
    if not supported(field, symmetry):
        return
    words, values, dtype = FIELDS[field]
    body = f"2 1 {words[0]}\n3 3 {words[1]}\n3 1 {words[2]}\n"
    matrix = read_text(
        tmp_path, f"%%MatrixMarket matrix coordinate {field} {symmetry}\n3 3 3\n{body}"
    )
    expected: Any = np.zeros((3, 3), dtype)
    expected[1, 0], expected[2, 2], expected[2, 0] = values
    expected[0, 1], expected[0, 2] = map(MIRROR[symmetry], (values[0], values[2]))
    assert matrix.dtype == dtype
    assert matrix.nnz == 5
    np.testing.assert_array_equal(matrix.toarray(), expected)


@pytest.mark.parametrize("symmetry", MIRROR)
@pytest.mark.parametrize("field", ["real", "integer", "complex"])
def test_the_upper_half_may_be_stored_instead(tmp_path: Path, field: str, symmetry: str) -> None:
    words, values, dtype = FIELDS[field]
    matrix = read_text(
        tmp_path, f"%%MatrixMarket matrix coordinate {field} {symmetry}\n3 3 1\n1 3 {words[0]}\n"
    )
    expected: Any = np.zeros((3, 3), dtype)
    expected[0, 2], expected[2, 0] = values[0], MIRROR[symmetry](values[0])
    np.testing.assert_array_equal(matrix.toarray(), expected)


def test_array_lists_columns(tmp_path: Path) -> None:
    array = read_text(tmp_path, "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n")
    np.testing.assert_array_equal(array, [[1.0, 3, 5], [2, 4, 6]])
    assert array.flags.c_contiguous


@pytest.mark.parametrize("symmetry", MIRROR)
@pytest.mark.parametrize("field", ["real", "double", "integer", "unsigned-integer", "complex"])
def test_array_halves_are_filled_in(tmp_path: Path, field: str, symmetry: str) -> None:
    if not supported(field, symmetry):
        return
    words, values, dtype = FIELDS[field]
    body = "\n".join(words)
    skew = symmetry == "skew-symmetric"
    n = 3 if skew else 2
    array = read_text(
        tmp_path, f"%%MatrixMarket matrix array {field} {symmetry}\n{n} {n}\n{body}\n"
    )
    expected: Any = np.zeros((n, n), dtype)
    places = [(1, 0), (2, 0), (2, 1)] if skew else [(0, 0), (1, 0), (1, 1)]
    for (i, j), value in zip(places, values, strict=True):
        expected[i, j] = value
        if i != j:
            expected[j, i] = MIRROR[symmetry](value)
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, expected)


def test_vectors_and_tensors(tmp_path: Path) -> None:
    vector = read_text(tmp_path, "%%MatrixMarket vector coordinate real general\n4 2\n4 1\n1 2\n")
    assert (vector.format, vector.shape, vector.toarray().tolist()) == ("coo", (4,), [2, 0, 0, 1])
    dense = read_text(tmp_path, "%%MatrixMarket vector array integer general\n2\n5\n6\n")
    assert dense.tolist() == [5, 6]
    # Taco: the first index runs fastest.
    cube = read_text(
        tmp_path,
        "%%MatrixMarket tensor array integer general\n%\n2 1 3\n1\n2\n3\n4\n5\n6\n",
        "a.ttx",
    )
    assert cube.tolist() == [[[1, 3, 5]], [[2, 4, 6]]]
    matrix = read_text(tmp_path, "%%MatrixMarket tensor coordinate real general\n2 3 1\n2 3 7\n")
    assert matrix.toarray().tolist() == [[0, 0, 0], [0, 0, 7]]
    tensor = read_text(
        tmp_path, "%%MatrixMarket tensor coordinate real general\n2 3 4 2\n2 3 4 7\n1 1 1 5\n"
    )
    assert (tensor.format, tensor.shape) == (COO(3), (2, 3, 4))
    assert tensor.to_numpy()[[0, 1], [0, 2], [0, 3]].tolist() == [5, 7]


@pytest.mark.parametrize(
    "text",
    [
        "%%MatrixMarket matrix coordinate real general\r\n2 2 1\r\n2 1 7\r\n",
        "%%MatrixMarket matrix coordinate real general\r2 2 1\r2 1 7\r",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 7",
        "\ufeff%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 7\n",
        "%%matrixmarket MATRIX Coordinate REAL General\n2 2 1\n2 1 7\n",
        "\n  %%MatrixMarket  matrix coordinate real general \n%\n% \u00fcber\n"
        "\n\t2\t2 1 \n\n 2\t1  7 \n\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n% a comment\n2 1 7\n% the end\n",
        "%%MatrixMarket matrix coord real general\n2 2 1\n2 1 7.0D+00\n",
        "%%MatrixMarket matrix coordinate real general\n+2 002 1\n+2 01 0.07d2\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n2\v1\f7\n",
    ],
)
def test_accepted_spellings(tmp_path: Path, text: str) -> None:
    matrix = read_text(tmp_path, text)
    assert matrix.toarray().tolist() == [[0, 0], [7, 0]]


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    words = "nan\nNaN\ninf\n-Infinity\n+INF\n1e400\n-1e-400\n"
    array = read_text(tmp_path, f"%%MatrixMarket vector array real general\n7\n{words}")
    np.testing.assert_array_equal(array, [np.nan, np.nan, np.inf, -np.inf, np.inf, np.inf, 0])
    matrix = read_text(
        tmp_path, "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 inf 1\n"
    )
    assert matrix.toarray()[1, 0] == complex(np.inf, 1)
    assert matrix.toarray()[0, 1] == complex(np.inf, -1)


def test_zeros_and_empty_matrices(tmp_path: Path) -> None:
    matrix = read_text(tmp_path, "%%MatrixMarket matrix coordinate integer general\n1 2 1\n1 2 0\n")
    assert (matrix.nnz, matrix.data.tolist()) == (1, [0])
    for shape in ((0, 0), (0, 3), (3, 0), (2, 2)):
        sizes = " ".join(map(str, shape))
        head = "%%MatrixMarket matrix coordinate pattern general"
        empty = read_text(tmp_path, f"{head}\n{sizes} 0\n\n")
        assert (empty.shape, empty.nnz, empty.dtype) == (shape, 0, np.float64)
    array = read_text(tmp_path, "%%MatrixMarket matrix array integer general\n0 3\n")
    assert (array.shape, array.dtype) == ((0, 3), np.int64)


def test_long_extents_take_long_indices(tmp_path: Path) -> None:
    far = 2**63 - 1
    matrix = read_text(
        tmp_path, f"%%MatrixMarket matrix coordinate real general\n{far} {far} 1\n{far} 1 2\n"
    )
    assert (matrix.shape, matrix.row.dtype) == ((far, far), np.int64)
    assert (matrix.row[0], matrix.col[0]) == (far - 1, 0)


def test_the_graphblas_type_line(tmp_path: Path) -> None:
    text = "%%MatrixMarket matrix coordinate integer general\n%%GraphBLAS type {}\n1 1 1\n1 1 {}\n"
    assert read_text(tmp_path, text.format("float", "inf")).dtype == np.float64
    assert read_text(tmp_path, text.format("fp64", "3")).dtype == np.float64
    assert read_text(tmp_path, text.format("int32_t", "3")).dtype == np.int64
    refused(tmp_path, text.format("int32_t", "inf"), "line 4: value 'inf' is not an integer")


COORDINATE = "%%MatrixMarket matrix coordinate real general\n3 3 2\n"
INTEGER = "%%MatrixMarket matrix coordinate integer general\n3 3 2\n"
BANNER = "no Matrix Market banner; expected '%%MatrixMarket object format field symmetry', found "
BASE = "; indices count from 1 (is this a 0-based file?)"

DAMAGES = [
    ("", "line 1: the file is empty; expected a Matrix Market banner"),
    ("\n\n", "line 1: the file is empty; expected a Matrix Market banner"),
    ("3 3 1\n1 1 1\n", f"line 1: {BANNER}'3'"),
    (
        "%%MatrixMarket matrix coordinate real\n",
        "line 1: expected 5 words ('%%MatrixMarket object format field symmetry'), found 4",
    ),
    (
        "%%MatrixMarket matrix coordinate real lower\n",
        "line 1: unknown symmetry 'lower'; "
        "expected one of: general, symmetric, skew-symmetric, hermitian",
    ),
    (
        "%%MatrixMarket matrix array pattern general\n1 1\n",
        "line 1: an array file cannot be a pattern",
    ),
    (
        "%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n",
        "line 1: a pattern is general or symmetric; skew-symmetric speaks about values",
    ),
    (
        "%%MatrixMarket matrix coordinate unsigned-integer skew-symmetric\n1 1 0\n",
        "line 1: unsigned values cannot be skew-symmetric",
    ),
    (COORDINATE[:46] + "% no more\n", "line 2: the file ends before its size line"),
    (
        COORDINATE[:46] + "3 3\n",
        "line 2: expected a size line (rows, columns, entries), found 2 words",
    ),
    (COORDINATE[:46] + "3 3.0 1\n", "line 2: columns '3.0' is not an integer"),
    (COORDINATE[:46] + "3 3 -1\n", "line 2: entries must not be negative, found -1"),
    (
        COORDINATE[:46] + f"3 {2**63} 1\n",
        "line 2: columns '9223372036854775808' does not fit in int64",
    ),
    (
        COORDINATE[:46] + "9" * 5000 + " 1 1\n",
        f"line 2: rows '{'9' * 37}...' does not fit in int64",
    ),
    (
        "%%MatrixMarket matrix coordinate real symmetric\n3 4 0\n",
        "line 2: symmetric, but 3x4 is not a square matrix",
    ),
    (COORDINATE, "line 2: the file ends after 0 entries; line 2 announces 2"),
    (COORDINATE + "1 1 1\n", "line 3: the file ends after 1 entry; line 2 announces 2"),
    (COORDINATE + "1 1 1\n" * 3, "line 5: more than the 2 entries that line 2 announces"),
    (COORDINATE + "1 1\n2 2 1\n", "line 3: expected 3 numbers (row, column, value), found 2"),
    (COORDINATE + "1 1 1 1\n2 2 1\n", "line 3: expected 3 numbers (row, column, value), found 4"),
    (COORDINATE + "1 1 1 % one\n", "line 3: expected 3 numbers (row, column, value), found 5"),
    (COORDINATE + "1 1 1\n\n%\n2 4 1\n", "line 6: column 4 is outside 1..3"),
    (COORDINATE + "1 3 1\n0 5 1\n", f"line 4: row 0 is outside 1..3{BASE}"),
    (COORDINATE + "1 -3 1\n0 5 1\n", "line 3: column -3 is outside 1..3"),
    (COORDINATE + "1 1.5 1\n2 2 1\n", "line 3: column '1.5' is not an integer"),
    (COORDINATE + "1 1 1x\n2 2 1\n", "line 3: value '1x' is not a number"),
    (COORDINATE + "1 1 0x10\n2 2 1\n", "line 3: value '0x10' is not a number"),
    (COORDINATE + "1 1 1_0\n2 2 1\n", "line 3: value '1_0' is not a number"),
    (COORDINATE + "1 1 1,5\n2 2 1\n", "line 3: value '1,5' is not a number"),
    (COORDINATE + "1 1 1e\n2 2 1\n", "line 3: value '1e' is not a number"),
    (COORDINATE + "1 1 nan(1)\n2 2 1\n", "line 3: value 'nan(1)' is not a number"),
    (COORDINATE + "1 1 \u0661\n2 2 1\n", "line 3: value '\\xd9\\xa1' is not a number"),
    (COORDINATE + "1 1 1\x1c2\n2 2 1\n", "line 3: value '1\\x1c2' is not a number"),
    (COORDINATE + "1,1,1\n2,2,2\n", "line 3: expected 3 numbers (row, column, value), found 1"),
    (INTEGER + "1 1 1.0\n2 2 1\n", "line 3: value '1.0' is not an integer"),
    (
        INTEGER + "1 1 -9223372036854775809\n2 2 1\n",
        "line 3: value '-9223372036854775809' does not fit in int64",
    ),
    (
        INTEGER.replace("integer", "unsigned-integer") + "1 1 -1\n2 2 1\n",
        "line 3: value '-1' does not fit in uint64",
    ),
    (
        "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n"
        "2 1 -9223372036854775808\n",
        "line 3: the negative of -9223372036854775808, on the other side, does not fit in int64",
    ),
    (
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 1\n3 1 1\n1 2 1\n",
        "line 5: entry (1, 2) is stored on both sides of the diagonal; "
        "a symmetric file holds one half",
    ),
    (
        "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1\n",
        "line 3: expected 4 numbers (row, column, real part, imaginary part), found 3",
    ),
    (
        "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n",
        "line 3: expected 2 numbers (row, column), found 3 (a pattern file holds no values)",
    ),
    (
        "%%MatrixMarket matrix array real general\n2 1\n1 2\n",
        "line 3: expected 1 number (value), found 2",
    ),
    (
        "%%MatrixMarket matrix array real general\n999999999 999999999\n1\n",
        "line 3: the file ends after 1 entry; line 2 announces 999999998000000001",
    ),
    (
        "%%MatrixMarket tensor coordinate real general\n2 2 2 1\n1 1 3 1\n",
        "line 3: index 3 3 is outside 1..2",
    ),
    (COORDINATE + "1 1 1\n2 2 \0\n", "line 4: a NUL byte; expected plain text"),
    ((COORDINATE + "1 1 1\n2 2 2\n").encode("utf-16"), "line 1: a NUL byte; expected plain text"),
]


@pytest.mark.parametrize(("text", "message"), DAMAGES)
def test_damages(tmp_path: Path, text: str | bytes, message: str) -> None:
    refused(tmp_path, text, message)
    if text != "":
        refused(tmp_path, text, message, "a.mtx.gz")


def test_more_dimensions_than_numpy_has(tmp_path: Path) -> None:
    ones = "1 " * 65
    with pytest.raises(UnsupportedError, match=r"rank 65\n.*at most 64"):
        read_text(tmp_path, f"%%MatrixMarket tensor coordinate real general\n{ones}0\n")
