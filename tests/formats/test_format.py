"""``Format`` as data: round trips, inverse maps, sizes, pickling, hashing."""

import pickle
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsejit.affine import evaluate
from sparsejit.formats import BSR, COO, CSF, CSR, DIA, NV24, Batched, Dense, Format
from tests.formats.strategies import formats


@given(formats())
def test_text_and_repr_come_back(fmt: Format) -> None:
    again = Format(str(fmt), fmt.pos_width, fmt.crd_width)
    assert again == fmt
    assert eval(repr(fmt), {"Format": Format}) == fmt
    assert hash(again) == hash(fmt)
    assert pickle.loads(pickle.dumps(fmt)) == fmt


@given(formats(), formats())
def test_equal_texts_are_equal_formats(one: Format, other: Format) -> None:
    assert (one == other) == (repr(one) == repr(other))


@given(formats(), st.data())
def test_levels_determine_dimensions(fmt: Format, data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * fmt.ndim))
    sizes, starts = fmt.level_sizes(shape), fmt.level_starts(shape)
    for coords in product(*map(range, shape)):
        levels = [evaluate(expr, coords) for expr in fmt.dim_to_lvl.results]
        for coordinate, size, start in zip(levels, sizes, starts, strict=True):
            assert start <= coordinate < start + size
        assert tuple(evaluate(expr, levels) for expr in fmt.lvl_to_dim.results) == coords


def test_hash_is_not_pickled() -> None:
    """Hashes of strings, and so of formats, differ from process to process."""
    made = "import pickle,sys; from sparsejit.formats import CSR; hash(CSR); "
    written = subprocess.run(
        [sys.executable, "-c", made + "sys.stdout.buffer.write(pickle.dumps(CSR))"],
        capture_output=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    )
    read = pickle.loads(written.stdout)
    assert read == CSR
    assert hash(read) == hash(CSR)
    assert {CSR: 1}[read] == 1


@pytest.mark.parametrize(
    ("fmt", "shape", "sizes"),
    [
        (CSR, (3, 4), (3, 4)),
        (BSR(2, 3), (5, 7), (3, 3, 2, 3)),
        (BSR(2, 3), (0, 7), (0, 3, 2, 3)),
        (BSR(1, 3), (2, 3), (2, 1, 1, 3)),
        (DIA, (3, 5), (7, 5)),
        (DIA, (0, 5), (0, 5)),
        (DIA, (1, 1), (1, 1)),
        (NV24, (2, 5), (2, 2, 4)),
        (Dense(0), (), ()),
    ],
)
def test_level_sizes(fmt: Format, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    assert fmt.level_sizes(shape) == sizes


def test_facts_about_formats() -> None:
    assert [COO(3).coo_start, CSF(3).coo_start, CSR.coo_start] == [0, None, None]
    assert not COO(2).is_aos
    assert Format("(i, j) -> (i : compressed(nonunique), j : singleton)").is_aos
    assert Dense(2).is_all_full
    assert Batched(Dense(1)).is_all_full
    assert not Batched(Dense(1)).is_dense
    assert not Format("(i, j) -> (j : dense, i : dense)").is_dense
    assert COO(2).is_unique
    assert not Format("(i) -> (i : compressed(nonunique))").is_unique
    assert not Format("(i, j) -> (i : compressed(nonunique), j : dense)").is_unique
    assert not Format("(i) -> (i : compressed(nonordered))").is_ordered
