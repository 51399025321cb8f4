"""The three ways of reading a table agree: SciPy's parser, NumPy's, and the one that defines them.

Texts are drawn near the border between sound and damaged, where the fast parsers would go wrong.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sparsejit.io import _plain, _table, read
from sparsejit.io._banner import read_head
from sparsejit.io._text import Text, load_text

SOUND = [b"1.5", b"-2", b"3e-5", b".5", b"5.", b"-1.25E+3", b"1e5", b"0", b"+2.5", b"-.5", b"007"]
ODD = [b"nan", b"-inf", b"1e400", b"1e5e5", b"1.2.3", b"--1", b"1-2", b"e5", b".", b"1e", b"1e+"]
ODDER = [b"5e3-2", b".e5", b"-.", b"1d3", b"3e-5.", b"1e+.5", b"9" * 20, b"0x1", b"1_0", b"1,5"]
BYTES = b"0123456789 +-.eE\n\t\n  ..--dxnaif"


def draw_text(rng: random.Random, field: str) -> Text:
    """Return a file of a few entries, most of them sound, with up to three bytes changed."""
    count = rng.randint(0, 6)
    lines = []
    for _ in range(count):
        words = [] if field == "array" else [rng.choice([b"1", b"2", b"3", b"10"]) for _ in "ij"]
        if field != "pattern":
            integers = [b"5", b"-7", b"0", b"12"]
            usual = integers if field == "integer" else SOUND
            words.append(rng.choice(usual if rng.random() < 0.8 else ODD + ODDER))
        lines.append(rng.choice([b" ", b" ", b" ", b"  ", b"\t"]).join(words))
    body = bytearray(b"\n".join(lines) + b"\n")
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        at = rng.randrange(len(body) or 1)
        body[at : at + rng.choice([0, 1])] = rng.choice([b"", bytes([rng.choice(BYTES)])])
    if field == "array":
        head = f"%%MatrixMarket vector array real general\n{count}\n"
    else:
        head = f"%%MatrixMarket matrix coordinate {field} general\n10 10 {count}\n"
    if not body.endswith(b"\n"):
        body += b"\n"
    return Text("a.mtx", head.encode() + bytes(body))


@pytest.mark.parametrize("field", ["real", "integer", "pattern", "array"])
def test_the_parsers_agree(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plain, "_WORTHWHILE", 0)
    rng = random.Random(field)
    plain = 0
    for _ in range(1500):
        # Small chunks put every seam between every two bytes.
        monkeypatch.setattr(_plain, "_CHUNK", rng.choice([1, 2, 3, 7, 1 << 18]))
        text = draw_text(rng, field)
        head = read_head(text)
        extents = () if head.dense else head.shape
        defined = by_definition(text, head, extents)
        at_once = _table._read_at_once(text, head.start, head.layout)
        if at_once is not None and len(at_once[0]) == head.start.count and defined != "outside":
            assert_same(text, at_once, defined)
        fast = _plain.read_plain_table(text, head.start, head.layout, extents)
        if fast is not None:
            plain += 1
            assert_same(text, fast, defined)
    assert plain > 150


def by_definition(text: Text, head: Any, extents: tuple[int, ...]) -> Any:
    try:
        columns = _table._read_line_by_line(text, head.start, head.layout)
        _table.check_coordinates(text, head.start, head.layout, columns[: len(extents)], extents)
    except ValueError as error:
        return "outside" if "outside" in str(error) else "damaged"
    return columns


def assert_same(text: Text, columns: list[Any], defined: Any) -> None:
    assert not isinstance(defined, str), text.data
    for one, two in zip(columns, defined, strict=True):
        np.testing.assert_array_equal(one, two, err_msg=repr(text.data))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_large_files_take_the_fast_way(
    tmp_path: Path, dtype: Any, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    coords = tuple(rng.integers(0, 70_000, (2, 30_000)))
    values = (rng.standard_normal(30_000) * 1e6).astype(dtype)
    x = sp.coo_array((values, coords), shape=(70_000, 70_000))
    scipy.io.mmwrite(tmp_path / "a.mtx", x, symmetry="general")
    path = tmp_path / "a.mtx"
    monkeypatch.setattr(_table, "_read_at_once", None)  # the slower way must not be needed
    back: Any = read(path)
    np.testing.assert_array_equal(back.coords, x.coords)
    np.testing.assert_array_equal(back.data, values)
    assert back.dtype == dtype


def test_large_arrays_and_symmetric_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    monkeypatch.setattr(_table, "_read_at_once", None)
    dense = rng.standard_normal((200, 150))
    scipy.io.mmwrite(tmp_path / "a.mtx", dense)
    back: Any = read(tmp_path / "a.mtx")
    np.testing.assert_array_equal(back, dense)
    half = sp.random_array((3000, 3000), density=2e-3, rng=rng)
    scipy.io.mmwrite(tmp_path / "a.mtx", half + half.T, symmetry="symmetric")
    back = read(tmp_path / "a.mtx")
    assert abs(back - (half + half.T)).max() == 0


@pytest.mark.parametrize(
    "damage", [b"1 1 1.5 7\n", b"1 1.5 2\n", b"1 1 1d3\n", b"1 1 2x\n", b"10 1.5\n1 1 2 3\n"]
)
def test_damage_in_a_large_file_is_found(tmp_path: Path, damage: bytes) -> None:
    """SciPy reads each of these without complaint, and wrongly."""
    lines = b"5 5 2.5\n" * 60_000
    count = 60_000 + damage.count(b"\n")
    head = f"%%MatrixMarket matrix coordinate real general\n10 10 {count}\n"
    (tmp_path / "a.mtx").write_bytes(head.encode() + lines + damage)
    if damage == b"1 1 1d3\n":
        sound: Any = read(tmp_path / "a.mtx")
        assert sound.data[-1] == 1000
        return
    with pytest.raises(ValueError, match="line 60003: "):
        read(tmp_path / "a.mtx")


def test_an_array_without_elements_is_not_handed_over(tmp_path: Path) -> None:
    # SciPy's parser divides by the number of rows.
    text = load_text("a.mtx", b"%%MatrixMarket vector array real general\n0\n" + b" \n" * 200_000)
    (tmp_path / "a.mtx").write_bytes(text.data)
    assert read(tmp_path / "a.mtx").shape == (0,)
