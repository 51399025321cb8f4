"""FROSTT files written here: plain and with each known head, and what must not be guessed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsejit.errors import UnsupportedError
from sparsejit.formats import COO
from sparsejit.io import read
from tests.io.test_matrix_market import read_text, refused


def entries(tensor: Any) -> list[tuple[Any, ...]]:
    columns = [column.tolist() for column in tensor.coordinates]
    return list(zip(*columns, tensor.values.tolist(), strict=True))


@pytest.mark.parametrize("name", ["a.tns", "a.tns.gz"])
def test_plain(tmp_path: Path, name: str) -> None:
    text = "# a tensor\n2 1 3 1.5\n\n  1\t2 1 -2 \n# between\n2 1 3 .25\n1 1 1 0\n"
    tensor = read_text(tmp_path, text, name)
    assert (tensor.format, tensor.shape, tensor.dtype) == (COO(3), (2, 2, 3), np.float64)
    # Sorted, duplicates added, the zero kept.
    assert entries(tensor) == [(0, 0, 0, 0.0), (0, 1, 0, -2.0), (1, 0, 2, 1.75)]


def test_every_rank(tmp_path: Path) -> None:
    for rank in (1, 2, 8, 64):
        tensor = read_text(tmp_path, "3 " + "1 " * (rank - 1) + "7.5\n", "a.tns")
        assert (tensor.format, tensor.shape) == (COO(rank), (3, *(1,) * (rank - 1)))
        assert entries(tensor) == [(2, *(0,) * (rank - 1), 7.5)]
    with pytest.raises(UnsupportedError, match=r"a\.tns holds a tensor of rank 65"):
        read_text(tmp_path, "1 " * 66, "a.tns")


HEADS = {
    "rank count, extents": "3 2\n4 5 6\n1 2 3 1.5\n4 1 1 2\n",
    "with comments": "# MLIR\n3 2\n# extents\n4 5 6\n\n1 2 3 1.5\n4 1 1 2\n",
    "rank, extents": "3\n4 5 6\n1 2 3 1.5\n4 1 1 2\n",
    "genten": "sptensor\n3\n4 5 6\n2\n0 1 2 1.5\n3 0 0 2\n",
    "tensor toolbox": "sptensor\n3\n4 5 6\n2\n1 2 3 1.5\n4 1 1 2\n",
    "sparsejit": "# sparsejit shape 4 5 6 dtype float64\n1 2 3 1.5\n4 1 1 2\n",
}


@pytest.mark.parametrize("head", HEADS)
def test_known_heads(tmp_path: Path, head: str) -> None:
    tensor = read_text(tmp_path, HEADS[head], "a.tns")
    assert tensor.shape == (4, 5, 6)
    assert entries(tensor) == [(0, 1, 2, 1.5), (3, 0, 0, 2.0)]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("3 0\n4 5 6\n", (4, 5, 6)),
        ("1 0\n4\n", (4,)),
        ("2\n4 0\n", (4, 0)),
        ("sptensor\n2\n4 5\n0\n", (4, 5)),
        ("# sparsejit shape 4 5 dtype int64\n", (4, 5)),
    ],
)
def test_no_entries(tmp_path: Path, text: str, shape: tuple[int, ...]) -> None:
    tensor = read_text(tmp_path, text, "a.tns")
    assert (tensor.shape, tensor.nse) == (shape, 0)


def test_vectors_are_not_taken_for_heads(tmp_path: Path) -> None:
    # Two words a line, as in a line `rank count`.
    assert entries(read_text(tmp_path, "3 4\n1 5\n2 7\n", "a.tns")) == [(0, 5), (1, 7), (2, 4)]
    assert entries(read_text(tmp_path, "2 5\n4 6\n1 2\n", "a.tns")) == [(0, 2), (1, 5), (3, 6)]
    assert entries(read_text(tmp_path, "1 1\n7\n7 3\n", "a.tns")) == [(6, 3)]


def test_our_integers_stay_exact(tmp_path: Path) -> None:
    text = "# sparsejit shape 2 2 dtype {}\n1 1 {}\n"
    tensor = read_text(tmp_path, text.format("int64", 2**63 - 1), "a.tns")
    assert entries(tensor) == [(0, 0, 2**63 - 1)]
    tensor = read_text(tmp_path, text.format("uint64", 2**64 - 1), "a.tns")
    assert entries(tensor) == [(0, 0, 2**64 - 1)]


SIZE_LINE = (
    "this may be an entry, or a size line (extents and count of what follows), which a FROSTT file "
    "does not have; remove it, or put it behind another entry"
)
BASE = "; indices count from 1 (is this a 0-based file?)"
FIRST = "as in the first line; FROSTT files have no size line"

DAMAGES = [
    ("", "line 1: no entries; expected lines of coordinates and a value"),
    ("# nothing\n\n", "line 2: no entries; expected lines of coordinates and a value"),
    # Size lines of other kinds.
    ("4 5 6 2\n1 2 3 1\n4 1 1 2\n", f"line 1: {SIZE_LINE}"),
    ("# x\n2 2 1\n2 2 5\n", f"line 2: {SIZE_LINE}"),
    ("3 4 0\n", f"line 1: {SIZE_LINE}"),
    (
        "2 0\n4 4\n",
        "line 1: two lines of two integers are an empty matrix in the extended form, or a vector "
        "with two entries",
    ),
    (
        "2 1\n4 4\n5 5\n",
        "line 1: this may be an entry of a vector, or the size line 'rank count' of a matrix whose "
        "entries lack a number",
    ),
    (
        "4 5 6\n1 2 3 1\n",
        f"line 2: expected 3 numbers (coordinate 1, coordinate 2, value), found 4 ({FIRST})",
    ),
    # 0-based files.
    (
        "0 0 1 5\n1 1 1 2\n",
        "line 1: coordinate 1 0 is outside 1..9223372036854775807" + BASE,
    ),
    ("3 1\n2 2 2\n0 1 1 5\n", "line 3: coordinate 1 0 is outside 1..2" + BASE),
    ("3\n2 2 2\n1 0 1 5\n", "line 3: coordinate 2 0 is outside 1..2" + BASE),
    (
        "sptensor\n2\n4 4\n1\n1 1 5\n",
        "line 5: no coordinate is 0 and none equals its extent, so the file may count from 0 "
        "(Genten) or from 1 (Tensor Toolbox)",
    ),
    ("sptensor\n2\n4 4\n2\n0 1 5\n1 4 5\n", "line 6: coordinate 2 4 is outside 0..3"),
    ("sptensor\n2\n4 4\n1\n-1 1 5\n", "line 5: coordinate 1 -1 is outside 0..3"),
    # Other damage.
    ("3 2\n4 5 6\n1 2 3 1\n", "line 3: the file ends after 1 entry; line 1 announces 2"),
    ("3 1\n4 5 6\n1 2 3 1\n1 1 1 1\n", "line 4: more than the 1 entry that line 1 announces"),
    ("3\n4 5\n1 1 1 1\n", "line 2: expected 3 extents, one per dimension, found 2"),
    ("0\n4\n", "line 1: rank must be at least 1, not 0"),
    ("3\n4 5 -6\n", "line 2: extent must be at least 0, not -6"),
    ("1.5\n", "line 1: expected coordinates and a value, found 1 word"),
    ("sptensor\n3\n", "line 2: expected the lines 'sptensor', rank, extents and count of entries"),
    ("sptensor 3\n3\n1 1 1\n0\n", "line 1: expected 1 word, found 2"),
    (
        "3\n4 5 6\n1 1 1\n",
        "line 3: expected 4 numbers (coordinate 1, coordinate 2, coordinate 3, value), found 3 "
        "(the head says rank 3)",
    ),
    ("1 1 1 2\n1 1 9 x\n", "line 2: value 'x' is not a number"),
    ("1 1 1 2\n1 1.0 9 3\n", "line 2: coordinate 2 '1.0' is not an integer"),
    (f"1 1 2\n1 {2**63} 3\n", "line 2: coordinate 2 '9223372036854775808' does not fit in int64"),
    ("# sparsejit shape 2 2 dtype int64\n1 1 1.5\n", "line 2: value '1.5' is not an integer"),
    ("# sparsejit shape 2 2 dtype int64\n1 3 1\n", "line 2: coordinate 2 3 is outside 1..2"),
]


@pytest.mark.parametrize(("text", "message"), DAMAGES)
def test_damages(tmp_path: Path, text: str, message: str) -> None:
    refused(tmp_path, text, message, "a.tns")


def test_a_missing_file_is_no_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.tns")
