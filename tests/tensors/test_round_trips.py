"""Dense arrays through storage of every format and back, against a slow reader of storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsejit.formats import NV24, Batched, Format, LevelKind
from sparsejit.tensors import VALUE_TYPES, SparseTensor, from_coo, from_dense, prune
from tests.formats.strategies import formats
from tests.tensors.cases import (
    MATRIX_FORMATS,
    SHAPES,
    TENSOR_FORMATS,
    Array,
    arrays,
    read_storage,
)


def assert_stores(tensor: SparseTensor, array: Array) -> None:
    """The storage says what ``array`` says, both to the package and to the slow reader."""
    assert tensor.shape == array.shape
    assert tensor.dtype == array.dtype
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    read = np.full(array.shape, tensor.fill_value, array.dtype)
    entries = read_storage(tensor)
    for coords, value in entries:
        read[coords] = value
    np.testing.assert_array_equal(read, array)
    assert tensor.nse == tensor.nnz == len(entries)
    assert len({coords for coords, _ in entries}) == len(entries)
    checked = SparseTensor(
        tensor.format,
        tensor.shape,
        tensor.positions,
        tensor.coordinates,
        tensor.values,
        tensor.fill_value,
    )
    assert checked.nse == tensor.nse


def random_array(shape: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(len(shape) + sum(shape))
    return (rng.integers(1, 9, shape) * (rng.random(shape) < 0.4)).astype(np.float64)


EXAMPLES = 200
ALL_FORMATS: list[Format] = [*MATRIX_FORMATS, *TENSOR_FORMATS]


@pytest.mark.parametrize("fmt", ALL_FORMATS, ids=str)
def test_every_format_and_shape(fmt: Format) -> None:
    for shape in SHAPES[fmt.ndim]:
        array = random_array(shape)
        assert_stores(from_dense(array, fmt), array)


@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=str)
def test_every_format_and_dtype(dtype: np.dtype[Any]) -> None:
    for fmt in ALL_FORMATS:
        array = random_array(SHAPES[fmt.ndim][0]).astype(dtype)
        assert_stores(from_dense(array, fmt), array)


@contextmanager
def lack_of_slots(fmt: Format) -> Iterator[None]:
    """Accept that a structured or padded level may have too few slots; nothing else."""
    kinds = (LevelKind.STRUCTURED, LevelKind.PADDED)
    try:
        yield
    except ValueError as error:
        may_lack = any(level.type.kind in kinds for level in fmt.levels)
        if not may_lack or "has no slot for entry" not in str(error):
            raise


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_random_formats(data: st.DataObject) -> None:
    fmt = data.draw(formats())
    array = data.draw(arrays(fmt.ndim))
    with lack_of_slots(fmt):
        assert_stores(from_dense(array, fmt), array)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_random_entries(data: st.DataObject) -> None:
    """Entries in any order, with duplicates and zeros: kept, sorted, added up."""
    fmt = data.draw(formats())
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * fmt.ndim))
    coords = data.draw(st.lists(st.tuples(*[st.integers(0, n - 1) for n in shape]), max_size=12))
    values = np.arange(len(coords), dtype=np.int64) - 2
    columns = np.array(coords, np.int64).reshape(len(coords), fmt.ndim).T
    expected = np.zeros(shape, np.int64)
    for at, value in zip(coords, values, strict=True):
        expected[at] += value
    with lack_of_slots(fmt):
        tensor = from_coo(columns, values, shape, fmt)
        assert_stores(tensor, expected)
        assert {c for c, _ in read_storage(tensor)} >= set(coords)


@pytest.mark.parametrize("shape", [(3, 8), (3, 5), (0, 4), (4, 0), (1, 1), (2, 3)])
def test_structured(shape: tuple[int, int]) -> None:
    array = random_array(shape)
    kept = prune(array, NV24)
    assert_stores(kept, kept.to_numpy())
    assert len(kept.values) == shape[0] * -(-shape[1] // 4) * 2
    stacked = prune(np.stack([array, 2 * array]), Batched(NV24))
    np.testing.assert_array_equal(stacked.to_numpy(), [kept.to_numpy(), 2 * kept.to_numpy()])
    assert_stores(stacked, stacked.to_numpy())


@pytest.mark.parametrize("fill", [np.nan, np.inf, -1.0, 7.0])
@pytest.mark.parametrize("fmt", MATRIX_FORMATS, ids=str)
def test_fill_values(fmt: Format, fill: float) -> None:
    array = random_array((5, 7))
    array[array == 0] = fill
    array[0, :3] = 0.0
    tensor = from_dense(array, fmt, fill)
    assert_stores(tensor, array)
    np.testing.assert_array_equal(tensor.fill_value, fill)
    owned = {slot for _, slot in read_with_slots(tensor)}
    free = [value for slot, value in enumerate(tensor.values) if slot not in owned]
    np.testing.assert_array_equal(free, np.full(len(free), fill))


def read_with_slots(tensor: SparseTensor) -> list[tuple[tuple[int, ...], int]]:
    numbered = SparseTensor(
        tensor.format,
        tensor.shape,
        tensor.positions,
        tensor.coordinates,
        np.arange(len(tensor.values)),
    )
    return [(coords, int(slot)) for coords, slot in read_storage(numbered)]
