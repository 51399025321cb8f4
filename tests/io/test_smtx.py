"""DLMC patterns written here, and each kind of damage."""

from pathlib import Path

import numpy as np
import pytest

from tests.io.test_matrix_market import read_text, refused

PATTERN = "0 2 2 3\n1 3 0\n"


@pytest.mark.parametrize("head", ["3, 4, 3", "3 4 3", "3,4,3", "% DLMC\n\n 3 , 4,3 "])
@pytest.mark.parametrize("name", ["a.smtx", "a.smtx.gz"])
def test_heads(tmp_path: Path, head: str, name: str) -> None:
    matrix = read_text(tmp_path, f"{head}\n{PATTERN}", name)
    assert (matrix.format, matrix.shape, matrix.dtype) == ("coo", (3, 4), np.float64)
    assert matrix.row.tolist() == [0, 0, 2]
    assert matrix.col.tolist() == [1, 3, 0]
    assert matrix.data.tolist() == [1, 1, 1]


@pytest.mark.parametrize("text", ["2, 3, 0\n0 0 0\n\n", "2, 3, 0\n0 0 0\n", "2, 3, 0\n0 0 0"])
def test_no_entries(tmp_path: Path, text: str) -> None:
    matrix = read_text(tmp_path, text, "a.smtx")
    assert (matrix.shape, matrix.nnz) == ((2, 3), 0)
    assert read_text(tmp_path, "0, 3, 0\n0\n", "a.smtx").shape == (0, 3)


DAMAGES = [
    ("", "line 1: expected a line 'rows, columns, entries'"),
    ("3, 4\n", "line 1: expected 'rows, columns, entries', found 2"),
    ("3, 4, x\n", "line 1: entries 'x' is not an integer"),
    ("3, -4, 3\n" + PATTERN, "line 1: columns must not be negative, found -4"),
    ("3, 4, 3\n", "line 1: the file ends before its 4 row offsets"),
    ("3, 4, 3\n0 2 2 3\n", "line 2: the file ends before its 3 column indices"),
    ("3, 4, 3\n0 2 3\n1 3 0\n", "line 2: expected 4 row offsets, found 3"),
    ("3, 4, 3\n0 2 2 3\n1 3\n", "line 3: expected 3 column indices, found 2"),
    ("3, 4, 3\n0 2 2 3\n1 3 0\n1.0 1.0 1.0\n", "line 4: expected 3 lines of data; more follow"),
    ("3, 4, 3\n0 2 1 3\n1 3 0\n", "line 2: row offsets fall from 2 to 1; they must not"),
    ("3, 4, 3\n0 2 2 2\n1 3 0\n", "line 2: row offsets run from 0 to 2; expected 0 to 3"),
    ("3, 4, 3\n1 2 2 3\n1 3 0\n", "line 2: row offsets run from 1 to 3; expected 0 to 3"),
    (
        "3, 4, 3\n0 2 2 3\n1 4 0\n",
        "line 3: column index 4 (number 2 of the line) is outside 0..3",
    ),
    ("3, 4, 3\n0 2 2 3\n1 -1 0\n", "line 3: column index '-1' is negative"),
    ("3, 4, 3\n0 2 2 3\n1 x 0\n", "line 3: column index 'x' is not an integer"),
    (
        f"3, 4, 3\n0 2 2 3\n1 {2**63} 0\n",
        "line 3: column index '9223372036854775808' does not fit in int64",
    ),
]


@pytest.mark.parametrize(("text", "message"), DAMAGES)
def test_damages(tmp_path: Path, text: str, message: str) -> None:
    refused(tmp_path, text, message, "a.smtx")
