"""A library in the place of cuSPARSE: SpMV and SpMM by NumPy, from descriptors and addresses alone.

It knows nothing of sparsejit's operands: what is computed is what the arguments of the calls say,
with strides and counts as the documentation defines them. Every element that is read or written
must lie in an array that the test named.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

__all__ = ["StandIn", "StandInRuntime"]

SUCCESS, INVALID_VALUE, NOT_SUPPORTED = 0, 3, 10
ROW_ORDER = 2
INDICES: Mapping[int, Any] = {2: np.int32, 3: np.int64}
VALUES: Mapping[int, Any] = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}
WITH_BATCHES = {"csr": (4, 6), "coo": (1, 2, 5)}
"""The algorithms of SpMM that take batches, by number, as its documentation lists them."""

Array = NDArray[Any]


@dataclass(slots=True)
class _Sparse:
    """Arrays: offsets (of rows in CSR, of nothing in COO), rows (in COO), columns, values."""

    kind: str
    shape: tuple[int, int]
    stored: int
    addresses: tuple[int, ...]
    index: Any
    value: Any
    batches: int = 1
    strides: tuple[int, int, int] = (0, 0, 0)


@dataclass(slots=True)
class _Dense:
    rows: int
    columns: int
    leading: int
    address: int
    value: Any
    order: int
    batches: int = 1
    stride: int = 0


@dataclass(slots=True)
class StandIn:
    """``arrays`` are all memory that there is; ``version`` is what the library says of itself."""

    arrays: Sequence[Array]
    version: tuple[int, int] = (12, 6)
    made: dict[int, Any] = field(default_factory=dict)
    algorithms: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cusparse"):
            raise AttributeError(name)
        return _Function(getattr(self, "_" + name.removeprefix("cusparse")))

    # ------------------------------------------------------------ memory

    def _view(
        self, address: int, dtype: Any, shape: Sequence[int], strides: Sequence[int]
    ) -> Array:
        """Return elements at an address; strides count elements."""
        size = np.dtype(dtype).itemsize
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        end = address + (last + 1) * size
        inside = any(
            a.ctypes.data <= address and end <= a.ctypes.data + _span(a) for a in self.arrays
        )
        assert inside, "an element outside of all arrays"
        whole = (ctypes.c_byte * (end - address)).from_address(address)
        flat = np.frombuffer(whole, dtype)
        return as_strided(flat, shape, [stride * size for stride in strides])

    # ------------------------------------------------------------ descriptors

    def _note(self, target: ctypes.c_void_p, what: Any) -> int:
        target.value = 1000 + len(self.made)
        self.made[target.value] = what
        return SUCCESS

    def _GetProperty(self, kind: int, target: Any) -> int:
        target._obj.value = self.version[kind]
        return SUCCESS

    def _CreateCsr(self, target: Any, rows: int, columns: int, stored: int, *rest: int) -> int:
        *addresses, offsets, index, _, value = rest
        assert offsets == index
        return self._note(target, _sparse("csr", (rows, columns), stored, addresses, index, value))

    def _CreateCoo(self, target: Any, rows: int, columns: int, stored: int, *rest: int) -> int:
        *addresses, index, _, value = rest
        return self._note(target, _sparse("coo", (rows, columns), stored, addresses, index, value))

    def _CreateDnMat(self, target: Any, *rest: int) -> int:
        rows, columns, leading, address, value, order = rest
        return self._note(target, _Dense(rows, columns, leading, address, VALUES[value], order))

    def _CreateDnVec(self, target: Any, count: int, address: int, value: int) -> int:
        return self._note(target, _Dense(count, 1, count, address, VALUES[value], 1))

    def _CsrSetStridedBatch(self, descriptor: Any, count: int, offsets: int, entries: int) -> int:
        matrix = self.made[descriptor.value]
        assert matrix.kind == "csr"
        matrix.batches, matrix.strides = count, (offsets, entries, entries)
        return SUCCESS if count > 0 else INVALID_VALUE

    def _CooSetStridedBatch(self, descriptor: Any, count: int, stride: int) -> int:
        matrix = self.made[descriptor.value]
        assert matrix.kind == "coo"
        matrix.batches, matrix.strides = count, (stride,) * 3
        return SUCCESS if count > 0 else INVALID_VALUE

    def _DnMatSetStridedBatch(self, descriptor: Any, count: int, stride: int) -> int:
        matrix = self.made[descriptor.value]
        lines = matrix.rows if matrix.order == ROW_ORDER else matrix.columns
        if count < 1 or (stride and stride < matrix.leading * lines):
            return INVALID_VALUE
        matrix.batches, matrix.stride = count, stride
        return SUCCESS

    def _DestroySpMat(self, descriptor: Any) -> int:
        del self.made[descriptor.value]
        return SUCCESS

    _DestroyDnMat = _DestroyDnVec = _DestroySpMat

    # ------------------------------------------------------------ products

    def _SpMV_bufferSize(self, *arguments: Any) -> int:
        arguments[-1]._obj.value = 64
        return SUCCESS

    def _SpMM_bufferSize(self, *arguments: Any) -> int:
        matrix, algorithm = self.made[arguments[4].value], arguments[9]
        arguments[-1]._obj.value = 64
        if matrix.batches > 1 and algorithm not in WITH_BATCHES[matrix.kind]:
            return NOT_SUPPORTED
        return SUCCESS

    def _SpMV(self, handle: Any, op: int, *rest: Any) -> int:
        alpha, matrix, factor, beta, output, kind, algorithm, _ = rest
        self.algorithms.append(algorithm)
        left, right, target = (self.made[part.value] for part in (matrix, factor, output))
        scales = self._scalar(alpha, kind), self._scalar(beta, kind)
        return self._products(op, left, right, target, *scales)

    def _SpMM(self, handle: Any, op: int, other: int, *rest: Any) -> int:
        alpha, matrix, factor, beta, output, kind, algorithm, _ = rest
        assert other == 0
        self.algorithms.append(algorithm)
        left, right, target = (self.made[part.value] for part in (matrix, factor, output))
        scales = self._scalar(alpha, kind), self._scalar(beta, kind)
        return self._products(op, left, right, target, *scales)

    def _scalar(self, buffer: Any, kind: int) -> Any:
        return np.frombuffer(bytes(buffer)[: np.dtype(VALUES[kind]).itemsize], VALUES[kind])[0]

    def _products(
        self, op: int, matrix: _Sparse, factor: _Dense, output: _Dense, alpha: Any, beta: Any
    ) -> int:
        assert matrix.batches == factor.batches == output.batches
        assert output.stride or output.batches == 1
        for number in range(output.batches):
            left = self._matrix(matrix, number)
            left = left.T if op else left
            target = self._dense(output, number)
            product = alpha * (left @ self._dense(factor, number))
            target[...] = product if beta == 0 else product + beta * target
        return SUCCESS

    def _dense(self, dense: _Dense, number: int) -> Array:
        strides = (dense.leading, 1) if dense.order == ROW_ORDER else (1, dense.leading)
        start = dense.address + number * dense.stride * np.dtype(dense.value).itemsize
        return self._view(start, dense.value, (dense.rows, dense.columns), strides)

    def _matrix(self, matrix: _Sparse, number: int) -> Array:
        lengths = (matrix.shape[0] + 1 if matrix.kind == "csr" else matrix.stored, matrix.stored)
        kinds = (matrix.index, matrix.index, matrix.value)
        first, columns, values = (
            self._view(address + number * stride * np.dtype(kind).itemsize, kind, (length,), (1,))
            for address, stride, kind, length in zip(
                matrix.addresses, matrix.strides, kinds, (*lengths, matrix.stored), strict=True
            )
        )
        if matrix.kind == "csr":
            assert first[0] == 0
            assert first[-1] == matrix.stored, "a batch that is not full"
            first = np.repeat(np.arange(matrix.shape[0]), np.diff(first))
        dense = np.zeros(matrix.shape, matrix.value)
        np.add.at(dense, (first, columns), values)
        return dense


@dataclass(slots=True)
class _Function:
    """A function of the library; its types are set before each call, as for one of ``ctypes``."""

    function: Callable[..., int]
    argtypes: Any = None
    restype: Any = None

    def __call__(self, *arguments: Any) -> int:
        assert len(arguments) == len(self.argtypes)
        return self.function(*arguments)


def _sparse(
    kind: str, shape: tuple[int, int], stored: int, addresses: Sequence[int], *types: int
) -> _Sparse:
    index, value = types
    return _Sparse(kind, shape, stored, tuple(addresses), INDICES[index], VALUES[value])


def _span(array: Array) -> int:
    """Return how many bytes an array spans, from its first element to its last."""
    steps = zip(array.shape, array.strides, strict=True)
    return sum((n - 1) * s for n, s in steps) + array.itemsize if array.size else 0


@dataclass(slots=True)
class StandInRuntime:
    """What a call may ask of a device, as far as products ask."""

    standing: StandIn
    stream: int = 0

    def library(self, name: str) -> Any:
        assert name == "cusparse"
        return self.standing

    def handle(self, name: str) -> int:
        return 1

    def allocate(self, nbytes: int) -> int:
        raise AssertionError("products allocate nothing")

    def copy(self, target: int, source: int, nbytes: int) -> None:
        raise AssertionError("products copy nothing")

    def read(self, pointer: int, nbytes: int) -> bytes:
        raise AssertionError("products read nothing")

    def write(self, pointer: int, data: bytes) -> None:
        raise AssertionError("products write nothing")
