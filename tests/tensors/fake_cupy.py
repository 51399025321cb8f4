"""A stand-in for CuPy and cupyx: device arrays that never turn into host arrays by themselves."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["fake_cupy"]


class ndarray:  # noqa: N801 - CuPy's name
    """A device array: host memory behind CuPy's interface; ``get`` is the only way back."""

    __module__ = "cupy"

    def __init__(self, host: Any) -> None:
        self._host = host
        self.data = SimpleNamespace(ptr=host.__array_interface__["data"][0])
        self.flags = SimpleNamespace(c_contiguous=host.flags.c_contiguous)
        for name in ("dtype", "shape", "ndim", "size", "strides"):
            setattr(self, name, getattr(host, name))

    __cuda_array_interface__ = {"version": 3}  # noqa: RUF012 - read, never written

    def __array__(self, *arguments: Any, **more: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def get(self) -> Any:
        return self._host.copy()

    def reshape(self, *shape: Any) -> ndarray:
        return ndarray(self._host.reshape(*shape))

    def __getitem__(self, key: Any) -> ndarray:
        return ndarray(self._host[key._host if isinstance(key, ndarray) else key])

    def __setitem__(self, key: Any, value: Any) -> None:
        plain = key._host if isinstance(key, ndarray) else key
        self._host[plain] = value._host if isinstance(value, ndarray) else value

    def __len__(self) -> int:
        return len(self._host)


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


def _compressed(name: str) -> type:
    def make(self: Any, parts: Any, shape: Any) -> None:
        self.data, self.indices, self.indptr = parts
        self.shape, self.format = shape, name
        assert all(isinstance(part, ndarray) for part in parts)

    return type(f"{name}_matrix", (), {"__module__": "cupyx.scipy.sparse._x", "__init__": make})


def _coordinates() -> type:
    def make(self: Any, parts: Any, shape: Any) -> None:
        self.data, (self.row, self.col) = parts
        self.shape, self.format = shape, "coo"

    return type("coo_matrix", (), {"__module__": "cupyx.scipy.sparse._coo", "__init__": make})


def fake_cupy(devices: int = 1, error: str = "") -> dict[str, Any]:
    """Return the modules ``cupy`` and ``cupyx.scipy.sparse``, for ``sys.modules``."""

    def count() -> int:
        if error:
            raise CUDARuntimeError(error)
        return devices

    cupy: Any = ModuleType("cupy")
    cupy.ndarray = ndarray
    cupy.asarray = lambda a: a if isinstance(a, ndarray) else ndarray(np.array(a))
    cupy.from_dlpack = lambda a: ndarray(a.array)
    cupy.cuda = SimpleNamespace(
        runtime=SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    )
    sparse: Any = ModuleType("cupyx.scipy.sparse")
    sparse.csr_matrix, sparse.csc_matrix = _compressed("csr"), _compressed("csc")
    sparse.coo_matrix = _coordinates()
    names = ("cupyx", "cupyx.scipy")
    return {"cupy": cupy, "cupyx.scipy.sparse": sparse} | {n: ModuleType(n) for n in names}
