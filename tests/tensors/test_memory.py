"""What is remembered about an object: its structure only, and only while it is what it was."""

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsejit.formats import CSR, Format, SparseVector
from sparsejit.tensors import SparseTensor, describe
from sparsejit.tensors import _records as records
from tests.tensors.test_scipy import csr, dense_of

sp: Any = scipy.sparse


def unsorted() -> Any:
    """A csr_array with a disordered row and a duplicate."""
    return csr([0, 3, 4], [2, 0, 2, 1], [1.0, 2.0, 3.0, 4.0], (2, 3))


def assert_described(made: Any) -> None:
    np.testing.assert_array_equal(dense_of(describe(made)), made.toarray())


def count_structure_reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows by one with each structure that is read anew."""
    seen: list[object] = []
    original = records.build_record

    def counting(obj: Any, *arguments: Any, **more: Any) -> Any:
        seen.append(obj)
        return original(obj, *arguments, **more)

    monkeypatch.setattr("sparsejit.tensors._interop.build_record", counting)
    return seen


def test_structure_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = count_structure_reads(monkeypatch)
    for made in (unsorted(), sp.csr_array(np.eye(3)), sp.coo_array(np.eye(3))):
        reads.clear()
        first = describe(made)
        second = describe(made)
        assert len(reads) == 1
        assert all(a is b for a, b in zip(first.buffers[:-1], second.buffers[:-1], strict=True))


def test_a_shared_operand_is_the_same_object_again() -> None:
    made = sp.csr_array(np.eye(3))
    assert describe(made) is describe(made)


def test_values_are_read_anew() -> None:
    for made in (unsorted(), sp.csr_array(np.eye(3)), sp.coo_array(np.eye(3))):
        describe(made)
        made.data *= 5
        assert_described(made)
        made.data[0] = np.nan
        assert_described(made)


def test_values_are_rebound() -> None:
    for made in (unsorted(), sp.csr_array(np.eye(3)), sp.coo_array(np.eye(3))):
        describe(made)
        made.data = np.arange(len(made.data)) + 1.5
        assert_described(made)
        made.data = np.arange(len(made.data), dtype=np.complex64) * 1j
        assert describe(made).dtype == np.complex64
        assert_described(made)


def test_values_of_a_wrong_length_are_refused_at_any_call() -> None:
    made = sp.csr_array(np.eye(3))
    describe(made)
    made.data = np.ones(2)
    with pytest.raises(ValueError, match="values has 2 elements"):
        describe(made)


def test_index_buffers_are_rebound() -> None:
    made = sp.csr_array(np.eye(3))
    describe(made)
    made.indices = np.array([2, 1, 0], made.indices.dtype)
    assert_described(made)
    made.indptr = np.array([0, 0, 1, 3], made.indptr.dtype)
    assert_described(made)
    coo = sp.coo_array(np.eye(3))
    describe(coo)
    coo.coords = (coo.coords[0], np.array([2, 1, 0], np.int32))
    assert_described(coo)


def test_damage_in_a_rebound_buffer_is_found() -> None:
    made = sp.csr_array(np.eye(3))
    describe(made)
    made.indices = np.array([0, 1, 3], np.int32)
    with pytest.raises(ValueError, match=r"coordinates\[1\]\[2\] is 3, outside 0 .. 2"):
        describe(made)
    made.indices = np.array([0, 1, 2], np.int32)
    assert_described(made)


def test_the_same_memory_with_another_type_or_length() -> None:
    indices = np.array([0, 1, 2, 0, 1, 0], np.int32)
    made = sp.csr_array((2, 3), dtype=np.float64)
    made.indptr, made.indices, made.data = np.array([0, 1, 3]), indices[:3], np.ones(3)
    assert_described(made)
    made.indices, made.data, made.indptr = indices[:4], np.ones(4), np.array([0, 3, 4])
    assert_described(made)
    made.indices = indices[:4].view(np.uint32)
    assert_described(made)
    made.indices, made.indptr, made.data = indices[::3], np.array([0, 1, 2]), np.ones(2)
    assert_described(made)


def test_sort_indices_and_sum_duplicates_are_seen() -> None:
    made = unsorted()
    assert_described(made)
    made.sort_indices()
    assert_described(made)
    assert made.has_sorted_indices
    made.sum_duplicates()
    assert_described(made)
    coo = sp.coo_array(([1.0, 2.0, 3.0], ([1, 0, 1], [0, 2, 0])), (2, 3))
    assert_described(coo)
    coo.sum_duplicates()
    assert_described(coo)
    blocks = sp.bsr_array((np.arange(8.0).reshape(2, 2, 2), [1, 0], [0, 2]), shape=(2, 4))
    assert_described(blocks)
    blocks.sort_indices()
    assert_described(blocks)


def test_sorting_after_the_flags_were_asked_for() -> None:
    made = unsorted()
    assert not made.has_sorted_indices
    assert_described(made)
    assert not made.has_canonical_format
    assert_described(made)
    made.sort_indices()
    assert_described(made)


def test_operations_that_change_a_matrix_in_place() -> None:
    made = sp.csr_array(np.array([[0, 1.0, 0], [2, 0, 3]]))
    assert_described(made)
    made.resize((2, 5))
    assert describe(made).shape == (2, 5)
    assert_described(made)
    made.resize((1, 2))
    assert_described(made)
    made.data[0] = 0.0
    made.eliminate_zeros()
    assert_described(made)
    with pytest.warns(sp.SparseEfficiencyWarning):
        made[0, 0] = 9.0
    assert_described(made)


def test_writing_into_positions_needs_check_always() -> None:
    made = sp.csr_array(np.eye(3))
    describe(made)
    made.indices[0] = 7
    with pytest.raises(ValueError, match=r"coordinates\[1\]\[0\] is 7, outside 0 .. 2"):
        describe(made, check="always")
    made.indices[:] = [2, 0, 1]
    np.testing.assert_array_equal(dense_of(describe(made, check="always")), made.toarray())
    tensor = SparseTensor(SparseVector, (3,), (np.array([0, 1]),), (np.array([2]),), np.ones(1))
    describe(tensor)
    coordinates = tensor.coordinates[0]
    assert coordinates is not None
    coordinates[0] = 3
    with pytest.raises(ValueError, match=r"coordinates\[0\]\[0\] is 3, outside 0 .. 2"):
        describe(tensor, check="always")


def test_check_never_still_sorts_and_a_later_check_still_checks() -> None:
    made = unsorted()
    np.testing.assert_array_equal(dense_of(describe(made, check="never")), made.toarray())
    assert describe(made, check="never").plan is describe(made, check="never").plan
    damaged = sp.csr_array(np.eye(3))
    damaged.indices[0] = 1000
    with pytest.raises(ValueError, match=r"is 1000, outside 0 \.\. 2"):
        describe(damaged)


def test_a_wrong_check_names_the_choices() -> None:
    with pytest.raises(ValueError) as caught:
        describe(np.ones(3), check="sometimes")  # type: ignore[arg-type]  # the point of the test
    assert str(caught.value) == (
        "check must be one of ('once', 'always', 'never'), not 'sometimes'"
    )


def test_the_record_dies_with_the_object_and_holds_only_its_buffers() -> None:
    made = unsorted()
    describe(made)
    owner, indices, key = weakref.ref(made), weakref.ref(made.indices), id(made)
    assert key in records._records
    del made
    gc.collect()
    assert owner() is None
    assert indices() is None
    assert key not in records._records


def test_a_recycled_id_is_another_object() -> None:
    rng = np.random.default_rng(0)
    seen: set[int] = set()
    recycled = 0
    for _ in range(200):
        made = sp.csr_array(rng.integers(0, 2, (4, 4)).astype(float))
        recycled += id(made) in seen
        seen.add(id(made))
        assert_described(made)
        del made
    assert recycled > 0  # else this test would have shown nothing


def test_a_stale_record_of_a_recycled_id_is_not_used() -> None:
    """Even when the death of the first owner went unnoticed."""
    first, second = csr([0, 2, 2], [0, 1], [1.0, 2.0], (2, 2)), sp.csr_array(np.ones((3, 3)))
    describe(first)
    records._records[id(second)] = records._records[id(first)]
    assert_described(second)
    turned = first.T  # a csc_array over the very same buffers
    records._records[id(turned)] = records._records[id(first)]
    assert_described(turned)


def test_two_objects_over_the_same_buffers() -> None:
    one = unsorted()
    other = csr(one.indptr, one.indices, one.data * 2, (2, 3))
    for made in (one, other, one, other):
        assert_described(made)


def test_sparse_tensors_remember_their_order() -> None:
    fmt = Format("(i, j) -> (i : dense, j : compressed(nonunique, nonordered))")
    positions, coordinates = np.array([0, 3, 4]), np.array([2, 0, 2, 1])
    values = np.array([1.0, 2.0, 3.0, 4.0])
    tensor = SparseTensor(fmt, (2, 3), (None, positions), (None, coordinates), values)
    operand = describe(tensor)
    assert operand.format == CSR
    assert dense_of(operand).tolist() == tensor.to_numpy().tolist() == [[2, 0, 4], [0, 4, 0]]
    values[3] = 9.0
    again = describe(tensor)
    assert dense_of(again)[1, 1] == 9.0
    assert again.buffers[0] is operand.buffers[0]
    assert coordinates.tolist() == [2, 0, 2, 1]


def set_random_entry(made: Any, rng: np.random.Generator) -> None:
    if min(made.shape) and made.format != "coo":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
            made[int(rng.integers(made.shape[0])), int(rng.integers(made.shape[1]))] = 3.0


def rebind_indices(made: Any, rng: np.random.Generator) -> None:
    if made.format == "coo":
        made.coords = (made.coords[0][::-1].copy(), made.coords[1])
    else:
        made.indices = made.indices[::-1].copy() % max(made.shape[1], 1)
    for flag in ("_has_sorted_indices", "_has_canonical_format"):
        made.__dict__.pop(flag, None)  # what a careful user would say with the setters
    if made.format == "coo":
        made.has_canonical_format = False


def change_values(made: Any, rng: np.random.Generator) -> None:
    made.data[...] = rng.integers(-1, 3, len(made.data))


def rebind_values(made: Any, rng: np.random.Generator) -> None:
    made.data = rng.integers(-1, 3, len(made.data)).astype(made.dtype)


def sort_indices(made: Any, rng: np.random.Generator) -> None:
    if made.format != "coo":
        made.sort_indices()


CHANGES: list[Callable[[Any, np.random.Generator], object]] = [
    set_random_entry,
    rebind_indices,
    change_values,
    rebind_values,
    sort_indices,
    lambda made, rng: made.sum_duplicates(),
    lambda made, rng: made.eliminate_zeros(),
    lambda made, rng: made.resize((int(rng.integers(1, 5)), int(rng.integers(1, 5)))),
    lambda made, rng: made.has_canonical_format,
]


@settings(max_examples=60)
@given(
    st.sampled_from(["csr", "coo"]),
    st.lists(st.sampled_from(range(len(CHANGES))), max_size=12),
    st.integers(0, 1000),
)
def test_any_history_of_changes(name: str, changes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 3, 6), rng.integers(0, 4, 6)
    made: Any = sp.coo_array((rng.integers(1, 9, 6) * 1.0, (rows, columns)), shape=(3, 4))
    if name == "csr":
        order = np.argsort(rows, kind="stable")
        indptr = np.searchsorted(rows[order], np.arange(4))
        made = csr(indptr, columns[order], made.data[order], (3, 4))
    assert_described(made)
    for change in changes:
        CHANGES[change](made, rng)
        assert_described(made)


def test_describing_from_several_threads() -> None:
    made = [sp.csr_array(np.eye(5) * k) for k in range(1, 9)] + [unsorted() for _ in range(8)]
    failures: list[object] = []

    def work() -> None:
        for _ in range(50):
            for matrix in made:
                if not np.array_equal(dense_of(describe(matrix)), matrix.toarray()):
                    failures.append(matrix)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
