"""Guarded calls: what differs from what was seen is a miss, and nothing is touched then."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsejit as sj
from sparsejit.backends import MISS
from sparsejit.backends.llvm._guarded_call import is_supported, makes_arrays
from sparsejit.tensors import ready_of


class Sub(np.ndarray[Any, Any]):
    """A subclass, whose fields may mean anything."""


def misaligned(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return np.zeros(8 * count + 1, np.uint8)[1:].view(np.float64).reshape(shape)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.setflags(write=False)
    return array


def others(seen: np.ndarray[Any, Any]) -> dict[str, Any]:
    """What differs from a contiguous array of rank 2 in one respect."""
    rows, columns = seen.shape
    return {
        "no array": "text",
        "subclass": seen.copy().view(Sub),
        "dtype of one size": seen.view(np.int64),
        "other dtype": seen.astype(np.float32),
        "byte order": seen.astype(">f8"),
        "more rows": np.zeros((rows + 1, columns)),
        "fewer columns": np.zeros((rows, columns - 1)),
        "rank": np.zeros((rows, columns, 1)),
        "Fortran": np.asfortranarray(seen),
        "strided": np.zeros((rows, 2 * columns))[:, ::2],
        "misaligned": misaligned(seen.shape),
        "read-only": read_only(seen.copy()),
    }


def matmul() -> tuple[Any, list[Any], Any]:
    """The direct call of a product of dense matrices, its arguments, and its result."""
    return direct_product(np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2))


def direct_product(x: Any, y: Any) -> tuple[Any, list[Any], Any]:
    f = sj.sparse_jit(lambda x, y: x @ y)
    for _ in range(2):
        f(x, y)
    era = f._routes._era
    assert era is not None
    assert era.recent is not None
    return era.recent.direct, [x, y], x @ y


pytestmark = pytest.mark.skipif(not is_supported(), reason="another layout of objects")


def test_a_call_like_the_one_that_was_seen() -> None:
    direct, arrays, expected = matmul()
    made = [np.full(shape, np.nan, dtype) for shape, dtype in direct.made]
    assert direct.call(*(array.copy() for array in arrays), *made) == 0
    np.testing.assert_allclose(direct.wrapped(0, None, arrays, made)[0], expected)


@pytest.mark.parametrize("what", list(others(np.ones((3, 4)))))
@pytest.mark.parametrize("place", [0, 1])
def test_what_differs_is_a_miss(what: str, place: int) -> None:
    direct, arrays, _ = matmul()
    made = [np.full(shape, 7, dtype) for shape, dtype in direct.made]
    arrays[place] = others(arrays[place])[what]
    assert direct.call(*arrays, *made) == MISS
    assert all((array == 7).all() for array in made)


def test_another_number_of_arguments_is_a_miss() -> None:
    direct, arrays, _ = matmul()
    assert direct.call(*arrays) == MISS
    assert direct.call() == MISS
    assert direct.call(*arrays, *arrays) == MISS


def test_strides_are_compared_where_they_are_no_ones_own() -> None:
    wide, y = np.ones((3, 12)), np.ones((4, 2))
    direct, _, expected = direct_product(wide[:, :8:2], y)
    made = [np.zeros(shape, dtype) for shape, dtype in direct.made]
    assert direct.call(wide[:, 4::2], y, *made) == 0
    np.testing.assert_array_equal(made[0], expected)
    for other in (wide[:, ::3], wide[:, ::-3], np.ones((3, 8))[:, ::2]):
        assert direct.call(other, y, *made) == MISS


def added() -> tuple[Any, Any, Any]:
    """The direct call of a sum of sparse arrays, and the arguments."""
    x, y = (sp.csr_array(np.diag([1.0, 0, 3]) * k) for k in (1, 2))
    f = sj.sparse_jit(lambda x, y: x + y)
    for _ in range(2):
        f(x, y)
    era = f._routes._era
    assert era is not None
    assert era.recent is not None
    return era.recent.direct, [*ready(x), *ready(y)], x + y


def ready(x: Any) -> tuple[Any, ...]:
    found = ready_of(x, True)
    assert found is not None
    return found.buffers


@pytest.mark.skipif(not makes_arrays(), reason="another NumPy")
def test_arrays_of_the_kernels_memory() -> None:
    direct, arguments, expected = added()
    assert direct.makes_arrays
    assert direct.room == 0
    made = [np.empty(shape, dtype) for shape, dtype in direct.made]
    answer = direct.call(*arguments, *made)
    assert type(answer) is tuple
    for array in answer:
        alike = np.empty(array.shape, array.dtype)
        assert array.flags.num == alike.flags.num, "as NumPy's own, which owns its memory"
        assert array.strides == alike.strides
        assert array.base is None
        assert sys.getrefcount(array) == sys.getrefcount(alike) + 1  # that of the tuple
    _, indices, values = direct.wrapped(answer, None, arguments, made)
    assert indices.tolist() == expected.indices.tolist()
    assert values.tolist() == expected.data.tolist()


@pytest.mark.skipif(not makes_arrays(), reason="another NumPy")
def test_arrays_of_the_kernels_memory_are_resized_as_numpys_own() -> None:
    direct, arguments, expected = added()
    made = [np.empty(shape, dtype) for shape, dtype in direct.made]
    values = direct.call(*arguments, *made)[-1]
    for count in (1, 2, 5000, 0, 3):
        kept = values[:count].tolist()
        values.resize(count, refcheck=False)  # a RuntimeError where nothing is known of its memory
        assert values[: len(kept)].tolist() == kept
        assert not values[len(kept) :].any()
    again = direct.call(*arguments, *made)[-1]
    assert again.tolist() == expected.data.tolist()


@pytest.mark.skipif(not makes_arrays(), reason="another NumPy")
def test_dtypes_keep_their_references_and_memory_is_freed() -> None:
    direct, arguments, _ = added()
    made = [np.empty(shape, dtype) for shape, dtype in direct.made]
    kinds = [array.dtype for array in direct.call(*arguments, *made)]
    before = [sys.getrefcount(kind) for kind in kinds]
    for _ in range(100):
        direct.call(*arguments, *made)
    assert all(abs(sys.getrefcount(k) - n) < 50 for k, n in zip(kinds, before, strict=True))
    big = sp.random_array((3000, 3000), density=0.01, format="csr", rng=np.random.default_rng(1))
    f = sj.sparse_jit(lambda x: x + x)
    for _ in range(3):
        f(big)
    start = resident()
    for _ in range(200):  # a megabyte each
        f(big)
    assert resident() - start < 50_000


def resident() -> int:
    """The kilobytes of memory that this process has."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])
