"""Device arrays, described and made; on a stand-in for CuPy, and on a GPU with ``-m gpu``."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse

from sparsejit.errors import DeviceError, TensorTypeError, UnsupportedError
from sparsejit.formats import COO, CSC, CSR, DCSR, DIA, Dense
from sparsejit.tensors import (
    SparseTensor,
    asarray,
    describe,
    from_dense,
    split_buffers,
    to_device,
    wrap_result,
)
from tests.tensors.fake_cupy import fake_cupy
from tests.tensors.foreign_objects import DlpackOnly

sp: Any = scipy.sparse
DENSE = np.array([[0, 1.0, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])


@pytest.fixture(params=["stand-in", pytest.param("real", marks=pytest.mark.gpu)])
def cupy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "real":
        yield importlib.import_module("cupy")
        return
    for name, module in fake_cupy().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield sys.modules["cupy"]


def back(operand: Any) -> Any:
    """The dense array that an operand on the device says."""
    host = [buffer.get() for buffer in operand.buffers]
    structure, values = split_buffers(operand.format, operand.shape, host)
    parts = (structure.positions, structure.coordinates, values, operand.fill_value)
    return SparseTensor(operand.format, operand.shape, *parts).to_numpy()


def test_dense_device_arrays(cupy: Any) -> None:
    array = cupy.asarray(DENSE)
    operand = describe(array)
    assert (operand.kind, operand.on_device, operand.format) == ("cupy", True, Dense(2))
    assert operand.buffers[0] is array
    assert operand.writable
    assert asarray(array) is array
    assert to_device(array) is array
    with pytest.raises(UnsupportedError, match="not converted to a sparse format on the device"):
        asarray(array, CSR)


def test_to_device_of_host_arrays(cupy: Any) -> None:
    moved = to_device(DENSE)
    assert isinstance(moved, cupy.ndarray)
    np.testing.assert_array_equal(moved.get(), DENSE)
    with pytest.raises(UnsupportedError, match="CuPy has no arrays of bfloat16"):
        to_device(np.ones(3, ml_dtypes.bfloat16))


@pytest.mark.parametrize(("name", "fmt"), [("csr", CSR), ("csc", CSC), ("coo", COO(2))])
def test_cupyx_matrices(cupy: Any, name: str, fmt: Any) -> None:
    moved = to_device(sp.csr_array(DENSE).asformat(name))
    assert type(moved).__module__.startswith("cupyx")
    operand = describe(moved)
    assert (operand.kind, operand.on_device, operand.format) == ("cupyx", True, fmt)
    assert operand.values is moved.data
    assert describe(moved) is operand
    np.testing.assert_array_equal(back(operand), DENSE)
    assert to_device(moved) is moved


def test_unsorted_cupyx_matrices(cupy: Any) -> None:
    sparse = importlib.import_module("cupyx.scipy.sparse")
    parts = [
        np.array([1.0, 2.0, 3.0]),
        np.array([2, 0, 1], np.int32),
        np.array([0, 2, 3], np.int32),
    ]
    made = sparse.csr_matrix(tuple(map(cupy.asarray, parts)), shape=(2, 3))
    operand = describe(made)
    assert back(operand).tolist() == [[2, 0, 1], [0, 3, 0]]
    operand.write_values(cupy.asarray(np.array([7.0, 8.0, 9.0])))
    assert made.data.get().tolist() == [8, 7, 9]
    parts[1] = np.array([2, 2, 1], np.int32)
    twice = sparse.csr_matrix(tuple(map(cupy.asarray, parts)), shape=(2, 3))
    with pytest.raises(UnsupportedError, match="with duplicate entries is not read directly"):
        describe(twice)
    parts[1] = np.array([2, 5, 1], np.int32)
    damaged = sparse.csr_matrix(tuple(map(cupy.asarray, parts)), shape=(2, 3))
    with pytest.raises(ValueError, match=r"coordinates\[1\]\[1\] is 5, outside 0 .. 2"):
        describe(damaged)


@pytest.mark.parametrize("fmt", [CSR, DCSR, DIA], ids=str)
def test_sparse_tensors_on_the_device(cupy: Any, fmt: Any) -> None:
    host = from_dense(DENSE, fmt)
    moved = to_device(host)
    assert isinstance(moved, SparseTensor)
    assert isinstance(moved.values, cupy.ndarray)
    operand = describe(moved)
    assert (operand.kind, operand.on_device) == ("sparse-tensor", True)
    np.testing.assert_array_equal(back(operand), DENSE)
    np.testing.assert_array_equal(moved.to_numpy(), DENSE)
    assert moved.nse == host.nse
    assert repr(moved) == repr(host)
    checked = SparseTensor(fmt, moved.shape, moved.positions, moved.coordinates, moved.values)
    assert checked.nse == host.nse
    wrapped = wrap_result(fmt, moved.shape, operand.buffers, like="scipy")
    assert isinstance(wrapped, SparseTensor)


def test_damage_on_the_device_is_found(cupy: Any) -> None:
    good = to_device(from_dense(DENSE, CSR))
    bad = cupy.asarray(np.array([1, 9, 0, 2], np.int32))
    with pytest.raises(ValueError, match=r"coordinates\[1\]\[1\] is 9, outside 0 .. 3"):
        SparseTensor(CSR, good.shape, good.positions, (None, bad), good.values)


def test_to_cupy(cupy: Any) -> None:
    for fmt in (CSR, CSC, COO(2)):
        made = from_dense(DENSE, fmt).to_cupy()
        np.testing.assert_array_equal(back(describe(made)), DENSE)
    np.testing.assert_array_equal(from_dense(DENSE, Dense(2)).to_cupy().get(), DENSE)
    for tensor, reason in (
        (from_dense(DENSE, DCSR), "SciPy has no class for this format"),
        (from_dense(DENSE, DIA), "cupyx has csr, csc and coo matrices"),
        (from_dense(DENSE.astype(np.int64), CSR), "cupyx has csr, csc and coo matrices"),
        (from_dense(DENSE, CSR, 1.0), "fill value 0, not 1.0"),
    ):
        with pytest.raises(TensorTypeError, match=reason):
            tensor.to_cupy()


def test_objects_of_other_libraries_on_the_device(cupy: Any) -> None:
    if not hasattr(cupy, "__version__"):  # the stand-in
        operand = describe(DlpackOnly(DENSE, (2, 0)))
        assert (operand.kind, operand.on_device) == ("dlpack", True)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy() -> None:
    uses: list[Callable[[], Any]] = [
        lambda: to_device(DENSE),
        lambda: to_device(from_dense(DENSE, DCSR)),
        lambda: from_dense(DENSE, CSR).to_cupy(),
    ]
    for use in uses:
        with pytest.raises(DeviceError) as caught:
            use()
        assert str(caught.value) == (
            "CuPy cannot be imported: No module named 'cupy'\n"
            "  install it with pip install 'sparsejit[cuda13]' (or cuda12)"
        )


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (fake_cupy(0), "there is no CUDA device\n  run on the CPU with target='cpu'"),
        (
            fake_cupy(error="cudaErrorNoDevice: no CUDA-capable device is detected"),
            "the CUDA driver gives no device: cudaErrorNoDevice: no CUDA-capable device is "
            "detected\n  install a driver for the GPU, or run on the CPU with target='cpu'",
        ),
    ],
)
def test_without_a_device(
    modules: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(DeviceError) as caught:
        to_device(DENSE)
    assert str(caught.value) == message
