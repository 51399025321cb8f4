"""Backend ``interpreter``: the generated Python, run as it is. It defines what loop IR means.

In: a ``LoopFunc``. Out: a kernel on NumPy arrays. Loop variables are int64 scalars, so that all
arithmetic has the width that it has in compiled code; undefined memory is filled with a pattern
that no correct program shows. The text is known to ``linecache``: tracebacks show its lines.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sparsejit._dataclasses import dataclass
from sparsejit.backends._arguments import Signature, signature_of
from sparsejit.backends.base import Kernel, KernelSource
from sparsejit.backends.disk_cache import digest
from sparsejit.backends.python_source import emit_python
from sparsejit.ir.loops import LoopFunc
from sparsejit.user_code import python_function

__all__ = ["InterpreterBackend", "register_source"]


def _int64_range(*bounds: int) -> Iterator[np.int64]:
    return map(np.int64, range(*(int(bound) for bound in bounds)))


def _poisoned_empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """``numpy.empty``, but what is read before it is written is conspicuous: nan or 0xA5A5..."""
    array = np.empty(shape, dtype)
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    else:
        array.reshape(-1).view(np.uint8).fill(0xA5 if array.dtype != bool else 1)
    return array


@dataclass(frozen=True, slots=True)
class _InterpretedKernel:
    function: Callable[..., tuple[NDArray[Any], ...]]
    signature: Signature

    def __call__(self, arguments: Sequence[object]) -> tuple[object, ...]:
        with np.errstate(all="ignore"):
            results = self.function(*self.signature.numpy_arguments(arguments))
        return self.signature.results(results)


@dataclass(frozen=True, slots=True)
class InterpreterBackend:
    """Runs generated source as plain Python: slow, and the reference for every other backend.

    >>> from sparsejit.ir.loops import DenseResult, DimOf, Alloc, Copy, Memref
    >>> from sparsejit.ir.types import DType
    >>> x, y = Memref("x", DType.FLOAT16, 1), Memref("y", DType.FLOAT16, 1)
    >>> body = (Alloc(y, (DimOf(x, 0),)), Copy(y, x))
    >>> backend = InterpreterBackend()
    >>> kernel = backend.load(backend.emit(LoopFunc("f", (x,), body, (DenseResult(y),))))
    >>> kernel([np.array([1.5, 2.0], np.float16)])
    (array([1.5, 2. ], dtype=float16),)
    """

    @property
    def name(self) -> str:
        """``"interpreter"``."""
        return "interpreter"

    def emit(self, func: LoopFunc) -> KernelSource:
        """Return the Python text of ``func``."""
        return emit_python(func)

    def load(self, source: KernelSource, *, cache: bool = True) -> Kernel:
        """Return the kernel of ``source``; there is nothing to cache."""
        namespace: dict[str, Any] = {"__name__": "sparsejit_interpreted"}
        filename = register_source(source)
        exec(compile(source.text, filename, "exec"), namespace)
        namespace["range"] = _int64_range
        namespace["empty"] = _poisoned_empty
        functions = source.functions.items()
        namespace.update({name: python_function(function) for name, function in functions})
        return _InterpretedKernel(namespace[source.entry], signature_of(source.func))


def register_source(source: KernelSource) -> str:
    """Make the text known to ``linecache`` and return the file name it has there."""
    filename = f"<sparsejit {source.entry} {digest(source.text)[:12]}>"
    linecache.cache[filename] = (
        len(source.text),
        None,
        source.text.splitlines(keepends=True),
        filename,
    )
    return filename
