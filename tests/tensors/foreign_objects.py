"""Stand-ins for objects of pydata sparse and torch: the attributes that the adapters read.

They let the adapters be tested where these libraries are not installed; where they are, the same
tests run on the real objects too.
"""

from types import ModuleType
from typing import Any

import numpy as np

from tests.tensors.cases import Array

__all__ = ["DlpackOnly", "fake_pydata", "fake_torch"]


class DlpackOnly:
    """An object that speaks DLPack and nothing else."""

    def __init__(self, array: Array, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class COO:
    """As pydata's: coords (ndim, nnz), data, shape, fill_value."""

    __module__ = "sparse"

    def __init__(self, coords: Any, data: Any, shape: tuple[int, ...], fill_value: Any = 0) -> None:
        self.coords, self.data = np.asarray(coords), np.asarray(data)
        self.shape, self.ndim, self.fill_value = shape, len(shape), fill_value

    @staticmethod
    def from_numpy(array: Array) -> "COO":
        at = np.nonzero(array)
        return COO(np.array(at), array[at], array.shape)


class GCXS:
    """As pydata's: compressed rows or columns; higher ranks are converted through COO."""

    __module__ = "sparse"
    fill_value = 0

    def __init__(self, array: Array, compressed_axes: tuple[int, ...]) -> None:
        self.coo, self.shape, self.ndim = COO.from_numpy(array), array.shape, array.ndim
        self.compressed_axes = compressed_axes
        if self.ndim == 2:
            turned = array if compressed_axes == (0,) else array.T
            rows, self.indices = np.nonzero(turned)
            self.indptr = np.searchsorted(rows, np.arange(len(turned) + 1))
            self.data = turned[rows, self.indices]

    @staticmethod
    def from_numpy(array: Array, compressed_axes: tuple[int, ...] = (0,)) -> "GCXS":
        return GCXS(array, compressed_axes)

    def tocoo(self) -> COO:
        return self.coo


class DOK:
    """As pydata's: converted through COO."""

    __module__ = "sparse"

    def __init__(self, coo: COO) -> None:
        self.coo, self.shape, self.ndim = coo, coo.shape, coo.ndim

    @staticmethod
    def from_numpy(array: Array) -> "DOK":
        return DOK(COO.from_numpy(array))

    def to_coo(self) -> COO:
        return self.coo


def fake_pydata() -> Any:
    """A module with pydata's class names."""
    module: Any = ModuleType("sparse")
    module.COO, module.GCXS, module.DOK = COO, GCXS, DOK
    return module


class Tensor:
    """As a dense torch tensor on the CPU."""

    __module__ = "torch"
    layout = "torch.strided"
    is_cuda = False
    requires_grad = False

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape, self.dtype = array.shape, f"torch.{array.dtype.name}"

    def detach(self) -> "Tensor":
        return self

    def view(self, dtype: Any) -> "Tensor":
        return Tensor(self.array.view(dtype))

    def numpy(self) -> Array:
        return self.array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class SparseCompressed:
    """As a torch tensor of layout sparse_csr, sparse_csc or sparse_bsr."""

    __module__ = "torch"

    def __init__(self, layout: str, positions: Any, indices: Any, values: Any, shape: Any) -> None:
        self.layout, self.shape = f"torch.{layout}", shape
        self.parts = tuple(Tensor(np.asarray(part)) for part in (positions, indices, values))

    def crow_indices(self) -> Tensor:
        return Tensor(self.parts[0].array)

    ccol_indices = crow_indices

    def col_indices(self) -> Tensor:
        return Tensor(self.parts[1].array)

    row_indices = col_indices

    def values(self) -> Tensor:
        return Tensor(self.parts[2].array)


class SparseCoo:
    """As a torch tensor of layout sparse_coo, perhaps with dense dimensions behind."""

    __module__ = "torch"
    layout = "torch.sparse_coo"

    def __init__(self, indices: Any, values: Any, shape: Any) -> None:
        self.shape, self.parts = shape, (np.asarray(indices), np.asarray(values))

    def _indices(self) -> Tensor:
        return Tensor(self.parts[0])

    def _values(self) -> Tensor:
        return Tensor(self.parts[1])

    def is_coalesced(self) -> bool:
        return False


def fake_torch() -> Any:
    """A module with the functions of torch that the tests use."""
    module: Any = ModuleType("torch")
    module.from_numpy = Tensor
    module.int16 = np.int16
    module.sparse_coo_tensor = lambda at, values, size: SparseCoo(_plain(at), _plain(values), size)
    for layout in ("csr", "csc", "bsr"):

        def make(p: Any, i: Any, v: Any, size: Any, layout: str = layout) -> SparseCompressed:
            return SparseCompressed(f"sparse_{layout}", _plain(p), _plain(i), _plain(v), size)

        setattr(module, f"sparse_{layout}_tensor", make)
    return module


def _plain(part: Any) -> Any:
    return part.array if isinstance(part, Tensor) else part
