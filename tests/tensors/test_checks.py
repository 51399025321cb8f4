"""Damaged storage: each kind of damage is a ``ValueError`` with an exact message, never a crash."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsejit.errors import TensorTypeError
from sparsejit.formats import (
    BSR,
    COO,
    CSR,
    DCSR,
    DIA,
    ELL,
    NV24,
    Batched,
    Dense,
    Format,
    SparseVector,
)
from sparsejit.tensors import SparseTensor, from_dense
from tests.formats.strategies import formats
from tests.tensors.cases import AOS, arrays, read_storage

LOOSE = Format("(i, j) -> (i : dense, j : loose_compressed)")
AT_1 = "level 1 of ((d0, d1) -> (d0 : dense, d1 : compressed)): "
COO_TEXT = "((d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa)))"
AOS_TEXT = "((d0, d1) -> (d0 : compressed(nonunique), d1 : singleton))"
LOOSE_AT_1 = "level 1 of ((d0, d1) -> (d0 : dense, d1 : loose_compressed)): "
ELL_AT_1 = "level 1 of ((d0, d1) -> (d0 : dense, d1 : padded[2])): "
NV24_AT_2 = (
    "level 2 of ((d0, d1) -> (d0 : dense, d1 floordiv 4 : dense, d1 mod 4 : structured[2, 4])): "
)


def ints(*values: int, dtype: str = "int64") -> np.ndarray[Any, np.dtype[Any]]:
    return np.array(values, dtype)


def refusal(*arguments: Any, **more: Any) -> str:
    with pytest.raises(ValueError) as caught:
        SparseTensor(*arguments, **more)
    return str(caught.value)


def csr(positions: Any, coordinates: Any, count: int = 3, **more: Any) -> str:
    """The refusal of a 3 by 5 CSR matrix."""
    values = np.ones(count)
    return refusal(CSR, (3, 5), (None, positions), (None, coordinates), values, **more)


GOOD_POSITIONS = ints(0, 2, 2, 3)
GOOD_COORDINATES = ints(0, 4, 1)


@pytest.mark.parametrize(
    ("positions", "coordinates", "message"),
    [
        (ints(0, 2, 3), GOOD_COORDINATES, "positions[1] has shape (3,), expected (4,)"),
        (ints(0, 1, 2, 3, 3), GOOD_COORDINATES, "positions[1] has shape (5,), expected (4,)"),
        (ints(0, 2, 2, 3).reshape(2, 2), GOOD_COORDINATES,
         "positions[1] has shape (2, 2), expected (4,)"),
        (ints(1, 2, 2, 3), GOOD_COORDINATES, "positions[1][0] is 1, expected 0"),
        (ints(-1, 2, 2, 3), GOOD_COORDINATES, "positions[1][0] is -1, expected 0"),
        (ints(0, 2, 1, 3), GOOD_COORDINATES,
         "positions[1][2] is 1, less than the one before it, 2"),
        (ints(0, 2, 2, 1), GOOD_COORDINATES,
         "positions[1][3] is 1, less than the one before it, 2"),
        (ints(0, 2, 2, 4), GOOD_COORDINATES,
         "positions[1] ends at 4, but coordinates[1] has 3 elements"),
        (ints(0, 2, 2, 2), GOOD_COORDINATES,
         "positions[1] ends at 2, but coordinates[1] has 3 elements"),
        (ints(0, 2, 2, 2**63 - 1), GOOD_COORDINATES,
         "positions[1] ends at 9223372036854775807, but coordinates[1] has 3 elements"),
        (ints(0, 2, 2, 2**64 - 1, dtype="uint64"), GOOD_COORDINATES,
         "positions[1] ends at 18446744073709551615, but coordinates[1] has 3 elements"),
        (ints(0, 2**63, 1, 3, dtype="uint64"), GOOD_COORDINATES,
         "positions[1][2] is 1, less than the one before it, 9223372036854775808"),
        (ints(0, -(2**63), 2, 3), GOOD_COORDINATES,
         "positions[1][1] is -9223372036854775808, less than the one before it, 0"),
        (GOOD_POSITIONS.astype(float), GOOD_COORDINATES,
         "positions[1] has dtype float64, expected uint8 or uint16 or int32 or uint32 or int64 or "
         "uint64"),
        (GOOD_POSITIONS.astype(np.int8), GOOD_COORDINATES,
         "positions[1] has dtype int8, expected uint8 or uint16 or int32 or uint32 or int64 or "
         "uint64"),
        (GOOD_POSITIONS.astype(bool), GOOD_COORDINATES,
         "positions[1] has dtype bool, expected uint8 or uint16 or int32 or uint32 or int64 or "
         "uint64"),
        (GOOD_POSITIONS.astype(">i8"), GOOD_COORDINATES,
         "positions[1] has foreign byte order"),
        (np.repeat(GOOD_POSITIONS, 2)[::2], GOOD_COORDINATES,
         "positions[1] is not contiguous: pass np.ascontiguousarray(positions[1])"),
        (None, GOOD_COORDINATES, "positions[1] is missing"),
        (GOOD_POSITIONS, None, "coordinates[1] is missing"),
        (GOOD_POSITIONS, ints(0, 5, 1), "coordinates[1][1] is 5, outside 0 .. 4"),
        (GOOD_POSITIONS, ints(0, 4, -1), "coordinates[1][2] is -1, outside 0 .. 4"),
        (GOOD_POSITIONS, ints(0, 2**63 - 1, 1),
         "coordinates[1][1] is 9223372036854775807, outside 0 .. 4"),
        (GOOD_POSITIONS, ints(0, 2**64 - 1, 1, dtype="uint64"),
         "coordinates[1][1] is 18446744073709551615, outside 0 .. 4"),
        (GOOD_POSITIONS, ints(4, 0, 1),
         "coordinates[1][1] is 0, less than the one before it, 4: sort the entries, or declare "
         "the level nonordered"),
        (GOOD_POSITIONS, ints(4, 4, 1),
         "coordinates[1][1] stores 4 a second time below one parent: add duplicates up with "
         "from_coo, or declare the level nonunique"),
        (GOOD_POSITIONS, GOOD_COORDINATES.astype(np.float32),
         "coordinates[1] has dtype float32, expected uint8 or uint16 or int32 or uint32 or int64 "
         "or uint64"),
        (GOOD_POSITIONS, np.repeat(GOOD_COORDINATES, 2)[::2],
         "coordinates[1] is not contiguous: pass np.ascontiguousarray(coordinates[1])"),
        (GOOD_POSITIONS, GOOD_COORDINATES.reshape(3, 1),
         "coordinates[1] has shape (3, 1), expected (3,)"),
    ],
)  # fmt: skip
def test_damaged_csr(positions: Any, coordinates: Any, message: str) -> None:
    assert csr(positions, coordinates) == AT_1 + message


def test_a_tensor_that_is_sound() -> None:
    SparseTensor(CSR, (3, 5), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((CSR, (3, 5), (GOOD_POSITIONS,), (None, GOOD_COORDINATES), np.ones(3)),
         "positions has 1 elements, ((d0, d1) -> (d0 : dense, d1 : compressed)) has 2 levels"),
        ((CSR, (3, 5), GOOD_POSITIONS, (None, GOOD_COORDINATES), np.ones(3)),
         "positions must be a tuple with one element a level, not array([0, 2, 2, 3])"),
        ((CSR, (3, 5), (GOOD_POSITIONS, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "level 0 of ((d0, d1) -> (d0 : dense, d1 : compressed)): positions[0] must be None, none "
         "are stored here"),
        ((CSR, (3, 5), (None, GOOD_POSITIONS), (GOOD_COORDINATES, GOOD_COORDINATES), np.ones(3)),
         "level 0 of ((d0, d1) -> (d0 : dense, d1 : compressed)): coordinates[0] must be None, "
         "none are stored here"),
        ((CSR, (3, 5), (None, [0, 2, 2, 3]), (None, GOOD_COORDINATES), np.ones(3)),
         "positions[1] must be a NumPy array, not list"),
        ((CSR, (3, 5), (None, GOOD_POSITIONS), (None, np.ma.array([0, 4, 1])), np.ones(3)),
         "coordinates[1] must be a NumPy array, not MaskedArray"),
        ((CSR, (3, 5), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), [1.0, 2.0, 3.0]),
         "values must be a NumPy array, not list"),
        ((CSR, (3, 5), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(4)),
         "values has 4 elements, ((d0, d1) -> (d0 : dense, d1 : compressed)) needs 3"),
        ((CSR, (3, 5), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(6)[::2]),
         "values is not contiguous: pass np.ascontiguousarray(values)"),
        (("csr", (3, 5), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "format must be a Format, not 'csr'"),
        ((CSR, (3,), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "shape (3,) has 1 dimensions, ((d0, d1) -> (d0 : dense, d1 : compressed)) has 2"),
        ((CSR, (3, -5), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "shape[1] is -5, outside 0 .. 9223372036854775807"),
        ((CSR, (3, 2**63), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "shape[1] is 9223372036854775808, outside 0 .. 9223372036854775807"),
        ((CSR, (3, 5.0), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "shape must be a tuple of integers, not (3, 5.0)"),
        ((CSR, 3, (None, GOOD_POSITIONS), (None, GOOD_COORDINATES), np.ones(3)),
         "shape must be a tuple of integers, not 3"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    assert refusal(*arguments) == message


@pytest.mark.parametrize(
    ("fmt", "positions", "coordinates", "message"),
    [
        (COO(2), (ints(0, 2), None), (ints(0, 0), ints(1)),
         f"level 1 of {COO_TEXT}: coordinates[1] has shape (1,), expected (2,)"),
        (COO(2), (ints(0, 2), None), (ints(0, 0), None),
         f"level 1 of {COO_TEXT}: coordinates[1] is missing"),
        (COO(2), (ints(0, 2), None), (ints(1, 0), ints(1, 1)),
         f"level 0 of {COO_TEXT}: coordinates[0][1] is 0, less than the one before it, 1: sort the "
         "entries, or declare the level nonordered"),
        (COO(2), (ints(0, 2), None), (ints(1, 1), ints(4, 3)),
         f"level 1 of {COO_TEXT}: coordinates[1][1] is 3, less than the one before it, 4: sort the "
         "entries, or declare the level nonordered"),
        (COO(2), (ints(0, 2), None), (ints(1, 1), ints(4, 4)),
         f"level 0 of {COO_TEXT}: coordinates[0][1] stores (1, 4) a second time below one parent: "
         "add duplicates up with from_coo, or declare the level nonunique"),
        (COO(2), (ints(0, 2), None), (ints(1, 3), ints(4, 4)),
         f"level 0 of {COO_TEXT}: coordinates[0][1] is 3, outside 0 .. 2"),
        (COO(2), (ints(0, 2), None), (ints(1, 2), ints(5, 4)),
         f"level 1 of {COO_TEXT}: coordinates[1][0] is 5, outside 0 .. 4"),
        (AOS, (ints(0, 2), None), (ints(0, 0, 1, 5).reshape(2, 2), None),
         f"level 1 of {AOS_TEXT}: coordinates[0][1, 1] is 5, outside 0 .. 4"),
        (AOS, (ints(0, 2), None), (ints(0, 0, 1, 4), None),
         f"level 0 of {AOS_TEXT}: positions[0] ends at 2, but coordinates[0] has 4 elements"),
        (AOS, (ints(0, 2), None), (ints(0, 0, 0, 1, 4, 0).reshape(2, 3), None),
         f"level 0 of {AOS_TEXT}: coordinates[0] has shape (2, 3), expected (2, 2)"),
        (AOS, (ints(0, 2), None), (ints(0, 0, 0, 0).reshape(2, 2), ints(0, 0)),
         f"level 1 of {AOS_TEXT}: coordinates[1] must be None, none are stored here"),
        (AOS, (ints(0, 2), None), (ints(0, 1, 0, 0).reshape(2, 2), None),
         f"level 1 of {AOS_TEXT}: coordinates[0][1, 1] is 0, less than the one before it, 1: sort "
         "the entries, or declare the level nonordered"),
        (LOOSE, (None, ints(0, 1, 1, 2, 2, 3)), (None, ints(0, 1, 2)),
         f"{LOOSE_AT_1}positions[1] has shape (6,), expected (3, 2)"),
        (LOOSE, (None, ints(0, 1, 1, 2, 2, 4).reshape(3, 2)), (None, ints(0, 1, 2)),
         f"{LOOSE_AT_1}positions[1][2, 1] is 4, but coordinates[1] has 3 elements"),
        (LOOSE, (None, ints(0, 1, 2, 1, 2, 3).reshape(3, 2)), (None, ints(0, 1, 2)),
         f"{LOOSE_AT_1}positions[1][1] is (2, 1): it starts behind its end"),
        (LOOSE, (None, ints(-1, 1, 1, 2, 2, 3).reshape(3, 2)), (None, ints(0, 1, 2)),
         f"{LOOSE_AT_1}positions[1][0, 0] is -1"),
        (LOOSE, (None, ints(0, 2, 2, 2, 1, 3).reshape(3, 2)), (None, ints(0, 1, 2)),
         f"{LOOSE_AT_1}the segments of parents 0 and 2 in positions[1] overlap"),
        (ELL(2), (None, None), (None, ints(0, 1, 1, -1, -1)),
         f"{ELL_AT_1}coordinates[1] has shape (5,), expected (6,)"),
        (ELL(2), (None, None), (None, ints(0, 1, -1, 3, -1, -1)),
         f"{ELL_AT_1}coordinates[1][2] is -1: unused slots come last in their parent"),
        (ELL(2), (None, None), (None, ints(0, 1, 3, 5, -1, -1)),
         f"{ELL_AT_1}coordinates[1][3] is 5, outside -1 .. 4"),
        (ELL(2), (None, None), (None, ints(0, 1, 3, -1, -2, -1)),
         f"{ELL_AT_1}coordinates[1][4] is -2, outside -1 .. 4"),
        (ELL(2), (None, None), (None, ints(1, 0, 3, -1, -1, -1)),
         f"{ELL_AT_1}coordinates[1][1] is 0, less than the one before it, 1: sort the entries, or "
         "declare the level nonordered"),
        (ELL(2), (None, None), (None, ints(1, 1, 3, 1, 1, 1, dtype="uint32")),
         f"{ELL_AT_1}coordinates[1] has dtype uint32, expected int8 or int16 or int32 or int64"),
        (NV24, (None,) * 3, (None, None, ints(*[0, 1] * 5, 2, 4)),
         f"{NV24_AT_2}coordinates[2][11] is 4, outside 0 .. 3"),
        (NV24, (None,) * 3, (None, None, ints(*[0, 1] * 5, 2, 2)),
         f"{NV24_AT_2}coordinates[2][11] stores 2 a second time below one parent: add duplicates "
         "up with from_coo, or declare the level nonunique"),
        (NV24, (None,) * 3, (None, None, ints(*[0, 1] * 5)),
         f"{NV24_AT_2}coordinates[2] has shape (10,), expected (12,)"),
        (DIA, (ints(0, 1), None), (ints(5), None),
         "level 0 of ((d0, d1) -> (d1 - d0 : compressed, d1 : range)): coordinates[0][0] is 5, "
         "outside -2 .. 4"),
        (DIA, (ints(0, 1), None), (ints(-3), None),
         "level 0 of ((d0, d1) -> (d1 - d0 : compressed, d1 : range)): coordinates[0][0] is -3, "
         "outside -2 .. 4"),
        (BSR(2, 2), (None, ints(0, 1, 1), None, None), (None, ints(3), None, None),
         "level 1 of ((d0, d1) -> (d0 floordiv 2 : dense, d1 floordiv 2 : compressed, d0 mod 2 : "
         "dense, d1 mod 2 : dense)): coordinates[1][0] is 3, outside 0 .. 2"),
        (DCSR, (ints(0, 1), ints(0, 2)), (ints(0), ints(1, 5)),
         "level 1 of ((d0, d1) -> (d0 : compressed, d1 : compressed)): coordinates[1][1] is 5, "
         "outside 0 .. 4"),
        (CSR.with_widths(32, 0), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES),
         AT_1 + "positions[1] has dtype int64, expected int32 or uint32"),
        (CSR.with_widths(0, 8), (None, GOOD_POSITIONS), (None, GOOD_COORDINATES),
         AT_1 + "coordinates[1] has dtype int64, expected uint8"),
    ],
)  # fmt: skip
def test_damaged_levels(fmt: Format, positions: Any, coordinates: Any, message: str) -> None:
    assert refusal(fmt, (3, 5), positions, coordinates, np.ones(1)) == message


def test_damage_in_a_batch_is_named_with_its_batch() -> None:
    fmt = Batched(SparseVector)
    where = "level 1 of ((d0, d1) -> (d0 : batch, d1 : compressed)): "
    good = ints(0, 2, 0, 1).reshape(2, 2)
    coordinates = ints(0, 1, 2, 0).reshape(2, 2)

    def refused(positions: Any, coords: Any) -> str:
        return refusal(fmt, (2, 3), (None, positions), (None, coords), np.ones((2, 2)))

    assert (
        refused(good[:1], coordinates) == where + "positions[1] has shape (1, 2), expected (2, 2)"
    )
    bad = ints(0, 2, 1, 1).reshape(2, 2)
    assert refused(bad, coordinates) == where + "positions[1][1, 0] is 1, expected 0"
    bad = ints(0, 2, 0, -1).reshape(2, 2)
    assert refused(bad, coordinates) == (
        where + "positions[1][1, 1] is -1, less than the one before it, 0"
    )
    bad = ints(0, 1, 3, 0).reshape(2, 2)
    assert refused(good, bad) == where + "coordinates[1][1, 0] is 3, outside 0 .. 2"
    bad = ints(0, 3, 0, 1).reshape(2, 2)
    assert refused(bad, coordinates) == (
        where + "positions[1] ends at 3, but coordinates[1] has 2 elements"
    )
    # What no position points at is no entry, whatever it says.
    unused = ints(0, 1, 2, 99).reshape(2, 2)
    tensor = SparseTensor(fmt, (2, 3), (None, good), (None, unused), np.ones((2, 2)))
    assert tensor.to_numpy().tolist() == [[1, 1, 0], [0, 0, 1]]


def test_nonunique_and_nonordered_accept_what_they_say() -> None:
    text = "(i, j) -> (i : dense, j : compressed({}))"
    positions = (None, ints(0, 3))

    def make(flags: str, *coordinates: int) -> SparseTensor:
        crd = (None, ints(*coordinates))
        return SparseTensor(Format(text.format(flags)), (1, 5), positions, crd, np.ones(3))

    assert make("nonunique", 1, 1, 4).to_numpy().tolist() == [[0, 2, 0, 0, 1]]
    assert make("nonordered", 4, 1, 3).to_numpy().tolist() == [[0, 1, 0, 1, 1]]
    assert make("nonunique, nonordered", 4, 1, 4).to_numpy().tolist() == [[0, 1, 0, 0, 2]]
    with pytest.raises(ValueError, match=r"coordinates\[1\]\[1\] is 1, less than"):
        make("nonunique", 4, 1, 4)
    with pytest.raises(ValueError, match=r"coordinates\[1\]\[2\] stores 4 a second time"):
        make("nonordered", 4, 1, 4)


@pytest.mark.parametrize(
    ("fill", "dtype", "message"),
    [
        (0.5, "int32", "fill_value 0.5 does not fit dtype int32"),
        (np.nan, "int32", "fill_value nan does not fit dtype int32"),
        (np.inf, "uint8", "fill_value inf does not fit dtype uint8"),
        (300, "uint8", "fill_value 300 does not fit dtype uint8"),
        (-1, "uint64", "fill_value -1 does not fit dtype uint64"),
        (2**64, "uint64", "fill_value 18446744073709551616 does not fit dtype uint64"),
        (2, "bool", "fill_value 2 does not fit dtype bool"),
        (1j, "float64", "fill_value 1j does not fit dtype float64"),
        (1e30, "float16", "fill_value 1e+30 does not fit dtype float16"),
    ],
)
def test_fill_values_that_do_not_fit(fill: Any, dtype: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_dense(np.zeros(3, dtype), SparseVector, fill)
    assert str(caught.value) == message


@pytest.mark.parametrize("dtype", ["longdouble", "datetime64[s]", "S3", "O", "clongdouble"])
def test_value_types_that_are_not_supported(dtype: str) -> None:
    with pytest.raises(TensorTypeError, match="which is not supported"):
        SparseTensor(Dense(1), (3,), (None,), (None,), np.zeros(3, dtype))


def test_foreign_byte_order_of_values() -> None:
    with pytest.raises(TensorTypeError, match="of foreign byte order"):
        SparseTensor(Dense(1), (3,), (None,), (None,), np.zeros(3, ">f8"))


WILD = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 255, 2**31, 2**32 - 1, 2**63 - 1]


@settings(max_examples=150)
@given(st.data())
def test_random_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """One index overwritten: either refused, or a sound tensor that both readers read alike."""
    fmt = data.draw(formats())
    array = data.draw(arrays(fmt.ndim, np.dtype(np.int64)))
    try:
        tensor = from_dense(array, fmt)
    except ValueError:
        return
    positions = [None if p is None else p.copy() for p in tensor.positions]
    coordinates = [None if c is None else c.copy() for c in tensor.coordinates]
    buffers = [buffer for buffer in (*positions, *coordinates) if buffer is not None]
    if not buffers:
        return
    buffer = data.draw(st.sampled_from(buffers))
    if buffer.size:
        wild = data.draw(st.sampled_from(WILD))
        place = data.draw(st.integers(0, buffer.size - 1))
        buffer.reshape(-1)[place] = np.array(wild).astype(buffer.dtype)
    try:
        damaged = SparseTensor(fmt, array.shape, positions, coordinates, tensor.values)
    except ValueError as error:
        assert f"({fmt})" in str(error)  # noqa: PT017 - the tensor may also be sound
        return
    read = np.zeros(array.shape, array.dtype)
    for at, value in read_storage(damaged):
        read[at] += value
    np.testing.assert_array_equal(damaged.to_numpy(), read)


@settings(max_examples=300)
@given(
    st.lists(st.lists(st.integers(-1, 5), max_size=4), min_size=1, max_size=5),
    st.sampled_from(["int32", "uint32", "int64"]),
)
def test_rows_are_sound_where_each_rises_inside_the_shape(rows: list[list[int]], kind: str) -> None:
    if kind == "uint32":
        rows = [[max(column, 0) for column in row] for row in rows]
    positions = np.cumsum([0, *map(len, rows)]).astype(kind)
    coordinates = np.array([column for row in rows for column in row], kind)
    rises = all(row == sorted(set(row)) for row in rows)
    is_inside = all(0 <= column < 5 for row in rows for column in row)
    arguments = (
        CSR,
        (len(rows), 5),
        (None, positions),
        (None, coordinates),
        np.ones(positions[-1]),
    )
    if rises and is_inside:
        assert SparseTensor(*arguments).nse == positions[-1]
    else:
        assert ("outside 0 .. 4" in refusal(*arguments)) == (not is_inside)
