"""Operands of all pairs of formats over extents that dwarf what they store.

They are right, whatever has to be converted, and nothing of such an extent is allocated: 2**40
elements would not fit into memory, nor would a loop over them end. A result that would have so many
is refused before any work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsejit as sj
from sparsejit.errors import OutOfMemoryError
from tests.costs.cases import MATRICES

FEW = 6
EXTENTS = (2**33, 2**40, 2**62)
ANY = ("coo", "column coo", "dcsr", "dcsc", "blocked dcsr")
FORMATS = {
    "wide": (*ANY, "csr", "bsr", "ell", "loose"),
    "tall": (*ANY, "csc", "bsc", "jagged"),
    "square": ANY,
}
"""The formats in which a few long rows, a few long columns, and a square can be stored."""
WIDE, TALL, SQUARE, SMALL = (False, True), (True, False), (True, True), (False, False)
LONG = {"wide": WIDE, "tall": TALL, "square": SQUARE}
RESULTS = {"inferred": None, "coo": sj.COO(2), "dcsr": sj.DCSR, "dcsc": sj.DCSC}


def points(extent: int) -> list[int]:
    """Return the coordinates that entries may have along a long axis."""
    half = extent // 2
    return [0, 1, 2, 3, half, half + 1, extent - 2, extent - 1]


@dataclass(frozen=True)
class Operation:
    """A function of matrices and their shapes, which does the same with their dense twins.

    A twin has just the ``points`` of long axes, of which a result keeps ``cut``. ``long`` says
    which axes of a sparse result are long; it ``fits`` if so in the format that is inferred.
    """

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    long: tuple[bool, ...] = ()
    fits: bool = True
    cut: tuple[int, int | None] = (0, None)


OPERATIONS = {
    "A + B": Operation(lambda A, B: A + B, ("wide", "wide"), WIDE),
    "A * B": Operation(lambda A, B: A * B, ("wide", "wide"), WIDE),
    "A + B, tall": Operation(lambda A, B: A + B, ("tall", "tall"), TALL),
    "A * B, tall": Operation(lambda A, B: A * B, ("tall", "tall"), TALL),
    "A + B.T": Operation(lambda A, B: A + B.T, ("wide", "tall"), WIDE),
    "A.T * B": Operation(lambda A, B: A.T * B, ("wide", "tall"), TALL, fits=False),
    "A @ B": Operation(lambda A, B: A @ B, ("wide", "tall"), SMALL),
    "A @ B.T": Operation(lambda A, B: A @ B.T, ("wide", "wide"), SMALL),
    "A.T @ B": Operation(lambda A, B: A.T @ B, ("tall", "tall"), SMALL),
    "A @ B, outer": Operation(lambda A, B: A @ B, ("tall", "wide"), SQUARE, fits=False),
    "A @ B, square": Operation(lambda A, B: A @ B, ("square", "square"), SQUARE),
    "A @ B, wide": Operation(lambda A, B: A @ B, ("wide", "square"), WIDE),
    "A.T * 2": Operation(lambda A: A.T * 2, ("wide",), TALL),
    "A[:, 2:-1]": Operation(lambda A: A[:, 2:-1] * 1, ("wide",), WIDE, cut=(2, -1)),
    "A[1:4]": Operation(lambda A: A[1:4] * 1, ("wide",), WIDE),
}
REDUCTIONS = {
    "A.sum(axis=1)": Operation(lambda A: A.sum(axis=1), ("wide",)),
    "A.max(axis=1)": Operation(lambda A: A.max(axis=1), ("wide",)),
    "A.min(axis=0)": Operation(lambda A: A.min(axis=0), ("tall",)),
    "A.sum()": Operation(lambda A: A.sum(), ("square",)),
    "(A + B).sum(axis=1)": Operation(lambda A, B: (A + B).sum(axis=1), ("wide", "wide")),
    "(A * B.T).max(axis=1)": Operation(lambda A, B: (A * B.T).max(axis=1), ("wide", "tall")),
    "(A * B).sum()": Operation(lambda A, B: (A * B).sum(), ("tall", "tall")),
    "(A @ B).sum(axis=0)": Operation(lambda A, B: (A @ B).sum(axis=0), ("wide", "tall")),
}


def drawn(
    data: st.DataObject, operation: Operation, extent: int
) -> tuple[list[sj.SparseTensor], list[np.ndarray[Any, Any]]]:
    """Draw operands, and make their dense twins."""
    operands, twins = [], []
    for shape in operation.shapes:
        fmt = data.draw(st.sampled_from(FORMATS[shape]))
        axes = [points(extent) if is_long else range(FEW) for is_long in LONG[shape]]
        places = st.tuples(*(st.integers(0, len(axis) - 1) for axis in axes))
        few = 4 if fmt in ("ell", "jagged") else 9  # these have room for four in a row
        values = data.draw(st.dictionaries(places, st.integers(1, 9), max_size=few))
        twin = np.zeros([len(axis) for axis in axes])
        for place, value in values.items():
            twin[place] = value
        coords = [np.array([axis[p[d]] for p in values], np.int64) for d, axis in enumerate(axes)]
        whole = tuple(extent if is_long else FEW for is_long in LONG[shape])
        stored = np.array([*values.values()], float)
        operands.append(sj.from_coo(coords, stored, whole, format=MATRICES[fmt]))
        twins.append(twin)
    return operands, twins


def at_points(result: Any, shape: Sequence[int], operation: Operation, extent: int) -> Any:
    """Return the elements of a sparse result at the points of its long axes."""
    coo = sj.asarray(result).convert(sj.COO(2))
    start, stop = operation.cut
    kept = points(extent)[start:stop]
    number = {point - start: place for place, point in enumerate(kept)}
    found = np.zeros(shape)
    places = [
        [number[int(c)] if is_long else int(c) for c in coordinates]
        for is_long, coordinates in zip(operation.long, coo.coordinates, strict=True)
    ]
    found[tuple(places)] = coo.values
    return found


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_sparse_results(name: str, data: st.DataObject) -> None:
    operation, extent = OPERATIONS[name], data.draw(st.sampled_from(EXTENTS))
    operands, twins = drawn(data, operation, extent)
    output = data.draw(st.sampled_from(sorted(RESULTS if operation.fits else [*RESULTS][1:])))
    kernel = sj.sparse_jit(operation.function, target="interpreter", output=RESULTS[output])
    got, wanted = kernel(*operands), operation.function(*twins)
    found = got if isinstance(got, np.ndarray) else at_points(got, wanted.shape, operation, extent)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", REDUCTIONS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_reductions_along_long_axes(name: str, data: st.DataObject) -> None:
    operation = REDUCTIONS[name]
    operands, twins = drawn(data, operation, data.draw(st.sampled_from(EXTENTS)))
    got = sj.sparse_jit(operation.function, target="interpreter")(*operands)
    np.testing.assert_array_equal(got, operation.function(*twins))


@pytest.mark.parametrize("second", ["csr", "csc", "coo", "bsr"])
def test_compiled(second: str) -> None:
    """What was converted to rows of the long axis, or summed up in one, and is not any more."""
    A = sj.from_coo(([0, 2, 5], [1, 7, 2**40 - 1]), [1.0, 2.0, 4.0], (FEW, 2**40), format=sj.CSR)
    B = A.convert(sj.DCSR) if second == "csc" else A.convert(MATRICES[second])
    product = sj.sparse_jit(lambda A, B: A @ B.T, target="cpu")
    np.testing.assert_array_equal(product(A, B).to_numpy().diagonal(), [1, 0, 4, 0, 0, 16])
    C = sj.from_coo(([1, 2**40 - 1], [2**39, 3]), [1.0, 3.0], (2**40, 2**40), format=sj.DCSR)
    found = sj.sparse_jit(lambda A, C: A @ C, target="cpu")(A, C)
    assert sorted(found.values) == [1, 12]


# ---------------------------------------------------------------- what is refused


def rows(A: Any) -> Any:
    return (A @ A.T @ A).sum(axis=0)


def by_rows(A: Any) -> Any:
    return A.T.asformat(sj.CSR)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("fmt", ["csr", "coo", "dcsc"])
@pytest.mark.parametrize("function", [rows, by_rows])
def test_long_results_are_refused_before_any_work(
    function: Callable[..., Any], fmt: str, target: str
) -> None:
    number = np.arange(400)
    place = (number % FEW, number * (2**40 // 400))
    A = sj.from_coo(place, number + 1.0, (FEW, 2**40), format=MATRICES[fmt])
    kernel = sj.sparse_jit(function, target=target)
    with pytest.raises(OutOfMemoryError, match="8 TiB, more memory than there is; its extent co"):
        kernel(A)
    start = process_time()
    with pytest.raises(OutOfMemoryError, match="from axis 1 of argument 'A'") as caught:
        kernel(A)
    assert process_time() - start < 0.5
    assert "output=" in caught.value.hint
    assert caught.value.location is not None
