"""Calling a compiled function: from Python objects to a block of words, and back to arrays.

In: the arguments of a kernel. Out: its results. Arrays travel as the addresses of their objects,
whose fields generated code reads itself. Results whose extents are known beforehand are made by
NumPy; the others come from the function, and are freed with the last array that shows them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.backends.llvm._arrays import Layout
from sparsejit.backends.llvm._expand_assembly import FULL
from sparsejit.backends.llvm._interface import OBJECT_HEAD, Interface
from sparsejit.backends.llvm._memory import free_function, new_array
from sparsejit.backends.llvm._own_memory import NO_MEMORY
from sparsejit.errors import TensorTypeError
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loops import Binary, DimOf, Expr, Lit, Memref, Var
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.types import DType

__all__ = [
    "Arguments",
    "Results",
    "failure",
    "object_layout_is_known",
    "scalar_format",
    "scalar_words",
]

_BEHAVED = 0x101
"""The flags of an array that is contiguous and aligned."""
_ALIGNED = 0x100
_FULL = dict(FULL.values())
_FORMATS = {
    DType.BOOL: "?7x8x", DType.INT8: "b7x8x", DType.INT16: "h6x8x", DType.INT32: "i4x8x",
    DType.INT64: "q8x", DType.UINT8: "B7x8x", DType.UINT16: "H6x8x", DType.UINT32: "I4x8x",
    DType.UINT64: "Q8x", DType.FLOAT16: "H6x8x", DType.BFLOAT16: "H6x8x", DType.FLOAT32: "f4x8x",
    DType.FLOAT64: "d8x", DType.COMPLEX64: "ff8x", DType.COMPLEX128: "dd",
}  # fmt: skip


def object_layout_is_known() -> bool:
    """Whether arrays have their fields where generated code looks for them."""
    probe = np.empty((3, 5), np.int16)[::2]
    base = id(probe) + OBJECT_HEAD
    words = (ctypes.c_int64 * 4).from_address(base)
    if words[0] != probe.ctypes.data or words[1] & 0xFFFFFFFF != probe.ndim:
        return False
    shape = tuple((ctypes.c_int64 * 2).from_address(words[2]))
    return shape == probe.shape and tuple((ctypes.c_int64 * 2).from_address(words[3])) == (
        probe.strides
    )


class Arguments:
    """The parameters of a function: how their arguments are checked and laid down in a block."""

    __slots__ = ("_arrays", "_count", "_dtypes", "_others", "_ranks", "params")

    def __init__(self, params: tuple[Memref | Var, ...]) -> None:
        self.params = params
        places = range(len(params))
        self._count = len(params)
        self._arrays = [place for place in places if isinstance(params[place], Memref)]
        self._others = [
            place
            for place in places
            if isinstance(params[place], Var) and params[place].dtype is not DType.INT64
        ]
        self._dtypes = [numpy_dtype(param.dtype) for param in params]
        self._ranks = [param.rank if isinstance(param, Memref) else -1 for param in params]

    @property
    def format(self) -> str:
        """The layout of the words, in the notation of ``struct``."""
        return "".join(
            "q" if isinstance(param, Memref) else _FORMATS[param.dtype] for param in self.params
        )

    def words(self, arguments: Sequence[object]) -> tuple[list[Any], tuple[int, ...]]:
        """Return what is packed, and the flags of the arrays.

        Raises ``TensorTypeError`` for an array of another dtype or rank than its parameter.
        """
        if len(arguments) != self._count:
            raise TensorTypeError(f"the kernel takes {self._count} arguments, not {len(arguments)}")
        packed: list[Any] = list(arguments)
        flags: list[int] = []
        dtypes, ranks = self._dtypes, self._ranks
        for place in self._arrays:
            array: Any = arguments[place]
            if (
                type(array) is not np.ndarray
                or array.dtype is not dtypes[place]
                or array.ndim != ranks[place]
            ):
                self._check(place, array)
            flags.append(array.flags.num)
            packed[place] = id(array)
        for place in self._others:
            packed[place] = scalar_words(arguments[place], self._dtypes[place])
        if self._others:
            packed = _flattened(packed)
        return packed, tuple(flags)

    def _check(self, place: int, array: object) -> None:
        param, dtype = self.params[place], self._dtypes[place]
        if not isinstance(array, np.ndarray):
            raise TensorTypeError(
                f"'{param.name}' must be an array, not of type {type(array).__name__}"
            )
        if array.dtype != dtype or array.ndim != self._ranks[place]:
            raise TensorTypeError(
                f"'{param.name}' must be an array of {dtype} and rank {self._ranks[place]}, "
                f"not of {array.dtype} and rank {array.ndim}"
            )

    def layouts(self, arguments: Sequence[object]) -> tuple[Layout, ...]:
        """Return what is known of the strides of each array."""
        return tuple(_layout(arguments[place]) for place in self._arrays)


def _layout(array: Any) -> Layout:
    if array.flags.num & _BEHAVED == _BEHAVED:
        return Layout.CONTIGUOUS
    is_unit = array.flags.num & _ALIGNED and array.ndim and array.strides[-1] == array.itemsize
    return Layout.UNIT if is_unit else Layout.STRIDED


def scalar_format(dtype: DType) -> str:
    """Return how ``struct`` packs a scalar in two words."""
    return _FORMATS[dtype]


def scalar_words(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return what ``struct`` packs for a scalar: for complex numbers a pair."""
    if dtype.kind == "c":
        number = dtype.type(value)
        return float(number.real), float(number.imag)
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        return int(dtype.type(value).view(np.uint16))
    return dtype.type(value)


def _flattened(words: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for word in words:
        flat.extend(word) if isinstance(word, tuple) else flat.append(word)
    return flat


# ---------------------------------------------------------------- results


class _Memory:
    """Memory that a kernel allocated: freed when no array shows it any more."""

    __slots__ = ("_address", "_free")

    def __init__(self, address: int, free: Callable[[int], None]) -> None:
        self._address = address
        self._free = free

    def __del__(self) -> None:
        self._free(self._address)


class _Window:
    """An array over foreign memory, in NumPy's array interface; keeps ``owner`` alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: dict[str, object], owner: object) -> None:
        self.__array_interface__ = interface
        self._owner = owner


class Results:
    """The results of a function: those to be made before a call, and those it hands out.

    ``can_fail`` says whether memory may be missing, or the room of a level.
    """

    __slots__ = (
        "_flat",
        "_free",
        "_is_simple",
        "_made",
        "_numbers",
        "_owners",
        "_params",
        "_roots",
        "can_fail",
    )

    def __init__(self, interface: Interface) -> None:
        self.can_fail = interface.can_fail
        self._params = {param.name: place for place, param in enumerate(interface.params)}
        self._made = [
            (
                tuple(_evaluator(extent, self._params) for extent in stmt.extents),
                numpy_dtype(stmt.memref.dtype),
            )
            for stmt in interface.made
        ]
        self._numbers = interface.numbers
        self._owners = interface.shown
        self._roots = interface.owned
        self._flat = [memref for memref, _ in self._owners if memref.name not in self._numbers]
        self._is_simple = not self._flat
        self._free = free_function()

    @property
    def format(self) -> str:
        """The layout of the words, in the notation of ``struct``."""
        return "q" * len(self._made)

    @property
    def room(self) -> int:
        """How many words the function writes."""
        return len(self._roots) + sum(1 + 2 * memref.rank for memref in self._flat)

    def owned(self) -> list[tuple[Memref, int]] | None:
        """Return the results that the function hands out with memory of their own.

        With each comes the place among the written words where its address and its extents stand.
        None where a result shows a part of an array, or of what another result shows.
        """
        found: list[tuple[Memref, int]] = []
        place = len(self._roots)
        for memref, root in self._owners:
            if memref.name in self._numbers:
                continue
            if memref.name != root or root not in self._roots:
                return None
            found.append((memref, place))
            place += 1 + 2 * memref.rank
        return found if len(found) == len(self._roots) else None

    def order(self) -> tuple[int, ...]:
        """Return where each result stands among the arrays that the caller makes and ``owned``."""
        others = count(len(self._made))
        named = (self._numbers.get(memref.name) for memref, _ in self._owners)
        return tuple(next(others) if number is None else number for number in named)

    def shapes(self, arguments: Sequence[Any]) -> tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]:
        """Return extents and dtypes of the results whose extents are known."""
        return tuple(
            (tuple([extent(arguments) for extent in extents]), dtype)
            for extents, dtype in self._made
        )

    def make(self, arguments: Sequence[Any]) -> list[NDArray[Any]]:
        """Return new arrays for the results whose extents are known."""
        return [new_array(shape, dtype) for shape, dtype in self.shapes(arguments)]

    def wrapped(
        self, words: Sequence[int], arguments: Sequence[Any], made: Sequence[NDArray[Any]]
    ) -> tuple[object, ...]:
        """Return the result arrays: NumPy's own, views of parameters, or the function's memory."""
        if self._is_simple:
            return tuple([made[self._numbers[memref.name]] for memref, _ in self._owners])
        results: list[object] = []
        place = len(self._roots)
        owners: dict[str, object] = {
            root: _Memory(address, self._free)
            for root, address in zip(self._roots, words, strict=False)
        }
        for memref, root in self._owners:
            number = self._numbers.get(memref.name)
            if number is not None:
                results.append(made[number])
                continue
            rank, address = memref.rank, words[place]
            shape = tuple(words[place + 1 : place + 1 + rank])
            strides = tuple(words[place + 1 + rank : place + 1 + 2 * rank])
            place += 1 + 2 * rank
            owner = owners.get(root)
            if owner is None:
                is_made = root in self._numbers
                owner = made[self._numbers[root]] if is_made else arguments[self._params[root]]
            results.append(_window(address, shape, strides, memref.dtype, owner))
        return tuple(results)


def _window(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, owner: object
) -> NDArray[Any]:
    kind = numpy_dtype(dtype)
    if 0 in shape:
        return np.empty(shape, kind)
    raw = np.dtype(np.uint16) if kind.itemsize == 2 and kind.kind not in "iu" else kind
    interface: dict[str, object] = {
        "data": (address, False),
        "shape": shape,
        "strides": strides,
        "typestr": raw.str,
        "version": 3,
    }
    array = np.asarray(_Window(interface, owner))
    return array if raw is kind else array.view(kind)


def failure(status: int) -> Exception:
    """Return what a kernel raises for a status."""
    if status == NO_MEMORY:
        return MemoryError("a kernel could not allocate memory for its result")
    return ValueError(_FULL[status])


# ---------------------------------------------------------------- extents

_INTEGER: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda lhs, rhs: lhs + rhs,
    BinaryOp.SUB: lambda lhs, rhs: lhs - rhs,
    BinaryOp.MUL: lambda lhs, rhs: lhs * rhs,
    BinaryOp.FLOORDIV: lambda lhs, rhs: lhs // rhs if rhs else 0,
    BinaryOp.REM: lambda lhs, rhs: lhs % rhs if rhs else 0,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}


def _evaluator(expr: Expr, params: dict[str, int]) -> Callable[[Sequence[Any]], int]:
    """Return the function from arguments to the integer that an extent has."""
    match expr:
        case Var(name, _):
            place = params[name]
            return lambda arguments: int(arguments[place])
        case DimOf(memref, axis):
            place = params[memref.name]
            return lambda arguments: int(arguments[place].shape[axis])
        case Lit(const):
            assert isinstance(const.value, int)
            number = const.value
            return lambda arguments: number
        case Binary(op, lhs, rhs, _):
            operation = _INTEGER[op]
            left, right = _evaluator(lhs, params), _evaluator(rhs, params)
            return lambda arguments: operation(left(arguments), right(arguments))
        case other:
            raise AssertionError(f"{other} is no extent")
