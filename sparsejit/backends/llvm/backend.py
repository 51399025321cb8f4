"""Backend ``llvm``: loop functions compiled by LLVM, in tens of milliseconds.

In: a ``LoopFunc``. Out: a kernel on NumPy arrays, specialized for which arrays are contiguous,
without the GIL while it runs. Results whose extents are known beforehand are made by NumPy; the
others come from the kernel and are freed with the array that shows them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsejit.backends._arguments import numpy_dtype
from sparsejit.backends.base import Kernel, KernelSource
from sparsejit.backends.llvm._engine import Loaded, load_module
from sparsejit.backends.llvm._expand import expand
from sparsejit.backends.llvm._statements import Layout, emit_module, preallocated
from sparsejit.errors import TensorTypeError
from sparsejit.ir.loop_walk import all_statements, map_expr, result_memrefs
from sparsejit.ir.loops import Binary, Expr, Lit, LoopFunc, Memref, Var, View
from sparsejit.ir.ops import BinaryOp
from sparsejit.ir.scalar import Const
from sparsejit.ir.types import DType

__all__ = ["LlvmBackend"]

_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class _Memory:
    """Memory that a kernel allocated: freed when no array shows it any more."""

    __slots__ = ("_address",)

    def __init__(self, address: int) -> None:
        self._address = address

    def __del__(self) -> None:
        _free(self._address)


class _Window:
    """An array over foreign memory, in NumPy's array interface; keeps ``owner`` alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: Mapping[str, object], owner: object) -> None:
        self.__array_interface__ = interface
        self._owner = owner


@dataclass(frozen=True, slots=True)
class LlvmBackend:
    """Compiles loop functions with LLVM.

    ``reassociate`` allows sums and products over loops in another order, and contraction; nan and
    inf keep their meaning in any case.

    >>> LlvmBackend().name
    'llvm'
    """

    reassociate: bool = True

    @property
    def name(self) -> str:
        """``"llvm"``."""
        return "llvm"

    def emit(self, func: LoopFunc) -> KernelSource:
        """Return the LLVM IR of ``func`` for contiguous arrays."""
        count = sum(isinstance(param, Memref) for param in func.params)
        return KernelSource("entry", self._text(expand(func), (True,) * count), func)

    def _text(self, func: LoopFunc, contiguous: tuple[bool, ...]) -> str:
        return emit_module(func, Layout(contiguous), reassociate=self.reassociate)

    def load(self, source: KernelSource, *, cache: bool = True) -> Kernel:
        """Return the kernel of ``source``; other layouts are compiled when they first come.

        Raises ``UnsupportedError`` for an operation that LLVM code is not generated for.
        """
        func = expand(source.func)

        def compiled(contiguous: tuple[bool, ...]) -> Loaded:
            return load_module(self._text(func, contiguous), cache=cache)

        return LlvmKernel(func, compiled)


class LlvmKernel:
    """A kernel; each combination of contiguous and strided arrays is compiled once."""

    __slots__ = ("_compiled", "_func", "_loaded", "_lock", "_params", "_ready", "_results")

    def __init__(self, func: LoopFunc, compiled: Callable[[tuple[bool, ...]], Loaded]) -> None:
        self._func = func
        self._compiled = compiled
        self._lock = threading.Lock()
        self._loaded: dict[tuple[bool, ...], tuple[Any, Loaded]] = {}
        self._params = [(param, numpy_dtype(param.dtype)) for param in func.params]
        self._ready = {stmt.memref.name: stmt for stmt in preallocated(func)}
        self._results = _owners(func)

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]:
        words: list[int] = []
        contiguous: list[bool] = []
        arrays: dict[str, Any] = {}
        extents: dict[str, int] = {}
        if len(arguments) != len(self._params):
            raise TensorTypeError(
                f"the kernel takes {len(self._params)} arguments, not {len(arguments)}"
            )
        for (param, dtype), argument in zip(self._params, arguments, strict=True):
            if isinstance(param, Var):
                words += _scalar_words(argument, dtype)
                if param.dtype is DType.INT64:
                    extents[param.name] = int(argument)  # type: ignore[call-overload]
                continue
            array = _checked(param, dtype, argument)
            flat = array.flags.c_contiguous
            contiguous.append(flat)
            words.append(array.__array_interface__["data"][0])
            words += array.shape
            if not flat:
                words += array.strides
            arrays[param.name] = array
        made = {
            name: np.empty(
                [_evaluate(extent, extents) for extent in stmt.extents],
                numpy_dtype(stmt.memref.dtype),
            )
            for name, stmt in self._ready.items()
        }
        words += [array.__array_interface__["data"][0] for array in made.values()]
        room = sum(1 + 2 * memref.rank for memref, _ in self._results)
        block = np.array([_signed(word) for word in words] + [0] * room, np.int64)
        status = self._entry(tuple(contiguous))(block.__array_interface__["data"][0])
        if status:
            raise MemoryError("a kernel could not allocate memory for its result")
        return self._wrapped(block[len(words) :].tolist(), arrays, made)

    def _entry(self, contiguous: tuple[bool, ...]) -> Any:
        found = self._loaded.get(contiguous)
        if found is None:
            with self._lock:
                found = self._loaded.get(contiguous)
                if found is None:
                    loaded = self._compiled(contiguous)
                    found = (_ENTRY(loaded.address), loaded)
                    self._loaded[contiguous] = found
        return found[0]

    def _wrapped(
        self, words: Sequence[int], arrays: Mapping[str, Any], made: Mapping[str, NDArray[Any]]
    ) -> tuple[object, ...]:
        """Return the result arrays: NumPy's own, views of parameters, or the kernel's memory."""
        results: list[object] = []
        owners: dict[str, object] = {}
        place = 0
        for memref, root in self._results:
            address = words[place]
            shape = tuple(words[place + 1 : place + 1 + memref.rank])
            strides = tuple(words[place + 1 + memref.rank : place + 1 + 2 * memref.rank])
            place += 1 + 2 * memref.rank
            if memref.name in made:
                results.append(made[memref.name])
                continue
            owner = arrays.get(root, made.get(root))
            if owner is None:
                owner = owners.setdefault(root, None) or _Memory(address)
                owners[root] = owner
            results.append(_window(address, shape, strides, memref.dtype, owner))
        return tuple(results)


def _owners(func: LoopFunc) -> list[tuple[Memref, str]]:
    """Return the result arrays, each with the allocation or parameter whose memory it shows."""
    base = {
        stmt.memref.name: stmt.source.name
        for stmt in all_statements(func.body)
        if isinstance(stmt, View)
    }
    found: list[tuple[Memref, str]] = []
    for memref in result_memrefs(func):
        root = memref.name
        while root in base:
            root = base[root]
        found.append((memref, root))
    return found


def _checked(param: Memref, dtype: np.dtype[Any], argument: object) -> NDArray[Any]:
    if isinstance(argument, np.ndarray) and argument.dtype == dtype and argument.ndim == param.rank:
        return argument
    if not isinstance(argument, np.ndarray):
        raise TensorTypeError(
            f"'{param.name}' must be an array, not of type {type(argument).__name__}"
        )
    raise TensorTypeError(
        f"'{param.name}' must be an array of {dtype} and rank {param.rank}, "
        f"not of {argument.dtype} and rank {argument.ndim}"
    )


def _scalar_words(value: object, dtype: np.dtype[Any]) -> list[int]:
    if type(value) is int and dtype == np.int64:
        return [value, 0]
    padded = np.zeros(16, np.uint8)
    bits = np.asarray(value).astype(dtype).reshape(1).view(np.uint8)
    padded[: bits.size] = bits
    return [int(word) for word in padded.view(np.int64)]


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def _window(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, owner: object
) -> NDArray[Any]:
    kind = numpy_dtype(dtype)
    raw = np.dtype(np.uint16) if kind.itemsize == 2 and kind.kind not in "iu" else kind
    interface = {
        "data": (address, False),
        "shape": shape,
        "strides": strides,
        "typestr": raw.str,
        "version": 3,
    }
    array = np.asarray(_Window(interface, owner))
    return array if raw is kind else array.view(kind)


def _evaluate(expr: Expr, values: Mapping[str, int]) -> int:
    """Return the integer that an extent over parameters has."""

    def fold(inner: Expr) -> Expr:
        match inner:
            case Var(name, dtype):
                return Lit(Const(values[name], dtype))
            case Binary(op, Lit(Const(int() as lhs, _)), Lit(Const(int() as rhs, _)), dtype):
                return Lit(Const(_INTEGER[op](lhs, rhs), dtype))
            case _:
                return inner

    match map_expr(expr, fold):
        case Lit(Const(int() as value, _)):
            return value
        case other:
            raise AssertionError(f"{other} is no extent")


_INTEGER: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda lhs, rhs: lhs + rhs,
    BinaryOp.SUB: lambda lhs, rhs: lhs - rhs,
    BinaryOp.MUL: lambda lhs, rhs: lhs * rhs,
    BinaryOp.FLOORDIV: lambda lhs, rhs: lhs // rhs if rhs else 0,
    BinaryOp.REM: lambda lhs, rhs: lhs % rhs if rhs else 0,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}
