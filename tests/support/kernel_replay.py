"""A backend that runs outlined functions with their kernels replayed, as a device would.

Host statements are evaluated here; no loop over elements is. Memory is poisoned, every kernel runs
with a few blocks, in an order that a seed picks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from sparsejit.backends import support
from sparsejit.backends._arguments import Signature, signature_of
from sparsejit.backends._expressions import typed
from sparsejit.backends._layout import flat
from sparsejit.backends._names import IMPORTED_FROM_NUMPY, python_names
from sparsejit.backends.base import KernelSource
from sparsejit.backends.numba_cuda import kernel_codes
from sparsejit.ir.device_code import (
    ExtentParam,
    KernelCode,
    PointerParam,
    ScalarParam,
    StrideParam,
)
from sparsejit.ir.device_statements import Launch, ReadBack, Require
from sparsejit.ir.fold import numpy_dtype
from sparsejit.ir.loop_walk import result_memrefs
from sparsejit.ir.loops import (
    Alloc,
    Assign,
    Copy,
    Dealloc,
    Expr,
    For,
    If,
    Let,
    LoopFunc,
    Memref,
    Resize,
    Scan,
    ScanOp,
    Sort,
    Stmt,
    View,
    While,
)
from sparsejit.ir.rename import introduced
from sparsejit.ir.types import DType
from sparsejit.ir.verify_loops import verify_loops
from sparsejit.passes.outline_kernels import outline_kernels

__all__ = ["ReplayBackend"]

_HALVES = (DType.FLOAT16, DType.BFLOAT16)


def _stored(dtype: DType) -> Any:
    return np.dtype(np.uint16) if dtype in _HALVES else numpy_dtype(dtype)


def _poisoned(shape: tuple[int, ...], dtype: DType) -> Any:
    array = np.empty(shape, _stored(dtype))
    array.reshape(-1).view(np.uint8).fill(0xA5 if array.dtype != bool else 1)
    return array


@dataclass(frozen=True)
class ReplayBackend:
    """Outlines with ``ordered``; ``blocks`` and ``seed`` are those of every kernel.

    ``codes`` makes the code of kernels, which is replayed.
    """

    ordered: bool = False
    blocks: int = 1
    seed: int = 0
    outline: Callable[..., LoopFunc] = outline_kernels
    codes: Callable[[LoopFunc], Mapping[str, KernelCode]] = kernel_codes

    @property
    def name(self) -> str:
        return "replay"

    def emit(self, func: LoopFunc) -> KernelSource:
        outlined = self.outline(func, ordered=self.ordered)
        verify_loops(outlined, "outline-kernels")
        texts = (code.text for code in kernel_codes(outlined).values())
        return KernelSource("replayed", "\n".join(texts), outlined)

    def load(self, source: KernelSource, *, cache: bool = True) -> Callable[..., Any]:
        codes = self.codes(source.func)
        return _Kernel(source.func, codes, signature_of(source.func), self.blocks, self.seed)


@dataclass(frozen=True)
class _Kernel:
    func: LoopFunc
    codes: Mapping[str, KernelCode]
    signature: Signature
    blocks: int
    seed: int

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]:
        given = self.signature.numpy_arguments(arguments)
        run = _Run(self)
        originals = {}
        for param, value in zip(self.func.params, given, strict=True):
            if isinstance(param, Memref) and param.rank == 1 and not value.flags.c_contiguous:
                originals[param.name] = value
                value = value.copy()  # on a device, arrays of rank 1 are contiguous
            run.values[param.name] = value
        with np.errstate(all="ignore"):
            run.block(self.func.body)
        for name, value in originals.items():
            if value.flags.writeable:
                value[...] = run.values[name]
        results = tuple(run.values[memref.name] for memref in result_memrefs(self.func))
        return self.signature.results(results)


class _Run:
    """One call."""

    def __init__(self, kernel: _Kernel) -> None:
        self._kernel = kernel
        names = [param.name for param in kernel.func.params]
        names += [item.name for item in introduced(kernel.func.body)]
        self._names = python_names(names)
        self.values: dict[str, Any] = {}
        self._words: dict[str, Any] = {name: getattr(np, name) for name in IMPORTED_FROM_NUMPY}
        self._words |= {name: getattr(support, name) for name in support.__all__}
        self._codes: dict[Expr, Any] = {}

    def value(self, expr: Expr) -> Any:
        if expr not in self._codes:
            text = flat(typed(expr, self._names))
            self._codes[expr] = compile(text, "<host expression>", "eval")
        known = {self._names[name]: value for name, value in self.values.items()}
        return eval(self._codes[expr], self._words, known)

    def numbers(self, exprs: Sequence[Expr]) -> tuple[int, ...]:
        return tuple(int(self.value(expr)) for expr in exprs)

    def block(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:  # noqa: C901 - one case for each kind
        match stmt:
            case Let(var, value) | Assign(var, value):
                self.values[var.name] = self.value(value)
            case For(var, lower, upper, body):
                for number in range(*self.numbers((lower, upper))):
                    self.values[var.name] = np.int64(number)
                    self.block(body)
            case While(condition, body):
                while self.value(condition):
                    self.block(body)
            case If(condition, then, orelse):
                self.block(then if self.value(condition) else orelse)
            case ReadBack(var, memref, indices):
                self.values[var.name] = self.values[memref.name][self.numbers(indices)]
            case Require(condition, text):
                if not self.value(condition):
                    raise ValueError(text)
            case Launch(kernel):
                self.launch(self._kernel.codes[kernel])
            case _:
                self.arrays(stmt)

    def arrays(self, stmt: Stmt) -> None:
        values = self.values
        match stmt:
            case Alloc(memref, extents, fill):
                array = _poisoned(self.numbers(extents), memref.dtype)
                if fill is not None:
                    kind = numpy_dtype(memref.dtype)
                    array[...] = np.array(fill.value, kind).view(array.dtype)
                values[memref.name] = array
            case Resize(memref, count):
                old, array = values[memref.name], _poisoned(self.numbers((count,)), memref.dtype)
                array[: old.size] = old[: array.size]
                values[memref.name] = array
            case Dealloc(memref):
                del values[memref.name]
            case Copy(target, source):
                whole = tuple(slice(size) for size in values[source.name].shape)
                values[target.name][whole] = values[source.name]
            case View():
                values[stmt.memref.name] = self.view(stmt)
            case Scan(memref, op):
                scan = np.add if op is ScanOp.SUM else np.maximum
                array = values[memref.name]
                array[...] = scan.accumulate(array, dtype=array.dtype)
            case Sort(order, coordinates, extents, count):
                keys = tuple(values[memref.name] for memref in coordinates)
                sizes = tuple(map(self.value, extents))
                values[order.name] = support.sort_entries(keys, sizes, self.value(count))
            case _:
                raise AssertionError(f"{type(stmt).__name__} is nothing for a host")

    def view(self, stmt: View) -> Any:
        source = self.values[stmt.source.name]
        offsets, sizes = self.numbers(stmt.offsets), self.numbers(stmt.sizes)
        kept = [axis for axis in range(source.ndim) if axis not in stmt.dropped]
        corner = source[tuple(slice(offset, None) for offset in offsets)]
        steps = tuple(source.strides[axis] * stmt.strides[axis] for axis in kept)
        return as_strided(corner, tuple(sizes[axis] for axis in kept), steps)

    def launch(self, code: KernelCode) -> None:
        blocks = self._kernel.blocks
        scratch: dict[str, Any] = {}
        for memref, extents, group in code.workspaces:
            shape = (blocks * code.block // group, *self.numbers(extents))
            scratch[memref.name] = np.full(shape, 1, _stored(memref.dtype))
        arguments: list[Any] = []
        for param in code.params:
            match param:
                case PointerParam(memref):
                    array = scratch.get(memref.name)
                    arguments.append(self.values[memref.name] if array is None else array)
                case ExtentParam(memref, axis):
                    arguments.append(self.values[memref.name].shape[axis])
                case StrideParam(memref, axis):
                    array = self.values[memref.name]
                    arguments.append(array.strides[axis] // array.itemsize)
                case ScalarParam(var, part):
                    value = self.values[var.name]
                    arguments.append(getattr(value, part) if part else value)
        arrays = [p.memref.name for p in code.params if isinstance(p, PointerParam)]
        written = [self.values[name] for name in arrays if name in code.writes & self.values.keys()]
        before = {
            name: self.values[name].copy()
            for name in arrays
            if name in self.values.keys() - code.writes
            and not any(np.may_share_memory(self.values[name], other) for other in written)
        }
        code.replay(arguments, blocks, self._kernel.seed)
        for name, copy in before.items():
            np.testing.assert_array_equal(self.values[name], copy, f"{name} is only read")
