"""Objects of other libraries: pydata sparse, torch, DLPack, plain scalars and odd NumPy arrays."""

import importlib.util
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sparsejit.errors import DeviceError, TensorTypeError, UnsupportedError
from sparsejit.formats import BSR, COO, CSC, CSR, Batched, Dense, Format
from sparsejit.tensors import VALUE_TYPES, asarray, describe
from tests.tensors.foreign_objects import DlpackOnly, fake_pydata, fake_torch
from tests.tensors.test_scipy import dense_of

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # torch calls its support a beta
DENSE = np.array([[0, 1.0, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 5]])
BLOCKS = np.kron(np.array([[0, 1], [1, 1]]), np.array([[1.0, 2], [3, 4]]))


@pytest.fixture(params=["stand-in", "real"])
def sparse(request: pytest.FixtureRequest) -> Any:
    return fake_pydata() if request.param == "stand-in" else pytest.importorskip("sparse")


@pytest.fixture(params=["stand-in", "real"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "real":
        return pytest.importorskip("torch")
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


# ---- pydata


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pydata_coo(sparse: Any, rank: int) -> None:
    array = np.arange(3.0**rank).reshape((3,) * rank) % 2
    made = sparse.COO.from_numpy(array)
    operand = describe(made)
    assert (operand.kind, operand.format) == ("pydata", COO(rank))
    assert np.shares_memory(operand.values, made.data)
    np.testing.assert_array_equal(dense_of(operand), array)
    made.data[0] = 7
    np.testing.assert_array_equal(dense_of(describe(made)).max(), 7)


def test_pydata_fill_value(sparse: Any) -> None:
    made = sparse.COO(np.array([[1], [2]]), np.array([5.0]), (2, 3), fill_value=np.inf)
    operand = describe(made)
    assert operand.fill_value == np.inf
    assert dense_of(operand).tolist() == [[np.inf] * 3, [np.inf, np.inf, 5.0]]
    assert asarray(made).fill_value == np.inf


@pytest.mark.parametrize(("axes", "fmt"), [((0,), CSR), ((1,), CSC)])
def test_pydata_gcxs(sparse: Any, axes: tuple[int, ...], fmt: Format) -> None:
    made = sparse.GCXS.from_numpy(DENSE, compressed_axes=axes)
    operand = describe(made)
    assert operand.format == fmt
    assert np.shares_memory(operand.values, made.data)
    np.testing.assert_array_equal(dense_of(operand), DENSE)


def test_pydata_classes_that_are_converted(sparse: Any) -> None:
    cube = np.arange(27.0).reshape(3, 3, 3) % 2
    for made in (sparse.GCXS.from_numpy(cube), sparse.DOK.from_numpy(cube)):
        operand = describe(made)
        assert not operand.writable
        np.testing.assert_array_equal(dense_of(operand), cube)


def test_pydata_classes_that_are_not_read() -> None:
    strange = type("Strange", (), {"__module__": "sparse", "ndim": 2})()
    with pytest.raises(UnsupportedError, match="class Strange and rank 2 is not read"):
        describe(strange)


# ---- torch


@pytest.mark.parametrize("dtype", [t for t in VALUE_TYPES if t.name != "bfloat16"], ids=str)
def test_torch_dense(torch: Any, dtype: np.dtype[Any]) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    operand = describe(torch.from_numpy(array))
    assert (operand.kind, operand.format, operand.dtype) == ("torch", Dense(2), dtype)
    assert np.shares_memory(operand.buffers[0], array)
    np.testing.assert_array_equal(operand.buffers[0], array)


def test_torch_bfloat16(torch: Any) -> None:
    array = np.arange(3).astype(ml_dtypes.bfloat16)
    if hasattr(torch, "bfloat16"):
        made = torch.arange(3).to(torch.bfloat16)
    else:
        made = torch.from_numpy(array)
    operand = describe(made)
    assert operand.dtype.name == "bfloat16"
    np.testing.assert_array_equal(operand.buffers[0], array)


def test_torch_coo(torch: Any) -> None:
    at = np.array([[1, 0, 1], [2, 1, 2]])
    made = torch.sparse_coo_tensor(
        torch.from_numpy(at), torch.from_numpy(np.array([1.0, 2.0, 3.0])), size=(2, 3)
    )
    operand = describe(made)
    assert (operand.kind, operand.format) == ("torch", COO(2))
    assert dense_of(operand).tolist() == [[0, 2, 0], [0, 0, 4]]
    assert dense_of(describe(made)).tolist() == [[0, 2, 0], [0, 0, 4]]


def test_torch_coo_with_dense_dimensions(torch: Any) -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    made = torch.sparse_coo_tensor(
        torch.from_numpy(np.array([[2, 0]])), torch.from_numpy(values), size=(3, 2)
    )
    operand = describe(made)
    assert str(operand.format) == "(d0, d1) -> (d0 : compressed, d1 : dense)"
    assert dense_of(operand).tolist() == [[3, 4], [0, 0], [1, 2]]


def compressed_parts(torch: Any, array: Any) -> list[Any]:
    rows, columns = np.nonzero(array)
    indptr = np.searchsorted(rows, np.arange(len(array) + 1))
    return [torch.from_numpy(part) for part in (indptr, columns, array[rows, columns])]


def test_torch_csr_and_csc(torch: Any) -> None:
    operand = describe(torch.sparse_csr_tensor(*compressed_parts(torch, DENSE), size=(4, 4)))
    assert operand.format == CSR
    np.testing.assert_array_equal(dense_of(operand), DENSE)
    turned = compressed_parts(torch, np.ascontiguousarray(DENSE.T))
    operand = describe(torch.sparse_csc_tensor(*turned, size=(4, 4)))
    assert operand.format == CSC
    np.testing.assert_array_equal(dense_of(operand), DENSE)


def test_torch_batched_csr(torch: Any) -> None:
    other = DENSE[::-1].copy()
    pairs = zip(compressed_parts(torch, DENSE), compressed_parts(torch, other), strict=True)
    stacked = [torch.from_numpy(np.stack([a.numpy(), b.numpy()])) for a, b in pairs]
    made = torch.sparse_csr_tensor(*stacked, size=(2, 4, 4))
    operand = describe(made)
    assert operand.format == Batched(CSR)
    np.testing.assert_array_equal(dense_of(operand), np.stack([DENSE, other]))


def test_torch_bsr(torch: Any) -> None:
    blocks = np.array([[1.0, 2], [3, 4]])
    parts = (np.array([0, 1, 3]), np.array([1, 0, 1]), np.stack([blocks] * 3))
    made = torch.sparse_bsr_tensor(*map(torch.from_numpy, parts), size=(4, 4))
    operand = describe(made)
    assert operand.format == BSR(2, 2)
    np.testing.assert_array_equal(dense_of(operand), BLOCKS)


def test_torch_objects_that_are_refused(torch: Any) -> None:
    learned = torch.from_numpy(np.ones(3))
    learned.requires_grad = True
    with pytest.raises(UnsupportedError, match="requires a gradient"):
        describe(learned)
    strange = type("Tensor", (), {"__module__": "torch", "layout": "torch.mkldnn"})()
    with pytest.raises(UnsupportedError, match=r"layout torch\.mkldnn are not read"):
        describe(strange)


# ---- DLPack and the CUDA array interface


def test_dlpack_shares_memory() -> None:
    array = np.arange(6.0).reshape(2, 3)
    operand = describe(DlpackOnly(array))
    assert (operand.kind, operand.on_device) == ("dlpack", False)
    assert np.shares_memory(operand.buffers[0], array)


def test_dlpack_that_refuses() -> None:
    with pytest.raises(TensorTypeError, match="DlpackOnly cannot be read through DLPack"):
        describe(DlpackOnly(np.zeros(2, ml_dtypes.bfloat16)))
    with pytest.raises(UnsupportedError, match="DLPack device type 8 is not supported"):
        describe(DlpackOnly(np.zeros(2), (8, 0)))


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_device_objects_need_cupy() -> None:
    with pytest.raises(DeviceError, match="CuPy cannot be imported"):
        describe(DlpackOnly(np.zeros(2), (2, 0)))
    on_device = type("OnDevice", (), {"__cuda_array_interface__": {}})()
    with pytest.raises(DeviceError, match="CuPy cannot be imported"):
        describe(on_device)


# ---- NumPy


@pytest.mark.parametrize("dtype", VALUE_TYPES, ids=str)
def test_numpy_arrays_and_scalars(dtype: np.dtype[Any]) -> None:
    array = np.ones((2, 3), dtype)
    operand = describe(array)
    assert (operand.kind, operand.format, operand.shape) == ("numpy", Dense(2), (2, 3))
    assert operand.buffers[0] is array
    assert operand.is_shared
    assert operand.fill_value.dtype == dtype
    scalar = describe(array[0, 0])
    assert (scalar.kind, scalar.dtype, scalar.shape) == ("numpy-scalar", dtype, ())
    assert not scalar.writable
    assert describe(np.array(1, dtype)).kind == "numpy"


def test_numpy_arrays_of_any_strides() -> None:
    array = np.arange(24.0).reshape(4, 6)[::-2, 1::3]
    operand = describe(array)
    assert operand.buffers[0] is array
    operand.write_values(np.zeros((2, 2)))
    assert array.tolist() == [[0, 0], [0, 0]]
    locked = np.ones(3)
    locked.flags.writeable = False
    assert not describe(locked).writable


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "bool"), (3, "int64"), (-3, "int64"), (2**63, "uint64"), (2.5, "float64"),
     (1j, "complex128")],
)  # fmt: skip
def test_python_scalars(value: Any, name: str) -> None:
    operand = describe(value)
    assert (operand.kind, operand.dtype.name) == ("python-scalar", name)
    assert operand.buffers[0].item() == value


def test_objects_that_are_no_tensors() -> None:
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(TensorTypeError, match="does not fit 64 bits"):
            describe(number)
    with pytest.raises(TensorTypeError, match="a masked array is no tensor"):
        describe(np.ma.array([1.0, 2.0], mask=[True, False]))
    for array in (np.array(["a"]), np.array([None]), np.zeros(2, "i4,f8"), np.zeros(2, ">f4")):
        with pytest.raises(TensorTypeError, match="the array has dtype"):
            describe(array)
    for thing in ([1, 2], "x", None, {}, object()):
        with pytest.raises(TensorTypeError, match="is no tensor"):
            describe(thing)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_numpy_matrix_is_a_plain_matrix() -> None:
    made = np.matrix([[1.0, 2.0]])
    operand = describe(made)
    assert type(operand.buffers[0]) is np.ndarray
    assert np.shares_memory(operand.buffers[0], made)
