"""What is taken again of sparse objects: only of the same object with the same parts."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.tensors import describe, ready_of
from sparsejit.tensors._records import _records, record_of

DENSE = np.array([[1.0, 0, 2, 0], [0, 3, 0, 0], [4, 0, 0, 5], [0, 0, 6, 7]])


def known(obj: Any) -> Any:
    """Return the object, described, so that it is ready."""
    describe(obj)
    assert ready_of(obj, True) is not None
    return obj


def made(kind: str) -> Any:
    base: Any = sp.coo_array(DENSE)
    found = sp.bsr_array(DENSE, blocksize=(2, 2)) if kind == "bsr" else base.asformat(kind)
    return known(found)


CHANGES: dict[str, dict[str, Callable[[Any], Any]]] = {
    kind: {
        "indptr": lambda A: setattr(A, "indptr", A.indptr.copy()),
        "indices": lambda A: setattr(A, "indices", A.indices.copy()),
        "data": lambda A: setattr(A, "data", A.data.copy()),
        "shape": lambda A: setattr(A, "_shape", (4, 6)),
        "sorted": lambda A: setattr(A, "has_sorted_indices", False),
        "canonical": lambda A: setattr(A, "has_canonical_format", False),
    }
    for kind in ("csr", "csc", "bsr")
}
CHANGES["coo"] = {
    "coords": lambda A: setattr(A, "coords", tuple(c.copy() for c in A.coords)),
    "data": lambda A: setattr(A, "data", A.data.copy()),
    "shape": lambda A: setattr(A, "_shape", (4, 6)),
    "canonical": lambda A: setattr(A, "has_canonical_format", not A.has_canonical_format),
}
CHANGES["dia"] = {
    "offsets": lambda A: setattr(A, "offsets", A.offsets.copy()),
    "data": lambda A: setattr(A, "data", A.data.copy()),
    "shape": lambda A: setattr(A, "_shape", (6, 4)),
    "its values": lambda A: setattr(A.data, "shape", A.data.shape[::-1]),
}


@pytest.mark.parametrize(
    ("kind", "what"), [(kind, what) for kind, changes in CHANGES.items() for what in changes]
)
def test_a_changed_part_is_noticed(kind: str, what: str) -> None:
    A = made(kind)
    CHANGES[kind][what](A)
    assert ready_of(A, True) is None


def tensor(index: Any = np.int32, fill: float = 0.0) -> Any:
    A = sp.csr_array(DENSE)
    positions, coordinates = A.indptr.astype(index), A.indices.astype(index)
    values = A.data.copy()
    T = sj.SparseTensor(sj.CSR, A.shape, (None, positions), (None, coordinates), values, fill)
    return known(T), positions, coordinates


def test_arrays_that_were_converted_are_compared() -> None:
    T, _, coordinates = tensor(np.uint32)
    coordinates.resize(coordinates.size - 1, refcheck=False)
    assert ready_of(T, True) is None
    A = made("csr")
    A.indices = np.repeat(A.indices, 2)[::2]
    known(A)
    A.indices.shape = (A.indices.size, 1)
    assert ready_of(A, True) is None


def test_values_may_change_and_nothing_else_is_remembered() -> None:
    A = made("csr")
    before = ready_of(A, True)
    A.data[:] = 9
    after = ready_of(A, True)
    assert after is before
    assert after is not None
    assert after.buffers[-1] is A.data


def test_other_values_are_ready_when_they_were_described() -> None:
    A = made("csr")
    A.data = A.data * 2
    known(A)
    again = ready_of(A, True)
    assert again is not None
    assert again.buffers[-1] is A.data


def test_marks_differ_where_anything_but_the_buffers_does() -> None:
    objects = [
        made("csr"),
        known(sp.csr_array(DENSE.T).T),
        known(sp.csr_array(DENSE.astype(np.float32))),
        known(sp.csr_array(DENSE.astype(np.int64))),
        known(sp.csr_array(np.hstack([DENSE, np.zeros((4, 1))]))),
        known(sp.csr_array(np.where(DENSE == 7, 0, DENSE))),
        known(sp.csr_matrix(DENSE)),
        tensor()[0],
        tensor(np.int64)[0],
        tensor(fill=1.0)[0],
        tensor(fill=-0.0)[0],
    ]
    found = [ready_of(obj, True) for obj in objects]
    marks = [ready.mark for ready in found if ready is not None]
    assert len(set(marks)) == len(objects)
    again = ready_of(made("csr"), True)
    assert again is not None
    assert again.mark == marks[0]


def test_an_identity_that_is_used_again() -> None:
    A, B = made("csr"), sp.csr_array(DENSE)
    assert record_of(A) is not None
    _records[id(B)] = _records[id(A)]  # as if B had come to lie where A was
    assert record_of(B) is None
    assert ready_of(B, True) is None
    del _records[id(B)]


def test_a_record_goes_with_its_object() -> None:
    A = made("csr")
    number = id(A)
    assert number in _records
    del A
    gc.collect()
    assert number not in _records


def test_what_nobody_has_checked_is_not_ready_for_those_who_want_it_checked() -> None:
    A = sp.csr_array(DENSE)
    describe(A, "never")
    assert ready_of(A, False) is not None
    assert ready_of(A, True) is None
