"""Calls like an earlier one take a short way; whatever differs from that call has to be noticed.

Each test first makes sure that calls take a route (``Counted.long`` stands still), then changes one
thing. A guard that is left out gives a wrong number here.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.api._route import sign
from sparsejit.errors import TensorTypeError
from tests.api.counted import Counted, matrix, product


def test_values_are_read_anew() -> None:
    f, A, x = Counted(product), matrix(), np.arange(4.0)
    f.settle(A, x)
    A.data[:] = -A.data
    x += 1
    assert not f.is_long(A, x)
    np.testing.assert_array_equal(f(A, x), A @ x)
    np.testing.assert_array_equal(f(A, x + 1), A @ (x + 1))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_an_array_of_values_in_the_place_of_another(kind: str) -> None:
    f, A, x = Counted(product), matrix(kind=kind), np.arange(4.0)
    f.settle(A, x)
    A.data = A.data * 2
    np.testing.assert_array_equal(f(A, x), A @ x)
    f.settle(A, x)
    A.data = A.data.astype(np.int64)
    np.testing.assert_array_equal(f(A, np.arange(4)), A @ np.arange(4))


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_index_arrays_in_the_place_of_others(name: str) -> None:
    f, x = Counted(product), np.arange(4.0)
    A = sp.csr_array((np.arange(1.0, 6), np.array([0, 1, 0, 1, 2]), np.array([0, 2, 2, 5])), (3, 4))
    f.settle(A, x)
    other = {"indices": np.array([1, 2, 0, 2, 3]), "indptr": np.array([0, 2, 5, 5])}[name]
    setattr(A, name, other.astype(A.indices.dtype))
    np.testing.assert_array_equal(f(A, x), A @ x)


def test_coordinates_in_the_place_of_others() -> None:
    f, A, x = Counted(product), matrix(kind="coo"), np.arange(4.0)
    f.settle(A, x)
    A.coords = (A.coords[0], (A.coords[1] + 1) % 4)
    A.has_canonical_format = False
    np.testing.assert_array_equal(f(A, x), A @ x)


def test_offsets_in_the_place_of_others() -> None:
    f, A, x = Counted(product), sp.diags_array([[1.0, 2, 3]], offsets=[0]), np.arange(3.0)
    f.settle(A, x)
    A.offsets = np.array([1], A.offsets.dtype)
    np.testing.assert_array_equal(f(A, x), A @ x)


def test_order_and_duplicates_are_said_by_flags() -> None:
    f, x = Counted(product), np.arange(4.0)
    A = sp.csr_array((np.ones(3), np.array([0, 1, 3]), np.array([0, 2, 3])), (2, 4))
    assert A.has_sorted_indices
    assert A.has_canonical_format
    f.settle(A, x)
    A.indices[:2] = [1, 1]
    A.has_canonical_format = False
    pattern = sj.sparse_jit(lambda A: sj.where_stored(A, 1.0))
    np.testing.assert_array_equal(f(A, x), A @ x)
    assert pattern(A).nnz == 2


def test_sum_duplicates_and_sort_indices() -> None:
    f, x = Counted(product), np.arange(4.0)
    A = sp.csr_array((np.ones(4), np.array([3, 1, 1, 0]), np.array([0, 3, 4])), (2, 4))
    for change in ("copy", "sort_indices", "sum_duplicates"):
        getattr(A, change)()
        for _ in range(4):
            np.testing.assert_array_equal(f(A, x), A.toarray() @ x)


def test_a_resized_matrix() -> None:
    f, A, x = Counted(product), matrix(), np.arange(4.0)
    f.settle(A, x)
    A.resize((5, 6))
    np.testing.assert_array_equal(f(A, np.arange(6.0)), A @ np.arange(6.0))
    with pytest.raises(TensorTypeError, match="extents"):
        f(A, x)


def test_what_is_done_to_the_arrays_of_a_matrix_in_their_place() -> None:
    f, A, x = Counted(product), matrix(), np.arange(4.0)
    A.indices = A.indices.copy()  # owns its memory, so it can be resized
    f.settle(A, x)
    A.indices.resize(A.nnz - 1, refcheck=False)
    with pytest.raises(ValueError, match="coordinates"):
        f(A, x)


def test_what_is_done_to_the_arrays_of_a_tensor_in_their_place() -> None:
    A, x = matrix(), np.arange(4.0)
    positions, coordinates, values = A.indptr.copy(), A.indices.copy(), A.data.copy()
    T = sj.SparseTensor(sj.CSR, A.shape, (None, positions), (None, coordinates), values)
    f = Counted(product)
    f.settle(T, x)
    coordinates.resize(coordinates.size - 1, refcheck=False)
    with pytest.raises(ValueError, match="coordinates"):
        f(T, x)


@pytest.mark.parametrize("kind", ["bsr", "dia"])
def test_what_is_done_to_values_that_are_seen_through_a_view(kind: str) -> None:
    A = sp.bsr_array(np.ones((6, 6)), blocksize=(3, 2)) if kind == "bsr" else matrix(6, 6, "dia")
    f, x = Counted(product), np.arange(6.0)
    f.settle(A, x)
    A.data.shape = (*A.data.shape[:-2], A.data.shape[-1], A.data.shape[-2])
    with pytest.raises(ValueError):
        f(A, x)


def changed(x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays that differ from a contiguous ``x`` of rank 2 in one respect each."""
    wide = np.zeros((x.shape[0], 2 * x.shape[1]))
    wide[:, ::2] = x
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    misaligned = raw.view(np.float64).reshape(x.shape)
    misaligned[...] = x
    return {
        "dtype": x.astype(np.float32),
        "integer": x.astype(np.int64),
        "extents": np.concatenate([x, x], axis=1),
        "rank": x[:, 0].copy(),
        "order": np.asfortranarray(x),
        "strides": wide[:, ::2],
        "subclass": x.view(type("Sub", (np.ndarray,), {})),
        "misaligned": misaligned,
        "bytes": x.astype(">f8"),
    }


@pytest.mark.parametrize("what", list(changed(np.ones((4, 3)))))
def test_another_dense_array(what: str) -> None:
    f, A, x = Counted(product), matrix(), np.arange(12.0).reshape(4, 3) + 1
    f.settle(A, x)
    other = changed(x)[what]
    try:
        result = f(A, other)
    except TensorTypeError:
        assert what == "bytes"
        return
    expected = A @ np.asarray(other)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.result_type(A.dtype, other.dtype)


def test_other_strides_of_one_class() -> None:
    f, whole = Counted(lambda x, y: x * y), np.arange(96.0).reshape(4, 24)
    y = np.ones((4, 3))
    f.settle(whole[:, ::2][:, :3], y)
    for x in (whole[:, ::4][:, :3], whole[:, ::-1][:, :3], whole[::-1, ::8], whole[:, 1::2][:, :3]):
        np.testing.assert_array_equal(f(x, y), x)


def test_an_array_changed_in_its_place() -> None:
    f, x = Counted(lambda x: x.sum(axis=0)), np.arange(12.0).reshape(4, 3)
    f.settle(x)
    x.shape = (3, 4)
    np.testing.assert_array_equal(f(x), x.sum(axis=0))
    y = np.zeros((4, 3))
    g = Counted(lambda y: y.__iadd__(1))
    g.settle(y)
    y.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        g(y)


def test_kinds_of_scalars() -> None:
    f, x = Counted(lambda a, x: a * x), np.arange(3, dtype=np.float32)
    for scalars in (
        [2.0, 3.0, float("nan")],
        [2, 3, -(2**63)],
        [2j, 3 + 1j],
        [np.float64(2), np.float64(3)],
        [np.float32(2), np.float32(-1)],
        [np.int8(2), np.int8(-3)],
        [np.complex64(2j), np.complex64(1)],
        [np.float16(2), np.float16(0.5)],
        [True, False],
    ):
        for _ in range(2):
            for scalar in scalars:
                got, wanted = f(scalar, x), scalar * x
                np.testing.assert_array_equal(got, wanted)
                assert got.dtype == wanted.dtype, scalar
    assert f.function.cache_info().hits > 20


def test_integers_that_do_not_fit() -> None:
    f, x = Counted(lambda a, x: a + x), np.arange(3, dtype=np.int8)
    f.settle(5, x)
    for wrong in (1000, -129):
        with pytest.raises(OverflowError):
            f(wrong, x)
    g, y = Counted(lambda a, x: a + x), np.arange(3, dtype=np.uint64)
    g.settle(5, y)
    assert g(2**63, y).tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    h = Counted(lambda a: a * 2.0)
    h.settle(3)
    assert h(2**63) == 2.0**64


def test_sparse_objects_that_differ_in_more_than_values() -> None:
    A = sp.csr_array((np.ones(3), np.array([0, 1, 2]), np.array([0, 1, 2, 3])), (3, 3))
    f = Counted(lambda A: (A.sum(axis=0), A * 2))
    f.settle(A)
    B = sp.csr_array((A.data, np.array([2, 2, 2]), A.indptr), (3, 3))
    tensor = sj.asarray(A, format=sj.CSR)
    filled = sj.SparseTensor(
        sj.CSR, (3, 3), tensor.positions, tensor.coordinates, tensor.values, 5.0
    )
    others = (
        B.tocsc(),
        sp.csc_array((B.data, B.indices, B.indptr), (3, 3)),
        sp.csr_array((B.data, B.indices, B.indptr), (3, 4)),
        sp.csr_array((B.data.astype(int), B.indices, B.indptr), (3, 3)),
        sp.csr_array((B.data[:2], B.indices[:2], np.array([0, 1, 1, 2])), (3, 3)),
        tensor,
        filled,
    )
    for _ in range(3):
        for other in others:
            f.settle(A)  # the route that is tried first
            dense = other.to_numpy() if isinstance(other, sj.SparseTensor) else other.toarray()
            total, double = f(other)
            np.testing.assert_array_equal(total, dense.sum(axis=0))
            assert type(double) is type(other)
            assert double.dtype == other.dtype


def test_structure_that_nobody_has_checked() -> None:
    f, trusting, A = (
        Counted(lambda A: A * 2),
        sj.sparse_jit(lambda A: A * 2, check="never"),
        matrix(),
    )
    f.settle(A)
    damaged = sp.csr_array((A.data, A.indices.copy(), A.indptr), A.shape)
    damaged.indices[-1] = 99
    for _ in range(2):
        trusting(damaged)
    with pytest.raises(ValueError, match="coordinates"):
        f(damaged)


def test_an_array_of_coordinates_that_is_put_in_a_list() -> None:
    f, A, x = Counted(product), matrix(kind="coo"), np.arange(4.0)
    A.coords = list(A.coords)
    for _ in range(3):
        f(A, x)
    A.coords[1] = (A.coords[1] + 1) % 4
    A.has_canonical_format = False
    np.testing.assert_array_equal(f(A, x), A.toarray() @ x)


def test_signs_tell_arrays_apart() -> None:
    x = np.zeros((4, 6))
    frozen = x.copy()
    frozen.setflags(write=False)
    arrays = (
        x,
        x.astype(np.float32),
        x[:3],
        x[:, ::2],
        x[:, ::3],
        np.zeros((4, 12))[:, ::4],
        np.asfortranarray(x),
        frozen,
        np.zeros((4, 6, 1)),
    )
    assert len({sign(array, True) for array in arrays}) == len(arrays)
    assert sign(x, True) == sign(x.copy(), True)
    numbers = (1, 1.0, 1j, np.float64(1), np.int64(1), np.float32(1))
    assert len({sign(number, True) for number in numbers}) == len(numbers)
    assert sign(2**63, True) is None
