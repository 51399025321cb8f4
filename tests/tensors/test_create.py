"""The constructors and ``convert``: what they make, what they refuse."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsejit.convert import converted_by_kernel
from sparsejit.errors import TensorTypeError
from sparsejit.formats import (
    BSR,
    COO,
    CSC,
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
from sparsejit.tensors import (
    VALUE_TYPES,
    SparseTensor,
    asarray,
    from_coo,
    from_dense,
    prune,
)
from sparsejit.tensors._convert import converted
from tests.formats.strategies import formats
from tests.tensors.cases import MATRIX_FORMATS, read_storage
from tests.tensors.test_round_trips import assert_stores, lack_of_slots

sp: Any = scipy.sparse


def convert_in_numpy(tensor: SparseTensor, fmt: Format) -> SparseTensor:
    structure, values = converted(tensor.structure, tensor.values, tensor.fill_value, fmt)
    return SparseTensor(
        fmt, tensor.shape, structure.positions, structure.coordinates, values, tensor.fill_value
    )


def convert_by_kernel(tensor: SparseTensor, fmt: Format) -> SparseTensor:
    return tensor if fmt == tensor.format else converted_by_kernel(tensor, fmt)


CONVERSIONS = [convert_in_numpy, convert_by_kernel, SparseTensor.convert]


# ---- from_coo


def test_from_coo_in_its_default_format() -> None:
    tensor = from_coo(([2, 0, 2], [1, 3, 1]), [1.0, 2.0, 3.0], (3, 4))
    assert tensor.format == COO(2)
    assert [None if c is None else c.tolist() for c in tensor.coordinates] == [[0, 2], [3, 1]]
    assert tensor.values.tolist() == [2.0, 4.0]
    assert from_coo(np.array([[2, 0], [1, 3]]), [1, 2], (3, 4)).nse == 2


def test_from_coo_keeps_zeros_and_cancelled_sums() -> None:
    tensor = from_coo(([0, 1, 1], [0, 1, 1]), [0.0, 2.0, -2.0], (2, 2), CSR)
    assert tensor.nse == 2
    assert tensor.values.tolist() == [0.0, 0.0]


def test_from_coo_of_rank_zero() -> None:
    assert from_coo((), [1, 2, 3], ()).to_numpy().tolist() == 6
    assert from_coo((), np.zeros(0), ()).to_numpy().tolist() == 0


def test_from_coo_does_not_share_the_callers_arrays() -> None:
    rows, values = np.array([0, 1]), np.array([1.0, 2.0])
    tensor = from_coo((rows,), values, (2,))
    rows[0], values[0] = 1, 9
    assert tensor.to_numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=str)
def test_from_coo_adds_in_the_values_type(dtype: np.dtype[Any]) -> None:
    tensor = from_coo(([0, 0, 1],), np.array([1, 1, 1]).astype(dtype), (2,))
    assert tensor.dtype == dtype
    assert tensor.to_numpy().tolist() == np.array([2, 1]).astype(dtype).tolist()


def test_sixteen_bit_duplicates_add_up_in_32_bits() -> None:
    for name in ("float16", "bfloat16"):
        dtype = next(t for t in VALUE_TYPES if t.name == name)
        values = np.array([2048.0] + [1.0] * 64).astype(dtype)
        total = from_coo((np.zeros(65, np.int64),), values, (1,)).to_numpy()
        assert float(total[0]) == 2112.0


@pytest.mark.parametrize(
    ("coords", "values", "shape", "message"),
    [
        (([0, 3], [0, 0]), [1, 2], (3, 2), "coords[0][1] is 3, outside 0 .. 2 of dimension 0"),
        (([0, 0], [0, -1]), [1, 2], (3, 2), "coords[1][1] is -1, outside 0 .. 1 of dimension 1"),
        ((np.array([0, 2**64 - 1], np.uint64),), [1, 2], (3,),
         "coords[0][1] is 18446744073709551615, outside 0 .. 2 of dimension 0"),
        (([0.0, 1.0],), [1, 2], (3,), "coords[0] has dtype float64; coordinates are integers"),
        (([0],), [1, 2], (3,), "coords[0] has shape (1,), values has 2 elements"),
        (([0, 1],), [1, 2], (3, 3), "coords has 1 arrays for 2 dimensions"),
        (7, [1], (3,), "coords must be one array per dimension, not 7"),
        (([0],), [[1]], (3,), "values must be one-dimensional, not of shape (1, 1)"),
        (([0],), [1], (-3,), "shape[0] is -3, outside 0 .. 9223372036854775807"),
    ],
)  # fmt: skip
def test_from_coo_refuses(coords: Any, values: Any, shape: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_coo(coords, values, shape)
    assert str(caught.value) == message


def test_huge_extents() -> None:
    shape = (2**62, 2**62, 2**62)
    at = ([5, 2**62 - 1, 5], [2**61, 0, 2**61], [1, 2, 1])
    tensor = from_coo(at, [1.0, 2.0, 3.0], shape)
    assert tensor.coordinates[0] is not None
    assert tensor.coordinates[0].tolist() == [5, 2**62 - 1]
    assert tensor.coordinates[0].dtype == np.int64
    assert tensor.values.tolist() == [4.0, 2.0]
    with pytest.raises(ValueError, match="too many to store"):
        from_coo(at, [1.0, 2.0, 3.0], shape, Dense(3))


@pytest.mark.parametrize(
    ("shape", "fmt", "dtypes"),
    [
        ((3, 4), CSR, ("int32", "int32")),
        ((3, 2**31 - 1), CSR, ("int32", "int32")),
        ((3, 2**31), CSR, ("int64", "int64")),
        ((3, 4), CSR.with_widths(64, 8), ("int64", "uint8")),
        ((3, 4), CSR.with_widths(16, 0), ("uint16", "int32")),
        ((3, 2**31), CSR.with_widths(32, 32), ("int32", "int32")),
    ],
)
def test_index_widths(shape: tuple[int, int], fmt: Format, dtypes: tuple[str, str]) -> None:
    tensor = from_coo(([0, 1], [1, 0]), [1.0, 2.0], shape, fmt)
    positions, coordinates = tensor.positions[1], tensor.coordinates[1]
    assert positions is not None
    assert coordinates is not None
    assert (positions.dtype.name, coordinates.dtype.name) == dtypes


def test_widths_that_are_too_small() -> None:
    with pytest.raises(ValueError, match="crd_width=8 is too small for 256"):
        from_coo(([0], [256]), [1.0], (1, 300), CSR.with_widths(0, 8))
    many = np.arange(300)
    with pytest.raises(ValueError, match="pos_width=8 is too small for 300"):
        from_coo((many * 0, many), many, (1, 300), CSR.with_widths(8, 0))
    with pytest.raises(ValueError, match="crd_width=8 is too small for -200"):
        from_coo(([200], [0]), [1.0], (201, 1), DIA.with_widths(0, 8))


# ---- from_dense


def test_from_dense_drops_what_equals_the_fill() -> None:
    array = np.array([0.0, -0.0, np.nan, 1.0])
    assert from_dense(array, SparseVector).nse == 2
    assert from_dense(array, SparseVector, np.nan).nse == 3
    both = np.array([complex(np.nan, 1), complex(0, np.nan), 0j])
    assert from_dense(both, SparseVector, complex(np.nan, 1)).nse == 2
    assert from_dense(both, SparseVector).nse == 2


def test_from_dense_that_does_not_fit() -> None:
    with pytest.raises(ValueError) as caught:
        from_dense(np.array([[0, 1, 1, 1]]), NV24)
    assert str(caught.value) == (
        f"level 2 of ({NV24}): structured[2, 4] has no slot for entry 3 below one parent, at "
        "level coordinates (0, 0, 3)"
    )
    with pytest.raises(ValueError) as caught:
        from_dense(np.array([[0, 1, 1, 1], [1, 1, 1, 1]]), ELL(3))
    assert str(caught.value) == (
        "level 1 of ((d0, d1) -> (d0 : dense, d1 : padded[3])): padded[3] has no slot for entry 4 "
        "below one parent, at level coordinates (1, 3)"
    )
    with pytest.raises(TensorTypeError, match="has 2 dimensions, the array 1"):
        from_dense(np.ones(3), CSR)


def test_dense_formats_share_the_array() -> None:
    array = np.arange(6.0).reshape(2, 3)
    tensor = from_dense(array, Dense(2))
    assert np.shares_memory(tensor.values, array)
    assert np.shares_memory(tensor.to_numpy(), array)
    turned = from_dense(array, Format("(i, j) -> (j : dense, i : dense)"))
    assert turned.values.tolist() == [0, 3, 1, 4, 2, 5]
    assert np.shares_memory(turned.to_numpy(), turned.values)


# ---- asarray


def test_asarray_of_dense_objects() -> None:
    array = np.eye(3)
    assert asarray(array) is array
    assert asarray([[1, 2]]).tolist() == [[1, 2]]
    assert asarray(array, CSR).nse == 3
    assert asarray(array, CSR, fill_value=1).nse == 6
    filled = asarray(array, fill_value=5)
    assert (filled.format, filled.fill_value) == (Dense(2), 5.0)


def test_asarray_of_sparse_objects() -> None:
    made = sp.csr_array(np.eye(3))
    tensor = asarray(made)
    assert isinstance(tensor, SparseTensor)
    assert tensor.format == CSR
    assert np.shares_memory(tensor.values, made.data)
    assert asarray(tensor) is tensor
    assert asarray(made, CSC).format == CSC
    relabelled = asarray(made, fill_value=np.inf)
    assert relabelled.nse == 3
    assert relabelled.to_numpy().tolist() == np.where(np.eye(3) == 1, 1, np.inf).tolist()
    assert np.shares_memory(relabelled.values, made.data)
    assert tensor.fill_value == 0


def test_asarray_of_what_is_no_tensor() -> None:
    for thing in ("text", None, {1: 2}, object()):
        with pytest.raises(TensorTypeError, match="is no tensor"):
            asarray(thing)


# ---- prune


@pytest.mark.parametrize("dtype", [t for t in VALUE_TYPES if t.kind not in "bu"], ids=str)
def test_prune_keeps_the_largest(dtype: np.dtype[Any]) -> None:
    array = np.array([[1, -4, 3, 2, 9, -9, 9, 0], [0, 0, 5, 0, -1, 0, 0, 0]]).astype(dtype)
    expected = np.array([[0, -4, 3, 0, 9, -9, 0, 0], [0, 0, 5, 0, -1, 0, 0, 0]]).astype(dtype)
    tensor = prune(array, NV24)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.to_numpy(), expected)


def test_prune_of_extremes() -> None:
    assert prune(np.array([[-128, 127, 1, 2]], np.int8), NV24).to_numpy().tolist() == [
        [-128, 127, 0, 0]
    ]
    assert prune(np.array([[250, 251, 252, 253]], np.uint8), NV24).to_numpy().tolist() == [
        [0, 0, 252, 253]
    ]
    kept = prune(np.array([[np.nan, 1, np.inf, 2]]), NV24).to_numpy()
    np.testing.assert_array_equal(kept, [[np.nan, 0, np.inf, 0]])
    assert prune(sp.csr_array([[1.0, 2, 3, 0, 5]]), NV24).to_numpy().tolist() == [[0, 2, 3, 0, 5]]
    assert prune(np.array([[True] * 4]), NV24).to_numpy().tolist() == [[True, True, False, False]]


def test_prune_along_other_dimensions() -> None:
    columns = Format("(i, j) -> (j : dense, i floordiv 3 : dense, i mod 3 : structured[1, 3])")
    array = np.array([[1, 9], [2, 8], [3, 7], [4, 6]])
    assert prune(array, columns).to_numpy().tolist() == [[0, 9], [0, 0], [3, 0], [4, 6]]


def test_prune_refuses() -> None:
    with pytest.raises(ValueError, match="prune needs a format with one structured level"):
        prune(np.eye(4), CSR)
    with pytest.raises(TensorTypeError, match="prune needs fill value 0, not 1"):
        prune(asarray(sp.csr_array(np.eye(4)), fill_value=1.0), NV24)
    with pytest.raises(TensorTypeError, match="has 2 dimensions, the array 1"):
        prune(np.ones(4), NV24)


# ---- convert


@settings(max_examples=150)
@given(st.data())
def test_random_conversions(data: st.DataObject) -> None:
    source = data.draw(formats())
    target = data.draw(formats(source.ndim))
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * source.ndim))
    coords = data.draw(st.lists(st.tuples(*[st.integers(0, n - 1) for n in shape]), max_size=12))
    columns = np.array(coords, np.int64).reshape(len(coords), source.ndim).T
    with lack_of_slots(source):
        tensor = from_coo(columns, np.arange(1, len(coords) + 1), shape, source)
        with lack_of_slots(target):
            assert_stores(convert_in_numpy(tensor, target), tensor.to_numpy())


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_conversion_to_the_same_format_is_free(convert: Any) -> None:
    tensor = from_dense(np.eye(3), CSR)
    assert tensor.convert(CSR) is tensor
    assert tensor.convert(Format("(a, b) -> (a : dense, b : compressed)")) is tensor


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("target", [CSC, COO(2), DCSR, ELL(3), BSR(2, 2)], ids=str)
def test_stored_zeros_stay(convert: Any, target: Format) -> None:
    tensor = from_coo(([0, 2], [1, 2]), [0.0, 5.0], (3, 3), CSR)
    stored = {coords for coords, _ in read_storage(convert(tensor, target))}
    assert stored >= {(0, 1), (2, 2)}
    if target != BSR(2, 2):
        assert len(stored) == 2


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("source", [BSR(2, 2), DIA, Dense(2)], ids=str)
def test_zeros_that_fill_dense_levels_are_dropped(convert: Any, source: Format) -> None:
    array = np.array([[0, 2.0, 0], [0, 3, 0], [0, 0, 0]])
    tensor = from_dense(array, source)
    assert tensor.nse > 2
    assert convert(tensor, CSR).nse == 2
    assert convert(tensor, Dense(2)).to_numpy().tolist() == array.tolist()


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_zeros_stay_where_the_new_level_is_dense_too(convert: Any) -> None:
    rows = Format("(i, j) -> (i : compressed, j : dense)")
    tensor = from_coo(([1], [0]), [0.0], (3, 2), rows)
    moved = convert(tensor, Format("(i, j) -> (i : loose_compressed, j : dense)"))
    assert moved.nse == 2


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_conversion_of_fill_values(convert: Any) -> None:
    array = np.array([[np.inf, 0, np.inf], [1, np.inf, np.inf]])
    tensor = from_dense(array, BSR(2, 2), np.inf)
    for target in (CSR, COO(2), Dense(2)):
        moved = convert(tensor, target)
        assert moved.fill_value == np.inf
        assert_stores(moved, array)
    assert convert(tensor, CSR).nse == 2


def test_conversion_refuses() -> None:
    tensor = from_dense(np.ones((2, 4)), CSR)
    with pytest.raises(ValueError, match=r"format must be a Format, not 'csc'"):
        tensor.convert("csc")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match="has 3 dimensions, the tensor 2"):
        tensor.convert(COO(3))
    with pytest.raises(ValueError, match="has no slot for entry 3"):
        tensor.convert(NV24)


# ---- the object


def test_facts_of_a_tensor() -> None:
    tensor = from_dense(np.eye(3, 4, dtype=np.float32), CSR, 0)
    assert (tensor.shape, tensor.ndim, tensor.nse, tensor.nnz) == ((3, 4), 2, 3, 3)
    assert tensor.dtype == np.float32
    assert tensor.fill_value == 0
    assert type(tensor.fill_value) is np.float32
    assert tensor.positions[0] is None
    assert tensor.coordinates[0] is None


def test_a_tensor_does_not_become_an_array_unasked() -> None:
    tensor = from_dense(np.eye(3), CSR)
    for use in (np.asarray, np.sin, lambda t: np.ones(3) * t):
        with pytest.raises(TensorTypeError, match="does not become a NumPy array by itself"):
            use(tensor)


def test_tensors_pickle() -> None:
    for fmt in MATRIX_FORMATS:
        tensor = from_dense(np.eye(3, 4), fmt, 0)
        again = pickle.loads(pickle.dumps(tensor))
        assert again.format == fmt
        assert_stores(again, np.eye(3, 4))


def test_values_may_come_in_blocks() -> None:
    made = sp.bsr_array(np.arange(16.0).reshape(4, 4), blocksize=(2, 2))
    tensor = SparseTensor(
        BSR(2, 2), (4, 4), (None, made.indptr, None, None), (None, made.indices, None, None),
        made.data,
    )  # fmt: skip
    assert tensor.values.ndim == 1
    assert np.shares_memory(tensor.values, made.data)
    np.testing.assert_array_equal(tensor.to_numpy(), made.toarray())


def test_repr() -> None:
    assert repr(from_dense(np.eye(2), CSR, 0)) == (
        "SparseTensor(shape=(2, 2), dtype=float64, nse=2, fill_value=0.0)\n"
        "  format: (d0, d1) -> (d0 : dense, d1 : compressed)\n"
        "  positions[1]:   [0 1 2]\n"
        "  coordinates[1]: [0 1]\n"
        "  values:         [1. 1.]"
    )
    long = repr(from_dense(np.ones(1000), SparseVector))
    assert long.endswith("values:         [1. 1. 1. 1. ... 1. 1. 1. 1.]")
    batched = from_dense(np.eye(2), Batched(SparseVector))
    assert "positions[1]:   [[0 1]\n                   [0 1]]" in repr(batched)
