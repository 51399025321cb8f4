"""SciPy's classes: shared memory both ways, any order of entries, duplicates, odd shapes."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sparsejit import sparse_jit
from sparsejit.errors import TensorTypeError, UnsupportedError
from sparsejit.formats import BSR, COO, CSC, CSR, DCSR, DIA, Format, SparseVector
from sparsejit.tensors import (
    VALUE_TYPES,
    Operand,
    SparseTensor,
    asarray,
    describe,
    from_dense,
    split_buffers,
    wrap_result,
)
from tests.tensors.cases import AOS, Array

sp: Any = scipy.sparse  # its stubs know too much about overloads
SCIPY_TYPES = [dtype for dtype in VALUE_TYPES if dtype.name not in ("float16", "bfloat16")]
DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 5]])


def dense_of(operand: Operand) -> Array:
    """What an operand says, through the public constructor and so through all checks."""
    if operand.is_dense:
        return np.asarray(operand.buffers[0])
    structure, values = split_buffers(operand.format, operand.shape, operand.buffers)
    tensor = SparseTensor(
        structure.format,
        structure.shape,
        structure.positions,
        structure.coordinates,
        values,
        operand.fill_value,
    )
    return tensor.to_numpy()


def csr(indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> Any:
    """A csr_array exactly of these arrays; SciPy's constructor would copy some."""
    made = sp.csr_array(shape, dtype=np.asarray(data).dtype)
    made.indptr, made.indices, made.data = map(np.asarray, (indptr, indices, data))
    return made


@pytest.mark.parametrize("dtype", SCIPY_TYPES, ids=str)
@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize(
    ("name", "fmt"),
    [("csr", CSR), ("csc", CSC), ("coo", COO(2)), ("bsr", BSR(2, 2)), ("dia", DIA)],
)
def test_every_class_shares_its_memory(
    name: str, fmt: Format, matrix: bool, dtype: np.dtype[Any]
) -> None:
    array = DENSE.astype(dtype)
    plain = sp.csr_array(array)
    made: Any = plain.tobsr((2, 2)) if name == "bsr" else plain.asformat(name)
    if matrix:
        made = getattr(sp, f"{name}_matrix")(made)
    operand = describe(made)
    assert operand.format == fmt
    assert operand.kind == ("scipy-matrix" if matrix else "scipy-array")
    assert (operand.shape, operand.dtype, operand.fill_value) == ((4, 4), dtype, 0)
    assert operand.is_shared
    assert operand.writable
    assert np.shares_memory(operand.values, made.data)
    own = {"coo": ("row", "col"), "dia": ("offsets",)}.get(name, ("indptr", "indices"))
    for attribute in own:
        array_of_scipy = getattr(made, attribute)
        assert any(np.shares_memory(array_of_scipy, buffer) for buffer in operand.buffers)
    np.testing.assert_array_equal(dense_of(operand), array)

    back = asarray(made).to_scipy()
    assert type(back) is getattr(sp, f"{name}_array")
    assert np.shares_memory(back.data, made.data)
    for attribute in own:
        assert np.shares_memory(getattr(back, attribute), getattr(made, attribute))
    np.testing.assert_array_equal(back.toarray(), array)
    if name != "dia":
        assert back.has_canonical_format


def test_64_bit_indices_stay_shared() -> None:
    made = csr(np.array([0, 1, 1]), np.array([1]), [5.0], (2, 3))
    tensor = asarray(made)
    assert tensor.positions[1] is made.indptr
    back = tensor.to_scipy()
    assert back.indptr is made.indptr
    assert back.indices is made.indices
    assert (back @ np.ones(3)).tolist() == [5.0, 0.0]


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_coo_of_any_rank(rank: int) -> None:
    rng = np.random.default_rng(rank)
    array = rng.integers(0, 2, (3,) * rank).astype(np.float64)
    made = sp.coo_array(array)
    operand = describe(made)
    assert operand.format == COO(rank)
    np.testing.assert_array_equal(dense_of(operand), array)
    native = from_dense(array, COO(rank)).to_scipy()
    np.testing.assert_array_equal(native.toarray(), array)
    assert native.sum() == array.sum()
    np.testing.assert_array_equal(native.reshape(-1).toarray(), array.reshape(-1))


def test_one_dimensional_csr() -> None:
    made = sp.csr_array(np.array([0.0, 3.0, 0.0, 4.0]))
    operand = describe(made)
    assert operand.format == SparseVector
    assert np.shares_memory(operand.values, made.data)
    assert dense_of(operand).tolist() == [0, 3, 0, 4]


@pytest.mark.parametrize("name", ["lil", "dok"])
def test_lists_and_dictionaries_are_converted(name: str) -> None:
    made = sp.csr_array(DENSE).asformat(name)
    operand = describe(made)
    assert operand.kind == "scipy-array"
    assert not operand.writable
    np.testing.assert_array_equal(dense_of(operand), DENSE)
    made[0, 0] = 9
    assert dense_of(describe(made))[0, 0] == 9
    with pytest.raises(UnsupportedError, match="cannot assign to a scipy-array argument"):
        operand.write_values(np.ones(6))


@st.composite
def entries(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[list[Array], Array]:
    count = draw(st.integers(0, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [rng.integers(0, extent, count) for extent in shape], rng.integers(1, 9, count)


@given(st.data())
def test_unsorted_and_duplicate_entries(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(3, 4), (1, 1), (5, 2)]))
    (rows, columns), values = data.draw(entries(shape))
    expected = np.zeros(shape, np.int64)
    np.add.at(expected, (rows, columns), values)

    coo = sp.coo_array((values, (rows, columns)), shape)
    by_row = np.argsort(rows, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0]))))
    compressed = csr(indptr, columns[by_row], values[by_row], shape)
    blocks = sp.bsr_array((values[by_row].reshape(-1, 1, 1), columns[by_row], indptr), shape=shape)
    transposed = compressed.T  # a csc_array over the same arrays
    for made, wanted in (
        (coo, expected),
        (compressed, expected),
        (blocks, expected),
        (transposed, expected.T),
    ):
        before = [made.data.copy(), *map(np.copy, made.__dict__.get("coords", ()))]
        operand = describe(made)
        np.testing.assert_array_equal(dense_of(operand), wanted)
        np.testing.assert_array_equal(dense_of(describe(made)), wanted)
        after = [made.data, *made.__dict__.get("coords", ())]
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)  # the caller's arrays are never reordered


def test_duplicate_blocks_are_added_block_by_block() -> None:
    data = np.arange(12.0).reshape(3, 2, 2)
    made = sp.bsr_array((data, [1, 0, 1], [0, 3]), shape=(2, 4))
    np.testing.assert_array_equal(dense_of(describe(made)), made.toarray())


@pytest.mark.parametrize("dtype", SCIPY_TYPES, ids=str)
def test_duplicates_of_every_type(dtype: np.dtype[Any]) -> None:
    values = np.array([200, 100, 1]).astype(dtype)
    made = sp.coo_array((values, ([0, 0, 1], [2, 2, 0])), (2, 3))
    found = dense_of(describe(made))
    assert found.dtype == dtype
    with np.errstate(over="ignore"):  # 200 + 100 wraps in 8 bits
        assert found[0, 2] == values[0] + values[1]


def test_slack_behind_the_entries() -> None:
    """SciPy allows arrays longer than the entries need; the rest is unused."""
    made = csr([0, 1, 2], [2, 0, 77, -5], [1.0, 2.0, 3.0, 4.0], (2, 3))
    operand = describe(made)
    assert dense_of(operand).tolist() == [[0, 0, 1], [2, 0, 0]]
    assert np.shares_memory(operand.values, made.data)
    operand.write_values(np.array([8.0, 9.0]))
    assert made.data.tolist() == [8.0, 9.0, 3.0, 4.0]
    blocks = sp.bsr_array((2, 2), blocksize=(1, 2), dtype=np.float64)
    blocks.indptr, blocks.indices = np.array([0, 1, 1]), np.array([0, 0])
    blocks.data = np.arange(1.0, 5.0).reshape(2, 1, 2)
    assert dense_of(describe(blocks)).tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize("width", [0, 2, 4, 7])
def test_dia_of_any_width_order_and_offset(width: int) -> None:
    """Offsets in any order and outside the shape; rows of data shorter or longer than the shape."""
    data = np.arange(1.0, 1 + 4 * width).reshape(4, width)
    made = sp.dia_array((data, [2, -1, 9, -7]), shape=(3, 4))
    operand = describe(made)
    assert operand.format == DIA
    assert operand.buffers[1].tolist() == [-1, 2]
    np.testing.assert_array_equal(dense_of(operand), made.toarray())
    operand.write_values(10 * operand.values)
    np.testing.assert_array_equal(dense_of(describe(made)), made.toarray())


def test_dia_stores_every_slot_inside_the_shape() -> None:
    made = sp.dia_array((np.array([[0.0, 1.0]]), [1]), shape=(3, 4))
    assert asarray(made).nse == 3


def test_arrays_of_any_strides() -> None:
    wide = np.arange(1.0, 7.0)
    made = csr(np.array([0, 9, 2, 9, 3])[::2], np.array([0, 9, 2, 9, 1])[::2], wide[::2], (2, 3))
    operand = describe(made)
    assert dense_of(operand).tolist() == [[1, 0, 3], [0, 5, 0]]
    assert not operand.is_shared
    wide[0] = 100.0
    assert dense_of(describe(made))[0, 0] == 100
    describe(made).write_values(np.array([7.0, 8.0, 9.0]))
    assert wide.tolist() == [7, 2, 8, 4, 9, 6]


def test_writing_back_through_a_permutation() -> None:
    made = csr([0, 2, 3], [2, 0, 1], [10.0, 20.0, 30.0], (2, 3))
    operand = describe(made)
    assert operand.values.tolist() == [20, 10, 30]
    operand.write_values(np.array([1.0, 2.0, 3.0]))
    assert made.data.tolist() == [2, 1, 3]
    assert made.indices.tolist() == [2, 0, 1]


def test_writing_back_what_is_shared_read_only_or_ambiguous() -> None:
    shared = sp.csr_array(DENSE * 1.0)
    operand = describe(shared)
    operand.values[...] = 7.0
    operand.write_values(operand.values)
    assert set(shared.data) == {7.0}
    operand.write_values(np.arange(5.0))
    assert shared.data.tolist() == [0, 1, 2, 3, 4]
    shared.data.flags.writeable = False
    assert not describe(shared).writable
    with pytest.raises(ValueError, match="an argument whose array is read-only"):
        describe(shared).write_values(np.ones(5))
    twice = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), (2, 2))
    assert not describe(twice).writable
    with pytest.raises(UnsupportedError, match="a sparse argument with duplicate entries"):
        describe(twice).write_values(np.ones(1))


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("indices", [0, 4, 1], "coordinates[1][1] is 4, outside 0 .. 3"),
        ("indices", [0, -1, 1], "coordinates[1][1] is -1, outside 0 .. 3"),
        ("indices", [0, 1], "positions[1] ends at 3, but coordinates[1] has 2 elements"),
        ("indices", [0.0, 1.0, 2.0], "coordinates[1] has dtype float64"),
        ("indptr", [0, 2, 1, 3], "positions[1][2] is 1, less than the one before it, 2"),
        ("indptr", [1, 2, 2, 3], "positions[1][0] is 1, expected 0"),
        ("indptr", [0, 2, 3], "positions[1] has shape (3,), expected (4,)"),
        ("indptr", [0, 2, 2, 5], "positions[1] ends at 5, but coordinates[1] has 3 elements"),
        ("indptr", [0, 2, 2, -3], "positions[1][3] is -3, less than the one before it, 2"),
        ("indptr", [], "positions[1] has shape (0,), expected (4,)"),
        ("data", [1.0], "values has 1 elements"),
    ],
)
def test_damaged_scipy_arrays(attribute: str, value: Any, message: str) -> None:
    made = csr([0, 2, 2, 3], [0, 3, 1], [1.0, 2.0, 3.0], (3, 4))
    wanted = np.float64 if attribute == "data" else None
    setattr(made, attribute, np.array(value, wanted or (np.int64 if not value else None)))
    with pytest.raises(ValueError) as caught:
        describe(made)
    assert message in str(caught.value)


def test_damaged_coo() -> None:
    made = sp.coo_array(([1.0, 2.0], ([0, 1], [1, 1])), (2, 2))
    made.coords = (np.array([0, 2]), np.array([1, 1]))
    with pytest.raises(ValueError, match=r"coordinates\[0\]\[1\] is 2, outside 0 .. 1"):
        describe(made)
    made.coords = (np.array([0, 1]), np.array([1]))
    with pytest.raises(ValueError, match=r"coordinates\[1\] has shape \(1,\), expected \(2,\)"):
        describe(made)
    made.coords = ([0, 1], [1, 1])
    with pytest.raises(ValueError, match=r"coordinates\[0\] must be a NumPy array, not list"):
        describe(made)


def test_value_types_scipy_knows_and_we_do_not() -> None:
    made = sp.csr_array(DENSE.astype(np.longdouble))
    with pytest.raises(TensorTypeError, match="which is not supported"):
        describe(made)


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (from_dense(DENSE, DCSR), "SciPy has no class for this format"),
        (from_dense(DENSE, AOS), "SciPy has no class for this format"),
        (from_dense(DENSE, CSR, 7), "SciPy's sparse arrays have fill value 0, not 7"),
        (from_dense(DENSE.astype(np.float16), CSR), "SciPy's sparse arrays do not hold float16"),
        (
            from_dense(DENSE, BSR(3, 2)),
            "SciPy's blocks of (3, 2) must divide the shape (4, 4)",
        ),
        (
            from_dense(DENSE, CSR.with_widths(16, 8)),
            "SciPy's sparse arrays have 32 or 64 bit signed indices",
        ),
    ],
)
def test_what_scipy_cannot_hold(tensor: SparseTensor, reason: str) -> None:
    with pytest.raises(TensorTypeError) as caught:
        tensor.to_scipy()
    assert str(caught.value) == (
        f"({tensor.format}) cannot become a SciPy array: {reason}\n"
        "  convert it first, as in .convert(sj.CSR).to_scipy()"
    )
    buffers = (*[b for p in zip(tensor.positions, tensor.coordinates, strict=True) for b in p
                 if b is not None], tensor.values)  # fmt: skip
    result = wrap_result(tensor.format, tensor.shape, buffers, tensor.fill_value, like="scipy")
    assert isinstance(result, SparseTensor)
    np.testing.assert_array_equal(result.to_numpy(), tensor.to_numpy())


@pytest.mark.parametrize("fmt", [CSR, CSC, COO(2), BSR(2, 2), DIA], ids=str)
def test_results_are_scipy_arrays_over_our_buffers(fmt: Format) -> None:
    tensor = from_dense(DENSE * 1.0, fmt)
    pairs = zip(tensor.positions, tensor.coordinates, strict=True)
    buffers = (*[array for pair in pairs for array in pair if array is not None], tensor.values)
    result = wrap_result(fmt, tensor.shape, buffers, like="scipy")
    assert isinstance(result, sp.sparray)
    assert np.shares_memory(result.data, tensor.values)
    np.testing.assert_array_equal(result.toarray(), DENSE)
    np.testing.assert_array_equal((result @ result).toarray(), DENSE @ DENSE)
    np.testing.assert_array_equal(result.T.toarray(), DENSE.T)
    np.testing.assert_array_equal(result.copy().toarray(), DENSE)
    native = wrap_result(fmt, tensor.shape, buffers, like="native")
    assert isinstance(native, SparseTensor)


def test_results_of_nonordered_formats_do_not_claim_order() -> None:
    fmt = Format("(i, j) -> (i : dense, j : compressed(nonordered))")
    buffers = (np.array([0, 2, 2]), np.array([2, 0]), np.array([1.0, 2.0]))
    result = wrap_result(fmt, (2, 3), buffers, like="scipy")
    assert not result.has_sorted_indices
    assert result.toarray().tolist() == [[2, 0, 1], [0, 0, 0]]


def test_results_with_the_wrong_number_of_buffers() -> None:
    with pytest.raises(ValueError, match="has 3 buffers, not 2"):
        wrap_result(CSR, (2, 2), (np.zeros(3), np.zeros(0)))


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("calls", [0, 2])
def test_values_of_another_rank_are_refused(name: str, calls: int) -> None:
    """Twice as many values in two columns are no slack: every other one is not the object's."""
    A: Any = sp.csr_array(np.arange(24.0).reshape(4, 6)).asformat(name)
    f = sparse_jit(lambda A, x: A @ x, target="cpu")
    for _ in range(calls):
        f(A, np.ones(6))
    A.data = np.stack([A.data, -A.data], axis=-1)
    with pytest.raises(ValueError, match="values has shape"):
        f(A, np.ones(6))
    A.data = A.data.reshape(-1)
    if name in ("bsr", "dia"):
        with pytest.raises(ValueError, match="values has shape"):
            f(A, np.ones(6))
