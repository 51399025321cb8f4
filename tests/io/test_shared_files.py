"""Every Matrix Market, FROSTT and DLMC file of the shared set is read right or refused in words.

The set lies beside the repository; without it these tests are skipped. Values are compared with
the naive parsers beside this file and, where it reads the file, with SciPy.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from sparsejit.errors import UnsupportedError
from sparsejit.formats import COO
from sparsejit.io import read
from tests.io import naive

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

READ = ("mtx", "ttx", "tns", "smtx")

# Kinds of files that this package does not read.
NOT_READ = {
    "edges",  # edge lists: 0- or 1-based, with or without weights, nothing in the file says which
    "gr",  # DIMACS shortest-path graphs
    "hb",  # Harwell-Boeing and Rutherford-Boeing: scipy.io.hb_read
    "libsvm",  # sklearn.datasets.load_svmlight_file
    "metis",  # METIS and Chaco graphs
    "triplet",  # CHOLMOD's triplets with a "m n nnz stype" header
    "triplet0",  # CSparse's 0-based triplets
}

# Files on which readers differ: what ours does, and why. `docs/io.md` has the rules.
READ_DIALECTS = {
    "mtx-dialect/lagraph.west0067_jumbled.mtx": "comments and blank lines after the size line",
    "mtx-dialect/fast_matrix_market.dim_over_32_bit.mtx": "extents beyond 32 bits",
    "mtx-dialect/fast_matrix_market.vector_coordinate_real_general.mtx": "a vector has rank 1",
    "mtx-dialect/fast_matrix_market.windows_newlines.mtx": "lines that end in a carriage return",
    "mtx-dialect/suitesparse.fullcsa.mtx": "comments and blank lines between values",
    "mtx-dialect/suitesparse.fullrsa.mtx": "comments and blank lines between values",
    "mtx-dialect/fast_matrix_market.permissive_banner_leading_spaces_eye3.mtx": "leading blanks",
    "mtx-dialect/fast_matrix_market.permissive_lines_indented.mtx": "leading blanks everywhere",
    "mtx-dialect/lagraph.matrix_fp32.mtx": "the GraphBLAS type line makes integers floats",
    "mtx-dialect/suitesparse.two.tri": "`coord` is short for `coordinate`",
    "tns-dialect/sam.lp_scsd1-vec_mode1-0.001.tns": "a vector with one entry",
    "smtx-dialect/gunrock.layers.0.blocks.0.attn.proj_swin_tiny_unstructured_50.smtx": "comments",
    # The project that ships it forbids duplicates; here they stay, and add up by meaning.
    "mtx-bad/lagraph.mangled14.mtx": "duplicates",
}

BANNER = "no Matrix Market banner; expected '%%MatrixMarket object format field symmetry', found "
BASE = "; indices count from 1 (is this a 0-based file?)"
FIELDS = "real, integer, unsigned-integer, complex, pattern, double"
REFUSED = {
    # Readers differ.
    "mtx-dialect/fast_matrix_market.overflow_dim_gt_int64.mtx": (
        "line 2: rows '19223372036854775808' does not fit in int64"
    ),
    "mtx-dialect/lagraph.west0067_noheader.mtx": f"line 1: {BANNER}'67'",
    "mtx-dialect/suitesparse.fullcrud1.mtx": f"line 1: {BANNER}'2'",
    "mtx-dialect/suitesparse.Ragusa16.mtx": (
        "line 23: expected 2 numbers (row, column), found 3 (a pattern file holds no values)"
    ),
    "mtx-dialect/suitesparse.a1.mtx": (
        "line 11: expected 2 numbers (row, column), found 3 (a pattern file holds no values)"
    ),
    "mtx-dialect/suitesparse.a2.mtx": f"line 9: row 0 is outside 1..2{BASE}",
    "mtx-dialect/suitesparse.a4.mtx": f"line 11: row 0 is outside 1..4{BASE}",
    "mtx-dialect/suitesparse.az88.mtx": f"line 11: row 0 is outside 1..4{BASE}",
    "mtx-dialect/suitesparse.s32.mtx": f"line 10: row 0 is outside 1..3{BASE}",
    "mtx-dialect/suitesparse.fullcrud.mtx": (
        "line 6: the file ends after 3 entries; line 2 announces 4"
    ),
    "ttx-dialect/taco.d432.ttx": "line 28: more than the 24 entries that line 3 announces",
    # Damaged.
    "mtx-bad/fast_matrix_market.invalid_bad_banner.mtx": f"line 1: {BANNER}'%%__BadBanner'",
    "mtx-bad/fast_matrix_market.invalid_bad_field.mtx": (
        f"line 1: unknown field '____'; expected one of: {FIELDS}"
    ),
    "mtx-bad/fast_matrix_market.invalid_bad_format.mtx": (
        "line 1: unknown format '____'; expected one of: coordinate, coord, array"
    ),
    "mtx-bad/fast_matrix_market.invalid_bad_object.mtx": (
        "line 1: unknown object '___'; expected one of: matrix, vector, tensor"
    ),
    "mtx-bad/fast_matrix_market.invalid_bad_value.mtx": (
        "line 3: value 'not_a_double' is not a number"
    ),
    "mtx-bad/fast_matrix_market.invalid_bad_value_3.mtx": (
        "line 4: value 'ffsafdsafas' is not a number"
    ),
    "mtx-bad/fast_matrix_market.invalid_dimensions_out_of_range_2.mtx": (
        "line 3: columns must not be negative, found -3"
    ),
    "mtx-bad/fast_matrix_market.invalid_indices_out_of_range_1.mtx": (
        "line 5: row 5000 is outside 1..7"
    ),
    "mtx-bad/fast_matrix_market.invalid_indices_out_of_range_3.mtx": (
        f"line 5: row 0 is outside 1..7{BASE}"
    ),
    "mtx-bad/fast_matrix_market.invalid_indices_out_of_range_5.mtx": (
        "line 5: row -1 is outside 1..7"
    ),
    "mtx-bad/fast_matrix_market.invalid_matrix_coord_too_long.mtx": (
        "line 7: more than the 3 entries that line 3 announces"
    ),
    "mtx-bad/fast_matrix_market.invalid_symmetry_vector.mtx": (
        "line 2: symmetric, but 4 is not a square matrix"
    ),
    "mtx-bad/fast_matrix_market.invalid_truncated_header_1.mtx": (
        "line 2: the file ends before its size line"
    ),
    "mtx-bad/fast_matrix_market.invalid_truncated_line_2.mtx": (
        "line 5: expected 3 numbers (row, column, value), found 1"
    ),
    "mtx-bad/fast_matrix_market.invalid_vector_array_too_long.mtx": (
        "line 7: more than the 4 entries that line 2 announces"
    ),
    "mtx-bad/fast_matrix_market.invalid_vector_index_out_of_range_1.mtx": (
        f"line 4: index 0 is outside 1..4{BASE}"
    ),
    "mtx-bad/fast_matrix_market.invalid_vector_negative_length.mtx": (
        "line 2: length must not be negative, found -4"
    ),
    "mtx-bad/lagraph.mangled10.mtx": "line 6: the file ends after 2 entries; line 4 announces 3",
    "mtx-bad/lagraph.mangled12.mtx": "line 5: expected 3 numbers (row, column, value), found 2",
    "mtx-bad/lagraph.mangled15.mtx": "line 5: expected 1 number (value), found 2",
    "mtx-bad/lagraph.mangled2.mtx": (
        "line 1: unknown format 'mangled'; expected one of: coordinate, coord, array"
    ),
    "mtx-bad/lagraph.mangled3.mtx": f"line 1: unknown field 'mangled'; expected one of: {FIELDS}",
    "mtx-bad/lagraph.mangled5.mtx": (
        "line 1: a pattern is general or symmetric; hermitian speaks about values"
    ),
    "mtx-bad/lagraph.mangled6.mtx": "line 5: expected 3 numbers (row, column, value), found 4",
    "mtx-bad/sprs.not_enough_entries.mm": (
        "line 33: the file ends after 8 entries; line 23 announces 13"
    ),
    "mtx-bad/suitesparse.bad_dimensions.mtx": "line 3: the file ends before its size line",
    "mtx-bad/suitesparse.mangle1.mtx": (
        "line 1: unknown object 'junk'; expected one of: matrix, vector, tensor"
    ),
    "mtx-bad/suitesparse.mangle2.mtx": (
        "line 1: unknown format 'junk'; expected one of: coordinate, coord, array"
    ),
    "tns-bad/llvm-project.coordinate_negative.tns": "line 4: coordinate 1 -1 is outside 1..4",
    "tns-bad/llvm-project.coordinate_overflow.tns": (
        "line 4: coordinate 1 '18446744073709551616' does not fit in int64"
    ),
}
UNSUPPORTED = {"tns-dialect/llvm-project.rank_511.tns"}


def index() -> list[dict[str, Any]]:
    path = DATA / "INDEX.json"
    if not path.exists():
        return []
    entries: list[dict[str, Any]] = json.loads(path.read_text())["entries"]
    return [entry for entry in entries if kind_of(entry["file"]) in READ]


def kind_of(file: str) -> str:
    return file.split("/")[0].split("-")[0]


INDEX = index()
PLAIN = [entry for entry in INDEX if "-" not in entry["file"].split("/")[0]]
ODD = [entry["file"] for entry in INDEX if "-" in entry["file"].split("/")[0]]

needs_data = pytest.mark.skipif(not INDEX, reason="the shared data are not beside the repository")


def opinion(entry: dict[str, Any]) -> naive.Answer:
    """Return what the naive parsers read."""
    path = DATA / entry["file"]
    match kind_of(entry["file"]):
        case "smtx":
            return naive.smtx(path)
        case "tns":
            head = {"plain": 0, "mlir-extended": 2, "header-rank-dims": 2, "genten-sptensor": 4}
            return naive.frostt(path, entry["dims"], head[entry["variant"]], entry["base"])
        case _:
            return naive.matrix_market(path)


@pytest.mark.parametrize("entry", PLAIN, ids=lambda entry: entry["file"])
def test_plain_file(entry: dict[str, Any]) -> None:
    result = read(DATA / entry["file"])
    assert result.shape == tuple(entry["dims"])
    if kind_of(entry["file"]) == "tns":
        assert result.format == COO(len(entry["dims"]))  # type: ignore[union-attr]  # by its kind
        assert result.nse == entry["nnz"]  # type: ignore[union-attr]  # by its kind
    elif entry.get("layout") != "array":
        assert result.format == "coo"  # type: ignore[union-attr]  # by its kind
        assert result.nnz == entry.get("nnz_expanded", entry["nnz"])  # type: ignore[union-attr]
    assert naive.read_answer(result) == opinion(entry)


MATRICES = [entry for entry in PLAIN if entry["parsed_by"]["scipy.io.mmread"] == "ok"]


@pytest.mark.parametrize("entry", MATRICES, ids=lambda entry: entry["file"])
def test_scipy_agrees(entry: dict[str, Any]) -> None:
    ours: Any = read(DATA / entry["file"])
    theirs: Any = scipy.io.mmread(DATA / entry["file"], spmatrix=False)
    assert ours.dtype == theirs.dtype
    if isinstance(theirs, np.ndarray):
        np.testing.assert_array_equal(ours, theirs)
        return
    assert ours.row.dtype == theirs.row.dtype
    for left, right in zip(in_order(ours), in_order(theirs), strict=True):
        np.testing.assert_array_equal(left, right)


def in_order(matrix: Any) -> tuple[Any, ...]:
    data = matrix.data
    order = np.lexsort((data.imag, data.real, matrix.col, matrix.row))
    return matrix.row[order], matrix.col[order], data[order]


@pytest.mark.parametrize("file", [file for file in ODD if file in READ_DIALECTS])
def test_accepted_dialect(file: str) -> None:
    entry = next(entry for entry in INDEX if entry["file"] == file)
    result = read(DATA / file)
    expected = opinion({"variant": "plain", "base": 1, **entry})
    assert naive.read_answer(result) == expected
    if entry["dims"] is not None:
        assert result.shape == tuple(entry["dims"])


@pytest.mark.parametrize("file", [file for file in ODD if file in REFUSED])
def test_refused_file(file: str) -> None:
    path = DATA / file
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}, {REFUSED[file]}')}$"):
        read(path)


@needs_data
def test_file_beyond_what_is_built() -> None:
    (file,) = UNSUPPORTED
    with pytest.raises(UnsupportedError, match="rank 511"):
        read(DATA / file)


@needs_data
def test_every_file_has_a_decision() -> None:
    decisions = [*READ_DIALECTS, *REFUSED, *UNSUPPORTED]
    assert sorted(decisions) == sorted(ODD)


@needs_data
def test_only_the_listed_folders_are_not_read() -> None:
    folders = {folder.name.split("-")[0] for folder in DATA.iterdir() if folder.is_dir()}
    assert folders - set(READ) == NOT_READ


@needs_data
def test_infinities_need_the_type_line() -> None:
    result = read(DATA / "mtx-dialect/lagraph.matrix_fp32.mtx")
    assert result.dtype == np.float64
    assert sorted(result.data.tolist())[::11] == [-np.inf, np.inf]  # type: ignore[union-attr]
